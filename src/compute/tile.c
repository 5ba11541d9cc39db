/* tile.c - see tile.h. Codes are moved as words of packed codes, a whole vector of a tile at a
 * time; where a row lies in its file only pack/matrix.h knows. */
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

/* What filling needs besides the strip: the packed rows of a strip, widened where the pack's codes
 * are narrower than the tile's; or one row of values. */
typedef struct scratch {
    uint8_t *codes;         /* [n_in] one row, a byte each */
    uint8_t *widened;       /* [16][n_in * bits / 8] */
    float *scales, *biases; /* [n_in / group] one row */
    float *values;          /* [n_in], float tiles only */
} scratch;

static bool all_finite(const float *v, int n)
{
    uint32_t bad = 0;
    for (int i = 0; i < n; i++) bad |= (dtype_f32_to_bits(v[i]) & 0x7f800000u) == 0x7f800000u;
    return bad == 0;
}
static status refuse_value(const matrix *src, int row, const float *values, int n, error *e)
{
    int k = 0;
    while (k < n && isfinite(values[k])) k++;
    return error_set(e, E_FORMAT, "%s: row %d: weight %d is not finite", src->path, row, k);
}
static status fill_float_row(const tile_matrix *t, const matrix *src, int row, uint8_t *strip,
                             const scratch *b, error *e)
{
    uint8_t *at = strip + (size_t)(row % TILE_ROWS) * (t->type == TILE_F32 ? 4 : 2);
    matrix_row_f32(src, row, DTYPE_F32, b->values);
    if (!all_finite(b->values, t->n_in)) return refuse_value(src, row, b->values, t->n_in, e);
    for (int k = 0; k < t->n_in; k++, at += t->tile_bytes) {
        const float v = b->values[k];
        if (t->type == TILE_F32) {
            memcpy(at, &v, sizeof v);
            continue;
        }
        const uint16_t half = dtype_f32_to_bf16(v);
        if (dtype_bf16_to_f32(half) != v)
            return error_set(e, E_UNSUPPORTED,
                             "%s: row %d: weight %d is %a, which bfloat16 does not hold", src->path,
                             row, k, (double)v);
        memcpy(at, &half, sizeof half);
    }
    return OK;
}

/* A word of packed codes holds the inputs k = 4p + j of one lane in order of k; in a tile they are
 * in order of (j, p). */
static uint32_t order_codes(uint32_t word, int bits)
{
    if (bits == 2) { /* 4 x 4 fields, transposed */
        uint32_t t = (word ^ word >> 6) & 0x00cc00ccu;
        word ^= t ^ t << 6;
        t = (word ^ word >> 12) & 0x0000f0f0u;
        return word ^ t ^ t << 12;
    }
    if (bits == 4) { /* 2 x 4 fields, transposed */
        uint32_t low = word & 0xffffu, high = word >> 16;
        low = (low | low << 8) & 0x00ff00ffu;
        high = (high | high << 8) & 0x00ff00ffu;
        low = (low | low << 4) & 0x0f0f0f0fu;
        high = (high | high << 4) & 0x0f0f0f0fu;
        return low | high << 4;
    }
    return word;
}
/* Word by word over the 16 rows: what is written is a whole vector of the tile. Returns whether a
 * ternary code is 3. */
static bool put_codes(const tile_matrix *t, uint8_t *strip, const uint8_t *const rows[TILE_ROWS],
                      int bits)
{
    const size_t vectors = code_bytes(t) / 64;
    uint32_t threes = 0;
    size_t word = 0;
    for (int g = 0; g < t->n_in / t->group; g++) {
        uint8_t *at = strip + (size_t)g * t->tile_bytes;
        for (size_t z = 0; z < vectors; z++, word++, at += 64) {
            uint32_t lanes[TILE_ROWS];
            for (int r = 0; r < TILE_ROWS; r++)
                memcpy(&lanes[r], rows[r] + 4 * word, sizeof lanes[r]);
            for (int r = 0; r < TILE_ROWS; r++) {
                lanes[r] = order_codes(lanes[r], bits);
                threes |= lanes[r] & lanes[r] >> 1;
            }
            memcpy(at, lanes, sizeof lanes);
        }
    }
    return (threes & 0x55555555u) != 0;
}
/* The packed rows of a strip in the tile's width; rows beyond the last one stand for it. */
static void pack_rows(const tile_matrix *t, const matrix *src, int strip, const scratch *b,
                      const uint8_t *rows[TILE_ROWS])
{
    const int bits = code_bits(t->type);
    const size_t row_bytes = (size_t)t->n_in * (size_t)bits / 8;
    for (int r = 0; r < TILE_ROWS; r++) {
        const int row = strip * TILE_ROWS + r;
        if (row >= t->n_out) {
            rows[r] = rows[r - 1];
        } else if (src->format.bits == bits) {
            rows[r] = matrix_row_packed(src, row);
        } else {
            uint8_t *to = b->widened + (size_t)r * row_bytes;
            matrix_row_codes(src, row, b->codes);
            quant_pack(b->codes, bits, t->n_in, to);
            rows[r] = to;
        }
    }
}
static int64_t count_threes(const tile_matrix *t, const uint8_t *const rows[TILE_ROWS], int n)
{
    int64_t threes = 0;
    for (int r = 0; r < n; r++)
        for (int i = 0; i < t->n_in / 32; i++) {
            uint64_t word;
            memcpy(&word, rows[r] + 8 * i, sizeof word);
            threes += __builtin_popcountll(word & word >> 1 & UINT64_C(0x5555555555555555));
        }
    return threes;
}

