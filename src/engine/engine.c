/* engine.c - the thread that generates, and its mailbox. */
#include <pthread.h>
#include "base/mem.h"
#include "base/queue.h"
#include "engine/engine.h"
#include "base/banned.h"

/* What waits for the disk tier is looked at so often: a cancel wakes nobody. */
enum { CANCEL_MS = 100 };

struct engine {
    scheduler *scheduler; /* the thread's */
    workbench bench;      /* a copy: what making a sequence needs */
    request_wake *wake;
    void *wake_arg;
    queue *inbox;       /* lists of sequences */
    int room;           /* choices that may be there at once */
    atomic_int present; /* choices that are */
    atomic_bool stopping;
    pthread_t thread;
    pthread_mutex_t lock; /* of stats */
    scheduler_stats stats;
};

static void publish_stats(engine *g)
{
    scheduler_stats now;
    scheduler_get_stats(g->scheduler, &now);
    atomic_fetch_sub(&g->present, (int)(now.ended - g->stats.ended));
    pthread_mutex_lock(&g->lock);
    g->stats = now;
    pthread_mutex_unlock(&g->lock);
}

static void *run(void *arg)
{
    engine *g = arg;
    bool busy = false;
    int waiting = 0;
    while (!atomic_load(&g->stopping)) {
        sequence *list =
            busy ? queue_pop(g->inbox) : queue_wait(g->inbox, waiting ? CANCEL_MS : -1);
        for (; list; list = queue_pop(g->inbox)) scheduler_add(g->scheduler, list);
        busy = scheduler_pass(g->scheduler);
        publish_stats(g);
        waiting = g->stats.queued;
    }
    for (sequence *list; (list = queue_pop(g->inbox));) scheduler_add(g->scheduler, list);
    scheduler_cancel_all(g->scheduler);
    return NULL;
}

/* What waits for the disk tier goes on. */
static void on_disk_done(void *arg)
{
    queue_wake(arg);
}

status engine_start(engine **out, const engine_options *o, error *e)
{
    engine *g = mem_zalloc(sizeof *g);
    if (!g) return error_set(e, E_NOMEM, "engine: no memory");
    g->wake = o->wake;
    g->wake_arg = o->wake_arg;
    g->room = o->scheduler.parallel + o->queue;
    atomic_init(&g->present, 0);
    atomic_init(&g->stopping, false);
    pthread_mutex_init(&g->lock, NULL);
    status s = queue_new(&g->inbox, g->room, e);
    if (s == OK) {
        scheduler_options options = o->scheduler;
        options.disk.notify = on_disk_done;
        options.disk.notify_arg = g->inbox;
        s = scheduler_new(&g->scheduler, &options, e);
    }
    if (s == OK) {
        g->bench = *scheduler_bench(g->scheduler);
        scheduler_get_stats(g->scheduler, &g->stats);
        if (pthread_create(&g->thread, NULL, run, g) != 0)
            s = error_set(e, E_IO, "engine: the system gives no thread");
    }
    if (s) {
        if (g->scheduler) scheduler_free(g->scheduler);
        if (g->inbox) queue_free(g->inbox);
        pthread_mutex_destroy(&g->lock);
        mem_free(g);
        return s;
    }
    *out = g;
    return OK;
}

void engine_stop(engine *g)
{
    /* before the flag: nothing can be posted that the thread would not see */
    queue_close(g->inbox);
    atomic_store(&g->stopping, true);
    queue_wake(g->inbox);
    pthread_join(g->thread, NULL);
    scheduler_free(g->scheduler);
    queue_free(g->inbox);
    pthread_mutex_destroy(&g->lock);
    mem_free(g);
}

/* The sequences of all choices, chained; NULL when memory is short. */
static status make_sequences(const engine *g, request *r, sequence **out, error *e)
{
    sequence **end = out;
    *out = NULL;
    for (int i = 0; i < request_get_params(r)->n; i++) {
        const status s = sequence_new(end, r, i, &g->bench, e);
        if (s) return s;
        end = &(*end)->next;
    }
    if ((*out)->next) return sequence_share_prompt(*out, e);
    return OK;
}

int engine_room(const engine *g)
{
    return g->room;
}

status engine_submit(engine *g, request *r, error *e)
{
    const int n = request_get_params(r)->n;
    request_set_wake(r, g->wake, g->wake_arg);
    sequence *list = NULL;
    status s = OK;
    if (n > g->room)
        s = error_set(e, E_LIMIT, "n: found %d choices, want at most %d (parallel and queue)", n,
                      g->room);
    if (s == OK) s = make_sequences(g, r, &list, e);
    const int before = atomic_fetch_add(&g->present, n);
    if (s == OK && before + n > g->room)
        s = error_set(e, E_AGAIN, "queue: %d choices are running or waiting, limit %d", before,
                      g->room);
    if (s == OK && !queue_push(g->inbox, list))
        s = error_set(e, E_CANCELLED, "engine: it is being stopped");
    if (s == OK) return OK;
    atomic_fetch_sub(&g->present, n);
    while (list) {
        sequence *next = list->next;
        sequence_free(list);
        list = next;
    }
    for (int i = 0; i < n; i++) request_drop(r);
    return s;
}

void engine_get_stats(engine *g, scheduler_stats *out)
{
    pthread_mutex_lock(&g->lock);
    *out = g->stats;
    pthread_mutex_unlock(&g->lock);
}
