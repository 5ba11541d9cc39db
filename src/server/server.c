/* server.c - the life of the server and of each exchange.
 *
 * The loop thread owns connections, exchanges and counters. Two workers parse requests and submit
 * them; the engine's thread only wakes the loop. An exchange belongs to a worker from its
 * submission to the post back, to the loop otherwise. */
#include "server/server.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/queue.h"
#include "server/auth.h"
#include "server/metrics.h"
#include "server/notify.h"
#include "server/openai.h"
#include "server/routes.h"
#include "server/slots.h"
#include "base/banned.h"

enum {
    WORKERS = 2,
    MAX_CONNECTIONS = 1024,
    OTHER_FILES = 64,       /* descriptors that are no connection's */
    MAX_WAITING = 1024,     /* requests between loop and workers */
    HIGH_WATER = 256 << 10, /* unsent bytes beyond which a stream waits */
    LOGGED_BYTES = 2000,
    IDLE_S = 75,
    LAST_BYTES_S = 2, /* for clients to take what was written when the drain ended */
    TICK_MS = 500
};

typedef enum phase { PHASE_LOADING, PHASE_READY, PHASE_DRAINING } phase;

typedef struct exchange {
    struct server *s;
    struct exchange *prev, *next;
    http_conn *conn; /* NULL: the client is gone */
    const route *route;
    atomic_bool gone; /* read by the worker */
    bool working;     /* with a worker */
    http_posted back; /* from the worker */
    bool streaming;   /* the head of the stream is sent */
    bool first_seen;
    buf body, out;
    char cors[768], request_id[32];
    call *c; /* NULL for the small routes */
    bool failed;
    api_error e;
    int64_t started_ns;
} exchange;

typedef struct server {
    const server_options *o;
    http *h;
    auth auth;
    service service;
    metrics metrics;
    phase phase;
    queue *jobs;
    pthread_t workers[WORKERS], loader;
    int n_workers;
    bool loading;
    http_posted load_end;
    status load_status;
    error load_error;
    exchange *first;
    int n_exchanges, n_signals, last_signal;
    int64_t drain_until_ns;
} server;

/* ---- answers ---- */

static void exchange_free(exchange *x)
{
    server *s = x->s;
    if (x->prev) x->prev->next = x->next;
    else s->first = x->next;
    if (x->next) x->next->prev = x->prev;
    s->n_exchanges--;
    if (x->c) call_free(x->c);
    buf_free(&x->body);
    buf_free(&x->out);
    mem_free(x);
}

static void count(exchange *x, outcome o)
{
    x->s->metrics.requests[routes_id(x->route)][o]++;
}

static void reply(exchange *x, int code, const char *extra, const char *type, str body)
{
    char headers[1024];
    snprintf(headers, sizeof headers, "X-Request-Id: %s\r\n%s%s", x->request_id, x->cors,
             extra ? extra : "");
    http_reply(x->conn, code, headers, type, body);
}

static void reply_error(exchange *x, const api_error *e)
{
    const dialect *d = x->route->dialect;
    const bool later = e->status == 429 || e->status == 503;
    buf_clear(&x->out);
    if (d) d->error(e, &x->out);
    else openai_error(e, &x->out);
    count(x, e->status == 500 ? OUTCOME_FAILED : OUTCOME_REFUSED);
    if (e->status == 500) log_line(LOG_ERROR, "request %s: %s", x->request_id, e->message);
    const char *extra = later ? "Retry-After: 2\r\n" : NULL;
    if (e->status == 405)
        extra = x->route->method[0] == 'G' ? "Allow: GET, HEAD, OPTIONS\r\n"
                                           : "Allow: POST, OPTIONS\r\n";
    const str body = x->out.failed ? (str){ 0 } : buf_view(&x->out);
    reply(x, e->status, extra, "application/json", body);
    exchange_free(x);
}

static void reply_text(exchange *x, const char *extra, const char *type, str body)
{
    count(x, OUTCOME_OK);
    reply(x, 200, extra, type, body);
    exchange_free(x);
}

