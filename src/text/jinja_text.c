/* jinja_text.c - a text that grows inside a rendering's arena. */
#include "text/jinja_text.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/banned.h"

void jinja_text_init(jinja_text *t, jinja_run *r)
{
    *t = (jinja_text){ .run = r };
}

static char *reserve(jinja_text *t, size_t n)
{
    if (t->run->failed || jinja_run_work(t->run, n)) return NULL;
    if (n > t->cap - t->len) {
        if (n > TEMPLATE_MAX_OUTPUT - t->len) {
            jinja_run_fail(t->run, "a text exceeds %d bytes", TEMPLATE_MAX_OUTPUT);
            return NULL;
        }
        size_t cap = t->cap ? t->cap * 2 : 64;
        while (cap < t->len + n) cap *= 2;
        char *p = jinja_run_grow(t->run, t->ptr, t->len, cap, 1);
        if (!p) return NULL;
        t->ptr = p;
        t->cap = cap;
    }
    return t->ptr + t->len;
}

void jinja_text_add(jinja_text *t, str s)
{
    char *p = s.len ? reserve(t, s.len) : NULL;
    if (!p) return;
    memcpy(p, s.ptr, s.len);
    t->len += s.len;
}

void jinja_text_char(jinja_text *t, char c)
{
    jinja_text_add(t, (str){ &c, 1 });
}

void jinja_text_repeat(jinja_text *t, str s, size_t times)
{
    for (size_t i = 0; i < times && s.len && !t->run->failed; i++) jinja_text_add(t, s);
}

void jinja_text_printf(jinja_text *t, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof text) {
        jinja_run_fail(t->run, "a number needs too many characters");
        return;
    }
    jinja_text_add(t, (str){ text, (size_t)n });
}

status jinja_text_done(const jinja_text *t, str *out)
{
    *out = jinja_text_view(t);
    return t->run->failed;
}
