/* Drafter against z-lab dflash on the tiny king (tests/golden/packs/README.md), all four file
 * formats. */
#include "model/weights.h"
#include "model_fixture.h"
#include "stride.h"

static const int taps[] = { 1, 3 };

typedef struct pair {
    fixture f;
    pack *p;
    drafter *d;
    drafter_work *w;
} pair;

/* `golden` is the folder whose config and numbers go with `folder`. */
static void pair_open(pair *v, const char *folder, const char *config_path)
{
    error e;
    fixture_open(&v->f, (fixture_options){ .folder = PACKS "king-tiny",
                                           .mode = COMPUTE_F32,
                                           .kv = KV_F32,
                                           .threads = 1,
                                           .taps = taps,
                                           .n_taps = 2 });
    EXPECT_OK(pack_open(&v->p, folder, config_path, &e), e);
    EXPECT_OK(drafter_open(&v->d, v->p, v->f.k, v->f.c, &(load_options){ .mode = COMPUTE_F32 }, &e),
              e);
    EXPECT_OK(drafter_work_new(&v->w, v->d, 24, &e), e);
}

static void pair_close(pair *v)
{
    drafter_work_free(v->w);
    drafter_close(v->d);
    pack_close(v->p);
    fixture_close(&v->f);
}

static drafter_state *context_new(pair *v)
{
    error e;
    drafter_state *s;
    EXPECT_OK(drafter_state_new(&s, v->d, &e), e);
    return s;
}

static void append(pair *v, drafter_state *s, const float *rows, int n)
{
    const draft_append job = { s, rows, n };
    drafter_append(v->d, v->f.c, v->w, &job, 1);
}

/* ---- single blocks ---- */

enum { MAX_OUT = 7 * 16 };

typedef struct block_result {
    int32_t drafts[7], ids[MAX_OUT];
    float logits[MAX_OUT], scores[MAX_OUT], hidden[7 * 512];
} block_result;

static void draft(pair *v, drafter_state *s, int32_t anchor, int block, block_result *r)
{
    draft_job job = { .state = s,
                      .anchor = anchor,
                      .block = block,
                      .n_vocab = v->f.config->n_vocab,
                      .drafts = r->drafts,
                      .candidate_ids = r->ids,
                      .candidate_logits = r->logits,
                      .candidate_scores = r->scores,
                      .hidden = r->hidden };
    drafter_draft(v->d, v->f.c, v->w, v->f.k, v->f.w, &job, 1);
}

static void compare_block(const safetensors *g, const char *name, int block, const block_result *r)
{
    const int n = block - 1, k = 8;
    char key[80];
    int count;
#define KEY(part) (snprintf(key, sizeof key, "%s." part, name), key)
    float *hidden = golden_f32(g, KEY("hidden"), n * 512);
    EXPECT_NEAR(max_diff(r->hidden, hidden, (size_t)n * 512), 1e-4, "%s hidden", name);
    int32_t *ids = golden_i32(g, KEY("candidate_ids"), &count);
    EXPECT_INT(count, n * k);
    for (int i = 0; i < count; i++) EXPECT_INT(r->ids[i], ids[i]);
    float *logits = golden_f32(g, KEY("candidate_logits"), n * k);
    EXPECT_NEAR(max_diff(r->logits, logits, (size_t)(n * k)), 1e-3, "%s logits", name);
    float *scores = golden_f32(g, KEY("candidate_scores"), n * k);
    EXPECT_NEAR(max_diff(r->scores, scores, (size_t)(n * k)), 1e-3, "%s scores", name);
    int32_t *path = golden_i32(g, KEY("path"), &count);
    EXPECT_INT(count, n);
    for (int i = 0; i < n; i++) EXPECT_INT(r->drafts[i], path[i]);
#undef KEY
    mem_free(hidden);
    mem_free(ids);
    mem_free(logits);
    mem_free(scores);
    mem_free(path);
}

static int node_int(const json_node *n, const char *key)
{
    int64_t v = -1;
    EXPECT(json_i64(json_get(n, key), &v));
    return (int)v;
}

