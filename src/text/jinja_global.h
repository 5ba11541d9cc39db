/* jinja_global.h - functions that every template sees. */
#ifndef TEXT_JINJA_GLOBAL_H
#define TEXT_JINJA_GLOBAL_H
#include "text/jinja_args.h"

typedef struct jinja_function {
    const char *name;
    status (*call)(jinja_run *r, const jinja_args *args, jinja_value *out); /* NULL: refused */
} jinja_function;

/* False: there is no such name. */
bool jinja_global_find(str name, jinja_value *out);
/* Calls a value of type JINJA_FUNCTION or JINJA_JOINER. */
status jinja_global_call(jinja_run *r, jinja_value f, const jinja_args *args, jinja_value *out);
/* Attributes of functions and cyclers; *found is false when there is none. */
status jinja_global_attribute(jinja_run *r, jinja_value v, str name, jinja_value *out, bool *found);
/* Stores an attribute of a namespace. */
status jinja_global_store(jinja_run *r, jinja_value space, str name, jinja_value v);
#endif
