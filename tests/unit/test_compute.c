/* K1 and K2 through the public interface: a row's result does not depend on the number of rows or
 * threads. */
#include "compute_fixture.h"

enum { MAX_ROWS = 33, THREADS = 5 };
static const int thread_counts[THREADS] = { 1, 2, 3, 7, 16 };

static float *matmul_all(compute *c, const weights *w, const float *x, int rows,
                         const rotation *rot, compute_mode mode)
{
    const int n = (int)w->m.in, out = (int)w->m.out;
    const unsigned needs = compute_needs(&w->tiles, mode);
    float *y = floats((size_t)rows * (size_t)out);
    void *memory = mem_alloc(compute_act_bytes(rows, n, needs));
    act a;
    compute_prepare(c, &a, memory, x, rows, n, (size_t)n, rot, needs);
    const matmul_out o = { &w->tiles, y, (size_t)out };
    compute_matmul(c, &a, &o, 1, mode);
    mem_free(memory);
    return y;
}
static void matmul_is_row_independent(const weight_kind *kind, compute_mode mode)
{
    enum { N = 512, OUT = 77 };
    weights w;
    weights_init(&w, kind, OUT, N, 5);
    float *x = random_floats((size_t)MAX_ROWS * N, 6), *signs = floats(N);
    for (int i = 0; i < N; i++) signs[i] = i * 7 % 3 ? 1.0f : -1.0f;
    const rotation rot = { 256, signs };
    compute *one = open_compute(NULL, 1);
    float *want = floats((size_t)MAX_ROWS * OUT);
    for (int r = 0; r < MAX_ROWS; r++) {
        float *y = matmul_all(one, &w, x + r * N, 1, &rot, mode);
        memcpy(want + r * OUT, y, OUT * sizeof *y);
        mem_free(y);
    }
    for (int t = 0; t < THREADS; t++) {
        compute *c = open_compute(NULL, thread_counts[t]);
        for (int rows = 1; rows <= MAX_ROWS; rows += t == 0 ? 1 : 6) {
            float *y = matmul_all(c, &w, x, rows, &rot, mode);
            if (!same_bits(y, want, (size_t)rows * OUT * sizeof *y))
                FAIL("%s: %d rows, %d threads", kind->name, rows, thread_counts[t]);
            mem_free(y);
        }
        compute_close(c);
    }
    compute_close(one);
    mem_free(want);
    mem_free(signs);
    mem_free(x);
    weights_free(&w);
}
TEST(K1_K2_matmul_int8)
{
    for (int k = 0; k < WEIGHT_KINDS; k++)
        matmul_is_row_independent(&weight_kinds[k], COMPUTE_INT8);
}
TEST(K1_K2_matmul_f32)
{
    for (int k = 0; k < WEIGHT_KINDS; k++) matmul_is_row_independent(&weight_kinds[k], COMPUTE_F32);
}
/* Several matrices in one call, whose shares do not end at strips of one of them. */
TEST(matrices_together_equal_matrices_apart)
{
    enum { N = 256 };
    static const int outs[4] = { 33, 16, 100, 7 };
    weights w[4];
    float *y[4], *want[4], *x = random_floats(3 * N, 1);
    matmul_out o[4];
    compute *c = open_compute(NULL, 3);
    void *memory = mem_alloc(compute_act_bytes(3, N, ACT_G128 | ACT_G64));
    act a;
    compute_prepare(c, &a, memory, x, 3, N, N, NULL, ACT_G128 | ACT_G64);
    for (int i = 0; i < 4; i++) {
        weights_init(&w[i], &weight_kinds[i == 1 ? 8 : i == 3 ? 18 : 0], outs[i], N, (uint64_t)i);
        y[i] = floats(3 * 120);
        want[i] = floats(3 * 120);
        o[i] = (matmul_out){ &w[i].tiles, want[i], 120 };
        compute_matmul(c, &a, &o[i], 1, COMPUTE_INT8);
        o[i].y = y[i];
    }
    for (int t = 0; t < THREADS; t++) {
        compute *many = open_compute(NULL, thread_counts[t]);
        compute_matmul(many, &a, o, 4, COMPUTE_INT8);
        for (int i = 0; i < 4; i++) EXPECT(same_bits(y[i], want[i], 3 * 120 * sizeof(float)));
        compute_close(many);
    }
    for (int i = 0; i < 4; i++) {
        weights_free(&w[i]);
        mem_free(y[i]);
        mem_free(want[i]);
    }
    mem_free(memory);
    mem_free(x);
    compute_close(c);
}