/* With what was written to x->out, if it is whole. */
static void reply_out(exchange *x, const char *type)
{
    api_error e;
    if (x->out.failed) {
        call_outgrown(&e);
        reply_error(x, &e);
        return;
    }
    reply_text(x, NULL, type, buf_view(&x->out));
}

static void reply_simple(exchange *x, int status_code, const char *type, const char *message)
{
    api_error e = { .status = status_code, .type = type };
    snprintf(e.message, sizeof e.message, "%s", message);
    reply_error(x, &e);
}

/* For --log-content: one line, which the log shortens. */
static void log_text(const exchange *x, const char *what, str text)
{
    buf escaped;
    if (!x->s->o->log_content) return;
    buf_init(&escaped, 6 * LOGGED_BYTES);
    jsonw_escape(&escaped, str_sub(text, 0, text.len < LOGGED_BYTES ? text.len : LOGGED_BYTES));
    log_line(LOG_INFO, "request %s: %s: %.*s", x->request_id, what, STR_ARG(buf_view(&escaped)));
    buf_free(&escaped);
}

/* ---- generation ---- */

static void observe(exchange *x)
{
    ingot_usage u;
    call_sum_usage(x->c, &u);
    metrics_observe(&x->s->metrics.queue_s, u.queue_s);
    if (u.decoded_tokens > 0)
        metrics_observe(&x->s->metrics.per_token_s, u.decode_s / u.decoded_tokens);
}

/* The status line is long gone: the error is an event, and the stream ends without a normal
 * finish. */
static void fail_stream(exchange *x, const api_error *e)
{
    const dialect *d = x->route->dialect;
    log_line(LOG_ERROR, "request %s: %s", x->request_id, e->message);
    count(x, OUTCOME_FAILED);
    buf_clear(&x->out);
    d->fail(x->c, e, &x->out);
    if (!x->out.failed) http_put(x->conn, buf_view(&x->out));
    http_end_close(x->conn);
    exchange_free(x);
}

static void finish(exchange *x)
{
    call *c = x->c;
    api_error e;
    observe(x);
    for (int i = 0; i < c->n_choices; i++) log_text(x, "reply", buf_view(&c->choices[i].content));
    buf_clear(&x->out);
    if (!c->stream) {
        c->dialect->whole(c, &x->out);
        reply_out(x, "application/json");
        return;
    }
    c->dialect->end(c, &x->out);
    if (x->out.failed) {
        call_outgrown(&e);
        fail_stream(x, &e);
        return;
    }
    count(x, OUTCOME_OK);
    http_put(x->conn, buf_view(&x->out));
    http_end(x->conn);
    exchange_free(x);
}

/* False: it failed, and x is freed. */
static bool begin_stream(exchange *x)
{
    char headers[1024];
    api_error e;
    snprintf(headers, sizeof headers,
             "X-Request-Id: %s\r\n%sCache-Control: no-cache\r\nX-Accel-Buffering: no\r\n",
             x->request_id, x->cors);
    http_begin(x->conn, 200, headers, "text/event-stream; charset=utf-8");
    buf_clear(&x->out);
    x->c->dialect->begin(x->c, &x->out);
    x->streaming = true;
    if (x->out.failed) {
        call_outgrown(&e);
        fail_stream(x, &e);
        return false;
    }
    http_put(x->conn, buf_view(&x->out));
    return true;
}

static bool has_text(const call *c)
{
    for (int i = 0; i < c->n_choices; i++)
        if (c->choices[i].content.len || c->choices[i].reasoning.len || c->choices[i].n_calls ||
            c->choices[i].ended)
            return true;
    return false;
}

/* Moves what the engine has to the client. x may be freed. */
static void pump(exchange *x)
{
    call *c = x->c;
    api_error e;
    /* goes on when the client has taken some */
    if (c->stream && http_pending(x->conn) > HIGH_WATER) return;
    buf_clear(&x->out);
    bool good = call_drain(c, &x->out, &e);
    if (good && !x->first_seen && has_text(c)) {
        x->first_seen = true;
        metrics_observe(&x->s->metrics.first_token_s, (double)(clock_ns() - x->started_ns) / 1e9);
    }
    if (x->out.failed) good = call_outgrown(&e);
    else if (c->stream) http_put(x->conn, buf_view(&x->out));
    if (!good && c->stream) fail_stream(x, &e);
    else if (!good) reply_error(x, &e);
    else if (call_done(c)) finish(x);
}

