/* Drafter: splits, companions, late starts, refusals, noise. Values:
 * tests/golden/test_golden_drafter.c. */
#include "model/selector.h"
#include "model_fixture.h"
#include "packkit.h"

enum { WIDTH = 2 * 512, CONTEXT = 72, MAX_BLOCK = 8, TOP = 8 };

typedef struct pair {
    fixture f;
    pack *p;
    drafter *d;
    drafter_work *w;
    float *rows; /* [CONTEXT, WIDTH] golden taps */
} pair;

static void pair_open(pair *v, const char *folder, compute_mode mode)
{
    error e;
    safetensors g;
    fixture_open(
        &v->f,
        (fixture_options){ .folder = PACKS "king-tiny", .mode = mode, .kv = KV_F16, .threads = 2 });
    EXPECT_OK(pack_open(&v->p, folder, NULL, &e), e);
    EXPECT_OK(drafter_open(&v->d, v->p, v->f.k, v->f.c, &(load_options){ .mode = mode }, &e), e);
    EXPECT_OK(drafter_work_new(&v->w, v->d, 48, &e), e);
    EXPECT_OK(safetensors_open(&g, PACKS "drafter-tiny-taps.safetensors", &e), e);
    v->rows = golden_f32(&g, "taps", CONTEXT * WIDTH);
    safetensors_close(&g);
}

static void pair_close(pair *v)
{
    mem_free(v->rows);
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

static void append(pair *v, drafter_state *s, int from, int n)
{
    const draft_append job = { s, v->rows + (size_t)from * WIDTH, n };
    drafter_append(v->d, v->f.c, v->w, &job, 1);
}

/* Everything a draft shows of itself. */
typedef struct shown {
    int32_t drafts[MAX_BLOCK - 1], ids[(MAX_BLOCK - 1) * TOP];
    float logits[(MAX_BLOCK - 1) * TOP], scores[(MAX_BLOCK - 1) * TOP];
    float hidden[(MAX_BLOCK - 1) * 512];
} shown;

static draft_job job_of(pair *v, drafter_state *s, int32_t anchor, int block, shown *out)
{
    memset(out, 0, sizeof *out);
    return (draft_job){ .state = s,
                        .anchor = anchor,
                        .block = block,
                        .n_vocab = v->f.config->n_vocab,
                        .drafts = out->drafts,
                        .candidate_ids = out->ids,
                        .candidate_logits = out->logits,
                        .candidate_scores = out->scores,
                        .hidden = out->hidden };
}

static void draft(pair *v, drafter_state *s, int32_t anchor, int block, shown *out)
{
    draft_job job = job_of(v, s, anchor, block, out);
    drafter_draft(v->d, v->f.c, v->w, v->f.k, v->f.w, &job, 1);
}

static void expect_same(const shown *a, const shown *b)
{
    EXPECT(memcmp(a, b, sizeof *a) == 0);
}

static const struct {
    const char *folder;
    compute_mode mode;
} settings[] = { { PACKS "drafter-tiny-bf16", COMPUTE_INT8 },
                 { PACKS "drafter-tiny-q8", COMPUTE_INT8 },
                 { PACKS "drafter-tiny-q4", COMPUTE_INT8 },
                 { PACKS "drafter-tiny-q8", COMPUTE_F32 } };

static void everywhere(void (*check)(pair *v))
{
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        pair v;
        pair_open(&v, settings[i].folder, settings[i].mode);
        check(&v);
        pair_close(&v);
    }
}

/* ---- context ---- */

static void check_splits(pair *v)
{
    rng r = { 3 };
    drafter_state *split = context_new(v);
    shown want, got;
    for (int n = 1; n <= CONTEXT; n += 1 + (int)rng_below(&r, 9)) {
        drafter_state *s = context_new(v); /* nothing of a longer one is left in it */
        drafter_state_reset(split, 0);
        append(v, s, 0, n);
        draft(v, s, 77, 8, &want);
        while (drafter_state_len(split) < n) {
            const int at = drafter_state_len(split), left = n - at;
            const int rows = 1 + (int)rng_below(&r, (uint32_t)(left < 20 ? left : 20));
            append(v, split, at, rows);
            draft(v, split, 5, 2 + (int)rng_below(&r, 7), &got); /* a block leaves no trace */
        }
        draft(v, split, 77, 8, &got);
        expect_same(&want, &got);
        drafter_state_free(s);
    }
    drafter_state_free(split);
}

