#include "test.h"
#include <time.h>
#include "base/clock.h"

TEST(monotonic_and_in_nanoseconds)
{
    const int64_t a = clock_ns();
    clock_sleep_ms(20);
    const int64_t b = clock_ns();
    EXPECT(b - a >= 20000000);
    EXPECT(b - a < 20000000000);
    clock_sleep_ms(0);
    clock_sleep_ms(-5);
}

TEST(wall_time)
{
    EXPECT(llabs((long long)clock_wall_s() - (long long)time(NULL)) <= 1);
}
