/* http.h - HTTP/1.1 over libevent's buffered sockets: one loop thread, one exchange at a time per
 * connection.
 *
 * libevent's own HTTP layer answers its errors in HTML, counts no connections and accepts differing
 * lengths, so the framing is done here and libevent keeps sockets, buffers and timers. Guarantees:
 * bounded heads, bodies, connections and times, and no further request is answered while a client
 * leaves much of the last answers untaken; differing or doubled lengths are refused; a client that
 * leaves is reported at once, whatever it was waiting for; answers leave in the order of the
 * requests. All functions but http_post, http_wake and http_stop belong to the loop thread. */
#ifndef SERVER_HTTP_H
#define SERVER_HTTP_H
#include "base/buf.h"

typedef struct http http;
typedef struct http_conn http_conn;

typedef struct http_posted {
    struct http_posted *next;
    void (*fn)(void *arg);
    void *arg;
} http_posted;

typedef struct http_options {
    const char *host; /* address or name to listen on */
    int port;         /* 0: any free one */
    size_t max_body;  /* bytes */
    int max_connections;
    int request_s; /* time for a client to send one request */
    int write_s;   /* time without a byte taken while bytes wait */
    int idle_s;    /* time between an answer that was taken and the next request */
} http_options;

typedef struct http_handler {
    void *arg;
    /* The head is there. Returns 0 to read the body, or a status: then the body is dropped and
     * `request` follows. */
    int (*head)(void *arg, http_conn *c);
    /* A whole request. Answered now or later, with http_reply or http_begin .. http_end. */
    void (*request)(void *arg, http_conn *c);
    /* The client is gone before its answer was complete; c must not be used any more. */
    void (*gone)(void *arg, http_conn *c);
    /* Bytes that were pending have been taken. */
    void (*drained)(void *arg, http_conn *c);
    /* Somebody called http_wake since the last time. */
    void (*woken)(void *arg);
    /* The framing refuses a request, of which it may have read nothing: answered now, with
     * http_reply. The connection closes. */
    void (*refusal)(void *arg, http_conn *c, int status, const char *message);
} http_handler;

/* Listens. */
status http_open(http **out, const http_options *o, const http_handler *handler, error *e);
void http_run(http *h);   /* until http_stop */
void http_stop(http *h);  /* any thread */
void http_close(http *h); /* after the loop: closes every connection */
int http_port(const http *h);
int http_connections(const http *h);
bool http_all_sent(const http *h); /* no connection has bytes waiting to be taken */
/* Runs fn(arg) on the loop thread soon; any thread, never allocates. The caller keeps *p until then
 * or until the loop has ended. */
void http_post(http *h, http_posted *p, void (*fn)(void *arg), void *arg);
/* Has `woken` called on the loop thread soon; any thread, never blocks or allocates. */
void http_wake(http *h);
/* Calls fn(arg) every `ms` on the loop thread. One timer per http. */
status http_every(http *h, int ms, void (*fn)(void *arg), void *arg, error *e);
/* Calls fn(arg, number) on the loop thread when the process gets that signal. */
status http_on_signal(http *h, int number, void (*fn)(void *arg, int number), void *arg, error *e);
void http_release_signals(http *h); /* they do again what they did before; after the loop */

/* ---- the request; strings live until its answer is complete ---- */
str http_method(const http_conn *c);
str http_path(const http_conn *c); /* without query, not decoded */
/* The first of that name, trimmed; ptr NULL when absent. */
str http_header(const http_conn *c, const char *name);
void http_take_body(http_conn *c, buf *out); /* moves it to the caller, who frees it */
int http_refused(const http_conn *c);        /* the status that `head` returned */
void http_set_user(http_conn *c, void *user);
void *http_user(const http_conn *c);

/* ---- the answer; `headers` is complete lines, each ending CRLF, or NULL ---- */
void http_reply(http_conn *c, int status_code, const char *headers, const char *type, str body);
/* A body of unknown length. */
void http_begin(http_conn *c, int status_code, const char *headers, const char *type);
void http_put(http_conn *c, str bytes);
void http_end(http_conn *c);
void http_end_close(http_conn *c);            /* the same, and closes once everything is sent */
size_t http_pending(const http_conn *c);      /* bytes not yet taken by the client's side */
int64_t http_last_put_ns(const http_conn *c); /* clock_ns of the last byte handed over */
#endif
