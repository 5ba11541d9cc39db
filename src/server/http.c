/* http.c - see http.h. A connection is a small state machine over a bufferevent: head, body,
 * answer, and again. */
#include "server/http.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <event2/thread.h>
#include <event2/util.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "server/httphead.h"
#include "base/banned.h"

enum {
    MAX_HEAD = 64 << 10,
    MAX_PIPELINED = 256 << 10, /* bytes kept of what follows the request being answered */
    MAX_UNSENT = 256 << 10,    /* bytes of answers beyond which no further request is looked at */
    ACCEPT_AGAIN_MS = 200,
    ACCEPT_SAID_S = 60,
    LINGER_S = 2
};

typedef enum conn_state {
    CONN_HEAD,  /* waiting for, or reading, a head */
    CONN_BODY,  /* Content-Length */
    CONN_CHUNK, /* the line before a chunk */
    CONN_CHUNK_DATA,
    CONN_TRAILER,
    CONN_ANSWER, /* owed, or being written */
    CONN_LINGER  /* answered for the last time: reads and drops until the other side closes */
} conn_state;

struct http_conn {
    http *owner;
    http_conn *prev, *next;
    struct bufferevent *bev;
    struct event *deadline;
    conn_state state;
    buf head, body;
    httphead request; /* its strings are those of `head` */
    bool close_after;
    bool chunked; /* the answer */
    bool reading; /* inside read_more */
    bool begun;   /* some of the head is there */
    int refused;
    uint64_t left; /* bytes of body or chunk to come */
    void *user;
    int64_t last_put_ns;
};

struct http {
    struct event_base *base;
    struct evconnlistener *listener;
    struct event *posts, *wake, *tick, *accept_again;
    int64_t accept_said_ns; /* when the log last had that no connection can be taken; 0: never */
    http_options options;
    http_handler handler;
    http_conn *conns;
    int n_conns, port;
    pthread_mutex_t lock;
    http_posted *first, **last; /* under lock */
    void (*tick_fn)(void *arg);
    void *tick_arg;
    struct signal_handler {
        struct event *event;
        void (*fn)(void *arg, int number);
        void *arg;
    } signals[4];
    int n_signals;
};

static void read_more(http_conn *c);

/* ---- connections ---- */

static void conn_free(http_conn *c)
{
    http *h = c->owner;
    if (c->prev) c->prev->next = c->next;
    else h->conns = c->next;
    if (c->next) c->next->prev = c->prev;
    h->n_conns--;
    if (c->bev) bufferevent_free(c->bev);
    if (c->deadline) event_free(c->deadline);
    buf_free(&c->head);
    buf_free(&c->body);
    mem_free(c);
}

static void conn_lost(http_conn *c)
{
    http *h = c->owner;
    if (c->state == CONN_ANSWER) h->handler.gone(h->handler.arg, c);
    conn_free(c);
}

static void set_deadline(http_conn *c, int seconds)
{
    const struct timeval t = { seconds, 0 };
    event_add(c->deadline, &t);
}

static void next_request(http_conn *c)
{
    buf_clear(&c->head);
    buf_free(&c->body);
    c->state = CONN_HEAD;
    c->request = (httphead){ 0 };
    c->refused = 0;
    c->user = NULL;
    c->chunked = c->begun = false;
    set_deadline(c, c->owner->options.idle_s);
}

/* ---- answers ---- */

static const char *reason_of(int code)
{
    static const struct {
        int code;
        const char *text;
    } reasons[] = {
        { 100, "Continue" },
        { 200, "OK" },
        { 204, "No Content" },
        { 400, "Bad Request" },
        { 401, "Unauthorized" },
        { 403, "Forbidden" },
        { 404, "Not Found" },
        { 405, "Method Not Allowed" },
        { 408, "Request Timeout" },
        { 411, "Length Required" },
        { 413, "Content Too Large" },
        { 415, "Unsupported Media Type" },
        { 417, "Expectation Failed" },
        { 429, "Too Many Requests" },
        { 431, "Request Header Fields Too Large" },
        { 500, "Internal Server Error" },
        { 501, "Not Implemented" },
        { 503, "Service Unavailable" },
        { 505, "HTTP Version Not Supported" },
    };
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].code == code) return reasons[i].text;
    return "Status";
}

