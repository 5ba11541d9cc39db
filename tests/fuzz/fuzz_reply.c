/* Any reply is split the same whole and in pieces, and every call's arguments are one JSON
 * object. The first byte says where the reply starts and how it is cut. */
#include "base/json.h"
#include "base/mem.h"
#include "text/reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct joined {
    buf log; /* kinds and texts; texts of neighbours of one kind are joined */
    buf arguments;
    reply_kind last;
} joined;

static status sink(void *arg, const reply_event *ev, error *e)
{
    (void)e;
    joined *j = arg;
    const bool goes_on = j->log.len && ev->kind == j->last && ev->kind != REPLY_CALL_BEGIN &&
                         ev->kind != REPLY_CALL_END;
    if (!goes_on)
        buf_printf(&j->log, "\n%d %d ", (int)ev->kind, ev->kind < REPLY_CALL_BEGIN ? 0 : ev->index);
    buf_add(&j->log, ev->text);
    j->last = ev->kind;
    if (ev->kind == REPLY_CALL_BEGIN) buf_clear(&j->arguments);
    if (ev->kind == REPLY_CALL_ARGUMENTS) buf_add(&j->arguments, ev->text);
    if (ev->kind == REPLY_CALL_END) {
        json_doc *doc;
        error why;
        CHECK(json_parse(&doc, buf_view(&j->arguments), JSON_KEEP_BIGINT, "arguments", &why) == OK);
        CHECK(json_kind(json_root(doc)) == JSON_OBJECT);
        json_free(doc);
    }
    return OK;
}

static void run(joined *j, str text, bool thinks, const json_node *tools, size_t step)
{
    reply *r;
    error e = { 0 };
    *j = (joined){ 0 };
    buf_init(&j->log, (size_t)1 << 26);
    buf_init(&j->arguments, (size_t)1 << 26);
    CHECK(reply_new(&r, thinks, tools, sink, j, &e) == OK);
    for (size_t at = 0; at < text.len; at += step) {
        const size_t end = text.len - at < step ? text.len : at + step;
        CHECK(reply_put(r, str_sub(text, at, end), &e) == OK);
    }
    CHECK(reply_finish(r, &e) == OK);
    CHECK(j->log.failed == OK && j->arguments.failed == OK);
    reply_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char tools[] =
        "[{\"name\":\"f\",\"parameters\":{\"properties\":{\"a\":{\"type\":\"string\"},\"n\":{"
        "\"type\":\"integer\"},"
        "\"o\":{\"type\":\"object\"},\"t\":{\"type\":\"boolean\"},\"u\":{}}}}]";
    const int64_t live = mem_live();
    if (size == 0) return 0;
    const str text = { (const char *)data + 1, size - 1 };
    const bool thinks = data[0] & 1;
    const size_t step = 1 + (data[0] >> 2) % 16;
    json_doc *doc;
    error e;
    joined whole, pieces;
    CHECK(json_parse(&doc, (str){ tools, sizeof tools - 1 }, 0, "tools", &e) == OK);
    const json_node *declared = data[0] & 2 ? NULL : json_root(doc);
    run(&whole, text, thinks, declared, text.len + 1);
    run(&pieces, text, thinks, declared, step);
    CHECK(str_eq(buf_view(&whole.log), buf_view(&pieces.log)));
    buf_free(&whole.log);
    buf_free(&whole.arguments);
    buf_free(&pieces.log);
    buf_free(&pieces.arguments);
    json_free(doc);
    CHECK(mem_live() == live);
    return 0;
}
