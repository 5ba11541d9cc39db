/* bandwidth.c - see bandwidth.h. */
#include "tools/bandwidth.h"

#include <stdint.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/banned.h"

enum { MOST_THREADS = 256, STREAMS = 4, LINE = 64, AHEAD = 4096 };

typedef struct reading {
    const uint8_t *at;
    size_t bytes;
    uint64_t seen[MOST_THREADS]; /* kept, so that the read is not removed */
} reading;

/* One stream does not fill the memory channels of a core: that takes several, and asking ahead. */
static void read_share(void *arg, int worker, int workers)
{
    reading *r = arg;
    const size_t stream = r->bytes / (size_t)(workers * STREAMS) / LINE * LINE;
    const uint8_t *at = r->at + stream * STREAMS * (size_t)worker;
    uint64_t seen[8] = { 0 };
    for (size_t i = 0; i < stream; i += LINE)
        for (size_t k = 0; k < STREAMS; k++) {
            const uint8_t *line = at + k * stream + i;
            __builtin_prefetch(line + AHEAD);
            for (size_t j = 0; j < 8; j++) {
                uint64_t word;
                memcpy(&word, line + j * 8, sizeof word);
                seen[j] ^= word;
            }
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

status bandwidth_buffer(pool *p, size_t bytes, void **at, error *e)
{
    *at = mem_map(bytes);
    if (!*at) return error_set(e, E_NOMEM, "bandwidth: no memory for %zu bytes", bytes);
    reading r = { .at = *at, .bytes = bytes };
    pool_run(p, touch_share, &r); /* each thread its own pages: they lie on its node */
    return OK;
}
