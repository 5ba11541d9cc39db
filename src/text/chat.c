/* chat.c - messages to prompt. */
#include "text/chat.h"

#include "base/file.h"
#include "base/mem.h"
#include "text/template_values.h"

#include "base/banned.h"

enum { MAX_CONFIG = 16 << 20, TOKEN_COUNT = 4 };
static const char *const token_names[TOKEN_COUNT] = { "bos_token", "eos_token", "pad_token",
                                                      "unk_token" };
#define TURN_END "<|im_end|>"
#define TURN_BEGIN "<|im_start|>"
#define THINK_BEGIN "<think>"
#define THINK_END "</think>"

struct chat {
    template *compiled;
    char *tokens[TOKEN_COUNT]; /* texts of the special tokens, NULL where there is none */
    char *turn_end;
    bool writes_tags;
};

/* ---- loading ---- */

/* A token of tokenizer_config.json is a text, or an object with its content. */
static bool token_text(const json_node *n, str *out)
{
    return json_str(n, out) || json_str(json_get(n, "content"), out);
}

/* The template inside tokenizer_config.json, or an empty text. */
static str config_template(const json_node *config)
{
    str text = STR("");
    const json_node *n = json_get(config, "chat_template");
    if (json_str(n, &text)) return text;
    for (size_t i = 0; i < json_len(n); i++) {
        const char *name = json_text(json_get(json_at(n, i), "name"));
        if (name && strcmp(name, "default") == 0)
            json_str(json_get(json_at(n, i), "template"), &text);
    }
    return text;
}

static status keep_text(char **out, str s, error *e)
{
    *out = mem_strndup(s.ptr, s.len);
    return *out ? OK : error_set(e, E_NOMEM, "chat template: out of memory");
}

static status keep_tokens(chat *c, const json_node *config, str source, error *e)
{
    str turn_end = STR(TURN_END);
    for (int i = 0; i < TOKEN_COUNT; i++) {
        str text;
        if (!token_text(json_get(config, token_names[i]), &text)) continue;
        TRY(keep_text(&c->tokens[i], text, e));
        const bool eos = strcmp(token_names[i], "eos_token") == 0;
        if (eos && str_find(source, turn_end) == STR_NONE) turn_end = text;
    }
    return keep_text(&c->turn_end, turn_end, e);
}

static status set_up(chat *c, str source, const json_node *config, error *e)
{
    const char *name = "chat_template.jinja";
    if (source.len == 0) {
        source = config_template(config);
        name = "tokenizer_config.json: chat_template";
    }
    if (source.len == 0) {
        return error_set(e, E_UNSUPPORTED,
                         "a tokenizer without a chat template: found neither "
                         "chat_template.jinja nor chat_template in "
                         "tokenizer_config.json");
    }
    TRY(template_compile(&c->compiled, source, name, e));
    c->writes_tags = str_find(source, STR("<function=")) != STR_NONE;
    return keep_tokens(c, config, source, e);
}

status chat_new(chat **out, str template_text, str config, error *e)
{
    json_doc *doc = NULL;
    *out = NULL;
    chat *c = mem_zalloc(sizeof *c);
    if (!c) return error_set(e, E_NOMEM, "chat template: out of memory");
    status s = OK;
    if (config.len) s = json_parse(&doc, config, 0, "tokenizer_config.json", e);
    if (!s) s = set_up(c, template_text, doc ? json_root(doc) : NULL, e);
    json_free(doc);
    if (s) chat_free(c);
    else *out = c;
    return s;
}

static status read_optional(buf *out, const char *folder, const char *name, error *e)
{
    char path[4096];
    TRY(file_join(path, sizeof path, folder, name, e));
    return file_exists(path) ? file_read(out, path, e) : OK;
}

status chat_open(chat **out, const char *folder, error *e)
{
    buf source, config;
    *out = NULL;
    buf_init(&source, TEMPLATE_MAX_SOURCE);
    buf_init(&config, MAX_CONFIG);
    status s = read_optional(&source, folder, "chat_template.jinja", e);
    if (!s) s = read_optional(&config, folder, "tokenizer_config.json", e);
    if (!s) {
        s = chat_new(out, buf_view(&source), buf_view(&config), e);
        if (s) s = error_prefix(e, s, "%s", folder);
    }
    buf_free(&source);
    buf_free(&config);
    return s;
}

void chat_free(chat *c)
{
    if (!c) return;
    template_free(c->compiled);
    for (int i = 0; i < TOKEN_COUNT; i++) mem_free(c->tokens[i]);
    mem_free(c->turn_end);
    mem_free(c);
}

