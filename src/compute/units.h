/* units.h - how an operation runs on the threads: it is a count of units, and each worker takes a
 * contiguous range of them. Units write disjoint outputs, so who computes what cannot change a bit.
 * Also what stands behind `compute`. */
#ifndef COMPUTE_UNITS_H
#define COMPUTE_UNITS_H
#include <stdatomic.h>

#include "compute/cpu/cpu.h"

enum {
    UNITS_SMALL = 1 << 14,   /* an operation on fewer elements is not worth waking the workers */
    UNITS_SCRATCH = 16 << 20 /* bytes for the parts of spans (compute_kv.c) */
};

typedef struct units_begun {
    _Alignas(64) atomic_int n; /* pieces of a worker's share of a matmul that somebody has taken */
} units_begun;

struct compute {
    pool *pool;
    units_begun *begun; /* of each worker */
    const cpu_ops *ops;
    float *scratch; /* [UNITS_SCRATCH / 4] */
};

typedef void units_fn(const cpu_ops *ops, void *arg, int from, int to);
/* fn over units [0, count); `work` is the number of elements it touches */
void units_run(compute *c, units_fn *fn, void *arg, int count, size_t work);
#endif
