/* The public header on the small pair: what users of other programs ran into, each case named by
 * its number. */
#include "base/clock.h"
#include "base/digest.h"
#include "base/sysmem.h"
#include "nugget.h"
#include "packkit.h"

#define DRAFTER NUGGET "/drafter-q8"

typedef struct rig {
    ingot_model *m;
    ingot_engine *g;
    int32_t ids[512];
} rig;

static rig rig_open(int parallel)
{
    rig r = { .m = nugget_open(1, DRAFTER) };
    r.g = nugget_start(r.m, parallel, 0);
    return r;
}

static void rig_close(rig *r)
{
    ingot_engine_stop(r->g);
    ingot_model_close(r->m);
}

static ingot_sampling greedy(int max_tokens)
{
    ingot_sampling s = INGOT_INIT(ingot_sampling);
    s.max_tokens = max_tokens;
    return s;
}

static ingot_prompt ask(const char *messages, ingot_thinking thinking)
{
    ingot_prompt p = INGOT_INIT(ingot_prompt);
    p.messages = messages;
    p.thinking = thinking;
    return p;
}

#define SORT "[{\"role\":\"user\",\"content\":\"Write a bubble sort in C++.\"}]"

/* Cut exactly before the match, whether it lies across tokens or inside one; drafted and plain. */
TEST(R017_stop_strings_cut_the_text)
{
    rig r = rig_open(1);
    const ingot_prompt p = ask(SORT, INGOT_THINKING_OFF);
    nugget_result whole, cut;
    ingot_sampling s = greedy(96);
    nugget_run(r.g, &p, &s, &whole);
    const str text = buf_view(&whole.text);
    const size_t starts[] = { 10, 37, 61 };
    for (int i = 0; i < 3; i++)
        for (size_t len = 1; len <= 12; len += 11) {
            char word[32] = { 0 };
            memcpy(word, text.ptr + starts[i], len);
            const char *const stop[] = { "never in the text", word };
            ingot_sampling t = s;
            t.stop = stop;
            t.n_stop = 2;
            t.block = len == 1 ? INGOT_BLOCK_PLAIN : 8;
            nugget_run(r.g, &p, &t, &cut);
            EXPECT_INT(cut.text.len, str_find(text, str_from(word)));
            EXPECT(memcmp(cut.text.ptr ? cut.text.ptr : "", text.ptr, cut.text.len) == 0);
            EXPECT_INT(cut.finish, INGOT_FINISH_STOP);
            EXPECT_STR(cut.stop, word);
            EXPECT(cut.n <= whole.n && memcmp(cut.ids, whole.ids, (size_t)cut.n * 4) == 0);
            nugget_free(&cut);
        }
    nugget_free(&whole);
    rig_close(&r);
}

/* A stop string that never comes holds nothing back in the end, and the flush is split like the
 * rest. */
TEST(R019_the_flush_goes_through_the_splitter)
{
    rig r = rig_open(1);
    const ingot_prompt p = ask(SORT, INGOT_THINKING_ON);
    const char *const stop[] = { "a long stop string that the small king never writes </think>" };
    nugget_result plain, held;
    ingot_sampling s = greedy(96);
    nugget_run(r.g, &p, &s, &plain);
    EXPECT(plain.thinking.len > 0 && plain.text.len > 0);
    s.stop = stop;
    s.n_stop = 1;
    nugget_run(r.g, &p, &s, &held);
    nugget_same(&plain, &held, "held back");
    nugget_free(&plain);
    nugget_free(&held);
    rig_close(&r);
}

static ingot_status try_submit(rig *r, const ingot_prompt *p, const ingot_sampling *s)
{
    ingot_request *q = NULL;
    ingot_error e = { 0 };
    const ingot_status st = ingot_submit(&q, r->g, p, s, &e);
    if (st) EXPECT(e.text[0] && e.code == st);
    ingot_release(q);
    return st;
}

TEST(R020_empty_stop_strings_are_refused)
{
    rig r = rig_open(1);
    const ingot_prompt p = ask(SORT, INGOT_THINKING_OFF);
    const char *const stop[] = { "fine", "" };
    ingot_sampling s = greedy(2);
    s.stop = stop;
    s.n_stop = 2;
    EXPECT_INT(try_submit(&r, &p, &s), INGOT_E_ARG);
    s.n_stop = 1;
    EXPECT_INT(try_submit(&r, &p, &s), INGOT_OK);
    rig_close(&r);
}

