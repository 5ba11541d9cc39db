/* The program as users run it: command lines, exit codes, messages, and the promises that scripts
 * rely on. Commands with tests of their own: test_cmd_*.c, test_verify.c. */
#include "base/file.h"
#include "base/json.h"
#include "program.h"

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
    expect_refusal("generate --quiet --raw -p x --system y" KING, 2, "--raw: without");
    expect_refusal("generate --quiet --tokens x --system y" KING, 2, "--tokens: without");
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
    expect_refusal("detokenize --quiet" KING " <<'X'\n[\"a\"]\nX\n", 1, "want a token id");
}

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

/* A bad file is told by its name and exit 1, whether it is no JSON or JSON of another shape. */
TEST(bad_input_files_are_named)
{
    static const char *const bad[] = { "[", "{}", "[1]" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        FILE *f = fopen("ingot-test-bad.json", "w");
        fputs(bad[i], f);
        fclose(f);
        expect_refusal("render --quiet" KING " --messages ingot-test-bad.json", 1,
                       "ingot-test-bad.json");
        expect_refusal("generate --quiet" KING " --messages ingot-test-bad.json", 1,
                       "ingot-test-bad.json");
    }
    FILE *f = fopen("ingot-test-bad.json", "w");
    fputs("{% for %}", f);
    fclose(f);
    EXPECT_INT(run("render --quiet" KING " --template ingot-test-bad.json --messages - <<'X'\n"
                   "[{\"role\": \"user\", \"content\": \"x\"}]\nX\n"),
               1);
    EXPECT(strstr(err, "ingot: ingot-test-bad.json: line 1"));
    unlink("ingot-test-bad.json");
}

/* What comes on stdin or from a file is no fault of the command line, which is told by exit 2. */
TEST(bad_data_is_no_wrong_command_line)
{
    EXPECT_INT(run("tokenize --quiet --special no" KING " < /dev/null"), 2);
    EXPECT_INT(system("printf '\\377' > ingot-test-bytes"), 0);
    EXPECT_INT(run("tokenize --quiet" KING " < ingot-test-bytes"), 1);
    EXPECT(strncmp(err, "ingot: stdin: ", 14) == 0);
    EXPECT_INT(run("tokenize --json --quiet" KING " < ingot-test-bytes"), 1);
    static const char *const ids[] = { "[\"a\"]", "{}", "[" };
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        char arguments[512];
        snprintf(arguments, sizeof arguments, "detokenize --quiet" KING " <<'X'\n%s\nX\n", ids[i]);
        EXPECT_INT(run(arguments), 1);
        EXPECT(strncmp(err, "ingot: stdin: ", 14) == 0);
    }
    EXPECT_INT(system("echo '{{ raise_exception(\"no\") }}' > ingot-test-template"), 0);
#define RENDER "render --quiet" KING " --template ingot-test-template --messages - "
    EXPECT_INT(run(RENDER "<<'X'\n[{\"role\": \"user\", \"content\": \"x\"}]\nX\n"), 1);
    EXPECT_STR(err, "ingot: -: no\n");
    EXPECT_INT(run(RENDER "--reasoning-effort huge <<'X'\n"
                          "[{\"role\": \"user\", \"content\": \"x\"}]\nX\n"),
               2);
    EXPECT_INT(system("echo '[]x' > ingot-test-tools"), 0);
    EXPECT_INT(run("split --quiet" KING " --tools ingot-test-tools < /dev/null"), 1);
    EXPECT(strncmp(err, "ingot: ingot-test-tools: ", 25) == 0);
}

/* Each line of --jsonl is answered on its own, whatever it is. */
TEST(jsonl_goes_on_after_what_is_no_json)
{
    EXPECT_INT(system("printf '{\"text\": \"a\"}\\n{\\n{\"text\": \"a\\0\"}\\n{\"text\": \"a\"}' > "
                      "ingot-test-lines"),
               0);
    EXPECT_INT(run("tokenize --quiet --jsonl" KING " < ingot-test-lines"), 0);
    const char *end = strchr(out, '\n');
    EXPECT(end);
    char first[256];
    snprintf(first, sizeof first, "%.*s", (int)(end - out) + 1, out);
    EXPECT(str_starts(str_from(end + 1),
                      STR("{\"error\":{\"kind\":\"format\",\"message\":\"stdin line 2")));
    end = strchr(end + 1, '\n');
    EXPECT(end && strncmp(end + 1, "{\"error\":", 9) == 0 && strstr(end + 1, "stdin line 3"));
    end = strchr(end + 1, '\n');
    EXPECT(end);
    EXPECT_STR(end + 1, first);
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
