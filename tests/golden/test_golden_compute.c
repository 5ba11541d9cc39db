/* K7 against published libraries: rotation, norms, functions, rotary embedding, the delta rule,
 * convolution and quantized matmuls, on every tier of this machine. What each file holds is in the
 * README beside it. */
#include "compute_fixture.h"
#include "pack/safetensors.h"

static char where[1024];

static safetensors golden(const char *name)
{
    safetensors s;
    error e;
    snprintf(where, sizeof where, "%s/tests/golden/%s.safetensors", TEST_ROOT, name);
    EXPECT_OK(safetensors_open(&s, where, &e), e);
    return s;
}
static const tensor *find(const safetensors *s, const char *name)
{
    const tensor *t = safetensors_find(s, str_from(name));
    if (!t) FAIL("%s: no tensor %s", where, name);
    return t;
}
static float *values(const safetensors *s, const char *name)
{
    const tensor *t = find(s, name);
    float *x = floats((size_t)tensor_elements(t) + 1);
    tensor_read_f32(t, 0, tensor_elements(t), x);
    return x;
}
static void expect_near(const char *what, const float *got, const float *want, size_t n,
                        double absolute, double relative)
{
    for (size_t i = 0; i < n; i++) {
        const double limit = absolute + relative * fabs((double)want[i]);
        if (!(fabs((double)got[i] - (double)want[i]) <= limit))
            FAIL("%s: element %zu: got %.9g, want %.9g", what, i, (double)got[i], (double)want[i]);
    }
}
/* fn once for each tier of this machine */
static void each_tier(void (*fn)(compute *c))
{
    char names[64];
    snprintf(names, sizeof names, "%s ", compute_tiers());
    for (char *at = names, *end; (end = strchr(at, ' ')); at = end + 1) {
        *end = 0;
        compute *c = open_compute(at, 2);
        fn(c);
        compute_close(c);
    }
}

/* The inverse is the transform without signs, then the signs. */
static void inverse_of(compute *c, const safetensors *s, const char *from, const char *to,
                       int block, int n)
{
    float *x = values(s, from), *want = values(s, to), *signs = values(s, "signs"),
          *ones = floats((size_t)n);
    for (int k = 0; k < n; k++) ones[k] = 1;
    const rotation rot = { block, ones };
    void *memory = mem_alloc(compute_act_bytes(3, n, ACT_F32));
    act a;
    compute_prepare(c, &a, memory, x, 3, n, (size_t)n, &rot, ACT_F32);
    for (int i = 0; i < 3 * n; i++)
        if (a.x[i] * signs[i % n] != want[i]) FAIL("%s: %s: element %d differs", where, to, i);
    mem_free(memory);
    mem_free(x);
    mem_free(want);
    mem_free(signs);
    mem_free(ones);
}
/* In f16 the reference rounds once, at the end. */
static void forward_in_f16(compute *c, const safetensors *s, const rotation *rot, int n)
{
    float *x = values(s, "x_f16"), *want = values(s, "forward_f16");
    void *memory = mem_alloc(compute_act_bytes(2, n, ACT_F32));
    act a;
    compute_prepare(c, &a, memory, x, 2, n, (size_t)n, rot, ACT_F32);
    for (int i = 0; i < 2 * n; i++)
        if (dtype_round(DTYPE_F16, a.x[i]) != want[i])
            FAIL("%s: forward_f16: element %d differs", where, i);
    mem_free(memory);
    mem_free(x);
    mem_free(want);
}
static void hadamard(compute *c)
{
    static const struct {
        const char *name;
        int block, width;
    } cases[] = { { "hadamard/block512_width512", 512, 512 },
                  { "hadamard/block512_width1536", 512, 1536 },
                  { "hadamard/block1024_width1024", 1024, 1024 },
                  { "hadamard/block1024_width2048", 1024, 2048 },
                  { "hadamard/block2048_width2048", 2048, 2048 },
                  { "hadamard/block4096_width4096", 4096, 4096 } };
    for (int i = 0; i < 6; i++) {
        safetensors s = golden(cases[i].name);
        const int n = cases[i].width;
        float *signs = values(&s, "signs"), *x = values(&s, "x_f32"),
              *want = values(&s, "forward_f32");
        const rotation rot = { cases[i].block, signs };
        void *memory = mem_alloc(compute_act_bytes(3, n, ACT_F32));
        act a;
        compute_prepare(c, &a, memory, x, 3, n, (size_t)n, &rot, ACT_F32);
        if (!same_bits(a.x, want, (size_t)(3 * n) * sizeof *want))
            FAIL("%s: forward differs", where);
        mem_free(memory);
        inverse_of(c, &s, "x_f32", "inverse_f32", cases[i].block, n);
        inverse_of(c, &s, "forward_f32", "inverse_of_forward_f32", cases[i].block, n);
        if (safetensors_find(&s, STR("x_f16"))) forward_in_f16(c, &s, &rot, n);
        mem_free(signs);
        mem_free(x);
        mem_free(want);
        safetensors_close(&s);
    }
}
TEST(rotation_is_bit_equal)
{
    each_tier(hadamard);
}

