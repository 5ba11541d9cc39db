/* loading.h - how the offline tools load a king: progress, notices, files of tiles; and which names
 * `--cpu` knows. */
#ifndef TOOLS_LOADING_H
#define TOOLS_LOADING_H
#include "model/load.h"

typedef void loading_progress(void *arg, const char *what, uint64_t done, uint64_t total);

/* Files of tiles that loading may use (model/load.h). */
typedef struct loading_tiles {
    const char *folder;                          /* NULL: none */
    bool keep;                                   /* make those that it lacks */
    void (*notice)(void *arg, const char *text); /* may be NULL; with progress_arg */
} loading_tiles;

/* What the callbacks of loading are given. */
typedef struct loading_watch {
    loading_progress *progress;
    void (*notice)(void *arg, const char *text);
    void *arg;
} loading_watch;

/* How a king is loaded with these; `progress` gets "loading king". */
load_options loading_of(compute_mode mode, const loading_tiles *tiles, loading_watch *watch);
/* The instruction sets that `cpu` may name, on whatever machine: "ref, avx2, ...". */
enum { LOADING_KNOWN_CPUS = COMPUTE_KNOWN_TIERS };
void loading_known_cpus(char out[LOADING_KNOWN_CPUS]);
/* E_ARG: no machine has an instruction set of that name. */
status loading_check_cpu(const char *cpu, error *e);
#endif
