/* test.h - the whole test harness.
 *
 * A test program is a list of TEST(name) functions; CMake finds those lines and makes one ctest
 * entry of each. Run with a name it runs that test alone, without one it runs all. A failed check
 * ends the test (exit 1); skip() ends it with 77, which ctest counts as skipped. Checks say file,
 * line, and both values. */
#ifndef TEST_H
#define TEST_H
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct test {
    const char *name;
    void (*run)(void);
    struct test *next;
} test;
static test *test_list;

#define TEST(id)                                                 \
    static void test_##id(void);                                 \
    __attribute__((constructor)) static void register_##id(void) \
    {                                                            \
        static test t = { #id, test_##id, NULL };                \
        test **p = &test_list;                                   \
        while (*p) p = &(*p)->next;                              \
        *p = &t;                                                 \
    }                                                            \
    static void test_##id(void)

#define FAIL(...)                                       \
    do {                                                \
        fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
        fprintf(stderr, __VA_ARGS__);                   \
        fputc('\n', stderr);                            \
        exit(1);                                        \
    } while (0)
#define EXPECT(cond)                              \
    do {                                          \
        if (!(cond)) FAIL("not true: %s", #cond); \
    } while (0)
#define EXPECT_INT(got, want)                                                   \
    do {                                                                        \
        int64_t g_ = (int64_t)(got), w_ = (int64_t)(want);                      \
        if (g_ != w_) FAIL("%s: got %" PRId64 ", want %" PRId64, #got, g_, w_); \
    } while (0)
#define EXPECT_STR(got, want)                                                  \
    do {                                                                       \
        const char *g_ = (got), *w_ = (want);                                  \
        if (!g_ || strcmp(g_, w_) != 0)                                        \
            FAIL("%s: got \"%s\", want \"%s\"", #got, g_ ? g_ : "(null)", w_); \
    } while (0)
/* status-returning call; e is the error object whose text is shown */
#define EXPECT_OK(call, e)                                 \
    do {                                                   \
        if ((call) != OK) FAIL("%s: %s", #call, (e).text); \
    } while (0)

static inline void skip(const char *why)
{
    printf("skipped: %s\n", why);
    exit(77);
}

int main(int argc, char **argv)
{
    int ran = 0;
    for (test *t = test_list; t; t = t->next) {
        if (argc > 1 && strcmp(argv[1], t->name) != 0) continue;
        t->run();
        ran++;
    }
    if (!ran) FAIL("no test named %s", argc > 1 ? argv[1] : "(any)");
    return 0;
}
#endif
