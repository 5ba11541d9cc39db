/* responses.c - see responses.h. A request is translated into one of /v1/chat/completions, which
 * checks it; answers have the shapes of the OpenAI Responses API: output items with ids of their
 * own, named and numbered events, no [DONE]. */
#include "server/responses.h"

#include <stdio.h>

#include "server/openai.h"
#include "base/banned.h"

/* ---- requests ---- */

/* The assistant's reasoning, text and calls are items of their own here and one message in a chat:
 * they are collected until somebody else speaks. */
typedef struct turn {
    jsonw *w;
    bool open, has_text, has_calls;
    buf reasoning;
} turn;

static void turn_open(turn *t)
{
    if (t->open) return;
    t->open = true;
    jsonw_object(t->w);
    jsonw_member_text(t->w, "role", "assistant");
    if (t->reasoning.len) {
        jsonw_member_str(t->w, "reasoning_content", buf_view(&t->reasoning));
        buf_clear(&t->reasoning);
    }
}

static void turn_close(turn *t)
{
    if (!t->open) return;
    if (t->has_calls) jsonw_end_array(t->w);
    jsonw_end_object(t->w);
    t->open = t->has_text = t->has_calls = false;
}

static bool check_parts(const json_node *item, size_t at, const char *member, api_error *e)
{
    static const char *const texts[] = { "input_text", "output_text", "text", "refusal" };
    const json_node *parts = json_get(item, member);
    if (json_kind(parts) != JSON_ARRAY) return true;
    for (size_t i = 0; i < json_len(parts); i++) {
        bool known = false;
        for (size_t j = 0; j < sizeof texts / sizeof *texts; j++)
            known |= fields_is(json_at(parts, i), texts[j]);
        if (known) continue;
        char path[64];
        snprintf(path, sizeof path, "input.%zu.%s.%zu", at, member, i);
        return fields_refuse(e, path, "%s: this model reads text, not parts of type \"%.40s\"",
                             path, fields_type(json_at(parts, i)));
    }
    return true;
}

