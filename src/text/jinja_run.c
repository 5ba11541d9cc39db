/* jinja_run.c - bounded memory, steps and depth of one rendering. */
#include "text/jinja_run.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/banned.h"

enum { MAX_STEPS = 50 * 1000 * 1000, WORK_BYTES = 32 };
static const size_t MAX_MEMORY = (size_t)512 << 20;

void jinja_run_init(jinja_run *r, const char *name, int64_t now_s, error *e)
{
    *r = (jinja_run){ .name = name, .now_s = now_s, .e = e };
    arena_init(&r->mem, 0);
}

void jinja_run_free(jinja_run *r)
{
    arena_free(&r->mem);
}

static status record(jinja_run *r, status code, template_fault fault)
{
    r->failed = code;
    r->fault = fault;
    return code;
}

status jinja_run_fail(jinja_run *r, const char *fmt, ...)
{
    if (r->failed) return r->failed;
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    error_set(r->e, E_FORMAT, "%s: line %d: %s", r->name, r->line, text);
    return record(r, E_FORMAT, TEMPLATE_RUNTIME);
}

status jinja_run_raise(jinja_run *r, str message)
{
    error_set(r->e, E_ARG, "%.*s", STR_ARG(message));
    return record(r, E_ARG, TEMPLATE_RAISE);
}

status jinja_run_no_memory(jinja_run *r)
{
    error_set(r->e, E_NOMEM, "%s: out of memory", r->name);
    return record(r, E_NOMEM, TEMPLATE_RUNTIME);
}

static status over_limit(jinja_run *r, const char *what)
{
    error_set(r->e, E_LIMIT, "%s: line %d: rendering needs too %s", r->name, r->line, what);
    return record(r, E_LIMIT, TEMPLATE_RUNTIME);
}

status jinja_run_step(jinja_run *r)
{
    return ++r->steps > MAX_STEPS ? over_limit(r, "many steps") : OK;
}

status jinja_run_work(jinja_run *r, size_t bytes)
{
    r->steps += bytes / WORK_BYTES;
    return jinja_run_step(r);
}

status jinja_run_enter(jinja_run *r)
{
    if (++r->depth > JINJA_MAX_DEPTH) return over_limit(r, "deep nesting");
    return jinja_run_step(r);
}

void *jinja_run_alloc(jinja_run *r, size_t bytes)
{
    if (bytes > MAX_MEMORY || r->mem.used_bytes > MAX_MEMORY - bytes) {
        over_limit(r, "much memory");
        return NULL;
    }
    void *p = arena_alloc(&r->mem, bytes);
    if (!p) jinja_run_no_memory(r);
    return p;
}

void *jinja_run_array(jinja_run *r, size_t count, size_t bytes)
{
    if (bytes && count > MAX_MEMORY / bytes) return jinja_run_alloc(r, MAX_MEMORY + 1);
    return jinja_run_alloc(r, count * bytes);
}

void *jinja_run_grow(jinja_run *r, const void *old, size_t count, size_t new_count, size_t bytes)
{
    void *p = jinja_run_array(r, new_count, bytes);
    if (p && count) memcpy(p, old, count * bytes);
    return p;
}
