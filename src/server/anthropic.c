/* anthropic.c - see anthropic.h. A request is translated into one of /v1/chat/completions, which
 * checks it; answers have the shapes of the Anthropic Messages API (blocks with an index, named
 * events, no [DONE]). The thinking signature of that API is a fixed word here: there is nothing to
 * sign. */
#include "server/anthropic.h"

#include <stdio.h>

#include "base/mem.h"
#include "server/openai.h"
#include "base/banned.h"

/* ---- requests ---- */

static bool refuse_block(api_error *e, size_t message, size_t block, const char *role,
                         const json_node *found)
{
    char at[64];
    snprintf(at, sizeof at, "messages.%zu.content.%zu", message, block);
    return fields_refuse(e, at, "%s: a block of type \"%.40s\" is not supported in a message of %s",
                         at, fields_type(found), role);
}

/* A result may hold blocks, too: all of them text. */
static bool check_result(const json_node *result, size_t message, size_t block, api_error *e)
{
    const json_node *inner = json_get(result, "content");
    if (json_kind(inner) != JSON_ARRAY) return true;
    for (size_t i = 0; i < json_len(inner); i++) {
        char at[96];
        if (fields_is(json_at(inner, i), "text")) continue;
        snprintf(at, sizeof at, "messages.%zu.content.%zu.content.%zu", message, block, i);
        return fields_refuse(e, at, "%s: this model reads text, not blocks of type \"%.40s\"", at,
                             fields_type(json_at(inner, i)));
    }
    return true;
}

/* The result of a call is a message of its own, before what the user says beside it. */
static void put_result(jsonw *w, const json_node *block)
{
    jsonw_object(w);
    jsonw_member_text(w, "role", "tool");
    fields_copy(w, block, "tool_use_id", "tool_call_id");
    fields_copy(w, block, "content", "content");
    jsonw_end_object(w);
}

static bool put_user(jsonw *w, const json_node *blocks, size_t at, api_error *e)
{
    size_t others = 0;
    for (size_t i = 0; i < json_len(blocks); i++) {
        const json_node *block = json_at(blocks, i);
        if (fields_is(block, "tool_result")) {
            if (!check_result(block, at, i, e)) return false;
            put_result(w, block);
        } else if (fields_is(block, "text")) {
            others++;
        } else {
            return refuse_block(e, at, i, "the user", block);
        }
    }
    if (!others) return true;
    jsonw_object(w);
    jsonw_member_text(w, "role", "user");
    jsonw_member_array(w, "content");
    for (size_t i = 0; i < json_len(blocks); i++)
        if (fields_is(json_at(blocks, i), "text")) jsonw_node(w, json_at(blocks, i));
    jsonw_end_array(w);
    jsonw_end_object(w);
    return true;
}

/* The texts of all blocks of one type, joined; nothing when there are none. */
static void put_joined(jsonw *w, const json_node *blocks, const char *type, const char *member)
{
    buf text;
    bool found = false;
    buf_init(&text, CALL_MAX_OUTPUT);
    for (size_t i = 0; i < json_len(blocks); i++) {
        str piece;
        const json_node *block = json_at(blocks, i);
        if (!fields_is(block, type) || !json_str(json_get(block, type), &piece)) continue;
        buf_add(&text, piece);
        found = true;
    }
    if (found) jsonw_member_str(w, member, buf_view(&text));
    if (text.failed) w->out->failed = text.failed;
    buf_free(&text);
}

static void put_call(jsonw *w, const json_node *block)
{
    jsonw_object(w);
    fields_copy(w, block, "id", "id");
    jsonw_member_text(w, "type", "function");
    jsonw_member_object(w, "function");
    fields_copy(w, block, "name", "name");
    jsonw_key(w, "arguments");
    if (json_kind(json_get(block, "input")) == JSON_OBJECT) jsonw_node(w, json_get(block, "input"));
    else jsonw_text(w, "{}");
    jsonw_end_object(w);
    jsonw_end_object(w);
}

