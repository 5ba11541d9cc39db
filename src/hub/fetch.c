/* fetch.c - see fetch.h. */
#include "hub/fetch.h"
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include "base/mem.h"
#include "base/banned.h"

enum { MOST_WAIT_S = 60 }; /* nobody sits before a bar that stands still for longer */

struct fetch {
    CURL *curl;
    const fetch_request *q;
    fetch_reply *r;
    error *e;
    char location[FETCH_MAX_URL]; /* of the answer being read; empty: none */
    int hops;
    bool begun, linked_etag, linked_size;
    status failed; /* what a callback said */
};

static status setup_failed(error *e)
{
    return error_set(e, E_NOMEM, "the HTTP client cannot be set up");
}

/* ---- headers ---- */

static void copy(char *out, size_t cap, str s)
{
    const size_t n = s.len < cap ? s.len : cap - 1;
    memcpy(out, s.ptr, n);
    out[n] = '\0';
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)out[i] < 0x20) out[i] = ' ';
}

static void copy_etag(char *out, size_t cap, str s)
{
    if (str_starts(s, STR("W/"))) s = str_sub(s, 2, s.len);
    if (s.len >= 2 && s.ptr[0] == '"' && s.ptr[s.len - 1] == '"') s = str_sub(s, 1, s.len - 1);
    copy(out, cap, s);
}

static bool to_u64(str s, uint64_t *out)
{
    int64_t n;
    if (!str_to_i64(s, &n) || n < 0) return false;
    *out = (uint64_t)n;
    return true;
}

/* "bytes 0-99/1234" */
static void take_range(fetch_reply *r, str s)
{
    if (!str_starts(s, STR("bytes "))) return;
    s = str_sub(s, 6, s.len);
    const size_t dash = str_find(s, STR("-")), slash = str_find(s, STR("/"));
    if (dash == STR_NONE || slash == STR_NONE || dash > slash) return;
    r->has_range = to_u64(str_sub(s, 0, dash), &r->range_from) &&
                   to_u64(str_sub(s, slash + 1, s.len), &r->range_total);
}

/* <https://...>; rel="next" */
static void take_link(fetch_reply *r, str s)
{
    const size_t open = str_find(s, STR("<")), close = str_find(s, STR(">"));
    if (str_find(s, STR("rel=\"next\"")) == STR_NONE || open == STR_NONE || close == STR_NONE ||
        close < open)
        return;
    copy(r->next, sizeof r->next, str_sub(s, open + 1, close));
}

static void take_header(fetch *f, str name, str value)
{
    fetch_reply *r = f->r;
    char key[32];
    uint64_t n;
    if (name.len >= sizeof key) return;
    copy(key, sizeof key, name);
    if (strcasecmp(key, "location") == 0) {
        copy(f->location, sizeof f->location, value);
    } else if (strcasecmp(key, "x-linked-etag") == 0) {
        copy_etag(r->etag, sizeof r->etag, value);
        f->linked_etag = true;
    } else if (strcasecmp(key, "etag") == 0 && f->hops == 0 && !f->linked_etag) {
        copy_etag(r->etag, sizeof r->etag, value);
    } else if (strcasecmp(key, "x-linked-size") == 0 && to_u64(value, &n)) {
        r->size = n;
        r->has_size = f->linked_size = true;
    } else if (strcasecmp(key, "content-length") == 0 && !f->linked_size && to_u64(value, &n)) {
        r->size = n;
        r->has_size = true;
    } else if (strcasecmp(key, "content-range") == 0) {
        take_range(r, value);
    } else if (strcasecmp(key, "x-repo-commit") == 0 && f->hops == 0) {
        copy(r->commit, sizeof r->commit, value);
    } else if (strcasecmp(key, "x-error-code") == 0) {
        copy(r->error_code, sizeof r->error_code, value);
    } else if (strcasecmp(key, "x-error-message") == 0) {
        copy(r->error_message, sizeof r->error_message, value);
    } else if (strcasecmp(key, "retry-after") == 0 && to_u64(value, &n)) {
        r->retry_after_s = n < MOST_WAIT_S ? (int)n : MOST_WAIT_S;
    } else if (strcasecmp(key, "link") == 0) {
        take_link(r, value);
    }
}

