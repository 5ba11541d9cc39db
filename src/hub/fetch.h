/* fetch.h - HTTP requests; the only user of libcurl.
 *
 * One fetch serves one thread and keeps its connections. Redirects are followed here, at most
 * FETCH_MAX_REDIRECTS, never from https to http; the token goes to the origin of the first URL
 * only. Bodies arrive unencoded, so that ranges count the bytes of the file. */
#ifndef HUB_FETCH_H
#define HUB_FETCH_H
#include <stdint.h>
#include "base/error.h"
#include "base/str.h"

enum { FETCH_MAX_REDIRECTS = 5, FETCH_MAX_URL = 8192 };

typedef struct fetch_reply {
    int code;        /* of the last answer; 0: none came */
    bool transient;  /* the connection failed in a way that may pass */
    char etag[130];  /* X-Linked-Etag, else ETag of the first answer; without quotes */
    char commit[65]; /* X-Repo-Commit */
    bool has_size;
    uint64_t size;  /* X-Linked-Size, else Content-Length of the last answer */
    bool has_range; /* Content-Range, and what it says */
    uint64_t range_from, range_total;
    int retry_after_s;                       /* Retry-After, at most 60; -1: not said */
    char error_code[64], error_message[200]; /* X-Error-Code, X-Error-Message */
    char next[FETCH_MAX_URL];                /* Link: <...>; rel="next"; empty: none */
} fetch_reply;

typedef struct fetch_request {
    const char *url;
    const char *token; /* NULL: none */
    bool head;
    bool stay;   /* do not follow redirects to another origin: its answer is the reply */
    bool ranged; /* ask for bytes [from, to) */
    uint64_t from, to;
    int stall_s; /* give up when nothing arrives for so long */
    /* Before the first byte of a body with code 200 or 206; may be NULL. */
    status (*begin)(void *arg, const fetch_reply *r, error *e);
    status (*body)(void *arg, const void *p, size_t n, error *e);
    bool (*stop)(void *arg); /* polled; true ends the request with E_CANCELLED; may be NULL */
    void *arg;
} fetch_request;

typedef struct fetch fetch;
/* Open all before the first thread uses one. */
status fetch_open(fetch **out, error *e);
void fetch_close(fetch *f);
/* OK: an answer came whole, whatever its code; a body of another code than 200 or 206 is thrown
 * away. E_IO: no connection, or it broke; reply->transient tells whether to try again. What begin
 * and body return is passed on. */
status fetch_run(fetch *f, const fetch_request *q, fetch_reply *r, error *e);
/* A path with all but letters, digits and -._~ escaped; slashes too unless `keep_slash`.
 * E_LIMIT. */
status fetch_escape(str path, bool keep_slash, char *out, size_t cap, error *e);
#endif
