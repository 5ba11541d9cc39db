/* lanes.h - the vectors in which ops.inc and vmath.h are written, for one instruction set.
 *
 * A tier file includes this once, compiled with that set's flags. vf: W floats, vi: W 32-bit
 * integers, vm: W truth values. Only IEEE operations (+ - * / fma, nearest even) and integer
 * operations appear, so every set gives the same bits. v_nma(a, b, c) is c - a*b, fused. The 16
 * lanes of the lane sum are NV vectors. */
#ifndef COMPUTE_CPU_LANES_H
#define COMPUTE_CPU_LANES_H
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "the tiers need IEEE semantics: no -ffast-math, no -ffinite-math-only"
#endif
#if defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__)
#error "the tiers need IEEE semantics: no -funsafe-math-optimizations"
#endif
#include <float.h>
/* 16: _Float16 is native, float is still float. */
#if FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16
#error "the tiers need FLT_EVAL_METHOD 0"
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#else
#include <arm_neon.h>
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

#define INLINE static inline __attribute__((always_inline, unused))

INLINE uint32_t bits1(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}
INLINE float flt1(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

#if defined(__AVX512F__)
enum { W = 16 };
typedef __m512 vf;
typedef __m512i vi;
typedef __mmask16 vm;
INLINE vf v_set(float a)
{
    return _mm512_set1_ps(a);
}
INLINE vi i_set(uint32_t a)
{
    return _mm512_set1_epi32((int)a);
}
INLINE vf v_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
INLINE void v_store(float *p, vf a)
{
    _mm512_storeu_ps(p, a);
}
INLINE __mmask16 tail_mask(size_t n)
{
    return (__mmask16)((1u << n) - 1);
}
INLINE vf v_loadn(const float *p, size_t n)
{
    return _mm512_maskz_loadu_ps(tail_mask(n), p);
}
INLINE void v_storen(float *p, vf a, size_t n)
{
    _mm512_mask_storeu_ps(p, tail_mask(n), a);
}
INLINE vi i_loadu(const uint32_t *p)
{
    return _mm512_loadu_si512(p);
}
INLINE void i_store(uint32_t *p, vi a)
{
    _mm512_storeu_si512(p, a);
}
INLINE vf v_add(vf a, vf b)
{
    return _mm512_add_ps(a, b);
}
INLINE vf v_sub(vf a, vf b)
{
    return _mm512_sub_ps(a, b);
}
INLINE vf v_mul(vf a, vf b)
{
    return _mm512_mul_ps(a, b);
}
INLINE vf v_div(vf a, vf b)
{
    return _mm512_div_ps(a, b);
}
INLINE vf v_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}
INLINE vf v_nma(vf a, vf b, vf c)
{
    return _mm512_fnmadd_ps(a, b, c);
}
INLINE vi v_bits(vf a)
{
    return _mm512_castps_si512(a);
}
INLINE vf v_flt(vi a)
{
    return _mm512_castsi512_ps(a);
}
INLINE vf v_cvt(vi a)
{
    return _mm512_cvtepi32_ps(a);
}
INLINE vi i_add(vi a, vi b)
{
    return _mm512_add_epi32(a, b);
}
INLINE vi i_sub(vi a, vi b)
{
    return _mm512_sub_epi32(a, b);
}
INLINE vi i_and(vi a, vi b)
{
    return _mm512_and_si512(a, b);
}
INLINE vi i_or(vi a, vi b)
{
    return _mm512_or_si512(a, b);
}
INLINE vi i_xor(vi a, vi b)
{
    return _mm512_xor_si512(a, b);
}
#define i_sll(a, n) _mm512_slli_epi32(a, n)
#define i_srl(a, n) _mm512_srli_epi32(a, n)
#define i_sra(a, n) _mm512_srai_epi32(a, n)
INLINE vi i_max(vi a, vi b)
{
    return _mm512_max_epi32(a, b);
}
INLINE vm i_gt(vi a, vi b)
{
    return _mm512_cmpgt_epi32_mask(a, b);
}
INLINE vm v_gt(vf a, vf b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ);
}
INLINE vm v_nan(vf a)
{
    return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
}
INLINE vf v_sel(vm m, vf a, vf b)
{
    return _mm512_mask_blend_ps(m, b, a);
}
INLINE vi i_sel(vm m, vi a, vi b)
{
    return _mm512_mask_blend_epi32(m, b, a);
}
INLINE vf v_f16(const void *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}
INLINE void v_store_f16(void *p, vf a)
{
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(a, 0));
}
INLINE vf v_i8(const void *p)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
}
INLINE void i_store_low8(int8_t *p, const vi *c)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm512_cvtepi32_epi8(*c));
}
/* exchange lanes j and j ^ h */
#define v_swap1(a) _mm512_permute_ps(a, 0xb1)
#define v_swap2(a) _mm512_permute_ps(a, 0x4e)
#define v_swap4(a) _mm512_shuffle_f32x4(a, a, 0xb1)
#define v_swap8(a) _mm512_shuffle_f32x4(a, a, 0x4e)
INLINE float fold16(const vf *acc)
{
    const __m256 a =
        _mm256_add_ps(_mm512_castps512_ps256(acc[0]), _mm512_extractf32x8_ps(acc[0], 1));
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    b = _mm_add_ss(b, _mm_movehdup_ps(b));
    return _mm_cvtss_f32(b);
}
/* a[t] = p[t], p[4 + t], p[8 + t], ... */
INLINE void v_load_by4(const float *p, vf *a)
{
    const __m512i pair =
        _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29);
    const __m512i two = _mm512_set1_epi32(2);
    for (int h = 0; h < 2; h++) {
        const __m512i order = h ? _mm512_add_epi32(pair, two) : pair;
        const __m512 low = _mm512_permutex2var_ps(v_load(p), order, v_load(p + 16));
        const __m512 high = _mm512_permutex2var_ps(v_load(p + 32), order, v_load(p + 48));
        a[2 * h] = _mm512_shuffle_f32x4(low, high, 0x44);
        a[2 * h + 1] = _mm512_shuffle_f32x4(low, high, 0xee);
    }
}
/* the lane sums of eight rows: the additions of fold16, two rows in a vector, then four, then
 * all */
