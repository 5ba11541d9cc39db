/* canon.h - the constants of the canonical functions: the only place where they are written.
 *
 * exp:  1 + r*P(r) on |r| <= ln2/2, relative error 2^-28.2.
 * log:  log(1+f) = f + f*f*Q(f) on |f| <= 1/3, relative error 2^-27.7.
 * tanh: x + x*z*T(z), z = x*x, |x| < 0.625, relative error 2^-27.8.
 * Coefficients: own weighted minimax fits (Lawson / Remez), rounded to binary32 one at a time;
 * highest power first. */
#ifndef COMPUTE_CPU_CANON_H
#define COMPUTE_CPU_CANON_H

#define CANON_QNAN 0x7fc00000u /* every NaN result of a function has these bits */
#define CANON_LOG2E 0x1.715476p+0f
#define CANON_LN2_HI 0x1.62e430p-1f
#define CANON_LN2_LO -0x1.05c610p-29f
#define CANON_MAGIC 0x1.8p+23f       /* adding it rounds |v| < 2^22 to an integer */
#define CANON_EXP_HI 0x1.62e42ep+6f  /* exp(x) is finite for x <= this */
#define CANON_EXP_LO -0x1.5d589ep+6f /* exp(x) >= 2^-126 for x >= this; below: +0 */
#define CANON_TANH_SPLIT 0.625f
#define CANON_LOG_PIVOT 0x3f2aaaabu /* 2/3: mantissas are taken from [2/3, 4/3) */
#define CANON_TINY_ROW \
    0x0d800000u /* 2^-100: a group whose largest magnitude is below quantizes to zeros */

#define CANON_EXP_POLY(STEP) \
    STEP(0x1.6a4f26p-10f)    \
    STEP(0x1.123980p-7f) STEP(0x1.5558aep-5f) STEP(0x1.555492p-3f) STEP(0x1.fffffcp-2f) STEP(1.0f)
#define CANON_LOG_POLY(STEP) \
    STEP(-0x1.07bd4ap-3f)    \
    STEP(0x1.1e73a0p-3f)     \
    STEP(-0x1.f33372p-4f)    \
    STEP(0x1.1ed424p-3f)     \
    STEP(-0x1.559c84p-3f)    \
    STEP(0x1.99d05ep-3f) STEP(-0x1.fffef8p-3f) STEP(0x1.555506p-2f) STEP(-0.5f)
#define CANON_TANH_POLY(STEP) \
    STEP(-0x1.75f5a2p-8f)     \
    STEP(0x1.52330ep-6f) STEP(-0x1.b83fc4p-5f) STEP(0x1.110750p-3f) STEP(-0x1.555534p-2f)
#endif
