/* f64.c - see f64.h. Plain IEEE operations in a fixed order; exp reduces its argument as Cody and
 * Waite (1980) do and sums the Taylor series. */
#include "base/f64.h"

#include <stdint.h>
#include <string.h>

#include "base/banned.h"

static double power_of_two(int n) /* -1022 <= n <= 1023 */
{
    const uint64_t bits = (uint64_t)(n + 1023) << 52;
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

double f64_exp(double x)
{
    static const double c[] = { 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040,
                                1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800,
                                /* 1 / (i + 2)! */
                                1.0 / 479001600, 1.0 / 6227020800, 1.0 / 87178291200 };
    const double log2e = 0x1.71547652b82fep+0, ln2_high = 0x1.62e42fee00000p-1,
                 ln2_low = 0x1.a39ef35793c76p-33;
    const double magic = 0x1.8p+52; /* adding it rounds to a whole number */
    if (x != x) return x;
    if (x > 709.9) return power_of_two(1023) * 2;
    if (x < -745.2) return 0;
    const double n = (x * log2e + magic) - magic;
    const double high = x - n * ln2_high; /* exact: ln2_high has 20 trailing zero bits */
    const double low = n * ln2_low;
    const double r = high - low;
    const double rest = (high - r) - low; /* what rounding r lost */
    double sum = c[12];                   /* (e^r - 1 - r) / r^2 */
    for (int i = 11; i >= 0; i--) sum = sum * r + c[i];
    const double value = 1 + (r + (rest + r * r * sum));
    const int k = (int)n, half = k / 2;
    return value * power_of_two(half) * power_of_two(k - half);
}

/* x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)). With s = f / (2 + f):
 * ln(1 + f) = 2 atanh(s) = 2s + s R,  R = 2/3 s^2 + 2/5 s^4 + ...,  and 2s = f - f^2/2 + s f^2/2,
 * so that the large part f is exact. |s| < 0.1716: ten terms leave less than 2^-58 of the
 * result. */
double f64_log(double x)
{
    static const double c[] = { 2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11,
                                2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21 };
    /* hi * k is exact */
    static const double ln2_hi = 0x1.62e42feep-1, ln2_lo = 0x1.a39ef35793c76p-33;
    int k = 0;
    if (x < 0x1p-1022) { /* subnormal */
        x *= 0x1p54;
        k = -54;
    }
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    k += (int)(bits >> 52) - 1023;
    bits = (bits & 0x000fffffffffffffu) | 0x3ff0000000000000u;
    memcpy(&x, &bits, sizeof x);
    if (x >= 0x1.6a09e667f3bcdp0) { /* sqrt(2) */
        x *= 0.5;
        k++;
    }
    const double f = x - 1, s = f / (2 + f), z = s * s, half = 0.5 * f * f;
    double r = c[9];
    for (int i = 8; i >= 0; i--) r = r * z + c[i];
    r *= z;
    return k * ln2_hi - ((half - (s * (half + r) + k * ln2_lo)) - f);
}
