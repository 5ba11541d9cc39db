#include "test.h"
#include <sys/stat.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/rng.h"

enum { ITEMS = 1000 };

typedef struct job {
    int *cells; /* plain memory: ThreadSanitizer sees a missing fence */
    int add;
} job;

static void add_share(void *arg, int worker, int workers)
{
    const job *j = arg;
    int from, to;
    pool_share(ITEMS, worker, workers, &from, &to);
    for (int i = from; i < to; i++) j->cells[i] += j->add;
}

static void check_runs(int threads, int runs, int pause_every)
{
    error e = { 0 };
    pool *p;
    EXPECT_OK(pool_start(&p, threads, &e), e);
    EXPECT_INT(pool_threads(p), threads);
    int cells[ITEMS] = { 0 };
    int want = 0;
    for (int r = 1; r <= runs; r++) {
        job j = { cells, r };
        pool_run(p, add_share, &j);
        want += r;
        EXPECT_INT(cells[0], want);
        EXPECT_INT(cells[ITEMS - 1], want);
        /* long enough for all to park */
        if (pause_every && r % pause_every == 0) clock_sleep_ms(1);
    }
    for (int i = 0; i < ITEMS; i++) EXPECT_INT(cells[i], want);
    pool_stop(p);
}

TEST(every_share_once)
{
    for (int threads = 1; threads <= 9; threads++) check_runs(threads, 200, 0);
}

TEST(parked_workers_come_back)
{
    check_runs(2, 300, 3);
    check_runs(5, 100, 2);
}

TEST(many_short_runs)
{
    check_runs(2, 20000, 0);
}

/* Pauses around the 50 us after which a worker parks: both sides of the race between a call and the
 * parking. */
TEST(calls_race_with_parking)
{
    error e = { 0 };
    pool *p;
    EXPECT_OK(pool_start(&p, 2, &e), e);
    int cells[ITEMS] = { 0 };
    rng r = { 1 };
    for (int i = 1; i <= 3000; i++) {
        job j = { cells, 1 };
        pool_run(p, add_share, &j);
        const int64_t until = clock_ns() + 30000 + rng_below(&r, 50000);
        while (clock_ns() < until) {}
        EXPECT_INT(cells[ITEMS - 1], i);
    }
    pool_stop(p);
}

TEST(start_and_stop)
{
    error e = { 0 };
    const int64_t live = mem_live();
    for (int i = 0; i < 100; i++) {
        pool *p;
        EXPECT_OK(pool_start(&p, 1 + i % 6, &e), e);
        pool_stop(p);
    }
    pool_stop(NULL);
    for (int n = 1; n <= 2; n++) {
        pool *p;
        mem_fail_after(n);
        const status s = pool_start(&p, 2, &e);
        mem_fail_after(0);
        EXPECT_INT(s, E_NOMEM);
        EXPECT(!p);
    }
    EXPECT_INT(mem_live(), live);
}

static void count_calls(void *arg, int worker, int workers)
{
    (void)workers;
    ++((int64_t *)arg)[worker * 8];
}

TEST(a_run_allocates_nothing)
{
    error e = { 0 };
    pool *p;
    EXPECT_OK(pool_start(&p, 4, &e), e);
    int64_t calls[4 * 8] = { 0 };
    const int64_t before = mem_count();
    for (int i = 0; i < 100; i++) pool_run(p, count_calls, calls);
    EXPECT_INT(mem_count(), before);
    for (int w = 0; w < 4; w++) EXPECT_INT(calls[w * 8], 100);
    pool_stop(p);
}

TEST(shares_cover_evenly)
{
    for (int count = 0; count < 70; count++) {
        for (int workers = 1; workers < 12; workers++) {
            int next = 0;
            for (int w = 0; w < workers; w++) {
                int from, to;
                pool_share(count, w, workers, &from, &to);
                EXPECT_INT(from, next);
                EXPECT(to - from == count / workers || to - from == count / workers + 1);
                next = to;
            }
            EXPECT_INT(next, count);
        }
    }
    int from, to;
    pool_share(INT32_MAX, 63, 64, &from, &to);
    EXPECT_INT(to, INT32_MAX);
}

TEST(default_is_within_the_machine)
{
    char why[80] = "";
    const int n = pool_default_threads(why, sizeof why);
    EXPECT(n >= 1 && n <= sysconf(_SC_NPROCESSORS_ONLN));
    EXPECT(strstr(why, "physical core"));
    EXPECT_INT(pool_default_threads(NULL, 0), n);
}
