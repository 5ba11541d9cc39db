/* matrix.h - one weight matrix as a pack stores it: dense, or codes with scales.
 *
 * A view: everything points into the pack and is valid until pack_close. The row functions hide how
 * the bytes lie, so that repacking and row look-ups need to know one form only. Rows are
 * independent; all functions are thread-safe. */
#ifndef PACK_MATRIX_H
#define PACK_MATRIX_H
#include "pack/quant.h"

typedef struct matrix {
    const char *path; /* canonical module path: "model.layers.3.mlp.up_proj" */
    int64_t out, in;  /* y[out] = W[out, in] x[in] */
    quant_format format;
    const tensor *weight; /* dense: [out, in] F16, BF16 or F32; else U32 [out, in * bits / 32] */
    const tensor *scales; /* [out, in / group]; NULL when dense */
    const tensor *biases; /* affine only, same shape and type as scales; else NULL */
    int block;            /* Hadamard block of the input, 0: not rotated */
    const float *signs;   /* [in], each exactly +1 or -1; NULL when block is 0 */
} matrix;

/* Type in which the source library would give the weights: of the dense tensor, or of the scales.
 * Floating modes: BF16. */
dtype matrix_type(const matrix *m);
/* Row `row` [in] as f32, not rotated back. Rounded to `result` as quant_decode_row says; a dense
 * row is exact. */
void matrix_row_f32(const matrix *m, int64_t row, dtype result, float *out);
/* Quantized only: the codes [in], one a byte. */
void matrix_row_codes(const matrix *m, int64_t row, uint8_t *codes);
/* Quantized only, as they lie in the file: the packed codes of a row (code k in bits k * bits up of
 * the bytes read as one little-endian number), its scales and (affine) biases. */
const uint8_t *matrix_row_packed(const matrix *m, int64_t row);
const uint8_t *matrix_row_scale_bytes(const matrix *m, int64_t row);
const uint8_t *matrix_row_bias_bytes(const matrix *m, int64_t row);
/* Quantized only: decoded scales [in / group] and, affine, biases (NULL in the other modes or when
 * not wanted). */
void matrix_row_scales(const matrix *m, int64_t row, float *scales, float *biases);
/* Affine 2-bit only: true when every bias of the row is the bits of its scale with the sign flipped
 * and no code is 3, that is, when each weight is -d, 0 or +d. `code3` (may be NULL) gets the number
 * of codes equal to 3. */
bool matrix_row_is_ternary(const matrix *m, int64_t row, int64_t *code3);
uint64_t matrix_bytes(const matrix *m); /* in the file: weight, scales, biases (not signs) */
#endif
