/* K3 and K4: every tier gives the bits of ref, operation by operation, for all tails and tile
 * types. */
#include "compute_fixture.h"
#include "compute/cpu/features.h"

/* A forced tier that the CPU lacks is reported as skipped, by the name in the test. */
static const cpu_ops *tier(const char *name)
{
    error e;
    EXPECT_OK(compute_check_tier(name, &e), e); /* --cpu knows it, on whatever machine */
    for (const cpu_ops *const *t = features_get()->tiers; *t; t++)
        if (strcmp((*t)->name, name) == 0) return *t;
    char why[64];
    snprintf(why, sizeof why, "no %s on this machine", name);
    skip(why);
    return NULL;
}
static void expect_same(const char *what, int n, const void *got, const void *want, size_t bytes)
{
    if (!same_bits(got, want, bytes)) FAIL("%s differs, n = %d", what, n);
}

/* ---- functions ---- */

static float float_of(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}
static void functions(const cpu_ops *t)
{
    enum { N = 4099 };
    float *x = floats(N), *got = floats(N), *want = floats(N);
    static const uint32_t edges[] = { 0,          1,          0x007fffff, 0x00800000, 0x00ffffff,
                                      0x01000000, 0x32ffffff, 0x33000000, 0x38ffffff, 0x39000000,
                                      0x3f1fffff, 0x3f200000, 0x3f2aaaaa, 0x3f2aaaab, 0x3f800000,
                                      0x3faaaaab, 0x42000000, 0x42000001, 0x427fffff, 0x42800000,
                                      0x42800001, 0x42aeac4e, 0x42aeac4f, 0x42aeac50, 0x42b17217,
                                      0x42b17218, 0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fc00000,
                                      0x7fffffff };
    enum { EDGES = sizeof edges / sizeof *edges };
    for (int f = CPU_EXP; f <= CPU_TANH; f++) {
        uint32_t u = 77;
        for (int pass = 0; pass < 60; pass++) {
            for (int i = 0; i < N; i++, u += 17461 * 2 + 1) {
                x[i] = float_of(u);
                if (pass == 0 && i < 2 * EDGES)
                    x[i] = float_of(edges[i / 2] | (i % 2 ? 0x80000000u : 0));
                if (pass % 2) x[i] = (float)(int32_t)u * 0x1p-24f;
            }
            t->eval((cpu_function)f, got, x, N);
            ref_ops.eval((cpu_function)f, want, x, N);
            expect_same("function", f, got, want, N * sizeof *got);
        }
    }
    mem_free(x);
    mem_free(got);
    mem_free(want);
}

/* ---- rows ---- */

