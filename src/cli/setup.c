/* setup.c - see setup.h. */
#include "cli/setup.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "tools/runner.h"
#include "base/banned.h"

void setup_init(setup *s)
{
    *s = (setup){ .cache_mem = (uint64_t)1 << 30 };
    char cpus[RUNNER_KNOWN_CPUS];
    runner_known_cpus(cpus);
    snprintf(s->cpu_help, sizeof s->cpu_help, "force one of %s; the results are the same bits",
             cpus);
    enum {
        KING,
        DRAFTER,
        NO_DRAFTER,
        DRAFTER_CONFIG,
        THREADS,
        CPU,
        MODE,
        TILES,
        OFFLINE,
        JSON,
        QUIET,
        END
    };
    const option all[] = {
        [KING] = { OPTION_TEXT, "king", 'm', &s->king, "FOLDER|ID",
                   "the king's pack (default: $INGOT_KING, else the shipped one)", 0, 0, NULL },
        [DRAFTER] = { OPTION_TEXT, "drafter", 0, &s->drafter, "FOLDER|ID",
                      "its drafter (default: $INGOT_DRAFTER, else the shipped one for the shipped "
                      "king)",
                      0, 0, NULL },
        [NO_DRAFTER] = { OPTION_FLAG, "no-drafter", 0, &s->no_drafter, NULL,
                         "decode without a drafter", 0, 0, NULL },
        [DRAFTER_CONFIG] = { OPTION_TEXT, "drafter-config", 0, &s->drafter_config, "FILE",
                             "config.json for a drafter folder without one", 0, 0, NULL },
        [THREADS] = { OPTION_INT, "threads", 't', &s->threads, "N",
                      "threads (default: physical cores this process may use)", 1, 1024, NULL },
        [CPU] = { OPTION_TEXT, "cpu", 0, &s->cpu, "TIER", s->cpu_help, 0, 0, NULL },
        [MODE] = { OPTION_TEXT, "mode", 0, &s->mode, "int8|f32",
                   "arithmetic of the matrix products (default int8)", 0, 0, NULL },
        [TILES] = { OPTION_TEXT, "tiles", 0, &s->tiles, "DIR",
                    "map prepared weights kept here; what is missing is made (default: "
                    "$INGOT_TILES)",
                    0, 0, NULL },
        [OFFLINE] = { OPTION_FLAG, "offline", 0, &s->offline, NULL,
                      "fetch nothing: a hub id must be in the cache", 0, 0, NULL },
        [JSON] = { OPTION_FLAG, "json", 0, &s->json, NULL,
                   "one JSON object on stdout and nothing else", 0, 0, NULL },
        [QUIET] = { OPTION_FLAG, "quiet", 0, &s->quiet, NULL, "no progress", 0, 0, NULL },
        [END] = { .kind = OPTION_END },
    };
    const option model[] = { all[KING],    all[DRAFTER], all[NO_DRAFTER], all[DRAFTER_CONFIG],
                             all[THREADS], all[CPU],     all[MODE],       all[TILES],
                             all[OFFLINE], all[END] };
    const option without_drafter[] = { all[KING],  all[THREADS], all[CPU], all[MODE],
                                       all[TILES], all[OFFLINE], all[END] };
    const option text[] = { all[KING], all[OFFLINE], all[END] };
    const option reading[] = { all[OFFLINE], all[JSON], all[QUIET], all[END] };
    const option output[] = { all[JSON], all[QUIET], all[END] };
    const option silence[] = { all[QUIET], all[END] };
    const option engine[] = {
        { OPTION_INT, "context", 0, &s->context, "N",
          "positions of a request (default: what fits, at most the model's)", 1, 1 << 24, NULL },
        { OPTION_TEXT, "kv-type", 0, &s->kv_type, "f16|f32|q8",
          "how keys and values are kept (default f16)", 0, 0, NULL },
        { .kind = OPTION_END },
    };
    const option cache[] = {
        { OPTION_SIZE, "cache-mem", 0, &s->cache_mem, "SIZE",
          "memory of the prefix cache (default 1G; 0: none)", 0, 0, NULL },
        { OPTION_TEXT, "cache-dir", 0, &s->cache_dir, "DIR",
          "keep what was read of conversations there too, beyond this run (default: nowhere)", 0, 0,
          NULL },
        { OPTION_SIZE, "cache-disk", 0, &s->cache_disk, "SIZE",
          "most bytes of all files in it (default 16G)", 0, 0, NULL },
        { .kind = OPTION_END },
    };
    _Static_assert(
        sizeof s->model_options == sizeof model && sizeof s->text_options == sizeof text &&
            sizeof s->king_options == sizeof without_drafter &&
            sizeof s->folder_options == sizeof reading &&
            sizeof s->engine_options == sizeof engine && sizeof s->cache_options == sizeof cache &&
            sizeof s->output_options == sizeof output && sizeof s->quiet_options == sizeof silence,
        "a table of setup has room for its options");
    memcpy(s->model_options, model, sizeof model);
    memcpy(s->king_options, without_drafter, sizeof without_drafter);
    memcpy(s->text_options, text, sizeof text);
    memcpy(s->folder_options, reading, sizeof reading);
    memcpy(s->engine_options, engine, sizeof engine);
    memcpy(s->cache_options, cache, sizeof cache);
    memcpy(s->output_options, output, sizeof output);
    memcpy(s->quiet_options, silence, sizeof silence);
}

