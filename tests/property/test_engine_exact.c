/* A request's tokens depend on its prompt, its parameters and its seed alone (docs/engine.md): not
 * on drafting, block, chunk, threads, or who else is served. Mutations these tests have caught are
 * named at each. */
#include "nugget.h"
#include "stride.h"

#define DRAFTER NUGGET "/drafter-q8"

static ingot_sampling greedy(int max_tokens, int block)
{
    ingot_sampling s = INGOT_INIT(ingot_sampling);
    s.max_tokens = max_tokens;
    s.block = block;
    return s;
}

/* Sampling settings that between them use every stage of the sampler. */
enum { SETTINGS = 6 };
static ingot_sampling setting(int i, int max_tokens, int block)
{
    static const ingot_bias bias[] = { { 220, -100 }, { 16, -1.5f }, { 11, 2 } };
    ingot_sampling s = greedy(max_tokens, block);
    s.has_seed = true;
    s.seed = 1000 + (uint64_t)i;
    switch (i) {
    case 0:
        s.presence_penalty = 1;
        s.frequency_penalty = 0.25f;
        break; /* greedy */
    case 1:
        s.temperature = 0.7f;
        s.top_k = 20;
        s.top_p = 0.95f;
        break;
    case 2: s.temperature = 1; break;
    case 3:
        s.temperature = 1;
        s.top_p = 0.9f;
        s.repetition_penalty = 1.2f;
        break;
    case 4:
        s.temperature = 2;
        s.min_p = 0.05f;
        s.presence_penalty = 0.5f;
        break;
    case 5:
        s.temperature = 1.3f;
        s.top_k = 50;
        s.frequency_penalty = 0.7f;
        s.bias = bias;
        s.n_bias = sizeof bias / sizeof *bias;
        s.top_logprobs = 3;
        break;
    default: break;
    }
    return s;
}

/* R054, R056, R060: blocks 2..8 and auto give the tokens of plain decoding. */
TEST(R054_R056_drafted_equals_plain_greedy)
{
    ingot_model *m = nugget_open(1, DRAFTER);
    ingot_engine *g = nugget_start(m, 1, 0);
    for (int i = 0; i < NUGGET_PROMPTS; i += test_stride()) {
        int32_t ids[512];
        const ingot_prompt p = nugget_prompt(i, ids, 512);
        nugget_result plain, drafted;
        ingot_sampling s = greedy(100, INGOT_BLOCK_PLAIN);
        nugget_run(g, &p, &s, &plain);
        EXPECT_INT(plain.usage.drafted, 0);
        for (s.block = 2; s.block <= 9; s.block++) {
            ingot_sampling t = s;
            if (t.block == 9) t.block = INGOT_BLOCK_AUTO;
            nugget_run(g, &p, &t, &drafted);
            nugget_same(&plain, &drafted, "drafted");
            nugget_free(&drafted);
        }
        nugget_free(&plain);
    }
    ingot_engine_stop(g);
    ingot_model_close(m);
}

/* R067, R069, R072: the same with temperature, truncation and penalties. */
TEST(R067_R072_drafted_equals_plain_sampled)
{
    ingot_model *m = nugget_open(1, DRAFTER);
    ingot_engine *g = nugget_start(m, 1, 0);
    for (int i = 0; i < NUGGET_PROMPTS; i += 2 * test_stride()) {
        int32_t ids[512];
        const ingot_prompt p = nugget_prompt(i, ids, 512);
        for (int k = 0; k < SETTINGS; k++) {
            nugget_result plain, drafted;
            const ingot_sampling s = setting(k, 32, INGOT_BLOCK_PLAIN);
            nugget_run(g, &p, &s, &plain);
            for (int block = 2; block <= 8; block += 3) {
                const ingot_sampling t = setting(k, 32, block);
                nugget_run(g, &p, &t, &drafted);
                nugget_same(&plain, &drafted, "drafted");
                nugget_free(&drafted);
            }
            nugget_free(&plain);
        }
    }
    ingot_engine_stop(g);
    ingot_model_close(m);
}

/* R060: long runs, where an error in the kept state would grow. */
TEST(R060_hundreds_of_tokens_stay_equal)
{
    ingot_model *m = nugget_open(1, DRAFTER);
    ingot_engine *g = nugget_start(m, 1, 0);
    int32_t ids[512];
    const ingot_prompt p = nugget_prompt(1, ids, 512);
    ingot_sampling s = setting(1, 600, INGOT_BLOCK_PLAIN);
    s.ignore_eos = true;
    nugget_result plain, drafted;
    nugget_run(g, &p, &s, &plain);
    EXPECT_INT(plain.n, 600);
    s.block = 8;
    nugget_run(g, &p, &s, &drafted);
    nugget_same(&plain, &drafted, "drafted");
    nugget_free(&plain);
    nugget_free(&drafted);
    ingot_engine_stop(g);
    ingot_model_close(m);
}

