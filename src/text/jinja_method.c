/* jinja_method.c - attributes, items and methods of values. */
#include "text/jinja_method.h"

#include "text/jinja_ops.h"
#include "text/jinja_string.h"

#include "base/banned.h"

typedef struct bound {
    jinja_value self;
    const jinja_method *method;
} bound;

static status list_index(jinja_run *r, jinja_value self, const jinja_args *args, jinja_value *out)
{
    if (args->count != 1 || args->named_count)
        return jinja_run_fail(r, "index: one argument is supported");
    for (size_t i = 0; i < self.list->count; i++) {
        bool same;
        TRY(jinja_ops_equal(r, self.list->items[i], args->items[0], &same));
        *out = jinja_value_int((int64_t)i);
        if (same) return OK;
    }
    return jinja_run_fail(r, "the value is not in the list");
}

static status list_count(jinja_run *r, jinja_value self, const jinja_args *args, jinja_value *out)
{
    if (args->count != 1 || args->named_count) return jinja_run_fail(r, "count wants one argument");
    *out = jinja_value_int(0);
    for (size_t i = 0; i < self.list->count; i++) {
        bool same;
        TRY(jinja_ops_equal(r, self.list->items[i], args->items[0], &same));
        out->i += same;
    }
    return OK;
}

/* A value that cannot change is its own copy. */
static status copy(jinja_run *r, jinja_value self, const jinja_args *args, jinja_value *out)
{
    *out = self;
    return jinja_args_bind(r, "copy", args, "", NULL);
}

static status dict_get(jinja_run *r, jinja_value self, const jinja_args *args, jinja_value *out)
{
    uint64_t hash;
    if (args->named_count || args->count < 1 || args->count > 2)
        return jinja_run_fail(r, "get wants a key and perhaps a default");
    if (!jinja_value_hash(args->items[0], &hash))
        return jinja_run_fail(r, "unhashable type: '%s'", jinja_value_type_name(args->items[0]));
    const jinja_value *item = jinja_value_get(self.dict, args->items[0]);
    *out = item ? *item : args->count == 2 ? args->items[1] : JINJA_NONE_VALUE;
    return OK;
}

static status view(jinja_run *r, jinja_value self, const jinja_args *args, jinja_value *out,
                   jinja_view_kind kind)
{
    TRY(jinja_args_bind(r, "a view of a dict", args, "", NULL));
    *out = (jinja_value){ .type = JINJA_VIEW };
    out->view = jinja_run_alloc(r, sizeof *out->view);
    if (!out->view) return r->failed;
    *out->view = (jinja_view){ self.dict, kind };
    return OK;
}

static status dict_keys(jinja_run *r, jinja_value self, const jinja_args *args, jinja_value *out)
{
    return view(r, self, args, out, JINJA_KEYS);
}

static status dict_values(jinja_run *r, jinja_value self, const jinja_args *args, jinja_value *out)
{
    return view(r, self, args, out, JINJA_VALUES);
}

static status dict_items(jinja_run *r, jinja_value self, const jinja_args *args, jinja_value *out)
{
    return view(r, self, args, out, JINJA_ITEMS);
}

static const jinja_method list_methods[] = {
    { "append", NULL, true },       { "clear", NULL, true },  { "copy", copy, false },
    { "count", list_count, false }, { "extend", NULL, true }, { "index", list_index, false },
    { "insert", NULL, true },       { "pop", NULL, true },    { "remove", NULL, true },
    { "reverse", NULL, true },      { "sort", NULL, true },   { NULL, NULL, false },
};
static const jinja_method tuple_methods[] = {
    { "count", list_count, false },
    { "index", list_index, false },
    { NULL, NULL, false },
};
static const jinja_method dict_methods[] = {
    { "clear", NULL, true },    { "copy", copy, false },          { "fromkeys", NULL, false },
    { "get", dict_get, false }, { "items", dict_items, false },   { "keys", dict_keys, false },
    { "pop", NULL, true },      { "popitem", NULL, true },        { "setdefault", NULL, true },
    { "update", NULL, true },   { "values", dict_values, false }, { NULL, NULL, false },
};
static const jinja_method range_methods[] = {
    { "count", NULL, false }, { "index", NULL, false }, { "start", NULL, false },
    { "step", NULL, false },  { "stop", NULL, false },  { NULL, NULL, false },
};
static const jinja_method number_methods[] = {
    /* what Python has and templates do not use */
    { "as_integer_ratio", NULL, false },
    { "bit_count", NULL, false },
    { "bit_length", NULL, false },
    { "conjugate", NULL, false },
    { "denominator", NULL, false },
    { "from_bytes", NULL, false },
    { "fromhex", NULL, false },
    { "hex", NULL, false },
    { "imag", NULL, false },
    { "is_integer", NULL, false },
    { "numerator", NULL, false },
    { "real", NULL, false },
    { "to_bytes", NULL, false },
    { NULL, NULL, false },
};

