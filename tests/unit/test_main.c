/* The program as users run it: exit codes, messages, and the promises that scripts rely on. */
#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "packkit.h"

#define NUGGET TEST_ROOT "/models/nugget/"
#define PACKS TEST_ROOT "/tests/golden/packs/"
#define KING " --king " NUGGET "king"

/* Every test works in a folder of its own: names of files are relative, and tests may run at once.
 */
static char folder[] = "/tmp/ingot-main-XXXXXX";

static void leave_folder(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (chdir("/") == 0 && system(command) != 0) perror(command);
}

__attribute__((constructor)) static void enter_folder(void)
{
    if (!mkdtemp(folder) || chdir(folder) != 0) FAIL("cannot make %s", folder);
    atexit(leave_folder);
}

/* stdout and stderr of the last run */
static char out[1 << 20], err[1 << 16];

static void read_back(const char *path, char *to, size_t cap)
{
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(to, 1, cap - 1, f) : 0;
    to[n] = '\0';
    if (f) fclose(f);
    unlink(path);
}

static int run(const char *arguments)
{
    char command[8192], out_path[64], err_path[64];
    snprintf(out_path, sizeof out_path, "ingot-test-%d.out", (int)getpid());
    snprintf(err_path, sizeof err_path, "ingot-test-%d.err", (int)getpid());
    snprintf(command, sizeof command, "%s >%s 2>%s %s", TEST_PROGRAM, out_path, err_path,
             arguments);
    const int code = system(command);
    read_back(out_path, out, sizeof out);
    read_back(err_path, err, sizeof err);
    if (!WIFEXITED(code)) FAIL("ingot %s: ended by signal %d", arguments, WTERMSIG(code));
    return WEXITSTATUS(code);
}

/* One line "ingot: ...", and a hint line at most. */
static void expect_refusal(const char *arguments, int code, const char *words)
{
    const int got = run(arguments);
    if (got != code) FAIL("ingot %s: exit %d, want %d (%s)", arguments, got, code, err);
    if (strncmp(err, "ingot: ", 7) != 0 || !strstr(err, words))
        FAIL("ingot %s: said \"%s\"", arguments, err);
    const char *end = strchr(err, '\n');
    if (!end || (end[1] && strncmp(end + 1, "hint: ", 6) != 0))
        FAIL("ingot %s: more than a line: %s", arguments, err);
    if (out[0]) FAIL("ingot %s: printed \"%s\"", arguments, out);
}

static void expect_text(const char *member, const char *want)
{
    json_doc *doc;
    error e;
    EXPECT_OK(json_parse(&doc, str_from(out), 0, "stdout", &e), e);
    EXPECT_STR(json_text(json_get(json_root(doc), member)), want);
    json_free(doc);
}

TEST(command_lines_that_are_wrong)
{
    expect_refusal("generat", 2, "did you mean generate?");
    expect_refusal("generate", 2, "found 0 prompts");
    expect_refusal("generate --promt x", 2, "did you mean --prompt?");
    expect_refusal("generate --quiet -p ''", 2, "--prompt: empty");
    expect_refusal("generate -p x --tokens f", 2, "found 2 prompts");
    expect_refusal("generate -p x --block many", 2, "--block");
    expect_refusal("generate --quiet -p x --block 9", 2, "block");
    expect_refusal("generate --quiet -p x --cpu z80", 2, "found z80, want one of: ref, avx2");
    expect_refusal("generate -p x --image cat.png", 3, "text only");
    expect_refusal("generate -p x -p y", 2, "--prompt: given twice");
    expect_refusal("convert " NUGGET "king x --type Q4", 2, "--type: found Q4");
    expect_refusal("convert " NUGGET "king x --text " NUGGET "king", 2, "--text: a GGUF file");
    expect_refusal("synth x --shape king-27b --layers 3", 2, "found 3 layers, want 4 to");
    expect_refusal("eval merge", 2, "eval merge: want files");
    expect_refusal("eval ppl --text x --no-drafter", 2, "unknown option --no-drafter");
    expect_refusal("synth ingot-no --shape king-9b", 1, "king-9b");
    expect_refusal("eval foo", 2, "found foo, want kl");
    expect_refusal("generate -p x --context 4X", 2, "--context: found 4X");
    expect_refusal("generate -p x --context 1G", 2, "--context: found 1G");
    EXPECT_INT(run("inspect --quiet --context 4K " NUGGET "king"), 0);
    EXPECT_INT(run(""), 2);
}

TEST(options_that_contradict_each_other)
{
    expect_refusal("generate --quiet --raw -p x --system y" KING, 2, "--raw");
    EXPECT_INT(system("printf 'caf\\351' > ingot-test-latin"), 0);
    expect_refusal("generate --quiet -p - < ingot-test-latin" KING, 2, "UTF-8");
    unlink("ingot-test-latin");
    FILE *f = fopen("ingot-test-shape.json", "w");
    fputs("{\"kind\":\"king\",\"layers\":5}", f);
    fclose(f);
    expect_refusal("synth ingot-test-none --shape ingot-test-shape.json", 2, "\"layers\"");
    f = fopen("ingot-test-shape.json", "w");
    fputs("{\"kind\":\"king\",\"hidden_size\":100}", f);
    fclose(f);
    expect_refusal("synth ingot-test-none --shape ingot-test-shape.json", 2, "100");
    EXPECT(!file_exists("ingot-test-none"));
    unlink("ingot-test-shape.json");
    expect_refusal("inspect " NUGGET "king --verify --drafter " NUGGET "king", 3, "want a drafter");
    expect_refusal("inspect " NUGGET "king --drafter " NUGGET "drafter-q8", 2, "--verify");
    expect_refusal("synth " TEST_ROOT "/tests --shape king-27b", 2, "want a new or empty folder");
    expect_refusal("detokenize --quiet" KING " <<'X'\n[\"a\"]\nX\n", 2, "want a token id");
}