/* An embedding row is the inverse rotation of an f16 row, rounded to f16. */
static void embedding(compute *c)
{
    static const struct {
        const char *name;
        int block, width;
    } cases[] = { { "hadamard/block512_width512", 512, 512 },
                  { "hadamard/block512_width1536", 512, 1536 },
                  { "hadamard/block1024_width1024", 1024, 1024 } };
    for (int i = 0; i < 3; i++) {
        safetensors s = golden(cases[i].name);
        const int n = cases[i].width;
        float *signs = values(&s, "signs"), *want = values(&s, "inverse_f16"),
              *got = floats((size_t)(3 * n));
        const rotation rot = { cases[i].block, signs };
        const matrix table = { .path = "embedding",
                               .out = 2,
                               .in = n,
                               .weight = find(&s, "x_f16") };
        const int32_t ids[] = { 1, 0, 1 };
        compute_embed(c, got, &table, &rot, ids, 3);
        for (int r = 0; r < 3; r++)
            EXPECT(same_bits(got + r * n, want + ids[r] * n, (size_t)n * sizeof *got));
        mem_free(signs);
        mem_free(want);
        mem_free(got);
        safetensors_close(&s);
    }
}
TEST(embedding_rows_are_bit_equal)
{
    each_tier(embedding);
}

static void elementwise(compute *c)
{
    safetensors s = golden("ops/elementwise");
    float *x = values(&s, "rms.x"), *w = values(&s, "rms.w"), *want = values(&s, "rms.y"),
          *got = floats(6 * 512);
    compute_rmsnorm(c, got, x, w, 6, 512, 1e-6f);
    expect_near("rms", got, want, 6 * 512, 1e-9, 1e-6);
    mem_free(want);
    want = values(&s, "rms.y_f16_input");
    for (int i = 0; i < 4 * 512; i++) x[i] = dtype_round(DTYPE_F16, x[i]);
    compute_rmsnorm(c, got, x, w, 4, 512, 1e-6f);
    expect_near("rms of f16", got, want, 4 * 512, 1e-9, 1e-6);
    mem_free(x);
    mem_free(want);
    x = values(&s, "unary.x");
    want = values(&s, "unary.silu");
    float one[68], gate[68];
    for (int i = 0; i < 68; i++) one[i] = gate[i] = 1;
    compute_swiglu(c, got, x, one, 68);
    expect_near("silu", got, want, 68, 1e-30, 3e-6); /* the reference is off by 1.2e-6 at -30 */
    mem_free(want);
    want = values(&s, "unary.sigmoid");
    compute_head_gate(c, gate, x, 68, 68, 1, 1, 68);
    expect_near("sigmoid", gate, want, 68, 1e-37, 3e-6);
    mem_free(x);
    mem_free(w);
    mem_free(want);
    mem_free(got);
    safetensors_close(&s);
}
TEST(norms_and_gates)
{
    each_tier(elementwise);
}

