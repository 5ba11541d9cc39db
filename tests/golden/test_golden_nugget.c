/* Nugget, king and drafter, against mlx-vlm in f32 (models/nugget/golden.json), and the price of
 * int8 activations. */
#include "model_fixture.h"
#include "stride.h"

static const int taps[] = { 1, 2, 3 };

static void nugget_open(fixture *f, compute_mode mode)
{
    fixture_open(f, (fixture_options){ .folder = NUGGET "king",
                                       .mode = mode,
                                       .kv = mode == COMPUTE_F32 ? KV_F32 : KV_F16,
                                       .threads = 1,
                                       .rows = 320,
                                       .taps = taps,
                                       .n_taps = 3 });
}

typedef struct golden_prompt {
    int32_t *prompt, *greedy, *accepted;
    int n_prompt, n_greedy, n_accepted;
    const json_node *margins;
} golden_prompt;

static void prompt_read(golden_prompt *g, const json_node *p, const char *drafted)
{
    g->prompt = json_ints(json_get(p, "prompt_ids"), &g->n_prompt);
    g->greedy = json_ints(json_get(p, "greedy_ids"), &g->n_greedy);
    g->accepted = json_ints(json_get(json_get(p, drafted), "accepted"), &g->n_accepted);
    g->margins = json_get(p, "margins");
    EXPECT_INT(json_len(g->margins), g->n_greedy);
}

static void prompt_free(golden_prompt *g)
{
    mem_free(g->prompt);
    mem_free(g->greedy);
    mem_free(g->accepted);
}

TEST(golden_nugget_greedy)
{
    fixture f;
    nugget_open(&f, COMPUTE_F32);
    json_doc *doc = golden_json(NUGGET "golden.json");
    const json_node *prompts = json_get(json_root(doc), "prompts");
    EXPECT_INT(json_len(prompts), 12);
    for (size_t i = 0; i < json_len(prompts); i += (size_t)test_stride()) {
        golden_prompt g;
        prompt_read(&g, json_at(prompts, i), "drafted_block_4");
        state *s = fixture_state(&f);
        const size_t vocab = (size_t)f.config->n_vocab;
        king_job job = fixture_pass(&f, s, g.prompt, g.n_prompt, ROWS_FINAL, g.n_prompt);
        const float *logits = job.logits + (size_t)(g.n_prompt - 1) * vocab;
        for (int t = 0; t < g.n_greedy; t++) {
            double margin = 0;
            EXPECT(json_f64(json_at(g.margins, (size_t)t), &margin));
            if (margin > 1e-3) EXPECT_INT(argmax(logits, (int)vocab), g.greedy[t]);
            logits = fixture_pass(&f, s, &g.greedy[t], 1, ROWS_FINAL, 1).logits;
        }
        state_free(s);
        prompt_free(&g);
    }
    json_free(doc);
    fixture_close(&f);
}

static bool is_stop(const json_node *stops, int32_t id)
{
    for (size_t i = 0; i < json_len(stops); i++) {
        int64_t v = -1;
        if (json_i64(json_at(stops, i), &v) && v == id) return true;
    }
    return false;
}

/* The loop of the generator: a fixed block, nothing accepted past a stop token. */
static void check_accepted(fixture *f, const drafter *d, drafter_work *dw, const json_node *stops,
                           int limit, const golden_prompt *g, int block)
{
    error e;
    state *s = fixture_state(f);
    drafter_state *context;
    EXPECT_OK(drafter_state_new(&context, d, &e), e);
    const size_t vocab = (size_t)f->config->n_vocab;
    king_job job = fixture_pass(f, s, g->prompt, g->n_prompt, ROWS_FINAL, g->n_prompt);
    draft_append rows = { context, job.taps, g->n_prompt };
    drafter_append(d, f->c, dw, &rows, 1);
    int32_t anchor = argmax(job.logits + (size_t)(g->n_prompt - 1) * vocab, (int)vocab);
    EXPECT_INT(anchor, g->greedy[0]);
    int n = 1, step = 0;
    for (; !is_stop(stops, anchor) && n < limit; step++) {
        int32_t row[8] = { anchor };
        draft_job draft = { .state = context,
                            .anchor = anchor,
                            .block = block,
                            .n_vocab = (int)vocab,
                            .drafts = row + 1 };
        drafter_draft(d, f->c, dw, f->k, f->w, &draft, 1);
        EXPECT_OK(state_begin(s, block, ROWS_PROVISIONAL, &e), e);
        job = (king_job){ .state = s, .tokens = row, .n = block };
        king_forward(f->k, f->c, f->w, &job, 1, NULL);
        int a = 0;
        int32_t y = argmax(job.logits, (int)vocab);
        while (a < block - 1 && row[a + 1] == y && !is_stop(stops, y))
            y = argmax(job.logits + (size_t)++a * vocab, (int)vocab);
        for (int i = 0; i <= a && n + i < g->n_greedy; i++)
            EXPECT_INT(i < a ? row[i + 1] : y, g->greedy[n + i]);
        state_commit(s, a + 1);
        rows = (draft_append){ context, job.taps, a + 1 };
        drafter_append(d, f->c, dw, &rows, 1);
        EXPECT(step < g->n_accepted);
        EXPECT_INT(a, g->accepted[step]);
        n += a + 1;
        anchor = y;
    }
    EXPECT_INT(step, g->n_accepted);
    drafter_state_free(context);
    state_free(s);
}