/* A bad file is told by its name and exit 1, whether it is no JSON or JSON of another shape. */
/* Who reads no more has seen enough: the program ends as any other filter does, without a word. */
TEST(a_closed_pipe_ends_it_quietly)
{
    EXPECT_INT(system("bash -c '" TEST_PROGRAM " generate --quiet --raw -p \"a b c\" --king " NUGGET
                      "king -n 400 2>ingot-test-said | head -c 1 >/dev/null; "
                      "test ${PIPESTATUS[0]} = 141 -a ! -s ingot-test-said'"),
               0);
}

/* Messages say the file that was asked for, and why it cannot be; not what we call it meanwhile. */
TEST(files_that_cannot_be_written_are_named)
{
    expect_refusal("convert " NUGGET "king none/x.gguf", 1,
                   "ingot: none/x.gguf: cannot create: No");
    EXPECT_INT(system("printf GGUF > ingot-test-file"), 0);
    expect_refusal("capture --quiet --tokens x --out y --king ingot-test-file", 3, "found a file");
    expect_refusal("quantize ingot-test-file y", 3, "found a file");
    expect_refusal("convert ingot-test-file y --text " NUGGET "drafter-q8", 2, "no tokenizer.json");
    expect_refusal("eval ppl --quiet --text /dev/null" KING, 2, "/dev/null: found 0 tokens");
    EXPECT_INT(system("mkdir ro && chmod 555 ro"), 0);
    if (geteuid() != 0) /* root may write everywhere */
        expect_refusal("synth ro/x --shape drafter-27b --layers 1", 1, "Permission denied");
}

/* --json of every command that leaves a result: one object. */
TEST(results_are_objects)
{
    EXPECT_INT(system("echo '[{\"role\":\"user\",\"content\":\"x\"}]' > ingot-test-talk; "
                      "echo '{\"kind\":\"king\",\"hidden_size\":1024,\"intermediate_size\":1024,"
                      "\"vocab_size\":4096,\"num_hidden_layers\":4}' > ingot-test-shape"),
               0);
    EXPECT_INT(run("tokenize --json" KING " <<'X'\nhi\nX\n"), 0);
    EXPECT(strncmp(out, "{\"ids\":[", 8) == 0);
    EXPECT_INT(run("detokenize --json" KING " <<'X'\n[72,73]\nX\n"), 0);
    expect_text("text", "ij");
    EXPECT_INT(run("render --json --messages ingot-test-talk" KING), 0);
    EXPECT(strncmp(out, "{\"text\":\"<|im_start|>user", 25) == 0);
    EXPECT_INT(run("convert --json " NUGGET "king x.gguf"), 0);
    EXPECT_STR(out, "{\"out\":\"x.gguf\",\"packed\":28,\"plain\":25,\"left_out_bytes\":0}\n");
    EXPECT_INT(run("quantize --json " PACKS "drafter-tiny-bf16 q"), 0);
    expect_text("out", "q");
    EXPECT_INT(run("synth --json k --shape ingot-test-shape"), 0);
    expect_text("out", "k");
    EXPECT_INT(run("inspect --json --verify k"), 0);
}

TEST(bad_input_files_are_named)
{
    static const char *const bad[] = { "[", "{}", "[1]" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        FILE *f = fopen("/tmp/ingot-test-bad.json", "w");
        fputs(bad[i], f);
        fclose(f);
        expect_refusal("render --quiet" KING " --messages /tmp/ingot-test-bad.json", 1,
                       "/tmp/ingot-test-bad.json");
        expect_refusal("generate --quiet" KING " --messages /tmp/ingot-test-bad.json", 1,
                       "/tmp/ingot-test-bad.json");
    }
    FILE *f = fopen("/tmp/ingot-test-bad.json", "w");
    fputs("{% for %}", f);
    fclose(f);
    EXPECT_INT(run("render --quiet" KING " --template /tmp/ingot-test-bad.json --messages - <<'X'\n"
                   "[{\"role\": \"user\", \"content\": \"x\"}]\nX\n"),
               1);
    EXPECT(strstr(err, "ingot: /tmp/ingot-test-bad.json: line 1"));
    unlink("/tmp/ingot-test-bad.json");
}

/* A case of --jsonl with a member of another type fails, and says which. */
TEST(jsonl_members_have_types)
{
    EXPECT_INT(run("split --quiet --jsonl" KING " <<'X'\n"
                   "{\"text\": \"a\", \"start\": 1}\n"
                   "{\"text\": \"a\", \"cuts\": 1}\n"
                   "{\"text\": \"ab\", \"cuts\": [\"1\"]}\n"
                   "{\"text\": \"ab\", \"start\": null, \"cuts\": [1]}\nX\n"),
               0);
    const char *line = out;
    static const char *const words[] = { "start\\\": found integer, want a string",
                                         "cuts\\\": found integer, want an array",
                                         "cuts\\\": found string, want offsets",
                                         "\"content\":\"ab\"" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *end = strchr(line, '\n'), *found = strstr(line, words[i]);
        if (!end || !found || found > end) FAIL("no %s in %s", words[i], line);
        line = end + 1;
    }
}

TEST(inspect_verifies_in_one_object)
{
    json_doc *doc;
    error e;
    EXPECT_INT(run("inspect " NUGGET "king --verify --json --quiet"), 0);
    EXPECT_OK(json_parse(&doc, str_from(out), 0, "stdout", &e), e);
    EXPECT(json_is_true(json_get(json_get(json_root(doc), "verify"), "ok")));
    json_free(doc);
}

