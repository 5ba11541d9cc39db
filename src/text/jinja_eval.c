/* jinja_eval.c - evaluates expressions. */
#include "text/jinja_eval.h"

#include "text/jinja_exec.h"
#include "text/jinja_filter.h"
#include "text/jinja_format.h"
#include "text/jinja_global.h"
#include "text/jinja_method.h"
#include "text/jinja_ops.h"
#include "text/jinja_repr.h"
#include "text/jinja_test.h"

#include "base/banned.h"

static void look_up(const jinja_machine *m, const jinja_scope *s, const jinja_node *n,
                    jinja_value *out)
{
    for (; s; s = s->parent) {
        for (int i = s->count; i-- > 0;) {
            if (s->ids[i] != n->id) continue;
            *out = s->values[i];
            return;
        }
    }
    const jinja_value *given = jinja_value_get_str(m->variables, n->text);
    if (given) *out = *given;
    else if (!jinja_global_find(n->text, out)) *out = jinja_value_missing(NULL, n->text);
}

static status get_attribute(jinja_run *r, jinja_value v, str name, jinja_value *out)
{
    bool found = false;
    if (v.type == JINJA_LOOP || v.type == JINJA_MACRO)
        TRY(jinja_exec_attribute(r, v, name, out, &found));
    else if (v.type == JINJA_FUNCTION || v.type == JINJA_CYCLER)
        TRY(jinja_global_attribute(r, v, name, out, &found));
    return found ? OK : jinja_method_attribute(r, v, name, out);
}

static status get_item(jinja_run *r, jinja_value v, jinja_value key, jinja_value *out)
{
    const bool object = v.type == JINJA_LOOP || v.type == JINJA_MACRO || v.type == JINJA_FUNCTION ||
                        v.type == JINJA_CYCLER;
    if (object && key.type == JINJA_STRING) return get_attribute(r, v, key.s, out);
    return jinja_method_item(r, v, key, out);
}

static status eval_slice(jinja_machine *m, jinja_scope *s, const jinja_node *n, jinja_value *out)
{
    const jinja_node *nodes[3] = { n->b, n->c, n->d };
    jinja_value v, bounds[3];
    TRY(jinja_eval_node(m, s, n->a, &v));
    for (int i = 0; i < 3; i++) {
        bounds[i] = JINJA_NONE_VALUE;
        if (nodes[i]) TRY(jinja_eval_node(m, s, nodes[i], &bounds[i]));
    }
    return jinja_ops_slice(m->run, v, bounds, out);
}

static status eval_items(jinja_machine *m, jinja_scope *s, const jinja_node *n, jinja_type type,
                         jinja_value *out)
{
    TRY(jinja_value_list(m->run, type, out));
    for (int i = 0; i < n->list.count; i++) {
        jinja_value item;
        TRY(jinja_eval_node(m, s, n->list.items[i], &item));
        TRY(jinja_value_push(m->run, out->list, item));
    }
    return OK;
}

static status eval_dict(jinja_machine *m, jinja_scope *s, const jinja_node *n, jinja_value *out)
{
    TRY(jinja_value_dict(m->run, JINJA_DICT, out));
    for (int i = 0; i < n->list.count; i += 2) {
        jinja_value key, value;
        TRY(jinja_eval_node(m, s, n->list.items[i], &key));
        TRY(jinja_eval_node(m, s, n->list.items[i + 1], &value));
        TRY(jinja_value_put(m->run, out->dict, key, value));
    }
    return OK;
}

/* Adds what * or ** spreads to the argument arrays. */
static status spread(jinja_run *r, int op, jinja_value v, jinja_list *items, jinja_dict *named)
{
    if (op == 1) {
        jinja_list more;
        TRY(jinja_ops_items(r, v, &more));
        for (size_t i = 0; i < more.count; i++) TRY(jinja_value_push(r, items, more.items[i]));
        return OK;
    }
    if (v.type != JINJA_DICT) return jinja_run_fail(r, "argument after ** must be a mapping");
    for (size_t i = 0; i < v.dict->count; i++)
        TRY(jinja_value_put(r, named, v.dict->entries[i].key, v.dict->entries[i].value));
    return OK;
}

