/* setup.c - see setup.h. */
#include "cli/setup.h"

#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/locate.h"
#include "tools/loading.h"
#include "base/banned.h"

void setup_init(setup *s)
{
    *s = (setup){ .cache_mem = INGOT_CACHE_AUTO };
    char cpus[LOADING_KNOWN_CPUS];
    loading_known_cpus(cpus);
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
          "memory of the prefix cache (default: for one whole context, at least 1G; 0: none)", 0, 0,
          NULL },
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

/* ---- the model ---- */

void setup_note(void *arg, const char *text)
{
    progress_clear(arg);
    fprintf(stderr, "ingot: %s\n", text);
}

void setup_tiles(const setup *s, loading_tiles *out)
{
    *out = (loading_tiles){ s->tiles_path[0] ? s->tiles_path : NULL, s->keep_tiles, setup_note };
}

status setup_resolve(setup *s, error *e)
{
    if (s->cpu) TRY(loading_check_cpu(s->cpu, e));
    TRY(locate_tiles(s->tiles, s->tiles_path, sizeof s->tiles_path, &s->keep_tiles, e));
    progress_init(&s->bar, s->quiet);
    const char *given = s->king && *s->king ? s->king : locate_variable("INGOT_KING");
    const char *drafter = s->drafter && *s->drafter ? s->drafter : locate_variable("INGOT_DRAFTER");
    const bool use_drafter = !s->no_drafter;
    if (given) {
        TRY(locate_folder(given, "king", s->offline, &s->bar, s->king_path, sizeof s->king_path,
                          e));
    } else {
        TRY(locate_shipped(s->king_path, sizeof s->king_path, "king", e));
        if (!s->quiet)
            fprintf(stderr, "ingot: no --king given: using the small shipped one (%s)\n",
                    s->king_path);
        if (!drafter && use_drafter)
            return locate_shipped(s->drafter_path, sizeof s->drafter_path, "drafter-q8", e);
    }
    if (drafter && use_drafter) {
        TRY(locate_folder(drafter, "drafter", s->offline, &s->bar, s->drafter_path,
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
    return command_status(st, &ie, e);
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
    return command_status(ingot_engine_start(&s->engine, s->model, &o, &ie), &ie, e);
}

void setup_close(setup *s)
{
    if (s->engine) ingot_engine_stop(s->engine);
    if (s->model) ingot_model_close(s->model);
    s->engine = NULL;
    s->model = NULL;
}

status setup_mode(const setup *s, bool *f32, error *e)
{
    *f32 = s->mode && strcmp(s->mode, "f32") == 0;
    if (!s->mode || *f32 || strcmp(s->mode, "int8") == 0) return OK;
    return error_set(e, E_ARG, "--mode: found %s, want int8 or f32", s->mode);
}
