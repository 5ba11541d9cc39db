/* trainset.c - see trainset.h: requests in flight, a window of lines long, collected in order. */
#include "cli/trainset.h"

#include <stdio.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "cli/argument.h"
#include "cli/interrupt.h"
#include "base/banned.h"

enum { MOST_PROMPTS = 1 << 30, MOST_LINE = 256 << 20, WAITING = 32, WINDOW = 128, POLL_MS = 100 };

typedef struct answering {
    setup *s;
    const trainset_options *o;
    tokenlists *out;
    int total; /* answers wanted */
    /* of the lines out->n .. sent - 1, each at its number % WINDOW */
    ingot_request *flying[WINDOW];
    int sent;
} answering;

/* ---- the file ---- */

/* The next line that is not blank; false at the end. */
static bool next_line(str *left, str *line)
{
    while (left->len) {
        const size_t end = str_find(*left, STR("\n"));
        const size_t len = end == STR_NONE ? left->len : end;
        *line = str_trim(str_sub(*left, 0, len));
        *left = str_sub(*left, end == STR_NONE ? len : len + 1, left->len);
        if (line->len) return true;
    }
    return false;
}

static bool in_shard(const trainset_options *o, int number)
{
    return o->shards == 0 || number % o->shards == o->shard;
}

static status make_room(answering *a, str text, error *e)
{
    tokenlists *out = a->out;
    str line;
    for (int number = 0; next_line(&text, &line); number++) a->total += in_shard(a->o, number);
    if (a->total == 0)
        return error_set(e, E_ARG, "%s: no prompt for shard %d of %d", a->o->prompts, a->o->shard,
                         a->o->shards ? a->o->shards : 1);
    const size_t n = (size_t)a->total;
    out->len = mem_array(n, sizeof *out->len);
    out->ids = mem_array(n, sizeof *out->ids);
    out->index = mem_array(n, sizeof *out->index);
    out->answer = mem_array(n, sizeof *out->answer);
    return out->len && out->ids && out->index && out->answer
               ? OK
               : error_set(e, E_NOMEM, "%s: out of memory", a->o->prompts);
}

/* ---- one prompt ---- */

static status read_ids(const json_node *array, int32_t **ids, size_t *n, const char *name, error *e)
{
    *n = json_len(array);
    *ids = mem_array(*n + 1, sizeof **ids);
    if (!*ids) return error_set(e, E_NOMEM, "%s: out of memory", name);
    for (size_t i = 0; i < *n; i++) {
        int64_t id;
        if (!json_i64(json_at(array, i), &id) || id < 0 || id > INT32_MAX)
            return error_set(e, E_FORMAT, "%s: tokens: item %zu: found %s, want a token id", name,
                             i, json_kind_name(json_at(array, i)));
        (*ids)[i] = (int32_t)id;
    }
    return OK;
}

/* A member as JSON text in `out`; NULL when it is absent. */
static const char *text_of(const json_node *member, buf *out)
{
    jsonw w;
    buf_init(out, MOST_LINE);
    if (!member) return NULL;
    jsonw_init(&w, out);
    jsonw_node(&w, member);
    buf_put(out, "", 0);
    return out->ptr;
}

/* Refuses members that nobody would read, and what is of another kind. */
static status check_line(const json_node *line, const char *name, error *e)
{
    const json_node *tokens = json_get(line, "tokens"), *messages = json_get(line, "messages");
    const json_node *thinking = json_get(line, "thinking"), *value;
    bool on;
    str key;
    if (json_kind(tokens) != JSON_ARRAY && json_kind(messages) != JSON_ARRAY)
        return error_set(e, E_FORMAT, "%s: want an object with an array of messages or tokens",
                         name);
    if (tokens && json_len(line) > 1)
        return error_set(e, E_FORMAT, "%s: found other members beside tokens", name);
    if (thinking && !json_bool(thinking, &on))
        return error_set(e, E_FORMAT, "%s: thinking: found %s, want true or false", name,
                         json_kind_name(thinking));
    for (void *it = NULL; json_each(line, &it, &key, &value);)
        if (!str_eq(key, STR("messages")) && !str_eq(key, STR("tokens")) &&
            !str_eq(key, STR("tools")) && !str_eq(key, STR("thinking")))
            return error_set(e, E_FORMAT, "%s: found \"%.*s\", want messages, tools, thinking",
                             name, STR_ARG(key));
    return OK;
}