TEST(any_split_of_appends_gives_the_same_bits)
{
    everywhere(check_splits);
}

static void check_late_start(pair *v)
{
    const int window = drafter_get_config(v->d)->window, from = CONTEXT - (window - 1);
    drafter_state *s = context_new(v), *late = context_new(v);
    shown want, got;
    append(v, s, 0, CONTEXT);
    drafter_state_reset(late, from);
    append(v, late, from, window - 1);
    EXPECT_INT(drafter_state_len(late), CONTEXT);
    draft(v, s, 77, 8, &want);
    draft(v, late, 77, 8, &got);
    expect_same(&want, &got);
    /* without the oldest rows it is something else: they are seen */
    drafter_state_reset(late, from + 8);
    append(v, late, from + 8, window - 9);
    draft(v, late, 77, 8, &got);
    EXPECT(memcmp(&want, &got, sizeof want) != 0);
    drafter_state_free(s);
    drafter_state_free(late);
}

TEST(the_last_rows_of_the_window_are_enough)
{
    everywhere(check_late_start);
}

typedef struct bytes {
    uint8_t *p;
    size_t n, at;
} bytes;

static status put_bytes(void *arg, const void *p, size_t n, error *e)
{
    bytes *b = arg;
    if (b->n + n > 4 << 20) return error_set(e, E_LIMIT, "more than 4 MB");
    memcpy(b->p + b->n, p, n);
    b->n += n;
    return OK;
}

static status get_bytes(void *arg, void *p, size_t n, error *e)
{
    bytes *b = arg;
    if (b->n - b->at < n) return error_set(e, E_FORMAT, "end of bytes");
    memcpy(p, b->p + b->at, n);
    b->at += n;
    return OK;
}

TEST(contexts_copy_and_travel_as_bytes)
{
    pair v;
    error e;
    pair_open(&v, PACKS "drafter-tiny-q8", COMPUTE_INT8);
    drafter_state *s = context_new(&v), *copy = context_new(&v), *read = context_new(&v);
    shown want, got;
    append(&v, s, 0, 50);
    drafter_state_copy(copy, s);
    bytes b = { mem_alloc(4 << 20), 0, 0 };
    EXPECT_OK(drafter_state_write(s, put_bytes, &b, &e), e);
    EXPECT_OK(drafter_state_read(read, get_bytes, &b, &e), e);
    EXPECT_INT(b.at, b.n);
    drafter_state *all[] = { s, copy, read };
    for (int i = 0; i < 3; i++) {
        append(&v, all[i], 50, 3);
        draft(&v, all[i], 77, 8, i == 0 ? &want : &got);
        if (i > 0) expect_same(&want, &got);
    }
    for (int field = 0; field < 10; field++) {
        int64_t old, changed;
        memcpy(&old, b.p + 8 * field, 8);
        changed = field == 2 ? -1 : field == 3 ? INT64_MAX : old + 1;
        memcpy(b.p + 8 * field, &changed, 8);
        b.at = 0;
        EXPECT_INT(drafter_state_read(read, get_bytes, &b, &e), E_FORMAT);
        memcpy(b.p + 8 * field, &old, 8);
    }
    const int64_t beyond = 51, zero = 0; /* a first position behind the last */
    memcpy(b.p + 8 * 2, &beyond, 8);
    b.at = 0;
    EXPECT_INT(drafter_state_read(read, get_bytes, &b, &e), E_FORMAT);
    memcpy(b.p + 8 * 2, &zero, 8);
    b.at = 0;
    b.n--;
    EXPECT_INT(drafter_state_read(read, get_bytes, &b, &e), E_FORMAT);
    EXPECT_INT(drafter_state_len(read), 0);
    mem_free(b.p);
    for (int i = 0; i < 3; i++) drafter_state_free(all[i]);
    pair_close(&v);
}

/* ---- several sequences ---- */