TEST(R069_parameters_out_of_range_are_refused)
{
    rig r = rig_open(1);
    const ingot_prompt p = ask(SORT, INGOT_THINKING_OFF);
    ingot_sampling s = greedy(2);
    s.temperature = 1e9f;
    EXPECT_INT(try_submit(&r, &p, &s), INGOT_E_ARG);
    s.temperature = -1;
    EXPECT_INT(try_submit(&r, &p, &s), INGOT_E_ARG);
    s.temperature = 0.0f / 0.0f * 0;
    s.temperature = -s.temperature;
    EXPECT_INT(try_submit(&r, &p, &s), INGOT_E_ARG);
    s = greedy(2);
    s.top_p = 1.5f;
    EXPECT_INT(try_submit(&r, &p, &s), INGOT_E_ARG);
    s = greedy(2);
    s.repetition_penalty = 1e-38f;
    EXPECT_INT(try_submit(&r, &p, &s), INGOT_E_ARG);
    s.repetition_penalty = 0.01f;
    EXPECT_INT(try_submit(&r, &p, &s), INGOT_OK);
    s = greedy(2);
    s.n = 9;
    EXPECT_INT(try_submit(&r, &p, &s), INGOT_E_ARG);
    s = greedy(2);
    s.top_logprobs = 21;
    EXPECT_INT(try_submit(&r, &p, &s), INGOT_E_ARG);
    const ingot_bias bias = { 1 << 30, 1 };
    s = greedy(2);
    s.bias = &bias;
    s.n_bias = 1;
    EXPECT_INT(try_submit(&r, &p, &s), INGOT_E_ARG);
    const float tiny[] = { 1e-6f, 9e-6f, 0, -0.0f };
    for (int i = 0; i < 4; i++) {
        s = greedy(2);
        s.temperature = tiny[i];
        EXPECT_INT(try_submit(&r, &p, &s), INGOT_OK);
    }
    rig_close(&r);
}

/* Every block up to the drafter's is honoured and reported; a larger one is refused. */
TEST(R042_R078_the_block_of_a_request_is_honoured)
{
    rig r = rig_open(1);
    const ingot_prompt p = nugget_prompt(1, r.ids, 512);
    ingot_model_info info;
    ingot_model_get_info(r.m, &info);
    EXPECT_INT(info.max_block, 8);
    for (int block = 1; block <= 8; block++) {
        ingot_sampling s = greedy(40);
        s.block = block;
        s.no_copy = true;
        nugget_result out;
        nugget_run(r.g, &p, &s, &out);
        EXPECT_INT(out.n, 40);
        int rows = 0;
        for (int b = 0; b <= INGOT_MAX_BLOCK; b++) {
            rows += out.usage.blocks[b] * b;
            if (b > block) EXPECT_INT(out.usage.blocks[b], 0);
        }
        EXPECT(out.usage.blocks[block] > 0);
        EXPECT_INT(out.usage.drafted, rows - out.usage.steps);
        /* the first token comes from the prompt; each step gives its accepted drafts and one
         * more */
        EXPECT_INT(1 + out.usage.steps + out.usage.accepted, out.n);
        for (int at = 0; at < INGOT_MAX_BLOCK; at++) { /* by position: from the steps themselves */
            int drafted = 0, accepted = 0;
            for (int b = at + 2; b <= INGOT_MAX_BLOCK; b++) drafted += out.usage.blocks[b];
            for (int k = 0; k < out.usage.steps; k++) accepted += out.step_accepted[k] > at;
            EXPECT_INT(out.usage.drafted_at[at], drafted);
            EXPECT_INT(out.usage.accepted_at[at], accepted);
        }
        nugget_free(&out);
    }
    for (int block = 9; block <= 17; block += 8) {
        ingot_sampling s = greedy(4);
        s.block = block;
        EXPECT_INT(try_submit(&r, &p, &s), INGOT_E_ARG);
    }
    rig_close(&r);
}

TEST(R044_what_exceeds_the_context_is_refused)
{
    rig r = rig_open(1);
    static int32_t ids[3000];
    for (int i = 0; i < 3000; i++) ids[i] = 100 + i % 50;
    ingot_prompt p = INGOT_INIT(ingot_prompt);
    p.tokens = ids;
    p.n_tokens = 2048;
    ingot_sampling s = greedy(0);
    EXPECT_INT(try_submit(&r, &p, &s), INGOT_E_LIMIT);
    p.n_tokens = 2047;
    EXPECT_INT(try_submit(&r, &p, &s), INGOT_OK);
    s.max_tokens = 2;
    EXPECT_INT(try_submit(&r, &p, &s), INGOT_E_LIMIT);
    ids[5] = 1 << 20;
    p.n_tokens = 10;
    EXPECT_INT(try_submit(&r, &p, &s), INGOT_E_ARG);
    rig_close(&r);
}

