/* vmath.h - exp, sigmoid, silu, softplus and tanh over the vectors of lanes.h.
 *
 * At most 1.8 ulp from the truth (measured against f64 over 2^32 / 7 inputs and more), the same
 * bits on every instruction set; results are defined for every input: NaN gives CANON_QNAN, what
 * would be subnormal gives zero (docs/kernels.md). Comparisons that could see a subnormal are made
 * on integers, so the flush modes do not matter. */
#ifndef COMPUTE_CPU_VMATH_H
#define COMPUTE_CPU_VMATH_H
#include "compute/cpu/canon.h"
#include "compute/cpu/lanes.h"

INLINE vf qnan(void)
{
    return v_flt(i_set(CANON_QNAN));
}

#define HORNER_STEP(c) p = first ? v_set(c) : v_fma(p, t, v_set(c)), first = 0;
#define HORNER(POLY, t_) \
    vf p, t = (t_);      \
    int first = 1;       \
    p = t;               \
    POLY(HORNER_STEP)
INLINE vf poly_exp(vf r)
{
    HORNER(CANON_EXP_POLY, r) return p;
}
INLINE vf poly_log(vf f)
{
    HORNER(CANON_LOG_POLY, f) return p;
}
INLINE vf poly_tanh(vf z)
{
    HORNER(CANON_TANH_POLY, z) return p;
}

/* x = n ln2 + r (Cody and Waite): e^x = 2^n (1 + r P(r)). Returns P(r); *n is n in the exponent
 * field: the sum t has n in its low bits, and its own exponent is shifted out. */
INLINE vf exp_reduced(vf x, vf *r, vi *n)
{
    vf t = v_fma(x, v_set(CANON_LOG2E), v_set(CANON_MAGIC));
    vf k = v_sub(t, v_set(CANON_MAGIC));
    *r = v_nma(k, v_set(CANON_LN2_LO), v_nma(k, v_set(CANON_LN2_HI), x));
    *n = i_sll(v_bits(t), 23);
    return poly_exp(*r);
}
/* exp for x <= CANON_EXP_HI; x below CANON_EXP_LO gives +0; a NaN is the caller's. */
INLINE vf exp_core(vf x)
{
    vi n;
    vf r, p = exp_reduced(x, &r, &n);
    vf y = v_flt(i_add(v_bits(v_fma(p, r, v_set(1.0f))), n));
    return v_sel(v_gt(v_set(CANON_EXP_LO), x), v_set(0.0f), y);
}
INLINE vf k_exp(vf x)
{
    vf y = exp_core(x);
    y = v_sel(v_gt(x, v_set(CANON_EXP_HI)), v_flt(i_set(0x7f800000u)), y);
    return v_sel(v_nan(x), qnan(), y);
}

/* log(s + c) for normal s in [1, 2] and its rounding error c */
INLINE vf log_of_sum(vf s, vf c)
{
    vi d = i_sub(v_bits(s), i_set(CANON_LOG_PIVOT)), e = i_sra(d, 23);
    vf f = v_sub(v_flt(i_add(i_and(d, i_set(0x7fffff)), i_set(CANON_LOG_PIVOT))), v_set(1.0f));
    vf k = v_cvt(e);
    f = v_fma(c, v_flt(i_sub(i_set(0x3f800000u), i_sll(e, 23))), f); /* c 2^-k */
    vf a = v_fma(v_mul(f, f), poly_log(f), v_mul(k, v_set(CANON_LN2_LO)));
    return v_fma(k, v_set(CANON_LN2_HI), v_add(f, a));
}
INLINE vf neg_abs(vf x)
{
    return v_flt(i_or(v_bits(x), i_set(0x80000000u)));
}
/* e^x = e + *lo with the rounding error of the last addition, for |x| <= -CANON_EXP_LO */
INLINE vf exp_pair(vf x, vf *lo)
{
    vf one = v_set(1.0f), r;
    vi n;
    vf q = exp_reduced(x, &r, &n);
    vf p = v_fma(q, r, one);
    *lo = v_mul(v_fma(q, r, v_sub(one, p)), v_flt(i_add(n, i_set(0x3f800000u))));
    return v_flt(i_add(v_bits(p), n));
}
INLINE vf k_softplus(vf x) /* max(x,0) + log(1 + e^-|x|) */
{
    vf a = neg_abs(x), lo, e = exp_pair(a, &lo);
    /* else a subnormal low part could make a tie */
    lo = v_sel(v_gt(v_set(-32.0f), a), v_set(0.0f), lo);
    vf s = v_add(e, v_set(1.0f));
    vf c = v_add(v_sub(e, v_sub(s, v_set(1.0f))), lo); /* 1 + e = s + c */
    vf y = v_sel(v_gt(v_set(CANON_EXP_LO), a), v_set(0.0f), log_of_sum(s, c));
    y = v_add(v_sel(v_gt(x, v_set(0.0f)), x, v_set(0.0f)), y);
    return v_sel(v_nan(x), qnan(), y);
}
/* 1 / (1 + e^-x) = inv (1 + r), for |x| <= -CANON_EXP_LO. The low parts of e^-x and of the sum
 * 1 + e^-x are kept and enter the residual r, so that one rounding is left. */
INLINE vf sigmoid_core(vf x, vf *r)
{
    vf one = v_set(1.0f), lo;
    vf e = exp_pair(v_flt(i_xor(v_bits(x), i_set(0x80000000u))), &lo);
    vf s = v_add(e, one), b = v_sub(s, e);
    vf c = v_add(v_add(v_sub(one, b), v_sub(e, v_sub(s, b))), lo); /* TwoSum */
    vf inv = v_div(one, s);
    *r = v_nma(c, inv, v_nma(s, inv, one));
    return inv;
}
INLINE vf k_sigmoid(vf x)
{
    vf r, inv = sigmoid_core(x, &r), y = v_fma(inv, r, inv);
    y = v_sel(v_gt(v_set(CANON_EXP_LO), x), v_set(0.0f), y);
    y = v_sel(v_gt(x, v_set(64.0f)), v_set(1.0f), y);
    return v_sel(v_nan(x), qnan(), y);
}
INLINE vf k_silu(vf x)
{
    vi u = v_bits(x), neg0 = i_and(u, i_set(0x80000000u));
    vf r, y = v_mul(x, sigmoid_core(x, &r));
    y = v_fma(y, r, y);
    y = v_sel(i_gt(i_set(0x01000000u), i_abs(u)), v_flt(neg0), y); /* |x| < 2^-125: signed zero */
    y = v_sel(v_gt(v_set(CANON_EXP_LO), x), v_set(-0.0f), y);
    y = v_sel(v_gt(x, v_set(64.0f)), x, y);
    return v_sel(v_nan(x), qnan(), y);
}
INLINE vf k_tanh(vf x)
{
    vi u = v_bits(x), sign = i_and(u, i_set(0x80000000u)), a = i_abs(u);
    vf z = v_mul(x, x), lo = v_fma(v_mul(x, z), poly_tanh(z), x);
    vf e = exp_core(v_mul(v_abs(x), v_set(-2.0f)));
    vf hi = v_div(v_sub(v_set(1.0f), e), v_add(v_set(1.0f), e));
    vf y = v_sel(v_gt(v_set(CANON_TANH_SPLIT), v_abs(x)), lo, v_flt(i_or(v_bits(hi), sign)));
    y = v_sel(i_gt(i_set(0x39000000u), a), x, y); /* |x| < 2^-13 */
    return v_sel(v_nan(x), qnan(), y);
}
#endif
