/* `ingot generate`: the tokens of the reference, the same ones in every way of making them, and
 * what is shown of an answer. */
#include <math.h>

#include "base/json.h"
#include "program.h"

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

static void read_hash(char *hash, size_t cap)
{
    json_doc *doc;
    error e;
    EXPECT_OK(json_parse(&doc, str_from(out), 0, "stdout", &e), e);
    snprintf(hash, cap, "%s", json_text(json_get(json_root(doc), "sha256")));
    json_free(doc);
}

TEST(the_hash_depends_on_nothing_but_the_tokens)
{
    char plain[128], hash[128];
    EXPECT_INT(
        run("generate --quiet --json -p 'What is 17 + 26?' --temp 0.8 --seed 5 --block 1" KING), 0);
    read_hash(plain, sizeof plain);
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
        read_hash(hash, sizeof hash);
        EXPECT_STR(hash, plain);
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

TEST(a_short_context_shortens_the_answer)
{
    EXPECT_INT(run("generate --quiet --json --context 64 -p 'Write a bubble sort in C++.'" KING),
               0);
    EXPECT(strstr(out, "\"finish_reason\":\"length\""));
    expect_refusal("generate --quiet --context 64 -n 100 -p x" KING, 1, "max_tokens");
    EXPECT_INT(run("generate --quiet -n 3 -p 'What is 12 + 7?'" KING), 0);
    EXPECT(strstr(err, "while it was still reasoning"));
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