TEST(a_short_context_shortens_the_answer)
{
    EXPECT_INT(run("generate --quiet --json --context 64 -p 'Write a bubble sort in C++.'" KING),
               0);
    EXPECT(strstr(out, "\"finish_reason\":\"length\""));
    expect_refusal("generate --quiet --context 64 -n 100 -p x" KING, 1, "max_tokens");
    EXPECT_INT(run("generate --quiet -n 3 -p 'What is 12 + 7?'" KING), 0);
    EXPECT(strstr(err, "while it was still reasoning"));
}

TEST(help_and_version)
{
    EXPECT_INT(run("--version >/dev/full"), 1);
    EXPECT(strstr(err, "cannot write"));
    EXPECT_INT(run("help"), 0);
    EXPECT(strstr(out, "generate") && strstr(out, "tokenize"));
    EXPECT_INT(run("help generate"), 0);
    EXPECT(strstr(out, "--max-tokens N"));
    EXPECT_INT(run("generate --help"), 0);
    EXPECT_INT(run("--version"), 0);
    EXPECT(strstr(out, "kernels") && strstr(out, "ref"));
}

TEST(models_that_cannot_be)
{
    expect_refusal("generate --quiet -p x --king /nowhere/at/all", 1, "/nowhere/at/all");
    EXPECT(strstr(err, "\nhint: a model is a folder, or a hub id"));
    expect_refusal("generate --quiet -p x --king " NUGGET "drafter-q8", 3, "drafter");
    expect_refusal("generate --quiet -p x" KING " --drafter " PACKS "drafter-tiny-bf16", 3,
                   "drafter");
    expect_refusal("generate --quiet -p x" KING " --drafter " NUGGET "king", 3, "want a drafter");
    expect_refusal("generate --quiet -p x" KING " --drafter " PACKS "drafter-tiny-q4-loose", 3,
                   "config");
}

TEST(prompts_that_cannot_be)
{
    FILE *f = fopen("ingot-test-long.json", "w");
    fputs("[1", f);
    for (int i = 0; i < 5000; i++) fputs(",1", f);
    fputs("]", f);
    fclose(f);
    expect_refusal("generate --quiet" KING " --tokens ingot-test-long.json", 1, "5001");
    f = fopen("ingot-test-long.json", "w");
    fputs("[1, 99999]", f);
    fclose(f);
    expect_refusal("generate --quiet" KING " --tokens ingot-test-long.json", 2, "99999");
    f = fopen("ingot-test-long.json", "w");
    fputs("[]", f);
    fclose(f);
    expect_refusal("generate --quiet" KING " --tokens ingot-test-long.json", 2, "no tokens");
    unlink("ingot-test-long.json");
}

TEST(R003_a_backslash_is_not_a_line_break)
{
    EXPECT_INT(run("tokenize --quiet" KING " < /dev/null"), 0);
    EXPECT_STR(out, "[]\n");
    EXPECT_INT(system("printf 'a\\nb' > ingot-test-break; printf '%s' 'a\\nb' > "
                      "ingot-test-letters"),
               0);
    EXPECT_INT(run("tokenize" KING " < ingot-test-break"), 0);
    char with_break[256];
    snprintf(with_break, sizeof with_break, "%.255s", out);
    EXPECT_INT(run("tokenize" KING " < ingot-test-letters"), 0);
    EXPECT(strcmp(with_break, out) != 0);
    /* and back again, byte for byte */
    char command[512];
    out[strcspn(out, "\n")] = '\0';
    snprintf(command, sizeof command, "detokenize" KING " <<'X'\n%.200s\nX\n", out);
    EXPECT_INT(run(command), 0);
    EXPECT_STR(out, "a\\nb");
    unlink("ingot-test-break");
    unlink("ingot-test-letters");
}

/* Ids and text of the reference implementation, where its margins leave no doubt. */
TEST(generate_gives_the_reference_tokens)
{
    json_doc *golden, *got;
    error e;
    int compared = 0;
    EXPECT_OK(json_parse_file(&golden, NUGGET "golden.json", 1 << 24, 0, &e), e);
    const json_node *prompts = json_get(json_root(golden), "prompts");
    for (size_t i = 0; i < json_len(prompts); i++) {
        const json_node *p = json_at(prompts, i), *ids = json_get(p, "greedy_ids"),
                        *margins = json_get(p, "margins");
        FILE *f = fopen("ingot-test-ids.json", "w");
        for (size_t k = 0; k < json_len(json_get(p, "prompt_ids")); k++) {
            int64_t id;
            json_i64(json_at(json_get(p, "prompt_ids"), k), &id);
            fprintf(f, "%c%d", k ? ',' : '[', (int)id);
        }
        fputs("]", f);
        fclose(f);
        EXPECT_INT(
            run("generate --quiet --json --mode f32 --kv-type f32 --no-drafter --max-tokens 96" KING
                " --tokens ingot-test-ids.json"),
            0);
        EXPECT_OK(json_parse(&got, str_from(out), 0, "stdout", &e), e);
        const json_node *mine = json_get(json_root(got), "token_ids");
        for (size_t k = 0; k < json_len(mine) && k < json_len(ids); k++) {
            int64_t want, found;
            double margin;
            json_i64(json_at(ids, k), &want);
            json_i64(json_at(mine, k), &found);
            json_f64(json_at(margins, k), &margin);
            if (margin < 1e-3) break;
            if (want != found)
                FAIL("prompt %zu, token %zu: found %d, want %d (margin %g)", i, k, (int)found,
                     (int)want, margin);
            compared++;
        }
        json_free(got);
    }
    json_free(golden);
    unlink("ingot-test-ids.json");
    EXPECT(compared > 300);
}

