/* cmd_serve.c - `ingot serve`: the options of the server. */
#include <stdio.h>

#include "base/log.h"
#include "cli/cmd.h"
#include "cli/command.h"
#include "cli/setup.h"
#include "server/server.h"
#include "base/banned.h"

typedef struct serve {
    setup base;
    server_options o;
    option_list hosts;
    const char *reasoning_field;
    int parallel, queue, total_context;
} serve;

static void listening(void *arg, const char *host, int port)
{
    const serve *s = arg;
    printf("listening on http://%s:%d\n", host, port);
    fflush(stdout);
    if (!s->base.quiet) fprintf(stderr, "ingot: loading the model\n");
}

static void ready(void *arg, const ingot_model *m, const ingot_engine *g)
{
    serve *s = arg;
    ingot_model_info info;
    char king[32], drafter[32];
    progress_clear(&s->base.bar);
    if (s->base.quiet) return;
    ingot_model_get_info(m, &info);
    progress_bytes(king, info.king_bytes);
    progress_bytes(drafter, info.drafter_bytes);
    fprintf(stderr,
            "ingot: ready: %s kernels, %d threads (%s), context %d (%d of all requests), king %s, "
            "drafter "
            "%s\n",
            info.tier, info.threads, info.threads_why, ingot_engine_context(g),
            ingot_engine_total_context(g), king, info.drafter ? drafter : "none");
}

static status run(void *arg, error *e)
{
    serve *s = arg;
    TRY(setup_resolve(&s->base, e));
    if (s->reasoning_field && strcmp(s->reasoning_field, "both") != 0 &&
        strcmp(s->reasoning_field, "reasoning_content") != 0)
        return error_set(e, E_ARG, "--reasoning-field: found %s, want reasoning_content or both",
                         s->reasoning_field);
    s->o.reasoning_both = s->reasoning_field && strcmp(s->reasoning_field, "both") == 0;
    s->o.auth.n_allow_host = s->hosts.n;
    if (s->hosts.n > AUTH_MAX_HOSTS)
        return error_set(e, E_ARG, "--allow-host: given more than %d times", AUTH_MAX_HOSTS);
    for (int i = 0; i < s->hosts.n; i++) s->o.auth.allow_host[i] = s->hosts.items[i];
    s->o.model = setup_model_options(&s->base);
    s->o.engine = INGOT_INIT(ingot_engine_options);
    s->o.engine.context = s->base.context;
    s->o.engine.kv_type = s->base.kv_type;
    s->o.engine.parallel = s->parallel;
    s->o.engine.total_context = s->total_context;
    s->o.engine.queue = s->queue;
    setup_cache(&s->base, &s->o.engine);
    s->o.listening = listening;
    s->o.ready = ready;
    s->o.arg = s;
    if (!s->base.quiet || s->o.log_content) log_set_level(LOG_INFO);
    return server_run(&s->o, e);
}

int cmd_serve(int argc, char **argv)
{
    serve s = { .parallel = 4, .queue = 64 };
    s.o = (server_options){ .host = "127.0.0.1",
                            .port = 8080,
                            .max_body = 16u << 20,
                            .write_s = 60,
                            .request_s = 30,
                            .keep_alive_s = 4,
                            .drain_s = 60 };
    setup_init(&s.base);
    const option own[] = {
        { OPTION_TEXT, "host", 0, &s.o.host, "HOST", "address to listen on (default 127.0.0.1)", 0,
          0, NULL },
        { OPTION_INT, "port", 0, &s.o.port, "N", "port (default 8080; 0 picks one and prints it)",
          0, 65535, NULL },
        { OPTION_TEXT, "api-key", 0, &s.o.auth.api_key, "KEY", "key that clients must send", 0, 0,
          NULL },
        { OPTION_TEXT, "api-key-file", 0, &s.o.auth.api_key_file, "FILE",
          "keys, one a line; read again on SIGHUP", 0, 0, NULL },
        { OPTION_FLAG, "no-auth", 0, &s.o.auth.no_auth, NULL,
          "listen beyond loopback without a key", 0, 0, NULL },
        { OPTION_LIST, "allow-host", 0, &s.hosts, "NAME",
          "serve requests for this Host on loopback too (repeatable)", 0, 0, NULL },
        { OPTION_TEXT, "cors", 0, &s.o.auth.cors, "ORIGIN",
          "origin that browsers may call from, or * (default: localhost)", 0, 0, NULL },
        { OPTION_INT, "parallel", 0, &s.parallel, "N", "choices generated at once (default 4)", 1,
          256, NULL },
        { OPTION_INT, "total-context", 0, &s.total_context, "N",
          "positions of all requests together (default: parallel contexts, or what fits)", 1,
          1 << 30, NULL },
        { OPTION_INT, "queue", 0, &s.queue, "N", "choices that may wait (default 64)", 1, 1 << 16,
          NULL },
        { OPTION_TEXT, "model-name", 0, &s.o.model_name, "NAME",
          "the model's id for clients (default: the folder's name)", 0, 0, NULL },
        { OPTION_INT, "timeout", 0, &s.o.write_s, "S",
          "cancel when a client takes no byte for S seconds (default 60)", 1, 86400, NULL },
        { OPTION_INT, "receive-timeout", 0, &s.o.request_s, "S",
          "time for a client to send one request (default 30)", 1, 86400, NULL },
        { OPTION_INT, "keep-alive", 0, &s.o.keep_alive_s, "S",
          "silence of a stream after which a comment is sent (default 4)", 1, 86400, NULL },
        { OPTION_INT, "max-seconds", 0, &s.o.max_s, "S",
          "longest time of a request (default: no limit)", 1, 1 << 30, NULL },
        { OPTION_INT, "drain", 0, &s.o.drain_s, "S",
          "time for running requests after SIGTERM (default 60)", 0, 86400, NULL },
        { OPTION_SIZE, "max-body", 0, &s.o.max_body, "SIZE", "largest request body (default 16M)",
          1024, 0, NULL },
        { OPTION_TEXT, "reasoning-field", 0, &s.reasoning_field, "NAME",
          "reasoning_content, or both: `reasoning` beside it", 0, 0, NULL },
        { OPTION_FLAG, "log-content", 0, &s.o.log_content, NULL,
          "write the start of prompts and replies to the log", 0, 0, NULL },
        { .kind = OPTION_END },
    };
    const options_command c = {
        .name = "serve",
        .usage = "[--king FOLDER] [--drafter FOLDER] [options]",
        .summary = "a server with OpenAI's and Anthropic's APIs",
        .details = "SIGTERM finishes what runs and exits 0; a second one exits at once.",
        .tables = { own, s.base.model_options, s.base.engine_options, s.base.cache_options,
                    s.base.quiet_options },
    };
    return command_run(&c, argc, argv, run, &s);
}
