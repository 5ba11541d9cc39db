/* jinja_value.c - making values and asking what they are. */
#include "text/jinja_value.h"

#include "base/banned.h"

enum { SMALL_DICT = 8 }; /* entries that are searched one by one */

status jinja_value_list(jinja_run *r, jinja_type type, jinja_value *out)
{
    *out = (jinja_value){ .type = type };
    out->list = jinja_run_alloc(r, sizeof *out->list);
    return out->list ? OK : r->failed;
}

status jinja_value_push(jinja_run *r, jinja_list *l, jinja_value v)
{
    TRY(jinja_run_step(r));
    if (l->count == l->cap) {
        const size_t cap = l->cap ? l->cap * 2 : 4;
        jinja_value *items = jinja_run_grow(r, l->items, l->count, cap, sizeof *items);
        if (!items) return r->failed;
        l->items = items;
        l->cap = cap;
    }
    l->items[l->count++] = v;
    return OK;
}

status jinja_value_pair(jinja_run *r, jinja_value a, jinja_value b, jinja_value *out)
{
    TRY(jinja_value_list(r, JINJA_TUPLE, out));
    TRY(jinja_value_push(r, out->list, a));
    return jinja_value_push(r, out->list, b);
}

status jinja_value_iterator(jinja_run *r, jinja_list items, jinja_value *out)
{
    *out = (jinja_value){ .type = JINJA_ITERATOR };
    out->iter = jinja_run_alloc(r, sizeof *out->iter);
    if (!out->iter) return r->failed;
    out->iter->items = items;
    return OK;
}

status jinja_value_dict(jinja_run *r, jinja_type type, jinja_value *out)
{
    *out = (jinja_value){ .type = type };
    out->dict = jinja_run_alloc(r, sizeof *out->dict);
    return out->dict ? OK : r->failed;
}

static uint64_t mix(uint64_t h)
{
    h = (h ^ (h >> 31)) * 0x9e3779b97f4a7c15u;
    return h ^ (h >> 29);
}

bool jinja_value_hash(jinja_value v, uint64_t *out)
{
    double f;
    switch (v.type) {
    case JINJA_NONE: *out = 1; return true;
    case JINJA_STRING:
    case JINJA_BIGINT: *out = str_hash(v.s); return true;
    case JINJA_BOOL:
    case JINJA_INT:
    case JINJA_FLOAT: /* equal numbers hash alike whatever their type */
        jinja_value_as_double(v, &f);
        if (f == 0) f = 0;
        memcpy(out, &f, sizeof *out);
        *out = mix(*out);
        return true;
    case JINJA_TUPLE:
        *out = 2;
        for (size_t i = 0; i < v.list->count; i++) {
            uint64_t h;
            const jinja_value item = v.list->items[i];
            if (item.type == JINJA_TUPLE || !jinja_value_hash(item, &h)) return false;
            *out = mix(*out + h);
        }
        return true;
    default: return false;
    }
}

/* Equality of hashable values. */
static bool same_key(jinja_value a, jinja_value b)
{
    if (a.type == JINJA_STRING || b.type == JINJA_STRING || a.type == JINJA_BIGINT ||
        b.type == JINJA_BIGINT)
        return a.type == b.type && str_eq(a.s, b.s);
    if (a.type == JINJA_TUPLE || b.type == JINJA_TUPLE) {
        if (a.type != b.type || a.list->count != b.list->count) return false;
        for (size_t i = 0; i < a.list->count; i++)
            if (!same_key(a.list->items[i], b.list->items[i])) return false;
        return true;
    }
    if (a.type == JINJA_NONE || b.type == JINJA_NONE) return a.type == b.type;
    int64_t i, k;
    if (jinja_value_as_int(a, &i) && jinja_value_as_int(b, &k)) return i == k;
    double f, g;
    return jinja_value_as_double(a, &f) && jinja_value_as_double(b, &g) && f == g;
}

/* The slot of the key, or the free one where it belongs. */
static size_t find_slot(const jinja_dict *d, jinja_value key, uint64_t hash)
{
    size_t at = hash & (d->slot_count - 1);
    while (d->slots[at] && !same_key(d->entries[d->slots[at] - 1].key, key))
        at = (at + 1) & (d->slot_count - 1);
    return at;
}

