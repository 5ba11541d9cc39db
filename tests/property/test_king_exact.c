/* The promise of state.h and king.h: whatever the passes were, kept rows give the bits of rows
 * appended one by one.
 *
 * A reference appends tokens one at a time and keeps the logits of every position; other runs reach
 * the same tokens through random drafts, chunks, snapshots and companions. Everything is compared
 * bit for bit. */
#include "base/digest.h"
#include "model_fixture.h"
#include "random_pack.h"

enum { TOKENS = 90, MAX_VOCAB = 4096 };

typedef struct setting {
    const char *folder;
    compute_mode mode;
    kv_type kv;
} setting;

typedef struct reference {
    fixture f;
    rng r;
    int n, vocab;
    int32_t tokens[TOKENS];
    float *logits; /* [n, vocab] */
    state *s;      /* after all of them */
} reference;

static void reference_open(reference *v, setting s, uint64_t seed, int threads)
{
    *v = (reference){ .r = { seed }, .n = TOKENS };
    fixture_open(
        &v->f,
        (fixture_options){ .folder = s.folder, .mode = s.mode, .kv = s.kv, .threads = threads });
    v->vocab = v->f.config->n_vocab;
    v->logits = mem_array((size_t)v->n * (size_t)v->vocab, sizeof *v->logits);
    v->s = fixture_state(&v->f);
    for (int i = 0; i < v->n; i++) {
        v->tokens[i] = (int32_t)rng_below(&v->r, (uint32_t)v->vocab);
        const king_job job = fixture_pass(&v->f, v->s, &v->tokens[i], 1, ROWS_FINAL, 1);
        memcpy(v->logits + (size_t)i * (size_t)v->vocab, job.logits,
               (size_t)v->vocab * sizeof(float));
    }
}

static void reference_close(reference *v)
{
    state_free(v->s);
    mem_free(v->logits);
    fixture_close(&v->f);
}

static void expect_rows(const reference *v, const float *logits, int at, int n)
{
    EXPECT_BITS(logits, v->logits + (size_t)at * (size_t)v->vocab, n * v->vocab);
}

/* Recurrent state, window, keys and values of s equal those of the reference. */
static void expect_state(reference *v, state *s)
{
    const king_config *c = v->f.config;
    const gdn_shape shape = state_gdn_shape(c);
    EXPECT_INT(state_len(s), v->n);
    for (int i = 0; i < c->n_layer; i++) {
        if (c->is_attention[i]) {
            const size_t n = (size_t)c->n_kv_head * (size_t)v->n * (size_t)c->head_dim;
            float *a = mem_array(n, sizeof *a), *b = mem_array(n, sizeof *b);
            for (int values = 0; values < 2; values++) {
                state_peek_kv(s, i, values, a);
                state_peek_kv(v->s, i, values, b);
                EXPECT_BITS(a, b, n);
            }
            mem_free(a);
            mem_free(b);
        } else {
            const float *ra, *rb, *ca, *cb;
            state_peek_gdn(s, v->f.c, i, &ra, &ca);
            state_peek_gdn(v->s, v->f.c, i, &rb, &cb);
            EXPECT_BITS(ra, rb, shape.n_v_head * shape.v_dim * shape.k_dim);
            EXPECT_BITS(ca, cb, (shape.taps - 1) * gdn_channels(&shape));
        }
    }
}

/* ---- one random step towards the tokens of the reference ---- */

typedef struct step {
    int32_t rows[STATE_MAX_PROVISIONAL];
    king_job job;
    int keep;
} step;

/* Rows of the true tokens, then drafts that are wrong; `keep` of them are right. */
static void step_begin(reference *v, state *s, step *p)
{
    error e;
    const int at = state_len(s), left = v->n - at;
    const bool final = rng_below(&v->r, 3) == 0;
    int n = 1 + (int)rng_below(&v->r, final ? 24 : STATE_MAX_PROVISIONAL);
    p->keep = (int)rng_below(&v->r, (uint32_t)n + 1);
    if (final) p->keep = n = n < left ? n : left;
    if (p->keep > left) p->keep = left;
    p->job = (king_job){ .state = s, .tokens = v->tokens + at, .n = n };
    if (!final) {
        for (int i = 0; i < n; i++) {
            p->rows[i] =
                i < p->keep ? v->tokens[at + i] : (int32_t)rng_below(&v->r, (uint32_t)v->vocab);
        }
        p->job.tokens = p->rows;
    }
    EXPECT_OK(state_begin(s, n, final ? ROWS_FINAL : ROWS_PROVISIONAL, &e), e);
}

static void step_end(reference *v, const step *p)
{
    EXPECT_INT(p->job.bad_layer, -1);
    expect_rows(v, p->job.logits, state_len(p->job.state), p->keep);
    state_commit(p->job.state, p->keep);
}