TEST(the_hash_depends_on_nothing_but_the_tokens)
{
    char plain[128];
    json_doc *doc;
    error e;
    EXPECT_INT(
        run("generate --quiet --json -p 'What is 17 + 26?' --temp 0.8 --seed 5 --block 1" KING), 0);
    EXPECT_OK(json_parse(&doc, str_from(out), 0, "stdout", &e), e);
    snprintf(plain, sizeof plain, "%s", json_text(json_get(json_root(doc), "sha256")));
    json_free(doc);
    EXPECT_INT(strlen(plain), 64);
    static const char *const ways[] = { "--block 2", "--block 5 --threads 1", "--block 8 --cpu ref",
                                        "--block auto --threads 3",
                                        "--block 4 --drafter " NUGGET "drafter-q4" };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char command[512];
        snprintf(command, sizeof command,
                 "generate --quiet --json -p 'What is 17 + 26?' --temp 0.8 --seed 5%s%s %s", KING,
                 strstr(ways[i], "--drafter") ? "" : " --drafter " NUGGET "drafter-q8", ways[i]);
        EXPECT_INT(run(command), 0);
        expect_text("sha256", plain);
    }
}

TEST(a_top_p_of_nothing_is_one_token)
{
    char greedy[512];
    EXPECT_INT(run("generate --quiet --no-thinking -n 24 -p 'Tell a story.'" KING), 0);
    snprintf(greedy, sizeof greedy, "%.500s", out);
    EXPECT(strlen(greedy) > 20);
    EXPECT_INT(
        run("generate --quiet --no-thinking -n 24 -p 'Tell a story.' --temp 2 --seed 1" KING), 0);
    EXPECT(strcmp(out, greedy) != 0);
    EXPECT_INT(run("generate --quiet --no-thinking -n 24 -p 'Tell a story.' --temp 2 --seed 1 "
                   "--top-p 0" KING),
               0);
    EXPECT_STR(out, greedy);
}

TEST(thinking_is_hidden_unless_asked_for)
{
    EXPECT_INT(run("generate --quiet -p 'What is 12 + 7?'" KING), 0);
    EXPECT(out[0] && !strstr(out, "<think>") && !strstr(out, "carry"));
    EXPECT_INT(run("generate --quiet --show-thinking -p 'What is 12 + 7?'" KING), 0);
    EXPECT(strncmp(out, "<think>\n", 8) == 0 && strstr(out, "\n</think>\n\n"));
    EXPECT_INT(run("generate --quiet --no-thinking --show-thinking -p 'What is 12 + 7?'" KING), 0);
    EXPECT(!strstr(out, "<think>"));
}

TEST(chat_answers_a_prompt_a_line)
{
    EXPECT_INT(run("chat --quiet --max-tokens 8 --no-thinking" KING
                   " <<'X'\nHello!\n/system Be brief.\nHello!\nX\n"),
               0);
    int lines = 0;
    for (const char *p = out; *p; p++) lines += *p == '\n';
    EXPECT_INT(lines, 2);
    EXPECT_INT(run("chat --quiet" KING " <<'X'\n/nonsense\nX\n"), 2);
}

/* The first token comes out of the prompt's last row: the steps make the others. */
TEST(stats_count_what_the_steps_made)
{
    int tokens, steps;
    double per_step;
    EXPECT_INT(run("generate --quiet --stats --no-thinking --block 4 -n 12 -p 'What is 2 + 4?'" KING
                   " --drafter " NUGGET "drafter-q8"),
               0);
    const char *generated = strstr(err, "generated "), *drafting = strstr(err, "drafting ");
    EXPECT(generated && sscanf(generated, "generated %d tokens", &tokens) == 1);
    EXPECT(drafting &&
           sscanf(drafting, "drafting %d steps, %lf tokens per step", &steps, &per_step) == 2);
    EXPECT(tokens > 1 && fabs(per_step * steps - (tokens - 1)) <= 0.005 * steps + 1e-9);
}

TEST(without_a_drafter_the_shipped_one_is_not_used)
{
    unsetenv("INGOT_KING");
    unsetenv("INGOT_DRAFTER");
    EXPECT_INT(run("generate --quiet --json --block 4 -n 8 -p 'What is 2 + 4?'"), 0);
    EXPECT(!strstr(out, "\"drafted\":0,"));
    EXPECT_INT(run("generate --quiet --json --no-drafter --no-copy -n 8 -p 'What is 2 + 4?'"), 0);
    EXPECT(strstr(out, "\"drafted\":0,"));
}

/* What was refused is no part of the conversation; lines may end as on other systems. */
TEST(a_refused_turn_leaves_no_trace)
{
    static char want[1 << 12];
#define CHAT "chat --quiet --context 64 --max-tokens 8 --no-thinking" KING
    EXPECT_INT(run(CHAT " <<'X'\nHello!\n/save plain.json\nX\n"), 0);
    read_back("plain.json", want, sizeof want);
    EXPECT(strstr(want, "Hello!"));
    EXPECT(system("for i in $(seq 100); do printf 'word '; done > turns;"
                  "printf '\\nHello!\\r\\n/save long.json\\r\\n' >> turns") == 0);
    EXPECT(run(CHAT " < turns") != 0);
    EXPECT(strstr(err, "hint: /reset"));
    read_back("long.json", out, sizeof out);
    EXPECT_STR(out, want);
}

