/* jinja_filter.h - what may stand after `|`. */
#ifndef TEXT_JINJA_FILTER_H
#define TEXT_JINJA_FILTER_H
#include "text/jinja_args.h"

typedef status jinja_filter_fn(jinja_run *r, jinja_value v, const jinja_args *args,
                               jinja_value *out);

typedef struct jinja_filter {
    const char *name;
    jinja_filter_fn *apply; /* NULL: Jinja has it, applying it here is refused */
} jinja_filter;

const jinja_filter *jinja_filter_find(str name); /* NULL: unknown */
status jinja_filter_apply(jinja_run *r, const jinja_filter *f, jinja_value v,
                          const jinja_args *args, jinja_value *out);
/* The filters of sequences are in jinja_sequence.c; NULL: not one of them. */
const jinja_filter *jinja_sequence_find(str name);
#endif
