/* Against the C library's long double functions, which are good to far more than a double's last
 * bit. */
#include <float.h>
#include <math.h>

#include "base/f64.h"
#include "base/rng.h"
#include "test.h"

static double ulps(double got, long double want)
{
    const double w = (double)want;
    const double unit = nextafter(fabs(w), INFINITY) - fabs(w);
    return fabs((double)((long double)got - want)) / unit;
}

TEST(exp_is_within_one_ulp)
{
    double worst = 0;
    for (int i = 0; i < 200000; i++) {
        const double x = -708.0 + 1417.0 * i / 200000.0;
        const double u = ulps(f64_exp(x), expl(x));
        if (u > worst) worst = u;
    }
    if (worst > 1.0) FAIL("worst error %g ulp", worst);
    EXPECT(f64_exp(0) == 1);
}

TEST(exp_at_the_ends)
{
    EXPECT(f64_exp(710) == INFINITY);
    EXPECT(f64_exp(-746) == 0);
    EXPECT(f64_exp(INFINITY) == INFINITY);
    EXPECT(f64_exp(-INFINITY) == 0);
    EXPECT(isnan(f64_exp(NAN)));
    EXPECT(ulps(f64_exp(-740), expl(-740.0L)) <= 1);
}

TEST(log_within_one_ulp_of_libm)
{
    rng r = { 99 };
    double worst = 0;
    for (int i = 0; i < 2000000; i++) {
        double x;
        if (i % 3 == 0) x = rng_unit(&r) + 0x1p-54;               /* (0, 1) */
        else if (i % 3 == 1) x = 1 + (rng_unit(&r) - 0.5) * 1e-3; /* where cancellation bites */
        else x = ldexp(1 + rng_unit(&r), (int)rng_below(&r, 2046) - 1022);
        const long double want = logl(x);
        const double got = f64_log(x);
        if (want == 0) EXPECT(got == 0);
        else if (ulps(got, want) > worst) worst = ulps(got, want);
    }
    if (worst > 1) FAIL("%g ulp", worst);
}

TEST(log_at_the_edges)
{
    EXPECT(f64_log(1) == 0);
    EXPECT(ulps(f64_log(DBL_MAX), 709.782712893384) <= 1);
    EXPECT(ulps(f64_log(DBL_MIN), -708.3964185322641) <= 1);
    EXPECT(ulps(f64_log(5e-324), -744.4400719213812) <= 1);
    EXPECT(ulps(f64_log(1 - 0x1p-53), -1.1102230246251565e-16) <= 1);
    EXPECT(ulps(f64_log(1 + 0x1p-52), 2.220446049250313e-16) <= 1);
}
