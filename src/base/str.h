/* str.h - borrowed text: a pointer and a length, not NUL-terminated, never owned. */
#ifndef BASE_STR_H
#define BASE_STR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct str {
    const char *ptr;
    size_t len;
} str;

#define STR(lit) ((str){ "" lit, sizeof(lit) - 1 })
#define STR_ARG(s) (int)(s).len, (s).ptr /* for "%.*s" */

static inline str str_from(const char *s)
{
    return (str){ s, s ? strlen(s) : 0 };
}
static inline str str_sub(str s, size_t from, size_t to)
{
    return (str){ s.ptr + from, to - from };
}
static inline bool str_eq(str a, str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}
int str_cmp(str a, str b);        /* bytewise, like memcmp */
bool str_same_word(str a, str b); /* ASCII letters of either case are the same */
bool str_starts(str s, str prefix);
bool str_ends(str s, str suffix);
#define STR_NONE ((size_t)-1)
size_t str_find(str s, str needle);   /* offset or STR_NONE */
str str_trim(str s);                  /* ASCII white space */
bool str_to_i64(str s, int64_t *out); /* whole string, decimal, checked */
bool str_to_f64(str s, double *out);  /* whole string; independent of the locale */
bool str_to_size(str s, size_t *out); /* "64", "4K", "2M", "8G" (1024) */
uint64_t str_hash(str s);             /* 64-bit, stable within a process run */
/* bytes of the valid sequence at `at`, 0 when invalid */
size_t str_utf8_next(str s, size_t at, uint32_t *cp);
bool str_utf8_valid(str s);
size_t str_utf8_put(uint32_t cp, char out[4]);
#endif
