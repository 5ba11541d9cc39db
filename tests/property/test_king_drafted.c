/* Drafted text equals plain text: nugget with its drafters, with wrong drafts, with companions, in
 * int8 as users run it. */
#include "model_fixture.h"

static const int taps[] = { 1, 2, 3 };
enum { LONG = 1024, MAX_PROMPT = 200 };

typedef struct pair {
    fixture f;
    pack *p;
    drafter *d;
    drafter_work *w;
    json_doc *golden;
    size_t vocab;
} pair;

static void pair_open(pair *v, const char *folder)
{
    error e;
    fixture_open(&v->f, (fixture_options){ .folder = NUGGET "king",
                                           .mode = COMPUTE_INT8,
                                           .kv = KV_F16,
                                           .rows = MAX_PROMPT,
                                           .taps = taps,
                                           .n_taps = 3 });
    EXPECT_OK(pack_open(&v->p, folder, NULL, &e), e);
    EXPECT_OK(
        drafter_open(&v->d, v->p, v->f.k, v->f.c, &(load_options){ .mode = COMPUTE_INT8 }, &e), e);
    EXPECT_OK(drafter_work_new(&v->w, v->d, 64, &e), e);
    v->golden = golden_json(NUGGET "golden.json");
    v->vocab = (size_t)v->f.config->n_vocab;
}

static void pair_close(pair *v)
{
    json_free(v->golden);
    drafter_work_free(v->w);
    drafter_close(v->d);
    pack_close(v->p);
    fixture_close(&v->f);
}

/* One sequence on its way: `out` holds n tokens, the last of them not run yet. */
typedef struct run {
    state *s;
    drafter_state *context;
    int32_t out[LONG + 16];
    int n, steps;
} run;

static void run_start(pair *v, run *r, int prompt)
{
    error e;
    int n;
    const json_node *list = json_get(json_root(v->golden), "prompts");
    int32_t *ids = json_ints(json_get(json_at(list, (size_t)prompt), "prompt_ids"), &n);
    EXPECT(n <= MAX_PROMPT);
    r->s = fixture_state(&v->f);
    EXPECT_OK(drafter_state_new(&r->context, v->d, &e), e);
    const king_job job = fixture_pass(&v->f, r->s, ids, n, ROWS_FINAL, n);
    const draft_append rows = { r->context, job.taps, n };
    drafter_append(v->d, v->f.c, v->w, &rows, 1);
    r->out[0] = argmax(job.logits + (size_t)(n - 1) * v->vocab, (int)v->vocab);
    r->n = 1;
    r->steps = 0;
    mem_free(ids);
}

static void run_end(run *r)
{
    drafter_state_free(r->context);
    state_free(r->s);
}

/* Accepts of one verified job as many drafts as the king agrees with. */
static void run_accept(pair *v, run *r, const king_job *job)
{
    EXPECT_INT(job->bad_layer, -1);
    int a = 0;
    int32_t y = argmax(job->logits, (int)v->vocab);
    while (a < job->n - 1 && job->tokens[a + 1] == y) {
        r->out[r->n++] = y;
        y = argmax(job->logits + (size_t)++a * v->vocab, (int)v->vocab);
    }
    r->out[r->n++] = y;
    r->steps++;
    state_commit(r->s, a + 1);
    const draft_append rows = { r->context, job->taps, a + 1 };
    drafter_append(v->d, v->f.c, v->w, &rows, 1);
}

static void run_step(pair *v, run *r, const int32_t *rows, int n)
{
    error e;
    EXPECT_OK(state_begin(r->s, n, ROWS_PROVISIONAL, &e), e);
    king_job job = { .state = r->s, .tokens = rows, .n = n };
    king_forward(v->f.k, v->f.c, v->f.w, &job, 1, NULL);
    run_accept(v, r, &job);
}

static void run_plain(pair *v, run *r, int tokens)
{
    while (r->n < tokens) run_step(v, r, &r->out[r->n - 1], 1);
}

static void run_drafted(pair *v, run *r, int block, int tokens)
{
    while (r->n < tokens) {
        int32_t rows[8] = { r->out[r->n - 1] };
        draft_job job = { .state = r->context,
                          .anchor = rows[0],
                          .block = block,
                          .n_vocab = (int)v->vocab,
                          .drafts = rows + 1 };
        drafter_draft(v->d, v->f.c, v->w, v->f.k, v->f.w, &job, 1);
        run_step(v, r, rows, block);
    }
}

TEST(R060_drafted_equals_plain_for_1024_tokens_at_every_width)
{
    pair v;
    pair_open(&v, NUGGET "drafter-q4");
    static run plain, drafted;
    run_start(&v, &plain, 1);
    run_plain(&v, &plain, LONG);
    for (int block = 2; block <= 8; block++) {
        run_start(&v, &drafted, 1);
        run_drafted(&v, &drafted, block, LONG);
        EXPECT_BITS(drafted.out, plain.out, LONG);
        EXPECT(drafted.steps < LONG);
        run_end(&drafted);
    }
    run_end(&plain);
    pair_close(&v);
}

/* Drafts that are nearly always wrong: every step takes rows back. */
static void wrong_rows(rng *r, const run *plain, const run *now, int32_t *rows, int n)
{
    rows[0] = now->out[now->n - 1];
    for (int i = 1; i < n; i++) {
        const int at = now->n + i - 1;
        const bool right = rng_below(r, 4) == 0 && at < plain->n;
        rows[i] = right ? plain->out[at] : (int32_t)rng_below(r, 4000);
    }
}

