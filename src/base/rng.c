/* rng.c - see rng.h. Nothing here calls the C library's mathematics but sqrt, which IEEE 754 fixes
 * to the last bit. */
#include "base/rng.h"
#include <math.h>
#include <unistd.h>
#ifdef __APPLE__
#include <sys/random.h>
#endif
#include "base/error.h"
#include "base/f64.h"
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

double rng_uniform(uint64_t key, int32_t id)
{
    const uint64_t h = rng_mix(key ^ (uint32_t)id);
    return ((double)(h >> 12) + 0.5) * 0x1p-52; /* exactly representable */
}

double rng_gumbel(uint64_t key, int32_t id)
{
    return -f64_log(-f64_log(rng_uniform(key, id)));
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
    return u * sqrt(-2 * f64_log(s) / s);
}

uint64_t rng_entropy(void)
{
    uint64_t x = 0;
    CHECK(getentropy(&x, sizeof x) == 0);
    return x;
}
