/* bandwidth.h - how fast the threads of a pool can read memory: what every other figure is measured
 * against. */
#ifndef TOOLS_BANDWIDTH_H
#define TOOLS_BANDWIDTH_H
#include <stddef.h>

#include "base/pool.h"

/* Seconds in which the pool's threads read `bytes` at p once, each its contiguous share. */
double bandwidth_time(pool *p, const void *at, size_t bytes);
/* seconds[turns]: of so many reads of a fresh buffer of `bytes`, after one that warms up. */
status bandwidth_read(pool *p, size_t bytes, int turns, double *seconds, error *e);
#endif