static void check_drafted(int block)
{
    fixture f;
    error e;
    pack *p;
    drafter *d;
    drafter_work *dw;
    nugget_open(&f, COMPUTE_F32);
    EXPECT_OK(pack_open(&p, NUGGET "drafter-q8", NULL, &e), e);
    EXPECT_OK(drafter_open(&d, p, f.k, f.c, &(load_options){ .mode = COMPUTE_F32 }, &e), e);
    EXPECT_OK(drafter_work_new(&dw, d, 64, &e), e);
    json_doc *doc = golden_json(NUGGET "golden.json");
    const json_node *prompts = json_get(json_root(doc), "prompts");
    char key[32];
    snprintf(key, sizeof key, "drafted_block_%d", block);
    for (size_t i = 0; i < json_len(prompts); i += (size_t)test_stride()) {
        golden_prompt g;
        prompt_read(&g, json_at(prompts, i), key);
        check_accepted(&f, d, dw, json_get(json_root(doc), "stop_ids"), 96, &g, block);
        prompt_free(&g);
    }
    json_free(doc);
    drafter_work_free(dw);
    drafter_close(d);
    pack_close(p);
    fixture_close(&f);
}

TEST(golden_nugget_accepted_block_4)
{
    check_drafted(4);
}

TEST(golden_nugget_accepted_block_8)
{
    check_drafted(8);
}

/* ---- int8 against f32 ---- */

static double log_sum_exp(const float *x, size_t n, double *top)
{
    *top = x[0];
    for (size_t i = 1; i < n; i++) *top = x[i] > *top ? x[i] : *top;
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += exp(x[i] - *top);
    return *top + log(sum);
}

/* KL(p || q) in nat of softmax(p), softmax(q) */
static double kl(const float *p, const float *q, size_t n)
{
    double top;
    const double lp = log_sum_exp(p, n, &top), lq = log_sum_exp(q, n, &top);
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += exp(p[i] - lp) * ((p[i] - lp) - (q[i] - lq));
    return sum;
}

typedef struct kl_sum {
    double total, most;
    int n, same_top;
} kl_sum;

static void kl_add(kl_sum *k, fixture *exact, fixture *fast, const int32_t *tokens, int n, int from)
{
    state *a = fixture_state(exact), *b = fixture_state(fast);
    const size_t vocab = (size_t)exact->config->n_vocab;
    const king_job x = fixture_pass(exact, a, tokens, n, ROWS_FINAL, n);
    const king_job y = fixture_pass(fast, b, tokens, n, ROWS_FINAL, n);
    for (int i = from; i < n; i++) {
        const float *p = x.logits + (size_t)i * vocab, *q = y.logits + (size_t)i * vocab;
        const double d = kl(p, q, vocab);
        k->total += d;
        k->most = d > k->most ? d : k->most;
        k->same_top += argmax(p, (int)vocab) == argmax(q, (int)vocab);
        k->n++;
    }
    state_free(a);
    state_free(b);
}

static void kl_print(const char *name, const kl_sum *k)
{
    printf("%s: %d positions, mean KL %.3g, max %.3g, same top token %.2f %%\n", name, k->n,
           k->total / k->n, k->most, 100.0 * k->same_top / k->n);
}

/* On prompts and greedy replies of golden.json, replies only; the limit is the goal of
 * docs/kernels.md. */
TEST(int8_is_close_to_f32_on_nugget)
{
    fixture exact, fast;
    nugget_open(&exact, COMPUTE_F32);
    nugget_open(&fast, COMPUTE_INT8);
    json_doc *doc = golden_json(NUGGET "golden.json");
    const json_node *prompts = json_get(json_root(doc), "prompts");
    kl_sum k = { 0 };
    for (size_t i = 0; i < json_len(prompts); i += (size_t)test_stride()) {
        golden_prompt g;
        prompt_read(&g, json_at(prompts, i), "drafted_block_4");
        int32_t text[320];
        const int n = g.n_prompt + g.n_greedy;
        EXPECT(n <= 320);
        memcpy(text, g.prompt, (size_t)g.n_prompt * sizeof *text);
        memcpy(text + g.n_prompt, g.greedy, (size_t)g.n_greedy * sizeof *text);
        kl_add(&k, &exact, &fast, text, n, g.n_prompt - 1);
        prompt_free(&g);
    }
    kl_print("nugget", &k);
    EXPECT_NEAR(k.total / k.n, 1e-3, "mean KL");
    json_free(doc);
    fixture_close(&exact);
    fixture_close(&fast);
}

/* Random weights on random tokens: flat distributions, so the figures are for orientation. */
TEST(int8_is_close_to_f32_on_tiny_packs)
{
    static const char *const folders[] = { PACKS "king-tiny", PACKS "qwen35-tiny-affine4",
                                           PACKS "qwen35-tiny-mxfp4", PACKS "qwen35-tiny-bf16" };
    for (int i = 0; i < 4; i++) {
        fixture exact, fast;
        fixture_open(&exact,
                     (fixture_options){ .folder = folders[i], .mode = COMPUTE_F32, .kv = KV_F32 });
        fixture_open(&fast,
                     (fixture_options){ .folder = folders[i], .mode = COMPUTE_INT8, .kv = KV_F16 });
        rng r = { 5 };
        int32_t text[64];
        for (int t = 0; t < 64; t++)
            text[t] = (int32_t)rng_below(&r, (uint32_t)exact.config->n_vocab);
        kl_sum k = { 0 };
        kl_add(&k, &exact, &fast, text, 64, 0);
        kl_print(folders[i] + strlen(PACKS), &k);
        EXPECT_NEAR(k.total / k.n, 2e-2, "%s: mean KL", folders[i]);
        fixture_close(&exact);
        fixture_close(&fast);
    }
}
