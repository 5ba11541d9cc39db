/* rng.h - position-keyed noise and a small seeded generator.
 *
 * The Gumbel noise of a choice depends on (seed, choice, position, id) and on nothing else, so a
 * pick needs no memory of earlier picks: drafted, batched or resumed runs draw the same token.
 * Hash: splitmix64's finaliser (Steele, Lea, Flood 2014). The logarithm is our own f64 polynomial,
 * so the bits do not depend on the C library. */
#ifndef BASE_RNG_H
#define BASE_RNG_H
#include <stdint.h>

uint64_t rng_mix(uint64_t x); /* finaliser of x + 0x9e3779b97f4a7c15 */
uint64_t rng_key(uint64_t seed, uint64_t choice, uint64_t position);
double rng_uniform(uint64_t key, int32_t id); /* in (0, 1), 52 bits */
double rng_gumbel(uint64_t key, int32_t id);  /* -ln(-ln u) of that u: finite */

typedef struct rng {
    uint64_t s;
} rng; /* for tests, synth and seeds */
uint64_t rng_next(rng *r);
double rng_unit(rng *r);                /* [0, 1) */
uint32_t rng_below(rng *r, uint32_t n); /* [0, n), unbiased */
double rng_normal(rng *r);              /* mean 0, variance 1 */
uint64_t rng_entropy(void);             /* from the system */
#endif