static void check_blocks(const char *folder, const char *config_path, const char *golden,
                         size_t want)
{
    pair v;
    pair_open(&v, folder, config_path);
    error e;
    safetensors source, g;
    EXPECT_OK(safetensors_open(&source, PACKS "drafter-tiny-taps.safetensors", &e), e);
    golden_open(&g, golden, "blocks.safetensors");
    float *rows = golden_f32(&source, "taps", 72 * 1024);
    char path[512];
    snprintf(path, sizeof path, "%s/golden/info.json", golden);
    json_doc *info = golden_json(path);
    const json_node *blocks = json_get(json_root(info), "blocks");
    EXPECT_INT(json_len(blocks), want);
    for (size_t i = 0; i < json_len(blocks); i++) {
        const json_node *b = json_at(blocks, i);
        const char *name = json_text(json_get(b, "case"));
        const int n = node_int(b, "context_rows"), block = node_int(b, "block");
        block_result once, split;
        drafter_state *s = context_new(&v);
        append(&v, s, rows, n);
        EXPECT_INT(drafter_state_len(s), n);
        draft(&v, s, node_int(b, "anchor"), block, &once);
        compare_block(&g, name, block, &once);
        const json_node *chunks = json_get(json_at(json_get(b, "chunked"), 0), "appends");
        if (chunks) {
            drafter_state_reset(s, 0);
            int at = 0, n_chunks;
            int32_t *sizes = json_ints(chunks, &n_chunks);
            for (int j = 0; j < n_chunks; at += sizes[j++])
                append(&v, s, rows + at * 1024, sizes[j]);
            EXPECT_INT(at, n);
            draft(&v, s, node_int(b, "anchor"), block, &split);
            EXPECT_BITS(split.hidden, once.hidden, (block - 1) * 512);
            EXPECT_BITS(split.drafts, once.drafts, block - 1);
            mem_free(sizes);
        }
        drafter_state_free(s);
    }
    json_free(info);
    mem_free(rows);
    safetensors_close(&source);
    safetensors_close(&g);
    pair_close(&v);
}

TEST(golden_blocks_bf16)
{
    check_blocks(PACKS "drafter-tiny-bf16", NULL, PACKS "drafter-tiny-bf16", 22);
}

TEST(golden_blocks_q8)
{
    check_blocks(PACKS "drafter-tiny-q8", NULL, PACKS "drafter-tiny-q8", 3);
}

TEST(golden_blocks_q4)
{
    check_blocks(PACKS "drafter-tiny-q4", NULL, PACKS "drafter-tiny-q4", 3);
}

/* A folder of weights alone, the config handed in; same numbers as q4. */
TEST(golden_blocks_q4_loose)
{
    check_blocks(PACKS "drafter-tiny-q4-loose", PACKS "drafter-tiny-bf16/config.json",
                 PACKS "drafter-tiny-q4", 3);
}

/* ---- inside one block: ctx17_block8 of the bf16 drafter ---- */

enum { INSIDE_ROWS = 17, WIDTH = 512, BLOCK = 8, KV_DIM = 32, LAYERS = 2 };

typedef struct ring_copy {
    uint8_t *bytes;
    size_t n, cap;
} ring_copy;

static status take(void *arg, const void *bytes, size_t n, error *e)
{
    (void)e;
    ring_copy *r = arg;
    EXPECT(r->n + n <= r->cap);
    memcpy(r->bytes + r->n, bytes, n);
    r->n += n;
    return OK;
}

/* The context's keys and values lie in the page behind the header of its written form. */
static void check_context(const pair *v, const drafter_state *s, const safetensors *g)
{
    error e;
    kv_layout l;
    const drafter_config *c = drafter_get_config(v->d);
    EXPECT_OK(compute_kv_layout(&l, KV_F32, LAYERS, c->n_kv_head, KV_DIM, &e), e);
    ring_copy r = { .cap = 4096 + 2 * l.page_bytes };
    r.bytes = mem_alloc(r.cap);
    EXPECT_OK(drafter_state_write(s, take, &r, &e), e);
    EXPECT(r.n > l.page_bytes && r.n < l.page_bytes + 4096);
    uint8_t *page = mem_alloc(l.page_bytes);
    memcpy(page, r.bytes + r.n - l.page_bytes, l.page_bytes);
    for (int i = 0; i < 2 * LAYERS; i++) {
        char name[80];
        float got[INSIDE_ROWS * KV_DIM];
        snprintf(name, sizeof name, "ctx17_block8.layer%d.context_%s", i / 2,
                 i % 2 ? "values" : "keys");
        float *want = golden_f32(g, name, INSIDE_ROWS * KV_DIM);
        compute_kv_read(&l, i / 2, i % 2, &page, 1, INSIDE_ROWS, got);
        EXPECT_NEAR(max_diff(got, want, INSIDE_ROWS * KV_DIM), 1e-4, "%s", name);
        mem_free(want);
    }
    mem_free(page);
    mem_free(r.bytes);
}

