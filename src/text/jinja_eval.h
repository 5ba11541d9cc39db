/* jinja_eval.h - runs a template's tree. */
#ifndef TEXT_JINJA_EVAL_H
#define TEXT_JINJA_EVAL_H
#include "text/jinja_args.h"
#include "text/jinja_parse.h"

/* Names set while rendering; a block with a scope of its own has one. */
typedef struct jinja_scope {
    struct jinja_scope *parent;
    int *ids;
    jinja_value *values;
    int count, cap;
    bool has_captured;
    jinja_value captured; /* what JINJA_N_CAPTURED means here */
} jinja_scope;

typedef enum jinja_flow { JINJA_GO_ON, JINJA_BREAK, JINJA_CONTINUE } jinja_flow;

typedef struct jinja_machine {
    jinja_run *run;
    jinja_text *out;             /* where printing goes */
    const jinja_dict *variables; /* what the caller gave */
    jinja_flow flow;
} jinja_machine;

/* Renders the whole template. */
status jinja_eval_template(jinja_run *r, const jinja_node *root, const jinja_dict *variables,
                           jinja_text *out);

/* Expressions (jinja_eval.c) and statements (jinja_exec.c) call each other through these. */
status jinja_eval_node(jinja_machine *m, jinja_scope *s, const jinja_node *n, jinja_value *out);
status jinja_eval_arguments(jinja_machine *m, jinja_scope *s, const jinja_nodes *list,
                            jinja_args *out);
status jinja_eval_call(jinja_machine *m, jinja_value f, const jinja_args *args, jinja_value *out);
#endif