static status submit(answering *a, const json_node *line, int number, const char *name, error *e)
{
    const json_node *tokens = json_get(line, "tokens"), *messages = json_get(line, "messages");
    ingot_prompt p = INGOT_INIT(ingot_prompt);
    ingot_sampling how = a->o->how;
    ingot_error ie;
    int32_t *ids = NULL;
    buf talk, tools;
    bool thinking = true;
    TRY(check_line(line, name, e));
    const bool said = json_bool(json_get(line, "thinking"), &thinking);
    p.messages = text_of(messages, &talk);
    p.tools = text_of(json_get(line, "tools"), &tools);
    if (said) p.thinking = thinking ? INGOT_THINKING_ON : INGOT_THINKING_OFF;
    if (a->o->no_thinking) p.thinking = INGOT_THINKING_OFF;
    how.seed += (uint64_t)number;
    how.raw = true;
    status s = tokens ? read_ids(tokens, &ids, &p.n_tokens, name, e) : OK;
    p.tokens = ids;
    if (s == OK) s = buf_status(&talk, name, e);
    if (s == OK) s = buf_status(&tools, name, e);
    ingot_request **r = &a->flying[a->sent % WINDOW];
    if (s == OK && ingot_submit(r, a->s->engine, &p, &how, &ie) != INGOT_OK)
        s = error_set(e, ie.code == INGOT_E_ARG ? E_FORMAT : (status)ie.code, "%s: %s", name,
                      ie.text);
    if (s == OK) a->out->index[a->sent++] = number;
    buf_free(&talk);
    buf_free(&tools);
    mem_free(ids);
    return s;
}

static status send(answering *a, str line, int number, error *e)
{
    char name[4200];
    json_doc *doc;
    snprintf(name, sizeof name, "%s: prompt %d", a->o->prompts, number);
    TRY(json_parse(&doc, line, 0, name, e));
    const status s = submit(a, json_root(doc), number, name, e);
    json_free(doc);
    return s;
}

/* ---- answers ---- */

static status keep(tokenlists *out, const ingot_request *r, const ingot_event *end, error *e)
{
    int n_prompt;
    const int32_t *prompt = ingot_prompt_ids(r, &n_prompt);
    const int n = n_prompt + end->n_ids + (end->stop_id >= 0);
    int32_t *ids = mem_array((size_t)n, sizeof *ids);
    if (!ids) return error_set(e, E_NOMEM, "answers: out of memory");
    memcpy(ids, prompt, sizeof *ids * (size_t)n_prompt);
    memcpy(ids + n_prompt, end->ids, sizeof *ids * (size_t)end->n_ids);
    if (end->stop_id >= 0) ids[n - 1] = end->stop_id;
    out->ids[out->n] = ids;
    out->len[out->n] = n;
    out->answer[out->n++] = n_prompt;
    out->total += (uint64_t)n;
    if (n > out->longest) out->longest = n;
    return OK;
}

/* Waits for the end of the oldest request. */
static status collect(answering *a, error *e)
{
    ingot_request **r = &a->flying[a->out->n % WINDOW];
    ingot_event ev;
    ev.kind = INGOT_PROGRESS;
    while (ev.kind != INGOT_END) {
        const ingot_status s = ingot_next(*r, &ev, POLL_MS);
        if (s != INGOT_OK && s != INGOT_E_AGAIN)
            return error_set(e, (status)s, "generation ended without a result");
        if (s == INGOT_E_AGAIN) ev.kind = INGOT_PROGRESS;
        if (interrupt_seen()) return error_set(e, E_CANCELLED, "interrupted");
    }
    if (ev.finish == INGOT_FINISH_ERROR) return error_set(e, E_BUG, "%s", ev.error);
    TRY(keep(a->out, *r, &ev, e));
    ingot_release(*r);
    *r = NULL;
    a->s->bar.bytes = false;
    progress_draw(&a->s->bar, "answering", (uint64_t)a->out->n, (uint64_t)a->total);
    return OK;
}

static status answer_all(answering *a, str text, error *e)
{
    const int most = a->o->parallel + WAITING;
    str line;
    for (int number = 0; next_line(&text, &line); number++) {
        if (!in_shard(a->o, number)) continue;
        if (a->sent - a->out->n == most) TRY(collect(a, e));
        TRY(send(a, line, number, e));
    }
    while (a->out->n < a->sent) TRY(collect(a, e));
    return OK;
}

status trainset_make(setup *s, const trainset_options *o, tokenlists *out, error *e)
{
    answering a = { .s = s, .o = o, .out = out };
    ingot_engine_options eo = INGOT_INIT(ingot_engine_options);
    char *text;
    size_t len;
    *out = (tokenlists){ 0 };
    eo.parallel = o->parallel;
    TRY(argument_text(o->prompts, MOST_PROMPTS, &text, &len, e));
    status st = make_room(&a, (str){ text, len }, e);
    if (st == OK) st = setup_open(s, false, e);
    if (st == OK) st = setup_start(s, &eo, e);
    interrupt_catch();
    if (st == OK) st = answer_all(&a, (str){ text, len }, e);
    for (int i = 0; i < WINDOW; i++)
        if (a.flying[i]) ingot_release(a.flying[i]);
    progress_clear(&s->bar);
    interrupt_release();
    setup_close(s);
    mem_free(text);
    return st;
}
