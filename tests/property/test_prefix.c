/* Output from a cached prefix equals output from a cold start, and the cache reaches as far as it
 * can. Mutations these tests have caught: a snapshot taken before its chunk was committed; drafter
 * rows of another sequence. */
#include "nugget.h"

static ingot_engine *start(ingot_model *m, int parallel, uint64_t cache_bytes)
{
    ingot_engine_options o = INGOT_INIT(ingot_engine_options);
    o.context = 4096;
    o.parallel = parallel;
    o.cache_bytes = cache_bytes;
    ingot_engine *g;
    ingot_error e;
    INGOT_EXPECT_OK(ingot_engine_start(&g, m, &o, &e), e);
    return g;
}

static ingot_sampling sampled(int max_tokens)
{
    ingot_sampling s = INGOT_INIT(ingot_sampling);
    s.max_tokens = max_tokens;
    s.temperature = 0.8f;
    s.has_seed = true;
    s.seed = 5;
    return s;
}

/* Runs the prompt cold and warm; returns the tokens that came from the cache. */
static int compare(ingot_engine *cold, ingot_engine *warm, const ingot_prompt *p, int max_tokens,
                   nugget_result *keep)
{
    const ingot_sampling s = sampled(max_tokens);
    nugget_result a, b;
    nugget_run(cold, p, &s, &a);
    nugget_run(warm, p, &s, &b);
    EXPECT_INT(a.usage.cached_tokens, 0);
    nugget_same(&a, &b, "cached");
    EXPECT_INT(b.usage.prompt_tokens, a.usage.prompt_tokens);
    const int cached = b.usage.cached_tokens;
    nugget_free(&a);
    if (keep) *keep = b;
    else nugget_free(&b);
    return cached;
}

TEST(R046_the_next_turn_runs_only_what_is_new)
{
    ingot_model *m = nugget_open(1, NUGGET "/drafter-q8");
    ingot_engine *cold = start(m, 1, 0), *warm = start(m, 1, 64 << 20);
    ingot_prompt p = INGOT_INIT(ingot_prompt);
    p.thinking = INGOT_THINKING_OFF;
    p.messages = "[{\"role\":\"system\",\"content\":\"You are a helpful assistant.\"},"
                 "{\"role\":\"user\",\"content\":\"What is the capital of France?\"}]";
    nugget_result first;
    EXPECT_INT(compare(cold, warm, &p, 20, &first), 0);
    buf next;
    buf_init(&next, 1 << 16);
    buf_printf(&next, "%.*s,{\"role\":\"assistant\",\"content\":\"", (int)strlen(p.messages) - 1,
               p.messages);
    for (size_t i = 0; i < first.text.len; i++) {
        const char c = first.text.ptr[i];
        if (c == '"' || c == '\\') buf_char(&next, '\\');
        if (c == '\n') buf_text(&next, "\\n");
        else buf_char(&next, c);
    }
    buf_text(&next, "\"},{\"role\":\"user\",\"content\":\"Write a bubble sort in C++.\"}]");
    p.messages = next.ptr;
    /* all of the first turn's messages, at least */
    EXPECT(compare(cold, warm, &p, 20, NULL) >= first.usage.prompt_tokens - 10);
    buf_free(&next);
    nugget_free(&first);
    ingot_engine_stop(cold);
    ingot_engine_stop(warm);
    ingot_model_close(m);
}

static void fill(int32_t *ids, int n, uint32_t kind)
{
    for (int i = 0; i < n; i++) {
        kind = kind * 1664525u + 1013904223u;
        ids[i] = (int32_t)(kind >> 8) % 4000;
    }
}