static bool put_assistant(jsonw *w, const json_node *blocks, size_t at, api_error *e)
{
    size_t calls = 0;
    for (size_t i = 0; i < json_len(blocks); i++) {
        const json_node *block = json_at(blocks, i);
        if (fields_is(block, "tool_use")) calls++;
        else if (!fields_is(block, "text") && !fields_is(block, "thinking") &&
                 !fields_is(block, "redacted_thinking"))
            return refuse_block(e, at, i, "the assistant", block);
    }
    jsonw_object(w);
    jsonw_member_text(w, "role", "assistant");
    put_joined(w, blocks, "thinking", "reasoning_content");
    put_joined(w, blocks, "text", "content");
    if (calls) {
        jsonw_member_array(w, "tool_calls");
        for (size_t i = 0; i < json_len(blocks); i++)
            if (fields_is(json_at(blocks, i), "tool_use")) put_call(w, json_at(blocks, i));
        jsonw_end_array(w);
    }
    jsonw_end_object(w);
    return true;
}

static bool put_messages(jsonw *w, const json_node *body, api_error *e)
{
    const json_node *messages = NULL;
    if (!fields_array(body, "messages", &messages, e)) return false;
    jsonw_member_array(w, "messages");
    if (fields_present(body, "system")) {
        jsonw_object(w);
        jsonw_member_text(w, "role", "system");
        fields_copy(w, body, "system", "content");
        jsonw_end_object(w);
    }
    for (size_t i = 0; i < json_len(messages); i++) {
        const json_node *m = json_at(messages, i), *content = json_get(m, "content");
        const char *role = json_text(json_get(m, "role"));
        const bool blocks = json_kind(content) == JSON_ARRAY;
        bool good = true;
        if (blocks && role && strcmp(role, "user") == 0) good = put_user(w, content, i, e);
        else if (blocks && role && strcmp(role, "assistant") == 0)
            good = put_assistant(w, content, i, e);
        else jsonw_node(w, m); /* plain text, or something that the chat refuses by name */
        if (!good) return false;
        if (i + 1 == json_len(messages) && role && strcmp(role, "assistant") == 0)
            return fields_refuse(e, "messages",
                                 "messages.%zu: the last message is the assistant's: an answer "
                                 "that it begins is not supported",
                                 i);
    }
    jsonw_end_array(w);
    return true;
}

static bool put_tools(jsonw *w, const json_node *body, api_error *e)
{
    const json_node *tools = NULL;
    if (!fields_array(body, "tools", &tools, e)) return false;
    if (!tools) return true;
    jsonw_member_array(w, "tools");
    for (size_t i = 0; i < json_len(tools); i++) {
        const json_node *tool = json_at(tools, i);
        if (fields_present(tool, "type") && !fields_is(tool, "custom"))
            return fields_refuse(e, "tools", "tools.%zu: type \"%.40s\" is not supported here", i,
                                 fields_type(tool));
        openai_put_tool(w, tool, "input_schema");
    }
    jsonw_end_array(w);
    return true;
}

static bool put_tool_choice(jsonw *w, const json_node *body, api_error *e)
{
    const json_node *wanted = NULL;
    bool single = false;
    if (!fields_object(body, "tool_choice", &wanted, e)) return false;
    if (!wanted) return true;
    if (!fields_bool(wanted, "disable_parallel_tool_use", &single, e)) return false;
    if (single) jsonw_member_bool(w, "parallel_tool_calls", false);
    jsonw_key(w, "tool_choice");
    if (fields_is(wanted, "tool")) {
        openai_put_tool_choice(w, wanted);
    } else if (fields_is(wanted, "any")) {
        jsonw_text(w, "required");
    } else if (fields_is(wanted, "auto") || fields_is(wanted, "none")) {
        jsonw_text(w, fields_type(wanted));
    } else {
        return fields_refuse(e, "tool_choice",
                             "'tool_choice.type': found \"%.40s\", want auto, any, tool or none",
                             fields_type(wanted));
    }
    return true;
}

