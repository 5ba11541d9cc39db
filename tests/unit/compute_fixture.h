/* compute_fixture.h - random weights in every stored format, and random rows, for the tests of
 * compute. */
#ifndef COMPUTE_FIXTURE_H
#define COMPUTE_FIXTURE_H
#include "test.h"
#include <math.h>
#include "base/mem.h"
#include "base/rng.h"
#include "compute/compute.h"

/* What a pack may hold. `ternary`: bias = -scale. */
typedef struct weight_kind {
    const char *name;
    quant_format format;
    dtype type; /* of a dense matrix, or of scales and biases */
    bool ternary;
} weight_kind;

static const weight_kind weight_kinds[] = {
    { "t2 g128 f16", { QUANT_AFFINE, 2, 128 }, DTYPE_F16, true },
    { "t2 g64 bf16", { QUANT_AFFINE, 2, 64 }, DTYPE_BF16, true },
    { "t2 g32 f32", { QUANT_AFFINE, 2, 32 }, DTYPE_F32, true },
    { "affine1 g128 f16", { QUANT_AFFINE, 1, 128 }, DTYPE_F16, false },
    { "affine2 g32 f32", { QUANT_AFFINE, 2, 32 }, DTYPE_F32, false },
    { "affine2 g128 f16", { QUANT_AFFINE, 2, 128 }, DTYPE_F16, false },
    { "affine3 g64 bf16", { QUANT_AFFINE, 3, 64 }, DTYPE_BF16, false },
    { "affine4 g32 f16", { QUANT_AFFINE, 4, 32 }, DTYPE_F16, false },
    { "affine4 g64 bf16", { QUANT_AFFINE, 4, 64 }, DTYPE_BF16, false },
    { "affine4 g128 f32", { QUANT_AFFINE, 4, 128 }, DTYPE_F32, false },
    { "affine5 g64 f16", { QUANT_AFFINE, 5, 64 }, DTYPE_F16, false },
    { "affine6 g128 bf16", { QUANT_AFFINE, 6, 128 }, DTYPE_BF16, false },
    { "affine8 g32 f16", { QUANT_AFFINE, 8, 32 }, DTYPE_F16, false },
    { "affine8 g64 bf16", { QUANT_AFFINE, 8, 64 }, DTYPE_BF16, false },
    { "affine8 g128 f32", { QUANT_AFFINE, 8, 128 }, DTYPE_F32, false },
    { "mxfp4", { QUANT_MXFP4, 4, 32 }, DTYPE_U8, false },
    { "mxfp8", { QUANT_MXFP8, 8, 32 }, DTYPE_U8, false },
    { "nvfp4", { QUANT_NVFP4, 4, 16 }, DTYPE_U8, false },
    { "dense bf16", { QUANT_DENSE, 0, 0 }, DTYPE_BF16, false },
    { "dense f16", { QUANT_DENSE, 0, 0 }, DTYPE_F16, false },
    { "dense f32", { QUANT_DENSE, 0, 0 }, DTYPE_F32, false },
};
enum { WEIGHT_KINDS = sizeof weight_kinds / sizeof *weight_kinds };

typedef struct weights {
    matrix m;
    tensor weight, scales, biases;
    uint8_t *bytes[3];
    tile_matrix tiles;
} weights;