static void on_woken(void *arg)
{
    server *s = arg;
    for (exchange *x = s->first, *next; x; x = next) {
        next = x->next;
        if (x->conn && x->c && !x->working) pump(x);
    }
}

static void on_engine(void *arg, ingot_request *r)
{
    (void)r; /* few exchanges are active: the loop looks at each */
    http_wake(arg);
}

/* ---- workers ---- */

/* Back on the loop thread. */
static void worked(void *arg)
{
    exchange *x = arg;
    x->working = false;
    if (!x->conn) {
        if (x->c) call_cancel(x->c);
        exchange_free(x);
    } else if (x->failed) {
        reply_error(x, &x->e);
    } else if (!x->c) {
        reply_out(x, "application/json");
    } else if (!x->c->stream || begin_stream(x)) {
        pump(x);
    }
}

static void *work(void *arg)
{
    server *s = arg;
    exchange *x;
    while ((x = queue_wait(s->jobs, -1))) {
        if (!atomic_load(&x->gone)) {
            if (x->c) x->failed = !call_start(x->c, buf_view(&x->body), &x->e);
            else x->failed = !x->route->answer(&s->service, buf_view(&x->body), &x->out, &x->e);
        }
        http_post(s->h, &x->back, worked, x);
    }
    return NULL;
}

static void give_to_worker(exchange *x)
{
    server *s = x->s;
    http_take_body(x->conn, &x->body);
    log_text(x, "body", buf_view(&x->body));
    x->working = true;
    if (!queue_push(s->jobs, x)) {
        x->working = false;
        reply_simple(x, 429, "rate_limit_error", "too many requests are waiting");
    }
}

/* ---- routing ---- */

static void get_health(exchange *x)
{
    const server *s = x->s;
    if (s->phase != PHASE_READY) {
        reply_simple(x, 503, "unavailable_error",
                     s->phase == PHASE_LOADING ? "the model is loading" : "the server is draining");
        return;
    }
    reply_text(x, NULL, "application/json", STR("{\"status\":\"ok\"}"));
}

static void get_metrics(exchange *x)
{
    server *s = x->s;
    buf_clear(&x->out);
    metrics_write(&s->metrics, s->service.engine, &s->service.info, http_connections(s->h),
                  &x->out);
    reply_out(x, "text/plain; version=0.0.4; charset=utf-8");
}

/* Other people's requests are shown only where keys say who may look. */
static void get_slots(exchange *x)
{
    const server *s = x->s;
    const int64_t now = clock_ns();
    jsonw w;
    if (s->auth.n_keys == 0) {
        reply_simple(x, 501, "not_supported_error", "/slots is served only where a key is set");
        return;
    }
    buf_clear(&x->out);
    jsonw_init(&w, &x->out);
    jsonw_array(&w);
    for (const exchange *y = s->first; y; y = y->next)
        if (y->c)
            slots_write(&w, y->c, y->request_id, (double)(now - y->started_ns) / 1e9, y->working);
    jsonw_end_array(&w);
    reply_out(x, "application/json");
}

static void get(exchange *x)
{
    api_error e;
    buf_clear(&x->out);
    if (x->route->answer(&x->s->service, http_path(x->conn), &x->out, &e))
        reply_out(x, "application/json");
    else reply_error(x, &e);
}

static void generate(exchange *x)
{
    x->c = mem_alloc(sizeof *x->c);
    if (!x->c) {
        reply_simple(x, 503, "unavailable_error", "out of memory");
        return;
    }
    call_init(x->c, x->route->dialect, &x->s->service, x->route->id_prefix);
    give_to_worker(x);
}

static bool has_method(const route *r, str method)
{
    if (str_eq(method, STR("HEAD"))) method = STR("GET");
    return str_eq(method, str_from(r->method));
}