/* In this API a model thinks only when it is told to. */
static bool put_thinking(jsonw *w, const json_node *body, api_error *e)
{
    const json_node *thinking = NULL, *output = NULL;
    if (!fields_object(body, "thinking", &thinking, e) ||
        !fields_object(body, "output_config", &output, e))
        return false;
    const bool on = fields_is(thinking, "enabled") || fields_is(thinking, "adaptive");
    if (thinking && !on && !fields_is(thinking, "disabled"))
        return fields_refuse(e, "thinking",
                             "'thinking.type': found \"%.40s\", want enabled, adaptive or disabled",
                             fields_type(thinking));
    jsonw_member_object(w, "chat_template_kwargs");
    jsonw_member_bool(w, "enable_thinking", on);
    jsonw_end_object(w);
    if (on) fields_copy(w, thinking, "budget_tokens", "reasoning_budget");
    if (on) fields_copy(w, output, "effort", "reasoning_effort");
    return true;
}

static bool put_format(jsonw *w, const json_node *body, api_error *e)
{
    const json_node *output = NULL, *format = NULL;
    if (!fields_object(body, "output_config", &output, e) ||
        !fields_object(output, "format", &format, e))
        return false;
    if (!format) return true;
    if (!fields_is(format, "json_schema"))
        return fields_refuse(e, "output_config",
                             "'output_config.format.type': found \"%.40s\", want json_schema",
                             fields_type(format));
    jsonw_key(w, "response_format");
    openai_put_schema(w, format);
    return true;
}

static bool translate(call *c, const json_node *body, api_error *e)
{
    static const char *const same[] = { "model", "max_tokens", "stream" };
    static const refused_field refused[] = {
        { "mcp_servers", NULL },
        { "container", NULL },
        { "compaction", NULL },
        { "thread", NULL },
        { "n", NULL },
        { "logprobs", NULL },
        { "top_logprobs", NULL },
        { "response_format", "output_config.format" },
        { "output_format", "output_config.format" },
        { "stop", "stop_sequences" },
        { "max_completion_tokens", "max_tokens" },
        { "max_output_tokens", "max_tokens" },
        { "instructions", "system" },
        { "reasoning", "thinking" },
        { "reasoning_effort", "output_config.effort" },
        { "reasoning_budget", "thinking.budget_tokens" },
        { "chat_template_kwargs", "thinking" },
        { "parallel_tool_calls", "tool_choice.disable_parallel_tool_use" },
    };
    if (!fields_absent(body, refused, sizeof refused / sizeof *refused, e)) return false;
    buf text;
    jsonw w;
    buf_init(&text, CALL_MAX_OUTPUT);
    jsonw_init(&w, &text);
    jsonw_object(&w);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) fields_copy(&w, body, same[i], same[i]);
    call_copy_sampling(&w, body);
    bool good = put_messages(&w, body, e) && put_tools(&w, body, e) &&
                put_tool_choice(&w, body, e) && put_thinking(&w, body, e) &&
                put_format(&w, body, e);
    jsonw_end_object(&w);
    good = good && call_parse_translated(c, &openai_chat, &text, e) &&
           call_parse_stop(c, body, "stop_sequences", e);
    buf_free(&text);
    return good;
}

static bool parse_messages(call *c, const json_node *body, api_error *e)
{
    if (!fields_present(body, "max_tokens"))
        return fields_refuse(e, "max_tokens", "'max_tokens': missing");
    return translate(c, body, e);
}

static void messages_error(const api_error *e, buf *out)
{
    static const struct {
        int status;
        const char *type;
    } types[] = { { 401, "authentication_error" }, { 403, "permission_error" },
                  { 404, "not_found_error" },      { 413, "request_too_large" },
                  { 429, "rate_limit_error" },     { 503, "overloaded_error" } };
    const char *type = e->status < 500 ? "invalid_request_error" : "api_error";
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].status == e->status) type = types[i].type;
    jsonw w;
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_member_text(&w, "type", "error");
    jsonw_member_object(&w, "error");
    jsonw_member_text(&w, "type", type);
    if (e->n_ctx) { /* the words that clients look for, to shorten what they send */
        char message[128];
        if (e->n_prompt >= e->n_ctx)
            snprintf(message, sizeof message, "prompt is too long: %d tokens > %d maximum",
                     e->n_prompt, e->n_ctx - 1);
        else
            snprintf(message, sizeof message,
                     "input length and `max_tokens` exceed context limit: %d + %d > %d",
                     e->n_prompt, e->n_output, e->n_ctx);
        jsonw_member_text(&w, "message", message);
    } else {
        jsonw_member_text(&w, "message", e->message);
    }
    jsonw_end_object(&w);
    jsonw_end_object(&w);
}

