/* openai.c - see openai.h. Shapes as the OpenAI API reference gives them, with the extra fields
 * that local servers share: reasoning_content, timings, top_k, min_p, repetition_penalty,
 * chat_template_kwargs, return_progress, block. */
#include "server/openai.h"

#include "base/banned.h"

void openai_error(const api_error *e, buf *out)
{
    jsonw w;
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_member_object(&w, "error");
    jsonw_member_text(&w, "message", e->message);
    jsonw_member_text(&w, "type", e->type);
    jsonw_member_text(&w, "param", e->param[0] ? e->param : NULL);
    jsonw_member_text(&w, "code", e->code);
    if (e->n_ctx) {
        jsonw_member_i64(&w, "n_prompt_tokens", e->n_prompt);
        jsonw_member_i64(&w, "n_ctx", e->n_ctx);
    }
    jsonw_end_object(&w);
    jsonw_end_object(&w);
}

/* ---- models ---- */

static void write_model(jsonw *w, const service *s)
{
    jsonw_object(w);
    jsonw_member_text(w, "id", s->name);
    jsonw_member_text(w, "object", "model");
    jsonw_member_i64(w, "created", s->created);
    jsonw_member_text(w, "owned_by", "ingot");
    jsonw_member_object(w, "meta");
    jsonw_member_i64(w, "context_length", s->context);
    jsonw_member_i64(w, "n_ctx", s->context);
    jsonw_member_i64(w, "n_vocab", s->info.n_vocab);
    jsonw_member_i64(w, "n_token", s->info.n_token);
    jsonw_member_i64(w, "size", (int64_t)s->info.king_bytes);
    jsonw_member_text(w, "pack", s->info.identity);
    jsonw_member_text(w, "drafter", s->drafter);
    jsonw_end_object(w);
    jsonw_end_object(w);
}

void openai_model(const service *s, buf *out)
{
    jsonw w;
    jsonw_init(&w, out);
    write_model(&w, s);
}

void openai_models(const service *s, buf *out)
{
    jsonw w;
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_member_text(&w, "object", "list");
    jsonw_member_array(&w, "data");
    write_model(&w, s);
    jsonw_end_array(&w);
    jsonw_end_object(&w);
}

/* ---- translated requests ---- */

static void open_function(jsonw *w, const json_node *from)
{
    jsonw_object(w);
    jsonw_member_text(w, "type", "function");
    jsonw_member_object(w, "function");
    fields_copy(w, from, "name", "name");
}

static void close_function(jsonw *w)
{
    jsonw_end_object(w);
    jsonw_end_object(w);
}

void openai_put_tool(jsonw *w, const json_node *tool, const char *parameters)
{
    open_function(w, tool);
    fields_copy(w, tool, "description", "description");
    fields_copy(w, tool, parameters, "parameters");
    close_function(w);
}

void openai_put_schema(jsonw *w, const json_node *format)
{
    jsonw_object(w);
    jsonw_member_text(w, "type", "json_schema");
    jsonw_member_object(w, "json_schema");
    fields_copy(w, format, "schema", "schema");
    jsonw_end_object(w);
    jsonw_end_object(w);
}

void openai_put_tool_choice(jsonw *w, const json_node *wanted)
{
    open_function(w, wanted);
    close_function(w);
}

/* ---- requests ---- */

static bool parse_common(call *c, const json_node *body, api_error *e)
{
    const json_node *options = NULL;
    const char *model = NULL;
    if (!fields_text(body, "model", &c->mem, &model, e) ||
        !fields_bool(body, "stream", &c->stream, e) ||
        !fields_object(body, "stream_options", &options, e))
        return false;
    if (options && !c->stream)
        return fields_refuse(e, "stream_options", "'stream_options': only with 'stream': true");
    if (!fields_bool(options, "include_usage", &c->include_usage, e) ||
        !fields_bool(body, "return_progress", &c->return_progress, e) ||
        !fields_int(body, "n", 1, CALL_MAX_CHOICES, &c->sampling.n, e) ||
        !call_parse_stop(c, body, "stop", e) ||
        !fields_int(body, "max_tokens", 1, 1 << 30, &c->sampling.max_tokens, e))
        return false;
    return call_parse_sampling(c, body, e);
}

