/* pool.h - a fixed team of threads that run the same function over their shares.
 *
 * The caller's thread is worker 0; pool_run returns when every worker has finished. Workers spin
 * briefly for the next call, then park. Nothing is allocated or locked inside a run beyond waking
 * parked workers. One caller at a time. Who computes what never changes a result: the functions run
 * here write disjoint outputs. */
#ifndef BASE_POOL_H
#define BASE_POOL_H
#include "base/error.h"

typedef struct pool pool;
typedef void pool_fn(void *arg, int worker, int workers);

status pool_start(pool **out, int threads, error *e); /* threads >= 1 */
void pool_stop(pool *p);
int pool_threads(const pool *p);
void pool_run(pool *p, pool_fn *fn, void *arg);
/* [*from, *to) = share `worker` of `count` items, contiguous, sizes differ by at most one, the same
 * every time. */
static inline void pool_share(int count, int worker, int workers, int *from, int *to)
{
    *from = (int)((long long)count * worker / workers);
    *to = (int)((long long)count * (worker + 1) / workers);
}
/* Physical cores in the affinity mask, at most floor(cgroup quota), at least 1; `why` (may be NULL)
 * gets a line such as "2 physical cores, no quota". */
int pool_default_threads(char *why, size_t cap);
/* Physical cores among the processors `allowed` (one byte each, n of them) as the folder `sys`
 * (/sys/devices/system/cpu) describes them; a processor it says nothing of is a core of its own. */
int pool_count_cores(const char *sys, const unsigned char *allowed, int n);
#endif