TEST(a_block_of_lines_holds_no_carriage_returns)
{
    EXPECT_INT(system("printf '\"\"\"a\\r\\nb\"\"\"\\r\\n/save block.json\\r\\n' > turns"), 0);
    EXPECT_INT(run("chat --quiet --max-tokens 1 --no-thinking" KING " < turns"), 0);
    read_back("block.json", out, sizeof out);
    EXPECT(strstr(out, "\"a\\nb\""));
}

static void near(const tensor *a, const tensor *b, double tolerance)
{
    EXPECT(a && b);
    const int64_t n = tensor_elements(a);
    EXPECT_INT(n, tensor_elements(b));
    for (int64_t i = 0; i < n; i++) {
        float x, y;
        tensor_read_f32(a, i, 1, &x);
        tensor_read_f32(b, i, 1, &y);
        if (!(x - y <= tolerance && y - x <= tolerance))
            FAIL("element %d: %g and %g", (int)i, (double)x, (double)y);
    }
}

/* The command's own file against the reference library's. */
TEST(capture_holds_the_reference_logits)
{
    safetensors mine, golden;
    error e;
    int32_t ids[17];
    EXPECT_OK(safetensors_open(&golden, PACKS "king-tiny/golden/prompt_len17.safetensors", &e), e);
    const tensor *tokens = safetensors_find(&golden, STR("tokens"));
    FILE *f = fopen("ingot-test-ids.json", "w");
    memcpy(ids, tokens->data, sizeof ids);
    for (int i = 0; i < 17; i++) fprintf(f, "%c%d", i ? ',' : '[', ids[i]);
    fputs("]", f);
    fclose(f);
    EXPECT_INT(run("capture --quiet --mode f32 --king " PACKS
                   "king-tiny --tokens ingot-test-ids.json --hidden all"
                   " --out ingot-test.safetensors"),
               0);
    EXPECT_OK(safetensors_open(&mine, "ingot-test.safetensors", &e), e);
    near(safetensors_find(&mine, STR("seq0.logits")), safetensors_find(&golden, STR("logits")),
         3e-4);
    near(safetensors_find(&mine, STR("seq0.hidden.2")),
         safetensors_find(&golden, STR("layer2.output")), 1e-4);
    safetensors_close(&mine);
    safetensors_close(&golden);
    /* a king compared with its own capture is no distance away; int8 activations cost little */
    EXPECT_INT(run("eval kl --quiet --json --mode f32 --king " PACKS
                   "king-tiny --against ingot-test.safetensors"),
               0);
    EXPECT(strstr(out, "\"rows\":17,\"kl\":{\"mean\":0.0,"));
    EXPECT(strstr(out, "\"hidden_mean\":0.0"));
    EXPECT_INT(
        run("eval kl --quiet --json --king " PACKS "king-tiny --against ingot-test.safetensors"),
        0);
    EXPECT(!strstr(out, "\"mean\":0.0,"));
    unlink("ingot-test.safetensors");
    unlink("ingot-test-ids.json");
}

static void expect_part(const safetensors *part, const safetensors *all)
{
    for (size_t i = 0; i < part->count; i++) {
        const tensor *t = &part->tensors[i], *w = safetensors_find(all, t->name);
        EXPECT(w && w->bytes == t->bytes && memcmp(w->data, t->data, t->bytes) == 0);
    }
}

/* Answers come with the hidden states of the chosen layers, in shards that are the whole; a drafter
 * changes nothing, and the tables are embedding and head without their rotation. */
TEST(capture_answers_prompts)
{
    error e;
    safetensors all, part, tables;
    EXPECT_INT(
        system("for i in 1 2 3; do printf '{\"messages\":[{\"role\":\"user\",\"content\":"
               "\"What is %d + 4?\"}],\"thinking\":false}\\n\\n' $i; done > ingot-test-asked; "
               "echo '{\"tokens\":[1,2,3]}' >> ingot-test-asked"),
        0);
#define ASK \
    "capture --quiet --json --prompts ingot-test-asked --hidden 0,3 --logits none -n 12" KING
    EXPECT_INT(run(ASK " --no-drafter --out all.safetensors"), 0);
    EXPECT(strstr(out, "{\"out\":\"all.safetensors\",\"sequences\":4,\"tokens\":"));
    EXPECT(strstr(out, ",\"answer_tokens\":"));
    EXPECT_OK(safetensors_open(&all, "all.safetensors", &e), e);
    EXPECT_INT(all.count, 4 * 4);
    EXPECT_INT(run(ASK " --drafter " NUGGET "drafter-q8 --shard 1/2 --parallel 1"
                       " --tables t.safetensors --out part.safetensors"),
               0);
    EXPECT_OK(safetensors_open(&part, "part.safetensors", &e), e);
    EXPECT_INT(part.count, 2 * 4);
    expect_part(&part, &all);
    safetensors_close(&part);
    safetensors_close(&all);
    /* drawn with the seed of its line, whatever is asked beside it */
    EXPECT_INT(run(ASK " --temp 2 --seed 5 --no-drafter --out all.safetensors"), 0);
    EXPECT_INT(run(ASK " --temp 2 --seed 5 --no-drafter --shard 1/2 --out part.safetensors"), 0);
    EXPECT_OK(safetensors_open(&all, "all.safetensors", &e), e);
    EXPECT_OK(safetensors_open(&part, "part.safetensors", &e), e);
    expect_part(&part, &all);
    safetensors_close(&part);
    safetensors_close(&all);
    EXPECT_INT(run(ASK " --no-drafter --out all.safetensors"), 0);
    EXPECT_OK(safetensors_open(&all, "all.safetensors", &e), e);
    /* the answer of `generate`, and the token that ended it */
    const tensor *ids = safetensors_find(&all, STR("seq1.tokens"));
    const tensor *answer = safetensors_find(&all, STR("seq1.answer"));
    EXPECT_INT(run("generate --quiet --json -p 'What is 2 + 4?' --no-thinking -n 12" KING), 0);
    json_doc *doc;
    EXPECT_OK(json_parse(&doc, str_from(out), 0, "stdout", &e), e);
    const json_node *want = json_get(json_root(doc), "token_ids");
    const bool stopped = strcmp(json_text(json_get(json_root(doc), "finish_reason")), "stop") == 0;
    int32_t first;
    memcpy(&first, answer->data, sizeof first);
    EXPECT_INT(first, (int64_t)json_len(json_get(json_root(doc), "prompt_token_ids")));
    EXPECT_INT(ids->shape[0], first + (int64_t)json_len(want) + stopped);
    for (size_t i = 0; i < json_len(want); i++) {
        int32_t id;
        int64_t w;
        memcpy(&id, ids->data + sizeof id * ((size_t)first + i), sizeof id);
        EXPECT(json_i64(json_at(want, i), &w));
        EXPECT_INT(id, w);
    }
    json_free(doc);
    /* row 9 of the head, times the input of the head, is logit 9: its rotation is undone */
    EXPECT_OK(safetensors_open(&tables, "t.safetensors", &e), e);
    EXPECT(
        tensor_has_shape(safetensors_find(&tables, STR("embedding")), 2, (int64_t[]){ 4096, 512 }));
    EXPECT(tensor_has_shape(safetensors_find(&tables, STR("head")), 2, (int64_t[]){ 4096, 512 }));
    EXPECT_STR(safetensors_metadata(&tables, "layers"), "4");
    EXPECT_STR(safetensors_metadata(&tables, "king"), safetensors_metadata(&all, "king"));
    safetensors_close(&tables);
    safetensors_close(&all);
}

