/* Reply splitting against three public parsers: golden/reply/README.md. */
#include "test.h"
#include "text/reply.h"

#include "golden_rows.h"
#include "reply_events.h"

static bool same_number(const json_node *a, const json_node *b)
{
    int64_t i, k;
    str s, t;
    double f, g;
    if (json_i64(a, &i) && json_i64(b, &k)) return i == k;
    if (json_bigint(a, &s) && json_bigint(b, &t)) return str_eq(s, t);
    if (json_kind(a) != JSON_REAL && json_kind(b) != JSON_REAL) return false;
    return json_f64(a, &f) && json_f64(b, &g) && f == g;
}

static bool same(const json_node *a, const json_node *b)
{
    str s, t;
    const json_node *child;
    if (json_f64(a, &(double){ 0 }) && json_f64(b, &(double){ 0 })) return same_number(a, b);
    if (json_kind(a) != json_kind(b) || json_len(a) != json_len(b)) return false;
    switch (json_kind(a)) {
    case JSON_STRING: return json_str(a, &s) && json_str(b, &t) && str_eq(s, t);
    case JSON_ARRAY:
        for (size_t i = 0; i < json_len(a); i++)
            if (!same(json_at(a, i), json_at(b, i))) return false;
        return true;
    case JSON_OBJECT:
        for (void *it = NULL; json_each(a, &it, &s, &child);)
            if (!same(child, json_get_str(b, s))) return false;
        return true;
    default: return true;
    }
}

static bool same_text(const json_node *want, const buf *got)
{
    str s;
    return json_str(want, &s) && str_eq(str_trim(s), str_trim(buf_view(got)));
}

static bool is_outcome(const json_node *want, const reply_events *got, const json_node *calls)
{
    return same_text(json_get(want, "reasoning"), &got->reasoning) &&
           same_text(json_get(want, "content"), &got->content) &&
           same(json_get(want, "tool_calls"), calls);
}

static void check_row(void *arg, const json_node *row)
{
    int *rows = arg;
    reply_events got;
    str text;
    json_doc *doc;
    error e;
    EXPECT(json_str(json_get(row, "text"), &text));
    const bool thinks = strcmp(json_text(json_get(row, "start")), "think") == 0;
    reply_events_run(&got, text, thinks, json_get(row, "tools"), NULL);
    EXPECT_OK(json_parse(&doc, buf_view(&got.calls), JSON_KEEP_BIGINT, "calls", &e), e);
    const json_node *want = json_get(row, "expected"), *also = json_get(row, "also");
    bool right = json_kind(want) != JSON_OBJECT || is_outcome(want, &got, json_root(doc));
    for (size_t i = 0; !right && i < json_len(also); i++)
        right = is_outcome(json_at(also, i), &got, json_root(doc));
    if (!right) {
        FAIL("%s:\n%.*s\n  reasoning [%.*s]\n  content [%.*s]\n  calls %.*s",
             json_text(json_get(row, "name")), STR_ARG(text), STR_ARG(buf_view(&got.reasoning)),
             STR_ARG(buf_view(&got.content)), STR_ARG(buf_view(&got.calls)));
    }
    json_free(doc);
    reply_events_free(&got);
    ++*rows;
}

TEST(replies_are_split_right)
{
    int rows = 0;
    golden_rows_each("reply/cases.jsonl", check_row, &rows);
    EXPECT_INT(rows, 120);
}

/* The whole and the pieces give the same joined events. */
static void compare(const json_node *row, const reply_events *whole, const size_t *cuts)
{
    reply_events got;
    str text;
    json_str(json_get(row, "text"), &text);
    const bool thinks = strcmp(json_text(json_get(row, "start")), "think") == 0;
    reply_events_run(&got, text, thinks, json_get(row, "tools"), cuts);
    if (!reply_events_equal(whole, &got)) {
        FAIL("%s: cut at %zu ...:\n%.*s\nagainst\n%.*s", json_text(json_get(row, "name")), cuts[0],
             STR_ARG(buf_view(&got.log)), STR_ARG(buf_view(&whole->log)));
    }
    reply_events_free(&got);
}

static void check_cuts(void *arg, const json_node *row)
{
    (void)arg;
    static size_t cuts[1 << 16];
    reply_events whole;
    str text;
    EXPECT(json_str(json_get(row, "text"), &text));
    EXPECT(text.len < 1 << 15);
    const bool thinks = strcmp(json_text(json_get(row, "start")), "think") == 0;
    reply_events_run(&whole, text, thinks, json_get(row, "tools"), NULL);
    for (size_t at = 1; at < text.len; at++) { /* every single cut */
        cuts[0] = at;
        cuts[1] = 0;
        compare(row, &whole, cuts);
    }
    for (size_t i = 0; i < text.len; i++) cuts[i] = i + 1; /* byte by byte */
    cuts[text.len] = 0;
    compare(row, &whole, cuts);
    const json_node *lists = json_get(row, "cuts");
    for (size_t i = 0; i < json_len(lists); i++) {
        const json_node *list = json_at(lists, i);
        size_t n = 0;
        for (; n < json_len(list); n++) {
            int64_t at = 0;
            EXPECT(json_i64(json_at(list, n), &at));
            cuts[n] = (size_t)at;
        }
        cuts[n] = 0;
        compare(row, &whole, cuts);
    }
    reply_events_free(&whole);
}

TEST(R035_pieces_join_to_the_whole_wherever_they_are_cut)
{
    golden_rows_each("reply/cases.jsonl", check_cuts, NULL);
}
