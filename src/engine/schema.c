/* schema.c - a JSON Schema becomes a grammar. */
#include "base/jsonw.h"
#include "base/mem.h"
#include "engine/schema.h"
#include "engine/subschema.h"
#include "base/banned.h"

enum {
    MAX_NESTING = 64,
    MAX_REFS = 256,
    MAX_REPEAT = 4096,
    MAX_PATH = 256,
    COMPARISONS = 1 << 18, /* of parts of branches of oneOf: less than a second */
    INDENT = 24,
    DIGITS = 16
};

typedef struct reference {
    const json_node *target;
    int rule;
} reference;

typedef struct builder {
    grammar *g;
    const json_node *root;
    reference refs[MAX_REFS];
    int n_refs;
    int space, character, value; /* rules; -1: not made yet */
    char path[MAX_PATH];
    size_t path_len;
    int nesting;
    size_t comparisons; /* left */
} builder;

static status build(builder *b, const json_node *s, int next, int *out, error *e);

/* ---- places in messages ---- */

static size_t enter(builder *b, str name)
{
    const size_t before = b->path_len;
    if (b->path_len + name.len + 2 < MAX_PATH) {
        b->path[b->path_len++] = '.';
        memcpy(b->path + b->path_len, name.ptr, name.len);
        b->path_len += name.len;
        b->path[b->path_len] = 0;
    }
    return before;
}

static void leave(builder *b, size_t before)
{
    b->path_len = before;
    b->path[before] = 0;
}

static status refuse(const builder *b, str keyword, const char *why, error *e)
{
    return error_set(e, E_UNSUPPORTED, "schema%s: %.*s: %s", b->path, STR_ARG(keyword), why);
}

/* ---- pieces of JSON ---- */

static int range(grammar *g, int from, int to, int next)
{
    grammar_set s = { { 0 } };
    grammar_set_add(&s, from, to);
    return grammar_bytes(g, &s, next);
}

static int space(builder *b, int next)
{
    grammar *g = b->g;
    if (b->space < 0) {
        b->space = grammar_rule(g);
        const int end = grammar_return(g);
        grammar_set blank = { { 0 } };
        grammar_set_add(&blank, ' ', ' ');
        grammar_set_add(&blank, '\t', '\t');
        int indent = end;
        for (int i = 0; i < INDENT; i++)
            indent = grammar_either(g, grammar_bytes(g, &blank, indent), end);
        const int line = grammar_byte(g, '\n', indent), one = grammar_byte(g, ' ', end);
        grammar_define(g, b->space, grammar_either(g, end, grammar_either(g, one, line)));
    }
    return grammar_call(g, b->space, next);
}

/* A character of several bytes. */
static int wide(grammar *g, int next)
{
    static const grammar_range all = { 0x80, 0x10ffff };
    return grammar_chars(g, &all, 1, next);
}

static int set_of(grammar *g, const char *bytes, int next)
{
    grammar_set s = { { 0 } };
    for (; *bytes; bytes++) grammar_set_add(&s, (uint8_t)*bytes, (uint8_t)*bytes);
    return grammar_bytes(g, &s, next);
}

static int hex_digits(grammar *g, int n, int next)
{
    for (int i = 0; i < n; i++) next = set_of(g, "0123456789abcdefABCDEF", next);
    return next;
}

/* What follows \u: a code point of its own, or both halves of a pair. */
static int code(grammar *g, int next)
{
    const int low = set_of(g, "dD", set_of(g, "cdefCDEF", hex_digits(g, 2, next)));
    const int pair = set_of(g, "89abAB", hex_digits(g, 2, grammar_literal(g, STR("\\u"), low)));
    const int single = set_of(g, "01234567", hex_digits(g, 2, next));
    const int in_d = set_of(g, "dD", grammar_either(g, single, pair));
    return grammar_either(g, set_of(g, "0123456789abcefABCEF", hex_digits(g, 3, next)), in_d);
}

