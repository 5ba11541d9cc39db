/* bandwidth.h - how fast the threads of a pool can read memory: what every other figure is measured
 * against. */
#ifndef TOOLS_BANDWIDTH_H
#define TOOLS_BANDWIDTH_H
#include <stddef.h>

#include "base/pool.h"

/* A buffer to read, written once so that its pages exist. Unmap it with mem_unmap. */
status bandwidth_buffer(pool *p, size_t bytes, void **at, error *e);
/* Seconds in which the pool's threads read `bytes` at `at` once, each its contiguous share as
 * several streams at a time, asked for ahead: about the most that cores can draw. What is less than
 * a line for each stream stays unread. */
double bandwidth_time(pool *p, const void *at, size_t bytes);
#endif
