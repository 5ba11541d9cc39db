/* quant.c - MLX quantization, after the CPU code of mlx 0.32.4 (mlx/backend/cpu/quantized.cpp,
 * unary_ops.h): the same order of operations, the same roundings. */
#include "pack/quant.h"
#include <math.h>
#include <stdio.h>
#include "base/banned.h"

enum { MAX_GROUP = 128 };

static const struct {
    const char *name;
    quant_format standard;
} modes[] = {
    [QUANT_DENSE] = { "dense", { QUANT_DENSE, 0, 0 } },
    [QUANT_AFFINE] = { "affine", { QUANT_AFFINE, 4, 64 } },
    [QUANT_MXFP4] = { "mxfp4", { QUANT_MXFP4, 4, 32 } },
    [QUANT_MXFP8] = { "mxfp8", { QUANT_MXFP8, 8, 32 } },
    [QUANT_NVFP4] = { "nvfp4", { QUANT_NVFP4, 4, 16 } },
};

const float quant_e2m1[16] = { 0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                               -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f };

const char *quant_mode_name(quant_mode m)
{
    return modes[m].name;
}

bool quant_mode_from_name(str name, quant_mode *out)
{
    for (size_t m = QUANT_AFFINE; m < sizeof modes / sizeof *modes; m++)
        if (str_eq(name, str_from(modes[m].name))) {
            *out = (quant_mode)m;
            return true;
        }
    return false;
}

quant_format quant_default(quant_mode m)
{
    return modes[m].standard;
}

bool quant_equal(quant_format a, quant_format b)
{
    return a.mode == b.mode && a.bits == b.bits && a.group == b.group;
}

bool quant_is_legal(quant_format f)
{
    if (f.mode != QUANT_AFFINE) return quant_equal(f, quant_default(f.mode));
    const bool bits = (f.bits >= 1 && f.bits <= 6) || f.bits == 8;
    return bits && (f.group == 32 || f.group == 64 || f.group == 128);
}

const char *quant_format_text(quant_format f, char *text, size_t cap)
{
    if (f.mode == QUANT_DENSE) snprintf(text, cap, "dense");
    else snprintf(text, cap, "%s %d-bit g%d", modes[f.mode].name, f.bits, f.group);
    return text;
}

unsigned quant_code(const uint8_t *row, int bits, int64_t k)
{
    const int64_t bit = k * bits;
    const unsigned shift = (unsigned)(bit & 7), mask = (1u << bits) - 1u;
    unsigned window = row[bit >> 3];
    if (shift + (unsigned)bits > 8) window |= (unsigned)row[(bit >> 3) + 1] << 8;
    return (window >> shift) & mask;
}

/* Eight codes of `bits` bits at the low end of `word`, spread over eight bytes: halved three times,
 * the upper half moving up each time. */
static uint64_t spread(uint64_t word, int bits)
{
    const uint64_t four = (UINT64_C(1) << 4 * bits) - 1;
    const uint64_t two = ((UINT64_C(1) << 2 * bits) - 1) * UINT64_C(0x0000000100000001);
    const uint64_t one = ((UINT64_C(1) << bits) - 1) * UINT64_C(0x0001000100010001);
    word = (word & four) | (word >> 4 * bits & four) << 32;
    word = (word & two) | (word >> 2 * bits & two) << 16;
    return (word & one) | (word >> bits & one) << 8;
}

void quant_unpack(const uint8_t *row, int bits, int64_t n, uint8_t *codes)
{
    const int64_t bytes = n * bits / 8;
    int64_t k = 0;
    for (int64_t at = 0; at + 8 <= bytes; at += bits, k += 8) {
        uint64_t word;
        memcpy(&word, row + at, sizeof word);
        word = spread(word, bits);
        memcpy(codes + k, &word, sizeof word);
    }
    for (; k < n; k++) codes[k] = (uint8_t)quant_code(row, bits, k);
}

