/* jinja_repr.h - texts of values: Python's str(), repr() and json.dumps(). */
#ifndef TEXT_JINJA_REPR_H
#define TEXT_JINJA_REPR_H
#include "text/jinja_value.h"

/* str(v) as a new text, or the value's own when it is one. */
status jinja_repr_text(jinja_run *r, jinja_value v, str *out);
/* Append str(v), repr(v). */
status jinja_repr_write(jinja_text *t, jinja_value v);
status jinja_repr_quoted(jinja_text *t, jinja_value v);
/* Appends repr(f): the shortest digits that read back to f. */
void jinja_repr_float(jinja_text *t, double f);

typedef struct jinja_repr_style { /* the arguments of json.dumps */
    bool ascii, sort_keys, lines; /* lines: one item a line, each level preceded by `indent` */
    str indent, comma, colon;
} jinja_repr_style;
status jinja_repr_json(jinja_text *t, jinja_value v, const jinja_repr_style *style);
#endif