static void check_companions(pair *v)
{
    enum { N = 6 }; /* 35 drafts: more than one use of the head */
    static const int rows[N] = { 1, 17, 40, 72, 33, 5 }, block[N] = { 8, 2, 8, 7, 8, 8 };
    drafter_state *s[N];
    shown alone[N], together[N];
    draft_append appends[N];
    draft_job jobs[N];
    for (int i = 0; i < N; i++) {
        s[i] = context_new(v);
        append(v, s[i], 0, rows[i]);
        draft(v, s[i], 100 + i, block[i], &alone[i]);
        drafter_state_reset(s[i], 0);
        appends[i] = (draft_append){ s[i], v->rows, rows[i] };
        jobs[i] = job_of(v, s[i], 100 + i, block[i], &together[i]);
    }
    drafter_append(v->d, v->f.c, v->w, appends, N);
    drafter_draft(v->d, v->f.c, v->w, v->f.k, v->f.w, jobs, N);
    for (int i = 0; i < N; i++) {
        expect_same(&alone[i], &together[i]);
        drafter_state_free(s[i]);
    }
}

TEST(companions_do_not_matter)
{
    everywhere(check_companions);
}

/* ---- R078, R079 ---- */

TEST(R078_every_block_length_drafts)
{
    pair v;
    pair_open(&v, PACKS "drafter-tiny-q4", COMPUTE_INT8);
    drafter_state *s = context_new(&v);
    shown out;
    draft(&v, s, 3, 8, &out); /* without any context too */
    append(&v, s, 0, 20);
    for (int block = 2; block <= 8; block++) {
        draft(&v, s, 3, block, &out);
        for (int i = 0; i < block - 1; i++)
            EXPECT(out.drafts[i] >= 0 && out.drafts[i] < v.f.config->n_vocab);
    }
    drafter_work *small;
    error e;
    EXPECT_INT(drafter_work_new(&small, v.d, 7, &e), E_ARG); /* less than a block */
    drafter_state_free(s);
    pair_close(&v);
}

TEST(R079_a_drafter_of_another_king_is_refused)
{
    fixture f;
    error e;
    pack *p;
    drafter *d;
    static const char *const others[] = { PACKS "qwen35-tiny-affine4", NUGGET "king" };
    for (int i = 0; i < 2; i++) { /* another hidden size; another vocabulary */
        fixture_open(&f, (fixture_options){ .folder = others[i], .kv = KV_F16 });
        EXPECT_OK(pack_open(&p, PACKS "drafter-tiny-q8", NULL, &e), e);
        EXPECT_INT(drafter_open(&d, p, f.k, f.c, &(load_options){ .mode = COMPUTE_INT8 }, &e),
                   E_UNSUPPORTED);
        EXPECT(strstr(e.text, i == 0 ? "hidden size 512" : "1024") != NULL);
        EXPECT(strstr(e.text, i == 0 ? "128" : "4096") != NULL);
        pack_close(p);
        fixture_close(&f);
    }
    fixture_open(&f, (fixture_options){ .folder = PACKS "king-tiny", .kv = KV_F16 });
    EXPECT_OK(pack_open(&p, PACKS "qwen35-tiny-bf16", NULL, &e), e);
    EXPECT_INT(drafter_open(&d, p, f.k, f.c, &(load_options){ .mode = COMPUTE_INT8 }, &e),
               E_UNSUPPORTED);
    pack_close(p);
    fixture_close(&f);
}

/* ---- scales of the config, which the reference packs leave at 1 ---- */

/* A draft of block 4 by a copy of the bf16 drafter whose config has these fields more; layers
 * [2, 4, 512], embedding [512] of the anchor. */
static void draft_with(const char *more, shown *out, float *layers, float *embedding)
{
    pair v;
    char now[160];
    const kit k = kit_new("drafter-tiny-bf16");
    snprintf(now, sizeof now, "\"block_size\": 8%s", more);
    kit_edit(&k, "config.json", "\"block_size\": 8", now);
    pair_open(&v, k.folder, COMPUTE_F32);
    drafter_state *s = context_new(&v);
    append(&v, s, 0, 20);
    draft_job job = job_of(&v, s, 3, 4, out);
    job.layers = layers;
    drafter_draft(v.d, v.f.c, v.w, v.f.k, v.f.w, &job, 1);
    king_embed(v.f.k, v.f.c, embedding, &job.anchor, 1);
    drafter_state_free(s);
    pair_close(&v);
    kit_free(&k);
}