static void rows(const cpu_ops *t)
{
    enum { MOST = 1100 };
    float *x = random_floats(MOST, 1), *w = random_floats(MOST, 2), *z = random_floats(MOST, 3),
          *b = random_floats(MOST, 4);
    float *got = floats(2 * MOST), *want = floats(2 * MOST);
    for (int n = 1; n < MOST; n += 1 + n / 40) {
        const size_t bytes = (size_t)n * sizeof *got;
#define BOTH(call)                                                \
    do {                                                          \
        const cpu_ops *o = t;                                     \
        float *y = got;                                           \
        call;                                                     \
        o = &ref_ops;                                             \
        y = want;                                                 \
        call;                                                     \
        expect_same(#call, n, got, want, 2 * MOST * sizeof *got); \
    } while (0)
        BOTH(o->rmsnorm(y, x, w, n, 1e-6f));
        BOTH(o->rmsnorm(y, x, NULL, n, 1e-6f));
        BOTH(memcpy(y, x, bytes); o->l2norm(y, n, 0.125f));
        BOTH(memcpy(y, z, bytes); o->add(y, x, (size_t)n));
        BOTH(o->swiglu(y, x, z, (size_t)n));
        BOTH(memcpy(y, x, bytes); o->softcap(y, (size_t)n, 3.0f));
        BOTH(o->gates(y, y + MOST, x, b, w, z, n));
        BOTH(o->gated_norm(y, x, z, w, n, 1e-6f));
        BOTH(memcpy(y, x, bytes); o->head_gate(y, z, n));
        BOTH(memcpy(y, x, bytes); o->rope(y, w, z, n / 2));
        BOTH(y[0] = o->finite(x, (size_t)n));
        EXPECT_INT(t->argmax(x, n), ref_ops.argmax(x, n));
        int32_t ids[2][40];
        for (int k = 1; k < 40; k += 7) {
            EXPECT_INT(t->topk(x, n, k, ids[0], got), ref_ops.topk(x, n, k, ids[1], want));
            expect_same("topk", n, got, want, (size_t)(k < n ? k : n) * sizeof *got);
            expect_same("topk ids", n, ids[0], ids[1], (size_t)(k < n ? k : n) * sizeof **ids);
        }
    }
    for (int i = 0; i < MOST; i++) x[i] = (float)(i * 7919 % 13); /* ties, then odd values */
    for (int n = 0; n < 300; n++) {
        if (n == 150) x[n / 3] = NAN, x[n / 2] = -INFINITY, x[n / 4] = -0.0f;
        int32_t ids[2][40];
        EXPECT_INT(t->argmax(x, n), ref_ops.argmax(x, n));
        EXPECT_INT(t->topk(x, n, 40, ids[0], got), ref_ops.topk(x, n, 40, ids[1], want));
        expect_same("topk ids", n, ids[0], ids[1], (size_t)(n < 40 ? n : 40) * sizeof **ids);
    }
    mem_free(x);
    mem_free(w);
    mem_free(z);
    mem_free(b);
    mem_free(got);
    mem_free(want);
}
static void rotation_and_quantization(const cpu_ops *t)
{
    enum { MOST = 4096 };
    float *x = random_floats(MOST, 9), *signs = floats(MOST), *got = floats(MOST),
          *want = floats(MOST);
    int8_t *q[2] = { mem_zalloc(MOST), mem_zalloc(MOST) };
    float scale[2][128];
    int32_t sum[2][128];
    for (int i = 0; i < MOST; i++) signs[i] = i * i % 7 < 3 ? 1.0f : -1.0f;
    for (int block = 16; block <= MOST; block *= 2) {
        t->rotate(got, x, signs, block);
        ref_ops.rotate(want, x, signs, block);
        expect_same("rotate", block, got, want, (size_t)block * sizeof *got);
        t->unrotate(got, x, signs, block);
        ref_ops.unrotate(want, x, signs, block);
        expect_same("unrotate", block, got, want, (size_t)block * sizeof *got);
    }
    for (int pass = 0; pass < 200; pass++) {
        rng r = { (uint64_t)pass };
        const float size = float_of((1 + rng_below(&r, 253)) << 23);
        for (int i = 0; i < MOST; i++) {
            x[i] = (float)rng_normal(&r) * (pass < 50 ? 1.0f : size);
            if (pass == 1) x[i] = (float)((int)rng_below(&r, 255) - 127) + 0.5f; /* ties */
            if (pass == 2) x[i] = 0;
        }
        if (pass == 3) x[700] = NAN, x[1000] = INFINITY;
        for (int group = 32; group <= 128; group *= 2) {
            for (int g = 0; g < MOST / group; g++) {
                scale[0][g] = t->quantize(q[0] + g * group, &sum[0][g], x + g * group, group);
                scale[1][g] = ref_ops.quantize(q[1] + g * group, &sum[1][g], x + g * group, group);
            }
            expect_same("codes", group, q[0], q[1], MOST);
            expect_same("scales", group, scale[0], scale[1],
                        (size_t)(MOST / group) * sizeof(float));
            expect_same("sums", group, sum[0], sum[1], (size_t)(MOST / group) * sizeof(int32_t));
        }
    }
    mem_free(x);
    mem_free(signs);
    mem_free(got);
    mem_free(want);
    mem_free(q[0]);
    mem_free(q[1]);
}
static void convolutions(const cpu_ops *t)
{
    enum { CHANNELS = 150, ROWS = 9, ALL = CHANNELS * ROWS };
    float *x = random_floats(ALL, 1), *window = random_floats(7 * CHANNELS, 2),
          *w = random_floats(8 * CHANNELS, 3);
    float *got = floats(ALL), *want = floats(ALL);
    for (int taps = 1; taps <= 8; taps++)
        for (int from = 0; from < CHANNELS; from += 37) {
            const int to = from + 61 < CHANNELS ? from + 61 : CHANNELS;
            t->conv(got, x, window, w, taps, CHANNELS, ROWS, from, to);
            ref_ops.conv(want, x, window, w, taps, CHANNELS, ROWS, from, to);
            expect_same("conv", taps, got, want, ALL * sizeof *got);
        }
    for (int have = 1; have <= 3; have++)
        for (int group = 1; group <= 75; group++) {
            if (CHANNELS % group) continue;
            t->dynconv(got, x + 2 * CHANNELS, CHANNELS, w, window, have, group);
            ref_ops.dynconv(want, x + 2 * CHANNELS, CHANNELS, w, window, have, group);
            expect_same("dynconv", group, got, want, CHANNELS * sizeof *got);
        }
    mem_free(x);
    mem_free(window);
    mem_free(w);
    mem_free(got);
    mem_free(want);
}

/* ---- recurrence and attention ---- */

static void recurrence(const cpu_ops *t)
{
    enum { ROWS = 5, OLD = 3 };
    static const int dims[] = { 16, 32, 48, 128, 256 };
    for (int i = 0; i < 5; i++)
        for (int state_rows = 1; state_rows <= CPU_STATE_ROWS; state_rows += 1 + state_rows / 8)
            for (int mode = 0; mode < 4; mode++) {
                const int dim = dims[i];
                const size_t floats_of_state = (size_t)(state_rows * dim);
                float *u = random_floats((size_t)(ROWS * 3 * dim), 1),
                      *v = random_floats(ROWS * 16, 2);
                float *g = random_floats(16, 3), *beta = random_floats(16, 4),
                      *old = random_floats((size_t)(OLD * (dim + 40)), 5);
                float *start = random_floats(floats_of_state, 6), *state[2], *out[2];
                for (int side = 0; side < 2; side++) {
                    state[side] = floats(floats_of_state);
                    out[side] = floats(2 * ROWS * 16);
                    memcpy(state[side], start, floats_of_state * sizeof *start);
                    for (int k = 0; k < 16; k++) g[k] = 1.0f / (1.0f + g[k] * g[k]);
                    /* v and the outputs have the widths of u and y: one stride each */
                    const cpu_gdn job = { .k_dim = dim,
                                          .state_rows = state_rows,
                                          .rows = ROWS,
                                          .pending = mode & 1 ? OLD : 0,
                                          .state = state[side],
                                          .final = mode & 2,
                                          .q = u,
                                          .k = u + dim,
                                          .v = u + 2 * dim,
                                          .u_stride = (size_t)(3 * dim),
                                          .g = g,
                                          .beta = beta,
                                          .g_stride = 2,
                                          .y = out[side],
                                          .y_stride = 16,
                                          .delta = out[side] + ROWS * 16,
                                          .old_k = old,
                                          .old_k_stride = (size_t)dim,
                                          .old_delta = old + OLD * dim,
                                          .old_g = g + 1 };
                    (side ? &ref_ops : t)->gdn(&job);
                    for (int k = 0; k < 16; k++) g[k] = sqrtf(1.0f / g[k] - 1.0f);
                }
                expect_same("state", dim, state[0], state[1], floats_of_state * sizeof *start);
                expect_same("y and delta", dim, out[0], out[1], 2 * ROWS * 16 * sizeof(float));
                for (int side = 0; side < 2; side++) {
                    mem_free(state[side]);
                    mem_free(out[side]);
                }
                mem_free(u);
                mem_free(v);
                mem_free(g);
                mem_free(beta);
                mem_free(old);
                mem_free(start);
            }
}
static void attention_of(const cpu_ops *t, kv_type type, int dim)
{
    const size_t bytes = cpu_kv_bytes(type, dim);
    uint8_t *blocks[2][2 * CPU_SPAN / KV_PAGE] = { { NULL } }; /* the next span's are never read */
    for (int i = 0; i < CPU_SPAN / KV_PAGE; i++) {
        float *x = random_floats((size_t)(2 * KV_PAGE * dim), (uint64_t)(i + dim));
        for (int k = 0; k < 40; k++) x[k * 17 % (2 * KV_PAGE * dim)] *= 3000; /* some beyond f16 */
        for (int side = 0; side < 2; side++) {
            blocks[side][i] = mem_alloc(bytes);
            memset(blocks[side][i], 0xff, bytes);
            for (int slot = 0; slot < KV_PAGE; slot++)
                if (i != 5 || slot < 30) /* nothing stands beyond position 350 */
                    (side ? &ref_ops : t)
                        ->kv_store(type, dim, blocks[side][i], slot, x + 2 * slot * dim,
                                   x + (2 * slot + 1) * dim);
        }
        expect_same("kv_store", dim, blocks[0][i], blocks[1][i], bytes);
        mem_free(x);
    }
    float *queries = random_floats((size_t)(CPU_QUERIES * dim), 8);
    float *out[2] = { floats((size_t)(CPU_QUERIES * (dim + 2))),
                      floats((size_t)(CPU_QUERIES * (dim + 2))) };
    float *total[2] = { floats((size_t)(dim + 2)), floats((size_t)(dim + 2)) };
    for (int i = 0; i < CPU_QUERIES * dim; i++) queries[i] *= 0.01f;
    for (int pass = 0; pass < 12; pass++) {
        rng r = { (uint64_t)pass };
        const int n = pass < 9 ? pass + 1 : CPU_QUERIES;
        int from = 0, to = 350;
        cpu_query q[2][CPU_QUERIES];
        for (int i = 0; i < n; i++) {
            /* some groups see the same, some queries stand alone */
            if (pass % 3 == 0 || i % 6 == 0) {
                from = (int)rng_below(&r, 350);
                to = from + 1 + (int)rng_below(&r, (uint32_t)(350 - from));
            }
            for (int side = 0; side < 2; side++) {
                float *o = out[side] + i * (dim + 2);
                q[side][i] = (cpu_query){ queries + i * dim, from, to, o, o + dim };
            }
        }
        t->attend(type, dim, blocks[0], q[0], n);
        ref_ops.attend(type, dim, blocks[1], q[1], n);
        expect_same("attend", dim, out[0], out[1], (size_t)(n * (dim + 2)) * sizeof(float));
        for (int side = 0; side < 2; side++) {
            const cpu_ops *o = side ? &ref_ops : t;
            total[side][dim + 1] = 0;
            for (int i = 0; i < n; i++)
                o->attend_merge(total[side], total[side] + dim, q[side][i].out, q[side][i].max_sum,
                                dim);
            o->attend_end(total[side], total[side] + dim, dim);
        }
        expect_same("attend_merge", dim, total[0], total[1], (size_t)(dim + 2) * sizeof(float));
    }
    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < CPU_SPAN / KV_PAGE; i++) mem_free(blocks[side][i]);
        mem_free(out[side]);
        mem_free(total[side]);
    }
    mem_free(queries);
}
static void attention(const cpu_ops *t)
{
    static const int dims[] = { 16, 32, 48, 64, 128, 256 };
    for (int i = 0; i < 6; i++)
        for (int type = KV_F16; type <= KV_Q8; type++) attention_of(t, (kv_type)type, dims[i]);
}

