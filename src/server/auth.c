/* auth.c - see auth.h. */
#include "server/auth.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/banned.h"

enum { MOST_KEY_FILE = 1 << 20 };

static bool is_local_name(str host)
{
    return str_same_word(host, STR("localhost")) || str_eq(host, STR("127.0.0.1")) ||
           str_eq(host, STR("::1")) || str_eq(host, STR("[::1]"));
}

/* "name:port" or "[v6]:port" without the port */
static str without_port(str host)
{
    if (host.len && host.ptr[0] == '[') {
        const char *end = memchr(host.ptr, ']', host.len);
        return end ? (str){ host.ptr, (size_t)(end - host.ptr) + 1 } : host;
    }
    const char *colon = memchr(host.ptr, ':', host.len);
    return colon ? (str){ host.ptr, (size_t)(colon - host.ptr) } : host;
}

static status add_key(auth *a, str key, error *e)
{
    if (key.len == 0) return OK;
    if (a->n_keys == AUTH_MAX_KEYS)
        return error_set(e, E_LIMIT, "server: more than %d keys", AUTH_MAX_KEYS);
    a->keys[a->n_keys] = mem_strndup(key.ptr, key.len);
    if (!a->keys[a->n_keys]) return error_set(e, E_NOMEM, "server: out of memory");
    a->n_keys++;
    return OK;
}

static status read_keys(auth *a, const char *path, error *e)
{
    buf text;
    status s;
    buf_init(&text, MOST_KEY_FILE);
    s = file_read(&text, path, e);
    str rest = buf_view(&text);
    while (s == OK && rest.len) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        const size_t n = end ? (size_t)(end - rest.ptr) : rest.len;
        const str key = str_trim((str){ rest.ptr, n });
        if (key.len && key.ptr[0] != '#') s = add_key(a, key, e);
        rest = str_sub(rest, end ? n + 1 : n, rest.len);
    }
    buf_free(&text);
    return s;
}

static status read_all(auth *a, error *e)
{
    const char *from_environment = getenv("INGOT_API_KEY");
    if (a->o->api_key && !*a->o->api_key)
        return error_set(e, E_ARG, "--api-key: found an empty key, want text");
    if (a->o->api_key) TRY(add_key(a, str_from(a->o->api_key), e));
    else if (from_environment && !a->o->api_key_file)
        TRY(add_key(a, str_from(from_environment), e));
    if (a->o->api_key_file) TRY(read_keys(a, a->o->api_key_file, e));
    if (a->o->api_key_file && a->n_keys == 0)
        return error_set(e, E_ARG, "server: %s: no key in it", a->o->api_key_file);
    return OK;
}

status auth_open(auth *a, const auth_options *o, const char *host, error *e)
{
    *a = (auth){ .o = o, .loopback = is_local_name(str_from(host)) };
    TRY(read_all(a, e));
    if (!a->loopback && a->n_keys == 0 && !o->no_auth)
        return error_set(e, E_ARG,
                         "server: --host %s is reachable by others: want --api-key or "
                         "--api-key-file, or --no-auth",
                         host);
    return OK;
}

void auth_close(auth *a)
{
    for (int i = 0; i < a->n_keys; i++) mem_free(a->keys[i]);
    a->n_keys = 0;
}

status auth_reload(auth *a, error *e)
{
    auth fresh = { .o = a->o, .loopback = a->loopback };
    const status s = read_all(&fresh, e);
    if (s) {
        auth_close(&fresh);
        return s;
    }
    auth_close(a);
    *a = fresh;
    return OK;
}

/* Time depends on the lengths alone. */
static bool same_key(const char *key, str given)
{
    const size_t n = strlen(key);
    unsigned char differ = n != given.len;
    for (size_t i = 0; i < given.len; i++)
        differ = (unsigned char)(differ |
                                 ((unsigned char)key[n ? i % n : 0] ^ (unsigned char)given.ptr[i]));
    return !differ;
}

static bool has_key(const auth *a, const http_conn *c)
{
    const str own = http_header(c, "x-api-key");
    str bearer = http_header(c, "authorization");
    if (bearer.len > 7 && str_same_word(str_sub(bearer, 0, 7), STR("Bearer ")))
        bearer = str_trim(str_sub(bearer, 7, bearer.len));
    else bearer = (str){ 0 };
    bool found = false;
    for (int i = 0; i < a->n_keys; i++) {
        found |= same_key(a->keys[i], own);
        found |= same_key(a->keys[i], bearer);
    }
    return found; /* no key is empty */
}

static bool host_allowed(const auth *a, const http_conn *c)
{
    const str header = http_header(c, "host");
    if (!a->loopback || !header.ptr) return true;
    const str host = without_port(header);
    if (is_local_name(host)) return true;
    for (int i = 0; i < a->o->n_allow_host; i++)
        if (str_same_word(host, str_from(a->o->allow_host[i]))) return true;
    return false;
}

/* "https://name:port" without the scheme */
static str without_scheme(str origin)
{
    const size_t at = str_find(origin, STR("://"));
    return at == STR_NONE ? origin : str_sub(origin, at + 3, origin.len);
}

static bool origin_allowed(const auth *a, str origin)
{
    if (a->o->cors) return strcmp(a->o->cors, "*") == 0 || str_eq(origin, str_from(a->o->cors));
    return is_local_name(without_port(without_scheme(origin)));
}

/* Without a key any page in the user's browser could make this server work, though it could not
 * read the answer. */
static bool is_foreign_page(const auth *a, const http_conn *c)
{
    const str origin = http_header(c, "origin");
    return origin.ptr && a->n_keys == 0 && !origin_allowed(a, origin) &&
           !str_same_word(without_scheme(origin), http_header(c, "host"));
}

int auth_check(const auth *a, const http_conn *c, bool open_route)
{
    if (!host_allowed(a, c)) return 403;
    if (open_route) return 0;
    if (is_foreign_page(a, c)) return 403;
    if (a->n_keys == 0 || str_eq(http_method(c), STR("OPTIONS"))) return 0;
    return has_key(a, c) ? 0 : 401;
}

void auth_cors(const auth *a, const http_conn *c, char *lines, size_t cap)
{
    const str origin = http_header(c, "origin");
    lines[0] = '\0';
    if (!origin.ptr || origin.len > 256 || !origin_allowed(a, origin)) return;
    snprintf(lines, cap,
             "Access-Control-Allow-Origin: %.*s\r\nVary: Origin\r\n"
             "Access-Control-Allow-Methods: GET, POST, OPTIONS\r\nAccess-Control-Allow-Headers: *, "
             "Authorization\r\n"
             "Access-Control-Max-Age: 600\r\n",
             STR_ARG(origin));
}
