/* cmd_text.c - `ingot tokenize`, `detokenize`, `render`, `split`: text in, text out, without
 * weights.
 *
 * With --jsonl each reads one case a line from stdin and writes one JSON object a line, in order; a
 * case that fails gives {"error": ...} on its line and the work goes on. */
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "cli/argument.h"
#include "cli/cmd.h"
#include "cli/command.h"
#include "cli/line.h"
#include "cli/result.h"
#include "cli/sampling.h"
#include "cli/setup.h"
#include "base/banned.h"

enum { MOST_INPUT = 1 << 30, MOST_LINE = 256 << 20 };

/* Handles one parsed case: writes the members of the result object, or fails. */
typedef status text_case(setup *s, const json_node *in, jsonw *w, error *e);

/* ---- the frame of --jsonl ---- */

static void write_error(jsonw *w, const char *kind, const char *message)
{
    jsonw_member_object(w, "error");
    jsonw_member_text(w, "kind", kind);
    jsonw_member_text(w, "message", message);
    jsonw_end_object(w);
}

static status run_case(setup *s, text_case *fn, str text, int number, buf *out, error *e)
{
    json_doc *doc = NULL;
    jsonw w;
    char name[32];
    error inner;
    snprintf(name, sizeof name, "stdin line %d", number);
    status st = json_parse(&doc, text, JSON_KEEP_BIGINT, name, &inner);
    buf_clear(out);
    jsonw_init(&w, out);
    jsonw_object(&w);
    if (st == OK) st = fn(s, json_root(doc), &w, &inner);
    if (st) {
        buf_clear(out);
        jsonw_init(&w, out);
        jsonw_object(&w);
        write_error(&w, error_name(st), inner.text);
    }
    jsonw_end_object(&w);
    buf_char(out, '\n');
    json_free(doc);
    return buf_status(out, "result", e);
}

static status run_lines(setup *s, text_case *fn, error *e)
{
    line in = { 0 };
    buf text, out;
    status st = OK;
    buf_init(&text, MOST_LINE);
    buf_init(&out, MOST_LINE);
    for (int number = 1; st == OK && line_read(&in, "", &text); number++) {
        if (str_trim(buf_view(&text)).len == 0) continue;
        st = buf_status(&text, "stdin", e);
        if (st == OK) st = run_case(s, fn, buf_view(&text), number, &out, e);
        if (st == OK) fwrite(out.ptr, 1, out.len, stdout);
    }
    buf_free(&text);
    buf_free(&out);
    return st;
}

/* Parses, opens the text part of the model, and runs `lines` or `once`. */
static int run_text(const options_command *c, int argc, char **argv, setup *s, const bool *jsonl,
                    text_case *lines, status (*once)(setup *s, void *arg, error *e), void *arg)
{
    error e;
    bool help;
    status st = options_parse(c, argc, argv, &help, &e);
    if (st == OK && help) {
        options_help(c, stdout);
        return EXIT_DONE;
    }
    if (st == OK) st = setup_open(s, true, &e);
    if (st == OK) st = *jsonl ? run_lines(s, lines, &e) : once(s, arg, &e);
    setup_close(s);
    return st == OK ? EXIT_DONE : command_fail(&e);
}

static status no_member(const char *key, const json_node *found, const char *want, error *e)
{
    return error_set(e, E_ARG, "\"%s\": found %s, want %s", key, json_kind_name(found), want);
}

static bool is_absent(const json_node *n)
{
    return json_kind(n) == JSON_NONE || json_kind(n) == JSON_NULL;
}

/* A member that may be left out; NULL then. */
static status optional_text(const json_node *in, const char *key, const char **out, error *e)
{
    const json_node *found = json_get(in, key);
    *out = json_text(found);
    if (*out || is_absent(found)) return OK;
    return no_member(key, found, "a string", e);
}

/* ---- tokenize ---- */

static status special_of(const char *name, ingot_special *out, error *e)
{
    if (!name || strcmp(name, "all") == 0) *out = INGOT_SPECIAL_ALL;
    else if (strcmp(name, "shown") == 0 || strcmp(name, "keep_shown") == 0)
        *out = INGOT_SPECIAL_SHOWN;
    else if (strcmp(name, "none") == 0) *out = INGOT_SPECIAL_NONE;
    else return error_set(e, E_ARG, "--special: found %s, want all, shown or none", name);
    return OK;
}