static jinja_entry *find(const jinja_dict *d, jinja_value key, uint64_t hash)
{
    if (d->slots) {
        const uint32_t slot = d->slots[find_slot(d, key, hash)];
        return slot ? &d->entries[slot - 1] : NULL;
    }
    for (size_t i = 0; i < d->count; i++)
        if (same_key(d->entries[i].key, key)) return &d->entries[i];
    return NULL;
}

static status reindex(jinja_run *r, jinja_dict *d)
{
    d->slot_count = d->cap * 2;
    d->slots = jinja_run_array(r, d->slot_count, sizeof *d->slots);
    if (!d->slots) return r->failed;
    for (size_t i = 0; i < d->count; i++) {
        uint64_t hash = 0;
        jinja_value_hash(d->entries[i].key, &hash);
        d->slots[find_slot(d, d->entries[i].key, hash)] = (uint32_t)i + 1;
    }
    return OK;
}

status jinja_value_put(jinja_run *r, jinja_dict *d, jinja_value key, jinja_value value)
{
    TRY(jinja_run_step(r));
    uint64_t hash;
    if (!jinja_value_hash(key, &hash))
        return jinja_run_fail(r, "unhashable type: '%s'", jinja_value_type_name(key));
    jinja_entry *old = find(d, key, hash);
    if (old) {
        old->value = value;
        return OK;
    }
    if (d->count == d->cap) {
        const size_t cap = d->cap ? d->cap * 2 : 4;
        jinja_entry *entries = jinja_run_grow(r, d->entries, d->count, cap, sizeof *entries);
        if (!entries) return r->failed;
        d->entries = entries;
        d->cap = cap;
        if (cap > SMALL_DICT) TRY(reindex(r, d));
    }
    d->entries[d->count] = (jinja_entry){ key, value };
    if (d->slots) d->slots[find_slot(d, key, hash)] = (uint32_t)d->count + 1;
    d->count++;
    return OK;
}

const jinja_value *jinja_value_get(const jinja_dict *d, jinja_value key)
{
    uint64_t hash;
    if (!jinja_value_hash(key, &hash)) return NULL;
    const jinja_entry *entry = find(d, key, hash);
    return entry ? &entry->value : NULL;
}

const jinja_value *jinja_value_get_str(const jinja_dict *d, str key)
{
    return jinja_value_get(d, jinja_value_string(key));
}

static status copy_str(jinja_run *r, str s, str *out)
{
    TRY(jinja_run_work(r, s.len));
    char *p = jinja_run_alloc(r, s.len + 1);
    if (!p) return r->failed;
    if (s.len) memcpy(p, s.ptr, s.len);
    *out = (str){ p, s.len };
    return OK;
}

static status object_from_json(jinja_run *r, const json_node *n, jinja_value *out)
{
    TRY(jinja_value_dict(r, JINJA_DICT, out));
    str key;
    const json_node *child;
    for (void *it = NULL; json_each(n, &it, &key, &child);) {
        jinja_value k = jinja_value_string(key), v;
        TRY(copy_str(r, key, &k.s));
        TRY(jinja_value_from_json(r, child, &v));
        TRY(jinja_value_put(r, out->dict, k, v));
    }
    return OK;
}

static status from_json(jinja_run *r, const json_node *n, jinja_value *out)
{
    *out = JINJA_NONE_VALUE;
    switch (json_kind(n)) {
    case JSON_TRUE:
    case JSON_FALSE: *out = jinja_value_bool(json_is_true(n)); return OK;
    case JSON_INT:
        out->type = JINJA_INT;
        json_i64(n, &out->i);
        return OK;
    case JSON_BIGINT: {
        str digits;
        json_bigint(n, &digits);
        out->type = JINJA_BIGINT;
        return copy_str(r, digits, &out->s);
    }
    case JSON_REAL:
        out->type = JINJA_FLOAT;
        json_f64(n, &out->f);
        return OK;
    case JSON_STRING: {
        str s;
        json_str(n, &s);
        out->type = JINJA_STRING;
        return copy_str(r, s, &out->s);
    }
    case JSON_ARRAY:
        TRY(jinja_value_list(r, JINJA_LIST, out));
        for (size_t i = 0; i < json_len(n); i++) {
            jinja_value item;
            TRY(jinja_value_from_json(r, json_at(n, i), &item));
            TRY(jinja_value_push(r, out->list, item));
        }
        return OK;
    case JSON_OBJECT: return object_from_json(r, n, out);
    default: return OK;
    }
}