#define fold16_rows fold16_rows
INLINE void fold16_rows(const vf (*acc)[1], int rows, float *out)
{
    (void)rows;
    __m512 a[4], b[2];
    for (int i = 0; i < 4; i++)
        a[i] = _mm512_add_ps(_mm512_shuffle_f32x4(acc[2 * i][0], acc[2 * i + 1][0], 0x44),
                             _mm512_shuffle_f32x4(acc[2 * i][0], acc[2 * i + 1][0], 0xee));
    for (int i = 0; i < 2; i++)
        b[i] = _mm512_add_ps(_mm512_shuffle_f32x4(a[2 * i], a[2 * i + 1], 0x88),
                             _mm512_shuffle_f32x4(a[2 * i], a[2 * i + 1], 0xdd));
    const __m512 c =
        _mm512_add_ps(_mm512_shuffle_ps(b[0], b[1], 0x44), _mm512_shuffle_ps(b[0], b[1], 0xee));
    const __m512 d = _mm512_add_ps(_mm512_shuffle_ps(c, c, 0x88), _mm512_shuffle_ps(c, c, 0xdd));
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 0, 0, 0, 0, 0, 0, 0, 0);
    _mm256_storeu_ps(out, _mm512_castps512_ps256(_mm512_permutexvar_ps(order, d)));
}