void setup_bar(setup *s, const char *label)
{
    progress_init(&s->bar, s->quiet);
    s->bar.label = label;
}

/* ---- finding the model ---- */

/* The shipped pair stands beside the program: in the source tree, or under share/ when
 * installed. */
static status shipped(char *out, size_t cap, const char *part, error *e)
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

static bool interrupt_seen(void *arg)
{
    (void)arg;
    return setup_interrupted();
}

void setup_hub_options(hub_options *o, progress *bar)
{
    signal(SIGPIPE, SIG_IGN);
    o->progress = fetching;
    o->stop = interrupt_seen;
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
    setup_catch_interrupt();
    setup_hub_options(&o, bar);
    const status s = hub_open(given, &o, out, cap, e);
    sigaction(SIGINT, &on_int, NULL);
    sigaction(SIGTERM, &on_term, NULL);
    sigaction(SIGPIPE, &on_pipe, NULL);
    progress_clear(bar);
    return s;
}
#endif

status setup_folder(const char *given, const char *what, bool offline, progress *bar, char *out,
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

static const char *variable(const char *name)
{
    const char *v = getenv(name);
    return v && *v ? v : NULL;
}

status setup_tiles_path(const char *given, char *out, size_t cap, bool *chosen, error *e)
{
    const char *folder = given ? given : variable("INGOT_TILES");
    const char *cache = variable("XDG_CACHE_HOME"), *home = variable("HOME");
    int n = 0;
    out[0] = '\0';
    *chosen = folder != NULL;
    if (folder) n = snprintf(out, cap, "%s", folder);
    else if (cache) n = snprintf(out, cap, "%s/ingot/tiles", cache);
    else if (home) n = snprintf(out, cap, "%s/.cache/ingot/tiles", home);
    if (n >= 0 && (size_t)n < cap) return OK;
    return error_set(e, E_LIMIT, "--tiles: path too long");
}

void setup_note(void *arg, const char *text)
{
    progress_clear(arg);
    fprintf(stderr, "ingot: %s\n", text);
}

void setup_tiles(const setup *s, runner_tiles *out)
{
    *out = (runner_tiles){ s->tiles_path[0] ? s->tiles_path : NULL, s->keep_tiles, setup_note };
}

status setup_resolve(setup *s, error *e)
{
    if (s->cpu) TRY(runner_check_cpu(s->cpu, e));
    TRY(setup_tiles_path(s->tiles, s->tiles_path, sizeof s->tiles_path, &s->keep_tiles, e));
    progress_init(&s->bar, s->quiet);
    const char *given = s->king && *s->king ? s->king : variable("INGOT_KING");
    const char *drafter = s->drafter && *s->drafter ? s->drafter : variable("INGOT_DRAFTER");
    const bool use_drafter = !s->no_drafter;
    if (given) {
        TRY(setup_folder(given, "king", s->offline, &s->bar, s->king_path, sizeof s->king_path, e));
    } else {
        TRY(shipped(s->king_path, sizeof s->king_path, "king", e));
        if (!s->quiet)
            fprintf(stderr, "ingot: no --king given: using the small shipped one (%s)\n",
                    s->king_path);
        if (!drafter && use_drafter)
            return shipped(s->drafter_path, sizeof s->drafter_path, "drafter-q8", e);
    }
    if (drafter && use_drafter) {
        TRY(setup_folder(drafter, "drafter", s->offline, &s->bar, s->drafter_path,
                         sizeof s->drafter_path, e));
    }
    return OK;
}

static void loading(void *arg, const char *what, uint64_t done, uint64_t total)
{
    progress_draw(arg, what, done, total);
}

ingot_model_options setup_model_options(setup *s)
{
    ingot_model_options o = INGOT_INIT(ingot_model_options);
    o.king = s->king_path;
    o.drafter = s->drafter_path[0] ? s->drafter_path : NULL;
    o.drafter_config = s->drafter_config;
    o.cpu = s->cpu;
    o.threads = s->threads;
    o.mode = s->mode;
    o.tiles = s->tiles_path[0] ? s->tiles_path : NULL;
    o.keep_tiles = s->keep_tiles;
    o.progress = loading;
    o.progress_arg = &s->bar;
    o.notice = setup_note;
    return o;
}

status setup_open(setup *s, bool text_only, error *e)
{
    if (text_only) s->no_drafter = true;
    TRY(setup_resolve(s, e));
    ingot_model_options o = setup_model_options(s);
    o.text_only = text_only;
    ingot_error ie;
    const ingot_status st = ingot_model_open(&s->model, &o, &ie);
    progress_clear(&s->bar);
    return setup_status(st, &ie, e);
}

void setup_cache(const setup *s, ingot_engine_options *o)
{
    o->cache_bytes = s->cache_mem;
    o->cache_dir = s->cache_dir;
    o->cache_dir_bytes = s->cache_disk;
}

status setup_start(setup *s, const ingot_engine_options *extra, error *e)
{
    ingot_engine_options o = extra ? *extra : INGOT_INIT(ingot_engine_options);
    o.context = s->context;
    o.kv_type = s->kv_type;
    ingot_error ie;
    return setup_status(ingot_engine_start(&s->engine, s->model, &o, &ie), &ie, e);
}

void setup_close(setup *s)
{
    if (s->engine) ingot_engine_stop(s->engine);
    if (s->model) ingot_model_close(s->model);
    s->engine = NULL;
    s->model = NULL;
}

/* ---- interrupts ---- */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    if (interrupted) _exit(EXIT_INTERRUPTED);
    interrupted = number;
}