static size_t on_header(char *p, size_t size, size_t n, void *arg)
{
    fetch *f = arg;
    const str line = str_trim((str){ p, size * n });
    const size_t colon = str_find(line, STR(":"));
    if (str_starts(line, STR("HTTP/"))) { /* a new answer: also after "100 Continue" */
        f->location[0] = '\0';
        f->r->has_range = false;
        f->r->retry_after_s = -1;
        if (!f->linked_size) f->r->has_size = false;
    } else if (colon != STR_NONE) {
        take_header(f, str_sub(line, 0, colon), str_trim(str_sub(line, colon + 1, line.len)));
    }
    return size * n;
}

/* ---- body ---- */

static status begin(fetch *f)
{
    long code = 0;
    if (f->begun) return OK;
    f->begun = true;
    curl_easy_getinfo(f->curl, CURLINFO_RESPONSE_CODE, &code);
    f->r->code = (int)code;
    return f->q->begin ? f->q->begin(f->q->arg, f->r, f->e) : OK;
}

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
    fetch *f = arg;
    long code = 0;
    curl_easy_getinfo(f->curl, CURLINFO_RESPONSE_CODE, &code);
    if (code != 200 && code != 206) return size * n;
    f->failed = begin(f);
    if (!f->failed && f->q->body) f->failed = f->q->body(f->q->arg, p, size * n, f->e);
    return f->failed ? CURL_WRITEFUNC_ERROR : size * n;
}

static int on_progress(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const fetch *f = arg;
    (void)a;
    (void)b;
    (void)c;
    (void)d;
    return f->q->stop && f->q->stop(f->q->arg) ? 1 : 0;
}

/* ---- addresses ---- */

/* What `location` means where `base` was asked. */
static bool resolve(const char *base, const char *location, char out[FETCH_MAX_URL])
{
    CURLU *u = curl_url();
    char *text = NULL;
    const bool ok = u && !curl_url_set(u, CURLUPART_URL, base, 0) &&
                    !curl_url_set(u, CURLUPART_URL, location, 0) &&
                    !curl_url_get(u, CURLUPART_URL, &text, 0) && strlen(text) < FETCH_MAX_URL;
    if (ok) snprintf(out, FETCH_MAX_URL, "%s", text);
    curl_free(text);
    curl_url_cleanup(u);
    return ok;
}

static bool part_of(const char *url, CURLUPart part, char out[256])
{
    CURLU *u = curl_url();
    char *text = NULL;
    const bool ok = u && !curl_url_set(u, CURLUPART_URL, url, 0) &&
                    !curl_url_get(u, part, &text, CURLU_DEFAULT_PORT) && strlen(text) < 256;
    if (ok) snprintf(out, 256, "%s", text);
    curl_free(text);
    curl_url_cleanup(u);
    return ok;
}

static bool same_origin(const char *a, const char *b)
{
    static const CURLUPart parts[] = { CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_PORT };
    for (int i = 0; i < 3; i++) {
        char x[256], y[256];
        if (!part_of(a, parts[i], x) || !part_of(b, parts[i], y) || strcasecmp(x, y) != 0)
            return false;
    }
    return true;
}

/* ---- requests ---- */

status fetch_open(fetch **out, error *e)
{
    *out = mem_zalloc(sizeof **out);
    if (!*out) return setup_failed(e);
    (*out)->curl = curl_easy_init();
    if ((*out)->curl) return OK;
    mem_free(*out);
    *out = NULL;
    return setup_failed(e);
}

void fetch_close(fetch *f)
{
    if (!f) return;
    curl_easy_cleanup(f->curl);
    mem_free(f);
}

static bool is_transient(CURLcode c)
{
    switch (c) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_SSL_CONNECT_ERROR: return true;
    default: return false;
    }
}

