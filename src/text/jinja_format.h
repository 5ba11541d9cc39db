/* jinja_format.h - Python's two ways of formatting: "%s" % v and "{}".format(v). */
#ifndef TEXT_JINJA_FORMAT_H
#define TEXT_JINJA_FORMAT_H
#include "text/jinja_args.h"

/* printf style; `values` is a tuple of values, a dict for %(key)s, or one value. */
status jinja_format_percent(jinja_run *r, str format, jinja_value values, jinja_value *out);
status jinja_format_braces(jinja_run *r, str format, const jinja_args *args, jinja_value *out);
/* round(f, digits) as Python rounds: the nearest decimal, ties by the exact value. */
bool jinja_format_round(double f, int digits, double *out);
#endif
