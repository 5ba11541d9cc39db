/* avx2.c - AVX2, FMA and F16C.
 *
 * vpmaddubsw adds two products of an unsigned code and a signed activation in 16 bits, saturating.
 * No sum here can reach that limit: 2-bit codes add at most 32 pairs of 2 * 3 * 127 (24,384), 4-bit
 * codes 8 pairs of 2 * 15 * 127 (30,480), e4 codes 4 pairs of 2 * 24 * 127 (24,384) before they
 * move to 32 bits. A pair of 8-bit codes alone could (64,770), so these take vpmaddwd on even and
 * odd bytes. */
#define QUERIES 3
#include "compute/cpu/ops.inc"

INLINE int settle_after(tile_type t)
{
    return t == TILE_A4 ? 4 : t == TILE_E4 ? 2 : 9; /* a group has at most 8 vectors */
}
INLINE int chain_count(int rows)
{
    (void)rows;
    return 1; /* 16-bit additions take one cycle */
}
INLINE void dot(tile_type t, __m256i plane, __m256i x, __m256i *wide, __m256i *narrow)
{
    if (t == TILE_A8) {
        const __m256i even = _mm256_and_si256(plane, _mm256_set1_epi16(255));
        const __m256i x_even = _mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8);
        *wide = _mm256_add_epi32(*wide, _mm256_madd_epi16(even, x_even));
        *wide = _mm256_add_epi32(
            *wide, _mm256_madd_epi16(_mm256_srli_epi16(plane, 8), _mm256_srai_epi16(x, 8)));
    } else {
        *narrow = _mm256_add_epi16(*narrow, _mm256_maddubs_epi16(plane, x));
    }
}
INLINE void settle(__m256i *wide, __m256i *narrow)
{
    *wide = _mm256_add_epi32(*wide, _mm256_madd_epi16(*narrow, _mm256_set1_epi16(1)));
    *narrow = _mm256_setzero_si256();
}
#include "compute/cpu/tiles256.inc"

const cpu_ops avx2_ops = { .name = "avx2",
                           .selfcheck = op_selfcheck,
                           .matmul_q8 = matmul_q8,
                           .matmul_f32 = matmul_f32,
                           OPS_TABLE };