static status write_ids(setup *s, str text, ingot_special mode, jsonw *w, error *e)
{
    ingot_tokens ids;
    ingot_error ie;
    TRY(command_status(ingot_tokenize(s->model, text.ptr, text.len, mode, &ids, &ie), &ie, e));
    jsonw_i32s(w, ids.ids, ids.len);
    ingot_tokens_free(&ids);
    return OK;
}

static status tokenize_case(setup *s, const json_node *in, jsonw *w, error *e)
{
    str text;
    if (!json_str(json_get(in, "text"), &text))
        return no_member("text", json_get(in, "text"), "a string", e);
    const char *special;
    ingot_special mode = INGOT_SPECIAL_ALL;
    TRY(optional_text(in, "special", &special, e));
    TRY(special_of(special, &mode, e));
    jsonw_key(w, "ids");
    return write_ids(s, text, mode, w, e);
}

static status tokenize_once(setup *s, void *special, error *e)
{
    char *text;
    size_t len;
    buf out;
    jsonw w;
    ingot_special mode = INGOT_SPECIAL_ALL;
    TRY(special_of(*(const char **)special, &mode, e));
    TRY(argument_text("-", MOST_INPUT, &text, &len, e));
    if (s->json) {
        result r;
        result_begin(&r);
        jsonw_key(&r.w, "ids");
        status done = write_ids(s, (str){ text, len }, mode, &r.w, e);
        if (done == E_ARG) done = command_blame("", "stdin", e);
        mem_free(text);
        return result_end(&r, done, e);
    }
    buf_init(&out, MOST_INPUT);
    jsonw_init(&w, &out);
    status st = write_ids(s, (str){ text, len }, mode, &w, e);
    if (st == E_ARG) st = command_blame("", "stdin", e);
    buf_char(&out, '\n');
    if (st == OK) st = buf_status(&out, "result", e);
    if (st == OK) fwrite(out.ptr, 1, out.len, stdout);
    buf_free(&out);
    mem_free(text);
    return st;
}

int cmd_text_tokenize(int argc, char **argv)
{
    setup s;
    bool jsonl = false;
    const char *special = NULL;
    setup_init(&s);
    const option own[] = {
        { OPTION_TEXT, "special", 0, &special, "all|shown|none",
          "which added tokens are recognised in the text (default all)", 0, 0, NULL },
        { OPTION_FLAG, "jsonl", 0, &jsonl, NULL,
          "a case a line: {\"text\", \"special\"?} gives {\"ids\"}", 0, 0, NULL },
        { .kind = OPTION_END },
    };
    const options_command c = {
        .name = "tokenize",
        .usage = "--king FOLDER < text",
        .summary = "print the token ids of a text as a JSON array",
        .tables = { own, s.text_options, s.output_options },
    };
    return run_text(&c, argc, argv, &s, &jsonl, tokenize_case, tokenize_once, &special);
}

/* ---- detokenize ---- */

static status read_ids(const json_node *array, ingot_tokens *out, error *e)
{
    *out = (ingot_tokens){ 0 };
    if (json_kind(array) != JSON_ARRAY) return no_member("ids", array, "an array of token ids", e);
    out->len = json_len(array);
    out->ids = mem_array(out->len + 1, sizeof *out->ids);
    if (!out->ids) return error_set(e, E_NOMEM, "ids: out of memory");
    for (size_t i = 0; i < out->len; i++) {
        int64_t id;
        if (!json_i64(json_at(array, i), &id) || id < INT32_MIN || id > INT32_MAX) {
            mem_free(out->ids);
            out->ids = NULL;
            return error_set(e, E_ARG, "ids: item %zu: found %s, want a token id", i,
                             json_kind_name(json_at(array, i)));
        }
        out->ids[i] = (int32_t)id;
    }
    return OK;
}

static status write_text(setup *s, const char *key, const ingot_tokens *ids, bool hide, jsonw *w,
                         error *e)
{
    ingot_text text;
    ingot_error ie;
    TRY(command_status(ingot_detokenize(s->model, ids->ids, ids->len, hide, &text, &ie), &ie, e));
    jsonw_member_str(w, key, (str){ text.ptr, text.len });
    ingot_text_free(&text);
    return OK;
}