static bool parse_response_format(call *c, const json_node *body, api_error *e)
{
    const json_node *format = NULL, *holder = NULL;
    if (!fields_object(body, "response_format", &format, e)) return false;
    if (!format) return true;
    const char *type = json_text(json_get(format, "type"));
    if (type && strcmp(type, "text") == 0) return true;
    if (type && strcmp(type, "json_object") == 0) {
        c->sampling.schema = "{\"type\":\"object\"}";
        return true;
    }
    if (!type || strcmp(type, "json_schema") != 0)
        return fields_refuse(
            e, "response_format",
            "'response_format.type': found \"%.40s\", want text, json_object or json_schema",
            type ? type : "(none)");
    if (!fields_object(format, "json_schema", &holder, e)) return false;
    const json_node *schema = json_get(holder, "schema");
    if (json_kind(schema) != JSON_OBJECT)
        return fields_refuse(e, "response_format",
                             "'response_format.json_schema.schema': found %s, want an object",
                             json_kind_name(schema));
    c->sampling.schema = fields_json(schema, &c->mem);
    return c->sampling.schema || fields_no_memory(e);
}

static bool parse_chat_logprobs(call *c, const json_node *body, api_error *e)
{
    ingot_sampling *s = &c->sampling;
    if (!fields_bool(body, "logprobs", &s->logprobs, e) ||
        !fields_int(body, "top_logprobs", 0, 20, &s->top_logprobs, e))
        return false;
    if (s->top_logprobs == 0 || s->logprobs) return true;
    return fields_refuse(e, "top_logprobs", "'top_logprobs': only with 'logprobs': true");
}

static bool parse_thinking(call *c, const json_node *body, api_error *e)
{
    ingot_prompt *p = &c->prompts[0];
    const json_node *kwargs = NULL;
    if (!fields_text(body, "reasoning_effort", &c->mem, &p->reasoning_effort, e) ||
        !fields_object(body, "chat_template_kwargs", &kwargs, e) ||
        !fields_int(body, "reasoning_budget", -1, 1 << 30, &c->sampling.thinking_budget, e))
        return false;
    if (c->sampling.thinking_budget == 0 && fields_present(body, "reasoning_budget"))
        p->thinking = INGOT_THINKING_OFF;
    if (c->sampling.thinking_budget < 0) c->sampling.thinking_budget = 0; /* -1: no limit */
    if (kwargs) p->template_args = fields_json(kwargs, &c->mem);
    return !kwargs || p->template_args || fields_no_memory(e);
}

/* What this server does not do. */
static bool check_unsupported(const json_node *body, api_error *e)
{
    static const refused_field refused[] = {
        { "functions", "tools" },
        { "function_call", "tool_choice" },
        { "audio", NULL },
        { "web_search_options", NULL },
        { "moderation", NULL },
        { "system", "messages" },
        { "instructions", "messages" },
        { "max_output_tokens", "max_completion_tokens" },
        { "stop_sequences", "stop" },
    };
    const json_node *kinds = NULL;
    if (!fields_absent(body, refused, sizeof refused / sizeof *refused, e) ||
        !fields_array(body, "modalities", &kinds, e))
        return false;
    for (size_t i = 0; i < json_len(kinds); i++) {
        const char *kind = json_text(json_at(kinds, i));
        if (!kind || strcmp(kind, "text") != 0)
            return fields_refuse(e, "modalities", "'modalities': found \"%.40s\", want text alone",
                                 kind ? kind : "");
    }
    return true;
}