/* ---- answers ---- */

static void write_usage(jsonw *w, const ingot_usage *u)
{
    jsonw_member_object(w, "usage");
    jsonw_member_i64(w, "input_tokens", u->prompt_tokens - u->cached_tokens);
    jsonw_member_i64(w, "cache_creation_input_tokens", 0);
    jsonw_member_i64(w, "cache_read_input_tokens", u->cached_tokens);
    jsonw_member_i64(w, "output_tokens", u->completion_tokens);
    jsonw_end_object(w);
}

static void write_stop(jsonw *w, const choice *k)
{
    const char *reason = "end_turn";
    if (k->finish == INGOT_FINISH_LENGTH) reason = "max_tokens";
    else if (k->finish == INGOT_FINISH_TOOL_CALLS) reason = "tool_use";
    else if (k->stop) reason = "stop_sequence";
    jsonw_member_text(w, "stop_reason", reason);
    jsonw_member_text(w, "stop_sequence", k->stop);
}

/* The head of a message, up to its content. */
static void write_head(const call *c, jsonw *w)
{
    jsonw_object(w);
    jsonw_member_text(w, "id", c->id);
    jsonw_member_text(w, "type", "message");
    jsonw_member_text(w, "role", "assistant");
    jsonw_member_text(w, "model", c->service->name);
    jsonw_member_array(w, "content");
}

/* Arguments that were cut or are malformed have no value that JSON could carry: {}. */
static void write_input(jsonw *w, str arguments)
{
    json_doc *doc = NULL;
    const bool good = json_parse(&doc, arguments, JSON_KEEP_BIGINT, "arguments", NULL) == OK &&
                      json_kind(json_root(doc)) == JSON_OBJECT;
    jsonw_key(w, "input");
    if (good) jsonw_node(w, json_root(doc));
    else jsonw_raw(w, STR("{}"));
    json_free(doc);
}

/* A block with its content, or as a stream opens it. */
static void write_block(jsonw *w, const choice *k, const part *p, bool full)
{
    const str text = full ? call_part_text(k, p) : STR("");
    jsonw_object(w);
    if (p->kind == INGOT_TOOL_BEGIN) {
        jsonw_member_text(w, "type", "tool_use");
        jsonw_member_text(w, "id", k->calls[p->call].id);
        jsonw_member_text(w, "name", k->calls[p->call].name);
        write_input(w, text);
    } else {
        const bool thinking = p->kind == INGOT_THINKING;
        jsonw_member_text(w, "type", thinking ? "thinking" : "text");
        jsonw_member_str(w, thinking ? "thinking" : "text", text);
        if (thinking) jsonw_member_text(w, "signature", full ? "ingot" : "");
    }
    jsonw_end_object(w);
}

static void messages_whole(call *c, buf *out)
{
    const choice *k = &c->choices[0];
    jsonw w;
    jsonw_init(&w, out);
    write_head(c, &w);
    for (int i = 0; i < k->n_parts; i++) write_block(&w, k, &k->parts[i], true);
    jsonw_end_array(&w);
    write_stop(&w, k);
    write_usage(&w, &k->usage);
    jsonw_end_object(&w);
}

static void open_event(jsonw *w, buf *out, const char *name)
{
    call_event_begin(out, name);
    jsonw_init(w, out);
    jsonw_object(w);
    jsonw_member_text(w, "type", name);
}

static void close_event(jsonw *w, buf *out)
{
    jsonw_end_object(w);
    call_event_end(out);
}

static void messages_begin(call *c, buf *out)
{
    ingot_usage u = { 0 };
    jsonw w;
    ingot_prompt_ids(c->requests[0], &u.prompt_tokens);
    open_event(&w, out, "message_start");
    jsonw_key(&w, "message");
    write_head(c, &w);
    jsonw_end_array(&w);
    jsonw_member_text(&w, "stop_reason", NULL);
    jsonw_member_text(&w, "stop_sequence", NULL);
    write_usage(&w, &u);
    jsonw_end_object(&w);
    close_event(&w, out);
}

