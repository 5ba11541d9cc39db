#include "test.h"
#include "base/map.h"
#include "base/mem.h"

enum { KEYS = 5000 };
static char names[KEYS][16];

/* Puts and replaces at random beside a plain array that says what must be there. */
TEST(agrees_with_an_array)
{
    error e = { 0 };
    uint64_t want[KEYS];
    bool have[KEYS] = { 0 };
    size_t count = 0;
    map m;
    map_init(&m);
    for (int i = 0; i < KEYS; i++) snprintf(names[i], sizeof names[i], "k%d", i);
    uint32_t x = 12345;
    for (int step = 0; step < 100000; step++) {
        x = x * 1664525u + 1013904223u;
        const int k = (int)((x >> 8) % KEYS);
        if (k % 4 == 0) continue; /* these are never put */
        EXPECT_OK(map_put(&m, str_from(names[k]), x, &e), e);
        count += !have[k];
        have[k] = true;
        want[k] = x;
        EXPECT_INT(m.count, count);
    }
    for (int k = 0; k < KEYS; k++) {
        uint64_t v = 0;
        EXPECT_INT(map_get(&m, str_from(names[k]), &v), have[k]);
        if (have[k]) EXPECT_INT(v, want[k]);
    }
    size_t at = 0, seen = 0;
    str key;
    uint64_t v;
    while (map_next(&m, &at, &key, &v)) {
        seen++;
        EXPECT_INT(v, want[strtol(key.ptr + 1, NULL, 10)]);
    }
    EXPECT_INT(seen, count);
    map_free(&m);
}

TEST(empty_map_and_empty_key)
{
    error e = { 0 };
    map m;
    map_init(&m);
    EXPECT(!map_get(&m, STR("x"), NULL));
    EXPECT_OK(map_put(&m, (str){ 0 }, 7, &e), e);
    uint64_t v = 0;
    EXPECT(map_get(&m, STR(""), &v));
    EXPECT_INT(v, 7);
    map_free(&m);
}

TEST(keys_may_hold_nul)
{
    error e = { 0 };
    map m;
    map_init(&m);
    EXPECT_OK(map_put(&m, STR("a\0b"), 1, &e), e);
    EXPECT_OK(map_put(&m, STR("a\0c"), 2, &e), e);
    uint64_t v = 0;
    EXPECT(map_get(&m, STR("a\0b"), &v));
    EXPECT_INT(v, 1);
    EXPECT(!map_get(&m, STR("a"), NULL));
    map_free(&m);
}

TEST(short_memory_keeps_what_is_there)
{
    error e = { 0 };
    map m;
    map_init(&m);
    EXPECT_OK(map_put(&m, STR("a"), 1, &e), e);
    mem_fail_after(1);
    EXPECT_INT(map_reserve(&m, 1000, &e), E_NOMEM);
    mem_fail_after(0);
    EXPECT(map_get(&m, STR("a"), NULL));
    EXPECT_OK(map_reserve(&m, 1000, &e), e);
    EXPECT(m.cap >= 1334);
    map_free(&m);
}
