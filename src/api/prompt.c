/* prompt.c - what a caller asks becomes the text and the tokens that the king sees. */
#include "api/prompt.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/banned.h"

enum { PROMPT_MAX_TEXT = 64 << 20, PROMPT_MAX_CONFIG = 16 << 20 };

void prompt_free(prompt *p)
{
    buf_free(&p->text);
    tokenizer_ids_free(&p->ids);
    mem_free(p->marks);
    json_free(p->tools);
    *p = (prompt){ 0 };
}

status prompt_need_tokenizer(const ingot_model *m, error *e)
{
    if (m->tokenizer) return OK;
    if (e) *e = m->tokenizer_error;
    return m->tokenizer_error.code;
}

/* A template of the caller's still sees the special tokens of the folder's tokenizer_config.json,
 * where there is one. */
static status compile(const ingot_model *m, const char *text, chat **out, error *e)
{
    char path[4096];
    TRY(file_join(path, sizeof path, m->folder, "tokenizer_config.json", e));
    buf settings;
    buf_init(&settings, PROMPT_MAX_CONFIG);
    status s = OK;
    if (file_exists(path)) s = file_read(&settings, path, e);
    if (s == OK) s = chat_new(out, str_from(text), buf_view(&settings), e);
    buf_free(&settings);
    return s;
}

status prompt_chat(const ingot_model *m, const char *text, const chat **use, chat **own, error *e)
{
    *own = NULL;
    if (text) {
        TRY(compile(m, text, own, e));
        *use = *own;
        return OK;
    }
    *use = m->chat;
    if (m->chat) return OK;
    if (e) *e = m->chat_error;
    return m->chat_error.code;
}

static status parse(json_doc **out, const char *text, json_type want, const char *name, error *e)
{
    *out = NULL;
    if (!text) return OK;
    TRY(json_parse(out, str_from(text), JSON_KEEP_BIGINT, name, e));
    const json_type found = json_kind(json_root(*out));
    if (found == want) return OK;
    const char *kind = json_kind_name(json_root(*out));
    const status s = error_set(e, E_ARG, "%s: found %s, want %s", name, kind,
                               want == JSON_ARRAY ? "array" : "object");
    json_free(*out);
    *out = NULL;
    return s;
}

static status render_chat(chat_prompt *out, const prompt *p, const ingot_model *m,
                          const ingot_prompt *from, error *e)
{
    const chat *use;
    chat *own = NULL;
    json_doc *messages = NULL, *args = NULL;
    template_fault fault;
    status s = prompt_chat(m, from->template_text, &use, &own, e);
    if (s == OK) s = parse(&messages, from->messages, JSON_ARRAY, "messages", e);
    if (s == OK) s = parse(&args, from->template_args, JSON_OBJECT, "template_args", e);
    if (s == OK) {
        const chat_options options = { .thinking = (chat_thinking)from->thinking,
                                       .effort = str_from(from->reasoning_effort),
                                       .no_generation_prompt = from->no_generation_prompt,
                                       .kwargs = json_root(args) };
        s = chat_render(use, json_root(messages), json_root(p->tools), &options, out, &fault, e);
    }
    json_free(args);
    json_free(messages);
    chat_free(own);
    return s;
}

/* A message ends with a special token, so each part can be tokenized by itself. */
static status encode_parts(prompt *p, const ingot_model *m, const chat_prompt *c, error *e)
{
    p->marks = mem_array((size_t)c->n_ends + 1, sizeof *p->marks);
    if (!p->marks) return error_set(e, E_NOMEM, "prompt: no memory for %d messages", c->n_ends);
    const str text = buf_view(&c->text);
    size_t from = 0;
    for (int i = 0; i < c->n_ends; i++) {
        TRY(tokenizer_encode(m->tokenizer, str_sub(text, from, c->ends[i]), TOKENIZER_ALL, &p->ids,
                             e));
        from = c->ends[i];
        p->marks[p->n_marks++] = (int)p->ids.len;
    }
    return tokenizer_encode(m->tokenizer, str_sub(text, from, text.len), TOKENIZER_ALL, &p->ids, e);
}