bool chat_writes_tags(const chat *c)
{
    return c->writes_tags;
}

const template *chat_template(const chat *c)
{
    /* cppcheck-suppress CastIntegerToAddressAtReturn ; the type's name is a keyword of C++ */
    return c->compiled;
}

/* ---- messages ---- */

typedef struct builder {
    jinja_run *run;
    error *e;
    size_t at; /* of the message, for the failures */
} builder;

static status put(builder *b, jinja_value dict, const char *key, jinja_value v)
{
    return jinja_value_put(b->run, dict.dict, jinja_value_string(str_from(key)), v);
}

static status wrong(builder *b, const char *field, const json_node *n, const char *want)
{
    return error_set(b->e, E_ARG, "messages.%zu%s: found %s, want %s", b->at, field,
                     json_kind_name(n), want);
}

/* One part of a content list: text, or refused. */
static status add_part(builder *b, jinja_text *t, size_t at, const json_node *part)
{
    str text;
    const char *type = json_text(json_get(part, "type"));
    if (json_kind(part) != JSON_OBJECT || !type) {
        return error_set(b->e, E_ARG, "messages.%zu.content.%zu: want an object with a type", b->at,
                         at);
    }
    const bool is_text = strcmp(type, "text") == 0 || strcmp(type, "input_text") == 0 ||
                         strcmp(type, "output_text") == 0;
    if (is_text && json_str(json_get(part, "text"), &text)) {
        jinja_text_add(t, text);
        return b->run->failed;
    }
    if (is_text) {
        return error_set(b->e, E_ARG, "messages.%zu.content.%zu.text: found %s, want string", b->at,
                         at, json_kind_name(json_get(part, "text")));
    }
    static const char *const media[] = { "image", "video", "audio", "file" };
    for (size_t i = 0; i < sizeof media / sizeof *media; i++) {
        if (!strstr(type, media[i])) continue;
        return error_set(b->e, E_UNSUPPORTED,
                         "messages.%zu.content.%zu.type: this model reads text, not %s parts",
                         b->at, at, media[i]);
    }
    return error_set(b->e, E_ARG, "messages.%zu.content.%zu.type: found \"%.60s\", want \"text\"",
                     b->at, at, type);
}

/* Null, nothing, a text and a list of text parts are all one text. */
static status read_content(builder *b, const json_node *n, str *out)
{
    str text;
    jinja_text t;
    jinja_text_init(&t, b->run);
    switch (json_kind(n)) {
    case JSON_NONE:
    case JSON_NULL: break;
    case JSON_STRING:
        json_str(n, &text);
        jinja_text_add(&t, text);
        break;
    case JSON_ARRAY:
        for (size_t i = 0; i < json_len(n); i++) TRY(add_part(b, &t, i, json_at(n, i)));
        break;
    default: return wrong(b, ".content", n, "string, null or a list of parts");
    }
    return jinja_text_done(&t, out);
}

/* Arguments as an object: templates iterate over them. What is no object is kept under "_raw". */
static status read_arguments(builder *b, const json_node *n, jinja_value *out)
{
    str text;
    if (json_kind(n) == JSON_OBJECT) return jinja_value_from_json(b->run, n, out);
    TRY(jinja_value_dict(b->run, JINJA_DICT, out));
    if (json_kind(n) == JSON_NULL || json_kind(n) == JSON_NONE) return OK;
    if (!json_str(n, &text)) return wrong(b, ".tool_calls.arguments", n, "string or object");
    if (str_trim(text).len == 0) return OK;
    json_doc *doc;
    error ignored; /* text that is no JSON goes on as text */
    status s = json_parse(&doc, text, JSON_KEEP_BIGINT, "arguments", &ignored);
    if (s == E_NOMEM) return error_set(b->e, s, "%s", ignored.text);
    if (s == OK && json_kind(json_root(doc)) == JSON_OBJECT) {
        s = jinja_value_from_json(b->run, json_root(doc), out);
        json_free(doc);
        return s;
    }
    if (s == OK) json_free(doc);
    jinja_text raw;
    jinja_value v = jinja_value_string(text);
    jinja_text_init(&raw, b->run);
    jinja_text_add(&raw, text);
    TRY(jinja_text_done(&raw, &v.s));
    return put(b, *out, "_raw", v);
}

/* {"name", "arguments"} with the arguments as an object. */
static status read_function(builder *b, const json_node *n, jinja_value *out)
{
    str name;
    jinja_value arguments;
    if (!json_str(json_get(n, "name"), &name) || name.len == 0)
        return wrong(b, ".tool_calls.name", json_get(n, "name"), "the name of a function");
    TRY(jinja_value_from_json(b->run, n, out));
    TRY(read_arguments(b, json_get(n, "arguments"), &arguments));
    return put(b, *out, "arguments", arguments);
}