/* Logits by hand from the last layer's output, the final norm and the table, in double. */
TEST(tables_are_the_matrices_without_rotation)
{
    enum { D = 512, V = 1024, N = 17 };
    error e;
    safetensors tables, golden, king;
    EXPECT_INT(run("capture --quiet --king " PACKS "king-tiny --tables t.safetensors"), 0);
    EXPECT_OK(safetensors_open(&tables, "t.safetensors", &e), e);
    EXPECT_OK(safetensors_open(&golden, PACKS "king-tiny/golden/prompt_len17.safetensors", &e), e);
    EXPECT_OK(safetensors_open(&king, PACKS "king-tiny/model.safetensors", &e), e);
    const tensor *head = safetensors_find(&tables, STR("head"));
    const tensor *norm = safetensors_find(&king, STR("language_model.model.norm.weight"));
    const tensor *logits = safetensors_find(&golden, STR("logits"));
    char name[32];
    const tensor *h = NULL;
    for (int layer = 0; layer < 64; layer++) {
        snprintf(name, sizeof name, "layer%d.output", layer);
        const tensor *t = safetensors_find(&golden, str_from(name));
        if (t) h = t;
    }
    EXPECT(head && norm && logits && h);
    float x[D], w[D], row[D], want[V];
    tensor_read_f32(norm, 0, D, w);
    tensor_read_f32(h, (N - 1) * D, D, x);
    tensor_read_f32(logits, (N - 1) * V, V, want);
    double squares = 0;
    for (int i = 0; i < D; i++) squares += (double)x[i] * (double)x[i];
    for (int v = 0; v < V; v++) {
        double sum = 0;
        tensor_read_f32(head, (int64_t)v * D, D, row);
        for (int i = 0; i < D; i++) sum += (double)row[i] * (double)w[i] * (double)x[i];
        sum /= sqrt(squares / D + 1e-6);
        if (!(fabs(sum - (double)want[v]) < 5e-3))
            FAIL("logit %d: %g, want %g", v, sum, (double)want[v]);
    }
    safetensors_close(&king);
    safetensors_close(&golden);
    safetensors_close(&tables);
}

TEST(captures_that_cannot_be)
{
    EXPECT_INT(system("echo '{\"text\":1}' > ingot-test-asked; echo '{\"tokens\":[5000]}' > "
                      "ingot-test-high; : > ingot-test-empty; echo '[1]' > ingot-test-ids"),
               0);
    expect_refusal("capture --quiet" KING, 2, "want --tokens FILE or --prompts FILE");
    expect_refusal("capture --quiet --prompts x" KING, 2, "with --out FILE");
    expect_refusal("capture --quiet --tokens x --prompts y --out z" KING, 2, "together");
    expect_refusal("capture --quiet -n 3 --tokens ingot-test-ids --out z" KING, 2, "--prompts");
    expect_refusal("capture --quiet --prompts none --out z" KING, 1, "none");
    expect_refusal("capture --quiet --prompts ingot-test-empty --out z" KING, 2, "no prompt");
    expect_refusal("capture --quiet --prompts ingot-test-asked --out z" KING, 1,
                   "ingot-test-asked: prompt 0: ");
    expect_refusal("capture --quiet --prompts ingot-test-high --out z" KING, 1, "5000");
    static const char *const lines[][2] = {
        { "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"think\":true}", "\"think\"" },
        { "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"thinking\":1}",
          "thinking: found" },
        { "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"tools\":1}", "tools: found" },
        { "{\"messages\":[]}", "at least one message" },
        { "{\"tokens\":[1],\"tools\":[]}", "beside tokens" },
        { "{\"tokens\":[1.5]}", "found real" },
        { "[]", "want an object" },
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        error e;
        EXPECT_OK(file_write("ingot-test-asked", str_from(lines[i][0]), &e), e);
        expect_refusal("capture --quiet --prompts ingot-test-asked --out z" KING, 1, lines[i][1]);
    }
    expect_refusal("capture --quiet --hidden 3,1 --tokens ingot-test-ids --out z" KING, 2,
                   "rising layers");
    expect_refusal("capture --quiet --hidden 1,4 --tokens ingot-test-ids --out z" KING, 2,
                   "layer 4");
    expect_refusal("capture --quiet --tables z --king " NUGGET "drafter-q8", 3, "want a king");
    EXPECT(!file_exists("z"));
}

