/* pool.c - a call is a new epoch: workers that spin see it at once, workers that park are woken.
 *
 * Two pairs of flags must not miss each other, so they are sequentially consistent: (epoch, parked)
 * and (pending, waiting). One side sets its flag and reads the other's; whoever is second sees
 * both. */
#include "base/pool.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/mem.h"
#include "base/topology.h"
#include "base/banned.h"

enum { SPIN_NS = 50000 };

typedef struct worker {
    pool *owner;
    pthread_t thread;
    int index;
} worker;

struct pool {
    int threads;
    int started; /* workers that run */
    /* 0 when there are more threads than processors: spinning would keep a worker from its work */
    int64_t spin_ns;
    pool_fn *fn; /* of the present epoch; NULL: leave */
    void *arg;
    _Alignas(64) atomic_uint epoch;
    _Alignas(64) atomic_int pending; /* workers still at it */
    _Alignas(64) atomic_int parked;
    atomic_bool waiting; /* the caller has parked */
    pthread_mutex_t lock;
    pthread_cond_t begun, ended;
    worker *workers;
};

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Waits for the next epoch after `seen`, spinning first. */
static void await_epoch(pool *p, unsigned seen)
{
    const int64_t start = p->spin_ns ? clock_ns() : 0;
    for (unsigned i = 1; p->spin_ns; i++) {
        if (atomic_load_explicit(&p->epoch, memory_order_acquire) != seen) return;
        relax();
        if (i % 64 == 0 && clock_ns() - start > p->spin_ns) break;
    }
    (void)pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->parked, 1);
    while (atomic_load(&p->epoch) == seen) (void)pthread_cond_wait(&p->begun, &p->lock);
    atomic_fetch_sub(&p->parked, 1);
    (void)pthread_mutex_unlock(&p->lock);
}

static void await_workers(pool *p)
{
    const int64_t start = p->spin_ns ? clock_ns() : 0;
    for (unsigned i = 1; p->spin_ns; i++) {
        if (atomic_load_explicit(&p->pending, memory_order_acquire) == 0) return;
        relax();
        if (i % 64 == 0 && clock_ns() - start > p->spin_ns) break;
    }
    (void)pthread_mutex_lock(&p->lock);
    atomic_store(&p->waiting, true);
    while (atomic_load(&p->pending) != 0) (void)pthread_cond_wait(&p->ended, &p->lock);
    atomic_store(&p->waiting, false);
    (void)pthread_mutex_unlock(&p->lock);
}

static void *work(void *arg)
{
    const worker *w = arg;
    pool *p = w->owner;
    for (unsigned seen = 0;;) {
        await_epoch(p, seen);
        seen++;
        if (!p->fn) return NULL;
        p->fn(p->arg, w->index, p->threads);
        if (atomic_fetch_sub(&p->pending, 1) == 1 && atomic_load(&p->waiting)) {
            (void)pthread_mutex_lock(&p->lock);
            (void)pthread_cond_signal(&p->ended);
            (void)pthread_mutex_unlock(&p->lock);
        }
    }
}

static void begin_epoch(pool *p, pool_fn *fn, void *arg)
{
    p->fn = fn;
    p->arg = arg;
    atomic_store_explicit(&p->pending, p->started, memory_order_relaxed);
    atomic_fetch_add(&p->epoch, 1);
    if (atomic_load(&p->parked) > 0) {
        (void)pthread_mutex_lock(&p->lock);
        (void)pthread_cond_broadcast(&p->begun);
        (void)pthread_mutex_unlock(&p->lock);
    }
}

void pool_run(pool *p, pool_fn *fn, void *arg)
{
    if (p->threads == 1) {
        fn(arg, 0, 1);
        return;
    }
    begin_epoch(p, fn, arg);
    fn(arg, 0, p->threads);
    await_workers(p);
}

int pool_threads(const pool *p)
{
    return p->threads;
}

void pool_stop(pool *p)
{
    if (!p) return;
    begin_epoch(p, NULL, NULL);
    for (int i = 0; i < p->started; i++) (void)pthread_join(p->workers[i].thread, NULL);
    (void)pthread_cond_destroy(&p->begun);
    (void)pthread_cond_destroy(&p->ended);
    (void)pthread_mutex_destroy(&p->lock);
    mem_free(p->workers);
    mem_free(p);
}

int pool_default_threads(char *why, size_t cap)
{
    topology t;
    topology_read(&t);
    return topology_threads(&t, why, cap);
}

/* Starts the workers with all signals blocked: those are for the program's main thread. */
static status start_workers(pool *p, const topology *t, error *e)
{
    sigset_t all, old;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    int failed = 0;
    for (; p->started < p->threads - 1; p->started++) {
        worker *w = &p->workers[p->started];
        *w = (worker){ .owner = p, .index = p->started + 1 };
        failed = pthread_create(&w->thread, NULL, work, w);
        if (failed) break;
        const int node = topology_node(t, w->index, p->threads);
        if (node >= 0) topology_keep(t, w->thread, node);
    }
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!failed) return OK;
    return error_set(e, E_IO, "pool: thread %d of %d: %s", p->started + 1, p->threads,
                     strerror(failed));
}

status pool_start(pool **out, int threads, error *e)
{
    *out = NULL;
    CHECK(threads >= 1);
    pool *p = mem_zalloc(sizeof *p);
    if (p) p->workers = mem_array((size_t)threads, sizeof *p->workers);
    if (!p || !p->workers) {
        mem_free(p);
        return error_set(e, E_NOMEM, "pool: out of memory for %d threads", threads);
    }
    p->threads = threads;
    topology t = { .cpus = 1 };
    if (threads > 1) topology_read(&t); /* one waits for nobody and stays where it is */
    const bool crowded = threads > t.cpus || (t.quota > 0 && threads > t.quota);
    p->spin_ns = crowded ? 0 : SPIN_NS;
    (void)pthread_mutex_init(&p->lock, NULL); /* default kinds: these cannot fail */
    (void)pthread_cond_init(&p->begun, NULL);
    (void)pthread_cond_init(&p->ended, NULL);
    const status s = start_workers(p, &t, e);
    if (s) {
        pool_stop(p);
        return s;
    }
    *out = p;
    return OK;
}
