/* auth.h - who may use the server: keys, host names, origins.
 *
 * Keys are compared in constant time and never printed. Without a key a server listens on loopback
 * only, unless told; on loopback the Host must be a local name, which stops DNS rebinding. */
#ifndef SERVER_AUTH_H
#define SERVER_AUTH_H
#include "server/http.h"

enum { AUTH_MAX_KEYS = 64, AUTH_MAX_HOSTS = 16 };

typedef struct auth_options {
    const char *api_key, *api_key_file;
    bool no_auth;     /* beyond loopback without a key */
    const char *cors; /* origin, "*", or NULL: localhost origins */
    const char *allow_host[AUTH_MAX_HOSTS];
    int n_allow_host;
} auth_options;

typedef struct auth {
    const auth_options *o;
    bool loopback;
    char *keys[AUTH_MAX_KEYS];
    int n_keys;
} auth;

/* Reads the keys; refuses a `host` to listen on beyond loopback without one. */
status auth_open(auth *a, const auth_options *o, const char *host, error *e);
void auth_close(auth *a);
/* Reads the key file again (SIGHUP); on failure the old keys stay. */
status auth_reload(auth *a, error *e);
/* 0, 401 or 403. `open_route`: needs no key. */
int auth_check(const auth *a, const http_conn *c, bool open_route);
/* Header lines for the answer to this request's Origin; "" when it has none or it is not
 * allowed. */
void auth_cors(const auth *a, const http_conn *c, char *lines, size_t cap);
#endif