TEST(chunks_and_threads_change_nothing)
{
    static const int chunks[] = { 1, 3, 7, 64, 512 };
    nugget_result want[NUGGET_PROMPTS];
    for (int k = 0; k < 5; k++) {
        ingot_model *m = nugget_open(1 + k % 3, DRAFTER);
        ingot_engine *g = nugget_start(m, 1, chunks[k]);
        for (int i = 0; i < NUGGET_PROMPTS; i += 3) {
            int32_t ids[512];
            const ingot_prompt p = nugget_prompt(i, ids, 512);
            const ingot_sampling s = setting(i % SETTINGS, 48, k % 2 ? 4 : 1);
            nugget_result got;
            nugget_run(g, &p, &s, k ? &got : &want[i]);
            if (!k) continue;
            nugget_same(&want[i], &got, "chunk and threads");
            nugget_free(&got);
        }
        ingot_engine_stop(g);
        ingot_model_close(m);
    }
    for (int i = 0; i < NUGGET_PROMPTS; i += 3) nugget_free(&want[i]);
}

/* R061, R063, R066: 1..25 requests at once give the replies they give alone; some are cancelled on
 * the way. */
TEST(R061_R063_R066_concurrent_equals_alone)
{
    enum { MOST = 25 };
    ingot_model *m = nugget_open(1, DRAFTER);
    ingot_engine *g = nugget_start(m, 1, 0);
    static nugget_result alone[MOST], got[MOST];
    static int32_t ids[MOST][512];
    ingot_prompt p[MOST];
    ingot_sampling s[MOST];
    for (int i = 0; i < MOST; i++) {
        p[i] = nugget_prompt(i % NUGGET_PROMPTS, ids[i], 512);
        s[i] = setting(i % SETTINGS, 12 + i % 7 * 6, i % 5 ? 1 + i % 8 : INGOT_BLOCK_AUTO);
        nugget_run(g, &p[i], &s[i], &alone[i]);
    }
    ingot_engine_stop(g);
    static const int widths[] = { 1, 2, 3, 4, 7, 8, 9, 16, 17, 25 };
    for (int k = 0; k < 10; k++) {
        const int n = widths[k];
        g = nugget_start(m, k % 2 ? n : (n + 1) / 2, k % 3 ? 5 : 0);
        ingot_request *q[MOST];
        for (int i = 0; i < n; i++) {
            nugget_init(&got[i]);
            q[i] = nugget_submit(g, &p[i], &s[i]);
            if (i % 4 == 3) ingot_cancel(q[i - 1]);
        }
        for (int i = 0; i < n; i++) {
            nugget_finish(q[i], &got[i]);
            if (got[i].finish == INGOT_FINISH_CANCELLED) {
                EXPECT(got[i].n <= alone[i].n);
                EXPECT(memcmp(got[i].ids, alone[i].ids, (size_t)got[i].n * 4) == 0);
            } else {
                nugget_same(&alone[i], &got[i], "concurrent");
            }
            nugget_free(&got[i]);
        }
        ingot_stats stats;
        ingot_engine_get_stats(g, &stats);
        ingot_engine_stop(g);
    }
    for (int i = 0; i < MOST; i++) nugget_free(&alone[i]);
    ingot_model_close(m);
}

/* A request that arrives while another one runs, drafted or plain, changes nothing in it. */
TEST(R064_a_later_request_disturbs_nobody)
{
    ingot_model *m = nugget_open(1, DRAFTER);
    ingot_engine *g = nugget_start(m, 4, 16);
    static int32_t ids[2][512];
    const ingot_prompt p = nugget_prompt(1, ids[0], 512), other = nugget_prompt(10, ids[1], 512);
    for (int block = 1; block <= 5; block += 4) {
        ingot_sampling s = setting(block, 120, block);
        s.ignore_eos = true;
        nugget_result alone, got, late;
        nugget_run(g, &p, &s, &alone);
        nugget_init(&got);
        nugget_init(&late);
        ingot_request *q = nugget_submit(g, &p, &s);
        ingot_event ev;
        while (got.text.len + got.thinking.len < 20) { /* it is well under way */
            EXPECT_INT(ingot_next(q, &ev, 60000), INGOT_OK);
            nugget_take(&got, &ev);
        }
        nugget_finish(nugget_submit(g, &other, &s), &late);
        nugget_finish(q, &got);
        nugget_same(&alone, &got, "disturbed");
        EXPECT_INT(late.n, 120);
        nugget_free(&alone);
        nugget_free(&got);
        nugget_free(&late);
    }
    ingot_engine_stop(g);
    ingot_model_close(m);
}