/* What a stream sends after each id, and what is left for the end. */
static status write_deltas(setup *s, const ingot_tokens *ids, jsonw *w, error *e)
{
    ingot_detok *d;
    ingot_error ie;
    ingot_text piece;
    TRY(command_status(ingot_detok_new(&d, s->model, false, &ie), &ie, e));
    status st = OK;
    jsonw_member_array(w, "deltas");
    for (size_t i = 0; st == OK && i < ids->len; i++) {
        st = command_status(ingot_detok_put(d, ids->ids[i], &piece, &ie), &ie, e);
        if (st == OK) jsonw_str(w, (str){ piece.ptr, piece.len });
        if (st == OK) ingot_text_free(&piece);
    }
    jsonw_end_array(w);
    if (st == OK) st = command_status(ingot_detok_end(d, &piece, &ie), &ie, e);
    if (st == OK) jsonw_member_str(w, "tail", (str){ piece.ptr, piece.len });
    if (st == OK) ingot_text_free(&piece);
    ingot_detok_free(d);
    return st;
}

static void write_hex(const setup *s, const ingot_tokens *ids, jsonw *w)
{
    buf hex;
    buf_init(&hex, MOST_LINE);
    for (size_t i = 0; i < ids->len; i++) {
        size_t n;
        const char *bytes = ingot_token_bytes(s->model, ids->ids[i], &n);
        for (size_t j = 0; j < n; j++) buf_printf(&hex, "%02x", (unsigned)(unsigned char)bytes[j]);
    }
    jsonw_member_str(w, "bytes_hex", buf_view(&hex));
    buf_free(&hex);
}

static status detokenize_case(setup *s, const json_node *in, jsonw *w, error *e)
{
    ingot_tokens ids;
    TRY(read_ids(json_get(in, "ids"), &ids, e));
    status st = write_text(s, "text", &ids, false, w, e);
    if (st == OK) st = write_text(s, "hidden", &ids, true, w, e);
    if (st == OK) write_hex(s, &ids, w);
    if (st == OK) st = write_deltas(s, &ids, w, e);
    mem_free(ids.ids);
    return st;
}

static status detokenize_once(setup *s, void *hide, error *e)
{
    char *text;
    size_t len;
    json_doc *doc = NULL;
    ingot_tokens ids = { 0 };
    TRY(argument_text("-", MOST_INPUT, &text, &len, e));
    status st = json_parse(&doc, (str){ text, len }, 0, "stdin", e);
    if (st == OK) st = read_ids(json_root(doc), &ids, e);
    if (st == OK && s->json) {
        result r;
        result_begin(&r);
        st = result_end(&r, write_text(s, "text", &ids, *(bool *)hide, &r.w, e), e);
    }
    for (size_t i = 0; st == OK && !s->json && i < ids.len; i++) {
        size_t n;
        const char *bytes = ingot_token_bytes(s->model, ids.ids[i], &n);
        const bool hidden = *(bool *)hide && ingot_token_special(s->model, ids.ids[i]);
        if (!hidden) fwrite(bytes, 1, n, stdout);
    }
    if (st == E_ARG) st = command_blame("", "stdin", e);
    mem_free(ids.ids);
    if (doc) json_free(doc);
    mem_free(text);
    return st;
}

int cmd_text_detokenize(int argc, char **argv)
{
    setup s;
    bool jsonl = false, hide = false;
    setup_init(&s);
    const option own[] = {
        { OPTION_FLAG, "hide-special", 0, &hide, NULL, "leave special tokens out", 0, 0, NULL },
        { OPTION_FLAG, "jsonl", 0, &jsonl, NULL,
          "a case a line: {\"ids\"} gives {\"text\", \"hidden\", \"bytes_hex\", \"deltas\", "
          "\"tail\"}",
          0, 0, NULL },
        { .kind = OPTION_END },
    };
    const options_command c = {
        .name = "detokenize",
        .usage = "--king FOLDER < ids.json",
        .summary = "print the bytes that a JSON array of token ids stands for",
        .tables = { own, s.text_options, s.output_options },
    };
    return run_text(&c, argc, argv, &s, &jsonl, detokenize_case, detokenize_once, &hide);
}

/* ---- render ---- */

typedef struct render {
    const char *messages, *tools, *template_path, *effort;
    bool no_thinking, no_generation_prompt;
} render;