/* R048, R049: a long context again, with another end, and with something put into its middle. */
TEST(R048_R049_a_change_keeps_what_stands_before_it)
{
    enum { BLOCK = 2500, STRIDE = 2048 };
    static int32_t ids[2 * BLOCK + 600];
    ingot_model *m = nugget_open(1, NUGGET "/drafter-q8");
    ingot_engine *cold = start(m, 1, 0), *warm = start(m, 1, 256 << 20);
    ingot_prompt p = INGOT_INIT(ingot_prompt);
    p.tokens = ids;
    fill(ids, BLOCK, 1);
    fill(ids + BLOCK, 100, 2);
    p.n_tokens = BLOCK + 100;
    EXPECT_INT(compare(cold, warm, &p, 4, NULL), 0);
    fill(ids + BLOCK + 50, 50, 3); /* another end */
    EXPECT_INT(compare(cold, warm, &p, 4, NULL), STRIDE);
    fill(ids + BLOCK, 100, 4); /* and once more: the earlier one was not given up */
    EXPECT_INT(compare(cold, warm, &p, 4, NULL), STRIDE);
    ingot_stats stats;
    ingot_engine_get_stats(warm, &stats);
    EXPECT_INT(stats.cache_lookups, 3);
    EXPECT_INT(stats.cache_hits, 2);
    EXPECT(stats.cache_bytes > 0 && stats.cache_bytes <= 256 << 20);
    ingot_engine_stop(cold);
    ingot_engine_stop(warm);
    ingot_model_close(m);
}

/* A prompt that has all tokens of an entry but the last is another prompt. */
/* Prompts without messages that share their beginning: the second finds where they part, the third
 * goes on from there. */
TEST(R048_what_two_prompts_share_the_third_resumes)
{
    ingot_model *m = nugget_open(2, NUGGET "/drafter-q8");
    ingot_engine *cold = start(m, 1, 0), *warm = start(m, 1, 64 << 20);
    static int32_t ids[900];
    ingot_prompt p = INGOT_INIT(ingot_prompt);
    p.tokens = ids;
    p.n_tokens = 900;
    fill(ids, 900, 1);
    for (int i = 0; i < 3; i++) {
        fill(ids + 700, 200, 10 + (uint32_t)i);
        EXPECT_INT(compare(cold, warm, &p, 8, NULL), i < 2 ? 0 : 700);
    }
    fill(ids + 200, 700, 20); /* too little in common */
    EXPECT_INT(compare(cold, warm, &p, 8, NULL), 0);
    fill(ids + 200, 700, 21);
    EXPECT_INT(compare(cold, warm, &p, 8, NULL), 0);
    ingot_engine_stop(cold);
    ingot_engine_stop(warm);
    ingot_model_close(m);
}

TEST(R052_one_other_token_is_another_prompt)
{
    static int32_t ids[512];
    ingot_model *m = nugget_open(1, NUGGET "/drafter-q8");
    ingot_engine *cold = start(m, 1, 0), *warm = start(m, 1, 64 << 20);
    ingot_prompt p = INGOT_INIT(ingot_prompt);
    nugget_result r;
    p.tokens = ids;
    p.n_tokens = 200;
    fill(ids, 200, 21);
    EXPECT_INT(compare(cold, warm, &p, 20, &r), 0);
    memcpy(ids + 200, r.ids, (size_t)r.n * sizeof *ids);
    const int end = 200 + r.n - 1; /* of the entry: the newest token was not run */
    fill(ids + 200 + r.n, 30, 22);
    p.n_tokens = (size_t)(200 + r.n + 30);
    ids[end - 1] = (ids[end - 1] + 1) % 4000;
    EXPECT_INT(compare(cold, warm, &p, 20, NULL), 0);
    ids[end - 1] = r.ids[r.n - 2];
    EXPECT_INT(compare(cold, warm, &p, 20, NULL), end);
    nugget_free(&r);
    ingot_engine_stop(cold);
    ingot_engine_stop(warm);
    ingot_model_close(m);
}