TEST(logits_are_multiplied_and_then_capped)
{
    enum { N = 3 * TOP };
    static float layers[2 * 4 * 512], embedding[512];
    shown plain, half, capped;
    draft_with("", &plain, layers, embedding);
    draft_with(", \"output_multiplier\": 0.5", &half, layers, embedding);
    draft_with(", \"output_multiplier\": 0.5, \"final_logit_softcapping\": 3", &capped, layers,
               embedding);
    EXPECT_BITS(plain.hidden, half.hidden, 3 * 512);
    for (int i = 0; i < N; i++) {
        EXPECT(half.ids[i] == plain.ids[i] && capped.ids[i] == plain.ids[i]);
        EXPECT(half.logits[i] == 0.5f * plain.logits[i]);
        EXPECT_NEAR(fabs((double)capped.logits[i] - 3 * tanh(0.5 * (double)plain.logits[i] / 3)),
                    1e-6, "capped %d", i);
    }
}

/* Beside an anchor's embedding as large as this nothing that the layers add is seen. */
TEST(embeddings_are_scaled)
{
    static float layers[2 * 4 * 512], embedding[512];
    shown out;
    draft_with(", \"input_embedding_scale\": 65536", &out, layers, embedding);
    for (int i = 0; i < 512; i++) embedding[i] *= 65536;
    EXPECT_NEAR(relative(layers, embedding, 512), 1e-2, "anchor");
}

/* The anchor sees all rows of a full window, wherever the block behind them is kept. */
TEST(a_block_behind_a_full_window_overwrites_none_of_it)
{
    enum { WINDOW = 58 };
    static float layers[2][2 * 8 * 512];
    for (int i = 0; i < 2; i++) { /* the second has room to spare, and sees as much */
        pair v;
        shown out;
        const kit k = kit_new("drafter-tiny-bf16");
        kit_edit(&k, "config.json", "\"sliding_window\": 32",
                 i ? "\"sliding_window\": 65" : "\"sliding_window\": 58");
        pair_open(&v, k.folder, COMPUTE_F32);
        drafter_state *s = context_new(&v);
        append(&v, s, 0, WINDOW - 1);
        draft_job job = job_of(&v, s, 3, 8, &out);
        job.layers = layers[i];
        drafter_draft(v.d, v.f.c, v.w, v.f.k, v.f.w, &job, 1);
        drafter_state_free(s);
        pair_close(&v);
        kit_free(&k);
    }
    EXPECT_BITS(layers[0], layers[1], 512);
}

/* ---- picking ---- */

TEST(ids_beyond_the_tokenizer_are_never_proposed)
{
    pair v;
    pair_open(&v, PACKS "drafter-tiny-bf16", COMPUTE_INT8);
    drafter_state *s = context_new(&v);
    shown out;
    append(&v, s, 0, 40);
    draft_job job = job_of(&v, s, 9, 8, &out);
    job.n_vocab = 300;
    drafter_draft(v.d, v.f.c, v.w, v.f.k, v.f.w, &job, 1);
    for (int i = 0; i < 7 * TOP; i++) EXPECT(out.ids[i] < 300);
    job.n_vocab = 3; /* fewer than candidates */
    drafter_draft(v.d, v.f.c, v.w, v.f.k, v.f.w, &job, 1);
    for (int i = 0; i < 7; i++) EXPECT(out.drafts[i] >= 0 && out.drafts[i] < 3);
    drafter_state_free(s);
    pair_close(&v);
}

/* Each draft is the argmax of score / T + noise of its own position, and the greedy one of the
 * score alone. */
static int32_t expected_pick(const shown *out, int row, float temperature, uint64_t seed, int pos)
{
    int best = row * TOP;
    double top = -INFINITY;
    for (int i = row * TOP; i < (row + 1) * TOP; i++) {
        double x = out->scores[i];
        if (temperature > 0)
            x = x / temperature + rng_gumbel(rng_key(seed, 2, (uint64_t)pos), out->ids[i]);
        if (x > top) {
            top = x;
            best = i;
        }
    }
    return out->ids[best];
}

