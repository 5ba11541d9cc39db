/* buf.c - growth by half, one check at the end. */
#include "base/buf.h"
#include <stdio.h>
#include "base/mem.h"
#include "base/banned.h"

void buf_init(buf *b, size_t ceiling)
{
    *b = (buf){ .ceiling = ceiling < SIZE_MAX ? ceiling : SIZE_MAX - 1 };
}

void buf_free(buf *b)
{
    mem_free(b->ptr);
    buf_init(b, b->ceiling);
}

void buf_clear(buf *b)
{
    b->len = 0;
    b->failed = OK;
    if (b->ptr) b->ptr[0] = '\0';
}

char *buf_reserve(buf *b, size_t n)
{
    if (b->failed) return NULL;
    if (n > b->ceiling - b->len) {
        b->failed = E_LIMIT;
        return NULL;
    }
    const size_t need = b->len + n + 1;
    if (need > b->cap) {
        const size_t half = b->cap / 2;
        size_t cap = b->cap <= SIZE_MAX - half ? b->cap + half : need;
        if (cap < 64) cap = 64;
        if (cap > b->ceiling + 1) cap = b->ceiling + 1;
        if (cap < need) cap = need;
        char *p = mem_resize(b->ptr, cap);
        if (!p) {
            b->failed = E_NOMEM;
            return NULL;
        }
        b->ptr = p;
        b->cap = cap;
    }
    b->ptr[b->len] = '\0';
    return b->ptr + b->len;
}

void buf_advance(buf *b, size_t n)
{
    CHECK(n < b->cap - b->len);
    b->len += n;
    b->ptr[b->len] = '\0';
}

void buf_put(buf *b, const void *p, size_t n)
{
    char *at = buf_reserve(b, n);
    if (!at) return;
    if (n) memcpy(at, p, n);
    buf_advance(b, n);
}

void buf_add(buf *b, str s)
{
    buf_put(b, s.ptr, s.len);
}

void buf_text(buf *b, const char *s)
{
    buf_put(b, s, strlen(s));
}

void buf_char(buf *b, char c)
{
    buf_put(b, &c, 1);
}

void buf_printf(buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0) {
        b->failed = E_BUG;
        return;
    }
    char *at = buf_reserve(b, (size_t)n);
    if (!at) return;
    va_start(ap, fmt);
    (void)vsnprintf(at, (size_t)n + 1, fmt, ap);
    va_end(ap);
    buf_advance(b, (size_t)n);
}

void buf_consume(buf *b, size_t n)
{
    CHECK(n <= b->len);
    if (n == 0) return;
    b->len -= n;
    memmove(b->ptr, b->ptr + n, b->len + 1);
}

status buf_status(const buf *b, const char *what, error *e)
{
    switch (b->failed) {
    case OK: return OK;
    case E_LIMIT:
        return error_set(e, E_LIMIT, "%s: longer than the limit of %zu bytes", what, b->ceiling);
    case E_NOMEM: return error_set(e, E_NOMEM, "%s: out of memory after %zu bytes", what, b->len);
    default: return error_set(e, b->failed, "%s: cannot be formatted", what);
    }
}

char *buf_steal(buf *b)
{
    char *p = buf_reserve(b, 0) ? b->ptr : NULL;
    if (!p) return NULL;
    buf_init(b, b->ceiling);
    return p;
}