/* ---- matmuls ---- */

static void matmul_of(const cpu_ops *t, const weight_kind *kind, int n_out, int n_in, int count,
                      bool extreme)
{
    weights w;
    weights_source(&w, kind, n_out, n_in, (uint64_t)(n_out + n_in), extreme);
    weights_tile(&w);
    const int group = w.tiles.group, strips = tile_strips(&w.tiles);
    const size_t width = (size_t)n_out + 3;
    float *x = random_floats((size_t)(count * n_in), 5), *got = floats((size_t)count * width),
          *want = floats((size_t)count * width);
    t->matmul_f32(&w.tiles, x, count, got, width, 0, strips);
    ref_ops.matmul_f32(&w.tiles, x, count, want, width, 0, strips);
    expect_same(kind->name, count, got, want, (size_t)count * width * sizeof *got);
    if (group > 1) {
        const size_t groups = (size_t)count * (size_t)(n_in / group);
        const size_t room = groups + CPU_BATCH_SLACK; /* 0xff: what stands there must not matter */
        const act_q8 a = { mem_alloc(room * (size_t)group), floats(room),
                           mem_array(room, sizeof(int32_t)) };
        memset(a.q, 0xff, room * (size_t)group);
        memset(a.scale, 0xff, room * sizeof *a.scale);
        memset(a.neg_sum, 0xff, room * sizeof *a.neg_sum);
        for (int r = 0; r < count; r++)
            for (int g = 0; g < n_in / group; g++) {
                const size_t at = cpu_act_at(count, n_in / group, r, g);
                a.scale[at] = ref_ops.quantize(a.q + at * (size_t)group, &a.neg_sum[at],
                                               x + r * n_in + g * group, group);
            }
        if (extreme) /* K4: the largest sums that exist, of both signs */
            for (size_t g = 0; g < groups; g++) {
                a.neg_sum[g] = 0;
                for (int k = 0; k < group; k++) {
                    const int code = g % 3 == 0 ? 127 : g % 3 == 1 ? -127 : k % 2 ? 127 : -127;
                    a.q[g * (size_t)group + (size_t)k] = (int8_t)code;
                    a.neg_sum[g] -= code;
                }
            }
        t->matmul_q8(&w.tiles, &a, count, got, width, 0, strips);
        ref_ops.matmul_q8(&w.tiles, &a, count, want, width, 0, strips);
        expect_same(kind->name, count, got, want, (size_t)count * width * sizeof *got);
        mem_free(a.q);
        mem_free(a.scale);
        mem_free(a.neg_sum);
    }
    mem_free(x);
    mem_free(got);
    mem_free(want);
    weights_free(&w);
}
static void matmuls(const cpu_ops *t)
{
    static const int many[] = { 48, 63, 64, 65, 80, 97, 130 };
    for (int k = 0; k < WEIGHT_KINDS; k++) {
        for (int count = 1; count <= 33; count++)
            matmul_of(t, &weight_kinds[k], count % 3 ? 16 * (count % 3) : 37, 256, count, false);
        for (int c = 0; c < 7; c++) matmul_of(t, &weight_kinds[k], 21, 256, many[c], false);
        for (int n_in = 128; n_in <= 1280; n_in += 128)
            matmul_of(t, &weight_kinds[k], 21, n_in, 1 + n_in / 128 * 5 % 9, false);
        for (int n_out = 1; n_out < 36; n_out += 2)
            matmul_of(t, &weight_kinds[k], n_out, 128, 1 + n_out % 5, n_out % 3 == 0);
        matmul_of(t, &weight_kinds[k], 101, 256, 5 + k % 4, false); /* 7 strips */
        matmul_of(t, &weight_kinds[k], 32, 640, 16, true);
        matmul_of(t, &weight_kinds[k], 16, 1024, 2, true);
    }
    for (int n_in = 1; n_in < 20; n_in++) { /* float tiles take any width */
        matmul_of(t, &weight_kinds[18], 17, n_in, 5, false);
        matmul_of(t, &weight_kinds[20], 17, n_in, 6, false);
    }
}