TEST(a_full_context_ends_with_length)
{
    rig r = rig_open(1);
    static int32_t ids[2040];
    for (int i = 0; i < 2040; i++) ids[i] = 100 + i % 50;
    ingot_prompt p = INGOT_INIT(ingot_prompt);
    p.tokens = ids;
    p.n_tokens = 2040;
    ingot_sampling s = greedy(0);
    s.ignore_eos = true;
    s.block = 8;
    nugget_result out;
    nugget_run(r.g, &p, &s, &out);
    EXPECT_INT(out.n, 8);
    EXPECT_INT(out.finish, INGOT_FINISH_LENGTH);
    nugget_free(&out);
    rig_close(&r);
}

/* A cancelled request stops within a step and gives everything back; a queued one never starts. */
TEST(R021_R023_cancelled_requests_leave_at_once)
{
    rig r = rig_open(1);
    const ingot_prompt p = nugget_prompt(1, r.ids, 512);
    ingot_sampling s = greedy(1500);
    s.ignore_eos = true;
    ingot_request *running = nugget_submit(r.g, &p, &s), *queued = nugget_submit(r.g, &p, &s);
    ingot_event ev;
    do EXPECT_INT(ingot_next(running, &ev, 10000), INGOT_OK);
    while (ev.kind == INGOT_PROGRESS);
    ingot_stats stats;
    ingot_engine_get_stats(r.g, &stats);
    const int all = stats.kv_pages_total;
    ingot_cancel(queued);
    ingot_cancel(running);
    nugget_result a, b;
    nugget_init(&a);
    nugget_init(&b);
    nugget_finish(running, &a);
    nugget_finish(queued, &b);
    EXPECT_INT(a.finish, INGOT_FINISH_CANCELLED);
    EXPECT_INT(b.finish, INGOT_FINISH_CANCELLED);
    EXPECT(a.n < 1500);
    EXPECT_INT(b.n, 0);
    EXPECT_INT(b.usage.steps, 0);
    s = greedy(3);
    nugget_free(&a);
    nugget_run(r.g, &p, &s, &a);
    do {
        clock_sleep_ms(1);
        ingot_engine_get_stats(r.g, &stats);
    } while (stats.running || stats.queued);
    EXPECT_INT(stats.kv_pages_free, all);
    EXPECT_INT(stats.cancelled, 2);
    nugget_free(&a);
    nugget_free(&b);
    rig_close(&r);
}

/* Released without being read, at any moment. */
TEST(requests_may_be_abandoned)
{
    rig r = rig_open(3);
    const ingot_prompt p = nugget_prompt(3, r.ids, 512);
    ingot_sampling s = greedy(30);
    for (int i = 0; i < 40; i++) {
        ingot_request *q = nugget_submit(r.g, &p, &s);
        if (i % 3 == 0) clock_sleep_ms(i % 7);
        ingot_release(q);
    }
    nugget_result out;
    nugget_run(r.g, &p, &s, &out);
    EXPECT_INT(out.n, 30);
    nugget_free(&out);
    rig_close(&r);
}

TEST(a_full_queue_is_refused_by_name)
{
    rig r = { .m = nugget_open(1, NULL) };
    ingot_engine_options o = INGOT_INIT(ingot_engine_options);
    o.context = 1024;
    o.queue = 2;
    ingot_error e;
    INGOT_EXPECT_OK(ingot_engine_start(&r.g, r.m, &o, &e), e);
    const ingot_prompt p = nugget_prompt(1, r.ids, 512);
    ingot_sampling s = greedy(900);
    s.ignore_eos = true;
    ingot_request *q[4];
    for (int i = 0; i < 3; i++) q[i] = nugget_submit(r.g, &p, &s);
    EXPECT_INT(ingot_submit(&q[3], r.g, &p, &s, &e), INGOT_E_AGAIN);
    EXPECT(strstr(e.text, "limit 3"));
    EXPECT_INT(ingot_engine_room(r.g), 3);
    s.n = 4; /* waiting would not help */
    EXPECT_INT(ingot_submit(&q[3], r.g, &p, &s, &e), INGOT_E_LIMIT);
    EXPECT_STR(e.text, "n: found 4 choices, want at most 3 (parallel and queue)");
    for (int i = 0; i < 3; i++) ingot_release(q[i]);
    rig_close(&r);
}