static struct evbuffer *output(http_conn *c)
{
    c->last_put_ns = clock_ns();
    return bufferevent_get_output(c->bev);
}

static void put_head(http_conn *c, int code, const char *headers, const char *type)
{
    struct evbuffer *out = output(c);
    evbuffer_add_printf(out, "HTTP/1.1 %d %s\r\n", code, reason_of(code));
    if (type) evbuffer_add_printf(out, "Content-Type: %s\r\n", type);
    if (headers) evbuffer_add(out, headers, strlen(headers));
    if (c->close_after) evbuffer_add_printf(out, "Connection: close\r\n");
    else if (c->request.http10) evbuffer_add_printf(out, "Connection: keep-alive\r\n");
}

/* All is sent: say so, and give the other side a moment to read it before the socket goes. */
static void linger(http_conn *c)
{
    shutdown(bufferevent_getfd(c->bev), SHUT_WR);
    set_deadline(c, LINGER_S);
}

/* The answer is complete: go on with the next request, or close once everything is sent. */
static void answered(http_conn *c)
{
    if (!c->close_after) {
        next_request(c);
        read_more(c);
        return;
    }
    c->state = CONN_LINGER;
    event_del(c->deadline); /* until all is sent, which write_s limits */
    if (http_pending(c) == 0) linger(c);
}

void http_reply(http_conn *c, int code, const char *headers, const char *type, str body)
{
    put_head(c, code, headers, type);
    struct evbuffer *out = output(c);
    if (code == 204) evbuffer_add_printf(out, "\r\n");
    else evbuffer_add_printf(out, "Content-Length: %zu\r\n\r\n", body.len);
    if (!c->request.is_head && code != 204) evbuffer_add(out, body.ptr, body.len);
    answered(c);
}

