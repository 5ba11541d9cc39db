/* json.c - the only file that sees jansson.
 *
 * jansson refuses whole numbers beyond 64 bits. With JSON_KEEP_BIGINT a small lexer first replaces
 * every whole number of the text by its index in a table; after parsing, the table gives each
 * integer node its value back, or puts a node of our own in its place. As all of them are replaced,
 * no number of the text can be taken for an index. */
#include "base/json.h"
#include <pthread.h>
#include <stdio.h>

/* Both sides have a json_type and its constants; jansson's get other names. */
#define json_type jansson_type
#define JSON_OBJECT JANSSON_OBJECT
#define JSON_ARRAY JANSSON_ARRAY
#define JSON_STRING JANSSON_STRING
#define JSON_INTEGER JANSSON_INTEGER
#define JSON_REAL JANSSON_REAL
#define JSON_TRUE JANSSON_TRUE
#define JSON_FALSE JANSSON_FALSE
#define JSON_NULL JANSSON_NULL
#include <jansson.h>
#undef json_type
#undef JSON_OBJECT
#undef JSON_ARRAY
#undef JSON_STRING
#undef JSON_INTEGER
#undef JSON_REAL
#undef JSON_TRUE
#undef JSON_FALSE
#undef JSON_NULL
#undef json_is_true

#include "base/arena.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/banned.h"

/* A node that jansson carries but did not make: of a type beyond its own, which its destructor
 * passes over, and with the reference count that means "never freed". It lives in the document's
 * arena. */
enum { JANSSON_BIGINT = JANSSON_NULL + 1 };
typedef struct bigint {
    json_t head;
    str digits;
} bigint;

struct json_doc {
    json_t *root;
    arena bigints;
};

/* A whole number of the text and where its index begins in the rewritten text. */
typedef struct whole {
    size_t from, len, at;
} whole;

typedef struct rewrite {
    buf text;
    buf table; /* whole[] */
    bool any_big;
} rewrite;

static pthread_once_t json_once = PTHREAD_ONCE_INIT;

/* Set when jansson was refused memory on this thread: it reports some of these cases as errors of
 * syntax. */
static _Thread_local bool json_starved;

static void *alloc_for_jansson(size_t bytes)
{
    void *p = mem_alloc(bytes);
    if (!p) json_starved = true;
    return p;
}

