/* dtype.c - the element types of tensor files. */
#include "pack/dtype.h"
#include "base/banned.h"

static const struct {
    const char *name;
    int bits;
} types[DTYPE_COUNT] = {
    [DTYPE_BOOL] = { "BOOL", 8 },       [DTYPE_F4] = { "F4", 4 },
    [DTYPE_F6_E2M3] = { "F6_E2M3", 6 }, [DTYPE_F6_E3M2] = { "F6_E3M2", 6 },
    [DTYPE_U8] = { "U8", 8 },           [DTYPE_I8] = { "I8", 8 },
    [DTYPE_F8_E5M2] = { "F8_E5M2", 8 }, [DTYPE_F8_E4M3] = { "F8_E4M3", 8 },
    [DTYPE_F8_E8M0] = { "F8_E8M0", 8 }, [DTYPE_I16] = { "I16", 16 },
    [DTYPE_U16] = { "U16", 16 },        [DTYPE_F16] = { "F16", 16 },
    [DTYPE_BF16] = { "BF16", 16 },      [DTYPE_I32] = { "I32", 32 },
    [DTYPE_U32] = { "U32", 32 },        [DTYPE_F32] = { "F32", 32 },
    [DTYPE_C64] = { "C64", 64 },        [DTYPE_F64] = { "F64", 64 },
    [DTYPE_I64] = { "I64", 64 },        [DTYPE_U64] = { "U64", 64 },
};

const char *dtype_name(dtype t)
{
    return types[t].name;
}

bool dtype_from_name(str name, dtype *out)
{
    for (int t = 0; t < DTYPE_COUNT; t++) {
        if (str_eq(name, str_from(types[t].name))) {
            *out = (dtype)t;
            return true;
        }
    }
    return false;
}

int dtype_bits(dtype t)
{
    return types[t].bits;
}

bool dtype_is_float(dtype t)
{
    return t == DTYPE_F16 || t == DTYPE_BF16 || t == DTYPE_F32;
}

/* Exponent and fraction stand as in f32, 112 too low: one multiplication sets that right, also for
 * subnormals. What was infinite or no number ends at 65536 and up. */
float dtype_f16_to_f32(uint16_t h)
{
    const float f = dtype_f32_from_bits((uint32_t)(h & 0x7fffu) << 13) * 0x1p112f;
    const uint32_t top = f >= 65536.0f ? 0x7f800000u : 0u;
    return dtype_f32_from_bits(dtype_f32_to_bits(f) | top | (uint32_t)(h & 0x8000u) << 16);
}

uint16_t dtype_f32_to_f16(float f)
{
    const uint32_t u = dtype_f32_to_bits(f), mag = u & 0x7fffffffu;
    const uint16_t sign = (uint16_t)((u >> 16) & 0x8000u);
    if (mag > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);
    if (mag >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u); /* 65520 and up round to infinity */
    if (mag >= 0x38800000u) {                                  /* 2^-14 and up: a normal number */
        const uint32_t odd = (mag >> 13) & 1u;
        return (uint16_t)(sign | ((mag - (112u << 23) + 0xfffu + odd) >> 13));
    }
    /* Subnormal: adding 0.5 puts the ulp of f32 at 2^-24, the ulp of f16 subnormals. */
    const float shifted = dtype_f32_from_bits(mag) + 0.5f;
    return (uint16_t)(sign | (dtype_f32_to_bits(shifted) - 0x3f000000u));
}

uint16_t dtype_f32_to_bf16(float f)
{
    const uint32_t u = dtype_f32_to_bits(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((u >> 16) | 0x40u);
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

float dtype_round(dtype t, float f)
{
    CHECK(dtype_is_float(t));
    if (t == DTYPE_F16) return dtype_f16_to_f32(dtype_f32_to_f16(f));
    if (t == DTYPE_BF16) return dtype_bf16_to_f32(dtype_f32_to_bf16(f));
    return f;
}

void dtype_decode(dtype t, const void *p, int64_t n, float *out)
{
    CHECK(dtype_is_float(t));
    if (t == DTYPE_F32) {
        if (n > 0) memcpy(out, p, (size_t)n * sizeof(float));
        return;
    }
    const uint8_t *bytes = p;
    uint16_t h;
    if (t == DTYPE_BF16) {
        for (int64_t i = 0; i < n; i++) {
            memcpy(&h, bytes + 2 * i, sizeof h);
            out[i] = dtype_bf16_to_f32(h);
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        memcpy(&h, bytes + 2 * i, sizeof h);
        out[i] = dtype_f16_to_f32(h);
    }
}

void dtype_encode(dtype t, const float *in, int64_t n, void *p)
{
    CHECK(dtype_is_float(t));
    if (t == DTYPE_F32) {
        if (n > 0) memcpy(p, in, (size_t)n * sizeof(float));
        return;
    }
    uint8_t *bytes = p;
    for (int64_t i = 0; i < n; i++) {
        const uint16_t h = t == DTYPE_F16 ? dtype_f32_to_f16(in[i]) : dtype_f32_to_bf16(in[i]);
        memcpy(bytes + 2 * i, &h, sizeof h);
    }
}