TEST(R056_wrong_drafts_do_not_change_400_tokens)
{
    pair v;
    pair_open(&v, NUGGET "drafter-q8");
    static run plain, drafted;
    rng r = { 1 };
    run_start(&v, &plain, 2);
    run_plain(&v, &plain, 400);
    run_start(&v, &drafted, 2);
    while (drafted.n < 400) {
        int32_t rows[STATE_MAX_PROVISIONAL];
        const int n = 1 + (int)rng_below(&r, STATE_MAX_PROVISIONAL);
        wrong_rows(&r, &plain, &drafted, rows, n);
        run_step(&v, &drafted, rows, n);
    }
    EXPECT_BITS(drafted.out, plain.out, 400);
    run_end(&drafted);
    run_end(&plain);
    pair_close(&v);
}

TEST(R057_simultaneous_requests_with_rejections_stay_apart)
{
    enum { N = 6, TOKENS = 120 };
    pair v;
    pair_open(&v, NUGGET "drafter-q8");
    static run plain[N], drafted[N];
    rng r = { 2 };
    for (int i = 0; i < N; i++) {
        run_start(&v, &plain[i], i);
        run_plain(&v, &plain[i], TOKENS);
        run_start(&v, &drafted[i], i);
    }
    for (bool more = true; more;) {
        int32_t rows[N][8];
        king_job jobs[N];
        int who[N], n = 0;
        more = false;
        for (int i = 0; i < N; i++) {
            if (drafted[i].n >= TOKENS) continue;
            more = true;
            const int b = 1 + (int)rng_below(&r, 8);
            wrong_rows(&r, &plain[i], &drafted[i], rows[n], b);
            error e;
            EXPECT_OK(state_begin(drafted[i].s, b, ROWS_PROVISIONAL, &e), e);
            jobs[n] = (king_job){ .state = drafted[i].s, .tokens = rows[n], .n = b };
            who[n++] = i;
        }
        if (n > 0) king_forward(v.f.k, v.f.c, v.f.w, jobs, n, NULL);
        for (int j = 0; j < n; j++) run_accept(&v, &drafted[who[j]], &jobs[j]);
    }
    for (int i = 0; i < N; i++) {
        EXPECT_BITS(drafted[i].out, plain[i].out, TOKENS);
        run_end(&plain[i]);
        run_end(&drafted[i]);
    }
    pair_close(&v);
}

/* State after rows were taken back = state of a sequence that never ran them. */
TEST(R054_rejected_rows_leave_no_trace)
{
    pair v;
    pair_open(&v, NUGGET "drafter-q8");
    const gdn_shape shape = state_gdn_shape(v.f.config);
    const size_t recurrent = (size_t)shape.n_v_head * (size_t)shape.v_dim * (size_t)shape.k_dim;
    const size_t conv = (size_t)(shape.taps - 1) * (size_t)gdn_channels(&shape);
    int32_t tokens[20 + STATE_MAX_PROVISIONAL];
    for (int i = 0; i < 20 + STATE_MAX_PROVISIONAL; i++) tokens[i] = 31 * i % 4000;
    for (int rejected = 1; rejected <= STATE_MAX_PROVISIONAL; rejected++) {
        state *a = fixture_state(&v.f), *b = fixture_state(&v.f);
        const int kept = STATE_MAX_PROVISIONAL - rejected;
        fixture_pass(&v.f, a, tokens, 20 + kept, ROWS_FINAL, 20 + kept);
        fixture_pass(&v.f, b, tokens, 20, ROWS_FINAL, 20);
        fixture_pass(&v.f, b, tokens + 20, STATE_MAX_PROVISIONAL, ROWS_PROVISIONAL, kept);
        EXPECT_INT(state_len(b), 20 + kept);
        for (int i = 0; i < v.f.config->n_layer; i++) {
            if (v.f.config->is_attention[i]) continue;
            const float *ra, *rb, *ca, *cb;
            state_peek_gdn(a, v.f.c, i, &ra, &ca);
            state_peek_gdn(b, v.f.c, i, &rb, &cb);
            EXPECT_BITS(ra, rb, recurrent);
            EXPECT_BITS(ca, cb, conv);
        }
        state_free(a);
        state_free(b);
    }
    pair_close(&v);
}

/* Tokens per step at block 4 over the prompts of golden.json, beside those of the reference (f32,
 * q8): int8 activations and a drafter of 4 bits cost little. */
TEST(R059_acceptance_is_in_the_expected_band)
{
    static const char *const folders[] = { NUGGET "drafter-q8", NUGGET "drafter-q4" };
    for (int which = 0; which < 2; which++) {
        pair v;
        static run r;
        pair_open(&v, folders[which]);
        int tokens = 0, steps = 0, accepted = 0, wanted = 0;
        const json_node *list = json_get(json_root(v.golden), "prompts");
        for (size_t i = 0; i < json_len(list); i++) {
            const int n = (int)json_len(json_get(json_at(list, i), "greedy_ids"));
            run_start(&v, &r, (int)i);
            const json_node *reference =
                json_get(json_get(json_at(list, i), "drafted_block_4"), "accepted");
            for (size_t k = 0; k < json_len(reference); k++) {
                int64_t some;
                EXPECT(json_i64(json_at(reference, k), &some));
                accepted += (int)some;
                wanted++;
            }
            run_drafted(&v, &r, 4, n);
            tokens += r.n - 1;
            steps += r.steps;
            run_end(&r);
        }
        const double per_step = (double)tokens / steps, want = 1 + (double)accepted / wanted;
        printf("%s: %.3f tokens per step at block 4, the reference %.3f\n",
               folders[which] + strlen(NUGGET), per_step, want);
        EXPECT(per_step > want - 0.25 && per_step < want + 0.25);
        pair_close(&v);
    }
}
