/* events.h - pieces of output on their way to the caller: a queue of public events and the text
 * they point to.
 *
 * Pieces of one kind that follow each other become one event, so that a step of the engine is one
 * piece of text. What was handed out stays valid until the queue is cleared. */
#ifndef API_EVENTS_H
#define API_EVENTS_H
#include "base/buf.h"
#include "ingot/ingot.h"
#include "text/reply.h"

typedef struct events {
    struct events_item *items;
    size_t n, cap, at; /* at: next one to hand out */
    buf text;
    int choice; /* of what is added */
} events;

void events_init(events *q);
void events_free(events *q);
void events_clear(events *q);
bool events_next(events *q, ingot_event *out); /* false: nothing left */
/* Adds an event whose text is copied; events without text that need more fields are kept as they
 * are. */
status events_add(events *q, const ingot_event *ev, error *e);
/* Of the i-th event. */
void events_set_logprobs(events *q, size_t i, const ingot_logprob *p, int n);
status events_text(events *q, ingot_event_kind kind, int tool, str text, error *e);
status events_sink(void *q, const reply_event *ev, error *e); /* a reply_sink */
#endif