static status read_call(builder *b, const json_node *n, jinja_value *out)
{
    const json_node *function = json_get(n, "function");
    if (json_kind(n) != JSON_OBJECT) return wrong(b, ".tool_calls", n, "a list of objects");
    if (!function) return read_function(b, n, out);
    jinja_value inner;
    TRY(read_function(b, function, &inner));
    TRY(jinja_value_from_json(b->run, n, out));
    return put(b, *out, "function", inner);
}

static status read_calls(builder *b, const json_node *n, jinja_value message)
{
    if (json_kind(n) == JSON_NULL || json_kind(n) == JSON_NONE) return OK;
    if (json_kind(n) != JSON_ARRAY) return wrong(b, ".tool_calls", n, "a list");
    if (json_len(n) == 0) return OK;
    jinja_value calls;
    TRY(jinja_value_list(b->run, JINJA_LIST, &calls));
    for (size_t i = 0; i < json_len(n); i++) {
        jinja_value call;
        TRY(read_call(b, json_at(n, i), &call));
        TRY(jinja_value_push(b->run, calls.list, call));
    }
    return put(b, message, "tool_calls", calls);
}

/* Takes a thought off the front of a reply's content. */
static bool split_thought(str *content, str *thought)
{
    const str text = str_trim(*content);
    if (!str_starts(text, STR(THINK_BEGIN))) return false;
    const str rest = str_sub(text, sizeof THINK_BEGIN - 1, text.len);
    const size_t end = str_find(rest, STR(THINK_END));
    if (end == STR_NONE) return false;
    *thought = str_trim(str_sub(rest, 0, end));
    *content = str_sub(rest, end + sizeof THINK_END - 1, rest.len);
    while (content->len && content->ptr[0] == '\n') *content = str_sub(*content, 1, content->len);
    return true;
}

static status read_assistant(builder *b, const json_node *n, str *content, jinja_value message)
{
    static const char *const fields[] = { "reasoning_content", "reasoning", "thinking" };
    str given, thought = { 0 };
    bool found = false;
    for (size_t i = 0; !found && i < sizeof fields / sizeof *fields; i++)
        found = json_str(json_get(n, fields[i]), &given);
    if (found) {
        jinja_text t;
        jinja_text_init(&t, b->run);
        jinja_text_add(&t, given);
        TRY(jinja_text_done(&t, &thought));
    } else {
        found = split_thought(content, &thought);
    }
    if (found) TRY(put(b, message, "reasoning_content", jinja_value_string(thought)));
    return read_calls(b, json_get(n, "tool_calls"), message);
}

/* Everything else a message holds goes to the template as it is; null counts as absent. */
static status copy_others(builder *b, const json_node *n, jinja_value message)
{
    static const char *const handled[] = { "role",      "content",  "reasoning_content",
                                           "reasoning", "thinking", "tool_calls" };
    str key;
    const json_node *value;
    for (void *it = NULL; json_each(n, &it, &key, &value);) {
        bool skip = json_kind(value) == JSON_NULL;
        for (size_t i = 0; i < sizeof handled / sizeof *handled; i++)
            skip |= str_eq(key, str_from(handled[i]));
        if (skip) continue;
        jinja_value v;
        jinja_text name;
        jinja_value k = jinja_value_string(key);
        jinja_text_init(&name, b->run);
        jinja_text_add(&name, key);
        TRY(jinja_text_done(&name, &k.s));
        TRY(jinja_value_from_json(b->run, value, &v));
        TRY(jinja_value_put(b->run, message.dict, k, v));
    }
    return OK;
}

typedef enum role { SYSTEM, USER, ASSISTANT, TOOL } role;
static const char *const role_names[] = { "system", "user", "assistant", "tool" };

static status read_role(builder *b, const json_node *n, role *out)
{
    const char *name = json_text(json_get(n, "role"));
    if (json_kind(n) != JSON_OBJECT) return wrong(b, "", n, "object");
    if (!name) return wrong(b, ".role", json_get(n, "role"), "string");
    if (strcmp(name, "developer") == 0) {
        *out = SYSTEM;
        return OK;
    }
    for (int i = SYSTEM; i <= TOOL; i++) {
        if (strcmp(name, role_names[i]) != 0) continue;
        *out = (role)i;
        return OK;
    }
    return error_set(b->e, E_ARG,
                     "messages.%zu.role: found \"%.60s\", want system, developer, user, assistant "
                     "or tool",
                     b->at, name);
}