void quant_pack(const uint8_t *codes, int bits, int64_t n, uint8_t *row)
{
    unsigned window = 0;
    int filled = 0;
    for (int64_t k = 0; k < n; k++) {
        window |= (unsigned)codes[k] << filled;
        filled += bits;
        while (filled >= 8) {
            *row++ = (uint8_t)window;
            window >>= 8;
            filled -= 8;
        }
    }
    CHECK(filled == 0);
}

float quant_e4m3(uint8_t b)
{
    const uint32_t sign = (uint32_t)(b & 0x80u) << 24, mag = b & 0x7fu;
    if (mag == 0x7fu) return dtype_f32_from_bits(sign | 0x7fc00000u);
    if (mag >= 8u) return dtype_f32_from_bits(sign | ((mag << 20) + (120u << 23)));
    return dtype_f32_from_bits(sign | dtype_f32_to_bits((float)mag * 0x1p-9f));
}

float quant_e8m0(uint8_t s)
{
    return s == 0 ? 0x1p-127f : dtype_f32_from_bits((uint32_t)s << 23);
}

float quant_element(quant_mode m, unsigned code)
{
    CHECK(m != QUANT_DENSE && m != QUANT_AFFINE);
    return m == QUANT_MXFP8 ? quant_e4m3((uint8_t)code) : quant_e2m1[code & 15u];
}

float quant_scale(quant_mode m, dtype t, const uint8_t *scales, int64_t g)
{
    if (m == QUANT_NVFP4) return quant_e4m3(scales[g]);
    if (m != QUANT_AFFINE) return quant_e8m0(scales[g]);
    float scale;
    dtype_decode(t, scales + g * (dtype_bits(t) / 8), 1, &scale);
    return scale;
}

void quant_decode_row(quant_format f, const uint8_t *row, const uint8_t *scales,
                      const uint8_t *biases, dtype scale_type, dtype result, int64_t n, float *out)
{
    uint8_t codes[MAX_GROUP];
    CHECK(quant_is_legal(f) && n % f.group == 0);
    const bool affine = f.mode == QUANT_AFFINE;
    for (int64_t g = 0; g < n / f.group; g++) {
        const float scale = quant_scale(f.mode, scale_type, scales, g);
        const float bias = affine ? quant_scale(f.mode, scale_type, biases, g) : 0.0f;
        float *w = out + g * f.group;
        quant_unpack(row + quant_row_bytes(f, g * f.group), f.bits, f.group, codes);
        for (int j = 0; j < f.group; j++) {
            const float element = affine ? (float)codes[j] : quant_element(f.mode, codes[j]);
            w[j] = dtype_round(result, scale * element);
            if (affine) w[j] = dtype_round(result, w[j] + bias);
        }
    }
}

/* Nearest whole number, ties to even. */
static float round_even(float x)
{
    const float big = 0x1p23f; /* from here on the ulp of f32 is 1 */
    if (!(fabsf(x) < big)) return x;
    return x < 0.0f ? x - big + big : x + big - big;
}

static void encode_affine(quant_format f, const float *w, dtype t, uint8_t *codes, uint8_t *scale,
                          uint8_t *bias)
{
    const float levels = (float)((1 << f.bits) - 1), eps = 1e-7f;
    float low = w[0], high = w[0];
    for (int j = 1; j < f.group; j++) {
        if (w[j] < low) low = w[j];
        if (w[j] > high) high = w[j];
    }
    float s = (high - low) / levels, b = low;
    if (s < eps) s = eps;
    if (f.bits > 1) { /* one bit: low and high as they are */
        const bool side = fabsf(low) > fabsf(high);
        const float edge = side ? low : high;
        if (!side) s = -s;
        const float q0 = round_even(edge / s);
        b = q0 != 0.0f ? edge : 0.0f;
        if (q0 != 0.0f) s = edge / q0;
    }
    for (int j = 0; j < f.group; j++) {
        float q = round_even((w[j] - b) / s);
        if (!(q > 0.0f)) q = 0.0f;
        if (q > levels) q = levels;
        codes[j] = (uint8_t)q;
    }
    dtype_encode(t, &s, 1, scale);
    dtype_encode(t, &b, 1, bias);
}

