/* tile.c - see tile.h. Works row by row through the view of pack/matrix.h, so it knows the codes of
 * a row and nothing of how a file stores them. */
#include "compute/tile.h"
#include <math.h>
#include <string.h>
#include "base/mem.h"
#include "base/banned.h"

static int code_bits(tile_type t)
{
    return t == TILE_A8 ? 8 : t == TILE_A4 || t == TILE_E4 ? 4 : 2;
}
static bool is_affine(tile_type t)
{
    return t == TILE_A2 || t == TILE_A4 || t == TILE_A8;
}
static bool is_float(tile_type t)
{
    return t == TILE_B16 || t == TILE_F32;
}
static size_t code_bytes(const tile_matrix *t)
{
    return (size_t)(TILE_ROWS * t->group * code_bits(t->type) / 8);
}

static unsigned tile_code(const uint8_t *tile, int bits, int lane, int k)
{
    const int planes = 8 / bits, z = k / (4 * planes), p = k % (4 * planes) / 4;
    return tile[64 * z + 4 * lane + k % 4] >> (p * bits) & ((1u << bits) - 1);
}

/* ---- plan ---- */

/* Are the biases of this row the negated scales? (+0 and -0 count as equal: such a group is zero
 * either way.) */
static bool row_is_ternary(const matrix *src, int64_t row, float *scales, float *biases)
{
    matrix_row_scales(src, row, scales, biases);
    for (int64_t g = 0; g < src->in / src->format.group; g++)
        if (!(biases[g] == -scales[g])) return false;
    return true;
}
/* A rotated matrix is ternary by its format, which tile_fill verifies; of another one every row is
 * looked at. */
static status find_ternary(const matrix *src, bool *ternary, error *e)
{
    *ternary = false;
    if (src->format.bits != 2) return OK;
    *ternary = src->block > 0;
    if (*ternary) return OK;
    const size_t groups = (size_t)(src->in / src->format.group);
    float *scales = mem_array(2 * groups, sizeof *scales);
    if (!scales) return error_set(e, E_NOMEM, "%s: no memory for %zu scales", src->path, groups);
    *ternary = true;
    for (int64_t row = 0; *ternary && row < src->out; row++)
        *ternary = row_is_ternary(src, row, scales, scales + groups);
    mem_free(scales);
    return OK;
}
static status plan_type(tile_matrix *t, const matrix *src, error *e)
{
    const quant_format f = src->format;
    bool ternary = false;
    t->scale_type = DTYPE_F32;
    t->group = 1;
    switch (f.mode) {
    case QUANT_DENSE: t->type = matrix_type(src) == DTYPE_BF16 ? TILE_B16 : TILE_F32; return OK;
    case QUANT_MXFP8:
    case QUANT_NVFP4: t->type = TILE_B16; return OK;
    case QUANT_MXFP4:
        t->type = TILE_E4;
        t->scale_type = DTYPE_U8;
        break;
    case QUANT_AFFINE:
        TRY(find_ternary(src, &ternary, e));
        t->type = ternary ? TILE_T2 : f.bits <= 2 ? TILE_A2 : f.bits <= 4 ? TILE_A4 : TILE_A8;
        t->scale_type = src->scales->type;
        break;
    }
    t->group = f.group;
    if (t->group != 32 && t->group != 64 && t->group != 128)
        return error_set(e, E_UNSUPPORTED, "%s: group of %d weights, want 32, 64 or 128", src->path,
                         t->group);
    return OK;
}
status tile_plan(tile_matrix *t, const matrix *src, error *e)
{
    *t = (tile_matrix){ .data = NULL };
    if (src->out < 1 || src->in < 1 || src->out > INT32_MAX / 2 || src->in > INT32_MAX / 1024)
        return error_set(e, E_UNSUPPORTED, "%s: shape [%lld, %lld] is beyond what a matmul counts",
                         src->path, (long long)src->out, (long long)src->in);
    t->n_out = (int)src->out;
    t->n_in = (int)src->in;
    TRY(plan_type(t, src, e));
    if (t->n_in % t->group)
        return error_set(e, E_FORMAT, "%s: input width %d, want a multiple of the group %d",
                         src->path, t->n_in, t->group);
    if (is_float(t->type)) {
        t->tile_bytes = t->type == TILE_B16 ? 2 * TILE_ROWS : 4 * TILE_ROWS;
    } else {
        const size_t scale_bytes = (size_t)(TILE_ROWS * dtype_bits(t->scale_type) / 8);
        t->tile_bytes = code_bytes(t) + (is_affine(t->type) ? 2 : 1) * scale_bytes;
    }
    t->strip_bytes = (size_t)(t->n_in / t->group) * t->tile_bytes;
    return OK;
}

