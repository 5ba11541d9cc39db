#include "base/mem.h"
#include "test.h"
#include "text/reply.h"

#include "reply_events.h"

static const char TOOLS[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"properties\":{"
    "\"a\":{\"type\":\"string\"},\"n\":{\"type\":\"integer\"},\"o\":{\"type\":\"object\"},"
    "\"x\":{\"type\":\"number\"},\"any\":{},\"m\":{\"type\":[\"integer\",\"null\"]},"
    "\"all\":{\"allOf\":[{\"type\":\"integer\"}]},"
    "\"one\":{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"boolean\"}]}}}}},"
    "{\"name\":\"bare\"}]";

static json_doc *parse(const char *text)
{
    json_doc *doc;
    error e;
    EXPECT_OK(json_parse(&doc, str_from(text), 0, "tools", &e), e);
    return doc;
}

/* The events of `text`, fed whole: "R:", "C:" text, "B:" a call's name, "A:" arguments, "E:". */
static void expect(const char *text, bool thinks, const char *tools, const char *want)
{
    reply_events got;
    json_doc *doc = parse(tools);
    reply_events_run(&got, str_from(text), thinks, json_root(doc), NULL);
    EXPECT_STR(buf_view(&got.log).ptr, want);
    reply_events_free(&got);
    json_free(doc);
}

static void xml(const char *parameter, const char *value, const char *want)
{
    char text[512], log[512];
    snprintf(
        text, sizeof text,
        "<tool_call>\n<function=f>\n<parameter=%s>\n%s\n</parameter>\n</function>\n</tool_call>",
        parameter, value);
    snprintf(log, sizeof log, " B:f A:{\"%s\": %s} E:", parameter, want);
    expect(text, false, TOOLS, log);
}

TEST(R019_what_a_stop_search_held_back_is_split_like_the_rest)
{
    /* the engine flushes its hold-back window through reply_put at the end */
    reply_events got;
    json_doc *doc = parse(TOOLS);
    const str text = STR("r\n</think>");
    reply_events_run(&got, text, true, json_root(doc), (size_t[]){ 4, 0 });
    EXPECT_STR(buf_view(&got.log).ptr, " R:r");
    reply_events_free(&got);
    const str call = STR("<tool_call>\n<function=f>\n</function>\n</tool_call>");
    reply_events_run(&got, call, false, json_root(doc), (size_t[]){ 2, 40, 0 });
    EXPECT_STR(buf_view(&got.log).ptr, " B:f A:{} E:");
    reply_events_free(&got);
    json_free(doc);
}

TEST(R024_what_cannot_be_converted_stays_text)
{
    xml("n", "2026-01-15", "\"2026-01-15\"");
    xml("o", "if (x) { return; }", "\"if (x) { return; }\"");
    xml("x", "Infinity", "\"Infinity\"");
    xml("x", "1e999", "\"1e999\"");
}

TEST(R026_invalid_escapes_do_no_harm)
{
    expect("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"\\d+ C:\\new\"}}\n</tool_call>",
           false, TOOLS, " B:f A:{\"a\":\"\\\\d+ C:\\\\new\"} E:");
    xml("a", "\\d+\\.\\w* C:\\new", "\"\\\\d+\\\\.\\\\w* C:\\\\new\"");
}

TEST(R027_other_dialects_stay_visible)
{
    static const char text[] = "<tool_call>glob\n<arg_key>pattern</arg_key></tool_call>";
    char log[200];
    snprintf(log, sizeof log, " C:%s", text);
    expect(text, false, TOOLS, log);
}

TEST(R029_a_missing_bracket_is_closed)
{
    xml("o", "{\"a\": [1, 2]", "{\"a\": [1, 2]}");
    xml("o", "{\"a\": [1, 2", "{\"a\": [1, 2]}");
    xml("o", "{\"a\": \"x", "\"{\\\"a\\\": \\\"x\"");
    xml("any", "[1", "[1]");
}

TEST(R030_without_declared_tools_calls_are_text)
{
    static const char text[] = "<tool_call>\n<function=f>\n</function>\n</tool_call>";
    char log[200];
    snprintf(log, sizeof log, " C:%s", text);
    expect(text, false, "[]", log);
    expect(text, false, "null", log);
    expect("<tool_call>\n<function=g>\n</function>\n</tool_call>", false, TOOLS,
           " C:<tool_call>\n<function=g>\n</function>\n</tool_call>");
}

TEST(R032_a_thought_cut_by_the_limit_is_reasoning)
{
    expect("17*23 is 17*20 +", true, "[]", " R:17*23 is 17*20 +");
}

TEST(R034_tags_in_the_answer_are_text)
{
    expect("Use `<think>draft</think>`.", false, TOOLS, " C:Use `<think>draft</think>`.");
    expect("r</think>Use `<think>d</think>`.", true, TOOLS, " R:r C:Use `<think>d</think>`.");
}

TEST(a_name_goes_out_as_soon_as_it_is_whole)
{
    reply_events got;
    json_doc *doc = parse(TOOLS);
    reply *r;
    error e;
    got = (reply_events){ 0 };
    buf *bufs[] = { &got.reasoning, &got.content, &got.calls, &got.log, &got.name, &got.arguments };
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++) buf_init(bufs[i], 1 << 16);
    EXPECT_OK(reply_new(&r, false, json_root(doc), reply_events_sink, &got, &e), e);
    static const struct {
        const char *piece, *log;
    } steps[] = {
        { "ok\n<tool_call>\n<function=f", " C:ok" },
        { ">", " C:ok B:f" },
        { "\n<parameter=a", " C:ok B:f" },
        { ">\n", " C:ok B:f A:{\"a\": \"" },
        { "x\"y", " C:ok B:f A:{\"a\": \"x\\\"y" },
        { "\n", " C:ok B:f A:{\"a\": \"x\\\"y" },
        { "z</parameter", " C:ok B:f A:{\"a\": \"x\\\"y\\nz" },
        { "!\n</parameter>\n", " C:ok B:f A:{\"a\": \"x\\\"y\\nz</parameter!" },
        { "</function>", " C:ok B:f A:{\"a\": \"x\\\"y\\nz</parameter!\"} E:" },
    };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        EXPECT_OK(reply_put(r, str_from(steps[i].piece), &e), e);
        EXPECT_STR(buf_view(&got.log).ptr, steps[i].log);
    }
    reply_free(r);
    reply_events_free(&got);
    json_free(doc);
}

