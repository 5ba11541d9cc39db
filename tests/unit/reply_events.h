/* reply_events.h - runs a reply splitter and keeps what it sends, for tests. */
#ifndef REPLY_EVENTS_H
#define REPLY_EVENTS_H
#include "base/buf.h"
#include "base/jsonw.h"
#include "test.h"
#include "text/reply.h"

typedef struct reply_events {
    buf reasoning, content;
    buf calls; /* JSON array of {"name", "arguments"} */
    buf log;   /* the kinds of events in order, neighbours of one kind joined: "R[...] C[...]" */
    buf name, arguments;
    reply_kind last;
    int open, begun;
} reply_events;

static inline status reply_events_sink(void *arg, const reply_event *ev, error *e)
{
    (void)e;
    reply_events *t = arg;
    static const char letters[] = "RCBAE";
    if (t->log.len == 0 || ev->kind != t->last || ev->kind >= REPLY_CALL_BEGIN) {
        if (!(ev->kind == REPLY_CALL_ARGUMENTS && t->last == ev->kind))
            buf_printf(&t->log, " %c:", letters[ev->kind]);
    }
    t->last = ev->kind;
    buf_add(&t->log, ev->text);
    EXPECT(str_utf8_valid(ev->text));
    switch (ev->kind) {
    case REPLY_REASONING:
        EXPECT(ev->text.len > 0);
        buf_add(&t->reasoning, ev->text);
        break;
    case REPLY_CONTENT:
        EXPECT(ev->text.len > 0);
        buf_add(&t->content, ev->text);
        break;
    case REPLY_CALL_BEGIN:
        EXPECT_INT(t->open, 0);
        EXPECT_INT(ev->index, t->begun);
        t->open = 1;
        t->begun++;
        buf_clear(&t->name);
        buf_clear(&t->arguments);
        buf_add(&t->name, ev->text);
        break;
    case REPLY_CALL_ARGUMENTS:
        EXPECT_INT(t->open, 1);
        EXPECT_INT(ev->index, t->begun - 1);
        buf_add(&t->arguments, ev->text);
        break;
    case REPLY_CALL_END:
        EXPECT_INT(t->open, 1);
        t->open = 0;
        buf_text(&t->calls, t->calls.len > 1 ? ",{\"name\":\"" : "{\"name\":\"");
        jsonw_escape(&t->calls, buf_view(&t->name));
        buf_text(&t->calls, "\",\"arguments\":");
        buf_add(&t->calls, buf_view(&t->arguments));
        buf_char(&t->calls, '}');
        break;
    }
    return OK;
}

/* Feeds `text` cut at the rising offsets `cuts`, which end with 0; NULL: whole. */
static inline void reply_events_run(reply_events *t, str text, bool thinks, const json_node *tools,
                                    const size_t *cuts)
{
    reply *r;
    error e;
    *t = (reply_events){ 0 };
    buf *bufs[] = { &t->reasoning, &t->content, &t->calls, &t->log, &t->name, &t->arguments };
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++) buf_init(bufs[i], 1 << 24);
    buf_char(&t->calls, '[');
    EXPECT_OK(reply_new(&r, thinks, tools, reply_events_sink, t, &e), e);
    size_t at = 0;
    for (; cuts && *cuts; cuts++) {
        EXPECT_OK(reply_put(r, str_sub(text, at, *cuts), &e), e);
        at = *cuts;
    }
    EXPECT_OK(reply_put(r, str_sub(text, at, text.len), &e), e);
    EXPECT_OK(reply_finish(r, &e), e);
    EXPECT_INT(t->open, 0);
    EXPECT_INT(reply_calls(r), t->begun);
    reply_free(r);
    buf_char(&t->calls, ']');
}

static inline bool reply_events_equal(const reply_events *a, const reply_events *b)
{
    return str_eq(buf_view(&a->log), buf_view(&b->log));
}

static inline void reply_events_free(reply_events *t)
{
    buf *bufs[] = { &t->reasoning, &t->content, &t->calls, &t->log, &t->name, &t->arguments };
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++) buf_free(bufs[i]);
}
#endif
