/* events.c - pieces of output on their way to the caller. */
#include "api/events.h"
#include "base/mem.h"
#include "base/banned.h"

enum { EVENTS_MAX_TEXT = 1 << 30 };

struct events_item {
    ingot_event event;
    size_t from, len; /* of its text in the queue's buffer, which may still move */
};

void events_init(events *q)
{
    *q = (events){ 0 };
    buf_init(&q->text, EVENTS_MAX_TEXT);
}

void events_free(events *q)
{
    buf_free(&q->text);
    mem_free(q->items);
    *q = (events){ 0 };
}

void events_clear(events *q)
{
    q->n = q->at = 0;
    buf_clear(&q->text);
}

bool events_next(events *q, ingot_event *out)
{
    if (q->at == q->n) return false;
    const struct events_item *item = &q->items[q->at++];
    *out = item->event;
    out->text = buf_view(&q->text).ptr + item->from;
    out->len = item->len;
    return true;
}

status events_add(events *q, const ingot_event *ev, error *e)
{
    if (q->n == q->cap) {
        const size_t cap = q->cap ? 2 * q->cap : 16;
        struct events_item *items = mem_resize(q->items, cap * sizeof *items);
        if (!items) return error_set(e, E_NOMEM, "events: no memory for %zu", cap);
        q->items = items;
        q->cap = cap;
    }
    struct events_item *item = &q->items[q->n++];
    *item = (struct events_item){ .event = *ev, .from = q->text.len, .len = ev->len };
    item->event.choice = q->choice;
    buf_put(&q->text, ev->text, ev->len);
    return buf_status(&q->text, "events", e);
}

void events_set_logprobs(events *q, size_t i, const ingot_logprob *p, int n)
{
    q->items[i].event.logprobs = p;
    q->items[i].event.n_logprobs = n;
}

static bool continues(const events *q, ingot_event_kind kind, int tool)
{
    if (q->n == q->at ||
        (kind != INGOT_TEXT && kind != INGOT_THINKING && kind != INGOT_TOOL_ARGUMENTS))
        return false;
    const struct events_item *last = &q->items[q->n - 1];
    return last->event.kind == kind && last->event.tool == tool && last->event.choice == q->choice;
}

status events_text(events *q, ingot_event_kind kind, int tool, str text, error *e)
{
    if (!continues(q, kind, tool)) {
        const ingot_event ev = { .kind = kind, .tool = tool, .text = text.ptr, .len = text.len };
        return events_add(q, &ev, e);
    }
    q->items[q->n - 1].len += text.len;
    buf_add(&q->text, text);
    return buf_status(&q->text, "events", e);
}

status events_sink(void *q, const reply_event *ev, error *e)
{
    static const ingot_event_kind kinds[] = { [REPLY_REASONING] = INGOT_THINKING,
                                              [REPLY_CONTENT] = INGOT_TEXT,
                                              [REPLY_CALL_BEGIN] = INGOT_TOOL_BEGIN,
                                              [REPLY_CALL_ARGUMENTS] = INGOT_TOOL_ARGUMENTS,
                                              [REPLY_CALL_END] = INGOT_TOOL_END };
    const bool of_call = ev->kind != REPLY_REASONING && ev->kind != REPLY_CONTENT;
    return events_text(q, kinds[ev->kind], of_call ? ev->index : 0, ev->text, e);
}