static void use_counted_memory(void)
{
    json_set_alloc_funcs(alloc_for_jansson, mem_free);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* -?(0|[1-9][0-9]*) */
static bool is_whole(str s)
{
    const size_t start = s.ptr[0] == '-';
    if (s.len == start || (s.ptr[start] == '0' && s.len > start + 1)) return false;
    for (size_t i = start; i < s.len; i++)
        if (!is_digit(s.ptr[i])) return false;
    return true;
}

/* The end of the string literal that begins at `at`. */
static size_t skip_string(str s, size_t at)
{
    for (at++; at < s.len; at++)
        if (s.ptr[at] == '\\') at++;
        else if (s.ptr[at] == '"') return at + 1;
    return s.len;
}

static size_t skip_number(str s, size_t at)
{
    while (at < s.len && (is_digit(s.ptr[at]) || memchr("+-.eE", s.ptr[at], 5))) at++;
    return at;
}

/* Valid text stays valid, invalid text invalid: only whole numbers change, into whole numbers. */
static void rewrite_wholes(rewrite *r, str s)
{
    size_t copied = 0;
    for (size_t at = 0; at < s.len;) {
        if (s.ptr[at] == '"') {
            at = skip_string(s, at);
            continue;
        }
        if (s.ptr[at] != '-' && !is_digit(s.ptr[at])) {
            at++;
            continue;
        }
        const size_t end = skip_number(s, at);
        const str token = str_sub(s, at, end);
        if (is_whole(token)) {
            int64_t value;
            r->any_big = r->any_big || !str_to_i64(token, &value);
            buf_add(&r->text, str_sub(s, copied, at));
            const whole w = { at, end - at, r->text.len };
            buf_printf(&r->text, "%zu", r->table.len / sizeof w);
            buf_put(&r->table, &w, sizeof w);
            copied = end;
        }
        at = end;
    }
    buf_add(&r->text, str_sub(s, copied, s.len));
}

/* The offset in the original text of an offset in the rewritten one. */
static size_t original_offset(const rewrite *r, size_t at)
{
    const whole *w = (const whole *)(const void *)r->table.ptr;
    size_t lo = 0, hi = r->table.len / sizeof *w;
    while (lo < hi) { /* the last whole that begins at or before `at` */
        const size_t mid = lo + (hi - lo) / 2;
        if (w[mid].at <= at) lo = mid + 1;
        else hi = mid;
    }
    if (lo == 0) return at;
    char index[24];
    const size_t index_len = (size_t)snprintf(index, sizeof index, "%zu", lo - 1);
    const size_t behind = at - w[lo - 1].at;
    return behind < index_len ? w[lo - 1].from
                              : w[lo - 1].from + w[lo - 1].len + behind - index_len;
}

static status parse_error(const json_error_t *je, const rewrite *r, str text, const char *name,
                          error *e)
{
    const bool deep = json_error_code(je) == json_error_stack_overflow;
    if (json_starved) return error_set(e, E_NOMEM, "%s: out of memory", name);
    int line = je->line, column = je->column;
    if (r && je->position >= 0) {
        const size_t offset = original_offset(r, (size_t)je->position);
        line = 1, column = 0;
        for (size_t i = 0; i < offset && i < text.len; i++) {
            const bool feed = text.ptr[i] == '\n';
            line += feed;
            column = feed ? 0 : column + ((text.ptr[i] & 0xc0) != 0x80);
        }
    }
    return error_set(e, deep ? E_LIMIT : E_FORMAT, "%s: line %d, column %d: %s", name, line, column,
                     je->text);
}

typedef struct restore {
    json_doc *doc;
    const whole *table;
    str text;
} restore;

/* Gives an integer node its value back, or returns the node that takes its place; NULL when memory
 * is short. */
static json_t *restore_whole(restore *r, json_t *n)
{
    const whole w = r->table[json_integer_value(n)];
    const str digits = str_sub(r->text, w.from, w.from + w.len);
    int64_t value;
    if (str_to_i64(digits, &value)) {
        (void)json_integer_set(n, value);
        return n;
    }
    bigint *big = arena_alloc(&r->doc->bigints, sizeof *big);
    if (!big) return NULL;
    big->digits = arena_str(&r->doc->bigints, digits);
    if (!big->digits.ptr) return NULL;
    big->head.type = (jansson_type)JANSSON_BIGINT;
    big->head.refcount = (size_t)-1;
    return &big->head;
}

/* Recursion is as deep as the document: jansson stops at 2,048. */
static bool restore_wholes(restore *r, json_t *n)
{
    if (json_typeof(n) == JANSSON_ARRAY) {
        for (size_t i = 0; i < json_array_size(n); i++) {
            json_t *item = json_array_get(n, i);
            if (json_typeof(item) != JANSSON_INTEGER) {
                if (!restore_wholes(r, item)) return false;
                continue;
            }
            json_t *now = restore_whole(r, item);
            if (!now || (now != item && json_array_set_new(n, i, now) != 0)) return false;
        }
    } else if (json_typeof(n) == JANSSON_OBJECT) {
        for (void *it = json_object_iter(n); it; it = json_object_iter_next(n, it)) {
            json_t *item = json_object_iter_value(it);
            if (json_typeof(item) != JANSSON_INTEGER) {
                if (!restore_wholes(r, item)) return false;
                continue;
            }
            json_t *now = restore_whole(r, item);
            if (!now || (now != item && json_object_iter_set_new(n, it, now) != 0)) return false;
        }
    }
    return true;
}

static bool restore_root(restore *r)
{
    json_t *root = r->doc->root;
    if (json_typeof(root) != JANSSON_INTEGER) return restore_wholes(r, root);
    json_t *now = restore_whole(r, root);
    if (!now) return false;
    if (now != root) json_decref(root);
    r->doc->root = now;
    return true;
}

status json_parse(json_doc **out, str text, unsigned flags, const char *name, error *e)
{
    *out = NULL;
    (void)pthread_once(&json_once, use_counted_memory);
    if (!text.ptr) text = STR("");
    json_doc *d = mem_zalloc(sizeof *d);
    if (!d) return error_set(e, E_NOMEM, "%s: out of memory", name);
    arena_init(&d->bigints, 1024);

    rewrite r = { 0 };
    buf_init(&r.text, SIZE_MAX);
    buf_init(&r.table, SIZE_MAX);
    status s = OK;
    if (flags & JSON_KEEP_BIGINT) {
        rewrite_wholes(&r, text);
        TRY_GOTO(s, buf_status(&r.text, name, e), done);
        TRY_GOTO(s, buf_status(&r.table, name, e), done);
    }
    const str source = r.any_big ? buf_view(&r.text) : text;
    const size_t options =
        JSON_DECODE_ANY | JSON_ALLOW_NUL | (flags & JSON_UNIQUE ? JSON_REJECT_DUPLICATES : 0);
    json_error_t je = { .position = -1 };
    json_starved = false;
    d->root = json_loadb(source.ptr, source.len, options, &je);
    if (!d->root) {
        s = parse_error(&je, r.any_big ? &r : NULL, text, name, e);
        goto done;
    }
    restore back = { d, (const whole *)(const void *)r.table.ptr, text };
    if (r.any_big && !restore_root(&back)) {
        s = error_set(e, E_NOMEM, "%s: out of memory", name);
        goto done;
    }
    *out = d;
done:
    buf_free(&r.text);
    buf_free(&r.table);
    if (s) json_free(d);
    return s;
}

status json_parse_file(json_doc **out, const char *path, size_t max_bytes, unsigned flags, error *e)
{
    *out = NULL;
    buf text;
    buf_init(&text, max_bytes);
    status s = file_read(&text, path, e);
    if (!s) s = json_parse(out, buf_view(&text), flags, path, e);
    buf_free(&text);
    return s;
}

void json_free(json_doc *d)
{
    if (!d) return;
    json_decref(d->root);
    arena_free(&d->bigints);
    mem_free(d);
}

const json_node *json_root(const json_doc *d)
{
    return d ? (const json_node *)d->root : NULL;
}

static const json_t *raw(const json_node *n)
{
    return (const json_t *)n;
}

static bool is(const json_node *n, int type)
{
    return n && (int)json_typeof(raw(n)) == type;
}

json_type json_kind(const json_node *n)
{
    static const json_type kinds[] = {
        [JANSSON_OBJECT] = JSON_OBJECT, [JANSSON_ARRAY] = JSON_ARRAY,
        [JANSSON_STRING] = JSON_STRING, [JANSSON_INTEGER] = JSON_INT,
        [JANSSON_REAL] = JSON_REAL,     [JANSSON_TRUE] = JSON_TRUE,
        [JANSSON_FALSE] = JSON_FALSE,   [JANSSON_NULL] = JSON_NULL,
        [JANSSON_BIGINT] = JSON_BIGINT,
    };
    return n ? kinds[(int)json_typeof(raw(n))] : JSON_NONE;
}

const char *json_kind_name(const json_node *n)
{
    switch (json_kind(n)) {
    case JSON_NONE: return "nothing";
    case JSON_NULL: return "null";
    case JSON_FALSE: return "false";
    case JSON_TRUE: return "true";
    case JSON_INT:
    case JSON_BIGINT: return "integer";
    case JSON_REAL: return "real";
    case JSON_STRING: return "string";
    case JSON_ARRAY: return "array";
    case JSON_OBJECT: return "object";
    }
    return "nothing";
}

bool json_is_true(const json_node *n)
{
    return is(n, JANSSON_TRUE);
}

bool json_bool(const json_node *n, bool *out)
{
    if (!is(n, JANSSON_TRUE) && !is(n, JANSSON_FALSE)) return false;
    *out = is(n, JANSSON_TRUE);
    return true;
}

bool json_i64(const json_node *n, int64_t *out)
{
    if (!is(n, JANSSON_INTEGER)) return false;
    *out = json_integer_value(raw(n));
    return true;
}

bool json_bigint(const json_node *n, str *digits)
{
    if (!is(n, JANSSON_BIGINT)) return false;
    *digits = ((const bigint *)raw(n))->digits;
    return true;
}

bool json_f64(const json_node *n, double *out)
{
    str digits;
    if (json_bigint(n, &digits)) return str_to_f64(digits, out);
    if (!is(n, JANSSON_INTEGER) && !is(n, JANSSON_REAL)) return false;
    *out = json_number_value(raw(n));
    return true;
}

bool json_str(const json_node *n, str *out)
{
    if (!is(n, JANSSON_STRING)) return false;
    *out = (str){ json_string_value(raw(n)), json_string_length(raw(n)) };
    return true;
}

const char *json_text(const json_node *n)
{
    return is(n, JANSSON_STRING) ? json_string_value(raw(n)) : NULL;
}

size_t json_len(const json_node *n)
{
    if (is(n, JANSSON_ARRAY)) return json_array_size(raw(n));
    return is(n, JANSSON_OBJECT) ? json_object_size(raw(n)) : 0;
}

const json_node *json_at(const json_node *n, size_t i)
{
    return is(n, JANSSON_ARRAY) ? (const json_node *)json_array_get(raw(n), i) : NULL;
}

const json_node *json_get(const json_node *n, const char *key)
{
    return json_get_str(n, str_from(key));
}

const json_node *json_get_str(const json_node *n, str key)
{
    return is(n, JANSSON_OBJECT) ? (const json_node *)json_object_getn(raw(n), key.ptr, key.len)
                                 : NULL;
}

bool json_each(const json_node *n, void **it, str *key, const json_node **value)
{
    if (!is(n, JANSSON_OBJECT)) return false;
    json_t *object = (json_t *)(uintptr_t)n; /* jansson's iterators are not const */
    *it = *it ? json_object_iter_next(object, *it) : json_object_iter(object);
    if (!*it) return false;
    *key = (str){ json_object_iter_key(*it), json_object_iter_key_len(*it) };
    *value = (const json_node *)json_object_iter_value(*it);
    return true;
}