/* The byte of E4M3 nearest to f, ties to even, saturating at 448. */
static uint8_t encode_e4m3(float f)
{
    const uint32_t u = dtype_f32_to_bits(f), mag = u & 0x7fffffffu;
    const uint8_t sign = (uint8_t)((u >> 24) & 0x80u);
    if (mag >= 0x43e00000u) return (uint8_t)(sign | 0x7eu);
    if (mag < 0x3c800000u) { /* below 2^-6: adding 2^14 puts the ulp at 2^-9 */
        const float shifted = dtype_f32_from_bits(mag) + 0x1p14f;
        return (uint8_t)(sign | (dtype_f32_to_bits(shifted) - 0x46800000u));
    }
    const uint32_t odd = (mag >> 20) & 1u;
    return (uint8_t)(sign | ((mag - (120u << 23) + 0x7ffffu + odd) >> 20));
}

/* First nearest entry of the table: midpoints go to the smaller magnitude, negatives that round to
 * zero become code 0. */
static uint8_t encode_e2m1(float x)
{
    int best = 0;
    for (int c = 1; c < 16; c++)
        if (fabsf(x - quant_e2m1[c]) < fabsf(x - quant_e2m1[best])) best = c;
    return (uint8_t)best;
}

/* ceil(log2(x)) of a positive finite x, as float arithmetic sees it: log2 rounded to f32 first, so
 * that a few ulps above a power of two still count as that power. */
static int ceil_log2(float x)
{
    int exponent = (int)(dtype_f32_to_bits(x) >> 23) - 127;
    if (exponent == -127) { /* subnormal: scale it up */
        x *= 0x1p64f;
        exponent = (int)(dtype_f32_to_bits(x) >> 23) - 127 - 64;
    }
    const double above =
        (double)dtype_f32_from_bits((dtype_f32_to_bits(x) & 0x7fffffu) | 0x3f800000u) - 1.0;
    const double log2e = 1.4426950408889634;
    /* exact enough where it counts */
    const double fraction = (above - 0.5 * above * above) * log2e;
    if (above > 0x1p-10) return exponent + 1;
    return (float)(exponent + fraction) > (float)exponent ? exponent + 1 : exponent;
}

static void encode_floating(quant_format f, const float *w, uint8_t *codes, uint8_t *scale)
{
    float amax = 0.0f;
    for (int j = 0; j < f.group; j++)
        if (fabsf(w[j]) > amax) amax = fabsf(w[j]);
    const float largest = amax / (f.mode == QUANT_MXFP8 ? 448.0f : 6.0f);
    if (f.mode == QUANT_NVFP4) *scale = encode_e4m3(largest);
    else *scale = largest > 0.0f ? (uint8_t)(ceil_log2(largest) + 127) : 127;
    const float unit = quant_scale(f.mode, DTYPE_F32, scale, 0);
    for (int j = 0; j < f.group; j++) {
        const float x = unit == 0.0f ? 0.0f : w[j] / unit;
        codes[j] = f.mode == QUANT_MXFP8 ? encode_e4m3(x) : encode_e2m1(x);
    }
}

void quant_encode_row(quant_format f, const float *w, int64_t n, dtype scale_type, uint8_t *row,
                      uint8_t *scales, uint8_t *biases)
{
    uint8_t codes[MAX_GROUP];
    CHECK(quant_is_legal(f) && n % f.group == 0);
    const int64_t width = f.mode == QUANT_AFFINE ? dtype_bits(scale_type) / 8 : 1;
    for (int64_t g = 0; g < n / f.group; g++, w += f.group) {
        if (f.mode == QUANT_AFFINE)
            encode_affine(f, w, scale_type, codes, scales + g * width, biases + g * width);
        else encode_floating(f, w, codes, scales + g);
        quant_pack(codes, f.bits, f.group, row + quant_row_bytes(f, g * f.group));
    }
}
