/* kernbench.h - times reading and the matmul kernels on the widest matrix of the 27B king.
 *
 * Ternary tiles of pseudo-random weights; so many matrices stand in memory that no cache holds
 * them. Row counts are timed in turns, so that a busy machine disturbs them alike; the best turn
 * counts. */
#ifndef TOOLS_KERNBENCH_H
#define TOOLS_KERNBENCH_H
#include "compute/compute.h"

enum { KERNBENCH_COUNTS = 7 };
extern const int kernbench_rows[KERNBENCH_COUNTS]; /* 1 2 3 4 8 16 64 */

typedef struct kernbench_result {
    double read_gb_s;                /* a plain read of the same memory by the same threads */
    double ms[KERNBENCH_COUNTS];     /* of one matrix, 17408 x 5120 */
    double gb_s[KERNBENCH_COUNTS];   /* 10^9 bytes of tiles per second */
    double gmac_s[KERNBENCH_COUNTS]; /* 10^9 multiply-adds per second */
    double cost[KERNBENCH_COUNTS];   /* time against one row */
} kernbench_result;

/* `bytes` of tiles (at least one matrix, 47 MB), `turns` turns. */
status kernbench_run(kernbench_result *r, compute *c, size_t bytes, int turns, error *e);
#endif
