/* pool.c - a call is a new epoch: workers that spin see it at once, workers that park are woken.
 *
 * Two pairs of flags must not miss each other, so they are sequentially consistent: (epoch, parked)
 * and (pending, waiting). One side sets its flag and reads the other's; whoever is second sees
 * both. */
#include "base/pool.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __APPLE__
#include <sys/sysctl.h>
#endif
#include "base/cgroup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/banned.h"

enum { SPIN_NS = 50000, MAX_CPUS = 8192 };

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

/* Processors this process may run on: allowed[i] is 1 for those; returns how many. */
static int allowed_cpus(unsigned char allowed[MAX_CPUS])
{
    memset(allowed, 0, MAX_CPUS);
    int n = 0;
#ifdef __linux__
    unsigned long mask[MAX_CPUS / (8 * sizeof(unsigned long))] = { 0 };
    if (sched_getaffinity(0, sizeof mask, (cpu_set_t *)(void *)mask) == 0) {
        for (int i = 0; i < MAX_CPUS; i++) {
            allowed[i] = CPU_ISSET_S((size_t)i, sizeof mask, (cpu_set_t *)(void *)mask) != 0;
            n += allowed[i];
        }
    }
#endif
    if (n > 0) return n;
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    n = online < 1 ? 1 : online > MAX_CPUS ? MAX_CPUS : (int)online;
    memset(allowed, 1, (size_t)n);
    return n;
}

/* The first processor of the list "0,4" or "2-3,6" that is allowed, or -1. */
static int first_allowed(const char *list, const unsigned char *allowed, int n)
{
    for (const char *p = list; *p >= '0' && *p <= '9';) {
        char *end;
        const long from = strtol(p, &end, 10);
        const long to = *end == '-' ? strtol(end + 1, &end, 10) : from;
        for (long i = from; i <= to && i < n; i++) {
            if (allowed[i]) return (int)i;
        }
        p = *end == ',' ? end + 1 : end;
    }
    return -1;
}

int pool_count_cores(const char *sys, const unsigned char *allowed, int n)
{
    int cores = 0;
    for (int i = 0; i < n; i++) {
        if (!allowed[i]) continue;
        char path[512], list[256] = "";
        (void)snprintf(path, sizeof path, "%s/cpu%d/topology/thread_siblings_list", sys, i);
        (void)file_read_text(path, list, sizeof list);
        const int first = first_allowed(list, allowed, n);
        cores += first < 0 || first == i;
    }
    return cores;
}

/* A quota of 2.5 processors keeps 2 threads busy; the third would stop all of them at a barrier. */
static int cap_by_quota(int n, double *quota)
{
    *quota = 0;
    if (!cgroup_cpus(quota)) return n;
    const int whole = *quota < 1 ? 1 : *quota > MAX_CPUS ? MAX_CPUS : (int)*quota;
    return whole < n ? whole : n;
}

int pool_default_threads(char *why, size_t cap)
{
    unsigned char allowed[MAX_CPUS];
#ifdef __APPLE__
    int cores = allowed_cpus(allowed);
    size_t size = sizeof cores; /* performance cores alone: a static split waits for the slowest */
    if (sysctlbyname("hw.perflevel0.physicalcpu", &cores, &size, NULL, 0) != 0) {
        size = sizeof cores;
        (void)sysctlbyname("hw.physicalcpu", &cores, &size, NULL, 0);
    }
#else
    (void)allowed_cpus(allowed);
    const int cores = pool_count_cores("/sys/devices/system/cpu", allowed, MAX_CPUS);
#endif
    double quota;
    const int n = cap_by_quota(cores, &quota);
    if (why && quota > 0) {
        (void)snprintf(why, cap, "%d physical core%s, quota %.2f", cores, cores == 1 ? "" : "s",
                       quota);
    } else if (why) {
        (void)snprintf(why, cap, "%d physical core%s, no quota", cores, cores == 1 ? "" : "s");
    }
    return n;
}

/* Starts the workers with all signals blocked: those are for the program's main thread. */
static status start_workers(pool *p, error *e)
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
    unsigned char allowed[MAX_CPUS];
    double quota;
    p->spin_ns = threads <= cap_by_quota(allowed_cpus(allowed), &quota) ? SPIN_NS : 0;
    (void)pthread_mutex_init(&p->lock, NULL); /* default kinds: these cannot fail */
    (void)pthread_cond_init(&p->begun, NULL);
    (void)pthread_cond_init(&p->ended, NULL);
    const status s = start_workers(p, e);
    if (s) {
        pool_stop(p);
        return s;
    }
    *out = p;
    return OK;
}
