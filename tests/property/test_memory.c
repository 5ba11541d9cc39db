/* Requests share pages of keys and values: how few there are changes who waits, and no token.
 * Mutations these tests have caught: a sequence put back that keeps its drafter's context, that
 * picks its newest token again, or that comes back behind those who came later. */
#include <unistd.h>

#include "nugget.h"

#define DRAFTER NUGGET "/drafter-q8"
enum { CONTEXT = 512, MOST = 8, LONG = 5 };

static ingot_engine *start(ingot_model *m, int total, int parallel, uint64_t cache)
{
    ingot_engine_options o = INGOT_INIT(ingot_engine_options);
    o.context = CONTEXT;
    o.total_context = total;
    o.parallel = parallel;
    o.cache_bytes = cache;
    ingot_engine *g;
    ingot_error e;
    INGOT_EXPECT_OK(ingot_engine_start(&g, m, &o, &e), e);
    return g;
}

static ingot_sampling sampled(int i, int max_tokens)
{
    ingot_sampling s = INGOT_INIT(ingot_sampling);
    s.max_tokens = max_tokens;
    s.ignore_eos = true;
    s.temperature = i % 3 ? 0.8f : 0;
    s.presence_penalty = i % 4 == 1 ? 0.5f : 0;
    s.block = i % 2 ? 1 + i : INGOT_BLOCK_AUTO;
    s.has_seed = true;
    s.seed = 900 + (uint64_t)i;
    return s;
}

static ingot_stats stats_of(ingot_engine *g)
{
    ingot_stats s;
    ingot_engine_get_stats(g, &s);
    return s;
}

/* Stats once nothing runs any more: the last end is told before it is counted. */
static ingot_stats stats_at_rest(ingot_engine *g)
{
    for (int i = 0; i < 10000 && stats_of(g).running; i++) usleep(1000);
    return stats_of(g);
}

/* Five requests of 400 to 480 positions in memory for 640: alone, all at once, and
 * beside others that are cancelled. */
TEST(R051_those_put_back_go_on_with_the_same_tokens)
{
    ingot_model *m = nugget_open(1, DRAFTER);
    static nugget_result alone[LONG], got[LONG];
    static int32_t ids[LONG][512];
    ingot_prompt p[LONG];
    ingot_sampling s[LONG];
    ingot_engine *g = start(m, CONTEXT, 1, 0);
    for (int i = 0; i < LONG; i++) {
        p[i] = nugget_prompt(i, ids[i], 512);
        s[i] = sampled(i, 360 + 20 * i);
        nugget_run(g, &p[i], &s[i], &alone[i]);
    }
    ingot_engine_stop(g);
    for (int round = 0; round < 3; round++) {
        g = start(m, CONTEXT * 5 / 4, round == 1 ? 3 : LONG, round == 2 ? 12 << 20 : 0);
        ingot_request *q[LONG];
        for (int i = 0; i < LONG; i++) {
            nugget_init(&got[i]);
            q[i] = nugget_submit(g, &p[i], &s[i]);
        }
        for (int i = 0; i < LONG; i++) {
            if (round == 1 && i % 3 == 1) {
                ingot_event ev;
                EXPECT_INT(ingot_next(q[i], &ev, 60000), INGOT_OK);
                ingot_release(q[i]);
            } else {
                nugget_finish(q[i], &got[i]);
                nugget_same(&alone[i], &got[i], "put back");
                EXPECT_INT(got[i].usage.prompt_tokens, alone[i].usage.prompt_tokens);
            }
            nugget_free(&got[i]);
        }
        const ingot_stats st = stats_at_rest(g);
        printf("round %d: put back %d times\n", round, (int)st.preempted);
        if (round < 2) EXPECT(st.preempted > 0); /* else the cache gives pages too */
        EXPECT_INT(st.failed, 0);
        if (round < 2) EXPECT_INT(st.kv_pages_free, st.kv_pages_total);
        ingot_engine_stop(g);
    }
    for (int i = 0; i < LONG; i++) nugget_free(&alone[i]);
    ingot_model_close(m);
}

/* A prompt that nearly fills the advertised window is admitted, kept, and found again, drafted, in
 * an engine that has memory for one window and says the same window at each start. */
