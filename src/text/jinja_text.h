/* jinja_text.h - a text that grows inside a rendering's arena.
 *
 * Like a buf, appending never fails at once: a failure is recorded in the run and further appends
 * do nothing; jinja_text_done reports it. */
#ifndef TEXT_JINJA_TEXT_H
#define TEXT_JINJA_TEXT_H
#include "text/jinja_run.h"

typedef struct jinja_text {
    jinja_run *run;
    char *ptr;
    size_t len, cap;
} jinja_text;

void jinja_text_init(jinja_text *t, jinja_run *r);
void jinja_text_add(jinja_text *t, str s);
void jinja_text_char(jinja_text *t, char c);
void jinja_text_repeat(jinja_text *t, str s, size_t times);
void jinja_text_printf(jinja_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static inline str jinja_text_view(const jinja_text *t)
{
    return (str){ t->ptr ? t->ptr : "", t->len };
}
/* The text so far and the run's status. */
status jinja_text_done(const jinja_text *t, str *out);
#endif
