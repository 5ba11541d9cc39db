/* gfni.c - AVX-512 with VNNI and GFNI: the king's ternary tiles, and those of drafters with 4 bits
 * for few rows. One instruction takes a plane out of a vector, where shifts and masks need two: the
 * codes are the product of each byte with a matrix of bits. All other matmuls are those of
 * avx512.c. */
#define QUERIES 6
#include "compute/cpu/ops.inc"

enum { IN_PLACE = 0 };
INLINE __m512i field(__m512i v, int bits, int from, int to)
{
    if (from == to) return _mm512_and_si512(v, _mm512_set1_epi8((char)(((1 << bits) - 1) << to)));
    uint64_t rows = 0; /* byte 7 - i: the bits whose parity is bit i of the result */
    for (int i = 0; i < bits; i++) rows |= UINT64_C(1) << (from + i) << 8 * (7 - to - i);
    return _mm512_gf2p8affine_epi64_epi8(v, _mm512_set1_epi64((long long)rows), 0);
}
#include "compute/cpu/tiles512.inc"

static many_fn *many_for(const tile_matrix *w)
{
    (void)w;
    return many_TILE_T2_128;
}
static strip_fn *few_for(const tile_matrix *w, int rows)
{
    return for_rows(w->type == TILE_T2 ? king_strips : drafter4_strips, all_counts, rows);
}
static void matmul_some(const tile_matrix *w, const act_q8 *a, int rows, float *y, size_t stride,
                        int from, int to)
{
    const bool king = w->type == TILE_T2 && w->group == 128;
    const bool drafter = w->type == TILE_A4 && w->group == 64 && rows <= CPU_BATCH;
    (king || drafter ? matmul_q8 : avx512_ops.matmul_q8)(w, a, rows, y, stride, from, to);
}
static void matmul_f32(const tile_matrix *w, const float *x, int rows, float *y, size_t stride,
                       int from, int to)
{
    avx512_ops.matmul_f32(w, x, rows, y, stride, from, to);
}

const cpu_ops gfni_ops = { .name = "gfni",
                           .selfcheck = op_selfcheck,
                           .matmul_q8 = matmul_some,
                           .matmul_f32 = matmul_f32,
                           OPS_TABLE };