static status render_bare(setup *s, const json_node *in, jsonw *w, error *e)
{
    buf variables;
    jsonw v;
    ingot_text text;
    ingot_error ie;
    const char *fault = NULL, *template_text;
    TRY(optional_text(in, "template", &template_text, e));
    buf_init(&variables, MOST_LINE);
    jsonw_init(&v, &variables);
    jsonw_node(&v, json_get(in, "variables"));
    status st = buf_status(&variables, "variables", e);
    if (st == OK) {
        const ingot_status is =
            ingot_render_bare(s->model, template_text, variables.ptr, &text, &fault, &ie);
        if (is == INGOT_OK) {
            jsonw_member_str(w, "text", (str){ text.ptr, text.len });
            ingot_text_free(&text);
        } else if (fault) {
            write_error(w, fault, ie.text);
        } else {
            st = command_status(is, &ie, e);
        }
    }
    buf_free(&variables);
    return st;
}

/* A member as JSON text in a string of its own; NULL when it is absent. */
static status member_text(const json_node *in, const char *key, char **out, error *e)
{
    buf b;
    jsonw w;
    *out = NULL;
    if (!json_get(in, key)) return OK;
    buf_init(&b, MOST_LINE);
    jsonw_init(&w, &b);
    jsonw_node(&w, json_get(in, key));
    TRY(buf_status(&b, key, e));
    *out = buf_steal(&b);
    return OK;
}

static status write_rendered(setup *s, const ingot_prompt *p, jsonw *w, error *e)
{
    ingot_text text;
    ingot_error ie;
    TRY(command_status(ingot_render(s->model, p, &text, &ie), &ie, e));
    jsonw_member_str(w, "text", (str){ text.ptr, text.len });
    ingot_text_free(&text);
    return OK;
}

static status render_case(setup *s, const json_node *in, jsonw *w, error *e)
{
    char *messages = NULL, *tools = NULL, *options = NULL;
    if (json_get(in, "variables")) return render_bare(s, in, w, e);
    ingot_prompt p = INGOT_INIT(ingot_prompt);
    TRY(optional_text(in, "template", &p.template_text, e));
    status st = member_text(in, "messages", &messages, e);
    if (st == OK) st = member_text(in, "tools", &tools, e);
    if (st == OK) st = member_text(in, "options", &options, e);
    p.messages = messages;
    p.tools = tools;
    p.template_args = options;
    if (st == OK && !messages) st = no_member("messages", NULL, "an array", e);
    if (st == OK) st = write_rendered(s, &p, w, e);
    mem_free(messages);
    mem_free(tools);
    mem_free(options);
    return st;
}

/* A template is reported under the name it has in a folder: here it has another. */
static status blame_template(const char *path, error *e)
{
    static const char usual[] = "chat_template.jinja";
    char rest[sizeof e->text];
    if (!path || !str_starts(str_from(e->text), STR("chat_template.jinja"))) return e->code;
    snprintf(rest, sizeof rest, "%s", e->text + sizeof usual - 1);
    return error_set(e, e->code, "%s%s", path, rest);
}

static status render_once(setup *s, void *arg, error *e)
{
    const render *r = arg;
    char *messages = NULL, *tools = NULL, *template_text = NULL;
    size_t len;
    ingot_text text;
    ingot_error ie;
    if (!r->messages) return error_set(e, E_ARG, "render: no --messages FILE");
    status st = argument_text(r->messages, MOST_INPUT, &messages, &len, e);
    if (st == OK && r->tools) st = argument_text(r->tools, MOST_INPUT, &tools, &len, e);
    if (st == OK && r->template_path)
        st = argument_text(r->template_path, MOST_INPUT, &template_text, &len, e);
    ingot_prompt p = INGOT_INIT(ingot_prompt);
    p.messages = messages;
    p.tools = tools;
    p.template_text = template_text;
    p.thinking = r->no_thinking ? INGOT_THINKING_OFF : INGOT_THINKING_DEFAULT;
    p.reasoning_effort = r->effort;
    p.no_generation_prompt = r->no_generation_prompt;
    if (st == OK) {
        st = command_status(ingot_render(s->model, &p, &text, &ie), &ie, e);
        if (st) st = command_blame("messages", r->messages, e);
        if (st) st = command_blame("tools", r->tools, e);
        if (st) st = blame_template(r->template_path, e);
        /* what is left is said by the template itself, or about an option */
        if (st == E_ARG && !str_starts(str_from(e->text), STR("reasoning_effort")))
            st = command_blame("", r->messages, e);
    }
    if (st == OK && s->json) {
        result out;
        result_begin(&out);
        jsonw_member_str(&out.w, "text", (str){ text.ptr, text.len });
        st = result_end(&out, OK, e);
        ingot_text_free(&text);
    } else if (st == OK) {
        fwrite(text.ptr, 1, text.len, stdout);
        ingot_text_free(&text);
    }
    mem_free(messages);
    mem_free(tools);
    mem_free(template_text);
    return st;
}

