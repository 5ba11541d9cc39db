/* rng.c - see rng.h. Nothing here calls the C library's mathematics but sqrt, which IEEE 754 fixes
 * to the last bit. */
#include "base/rng.h"
#include <math.h>
#include <string.h>
#include <unistd.h>
#ifdef __APPLE__
#include <sys/random.h>
#endif
#include "base/error.h"
#include "base/banned.h"

static const uint64_t golden_gamma = 0x9e3779b97f4a7c15u;

uint64_t rng_mix(uint64_t x)
{
    x += golden_gamma;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t rng_key(uint64_t seed, uint64_t choice, uint64_t position)
{
    return rng_mix(rng_mix(rng_mix(seed) ^ choice) ^ position);
}

double rng_gumbel(uint64_t key, int32_t id)
{
    const uint64_t h = rng_mix(key ^ (uint32_t)id);
    const double u = ((double)(h >> 12) + 0.5) * 0x1p-52; /* in (0, 1), exactly representable */
    return -rng_log(-rng_log(u));
}

/* x = 2^k (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)). With s = f / (2 + f):
 * ln(1 + f) = 2 atanh(s) = 2s + s R,  R = 2/3 s^2 + 2/5 s^4 + ...,  and 2s = f - f^2/2 + s f^2/2,
 * so that the large part f is exact. |s| < 0.1716: ten terms leave less than 2^-58 of the
 * result. */
double rng_log(double x)
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

uint64_t rng_next(rng *r)
{
    const uint64_t x = rng_mix(r->s);
    r->s += golden_gamma;
    return x;
}

double rng_unit(rng *r)
{
    return (double)(rng_next(r) >> 11) * 0x1p-53;
}

/* Multiply and reject (Lemire 2019): the low half tells the few products that would favour some
 * results. */
uint32_t rng_below(rng *r, uint32_t n)
{
    CHECK(n > 0);
    const uint32_t uneven = (uint32_t)-n % n; /* 2^32 mod n */
    uint64_t product;
    do {
        product = (rng_next(r) >> 32) * n;
    } while ((uint32_t)product < uneven);
    return (uint32_t)(product >> 32);
}

/* The polar method (Marsaglia 1964); the second of the pair is thrown away. */
double rng_normal(rng *r)
{
    double u, s;
    do {
        u = 2 * rng_unit(r) - 1;
        const double v = 2 * rng_unit(r) - 1;
        s = u * u + v * v;
    } while (s >= 1 || s == 0);
    return u * sqrt(-2 * rng_log(s) / s);
}

uint64_t rng_entropy(void)
{
    uint64_t x = 0;
    CHECK(getentropy(&x, sizeof x) == 0);
    return x;
}