/* While the model loads or the server drains, /health's own answer is everybody's. */
static bool can_answer(const exchange *x)
{
    const server *s = x->s;
    switch (x->route->kind) {
    case ROUTE_LIVE:
    case ROUTE_HEALTH:
    case ROUTE_PAGE: return true;
    case ROUTE_METRICS:
    case ROUTE_SLOTS:
    case ROUTE_GET: return !s->loading && !s->load_status;
    default: return s->phase == PHASE_READY;
    }
}

static void answer(exchange *x)
{
    switch (x->route->kind) {
    case ROUTE_LIVE: reply_text(x, NULL, "application/json", STR("{\"status\":\"ok\"}")); break;
    case ROUTE_HEALTH: get_health(x); break;
    case ROUTE_METRICS: get_metrics(x); break;
    case ROUTE_SLOTS: get_slots(x); break;
    case ROUTE_PAGE:
        reply_text(x, x->route->headers, "text/html; charset=utf-8", x->route->page());
        break;
    case ROUTE_GET: get(x); break;
    case ROUTE_WORK: give_to_worker(x); break;
    case ROUTE_GENERATE: generate(x); break;
    case ROUTE_NOT_OFFERED:
        reply_simple(x, 501, "not_supported_error", "this server generates text only");
        break;
    case ROUTE_UNKNOWN: reply_simple(x, 404, "not_found_error", "no such route"); break;
    }
}

static void dispatch(exchange *x)
{
    const route_kind kind = x->route->kind;
    const int refused = http_refused(x->conn);
    const str method = http_method(x->conn);
    if (refused == 401) {
        reply_simple(x, 401, "authentication_error",
                     "want a valid API key: Authorization: Bearer KEY, or x-api-key");
    } else if (refused) {
        reply_simple(x, refused, "permission_error",
                     "this Host or Origin is not served here (see --allow-host, --cors)");
    } else if (str_eq(method, STR("OPTIONS"))) {
        count(x, OUTCOME_OK);
        reply(x, 204, NULL, NULL, (str){ 0 });
        exchange_free(x);
    } else if (kind == ROUTE_UNKNOWN || kind == ROUTE_NOT_OFFERED) {
        answer(x);
    } else if (!has_method(x->route, method)) {
        reply_simple(x, 405, "invalid_request_error", "this route wants another method");
    } else if (can_answer(x)) {
        answer(x);
    } else {
        get_health(x);
    }
}

static int on_head(void *arg, http_conn *c)
{
    server *s = arg;
    const route *r = routes_find(http_path(c));
    return auth_check(&s->auth, c, r->open);
}

/* NULL: it is answered, for want of memory. */
static exchange *exchange_new(server *s, http_conn *c)
{
    exchange *x = mem_zalloc(sizeof *x);
    if (!x) {
        http_reply(
            c, 503, NULL, "application/json",
            STR("{\"error\":{\"message\":\"out of memory\",\"type\":\"unavailable_error\"}}"));
        return NULL;
    }
    x->s = s;
    x->conn = c;
    x->route = routes_find(http_path(c));
    x->started_ns = clock_ns();
    x->next = s->first;
    if (s->first) s->first->prev = x;
    s->first = x;
    s->n_exchanges++;
    buf_init(&x->out, CALL_MAX_OUTPUT);
    call_make_id(x->request_id, sizeof x->request_id, "req_");
    auth_cors(&s->auth, c, x->cors, sizeof x->cors);
    http_set_user(c, x);
    return x;
}

static void on_request(void *arg, http_conn *c)
{
    exchange *x = exchange_new(arg, c);
    if (x) dispatch(x);
}

static void on_gone(void *arg, http_conn *c)
{
    server *s = arg;
    exchange *x = http_user(c);
    if (!x) return;
    s->metrics.disconnects++;
    count(x, OUTCOME_CANCELLED);
    x->conn = NULL;
    atomic_store(&x->gone, true);
    if (x->working) return; /* the worker's post ends it */
    if (x->c) call_cancel(x->c);
    exchange_free(x);
}

static void on_drained(void *arg, http_conn *c)
{
    exchange *x = http_user(c);
    (void)arg;
    if (x && x->c && x->streaming) pump(x);
}

static void on_refusal(void *arg, http_conn *c, int status_code, const char *message)
{
    exchange *x = exchange_new(arg, c);
    if (x)
        reply_simple(x, status_code,
                     status_code == 503 ? "unavailable_error" : "invalid_request_error", message);
}

