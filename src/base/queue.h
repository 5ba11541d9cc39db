/* queue.h - bounded first-in-first-out queue of pointers between threads; any number of writers and
 * readers. */
#ifndef BASE_QUEUE_H
#define BASE_QUEUE_H
#include <stdbool.h>
#include "base/error.h"

typedef struct queue queue;
status queue_new(queue **out, int capacity, error *e);
void queue_free(queue *q);             /* must be empty */
bool queue_push(queue *q, void *item); /* false: full or closed */
void *queue_pop(queue *q);             /* NULL: empty */
/* -1: for ever; NULL: timeout, woken, or closed and empty */
void *queue_wait(queue *q, int timeout_ms);
void queue_wake(queue *q);  /* ends one queue_wait early: the present one or the next */
void queue_close(queue *q); /* refuses pushes, ends every wait once the queue is empty */
#endif