status jinja_eval_arguments(jinja_machine *m, jinja_scope *s, const jinja_nodes *list,
                            jinja_args *out)
{
    jinja_list items = { 0 };
    jinja_dict named = { 0 };
    *out = (jinja_args){ 0 };
    for (int i = 0; i < list->count; i++) {
        const jinja_node *arg = list->items[i];
        jinja_value v;
        TRY(jinja_eval_node(m, s, arg->a, &v));
        if (arg->op) TRY(spread(m->run, arg->op, v, &items, &named));
        else if (!arg->text.len) TRY(jinja_value_push(m->run, &items, v));
        else if (jinja_value_get_str(&named, arg->text))
            return jinja_run_fail(m->run, "an argument is given twice");
        else TRY(jinja_value_put(m->run, &named, jinja_value_string(arg->text), v));
    }
    out->items = items.items;
    out->count = (int)items.count;
    if (named.count == 0) return OK;
    str *names = jinja_run_array(m->run, named.count, sizeof *names);
    jinja_value *values = jinja_run_array(m->run, named.count, sizeof *values);
    if (!names || !values) return m->run->failed;
    for (size_t i = 0; i < named.count; i++) {
        if (named.entries[i].key.type != JINJA_STRING)
            return jinja_run_fail(m->run, "keywords must be strings");
        names[i] = named.entries[i].key.s;
        values[i] = named.entries[i].value;
    }
    out->names = names;
    out->named = values;
    out->named_count = (int)named.count;
    return OK;
}

status jinja_eval_call(jinja_machine *m, jinja_value f, const jinja_args *args, jinja_value *out)
{
    switch (f.type) {
    case JINJA_MACRO: return jinja_exec_call_macro(m, f, args, out);
    case JINJA_LOOP: return jinja_exec_call_loop(m, f, args, out);
    case JINJA_METHOD: return jinja_method_call(m->run, f, args, out);
    case JINJA_FUNCTION:
    case JINJA_JOINER: return jinja_global_call(m->run, f, args, out);
    case JINJA_UNDEFINED: return jinja_value_fail_missing(m->run, f);
    default: return jinja_run_fail(m->run, "'%s' object is not callable", jinja_value_type_name(f));
    }
}

static status eval_call(jinja_machine *m, jinja_scope *s, const jinja_node *n, jinja_value *out)
{
    jinja_value f;
    jinja_args args;
    TRY(jinja_eval_node(m, s, n->a, &f));
    TRY(jinja_eval_arguments(m, s, &n->list, &args));
    return jinja_eval_call(m, f, &args, out);
}

static status eval_filter(jinja_machine *m, jinja_scope *s, const jinja_node *n, jinja_value *out)
{
    jinja_value v;
    jinja_args args;
    TRY(jinja_eval_node(m, s, n->a, &v));
    TRY(jinja_eval_arguments(m, s, &n->list, &args));
    if (n->function) return jinja_filter_apply(m->run, n->function, v, &args, out);
    return jinja_run_fail(m->run, "unknown filter '%.*s'", (int)(n->text.len % 100), n->text.ptr);
}

static status eval_test(jinja_machine *m, jinja_scope *s, const jinja_node *n, jinja_value *out)
{
    jinja_value v;
    jinja_args args;
    bool holds;
    const jinja_test *test = n->function;
    TRY(jinja_eval_node(m, s, n->a, &v));
    TRY(jinja_eval_arguments(m, s, &n->list, &args));
    if (!test)
        return jinja_run_fail(m->run, "unknown test '%.*s'", (int)(n->text.len % 100), n->text.ptr);
    TRY(test->holds(m->run, v, &args, &holds));
    *out = jinja_value_bool(holds);
    return OK;
}

static status eval_arithmetic(jinja_machine *m, jinja_scope *s, const jinja_node *n,
                              jinja_value *out)
{
    jinja_value a, b;
    TRY(jinja_eval_node(m, s, n->a, &a));
    TRY(jinja_eval_node(m, s, n->b, &b));
    if (n->op == JINJA_MOD && a.type == JINJA_STRING) {
        if (a.markup) return jinja_run_fail(m->run, "%% of escaped text is not supported");
        return jinja_format_percent(m->run, a.s, b, out);
    }
    return jinja_ops_arithmetic(m->run, (jinja_operator)n->op, a, b, out);
}

static status eval_concat(jinja_machine *m, jinja_scope *s, const jinja_node *n, jinja_value *out)
{
    jinja_text t;
    jinja_text_init(&t, m->run);
    for (int i = 0; i < n->list.count; i++) {
        jinja_value v;
        TRY(jinja_eval_node(m, s, n->list.items[i], &v));
        TRY(jinja_repr_write(&t, v));
    }
    *out = jinja_value_string(STR(""));
    return jinja_text_done(&t, &out->s);
}

