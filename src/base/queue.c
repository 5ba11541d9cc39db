/* queue.c - a ring under one mutex: messages here are requests, thousands a second at most. */
#include "base/queue.h"
#include <errno.h>
#include <pthread.h>
#include <time.h>
#include "base/mem.h"
#include "base/banned.h"

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t filled; /* an item, a wake or the close */
    void **items;
    int cap, first, count;
    bool woken, closed;
};

static bool init_cond(pthread_cond_t *c)
{
#ifdef __APPLE__
    return pthread_cond_init(c, NULL) == 0;
#else
    pthread_condattr_t a;
    if (pthread_condattr_init(&a) != 0) return false;
    const bool ok =
        pthread_condattr_setclock(&a, CLOCK_MONOTONIC) == 0 && pthread_cond_init(c, &a) == 0;
    (void)pthread_condattr_destroy(&a);
    return ok;
#endif
}

status queue_new(queue **out, int capacity, error *e)
{
    *out = NULL;
    CHECK(capacity > 0);
    queue *q = mem_zalloc(sizeof *q);
    if (q) q->items = mem_array((size_t)capacity, sizeof *q->items);
    if (!q || !q->items) {
        mem_free(q);
        return error_set(e, E_NOMEM, "queue: out of memory for %d items", capacity);
    }
    q->cap = capacity;
    const bool locked = pthread_mutex_init(&q->lock, NULL) == 0;
    if (!locked || !init_cond(&q->filled)) {
        if (locked) (void)pthread_mutex_destroy(&q->lock);
        mem_free(q->items);
        mem_free(q);
        return error_set(e, E_IO, "queue: the system gives no lock");
    }
    *out = q;
    return OK;
}

void queue_free(queue *q)
{
    if (!q) return;
    CHECK(q->count == 0);
    (void)pthread_cond_destroy(&q->filled);
    (void)pthread_mutex_destroy(&q->lock);
    mem_free(q->items);
    mem_free(q);
}

bool queue_push(queue *q, void *item)
{
    CHECK(item); /* NULL means "nothing" to the reader */
    (void)pthread_mutex_lock(&q->lock);
    const bool ok = !q->closed && q->count < q->cap;
    if (ok) {
        q->items[(q->first + q->count) % q->cap] = item;
        q->count++;
        (void)pthread_cond_signal(&q->filled);
    }
    (void)pthread_mutex_unlock(&q->lock);
    return ok;
}

static void *take(queue *q)
{
    if (q->count == 0) return NULL;
    void *item = q->items[q->first];
    q->first = (q->first + 1) % q->cap;
    q->count--;
    return item;
}

void *queue_pop(queue *q)
{
    (void)pthread_mutex_lock(&q->lock);
    void *item = take(q);
    (void)pthread_mutex_unlock(&q->lock);
    return item;
}

static struct timespec in_ms(int ms)
{
    struct timespec t = { 0 };
#ifndef __APPLE__
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
#endif
    t.tv_sec += ms / 1000;
    t.tv_nsec += (long)(ms % 1000) * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_nsec -= 1000000000;
        t.tv_sec++;
    }
    return t;
}

void *queue_wait(queue *q, int timeout_ms)
{
    const struct timespec until = in_ms(timeout_ms > 0 ? timeout_ms : 0);
    bool late = timeout_ms == 0;
    (void)pthread_mutex_lock(&q->lock);
    while (q->count == 0 && !q->woken && !q->closed && !late) {
        if (timeout_ms < 0) {
            (void)pthread_cond_wait(&q->filled, &q->lock);
        } else {
#ifdef __APPLE__
            late = pthread_cond_timedwait_relative_np(&q->filled, &q->lock, &until) == ETIMEDOUT;
#else
            late = pthread_cond_timedwait(&q->filled, &q->lock, &until) == ETIMEDOUT;
#endif
        }
    }
    void *item = take(q);
    if (!item) q->woken = false;
    (void)pthread_mutex_unlock(&q->lock);
    return item;
}

void queue_wake(queue *q)
{
    (void)pthread_mutex_lock(&q->lock);
    q->woken = true;
    (void)pthread_cond_signal(&q->filled);
    (void)pthread_mutex_unlock(&q->lock);
}

void queue_close(queue *q)
{
    (void)pthread_mutex_lock(&q->lock);
    q->closed = true;
    (void)pthread_cond_broadcast(&q->filled);
    (void)pthread_mutex_unlock(&q->lock);
}