/* One character inside a string: valid UTF-8 but quote, backslash and controls, or an escape. */
static int character(builder *b, int next)
{
    grammar *g = b->g;
    if (b->character < 0) {
        b->character = grammar_rule(g);
        const int end = grammar_return(g);
        grammar_set plain = { { 0 } };
        grammar_set_add(&plain, 0x20, 0x21);
        grammar_set_add(&plain, 0x23, 0x5b);
        grammar_set_add(&plain, 0x5d, 0x7e);
        const int escaped =
            grammar_either(g, set_of(g, "\"\\/bfnrt", end), grammar_byte(g, 'u', code(g, end)));
        const int ascii =
            grammar_either(g, grammar_bytes(g, &plain, end), grammar_byte(g, '\\', escaped));
        grammar_define(g, b->character, grammar_either(g, ascii, wide(g, end)));
    }
    return grammar_call(g, b->character, next);
}

/* A string of least..most characters; most -1: any number. */
static int string_of(builder *b, int least, int most, int next)
{
    grammar *g = b->g;
    const int close = grammar_byte(g, '"', next);
    int at = close;
    if (most < 0) {
        at = grammar_loop(g);
        grammar_loop_set(g, at, character(b, at), close);
    }
    for (int i = most; i > least; i--) at = grammar_either(g, character(b, at), close);
    for (int i = 0; i < least; i++) at = character(b, at);
    return grammar_byte(g, '"', at);
}

static int digits(grammar *g, int most, int next)
{
    int at = next;
    for (int i = 0; i < most; i++) at = grammar_either(g, range(g, '0', '9', at), next);
    return at;
}

static int number(builder *b, bool integer, int next)
{
    grammar *g = b->g;
    int tail = next;
    if (!integer) {
        const int power = range(g, '0', '9', digits(g, 1, next));
        const int exponent = grammar_either(
            g, set_of(g, "eE", grammar_either(g, set_of(g, "+-", power), power)), next);
        const int part = grammar_byte(g, '.', range(g, '0', '9', digits(g, DIGITS - 1, exponent)));
        tail = grammar_either(g, part, exponent);
    }
    const int whole = grammar_either(g, grammar_byte(g, '0', tail),
                                     range(g, '1', '9', digits(g, DIGITS - 1, tail)));
    return grammar_either(g, grammar_byte(g, '-', whole), whole);
}

/* open (item (, item)*)? close, with least..most items (-1: any number), each a call of `item`. */
static int list_of(builder *b, char open, char close, int item, int least, int most, int next)
{
    grammar *g = b->g;
    const int end = space(b, grammar_byte(g, close, next));
    int at = end;
    if (most < 0) {
        at = grammar_loop(g);
        grammar_loop_set(g, at, grammar_byte(g, ',', space(b, grammar_call(g, item, at))), end);
        most = least > 0 ? least : 1;
    }
    if (most == 0) return grammar_byte(g, open, end);
    for (int i = most; i > 1; i--) {
        const int more = grammar_byte(g, ',', space(b, grammar_call(g, item, at)));
        at = i > least ? grammar_either(g, more, end) : more;
    }
    const int first = space(b, grammar_call(g, item, at));
    return grammar_byte(g, open, least > 0 ? first : grammar_either(g, first, end));
}

/* "key" : value, as a rule. */
static int member_rule(builder *b, int value_rule)
{
    grammar *g = b->g;
    const int rule = grammar_rule(g);
    const int value = space(b, grammar_call(g, value_rule, grammar_return(g)));
    grammar_define(g, rule, string_of(b, 0, -1, grammar_byte(g, ':', value)));
    return rule;
}

/* Any JSON value. */
static int any_rule(builder *b)
{
    grammar *g = b->g;
    if (b->value >= 0) return b->value;
    b->value = grammar_rule(g);
    const int end = grammar_return(g);
    const int member = member_rule(b, b->value);
    const int branches[] = { list_of(b, '{', '}', member, 0, -1, end),
                             list_of(b, '[', ']', b->value, 0, -1, end),
                             string_of(b, 0, -1, end),
                             number(b, false, end),
                             grammar_literal(g, STR("true"), end),
                             grammar_literal(g, STR("false"), end),
                             grammar_literal(g, STR("null"), end) };
    int all = branches[0];
    for (size_t i = 1; i < sizeof branches / sizeof *branches; i++)
        all = grammar_either(g, all, branches[i]);
    grammar_define(g, b->value, all);
    return b->value;
}

/* ---- keywords ---- */