static const jinja_method *find_method(jinja_value v, str name)
{
    const jinja_method *table = NULL;
    switch (v.type) {
    case JINJA_STRING: return jinja_string_find(name);
    case JINJA_LIST: table = list_methods; break;
    case JINJA_TUPLE: table = tuple_methods; break;
    case JINJA_DICT: table = dict_methods; break;
    case JINJA_RANGE: table = range_methods; break;
    case JINJA_BOOL:
    case JINJA_INT:
    case JINJA_BIGINT:
    case JINJA_FLOAT: table = number_methods; break;
    default: return NULL;
    }
    for (; table->name; table++)
        if (str_eq(name, str_from(table->name))) return table;
    return NULL;
}

status jinja_method_bind(jinja_run *r, jinja_value self, const jinja_method *method,
                         jinja_value *out)
{
    bound *b = jinja_run_alloc(r, sizeof *b);
    if (!b) return r->failed;
    *b = (bound){ self, method };
    *out = (jinja_value){ .type = JINJA_METHOD, .object = b };
    return OK;
}

/* Looks v.name up among methods and fixed attributes. */
static status own_attribute(jinja_run *r, jinja_value v, str name, jinja_value *out, bool *found)
{
    *found = true;
    if (v.group && (str_eq(name, STR("grouper")) || str_eq(name, STR("list")))) {
        *out = v.list->items[name.ptr[0] == 'l'];
        return OK;
    }
    if (v.type == JINJA_NAMESPACE) {
        const jinja_value *item = jinja_value_get_str(v.dict, name);
        *found = item != NULL;
        if (item) *out = *item;
        return OK;
    }
    const jinja_method *method = find_method(v, name);
    *found = method != NULL;
    if (!method) return OK;
    if (method->unsafe) { /* reading it gives nothing, calling it fails */
        *out = jinja_value_missing(jinja_value_type_name(v), name);
        return OK;
    }
    if (v.type == JINJA_RANGE || jinja_value_is_number(v)) {
        return jinja_run_fail(r, "attribute '%s' of a %s is not supported", method->name,
                              jinja_value_type_name(v));
    }
    return jinja_method_bind(r, v, method, out);
}

static const char *owner_name(jinja_value v)
{
    switch (v.type) {
    case JINJA_STRING: return "str object";
    case JINJA_LIST: return "list object";
    case JINJA_TUPLE: return "tuple object";
    case JINJA_DICT: return "dict object";
    case JINJA_NONE: return "None";
    default: return jinja_value_type_name(v);
    }
}

status jinja_method_attribute(jinja_run *r, jinja_value v, str name, jinja_value *out)
{
    bool found;
    if (v.type == JINJA_UNDEFINED) return jinja_value_fail_missing(r, v);
    TRY(own_attribute(r, v, name, out, &found));
    if (found) return OK;
    if (v.type == JINJA_DICT) TRY(jinja_ops_at(r, v, jinja_value_string(name), out, &found));
    if (!found) *out = jinja_value_missing(owner_name(v), name);
    return OK;
}

status jinja_method_item(jinja_run *r, jinja_value v, jinja_value key, jinja_value *out)
{
    bool found;
    if (v.type == JINJA_UNDEFINED) return jinja_value_fail_missing(r, v);
    TRY(jinja_ops_at(r, v, key, out, &found));
    if (found) return OK;
    if (key.type == JINJA_STRING) TRY(own_attribute(r, v, key.s, out, &found));
    if (!found)
        *out = jinja_value_missing(owner_name(v), key.type == JINJA_STRING ? key.s : STR("[...]"));
    return OK;
}

status jinja_method_call(jinja_run *r, jinja_value method, const jinja_args *args, jinja_value *out)
{
    const bound *b = method.object;
    if (!b->method->call) return jinja_run_fail(r, "method '%s' is not supported", b->method->name);
    TRY(b->method->call(r, b->self, args, out));
    if (b->self.type != JINJA_STRING || !b->self.markup) return OK;
    bool texts = out->type != JINJA_STRING && out->type != JINJA_BOOL && out->type != JINJA_INT;
    for (int i = 0; i < args->count; i++) texts |= args->items[i].type == JINJA_STRING;
    if (texts) return jinja_run_fail(r, "'%s' of escaped text is not supported", b->method->name);
    out->markup = out->type == JINJA_STRING;
    return OK;
}
