/* matrix.c - rows of a weight matrix. */
#include "pack/matrix.h"
#include "base/banned.h"

/* First byte of row `row` of a tensor whose rows are whole bytes. */
static const uint8_t *row_of(const tensor *t, int64_t rows, int64_t row)
{
    return t ? t->data + t->bytes / (uint64_t)rows * (uint64_t)row : NULL;
}

dtype matrix_type(const matrix *m)
{
    if (m->format.mode == QUANT_DENSE) return m->weight->type;
    return m->format.mode == QUANT_AFFINE ? m->scales->type : DTYPE_BF16;
}

void matrix_row_f32(const matrix *m, int64_t row, dtype result, float *out)
{
    CHECK(row >= 0 && row < m->out);
    if (m->format.mode == QUANT_DENSE) {
        tensor_read_f32(m->weight, row * m->in, m->in, out);
        return;
    }
    quant_decode_row(m->format, row_of(m->weight, m->out, row), row_of(m->scales, m->out, row),
                     row_of(m->biases, m->out, row), m->scales->type, result, m->in, out);
}

void matrix_row_codes(const matrix *m, int64_t row, uint8_t *codes)
{
    CHECK(row >= 0 && row < m->out && m->format.mode != QUANT_DENSE);
    quant_unpack(row_of(m->weight, m->out, row), m->format.bits, m->in, codes);
}

const uint8_t *matrix_row_packed(const matrix *m, int64_t row)
{
    return row_of(m->weight, m->out, row);
}

const uint8_t *matrix_row_scale_bytes(const matrix *m, int64_t row)
{
    return row_of(m->scales, m->out, row);
}

const uint8_t *matrix_row_bias_bytes(const matrix *m, int64_t row)
{
    return row_of(m->biases, m->out, row);
}

void matrix_row_scales(const matrix *m, int64_t row, float *scales, float *biases)
{
    CHECK(row >= 0 && row < m->out && m->format.mode != QUANT_DENSE);
    const int64_t groups = m->in / m->format.group;
    if (m->format.mode == QUANT_AFFINE) {
        tensor_read_f32(m->scales, row * groups, groups, scales);
        if (biases) tensor_read_f32(m->biases, row * groups, groups, biases);
        return;
    }
    const uint8_t *bytes = row_of(m->scales, m->out, row);
    for (int64_t g = 0; g < groups; g++)
        scales[g] = quant_scale(m->format.mode, m->scales->type, bytes, g);
}

bool matrix_row_is_ternary(const matrix *m, int64_t row, int64_t *code3)
{
    CHECK(m->format.mode == QUANT_AFFINE && m->format.bits == 2);
    int64_t threes = 0;
    const uint8_t *codes = row_of(m->weight, m->out, row);
    for (int64_t i = 0; i < quant_row_bytes(m->format, m->in); i += 8) {
        uint64_t word; /* a row is groups of at least 32 codes, 8 bytes each */
        memcpy(&word, codes + i, sizeof word);
        threes += __builtin_popcountll(word & (word >> 1) & UINT64_C(0x5555555555555555));
    }
    if (code3) *code3 = threes;
    const int width = dtype_bits(m->scales->type) / 8;
    const uint8_t *scale = row_of(m->scales, m->out, row), *bias = row_of(m->biases, m->out, row);
    for (int64_t g = 0; g < m->in / m->format.group; g++, scale += width, bias += width) {
        for (int b = 0; b < width; b++)
            if ((scale[b] ^ bias[b]) != (b == width - 1 ? 0x80 : 0)) return false;
    }
    return threes == 0;
}

uint64_t matrix_bytes(const matrix *m)
{
    return m->weight->bytes + (m->scales ? m->scales->bytes : 0) +
           (m->biases ? m->biases->bytes : 0);
}