void http_begin(http_conn *c, int code, const char *headers, const char *type)
{
    c->chunked = !c->request.http10;
    if (c->request.http10) c->close_after = true;
    put_head(c, code, headers, type);
    evbuffer_add_printf(output(c), c->chunked ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n");
}

void http_put(http_conn *c, str bytes)
{
    if (bytes.len == 0) return; /* silence goes on */
    struct evbuffer *out = output(c);
    if (c->chunked) evbuffer_add_printf(out, "%zx\r\n", bytes.len);
    evbuffer_add(out, bytes.ptr, bytes.len);
    if (c->chunked) evbuffer_add(out, "\r\n", 2);
}

void http_end(http_conn *c)
{
    if (c->chunked) evbuffer_add(output(c), "0\r\n\r\n", 5);
    answered(c);
}

void http_end_close(http_conn *c)
{
    c->close_after = true;
    http_end(c);
}

size_t http_pending(const http_conn *c)
{
    return evbuffer_get_length(bufferevent_get_output(c->bev));
}

int64_t http_last_put_ns(const http_conn *c)
{
    return c->last_put_ns;
}

/* A request that the framing itself cannot accept; the connection cannot be trusted afterwards. */
static void refuse(http_conn *c, int code, const char *message)
{
    c->close_after = true;
    c->state = CONN_LINGER;
    c->owner->handler.refusal(c->owner->handler.arg, c, code, message);
}

static void refuse_large(http_conn *c)
{
    char message[80];
    snprintf(message, sizeof message, "body: too large, want at most %zu bytes (--max-body)",
             c->owner->options.max_body);
    refuse(c, 413, message);
}

/* ---- the head ---- */

static void start_body(http_conn *c)
{
    http *h = c->owner;
    const str method = c->request.method;
    const bool wants_body = str_eq(method, STR("POST")) || str_eq(method, STR("PUT"));
    const bool chunked = c->request.chunked;
    if (wants_body && !chunked && !c->request.has_length) {
        refuse(c, 411, "the body's length is not given");
        return;
    }
    if (!chunked && c->left > h->options.max_body) {
        refuse_large(c);
        return;
    }
    c->refused = h->handler.head(h->handler.arg, c);
    const str expect = http_header(c, "expect");
    if (expect.ptr && !str_same_word(expect, STR("100-continue"))) {
        refuse(c, 417, "the only expectation is 100-continue");
        return;
    }
    if (expect.ptr && !c->request.http10 && !c->refused && (chunked || c->left > 0))
        evbuffer_add_printf(output(c), "HTTP/1.1 100 Continue\r\n\r\n");
    c->state = chunked ? CONN_CHUNK : CONN_BODY;
    /* the client may or may not send its body now: answer and close */
    if (expect.ptr && c->refused) {
        c->close_after = true;
        c->state = CONN_BODY;
        c->left = 0;
    }
}

static void parse_head(http_conn *c)
{
    int code;
    c->close_after = false;
    const char *fault = httphead_parse(&c->request, buf_view(&c->head), &code);
    if (fault) {
        refuse(c, code, fault);
        return;
    }
    c->close_after =
        httphead_lists(&c->request, "connection", STR("close")) ||
        (c->request.http10 && !httphead_lists(&c->request, "connection", STR("keep-alive")));
    c->left = c->request.length;
    start_body(c);
}

/* True when a whole head was there. */
static bool read_head(http_conn *c, struct evbuffer *in)
{
    struct evbuffer_ptr end = evbuffer_search(in, "\n\r\n", 3, NULL),
                        bare = evbuffer_search(in, "\n\n", 2, NULL);
    size_t n = 0;
    if (end.pos >= 0) n = (size_t)end.pos + 3;
    if (bare.pos >= 0 && (end.pos < 0 || bare.pos < end.pos)) n = (size_t)bare.pos + 2;
    if (n > MAX_HEAD || (n == 0 && evbuffer_get_length(in) > MAX_HEAD)) {
        evbuffer_drain(in, evbuffer_get_length(in));
        refuse(c, 431, "the headers are larger than 64 KiB");
        return false;
    }
    if (n == 0) {
        if (evbuffer_get_length(in) > 0 && !c->begun) set_deadline(c, c->owner->options.request_s);
        c->begun = evbuffer_get_length(in) > 0; /* more bytes buy no more time */
        return false;
    }
    char *to = buf_reserve(&c->head, n);
    if (!to) {
        refuse(c, 503, "out of memory");
        return false;
    }
    evbuffer_remove(in, to, n);
    buf_advance(&c->head, n);
    if (memchr(c->head.ptr, '\0', n)) {
        refuse(c, 400, "the head has a NUL byte");
        return false;
    }
    set_deadline(c, c->owner->options.request_s);
    parse_head(c);
    return true;
}

/* ---- the body ---- */

/* Moves up to c->left bytes into the body; true when none are left. */
static bool read_bytes(http_conn *c, struct evbuffer *in)
{
    size_t n = evbuffer_get_length(in);
    if (n > c->left) n = (size_t)c->left;
    if (n > 0 && !c->refused) {
        char *to = buf_reserve(&c->body, n);
        if (!to) {
            if (c->body.failed == E_LIMIT) refuse_large(c);
            else refuse(c, 503, "out of memory");
            return false;
        }
        evbuffer_remove(in, to, n);
        buf_advance(&c->body, n);
    } else {
        evbuffer_drain(in, n);
    }
    c->left -= n;
    return c->left == 0;
}

static void have_request(http_conn *c)
{
    http *h = c->owner;
    event_del(c->deadline);
    c->state = CONN_ANSWER;
    h->handler.request(h->handler.arg, c);
}

/* A line of at most 1,024 bytes; false when it is not there yet or refused. */
static bool read_line(http_conn *c, struct evbuffer *in, char line[1025], size_t *len)
{
    size_t end_bytes;
    const struct evbuffer_ptr end = evbuffer_search_eol(in, NULL, &end_bytes, EVBUFFER_EOL_CRLF);
    const size_t n = end.pos >= 0 ? (size_t)end.pos : evbuffer_get_length(in);
    if (n > 1024) refuse(c, 400, "a chunk line is too long");
    if (n > 1024 || end.pos < 0) return false;
    evbuffer_remove(in, line, n);
    evbuffer_drain(in, end_bytes);
    line[n] = '\0';
    *len = n;
    return true;
}

static bool read_chunk_line(http_conn *c, struct evbuffer *in)
{
    char line[1025];
    size_t n, i = 0;
    if (!read_line(c, in, line, &n)) return false;
    c->left = 0;
    for (; i < n && i < 16; i++) {
        const char ch = line[i];
        const int digit = ch >= '0' && ch <= '9'   ? ch - '0'
                          : ch >= 'a' && ch <= 'f' ? ch - 'a' + 10
                          : ch >= 'A' && ch <= 'F' ? ch - 'A' + 10
                                                   : -1;
        if (digit < 0) break;
        c->left = c->left << 4 | (uint64_t)digit;
    }
    if (i == 0 || (i < n && line[i] != ';' && line[i] != ' ' && line[i] != '\t')) {
        refuse(c, 400, "a chunk size is malformed");
        return false;
    }
    if (c->left > c->owner->options.max_body) {
        refuse_large(c);
        return false;
    }
    c->state = c->left ? CONN_CHUNK_DATA : CONN_TRAILER;
    return true;
}

static bool read_chunk_data(http_conn *c, struct evbuffer *in)
{
    char line[1025];
    size_t n;
    if (c->left > 0 && !read_bytes(c, in)) return false;
    if (!read_line(c, in, line, &n)) return false;
    if (n != 0) {
        refuse(c, 400, "a chunk is longer than its size");
        return false;
    }
    c->state = CONN_CHUNK;
    return true;
}

static bool read_trailer(http_conn *c, struct evbuffer *in)
{
    char line[1025];
    size_t n;
    if (!read_line(c, in, line, &n)) return false;
    if (n == 0) have_request(c);
    return true;
}

/* One step of the machine; false when it needs more bytes, or the answer first. */
static bool step(http_conn *c)
{
    struct evbuffer *in = bufferevent_get_input(c->bev);
    switch (c->state) {
    case CONN_HEAD:
        if (http_pending(c) <= MAX_UNSENT) return read_head(c, in);
        bufferevent_disable(c->bev, EV_READ); /* on_write goes on */
        return false;
    case CONN_BODY:
        if (!read_bytes(c, in)) return false;
        have_request(c);
        return true;
    case CONN_CHUNK: return read_chunk_line(c, in);
    case CONN_CHUNK_DATA: return read_chunk_data(c, in);
    case CONN_TRAILER: return read_trailer(c, in);
    case CONN_ANSWER:
        /* What follows is left in the socket once enough is here; a closed one is then noticed by
         * writing. */
        if (evbuffer_get_length(in) > MAX_PIPELINED) bufferevent_disable(c->bev, EV_READ);
        return false;
    case CONN_LINGER: evbuffer_drain(in, evbuffer_get_length(in)); return false;
    }
    return false;
}

/* Goes as far as the bytes at hand allow. An answer given inside comes back here through the loop,
 * not by recursion. */
static void read_more(http_conn *c)
{
    if (c->reading) return;
    c->reading = true;
    bufferevent_enable(c->bev, EV_READ);
    while (step(c)) continue;
    c->reading = false;
}

/* ---- events ---- */

static void on_read(struct bufferevent *bev, void *arg)
{
    (void)bev;
    read_more(arg);
}

static void on_write(struct bufferevent *bev, void *arg)
{
    http_conn *c = arg;
    http *h = c->owner;
    (void)bev;
    if (c->state == CONN_LINGER) {
        linger(c);
    } else if (c->state == CONN_ANSWER) {
        h->handler.drained(h->handler.arg, c);
    } else if (c->state == CONN_HEAD) {
        if (!c->begun) set_deadline(c, h->options.idle_s);
        read_more(c);
    }
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
    (void)bev;
    if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR | BEV_EVENT_TIMEOUT)) conn_lost(arg);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
    http_conn *c = arg;
    (void)fd;
    (void)what;
    const bool idle = c->state == CONN_HEAD && !c->begun;
    if (idle && http_pending(c) > 0) set_deadline(c, c->owner->options.idle_s); /* not idle yet */
    else if (c->state == CONN_LINGER || idle) conn_lost(c);
    else refuse(c, 408, "the request did not arrive in time");
}