/* A thought that is cut short is a thought, not an answer. */
TEST(R032_a_cut_thought_is_no_content)
{
    rig r = rig_open(1);
    const ingot_prompt p =
        ask("[{\"role\":\"user\",\"content\":\"What is 17*23?\"}]", INGOT_THINKING_ON);
    const ingot_sampling s = greedy(8);
    nugget_result out;
    nugget_run(r.g, &p, &s, &out);
    EXPECT_INT(out.finish, INGOT_FINISH_LENGTH);
    EXPECT(out.thinking.len > 0);
    EXPECT_INT(out.text.len, 0);
    EXPECT_INT(out.usage.reasoning_tokens, 8);
    nugget_free(&out);
    rig_close(&r);
}

/* The joined events are what the splitter makes of the whole raw reply. */
TEST(R035_the_stream_is_the_whole)
{
    rig r = rig_open(1);
    for (int i = 0; i < 2; i++) {
        const ingot_prompt p = ask(SORT, i ? INGOT_THINKING_ON : INGOT_THINKING_OFF);
        ingot_sampling s = greedy(96);
        nugget_result out, raw, split;
        nugget_run(r.g, &p, &s, &out);
        s.raw = true;
        nugget_run(r.g, &p, &s, &raw);
        EXPECT_STR(raw.usage.sha256, out.usage.sha256);
        EXPECT_INT(raw.thinking.len, 0);
        ingot_split_options o = INGOT_INIT(ingot_split_options);
        o.start_in_thinking = i;
        ingot_splitter *sp;
        ingot_error e;
        INGOT_EXPECT_OK(ingot_splitter_new(&sp, r.m, &o, &e), e);
        INGOT_EXPECT_OK(ingot_splitter_put(sp, raw.text.ptr, raw.text.len, &e), e);
        INGOT_EXPECT_OK(ingot_splitter_end(sp, raw.finish, &e), e);
        nugget_init(&split);
        ingot_event ev;
        while (ingot_splitter_next(sp, &ev) == INGOT_OK) nugget_take(&split, &ev);
        EXPECT(str_eq(buf_view(&split.text), buf_view(&out.text)));
        EXPECT(str_eq(buf_view(&split.thinking), buf_view(&out.thinking)));
        ingot_splitter_free(sp);
        nugget_free(&out);
        nugget_free(&raw);
        nugget_free(&split);
    }
    rig_close(&r);
}

TEST(a_thinking_budget_closes_the_thought)
{
    rig r = rig_open(1);
    const ingot_prompt p = ask(SORT, INGOT_THINKING_ON);
    for (int block = 1; block <= 8; block += 7) {
        ingot_sampling s = greedy(60);
        s.thinking_budget = 6;
        s.block = block;
        nugget_result out;
        nugget_run(r.g, &p, &s, &out);
        EXPECT_INT(out.usage.reasoning_tokens, 7); /* the closing tag is the seventh */
        EXPECT(out.text.len > 0);
        nugget_free(&out);
    }
    rig_close(&r);
}

/* One log-probability for each token, the same drafted and plain, and of exact bytes. */
TEST(R045_logprobs_have_every_token_and_its_bytes)
{
    rig r = rig_open(1);
    const ingot_prompt p = nugget_prompt(3, r.ids, 512);
    nugget_result plain, drafted;
    ingot_sampling s = greedy(48);
    s.top_logprobs = 5;
    s.block = INGOT_BLOCK_PLAIN;
    nugget_run(r.g, &p, &s, &plain);
    s.block = 5;
    nugget_run(r.g, &p, &s, &drafted);
    EXPECT_INT(plain.n_logprobs, plain.n);
    EXPECT_INT(drafted.n_logprobs, plain.n);
    for (int i = 0; i < plain.n; i++)
        EXPECT(plain.logprob[i] <= 0 && plain.logprob[i] == drafted.logprob[i]);
    buf bytes;
    buf_init(&bytes, 1 << 16);
    for (int i = 0; i < plain.n; i++) {
        size_t len;
        const char *b = ingot_token_bytes(r.m, plain.ids[i], &len);
        buf_put(&bytes, b, len);
    }
    ingot_text text;
    ingot_error e;
    INGOT_EXPECT_OK(ingot_detokenize(r.m, plain.ids, (size_t)plain.n, false, &text, &e), e);
    EXPECT(str_eq(buf_view(&bytes), (str){ text.ptr, text.len }));
    ingot_text_free(&text);
    buf_free(&bytes);
    nugget_free(&plain);
    nugget_free(&drafted);
    rig_close(&r);
}

static void count_wake(void *arg, ingot_request *r)
{
    int *n = arg;
    n[r == NULL]++;
}