static void put_parts(jsonw *w, const json_node *parts)
{
    jsonw_array(w);
    for (size_t i = 0; i < json_len(parts); i++) {
        const json_node *p = json_at(parts, i);
        jsonw_object(w);
        jsonw_member_text(w, "type", "text");
        fields_copy(w, p, fields_is(p, "refusal") ? "refusal" : "text", "text");
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

static void put_content(jsonw *w, const json_node *content)
{
    jsonw_key(w, "content");
    if (json_kind(content) == JSON_ARRAY) put_parts(w, content);
    else if (content) jsonw_node(w, content);
    else jsonw_null(w);
}

static void put_message(turn *t, const json_node *item)
{
    const char *role = json_text(json_get(item, "role"));
    if (role && strcmp(role, "assistant") == 0) {
        if (t->has_text || t->has_calls) turn_close(t);
        turn_open(t);
        t->has_text = true;
        put_content(t->w, json_get(item, "content"));
        return;
    }
    turn_close(t);
    jsonw_object(t->w);
    fields_copy(t->w, item, "role", "role");
    put_content(t->w, json_get(item, "content"));
    jsonw_end_object(t->w);
}

static void put_call(turn *t, const json_node *item)
{
    turn_open(t);
    if (!t->has_calls) {
        jsonw_member_array(t->w, "tool_calls");
        t->has_calls = true;
    }
    jsonw_object(t->w);
    fields_copy(t->w, item, "call_id", "id");
    jsonw_member_text(t->w, "type", "function");
    jsonw_member_object(t->w, "function");
    fields_copy(t->w, item, "name", "name");
    fields_copy(t->w, item, "arguments", "arguments");
    jsonw_end_object(t->w);
    jsonw_end_object(t->w);
}

static void put_call_output(turn *t, const json_node *item)
{
    turn_close(t);
    jsonw_object(t->w);
    jsonw_member_text(t->w, "role", "tool");
    fields_copy(t->w, item, "call_id", "tool_call_id");
    put_content(t->w, json_get(item, "output"));
    jsonw_end_object(t->w);
}

/* The texts of a reasoning item: its content, or the summary when it has none. */
static void keep_reasoning(turn *t, const json_node *item)
{
    const json_node *texts = json_get(item, "content");
    turn_close(t);
    if (json_len(texts) == 0) texts = json_get(item, "summary");
    for (size_t i = 0; i < json_len(texts); i++) {
        str text;
        if (json_str(json_get(json_at(texts, i), "text"), &text)) buf_add(&t->reasoning, text);
    }
}

static bool put_items(jsonw *w, const json_node *input, api_error *e)
{
    turn t = { .w = w };
    bool good = true;
    buf_init(&t.reasoning, CALL_MAX_OUTPUT);
    for (size_t i = 0; good && i < json_len(input); i++) {
        const json_node *item = json_at(input, i);
        if (fields_is(item, "function_call")) put_call(&t, item);
        else if (fields_is(item, "reasoning")) keep_reasoning(&t, item);
        else if (fields_is(item, "function_call_output")) {
            good = check_parts(item, i, "output", e);
            if (good) put_call_output(&t, item);
        } else if (fields_is(item, "message") || !fields_present(item, "type")) {
            good = check_parts(item, i, "content", e);
            if (good) put_message(&t, item);
        } else {
            good =
                fields_refuse(e, "input", "input.%zu: an item of type \"%.40s\" is not supported",
                              i, fields_type(item));
        }
    }
    turn_close(&t);
    if (t.reasoning.failed) w->out->failed = t.reasoning.failed;
    buf_free(&t.reasoning);
    return good;
}

static bool put_messages(jsonw *w, const json_node *body, api_error *e)
{
    const json_node *input = json_get(body, "input");
    const char *instructions = NULL;
    if (json_kind(input) != JSON_STRING && json_len(input) == 0)
        return fields_refuse(e, "input", "'input': want a text or a list of items, not empty");
    if (json_kind(input) != JSON_STRING && json_kind(input) != JSON_ARRAY)
        return fields_refuse(e, "input", "'input': found %s, want a text or a list of items",
                             json_kind_name(input));
    if (fields_present(body, "instructions") &&
        !(instructions = json_text(json_get(body, "instructions"))))
        return fields_refuse(e, "instructions", "'instructions': want a string");
    jsonw_member_array(w, "messages");
    if (instructions) {
        jsonw_object(w);
        jsonw_member_text(w, "role", "system");
        jsonw_member_text(w, "content", instructions);
        jsonw_end_object(w);
    }
    bool good = true;
    if (json_kind(input) == JSON_STRING) {
        jsonw_object(w);
        jsonw_member_text(w, "role", "user");
        fields_copy(w, body, "input", "content");
        jsonw_end_object(w);
    } else {
        good = put_items(w, input, e);
    }
    jsonw_end_array(w);
    return good;
}

/* Other tools than functions run at the provider, or need more than JSON: agents send them along
 * wherever they work. The model is not told about them, so it cannot ask for them. */
static bool put_tools(jsonw *w, const json_node *body, api_error *e)
{
    const json_node *tools = NULL;
    if (!fields_array(body, "tools", &tools, e)) return false;
    jsonw_member_array(w, "tools");
    for (size_t i = 0; i < json_len(tools); i++) {
        const json_node *tool = json_at(tools, i);
        if (!*fields_type(tool))
            return fields_refuse(e, "tools", "tools.%zu.type: want the kind of tool", i);
        if (fields_is(tool, "function")) openai_put_tool(w, tool, "parameters");
    }
    jsonw_end_array(w);
    const json_node *wanted = json_get(body, "tool_choice");
    if (json_kind(wanted) != JSON_OBJECT) {
        fields_copy(w, body, "tool_choice", "tool_choice");
        return true;
    }
    if (!fields_is(wanted, "function"))
        return fields_refuse(e, "tool_choice", "'tool_choice.type': found \"%.40s\", want function",
                             fields_type(wanted));
    jsonw_key(w, "tool_choice");
    openai_put_tool_choice(w, wanted);
    return true;
}

static bool put_format(jsonw *w, const json_node *body, api_error *e)
{
    const json_node *text = NULL, *format = NULL;
    if (!fields_object(body, "text", &text, e) || !fields_object(text, "format", &format, e))
        return false;
    if (!format) return true;
    jsonw_key(w, "response_format");
    if (fields_is(format, "json_schema")) openai_put_schema(w, format);
    else jsonw_node(w, format);
    return true;
}

/* Log-probabilities are asked for here; the rest is about tools that are not there. */
static bool check_include(const json_node *body, api_error *e)
{
    const json_node *list = NULL;
    if (!fields_array(body, "include", &list, e)) return false;
    for (size_t i = 0; i < json_len(list); i++) {
        const char *what = json_text(json_at(list, i));
        if (what && strcmp(what, "message.output_text.logprobs") == 0)
            return fields_refuse(e, "include", "'include': %s is not supported", what);
    }
    return true;
}

/* What this server does not do. */
static bool check_unsupported(const json_node *body, api_error *e)
{
    static const refused_field refused[] = {
        { "conversation", NULL },
        { "prompt", NULL },
        { "max_tool_calls", NULL },
        { "moderation", NULL },
        { "n", NULL },
        { "logprobs", NULL },
        { "top_logprobs", NULL },
        { "messages", "input" },
        { "system", "instructions" },
        { "max_tokens", "max_output_tokens" },
        { "max_completion_tokens", "max_output_tokens" },
        { "stop_sequences", "stop" },
        { "response_format", "text.format" },
        { "reasoning_effort", "reasoning.effort" },
        { "thinking", "reasoning" },
    };
    bool background = false;
    if (!fields_bool(body, "background", &background, e)) return false;
    if (background) return fields_refuse(e, "background", "'background': not supported");
    if (!fields_absent(body, refused, sizeof refused / sizeof *refused, e) ||
        !check_include(body, e))
        return false;
    if (!fields_present(body, "previous_response_id")) return true;
    fields_refuse(e, "previous_response_id",
                  "'previous_response_id': nothing is stored; send the whole input");
    e->status = 404;
    e->type = "not_found_error";
    return false;
}

static bool parse_request(call *c, const json_node *body, api_error *e)
{
    static const char *const same[] = {
        "model", "stream", "stop", "parallel_tool_calls", "chat_template_kwargs", "reasoning_budget"
    };
    const json_node *reasoning = NULL;
    int limit = 0;
    if (!check_unsupported(body, e) || !fields_object(body, "reasoning", &reasoning, e) ||
        !fields_int(body, "max_output_tokens", 1, 1 << 30, &limit, e))
        return false;
    buf text;
    jsonw w;
    buf_init(&text, CALL_MAX_OUTPUT);
    jsonw_init(&w, &text);
    jsonw_object(&w);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) fields_copy(&w, body, same[i], same[i]);
    call_copy_sampling(&w, body);
    fields_copy(&w, body, "max_output_tokens", "max_tokens");
    fields_copy(&w, reasoning, "effort", "reasoning_effort");
    bool good = put_messages(&w, body, e) && put_tools(&w, body, e) && put_format(&w, body, e);
    jsonw_end_object(&w);
    good = good && call_parse_translated(c, &openai_chat, &text, e);
    buf_free(&text);
    return good;
}

/* ---- answers ---- */

/* An item's id says what it is, whose it is, and its place in the output. */
static void item_id(const call *c, const choice *k, const part *p, char out[80])
{
    const char *prefix = p->kind == INGOT_THINKING     ? "rs_"
                         : p->kind == INGOT_TOOL_BEGIN ? "fc_"
                                                       : "msg_";
    const char *own = strchr(c->id, '_');
    snprintf(out, 80, "%s%s_%d", prefix, own ? own + 1 : c->id, (int)(p - k->parts));
}

static void write_text_part(jsonw *w, const part *p, str text)
{
    jsonw_object(w);
    jsonw_member_text(w, "type", p->kind == INGOT_THINKING ? "reasoning_text" : "output_text");
    jsonw_member_str(w, "text", text);
    if (p->kind == INGOT_TEXT) {
        jsonw_member_array(w, "annotations");
        jsonw_end_array(w);
    }
    jsonw_end_object(w);
}

static bool is_cut(const choice *k)
{
    return k->ended && k->finish == INGOT_FINISH_LENGTH;
}

/* An item with its content, or as a stream announces it. */
static void write_item(const call *c, jsonw *w, const choice *k, const part *p, bool full)
{
    char id[80];
    const bool cut = is_cut(k) && p == &k->parts[k->n_parts - 1];
    item_id(c, k, p, id);
    jsonw_object(w);
    jsonw_member_text(w, "id", id);
    jsonw_member_text(w, "status", !full ? "in_progress" : cut ? "incomplete" : "completed");
    if (p->kind == INGOT_TOOL_BEGIN) {
        jsonw_member_text(w, "type", "function_call");
        jsonw_member_text(w, "call_id", k->calls[p->call].id);
        jsonw_member_text(w, "name", k->calls[p->call].name);
        jsonw_member_str(w, "arguments", full ? call_arguments(&k->calls[p->call]) : STR(""));
        jsonw_end_object(w);
        return;
    }
    jsonw_member_text(w, "type", p->kind == INGOT_THINKING ? "reasoning" : "message");
    if (p->kind == INGOT_THINKING) {
        jsonw_member_array(w, "summary");
        jsonw_end_array(w);
    } else {
        jsonw_member_text(w, "role", "assistant");
    }
    jsonw_member_array(w, "content");
    if (full) write_text_part(w, p, call_part_text(k, p));
    jsonw_end_array(w);
    jsonw_end_object(w);
}

static void write_usage(jsonw *w, const ingot_usage *u)
{
    jsonw_object(w);
    jsonw_member_i64(w, "input_tokens", u->prompt_tokens);
    jsonw_member_object(w, "input_tokens_details");
    jsonw_member_i64(w, "cached_tokens", u->cached_tokens);
    jsonw_member_i64(w, "cache_write_tokens", 0);
    jsonw_end_object(w);
    jsonw_member_i64(w, "output_tokens", u->completion_tokens);
    jsonw_member_object(w, "output_tokens_details");
    jsonw_member_i64(w, "reasoning_tokens", u->reasoning_tokens);
    jsonw_end_object(w);
    jsonw_member_i64(w, "total_tokens", u->prompt_tokens + u->completion_tokens);
    jsonw_end_object(w);
}

/* A member of the request as it came, or what stands for it. */
static void echo(const call *c, jsonw *w, const char *name, str otherwise)
{
    jsonw_key(w, name);
    if (fields_present(json_root(c->doc), name)) jsonw_node(w, json_get(json_root(c->doc), name));
    else jsonw_raw(w, otherwise);
}

/* failed: what went wrong, or NULL. */
static void write_response(const call *c, jsonw *w, const char *state, const api_error *failed)
{
    const choice *k = &c->choices[0];
    jsonw_object(w);
    jsonw_member_text(w, "id", c->id);
    jsonw_member_text(w, "object", "response");
    jsonw_member_i64(w, "created_at", c->created);
    jsonw_member_text(w, "status", state);
    jsonw_member_text(w, "model", c->service->name);
    jsonw_member_array(w, "output");
    for (int i = 0; k->ended && i < k->n_parts; i++) write_item(c, w, k, &k->parts[i], true);
    jsonw_end_array(w);
    if (failed) {
        jsonw_member_object(w, "error");
        jsonw_member_text(w, "code", "server_error");
        jsonw_member_text(w, "message", failed->message);
        jsonw_end_object(w);
    } else {
        jsonw_member_text(w, "error", NULL);
    }
    jsonw_member_raw(w, "incomplete_details",
                     is_cut(k) ? "{\"reason\":\"max_output_tokens\"}" : "null");
    jsonw_member_text(w, "previous_response_id", NULL);
    echo(c, w, "instructions", STR("null"));
    echo(c, w, "max_output_tokens", STR("null"));
    echo(c, w, "metadata", STR("{}"));
    echo(c, w, "parallel_tool_calls", STR("true"));
    echo(c, w, "reasoning", STR("{\"effort\":null,\"summary\":null}"));
    echo(c, w, "text", STR("{\"format\":{\"type\":\"text\"}}"));
    echo(c, w, "tool_choice", STR("\"auto\""));
    echo(c, w, "tools", STR("[]"));
    jsonw_member_fixed(w, "temperature", (double)c->sampling.temperature, 6);
    jsonw_member_fixed(w, "top_p", (double)c->sampling.top_p, 6);
    jsonw_member_text(w, "truncation", "disabled");
    jsonw_member_bool(w, "store", false);
    jsonw_key(w, "usage");
    if (k->ended) write_usage(w, &k->usage);
    else jsonw_null(w);
    if (k->ended) {
        jsonw_key(w, "timings");
        call_write_timings(w, &k->usage);
    }
    jsonw_end_object(w);
}

static const char *final_state(const call *c)
{
    return is_cut(&c->choices[0]) ? "incomplete" : "completed";
}

static void responses_whole(call *c, buf *out)
{
    jsonw w;
    jsonw_init(&w, out);
    write_response(c, &w, final_state(c), NULL);
}

/* ---- streams ---- */

static void open_event(call *c, jsonw *w, buf *out, const char *name)
{
    call_event_begin(out, name);
    jsonw_init(w, out);
    jsonw_object(w);
    jsonw_member_text(w, "type", name);
    jsonw_member_i64(w, "sequence_number", c->sequence++);
}

static void close_event(jsonw *w, buf *out)
{
    jsonw_end_object(w);
    call_event_end(out);
}

static void put_response(call *c, buf *out, const char *name, const char *state,
                         const api_error *failed)
{
    jsonw w;
    open_event(c, &w, out, name);
    jsonw_key(&w, "response");
    write_response(c, &w, state, failed);
    close_event(&w, out);
}

/* An event about a place in the output, up to the members of its own. */
static void open_item_event(call *c, jsonw *w, buf *out, const char *name, const part *p)
{
    char id[80];
    const choice *k = &c->choices[0];
    open_event(c, w, out, name);
    item_id(c, k, p, id);
    jsonw_member_text(w, "item_id", id);
    jsonw_member_i64(w, "output_index", p - k->parts);
    if (p->kind != INGOT_TOOL_BEGIN) jsonw_member_i64(w, "content_index", 0);
}

static void put_item(call *c, buf *out, const char *name, const part *p, bool full)
{
    jsonw w;
    const choice *k = &c->choices[0];
    open_event(c, &w, out, name);
    jsonw_member_i64(&w, "output_index", p - k->parts);
    jsonw_key(&w, "item");
    write_item(c, &w, k, p, full);
    close_event(&w, out);
}

static void put_part(call *c, buf *out, const char *name, const part *p, str text)
{
    jsonw w;
    open_item_event(c, &w, out, name, p);
    jsonw_key(&w, "part");
    write_text_part(&w, p, text);
    close_event(&w, out);
}

/* Text as a delta or as what it became. */
static void put_text(call *c, buf *out, const char *name, const part *p, const char *member,
                     str text)
{
    jsonw w;
    open_item_event(c, &w, out, name, p);
    jsonw_member_str(&w, member, text);
    if (p->kind == INGOT_TEXT) {
        jsonw_member_array(&w, "logprobs");
        jsonw_end_array(&w);
    }
    if (p->kind == INGOT_TOOL_BEGIN && strcmp(member, "arguments") == 0)
        jsonw_member_text(&w, "name", c->choices[0].calls[p->call].name);
    close_event(&w, out);
}

static void finish_item(call *c, buf *out)
{
    const choice *k = &c->choices[0];
    if (!k->n_told) return;
    const part *p = &k->parts[k->n_told - 1];
    if (p->kind == INGOT_TOOL_BEGIN) {
        put_text(c, out, "response.function_call_arguments.done", p, "arguments",
                 call_arguments(&k->calls[p->call]));
    } else {
        const str text = call_part_text(k, p);
        const bool thinking = p->kind == INGOT_THINKING;
        put_text(c, out, thinking ? "response.reasoning_text.done" : "response.output_text.done", p,
                 "text", text);
        put_part(c, out, "response.content_part.done", p, text);
    }
    put_item(c, out, "response.output_item.done", p, true);
}

static void start_item(call *c, buf *out)
{
    choice *k = &c->choices[0];
    finish_item(c, out);
    const part *p = &k->parts[k->n_told++];
    put_item(c, out, "response.output_item.added", p, false);
    if (p->kind != INGOT_TOOL_BEGIN) put_part(c, out, "response.content_part.added", p, STR(""));
}

static void responses_begin(call *c, buf *out)
{
    put_response(c, out, "response.created", "in_progress", NULL);
    put_response(c, out, "response.in_progress", "in_progress", NULL);
}

static void responses_event(call *c, int prompt, const ingot_event *ev, buf *out)
{
    choice *k = &c->choices[0];
    const str piece = { ev->text, ev->len };
    (void)prompt; /* there is one */
    if (k->n_told < k->n_parts) start_item(c, out);
    const part *p = k->n_told ? &k->parts[k->n_told - 1] : NULL;
    switch (ev->kind) {
    case INGOT_TEXT: put_text(c, out, "response.output_text.delta", p, "delta", piece); break;
    case INGOT_THINKING:
        put_text(c, out, "response.reasoning_text.delta", p, "delta", piece);
        break;
    case INGOT_TOOL_ARGUMENTS:
        put_text(c, out, "response.function_call_arguments.delta", p, "delta", piece);
        break;
    case INGOT_END: finish_item(c, out); break;
    case INGOT_TOOL_BEGIN:
    case INGOT_TOOL_END:
    case INGOT_PROGRESS: break;
    }
}

static void responses_end(call *c, buf *out)
{
    put_response(c, out, is_cut(&c->choices[0]) ? "response.incomplete" : "response.completed",
                 final_state(c), NULL);
}

static void responses_fail(call *c, const api_error *e, buf *out)
{
    put_response(c, out, "response.failed", "failed", e);
}

const dialect responses_dialect = {
    .prompt_field = "input",
    .limit_field = "max_output_tokens",
    .call_prefix = "call_",
    .schema_field = "text.format.schema",
    .parse = parse_request,
    .begin = responses_begin,
    .event = responses_event,
    .end = responses_end,
    .fail = responses_fail,
    .whole = responses_whole,
    .error = openai_error,
};