static status check_keywords(const builder *b, const json_node *s, error *e)
{
    static const char *const known[] = {
        "type",        "properties", "required",    "additionalProperties",
        "items",       "minItems",   "maxItems",    "minLength",
        "maxLength",   "enum",       "const",       "anyOf",
        "oneOf",       "allOf",      "$ref",        "$defs",
        "definitions", "title",      "description", "default",
        "examples",    "format",     "$schema",     "$id",
        "$comment",    "deprecated", "readOnly",    "writeOnly",
        "strict"
    };
    str key;
    const json_node *value;
    for (void *it = NULL; json_each(s, &it, &key, &value);) {
        bool found = false;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            found = found || str_eq(key, str_from(known[i]));
        if (!found) return refuse(b, key, "this keyword is not supported", e);
    }
    return OK;
}

static status limit_of(const builder *b, const json_node *s, const char *name, int fallback,
                       int *out, error *e)
{
    const json_node *n = json_get(s, name);
    double v = fallback;
    *out = fallback;
    if (!n) return OK;
    if (!json_f64(n, &v) || !(v >= 0 && v <= MAX_REPEAT) || v != (int)v)
        return refuse(b, str_from(name), "want an integer from 0 to 4096", e);
    *out = (int)v;
    return OK;
}

static status build_literal(builder *b, const json_node *value, int next, int *out, error *e)
{
    buf text;
    buf_init(&text, 1 << 20);
    jsonw w;
    jsonw_init(&w, &text);
    jsonw_node(&w, value);
    const status s = buf_status(&text, "schema", e);
    if (s == OK) *out = grammar_literal(b->g, buf_view(&text), next);
    buf_free(&text);
    return s;
}

static status build_any_of(builder *b, const json_node *list, str keyword, bool literal, int next,
                           int *out, error *e)
{
    if (json_kind(list) != JSON_ARRAY || json_len(list) == 0)
        return refuse(b, keyword, "want a list that is not empty", e);
    const size_t before = enter(b, keyword);
    for (size_t i = 0; i < json_len(list); i++) {
        int one;
        if (literal) TRY(build_literal(b, json_at(list, i), next, &one, e));
        else TRY(build(b, json_at(list, i), next, &one, e));
        *out = i ? grammar_either(b->g, *out, one) : one;
    }
    leave(b, before);
    return OK;
}

/* The rule of a schema, made once; recursion ends here. */
static status rule_of(builder *b, const json_node *s, int *rule, error *e)
{
    for (int i = 0; i < b->n_refs; i++)
        if (b->refs[i].target == s) {
            *rule = b->refs[i].rule;
            return OK;
        }
    if (b->n_refs == MAX_REFS) return refuse(b, STR("schema"), "more than 256 subschemas", e);
    *rule = grammar_rule(b->g);
    b->refs[b->n_refs++] = (reference){ s, *rule };
    int start;
    TRY(build(b, s, grammar_return(b->g), &start, e));
    grammar_define(b->g, *rule, start);
    return OK;
}

static status build_ref(builder *b, const json_node *ref, int next, int *out, error *e)
{
    str path;
    if (!json_str(ref, &path) || path.len == 0 || path.ptr[0] != '#')
        return refuse(b, STR("$ref"), "want a place in this document (#/...)", e);
    const json_node *at = subschema_at(b->root, ref);
    if (!at) return refuse(b, STR("$ref"), "it leads nowhere", e);
    int rule;
    TRY(rule_of(b, at, &rule, e));
    *out = grammar_call(b->g, rule, next);
    return OK;
}

/* "name": value */
static status build_property(builder *b, str name, const json_node *s, int *rule, error *e)
{
    grammar *g = b->g;
    int value;
    const size_t before = enter(b, name);
    TRY(rule_of(b, s, &value, e));
    leave(b, before);
    buf key;
    buf_init(&key, 1 << 20);
    buf_char(&key, '"');
    jsonw_escape(&key, name);
    buf_text(&key, "\":");
    const status st = buf_status(&key, "schema", e);
    if (st == OK) {
        *rule = grammar_rule(g);
        const int after = space(b, grammar_call(g, value, grammar_return(g)));
        grammar_define(g, *rule, grammar_literal(g, buf_view(&key), after));
    }
    buf_free(&key);
    return st;
}

/* Declared properties in their order, those not required may be left out. `first`: nothing stands
 * before; `rest`: something does, so a comma comes first. Built from the last property to the
 * first. */