static bool parse_chat(call *c, const json_node *body, api_error *e)
{
    const json_node *messages = NULL, *tools = NULL;
    bool parallel = true;
    c->n_prompts = 1;
    c->prompts[0] = INGOT_INIT(ingot_prompt);
    if (!fields_array(body, "messages", &messages, e)) return false;
    if (json_len(messages) == 0)
        return fields_refuse(e, "messages", "'messages': want a list with at least one message");
    if (!check_unsupported(body, e) || !parse_common(c, body, e) ||
        !fields_int(body, "max_completion_tokens", 1, 1 << 30, &c->sampling.max_tokens, e) ||
        !fields_array(body, "tools", &tools, e) ||
        !call_parse_tools(c, tools, json_get(body, "tool_choice"), e) ||
        !fields_bool(body, "parallel_tool_calls", &parallel, e) ||
        !parse_response_format(c, body, e) || !parse_chat_logprobs(c, body, e) ||
        !parse_thinking(c, body, e))
        return false;
    c->sampling.single_call = !parallel;
    c->prompts[0].messages = fields_json(messages, &c->mem);
    return c->prompts[0].messages || fields_no_memory(e);
}

static bool parse_ids(call *c, const json_node *array, ingot_prompt *p, api_error *e)
{
    const size_t n = json_len(array);
    int32_t *ids = arena_array(&c->mem, n + 1, sizeof *ids);
    if (!ids) return fields_no_memory(e);
    for (size_t i = 0; i < n; i++) {
        int64_t id;
        if (!json_i64(json_at(array, i), &id) || id < 0 || id >= c->service->info.n_token)
            return fields_refuse(e, "prompt", "'prompt': item %zu: want a token id below %d", i,
                                 c->service->info.n_token);
        ids[i] = (int32_t)id;
    }
    p->tokens = ids;
    p->n_tokens = n;
    return true;
}

static bool parse_one_prompt(call *c, const json_node *node, api_error *e)
{
    str text;
    ingot_prompt *p = &c->prompts[c->n_prompts];
    *p = INGOT_INIT(ingot_prompt);
    if (json_kind(node) == JSON_ARRAY && json_len(node) > 0) {
        if (!parse_ids(c, node, p, e)) return false;
    } else if (json_str(node, &text) && text.len > 0) {
        p->text = arena_strdup(&c->mem, text);
        p->text_len = text.len;
        if (!p->text) return fields_no_memory(e);
    } else {
        return fields_refuse(
            e, "prompt",
            "'prompt': want a text, a list of texts or a list of token ids, none of them empty");
    }
    c->n_prompts++;
    return true;
}

static bool parse_prompts(call *c, const json_node *node, api_error *e)
{
    const size_t n = json_len(node);
    const json_type first = json_kind(json_at(node, 0));
    if (json_kind(node) != JSON_ARRAY || (first != JSON_STRING && first != JSON_ARRAY))
        return parse_one_prompt(c, node, e);
    if (n > CALL_MAX_PROMPTS)
        return fields_refuse(e, "prompt", "'prompt': found %zu prompts, want at most %d", n,
                             CALL_MAX_PROMPTS);
    for (size_t i = 0; i < n; i++) {
        if (json_kind(json_at(node, i)) != first)
            return fields_refuse(e, "prompt", "'prompt': item %zu is of another kind", i);
        if (!parse_one_prompt(c, json_at(node, i), e)) return false;
    }
    return true;
}

static bool parse_completion(call *c, const json_node *body, api_error *e)
{
    static const refused_field refused[] = {
        { "messages", "prompt" },
        { "tools", NULL },
        { "response_format", NULL },
        { "top_logprobs", "logprobs" },
        { "max_completion_tokens", "max_tokens" },
        { "max_output_tokens", "max_tokens" },
        { "stop_sequences", "stop" },
        { "suffix", NULL },
    };
    int top = -1, best_of = 1;
    bool echo = false;
    c->legacy = true;
    c->sampling.raw = true;
    if (!fields_absent(body, refused, sizeof refused / sizeof *refused, e)) return false;
    if (!fields_present(body, "prompt")) return fields_refuse(e, "prompt", "'prompt': missing");
    if (!fields_bool(body, "echo", &echo, e) || !fields_int(body, "best_of", 1, 20, &best_of, e))
        return false;
    if (echo) return fields_refuse(e, "echo", "'echo': not supported");
    if (best_of != 1) return fields_refuse(e, "best_of", "'best_of': not supported");
    if (!parse_common(c, body, e) || !fields_int(body, "logprobs", 0, 5, &top, e) ||
        !parse_prompts(c, json_get(body, "prompt"), e))
        return false;
    c->sampling.logprobs = top >= 0;
    c->sampling.top_logprobs = top > 0 ? top : 0;
    return true;
}

