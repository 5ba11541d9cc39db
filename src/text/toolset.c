/* toolset.c - declared tools and the conversion of arguments. */
#include "text/toolset.h"

#include <math.h>
#include <strings.h>

#include "base/jsonw.h"

#include "base/banned.h"

enum { MAX_BRACKETS = 512, MAX_SCHEMA_DEPTH = 16 };

static status no_memory(error *e)
{
    return error_set(e, E_NOMEM, "tools: out of memory");
}

static unsigned type_of_word(const char *word)
{
    static const struct {
        const char *word;
        toolset_type type;
    } words[] = {
        { "string", TOOLSET_STRING }, { "integer", TOOLSET_INTEGER },
        { "number", TOOLSET_NUMBER }, { "boolean", TOOLSET_BOOLEAN },
        { "object", TOOLSET_OBJECT }, { "array", TOOLSET_ARRAY },
        { "null", TOOLSET_NULL },
    };
    for (size_t i = 0; word && i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i].word) == 0) return words[i].type;
    return 0;
}

static unsigned type_of_value(const json_node *n)
{
    switch (json_kind(n)) {
    case JSON_STRING: return TOOLSET_STRING;
    case JSON_INT:
    case JSON_BIGINT: return TOOLSET_INTEGER;
    case JSON_REAL: return TOOLSET_NUMBER;
    case JSON_TRUE:
    case JSON_FALSE: return TOOLSET_BOOLEAN;
    case JSON_OBJECT: return TOOLSET_OBJECT;
    case JSON_ARRAY: return TOOLSET_ARRAY;
    default: return TOOLSET_NULL;
    }
}

/* Every type that a schema names, alternatives included. */
static unsigned schema_types(const json_node *schema, int depth)
{
    static const char *const choices[] = { "anyOf", "oneOf", "allOf" };
    const json_node *type = json_get(schema, "type"), *values = json_get(schema, "enum");
    unsigned types = type_of_word(json_text(type));
    for (size_t i = 0; i < json_len(type); i++) types |= type_of_word(json_text(json_at(type, i)));
    for (size_t c = 0; depth < MAX_SCHEMA_DEPTH && c < 3; c++) {
        const json_node *list = json_get(schema, choices[c]);
        for (size_t i = 0; i < json_len(list); i++)
            types |= schema_types(json_at(list, i), depth + 1);
    }
    for (size_t i = 0; types == 0 && i < json_len(values); i++)
        types |= type_of_value(json_at(values, i));
    return types;
}

static status add_function(toolset *t, const json_node *tool, error *e)
{
    const json_node *function = json_get(tool, "function");
    if (!function) function = tool;
    str name, key;
    if (!json_str(json_get(function, "name"), &name)) return OK; /* nothing can call it */
    toolset_function *f = arena_alloc(&t->mem, sizeof *f);
    if (!f) return no_memory(e);
    map_init(&f->parameters);
    name = arena_str(&t->mem, name);
    if (!name.ptr) return no_memory(e);
    uint64_t old;
    if (map_get(&t->functions, name, &old))
        map_free(&((toolset_function *)(uintptr_t)old)->parameters);
    TRY(map_put(&t->functions, name, (uint64_t)(uintptr_t)f, e));
    const json_node *schema, *properties = json_get(json_get(function, "parameters"), "properties");
    for (void *it = NULL; json_each(properties, &it, &key, &schema);) {
        key = arena_str(&t->mem, key);
        if (!key.ptr) return no_memory(e);
        TRY(map_put(&f->parameters, key, schema_types(schema, 0), e));
    }
    return OK;
}

status toolset_init(toolset *t, const json_node *tools, error *e)
{
    arena_init(&t->mem, 4096);
    map_init(&t->functions);
    for (size_t i = 0; i < json_len(tools); i++) TRY(add_function(t, json_at(tools, i), e));
    return OK;
}

void toolset_free(toolset *t)
{
    str name;
    uint64_t f;
    for (size_t at = 0; map_next(&t->functions, &at, &name, &f);)
        map_free(&((toolset_function *)(uintptr_t)f)->parameters);
    map_free(&t->functions);
    arena_free(&t->mem);
}

const toolset_function *toolset_find(const toolset *t, str name)
{
    uint64_t f;
    return map_get(&t->functions, name, &f) ? (const toolset_function *)(uintptr_t)f : NULL;
}

unsigned toolset_types(const toolset_function *f, str parameter)
{
    uint64_t types;
    return map_get(&f->parameters, parameter, &types) ? (unsigned)types : TOOLSET_STRING;
}

static str digits_at(str s, size_t at)
{
    size_t end = at;
    while (end < s.len && s.ptr[end] >= '0' && s.ptr[end] <= '9') end++;
    return str_sub(s, at, end);
}

