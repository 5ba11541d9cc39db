/* subschema.c - what can be said of parts of a JSON Schema. */
#include <math.h>
#include "engine/subschema.h"
#include "base/banned.h"

enum { MAX_DEPTH = 8 };

const json_node *subschema_at(const json_node *root, const json_node *ref)
{
    str path;
    if (!json_str(ref, &path) || path.len == 0 || path.ptr[0] != '#') return NULL;
    const json_node *at = root;
    for (size_t i = 1; i < path.len && at;) {
        size_t end = ++i;
        while (end < path.len && path.ptr[end] != '/') end++;
        at = json_get_str(at, str_sub(path, i, end));
        i = end;
    }
    return at;
}

static bool is_listed(const json_node *list, str name)
{
    str item;
    for (size_t i = 0; i < json_len(list); i++)
        if (json_str(json_at(list, i), &item) && str_eq(item, name)) return true;
    return false;
}

bool subschema_requires(const json_node *s, str name)
{
    return is_listed(json_get(s, "required"), name);
}

bool subschema_allows_type(const json_node *types, str type)
{
    str one;
    return json_str(types, &one) ? str_eq(one, type) : is_listed(types, type);
}

bool subschema_fits_type(const json_node *types, const json_node *value)
{
    switch (json_kind(value)) {
    case JSON_NULL: return subschema_allows_type(types, STR("null"));
    case JSON_TRUE:
    case JSON_FALSE: return subschema_allows_type(types, STR("boolean"));
    case JSON_STRING: return subschema_allows_type(types, STR("string"));
    case JSON_ARRAY: return subschema_allows_type(types, STR("array"));
    case JSON_OBJECT: return subschema_allows_type(types, STR("object"));
    default: break;
    }
    double v;
    const bool whole = json_f64(value, &v) && v == floor(v);
    return subschema_allows_type(types, STR("number")) ||
           (whole && subschema_allows_type(types, STR("integer")));
}

/* ---- no value fits both ---- */

static bool values_apart(const json_node *a, const json_node *b)
{
    str x, y;
    double u, v;
    if (json_str(a, &x) && json_str(b, &y)) return !str_eq(x, y);
    if (json_f64(a, &u) && json_f64(b, &v)) return u != v;
    return json_kind(a) != json_kind(b);
}

static bool types_apart(const json_node *a, const json_node *b)
{
    static const char *const names[] = { "null", "boolean", "string", "number", "array", "object" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (subschema_allows_type(a, str_from(names[i])) &&
            subschema_allows_type(b, str_from(names[i])))
            return false;
    const bool whole_a = subschema_allows_type(a, STR("integer")),
               whole_b = subschema_allows_type(b, STR("integer"));
    const bool any_a = subschema_allows_type(a, STR("number")),
               any_b = subschema_allows_type(b, STR("number"));
    return !((whole_a && (whole_b || any_b)) || (whole_b && any_a));
}

/* The values of const or enum: value i, or NULL when there are no more. */
static const json_node *value_of(const json_node *s, size_t i)
{
    const json_node *one = json_get(s, "const");
    if (one) return i == 0 ? one : NULL;
    return json_at(json_get(s, "enum"), i);
}

typedef struct comparison {
    const json_node *root;
    size_t *work; /* schemas, values and names that may still be looked at */
} comparison;

static bool is_spent(const comparison *c, size_t work)
{
    *c->work = work < *c->work ? *c->work - work : 0;
    return *c->work == 0;
}

/* Every value of a is apart from b: from its values, or from its types. */
static bool all_values_apart(const comparison *c, const json_node *a, const json_node *b)
{
    const json_node *types = json_get(b, "type"), *x, *y;
    if (!value_of(a, 0)) return false;
    for (size_t i = 0; (x = value_of(a, i)); i++) {
        if (is_spent(c, 1 + json_len(json_get(b, "enum")))) return false;
        bool apart = types && !subschema_fits_type(types, x);
        if (!apart && value_of(b, 0)) {
            apart = true;
            for (size_t k = 0; (y = value_of(b, k)); k++) apart = apart && values_apart(x, y);
        }
        if (!apart) return false;
    }
    return true;
}

static bool apart(const comparison *c, const json_node *a, const json_node *b, int depth);

static bool is_object(const json_node *s)
{
    str type;
    return json_str(json_get(s, "type"), &type) && str_eq(type, STR("object"));
}

/* An object of a has a property whose value fits no object of b. */
static bool properties_apart(const comparison *c, const json_node *a, const json_node *b, int depth)
{
    const json_node *others = json_get(b, "properties"), *value;
    const bool closed = json_kind(json_get(b, "additionalProperties")) == JSON_FALSE;
    str key;
    for (void *it = NULL; json_each(json_get(a, "properties"), &it, &key, &value);) {
        if (is_spent(c, 1 + json_len(json_get(a, "required")))) return false;
        if (!subschema_requires(a, key)) continue;
        const json_node *other = json_get_str(others, key);
        if (other ? apart(c, value, other, depth) : closed) return true;
    }
    return false;
}

static const json_node *resolve(const json_node *root, const json_node *s)
{
    for (int i = 0; i < MAX_DEPTH && json_get(s, "$ref"); i++)
        s = subschema_at(root, json_get(s, "$ref"));
    return s;
}

static bool apart(const comparison *c, const json_node *a, const json_node *b, int depth)
{
    if (depth == MAX_DEPTH || is_spent(c, 1)) return false;
    a = resolve(c->root, a);
    b = resolve(c->root, b);
    const json_node *types_a = json_get(a, "type"), *types_b = json_get(b, "type");
    if (types_a && types_b && types_apart(types_a, types_b)) return true;
    if (all_values_apart(c, a, b) || all_values_apart(c, b, a)) return true;
    return is_object(a) && is_object(b) &&
           (properties_apart(c, a, b, depth + 1) || properties_apart(c, b, a, depth + 1));
}

bool subschema_apart(const json_node *root, const json_node *a, const json_node *b, size_t *work)
{
    const comparison c = { root, work };
    return apart(&c, a, b, 0);
}
