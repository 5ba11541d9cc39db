/* i8mm.c - NEON with the int8 matrix products of Armv8.6: batches of two rows and more.
 *
 * smmla multiplies 8 codes of two output rows with 8 activations of two rows: twice the products of
 * an sdot. Tiles hold four inputs of an output row together, so two planes (at 8 bits, the planes
 * of two vectors) are interleaved while unpacking. All other matmuls are those of neon.c. */
#define QUERIES 6
#include "compute/cpu/ops.inc"
#include "compute/cpu/tiles128.inc"

/* eights of inputs that one step unpacks, and the bytes of codes it takes */
INLINE int eights(tile_type t)
{
    return plane_count(t) == 4 ? 2 : 1;
}
INLINE int step_bytes(tile_type t)
{
    return plane_count(t) == 1 ? 128 : 64;
}
/* Codes of four output rows by eights of inputs: of the first two rows, and of the others. */
INLINE void unpack_eights(tile_type t, const uint8_t *p, int8x16_t (*eight)[2])
{
    int8x16_t plane[4];
    unpack(t, p, plane);
    if (plane_count(t) == 1) unpack(t, p + 64, plane + 1);
    for (int e = 0; e < eights(t); e++) {
        const int32x4_t low = vreinterpretq_s32_s8(plane[2 * e]),
                        high = vreinterpretq_s32_s8(plane[2 * e + 1]);
        eight[e][0] = vreinterpretq_s8_s32(vzip1q_s32(low, high));
        eight[e][1] = vreinterpretq_s8_s32(vzip2q_s32(low, high));
    }
}
/* One strip for `pairs` pairs of the `all` rows, beginning with `row`; of the last pair the second
 * row may be none. type and pairs are constants. */
INLINE void strip_q8(tile_type type, int pairs, const tile_matrix *w, const act_q8 *a, int all,
                     int row, float *y, size_t stride, int strip)
{
    enum { MOST = 2 };
    const int group = w->group, groups = w->n_in / group;
    const uint8_t *tile = w->data + (size_t)strip * w->strip_bytes;
    float32x4_t acc[2 * MOST][4];
    for (int m = 0; m < 2 * pairs; m++)
        for (int i = 0; i < 4; i++) acc[m][i] = vdupq_n_f32(0);
    for (int g = 0; g < groups; g++, tile += w->tile_bytes) {
        const size_t first = cpu_act_at(all, groups, row, g);
        const int8_t *q = a->q + first * (size_t)group;
        int32x4_t s[MOST][4][2]; /* two output rows by two rows */
        const uint8_t *codes = tile;
        for (int p = 0; p < pairs; p++)
            for (int i = 0; i < 4; i++) s[p][i][0] = s[p][i][1] = vdupq_n_s32(0);
        for (int k = 0; k < group; k += 8 * eights(type), codes += step_bytes(type)) {
            int8x16_t x[2][MOST];
            for (int e = 0; e < eights(type); e++)
                for (int p = 0; p < pairs; p++) {
                    const int8_t *at = q + 2 * p * group + k + 8 * e;
                    x[e][p] = vcombine_s8(vld1_s8(at), vld1_s8(at + group));
                }
            __builtin_prefetch(codes + 2048);
            for (int i = 0; i < 4; i++) {
                int8x16_t eight[2][2];
                unpack_eights(type, codes + 16 * i, eight);
                for (int e = 0; e < eights(type); e++)
                    for (int p = 0; p < pairs; p++) {
                        s[p][i][0] = vmmlaq_s32(s[p][i][0], eight[e][0], x[e][p]);
                        s[p][i][1] = vmmlaq_s32(s[p][i][1], eight[e][1], x[e][p]);
                    }
            }
        }
        for (int m = 0; m < 2 * pairs; m++) {
            const size_t at = first + (size_t)m;
            const unsigned offset = (unsigned)code_offset(type) * (unsigned)a->neg_sum[at];
            for (int i = 0; i < 4; i++) {
                const int32x4_t *two = s[m / 2][i];
                const int32x4_t n = m % 2 ? vuzp2q_s32(two[0], two[1]) : vuzp1q_s32(two[0], two[1]);
                acc[m][i] =
                    chain(type, w, codes, i, acc[m][i], vaddq_s32(n, vdupq_n_s32((int)offset)),
                          a->scale[at], a->neg_sum[at]);
            }
        }
    }
    for (int m = 0; m < 2 * pairs && row + m < all; m++)
        for (int i = 0; i < 4; i++)
            store_outputs(w, strip, i, y + (size_t)(row + m) * stride, acc[m][i]);
}
#define COUNTS(type) STRIP(type, 1) STRIP(type, 2)
COUNTS(TILE_T2)
COUNTS(TILE_A2)
COUNTS(TILE_A4)
COUNTS(TILE_A8)
COUNTS(TILE_E4)
#define NAMES(type)        \
    {                      \
        type##_1, type##_2 \
    }
static strip_fn *const strips[][2] = { NAMES(TILE_T2), NAMES(TILE_A2), NAMES(TILE_A4),
                                       NAMES(TILE_A8), NAMES(TILE_E4) };
static void matmul_q8(const tile_matrix *w, const act_q8 *a, int rows, float *y, size_t stride,
                      int from, int to)
{
    if (rows == 1) {
        neon_ops.matmul_q8(w, a, rows, y, stride, from, to);
        return;
    }
    for (int s = from; s < to; s++)
        for (int row = 0; row < rows; row += 4)
            strips[w->type][rows - row > 2](w, a, rows, row, y, stride, s);
}
static void matmul_f32(const tile_matrix *w, const float *x, int rows, float *y, size_t stride,
                       int from, int to)
{
    neon_ops.matmul_f32(w, x, rows, y, stride, from, to);
}

const cpu_ops i8mm_ops = { .name = "i8mm",
                           .selfcheck = op_selfcheck,
                           .matmul_q8 = matmul_q8,
                           .matmul_f32 = matmul_f32,
                           OPS_TABLE };