/* ---- recurrence ---- */

typedef struct gdn_data {
    gdn_shape s;
    int rows;
    float *u, *g, *beta, *state; /* inputs of `rows` rows, state at the start */
} gdn_data;

static size_t state_floats(const gdn_shape *s)
{
    return (size_t)(s->n_v_head * s->v_dim * s->k_dim);
}
static gdn_data gdn_random(gdn_shape s, int rows, uint64_t seed)
{
    gdn_data d = { s,
                   rows,
                   random_floats((size_t)(rows * gdn_channels(&s)), seed),
                   floats((size_t)(rows * s.n_v_head)),
                   floats((size_t)(rows * s.n_v_head)),
                   random_floats(state_floats(&s), seed + 1) };
    float *a = random_floats((size_t)(rows * s.n_v_head), seed + 2),
          *b = random_floats((size_t)(rows * s.n_v_head), seed + 3);
    float *log_a = random_floats((size_t)s.n_v_head, seed + 4),
          *dt = random_floats((size_t)s.n_v_head, seed + 5);
    compute *c = open_compute("ref", 1);
    compute_gdn_gates(c, &s, d.u, d.g, d.beta, a, b, log_a, dt, rows);
    compute_close(c);
    mem_free(a);
    mem_free(b);
    mem_free(log_a);
    mem_free(dt);
    return d;
}
static void gdn_data_free(gdn_data *d)
{
    mem_free(d->u);
    mem_free(d->g);
    mem_free(d->beta);
    mem_free(d->state);
}
static gdn_tape tape_new(const gdn_shape *s)
{
    return (gdn_tape){ floats((size_t)(16 * s->n_k_head * s->k_dim)),
                       floats((size_t)(16 * s->n_v_head * s->v_dim)),
                       floats((size_t)(16 * s->n_v_head)) };
}
static void tape_free(gdn_tape *t)
{
    mem_free(t->k);
    mem_free(t->delta);
    mem_free(t->g);
}
/* Rows in random cuts, final or provisional with some taken back, equal the same rows one at a
 * time. */
TEST(K5_recurrence_in_any_cuts)
{
    static const gdn_shape shapes[] = { { 2, 4, 32, 48, 4 },
                                        { 1, 3, 128, 128, 4 },
                                        { 2, 6, 64, 32, 4 },
                                        { 2, 2, 16, 20, 4 } };
    for (int i = 0; i < 4; i++) {
        const gdn_shape s = shapes[i];
        const size_t bytes = state_floats(&s) * sizeof(float),
                     width = (size_t)(s.n_v_head * s.v_dim);
        gdn_data d = gdn_random(s, 40, (uint64_t)(10 * i));
        float *want = floats(40 * width), *state = floats(state_floats(&s)),
              *final = floats(state_floats(&s));
        compute *c = open_compute(NULL, 1);
        memcpy(final, d.state, bytes);
        for (int r = 0; r < 40; r++) {
            const gdn_job j = { .row = r, .rows = 1, .state = final, .final = true };
            compute_gdn(c, &s, want, d.u, d.g, d.beta, &j, 1);
        }
        compute_close(c);
        for (int run = 0; run < 8; run++) {
            rng r = { (uint64_t)run };
            float *y = floats(40 * width);
            gdn_tape tape[2] = { tape_new(&s), tape_new(&s) };
            int pending = 0, last = 0;
            c = open_compute(NULL, thread_counts[run % THREADS]);
            memcpy(state, d.state, bytes);
            for (int row = 0; row < 40;) {
                const bool at_once = run == 7, is_final = at_once || rng_below(&r, 3) == 0;
                const int left = 40 - row, most = left < 9 ? left : 9,
                          rows = at_once ? left : 1 + (int)rng_below(&r, (uint32_t)most);
                const gdn_job j = {
                    row, rows, state, pending, tape[last], is_final, tape[1 - last]
                };
                compute_gdn(c, &s, y, d.u, d.g, d.beta, &j, 1);
                pending = is_final ? 0 : (int)rng_below(&r, (uint32_t)rows + 1);
                row += is_final ? rows : pending;
                last = 1 - last;
            }
            const gdn_job flush = { 0, 0, state, pending, tape[last], true, tape[1 - last] };
            compute_gdn(c, &s, y, d.u, d.g, d.beta, &flush, 1);
            EXPECT(same_bits(y, want, 40 * width * sizeof *y));
            EXPECT(same_bits(state, final, bytes));
            compute_close(c);
            tape_free(&tape[0]);
            tape_free(&tape[1]);
            mem_free(y);
        }
        mem_free(want);
        mem_free(state);
        mem_free(final);
        gdn_data_free(&d);
    }
}

