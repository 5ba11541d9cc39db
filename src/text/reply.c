/* reply.c - splits what the model writes, while it arrives.
 *
 * Bytes are held until it is certain what they are; every decision depends only on bytes seen, in
 * a way that later bytes cannot change, so cuts do not matter. At the end (`final`) nothing more
 * can come, and what is still open is decided as it stands. */
#include "text/reply.h"

#include "base/jsonw.h"
#include "base/mem.h"
#include "text/toolset.h"

#include "base/banned.h"

enum {
    MAX_HELD = 64 << 20,
    MAX_BLANKS = 64, /* between the tags of a call */
    MAX_NAME = 256
};
#define TOOL_CALL "<tool_call>"
#define TOOL_CALL_END "</tool_call>"
#define FUNCTION "<function="
#define FUNCTION_END "</function>"
#define PARAMETER "<parameter="
#define PARAMETER_END "</parameter>"

typedef enum state {
    START,       /* nothing but white space yet: <think> may open a thought */
    THINK_START, /* the prompt opened a thought; the reply may repeat the tag */
    THINK,
    TEXT,
    ARGUMENTS,  /* inside a function, between parameters */
    VALUE,      /* inside a parameter */
    AFTER_CALL, /* the closing call tag may follow */
    JSON        /* inside a call in JSON form */
} state;

typedef enum match { NO, PARTLY, YES } match;

struct reply {
    state state;
    state back; /* JSON: THINK or TEXT, where to go on if it is no call */
    toolset tools;
    reply_sink *sink;
    void *arg;
    buf held;         /* bytes from `at` on are undecided */
    size_t at, limit; /* limit: end of the last whole character */
    size_t seen;      /* VALUE, JSON: bytes from `at` that need no second look */
    bool final;
    buf space; /* white space that goes out only if text follows */
    bool reasoning_sent, content_sent, skip_newlines;
    int calls;
    const toolset_function *function;
    bool first_parameter, value_begins;
    unsigned types;   /* of the current parameter */
    size_t json_from; /* JSON: where it begins, from `at` */
    int depth;
    bool in_string, escaped;
    buf scratch;
};

/* ---- events ---- */

