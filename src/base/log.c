/* log.c - one write(2) per line, so that lines of several threads never mix. */
#include "base/log.h"
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "base/banned.h"

static atomic_int log_most = LOG_WARN;
static const char *const log_prefix[] = { "error: ", "warning: ", "", "debug: " };

void log_set_level(log_level most)
{
    atomic_store_explicit(&log_most, (int)most, memory_order_relaxed);
}

void log_line(log_level level, const char *fmt, ...)
{
    if ((int)level > atomic_load_explicit(&log_most, memory_order_relaxed)) return;
    char line[2048];
    const size_t room = sizeof line - 1; /* for the line feed */
    const size_t head = strlen(log_prefix[level]);
    memcpy(line, log_prefix[level], head);
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(line + head, room - head, fmt, ap);
    va_end(ap);
    if (n < 0) return;
    size_t len = head + (size_t)n;
    if (len >= room) {
        len = room - 1;
        memcpy(line + len - 3, "...", 3);
    }
    line[len++] = '\n';
    for (size_t at = 0; at < len;) {
        const ssize_t w = write(STDERR_FILENO, line + at, len - at);
        if (w <= 0) return; /* nobody can be told */
        at += (size_t)w;
    }
}
