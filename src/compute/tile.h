/* tile.h - the layout in which weights are computed with.
 *
 * W [n_out, n_in] becomes strips of 16 output rows; a strip is its tiles in order of ascending
 * input group. Lane r of a tile is output row 16*strip + r. Codes come as 64-byte vectors; with P
 * planes per byte (P = 4, 2, 1 for 2, 4, 8 bits) byte 4r+j of vector z = 0, 1, ... holds in plane p
 * (bits p*8/P up) the code of input k = 4P*z + 4p + j of the group. Scales (and biases) of the 16
 * rows follow the codes of each tile in the pack's type. Rows beyond n_out have scale 0. */
#ifndef COMPUTE_TILE_H
#define COMPUTE_TILE_H
#include "base/error.h"
#include "pack/pack.h"

enum { TILE_ROWS = 16 };
/* Raised when the bytes of any tile change: tiles kept on disk by another version are refused. */
enum { TILE_LAYOUT = 1 };

typedef enum tile_type {
    TILE_T2,  /* ternary, value d*(c-1): MLX affine 2-bit whose bias is -scale bit for bit */
    TILE_A2,  /* affine, 1- and 2-bit codes, value s*c + b */
    TILE_A4,  /* affine, 3- and 4-bit codes */
    TILE_A8,  /* affine, 5-, 6- and 8-bit codes */
    TILE_E4,  /* mxfp4: E2M1 codes, E8M0 scale */
    TILE_B16, /* bfloat16; also mxfp8 and nvfp4, whose values are exact in it (checked) */
    TILE_F32  /* float32; also float16 */
} tile_type;

typedef struct tile_matrix {
    tile_type type;
    dtype scale_type;       /* of scales and biases: f16, bf16 or f32; u8 for e4 */
    int n_out, n_in, group; /* group 1 for b16 and f32 */
    size_t tile_bytes;      /* of one group of 16 rows */
    size_t strip_bytes;
    uint8_t *data; /* [strips][n_in / group] tiles, 64-byte aligned, owned by the caller */
} tile_matrix;

/* Chooses type and sizes for a matrix; no data yet. `matrix` is validated by the pack. */
status tile_plan(tile_matrix *t, const matrix *src, error *e);
static inline int tile_strips(const tile_matrix *t)
{
    return (t->n_out + TILE_ROWS - 1) / TILE_ROWS;
}
static inline size_t tile_bytes(const tile_matrix *t)
{
    return (size_t)tile_strips(t) * t->strip_bytes;
}
/* Repacks strips [from, to) into `out`, which has room for them, verifying what the type promises
 * (finite scales, bias = -scale for t2). Disjoint ranges may be filled by different threads. *code3
 * receives the number of t2 codes of value 3 (+2d). */
status tile_fill(const tile_matrix *t, const matrix *src, int from, int to, uint8_t *out,
                 int64_t *code3, error *e);
/* Row `row` as float32 [n_in]; for tests and conversion. */
void tile_row(const tile_matrix *t, int row, float *out);
#endif