/* A score has no request that its caller could be told of. */
TEST(scoring_wakes_nobody)
{
    int wakes[2] = { 0 };
    int32_t ids[512];
    float scores[512];
    ingot_error e;
    ingot_model *m = nugget_open(1, NULL);
    ingot_engine_options o = INGOT_INIT(ingot_engine_options);
    o.context = 1024;
    o.wake = count_wake;
    o.wake_arg = wakes;
    ingot_engine *g;
    INGOT_EXPECT_OK(ingot_engine_start(&g, m, &o, &e), e);
    const ingot_prompt p = nugget_prompt(6, ids, 512);
    INGOT_EXPECT_OK(ingot_score(g, &p, scores, (int)p.n_tokens - 1, &e), e);
    ingot_engine_stop(g);
    EXPECT_INT(wakes[0], 0);
    EXPECT_INT(wakes[1], 0);
    ingot_model_close(m);
}

/* The scores of a text are those that its generation reports. */
TEST(scores_are_the_logprobs_of_generation)
{
    rig r = rig_open(2);
    ingot_prompt p = nugget_prompt(6, r.ids, 512);
    ingot_sampling s = greedy(24);
    s.logprobs = true;
    s.ignore_eos = true;
    nugget_result out;
    nugget_run(r.g, &p, &s, &out);
    int32_t all[600];
    const int n_prompt = (int)p.n_tokens, n = n_prompt + out.n;
    memcpy(all, r.ids, p.n_tokens * 4);
    memcpy(all + n_prompt, out.ids, (size_t)out.n * 4);
    p.tokens = all;
    p.n_tokens = (size_t)n;
    static float scores[600];
    ingot_error e;
    INGOT_EXPECT_OK(ingot_score(r.g, &p, scores, n - 1, &e), e);
    for (int i = 0; i < out.n; i++) EXPECT(scores[n_prompt - 1 + i] == out.logprob[i]);
    EXPECT_INT(ingot_score(r.g, &p, scores, n, &e), INGOT_E_ARG);
    nugget_free(&out);
    rig_close(&r);
}

/* E7: nothing is allocated while tokens are made. */
TEST(E7_steps_allocate_nothing)
{
    rig r = rig_open(1);
    const ingot_prompt p = nugget_prompt(1, r.ids, 512);
    for (int block = 1; block <= 4; block += 3) {
        ingot_sampling s = greedy(400);
        s.ignore_eos = true;
        s.block = block;
        s.temperature = 0.7f;
        s.presence_penalty = 0.5f;
        ingot_request *q = nugget_submit(r.g, &p, &s);
        ingot_stats stats;
        do ingot_engine_get_stats(r.g, &stats);
        while (stats.generated_tokens < (block == 1 ? 20u : 420u));
        const int64_t before = mem_count();
        do ingot_engine_get_stats(r.g, &stats);
        while (stats.generated_tokens < (block == 1 ? 300u : 700u));
        EXPECT_INT(mem_count(), before);
        nugget_result out;
        nugget_init(&out);
        nugget_finish(q, &out);
        nugget_free(&out);
    }
    rig_close(&r);
}

/* Reads a request to its end; false where a choice ended for want of memory. */
static bool ends_well(ingot_request *q, nugget_result *results)
{
    ingot_event ev;
    ingot_status s;
    bool well = true;
    while ((s = ingot_next(q, &ev, 60000)) == INGOT_OK) {
        if (ev.kind == INGOT_END && ev.finish == INGOT_FINISH_ERROR) {
            EXPECT(ev.error && strstr(ev.error, "memory"));
            well = false;
        } else {
            nugget_take(&results[ev.choice], &ev);
        }
    }
    if (s == INGOT_E_NOMEM) well = false;
    else EXPECT_INT(s, INGOT_E_CANCELLED);
    ingot_release(q);
    return well;
}

