/* jinja_exec.c - runs statements; macros and loops. */
#include "text/jinja_exec.h"

#include "text/jinja_global.h"
#include "text/jinja_method.h"
#include "text/jinja_ops.h"
#include "text/jinja_repr.h"

#include "base/banned.h"

typedef struct macro {
    const jinja_node *node;
    jinja_scope *closure;
} macro;

typedef struct loop {
    const jinja_node *node;
    jinja_scope *outer;
    jinja_list items;
    size_t at;
    int64_t depth; /* from 0 */
    bool has_last;
    jinja_value last; /* what changed() saw last, a tuple */
} loop;

static status bind(jinja_run *r, jinja_scope *s, int id, jinja_value v)
{
    for (int i = 0; i < s->count; i++) {
        if (s->ids[i] != id) continue;
        s->values[i] = v;
        return OK;
    }
    if (s->count == s->cap) {
        const size_t count = (size_t)s->count, cap = count ? count * 2 : 4;
        int *ids = jinja_run_grow(r, s->ids, count, cap, sizeof *ids);
        jinja_value *values = jinja_run_grow(r, s->values, count, cap, sizeof *values);
        if (!ids || !values) return r->failed;
        s->ids = ids;
        s->values = values;
        s->cap = (int)cap;
    }
    s->ids[s->count] = id;
    s->values[s->count++] = v;
    return OK;
}

static status open_scope(jinja_run *r, jinja_scope *parent, jinja_scope **out)
{
    *out = jinja_run_alloc(r, sizeof **out);
    if (!*out) return r->failed;
    (*out)->parent = parent;
    return OK;
}

/* Runs a body in the scope and gives the text that it prints. */
static status capture(jinja_machine *m, jinja_scope *s, const jinja_node *body, jinja_value *out)
{
    jinja_text text, *outer = m->out;
    jinja_text_init(&text, m->run);
    m->out = &text;
    const status result = jinja_exec_node(m, s, body);
    m->out = outer;
    *out = jinja_value_string(STR(""));
    return result ? result : jinja_text_done(&text, &out->s);
}

static status assign(jinja_machine *m, jinja_scope *s, const jinja_node *target, jinja_value v)
{
    if (target->kind == JINJA_N_NAME) return bind(m->run, s, target->id, v);
    if (target->kind == JINJA_N_NAMESPACE_ITEM) {
        jinja_value space;
        TRY(jinja_eval_node(m, s, target->a, &space));
        return jinja_global_store(m->run, space, target->text, v);
    }
    jinja_list items;
    TRY(jinja_ops_items(m->run, v, &items));
    const size_t want = (size_t)target->list.count;
    if (items.count != want)
        return jinja_run_fail(m->run, "cannot unpack %zu values into %zu names", items.count, want);
    for (size_t i = 0; i < want; i++) TRY(assign(m, s, target->list.items[i], items.items[i]));
    return OK;
}

static status run_loop(jinja_machine *m, const jinja_node *n, jinja_scope *outer, jinja_list items,
                       int64_t depth)
{
    if (items.count == 0 && n->e) {
        jinja_scope *inner;
        TRY(open_scope(m->run, outer, &inner));
        return jinja_exec_node(m, inner, n->e);
    }
    loop *l = jinja_run_alloc(m->run, sizeof *l);
    if (!l) return m->run->failed;
    *l = (loop){ .node = n, .outer = outer, .items = items, .depth = depth };
    const jinja_value self = { .type = JINJA_LOOP, .object = l };
    for (; l->at < l->items.count; l->at++) {
        jinja_scope *inner;
        TRY(open_scope(m->run, outer, &inner));
        TRY(bind(m->run, inner, JINJA_ID_LOOP, self));
        TRY(assign(m, inner, n->a, l->items.items[l->at]));
        TRY(jinja_exec_node(m, inner, n->d));
        const jinja_flow flow = m->flow;
        m->flow = JINJA_GO_ON;
        if (flow == JINJA_BREAK) break;
    }
    return OK;
}

/* The items that a loop's `if` keeps. */
static status keep_items(jinja_machine *m, const jinja_node *n, jinja_scope *outer,
                         jinja_list *items)
{
    jinja_list kept = { 0 };
    for (size_t i = 0; n->c && i < items->count; i++) {
        jinja_scope *inner;
        jinja_value test;
        TRY(open_scope(m->run, outer, &inner));
        TRY(assign(m, inner, n->a, items->items[i]));
        TRY(jinja_eval_node(m, inner, n->c, &test));
        if (jinja_value_truth(test)) TRY(jinja_value_push(m->run, &kept, items->items[i]));
    }
    if (n->c) *items = kept;
    return OK;
}