void setup_catch_interrupt(void)
{
    struct sigaction a = { .sa_handler = on_interrupt };
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
}

void setup_release_interrupt(void)
{
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
}

bool setup_interrupted(void)
{
    return interrupted != 0;
}

void setup_clear_interrupt(void)
{
    interrupted = 0;
}

/* ---- errors ---- */

status setup_status(ingot_status s, const ingot_error *from, error *e)
{
    if (s == INGOT_OK) return OK;
    return error_set(e, (status)s, "%s", from->text);
}

status setup_blame(const char *part, const char *path, error *e)
{
    char text[sizeof e->text];
    if (!path || !str_starts(str_from(e->text), str_from(part))) return e->code;
    snprintf(text, sizeof text, "%s", e->text);
    return error_set(e, E_FORMAT, "%s: %s", path, text);
}

/* What to do about errors that users meet most, by words of their messages. */
static const char *hint_for(const char *message)
{
    static const struct {
        const char *words, *hint;
    } hints[] = {
        { ": no such folder",
          "a model is a folder, or a hub id (owner/name) that `ingot pull` fetches" },
        { "found a file, want a folder",
          "`ingot convert FILE.gguf KING` makes a folder of a GGUF" },
        { "no model: no --king", "name one: --king FOLDER or --king owner/name" },
        { "not in the cache", "without --offline it is fetched" },
        { "unknown option", "`ingot help COMMAND` lists a command's options" },
        { "max_tokens", "--context makes room, --max-tokens asks for less" },
        { "found a king, want a drafter", "--king names the model, --drafter its small companion" },
        { "but the king has", "--no-drafter decodes without one" },
    };
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (strstr(message, hints[i].words)) return hints[i].hint;
    return NULL;
}