#elif defined(__AVX2__)
enum { W = 8 };
typedef __m256 vf;
typedef __m256i vi;
typedef __m256i vm;
INLINE vf v_set(float a)
{
    return _mm256_set1_ps(a);
}
INLINE vi i_set(uint32_t a)
{
    return _mm256_set1_epi32((int)a);
}
INLINE vf v_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
INLINE void v_store(float *p, vf a)
{
    _mm256_storeu_ps(p, a);
}
INLINE vi tail_mask(size_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
INLINE vf v_loadn(const float *p, size_t n)
{
    return _mm256_maskload_ps(p, tail_mask(n));
}
INLINE void v_storen(float *p, vf a, size_t n)
{
    _mm256_maskstore_ps(p, tail_mask(n), a);
}
INLINE vi i_loadu(const uint32_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}
INLINE void i_store(uint32_t *p, vi a)
{
    _mm256_storeu_si256((__m256i *)(void *)p, a);
}
INLINE vf v_add(vf a, vf b)
{
    return _mm256_add_ps(a, b);
}
INLINE vf v_sub(vf a, vf b)
{
    return _mm256_sub_ps(a, b);
}
INLINE vf v_mul(vf a, vf b)
{
    return _mm256_mul_ps(a, b);
}
INLINE vf v_div(vf a, vf b)
{
    return _mm256_div_ps(a, b);
}
INLINE vf v_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}
INLINE vf v_nma(vf a, vf b, vf c)
{
    return _mm256_fnmadd_ps(a, b, c);
}
INLINE vi v_bits(vf a)
{
    return _mm256_castps_si256(a);
}
INLINE vf v_flt(vi a)
{
    return _mm256_castsi256_ps(a);
}
INLINE vf v_cvt(vi a)
{
    return _mm256_cvtepi32_ps(a);
}
INLINE vi i_add(vi a, vi b)
{
    return _mm256_add_epi32(a, b);
}
INLINE vi i_sub(vi a, vi b)
{
    return _mm256_sub_epi32(a, b);
}
INLINE vi i_and(vi a, vi b)
{
    return _mm256_and_si256(a, b);
}
INLINE vi i_or(vi a, vi b)
{
    return _mm256_or_si256(a, b);
}
INLINE vi i_xor(vi a, vi b)
{
    return _mm256_xor_si256(a, b);
}
#define i_sll(a, n) _mm256_slli_epi32(a, n)
#define i_srl(a, n) _mm256_srli_epi32(a, n)
#define i_sra(a, n) _mm256_srai_epi32(a, n)
INLINE vi i_max(vi a, vi b)
{
    return _mm256_max_epi32(a, b);
}
INLINE vm i_gt(vi a, vi b)
{
    return _mm256_cmpgt_epi32(a, b);
}
INLINE vm v_gt(vf a, vf b)
{
    return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_GT_OQ));
}
INLINE vm v_nan(vf a)
{
    return _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q));
}
INLINE vf v_sel(vm m, vf a, vf b)
{
    return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(m));
}
INLINE vi i_sel(vm m, vi a, vi b)
{
    return _mm256_blendv_epi8(b, a, m);
}
INLINE vf v_f16(const void *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}
INLINE void v_store_f16(void *p, vf a)
{
    _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(a, 0));
}
INLINE vf v_i8(const void *p)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)));
}
INLINE void i_store_low8(int8_t *p, const vi *c)
{
    const __m256i pick = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 1, 1, 1, 1, 1);
    const __m256i a = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(c[0], pick), order);
    const __m256i b = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(c[1], pick), order);
    _mm_storeu_si128((__m128i *)(void *)p,
                     _mm_unpacklo_epi64(_mm256_castsi256_si128(a), _mm256_castsi256_si128(b)));
}
#define v_swap1(a) _mm256_permute_ps(a, 0xb1)
#define v_swap2(a) _mm256_permute_ps(a, 0x4e)
#define v_swap4(a) _mm256_permute2f128_ps(a, a, 1)
INLINE float fold16(const vf *acc)
{
    const __m256 a = _mm256_add_ps(acc[0], acc[1]);
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    b = _mm_add_ss(b, _mm_movehdup_ps(b));
    return _mm_cvtss_f32(b);
}

INLINE void v_load_by4(const float *p, vf *a)
{
    const __m256 p0 = v_load(p), p1 = v_load(p + 8), p2 = v_load(p + 16), p3 = v_load(p + 24);
    const __m256 x0 = _mm256_permute2f128_ps(p0, p2, 0x20),
                 x1 = _mm256_permute2f128_ps(p0, p2, 0x31);
    const __m256 x2 = _mm256_permute2f128_ps(p1, p3, 0x20),
                 x3 = _mm256_permute2f128_ps(p1, p3, 0x31);
    const __m256 a01 = _mm256_unpacklo_ps(x0, x1), a23 = _mm256_unpackhi_ps(x0, x1);
    const __m256 b01 = _mm256_unpacklo_ps(x2, x3), b23 = _mm256_unpackhi_ps(x2, x3);
    a[0] = _mm256_shuffle_ps(a01, b01, 0x44);
    a[1] = _mm256_shuffle_ps(a01, b01, 0xee);
    a[2] = _mm256_shuffle_ps(a23, b23, 0x44);
    a[3] = _mm256_shuffle_ps(a23, b23, 0xee);
}