/* ---- attention ---- */

typedef struct attn_data {
    attn_shape s;
    kv_layout l;
    int rows, n_pages;
    float *q, *k, *v;
    uint8_t **pages;
} attn_data;

static attn_data attn_random(kv_type type, int n_head, int n_kv, int dim, int rows, int n_pages,
                             uint64_t seed)
{
    error e;
    attn_data d = { .s = { n_head, INT32_MAX, true, 1.0f / sqrtf((float)dim) },
                    .rows = rows,
                    .n_pages = n_pages };
    EXPECT_OK(compute_kv_layout(&d.l, type, 2, n_kv, dim, &e), e);
    d.q = random_floats((size_t)(rows * n_head * dim), seed);
    d.k = random_floats((size_t)(rows * n_kv * dim), seed + 1);
    d.v = random_floats((size_t)(rows * n_kv * dim), seed + 2);
    d.pages = mem_array((size_t)n_pages, sizeof *d.pages);
    for (int i = 0; i < n_pages; i++) {
        d.pages[i] = mem_alloc(d.l.page_bytes);
        memset(d.pages[i], 0xff, d.l.page_bytes); /* NaN wherever nothing was stored */
    }
    return d;
}
static void attn_free(attn_data *d)
{
    for (int i = 0; i < d->n_pages; i++) mem_free(d->pages[i]);
    mem_free(d->pages);
    mem_free(d->q);
    mem_free(d->k);
    mem_free(d->v);
}
/* rows [row, row + rows) at their own positions */
static void attend_rows(compute *c, attn_data *d, float *out, int row, int rows, int first)
{
    const attn_job j = { row, rows, row, first, d->pages, d->n_pages };
    compute_kv_attend(c, &d->s, &d->l, 1, out, d->q, (size_t)(d->s.n_head * d->l.head_dim),
                      (size_t)d->l.head_dim, d->k, d->v, &j, 1);
}
/* Against f64 arithmetic on the keys and values as they are stored. */
static void expect_attention(const attn_data *d, const float *out, int row, int first)
{
    const int n = row + 1, n_kv = d->l.n_kv_head;
    float *keys = floats((size_t)(n_kv * n * d->l.head_dim)),
          *values = floats((size_t)(n_kv * n * d->l.head_dim));
    compute_kv_read(&d->l, 1, false, d->pages, d->n_pages, n, keys);
    compute_kv_read(&d->l, 1, true, d->pages, d->n_pages, n, values);
    const int dim = d->l.head_dim, per = d->s.n_head / d->l.n_kv_head;
    const int64_t edge = (int64_t)row - d->s.window + 1;
    for (int h = 0; h < d->s.n_head; h++) {
        const float *q = d->q + (row * d->s.n_head + h) * dim;
        double sum = 0, worst = 0, steep = 0, most = 0, *o = mem_array((size_t)dim, sizeof *o);
        for (int p = edge > first ? (int)edge : first; p <= row; p++) {
            const float *k = keys + (h / per * n + p) * dim, *v = values + (h / per * n + p) * dim;
            double score = 0;
            for (int i = 0; i < dim; i++) score += (double)q[i] * (double)k[i];
            const double w = exp(score * (double)d->s.scale);
            sum += w;
            steep = fmax(steep, fabs(score * (double)d->s.scale));
            for (int i = 0; i < dim; i++) o[i] += w * (double)v[i];
            for (int i = 0; i < dim; i++)
                most = fabs((double)v[i]) > most ? fabs((double)v[i]) : most;
        }
        for (int i = 0; i < dim; i++) { /* GCC 12 for arm64 fails at fmax here */
            const double off = fabs(o[i] / sum - (double)out[(row * d->s.n_head + h) * dim + i]);
            if (off > worst) worst = off;
        }
        if (!(worst < 3e-7 * (2 + steep) * most)) FAIL("row %d head %d: off by %g", row, h, worst);
        mem_free(o);
    }
    mem_free(keys);
    mem_free(values);
}
TEST(K1_K2_K5_K7_attention_in_any_cuts)
{
    static const struct {
        kv_type type;
        int heads, kv, dim, rows;
    } cases[] = { { KV_F16, 6, 1, 64, 700 },
                  { KV_F32, 4, 2, 32, 1100 },
                  { KV_Q8, 4, 4, 128, 80 },
                  { KV_F32, 24, 4, 256, 70 },
                  { KV_F16, 2, 2, 16, 130 } };
    for (int i = 0; i < 5; i++) {
        attn_data d = attn_random(cases[i].type, cases[i].heads, cases[i].kv, cases[i].dim,
                                  cases[i].rows, 20, (uint64_t)i);
        const size_t width = (size_t)(cases[i].heads * cases[i].dim);
        float *want = floats((size_t)d.rows * width);
        compute *one = open_compute(NULL, 1);
        for (int r = 0; r < d.rows; r++) attend_rows(one, &d, want, r, 1, 0);
        compute_close(one);
        for (int r = 0; r < d.rows; r += 1 + r / 4) expect_attention(&d, want, r, 0);
        for (int run = 0; run < 6; run++) {
            rng r = { (uint64_t)run };
            float *out = floats((size_t)d.rows * width);
            compute *c = open_compute(NULL, thread_counts[run % THREADS]);
            for (int p = 0; p < d.n_pages; p++) memset(d.pages[p], 0xff, d.l.page_bytes);
            for (int row = 0, n; row < d.rows; row += n) {
                n = 1 + (int)rng_below(&r, run == 0 ? 700 : 150);
                if (n > d.rows - row) n = d.rows - row;
                attend_rows(c, &d, out, row, n, 0);
            }
            EXPECT(same_bits(out, want, (size_t)d.rows * width * sizeof *out));
            compute_close(c);
            mem_free(out);
        }
        mem_free(want);
        attn_free(&d);
    }
}
/* A window over a ring of pages sees the same as a window over all pages. */
TEST(window_and_ring)
{
    attn_data d = attn_random(KV_F32, 4, 2, 32, 500, 9, 3),
              ring = attn_random(KV_F32, 4, 2, 32, 500, 3, 3);
    d.s.window = ring.s.window = 100;
    float *a = floats(500 * 128), *b = floats(500 * 128);
    compute *c = open_compute(NULL, 2);
    for (int r = 0; r < 500; r++) {
        attend_rows(c, &d, a, r, 1, 0);
        attend_rows(c, &ring, b, r, 1, 0);
        if (r % 20 == 0) expect_attention(&d, a, r, 0);
    }
    EXPECT(same_bits(a, b, 500 * 128 * sizeof *a));
    /* a block that is not causal sees all of itself, and the window before it row by row */
    d.s.causal = false;
    d.s.window = 3;
    const attn_job j = { 490, 8, 490, 489, d.pages, d.n_pages };
    compute_kv_attend(c, &d.s, &d.l, 1, a, d.q, 128, 32, d.k, d.v, &j, 1);
    for (int r = 490; r < 498; r++) {
        double sum = 0, o = 0;
        for (int p = r == 490 || r == 491 ? 489 : 490; p < 498;
             p++) { /* 489 is inside the window of 490 and 491 only */
            double score = 0;
            for (int i = 0; i < 32; i++)
                score += (double)d.q[r * 128 + i] * (double)d.k[p * 64 + i];
            sum += exp(score * (double)d.s.scale);
            o += exp(score * (double)d.s.scale) * (double)d.v[p * 64 + 5];
        }
        EXPECT(fabs(o / sum - (double)a[r * 128 + 5]) < 1e-5);
    }
    compute_close(c);
    mem_free(a);
    mem_free(b);
    attn_free(&d);
    attn_free(&ring);
}
/* Sequences that share a call, and contexts that need several rounds of scratch. */
TEST(attention_of_many_sequences)
{
    enum { JOBS = 9, LONG = 3000 };
    attn_data d[JOBS];
    attn_job jobs[JOBS];
    compute *c = open_compute(NULL, 3);
    float *q = floats(JOBS * 20 * 64), *k = floats(JOBS * 20 * 32), *v = floats(JOBS * 20 * 32),
          *out = floats(JOBS * 20 * 64);
    float *want = floats(JOBS * 20 * 64), *scratch = floats((LONG + 20) * 64);
    int rows = 0;
    for (int i = 0; i < JOBS; i++) {
        const int n = i == 4 ? 20 : 1 + i, pos = i == 4 ? LONG : 100 * i;
        d[i] = attn_random(KV_F16, 2, 1, 32, pos + n, 50, (uint64_t)i);
        attend_rows(c, &d[i], scratch, 0, pos, 0);
        attend_rows(c, &d[i], scratch, pos, n, 0);
        memcpy(want + rows * 64, scratch + pos * 64, (size_t)n * 64 * sizeof *want);
        memcpy(q + rows * 64, d[i].q + pos * 64, (size_t)n * 64 * sizeof *q);
        memcpy(k + rows * 32, d[i].k + pos * 32, (size_t)n * 32 * sizeof *k);
        memcpy(v + rows * 32, d[i].v + pos * 32, (size_t)n * 32 * sizeof *v);
        jobs[i] = (attn_job){ rows, n, pos, 0, d[i].pages, 50 };
        rows += n;
    }
    compute_kv_attend(c, &d[0].s, &d[0].l, 1, out, q, 64, 32, k, v, jobs, JOBS);
    EXPECT(same_bits(out, want, (size_t)rows * 64 * sizeof *out));
    for (int i = 0; i < JOBS; i++) attn_free(&d[i]);
    mem_free(q);
    mem_free(k);
    mem_free(v);
    mem_free(out);
    mem_free(want);
    mem_free(scratch);
    compute_close(c);
}
TEST(keys_and_values_read_back)
{
    for (int t = 0; t < 3; t++) {
        attn_data d = attn_random((kv_type)t, 2, 2, 48, 150, 3, 5);
        compute *c = open_compute(NULL, 2);
        const attn_job j = { 0, 150, 0, 0, d.pages, 3 };
        compute_kv_store(c, &d.l, 1, d.k, d.v, &j, 1);
        float *got = floats(2 * 150 * 48);
        for (int values = 0; values < 2; values++) {
            compute_kv_read(&d.l, 1, values, d.pages, 3, 150, got);
            const float *x = values ? d.v : d.k;
            for (int h = 0; h < 2; h++)
                for (int p = 0; p < 150; p++)
                    for (int i = 0; i < 48; i++) {
                        const float want = x[(p * 2 + h) * 48 + i],
                                    have = got[(h * 150 + p) * 48 + i];
                        const float slack = t == KV_F32   ? 0
                                            : t == KV_F16 ? fabsf(want) / 2048 + 1e-7f
                                                          : 110.0f / 254;
                        EXPECT(fabsf(want - have) <= slack);
                    }
        }
        mem_free(got);
        attn_free(&d);
        compute_close(c);
    }
}
TEST(f16_keys_saturate)
{
    attn_data d = attn_random(KV_F16, 1, 1, 16, 1, 1, 5);
    compute *c = open_compute(NULL, 1);
    const attn_job j = { 0, 1, 0, 0, d.pages, 1 };
    float got[16];
    d.k[0] = 1e6f;
    d.k[1] = -1e6f;
    d.k[2] = 65510.0f;
    compute_kv_store(c, &d.l, 1, d.k, d.v, &j, 1);
    compute_kv_read(&d.l, 1, false, d.pages, 1, 1, got);
    EXPECT(got[0] == 65504.0f && got[1] == -65504.0f && got[2] == 65504.0f);
    attn_free(&d);
    compute_close(c);
}