TEST(a_truncated_pack_is_named)
{
    EXPECT_INT(system("rm -rf ingot-test-king && cp -r " NUGGET "king ingot-test-king && "
                      "truncate -s 1000000 ingot-test-king/model.safetensors"),
               0);
    expect_refusal("generate --quiet -p x --king ingot-test-king", 1, "model.safetensors");
    EXPECT_INT(system("rm -rf ingot-test-king && cp -r " NUGGET "king ingot-test-king && "
                      "rm ingot-test-king/chat_template.jinja"),
               0);
    expect_refusal("generate --quiet -p x --king ingot-test-king", 3, "chat_template");
    EXPECT_INT(run("generate --quiet --raw -n 2 -p x --king ingot-test-king"), 0);
    EXPECT_INT(system("rm -rf ingot-test-king"), 0);
}

/* A copy of a golden king or drafter with one thing changed, as a user meets it: the file, what was
 * found there, the exit code. Every rule has its own test in test_pack.c and its neighbours. */
TEST(damaged_packs_are_refused_in_a_line)
{
#define KING_FILE "model.safetensors"
#define HEAD "language_model.lm_head"
#define LAYER "language_model.model.layers.0"
    static const struct {
        const char *pack;
        kit_damage d; /* file, old, now; or a change of a tensor */
        int code;
        const char *words;
    } list[] = {
        { "king-tiny", /* offsets that lie */
          { .file = KING_FILE, .old = "[0,8192]", .now = "[0,8196]" },
          1,
          HEAD ".biases" },
        { "king-tiny",
          { .file = KING_FILE, .old = "[3509408,3509920]", .now = "[9509408,9509920]" },
          1,
          "vision_tower.pos_embed.weight" },
        { "king-tiny", /* overlap and gap */
          { .file = KING_FILE, .old = "[8192,16384]", .now = "[8190,16382]" },
          1,
          HEAD ".scales" },
        { "king-tiny",
          { .file = KING_FILE, .old = "[16384,18432]", .now = "[10384,12432]" },
          1,
          HEAD },
        { "king-tiny", /* the same key twice: in a header, in a config */
          { .file = KING_FILE, .old = HEAD ".scales", .now = HEAD ".biases" },
          1,
          KING_FILE },
        { "king-tiny",
          { .file = "config.json", .old = "{", .now = "{\"model_type\": \"x\"," },
          1,
          "config.json" },
        { "king-tiny", /* shapes and types */
          { .change = SHAPE(LAYER ".input_layernorm.weight", 2, 2, 256) },
          1,
          "shape [2, 256], want [512]" },
        { "king-tiny",
          { .change = DTYPE(LAYER ".mlp.up_proj.scales", DTYPE_BF16) },
          1,
          "biases: dtype F16, want BF16" },
        { "king-tiny", /* missing and left over */
          { .change = DROP(LAYER ".mlp.up_proj.weight") },
          1,
          "up_proj" },
        { "king-tiny", { .change = RENAME(LAYER ".linear_attn.A_log", "A_log") }, 1, "A_log" },
        { "king-tiny", /* signs that disagree */
          { .change = SET(LAYER ".mlp.up_proj.signs", 5, 0.5f) },
          1,
          "sign 5 is 0.5" },
        { "king-tiny",
          { .file = "hadamard.json",
            .old = "sign_values\": [1, -1",
            .now = "sign_values\": [-1, -1" },
          1,
          "as in hadamard.json" },
        { "king-tiny",
          { .file = "tokenizer.json", .old = "\"model\"", .now = "\"modle\"" },
          3,
          "model: found null, want BPE" },
        { "king-tiny",
          { .file = "chat_template.jinja", .old = "{%", .now = "{% nonsense %}{%" },
          1,
          "chat_template.jinja: line 1: unknown" },
        { "qwen35-tiny-affine4", /* a shard that is named and not there */
          { .file = "model.safetensors.index.json",
            .old = "model-00001-of-00002",
            .now = "model-00001-of-00003" },
          1,
          "its shard \"model-00001-of-00003.safetensors\" is not" },
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        const kit k = kit_new(list[i].pack);
        char command[512];
        kit_apply(&k, &list[i].d);
        snprintf(command, sizeof command, "generate --quiet -p x --no-drafter --king %s", k.folder);
        expect_refusal(command, list[i].code, list[i].words);
        kit_free(&k);
    }
}

TEST(damaged_drafters_are_refused_in_a_line)
{
    static const struct {
        kit_damage d;
        int code;
        const char *words;
    } list[] = {
        { { .change = DROP("norm.weight") }, 1, "norm.weight" },
        { { .change = SHAPE("norm.weight", 2, 2, 256) }, 1, "norm.weight" },
        { { .file = "config.json", .old = "\"hidden_size\": 512", .now = "\"hidden_size\": 0" },
          1,
          "hidden_size" },
        { { .file = "config.json", .old = "DFlash2DraftModel", .now = "DFlashDraftModel" },
          3,
          "DFlashDraftModel" },
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        const kit k = kit_new("drafter-tiny-bf16");
        char command[512];
        kit_apply(&k, &list[i].d);
        snprintf(command, sizeof command,
                 "generate --quiet -p x --king " PACKS "king-tiny --drafter %s", k.folder);
        expect_refusal(command, list[i].code, list[i].words);
        kit_free(&k);
    }
}