/* ---- replies ---- */

static const char *finish_name(const call *c, ingot_finish f)
{
    if (f == INGOT_FINISH_LENGTH) return "length";
    return f == INGOT_FINISH_TOOL_CALLS && !c->legacy ? "tool_calls" : "stop";
}

static void write_usage(const call *c, jsonw *w)
{
    ingot_usage u;
    call_sum_usage(c, &u);
    jsonw_member_object(w, "usage");
    jsonw_member_i64(w, "prompt_tokens", u.prompt_tokens);
    jsonw_member_i64(w, "completion_tokens", u.completion_tokens);
    jsonw_member_i64(w, "total_tokens", u.prompt_tokens + u.completion_tokens);
    jsonw_member_object(w, "prompt_tokens_details");
    jsonw_member_i64(w, "cached_tokens", u.cached_tokens);
    jsonw_end_object(w);
    jsonw_member_object(w, "completion_tokens_details");
    jsonw_member_i64(w, "reasoning_tokens", u.reasoning_tokens);
    jsonw_end_object(w);
    jsonw_end_object(w);
}

static void write_timings(const call *c, jsonw *w)
{
    ingot_usage u;
    call_sum_usage(c, &u);
    jsonw_key(w, "timings");
    call_write_timings(w, &u);
}

static void write_head(const call *c, jsonw *w, const char *object)
{
    jsonw_object(w);
    jsonw_member_text(w, "id", c->id);
    jsonw_member_text(w, "object", object);
    jsonw_member_i64(w, "created", c->created);
    jsonw_member_text(w, "model", c->service->name);
}

static void write_reasoning(const call *c, jsonw *w, str text)
{
    jsonw_member_str(w, "reasoning_content", text);
    if (!c->service->reasoning_both) return;
    jsonw_member_str(w, "reasoning", text);
}

static void write_call(jsonw *w, const tool_call *t)
{
    jsonw_object(w);
    jsonw_member_text(w, "id", t->id);
    jsonw_member_text(w, "type", "function");
    jsonw_member_object(w, "function");
    jsonw_member_text(w, "name", t->name);
    jsonw_member_str(w, "arguments", call_arguments(t));
    jsonw_end_object(w);
    jsonw_end_object(w);
}

static void write_message(const call *c, jsonw *w, const choice *k)
{
    jsonw_member_object(w, "message");
    jsonw_member_text(w, "role", "assistant");
    jsonw_key(w, "content");
    if (k->content.len || (!k->n_calls && !k->reasoning.len)) jsonw_str(w, buf_view(&k->content));
    else jsonw_null(w);
    if (k->reasoning.len) write_reasoning(c, w, buf_view(&k->reasoning));
    if (k->n_calls) {
        jsonw_member_array(w, "tool_calls");
        for (int i = 0; i < k->n_calls; i++) write_call(w, &k->calls[i]);
        jsonw_end_array(w);
    }
    jsonw_end_object(w);
}

static void write_logprob_list(jsonw *w, str elements)
{
    jsonw_object(w);
    jsonw_member_array(w, "content");
    if (elements.len) jsonw_raw(w, elements);
    jsonw_end_array(w);
    jsonw_end_object(w);
}

