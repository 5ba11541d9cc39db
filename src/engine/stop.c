/* stop.c - stop strings in text that arrives in pieces. */
#include "engine/stop.h"
#include "base/banned.h"

enum { STOP_WINDOW_MAX = 1 << 24 };

void stop_init(stop *s, const str *needles, int n)
{
    *s = (stop){ .needles = needles, .n = n, .matched = -1 };
    buf_init(&s->window, STOP_WINDOW_MAX);
}

void stop_free(stop *s)
{
    buf_free(&s->window);
}

/* Length of the longest ending of `text` that begins `needle`, the whole needle excepted. */
static size_t overlap(str text, str needle)
{
    size_t len = needle.len - 1 < text.len ? needle.len - 1 : text.len;
    while (len && memcmp(text.ptr + text.len - len, needle.ptr, len) != 0) len--;
    return len;
}

bool stop_look(stop *s)
{
    const str text = buf_view(&s->window);
    size_t first = STR_NONE, held = 0;
    for (int i = 0; i < s->n; i++) {
        const size_t at = str_find(text, s->needles[i]);
        if (at < first) {
            first = at;
            s->matched = i;
        }
        const size_t len = overlap(text, s->needles[i]);
        if (len > held) held = len;
    }
    if (s->matched >= 0) {
        s->shown = s->start + first;
        return true;
    }
    s->shown = s->start + text.len - held;
    const size_t drop = text.len - held;
    buf_consume(&s->window, drop);
    s->start += drop;
    return false;
}
