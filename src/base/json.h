/* json.h - reading JSON: a view over the parser library, so that it can be exchanged.
 *
 * Strict UTF-8, 64-bit integers kept apart from reals, key order kept, depth limited (2,048). Nodes
 * are borrowed from their document. Getters on a NULL or wrongly typed node return NULL / false /
 * 0, so look-ups chain without checks. */
#ifndef BASE_JSON_H
#define BASE_JSON_H
#include "base/error.h"
#include "base/str.h"

typedef struct json_doc json_doc;
typedef struct json_node json_node;
typedef enum json_type {
    JSON_NONE,
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_INT,
    JSON_REAL,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT,
    JSON_BIGINT
} json_type;
enum {
    JSON_UNIQUE = 1, /* flag: refuse duplicate keys (default: the last one wins) */
    /* flag: whole numbers beyond 64 bits become JSON_BIGINT (default: refused) */
    JSON_KEEP_BIGINT = 2,
};

/* `name` says in the error what was parsed ("config.json"); the message has line and column. */
status json_parse(json_doc **out, str text, unsigned flags, const char *name, error *e);
status json_parse_file(json_doc **out, const char *path, size_t max_bytes, unsigned flags,
                       error *e);
void json_free(json_doc *d);
const json_node *json_root(const json_doc *d);

json_type json_kind(const json_node *n);
const char *json_kind_name(const json_node *n); /* "string", "object", "nothing", ... */
bool json_is_true(const json_node *n);
bool json_bool(const json_node *n, bool *out);
bool json_i64(const json_node *n, int64_t *out); /* integers only */
/* JSON_BIGINT only: the number as it was written */
bool json_bigint(const json_node *n, str *digits);
bool json_f64(const json_node *n, double *out);         /* numbers of all kinds, nearest double */
bool json_str(const json_node *n, str *out);            /* may hold NUL bytes */
const char *json_text(const json_node *n);              /* NUL-terminated string or NULL */
size_t json_len(const json_node *n);                    /* items of an array or object */
const json_node *json_at(const json_node *n, size_t i); /* array item */
const json_node *json_get(const json_node *n, const char *key); /* object member */
const json_node *json_get_str(const json_node *n, str key);
/* for (void *it = NULL; json_each(n, &it, &key, &value);) ... in file order */
bool json_each(const json_node *n, void **it, str *key, const json_node **value);
#endif