static status build_properties(builder *b, const json_node *s, const json_node *list, int next,
                               int *out, error *e)
{
    grammar *g = b->g;
    const size_t n = json_len(list);
    int *rules = mem_array(n, sizeof *rules);
    bool *needed = mem_array(n, sizeof *needed);
    status st = rules && needed ? OK : error_set(e, E_NOMEM, "schema: no memory");
    str key;
    const json_node *value;
    size_t i = 0;
    for (void *it = NULL; st == OK && json_each(list, &it, &key, &value); i++) {
        needed[i] = subschema_requires(s, key);
        st = build_property(b, key, value, &rules[i], e);
    }
    int first = space(b, grammar_byte(g, '}', next)), rest = first;
    while (st == OK && i-- > 0) {
        const int here = space(b, grammar_call(g, rules[i], rest));
        const int comma = grammar_byte(g, ',', here);
        first = needed[i] ? here : grammar_either(g, here, first);
        rest = needed[i] ? comma : grammar_either(g, comma, rest);
    }
    *out = grammar_byte(g, '{', first);
    mem_free(rules);
    mem_free(needed);
    return st;
}

static status check_required(const builder *b, const json_node *s, error *e)
{
    const json_node *list = json_get(s, "required"), *properties = json_get(s, "properties");
    for (size_t i = 0; i < json_len(list); i++) {
        str name;
        if (!json_str(json_at(list, i), &name) || !json_get_str(properties, name))
            return refuse(b, STR("required"), "it names a property that is not declared", e);
    }
    return OK;
}

static status build_object(builder *b, const json_node *s, int next, int *out, error *e)
{
    const json_node *properties = json_get(s, "properties");
    const json_node *others = json_get(s, "additionalProperties");
    TRY(check_required(b, s, e));
    if (json_len(properties) > 0) return build_properties(b, s, properties, next, out, e);
    int value = -1;
    if (json_kind(others) == JSON_FALSE) {
        *out = list_of(b, '{', '}', 0, 0, 0, next);
        return OK;
    }
    if (json_kind(others) == JSON_OBJECT) TRY(rule_of(b, others, &value, e));
    else value = any_rule(b);
    *out = list_of(b, '{', '}', member_rule(b, value), 0, -1, next);
    return OK;
}

static status build_array(builder *b, const json_node *s, int next, int *out, error *e)
{
    const json_node *items = json_get(s, "items");
    int least, most, item;
    TRY(limit_of(b, s, "minItems", 0, &least, e));
    TRY(limit_of(b, s, "maxItems", -1, &most, e));
    if (most >= 0 && most < least) return refuse(b, STR("maxItems"), "it is below minItems", e);
    if (items) {
        const size_t before = enter(b, STR("items"));
        TRY(rule_of(b, items, &item, e));
        leave(b, before);
    } else {
        item = any_rule(b);
    }
    *out = list_of(b, '[', ']', item, least, most, next);
    return OK;
}

static status build_type(builder *b, const json_node *s, str type, int next, int *out, error *e)
{
    grammar *g = b->g;
    if (str_eq(type, STR("object"))) return build_object(b, s, next, out, e);
    if (str_eq(type, STR("array"))) return build_array(b, s, next, out, e);
    if (str_eq(type, STR("string"))) {
        int least, most;
        TRY(limit_of(b, s, "minLength", 0, &least, e));
        TRY(limit_of(b, s, "maxLength", -1, &most, e));
        if (most >= 0 && most < least)
            return refuse(b, STR("maxLength"), "it is below minLength", e);
        *out = string_of(b, least, most, next);
    } else if (str_eq(type, STR("integer")) || str_eq(type, STR("number"))) {
        *out = number(b, type.ptr[0] == 'i', next);
    } else if (str_eq(type, STR("boolean"))) {
        *out = grammar_either(g, grammar_literal(g, STR("true"), next),
                              grammar_literal(g, STR("false"), next));
    } else if (str_eq(type, STR("null"))) {
        *out = grammar_literal(g, STR("null"), next);
    } else {
        return refuse(b, STR("type"), "unknown type", e);
    }
    return OK;
}

static status build_types(builder *b, const json_node *s, const json_node *types, int next,
                          int *out, error *e)
{
    str type;
    if (json_str(types, &type)) return build_type(b, s, type, next, out, e);
    if (json_kind(types) != JSON_ARRAY || json_len(types) == 0)
        return refuse(b, STR("type"), "want a name or a list of names", e);
    for (size_t i = 0; i < json_len(types); i++) {
        int one;
        if (!json_str(json_at(types, i), &type)) return refuse(b, STR("type"), "want names", e);
        TRY(build_type(b, s, type, next, &one, e));
        *out = i ? grammar_either(b->g, *out, one) : one;
    }
    return OK;
}