static status read_message(builder *b, const json_node *n, role who, jinja_value *out)
{
    str content;
    TRY(jinja_value_dict(b->run, JINJA_DICT, out));
    TRY(put(b, *out, "role", jinja_value_string(str_from(role_names[who]))));
    TRY(read_content(b, json_get(n, "content"), &content));
    TRY(put(b, *out, "content", JINJA_NONE_VALUE)); /* keeps its place beside the role */
    if (who == ASSISTANT) TRY(read_assistant(b, n, &content, *out));
    TRY(put(b, *out, "content", jinja_value_string(content)));
    return copy_others(b, n, *out);
}

/* The texts of the system messages at the front, as one message; *from is where the rest begins. */
static status read_system(builder *b, const json_node *messages, jinja_list *list, size_t *from)
{
    jinja_text t;
    jinja_text_init(&t, b->run);
    for (*from = 0; *from < json_len(messages); ++*from) {
        const json_node *n = json_at(messages, *from);
        str content;
        role who;
        b->at = *from;
        TRY(read_role(b, n, &who));
        if (who != SYSTEM) break;
        TRY(read_content(b, json_get(n, "content"), &content));
        if (t.len && content.len) jinja_text_add(&t, STR("\n\n"));
        jinja_text_add(&t, content);
    }
    if (*from == 0) return OK;
    jinja_value message, content = jinja_value_string(STR(""));
    TRY(jinja_text_done(&t, &content.s));
    TRY(jinja_value_dict(b->run, JINJA_DICT, &message));
    TRY(put(b, message, "role", jinja_value_string(STR("system"))));
    TRY(put(b, message, "content", content));
    return jinja_value_push(b->run, list, message);
}

static status read_messages(builder *b, const json_node *messages, jinja_value *out)
{
    size_t i;
    if (json_kind(messages) != JSON_ARRAY || json_len(messages) == 0) {
        return error_set(b->e, E_ARG, "messages: found %s, want at least one message",
                         json_kind(messages) == JSON_ARRAY ? "none" : json_kind_name(messages));
    }
    TRY(jinja_value_list(b->run, JINJA_LIST, out));
    TRY(read_system(b, messages, out->list, &i));
    for (; i < json_len(messages); i++) {
        jinja_value message;
        role who;
        b->at = i;
        TRY(read_role(b, json_at(messages, i), &who));
        if (who == SYSTEM) who = USER; /* a late one stays in its place */
        TRY(read_message(b, json_at(messages, i), who, &message));
        TRY(jinja_value_push(b->run, out->list, message));
    }
    return OK;
}

/* ---- tools and options ---- */

static status check_tool(const json_node *n, size_t at, error *e)
{
    const char *type = json_text(json_get(n, "type"));
    const json_node *function = json_get(n, "function");
    if (type && strcmp(type, "function") != 0)
        return error_set(e, E_ARG, "tools.%zu.type: found \"%.60s\", want \"function\"", at, type);
    const char *name = json_text(json_get(function ? function : n, "name"));
    if (name && *name) return OK;
    return error_set(e, E_ARG, "tools.%zu.function.name: want the name of a function", at);
}

static status read_tools(builder *b, const json_node *tools, jinja_value variables)
{
    jinja_value v;
    if (json_kind(tools) == JSON_NULL || json_kind(tools) == JSON_NONE) return OK;
    if (json_kind(tools) != JSON_ARRAY)
        return error_set(b->e, E_ARG, "tools: found %s, want a list", json_kind_name(tools));
    for (size_t i = 0; i < json_len(tools); i++) TRY(check_tool(json_at(tools, i), i, b->e));
    if (json_len(tools) == 0) return OK;
    TRY(jinja_value_from_json(b->run, tools, &v));
    return put(b, variables, "tools", v);
}

/* The effort in the template's words; an empty text means that thinking is off. */
static status read_effort(str effort, str *out, error *e)
{
    static const struct {
        const char *given, *meant;
    } words[] = {
        { "none", "" },         { "off", "" },       { "minimal", "low" }, { "low", "low" },
        { "medium", "medium" }, { "high", "xhigh" }, { "xhigh", "xhigh" }, { "max", "xhigh" },
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!str_eq(effort, str_from(words[i].given))) continue;
        *out = str_from(words[i].meant);
        return OK;
    }
    const int n = effort.len > 60 ? 60 : (int)effort.len;
    return error_set(e, E_ARG,
                     "reasoning_effort: found \"%.*s\", want none, off, minimal, low, medium, "
                     "high, xhigh or max",
                     n, effort.ptr);
}

