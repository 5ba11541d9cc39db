/* template_values.h - rendering with variables that were built as template values: for chat.c. */
#ifndef TEXT_TEMPLATE_VALUES_H
#define TEXT_TEMPLATE_VALUES_H
#include "text/jinja_value.h"

/* Begins a rendering; values are made in its run. End it with jinja_run_free. */
void template_begin(jinja_run *r, const template *t, int64_t now_s, error *e);
/* Appends the rendering; r->fault tells the kind of a failure. */
status template_render_values(const template *t, const jinja_dict *variables, jinja_run *r,
                              buf *out);
#endif
