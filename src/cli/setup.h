/* setup.h - what the commands that load a model share: their options, and opening it. */
#ifndef CLI_SETUP_H
#define CLI_SETUP_H
#include "cli/options.h"
#include "cli/progress.h"
#include "ingot/ingot.h"

struct loading_tiles; /* tools/loading.h */

typedef struct setup {
    /* options */
    const char *king, *drafter, *drafter_config, *cpu, *mode, *kv_type, *tiles;
    bool no_drafter, offline, quiet, json;
    int threads, context;
    const char *cache_dir;
    uint64_t cache_mem, cache_disk;
    /* the rest */
    progress bar;
    char king_path[4096], drafter_path[4096], tiles_path[4096];
    char cpu_help[192];
    bool keep_tiles; /* tiles_path was chosen, not the default one: files are made in it */
    ingot_model *model;
    ingot_engine *engine;
    option model_options[10], engine_options[3], cache_options[4], output_options[3];
    option quiet_options[2];  /* --quiet: of commands that have no --json */
    option king_options[7];   /* those of model_options that count without a drafter */
    option text_options[3];   /* those of model_options that count without weights */
    option folder_options[4]; /* --offline, --json, --quiet: of commands that read a folder */
} setup;

/* Fills the option tables; values start as "not given". */
void setup_init(setup *s);
/* The bar of a command that says one thing, `label`. */
void setup_bar(setup *s, const char *label);
/* Fills king_path and drafter_path from the options, the environment and the shipped pair (said
 * once on stderr). */
status setup_resolve(setup *s, error *e);
/* Prints "ingot: TEXT" on stderr, in place of the bar `arg`. */
void setup_note(void *arg, const char *text);
/* Tiles for the offline tools, after setup_resolve; their progress_arg is the bar. */
void setup_tiles(const setup *s, struct loading_tiles *out);
/* The library's form of the model options, after setup_resolve. */
ingot_model_options setup_model_options(setup *s);
/* Resolves, then opens the model. */
status setup_open(setup *s, bool text_only, error *e);
/* The prefix cache as the options want it. */
void setup_cache(const setup *s, ingot_engine_options *o);
/* Starts an engine with `extra` (may be NULL), context and kv_type of the options. */
status setup_start(setup *s, const ingot_engine_options *extra, error *e);
void setup_close(setup *s);

/* --mode of the offline commands. */
status setup_mode(const setup *s, bool *f32, error *e);
#endif