static status read_options(builder *b, const chat_options *o, jinja_value variables)
{
    chat_thinking thinking = o->thinking;
    str effort = STR("");
    if (o->effort.ptr) {
        TRY(read_effort(o->effort, &effort, b->e));
        if (effort.len) TRY(put(b, variables, "reasoning_effort", jinja_value_string(effort)));
        else thinking = CHAT_THINKING_OFF;
    }
    if (thinking != CHAT_THINKING_UNSET) {
        const jinja_value on = jinja_value_bool(thinking == CHAT_THINKING_ON);
        TRY(put(b, variables, "enable_thinking", on));
    }
    TRY(put(b, variables, "add_generation_prompt", jinja_value_bool(!o->no_generation_prompt)));
    jinja_value more;
    if (!o->kwargs) return OK;
    if (json_kind(o->kwargs) != JSON_OBJECT) {
        return error_set(b->e, E_ARG, "chat_template_kwargs: found %s, want object",
                         json_kind_name(o->kwargs));
    }
    TRY(jinja_value_from_json(b->run, o->kwargs, &more));
    for (size_t i = 0; i < more.dict->count; i++) {
        const jinja_entry *entry = &more.dict->entries[i];
        TRY(jinja_value_put(b->run, variables.dict, entry->key, entry->value));
    }
    return OK;
}

static status make_variables(builder *b, const chat *c, const json_node *messages,
                             const json_node *tools, const chat_options *o, jinja_value *out)
{
    jinja_value list;
    TRY(jinja_value_dict(b->run, JINJA_DICT, out));
    for (int i = 0; i < TOKEN_COUNT; i++) {
        if (!c->tokens[i]) continue;
        TRY(put(b, *out, token_names[i], jinja_value_string(str_from(c->tokens[i]))));
    }
    TRY(read_messages(b, messages, &list));
    TRY(put(b, *out, "messages", list));
    TRY(read_tools(b, tools, *out));
    return read_options(b, o, *out);
}

/* ---- the prompt ---- */

bool chat_ends_in_think(str prompt)
{
    const str text = str_trim(prompt);
    if (str_ends(text, STR(THINK_BEGIN))) return true;
    size_t turn = STR_NONE, open = STR_NONE;
    for (size_t at = text.len; at-- > 0 && turn == STR_NONE;) {
        const str rest = str_sub(text, at, text.len);
        if (str_starts(rest, STR(TURN_BEGIN "assistant"))) turn = at;
        else if (str_starts(rest, STR(TURN_BEGIN)) || str_starts(rest, STR(TURN_END))) return false;
        else if (str_starts(rest, STR(THINK_END))) return false;
        else if (str_starts(rest, STR(THINK_BEGIN)) && open == STR_NONE) open = at;
    }
    return turn != STR_NONE && open != STR_NONE;
}

static status find_ends(const chat *c, chat_prompt *p, error *e)
{
    const str text = buf_view(&p->text), turn_end = str_from(c->turn_end);
    int cap = 0;
    for (size_t at = 0; turn_end.len;) {
        const size_t hit = str_find(str_sub(text, at, text.len), turn_end);
        if (hit == STR_NONE) break;
        at += hit + turn_end.len;
        if (p->n_ends == cap) {
            cap = cap ? cap * 2 : 16;
            size_t *ends = mem_resize(p->ends, (size_t)cap * sizeof *ends);
            if (!ends) return error_set(e, E_NOMEM, "prompt: out of memory");
            p->ends = ends;
        }
        p->ends[p->n_ends++] = at;
    }
    return OK;
}

status chat_render(const chat *c, const json_node *messages, const json_node *tools,
                   const chat_options *options, chat_prompt *out, template_fault *fault, error *e)
{
    jinja_run r;
    jinja_value variables;
    *out = (chat_prompt){ 0 };
    buf_init(&out->text, TEMPLATE_MAX_OUTPUT);
    template_begin(&r, c->compiled, options->now_s ? options->now_s : TEMPLATE_NOW, e);
    builder b = { .run = &r, .e = e };
    status s = make_variables(&b, c, messages, tools, options, &variables);
    if (!s) s = template_render_values(c->compiled, variables.dict, &r, &out->text);
    if (fault) *fault = r.fault;
    jinja_run_free(&r);
    if (!s) s = find_ends(c, out, e);
    out->in_think = !s && chat_ends_in_think(buf_view(&out->text));
    if (s) chat_prompt_free(out);
    return s;
}

void chat_prompt_free(chat_prompt *p)
{
    buf_free(&p->text);
    mem_free(p->ends);
    *p = (chat_prompt){ 0 };
}
