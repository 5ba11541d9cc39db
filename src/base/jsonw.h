/* jsonw.h - writing JSON into a buf: append-only, commas by itself, no document.
 *
 * Strings are escaped as JSON demands (quotes, backslash, controls); valid UTF-8 passes through,
 * invalid bytes become U+FFFD, one for each. Reals print the shortest text that reads back to the
 * same double and to a real: 5.0, 1e-07, 1e+16. A writer writes one value; the caller sees to
 * matching ends and to a key before each member. */
#ifndef BASE_JSONW_H
#define BASE_JSONW_H
#include "base/buf.h"
#include "base/json.h"

typedef struct jsonw {
    buf *out;
    bool comma; /* a value stands before the next one in the same container */
} jsonw;

void jsonw_init(jsonw *w, buf *out);
void jsonw_object(jsonw *w);
void jsonw_array(jsonw *w);
void jsonw_end_object(jsonw *w);
void jsonw_end_array(jsonw *w);
void jsonw_key(jsonw *w, const char *key);
void jsonw_key_str(jsonw *w, str key);
void jsonw_str(jsonw *w, str s);
void jsonw_text(jsonw *w, const char *s);
void jsonw_i64(jsonw *w, int64_t v);
void jsonw_u64(jsonw *w, uint64_t v);
void jsonw_f64(jsonw *w, double v); /* non-finite: null */
void jsonw_fixed(jsonw *w, double v, int decimals);
void jsonw_bool(jsonw *w, bool v);
void jsonw_null(jsonw *w);
void jsonw_raw(jsonw *w, str json);            /* a complete value, trusted */
void jsonw_node(jsonw *w, const json_node *n); /* a parsed value: same kinds, key order kept */

/* A key and its value; of a container, the key and the opening. */
void jsonw_member_object(jsonw *w, const char *key);
void jsonw_member_array(jsonw *w, const char *key);
void jsonw_member_str(jsonw *w, const char *key, str value);
void jsonw_member_text(jsonw *w, const char *key, const char *value); /* NULL: null */
void jsonw_member_i64(jsonw *w, const char *key, int64_t value);
void jsonw_member_u64(jsonw *w, const char *key, uint64_t value);
void jsonw_member_f64(jsonw *w, const char *key, double value);
void jsonw_member_fixed(jsonw *w, const char *key, double value, int decimals);
void jsonw_member_bool(jsonw *w, const char *key, bool value);
void jsonw_member_raw(jsonw *w, const char *key, const char *json);

/* An array of whole numbers, and as a member. */
void jsonw_i32s(jsonw *w, const int32_t *v, size_t n);
void jsonw_member_i32s(jsonw *w, const char *key, const int32_t *v, size_t n);
void jsonw_member_i64s(jsonw *w, const char *key, const int64_t *v, size_t n);

void jsonw_escape(buf *out, str s);  /* content only, no quotes */
void jsonw_real(buf *out, double v); /* the number alone */
#endif
