/* call.c - see call.h. */
#include "server/call.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/banned.h"

void call_make_id(char *out, size_t cap, const char *prefix)
{
    snprintf(out, cap, "%s%016llx%08x", prefix, (unsigned long long)rng_entropy(),
             (unsigned)rng_entropy());
}

void call_init(call *c, const dialect *d, const service *s, const char *id_prefix)
{
    *c = (call){ .dialect = d, .service = s };
    arena_init(&c->mem, 0);
    c->created = clock_wall_s();
    call_make_id(c->id, sizeof c->id, id_prefix);
    c->sampling = INGOT_INIT(ingot_sampling);
}

static void choice_free(choice *k)
{
    for (int i = 0; i < k->n_calls; i++) {
        mem_free(k->calls[i].name);
        buf_free(&k->calls[i].arguments);
    }
    mem_free(k->calls);
    mem_free(k->parts);
    mem_free(k->stop);
    buf_free(&k->content);
    buf_free(&k->reasoning);
    buf_free(&k->logprobs);
}

void call_free(call *c)
{
    for (int i = 0; i < c->n_prompts; i++)
        if (c->requests[i]) ingot_release(c->requests[i]);
    for (int i = 0; i < c->n_choices; i++) choice_free(&c->choices[i]);
    mem_free(c->choices);
    json_free(c->doc);
    json_free(c->translated);
    arena_free(&c->mem);
    mem_free(c);
}

int call_n(const call *c)
{
    return c->sampling.n > 0 ? c->sampling.n : 1;
}

/* ---- fields that all dialects share ---- */

bool call_parse_stop(call *c, const json_node *body, const char *key, api_error *e)
{
    if (!fields_present(body, key)) return true;
    const json_node *n = json_get(body, key);
    const bool list = json_kind(n) == JSON_ARRAY;
    const size_t count = list ? json_len(n) : 1;
    if (count > CALL_MAX_STOP)
        return fields_refuse(e, key, "'%s': found %zu strings, want at most %d", key, count,
                             CALL_MAX_STOP);
    for (size_t i = 0; i < count; i++) {
        str s;
        const json_node *item = list ? json_at(n, i) : n;
        if (!json_str(item, &s))
            return fields_refuse(e, key, "'%s': found %s, want strings", key, json_kind_name(item));
        if (s.len == 0) return fields_refuse(e, key, "'%s': found an empty string, want text", key);
        if (memchr(s.ptr, '\0', s.len))
            return fields_refuse(e, key, "'%s': has a NUL character", key);
        c->stop[i] = arena_strdup(&c->mem, s);
        if (!c->stop[i]) return fields_no_memory(e);
    }
    c->sampling.stop = c->stop;
    c->sampling.n_stop = (int)count;
    return true;
}

static bool parse_bias(call *c, const json_node *body, api_error *e)
{
    const json_node *map = NULL;
    if (!fields_object(body, "logit_bias", &map, e)) return false;
    if (!map) return true;
    ingot_bias *bias = arena_array(&c->mem, json_len(map) + 1, sizeof *bias);
    if (!bias) return fields_no_memory(e);
    int n = 0;
    void *it = NULL;
    str key;
    const json_node *value;
    while (json_each(map, &it, &key, &value)) {
        int64_t id;
        double v;
        if (!str_to_i64(key, &id) || id < 0 || id >= c->service->info.n_token)
            return fields_refuse(
                e, "logit_bias", "'logit_bias': found key \"%.*s\", want a token id below %d",
                (int)(key.len < 40 ? key.len : 40), key.ptr, c->service->info.n_token);
        if (!json_f64(value, &v) || v < -100 || v > 100)
            return fields_refuse(e, "logit_bias",
                                 "'logit_bias': token %d: want a number from -100 to 100", (int)id);
        bias[n++] = (ingot_bias){ (int32_t)id, (float)v };
    }
    c->sampling.bias = bias;
    c->sampling.n_bias = n;
    return true;
}