/* The rows that keys and values of the context are made of. */
static void check_context_rows(const pair *v, const float *rows, const safetensors *g)
{
    error e;
    weights w;
    linear fc;
    const float *norm;
    float x[INSIDE_ROWS * WIDTH], y[INSIDE_ROWS * WIDTH];
    weights_init(&w);
    EXPECT_OK(weights_matrix(&w, v->p, "fc", WIDTH, 2 * WIDTH, COMPUTE_F32, &fc, &e), e);
    EXPECT_OK(weights_vector(&w, v->p, "hidden_norm.weight", WIDTH, &norm, &e), e);
    EXPECT_OK(weights_fill(&w, v->p, v->f.c, NULL, NULL, &e), e);
    void *memory = mem_alloc(weights_act_bytes(&w, INSIDE_ROWS));
    linear_apply_one(v->f.c, memory, &fc, x, rows, INSIDE_ROWS);
    compute_rmsnorm(v->f.c, y, x, norm, INSIDE_ROWS, WIDTH, drafter_get_config(v->d)->eps);
    float *want = golden_f32(g, "ctx17_block8.context_after_hidden_norm", INSIDE_ROWS * WIDTH);
    EXPECT_NEAR(max_diff(y, want, INSIDE_ROWS * WIDTH), 1e-4, "context rows");
    mem_free(want);
    mem_free(memory);
    weights_free(&w);
}

TEST(golden_inside_a_block)
{
    pair v;
    error e;
    safetensors source, g;
    int n_tokens;
    pair_open(&v, PACKS "drafter-tiny-bf16", NULL);
    EXPECT_OK(safetensors_open(&source, PACKS "drafter-tiny-taps.safetensors", &e), e);
    golden_open(&g, PACKS "drafter-tiny-bf16", "blocks.safetensors");
    float *rows = golden_f32(&source, "taps", 72 * 2 * WIDTH);
    int32_t *tokens = golden_i32(&source, "tokens", &n_tokens), drafts[BLOCK - 1];
    const int vocab = v.f.config->n_vocab;
    float layers[LAYERS * BLOCK * WIDTH], hidden[(BLOCK - 1) * WIDTH];
    float *logits = mem_array((size_t)((BLOCK - 1) * vocab), sizeof *logits);
    drafter_state *s = context_new(&v);
    append(&v, s, rows, INSIDE_ROWS);
    check_context_rows(&v, rows, &g);
    check_context(&v, s, &g);
    draft_job job = { .state = s,
                      .anchor = tokens[INSIDE_ROWS],
                      .block = BLOCK,
                      .n_vocab = vocab,
                      .drafts = drafts,
                      .layers = layers,
                      .hidden = hidden };
    drafter_draft(v.d, v.f.c, v.w, v.f.k, v.f.w, &job, 1);
    for (int i = 0; i < LAYERS; i++) {
        char name[64];
        snprintf(name, sizeof name, "ctx17_block8.layer%d.output", i);
        float *want = golden_f32(&g, name, BLOCK * WIDTH);
        for (int r = 0; r < BLOCK; r++)
            EXPECT_NEAR(relative(layers + (i * BLOCK + r) * WIDTH, want + r * WIDTH, WIDTH), 2e-5,
                        "%s row %d", name, r);
        mem_free(want);
    }
    king_head(v.f.k, v.f.c, v.f.w, logits, hidden, BLOCK - 1);
    float *want = golden_f32(&g, "ctx17_block8.logits", (BLOCK - 1) * vocab);
    EXPECT_NEAR(max_diff(logits, want, (size_t)((BLOCK - 1) * vocab)), 3e-4, "logits");
    mem_free(want);
    mem_free(logits);
    mem_free(tokens);
    mem_free(rows);
    drafter_state_free(s);
    safetensors_close(&source);
    safetensors_close(&g);
    pair_close(&v);
}

/* ---- whole generations: draft, verify, keep what agrees ---- */

