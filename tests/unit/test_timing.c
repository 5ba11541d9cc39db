#include "test.h"
#include "tools/timing.h"

TEST(timing_is_the_median_between_least_and_most)
{
    double odd[] = { 5, 1, 3 }, even[] = { 4, 2, 10, 3 }, one[] = { 7 };
    timing t = timing_of(odd, 3);
    EXPECT(t.median == 3 && t.least == 1 && t.most == 5);
    EXPECT(timing_spread(t) == 4.0 / 3);
    t = timing_of(even, 4);
    EXPECT(t.median == 3.5 && t.least == 2 && t.most == 10);
    t = timing_of(one, 1);
    EXPECT(t.median == 7 && timing_spread(t) == 0);
    EXPECT(timing_spread((timing){ 0 }) == 0);
}