static void on_accept(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *from, int len,
                      void *arg)
{
    http *h = arg;
    (void)l;
    (void)from;
    (void)len;
    http_conn *c = h->n_conns < h->options.max_connections ? mem_zalloc(sizeof *c) : NULL;
    if (!c) {
        evutil_closesocket(fd);
        return;
    }
    const int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    c->owner = h;
    c->bev = bufferevent_socket_new(h->base, fd, BEV_OPT_CLOSE_ON_FREE);
    c->deadline = evtimer_new(h->base, on_deadline, c);
    c->next = h->conns;
    if (h->conns) h->conns->prev = c;
    h->conns = c;
    h->n_conns++;
    if (!c->bev || !c->deadline) {
        if (!c->bev) evutil_closesocket(fd);
        conn_free(c);
        return;
    }
    buf_init(&c->head, MAX_HEAD);
    buf_init(&c->body, h->options.max_body);
    next_request(c);
    const struct timeval write_time = { h->options.write_s, 0 };
    bufferevent_set_timeouts(c->bev, NULL, &write_time);
    bufferevent_setcb(c->bev, on_read, on_write, on_event, c);
    bufferevent_enable(c->bev, EV_READ | EV_WRITE);
}

/* No descriptor or memory for another connection: those that wait stay in the system's queue. */
static void on_accept_error(struct evconnlistener *l, void *arg)
{
    http *h = arg;
    const int failed = EVUTIL_SOCKET_ERROR();
    const int64_t now = clock_ns();
    const struct timeval t = { 0, ACCEPT_AGAIN_MS * 1000 };
    if (h->accept_said_ns == 0 || now - h->accept_said_ns > (int64_t)ACCEPT_SAID_S * 1000000000) {
        h->accept_said_ns = now;
        log_line(LOG_WARN, "server: cannot take a connection: %s: %d are open", strerror(failed),
                 h->n_conns);
    }
    evconnlistener_disable(l);
    event_add(h->accept_again, &t);
}

