/* units.c - see units.h. */
#include "compute/units.h"
#include "compute/cpu/fpenv.h"
#include "base/banned.h"

typedef struct task {
    const cpu_ops *ops;
    units_fn *fn;
    void *arg;
    int count;
} task;

static void run_share(void *arg, int worker, int workers)
{
    const task *t = arg;
    int from, to;
    pool_share(t->count, worker, workers, &from, &to);
    ASSERT(fpenv_ok());
    if (from < to) t->fn(t->ops, t->arg, from, to);
}
void units_run(compute *c, units_fn *fn, void *arg, int count, size_t work)
{
    task t = { c->ops, fn, arg, count };
    const uint64_t mode = fpenv_set();
    if (work < UNITS_SMALL || count == 1) run_share(&t, 0, 1);
    else pool_run(c->pool, run_share, &t);
    fpenv_restore(mode);
}