static void chat_whole(call *c, buf *out)
{
    jsonw w;
    jsonw_init(&w, out);
    write_head(c, &w, "chat.completion");
    jsonw_member_array(&w, "choices");
    for (int i = 0; i < c->n_choices; i++) {
        const choice *k = &c->choices[i];
        jsonw_object(&w);
        jsonw_member_i64(&w, "index", i);
        write_message(c, &w, k);
        jsonw_member_text(&w, "finish_reason", finish_name(c, k->finish));
        jsonw_key(&w, "logprobs");
        if (c->sampling.logprobs) write_logprob_list(&w, buf_view(&k->logprobs));
        else jsonw_null(&w);
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    write_usage(c, &w);
    write_timings(c, &w);
    jsonw_end_object(&w);
}

/* ---- chat streams ---- */

static void chunk_begin(const call *c, jsonw *w, buf *out, int index)
{
    call_event_begin(out, NULL);
    jsonw_init(w, out);
    write_head(c, w, "chat.completion.chunk");
    jsonw_member_array(w, "choices");
    jsonw_object(w);
    jsonw_member_i64(w, "index", index);
    jsonw_member_object(w, "delta");
}

/* After the delta's members; `ev` may carry logprobs; finish NULL: null. */
static void chunk_end(const call *c, jsonw *w, buf *out, const char *finish, str logprobs)
{
    jsonw_end_object(w);
    jsonw_member_text(w, "finish_reason", finish);
    if (c->sampling.logprobs) {
        jsonw_key(w, "logprobs");
        if (logprobs.len) write_logprob_list(w, logprobs);
        else jsonw_null(w);
    }
    jsonw_end_object(w);
    jsonw_end_array(w);
    if (c->include_usage) jsonw_member_text(w, "usage", NULL);
    jsonw_end_object(w);
    call_event_end(out);
}

static void chat_begin(call *c, buf *out)
{
    for (int i = 0; i < c->n_choices; i++) {
        jsonw w;
        chunk_begin(c, &w, out, i);
        jsonw_member_text(&w, "role", "assistant");
        jsonw_member_text(&w, "content", "");
        chunk_end(c, &w, out, NULL, (str){ 0 });
    }
}

static void progress_chunk(const call *c, buf *out, const ingot_event *ev)
{
    jsonw w;
    if (!c->return_progress || ev->total == 0) return;
    call_event_begin(out, NULL);
    jsonw_init(&w, out);
    write_head(c, &w, "chat.completion.chunk");
    jsonw_member_array(&w, "choices");
    jsonw_end_array(&w);
    jsonw_member_object(&w, "prompt_progress");
    jsonw_member_i64(&w, "total", ev->total);
    jsonw_member_i64(&w, "processed", ev->done);
    jsonw_end_object(&w);
    jsonw_end_object(&w);
    call_event_end(out);
}

static void write_call_delta(jsonw *w, const tool_call *t, int index, bool first, str piece)
{
    jsonw_member_array(w, "tool_calls");
    jsonw_object(w);
    jsonw_member_i64(w, "index", index);
    if (first) {
        jsonw_member_text(w, "id", t->id);
        jsonw_member_text(w, "type", "function");
    }
    jsonw_member_object(w, "function");
    if (first) jsonw_member_text(w, "name", t->name);
    jsonw_member_str(w, "arguments", piece);
    jsonw_end_object(w);
    jsonw_end_object(w);
    jsonw_end_array(w);
}

static void chat_event(call *c, int prompt, const ingot_event *ev, buf *out)
{
    choice *k = &c->choices[ev->choice];
    const str piece = { ev->text, ev->len };
    jsonw w;
    (void)prompt; /* a chat has one */
    if (ev->kind == INGOT_PROGRESS) {
        progress_chunk(c, out, ev);
        return;
    }
    if (ev->kind == INGOT_TOOL_END && !ev->n_logprobs) return;
    chunk_begin(c, &w, out, ev->choice);
    if (ev->kind == INGOT_TEXT) {
        jsonw_member_str(&w, "content", piece);
    } else if (ev->kind == INGOT_THINKING) {
        write_reasoning(c, &w, piece);
    } else if (ev->kind == INGOT_TOOL_BEGIN || ev->kind == INGOT_TOOL_ARGUMENTS) {
        const bool first = ev->kind == INGOT_TOOL_BEGIN;
        write_call_delta(&w, &k->calls[k->n_calls - 1], k->n_calls - 1, first,
                         first ? (str){ 0 } : piece);
    }
    chunk_end(c, &w, out, ev->kind == INGOT_END ? finish_name(c, ev->finish) : NULL,
              buf_view(&k->logprobs));
    buf_clear(&k->logprobs); /* sent */
}

static void stream_end(call *c, buf *out)
{
    jsonw w;
    call_event_begin(out, NULL);
    jsonw_init(&w, out);
    write_head(c, &w, c->legacy ? "text_completion" : "chat.completion.chunk");
    jsonw_member_array(&w, "choices");
    jsonw_end_array(&w);
    write_usage(c, &w);
    write_timings(c, &w);
    jsonw_end_object(&w);
    call_event_end(out);
}

static void openai_end(call *c, buf *out)
{
    if (c->include_usage) stream_end(c, out);
    buf_text(out, "data: [DONE]\n\n");
}

static void openai_fail(call *c, const api_error *e, buf *out)
{
    (void)c;
    call_event_begin(out, NULL);
    openai_error(e, out);
    call_event_end(out);
    buf_text(out, "data: [DONE]\n\n");
}

/* ---- the old completions ---- */

/* The place after these bytes. One that continues nothing is a character of its own in the text. */
static void advance(text_place *at, str bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        const unsigned char ch = (unsigned char)bytes.ptr[i];
        const bool continues = (ch & 0xc0) == 0x80;
        at->chars += !continues || !at->owed;
        if (!continues) at->owed = (ch >= 0xc0) + (ch >= 0xe0) + (ch >= 0xf0);
        else if (at->owed) at->owed--;
    }
}

