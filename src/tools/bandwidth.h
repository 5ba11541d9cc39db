/* bandwidth.h - how fast the threads of a pool can read memory: what every other figure is measured
 * against. */
#ifndef TOOLS_BANDWIDTH_H
#define TOOLS_BANDWIDTH_H
#include <stddef.h>

#include "base/pool.h"

/* Seconds in which the pool's threads read `bytes` at p once, each its contiguous share. */
double bandwidth_time(pool *p, const void *at, size_t bytes);
/* 10^9 bytes per second: the best of `turns` reads of a fresh buffer of `bytes`. */
status bandwidth_read(pool *p, size_t bytes, int turns, double *gb_s, error *e);
#endif
