/* pool.h - a fixed team of threads that run the same function over their shares.
 *
 * The caller's thread is worker 0; pool_run returns when every worker has finished. Workers spin
 * briefly for the next call, then park. Nothing is allocated or locked inside a run beyond waking
 * parked workers. Where there are several memory nodes a worker keeps to one (topology_node), so
 * that what its share touched first lies near it; the caller runs where it did. One caller at a
 * time. Who computes what never changes a result: the functions run here write disjoint outputs. */
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
/* topology_threads of this machine. */
int pool_default_threads(char *why, size_t cap);
#endif