static status from_messages(prompt *p, const ingot_model *m, const ingot_prompt *from, bool encode,
                            error *e)
{
    chat_prompt c = { 0 };
    TRY(render_chat(&c, p, m, from, e));
    status s = OK;
    if (encode) s = encode_parts(p, m, &c, e);
    p->in_think = c.in_think;
    buf_free(&p->text);
    p->text = c.text;
    c.text = (buf){ 0 };
    chat_prompt_free(&c);
    return s;
}

static status from_tokens(prompt *p, const ingot_model *m, const ingot_prompt *from, error *e)
{
    const int32_t n_token = tokenizer_vocab_size(m->tokenizer);
    for (size_t i = 0; i < from->n_tokens; i++)
        if (from->tokens[i] < 0 || from->tokens[i] >= n_token)
            return error_set(e, E_ARG, "prompt: token %zu: found id %d, want 0..%d", i,
                             from->tokens[i], n_token - 1);
    p->ids.ptr = mem_array(from->n_tokens, sizeof *p->ids.ptr);
    if (!p->ids.ptr) return error_set(e, E_NOMEM, "prompt: no memory for %zu ids", from->n_tokens);
    p->ids.len = p->ids.cap = from->n_tokens;
    memcpy(p->ids.ptr, from->tokens, from->n_tokens * sizeof *p->ids.ptr);
    detok_all(m->tokenizer, p->ids.ptr, p->ids.len, false, &p->text);
    p->in_think = chat_ends_in_think(buf_view(&p->text));
    return buf_status(&p->text, "prompt", e);
}

static status from_text(prompt *p, const ingot_model *m, const ingot_prompt *from, bool encode,
                        error *e)
{
    const str text = { from->text, from->text_len };
    buf_add(&p->text, text);
    p->in_think = chat_ends_in_think(text);
    TRY(buf_status(&p->text, "prompt", e));
    return encode ? tokenizer_encode(m->tokenizer, text, TOKENIZER_ALL, &p->ids, e) : OK;
}

static status make(prompt *p, const ingot_model *m, const ingot_prompt *from, bool encode, error *e)
{
    *p = (prompt){ .tool_choice = from->tool_choice };
    buf_init(&p->text, PROMPT_MAX_TEXT);
    const int given = (from->text != NULL) + (from->tokens != NULL) + (from->messages != NULL);
    if (given != 1)
        return error_set(e, E_ARG, "prompt: found %d of text, tokens, messages, want one", given);
    if (encode || from->tokens) TRY(prompt_need_tokenizer(m, e));
    TRY(parse(&p->tools, from->tools, JSON_ARRAY, "tools", e));
    if (from->messages) return from_messages(p, m, from, encode, e);
    return from->tokens ? from_tokens(p, m, from, e) : from_text(p, m, from, encode, e);
}

status prompt_render(prompt *p, const ingot_model *m, const ingot_prompt *from, error *e)
{
    const status s = make(p, m, from, false, e);
    if (s) prompt_free(p);
    return s;
}

status prompt_build(prompt *p, const ingot_model *m, const ingot_prompt *from, error *e)
{
    status s = make(p, m, from, true, e);
    if (s == OK && p->ids.len == 0) s = error_set(e, E_ARG, "prompt: it has no tokens");
    if (s == OK && p->ids.len > INT32_MAX / 2)
        s = error_set(e, E_LIMIT, "prompt: %zu tokens, limit %d", p->ids.len, INT32_MAX / 2);
    if (s) prompt_free(p);
    return s;
}

status prompt_calls(const prompt *p, const char *choice, schema_call *out, int max, int *n,
                    error *e)
{
    const json_node *tools = json_root(p->tools);
    const bool any = strcmp(choice, "required") == 0;
    *n = 0;
    for (size_t i = 0; i < json_len(tools); i++) {
        const json_node *tool = json_at(tools, i), *inner = json_get(tool, "function");
        if (!inner) inner = tool;
        str name;
        if (!json_str(json_get(inner, "name"), &name)) continue;
        if (!any && !str_eq(name, str_from(choice))) continue;
        if (*n == max) return error_set(e, E_LIMIT, "tools: more than %d to choose from", max);
        const json_node *parameters = json_get(inner, "parameters");
        if (json_kind(parameters) == JSON_NULL) parameters = NULL;
        out[(*n)++] = (schema_call){ name, parameters };
    }
    if (*n > 0) return OK;
    return error_set(e, E_ARG, "tool_choice: found %s, want one of the tools", choice);
}
