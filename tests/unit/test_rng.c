#include "test.h"
#include <float.h>
#include <math.h>
#include "base/rng.h"

/* The reference program of splitmix64 (Vigna 2015) started at 1234567 and at 0. */
TEST(splitmix_vectors)
{
    rng r = { 1234567 };
    EXPECT(rng_next(&r) == 6457827717110365317u);
    EXPECT(rng_next(&r) == 3203168211198807973u);
    EXPECT(rng_next(&r) == 9817491932198370423u);
    r.s = 0;
    EXPECT(rng_next(&r) == 0xe220a8397b1dcdafu);
    EXPECT(rng_mix(0) == 0xe220a8397b1dcdafu);
}

static double ulps(double got, double want)
{
    return fabs(got - want) / (nextafter(fabs(want), INFINITY) - fabs(want));
}

/* Computed in 50-digit decimal arithmetic from the definition in the header. */
TEST(gumbel_by_decimal_arithmetic)
{
    static const struct {
        uint64_t seed, choice, position, key;
        int32_t id;
        double want;
    } cases[] = {
        { 0, 0, 0, 0x238275bc38fcbe91u, 0, -0x1.6dc5326677b13p-1 },
        { 42, 0, 7, 0xa475db99d192c121u, 248319, 0x1.fb7efb13204cap+0 },
        { UINT64_MAX, 3, 1000000, 0x063dddfed907c5bfu, 12, -0x1.c6f0211a15e26p-1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint64_t key = rng_key(cases[i].seed, cases[i].choice, cases[i].position);
        EXPECT(key == cases[i].key);
        EXPECT(ulps(rng_gumbel(key, cases[i].id), cases[i].want) <= 4); /* two logarithms */
    }
}

TEST(gumbel_moments)
{
    /* mean 0.57722 (Euler), variance pi^2 / 6; a million draws: standard errors 0.0013 and
     * 0.0035 */
    enum { N = 1000000 };
    double sum = 0, squares = 0;
    for (int i = 0; i < N; i++) {
        const double g = rng_gumbel(rng_key(7, 0, (uint64_t)i / 1000), i % 1000);
        EXPECT(isfinite(g));
        sum += g;
        squares += g * g;
    }
    const double mean = sum / N, variance = squares / N - mean * mean;
    EXPECT(fabs(mean - 0.5772156649) < 0.005);
    EXPECT(fabs(variance - 1.6449340668) < 0.014);
}

/* argmax of ln p + G draws from p: 40,000 draws over 8 outcomes, 7 degrees of freedom, 0.999
 * quantile 24.3. */
TEST(gumbel_argmax_draws_the_distribution)
{
    enum { N = 40000, K = 8 };
    static const double p[K] = { 0.4, 0.2, 0.15, 0.1, 0.08, 0.04, 0.02, 0.01 };
    int seen[K] = { 0 };
    for (int i = 0; i < N; i++) {
        const uint64_t key = rng_key(2024, 0, (uint64_t)i);
        int best = 0;
        double top = -INFINITY;
        for (int k = 0; k < K; k++) {
            const double score = log(p[k]) + rng_gumbel(key, k);
            if (score > top) {
                top = score;
                best = k;
            }
        }
        seen[best]++;
    }
    double chi = 0;
    for (int k = 0; k < K; k++) chi += (seen[k] - N * p[k]) * (seen[k] - N * p[k]) / (N * p[k]);
    if (chi > 24.3) FAIL("chi-square %g", chi);
}

TEST(uniform_chi_square)
{
    enum { N = 1000000, BINS = 256 };
    static int unit[BINS], below[BINS];
    rng r = { 5 };
    for (int i = 0; i < N; i++) {
        const double u = rng_unit(&r);
        EXPECT(u >= 0 && u < 1);
        unit[(int)(u * BINS)]++;
        below[rng_below(&r, BINS)]++;
    }
    double a = 0, b = 0;
    for (int i = 0; i < BINS; i++) {
        const double want = (double)N / BINS;
        a += (unit[i] - want) * (unit[i] - want) / want;
        b += (below[i] - want) * (below[i] - want) / want;
    }
    /* 255 degrees of freedom: 0.999 quantile 330.5 */
    if (a > 330 || b > 330) FAIL("chi-square %g and %g", a, b);
}

TEST(below_stays_below)
{
    rng r = { 6 };
    for (uint32_t n = 1; n < 2000; n++) EXPECT(rng_below(&r, n) < n);
    for (int i = 0; i < 1000; i++) EXPECT(rng_below(&r, UINT32_MAX) < UINT32_MAX);
}

TEST(normal_moments)
{
    enum { N = 500000 };
    rng r = { 8 };
    double sum = 0, squares = 0, fourth = 0;
    for (int i = 0; i < N; i++) {
        const double x = rng_normal(&r);
        sum += x;
        squares += x * x;
        fourth += x * x * x * x;
    }
    EXPECT(fabs(sum / N) < 0.006);
    EXPECT(fabs(squares / N - 1) < 0.009);
    EXPECT(fabs(fourth / N - 3) < 0.06);
}

TEST(entropy_differs)
{
    EXPECT(rng_entropy() != rng_entropy());
}