static void on_accept_again(evutil_socket_t fd, short what, void *arg)
{
    http *h = arg;
    (void)fd;
    (void)what;
    evconnlistener_enable(h->listener);
}

/* ---- the loop ---- */

static void on_posts(evutil_socket_t fd, short what, void *arg)
{
    http *h = arg;
    (void)fd;
    (void)what;
    pthread_mutex_lock(&h->lock);
    http_posted *p = h->first;
    h->first = NULL;
    h->last = &h->first;
    pthread_mutex_unlock(&h->lock);
    while (p) {
        http_posted *next = p->next; /* fn may free p */
        p->fn(p->arg);
        p = next;
    }
}

void http_post(http *h, http_posted *p, void (*fn)(void *arg), void *arg)
{
    *p = (http_posted){ NULL, fn, arg };
    pthread_mutex_lock(&h->lock);
    *h->last = p;
    h->last = &p->next;
    pthread_mutex_unlock(&h->lock);
    event_active(h->posts, EV_READ, 0);
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
    http *h = arg;
    (void)fd;
    (void)what;
    h->handler.woken(h->handler.arg);
}

void http_wake(http *h)
{
    event_active(h->wake, EV_READ, 0); /* active already: nothing is added */
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    http *h = arg;
    (void)fd;
    (void)what;
    h->tick_fn(h->tick_arg);
}

status http_every(http *h, int ms, void (*fn)(void *arg), void *arg, error *e)
{
    const struct timeval t = { ms / 1000, ms % 1000 * 1000 };
    h->tick_fn = fn;
    h->tick_arg = arg;
    h->tick = event_new(h->base, -1, EV_PERSIST, on_tick, h);
    if (!h->tick || event_add(h->tick, &t) != 0) return error_set(e, E_NOMEM, "server: no timer");
    return OK;
}

static void on_signal(evutil_socket_t number, short what, void *arg)
{
    const struct signal_handler *s = arg;
    (void)what;
    s->fn(s->arg, (int)number);
}

status http_on_signal(http *h, int number, void (*fn)(void *arg, int number), void *arg, error *e)
{
    struct signal_handler *s = &h->signals[h->n_signals];
    CHECK(h->n_signals < 4);
    *s = (struct signal_handler){ evsignal_new(h->base, number, on_signal, s), fn, arg };
    if (!s->event || event_add(s->event, NULL) != 0)
        return error_set(e, E_NOMEM, "server: no signal handler");
    h->n_signals++;
    return OK;
}