/* The decay of the delta rule at A_log = 0 is exp(-softplus(a)). */
static void softplus(compute *c)
{
    enum { ROWS = 17, HEADS = 4 };
    safetensors s = golden("ops/elementwise");
    const gdn_shape shape = { 1, HEADS, 32, 32, 4 };
    const size_t channels = (size_t)gdn_channels(&shape);
    float *x = values(&s, "unary.x"), *want = values(&s, "unary.softplus"),
          *u = floats(ROWS * channels);
    float g[ROWS * HEADS], beta[ROWS * HEADS];
    const float zeros[HEADS] = { 0 };
    memset(u, 0, ROWS * channels * sizeof *u);
    compute_gdn_gates(c, &shape, u, g, beta, x, x, zeros, zeros, ROWS);
    for (int i = 0; i < ROWS * HEADS; i++) {
        const double right = exp(-(double)want[i]);
        if (!(fabs((double)g[i] - right) <= right * 1e-6 * (1 + (double)want[i]) + 1e-37))
            FAIL("softplus of %g: decay is %g, want %g", (double)x[i], (double)g[i], right);
    }
    mem_free(x);
    mem_free(want);
    mem_free(u);
    safetensors_close(&s);
}
TEST(decay_by_softplus)
{
    each_tier(softplus);
}

/* Keys [x, 0, ...] and one-hot values under the query [1, 0, ...]: attention gives softmax(x). */
static void softmax(compute *c)
{
    enum { N = 70, DIM = 128 };
    safetensors s = golden("ops/elementwise");
    float *x = values(&s, "softmax.x"), *want = values(&s, "softmax.y");
    float *q = floats(N * DIM), *k = floats(N * DIM), *v = floats(N * DIM), *out = floats(N * DIM);
    kv_layout l;
    error e;
    EXPECT_OK(compute_kv_layout(&l, KV_F32, 1, 1, DIM, &e), e);
    uint8_t *memory = mem_map(2 * l.page_bytes), *pages[2] = { memory, memory + l.page_bytes };
    const attn_shape shape = { .n_head = 1, .window = INT32_MAX, .causal = false, .scale = 1 };
    const attn_job job = { .rows = N, .pages = pages, .n_pages = 2 };
    for (int row = 0; row < 4; row++) {
        memset(q, 0, N * DIM * sizeof *q);
        memset(k, 0, N * DIM * sizeof *k);
        memset(v, 0, N * DIM * sizeof *v);
        for (int i = 0; i < N; i++) {
            q[i * DIM] = 1;
            k[i * DIM] = x[row * N + i];
            v[i * DIM + i] = 1;
        }
        compute_kv_attend(c, &shape, &l, 0, out, q, DIM, DIM, k, v, &job, 1);
        for (int i = 0; i < N; i += N - 1) /* the reference is off by up to 2e-6 */
            expect_near("softmax", out + i * DIM, want + row * N, N, 1e-30, 2.5e-6);
    }
    mem_unmap(memory, 2 * l.page_bytes);
    mem_free(x);
    mem_free(want);
    mem_free(q);
    mem_free(k);
    mem_free(v);
    mem_free(out);
    safetensors_close(&s);
}
TEST(attention_is_a_softmax)
{
    each_tier(softmax);
}