/* ---- time ---- */

static void keep_alive(exchange *x)
{
    char line[96];
    const call *c = x->c;
    if (clock_ns() - http_last_put_ns(x->conn) < (int64_t)x->s->o->keep_alive_s * 1000000000)
        return;
    if (has_text(c)) snprintf(line, sizeof line, ": working\n\n");
    else if (c->progress_total)
        snprintf(line, sizeof line, ": prefill %d/%d\n\n", c->progress_done, c->progress_total);
    else snprintf(line, sizeof line, ": queued %d\n\n", c->progress_done);
    http_put(x->conn, str_from(line));
}

static void end_unfinished(server *s)
{
    const api_error e = { .status = 503,
                          .type = "unavailable_error",
                          .message = "the server is stopping" };
    for (exchange *x = s->first, *next; x; x = next) {
        next = x->next;
        if (!x->c || x->working || !x->conn) continue;
        call_cancel(x->c);
        if (x->streaming) fail_stream(x, &e);
        else reply_error(x, &e);
    }
}

static void on_tick(void *arg)
{
    server *s = arg;
    const int64_t now = clock_ns();
    for (exchange *x = s->first, *next; x; x = next) {
        next = x->next;
        if (!x->conn || !x->c || x->working) continue;
        if (s->o->max_s && now - x->started_ns > (int64_t)s->o->max_s * 1000000000) {
            const api_error e = { .status = 503,
                                  .type = "unavailable_error",
                                  .message = "the request took longer than --max-seconds" };
            call_cancel(x->c);
            if (x->streaming) fail_stream(x, &e);
            else reply_error(x, &e);
        } else if (x->streaming) {
            keep_alive(x);
        }
    }
    if (s->phase != PHASE_DRAINING) return;
    if (now > s->drain_until_ns) end_unfinished(s);
    const bool patient = now < s->drain_until_ns + (int64_t)LAST_BYTES_S * 1000000000;
    if (s->n_exchanges == 0 && (http_all_sent(s->h) || !patient)) http_stop(s->h);
}

static void on_stop_signal(void *arg, int number)
{
    server *s = arg;
    s->last_signal = number;
    if (s->n_signals++ > 0) {
        http_stop(s->h);
        return;
    }
    log_line(LOG_INFO, "draining: %d requests are unfinished", s->n_exchanges);
    s->phase = PHASE_DRAINING;
    notify_send("STOPPING=1");
    s->drain_until_ns = clock_ns() + (int64_t)s->o->drain_s * 1000000000;
}

static void on_hangup(void *arg, int number)
{
    server *s = arg;
    error e;
    (void)number;
    if (auth_reload(&s->auth, &e)) log_line(LOG_ERROR, "keys not read again: %s", e.text);
    else log_line(LOG_INFO, "keys read again: %d", s->auth.n_keys);
}

/* ---- start and stop ---- */

static status from_library(ingot_status is, const ingot_error *ie, error *e)
{
    return is == INGOT_OK ? OK : error_set(e, (status)is, "%s", ie->text);
}

static void loaded(void *arg)
{
    server *s = arg;
    pthread_join(s->loader, NULL);
    s->loading = false;
    if (s->load_status) {
        http_stop(s->h);
        return;
    }
    if (s->phase == PHASE_LOADING) {
        s->phase = PHASE_READY;
        notify_send("READY=1");
    }
    if (s->o->ready) s->o->ready(s->o->arg, s->service.model, s->service.engine);
}

/* A folder's own name: where it lies is nobody's business. */
static const char *last_part(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash && slash[1] ? slash + 1 : path;
}

