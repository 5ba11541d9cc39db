/* stride.h - for tests: how much of a long repetition a build can bear. */
#ifndef STRIDE_H
#define STRIDE_H
#include <stdlib.h>

/* How far a loop over many alike cases steps: to the next one, and in builds that INGOT_TEST_SLOW
 * calls slow (under sanitizers) to the third. */
static inline int test_stride(void)
{
    const char *slow = getenv("INGOT_TEST_SLOW");
    return slow && atoi(slow) > 1 ? 3 : 1;
}
#endif
