/* Who gets the rows of a step: counted, not timed. */
#include "engine/gbnf.h"
#include "engine/scheduler.h"
#include "model_fixture.h"
#include "packkit.h"

enum { CHUNK = 64, LONG = 1500, SHORT = 8, OUTPUT = 24 };

typedef struct bench {
    fixture f;
    tokenizer *t;
    scheduler *g;
} bench;

static void open_bench_of(bench *b, const char *folder, const char *text, int parallel)
{
    error e;
    fixture_open(&b->f, (fixture_options){ .folder = folder, .kv = KV_F16 });
    EXPECT_OK(tokenizer_open(&b->t, text, &e), e);
    const scheduler_options o = {
        .parts = { .king = b->f.k, .tokenizer = b->t, .compute = { .threads = 1 } },
        .context = 2048,
        .total_context = 2048 * parallel,
        .parallel = parallel,
        .kv = KV_F16,
        .chunk = CHUNK
    };
    EXPECT_OK(scheduler_new(&b->g, &o, &e), e);
}

static void open_bench(bench *b, int parallel)
{
    open_bench_of(b, NUGGET "king", NUGGET "king", parallel);
}

static void close_bench(bench *b)
{
    scheduler_free(b->g);
    tokenizer_close(b->t);
    fixture_close(&b->f);
}

static request *add_choices(bench *b, int n_prompt, int n, sampler_params sampling)
{
    error e;
    int32_t prompt[LONG];
    sequence *list, **end = &list;
    request *r;
    for (int i = 0; i < n_prompt; i++) prompt[i] = 300 + i * 7 % 3000;
    const request_params p = { .prompt = prompt,
                               .n_prompt = n_prompt,
                               .n = n,
                               .sampling = sampling,
                               .max_tokens = OUTPUT,
                               .block = REQUEST_BLOCK_PLAIN,
                               .top_logprobs = -1,
                               .think_open = -1,
                               .think_close = -1,
                               .call_open = -1,
                               .call_close = -1 };
    EXPECT_OK(request_new(&r, &p, NULL, &e), e);
    for (int i = 0; i < n; i++, end = &(*end)->next)
        EXPECT_OK(sequence_new(end, r, i, scheduler_bench(b->g), &e), e);
    if (n > 1) EXPECT_OK(sequence_share_prompt(list, &e), e);
    scheduler_add(b->g, list);
    return r;
}

static request *add(bench *b, int n_prompt)
{
    return add_choices(b, n_prompt, 1, (sampler_params){ .top_p = 1, .repetition = 1 });
}

static request_progress progress_of(request *r)
{
    request_progress p;
    request_read(r, 0, &p);
    return p;
}

/* A prompt that comes while a long one is read has its first token after the step it meets, at the
 * longest a chunk, and one of its own; from then on a token comes with every step, and the long one
 * still goes on in each. */
TEST(E4_a_short_prompt_behind_a_long_one_waits_for_two_chunks)
{
    bench b;
    open_bench(&b, 2);
    request *first = add(&b, LONG);
    for (int i = 1; i <= 3; i++) {
        EXPECT(scheduler_pass(b.g));
        EXPECT_INT(progress_of(first).prompt_done, i * CHUNK);
    }
    request *second = add(&b, SHORT);
    EXPECT(scheduler_pass(b.g));
    EXPECT_INT(progress_of(second).n_ids, 1);
    EXPECT_INT(progress_of(first).prompt_done, 4 * CHUNK - SHORT);
    for (int i = 2; i <= OUTPUT; i++) {
        const int before = progress_of(first).prompt_done;
        EXPECT(scheduler_pass(b.g));
        EXPECT_INT(progress_of(second).n_ids, i);
        EXPECT(progress_of(first).prompt_done > before || before == LONG);
    }
    scheduler_cancel_all(b.g);
    request_release(first);
    request_release(second);
    close_bench(&b);
}

/* Prompts that come together get equal shares, and what one does not need goes to the others. */
TEST(prompts_share_a_step_equally)
{
    bench b;
    open_bench(&b, 4);
    request *r[4];
    for (int i = 0; i < 4; i++) r[i] = add(&b, i == 0 ? SHORT : LONG);
    EXPECT(scheduler_pass(b.g));
    EXPECT_INT(progress_of(r[0]).n_ids, 1);
    int rows = SHORT;
    for (int i = 1; i < 4; i++) {
        const int done = progress_of(r[i]).prompt_done;
        EXPECT(done >= CHUNK / 4 && done <= CHUNK / 2);
        rows += done;
    }
    EXPECT_INT(rows, CHUNK);
    scheduler_cancel_all(b.g);
    for (int i = 0; i < 4; i++) request_release(r[i]);
    close_bench(&b);
}

