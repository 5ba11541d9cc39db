/* jinja_method.h - attributes, items and methods of values, as the immutable sandbox gives them. */
#ifndef TEXT_JINJA_METHOD_H
#define TEXT_JINJA_METHOD_H
#include "text/jinja_args.h"

typedef struct jinja_method {
    const char *name;
    /* NULL: Python has the method, calling it here is refused */
    status (*call)(jinja_run *r, jinja_value self, const jinja_args *args, jinja_value *out);
    bool unsafe; /* changes the value: the sandbox hides it */
} jinja_method;

/* v.name: a method, else an item, else missing. */
status jinja_method_attribute(jinja_run *r, jinja_value v, str name, jinja_value *out);
/* v[key]: an item, else a method, else missing. */
status jinja_method_item(jinja_run *r, jinja_value v, jinja_value key, jinja_value *out);
/* self.method as a value. */
status jinja_method_bind(jinja_run *r, jinja_value self, const jinja_method *method,
                         jinja_value *out);
/* Calls a value of type JINJA_METHOD. */
status jinja_method_call(jinja_run *r, jinja_value method, const jinja_args *args,
                         jinja_value *out);
#endif