static void maybe_change_mind(reference *v, state *s)
{
    error e;
    if (rng_below(&v->r, 4) != 0) return;
    EXPECT_OK(state_begin(s, 3, ROWS_PROVISIONAL, &e), e); /* taken back before it ran */
    state_commit(s, 0);
}

static void walk_alone(setting set, uint64_t seed)
{
    reference v;
    reference_open(&v, set, seed, 1);
    for (int round = 0; round < 4; round++) {
        state *s = fixture_state(&v.f);
        while (state_len(s) < v.n) {
            step p;
            step_begin(&v, s, &p);
            king_forward(v.f.k, v.f.c, v.f.w, &p.job, 1, NULL);
            step_end(&v, &p);
            maybe_change_mind(&v, s);
        }
        expect_state(&v, s);
        state_free(s);
    }
    reference_close(&v);
}

/* Several sequences, each at its own place, in every pass. */
static void walk_together(setting set, uint64_t seed)
{
    reference v;
    reference_open(&v, set, seed, 2);
    enum { N = 4 };
    state *s[N];
    for (int i = 0; i < N; i++) s[i] = fixture_state(&v.f);
    for (bool more = true; more;) {
        step p[N];
        king_job jobs[N];
        int n = 0, rows = 0;
        more = false;
        for (int i = 0; i < N; i++) {
            if (state_len(s[i]) == v.n) continue;
            more = true;
            if (rng_below(&v.r, 4) == 0 || rows > 72) continue;
            step_begin(&v, s[i], &p[n]);
            rows += p[n].job.n;
            jobs[n] = p[n].job;
            n++;
        }
        if (n == 0) continue;
        king_forward(v.f.k, v.f.c, v.f.w, jobs, n, NULL);
        for (int i = 0; i < n; i++) {
            p[i].job = jobs[i];
            step_end(&v, &p[i]);
        }
    }
    for (int i = 0; i < N; i++) {
        expect_state(&v, s[i]);
        state_free(s[i]);
    }
    reference_close(&v);
}

/* ---- snapshots, also as bytes ---- */

typedef struct bytes {
    uint8_t *p;
    size_t n, cap, at;
} bytes;

static status put_bytes(void *arg, const void *p, size_t n, error *e)
{
    bytes *b = arg;
    (void)e;
    while (b->n + n > b->cap) {
        b->cap = b->cap ? 2 * b->cap : 1 << 16;
        b->p = realloc(b->p, b->cap);
        EXPECT(b->p != NULL);
    }
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

static void step_alone(reference *v, state *s)
{
    step p;
    step_begin(v, s, &p);
    king_forward(v->f.k, v->f.c, v->f.w, &p.job, 1, NULL);
    step_end(v, &p);
}

static void walk_with_snapshots(setting set, uint64_t seed)
{
    reference v;
    reference_open(&v, set, seed, 1);
    error e;
    state *s = fixture_state(&v.f), *other = fixture_state(&v.f);
    state_snap *kept = NULL;
    while (state_len(s) < v.n) {
        step_alone(&v, s);
        const uint32_t what = rng_below(&v.r, 5);
        if (what == 0) { /* keep this place */
            state_snap_free(kept);
            EXPECT_OK(state_snapshot(s, v.f.c, &kept, &e), e);
            EXPECT_INT(state_snap_len(kept), state_len(s));
        } else if (what == 1 && kept) { /* another state goes on from it, beside this one */
            EXPECT_OK(state_restore(other, kept, &e), e);
            for (int i = 0; i < 3 && state_len(other) < v.n; i++) step_alone(&v, other);
        } else if (what == 2 && kept) { /* through bytes */
            bytes b = { 0 };
            state_snap *copy;
            EXPECT_OK(state_snap_write(kept, put_bytes, &b, &e), e);
            EXPECT_OK(state_snap_room(&copy, v.f.config, v.f.pages, state_snap_len(kept), &e), e);
            EXPECT_OK(state_snap_fill(copy, get_bytes, &b, &e), e);
            EXPECT_INT(b.at, b.n);
            EXPECT_OK(state_restore(other, copy, &e), e);
            state_snap_free(copy);
            free(b.p);
            if (state_len(other) < v.n) step_alone(&v, other);
        } else if (what == 3 && kept && rng_below(&v.r, 2)) { /* back in time */
            EXPECT_OK(state_restore(s, kept, &e), e);
        }
    }
    expect_state(&v, s);
    if (kept) {
        EXPECT_OK(state_restore(other, kept, &e), e);
        while (state_len(other) < v.n) step_alone(&v, other);
        expect_state(&v, other);
    }
    state_snap_free(kept);
    state_free(s);
    state_free(other);
    reference_close(&v);
}

/* ---- the settings ---- */

static const setting settings[] = {
    { PACKS "king-tiny", COMPUTE_INT8, KV_F16 },
    { PACKS "king-tiny", COMPUTE_F32, KV_F32 },
    { PACKS "king-tiny", COMPUTE_INT8, KV_Q8 },
    { PACKS "qwen35-tiny-affine4", COMPUTE_INT8, KV_F16 },
    { PACKS "qwen35-tiny-affine4", COMPUTE_F32, KV_Q8 },
    { PACKS "qwen35-tiny-mxfp4", COMPUTE_INT8, KV_F32 },
    { PACKS "qwen35-tiny-bf16", COMPUTE_INT8, KV_F16 },
    { NUGGET "king", COMPUTE_INT8, KV_F16 },
};

static void everywhere(void (*walk)(setting, uint64_t))
{
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) walk(settings[i], 100 + i);
}