int cmd_text_render(int argc, char **argv)
{
    setup s;
    render r = { 0 };
    bool jsonl = false;
    setup_init(&s);
    const option own[] = {
        { OPTION_TEXT, "messages", 0, &r.messages, "FILE",
          "the conversation: JSON array; - reads stdin", 0, 0, NULL },
        { OPTION_TEXT, "tools", 0, &r.tools, "FILE", "tools: JSON array", 0, 0, NULL },
        { OPTION_FLAG, "no-thinking", 0, &r.no_thinking, NULL,
          "ask the template for an answer without reasoning", 0, 0, NULL },
        SAMPLING_EFFORT(&r.effort),
        { OPTION_FLAG, "no-generation-prompt", 0, &r.no_generation_prompt, NULL,
          "end after the last message", 0, 0, NULL },
        { OPTION_TEXT, "template", 0, &r.template_path, "FILE",
          "another template than the folder's", 0, 0, NULL },
        { OPTION_FLAG, "jsonl", 0, &jsonl, NULL,
          "a case a line: {\"variables\", \"template\"?} or {\"messages\", \"tools\"?, "
          "\"options\"?} gives {\"text\"} or {\"error\"}",
          0, 0, NULL },
        { .kind = OPTION_END },
    };
    const options_command c = {
        .name = "render",
        .usage = "--king FOLDER --messages FILE [options]",
        .summary = "print the prompt that the model would see",
        .tables = { own, s.text_options, s.output_options },
    };
    return run_text(&c, argc, argv, &s, &jsonl, render_case, render_once, &r);
}

/* ---- split ---- */

typedef struct split {
    const char *start, *finish, *tools;
} split;

typedef struct split_result {
    buf reasoning, content, calls, arguments;
    int n_calls;
} split_result;

static void take(split_result *r, const ingot_event *ev)
{
    const str text = { ev->text, ev->len };
    jsonw w;
    switch (ev->kind) {
    case INGOT_THINKING: buf_add(&r->reasoning, text); break;
    case INGOT_TEXT: buf_add(&r->content, text); break;
    case INGOT_TOOL_BEGIN:
        buf_text(&r->calls, r->n_calls++ ? ",{\"name\":" : "{\"name\":");
        jsonw_init(&w, &r->calls);
        jsonw_str(&w, text);
        buf_text(&r->calls, ",\"arguments\":");
        buf_clear(&r->arguments);
        break;
    case INGOT_TOOL_ARGUMENTS: buf_add(&r->arguments, text); break;
    case INGOT_TOOL_END:
        buf_add(&r->calls, r->arguments.len ? buf_view(&r->arguments) : STR("{}"));
        buf_char(&r->calls, '}');
        break;
    default: break;
    }
}

static status finish_of(const char *name, ingot_finish *out, error *e)
{
    if (!name || strcmp(name, "stop") == 0) *out = INGOT_FINISH_STOP;
    else if (strcmp(name, "length") == 0) *out = INGOT_FINISH_LENGTH;
    else return error_set(e, E_ARG, "--finish: found %s, want stop or length", name);
    return OK;
}

/* Feeds `text` cut at the byte offsets of `cuts`. */
static status feed(ingot_splitter *p, str text, const json_node *cuts, ingot_finish finish,
                   split_result *r, error *e)
{
    ingot_error ie;
    ingot_event ev;
    size_t at = 0;
    for (size_t i = 0; i <= json_len(cuts); i++) {
        int64_t to = (int64_t)text.len;
        if (i < json_len(cuts) && !json_i64(json_at(cuts, i), &to))
            return no_member("cuts", json_at(cuts, i), "offsets", e);
        if (to < (int64_t)at || to > (int64_t)text.len)
            return error_set(
                e, E_ARG, "\"cuts\": item %zu: found %lld, want offsets in order within the text",
                i, (long long)to);
        TRY(command_status(ingot_splitter_put(p, text.ptr + at, (size_t)to - at, &ie), &ie, e));
        while (ingot_splitter_next(p, &ev) == INGOT_OK) take(r, &ev);
        at = (size_t)to;
    }
    TRY(command_status(ingot_splitter_end(p, finish, &ie), &ie, e));
    while (ingot_splitter_next(p, &ev) == INGOT_OK) take(r, &ev);
    return OK;
}

