/* clock.c - see clock.h. */
#include "base/clock.h"
#include <errno.h>
#include <time.h>
#include "base/banned.h"

int64_t clock_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t clock_wall_s(void)
{
    return (int64_t)time(NULL);
}

void clock_sleep_ms(int ms)
{
    struct timespec left = { ms / 1000, (long)(ms % 1000) * 1000000 };
    while (ms > 0 && nanosleep(&left, &left) != 0 && errno == EINTR) {}
}