static void set_options(fetch *f, const char *url, const struct curl_slist *headers)
{
    CURL *c = f->curl;
    char range[64];
    curl_easy_reset(c);
    curl_easy_setopt(c, CURLOPT_URL, url);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(c, CURLOPT_USERAGENT, "ingot/" INGOT_VERSION);
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(c, CURLOPT_HTTP_CONTENT_DECODING, 0L);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, 10L);
    curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, (long)f->q->stall_s);
    curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(c, CURLOPT_HEADERDATA, f);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, f);
    curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(c, CURLOPT_XFERINFODATA, f);
    const char *authorities = getenv("SSL_CERT_FILE");
    if (!authorities || !*authorities) authorities = getenv("REQUESTS_CA_BUNDLE");
    if (authorities && *authorities) curl_easy_setopt(c, CURLOPT_CAINFO, authorities);
    if (f->q->head) curl_easy_setopt(c, CURLOPT_NOBODY, 1L);
    if (f->q->ranged) {
        snprintf(range, sizeof range, "%llu-%llu", (unsigned long long)f->q->from,
                 (unsigned long long)f->q->to - 1);
        curl_easy_setopt(c, CURLOPT_RANGE, range);
    }
}

static status run_once(fetch *f, const char *url, const char *token)
{
    struct curl_slist *headers = curl_slist_append(NULL, "Accept-Encoding: identity");
    char line[1200], where[256] = "?";
    if (token && headers) {
        struct curl_slist *more = NULL;
        const int n = snprintf(line, sizeof line, "Authorization: Bearer %s", token);
        if (n > 0 && (size_t)n < sizeof line) more = curl_slist_append(headers, line);
        if (!more) curl_slist_free_all(headers);
        headers = more;
    }
    if (!headers) return setup_failed(f->e);
    set_options(f, url, headers);
    f->failed = OK;
    f->begun = false;
    long code = 0;
    const CURLcode c = curl_easy_perform(f->curl);
    curl_easy_getinfo(f->curl, CURLINFO_RESPONSE_CODE, &code);
    curl_slist_free_all(headers);
    f->r->code = (int)code;
    if (f->failed) return f->failed;
    if (c == CURLE_OK) return OK;
    if (c == CURLE_ABORTED_BY_CALLBACK) return error_set(f->e, E_CANCELLED, "interrupted");
    f->r->transient = is_transient(c);
    (void)part_of(url, CURLUPART_HOST, where);
    return error_set(f->e, E_IO, "%s: %s", where, curl_easy_strerror(c));
}

static bool is_redirect(int code)
{
    return code == 301 || code == 302 || code == 303 || code == 307 || code == 308;
}

status fetch_run(fetch *f, const fetch_request *q, fetch_reply *r, error *e)
{
    char url[FETCH_MAX_URL], next[FETCH_MAX_URL];
    *r = (fetch_reply){ .retry_after_s = -1 };
    f->q = q;
    f->r = r;
    f->e = e;
    f->linked_etag = f->linked_size = false;
    if (strlen(q->url) >= sizeof url) return error_set(e, E_LIMIT, "an address is too long");
    snprintf(url, sizeof url, "%s", q->url);
    for (f->hops = 0;; f->hops++) {
        const bool home = same_origin(url, q->url);
        TRY(run_once(f, url, home ? q->token : NULL));
        if (!is_redirect(r->code) || !f->location[0]) break;
        if (!resolve(url, f->location, next))
            return error_set(e, E_IO, "a redirect leads to no usable address");
        if (q->stay && !same_origin(next, q->url)) break;
        if (f->hops == FETCH_MAX_REDIRECTS)
            return error_set(e, E_IO, "more than %d redirects", FETCH_MAX_REDIRECTS);
        if (strncasecmp(url, "https:", 6) == 0 && strncasecmp(next, "https:", 6) != 0)
            return error_set(e, E_IO, "a redirect leads from https to an open connection");
        snprintf(url, sizeof url, "%s", next);
    }
    if ((r->code == 200 || r->code == 206) && !q->head) return begin(f); /* an empty body */
    return OK;
}

status fetch_escape(str path, bool keep_slash, char *out, size_t cap, error *e)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t n = 0;
    for (size_t i = 0; i < path.len; i++) {
        const unsigned char c = (unsigned char)path.ptr[i];
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || (c && strchr("-._~", c)) ||
                           (c == '/' && keep_slash);
        if (n + 4 > cap) return error_set(e, E_LIMIT, "an address is too long");
        if (plain) {
            out[n++] = (char)c;
            continue;
        }
        out[n++] = '%';
        out[n++] = digits[c >> 4];
        out[n++] = digits[c & 15];
    }
    if (n >= cap) return error_set(e, E_LIMIT, "an address is too long");
    out[n] = '\0';
    return OK;
}