static void rotary(compute *c)
{
    static const struct {
        int dim, rotary;
        double base;
    } cases[] = { { 256, 64, 1e7 }, { 128, 128, 1e7 }, { 128, 32, 1e7 }, { 64, 16, 1e4 } };
    static const int positions[] = { 0, 1, 7, 100, 4095, 65535, 262142 };
    safetensors s = golden("ops/rope");
    for (int i = 0; i < 4; i++)
        for (int p = 0; p < 7; p++) {
            const int dim = cases[i].dim;
            char name[96];
            error e;
            rope *r;
            snprintf(name, sizeof name, "hd%d_rot%d_base%d.x", dim, cases[i].rotary,
                     (int)cases[i].base);
            float *x = values(&s, name); /* [2 heads, 2 positions, dim] */
            snprintf(name, sizeof name, "hd%d_rot%d_base%d.pos%d", dim, cases[i].rotary,
                     (int)cases[i].base, positions[p]);
            float *want = values(&s, name);
            const int32_t pos[] = { positions[p], positions[p] + 1 };
            EXPECT_OK(compute_rope_new(&r, cases[i].base, cases[i].rotary, &e), e);
            compute_head_norm_rope(c, x, 2, (size_t)dim, 2, (size_t)(2 * dim), dim, NULL, 1e-6f, r,
                                   pos);
            expect_near(name, x, want, (size_t)(4 * dim), 1e-6 + 6e-8 * positions[p], 0);
            compute_rope_free(r);
            mem_free(x);
            mem_free(want);
        }
    safetensors_close(&s);
}
TEST(rotary_embedding)
{
    each_tier(rotary);
}

/* Rows [1 ..., 0 ...] at position 1 turn into cosine and sine of the frequencies. */
TEST(rotary_frequencies)
{
    static const struct {
        int dim;
        double base;
        const char *name;
    } cases[] = { { 64, 1e7, "hd256_rot64_base10000000" },
                  { 128, 1e7, "hd128_rot128_base10000000" },
                  { 32, 1e7, "hd128_rot32_base10000000" },
                  { 16, 1e4, "hd64_rot16_base10000" } };
    static const char *const tables[] = { "fast_rope", "mlxvlm" };
    safetensors s = golden("ops/rope");
    compute *c = open_compute(NULL, 1);
    for (int i = 0; i < 8; i++) {
        const int dim = cases[i / 2].dim, half = dim / 2;
        const int32_t pos[] = { 1 };
        char name[96];
        rope *r;
        error e;
        float x[128] = { 0 };
        for (int k = 0; k < half; k++) x[k] = 1;
        snprintf(name, sizeof name, "%s.inv_freq_of_%s", cases[i / 2].name, tables[i % 2]);
        float *want = values(&s, name);
        EXPECT_OK(compute_rope_new(&r, cases[i / 2].base, dim, &e), e);
        compute_head_norm_rope(c, x, 1, (size_t)dim, 1, (size_t)dim, dim, NULL, 1e-6f, r, pos);
        for (int k = 0; k < half; k++) {
            const double angle = atan2((double)x[half + k], (double)x[k]);
            if (!(fabs(angle - (double)want[k]) <= 2e-6 * (double)want[k])) /* theirs: 1.2e-6 off */
                FAIL("%s: %d: got %.9g, want %.9g", name, k, angle, (double)want[k]);
        }
        compute_rope_free(r);
        mem_free(want);
    }
    compute_close(c);
    safetensors_close(&s);
}