static void expect_drafts(const json_node *round, const int32_t *got, int n)
{
    int want_n;
    int32_t *want = json_ints(json_get(round, "drafts"), &want_n);
    EXPECT_INT(want_n, n);
    for (int i = 0; i < n; i++) EXPECT_INT(got[i], want[i]);
    mem_free(want);
}

static void generate(pair *v, const json_node *g)
{
    const int block = node_int(g, "block"), limit = node_int(g, "max_tokens"),
              vocab = v->f.config->n_vocab;
    int n_prompt, n_plain, n_rounds;
    int32_t *prompt = json_ints(json_get(g, "prompt"), &n_prompt);
    int32_t *plain = json_ints(json_get(g, "plain_tokens"), &n_plain);
    const json_node *exact = json_get(g, "position_exact"), *rounds = json_get(exact, "rounds");
    int32_t *accepted = json_ints(json_get(exact, "accepted_per_round"), &n_rounds);
    EXPECT_INT(n_plain, limit);

    state *s = fixture_state(&v->f);
    drafter_state *context = context_new(v);
    king_job job = fixture_pass(&v->f, s, prompt, n_prompt, ROWS_FINAL, n_prompt);
    append(v, context, job.taps, n_prompt);
    int32_t anchor = argmax(job.logits + (size_t)(n_prompt - 1) * (size_t)vocab, vocab);
    EXPECT_INT(anchor, plain[0]);
    int n = 1, round = 0;
    for (; n < limit; round++) {
        const int b = block < limit - n + 1 ? block : limit - n + 1;
        int32_t row[8] = { anchor };
        block_result r;
        EXPECT_INT(drafter_state_len(context), state_len(s));
        draft(v, context, anchor, b, &r);
        memcpy(row + 1, r.drafts, (size_t)(b - 1) * sizeof *row);
        error e;
        EXPECT_OK(state_begin(s, b, ROWS_PROVISIONAL, &e), e);
        job = (king_job){ .state = s, .tokens = row, .n = b };
        king_forward(v->f.k, v->f.c, v->f.w, &job, 1, NULL);
        int a = 0;
        int32_t y = argmax(job.logits, vocab);
        while (a < b - 1 && row[a + 1] == y)
            y = argmax(job.logits + (size_t)++a * (size_t)vocab, vocab);
        state_commit(s, a + 1);
        append(v, context, job.taps, a + 1);
        EXPECT(round < n_rounds);
        if (rounds) expect_drafts(json_at(rounds, (size_t)round), r.drafts, b - 1);
        for (int i = 0; i <= a && n + i < limit; i++)
            EXPECT_INT(i < a ? row[i + 1] : y, plain[n + i]);
        EXPECT_INT(a + 1 < limit - n ? a : limit - n - 1, accepted[round]);
        n += a + 1;
        anchor = y;
    }
    EXPECT_INT(round, n_rounds);
    drafter_state_free(context);
    state_free(s);
    mem_free(prompt);
    mem_free(plain);
    mem_free(accepted);
}

static void check_generations(const char *folder, const char *config_path, const char *golden,
                              size_t want)
{
    pair v;
    pair_open(&v, folder, config_path);
    char path[512];
    snprintf(path, sizeof path, "%s/golden/info.json", golden);
    json_doc *info = golden_json(path);
    const json_node *list = json_get(json_root(info), "generations");
    EXPECT_INT(json_len(list), want);
    for (size_t i = 0; i < json_len(list); i += (size_t)test_stride())
        generate(&v, json_at(list, i));
    json_free(info);
    pair_close(&v);
}

TEST(golden_generations_bf16)
{
    check_generations(PACKS "drafter-tiny-bf16", NULL, PACKS "drafter-tiny-bf16", 16);
}

TEST(golden_generations_q8)
{
    check_generations(PACKS "drafter-tiny-q8", NULL, PACKS "drafter-tiny-q8", 8);
}

TEST(golden_generations_q4)
{
    check_generations(PACKS "drafter-tiny-q4", NULL, PACKS "drafter-tiny-q4", 8);
}

TEST(golden_generations_q4_loose)
{
    check_generations(PACKS "drafter-tiny-q4-loose", PACKS "drafter-tiny-bf16/config.json",
                      PACKS "drafter-tiny-q4", 8);
}