static inline tensor tensor_of(dtype t, int64_t rows, int64_t cols, uint8_t **bytes)
{
    const uint64_t n = (uint64_t)rows * (uint64_t)cols * (uint64_t)dtype_bits(t) / 8;
    *bytes = mem_alloc(n);
    EXPECT(*bytes);
    return (tensor){ .name = STR("t"),
                     .type = t,
                     .rank = 2,
                     .shape = { rows, cols },
                     .data = *bytes,
                     .bytes = n };
}
static inline void weights_free(weights *w)
{
    for (int i = 0; i < 3; i++) mem_free(w->bytes[i]);
    mem_free(w->tiles.data);
}
/* `extreme`: every code at its maximum; else random codes, scales of both signs around 0.01. */
static inline void weights_source(weights *w, const weight_kind *kind, int n_out, int n_in,
                                  uint64_t seed, bool extreme)
{
    rng r = { seed };
    const quant_format f = kind->format;
    *w = (weights){ .m = { .path = kind->name, .out = n_out, .in = n_in, .format = f } };
    if (f.mode == QUANT_DENSE) {
        w->weight = tensor_of(kind->type, n_out, n_in, &w->bytes[0]);
        for (int64_t i = 0; i < (int64_t)n_out * n_in; i++) {
            const float v = (float)(0.05 * rng_normal(&r));
            dtype_encode(kind->type, &v, 1, w->bytes[0] + i * dtype_bits(kind->type) / 8);
        }
        w->m.weight = &w->weight;
        return;
    }
    w->weight = tensor_of(DTYPE_U32, n_out, (int64_t)n_in * f.bits / 32, &w->bytes[0]);
    uint8_t *codes = mem_alloc((size_t)n_in);
    for (int row = 0; row < n_out; row++) {
        for (int k = 0; k < n_in; k++) {
            codes[k] =
                (uint8_t)(extreme ? (1u << f.bits) - 1
                                  : rng_below(&r, kind->ternary && k % 50 ? 3 : 1u << f.bits));
            if (f.mode == QUANT_MXFP8 && (codes[k] & 0x7f) == 0x7f) codes[k] ^= 1; /* NaN */
        }
        quant_pack(codes, f.bits, n_in, w->bytes[0] + (int64_t)row * n_in * f.bits / 8);
    }
    mem_free(codes);
    const int64_t groups = (int64_t)n_out * (n_in / f.group);
    w->scales = tensor_of(kind->type, n_out, n_in / f.group, &w->bytes[1]);
    w->biases = tensor_of(kind->type, n_out, n_in / f.group, &w->bytes[2]);
    for (int64_t g = 0; g < groups; g++) {
        if (f.mode != QUANT_AFFINE) {
            w->bytes[1][g] =
                (uint8_t)(f.mode == QUANT_NVFP4 ? rng_below(&r, 0x7f) : 110 + rng_below(&r, 20));
            continue;
        }
        float scale = dtype_round(kind->type, (float)(0.01 * rng_normal(&r)));
        float bias = kind->ternary ? -scale : (float)(0.02 * rng_normal(&r));
        if (g % 17 == 3) scale = 0, bias = kind->ternary ? -0.0f : bias;
        dtype_encode(kind->type, &scale, 1, w->bytes[1] + g * dtype_bits(kind->type) / 8);
        dtype_encode(kind->type, &bias, 1, w->bytes[2] + g * dtype_bits(kind->type) / 8);
    }
    w->m.weight = &w->weight;
    w->m.scales = &w->scales;
    w->m.biases = f.mode == QUANT_AFFINE ? &w->biases : NULL;
}
static inline void weights_tile(weights *w)
{
    error e;
    int64_t code3;
    EXPECT_OK(tile_plan(&w->tiles, &w->m, &e), e);
    w->tiles.data = mem_alloc(tile_bytes(&w->tiles));
    EXPECT(w->tiles.data);
    EXPECT_OK(tile_fill(&w->tiles, &w->m, 0, tile_strips(&w->tiles), w->tiles.data, &code3, &e), e);
}
static inline void weights_init(weights *w, const weight_kind *kind, int n_out, int n_in,
                                uint64_t seed)
{
    weights_source(w, kind, n_out, n_in, seed, false);
    weights_tile(w);
}

static inline float *floats(size_t n)
{
    float *x = mem_array(n, sizeof *x);
    EXPECT(x);
    return x;
}
/* normal, now and then an outlier or a zero */
static inline float *random_floats(size_t n, uint64_t seed)
{
    rng r = { seed };
    float *x = floats(n);
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)rng_normal(&r);
        const uint32_t odd = rng_below(&r, 64);
        if (odd == 0) x[i] *= 30;
        if (odd == 1) x[i] = 0;
    }
    return x;
}
static inline bool same_bits(const void *a, const void *b, size_t bytes)
{
    return memcmp(a, b, bytes) == 0;
}
static inline compute *open_compute(const char *cpu, int threads)
{
    error e;
    compute *c = NULL;
    const compute_options o = { cpu, threads };
    EXPECT_OK(compute_open(&c, &o, &e), e);
    return c;
}
#endif