static void delta_rule_of(compute *c, const char *set, gdn_shape shape, int rows)
{
    safetensors s = golden("ops/gated_delta");
    const int channels = gdn_channels(&shape), kw = shape.n_k_head * shape.k_dim,
              vw = shape.n_v_head * shape.v_dim;
    char name[64];
    float *t[12], *u = floats((size_t)(rows * channels)), *y = floats((size_t)(rows * vw));
    float *g = floats((size_t)(rows * shape.n_v_head)),
          *beta = floats((size_t)(rows * shape.n_v_head));
    static const char *const names[12] = { "q_in",     "k_in",  "v",       "a",
                                           "b",        "A_log", "dt_bias", "q_normed",
                                           "k_normed", "g",     "beta",    "state_in" };
    for (int i = 0; i < 12; i++) {
        snprintf(name, sizeof name, "%s.%s", set, names[i]);
        t[i] = values(&s, name);
    }
    for (int r = 0; r < rows; r++) {
        memcpy(u + r * channels, t[0] + r * kw, (size_t)kw * sizeof *u);
        memcpy(u + r * channels + kw, t[1] + r * kw, (size_t)kw * sizeof *u);
        memcpy(u + r * channels + 2 * kw, t[2] + r * vw, (size_t)vw * sizeof *u);
    }
    compute_gdn_gates(c, &shape, u, g, beta, t[3], t[4], t[5], t[6], rows);
    for (int r = 0; r < rows; r++) {
        expect_near("q", u + r * channels, t[7] + r * kw, (size_t)kw, 1e-7, 1e-6);
        expect_near("k", u + r * channels + kw, t[8] + r * kw, (size_t)kw, 1e-7, 1e-6);
    }
    expect_near("g", g, t[9], (size_t)(rows * shape.n_v_head), 1e-6, 0);
    expect_near("beta", beta, t[10], (size_t)(rows * shape.n_v_head), 1e-6, 0);
    const gdn_job j = { .rows = rows, .state = t[11], .final = true };
    compute_gdn(c, &shape, y, u, g, beta, &j, 1);
    snprintf(name, sizeof name, "%s.y", set);
    float *want = values(&s, name);
    expect_near("y", y, want, (size_t)(rows * vw), 1e-5, 0);
    mem_free(want);
    snprintf(name, sizeof name, "%s.state_out", set);
    want = values(&s, name);
    expect_near("state", t[11], want, (size_t)(vw * shape.k_dim), 1e-5, 0);
    for (int i = 0; i < 12; i++) mem_free(t[i]);
    mem_free(want);
    mem_free(u);
    mem_free(y);
    mem_free(g);
    mem_free(beta);
    safetensors_close(&s);
}
static void delta_rule(compute *c)
{
    delta_rule_of(c, "plain", (gdn_shape){ 2, 4, 32, 48, 4 }, 70);
    delta_rule_of(c, "extreme_gates", (gdn_shape){ 1, 3, 32, 32, 4 }, 20);
}
TEST(gated_delta_rule)
{
    each_tier(delta_rule);
}

static void convolution(compute *c)
{
    safetensors s = golden("ops/conv1d");
    float *w = values(&s, "weight"), *window = values(&s, "state_in"), *x = values(&s, "rows"),
          *want = values(&s, "conv_out_silu");
    float y[5 * 24], ones[5 * 24];
    const conv_job j = { 0, 5, window };
    compute_conv(c, y, x, w, 4, 24, &j, 1);
    expect_near("conv", y, want, 5 * 24, 1e-6, 1e-6);
    mem_free(want);
    want = values(&s, "conv_out");
    for (int i = 0; i < 5 * 24; i++) ones[i] = 1;
    compute_swiglu(c, want, want, ones, 5 * 24);
    expect_near("conv before the activation", y, want, 5 * 24, 1e-6, 1e-6);
    mem_free(w);
    mem_free(window);
    mem_free(x);
    mem_free(want);
    safetensors_close(&s);
}
TEST(causal_convolution)
{
    each_tier(convolution);
}

/* f32: the reference's arithmetic. int8: the rounding of activations, half a step of max/127 each.
 * Inputs in bf16: the reference sums in bf16. */
