/* clock.h - time. Monotonic nanoseconds for durations, wall seconds for stamps. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H
#include <stdint.h>

int64_t clock_ns(void);     /* monotonic */
int64_t clock_wall_s(void); /* seconds since 1970, UTC */
void clock_sleep_ms(int ms);
#endif