static bool parse_block(call *c, const json_node *body, api_error *e)
{
    const char *text = json_text(json_get(body, "block"));
    if (text) {
        if (strcmp(text, "auto") != 0)
            return fields_refuse(
                e, "block", "'block': found \"%.40s\", want \"auto\" or a number of rows", text);
        c->sampling.block = INGOT_BLOCK_AUTO;
        return true;
    }
    return fields_int(body, "block", 1,
                      c->service->info.max_block > 1 ? c->service->info.max_block : 1,
                      &c->sampling.block, e);
}

/* A pack's own default, or that of the API. */
static float own(float of_pack, float otherwise)
{
    return of_pack == of_pack ? of_pack : otherwise;
}

bool call_parse_sampling(call *c, const json_node *body, api_error *e)
{
    ingot_sampling *s = &c->sampling;
    const ingot_model_info *info = &c->service->info;
    int64_t seed = 0;
    s->temperature = own(info->temperature, 1);
    s->top_p = own(info->top_p, 1);
    s->min_p = own(info->min_p, 0);
    s->presence_penalty = own(info->presence_penalty, 0);
    s->repetition_penalty = own(info->repetition_penalty, 1);
    s->top_k = info->top_k > 0 ? info->top_k : 0;
    if (!fields_real(body, "temperature", 0, 2, &s->temperature, e) ||
        !fields_real(body, "top_p", 0, 1, &s->top_p, e) ||
        !fields_int(body, "top_k", -1, 1 << 24, &s->top_k, e) ||
        !fields_real(body, "min_p", 0, 1, &s->min_p, e) ||
        !fields_real(body, "presence_penalty", -2, 2, &s->presence_penalty, e) ||
        !fields_real(body, "frequency_penalty", -2, 2, &s->frequency_penalty, e) ||
        !fields_real(body, "repetition_penalty", 0.01, 100, &s->repetition_penalty, e) ||
        !fields_i64(body, "seed", &seed, &s->has_seed, e) || !parse_bias(c, body, e) ||
        !fields_text(body, "grammar", &c->mem, &s->grammar, e) || !parse_block(c, body, e))
        return false;
    if (s->top_p < INGOT_TOP_P_LEAST) s->top_p = INGOT_TOP_P_LEAST; /* 0: one token */
    if (s->top_k < 0) s->top_k = 0; /* -1 is how some clients say "off" */
    s->seed = (uint64_t)seed;
    return true;
}

