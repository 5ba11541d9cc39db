/* jinja_run.h - one rendering: its memory, its limits, its first failure.
 *
 * All memory of a rendering lies in one arena, so nothing below has to be freed. Functions return
 * the status that jinja_run_fail recorded; allocators return NULL after recording. Every loop over
 * data charges its work, so time and memory are bounded whatever the template does. */
#ifndef TEXT_JINJA_RUN_H
#define TEXT_JINJA_RUN_H
#include "base/arena.h"
#include "text/template.h"

enum { JINJA_MAX_DEPTH = 600 }; /* nested evaluations, also of values inside values */

typedef struct jinja_run {
    arena mem;
    const char *name; /* of the template, for messages */
    int line;         /* being evaluated */
    error *e;
    status failed; /* the first failure */
    template_fault fault;
    int64_t now_s;
    uint64_t steps;
    int depth;
} jinja_run;

void jinja_run_init(jinja_run *r, const char *name, int64_t now_s, error *e);
void jinja_run_free(jinja_run *r);
/* Records "name: line N: message" as a failure of the rendering; returns its status. */
status jinja_run_fail(jinja_run *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The template's own complaint: the message alone. */
status jinja_run_raise(jinja_run *r, str message);
status jinja_run_no_memory(jinja_run *r);
/* Charges work: one step, or one per 32 bytes touched. */
status jinja_run_step(jinja_run *r);
status jinja_run_work(jinja_run *r, size_t bytes);
/* Brackets nested evaluation; leave is also right after a failed enter. */
status jinja_run_enter(jinja_run *r);
static inline void jinja_run_leave(jinja_run *r)
{
    r->depth--;
}
void *jinja_run_alloc(jinja_run *r, size_t bytes);
void *jinja_run_array(jinja_run *r, size_t count, size_t bytes);
/* A larger copy of an array that has grown from `count` items. */
void *jinja_run_grow(jinja_run *r, const void *old, size_t count, size_t new_count, size_t bytes);
#endif