/* ---- life ---- */

static status bind_to(http *h, error *e)
{
    char port[8];
    struct addrinfo hints = { .ai_family = AF_UNSPEC,
                              .ai_socktype = SOCK_STREAM,
                              .ai_flags = AI_PASSIVE },
                    *found;
    snprintf(port, sizeof port, "%d", h->options.port);
    const int r = getaddrinfo(h->options.host, port, &hints, &found);
    if (r) return error_set(e, E_IO, "server: %s: %s", h->options.host, gai_strerror(r));
    int failed = 0;
    for (struct addrinfo *a = found; a && !h->listener; a = a->ai_next) {
        h->listener = evconnlistener_new_bind(h->base, on_accept, h,
                                              LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE, -1,
                                              a->ai_addr, (int)a->ai_addrlen);
        failed = errno;
    }
    freeaddrinfo(found);
    if (!h->listener)
        return error_set(e, E_IO, "server: %s:%d: cannot listen: %s", h->options.host,
                         h->options.port, strerror(failed));
    evconnlistener_set_error_cb(h->listener, on_accept_error);
    struct sockaddr_storage bound;
    socklen_t n = sizeof bound;
    if (getsockname(evconnlistener_get_fd(h->listener), (struct sockaddr *)&bound, &n) == 0)
        h->port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                                    : ((struct sockaddr_in *)&bound)->sin_port);
    return OK;
}

status http_open(http **out, const http_options *o, const http_handler *handler, error *e)
{
    if (evthread_use_pthreads() != 0)
        return error_set(e, E_NOMEM, "server: no threads in the event library");
    http *h = mem_zalloc(sizeof *h);
    if (!h) return error_set(e, E_NOMEM, "server: out of memory");
    h->options = *o;
    h->handler = *handler;
    h->last = &h->first;
    pthread_mutex_init(&h->lock, NULL);
    h->base = event_base_new();
    if (h->base) h->posts = event_new(h->base, -1, 0, on_posts, h);
    if (h->posts) h->wake = event_new(h->base, -1, 0, on_wake, h);
    if (h->wake) h->accept_again = evtimer_new(h->base, on_accept_again, h);
    status s = h->accept_again ? bind_to(h, e) : error_set(e, E_NOMEM, "server: out of memory");
    if (s) http_close(h);
    else *out = h;
    return s;
}

void http_run(http *h)
{
    event_base_loop(h->base, EVLOOP_NO_EXIT_ON_EMPTY);
}

void http_stop(http *h)
{
    event_base_loopexit(h->base, NULL);
}

int http_port(const http *h)
{
    return h->port;
}

bool http_all_sent(const http *h)
{
    for (const http_conn *c = h->conns; c; c = c->next)
        if (http_pending(c) > 0) return false;
    return true;
}

int http_connections(const http *h)
{
    return h->n_conns;
}

void http_release_signals(http *h)
{
    for (int i = 0; i < h->n_signals; i++) event_free(h->signals[i].event);
    h->n_signals = 0;
}

void http_close(http *h)
{
    while (h->conns) conn_lost(h->conns);
    if (h->listener) evconnlistener_free(h->listener);
    http_release_signals(h);
    if (h->tick) event_free(h->tick);
    if (h->posts) event_free(h->posts);
    if (h->wake) event_free(h->wake);
    if (h->accept_again) event_free(h->accept_again);
    if (h->base) event_base_free(h->base);
    pthread_mutex_destroy(&h->lock);
    mem_free(h);
}

/* ---- the request ---- */

str http_method(const http_conn *c)
{
    return c->request.method;
}

str http_header(const http_conn *c, const char *name)
{
    return httphead_find(&c->request, name);
}

str http_path(const http_conn *c)
{
    return c->request.path;
}

int http_refused(const http_conn *c)
{
    return c->refused;
}

void http_take_body(http_conn *c, buf *out)
{
    *out = c->body;
    buf_init(&c->body, c->owner->options.max_body);
}

void http_set_user(http_conn *c, void *user)
{
    c->user = user;
}

void *http_user(const http_conn *c)
{
    return c->user;
}