#else
enum { W = 4 };
typedef float32x4_t vf;
typedef uint32x4_t vi;
typedef uint32x4_t vm;
INLINE vf v_set(float a)
{
    return vdupq_n_f32(a);
}
INLINE vi i_set(uint32_t a)
{
    return vdupq_n_u32(a);
}
INLINE vf v_load(const float *p)
{
    return vld1q_f32(p);
}
INLINE void v_store(float *p, vf a)
{
    vst1q_f32(p, a);
}
INLINE vf v_loadn(const float *p, size_t n)
{
    float t[4] = { 0, 0, 0, 0 };
    memcpy(t, p, (n < 4 ? n : 4) * sizeof *t);
    return vld1q_f32(t);
}
INLINE void v_storen(float *p, vf a, size_t n)
{
    float t[4];
    vst1q_f32(t, a);
    memcpy(p, t, (n < 4 ? n : 4) * sizeof *t);
}
INLINE void v_load_by4(const float *p, vf *a)
{
    const float32x4x4_t all = vld4q_f32(p);
    for (int t = 0; t < 4; t++) a[t] = all.val[t];
}
INLINE vi i_loadu(const uint32_t *p)
{
    return vld1q_u32(p);
}
INLINE void i_store(uint32_t *p, vi a)
{
    vst1q_u32(p, a);
}
INLINE vf v_add(vf a, vf b)
{
    return vaddq_f32(a, b);
}
INLINE vf v_sub(vf a, vf b)
{
    return vsubq_f32(a, b);
}
INLINE vf v_mul(vf a, vf b)
{
    return vmulq_f32(a, b);
}
INLINE vf v_div(vf a, vf b)
{
    return vdivq_f32(a, b);
}
INLINE vf v_fma(vf a, vf b, vf c)
{
    return vfmaq_f32(c, a, b);
} /* accumulator first */
INLINE vf v_nma(vf a, vf b, vf c)
{
    return vfmsq_f32(c, a, b);
}
INLINE vi v_bits(vf a)
{
    return vreinterpretq_u32_f32(a);
}
INLINE vf v_flt(vi a)
{
    return vreinterpretq_f32_u32(a);
}
INLINE vf v_cvt(vi a)
{
    return vcvtq_f32_s32(vreinterpretq_s32_u32(a));
}
INLINE vi i_add(vi a, vi b)
{
    return vaddq_u32(a, b);
}
INLINE vi i_sub(vi a, vi b)
{
    return vsubq_u32(a, b);
}
INLINE vi i_and(vi a, vi b)
{
    return vandq_u32(a, b);
}
INLINE vi i_or(vi a, vi b)
{
    return vorrq_u32(a, b);
}
INLINE vi i_xor(vi a, vi b)
{
    return veorq_u32(a, b);
}
#define S32(a) vreinterpretq_s32_u32(a)
#define U32(a) vreinterpretq_u32_s32(a)
#define i_sll(a, n) vshlq_n_u32(a, n)
#define i_srl(a, n) vshrq_n_u32(a, n)
#define i_sra(a, n) U32(vshrq_n_s32(S32(a), n))
INLINE vi i_max(vi a, vi b)
{
    return U32(vmaxq_s32(S32(a), S32(b)));
}
INLINE vm i_gt(vi a, vi b)
{
    return vcgtq_s32(S32(a), S32(b));
}
INLINE vm v_gt(vf a, vf b)
{
    return vcgtq_f32(a, b);
}
INLINE vm v_nan(vf a)
{
    return vmvnq_u32(vceqq_f32(a, a));
}
INLINE vf v_sel(vm m, vf a, vf b)
{
    return vbslq_f32(m, a, b);
}
INLINE vi i_sel(vm m, vi a, vi b)
{
    return vbslq_u32(m, a, b);
}
INLINE vf v_f16(const void *p)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16((const uint16_t *)p)));
}
INLINE void v_store_f16(void *p, vf a)
{
    vst1_u16((uint16_t *)p, vreinterpret_u16_f16(vcvt_f16_f32(a)));
}
INLINE vf v_i8(const void *p)
{
    uint32_t four;
    memcpy(&four, p, sizeof four);
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_u32(vdup_n_u32(four))))));
}
INLINE void i_store_low8(int8_t *p, const vi *c)
{
    const uint16x8_t a = vcombine_u16(vmovn_u32(c[0]), vmovn_u32(c[1]));
    const uint16x8_t b = vcombine_u16(vmovn_u32(c[2]), vmovn_u32(c[3]));
    vst1q_s8(p, vreinterpretq_s8_u8(vcombine_u8(vmovn_u16(a), vmovn_u16(b))));
}
#define v_swap1(a) vrev64q_f32(a)
#define v_swap2(a) vextq_f32(a, a, 2)
INLINE float fold16(const vf *acc)
{
    const float32x4_t b = vaddq_f32(vaddq_f32(acc[0], acc[2]), vaddq_f32(acc[1], acc[3]));
    const float32x2_t c = vadd_f32(vget_low_f32(b), vget_high_f32(b));
    return vget_lane_f32(c, 0) + vget_lane_f32(c, 1);
}
#endif

enum { NV = 16 / W };

#ifndef fold16_rows
INLINE void fold16_rows(const vf (*acc)[NV], int rows, float *out)
{
    for (int i = 0; i < rows; i++) out[i] = fold16(acc[i]);
}
#endif

INLINE vi i_abs(vi u)
{
    return i_and(u, i_set(0x7fffffffu));
}
INLINE vf v_abs(vf a)
{
    return v_flt(i_abs(v_bits(a)));
}
INLINE vf v_neg(vf a)
{
    return v_flt(i_xor(v_bits(a), i_set(0x80000000u)));
}
#endif