int setup_fail(const error *e)
{
    const char *hint = hint_for(e->text);
    fprintf(stderr, "ingot: %s\n", e->text);
    if (hint) fprintf(stderr, "hint: %s\n", hint);
    switch (e->code) {
    case E_ARG: return EXIT_USAGE;
    case E_UNSUPPORTED: return EXIT_REFUSED;
    case E_CANCELLED: return EXIT_INTERRUPTED;
    default: return EXIT_FAILED;
    }
}

status setup_read(const char *path, size_t most, char **text, size_t *len, error *e)
{
    buf b;
    buf_init(&b, most);
    const status s = file_read(&b, path, e);
    if (s) {
        buf_free(&b);
        return s;
    }
    buf_put(&b, "", 0);
    *len = b.len;
    *text = buf_steal(&b);
    return *text ? OK : error_set(e, E_NOMEM, "%s: out of memory", path);
}

int setup_command(const options_command *c, int argc, char **argv,
                  status (*fn)(void *arg, error *e), void *arg)
{
    error e;
    bool help;
    status s = options_parse(c, argc, argv, &help, &e);
    if (s == OK && help) {
        options_help(c, stdout);
        return EXIT_DONE;
    }
    if (s == OK) s = fn(arg, &e);
    return s == OK ? EXIT_DONE : setup_fail(&e);
}

status setup_mode(const setup *s, bool *f32, error *e)
{
    *f32 = s->mode && strcmp(s->mode, "f32") == 0;
    if (!s->mode || *f32 || strcmp(s->mode, "int8") == 0) return OK;
    return error_set(e, E_ARG, "--mode: found %s, want int8 or f32", s->mode);
}

static bool list_layers(const char *text, runner_layers *out)
{
    for (const char *at = text; at; out->n++) {
        const char *comma = strchr(at, ',');
        const str item = comma ? (str){ at, (size_t)(comma - at) } : str_from(at);
        int64_t layer;
        if (!str_to_i64(item, &layer) || layer < 0 || layer >= RUNNER_MAX_LAYERS ||
            (out->n && layer <= out->list[out->n - 1]))
            return false;
        out->list[out->n] = (int)layer;
        at = comma ? comma + 1 : NULL;
    }
    return true;
}

status setup_layers(const char *text, runner_layers *out, error *e)
{
    int64_t n;
    *out = (runner_layers){ .every = strcmp(text, "all") == 0 };
    if (out->every || strcmp(text, "none") == 0) return OK;
    if (str_starts(str_from(text), STR("every=")) && str_to_i64(str_from(text + 6), &n) && n > 0 &&
        n <= RUNNER_MAX_LAYERS)
        out->every = (int)n;
    else if (!list_layers(text, out))
        return error_set(
            e, E_ARG, "--hidden: found %s, want every=N, all, none or rising layers I,J,...", text);
    return OK;
}

status setup_shard(const char *text, int *shard, int *shards, error *e)
{
    int64_t i = -1, n = 0;
    const char *slash = strchr(text, '/');
    if (!slash || !str_to_i64((str){ text, (size_t)(slash - text) }, &i) ||
        !str_to_i64(str_from(slash + 1), &n) || n < 1 || n > 1 << 20 || i < 0 || i >= n)
        return error_set(e, E_ARG, "--shard: found %s, want I/N with 0 <= I < N", text);
    *shard = (int)i;
    *shards = (int)n;
    return OK;
}