static status exec_for(jinja_machine *m, jinja_scope *s, const jinja_node *n)
{
    jinja_value v;
    jinja_list items;
    TRY(jinja_eval_node(m, s, n->b, &v));
    TRY(jinja_ops_items(m->run, v, &items));
    TRY(keep_items(m, n, s, &items));
    return run_loop(m, n, s, items, 0);
}

status jinja_exec_call_loop(jinja_machine *m, jinja_value value, const jinja_args *args,
                            jinja_value *out)
{
    const loop *l = value.object;
    const jinja_value *slots[1];
    jinja_list items;
    TRY(jinja_args_bind(m->run, "loop", args, "iterable", slots));
    if (!l->node->op) return jinja_run_fail(m->run, "the loop is not marked recursive");
    if (!slots[0]) return jinja_run_fail(m->run, "loop wants a list");
    TRY(jinja_ops_items(m->run, *slots[0], &items));
    TRY(keep_items(m, l->node, l->outer, &items));
    jinja_text text, *outer = m->out;
    jinja_text_init(&text, m->run);
    m->out = &text;
    const status result = run_loop(m, l->node, l->outer, items, l->depth + 1);
    m->out = outer;
    *out = jinja_value_string(STR(""));
    return result ? result : jinja_text_done(&text, &out->s);
}

static status loop_changed(jinja_run *r, jinja_value self, const jinja_args *args, jinja_value *out)
{
    loop *l = self.object;
    jinja_value now;
    bool same = false;
    if (args->named_count) return jinja_run_fail(r, "changed takes no keywords");
    TRY(jinja_value_list(r, JINJA_TUPLE, &now));
    for (int i = 0; i < args->count; i++) TRY(jinja_value_push(r, now.list, args->items[i]));
    if (l->has_last) TRY(jinja_ops_equal(r, l->last, now, &same));
    l->has_last = true;
    l->last = now;
    *out = jinja_value_bool(!same);
    return OK;
}

static status loop_cycle(jinja_run *r, jinja_value self, const jinja_args *args, jinja_value *out)
{
    const loop *l = self.object;
    if (args->named_count || !args->count) return jinja_run_fail(r, "no items for cycling given");
    *out = args->items[l->at % (size_t)args->count];
    return OK;
}

static status loop_attribute(jinja_run *r, jinja_value v, str name, jinja_value *out, bool *found)
{
    static const jinja_method changed = { "changed", loop_changed, false };
    static const jinja_method cycle = { "cycle", loop_cycle, false };
    const loop *l = v.object;
    const int64_t at = (int64_t)l->at, count = (int64_t)l->items.count;
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {
        { "index", at + 1 },        { "index0", at },
        { "revindex", count - at }, { "revindex0", count - at - 1 },
        { "length", count },        { "depth", l->depth + 1 },
        { "depth0", l->depth },
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (!str_eq(name, str_from(numbers[i].name))) continue;
        *out = jinja_value_int(numbers[i].value);
        return OK;
    }
    if (str_eq(name, STR("first"))) *out = jinja_value_bool(at == 0);
    else if (str_eq(name, STR("last"))) *out = jinja_value_bool(at + 1 == count);
    else if (str_eq(name, STR("changed"))) return jinja_method_bind(r, v, &changed, out);
    else if (str_eq(name, STR("cycle"))) return jinja_method_bind(r, v, &cycle, out);
    else if (str_eq(name, STR("previtem"))) {
        *out = at ? l->items.items[at - 1]
                  : jinja_value_missing(NULL, STR("there is no previous item"));
    } else if (str_eq(name, STR("nextitem"))) {
        *out = at + 1 < count ? l->items.items[at + 1]
                              : jinja_value_missing(NULL, STR("there is no next item"));
    } else *found = false;
    return OK;
}