/* A combining keyword stands alone: what stands beside it would have to be obeyed too. */
static status check_alone(const builder *b, const json_node *s, const char *keyword, error *e)
{
    static const char *const others[] = { "properties", "required",  "additionalProperties",
                                          "items",      "minItems",  "maxItems",
                                          "minLength",  "maxLength", "enum",
                                          "const",      "anyOf",     "oneOf",
                                          "allOf",      "$ref" };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(others[i], keyword) != 0 && json_get(s, others[i]))
            return refuse(b, str_from(others[i]), "it is not supported beside a combining keyword",
                          e);
    return OK;
}

/* oneOf wants exactly one; its branches are joined, so no value may fit two. */
static status check_apart(builder *b, const json_node *list, error *e)
{
    for (size_t i = 0; i < json_len(list); i++)
        for (size_t k = 0; k < i; k++)
            if (!subschema_apart(b->root, json_at(list, i), json_at(list, k), &b->comparisons))
                return refuse(b, STR("oneOf"), "two of its schemas may fit the same value (anyOf?)",
                              e);
    return OK;
}

/* What stands beside `type` must not leave it: values have it, or all alternatives state it
 * themselves. */
static status check_type(const builder *b, const json_node *s, const char *keyword, error *e)
{
    const json_node *types = json_get(s, "type"), *list = json_get(s, keyword);
    const bool values = strcmp(keyword, "const") == 0 || strcmp(keyword, "enum") == 0;
    if (!types) return OK;
    if (strcmp(keyword, "const") == 0 && subschema_fits_type(types, list)) return OK;
    bool fits = json_kind(list) == JSON_ARRAY;
    for (size_t i = 0; fits && i < json_len(list); i++) {
        const json_node *one = json_at(list, i);
        str own;
        fits = values ? subschema_fits_type(types, one)
                      : json_str(json_get(one, "type"), &own) && subschema_allows_type(types, own);
    }
    return fits ? OK : refuse(b, STR("type"), "not all that stands beside it states this type", e);
}

static const char *combining_keyword(const json_node *s)
{
    static const char *const names[] = { "$ref", "const", "enum", "anyOf", "oneOf", "allOf" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (json_get(s, names[i])) return names[i];
    return NULL;
}

/* Without a type its keywords say which is meant; without those it is anything. */
static status build_untyped(builder *b, const json_node *s, int next, int *out, error *e)
{
    static const struct {
        const char *keywords[3];
        str type;
    } kinds[] = { { { "properties", "required", "additionalProperties" }, STR("object") },
                  { { "items", "minItems", "maxItems" }, STR("array") },
                  { { "minLength", "maxLength", "minLength" }, STR("string") } };
    int found = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        bool meant = false;
        for (int k = 0; k < 3; k++) meant = meant || json_get(s, kinds[i].keywords[k]);
        if (!meant) continue;
        int one;
        TRY(build_type(b, s, kinds[i].type, next, &one, e));
        *out = found++ ? grammar_either(b->g, *out, one) : one;
    }
    if (!found) *out = grammar_call(b->g, any_rule(b), next);
    return OK;
}

static status build_one(builder *b, const json_node *s, int next, int *out, error *e)
{
    const json_node *n;
    TRY(check_keywords(b, s, e));
    const char *combining = combining_keyword(s);
    if (combining) {
        TRY(check_alone(b, s, combining, e));
        TRY(check_type(b, s, combining, e));
    }
    if ((n = json_get(s, "$ref"))) return build_ref(b, n, next, out, e);
    if ((n = json_get(s, "const"))) return build_literal(b, n, next, out, e);
    if ((n = json_get(s, "enum"))) return build_any_of(b, n, STR("enum"), true, next, out, e);
    if ((n = json_get(s, "anyOf"))) return build_any_of(b, n, STR("anyOf"), false, next, out, e);
    if ((n = json_get(s, "oneOf"))) {
        TRY(check_apart(b, n, e));
        return build_any_of(b, n, STR("oneOf"), false, next, out, e);
    }
    if ((n = json_get(s, "allOf"))) {
        if (json_len(n) != 1) return refuse(b, STR("allOf"), "want exactly one schema in it", e);
        return build(b, json_at(n, 0), next, out, e);
    }
    if ((n = json_get(s, "type"))) return build_types(b, s, n, next, out, e);
    return build_untyped(b, s, next, out, e);
}

