/* timing.c - see timing.h. */
#include "tools/timing.h"

#include <stdlib.h>

#include "base/banned.h"

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

timing timing_of(double *seconds, int n)
{
    qsort(seconds, (size_t)n, sizeof *seconds, by_value);
    const double *middle = seconds + n / 2;
    return (timing){ n % 2 ? *middle : (middle[-1] + *middle) / 2, seconds[0], seconds[n - 1] };
}

double timing_spread(timing t)
{
    return t.median > 0 ? (t.most - t.least) / t.median : 0;
}