/* A token of the lists below. */
typedef struct old_token {
    buf bytes, name; /* its text, or the bytes' numbers where they are no whole characters */
} old_token;

static void old_token_init(old_token *t)
{
    buf_init(&t->bytes, CALL_MAX_OUTPUT);
    buf_init(&t->name, CALL_MAX_OUTPUT);
}

static void old_token_free(old_token *t)
{
    buf_free(&t->bytes);
    buf_free(&t->name);
}

static void old_token_read(old_token *t, const json_node *item, jsonw *w)
{
    const json_node *list = json_get(item, "bytes");
    buf_clear(&t->bytes);
    buf_clear(&t->name);
    for (size_t i = 0; i < json_len(list); i++) {
        int64_t byte = 0;
        json_i64(json_at(list, i), &byte);
        buf_char(&t->bytes, (char)byte);
    }
    const bool whole = str_utf8_valid(buf_view(&t->bytes));
    if (whole) buf_add(&t->name, buf_view(&t->bytes));
    else buf_text(&t->name, "bytes:");
    for (size_t i = 0; !whole && i < t->bytes.len; i++)
        buf_printf(&t->name, "\\x%02x", (unsigned)(unsigned char)t->bytes.ptr[i]);
    if (t->bytes.failed || t->name.failed) w->out->failed = E_NOMEM;
}

static void write_old_pair(jsonw *w, const old_token *t, const json_node *item)
{
    jsonw_key_str(w, buf_view(&t->name));
    jsonw_node(w, json_get(item, "logprob"));
}

/* The likeliest tokens, and the one that was taken where it is none of them. */
static void write_old_top(jsonw *w, const json_node *item, const old_token *taken, old_token *t)
{
    const json_node *top = json_get(item, "top_logprobs");
    bool among = false;
    jsonw_object(w);
    for (size_t i = 0; i < json_len(top); i++) {
        old_token_read(t, json_at(top, i), w);
        among |= str_eq(buf_view(&t->name), buf_view(&taken->name));
        write_old_pair(w, t, json_at(top, i));
    }
    if (!among) write_old_pair(w, taken, item);
    jsonw_end_object(w);
}

/* Parallel lists instead of one list of objects; made from the elements kept for the newer shape.
 * Offsets count characters; *place becomes that of the next token. */
