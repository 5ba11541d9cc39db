/* jinja_exec.h - runs statements; macros and loops. */
#ifndef TEXT_JINJA_EXEC_H
#define TEXT_JINJA_EXEC_H
#include "text/jinja_eval.h"

status jinja_exec_node(jinja_machine *m, jinja_scope *s, const jinja_node *n);
status jinja_exec_call_macro(jinja_machine *m, jinja_value macro, const jinja_args *args,
                             jinja_value *out);
/* A recursive loop called with other items: the text that it prints. */
status jinja_exec_call_loop(jinja_machine *m, jinja_value loop, const jinja_args *args,
                            jinja_value *out);
/* Attributes of loops and macros; *found is false when there is none. */
status jinja_exec_attribute(jinja_run *r, jinja_value v, str name, jinja_value *out, bool *found);
#endif
