/* jinja_ops.h - operators and containers: comparison, arithmetic, membership, items, slices. */
#ifndef TEXT_JINJA_OPS_H
#define TEXT_JINJA_OPS_H
#include "text/jinja_value.h"

typedef enum jinja_operator {
    JINJA_ADD,
    JINJA_SUB,
    JINJA_MUL,
    JINJA_DIV,
    JINJA_FLOORDIV,
    JINJA_MOD,
    JINJA_POW,
    JINJA_EQ,
    JINJA_NE,
    JINJA_LT,
    JINJA_LE,
    JINJA_GT,
    JINJA_GE,
    JINJA_IN,
    JINJA_NOT_IN
} jinja_operator;

status jinja_ops_equal(jinja_run *r, jinja_value a, jinja_value b, bool *out);
/* Which of the two sorts first: *out < 0, 0, > 0. Fails where Python does not order them. */
status jinja_ops_order(jinja_run *r, jinja_value a, jinja_value b, const char *op, int *out);
/* JINJA_EQ .. JINJA_NOT_IN */
status jinja_ops_compare(jinja_run *r, jinja_operator op, jinja_value a, jinja_value b, bool *out);
/* JINJA_ADD .. JINJA_POW; % of a text is formatting and not done here */
status jinja_ops_arithmetic(jinja_run *r, jinja_operator op, jinja_value a, jinja_value b,
                            jinja_value *out);
status jinja_ops_negate(jinja_run *r, jinja_value v, jinja_value *out);
status jinja_ops_length(jinja_run *r, jinja_value v, size_t *out);
/* The items that iterating gives; an iterator is used up. */
status jinja_ops_items(jinja_run *r, jinja_value v, jinja_list *out);
/* v[key] of sequences and mappings; *found is false where Python has no such item. */
status jinja_ops_at(jinja_run *r, jinja_value v, jinja_value key, jinja_value *out, bool *found);
/* v[start:stop:step]; bounds may be none. */
status jinja_ops_slice(jinja_run *r, jinja_value v, const jinja_value bounds[3], jinja_value *out);
/* & < > ' " as entities */
status jinja_ops_escape(jinja_run *r, jinja_value v, jinja_value *out);
#endif