TEST(R051_the_whole_window_is_served_and_kept)
{
    ingot_model *m = nugget_open(1, DRAFTER);
    buf text;
    buf_init(&text, 1 << 16);
    buf_text(&text, "[{\"role\":\"user\",\"content\":\"Sort these words:");
    for (int i = 0; i < 222; i++) buf_text(&text, i % 2 ? " pear," : " apple,");
    buf_text(&text, "\"}]");
    ingot_prompt p = INGOT_INIT(ingot_prompt);
    p.messages = text.ptr;
    p.thinking = INGOT_THINKING_OFF;
    ingot_sampling s = sampled(0, 16);
    static nugget_result r;
    for (int round = 0; round < 2; round++) {
        ingot_engine *g = start(m, CONTEXT, 2, 32 << 20);
        EXPECT_INT(ingot_engine_context(g), CONTEXT);
        EXPECT_INT(ingot_engine_total_context(g), CONTEXT);
        for (int again = 0; again < 2; again++) {
            nugget_run(g, &p, &s, &r);
            const int n = r.usage.prompt_tokens;
            EXPECT(n > CONTEXT * 7 / 8 && n + 16 <= CONTEXT);
            EXPECT_INT(r.n, 16);
            EXPECT(again ? r.usage.cached_tokens > n - 16 : r.usage.cached_tokens == 0);
            nugget_free(&r);
        }
        EXPECT_INT(stats_of(g).failed, 0);
        ingot_engine_stop(g);
    }
    buf_free(&text);
    ingot_model_close(m);
}

TEST(choices_give_their_shared_beginning_up_for_memory)
{
    ingot_model *m = nugget_open(1, DRAFTER);
    static nugget_result want[4], got[4];
    int32_t ids[512];
    const ingot_prompt p = nugget_prompt(4, ids, 512);
    ingot_sampling s = sampled(1, 420);
    s.block = INGOT_BLOCK_AUTO;
    s.n = 4;
    for (int few = 0; few < 2; few++) {
        ingot_engine *g = start(m, few ? CONTEXT * 5 / 4 : CONTEXT * 4, 4, 0);
        nugget_result *to = few ? got : want;
        for (int i = 0; i < 4; i++) nugget_init(&to[i]);
        nugget_finish(nugget_submit(g, &p, &s), to);
        EXPECT_INT(stats_of(g).preempted > 0, few);
        ingot_engine_stop(g);
    }
    for (int i = 0; i < 4; i++) {
        nugget_same(&want[i], &got[i], "choice");
        nugget_free(&want[i]);
        nugget_free(&got[i]);
    }
    ingot_model_close(m);
}

/* What fits together runs together: short requests do not wait for memory that they do not need. */
TEST(many_short_requests_share_the_memory_of_one_long)
{
    ingot_model *m = nugget_open(1, DRAFTER);
    ingot_engine *g = start(m, CONTEXT, MOST, 0);
    ingot_request *q[MOST];
    static int32_t ids[512];
    const ingot_prompt p = nugget_prompt(1, ids, 512);
    const ingot_sampling s = sampled(0, 30);
    int most = 0;
    for (int i = 0; i < MOST; i++) q[i] = nugget_submit(g, &p, &s);
    for (int i = 0; i < MOST; i++) {
        ingot_event ev;
        while (ingot_next(q[i], &ev, 60000) == INGOT_OK) {
            const int running = stats_of(g).running;
            if (running > most) most = running;
        }
        ingot_release(q[i]);
    }
    EXPECT_INT(most, MOST);
    EXPECT_INT(stats_of(g).preempted, 0);
    ingot_engine_stop(g);
    ingot_model_close(m);
}

TEST(the_memory_of_all_is_known_before_the_start)
{
    ingot_model *m = nugget_open(1, NULL);
    ingot_engine *g = start(m, 0, 3, 0);
    EXPECT_INT(ingot_engine_total_context(g), 3 * CONTEXT);
    ingot_engine_stop(g);
    ingot_engine_options o = INGOT_INIT(ingot_engine_options);
    ingot_error e;
    o.context = CONTEXT;
    o.total_context = CONTEXT - 1;
    EXPECT_INT(ingot_engine_start(&g, m, &o, &e), INGOT_E_ARG);
    EXPECT(strstr(e.text, "total_context") != NULL);
    /* too much for this machine, however little each takes: as many whole requests as fit */
    o.context = 0;
    o.total_context = 0;
    o.parallel = 2;
    INGOT_EXPECT_OK(ingot_engine_start(&g, m, &o, &e), e);
    EXPECT(ingot_engine_total_context(g) >= ingot_engine_context(g));
    ingot_engine_stop(g);
    ingot_model_close(m);
}