TEST(K3_avx512_functions)
{
    functions(tier("avx512"));
}
TEST(K3_avx512_rows)
{
    rows(tier("avx512"));
}
TEST(K3_avx512_rotation_and_quantization)
{
    rotation_and_quantization(tier("avx512"));
}
TEST(K3_avx512_convolutions)
{
    convolutions(tier("avx512"));
}
TEST(K3_avx512_recurrence)
{
    recurrence(tier("avx512"));
}
TEST(K3_avx512_attention)
{
    attention(tier("avx512"));
}
TEST(K3_K4_avx512_matmuls)
{
    matmuls(tier("avx512"));
}
TEST(K3_gfni_functions)
{
    functions(tier("gfni"));
}
TEST(K3_gfni_rows)
{
    rows(tier("gfni"));
}
TEST(K3_gfni_rotation_and_quantization)
{
    rotation_and_quantization(tier("gfni"));
}
TEST(K3_gfni_convolutions)
{
    convolutions(tier("gfni"));
}
TEST(K3_gfni_recurrence)
{
    recurrence(tier("gfni"));
}
TEST(K3_gfni_attention)
{
    attention(tier("gfni"));
}
TEST(K3_K4_gfni_matmuls)
{
    matmuls(tier("gfni"));
}
TEST(K3_avxvnni_functions)
{
    functions(tier("avxvnni"));
}
TEST(K3_avxvnni_rows)
{
    rows(tier("avxvnni"));
}
TEST(K3_avxvnni_rotation_and_quantization)
{
    rotation_and_quantization(tier("avxvnni"));
}
TEST(K3_avxvnni_convolutions)
{
    convolutions(tier("avxvnni"));
}
TEST(K3_avxvnni_recurrence)
{
    recurrence(tier("avxvnni"));
}
TEST(K3_avxvnni_attention)
{
    attention(tier("avxvnni"));
}
TEST(K3_K4_avxvnni_matmuls)
{
    matmuls(tier("avxvnni"));
}
TEST(K3_avx2_functions)
{
    functions(tier("avx2"));
}
TEST(K3_avx2_rows)
{
    rows(tier("avx2"));
}
TEST(K3_avx2_rotation_and_quantization)
{
    rotation_and_quantization(tier("avx2"));
}
TEST(K3_avx2_convolutions)
{
    convolutions(tier("avx2"));
}
TEST(K3_avx2_recurrence)
{
    recurrence(tier("avx2"));
}
TEST(K3_avx2_attention)
{
    attention(tier("avx2"));
}
TEST(K3_K4_avx2_matmuls)
{
    matmuls(tier("avx2"));
}
TEST(K3_neon_functions)
{
    functions(tier("neon"));
}
TEST(K3_neon_rows)
{
    rows(tier("neon"));
}
TEST(K3_neon_rotation_and_quantization)
{
    rotation_and_quantization(tier("neon"));
}
TEST(K3_neon_convolutions)
{
    convolutions(tier("neon"));
}
TEST(K3_neon_recurrence)
{
    recurrence(tier("neon"));
}
TEST(K3_neon_attention)
{
    attention(tier("neon"));
}
TEST(K3_K4_neon_matmuls)
{
    matmuls(tier("neon"));
}
TEST(K3_i8mm_functions)
{
    functions(tier("i8mm"));
}
TEST(K3_i8mm_rows)
{
    rows(tier("i8mm"));
}
TEST(K3_i8mm_rotation_and_quantization)
{
    rotation_and_quantization(tier("i8mm"));
}
TEST(K3_i8mm_convolutions)
{
    convolutions(tier("i8mm"));
}
TEST(K3_i8mm_recurrence)
{
    recurrence(tier("i8mm"));
}
TEST(K3_i8mm_attention)
{
    attention(tier("i8mm"));
}
TEST(K3_K4_i8mm_matmuls)
{
    matmuls(tier("i8mm"));
}
TEST(K3_amx_functions)
{
    functions(tier("amx"));
}
TEST(K3_amx_rows)
{
    rows(tier("amx"));
}
TEST(K3_amx_rotation_and_quantization)
{
    rotation_and_quantization(tier("amx"));
}
TEST(K3_amx_convolutions)
{
    convolutions(tier("amx"));
}
TEST(K3_amx_recurrence)
{
    recurrence(tier("amx"));
}
TEST(K3_amx_attention)
{
    attention(tier("amx"));
}
TEST(K3_K4_amx_matmuls)
{
    matmuls(tier("amx"));
}
