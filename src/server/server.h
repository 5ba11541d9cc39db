/* server.h - `ingot serve`: a model behind the HTTP interfaces of OpenAI and Anthropic. */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H
#include "base/error.h"
#include "ingot/ingot.h"
#include "server/auth.h"

typedef struct server_options {
    const char *host; /* 127.0.0.1 */
    int port;         /* 8080; 0: any free one */
    auth_options auth;
    uint64_t max_body;
    int write_s;      /* --timeout */
    int request_s;    /* --receive-timeout */
    int keep_alive_s; /* --keep-alive */
    int max_s;        /* --max-seconds; 0: none */
    int drain_s;
    const char *model_name;
    bool reasoning_both, log_content;
    ingot_model_options model;
    ingot_engine_options engine;
    /* Called on the loop thread once the port is known and once the model is ready. */
    void (*listening)(void *arg, const char *host, int port);
    void (*ready)(void *arg, const ingot_model *m, const ingot_engine *g);
    void *arg;
} server_options;

/* Listens, loads, serves, drains on SIGTERM or SIGINT, and returns OK. */
status server_run(const server_options *o, error *e);
#endif