static void put_delta(buf *out, int index, const char *type, const char *member, str piece)
{
    jsonw w;
    open_event(&w, out, "content_block_delta");
    jsonw_member_i64(&w, "index", index);
    jsonw_member_object(&w, "delta");
    jsonw_member_text(&w, "type", type);
    jsonw_member_str(&w, member, piece);
    jsonw_end_object(&w);
    close_event(&w, out);
}

static void stop_block(const choice *k, buf *out)
{
    const int index = k->n_told - 1;
    jsonw w;
    if (index < 0) return;
    if (k->parts[index].kind == INGOT_THINKING)
        put_delta(out, index, "signature_delta", "signature", STR("ingot"));
    open_event(&w, out, "content_block_stop");
    jsonw_member_i64(&w, "index", index);
    close_event(&w, out);
}

static void start_block(choice *k, buf *out)
{
    jsonw w;
    stop_block(k, out);
    open_event(&w, out, "content_block_start");
    jsonw_member_i64(&w, "index", k->n_told);
    jsonw_key(&w, "content_block");
    write_block(&w, k, &k->parts[k->n_told], false);
    close_event(&w, out);
    k->n_told++;
}

static void messages_event(call *c, int prompt, const ingot_event *ev, buf *out)
{
    choice *k = &c->choices[0];
    const str piece = { ev->text, ev->len };
    const int index = k->n_parts - 1;
    (void)prompt; /* there is one */
    if (k->n_told < k->n_parts) start_block(k, out);
    switch (ev->kind) {
    case INGOT_TEXT: put_delta(out, index, "text_delta", "text", piece); break;
    case INGOT_THINKING: put_delta(out, index, "thinking_delta", "thinking", piece); break;
    case INGOT_TOOL_ARGUMENTS:
        put_delta(out, index, "input_json_delta", "partial_json", piece);
        break;
    case INGOT_END: stop_block(k, out); break;
    case INGOT_TOOL_BEGIN:
    case INGOT_TOOL_END:
    case INGOT_PROGRESS: break;
    }
}

static void messages_end(call *c, buf *out)
{
    const choice *k = &c->choices[0];
    jsonw w;
    open_event(&w, out, "message_delta");
    jsonw_member_object(&w, "delta");
    write_stop(&w, k);
    jsonw_end_object(&w);
    write_usage(&w, &k->usage);
    close_event(&w, out);
    open_event(&w, out, "message_stop");
    close_event(&w, out);
}

static void messages_fail(call *c, const api_error *e, buf *out)
{
    (void)c;
    call_event_begin(out, "error");
    messages_error(e, out);
    call_event_end(out);
}

const dialect anthropic_messages = {
    .prompt_field = "messages",
    .limit_field = "max_tokens",
    .schema_field = "output_config.format.schema",
    .call_prefix = "toolu_",
    .parse = parse_messages,
    .begin = messages_begin,
    .event = messages_event,
    .end = messages_end,
    .fail = messages_fail,
    .whole = messages_whole,
    .error = messages_error,
};

/* ---- counting ---- */

static const dialect counted = { .prompt_field = "messages", .parse = translate };

bool anthropic_count_tokens(const service *s, str body, buf *out, api_error *e)
{
    call *c = mem_alloc(sizeof *c);
    if (!c) return fields_no_memory(e);
    call_init(c, &counted, s, "");
    ingot_text text = { 0 };
    ingot_tokens ids = { 0 };
    ingot_error ie;
    bool good = call_parse(c, body, e);
    if (good) {
        ingot_status is = ingot_render(s->model, &c->prompts[0], &text, &ie);
        if (is == INGOT_OK)
            is = ingot_tokenize(s->model, text.ptr, text.len, INGOT_SPECIAL_ALL, &ids, &ie);
        good = is == INGOT_OK;
        if (!good) *e = call_error_of(is, &ie);
    }
    if (good) {
        jsonw w;
        jsonw_init(&w, out);
        jsonw_object(&w);
        jsonw_member_i64(&w, "input_tokens", (int64_t)ids.len);
        jsonw_end_object(&w);
    }
    ingot_tokens_free(&ids);
    ingot_text_free(&text);
    call_free(c);
    return good;
}
