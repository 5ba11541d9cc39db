/* error.c - messages of one line, and the end of the process when a promise of ours is broken. */
#include "base/error.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "base/banned.h"
#undef error_set
#undef error_prefix

enum { TEXT_BYTES = sizeof((error *)0)->text };

/* One line for any terminal or log: control characters, which may come from a hostile file, are
 * masked; a text that was cut ends in "..." and not inside a UTF-8 sequence. */
static void tidy(char *text, bool cut)
{
    if (cut) {
        size_t end = TEXT_BYTES - 4;
        while (end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80) end--;
        memcpy(text + end, "...", 4);
    }
    for (char *p = text; *p; p++) {
        const unsigned char c = (unsigned char)*p;
        if (c == '\n' || c == '\t') *p = ' ';
        else if (c < 0x20 || c == 0x7f) *p = '?';
    }
}

status error_set(error *e, status code, const char *fmt, ...)
{
    if (!e) return code;
    char text[TEXT_BYTES]; /* the arguments may point into e->text */
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    tidy(text, n >= TEXT_BYTES);
    memcpy(e->text, text, sizeof text);
    e->code = code;
    return code;
}

status error_prefix(error *e, status code, const char *fmt, ...)
{
    if (!e) return code;
    char text[TEXT_BYTES];
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n < 0 || n >= TEXT_BYTES) {
        tidy(text, true);
    } else {
        const size_t left = sizeof text - (size_t)n;
        const int m = snprintf(text + n, left, ": %s", e->text);
        tidy(text, m >= 0 && (size_t)m >= left);
    }
    memcpy(e->text, text, sizeof text);
    e->code = code;
    return code;
}

const char *error_name(status code)
{
    switch (code) {
    case OK: return "ok";
    case E_ARG: return "argument";
    case E_IO: return "io";
    case E_FORMAT: return "format";
    case E_UNSUPPORTED: return "unsupported";
    case E_NOMEM: return "memory";
    case E_LIMIT: return "limit";
    case E_CANCELLED: return "cancelled";
    case E_AGAIN: return "again";
    case E_BUG: return "bug";
    }
    return "unknown";
}

_Noreturn void error_check_failed(const char *cond, const char *file, int line)
{
    log_line(LOG_ERROR, "%s:%d: broken promise: %s", file, line, cond);
    abort();
}
