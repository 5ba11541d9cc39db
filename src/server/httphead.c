/* httphead.c - see httphead.h. */
#include "server/httphead.h"
#include "base/banned.h"

static bool is_token(str s)
{
    if (s.len == 0) return false;
    for (size_t i = 0; i < s.len; i++) {
        const unsigned char ch = (unsigned char)s.ptr[i];
        if (ch <= 32 || ch >= 127 || strchr("\"(),/:;<=>?@[\\]{}", ch)) return false;
    }
    return true;
}

static bool has_control(str s)
{
    for (size_t i = 0; i < s.len; i++) {
        const unsigned char ch = (unsigned char)s.ptr[i];
        if ((ch < 32 && ch != '\t') || ch == 127) return true;
    }
    return false;
}

/* Takes the text up to the next line end off *rest. */
static str take_line(str *rest)
{
    const char *end = memchr(rest->ptr, '\n', rest->len);
    const size_t n = end ? (size_t)(end - rest->ptr) : rest->len;
    str text = { rest->ptr, n };
    if (text.len && text.ptr[text.len - 1] == '\r') text.len--;
    *rest = str_sub(*rest, end ? n + 1 : n, rest->len);
    return text;
}

static const char *parse_request_line(httphead *h, str text, int *code)
{
    const char *first = memchr(text.ptr, ' ', text.len);
    if (!first) return "the request line has no target";
    h->method = (str){ text.ptr, (size_t)(first - text.ptr) };
    str rest = str_sub(text, h->method.len + 1, text.len);
    const char *second = memchr(rest.ptr, ' ', rest.len);
    if (!second) return "the request line has no version";
    str target = { rest.ptr, (size_t)(second - rest.ptr) };
    const str version = str_sub(rest, target.len + 1, rest.len);
    if (!str_eq(version, STR("HTTP/1.1")) && !str_eq(version, STR("HTTP/1.0"))) {
        *code = 505;
        return "this server speaks HTTP/1.1 and 1.0";
    }
    h->http10 = str_eq(version, STR("HTTP/1.0"));
    /* absolute form: the host is in the Host header too */
    if (str_starts(target, STR("http://"))) {
        const size_t slash = str_find(str_sub(target, 7, target.len), STR("/"));
        target = slash == STR_NONE ? STR("/") : str_sub(target, 7 + slash, target.len);
    }
    if (!is_token(h->method) || target.len == 0 || has_control(target) ||
        (target.ptr[0] != '/' && !str_eq(target, STR("*"))))
        return "the request line is malformed";
    const char *mark = memchr(target.ptr, '?', target.len);
    h->path = mark ? (str){ target.ptr, (size_t)(mark - target.ptr) } : target;
    h->is_head = str_eq(h->method, STR("HEAD"));
    return NULL;
}

static const char *parse_headers(httphead *h, str rest, int *code)
{
    while (rest.len) {
        const str text = take_line(&rest);
        if (text.len == 0) continue;
        const char *colon = memchr(text.ptr, ':', text.len);
        if (!colon) return "a header line has no colon";
        const str name = { text.ptr, (size_t)(colon - text.ptr) };
        const str value = str_trim(str_sub(text, name.len + 1, text.len));
        if (!is_token(name) || has_control(value)) return "a header is malformed";
        if (h->n_headers == HTTPHEAD_MAX_HEADERS) {
            *code = 431;
            return "too many headers";
        }
        h->headers[h->n_headers++] = (httphead_header){ name, value };
    }
    return NULL;
}

/* How the body is framed; every ambiguity is refused, since two readers could see two requests. */
static const char *parse_framing(httphead *h, int *code)
{
    int hosts = 0;
    for (int i = 0; i < h->n_headers; i++) {
        const httphead_header *hd = &h->headers[i];
        if (str_same_word(hd->name, STR("host"))) hosts++;
        if (str_same_word(hd->name, STR("transfer-encoding"))) {
            if (h->chunked || !str_same_word(hd->value, STR("chunked"))) {
                *code = 501;
                return "the only transfer encoding is chunked";
            }
            h->chunked = true;
        }
        if (str_same_word(hd->name, STR("content-length"))) {
            int64_t n;
            if (!str_to_i64(hd->value, &n) || n < 0 || hd->value.ptr[0] == '+' ||
                hd->value.ptr[0] == '-')
                return "Content-Length is not a number";
            if (h->has_length && (uint64_t)n != h->length)
                return "two Content-Length headers differ";
            h->has_length = true;
            h->length = (uint64_t)n;
        }
    }
    if (h->chunked && h->has_length) return "both Content-Length and Transfer-Encoding are given";
    if (hosts > 1 || (hosts == 0 && !h->http10)) return "want exactly one Host header";
    return NULL;
}

const char *httphead_parse(httphead *h, str text, int *code)
{
    *h = (httphead){ 0 };
    *code = 400;
    while (text.len && (text.ptr[0] == '\r' || text.ptr[0] == '\n'))
        text = str_sub(text, 1, text.len);
    const str line = take_line(&text);
    const char *fault = parse_request_line(h, line, code);
    if (!fault) fault = parse_headers(h, text, code);
    if (!fault) fault = parse_framing(h, code);
    return fault;
}

bool httphead_lists(const httphead *h, const char *name, str word)
{
    for (int i = 0; i < h->n_headers; i++) {
        str rest = h->headers[i].value;
        if (!str_same_word(h->headers[i].name, str_from(name))) continue;
        while (rest.len) {
            const char *comma = memchr(rest.ptr, ',', rest.len);
            const size_t n = comma ? (size_t)(comma - rest.ptr) : rest.len;
            if (str_same_word(str_trim(str_sub(rest, 0, n)), word)) return true;
            rest = str_sub(rest, comma ? n + 1 : n, rest.len);
        }
    }
    return false;
}

str httphead_find(const httphead *h, const char *name)
{
    for (int i = 0; i < h->n_headers; i++)
        if (str_same_word(h->headers[i].name, str_from(name))) return h->headers[i].value;
    return (str){ 0 };
}