TEST(a_cut_call_is_closed_and_a_cut_name_is_text)
{
    expect("<tool_call>\n<function=f>\n<parameter=a>\nhalf", false, TOOLS,
           " B:f A:{\"a\": \"half\"} E:");
    expect("<tool_call>\n<function=f>\n<parameter=n>\n4", false, TOOLS, " B:f A:{\"n\": 4} E:");
    expect("<tool_call>\n<function=f>\n<para", false, TOOLS, " B:f A:{} E:");
    expect("<tool_call>\n<function=f", false, TOOLS, " C:<tool_call>\n<function=f");
}

TEST(numbers)
{
    xml("n", "+7", "7");
    xml("n", "007", "7");
    xml("n", "-0", "-0");
    xml("n", "1.00", "1");
    xml("n", "1.5", "1.5");
    xml("n", "123456789012345678901234567890", "123456789012345678901234567890");
    xml("x", ".5", "0.5");
    xml("x", "5.", "5");
    xml("x", "1e3", "1e3");
    xml("x", "1e", "\"1e\"");
    xml("x", "-", "\"-\"");
    xml("m", "NULL", "null");
    xml("any", "12", "\"12\"");
    xml("undeclared", "{}", "\"{}\"");
    xml("all", "5", "5");
    xml("one", "true", "true");
}