status jinja_exec_attribute(jinja_run *r, jinja_value v, str name, jinja_value *out, bool *found)
{
    *found = true;
    if (v.type == JINJA_LOOP) return loop_attribute(r, v, name, out, found);
    const macro *called = v.object;
    if (str_eq(name, STR("name"))) {
        *out = jinja_value_string(called->node->text);
    } else if (str_eq(name, STR("arguments"))) {
        TRY(jinja_value_list(r, JINJA_TUPLE, out));
        for (int i = 0; i < called->node->list.count; i++) {
            const str parameter = called->node->list.items[i]->text;
            TRY(jinja_value_push(r, out->list, jinja_value_string(parameter)));
        }
    } else {
        *found = false;
    }
    return OK;
}

/* Binds the keywords that no parameter takes: the caller, the rest as kwargs, or a failure. */
static status bind_extra_names(jinja_run *r, const jinja_node *n, jinja_scope *s,
                               const jinja_args *args, const bool *taken)
{
    jinja_value rest;
    bool has_caller = false;
    TRY(jinja_value_dict(r, JINJA_DICT, &rest));
    for (int i = 0; i < args->named_count; i++) {
        if (taken[i]) continue;
        if (str_eq(args->names[i], STR("caller")) && (n->op & JINJA_USES_CALLER)) {
            TRY(bind(r, s, JINJA_ID_CALLER, args->named[i]));
            has_caller = true;
            continue;
        }
        if (!(n->op & JINJA_USES_KWARGS)) {
            return jinja_run_fail(r, "macro '%.*s' takes no keyword argument '%.*s'",
                                  (int)(n->text.len % 100), n->text.ptr,
                                  (int)(args->names[i].len % 100), args->names[i].ptr);
        }
        TRY(jinja_value_put(r, rest.dict, jinja_value_string(args->names[i]), args->named[i]));
    }
    if ((n->op & JINJA_USES_CALLER) && !has_caller)
        TRY(bind(r, s, JINJA_ID_CALLER, jinja_value_missing(NULL, STR("caller"))));
    return n->op & JINJA_USES_KWARGS ? bind(r, s, JINJA_ID_KWARGS, rest) : OK;
}

static status bind_extra_items(jinja_run *r, const jinja_node *n, jinja_scope *s,
                               const jinja_args *args)
{
    if (!(n->op & JINJA_USES_VARARGS)) {
        if (args->count <= n->list.count) return OK;
        return jinja_run_fail(r, "macro '%.*s' takes not more than %d argument(s)",
                              (int)(n->text.len % 100), n->text.ptr, n->list.count);
    }
    jinja_value rest;
    TRY(jinja_value_list(r, JINJA_TUPLE, &rest));
    for (int i = n->list.count; i < args->count; i++)
        TRY(jinja_value_push(r, rest.list, args->items[i]));
    return bind(r, s, JINJA_ID_VARARGS, rest);
}

static status bind_parameters(jinja_machine *m, const jinja_node *n, jinja_scope *s,
                              const jinja_args *args)
{
    bool *taken = jinja_run_array(m->run, (size_t)args->named_count, sizeof *taken);
    if (!taken) return m->run->failed;
    for (int i = 0; i < n->list.count; i++) {
        const jinja_node *parameter = n->list.items[i];
        jinja_value v = jinja_value_missing(NULL, parameter->text);
        bool given = i < args->count;
        if (given) v = args->items[i];
        for (int k = 0; !given && k < args->named_count; k++) {
            if (!str_eq(args->names[k], parameter->text)) continue;
            v = args->named[k];
            given = taken[k] = true;
        }
        if (!given && parameter->a) TRY(jinja_eval_node(m, s, parameter->a, &v));
        TRY(bind(m->run, s, parameter->id, v));
    }
    TRY(bind_extra_names(m->run, n, s, args, taken));
    return bind_extra_items(m->run, n, s, args);
}

status jinja_exec_call_macro(jinja_machine *m, jinja_value value, const jinja_args *args,
                             jinja_value *out)
{
    const macro *called = value.object;
    jinja_scope *s;
    TRY(open_scope(m->run, called->closure, &s));
    TRY(bind_parameters(m, called->node, s, args));
    return capture(m, s, called->node->a, out);
}

static status make_macro(jinja_run *r, jinja_scope *s, const jinja_node *n, jinja_value *out)
{
    macro *made = jinja_run_alloc(r, sizeof *made);
    if (!made) return r->failed;
    *made = (macro){ n, s };
    *out = (jinja_value){ .type = JINJA_MACRO, .object = made };
    return OK;
}