static void *load(void *arg)
{
    server *s = arg;
    ingot_error ie;
    ingot_engine_options eo = s->o->engine;
    eo.wake = on_engine;
    eo.wake_arg = s->h;
    s->load_status =
        from_library(ingot_model_open(&s->service.model, &s->o->model, &ie), &ie, &s->load_error);
    if (s->load_status == OK)
        s->load_status =
            from_library(ingot_engine_start(&s->service.engine, s->service.model, &eo, &ie), &ie,
                         &s->load_error);
    if (s->load_status == OK) {
        ingot_model_get_info(s->service.model, &s->service.info);
        s->service.context = ingot_engine_context(s->service.engine);
        s->service.room = ingot_engine_room(s->service.engine);
        s->service.name = s->o->model_name ? s->o->model_name : last_part(s->service.info.king);
        s->service.drafter = last_part(s->service.info.drafter);
        s->service.created = clock_wall_s();
        s->service.reasoning_both = s->o->reasoning_both;
    }
    http_post(s->h, &s->load_end, loaded, s);
    return NULL;
}

/* As many as there are descriptors for; the limit of the process is raised where it may be. */
static int most_connections(void)
{
    struct rlimit limit;
    const rlim_t want = MAX_CONNECTIONS + OTHER_FILES;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= want) return MAX_CONNECTIONS;
    limit.rlim_cur = limit.rlim_max < want ? limit.rlim_max : want;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= want) return MAX_CONNECTIONS;
    const int n = (int)limit.rlim_cur;
    return n > 2 * OTHER_FILES ? n - OTHER_FILES : n / 2;
}

static status start(server *s, error *e)
{
    const http_options ho = { .host = s->o->host,
                              .port = s->o->port,
                              .max_body = (size_t)s->o->max_body,
                              .max_connections = most_connections(),
                              .request_s = s->o->request_s,
                              .write_s = s->o->write_s,
                              .idle_s = IDLE_S };
    const http_handler handler = {
        s, on_head, on_request, on_gone, on_drained, on_woken, on_refusal
    };
    signal(SIGPIPE, SIG_IGN);
    TRY(auth_open(&s->auth, &s->o->auth, s->o->host, e));
    TRY(queue_new(&s->jobs, MAX_WAITING, e));
    TRY(http_open(&s->h, &ho, &handler, e));
    TRY(http_every(s->h, TICK_MS, on_tick, s, e));
    TRY(http_on_signal(s->h, SIGTERM, on_stop_signal, s, e));
    TRY(http_on_signal(s->h, SIGINT, on_stop_signal, s, e));
    TRY(http_on_signal(s->h, SIGHUP, on_hangup, s, e));
    for (; s->n_workers < WORKERS; s->n_workers++)
        if (pthread_create(&s->workers[s->n_workers], NULL, work, s))
            return error_set(e, E_NOMEM, "server: no threads");
    if (pthread_create(&s->loader, NULL, load, s))
        return error_set(e, E_NOMEM, "server: no threads");
    s->loading = true;
    if (s->o->listening) s->o->listening(s->o->arg, s->o->host, http_port(s->h));
    return OK;
}

/* The workers have ended: what was theirs is the loop's. Nothing may be left whose request could
 * wake an http that is closed. */
static void reclaim(server *s)
{
    for (exchange *x = s->first, *next; x; x = next) {
        next = x->next;
        x->working = false;
        if (!x->conn) exchange_free(x);
    }
}

static void stop(server *s)
{
    if (s->jobs) queue_close(s->jobs);
    for (int i = 0; i < s->n_workers; i++) pthread_join(s->workers[i], NULL);
    if (s->loading) pthread_join(s->loader, NULL);
    while (s->jobs && queue_pop(s->jobs)) continue; /* they are in the list of exchanges too */
    reclaim(s);
    if (s->h) http_close(s->h); /* frees the other exchanges with their connections */
    if (s->jobs) queue_free(s->jobs);
    if (s->service.engine) ingot_engine_stop(s->service.engine);
    if (s->service.model) ingot_model_close(s->service.model);
    auth_close(&s->auth);
}

status server_run(const server_options *o, error *e)
{
    server s = { .o = o };
    status st = start(&s, e);
    if (st == OK) {
        http_run(s.h);
        http_release_signals(s.h); /* one that comes now does not wait for what stop() waits for */
        if (s.n_signals > 1 && s.loading) raise(s.last_signal);
    }
    stop(&s); /* waits for the loader, whose result is this thread's only then */
    if (st == OK && s.load_status) st = error_set(e, s.load_status, "%s", s.load_error.text);
    return st;
}