static status build(builder *b, const json_node *s, int next, int *out, error *e)
{
    *out = next;
    if (json_kind(s) == JSON_TRUE) {
        *out = grammar_call(b->g, any_rule(b), next);
        return OK;
    }
    if (json_kind(s) != JSON_OBJECT)
        return error_set(e, E_ARG, "schema%s: found %s, want an object", b->path,
                         json_kind_name(s));
    if (++b->nesting > MAX_NESTING) return refuse(b, STR("schema"), "nested deeper than 64", e);
    const status st = build_one(b, s, next, out, e);
    b->nesting--;
    return st;
}

/* ---- calls ---- */

/* Text that does not hold `end`, then `end` and what follows. The states of the search for `end`:
 * its first byte occurs nowhere else in it, so after a mismatch the search begins anew. */
static int text_until(builder *b, str end, int next)
{
    grammar *g = b->g;
    int at[32];
    CHECK(end.len < sizeof at / sizeof *at);
    for (size_t i = 0; i < end.len; i++) at[i] = grammar_loop(g);
    const int beyond = wide(g, at[0]);
    const int again = grammar_byte(g, end.ptr[0], at[1]);
    for (size_t i = 0; i < end.len; i++) {
        grammar_set other = { { 0 } };
        grammar_set_add(&other, '\t', '\n');
        grammar_set_add(&other, 0x20, 0x7e);
        const uint8_t begins = (uint8_t)end.ptr[0], goes_on = (uint8_t)end.ptr[i];
        other.bits[begins >> 5] &= ~(1u << (begins & 31));
        other.bits[goes_on >> 5] &= ~(1u << (goes_on & 31));
        int rest = grammar_either(g, grammar_bytes(g, &other, at[0]), beyond);
        if (i > 0) rest = grammar_either(g, again, rest);
        const int on = grammar_byte(g, end.ptr[i], i + 1 < end.len ? at[i + 1] : next);
        grammar_loop_set(g, at[i], on, rest);
    }
    return at[0];
}

#define PARAMETER_END "\n</parameter>"

static bool is_text(const json_node *s)
{
    str type;
    return json_str(json_get(s, "type"), &type) && str_eq(type, STR("string"));
}

/* The value of an argument in tagged form, and its end: strings stand without quotes. */
static status build_argument(builder *b, const json_node *s, int next, int *out, error *e)
{
    next = grammar_byte(b->g, '\n', next);
    if (!is_text(s)) {
        const int end = grammar_literal(b->g, STR(PARAMETER_END), next);
        return build(b, s, end, out, e);
    }
    TRY(check_keywords(b, s, e));
    if (json_get(s, "minLength") || json_get(s, "maxLength"))
        return refuse(b, STR("maxLength"), "the length of a text argument cannot be enforced", e);
    const char *combining = combining_keyword(s);
    if (!combining) {
        *out = text_until(b, STR(PARAMETER_END), next);
        return OK;
    }
    TRY(check_alone(b, s, combining, e));
    TRY(check_type(b, s, combining, e));
    const int end = grammar_literal(b->g, STR(PARAMETER_END), next);
    str word;
    if (json_str(json_get(s, "const"), &word)) {
        *out = grammar_literal(b->g, word, end);
        return OK;
    }
    const json_node *list = json_get(s, "enum");
    if (!list) return refuse(b, str_from(combining), "it is not supported in a text argument", e);
    for (size_t i = 0; i < json_len(list); i++) {
        (void)json_str(json_at(list, i), &word); /* it has the type */
        const int one = grammar_literal(b->g, word, end);
        *out = i ? grammar_either(b->g, *out, one) : one;
    }
    return json_len(list) ? OK : refuse(b, STR("enum"), "it is empty", e);
}

