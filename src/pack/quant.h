/* quant.h - the arithmetic of MLX's quantized weights, both directions.
 *
 * A row of `in` weights is stored as `in` codes of `bits` bits, a scale for each `group` of
 * consecutive weights and, in affine mode, a bias per group. Seen as a little-endian bit string,
 * code k of a row is bits [bits*k, bits*k + bits).
 *
 *   affine        w = scale * code + bias       both F16, BF16 or F32; the scale may be negative
 *   mxfp4, mxfp8  w = element(code) * 2^(s-127) s is a byte
 *   nvfp4         w = element(code) * e4m3(s)   s is a byte, its sign counts
 *
 * Decoding and encoding give the same bits as mlx 0.32.4 on a CPU. */
#ifndef PACK_QUANT_H
#define PACK_QUANT_H
#include "pack/tensor.h"

typedef enum quant_mode {
    QUANT_DENSE,
    QUANT_AFFINE,
    QUANT_MXFP4,
    QUANT_MXFP8,
    QUANT_NVFP4
} quant_mode;

typedef struct quant_format {
    quant_mode mode; /* QUANT_DENSE: bits and group are 0 */
    int bits, group;
} quant_format;

const char *quant_mode_name(quant_mode m);            /* "affine", "mxfp4", ..., "dense" */
bool quant_mode_from_name(str name, quant_mode *out); /* the four modes; not "dense" */
/* What a mode with nothing else said means: affine 4-bit g64, mxfp4 g32, mxfp8 g32, nvfp4 g16. */
quant_format quant_default(quant_mode m);
/* Affine 1-6 and 8 bits with groups of 32, 64 or 128; of the floating modes the default only. */
bool quant_is_legal(quant_format f);
bool quant_equal(quant_format a, quant_format b);
/* "affine 2-bit g128", "dense"; returns text. */
const char *quant_format_text(quant_format f, char *text, size_t cap);

/* Bytes of the codes of one row of n weights. */
static inline int64_t quant_row_bytes(quant_format f, int64_t n)
{
    return n * f.bits / 8;
}

/* Bits 1 to 8; codes one a byte; n * bits a multiple of 8. */
unsigned quant_code(const uint8_t *row, int bits, int64_t k);
void quant_unpack(const uint8_t *row, int bits, int64_t n, uint8_t *codes);
void quant_pack(const uint8_t *codes, int bits, int64_t n, uint8_t *row);

/* Element and scale tables of the floating modes. E4M3 has no infinity; 0x7f and 0xff are NaN. */
extern const float quant_e2m1[16];
float quant_e4m3(uint8_t b);
float quant_e8m0(uint8_t s);                      /* 2^(s-127); 255 gives infinity */
float quant_element(quant_mode m, unsigned code); /* of a floating mode */
/* Decoded scale number g of a row of scales (floating modes: bytes; `t` is ignored). */
float quant_scale(quant_mode m, dtype t, const uint8_t *scales, int64_t g);

/* One row as f32. `scale_type` is the type of scales and biases in affine mode. Affine rounds to
 * `result` after the multiplication and again after the addition, the floating modes once; result
 * F32 does not round. `biases` is NULL in the floating modes. n is a multiple of the group. */
void quant_decode_row(quant_format f, const uint8_t *row, const uint8_t *scales,
                      const uint8_t *biases, dtype scale_type, dtype result, int64_t n, float *out);
/* The encoder of mx.quantize: w in f32 (the exact values of the source type), scales and biases
 * stored as `scale_type`. The caller refuses non-finite weights. It cannot represent symmetric
 * ternary weights at 2 bits: write those codes directly (code = t + 1, scale = d, bias = -d). */
void quant_encode_row(quant_format f, const float *w, int64_t n, dtype scale_type, uint8_t *row,
                      uint8_t *scales, uint8_t *biases);
#endif
