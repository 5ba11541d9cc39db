/* fpenv.h - the floating-point mode of a thread: nearest even, no flush to zero, exceptions masked.
 *
 * Every thread that computes sets it first: a shared object linked with fast-math flags switches on
 * flush to zero in the thread that loads it, and threads started later inherit that. */
#ifndef COMPUTE_CPU_FPENV_H
#define COMPUTE_CPU_FPENV_H
#include <stdbool.h>
#include <stdint.h>

uint64_t fpenv_set(void); /* returns the mode found */
void fpenv_restore(uint64_t mode);
bool fpenv_ok(void);
#endif
