/* ingot.c - the public header, function by function.
 *
 * Every function here turns public structs into those of the modules, calls one of them, and turns
 * the answer back. */
#include "ingot/ingot.h"
#include <stdio.h>
#include "api/check.h"
#include "api/handle.h"
#include "api/params.h"
#include "api/prompt.h"
#include "api/sizing.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/banned.h"

#define DEFAULT_DISK_BYTES ((uint64_t)16 << 30)
enum { DEFAULT_QUEUE = 64, MAX_PARALLEL = 256 };

#define SAME_STATUS(name) \
    _Static_assert((int)(name) == (int)INGOT_##name, "the public statuses are numbered as ours")
SAME_STATUS(OK);
SAME_STATUS(E_ARG);
SAME_STATUS(E_IO);
SAME_STATUS(E_FORMAT);
SAME_STATUS(E_UNSUPPORTED);
SAME_STATUS(E_NOMEM);
SAME_STATUS(E_LIMIT);
SAME_STATUS(E_CANCELLED);
SAME_STATUS(E_AGAIN);
SAME_STATUS(E_BUG);

static ingot_status give(ingot_error *out, status s, const error *e)
{
    if (out && s) {
        out->code = (ingot_status)s;
        out->n_prompt = out->n_context = 0;
        memcpy(out->text, e->text, sizeof out->text);
    }
    return (ingot_status)s;
}

/* Copies as much of an option struct as its caller knew of; the rest is zero. */
static status take_options(void *to, size_t cap, const void *from, const char *what, error *e)
{
    size_t size;
    memset(to, 0, cap);
    if (!from) return OK;
    memcpy(&size, from, sizeof size);
    if (size < sizeof size || size > cap)
        return error_set(e, E_ARG, "%s: size: found %zu, want %zu (INGOT_INIT sets it)", what, size,
                         cap);
    memcpy(to, from, size);
    return OK;
}

const char *ingot_version(void)
{
    return INGOT_VERSION;
}

const char *ingot_cpu_tiers(void)
{
    return compute_tiers();
}

/* ---- model ---- */

ingot_status ingot_model_open(ingot_model **out, const ingot_model_options *o, ingot_error *e)
{
    error er = { 0 };
    ingot_model_options options;
    *out = NULL;
    ingot_model *m = NULL;
    status s = take_options(&options, sizeof options, o, "model options", &er);
    if (s == OK && !(m = mem_zalloc(sizeof *m))) s = error_set(&er, E_NOMEM, "model: no memory");
    if (s == OK) s = model_open(m, &options, &er);
    if (s == OK) *out = m;
    else if (m) model_close(m);
    return give(e, s, &er);
}

void ingot_model_close(ingot_model *m)
{
    if (m) model_close(m);
}

void ingot_model_get_info(const ingot_model *m, ingot_model_info *out)
{
    *out = m->info;
}

/* ---- text ---- */

void ingot_text_free(ingot_text *t)
{
    mem_free(t->ptr);
    *t = (ingot_text){ 0 };
}

void ingot_tokens_free(ingot_tokens *t)
{
    mem_free(t->ids);
    *t = (ingot_tokens){ 0 };
}

/* Moves the content of b, which is empty afterwards, to the caller. */
static status give_text(ingot_text *out, buf *b, const char *what, error *e)
{
    *out = (ingot_text){ 0 };
    buf_put(b, "", 0);
    const status s = buf_status(b, what, e);
    const size_t len = b->len;
    if (s == OK) {
        out->ptr = buf_steal(b);
        out->len = len;
        if (!out->ptr) return error_set(e, E_NOMEM, "%s: no memory", what);
    }
    buf_free(b);
    return s;
}

ingot_status ingot_tokenize(const ingot_model *m, const char *text, size_t len,
                            ingot_special special, ingot_tokens *out, ingot_error *e)
{
    error er = { 0 };
    tokenizer_ids ids = { 0 };
    *out = (ingot_tokens){ 0 };
    status s = prompt_need_tokenizer(m, &er);
    if (s == OK)
        s = tokenizer_encode(m->tokenizer, (str){ text, len }, (tokenizer_special)special, &ids,
                             &er);
    if (s == OK) *out = (ingot_tokens){ ids.ptr, ids.len };
    else tokenizer_ids_free(&ids);
    return give(e, s, &er);
}

ingot_status ingot_detokenize(const ingot_model *m, const int32_t *ids, size_t n, bool hide_special,
                              ingot_text *out, ingot_error *e)
{
    error er = { 0 };
    *out = (ingot_text){ 0 };
    status s = prompt_need_tokenizer(m, &er);
    if (s == OK) {
        buf b;
        buf_init(&b, SIZE_MAX / 2);
        detok_all(m->tokenizer, ids, n, hide_special, &b);
        s = give_text(out, &b, "detokenize", &er);
    }
    return give(e, s, &er);
}

const char *ingot_token_bytes(const ingot_model *m, int32_t id, size_t *len)
{
    const str s = m->tokenizer ? tokenizer_bytes(m->tokenizer, id) : STR("");
    *len = s.len;
    return s.len ? s.ptr : "";
}

bool ingot_token_special(const ingot_model *m, int32_t id)
{
    return m->tokenizer && tokenizer_is_special(m->tokenizer, id);
}

struct ingot_detok {
    detok detok;
};

ingot_status ingot_detok_new(ingot_detok **out, const ingot_model *m, bool hide_special,
                             ingot_error *e)
{
    error er = { 0 };
    *out = NULL;
    status s = prompt_need_tokenizer(m, &er);
    if (s == OK && !(*out = mem_zalloc(sizeof **out)))
        s = error_set(&er, E_NOMEM, "detok: no memory");
    if (s == OK) detok_init(&(*out)->detok, m->tokenizer, hide_special);
    return give(e, s, &er);
}

ingot_status ingot_detok_put(ingot_detok *d, int32_t id, ingot_text *piece, ingot_error *e)
{
    error er = { 0 };
    buf b;
    buf_init(&b, SIZE_MAX / 2);
    detok_put(&d->detok, id, &b);
    const status s = give_text(piece, &b, "detok", &er);
    return give(e, s, &er);
}

ingot_status ingot_detok_end(ingot_detok *d, ingot_text *piece, ingot_error *e)
{
    error er = { 0 };
    buf b;
    buf_init(&b, SIZE_MAX / 2);
    detok_finish(&d->detok, &b);
    const status s = give_text(piece, &b, "detok", &er);
    return give(e, s, &er);
}

void ingot_detok_free(ingot_detok *d)
{
    mem_free(d);
}

ingot_status ingot_render(const ingot_model *m, const ingot_prompt *p, ingot_text *out,
                          ingot_error *e)
{
    error er = { 0 };
    ingot_prompt from;
    prompt made = { 0 };
    *out = (ingot_text){ 0 };
    status s = take_options(&from, sizeof from, p, "prompt", &er);
    if (s == OK) s = prompt_render(&made, m, &from, &er);
    if (s == OK) s = give_text(out, &made.text, "prompt", &er);
    prompt_free(&made);
    return give(e, s, &er);
}

ingot_status ingot_render_bare(const ingot_model *m, const char *template_text,
                               const char *variables, ingot_text *out, const char **fault,
                               ingot_error *e)
{
    error er = { 0 };
    const chat *use = NULL;
    chat *own = NULL;
    json_doc *doc = NULL;
    template_fault f = TEMPLATE_OK;
    buf b;
    buf_init(&b, TEMPLATE_MAX_OUTPUT);
    *out = (ingot_text){ 0 };
    status s = prompt_chat(m, template_text, &use, &own, &er);
    if (s == E_FORMAT) f = TEMPLATE_SYNTAX;
    if (s == OK) s = json_parse(&doc, str_from(variables), JSON_KEEP_BIGINT, "variables", &er);
    if (s == OK) s = template_render(chat_template(use), json_root(doc), TEMPLATE_NOW, &b, &f, &er);
    if (s == OK) s = give_text(out, &b, "render", &er);
    if (fault) *fault = template_fault_name(f);
    buf_free(&b);
    json_free(doc);
    chat_free(own);
    return give(e, s, &er);
}

/* ---- engine ---- */

static void on_wake(void *arg, void *owner)
{
    const ingot_engine *g = arg;
    if (owner) g->wake(g->wake_arg, owner); /* nobody has the request that scores */
}

/* The disk tier. A state's bits depend on the weights, the arithmetic and the form of keys and
 * values; the program's version stands for all that may be computed in another way one day. */
static status add_disk(scheduler_options *so, const ingot_model *m, const ingot_engine_options *o,
                       char *model, size_t cap, error *e)
{
    if (!o->cache_dir) return OK;
    if (!o->cache_bytes)
        return error_set(e, E_ARG, "cache_dir: it extends the prefix cache, and cache_bytes is 0");
    (void)snprintf(model, cap, "ingot %s king %s drafter %s mode %d kv %d", INGOT_VERSION,
                   pack_identity(m->king_pack),
                   m->drafter_pack ? pack_identity(m->drafter_pack) : "none", (int)m->mode,
                   (int)so->kv);
    so->disk = (prefix_disk_options){ .dir = o->cache_dir,
                                      .budget = o->cache_dir_bytes ? o->cache_dir_bytes
                                                                   : DEFAULT_DISK_BYTES,
                                      .model = model };
    return OK;
}

static status start(ingot_engine *g, ingot_model *m, const ingot_engine_options *o, error *e)
{
    if (!m->king) return error_set(e, E_ARG, "engine: the model has only its text parts open");
    const int most = m->info.max_context;
    engine_options options = { .queue = o->queue ? o->queue : DEFAULT_QUEUE };
    scheduler_options *so = &options.scheduler;
    *so = (scheduler_options){
        .parts = { .king = m->king,
                   .drafter = m->drafter,
                   .tokenizer = m->tokenizer,
                   .compute = { .cpu = m->cpu, .threads = m->info.threads } },
        .context = o->context,
        .total_context = o->total_context,
        .parallel = o->parallel ? o->parallel : 1,
        .chunk = o->chunk ? o->chunk : SCHEDULER_CHUNK,
        .cache_bytes = o->cache_bytes == INGOT_CACHE_AUTO ? SIZING_CACHE : (size_t)o->cache_bytes
    };
    TRY(check_range("parallel", so->parallel, 1, MAX_PARALLEL, e));
    TRY(check_range("queue", options.queue, 0, 65536, e));
    TRY(check_range("chunk", so->chunk, 1, 65536, e));
    TRY(compute_kv_type(&so->kv, o->kv_type, e));
    TRY(sizing_choose(so, most, e));
    char model[256];
    TRY(add_disk(so, m, o, model, sizeof model, e));
    if (o->wake) {
        options.wake = on_wake;
        options.wake_arg = g;
    }
    g->model = m;
    g->context = so->context;
    g->total_context = so->total_context;
    g->wake = o->wake;
    g->wake_arg = o->wake_arg;
    g->bytes = scheduler_bytes(so);
    return engine_start(&g->engine, &options, e);
}

ingot_status ingot_engine_start(ingot_engine **out, ingot_model *m, const ingot_engine_options *o,
                                ingot_error *e)
{
    error er = { 0 };
    ingot_engine_options options;
    *out = NULL;
    ingot_engine *g = NULL;
    status s = take_options(&options, sizeof options, o, "engine options", &er);
    if (s == OK && !(g = mem_zalloc(sizeof *g))) s = error_set(&er, E_NOMEM, "engine: no memory");
    if (s == OK) s = start(g, m, &options, &er);
    if (s == OK) *out = g;
    else mem_free(g);
    return give(e, s, &er);
}

void ingot_engine_stop(ingot_engine *g)
{
    if (!g) return;
    engine_stop(g->engine);
    mem_free(g);
}

int ingot_engine_context(const ingot_engine *g)
{
    return g->context;
}

int ingot_engine_room(const ingot_engine *g)
{
    return engine_room(g->engine);
}

int ingot_engine_total_context(const ingot_engine *g)
{
    return g->total_context;
}

void ingot_engine_get_stats(ingot_engine *g, ingot_stats *out)
{
    scheduler_stats s;
    engine_get_stats(g->engine, &s);
    *out = (ingot_stats){ .running = s.running,
                          .queued = s.queued,
                          .requests = s.requests,
                          .cancelled = s.cancelled,
                          .failed = s.failed,
                          .preempted = s.preempted,
                          .prompt_tokens = s.prompt_tokens,
                          .cached_tokens = s.cached_tokens,
                          .generated_tokens = s.generated_tokens,
                          .reasoning_tokens = s.reasoning_tokens,
                          .prefill_s = s.prefill_s,
                          .decode_s = s.decode_s,
                          .plain_s = s.plain_s,
                          .passes = s.passes,
                          .pass_rows = s.pass_rows,
                          .drafted = s.drafted,
                          .accepted = s.accepted,
                          .kv_pages_free = s.kv_pages_free,
                          .kv_pages_total = s.kv_pages_total,
                          .king_bytes = g->model->info.king_bytes,
                          .drafter_bytes = g->model->info.drafter_bytes,
                          .engine_bytes = g->bytes };
    out->cache_lookups = s.cache.lookups;
    out->cache_hits = s.cache.hits;
    out->cache_partial = s.cache.partial;
    out->cache_bytes = s.cache.bytes;
    out->cache_disk_loads = s.cache.disk_loads;
    out->cache_disk_failures = s.cache.disk_failures;
    out->cache_disk_bytes = s.cache.disk_bytes;
    memcpy(out->accepted_at, s.accepted_at, sizeof out->accepted_at);
}

/* ---- requests ---- */

static status make_request(ingot_request *r, const ingot_engine *g, const prompt *p,
                           const ingot_sampling *s, error *e)
{
    TRY(params_request(&r->request, g->model, g->context, p, s, r, e));
    events_init(&r->events);
    for (int i = 0; i < r->n; i++)
        TRY(reader_init(&r->readers[i], r->request, i, g->model->tokenizer, json_root(p->tools),
                        s->raw, &r->events, e));
    return OK;
}

static void free_request(ingot_request *r)
{
    for (int i = 0; i < r->n; i++) reader_free(&r->readers[i]);
    events_free(&r->events);
    mem_free(r);
}

static status submit(ingot_request **out, ingot_engine *g, const ingot_prompt *p,
                     const ingot_sampling *s, int *n_prompt, error *e)
{
    prompt made;
    TRY(params_check(s, g->model, e));
    TRY(prompt_build(&made, g->model, p, e));
    *n_prompt = (int)made.ids.len;
    ingot_request *r = mem_zalloc(sizeof *r);
    status st = r ? OK : error_set(e, E_NOMEM, "request: no memory");
    if (st == OK) {
        r->n = s->n ? s->n : 1;
        st = make_request(r, g, &made, s, e);
        if (st == OK) st = engine_submit(g->engine, r->request, e);
        else if (r->request)
            for (int i = 0; i < r->n; i++) request_drop(r->request);
        if (st == OK) *out = r;
    }
    prompt_free(&made);
    if (st && r) {
        if (r->request) request_release(r->request);
        free_request(r);
    }
    return st;
}

ingot_status ingot_submit(ingot_request **out, ingot_engine *g, const ingot_prompt *p,
                          const ingot_sampling *s, ingot_error *e)
{
    error er = { 0 };
    ingot_prompt from;
    ingot_sampling sampling = { 0 };
    *out = NULL;
    status st = take_options(&from, sizeof from, p, "prompt", &er);
    if (st == OK) st = take_options(&sampling, sizeof sampling, s, "sampling", &er);
    int n_prompt = 0;
    if (st == OK) st = submit(out, g, &from, &sampling, &n_prompt, &er);
    give(e, st, &er);
    const int wanted = sampling.max_tokens > 0 ? sampling.max_tokens : 1;
    if (e && st == E_LIMIT && n_prompt > 0 && wanted > g->context - n_prompt) {
        e->n_prompt = n_prompt;
        e->n_context = g->context;
    }
    return (ingot_status)st;
}

/* One round over the choices, beginning after the one served last. */
static status take_news(ingot_request *r, error *e)
{
    events_clear(&r->events);
    for (int i = 0; i < r->n && r->events.n == 0; i++) {
        reader *rd = &r->readers[r->turn];
        r->turn = (r->turn + 1) % r->n;
        if (rd->ended) continue;
        TRY(reader_take(rd, &r->events, e));
        r->ended += rd->ended;
    }
    return OK;
}

ingot_status ingot_next(ingot_request *r, ingot_event *ev, int timeout_ms)
{
    const int64_t until = clock_ns() + (int64_t)timeout_ms * 1000000;
    while (!events_next(&r->events, ev)) {
        if (r->ended == r->n) return INGOT_E_CANCELLED;
        const status s = take_news(r, NULL);
        if (s) return (ingot_status)s;
        if (r->events.n || r->ended == r->n) continue;
        const int64_t left_ms = (until - clock_ns() + 999999) / 1000000;
        const int wait_ms = timeout_ms < 0 ? -1 : left_ms > 0 ? (int)left_ms : 0;
        if (request_wait(r->request, &r->seen, wait_ms)) return INGOT_E_AGAIN;
    }
    return INGOT_OK;
}

void ingot_cancel(ingot_request *r)
{
    request_cancel(r->request);
}

void ingot_release(ingot_request *r)
{
    if (!r) return;
    request_release(r->request);
    free_request(r);
}

const int32_t *ingot_prompt_ids(const ingot_request *r, int *n)
{
    const request_params *p = request_get_params(r->request);
    *n = p->n_prompt;
    return p->prompt;
}

void ingot_request_place(const ingot_request *r, int choice, ingot_place *out)
{
    request_progress g;
    request_read(r->request, choice, &g);
    *out = (ingot_place){ .queued = g.queued,
                          .prompt_tokens = request_get_params(r->request)->n_prompt,
                          .prompt_done = g.prompt_done,
                          .tokens = g.n_ids };
    const int steps = g.usage.steps;
    if (steps > 0) out->block = request_peek(r->request, choice).step_block[steps - 1];
}

/* ---- score ---- */

static status score(ingot_engine *g, const prompt *p, float *logprob, int n, error *e)
{
    if (n != (int)p->ids.len - 1)
        return error_set(e, E_ARG, "score: room for %d values, want %zu (tokens - 1)", n,
                         p->ids.len - 1);
    if (n == 0) return OK;
    request_params params = { .n = 1, .max_tokens = 1, .top_logprobs = -1, .score = logprob };
    params_prompt(&params, p);
    if (params.n_prompt > g->context)
        return error_set(e, E_LIMIT, "prompt: %d tokens, the context holds %d", params.n_prompt,
                         g->context);
    params.sampling.repetition = 1;
    request *r;
    TRY(request_new(&r, &params, NULL, e));
    status s = engine_submit(g->engine, r, e);
    request_progress now = { 0 };
    uint64_t seen = 0;
    while (s == OK && now.finish == REQUEST_RUNNING) {
        (void)request_wait(r, &seen, -1);
        request_read(r, 0, &now);
    }
    if (s == OK && now.finish == REQUEST_CANCELLED)
        s = error_set(e, E_CANCELLED, "score: cancelled");
    if (s == OK && now.finish == REQUEST_FAILED)
        s = error_set(e, E_BUG, "score: %s", request_peek(r, 0).error);
    request_release(r);
    return s;
}

ingot_status ingot_score(ingot_engine *g, const ingot_prompt *p, float *logprob, int n,
                         ingot_error *e)
{
    error er = { 0 };
    ingot_prompt from;
    prompt made = { 0 };
    status s = take_options(&from, sizeof from, p, "prompt", &er);
    if (s == OK) s = prompt_build(&made, g->model, &from, &er);
    if (s == OK) s = score(g, &made, logprob, n, &er);
    prompt_free(&made);
    return give(e, s, &er);
}

/* ---- splitter ---- */

struct ingot_splitter {
    reply *reply;
    events events;
};

static status new_splitter(ingot_splitter *s, const ingot_split_options *o, error *e)
{
    json_doc *tools = NULL;
    if (o->tools) TRY(json_parse(&tools, str_from(o->tools), JSON_KEEP_BIGINT, "tools", e));
    events_init(&s->events);
    const status st =
        reply_new(&s->reply, o->start_in_thinking, json_root(tools), events_sink, &s->events, e);
    json_free(tools);
    return st;
}

ingot_status ingot_splitter_new(ingot_splitter **out, const ingot_model *m,
                                const ingot_split_options *o, ingot_error *e)
{
    (void)m; /* both forms of calls are told apart by themselves */
    error er = { 0 };
    ingot_split_options options;
    *out = NULL;
    status st = take_options(&options, sizeof options, o, "split options", &er);
    ingot_splitter *s = NULL;
    if (st == OK && !(s = mem_zalloc(sizeof *s))) st = error_set(&er, E_NOMEM, "split: no memory");
    if (st == OK) st = new_splitter(s, &options, &er);
    if (st == OK) *out = s;
    else ingot_splitter_free(s);
    return give(e, st, &er);
}

/* What has been handed out stays valid until more is put in. */
ingot_status ingot_splitter_put(ingot_splitter *s, const char *bytes, size_t n, ingot_error *e)
{
    error er = { 0 };
    if (s->events.at == s->events.n) events_clear(&s->events);
    const status st = reply_put(s->reply, (str){ bytes, n }, &er);
    return give(e, st, &er);
}

ingot_status ingot_splitter_end(ingot_splitter *s, ingot_finish finish, ingot_error *e)
{
    (void)finish;
    error er = { 0 };
    if (s->events.at == s->events.n) events_clear(&s->events);
    const status st = reply_finish(s->reply, &er);
    return give(e, st, &er);
}

ingot_status ingot_splitter_next(ingot_splitter *s, ingot_event *ev)
{
    return events_next(&s->events, ev) ? INGOT_OK : INGOT_E_AGAIN;
}

void ingot_splitter_free(ingot_splitter *s)
{
    if (!s) return;
    if (s->reply) reply_free(s->reply);
    events_free(&s->events);
    mem_free(s);
}