static status write_split(setup *s, const split *how, str text, const json_node *cuts, jsonw *w,
                          error *e)
{
    ingot_splitter *p;
    ingot_error ie;
    ingot_finish finish = INGOT_FINISH_STOP;
    split_result r = { .n_calls = 0 };
    ingot_split_options o = INGOT_INIT(ingot_split_options);
    TRY(finish_of(how->finish, &finish, e));
    if (how->start && strcmp(how->start, "think") != 0 && strcmp(how->start, "text") != 0)
        return error_set(e, E_ARG, "--start: found %s, want think or text", how->start);
    o.start_in_thinking = how->start && strcmp(how->start, "think") == 0;
    o.tools = how->tools;
    TRY(command_status(ingot_splitter_new(&p, s->model, &o, &ie), &ie, e));
    buf_init(&r.reasoning, MOST_LINE);
    buf_init(&r.content, MOST_LINE);
    buf_init(&r.calls, MOST_LINE);
    buf_init(&r.arguments, MOST_LINE);
    buf_char(&r.calls, '[');
    const status st = feed(p, text, cuts, finish, &r, e);
    buf_char(&r.calls, ']');
    jsonw_member_str(w, "reasoning", buf_view(&r.reasoning));
    jsonw_member_str(w, "content", buf_view(&r.content));
    jsonw_key(w, "tool_calls");
    jsonw_raw(w, buf_view(&r.calls));
    buf_free(&r.reasoning);
    buf_free(&r.content);
    buf_free(&r.calls);
    buf_free(&r.arguments);
    ingot_splitter_free(p);
    return st;
}

static status split_case(setup *s, const json_node *in, jsonw *w, error *e)
{
    str text;
    char *tools;
    if (!json_str(json_get(in, "text"), &text))
        return no_member("text", json_get(in, "text"), "a string", e);
    split how = { 0 };
    const json_node *cuts = json_get(in, "cuts");
    if (!is_absent(cuts) && json_kind(cuts) != JSON_ARRAY)
        return no_member("cuts", cuts, "an array of offsets", e);
    TRY(optional_text(in, "start", &how.start, e));
    TRY(optional_text(in, "finish", &how.finish, e));
    TRY(member_text(in, "tools", &tools, e));
    how.tools = tools;
    const status st = write_split(s, &how, text, cuts, w, e);
    mem_free(tools);
    return st;
}

static status split_once(setup *s, void *arg, error *e)
{
    split how = *(split *)arg;
    const char *tools_path = how.tools;
    char *text = NULL, *tools = NULL;
    size_t len = 0, tools_len;
    result out;
    TRY(argument_text("-", MOST_INPUT, &text, &len, e));
    status st = how.tools ? argument_text(how.tools, MOST_INPUT, &tools, &tools_len, e) : OK;
    how.tools = tools;
    result_begin(&out);
    if (st == OK) st = write_split(s, &how, (str){ text, len }, NULL, &out.w, e);
    if (st) st = command_blame("tools", tools_path, e);
    st = result_end(&out, st, e);
    mem_free(text);
    mem_free(tools);
    return st;
}

int cmd_text_split(int argc, char **argv)
{
    setup s;
    split how = { 0 };
    bool jsonl = false;
    setup_init(&s);
    const option own[] = {
        { OPTION_TEXT, "start", 0, &how.start, "think|text",
          "where the output begins (default text)", 0, 0, NULL },
        { OPTION_TEXT, "finish", 0, &how.finish, "stop|length", "how it ended (default stop)", 0, 0,
          NULL },
        { OPTION_TEXT, "tools", 0, &how.tools, "FILE", "tools that were declared: JSON array", 0, 0,
          NULL },
        { OPTION_FLAG, "jsonl", 0, &jsonl, NULL,
          "a case a line: {\"text\", \"start\", \"finish\", \"tools\"?, \"cuts\"?}", 0, 0, NULL },
        { .kind = OPTION_END },
    };
    const options_command c = {
        .name = "split",
        .usage = "--king FOLDER < raw",
        .summary = "split raw model output into reasoning, content and tool calls",
        .tables = { own, s.text_options, s.output_options },
    };
    return run_text(&c, argc, argv, &s, &jsonl, split_case, split_once, &how);
}