static status eval_compare(jinja_machine *m, jinja_scope *s, const jinja_node *n, jinja_value *out)
{
    jinja_value left, right;
    bool holds = true;
    TRY(jinja_eval_node(m, s, n->a, &left));
    for (int i = 0; holds && i < n->list.count; i++) { /* a < b < c stops at the first failure */
        const jinja_node *operand = n->list.items[i];
        TRY(jinja_eval_node(m, s, operand->a, &right));
        TRY(jinja_ops_compare(m->run, (jinja_operator)operand->op, left, right, &holds));
        left = right;
    }
    *out = jinja_value_bool(holds);
    return OK;
}

static status eval_choose(jinja_machine *m, jinja_scope *s, const jinja_node *n, jinja_value *out)
{
    jinja_value test;
    TRY(jinja_eval_node(m, s, n->a, &test));
    if (jinja_value_truth(test)) return jinja_eval_node(m, s, n->b, out);
    if (n->c) return jinja_eval_node(m, s, n->c, out);
    *out = jinja_value_missing(NULL, STR("the inline if-expression"));
    return OK;
}

/* not, and, or, + and - before a value */
static status eval_logic(jinja_machine *m, jinja_scope *s, const jinja_node *n, jinja_value *out)
{
    TRY(jinja_eval_node(m, s, n->a, out));
    switch (n->kind) {
    case JINJA_N_NOT: *out = jinja_value_bool(!jinja_value_truth(*out)); return OK;
    case JINJA_N_AND: return jinja_value_truth(*out) ? jinja_eval_node(m, s, n->b, out) : OK;
    case JINJA_N_OR: return jinja_value_truth(*out) ? OK : jinja_eval_node(m, s, n->b, out);
    case JINJA_N_NEGATIVE: return jinja_ops_negate(m->run, *out, out);
    default: break;
    }
    if (out->type == JINJA_UNDEFINED) return jinja_value_fail_missing(m->run, *out);
    if (!jinja_value_is_number(*out)) {
        return jinja_run_fail(m->run, "bad operand type for unary +: '%s'",
                              jinja_value_type_name(*out));
    }
    if (out->type == JINJA_BOOL) *out = jinja_value_int(out->b);
    return OK;
}

static status eval(jinja_machine *m, jinja_scope *s, const jinja_node *n, jinja_value *out)
{
    jinja_value a, b;
    switch (n->kind) {
    case JINJA_N_CONST: *out = n->value; return OK;
    case JINJA_N_NAME: look_up(m, s, n, out); return OK;
    case JINJA_N_LIST: return eval_items(m, s, n, JINJA_LIST, out);
    case JINJA_N_TUPLE: return eval_items(m, s, n, JINJA_TUPLE, out);
    case JINJA_N_DICT: return eval_dict(m, s, n, out);
    case JINJA_N_ATTRIBUTE:
        TRY(jinja_eval_node(m, s, n->a, &a));
        return get_attribute(m->run, a, n->text, out);
    case JINJA_N_ITEM:
        TRY(jinja_eval_node(m, s, n->a, &a));
        TRY(jinja_eval_node(m, s, n->b, &b));
        return get_item(m->run, a, b, out);
    case JINJA_N_SLICE: return eval_slice(m, s, n, out);
    case JINJA_N_CALL: return eval_call(m, s, n, out);
    case JINJA_N_FILTER: return eval_filter(m, s, n, out);
    case JINJA_N_TEST: return eval_test(m, s, n, out);
    case JINJA_N_ARITHMETIC: return eval_arithmetic(m, s, n, out);
    case JINJA_N_CONCAT: return eval_concat(m, s, n, out);
    case JINJA_N_COMPARE: return eval_compare(m, s, n, out);
    case JINJA_N_CHOOSE: return eval_choose(m, s, n, out);
    case JINJA_N_CAPTURED:
        while (!s->has_captured) s = s->parent; /* the parser puts it only where there is one */
        *out = s->captured;
        return OK;
    default: return eval_logic(m, s, n, out);
    }
}

status jinja_eval_node(jinja_machine *m, jinja_scope *s, const jinja_node *n, jinja_value *out)
{
    m->run->line = n->line;
    status result = jinja_run_enter(m->run);
    if (!result) result = eval(m, s, n, out);
    jinja_run_leave(m->run);
    return result;
}

status jinja_eval_template(jinja_run *r, const jinja_node *root, const jinja_dict *variables,
                           jinja_text *out)
{
    jinja_machine m = { .run = r, .out = out, .variables = variables };
    jinja_scope top = { 0 };
    return jinja_exec_node(&m, &top, root);
}
