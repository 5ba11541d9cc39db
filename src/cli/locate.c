/* locate.c - see locate.h. */
#include "cli/locate.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "cli/interrupt.h"
#include "base/banned.h"

const char *locate_variable(const char *name)
{
    const char *v = getenv(name);
    return v && *v ? v : NULL;
}

/* The shipped pair stands beside the program: in the source tree, or under share/ when
 * installed. */
status locate_shipped(char *out, size_t cap, const char *part, error *e)
{
    char dir[4096], path[4096];
    TRY(file_executable_dir(dir, sizeof dir, e));
    const char *const places[] = { "../models/nugget", "../../models/nugget",
                                   "../share/ingot/models/nugget" };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        TRY(file_join(path, sizeof path, dir, places[i], e));
        TRY(file_join(out, cap, path, part, e));
        if (file_is_dir(out)) return OK;
    }
    return error_set(
        e, E_ARG, "no model: no --king, no $INGOT_KING, and no models/nugget beside the program");
}

#ifdef INGOT_HUB
static void fetching(void *arg, const char *name, uint64_t done, uint64_t total)
{
    progress *bar = arg;
    bar->bytes = true;
    progress_draw(bar, name, done, total);
}

static bool stopped(void *arg)
{
    (void)arg;
    return interrupt_seen();
}

void locate_hub_options(hub_options *o, progress *bar)
{
    signal(SIGPIPE, SIG_IGN);
    o->progress = fetching;
    o->stop = stopped;
    o->arg = bar;
}

static status from_hub(const char *given, bool offline, progress *bar, char *out, size_t cap,
                       error *e)
{
    hub_options o = { .offline = offline };
    struct sigaction on_int, on_term, on_pipe;
    sigaction(SIGPIPE, NULL, &on_pipe);
    sigaction(SIGINT, NULL, &on_int);
    sigaction(SIGTERM, NULL, &on_term);
    interrupt_catch();
    locate_hub_options(&o, bar);
    const status s = hub_open(given, &o, out, cap, e);
    sigaction(SIGINT, &on_int, NULL);
    sigaction(SIGTERM, &on_term, NULL);
    sigaction(SIGPIPE, &on_pipe, NULL);
    progress_clear(bar);
    return s;
}
#endif

status locate_folder(const char *given, const char *what, bool offline, progress *bar, char *out,
                     size_t cap, error *e)
{
    if (file_is_dir(given)) {
        const int n = snprintf(out, cap, "%s", given);
        if (n >= 0 && (size_t)n < cap) return OK;
        return error_set(e, E_LIMIT, "%s: path too long", what);
    }
#ifdef INGOT_HUB
    if (hub_is_name(given) && !file_exists(given))
        return from_hub(given, offline, bar, out, cap, e);
#else
    (void)offline;
    (void)bar;
#endif
    if (file_exists(given))
        return error_set(e, E_UNSUPPORTED, "%s: %s: found a file, want a folder or a hub id", what,
                         given);
    return error_set(e, E_IO, "%s: %s: no such folder", what, given);
}

status locate_tiles(const char *given, char *out, size_t cap, bool *chosen, error *e)
{
    const char *folder = given ? given : locate_variable("INGOT_TILES");
    const char *cache = locate_variable("XDG_CACHE_HOME"), *home = locate_variable("HOME");
    int n = 0;
    out[0] = '\0';
    *chosen = folder != NULL;
    if (folder) n = snprintf(out, cap, "%s", folder);
    else if (cache) n = snprintf(out, cap, "%s/ingot/tiles", cache);
    else if (home) n = snprintf(out, cap, "%s/.cache/ingot/tiles", home);
    if (n >= 0 && (size_t)n < cap) return OK;
    return error_set(e, E_LIMIT, "--tiles: path too long");
}