static status exec_call_block(jinja_machine *m, jinja_scope *s, const jinja_node *n)
{
    jinja_value f, caller, out;
    jinja_args args;
    TRY(jinja_eval_node(m, s, n->a->a, &f));
    TRY(jinja_eval_arguments(m, s, &n->a->list, &args));
    TRY(make_macro(m->run, s, n->b, &caller));
    const size_t count = (size_t)args.named_count;
    str *names = jinja_run_grow(m->run, args.names, count, count + 1, sizeof *names);
    jinja_value *named = jinja_run_grow(m->run, args.named, count, count + 1, sizeof *named);
    if (!names || !named) return m->run->failed;
    names[count] = STR("caller");
    named[count] = caller;
    args.names = names;
    args.named = named;
    args.named_count++;
    TRY(jinja_eval_call(m, f, &args, &out));
    return jinja_repr_write(m->out, out);
}

/* Captures `body` and passes it through `filters` (NULL: none). */
static status captured(jinja_machine *m, jinja_scope *s, const jinja_node *body,
                       const jinja_node *filters, jinja_value *out)
{
    jinja_scope *inner;
    TRY(open_scope(m->run, s, &inner));
    TRY(capture(m, inner, body, out));
    inner->has_captured = true;
    inner->captured = *out;
    return filters ? jinja_eval_node(m, inner, filters, out) : OK;
}

static status exec_with(jinja_machine *m, jinja_scope *s, const jinja_node *n)
{
    jinja_scope *inner;
    TRY(open_scope(m->run, s, &inner));
    for (int i = 0; i < n->list.count; i += 2) { /* values see the outer names only */
        jinja_value v;
        TRY(jinja_eval_node(m, s, n->list.items[i + 1], &v));
        TRY(assign(m, inner, n->list.items[i], v));
    }
    return jinja_exec_node(m, inner, n->a);
}

static status exec_if(jinja_machine *m, jinja_scope *s, const jinja_node *n)
{
    jinja_value test;
    TRY(jinja_eval_node(m, s, n->a, &test));
    if (jinja_value_truth(test)) return jinja_exec_node(m, s, n->b);
    return n->c ? jinja_exec_node(m, s, n->c) : OK;
}

static status exec(jinja_machine *m, jinja_scope *s, const jinja_node *n)
{
    jinja_value v;
    jinja_scope *inner;
    switch (n->kind) {
    case JINJA_N_BLOCK:
        for (int i = 0; i < n->list.count && m->flow == JINJA_GO_ON; i++)
            TRY(jinja_exec_node(m, s, n->list.items[i]));
        return OK;
    case JINJA_N_SCOPE: TRY(open_scope(m->run, s, &inner)); return jinja_exec_node(m, inner, n->a);
    case JINJA_N_DATA: jinja_text_add(m->out, n->text); return m->run->failed;
    case JINJA_N_PRINT: TRY(jinja_eval_node(m, s, n->a, &v)); return jinja_repr_write(m->out, v);
    case JINJA_N_IF: return exec_if(m, s, n);
    case JINJA_N_FOR: return exec_for(m, s, n);
    case JINJA_N_SET: TRY(jinja_eval_node(m, s, n->b, &v)); return assign(m, s, n->a, v);
    case JINJA_N_SET_BLOCK: TRY(captured(m, s, n->b, n->c, &v)); return assign(m, s, n->a, v);
    case JINJA_N_WITH: return exec_with(m, s, n);
    case JINJA_N_MACRO: TRY(make_macro(m->run, s, n, &v)); return bind(m->run, s, n->id, v);
    case JINJA_N_CALL_BLOCK: return exec_call_block(m, s, n);
    case JINJA_N_FILTER_BLOCK:
        TRY(captured(m, s, n->a, n->b, &v));
        return jinja_repr_write(m->out, v);
    case JINJA_N_BREAK: m->flow = JINJA_BREAK; return OK;
    case JINJA_N_CONTINUE: m->flow = JINJA_CONTINUE; return OK;
    default: return jinja_run_fail(m->run, "%.*s", (int)n->text.len, n->text.ptr);
    }
}

status jinja_exec_node(jinja_machine *m, jinja_scope *s, const jinja_node *n)
{
    m->run->line = n->line;
    status result = jinja_run_enter(m->run);
    if (!result) result = exec(m, s, n);
    jinja_run_leave(m->run);
    return result;
}
