/* engine.h - the thread that generates.
 *
 * Requests go in through a bounded queue, come back through themselves (request.h). Everything here
 * may be called from any thread. No caller can slow the thread down: it takes a lock only to
 * publish. */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H
#include "engine/scheduler.h"

typedef struct engine_options {
    scheduler_options scheduler;
    int queue;          /* choices waiting beyond the seats */
    request_wake *wake; /* may be NULL */
    void *wake_arg;
} engine_options;

typedef struct engine engine;
status engine_start(engine **out, const engine_options *o, error *e);
void engine_stop(engine *g); /* ends what runs as cancelled, joins the thread, frees */

int engine_room(const engine *g); /* choices that may run and wait at once */
/* Posts the request; it may be cancelled and released at any time. E_AGAIN: the queue is full.
 * E_LIMIT: it has more choices than there is ever room for. On failure the engine's references are
 * dropped: the client only releases. */
status engine_submit(engine *g, request *r, error *e);
void engine_get_stats(engine *g, scheduler_stats *out);
#endif
