/* bandwidth.c - see bandwidth.h. */
#include "tools/bandwidth.h"

#include <stdint.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/banned.h"

enum { MOST_THREADS = 256 };

typedef struct reading {
    const uint8_t *at;
    size_t bytes;
    uint64_t seen[MOST_THREADS]; /* kept, so that the read is not removed */
} reading;

static void read_share(void *arg, int worker, int workers)
{
    reading *r = arg;
    const size_t words = r->bytes / 8 / (size_t)workers;
    const uint8_t *at = r->at + words * 8 * (size_t)worker;
    uint64_t seen[8] = { 0 };
    for (size_t i = 0; i + 8 <= words; i += 8)
        for (size_t j = 0; j < 8; j++) {
            uint64_t word;
            memcpy(&word, at + (i + j) * 8, sizeof word);
            seen[j] ^= word;
        }
    for (int j = 0; j < 8; j++) r->seen[worker % MOST_THREADS] ^= seen[j];
}

double bandwidth_time(pool *p, const void *at, size_t bytes)
{
    reading r = { .at = at, .bytes = bytes };
    const int64_t start = clock_ns();
    pool_run(p, read_share, &r);
    volatile uint64_t sink = r.seen[0];
    (void)sink;
    return (double)(clock_ns() - start) * 1e-9;
}

static void touch_share(void *arg, int worker, int workers)
{
    reading *r = arg;
    const size_t share = r->bytes / (size_t)workers;
    memset((uint8_t *)(uintptr_t)r->at + share * (size_t)worker, worker + 1, share);
}

status bandwidth_read(pool *p, size_t bytes, int turns, double *seconds, error *e)
{
    void *at = mem_map(bytes);
    if (!at) return error_set(e, E_NOMEM, "bandwidth: no memory for %zu bytes", bytes);
    reading r = { .at = at, .bytes = bytes };
    pool_run(p, touch_share, &r); /* each thread its own pages: they lie on its node */
    (void)bandwidth_time(p, at, bytes);
    for (int i = 0; i < turns; i++) seconds[i] = bandwidth_time(p, at, bytes);
    mem_unmap(at, bytes);
    return OK;
}
