/* setup.h - what the commands that load a model share: their options, finding the model, opening
 * it, interrupts, exit codes. */
#ifndef CLI_SETUP_H
#define CLI_SETUP_H
#include "cli/options.h"
#include "cli/progress.h"
#include "ingot/ingot.h"
#ifdef INGOT_HUB
#include "hub/hub.h"
#endif

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_REFUSED = 3, EXIT_INTERRUPTED = 130 };

struct runner_tiles; /* tools/runner.h */
struct runner_layers;

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
/* The folder that `given` names: itself, or for a hub id the copy in the cache, fetched when it is
 * missing unless `offline`. `what` begins the message. */
status setup_folder(const char *given, const char *what, bool offline, progress *bar, char *out,
                    size_t cap, error *e);
#ifdef INGOT_HUB
/* Progress on `bar`, an end at the first Ctrl-C, and no SIGPIPE, which sockets may raise. */
void setup_hub_options(hub_options *o, progress *bar);
#endif
/* The bar of a command that says one thing, `label`. */
void setup_bar(setup *s, const char *label);
/* Fills king_path and drafter_path from the options, the environment and the shipped pair (said
 * once on stderr). */
status setup_resolve(setup *s, error *e);
/* The folder of files of tiles: the option, $INGOT_TILES, or ingot/tiles in the user's cache; the
 * last is empty when there is no such place. */
status setup_tiles_path(const char *given, char *out, size_t cap, bool *chosen, error *e);
/* Prints "ingot: TEXT" on stderr, in place of the bar `arg`. */
void setup_note(void *arg, const char *text);
/* Tiles for the offline tools, after setup_resolve; their progress_arg is the bar. */
void setup_tiles(const setup *s, struct runner_tiles *out);
/* The library's form of the model options, after setup_resolve. */
ingot_model_options setup_model_options(setup *s);
/* Resolves, then opens the model. */
status setup_open(setup *s, bool text_only, error *e);
/* The prefix cache as the options want it. */
void setup_cache(const setup *s, ingot_engine_options *o);
/* Starts an engine with `extra` (may be NULL), context and kv_type of the options. */
status setup_start(setup *s, const ingot_engine_options *extra, error *e);
void setup_close(setup *s);

/* Ctrl-C: the first one is remembered, a second one ends the process. */
void setup_catch_interrupt(void);
bool setup_interrupted(void);
void setup_release_interrupt(void); /* the first one ends the process again */
void setup_clear_interrupt(void);

/* A library error as ours. */
status setup_status(ingot_status s, const ingot_error *from, error *e);
/* When the message is about `part` ("messages"), which was read from the file `path`, it names the
 * file, and the code is that of a bad file. Returns the code. */
status setup_blame(const char *part, const char *path, error *e);
/* Prints "ingot: MESSAGE" (and a hint where one is known) on stderr; returns the exit code. */
int setup_fail(const error *e);
/* The frame of every command: parses, prints the help when asked, else runs fn; returns the exit
 * code. */
int setup_command(const options_command *c, int argc, char **argv,
                  status (*fn)(void *arg, error *e), void *arg);
/* --mode of the offline commands. */
status setup_mode(const setup *s, bool *f32, error *e);
/* --hidden: "every=N", "all", "none", or rising layers "1,5,9". */
status setup_layers(const char *text, struct runner_layers *out, error *e);
/* --shard: "I/N" with 0 <= I < N. */
status setup_shard(const char *text, int *shard, int *shards, error *e);
/* Whole file as text ("-": stdin), NUL-terminated; the caller frees with mem_free. */
status setup_read(const char *path, size_t most, char **text, size_t *len, error *e);
#endif