static void write_old_logprobs(jsonw *w, const choice *k, text_place *place)
{
    buf list;
    old_token taken, likely;
    json_doc *doc = NULL;
    text_place at = *place;
    static const char *const keys[] = { "tokens", "token_logprobs", "top_logprobs", "text_offset" };
    buf_init(&list, CALL_MAX_OUTPUT);
    buf_char(&list, '[');
    buf_add(&list, buf_view(&k->logprobs));
    buf_char(&list, ']');
    if (list.failed || json_parse(&doc, buf_view(&list), 0, "logprobs", NULL)) {
        jsonw_null(w);
        buf_free(&list);
        return;
    }
    old_token_init(&taken);
    old_token_init(&likely);
    const json_node *root = json_root(doc);
    jsonw_object(w);
    for (int column = 0; column < 4; column++) {
        at = *place;
        jsonw_member_array(w, keys[column]);
        for (size_t i = 0; i < json_len(root); i++) {
            const json_node *item = json_at(root, i);
            old_token_read(&taken, item, w);
            if (column == 0) jsonw_str(w, buf_view(&taken.name));
            if (column == 1) jsonw_node(w, json_get(item, "logprob"));
            if (column == 2) write_old_top(w, item, &taken, &likely);
            if (column == 3) jsonw_u64(w, at.chars);
            advance(&at, buf_view(&taken.bytes));
        }
        jsonw_end_array(w);
    }
    jsonw_end_object(w);
    *place = at;
    old_token_free(&taken);
    old_token_free(&likely);
    json_free(doc);
    buf_free(&list);
}

static void write_old_choice(const call *c, jsonw *w, int index, str text, const char *finish,
                             text_place *place)
{
    const choice *k = &c->choices[index];
    jsonw_object(w);
    jsonw_member_i64(w, "index", index);
    jsonw_member_str(w, "text", text);
    jsonw_member_text(w, "finish_reason", finish);
    jsonw_key(w, "logprobs");
    if (c->sampling.logprobs) write_old_logprobs(w, k, place);
    else jsonw_null(w);
    jsonw_end_object(w);
}

static void completion_whole(call *c, buf *out)
{
    jsonw w;
    jsonw_init(&w, out);
    write_head(c, &w, "text_completion");
    jsonw_member_array(&w, "choices");
    for (int i = 0; i < c->n_choices; i++) {
        text_place place = { 0 };
        write_old_choice(c, &w, i, buf_view(&c->choices[i].content),
                         finish_name(c, c->choices[i].finish), &place);
    }
    jsonw_end_array(&w);
    write_usage(c, &w);
    write_timings(c, &w);
    jsonw_end_object(&w);
}

static void completion_begin(call *c, buf *out)
{
    (void)c; /* the old shape has no opening */
    (void)out;
}

static void completion_event(call *c, int prompt, const ingot_event *ev, buf *out)
{
    const int index = prompt * call_n(c) + ev->choice;
    choice *k = &c->choices[index];
    jsonw w;
    if (ev->kind == INGOT_PROGRESS) {
        progress_chunk(c, out, ev);
        return;
    }
    call_event_begin(out, NULL);
    jsonw_init(&w, out);
    write_head(c, &w, "text_completion");
    jsonw_member_array(&w, "choices");
    const bool last = ev->kind == INGOT_END;
    write_old_choice(c, &w, index, last ? (str){ 0 } : (str){ ev->text, ev->len },
                     last ? finish_name(c, ev->finish) : NULL, &k->place);
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    call_event_end(out);
    buf_clear(&k->logprobs);
}

const dialect openai_chat = {
    .prompt_field = "messages",
    .limit_field = "max_tokens",
    .schema_field = "response_format.json_schema.schema",
    .call_prefix = "call_",
    .parse = parse_chat,
    .begin = chat_begin,
    .event = chat_event,
    .end = openai_end,
    .fail = openai_fail,
    .whole = chat_whole,
    .error = openai_error,
};
const dialect openai_completion = {
    .prompt_field = "prompt",
    .limit_field = "max_tokens",
    .parse = parse_completion,
    .begin = completion_begin,
    .event = completion_event,
    .end = openai_end,
    .fail = openai_fail,
    .whole = completion_whole,
    .error = openai_error,
};