/* A penalty that makes logits infinite leaves nothing to draw: the request fails, it does not go on
 * without tokens. */
TEST(a_request_without_a_token_to_pick_fails)
{
    bench b;
    open_bench(&b, 1);
    const sampler_params sampling = { .temperature = 1, .top_p = 1, .repetition = 1e-38f };
    request *r = add_choices(&b, SHORT, 1, sampling);
    for (int i = 0; i < 4 * OUTPUT; i++) (void)scheduler_pass(b.g);
    EXPECT_INT(progress_of(r).finish, REQUEST_FAILED);
    EXPECT_STR(request_peek(r, 0).error, "sampling: no logit is a number that can be picked");
    scheduler_cancel_all(b.g);
    request_release(r);
    close_bench(&b);
}

/* The state that choices begin from is let go of when all have begun: what they hold then is one
 * page of the prompt together, and one each of their own. */
TEST(choices_that_have_begun_keep_nothing_of_the_prompt)
{
    bench b;
    open_bench(&b, 2);
    const sampler_params sampling = { .temperature = 1, .top_p = 1, .repetition = 1, .seed = 3 };
    request *r = add_choices(&b, KV_PAGE + SHORT, 2, sampling);
    scheduler_stats s;
    do {
        EXPECT(scheduler_pass(b.g));
        scheduler_get_stats(b.g, &s);
    } while (s.generated_tokens < OUTPUT);
    EXPECT_INT(s.running, 2);
    EXPECT_INT(s.kv_pages_total - s.kv_pages_free, 3);
    scheduler_cancel_all(b.g);
    request_release(r);
    close_bench(&b);
}

/* ---- a draft that breaks the numbers ---- */

#define TEXT "xlonlonlonlonlon"
enum { LON = 265 }; /* the token of the tiny tokenizer; its row of the embedding is not finite */

/* The only text that is allowed, written without LON; the ids go to `out`, their number is
 * returned. */
static int spell(scheduler *g, const tokmask_vocabulary *v, int block, int32_t *out)
{
    error e;
    grammar *text;
    sequence *s;
    request *r;
    static const int32_t prompt[] = { 65, 66, 67 }, end[] = { 1 };
    const sampler_bias never = { LON, -1000 };
    request_params p = { .prompt = prompt,
                         .n_prompt = 3,
                         .n = 1,
                         .sampling = { .top_p = 1, .repetition = 1, .bias = &never, .n_bias = 1 },
                         .stop_ids = end,
                         .n_stop_ids = 1,
                         .max_tokens = OUTPUT,
                         .block = block,
                         .top_logprobs = -1,
                         .think_open = -1,
                         .think_close = -1,
                         .call_open = -1,
                         .call_close = -1 };
    EXPECT_OK(gbnf_compile(&text, STR("root ::= \"" TEXT "\""), false, &e), e);
    EXPECT_OK(tokmask_new(&p.constraint, text, v, end, 1, -1, &e), e);
    EXPECT_OK(request_new(&r, &p, NULL, &e), e);
    EXPECT_OK(sequence_new(&s, r, 0, scheduler_bench(g), &e), e);
    scheduler_add(g, s);
    while (scheduler_pass(g)) {}
    const request_progress got = progress_of(r);
    if (got.finish != REQUEST_STOP) FAIL("block %d: %s", block, request_peek(r, 0).error);
    EXPECT_INT(got.usage.drafted > 0, block > 1);
    memcpy(out, request_peek(r, 0).ids, (size_t)got.n_ids * sizeof *out);
    request_release(r);
    return got.n_ids;
}

/* Rows that are not finite because of a draft that nobody picks are no fault of the answer. */
TEST(a_draft_that_breaks_is_taken_back)
{
    error e;
    bench b;
    tokmask_vocabulary *v;
    int32_t plain[OUTPUT], drafted[OUTPUT];
    const kit k = kit_new("qwen35-tiny-bf16");
    const kit_change broken =
        SET("language_model.model.embed_tokens.weight", LON * (64 / 2), INFINITY);
    kit_tensor(&k, "model.safetensors", &broken);
    open_bench_of(&b, k.folder, PACKS "qwen35-tiny-affine4", 1);
    EXPECT(str_eq(tokenizer_bytes(b.t, LON), STR("lon")));
    EXPECT_OK(tokmask_vocabulary_new(&v, b.t, tokenizer_vocab_size(b.t), NULL, 0, &e), e);
    const int n = spell(b.g, v, REQUEST_BLOCK_PLAIN, plain);
    EXPECT_INT(spell(b.g, v, 2, drafted), n);
    for (int i = 0; i < n; i++) EXPECT_INT(drafted[i], plain[i]);
    tokmask_vocabulary_free(v);
    close_bench(&b);
    kit_free(&k);
}
