/* auth.h - who may use the server: keys, host names, origins.
 *
 * Keys are compared in constant time and never printed. Without a key a server listens on loopback
 * only, unless told; on loopback the Host must be a local name, which stops DNS rebinding. */
#ifndef SERVER_AUTH_H
#define SERVER_AUTH_H
#include "server/http.h"
#include "server/server.h"

typedef struct auth {
    const server_options *o;
    bool loopback;
    char *keys[SERVER_MAX_KEYS];
    int n_keys;
} auth;

/* Reads the keys; refuses a host beyond loopback without one. */
status auth_open(auth *a, const server_options *o, error *e);
void auth_close(auth *a);
/* Reads the key file again (SIGHUP); on failure the old keys stay. */
status auth_reload(auth *a, error *e);
/* 0, 401 or 403. `open_route`: needs no key. */
int auth_check(const auth *a, const http_conn *c, bool open_route);
/* Header lines for the answer to this request's Origin; "" when it has none or it is not allowed.
 */
void auth_cors(const auth *a, const http_conn *c, char *lines, size_t cap);
#endif