static status send(reply *r, reply_kind kind, str text, error *e)
{
    const bool needs_text = kind != REPLY_CALL_END && kind != REPLY_CALL_BEGIN;
    if (needs_text && text.len == 0) return OK;
    const reply_event event = { .kind = kind, .index = r->calls - 1, .text = text };
    return r->sink(r->arg, &event, e);
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Text of the thought or the answer; its white space waits in `space`. */
static status send_text(reply *r, reply_kind kind, str s, error *e)
{
    bool *sent = kind == REPLY_REASONING ? &r->reasoning_sent : &r->content_sent;
    size_t from = 0, end = s.len;
    while (end > 0 && is_blank(s.ptr[end - 1])) end--;
    if (kind == REPLY_REASONING && !*sent) {
        while (from < end && is_blank(s.ptr[from])) from++;
        if (end == 0) return OK;
    } else if (r->skip_newlines) {
        while (from < s.len && s.ptr[from] == '\n') from++;
        if (from == s.len) return OK;
        r->skip_newlines = false;
    }
    if (end > from) {
        TRY(send(r, kind, buf_view(&r->space), e));
        buf_clear(&r->space);
        TRY(send(r, kind, str_sub(s, from, end), e));
        *sent = true;
        from = end;
    }
    buf_add(&r->space, str_sub(s, from, s.len));
    return buf_status(&r->space, "reply", e);
}

static status send_arguments(reply *r, error *e)
{
    TRY(buf_status(&r->scratch, "reply", e));
    TRY(send(r, REPLY_CALL_ARGUMENTS, buf_view(&r->scratch), e));
    buf_clear(&r->scratch);
    return OK;
}

static status begin_call(reply *r, str name, error *e)
{
    r->calls++;
    if (!r->content_sent) {
        buf_clear(&r->space);
        r->skip_newlines = true;
    }
    return send(r, REPLY_CALL_BEGIN, name, e);
}

static status end_call(reply *r, error *e)
{
    buf_text(&r->scratch, r->first_parameter ? "{}" : "}");
    TRY(send_arguments(r, e));
    r->state = AFTER_CALL;
    return send(r, REPLY_CALL_END, STR(""), e);
}

/* ---- looking ---- */

static str view(const reply *r)
{
    return str_sub(buf_view(&r->held), r->at, r->limit);
}

/* Does `tag` stand at s[at]? PARTLY when s ends inside it. */
static match match_tag(str s, size_t at, str tag)
{
    const size_t n = s.len - at < tag.len ? s.len - at : tag.len;
    if (memcmp(s.ptr + at, tag.ptr, n) != 0) return NO;
    return n == tag.len ? YES : PARTLY;
}

static size_t find_char(str s, size_t from, char c)
{
    const char *p = from < s.len ? memchr(s.ptr + from, c, s.len - from) : NULL;
    return p ? (size_t)(p - s.ptr) : s.len;
}

/* Skips a bounded number of blanks; NO when there are more. */
static match skip_blanks(str s, size_t *at)
{
    const size_t from = *at;
    while (*at < s.len && is_blank(s.ptr[*at]))
        if (++*at - from > MAX_BLANKS) return NO;
    return *at < s.len ? YES : PARTLY;
}

/* "NAME>" at s[*at]; *at is left behind it. */
static match read_name(str s, size_t *at, str *name)
{
    size_t end = *at;
    while (end < s.len && s.ptr[end] != '>') {
        const unsigned char c = (unsigned char)s.ptr[end];
        if (c == '<' || c < ' ' || end - *at == MAX_NAME) return NO;
        end++;
    }
    if (end == s.len) return PARTLY;
    *name = str_trim(str_sub(s, *at, end));
    *at = end + 1;
    return name->len ? YES : NO;
}

/* What follows <tool_call> at s[0]: a call's beginning? *at is left behind "<function=NAME>", or at
 * the first bracket of the JSON form; then *name is empty. */
static match match_call(const reply *r, str s, size_t *at, str *name)
{
    *at = sizeof TOOL_CALL - 1;
    *name = STR("");
    match m = skip_blanks(s, at);
    if (m != YES) return m;
    if (s.ptr[*at] == '{' || s.ptr[*at] == '[') return YES;
    m = match_tag(s, *at, STR(FUNCTION));
    if (m != YES) return m;
    *at += sizeof FUNCTION - 1;
    m = read_name(s, at, name);
    return m == YES && !toolset_find(&r->tools, *name) ? NO : m;
}

/* ---- states; each returns whether it can go on through *again ---- */

static void consume(reply *r, size_t n)
{
    r->at += n;
    r->seen = 0;
}

static status step_start(reply *r, bool *again)
{
    const str s = view(r);
    size_t at = 0;
    while (at < s.len && is_blank(s.ptr[at])) at++;
    if (at == s.len && !r->final) return OK;
    const match m = match_tag(s, at, STR("<think>"));
    if (m == PARTLY && !r->final) return OK;
    const bool thinks = r->state == THINK_START;
    r->state = thinks || m == YES ? THINK : TEXT;
    if (m == YES) consume(r, at + sizeof "<think>" - 1);
    *again = true;
    return OK;
}

static void begin_json(reply *r, size_t from)
{
    r->back = r->state;
    r->state = JSON;
    r->json_from = r->seen = from;
    r->depth = 0;
    r->in_string = r->escaped = false;
}

/* <tool_call> at the front of the view: a call begins, or it is text, or more must be seen. */
static status step_call(reply *r, bool *again, error *e)
{
    const reply_kind kind = r->state == THINK ? REPLY_REASONING : REPLY_CONTENT;
    const str s = view(r);
    size_t at;
    str name;
    const match m = match_call(r, s, &at, &name);
    if (m == PARTLY && !r->final) return OK;
    *again = true;
    if (m != YES) {
        TRY(send_text(r, kind, STR(TOOL_CALL), e));
        consume(r, sizeof TOOL_CALL - 1);
        return OK;
    }
    if (name.len == 0) {
        begin_json(r, at);
        return OK;
    }
    if (r->state == THINK) buf_clear(&r->space);
    r->function = toolset_find(&r->tools, name);
    r->first_parameter = true;
    r->state = ARGUMENTS;
    TRY(begin_call(r, name, e));
    consume(r, at);
    return OK;
}

/* The thought and the answer: text up to the next tag that means something. */
static status step_text(reply *r, bool *again, error *e)
{
    const bool thinks = r->state == THINK, tools = r->tools.functions.count > 0;
    const reply_kind kind = thinks ? REPLY_REASONING : REPLY_CONTENT;
    const str s = view(r);
    size_t at = find_char(s, 0, '<');
    for (; at < s.len; at = find_char(s, at + 1, '<')) {
        const match call = tools ? match_tag(s, at, STR(TOOL_CALL)) : NO;
        const match end = thinks ? match_tag(s, at, STR("</think>")) : NO;
        if ((call == PARTLY || end == PARTLY) && !r->final) break;
        if (call != YES && end != YES) continue;
        TRY(send_text(r, kind, str_sub(s, 0, at), e));
        consume(r, at);
        if (call == YES) return step_call(r, again, e);
        consume(r, sizeof "</think>" - 1);
        buf_clear(&r->space);
        r->skip_newlines = true;
        r->state = TEXT;
        *again = true;
        return OK;
    }
    TRY(send_text(r, kind, str_sub(s, 0, at), e));
    consume(r, at);
    return OK;
}

/* Begins "key": in the arguments. */
static status begin_parameter(reply *r, str key, error *e)
{
    r->types = toolset_types(r->function, key);
    buf_text(&r->scratch, r->first_parameter ? "{\"" : ", \"");
    jsonw_escape(&r->scratch, key);
    buf_text(&r->scratch, r->types & TOOLSET_STRING ? "\": \"" : "\": ");
    r->first_parameter = false;
    r->value_begins = true;
    r->state = VALUE;
    return send_arguments(r, e);
}

/* Between parameters: anything but the expected tags is dropped. */
static status step_arguments(reply *r, bool *again, error *e)
{
    const str s = view(r);
    const size_t at = find_char(s, 0, '<');
    consume(r, at);
    if (at == s.len) return r->final ? (*again = true, end_call(r, e)) : OK;
    const str tag = view(r);
    const match parameter = match_tag(tag, 0, STR(PARAMETER));
    const match function = match_tag(tag, 0, STR(FUNCTION_END));
    const match call = match_tag(tag, 0, STR(TOOL_CALL_END));
    const bool partly = parameter == PARTLY || function == PARTLY || call == PARTLY;
    if (partly && !r->final) return OK;
    *again = true;
    if (function == YES || call == YES) {
        if (function == YES) consume(r, sizeof FUNCTION_END - 1);
        return end_call(r, e);
    }
    size_t end = sizeof PARAMETER - 1;
    str key;
    const match named = parameter == YES ? read_name(tag, &end, &key) : NO;
    if (named == PARTLY && !r->final) {
        *again = false;
        return OK;
    }
    if (named == YES) TRY(begin_parameter(r, key, e));
    consume(r, named == YES ? end : 1);
    return OK;
}

/* Does the value end at s[at], a '<'? It does at a closing tag that the call's structure follows.
 * *skip: how much of the tag belongs to the value's end. */
static match match_value_end(const reply *r, str s, size_t at, size_t *skip)
{
    const match own = match_tag(s, at, STR(PARAMETER_END));
    const match function = match_tag(s, at, STR(FUNCTION_END));
    *skip = own == YES ? sizeof PARAMETER_END - 1 : 0;
    if (own != YES && function != YES) {
        if (own == NO && function == NO) return NO;
        return r->final ? YES : PARTLY; /* a tag that the limit cut is no value */
    }
    size_t next = at + (own == YES ? sizeof PARAMETER_END : sizeof FUNCTION_END) - 1;
    match m = skip_blanks(s, &next);
    if (m == YES) {
        m = match_tag(s, next, STR(TOOL_CALL_END));
        const match parameter = own == YES ? match_tag(s, next, STR(PARAMETER)) : NO;
        const match end = own == YES ? match_tag(s, next, STR(FUNCTION_END)) : NO;
        if (parameter > m) m = parameter;
        if (end > m) m = end;
    }
    return m == PARTLY && r->final ? YES : m;
}

static status end_value(reply *r, str text, error *e)
{
    if (text.len && text.ptr[text.len - 1] == '\n') text.len--;
    if (r->types & TOOLSET_STRING) {
        jsonw_escape(&r->scratch, text);
        buf_char(&r->scratch, '"');
    } else {
        TRY(toolset_convert(&r->scratch, text, r->types, e));
    }
    r->state = ARGUMENTS;
    return send_arguments(r, e);
}

/* A string goes out up to `n`; other values wait for their end. */
static status pass_value(reply *r, size_t n, error *e)
{
    if (!(r->types & TOOLSET_STRING) || n == 0) return OK;
    jsonw_escape(&r->scratch, str_sub(view(r), 0, n));
    const size_t seen = r->seen - n;
    consume(r, n);
    r->seen = seen;
    return send_arguments(r, e);
}

static status step_value(reply *r, bool *again, error *e)
{
    str s = view(r);
    if (r->value_begins) {
        if (s.len == 0 && !r->final) return OK;
        r->value_begins = false;
        if (s.len && s.ptr[0] == '\n') consume(r, 1);
        s = view(r);
    }
    for (;;) {
        const size_t at = find_char(s, r->seen, '<');
        size_t skip = 0;
        const match m = at < s.len ? match_value_end(r, s, at, &skip) : NO;
        if (m == YES || (at == s.len && r->final)) {
            TRY(end_value(r, str_sub(s, 0, at), e));
            consume(r, at + skip);
            *again = true;
            return OK;
        }
        if (m == NO && at < s.len) {
            r->seen = at + 1;
            continue;
        }
        r->seen = at;
        /* a line break before the closing tag is not part of the value */
        return pass_value(r, at > 0 && s.ptr[at - 1] == '\n' ? at - 1 : at, e);
    }
}

static status step_after_call(reply *r, bool *again)
{
    const str s = view(r);
    size_t at = 0;
    match m = skip_blanks(s, &at);
    if (m == YES) m = match_tag(s, at, STR(TOOL_CALL_END));
    if (m == PARTLY && !r->final) return OK;
    if (m == YES) consume(r, at + sizeof TOOL_CALL_END - 1);
    else if (m == PARTLY) consume(r, s.len);
    r->state = TEXT;
    *again = true;
    return OK;
}

/* ---- the JSON form ---- */

/* Appends a call's arguments as an object; false: they are none. */
static status put_json_arguments(buf *out, const json_node *n, bool *done, error *e)
{
    str text;
    jsonw w;
    jsonw_init(&w, out);
    *done = json_kind(n) == JSON_OBJECT;
    if (*done) jsonw_node(&w, n);
    if (!json_str(n, &text)) return OK;
    json_doc *doc; /* arguments that were written as a text of JSON */
    error ignored;
    const status s = json_parse(&doc, text, JSON_KEEP_BIGINT, "arguments", &ignored);
    if (s == E_NOMEM) return error_set(e, s, "reply: out of memory");
    if (s) return OK;
    *done = json_kind(json_root(doc)) == JSON_OBJECT;
    if (*done) jsonw_node(&w, json_root(doc));
    json_free(doc);
    return OK;
}

/* One {"name", "arguments"}: sent if `now`, else only checked. */
static status take_json_call(reply *r, const json_node *n, bool now, bool *valid, error *e)
{
    str name;
    *valid = json_str(json_get(n, "name"), &name) && toolset_find(&r->tools, name);
    if (!*valid) return OK;
    buf_clear(&r->scratch);
    TRY(put_json_arguments(&r->scratch, json_get(n, "arguments"), valid, e));
    if (!now) {
        buf_clear(&r->scratch);
        return OK;
    }
    TRY(begin_call(r, name, e));
    TRY(send_arguments(r, e));
    return send(r, REPLY_CALL_END, STR(""), e);
}

/* All calls in `text`, or none of them when one is no call. */
static status take_json(reply *r, str text, bool *taken, error *e)
{
    json_doc *doc;
    error ignored;
    *taken = false;
    status s = json_parse(&doc, text, JSON_KEEP_BIGINT, "call", &ignored);
    if (s == E_NOMEM) return error_set(e, s, "reply: out of memory");
    if (s) return OK;
    const json_node *root = json_root(doc);
    const bool list = json_kind(root) == JSON_ARRAY;
    const size_t count = list ? json_len(root) : 1;
    bool valid = count > 0;
    for (int now = 0; now < 2 && valid; now++) {
        if (now && r->back == THINK) buf_clear(&r->space);
        for (size_t i = 0; i < count && valid && !s; i++)
            s = take_json_call(r, list ? json_at(root, i) : root, now, &valid, e);
        if (s) break;
    }
    *taken = valid && !s;
    json_free(doc);
    return s;
}

/* As it stands, with open brackets closed, with single backslashes doubled. */
static status take_json_repaired(reply *r, str text, bool *taken, error *e)
{
    buf fixed;
    buf_init(&fixed, MAX_HELD);
    *taken = false;
    status s = OK;
    if (toolset_close_brackets(&fixed, text)) s = take_json(r, buf_view(&fixed), taken, e);
    if (!s && !*taken && memchr(text.ptr, '\\', text.len)) {
        buf doubled;
        buf_init(&doubled, MAX_HELD);
        for (size_t i = 0; i < fixed.len; i++) {
            if (fixed.ptr[i] == '\\') buf_char(&doubled, '\\');
            buf_char(&doubled, fixed.ptr[i]);
        }
        s = buf_status(&doubled, "reply", e);
        if (!s) s = take_json(r, buf_view(&doubled), taken, e);
        buf_free(&doubled);
    }
    if (!s) s = buf_status(&fixed, "reply", e);
    buf_free(&fixed);
    return s;
}

/* Moves r->seen to the end of the JSON value, or to a '<' that cannot be part of it. */
static bool find_json_end(reply *r, str s)
{
    for (; r->seen < s.len; r->seen++) {
        const char c = s.ptr[r->seen];
        if (r->in_string) {
            if (r->escaped) r->escaped = false;
            else if (c == '\\') r->escaped = true;
            else if (c == '"') r->in_string = false;
            continue;
        }
        if (c == '<') return true;
        if (c == '"') r->in_string = true;
        if (c == '{' || c == '[') r->depth++;
        if ((c == '}' || c == ']') && --r->depth == 0) {
            r->seen++;
            return true;
        }
    }
    return false;
}

static status step_json(reply *r, bool *again, error *e)
{
    const str s = view(r);
    const bool ended = find_json_end(r, s);
    if (!ended && !r->final) return OK;
    bool taken = false;
    const size_t end = r->seen;
    if (ended) TRY(take_json_repaired(r, str_sub(s, r->json_from, end), &taken, e));
    *again = true;
    if (taken) {
        consume(r, end);
        r->state = AFTER_CALL;
        return OK;
    }
    r->state = r->back;
    consume(r, sizeof TOOL_CALL - 1);
    const reply_kind kind = r->state == THINK ? REPLY_REASONING : REPLY_CONTENT;
    return send_text(r, kind, STR(TOOL_CALL), e);
}

/* ---- driving ---- */

static status step(reply *r, bool *again, error *e)
{
    switch (r->state) {
    case START:
    case THINK_START: return step_start(r, again);
    case THINK:
    case TEXT: return step_text(r, again, e);
    case ARGUMENTS: return step_arguments(r, again, e);
    case VALUE: return step_value(r, again, e);
    case AFTER_CALL: return step_after_call(r, again);
    case JSON: return step_json(r, again, e);
    }
    return OK;
}

/* Where the last whole character of the text ends. */
static size_t whole_characters(str s)
{
    for (size_t back = 1; back <= 3 && back <= s.len; back++) {
        const unsigned char c = (unsigned char)s.ptr[s.len - back];
        if ((c & 0xc0) == 0x80) continue;
        const size_t need = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
        return need > back ? s.len - back : s.len;
    }
    return s.len;
}

static status advance(reply *r, error *e)
{
    TRY(buf_status(&r->held, "reply", e));
    r->limit = r->final ? r->held.len : whole_characters(buf_view(&r->held));
    for (bool again = true; again;) {
        again = false;
        TRY(step(r, &again, e));
    }
    buf_consume(&r->held, r->at);
    r->at = 0;
    return OK;
}

status reply_new(reply **out, bool start_in_think, const json_node *tools, reply_sink *sink,
                 void *arg, error *e)
{
    *out = NULL;
    reply *r = mem_zalloc(sizeof *r);
    if (!r) return error_set(e, E_NOMEM, "reply: out of memory");
    r->state = start_in_think ? THINK_START : START;
    r->sink = sink;
    r->arg = arg;
    buf_init(&r->held, MAX_HELD);
    buf_init(&r->space, MAX_HELD);
    buf_init(&r->scratch, MAX_HELD);
    const status s = toolset_init(&r->tools, tools, e);
    if (s) reply_free(r);
    else *out = r;
    return s;
}

void reply_free(reply *r)
{
    if (!r) return;
    toolset_free(&r->tools);
    buf_free(&r->held);
    buf_free(&r->space);
    buf_free(&r->scratch);
    mem_free(r);
}

status reply_put(reply *r, str bytes, error *e)
{
    buf_add(&r->held, bytes);
    return advance(r, e);
}

status reply_finish(reply *r, error *e)
{
    r->final = true;
    TRY(advance(r, e));
    const bool trailing = r->state == TEXT && r->content_sent && r->calls == 0;
    return trailing ? send(r, REPLY_CONTENT, buf_view(&r->space), e) : OK;
}

int reply_calls(const reply *r)
{
    return r->calls;
}
