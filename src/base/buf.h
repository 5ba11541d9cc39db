/* buf.h - a growing byte buffer with a mandatory ceiling.
 *
 * Appending past the ceiling, or when memory is short, sets `failed` and changes nothing; later
 * appends are ignored, so a writer checks once at the end (buf_status). The content is always
 * followed by a NUL that len does not count. */
#ifndef BASE_BUF_H
#define BASE_BUF_H
#include <stdarg.h>
#include "base/error.h"
#include "base/str.h"

typedef struct buf {
    char *ptr; /* never NULL after the first append; use buf_view */
    size_t len, cap, ceiling;
    status failed; /* OK, E_NOMEM or E_LIMIT */
} buf;

void buf_init(buf *b, size_t ceiling);
void buf_free(buf *b);
void buf_clear(buf *b); /* keeps the memory, resets `failed` */
void buf_put(buf *b, const void *p, size_t n);
void buf_add(buf *b, str s);
void buf_text(buf *b, const char *s);
void buf_char(buf *b, char c);
void buf_printf(buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *buf_reserve(buf *b, size_t n); /* n writable bytes at the end, or NULL; then buf_advance */
void buf_advance(buf *b, size_t n);
void buf_consume(buf *b, size_t n); /* drops n bytes from the front */
static inline str buf_view(const buf *b)
{
    return (str){ b->ptr ? b->ptr : "", b->len };
}
status buf_status(const buf *b, const char *what, error *e);
char *buf_steal(buf *b); /* NUL-terminated; the caller frees with mem_free; NULL if failed */
#endif