/* ---- the rest ---- */

TEST(opens_only_tiers_of_this_machine)
{
    error e;
    compute *c;
    const compute_options o = { "abacus", 1 };
    EXPECT_INT(compute_open(&c, &o, &e), E_UNSUPPORTED);
    EXPECT(strstr(e.text, "abacus") && strstr(e.text, "ref"));
    EXPECT(strstr(compute_tiers(), "ref"));
    c = open_compute("ref", 2);
    EXPECT_STR(compute_tier(c), "ref");
    EXPECT_INT(compute_threads(c), 2);
    compute_close(c);
}
TEST(nothing_is_allocated_during_an_operation)
{
    weights w;
    weights_init(&w, &weight_kinds[0], 64, 1024, 1);
    float *x = random_floats(4 * 1024, 1), *y = floats(4 * 1024);
    compute *c = open_compute(NULL, 2);
    void *memory = mem_alloc(compute_act_bytes(4, 1024, ACT_G128));
    attn_data d = attn_random(KV_F16, 2, 1, 16, 200, 4, 1);
    act a;
    const matmul_out o = { &w.tiles, y, 64 };
    const int64_t before = mem_count();
    compute_prepare(c, &a, memory, x, 4, 1024, 1024, NULL, ACT_G128);
    compute_matmul(c, &a, &o, 1, COMPUTE_INT8);
    compute_rmsnorm(c, y, x, NULL, 4, 1024, 1e-6f);
    attend_rows(c, &d, y, 0, 100, 0);
    EXPECT_INT(mem_count(), before);
    attn_free(&d);
    mem_free(memory);
    mem_free(x);
    mem_free(y);
    compute_close(c);
    weights_free(&w);
}
TEST(finite_sees_every_element)
{
    compute *c = open_compute(NULL, 3);
    float *x = random_floats(50000, 1);
    EXPECT(compute_finite(c, x, 50000));
    for (int i = 0; i < 50000; i += 1777) {
        const float keep = x[i];
        x[i] = i % 2 ? NAN : -INFINITY;
        EXPECT(!compute_finite(c, x, 50000));
        x[i] = keep;
    }
    x[49999] = INFINITY;
    EXPECT(!compute_finite(c, x, 50000));
    EXPECT(compute_finite(c, x, 49999));
    mem_free(x);
    compute_close(c);
}
TEST(topk_and_argmax_order)
{
    compute *c = open_compute(NULL, 2);
    const float x[] = { 1, 5, -0.0f, 5, NAN, 7, 0.0f, -INFINITY, 7, 2 };
    int32_t ids[12];
    float values[12];
    EXPECT_INT(compute_argmax(c, x, 10), 5);
    EXPECT_INT(compute_topk(c, x, 10, 12, ids, values), 10);
    static const int want[] = { 5, 8, 1, 3, 9, 0, 2, 6, 4, 7 };
    for (int i = 0; i < 10; i++) EXPECT_INT(ids[i], want[i]);
    EXPECT(values[0] == 7 && values[8] == -INFINITY);
    EXPECT_INT(compute_topk(c, x, 10, 3, ids, values), 3);
    EXPECT(ids[0] == 5 && ids[1] == 8 && ids[2] == 1);
    float *rows = random_floats(5 * 40000, 3), each[5][9];
    int32_t of_rows[5][9];
    EXPECT_INT(compute_topk_rows(c, rows, 40000, 5, 39000, 9, of_rows[0], each[0]), 9);
    for (int r = 0; r < 5; r++) {
        compute_topk(c, rows + r * 40000, 39000, 9, ids, values);
        EXPECT(same_bits(of_rows[r], ids, sizeof of_rows[r]));
        EXPECT(same_bits(each[r], values, sizeof each[r]));
    }
    mem_free(rows);
    compute_close(c);
}