static void matmul_of(compute *c, const char *file, quant_format f, int m, int k, int n)
{
    safetensors s = golden(file);
    char name[64];
    error e;
    int64_t code3;
    weights w = { .m = { .path = file, .out = n, .in = k, .format = f } };
    const tensor **parts[] = { &w.m.weight, &w.m.scales, &w.m.biases };
    static const char *const names[] = { "weight", "scales", "biases" };
    for (int i = 0; i < (f.mode == QUANT_AFFINE ? 3 : 2); i++) {
        snprintf(name, sizeof name, "m%d_k%d_n%d.%s", m, k, n, names[i]);
        *parts[i] = find(&s, name);
    }
    EXPECT_OK(tile_plan(&w.tiles, &w.m, &e), e);
    w.tiles.data = mem_alloc(tile_bytes(&w.tiles));
    EXPECT_OK(tile_fill(&w.tiles, &w.m, 0, tile_strips(&w.tiles), w.tiles.data, &code3, &e), e);
    snprintf(name, sizeof name, "m%d_k%d_n%d.x", m, k, n);
    float *x = values(&s, name), *y = floats((size_t)(m * n)), *row = floats((size_t)k);
    snprintf(name, sizeof name, "m%d_k%d_n%d.y_x_f32", m, k, n);
    float *want = values(&s, name);
    snprintf(name, sizeof name, "m%d_k%d_n%d.abs_bound", m, k, n);
    float *bound = values(&s, name);
    for (int turn = 0; turn < 3; turn++) {
        const int mode = turn ? COMPUTE_F32 : COMPUTE_INT8;
        const double limit = turn < 2 ? 1e-6 : 2e-2;
        if (turn == 2) {
            mem_free(want);
            snprintf(name, sizeof name, "m%d_k%d_n%d.y_x_bf16", m, k, n);
            want = values(&s, name);
            for (int i = 0; i < m * k; i++) x[i] = dtype_round(DTYPE_BF16, x[i]);
        }
        const unsigned needs = compute_needs(&w.tiles, (compute_mode)mode);
        void *memory = mem_alloc(compute_act_bytes(m, k, needs));
        act a;
        const matmul_out o = { &w.tiles, y, (size_t)n };
        compute_prepare(c, &a, memory, x, m, k, (size_t)k, NULL, needs);
        compute_matmul(c, &a, &o, 1, (compute_mode)mode);
        for (int r = 0; r < m; r++)
            for (int j = 0; j < n; j++) {
                double slack = limit * (double)bound[r * n + j];
                if (needs != ACT_F32) {
                    tile_row(&w.tiles, j, row);
                    for (int g = 0; g < k / f.group; g++) {
                        double most = 0, weight = 0;
                        for (int i = g * f.group; i < (g + 1) * f.group; i++) {
                            most = fmax(most, fabs((double)x[r * k + i]));
                            weight += fabs((double)row[i]);
                        }
                        slack += most / 254 * weight;
                    }
                }
                if (!(fabs((double)(y[r * n + j] - want[r * n + j])) <= slack))
                    FAIL("%s: turn %d, row %d output %d: got %g, want %g within %g", file, turn, r,
                         j, (double)y[r * n + j], (double)want[r * n + j], slack);
            }
        mem_free(memory);
    }
    mem_free(w.tiles.data);
    mem_free(x);
    mem_free(y);
    mem_free(row);
    mem_free(want);
    mem_free(bound);
    safetensors_close(&s);
}
static void quantized_matmuls(compute *c)
{
    static const struct {
        const char *file;
        quant_format format;
    } cases[] = { { "quant/matmul_affine_b2_g128", { QUANT_AFFINE, 2, 128 } },
                  { "quant/matmul_affine_b3_g32", { QUANT_AFFINE, 3, 32 } },
                  { "quant/matmul_affine_b4_g64", { QUANT_AFFINE, 4, 64 } },
                  { "quant/matmul_affine_b5_g64", { QUANT_AFFINE, 5, 64 } },
                  { "quant/matmul_affine_b6_g32", { QUANT_AFFINE, 6, 32 } },
                  { "quant/matmul_affine_b8_g64", { QUANT_AFFINE, 8, 64 } },
                  { "quant/matmul_mxfp4_b4_g32", { QUANT_MXFP4, 4, 32 } },
                  { "quant/matmul_mxfp8_b8_g32", { QUANT_MXFP8, 8, 32 } },
                  { "quant/matmul_nvfp4_b4_g16", { QUANT_NVFP4, 4, 16 } } };
    for (int i = 0; i < 9; i++) {
        matmul_of(c, cases[i].file, cases[i].format, 1, 128, 48);
        matmul_of(c, cases[i].file, cases[i].format, 5, 512, 24);
        matmul_of(c, cases[i].file, cases[i].format, 17, 256, 33);
    }
}
TEST(quantized_matmul)
{
    each_tier(quantized_matmuls);
}