/* ---- fill ---- */

/* One row of the source, unpacked. */
typedef struct source_row {
    uint8_t *codes;         /* [n_in] */
    float *scales, *biases; /* [n_in / group] */
    float *values;          /* [n_in], float tiles only */
} source_row;

static status fill_float_row(const tile_matrix *t, const matrix *src, int row, uint8_t *strip,
                             const source_row *b, error *e)
{
    const int lane = row % TILE_ROWS;
    matrix_row_f32(src, row, DTYPE_F32, b->values);
    for (int k = 0; k < t->n_in; k++) {
        const float v = b->values[k];
        if (!isfinite(v))
            return error_set(e, E_FORMAT, "%s: row %d: weight %d is not finite", src->path, row, k);
        uint8_t *tile = strip + (size_t)k * t->tile_bytes;
        if (t->type == TILE_F32) {
            memcpy(tile + sizeof v * (size_t)lane, &v, sizeof v);
            continue;
        }
        const uint16_t half = dtype_f32_to_bf16(v);
        if (dtype_bf16_to_f32(half) != v)
            return error_set(e, E_UNSUPPORTED,
                             "%s: row %d: weight %d is %a, which bfloat16 does not hold", src->path,
                             row, k, (double)v);
        memcpy(tile + sizeof half * (size_t)lane, &half, sizeof half);
    }
    return OK;
}
/* Four codes at a time: one word of four inputs per plane, which is what a lane holds. */
static void put_codes(const tile_matrix *t, uint8_t *strip, int lane, const uint8_t *codes)
{
    const int bits = code_bits(t->type), planes = 8 / bits;
    for (int g = 0; g < t->n_in / t->group; g++) {
        uint8_t *at = strip + (size_t)g * t->tile_bytes + 4 * lane;
        for (int k = 0; k < t->group; k += 4 * planes, at += 64) {
            uint32_t packed = 0;
            for (int p = 0; p < planes; p++, codes += 4) {
                uint32_t four;
                memcpy(&four, codes, sizeof four);
                packed |= four << (p * bits);
            }
            memcpy(at, &packed, sizeof packed);
        }
    }
}
static status put_scales(const tile_matrix *t, const matrix *src, int row, uint8_t *strip,
                         const source_row *b, error *e)
{
    const int lane = row % TILE_ROWS, groups = t->n_in / t->group;
    const size_t bytes = (size_t)dtype_bits(t->scale_type) / 8;
    matrix_row_scales(src, row, b->scales,
                      is_affine(t->type) || t->type == TILE_T2 ? b->biases : NULL);
    for (int g = 0; g < groups; g++) {
        uint8_t *at = strip + (size_t)g * t->tile_bytes + code_bytes(t);
        if (t->type == TILE_E4) { /* the byte itself; 255 decodes to infinity */
            if (!isfinite(b->scales[g]))
                return error_set(e, E_FORMAT, "%s: row %d: scale %d is byte 255, want 0..254",
                                 src->path, row, g);
            at[lane] = (uint8_t)(127 + ilogbf(b->scales[g]));
            continue;
        }
        if (!isfinite(b->scales[g]) || !isfinite(b->biases[g]))
            return error_set(e, E_FORMAT, "%s: row %d: scale or bias %d is not finite", src->path,
                             row, g);
        if (t->type == TILE_T2 && b->biases[g] != -b->scales[g])
            return error_set(e, E_FORMAT, "%s: row %d: bias %d is %a, want minus the scale, %a",
                             src->path, row, g, (double)b->biases[g], (double)-b->scales[g]);
        dtype_encode(t->scale_type, &b->scales[g], 1, at + bytes * (size_t)lane);
        if (is_affine(t->type))
            dtype_encode(t->scale_type, &b->biases[g], 1, at + bytes * (size_t)(TILE_ROWS + lane));
    }
    return OK;
}
static status fill_code_row(const tile_matrix *t, const matrix *src, int row, uint8_t *strip,
                            const source_row *b, int64_t *code3, error *e)
{
    matrix_row_codes(src, row, b->codes);
    if (t->type == TILE_T2)
        for (int k = 0; k < t->n_in; k++) *code3 += b->codes[k] == 3;
    put_codes(t, strip, row % TILE_ROWS, b->codes);
    return put_scales(t, src, row, strip, b, e);
}
status tile_fill(const tile_matrix *t, const matrix *src, int from, int to, int64_t *code3,
                 error *e)
{
    CHECK(t->data && 0 <= from && from <= to && to <= tile_strips(t));
    const size_t n = (size_t)t->n_in, groups = n / (size_t)t->group;
    uint8_t *memory =
        mem_alloc(is_float(t->type) ? n * sizeof(float) : n + 2 * groups * sizeof(float));
    if (!memory)
        return error_set(e, E_NOMEM, "%s: no memory for a row of %zu weights", src->path, n);
    const source_row b = { .codes = memory + 2 * groups * sizeof(float),
                           .scales = (float *)(void *)memory,
                           .biases = (float *)(void *)memory + groups,
                           .values = (float *)(void *)memory };
    status s = OK;
    *code3 = 0;
    memset(t->data + (size_t)from * t->strip_bytes, 0, (size_t)(to - from) * t->strip_bytes);
    for (int row = from * TILE_ROWS; s == OK && row < to * TILE_ROWS && row < t->n_out; row++) {
        uint8_t *strip = t->data + (size_t)(row / TILE_ROWS) * t->strip_bytes;
        s = is_float(t->type) ? fill_float_row(t, src, row, strip, &b, e)
                              : fill_code_row(t, src, row, strip, &b, code3, e);
    }
    mem_free(memory);
    return s;
}

