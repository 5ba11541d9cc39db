#include "base/rng.h"
#include "engine/lookup.h"
#include "test.h"

TEST(a_repeated_passage_is_found)
{
    int32_t t[64];
    for (int i = 0; i < 40; i++) t[i] = 100 + i;
    for (int i = 0; i < 10; i++) t[40 + i] = 105 + i; /* tokens 5..14 again */
    lookup l;
    error e;
    EXPECT_OK(lookup_init(&l, 64, &e), e);
    EXPECT_INT(lookup_find(&l, t, 47), 0); /* seven tokens agree: too few */
    EXPECT_INT(lookup_find(&l, t, 48), 13);
    EXPECT_INT(lookup_find(&l, t, 50), 15);
    lookup_free(&l);
}

TEST(the_latest_occurrence_counts)
{
    int32_t t[64];
    for (int i = 0; i < 60; i++) t[i] = i % 20;
    lookup l;
    error e;
    EXPECT_OK(lookup_init(&l, 64, &e), e);
    EXPECT_INT(lookup_find(&l, t, 60), 40);
    lookup_free(&l);
}

/* Whatever the index holds: what is found agrees in eight tokens and stands before the end. */
TEST(a_find_is_never_wrong)
{
    enum { N = 5000 };
    static int32_t t[N];
    rng r = { 3 };
    for (int i = 0; i < N; i++) t[i] = (int32_t)rng_below(&r, 3);
    lookup l;
    error e;
    EXPECT_OK(lookup_init(&l, 100, &e), e); /* far fewer slots than positions */
    int found = 0;
    for (int n = 1; n <= N; n += 1 + (int)rng_below(&r, 3)) {
        const int at = lookup_find(&l, t, n);
        if (!at) continue;
        found++;
        EXPECT(at >= LOOKUP_MATCH && at < n);
        EXPECT(memcmp(t + at - LOOKUP_MATCH, t + n - LOOKUP_MATCH, LOOKUP_MATCH * 4) == 0);
    }
    EXPECT(found > 0);
    lookup_free(&l);
}