static void on_random_packs(void (*walk)(setting, uint64_t), uint64_t seed)
{
    for (int i = 0; i < 6; i++, seed++) {
        random_pack p = { 0 };
        if (i % 3 == 2) random_pack_king(&p, seed);
        else random_pack_plain(&p, seed);
        walk((setting){ p.dir, i % 2 ? COMPUTE_F32 : COMPUTE_INT8, (kv_type)(i % 3) }, seed);
        random_pack_remove(&p);
    }
}

TEST(any_passes_equal_one_by_one)
{
    everywhere(walk_alone);
}

TEST(companions_do_not_matter)
{
    everywhere(walk_together);
}

TEST(snapshots_equal_never_left)
{
    everywhere(walk_with_snapshots);
}

TEST(any_passes_equal_one_by_one_on_random_packs)
{
    on_random_packs(walk_alone, 1);
}

TEST(companions_do_not_matter_on_random_packs)
{
    on_random_packs(walk_together, 11);
}

TEST(snapshots_equal_never_left_on_random_packs)
{
    on_random_packs(walk_with_snapshots, 21);
}

/* ---- threads ---- */

TEST(R106_any_thread_count_gives_the_same_bits)
{
    static const setting set[] = { { PACKS "king-tiny", COMPUTE_INT8, KV_F16 },
                                   { PACKS "qwen35-tiny-affine4", COMPUTE_F32, KV_F32 } };
    for (int i = 0; i < 2; i++) {
        reference one;
        reference_open(&one, set[i], 7, 1);
        for (int threads = 2; threads <= 8; threads++) {
            fixture f;
            fixture_open(&f, (fixture_options){ .folder = set[i].folder,
                                                .mode = set[i].mode,
                                                .kv = set[i].kv,
                                                .threads = threads });
            state *s = fixture_state(&f);
            const king_job job = fixture_pass(&f, s, one.tokens, one.n, ROWS_FINAL, one.n);
            expect_rows(&one, job.logits, 0, one.n);
            state_free(s);
            fixture_close(&f);
        }
        reference_close(&one);
    }
}

/* ---- instruction sets and machines ---- */

/* SHA-256 of the logits of nugget's last 8 of 20 rows. The values below change only when the
 * arithmetic defined in docs/kernels.md does. */
static void logits_digest(const char *cpu, compute_mode mode, kv_type kv, char hex[65])
{
    fixture f;
    error e;
    fixture_open(&f,
                 (fixture_options){ .folder = NUGGET "king", .mode = mode, .kv = kv, .cpu = cpu });
    int32_t tokens[20];
    for (int i = 0; i < 20; i++) tokens[i] = 211 * i % 4000;
    state *s = fixture_state(&f);
    fixture_pass(&f, s, tokens, 12, ROWS_FINAL, 12);
    const king_job job = fixture_pass(&f, s, tokens + 12, 8, ROWS_PROVISIONAL, 8);
    EXPECT_OK(digest_sha256(job.logits, 8 * (size_t)f.config->n_vocab * sizeof(float), hex, &e), e);
    state_free(s);
    fixture_close(&f);
}

static void check_tiers(compute_mode mode, kv_type kv, const char *want)
{
    char tiers[128], *at = tiers;
    snprintf(tiers, sizeof tiers, "%s", compute_tiers());
    while (*at) {
        char *end = strchr(at, ' ');
        if (end) *end = 0;
        char hex[65];
        logits_digest(at, mode, kv, hex);
        printf("%s %s\n", at, hex);
        EXPECT_STR(hex, want);
        at = end ? end + 1 : at + strlen(at);
    }
}

TEST(R100_every_tier_and_machine_gives_the_same_bits_in_int8)
{
    check_tiers(COMPUTE_INT8, KV_F16,
                "302e9892ccf3eda1de72428f4940076b59a0836ef5190855a14e4afa69bed412");
}

TEST(R100_every_tier_and_machine_gives_the_same_bits_in_f32)
{
    check_tiers(COMPUTE_F32, KV_F32,
                "7c3527440d801a6b0956861069d81a09b54fad3065db3a848035d8d500caa10f");
}
