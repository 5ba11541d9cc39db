/* avxvnni.c - AVX2 with AVX-VNNI: vpdpbusd on 256-bit vectors, which adds four products in 32 bits
 * and cannot saturate. */
#define QUERIES 3
#include "compute/cpu/ops.inc"

INLINE int settle_after(tile_type t)
{
    (void)t;
    return 64; /* never: there are no 16-bit sums */
}
INLINE int chain_count(int rows)
{
    return rows == 1 ? 4 : rows <= 4 ? 2 : 1;
}
INLINE void dot(tile_type t, __m256i plane, __m256i x, __m256i *wide, __m256i *narrow)
{
    (void)t;
    (void)narrow;
    *wide = _mm256_dpbusd_avx_epi32(*wide, plane, x);
}
INLINE void settle(__m256i *wide, __m256i *narrow)
{
    (void)wide;
    (void)narrow;
}
#include "compute/cpu/tiles256.inc"

const cpu_ops avxvnni_ops = { .name = "avxvnni",
                              .selfcheck = op_selfcheck,
                              .matmul_q8 = matmul_q8,
                              .matmul_f32 = matmul_f32,
                              OPS_TABLE };