TEST(drafts_follow_the_noise_of_the_sampler)
{
    pair v;
    pair_open(&v, PACKS "drafter-tiny-q8", COMPUTE_INT8);
    drafter_state *s = context_new(&v);
    append(&v, s, 0, 40);
    shown greedy, out;
    draft(&v, s, 9, 8, &greedy);
    int differ = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        for (int t = 0; t < 3; t++) {
            const float temperature = (float)t * 2;
            draft_job job = job_of(&v, s, 9, 8, &out);
            job.temperature = temperature;
            job.seed = seed;
            job.choice = 2;
            drafter_draft(v.d, v.f.c, v.w, v.f.k, v.f.w, &job, 1);
            for (int i = 0; i < 7; i++)
                EXPECT_INT(out.drafts[i], expected_pick(&out, i, temperature, seed, 40 + i + 1));
            if (t == 0) expect_same(&out, &greedy);
            differ += memcmp(out.drafts, greedy.drafts, sizeof out.drafts) != 0;
        }
    }
    EXPECT(differ > 20);
    drafter_state_free(s);
    pair_close(&v);
}

/* Where the cap makes all candidates alike, the one of the lowest id is taken, not the first. */
TEST(ties_go_to_the_lowest_id)
{
    enum { N = 1024, RANK = 64 };
    pair v;
    selector s;
    weights w;
    error e;
    static float logits[N], g[RANK], room[2 * RANK];
    int32_t ids[TOP];
    float values[TOP], scores[TOP];
    pair_open(&v, PACKS "drafter-tiny-bf16", COMPUTE_INT8);
    weights_init(&w);
    EXPECT_OK(selector_plan(&s, &w, v.p, drafter_get_config(v.d), &e), e);
    for (int i = 0; i < N; i++) logits[i] = (float)(100 + i / 2);
    const selector_row row = { .n = compute_topk(v.f.c, logits, N, TOP, ids, values),
                               .ids = ids,
                               .values = values,
                               .scores = scores,
                               .multiplier = 1,
                               .cap = 1,
                               .g = g }; /* 0: what usually follows does not matter */
    EXPECT_INT(selector_pick(&s, v.f.c, &row, room), 1016);
    EXPECT_INT(ids[0], 1022); /* of two equals at the top */
    for (int i = 0; i < TOP; i++) EXPECT(scores[i] == 1);
    weights_free(&w);
    pair_close(&v);
}

/* ---- memory ---- */

TEST(drafting_allocates_nothing)
{
    pair v;
    pair_open(&v, PACKS "drafter-tiny-q4", COMPUTE_INT8);
    drafter_state *s = context_new(&v);
    const int64_t before = mem_count();
    shown out;
    for (int i = 0; i < 200; i++) {
        append(&v, s, i % 60, 1 + i % 8);
        draft(&v, s, i, 2 + i % 7, &out);
    }
    EXPECT_INT(mem_count(), before);
    drafter_state_free(s);
    pair_close(&v);
}

TEST(short_memory_is_reported_and_leaks_nothing)
{
    pair v;
    error e;
    pair_open(&v, PACKS "drafter-tiny-q4", COMPUTE_INT8);
    const int64_t live = mem_live();
    drafter *d;
    drafter_state *s;
    drafter_work *w;
    const load_options how = { .mode = COMPUTE_INT8 };
    for (int what = 0; what < 3; what++) {
        for (int n = 1;; n++) {
            mem_fail_after(n);
            const status got = what == 0   ? drafter_open(&d, v.p, v.f.k, v.f.c, &how, &e)
                               : what == 1 ? drafter_state_new(&s, v.d, &e)
                                           : drafter_work_new(&w, v.d, 8, &e);
            mem_fail_after(0);
            if (got == OK) break;
            EXPECT_INT(got, E_NOMEM);
            EXPECT_INT(mem_live(), live);
        }
        if (what == 0) drafter_close(d);
        if (what == 1) drafter_state_free(s);
        if (what == 2) drafter_work_free(w);
        EXPECT_INT(mem_live(), live);
    }
    pair_close(&v);
}