/* E8: whatever allocation of a submit fails, it is reported, and the engine serves on. */
TEST(E8_failing_submits_leave_the_engine_serving)
{
    rig r = rig_open(1);
    const ingot_prompt p = ask(SORT, INGOT_THINKING_OFF);
    const char *const stop[] = { "zzzzz" };
    ingot_sampling s = greedy(4);
    s.stop = stop;
    s.n_stop = 1;
    s.n = 2;
    s.presence_penalty = 1;
    s.top_logprobs = 2;
    nugget_result want[2], got[2];
    for (int i = 0; i < 2; i++) nugget_init(&want[i]);
    nugget_finish(nugget_submit(r.g, &p, &s), want);
    ingot_stats stats;
    do ingot_engine_get_stats(r.g, &stats);
    while (stats.running || stats.queued);
    const int64_t live = mem_live();
    int failures = 0;
    for (int64_t n = 1;; n += 1 + n / 50) {
        ingot_request *q = NULL;
        ingot_error e;
        mem_fail_after(n);
        const ingot_status st = ingot_submit(&q, r.g, &p, &s, &e);
        mem_fail_after(0);
        if (st == INGOT_OK) {
            /* the engine may have begun before allocations were mended */
            for (int i = 0; i < 2; i++) nugget_init(&got[i]);
            if (ends_well(q, got)) break;
            for (int i = 0; i < 2; i++) nugget_free(&got[i]);
            continue;
        }
        EXPECT_INT(st, INGOT_E_NOMEM);
        EXPECT_INT(mem_live(), live);
        failures++;
    }
    EXPECT(failures > 20);
    for (int i = 0; i < 2; i++) {
        EXPECT_INT(got[i].n, want[i].n);
        nugget_free(&want[i]);
        nugget_free(&got[i]);
    }
    rig_close(&r);
}

/* E8: whatever allocation fails while requests run and are remembered, in memory and on the disk,
 * the request ends with the right tokens or with the reason, and the next one is right. */
TEST(E8_failing_steps_leave_the_engine_serving)
{
    char dir[] = "/tmp/test_ingot.XXXXXX";
    EXPECT(mkdtemp(dir));
    ingot_model *m = nugget_open(1, DRAFTER);
    ingot_engine_options o = INGOT_INIT(ingot_engine_options);
    o.context = 512;
    o.cache_bytes = 32 << 20;
    o.cache_dir = dir;
    ingot_engine *g;
    ingot_error e;
    INGOT_EXPECT_OK(ingot_engine_start(&g, m, &o, &e), e);
    const ingot_prompt p = ask(SORT, INGOT_THINKING_OFF);
    ingot_sampling s = greedy(24);
    s.top_logprobs = 2;
    nugget_result want;
    nugget_run(g, &p, &s, &want);
    int failures = 0;
    for (int64_t n = 1; n < 400; n += 1 + n / 16) {
        nugget_result got;
        nugget_init(&got);
        EXPECT(buf_reserve(&got.text, 4096));
        ingot_request *q = nugget_submit(g, &p, &s);
        mem_fail_after(n);
        const bool well = ends_well(q, &got);
        mem_fail_after(0);
        failures += !well;
        if (well) nugget_same(&want, &got, "while allocations failed");
        nugget_free(&got);
    }
    EXPECT(failures > 0);
    nugget_result after;
    nugget_run(g, &p, &s, &after);
    nugget_same(&want, &after, "afterwards");
    nugget_free(&after);
    nugget_free(&want);
    ingot_engine_stop(g);
    ingot_model_close(m);
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", dir);
    EXPECT_INT(system(command), 0);
}

TEST(what_is_not_supported_is_refused_by_name)
{
    ingot_model *m = nugget_open(1, NULL);
    ingot_engine_options o = INGOT_INIT(ingot_engine_options);
    ingot_engine *g;
    ingot_error e;
    o.kv_type = "f8";
    EXPECT_INT(ingot_engine_start(&g, m, &o, &e), INGOT_E_ARG);
    o.kv_type = NULL;
    o.context = 1 << 20;
    EXPECT_INT(ingot_engine_start(&g, m, &o, &e), INGOT_E_ARG);
    o.context = 64;
    o.size = 1 << 20;
    EXPECT_INT(ingot_engine_start(&g, m, &o, &e), INGOT_E_ARG);
    ingot_model_close(m);
    ingot_model_options mo = INGOT_INIT(ingot_model_options);
    mo.king = NUGGET "/drafter-q8";
    EXPECT(ingot_model_open(&m, &mo, &e) != INGOT_OK && m == NULL);
    mo.king = NUGGET "/king";
    mo.drafter = NUGGET "/king";
    EXPECT_INT(ingot_model_open(&m, &mo, &e), INGOT_E_UNSUPPORTED);
    mo.drafter = NULL;
    mo.mode = "f64";
    EXPECT_INT(ingot_model_open(&m, &mo, &e), INGOT_E_ARG);
}

/* A drafter for king-tiny that is wider than memory: its file is a hole but for the header. Returns
 * the bytes of its weights. */