/* [+-]digits[.digits][e[+-]digits] as JSON spells it; integral ones without the fraction when
 * `whole`. False: no number, or none that JSON readers can hold. */
static bool put_number(buf *out, str s, bool whole)
{
    double value;
    const bool minus = s.len && s.ptr[0] == '-';
    size_t at = s.len && (minus || s.ptr[0] == '+');
    str integer = digits_at(s, at), fraction = { 0 };
    at += integer.len;
    if (at < s.len && s.ptr[at] == '.') {
        fraction = digits_at(s, at + 1);
        at += 1 + fraction.len;
    }
    if (integer.len + fraction.len == 0) return false;
    const size_t exponent = at;
    if (at < s.len && (s.ptr[at] | 0x20) == 'e') {
        at++;
        if (at < s.len && (s.ptr[at] == '+' || s.ptr[at] == '-')) at++;
        const size_t digits = digits_at(s, at).len;
        at += digits ? digits : s.len + 1;
    }
    if (at != s.len) return false;
    const bool plain = exponent == s.len && fraction.len == 0;
    const str unsigned_text = str_sub(s, s.ptr[0] == '+', s.len);
    if (!plain && (!str_to_f64(unsigned_text, &value) || !isfinite(value))) return false;
    while (integer.len > 1 && integer.ptr[0] == '0') integer = str_sub(integer, 1, integer.len);
    size_t zeros = fraction.len;
    while (zeros > 0 && fraction.ptr[zeros - 1] == '0') zeros--;
    if (minus) buf_char(out, '-');
    buf_add(out, integer.len ? integer : STR("0"));
    if (fraction.len && !(whole && zeros == 0 && exponent == s.len)) {
        buf_char(out, '.');
        buf_add(out, fraction);
    }
    buf_add(out, str_sub(s, exponent, s.len));
    return true;
}

bool toolset_close_brackets(buf *out, str json)
{
    char open[MAX_BRACKETS];
    int depth = 0;
    bool inside = false;
    for (size_t i = 0; i < json.len; i++) {
        const char c = json.ptr[i];
        if (inside) {
            if (c == '\\') i++;
            else inside = c != '"';
        } else if (c == '"') {
            inside = true;
        } else if (c == '{' || c == '[') {
            if (depth == MAX_BRACKETS) return false;
            open[depth++] = c == '{' ? '}' : ']';
        } else if ((c == '}' || c == ']') && (depth == 0 || open[--depth] != c)) {
            return false;
        }
    }
    if (inside) return false;
    buf_add(out, json);
    while (depth > 0) buf_char(out, open[--depth]);
    return true;
}

/* Appends `json` if it is an object or array; *done says so. */
static status put_json(buf *out, str json, bool *done, error *e)
{
    error ignored;
    json_doc *doc;
    const status s = json_parse(&doc, json, JSON_KEEP_BIGINT, "argument", &ignored);
    *done = false;
    if (s == E_NOMEM) return no_memory(e);
    if (s) return OK;
    *done = json_kind(json_root(doc)) == JSON_OBJECT || json_kind(json_root(doc)) == JSON_ARRAY;
    if (*done) buf_add(out, json);
    json_free(doc);
    return OK;
}

static status put_structure(buf *out, str json, bool *done, error *e)
{
    *done = false;
    if (json.len == 0 || (json.ptr[0] != '{' && json.ptr[0] != '[')) return OK;
    TRY(put_json(out, json, done, e));
    if (*done) return OK;
    buf closed;
    buf_init(&closed, json.len + MAX_BRACKETS);
    status s = OK;
    if (toolset_close_brackets(&closed, json)) {
        s = buf_status(&closed, "argument", e);
        if (!s) s = put_json(out, buf_view(&closed), done, e);
    }
    buf_free(&closed);
    return s;
}

static bool is_word(str s, const char *word)
{
    return s.len == strlen(word) && strncasecmp(s.ptr, word, s.len) == 0;
}

status toolset_convert(buf *out, str text, unsigned types, error *e)
{
    const str value = str_trim(text);
    bool done = false;
    if (types && is_word(value, "null")) {
        buf_text(out, "null");
        return OK;
    }
    if (types & TOOLSET_BOOLEAN) {
        const bool yes = is_word(value, "true");
        if (yes || is_word(value, "false")) {
            buf_text(out, yes ? "true" : "false");
            return OK;
        }
    }
    if (types & (TOOLSET_INTEGER | TOOLSET_NUMBER)) {
        if (put_number(out, value, types & TOOLSET_INTEGER)) return OK;
    }
    if (types == 0 || types & (TOOLSET_OBJECT | TOOLSET_ARRAY))
        TRY(put_structure(out, value, &done, e));
    if (done) return OK;
    buf_char(out, '"');
    jsonw_escape(out, text);
    buf_char(out, '"');
    return OK;
}