/* The first thing that is wrong with these scales, or OK. */
static status check_scales(const tile_matrix *t, const matrix *src, int row, const scratch *b,
                           error *e)
{
    const int groups = t->n_in / t->group;
    const bool affine = t->type != TILE_E4;
    matrix_row_scales(src, row, b->scales, affine ? b->biases : NULL);
    bool fine = all_finite(b->scales, groups) && (!affine || all_finite(b->biases, groups));
    uint32_t differ = 0;
    for (int g = 0; t->type == TILE_T2 && g < groups; g++) differ |= b->biases[g] != -b->scales[g];
    if (fine && !differ) return OK;
    int g = 0;
    while (isfinite(b->scales[g]) && (!affine || isfinite(b->biases[g])) &&
           (t->type != TILE_T2 || b->biases[g] == -b->scales[g]))
        g++;
    if (!affine)
        return error_set(e, E_FORMAT, "%s: row %d: scale %d is byte 255, want 0..254", src->path,
                         row, g);
    if (!isfinite(b->scales[g]) || !isfinite(b->biases[g]))
        return error_set(e, E_FORMAT, "%s: row %d: scale or bias %d is not finite", src->path, row,
                         g);
    return error_set(e, E_FORMAT, "%s: row %d: bias %d is %a, want minus the scale, %a", src->path,
                     row, g, (double)b->biases[g], (double)-b->scales[g]);
}
/* Values of `width` bytes, one a group, from a row to its lane of each tile. */
static void put_lane(const tile_matrix *t, uint8_t *at, const uint8_t *from, size_t width)
{
    const int groups = t->n_in / t->group;
    for (int g = 0; g < groups; g++, at += t->tile_bytes, from += width)
        if (width == 2) memcpy(at, from, 2);
        else if (width == 4) memcpy(at, from, 4);
        else *at = *from;
}
static status put_scales(const tile_matrix *t, const matrix *src, int row, uint8_t *strip,
                         const scratch *b, error *e)
{
    const size_t width = (size_t)dtype_bits(t->scale_type) / 8;
    uint8_t *at = strip + code_bytes(t) + width * (size_t)(row % TILE_ROWS);
    TRY(check_scales(t, src, row, b, e));
    put_lane(t, at, matrix_row_scale_bytes(src, row), width);
    if (is_affine(t->type))
        put_lane(t, at + width * TILE_ROWS, matrix_row_bias_bytes(src, row), width);
    return OK;
}
static status fill_code_strip(const tile_matrix *t, const matrix *src, int strip, uint8_t *out,
                              const scratch *b, int64_t *code3, error *e)
{
    const uint8_t *rows[TILE_ROWS];
    const int first = strip * TILE_ROWS;
    const int n = t->n_out - first < TILE_ROWS ? t->n_out - first : TILE_ROWS;
    pack_rows(t, src, strip, b, rows);
    if (put_codes(t, out, rows, code_bits(t->type)) && t->type == TILE_T2)
        *code3 += count_threes(t, rows, n);
    for (int row = first; row < first + n; row++) TRY(put_scales(t, src, row, out, b, e));
    return OK;
}
static status fill_strip(const tile_matrix *t, const matrix *src, int strip, uint8_t *out,
                         const scratch *b, int64_t *code3, error *e)
{
    const int first = strip * TILE_ROWS;
    if (t->n_out - first < TILE_ROWS) memset(out, 0, t->strip_bytes); /* lanes without a row */
    if (!is_float(t->type)) return fill_code_strip(t, src, strip, out, b, code3, e);
    for (int row = first; row < first + TILE_ROWS && row < t->n_out; row++)
        TRY(fill_float_row(t, src, row, out, b, e));
    return OK;
}
status tile_fill(const tile_matrix *t, const matrix *src, int from, int to, uint8_t *out,
                 int64_t *code3, error *e)
{
    CHECK(out && 0 <= from && from <= to && to <= tile_strips(t));
    const size_t n = (size_t)t->n_in, groups = n / (size_t)t->group;
    const bool narrow = !is_float(t->type) && src->format.bits != code_bits(t->type);
    const size_t wide = narrow ? TILE_ROWS * n * (size_t)code_bits(t->type) / 8 : 0;
    const size_t bytes = is_float(t->type) ? n * sizeof(float) : 2 * groups * sizeof(float);
    uint8_t *memory = mem_alloc(bytes + wide + (narrow ? n : 0));
    if (!memory)
        return error_set(e, E_NOMEM, "%s: no memory for a row of %zu weights", src->path, n);
    const scratch b = { .scales = (float *)(void *)memory,
                        .biases = (float *)(void *)memory + groups,
                        .values = (float *)(void *)memory,
                        .widened = memory + bytes,
                        .codes = memory + bytes + wide };
    status s = OK;
    *code3 = 0;
    for (int strip = from; s == OK && strip < to; strip++)
        s = fill_strip(t, src, strip, out + (size_t)(strip - from) * t->strip_bytes, &b, code3, e);
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