status jinja_value_from_json(jinja_run *r, const json_node *n, jinja_value *out)
{
    status s = jinja_run_enter(r);
    if (!s) s = from_json(r, n, out);
    jinja_run_leave(r);
    return s;
}

const char *jinja_value_type_name(jinja_value v)
{
    switch (v.type) {
    case JINJA_UNDEFINED: return "Undefined";
    case JINJA_NONE: return "NoneType";
    case JINJA_BOOL: return "bool";
    case JINJA_INT:
    case JINJA_BIGINT: return "int";
    case JINJA_FLOAT: return "float";
    case JINJA_STRING: return v.markup ? "Markup" : "str";
    case JINJA_LIST: return "list";
    case JINJA_TUPLE: return "tuple";
    case JINJA_DICT: return "dict";
    case JINJA_VIEW:
        return v.view->kind == JINJA_KEYS     ? "dict_keys"
               : v.view->kind == JINJA_VALUES ? "dict_values"
                                              : "dict_items";
    case JINJA_RANGE: return "range";
    case JINJA_ITERATOR: return "generator";
    case JINJA_NAMESPACE: return "Namespace";
    case JINJA_MACRO: return "Macro";
    case JINJA_LOOP: return "LoopContext";
    case JINJA_METHOD: return "builtin_function_or_method";
    case JINJA_FUNCTION: return "function";
    case JINJA_CYCLER: return "Cycler";
    case JINJA_JOINER: return "Joiner";
    }
    return "object";
}

bool jinja_value_truth(jinja_value v)
{
    switch (v.type) {
    case JINJA_UNDEFINED:
    case JINJA_NONE: return false;
    case JINJA_BOOL: return v.b;
    case JINJA_INT: return v.i != 0;
    case JINJA_FLOAT: return v.f != 0;
    case JINJA_STRING: return v.s.len > 0;
    case JINJA_LIST:
    case JINJA_TUPLE: return v.list->count > 0;
    case JINJA_DICT: return v.dict->count > 0;
    case JINJA_VIEW: return v.view->dict->count > 0;
    case JINJA_RANGE: return v.range->count > 0;
    default: return true;
    }
}

bool jinja_value_is_number(jinja_value v)
{
    return v.type == JINJA_BOOL || v.type == JINJA_INT || v.type == JINJA_BIGINT ||
           v.type == JINJA_FLOAT;
}

bool jinja_value_as_int(jinja_value v, int64_t *out)
{
    if (v.type != JINJA_INT && v.type != JINJA_BOOL) return false;
    *out = v.type == JINJA_INT ? v.i : v.b;
    return true;
}

bool jinja_value_as_double(jinja_value v, double *out)
{
    int64_t i;
    if (jinja_value_as_int(v, &i)) {
        *out = (double)i;
        return true;
    }
    if (v.type == JINJA_BIGINT) return str_to_f64(v.s, out);
    if (v.type != JINJA_FLOAT) return false;
    *out = v.f;
    return true;
}

status jinja_value_fail_missing(jinja_run *r, jinja_value v)
{
    const str what = v.missing.what;
    const int n = what.len > 100 ? 100 : (int)what.len;
    if (!v.missing.whose) return jinja_run_fail(r, "'%.*s' is undefined", n, what.ptr);
    return jinja_run_fail(r, "'%s' has no attribute '%.*s'", v.missing.whose, n, what.ptr);
}

size_t jinja_value_char_count(str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++) n += ((unsigned char)s.ptr[i] & 0xc0) != 0x80;
    return n;
}

size_t jinja_value_char_offset(str s, size_t index)
{
    for (size_t i = 0; i < s.len; i++)
        if (((unsigned char)s.ptr[i] & 0xc0) != 0x80 && index-- == 0) return i;
    return s.len;
}