static uint64_t write_giant(const kit *k)
{
    enum { LAYERS = 64 };
    buf text, head;
    config c;
    plan list;
    error e;
    uint64_t at = 0;
    buf_init(&text, 1 << 20);
    buf_init(&head, 1 << 20);
    buf_printf(&text,
               "{\"architectures\":[\"DFlash2DraftModel\"],\"model_type\":\"qwen3\","
               "\"is_causal\":false,\"hidden_size\":512,\"intermediate_size\":4194304,"
               "\"num_hidden_layers\":%d,\"num_attention_heads\":2,\"num_key_value_heads\":1,"
               "\"head_dim\":32,\"hidden_act\":\"silu\",\"rms_norm_eps\":1e-06,"
               "\"vocab_size\":1024,\"use_sliding_window\":true,\"sliding_window\":32,"
               "\"rope_parameters\":{\"rope_theta\":10000000,\"rope_type\":\"default\"},"
               "\"num_target_layers\":4,\"dflash_config\":{\"block_size\":8,"
               "\"conv_kernel_size\":2,\"conv_group_size\":64,\"mask_token_id\":1017,"
               "\"selector_rank\":64,\"selector_top_k\":8,\"target_layer_ids\":[1,3]},"
               "\"layer_types\":[",
               LAYERS);
    for (int i = 0; i < LAYERS; i++)
        buf_text(&text, i ? ",\"sliding_attention\"" : "\"sliding_attention\"");
    buf_text(&text, "]}");
    kit_write(k, "config.json", buf_view(&text));
    EXPECT_OK(config_parse(&c, buf_view(&text), "config.json", &e), e);
    EXPECT_OK(plan_drafter(&list, &c.drafter, &e), e);
    for (size_t i = 0; i < list.count; i++) {
        const plan_entry *t = &list.entries[i];
        uint64_t bytes = 2;
        for (int n = 0; n < t->rank; n++) bytes *= (uint64_t)t->shape[n];
        buf_printf(&head, "%s\"%s%s\":{\"dtype\":\"BF16\",\"shape\":[", i ? "," : "{", t->name,
                   t->is_matrix ? ".weight" : "");
        for (int n = 0; n < t->rank; n++)
            buf_printf(&head, "%s%lld", n ? "," : "", (long long)t->shape[n]);
        buf_printf(&head, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)at,
                   (unsigned long long)(at + bytes));
        at += bytes;
    }
    buf_text(&head, "}");
    const uint64_t len = head.len;
    FILE *f = fopen(kit_path(k, "model.safetensors"), "wb");
    EXPECT(f && fwrite(&len, 8, 1, f) == 1 && fwrite(head.ptr, head.len, 1, f) == 1);
    EXPECT(fclose(f) == 0);
    if (truncate(kit_path(k, "model.safetensors"), (off_t)(8 + len + at)) != 0)
        skip("no file of this size here");
    plan_free(&list);
    config_free(&c);
    buf_free(&text);
    buf_free(&head);
    return at;
}

TEST(a_drafter_too_large_for_memory_is_refused_before_it_is_read)
{
    const kit k = kit_new(NULL);
    const uint64_t bytes = write_giant(&k);
    ingot_model_options o = INGOT_INIT(ingot_model_options);
    ingot_model *m;
    ingot_error e;
    if (sysmem_available() >= bytes) skip("this machine has memory enough");
    o.king = KIT_PACKS "king-tiny";
    o.drafter = k.folder;
    EXPECT_INT(ingot_model_open(&m, &o, &e), INGOT_E_NOMEM);
    EXPECT(m == NULL && strstr(e.text, "those of the drafter "));
    kit_free(&k);
}

TEST(a_prompt_is_one_thing_and_of_known_ids)
{
    rig r = rig_open(1);
    ingot_model_info info;
    ingot_error e;
    ingot_request *q = NULL;
    const ingot_sampling s = greedy(1);
    ingot_model_get_info(r.m, &info);
    ingot_prompt p = INGOT_INIT(ingot_prompt);
    EXPECT_INT(ingot_submit(&q, r.g, &p, &s, &e), INGOT_E_ARG);
    p.tokens = r.ids;
    p.n_tokens = 1;
    r.ids[0] = info.n_token;
    EXPECT_INT(ingot_submit(&q, r.g, &p, &s, &e), INGOT_E_ARG);
    r.ids[0] = -1;
    EXPECT_INT(ingot_submit(&q, r.g, &p, &s, &e), INGOT_E_ARG);
    r.ids[0] = info.n_token - 1;
    nugget_result out;
    nugget_run(r.g, &p, &s, &out);
    nugget_free(&out);
    p.text = "a";
    p.text_len = 1;
    EXPECT_INT(ingot_submit(&q, r.g, &p, &s, &e), INGOT_E_ARG);
    EXPECT(strstr(e.text, "found 2 of text, tokens, messages"));
    rig_close(&r);
}