/* A budget for a few entries only: old ones go, output stays. */
TEST(R051_a_small_budget_evicts_and_stays_right)
{
    static int32_t ids[3][400];
    ingot_model *m = nugget_open(1, NULL);
    ingot_engine *cold = start(m, 1, 0), *warm = start(m, 1, 3 << 20);
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 3; i++) {
            ingot_prompt p = INGOT_INIT(ingot_prompt);
            fill(ids[i], 400, 10 + (uint32_t)i);
            p.tokens = ids[i];
            p.n_tokens = 300 + (size_t)(round * 40);
            compare(cold, warm, &p, 6, NULL);
        }
    ingot_stats stats;
    ingot_engine_get_stats(warm, &stats);
    EXPECT(stats.cache_bytes <= 3 << 20);
    ingot_engine_stop(warm);
    ingot_engine_stop(cold);
    ingot_model_close(m);
}

/* The sums of an engine are those of its answers: a prompt is one prompt, cached or not and
 * whatever the number of choices. */
TEST(a_prompt_is_counted_once)
{
    ingot_model *m = nugget_open(1, NULL);
    ingot_engine *g = start(m, 1, 16 << 20);
    ingot_prompt p = INGOT_INIT(ingot_prompt);
    p.messages = "[{\"role\":\"system\",\"content\":\"You are a helpful assistant.\"},"
                 "{\"role\":\"user\",\"content\":\"What is the capital of France?\"}]";
    ingot_sampling s = sampled(4);
    uint64_t cached = 0, prompts = 0;
    for (int turn = 0; turn < 3; turn++) {
        nugget_result got[4];
        s.n = turn == 2 ? 4 : 1;
        for (int i = 0; i < s.n; i++) nugget_init(&got[i]);
        nugget_finish(nugget_submit(g, &p, &s), got);
        prompts += (uint64_t)got[0].usage.prompt_tokens;
        cached += (uint64_t)got[0].usage.cached_tokens;
        for (int i = 0; i < s.n; i++) nugget_free(&got[i]);
    }
    ingot_stats stats;
    ingot_engine_get_stats(g, &stats);
    EXPECT(cached > prompts / 3); /* the second and the third were found */
    EXPECT_INT(stats.prompt_tokens, prompts);
    EXPECT_INT(stats.cached_tokens, cached);
    ingot_engine_stop(g);
    ingot_model_close(m);
}

/* Choice 0 is the reply that one choice gives; the others differ, and are the same however many run
 * at once. */
TEST(choices_share_the_prompt_and_nothing_else)
{
    ingot_model *m = nugget_open(1, NUGGET "/drafter-q8");
    nugget_result one, want[4], got[4];
    int32_t ids[512];
    const ingot_prompt p = nugget_prompt(4, ids, 512);
    ingot_sampling s = sampled(24);
    s.temperature = 1.5f;
    ingot_engine *g = start(m, 4, 0);
    nugget_run(g, &p, &s, &one);
    s.n = 4;
    for (int i = 0; i < 4; i++) nugget_init(&want[i]);
    nugget_finish(nugget_submit(g, &p, &s), want);
    ingot_engine_stop(g);
    nugget_same(&one, &want[0], "choice 0");
    EXPECT(memcmp(want[0].ids, want[1].ids, 8 * 4) != 0);
    for (int parallel = 1; parallel <= 3; parallel++) {
        g = start(m, parallel, parallel == 2 ? 16 << 20 : 0);
        for (int i = 0; i < 4; i++) nugget_init(&got[i]);
        nugget_finish(nugget_submit(g, &p, &s), got);
        for (int i = 0; i < 4; i++) {
            nugget_same(&want[i], &got[i], "choice");
            if (i) EXPECT_INT(got[i].usage.cached_tokens, (int)p.n_tokens - 1);
            nugget_free(&got[i]);
        }
        ingot_engine_stop(g);
    }
    for (int i = 0; i < 4; i++) nugget_free(&want[i]);
    nugget_free(&one);
    ingot_model_close(m);
}