void call_copy_sampling(jsonw *w, const json_node *body)
{
    static const char *const names[] = {
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "presence_penalty",
        "frequency_penalty",
        "repetition_penalty",
        "seed",
        "logit_bias",
        "grammar",
        "block",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        fields_copy(w, body, names[i], names[i]);
}

/* ---- tools ---- */

static bool check_tool(const json_node *tool, size_t i, api_error *e)
{
    const json_node *function = json_get(tool, "function");
    const char *type = json_text(json_get(tool, "type")),
               *name = json_text(json_get(function, "name"));
    char at[64];
    snprintf(at, sizeof at, "tools.%zu", i);
    if (json_kind(tool) != JSON_OBJECT || !type || strcmp(type, "function") != 0)
        return fields_refuse(e, at, "%s: found type \"%.40s\", want \"function\"", at,
                             type ? type : "(none)");
    if (json_kind(function) != JSON_OBJECT || !name || !*name)
        return fields_refuse(e, at, "%s.function.name: want the function's name", at);
    const json_node *parameters = json_get(function, "parameters");
    if (parameters && json_kind(parameters) != JSON_NULL && json_kind(parameters) != JSON_OBJECT)
        return fields_refuse(e, at, "%s.function.parameters: found %s, want a JSON Schema object",
                             at, json_kind_name(parameters));
    return true;
}

static bool is_declared(const json_node *tools, const char *name)
{
    for (size_t i = 0; i < json_len(tools); i++) {
        const char *known = json_text(json_get(json_get(json_at(tools, i), "function"), "name"));
        if (known && strcmp(known, name) == 0) return true;
    }
    return false;
}

bool call_parse_tools(call *c, const json_node *tools, const json_node *choice_node, api_error *e)
{
    const bool has_choice = choice_node && json_kind(choice_node) != JSON_NULL;
    const char *word = json_text(choice_node);
    for (size_t i = 0; i < json_len(tools); i++)
        if (!check_tool(json_at(tools, i), i, e)) return false;
    if (has_choice && !word && json_kind(choice_node) != JSON_OBJECT)
        return fields_refuse(e, "tool_choice", "'tool_choice': found %s, want a word or an object",
                             json_kind_name(choice_node));
    if (word && strcmp(word, "none") != 0 && strcmp(word, "auto") != 0 &&
        strcmp(word, "required") != 0)
        return fields_refuse(e, "tool_choice",
                             "'tool_choice': found \"%.40s\", want none, auto or required", word);
    if (has_choice && json_len(tools) == 0 && !(word && strcmp(word, "required") != 0))
        return fields_refuse(e, "tool_choice", "'tool_choice': no tools are given");
    const char *named =
        word ? NULL : json_text(json_get(json_get(choice_node, "function"), "name"));
    if (has_choice && !word && (!named || !is_declared(tools, named)))
        return fields_refuse(e, "tool_choice", "'tool_choice': want the name of one of the tools");
    if (json_len(tools) == 0 || (word && strcmp(word, "none") == 0)) return true;
    c->prompts[0].tools = fields_json(tools, &c->mem);
    c->prompts[0].tool_choice = named ? arena_strdup(&c->mem, str_from(named))
                                : word && strcmp(word, "required") == 0 ? "required"
                                                                        : NULL;
    return (c->prompts[0].tools && (!named || c->prompts[0].tool_choice)) || fields_no_memory(e);
}

/* ---- starting ---- */

/* The library's messages begin with the path of the member they are about. */
static void name_param(api_error *e)
{
    static const char path[] = "abcdefghijklmnopqrstuvwxyz_0123456789.";
    const size_t n = strspn(e->message, path);
    if (n == 0 || e->message[n] != ':' || n >= sizeof e->param) return;
    memcpy(e->param, e->message, n);
    e->param[n] = '\0';
}

api_error call_error_of(ingot_status s, const ingot_error *from)
{
    api_error e = { .status = 500, .type = "server_error" };
    snprintf(e.message, sizeof e.message, "%s", from->text);
    switch (s) {
    case INGOT_E_ARG:
    case INGOT_E_UNSUPPORTED:
    case INGOT_E_FORMAT:
    case INGOT_E_LIMIT: /* the same request would meet it again */
        e.status = 400;
        e.type = "invalid_request_error";
        name_param(&e);
        break;
    case INGOT_E_AGAIN:
        e.status = 429;
        e.type = "rate_limit_error";
        break;
    case INGOT_E_NOMEM:
    case INGOT_E_CANCELLED:
        e.status = 503;
        e.type = "unavailable_error";
        break;
    default: break;
    }
    return e;
}

bool call_parse(call *c, str body, api_error *e)
{
    return fields_parse(&c->doc, body, e) && c->dialect->parse(c, json_root(c->doc), e);
}

bool call_parse_translated(call *c, const dialect *d, const buf *text, api_error *e)
{
    if (text->failed == E_NOMEM) return fields_no_memory(e);
    if (text->failed) return fields_refuse(e, "", "body: larger than what this server reads");
    return fields_parse(&c->translated, buf_view(text), e) &&
           d->parse(c, json_root(c->translated), e);
}

static bool make_choices(call *c)
{
    const int n = c->n_prompts * call_n(c);
    c->choices = mem_array((size_t)n, sizeof *c->choices);
    if (!c->choices) return false;
    c->n_choices = n;
    for (int i = 0; i < n; i++) {
        buf_init(&c->choices[i].content, CALL_MAX_OUTPUT);
        buf_init(&c->choices[i].reasoning, CALL_MAX_OUTPUT);
        buf_init(&c->choices[i].logprobs, CALL_MAX_OUTPUT);
    }
    return true;
}

/* Where the dialect has what the library calls a schema or a prompt. */
static void rename_param(const call *c, api_error *e)
{
    const dialect *d = c->dialect;
    const str param = str_from(e->param);
    const char *field = NULL;
    if (str_eq(param, STR("schema")) || str_starts(param, STR("schema.")))
        field = c->sampling.schema ? d->schema_field : "tools";
    else if (str_eq(param, STR("prompt")) || str_eq(param, STR("text"))) field = d->prompt_field;
    if (field) snprintf(e->param, sizeof e->param, "%s", field);
}

/* A prompt that fills the context has its own error, which clients read to shorten their
 * history. */
static bool refuse_submit(const call *c, ingot_status s, const ingot_error *from, api_error *e)
{
    *e = call_error_of(s, from);
    rename_param(c, e);
    if (!from->n_context) return false;
    const int room = from->n_context - from->n_prompt;
    if (room < 1)
        fields_refuse(e, c->dialect->prompt_field,
                      "the prompt has %d tokens, more than fit into the context of %d",
                      from->n_prompt, from->n_context);
    else
        fields_refuse(e, c->dialect->limit_field,
                      "the prompt has %d tokens and %s is %d: together more than the context of %d",
                      from->n_prompt, c->dialect->limit_field, c->sampling.max_tokens,
                      from->n_context);
    e->code = "context_length_exceeded";
    e->n_prompt = from->n_prompt;
    e->n_ctx = from->n_context;
    e->n_output = c->sampling.max_tokens;
    return false;
}

bool call_start(call *c, str body, api_error *e)
{
    if (!call_parse(c, body, e)) return false;
    if (c->n_prompts * call_n(c) > c->service->room) /* the queue would never take them */
        return fields_refuse(e, c->n_prompts > 1 ? c->dialect->prompt_field : "n",
                             "found %d choices, want at most %d (--parallel and --queue)",
                             c->n_prompts * call_n(c), c->service->room);
    if (!make_choices(c)) return fields_no_memory(e);
    for (int i = 0; i < c->n_prompts; i++) {
        ingot_error ie;
        const ingot_status s =
            ingot_submit(&c->requests[i], c->service->engine, &c->prompts[i], &c->sampling, &ie);
        if (s != INGOT_OK) return refuse_submit(c, s, &ie, e);
    }
    return true;
}

/* ---- events ---- */

bool call_outgrown(api_error *e)
{
    *e = (api_error){ .status = 503,
                      .type = "unavailable_error",
                      .message = "the answer outgrew its memory" };
    return false;
}

static void write_bytes(jsonw *w, const char *bytes, size_t n)
{
    jsonw_member_array(w, "bytes");
    for (size_t i = 0; i < n; i++) jsonw_i64(w, (unsigned char)bytes[i]);
    jsonw_end_array(w);
}

static void write_token(jsonw *w, const call *c, int32_t id, float logprob)
{
    size_t n;
    const char *bytes = ingot_token_bytes(c->service->model, id, &n);
    jsonw_member_str(w, "token", (str){ bytes, n });
    jsonw_member_f64(w, "logprob", (double)logprob);
    write_bytes(w, bytes, n);
}

static void keep_logprobs(const call *c, choice *k, const ingot_event *ev)
{
    for (int i = 0; i < ev->n_logprobs; i++) {
        const ingot_logprob *l = &ev->logprobs[i];
        jsonw w;
        if (k->logprobs.len) buf_char(&k->logprobs, ',');
        jsonw_init(&w, &k->logprobs);
        jsonw_object(&w);
        write_token(&w, c, l->id, l->logprob);
        jsonw_member_array(&w, "top_logprobs");
        for (int j = 0; j < l->n_top; j++) {
            jsonw_object(&w);
            write_token(&w, c, l->top[j].id, l->top[j].logprob);
            jsonw_end_object(&w);
        }
        jsonw_end_array(&w);
        jsonw_end_object(&w);
    }
}

/* What comes next is of this kind: a part of its own unless it goes on with the last one. */
static void note_part(choice *k, ingot_event_kind kind, size_t from, size_t len)
{
    part *last = k->n_parts ? &k->parts[k->n_parts - 1] : NULL;
    if (last && last->kind == kind && kind != INGOT_TOOL_BEGIN) {
        last->len += len;
        return;
    }
    part *more = mem_resize(k->parts, sizeof *more * (size_t)(k->n_parts + 1));
    if (!more) {
        k->content.failed = E_NOMEM;
        return;
    }
    k->parts = more;
    k->parts[k->n_parts++] = (part){ kind, from, len, k->n_calls - 1 };
}

str call_arguments(const tool_call *t)
{
    return t->arguments.len ? buf_view(&t->arguments) : STR("{}");
}

str call_part_text(const choice *k, const part *p)
{
    if (p->kind == INGOT_TOOL_BEGIN) return call_arguments(&k->calls[p->call]);
    const buf *b = p->kind == INGOT_THINKING ? &k->reasoning : &k->content;
    return str_sub(buf_view(b), p->from, p->from + p->len);
}

static void keep_text(choice *k, buf *b, const ingot_event *ev)
{
    const size_t from = b->len;
    buf_put(b, ev->text, ev->len);
    if (ev->len && !b->failed) note_part(k, ev->kind, from, ev->len);
}

static void begin_call(const call *c, choice *k, const ingot_event *ev)
{
    tool_call *more = mem_resize(k->calls, sizeof *more * (size_t)(k->n_calls + 1));
    if (!more) {
        k->content.failed = E_NOMEM;
        return;
    }
    k->calls = more;
    tool_call *t = &k->calls[k->n_calls++];
    *t = (tool_call){ .name = mem_strndup(ev->text, ev->len) };
    if (!t->name) k->content.failed = E_NOMEM;
    buf_init(&t->arguments, CALL_MAX_OUTPUT);
    call_make_id(t->id, sizeof t->id, c->dialect->call_prefix);
    note_part(k, INGOT_TOOL_BEGIN, 0, 0);
}

static void keep_event(call *c, choice *k, const ingot_event *ev)
{
    switch (ev->kind) {
    case INGOT_TEXT: keep_text(k, &k->content, ev); break;
    case INGOT_THINKING: keep_text(k, &k->reasoning, ev); break;
    case INGOT_TOOL_BEGIN: begin_call(c, k, ev); break;
    case INGOT_TOOL_ARGUMENTS:
        if (k->n_calls) buf_put(&k->calls[k->n_calls - 1].arguments, ev->text, ev->len);
        break;
    case INGOT_PROGRESS:
        c->progress_done = ev->done;
        c->progress_total = ev->total;
        break;
    case INGOT_END:
        k->ended = true;
        k->finish = ev->finish;
        k->usage = *ev->usage;
        if (ev->stop && !(k->stop = mem_strndup(ev->stop, strlen(ev->stop))))
            k->content.failed = E_NOMEM;
        c->n_ended++;
        break;
    case INGOT_TOOL_END: break;
    }
    keep_logprobs(c, k, ev);
}

static bool is_whole(const choice *k)
{
    return !k->content.failed && !k->reasoning.failed && !k->logprobs.failed &&
           !(k->n_calls && k->calls[k->n_calls - 1].arguments.failed);
}

static bool take(call *c, int prompt, const ingot_event *ev, buf *out, api_error *e)
{
    choice *k = &c->choices[prompt * call_n(c) + ev->choice];
    keep_event(c, k, ev);
    if (ev->kind == INGOT_END && ev->finish == INGOT_FINISH_ERROR) {
        *e = (api_error){ .status = 500, .type = "server_error" };
        snprintf(e->message, sizeof e->message, "%s", ev->error);
        return false;
    }
    if (!is_whole(k)) return call_outgrown(e);
    if (c->stream) c->dialect->event(c, prompt, ev, out);
    return true;
}

bool call_drain(call *c, buf *out, api_error *e)
{
    for (int i = 0; i < c->n_prompts; i++) {
        ingot_event ev;
        ingot_status s;
        while ((s = ingot_next(c->requests[i], &ev, 0)) == INGOT_OK)
            if (!take(c, i, &ev, out, e)) return false;
        if (s == INGOT_E_AGAIN || s == INGOT_E_CANCELLED) continue;
        *e = call_error_of(s, &(ingot_error){ .text = "the answer could not be read" });
        return false;
    }
    return true;
}

bool call_done(const call *c)
{
    return c->n_ended == c->n_choices;
}

void call_cancel(call *c)
{
    for (int i = 0; i < c->n_prompts; i++)
        if (c->requests[i]) ingot_cancel(c->requests[i]);
}

/* ---- reports ---- */

void call_sum_usage(const call *c, ingot_usage *sum)
{
    *sum = (ingot_usage){ 0 };
    for (int i = 0; i < c->n_choices; i++) {
        const ingot_usage *u = &c->choices[i].usage;
        if (i % call_n(c) == 0) { /* a prompt is read once, whatever the number of choices */
            sum->prompt_tokens += u->prompt_tokens;
            sum->cached_tokens += u->cached_tokens;
            sum->prefill_s += u->prefill_s;
            if (u->queue_s > sum->queue_s) sum->queue_s = u->queue_s;
        }
        sum->completion_tokens += u->completion_tokens;
        sum->decoded_tokens += u->decoded_tokens;
        sum->reasoning_tokens += u->reasoning_tokens;
        sum->decode_s += u->decode_s;
        sum->plain_s += u->plain_s;
        sum->steps += u->steps;
        sum->drafted += u->drafted;
        sum->accepted += u->accepted;
        sum->copy_drafted += u->copy_drafted;
        sum->copy_accepted += u->copy_accepted;
        for (int j = 0; j < INGOT_MAX_BLOCK; j++) {
            sum->drafted_at[j] += u->drafted_at[j];
            sum->accepted_at[j] += u->accepted_at[j];
        }
        for (int j = 0; j <= INGOT_MAX_BLOCK; j++) sum->blocks[j] += u->blocks[j];
    }
    if (c->n_choices) {
        sum->seed = c->choices[0].usage.seed;
        memcpy(sum->sha256, c->choices[0].usage.sha256, sizeof sum->sha256);
    }
}

static void number(jsonw *w, const char *key, double v)
{
    jsonw_member_fixed(w, key, v, 3);
}

/* The first names are llama.cpp's, which benchmarks and user interfaces read. */
void call_write_timings(jsonw *w, const ingot_usage *u)
{
    const int prompt_n = u->prompt_tokens - u->cached_tokens;
    int rows = 0;
    jsonw_object(w);
    jsonw_member_i64(w, "cache_n", u->cached_tokens);
    jsonw_member_i64(w, "prompt_n", prompt_n);
    number(w, "prompt_ms", u->prefill_s * 1e3);
    number(w, "prompt_per_second", u->prefill_s > 0 ? prompt_n / u->prefill_s : 0);
    jsonw_member_i64(w, "predicted_n", u->completion_tokens);
    number(w, "predicted_ms", u->decode_s * 1e3);
    number(w, "predicted_per_second", u->decode_s > 0 ? u->decoded_tokens / u->decode_s : 0);
    jsonw_member_i64(w, "draft_n", u->drafted);
    jsonw_member_i64(w, "draft_n_accepted", u->accepted);
    jsonw_member_i64(w, "draft_cycles", u->steps);
    jsonw_member_array(w, "accepted_per_position");
    for (int i = 0; i < INGOT_MAX_BLOCK && u->drafted_at[i]; i++)
        jsonw_fixed(w, (double)u->accepted_at[i] / u->drafted_at[i], 4);
    jsonw_end_array(w);
    for (int i = 1; i <= INGOT_MAX_BLOCK; i++) rows += i * u->blocks[i];
    number(w, "block_mean", u->steps ? (double)rows / u->steps : 0);
    number(w, "plain_ms_estimate", u->plain_s * 1e3);
    number(w, "queue_ms", u->queue_s * 1e3);
    jsonw_member_u64(w, "seed", u->seed);
    jsonw_member_text(w, "tokens_sha256", u->sha256);
    jsonw_end_object(w);
}

void call_event_begin(buf *out, const char *name)
{
    if (name) buf_printf(out, "event: %s\n", name);
    buf_text(out, "data: ");
}

void call_event_end(buf *out)
{
    buf_text(out, "\n\n");
}