/* Times differ from run to run; what must not is that every figure promised is there. */
TEST(bench_reports_what_it_promises)
{
    json_doc *doc;
    error e;
    double share;
    int64_t rows;
    EXPECT_INT(run("bench --quiet --json --repeat 1 --max-tokens 4 --lengths 16 --depths 0,9" KING
                   " --drafter " NUGGET "drafter-q8 --plot ingot-test.svg"),
               0);
    EXPECT_OK(json_parse(&doc, str_from(out), 0, "stdout", &e), e);
    const json_node *root = json_root(doc);
    EXPECT_INT(json_len(json_get(root, "rows")), 16);
    EXPECT(json_i64(json_get(json_at(json_get(root, "rows"), 15), "rows"), &rows) && rows == 16);
    EXPECT_INT(json_len(json_get(root, "prefill")), 1);
    EXPECT_INT(json_len(json_get(root, "decode")), 2);
    EXPECT(json_f64(json_get(json_at(json_get(root, "decode"), 1), "bandwidth_share"), &share) &&
           share > 0);
    EXPECT(json_f64(json_get(json_at(json_get(root, "decode"), 1), "verify_cost"), &share) &&
           share > 0);
    EXPECT(json_f64(json_get(json_get(root, "read"), "spread"), &share) && share >= 0);
    EXPECT_STR(json_text(json_get(json_at(json_get(root, "draft"), 0), "block")), "plain");
    EXPECT_INT(json_len(json_get(root, "tasks")), 6);
    EXPECT(json_f64(json_get(json_at(json_get(root, "tasks"), 4), "acceptance"), &share) &&
           share >= 0 && share <= 1); /* 0: drafts did not pay */
    EXPECT_INT(json_len(json_get(root, "serve")), 4);
    EXPECT(json_i64(json_get(json_at(json_get(root, "serve"), 3), "requests"), &rows) && rows == 8);
    EXPECT(json_f64(json_get(json_at(json_get(root, "serve"), 3), "tok_s"), &share) && share > 0);
    EXPECT(json_get(json_get(root, "memory"), "rss_peak"));
    EXPECT(file_exists("ingot-test.svg"));
    unlink("ingot-test.svg");
    json_free(doc);
    expect_refusal("bench --quiet --what nothing", 2, "--what");
    expect_refusal("bench --quiet --depths 1,x" KING, 2, "--depths");
}

/* Prepared weights are the same weights: the same answer, said in the same words. */
TEST(prepare_keeps_tiles_that_every_command_maps)
{
    char dir[] = "/tmp/ingot-test-tiles-XXXXXX", command[512], want[128], path[4096];
    const char *const pair = KING " --drafter " NUGGET "drafter-q8";
    json_doc *doc;
    error e;
    EXPECT(mkdtemp(dir) != NULL);
    snprintf(command, sizeof command, "prepare --quiet --json --tiles %s " NUGGET "king", dir);
    for (int turn = 0; turn < 2; turn++) {
        EXPECT_INT(run(command), 0);
        EXPECT_OK(json_parse(&doc, str_from(out), 0, "stdout", &e), e);
        EXPECT(json_is_true(json_get(json_root(doc), "written")) == (turn == 0));
        snprintf(path, sizeof path, "%s", json_text(json_get(json_root(doc), "file")));
        json_free(doc);
    }
    snprintf(command, sizeof command, "generate --quiet --raw -p Hello -n 24 --json%s", pair);
    EXPECT_INT(run(command), 0);
    const char *hash = strstr(out, "\"sha256\":");
    EXPECT(hash != NULL);
    snprintf(want, sizeof want, "%.75s", hash);
    for (int turn = 0; turn < 2; turn++) { /* the drafter's file is made by the first one */
        snprintf(command, sizeof command,
                 "generate --quiet --raw -p Hello -n 24 --json --tiles %s%s", dir, pair);
        EXPECT_INT(run(command), 0);
        EXPECT(strstr(out, want));
        EXPECT_STR(err, "");
    }
    snprintf(command, sizeof command, "inspect --json --tiles %s " NUGGET "king", dir);
    EXPECT_INT(run(command), 0);
    EXPECT(strstr(out, path));
    EXPECT_INT(truncate(path, 5000), 0);
    snprintf(command, sizeof command, "prepare --quiet --tiles %s " NUGGET "king", dir);
    EXPECT_INT(run(command), 0);
    EXPECT(strstr(err, "found 5000 bytes, want ") && strstr(err, "made again"));
    EXPECT(strstr(out, "written"));
    snprintf(command, sizeof command, "rm -r %s", dir);
    EXPECT_INT(system(command), 0);
    expect_refusal("prepare --quiet --tiles /dev/null/x " NUGGET "king", 1, "/dev/null");
    expect_refusal("prepare", 2, "prepare");
}

TEST(verify_finds_all_ways_identical)
{
    FILE *f = fopen("ingot-test-prompts", "w");
    fputs("What is 17 + 26?\nRepeat exactly: alpha beta alpha beta alpha beta alpha beta\n", f);
    fclose(f);
    EXPECT_INT(run("eval verify --quiet --json --max-tokens 24 --prompts ingot-test-prompts" KING
                   " --drafter " NUGGET "drafter-q8"),
               0);
    EXPECT(strstr(out, "\"identical\":true,\"prompts\":2,"));
    unlink("ingot-test-prompts");
}