/* Its hash is SHA-256 over its ids, four bytes each, the lowest first. */
TEST(the_hash_is_that_of_the_ids)
{
    rig r = rig_open(1);
    const ingot_prompt p = nugget_prompt(2, r.ids, 512);
    const ingot_sampling s = greedy(24);
    nugget_result out;
    uint8_t bytes[24 * 4];
    char want[65];
    error e;
    nugget_run(r.g, &p, &s, &out);
    EXPECT(out.n > 0 && out.n <= 24);
    for (int i = 0; i < out.n; i++)
        for (int k = 0; k < 4; k++) bytes[4 * i + k] = (uint8_t)(out.ids[i] >> 8 * k);
    EXPECT_OK(digest_sha256(bytes, 4 * (size_t)out.n, want, &e), e);
    EXPECT_STR(out.usage.sha256, want);
    nugget_free(&out);
    rig_close(&r);
}

/* Another call would follow or text; the request ends with its first call. */
TEST(a_single_call_ends_the_reply)
{
    rig r = rig_open(1);
    const ingot_prompt p = nugget_prompt(10, r.ids, 512);
    ingot_sampling s = greedy(80);
    s.ignore_eos = true;
    s.raw = true;
    nugget_result all, one;
    nugget_run(r.g, &p, &s, &all);
    const str text = buf_view(&all.text), end = STR("</tool_call>");
    const size_t at = str_find(text, end);
    EXPECT(at != STR_NONE && at + end.len < text.len);
    s.single_call = true;
    nugget_run(r.g, &p, &s, &one);
    EXPECT_INT(one.finish, INGOT_FINISH_STOP);
    EXPECT(str_eq(buf_view(&one.text), str_sub(text, 0, at + end.len)));
    nugget_free(&all);
    nugget_free(&one);
    rig_close(&r);
}

/* R075: a short request does not wait for the prompt of a long one, and both give what they give
 * alone. */
TEST(R075_short_requests_get_their_turn)
{
    rig r = { .m = nugget_open(1, DRAFTER) };
    r.g = nugget_start(r.m, 2, 8);
    static int32_t ids[1900];
    for (int i = 0; i < 1900; i++) ids[i] = 100 + i * 7 % 900;
    ingot_prompt tall = INGOT_INIT(ingot_prompt);
    tall.tokens = ids;
    tall.n_tokens = 1900;
    const ingot_prompt brief = nugget_prompt(0, r.ids, 512);
    const ingot_sampling s = greedy(3);
    ingot_request *q = nugget_submit(r.g, &tall, &s);
    nugget_result quick;
    nugget_run(r.g, &brief, &s, &quick);
    EXPECT_INT(quick.n, 3);
    ingot_event ev;
    bool ended = false;
    while (ingot_next(q, &ev, 0) == INGOT_OK) ended = ended || ev.kind != INGOT_PROGRESS;
    EXPECT(!ended);
    ingot_release(q);
    nugget_free(&quick);
    rig_close(&r);
}

static int32_t id_of(const ingot_model *m, const char *text)
{
    ingot_tokens t;
    ingot_error e;
    INGOT_EXPECT_OK(ingot_tokenize(m, text, strlen(text), INGOT_SPECIAL_ALL, &t, &e), e);
    EXPECT_INT(t.len, 1);
    const int32_t id = t.ids[0];
    ingot_tokens_free(&t);
    return id;
}

/* The opening tag's token after other tokens of the answer: nothing counts as thought. A bias makes
 * the model say one word until the penalty of its repetition lets the tag through. */
TEST(R034_a_late_opening_tag_opens_no_thought)
{
    rig r = rig_open(1);
    const ingot_prompt p = ask(SORT, INGOT_THINKING_OFF);
    const int32_t word = id_of(r.m, "a"), tag = id_of(r.m, "<think>");
    const ingot_bias bias[] = { { word, 90 }, { tag, 70 } };
    ingot_sampling s = greedy(40);
    s.bias = bias;
    s.n_bias = 2;
    s.frequency_penalty = 2;
    nugget_result out;
    nugget_run(r.g, &p, &s, &out);
    int tags = 0;
    for (int i = 0; i < out.n; i++) tags += out.ids[i] == tag;
    EXPECT(out.ids[0] == word && tags > 0);
    EXPECT_INT(out.usage.reasoning_tokens, 0);
    EXPECT_INT(out.thinking.len, 0);
    nugget_free(&out);
    rig_close(&r);
}