/* ---- read back ---- */

static float e2m1_value(unsigned code)
{
    static const float magnitude[8] = { 0, 0.5f, 1, 1.5f, 2, 3, 4, 6 };
    return code & 8 ? -magnitude[code & 7] : magnitude[code & 7];
}
static void tile_values(const tile_matrix *t, const uint8_t *tile, int lane, float *out)
{
    const uint8_t *p = tile + code_bytes(t);
    const size_t bytes = (size_t)dtype_bits(t->scale_type) / 8;
    float scale, bias = 0;
    if (t->type == TILE_E4) scale = ldexpf(1.0f, (int)p[lane] - 127);
    else dtype_decode(t->scale_type, p + bytes * (size_t)lane, 1, &scale);
    if (is_affine(t->type))
        dtype_decode(t->scale_type, p + bytes * (size_t)(TILE_ROWS + lane), 1, &bias);
    for (int k = 0; k < t->group; k++) {
        const unsigned code = tile_code(tile, code_bits(t->type), lane, k);
        if (t->type == TILE_T2) out[k] = scale * (float)((int)code - 1);
        else if (t->type == TILE_E4) out[k] = e2m1_value(code) * scale;
        else out[k] = scale * (float)code + bias;
    }
}
void tile_row(const tile_matrix *t, int row, float *out)
{
    CHECK(t->data && 0 <= row && row < t->n_out);
    const uint8_t *strip = t->data + (size_t)(row / TILE_ROWS) * t->strip_bytes;
    const int lane = row % TILE_ROWS;
    for (int g = 0; g < t->n_in / t->group; g++) {
        const uint8_t *tile = strip + (size_t)g * t->tile_bytes;
        if (t->type == TILE_B16) dtype_decode(DTYPE_BF16, tile + 2 * lane, 1, out + g);
        else if (t->type == TILE_F32) dtype_decode(DTYPE_F32, tile + 4 * lane, 1, out + g);
        else tile_values(t, tile, lane, out + g * t->group);
    }
}