TEST(white_space_around_parts)
{
    expect("\n r \n</think>\n\n  code\n", true, "[]", " R:r C:  code\n");
    expect("a\n\n<tool_call>{\"name\":\"bare\",\"arguments\":{}}</tool_call>\n", false, TOOLS,
           " C:a B:bare A:{} E:");
    expect("a\n<tool_call>{\"name\":\"bare\",\"arguments\":{}}</tool_call>\nb", false, TOOLS,
           " C:a B:bare A:{} E: C:\n\nb");
    expect("  \n", false, "[]", "");
}

TEST(half_characters_wait)
{
    reply_events got;
    const str text = STR("a\xf0\x9f\x98\xb8</think>\xc3\xa9");
    reply_events_run(&got, text, true, NULL, (size_t[]){ 2, 3, 4, 14, 0 });
    EXPECT_STR(buf_view(&got.log).ptr, " R:a\xf0\x9f\x98\xb8 C:\xc3\xa9");
    reply_events_free(&got);
}

static status refuse(void *arg, const reply_event *event, error *e)
{
    (void)arg;
    return error_set(e, E_CANCELLED, "no more after '%.*s'", STR_ARG(event->text));
}

TEST(a_failure_of_the_sink_is_passed_on)
{
    reply *r;
    error e;
    EXPECT_OK(reply_new(&r, false, NULL, refuse, NULL, &e), e);
    EXPECT_INT(reply_put(r, STR("abc"), &e), E_CANCELLED);
    EXPECT_STR(e.text, "no more after 'abc'");
    reply_free(r);
}

/* Long values pass through in one go and byte by byte, in time that grows with their length. */
TEST(long_values_are_linear)
{
    enum { N = 1 << 20 };
    static char text[N + 200];
    static const char *const heads[] = { "a", "o" };
    for (int i = 0; i < 2; i++) {
        size_t n =
            (size_t)snprintf(text, sizeof text, "<tool_call><function=f><parameter=%s>", heads[i]);
        for (size_t k = 0; k < N; k++) text[n++] = k % 3 ? '<' : '\n';
        memcpy(text + n, "</parameter></function>", 24);
        json_doc *doc = parse(TOOLS);
        reply *r;
        error e;
        reply_events got = { 0 };
        buf *bufs[] = { &got.reasoning, &got.content, &got.calls,
                        &got.log,       &got.name,    &got.arguments };
        for (size_t b = 0; b < sizeof bufs / sizeof *bufs; b++) buf_init(bufs[b], 1 << 24);
        EXPECT_OK(reply_new(&r, false, json_root(doc), reply_events_sink, &got, &e), e);
        for (size_t k = 0; k < n + 23; k += 7) {
            const size_t end = k + 7 < n + 23 ? k + 7 : n + 23;
            EXPECT_OK(reply_put(r, (str){ text + k, end - k }, &e), e);
        }
        EXPECT_OK(reply_finish(r, &e), e);
        EXPECT(got.calls.len > N);
        reply_free(r);
        reply_events_free(&got);
        json_free(doc);
    }
}

static status ignore(void *arg, const reply_event *event, error *e)
{
    (void)arg;
    (void)event;
    (void)e;
    return OK;
}

TEST(memory_may_run_short_anywhere)
{
    json_doc *doc = parse(TOOLS);
    const str text = STR("r</think>c <tool_call><function=f><parameter=o>{\"a\":1</parameter>"
                         "</function></tool_call><tool_call>{\"name\":\"f\",\"arguments\":{}}");
    const int64_t live = mem_live();
    status s = E_NOMEM;
    int n = 1;
    for (; s != OK; n++) {
        error e = { 0 };
        reply *r = NULL;
        mem_fail_after(n);
        s = reply_new(&r, true, json_root(doc), ignore, NULL, &e);
        if (!s) s = reply_put(r, text, &e);
        if (!s) s = reply_finish(r, &e);
        mem_fail_after(0);
        if (s) EXPECT(s == E_NOMEM && e.code == E_NOMEM);
        reply_free(r);
        EXPECT_INT(mem_live(), live);
    }
    EXPECT(n > 10);
    json_free(doc);
}