/* Arguments in their order; those not required may be left out. */
static status build_arguments(builder *b, const json_node *s, int next, int *out, error *e)
{
    const json_node *list = json_get(s, "properties"), *types = json_get(s, "type");
    const char *combining = combining_keyword(s);
    TRY(check_keywords(b, s, e));
    if (combining) return refuse(b, str_from(combining), "parameters want properties instead", e);
    if (types && !subschema_allows_type(types, STR("object")))
        return refuse(b, STR("type"), "parameters want an object", e);
    TRY(check_required(b, s, e));
    const json_node *values[MAX_REFS];
    str keys[MAX_REFS];
    size_t n = 0;
    if (json_len(list) > MAX_REFS) return refuse(b, STR("properties"), "more than 256", e);
    for (void *it = NULL; json_each(list, &it, &keys[n], &values[n]);) n++;
    *out = next;
    while (n-- > 0) {
        int here;
        const size_t before = enter(b, keys[n]);
        TRY(build_argument(b, values[n], *out, &here, e));
        leave(b, before);
        here = grammar_literal(b->g, STR(">\n"), here);
        here = grammar_literal(b->g, STR("<parameter="), grammar_literal(b->g, keys[n], here));
        *out = subschema_requires(s, keys[n]) ? here : grammar_either(b->g, here, *out);
    }
    return OK;
}

static status build_tagged(builder *b, const schema_call *call, int next, int *out, error *e)
{
    grammar *g = b->g;
    int at = grammar_literal(g, STR("</function>"), next);
    if (call->parameters) TRY(build_arguments(b, call->parameters, at, &at, e));
    at = grammar_literal(g, STR("<function="),
                         grammar_literal(g, call->name, grammar_literal(g, STR(">\n"), at)));
    *out = at;
    return OK;
}

static status build_object_call(builder *b, const schema_call *call, int next, int *out, error *e)
{
    grammar *g = b->g;
    buf name;
    buf_init(&name, 1 << 16);
    buf_text(&name, "{\"name\": \"");
    jsonw_escape(&name, call->name);
    buf_text(&name, "\", \"arguments\": ");
    int at = grammar_byte(g, '}', next);
    status s = buf_status(&name, "tool", e);
    if (s == OK && call->parameters) s = build(b, call->parameters, at, &at, e);
    else at = grammar_literal(g, STR("{}"), at);
    if (s == OK) *out = grammar_literal(g, buf_view(&name), at);
    buf_free(&name);
    return s;
}

static status build_calls(builder *b, const schema_call *calls, int n, bool tagged, int *out,
                          error *e)
{
    const int end = grammar_literal(b->g, STR("\n</tool_call>"), grammar_return(b->g));
    for (int i = 0; i < n; i++) {
        int one;
        b->root = calls[i].parameters; /* references lead into it */
        const size_t before = enter(b, calls[i].name);
        TRY((tagged ? build_tagged : build_object_call)(b, &calls[i], end, &one, e));
        leave(b, before);
        *out = i ? grammar_either(b->g, *out, one) : one;
    }
    *out = grammar_literal(b->g, STR("<tool_call>\n"), *out);
    return OK;
}

/* ---- entry ---- */

static status begin(builder **out, error *e)
{
    builder *b = mem_zalloc(sizeof *b);
    if (!b) return error_set(e, E_NOMEM, "schema: no memory");
    b->space = b->character = b->value = -1;
    b->comparisons = COMPARISONS;
    const status s = grammar_new(&b->g, e);
    if (s) mem_free(b);
    *out = b;
    return s;
}

/* Gives the grammar away when all went well, and frees the builder. */
static status finish(builder *b, status s, int start, bool blank_line, grammar **out, error *e)
{
    if (s == OK && blank_line)
        start = grammar_either(b->g, grammar_literal(b->g, STR("\n\n"), start), start);
    if (s == OK) s = grammar_finish(b->g, start, e);
    if (s == OK) *out = b->g;
    else grammar_free(b->g);
    mem_free(b);
    return s;
}

status schema_compile(grammar **out, const json_node *schema, bool blank_line, error *e)
{
    builder *b = NULL;
    TRY(begin(&b, e));
    b->root = schema;
    int start = 0;
    const status s = build(b, schema, grammar_return(b->g), &start, e);
    return finish(b, s, start, blank_line, out, e);
}

status schema_compile_calls(grammar **out, const schema_call *calls, int n, bool tagged,
                            bool blank_line, error *e)
{
    builder *b = NULL;
    TRY(begin(&b, e));
    int start = 0;
    const status s = build_calls(b, calls, n, tagged, &start, e);
    return finish(b, s, start, blank_line, out, e);
}
