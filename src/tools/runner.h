/* runner.h - a king opened for teacher-forced runs: token sequences in, rows of logits and hidden
 * states out, chunk by chunk, so that a run longer than memory works; how a king is loaded
 * for any other tool, and which names `--cpu` knows. */
#ifndef TOOLS_RUNNER_H
#define TOOLS_RUNNER_H
#include "base/json.h"
#include "model/king.h"

enum { RUNNER_CHUNK = 64 }; /* most rows of a pass */

typedef void runner_progress(void *arg, const char *what, uint64_t done, uint64_t total);

/* Files of tiles that loading may use (model/load.h). */
typedef struct runner_tiles {
    const char *folder;                          /* NULL: none */
    bool keep;                                   /* make those that it lacks */
    void (*notice)(void *arg, const char *text); /* may be NULL; with progress_arg */
} runner_tiles;

typedef struct runner_options {
    const char *king; /* folder */
    bool f32;         /* float32 activations, keys and values; else int8 and f16 */
    const char *cpu;
    int threads;
    int max_len;               /* of a sequence */
    bool all_logits;           /* every row may ask for logits, else one of a pass */
    runner_progress *progress; /* may be NULL */
    runner_tiles tiles;
    void *progress_arg;
} runner_options;

/* Which layers' outputs are wanted. */
enum { RUNNER_MAX_LAYERS = 512 };
typedef struct runner_layers {
    int every; /* n: layers n-1, 2n-1, ...; 0: those listed, rising */
    int n, list[RUNNER_MAX_LAYERS];
} runner_layers;

/* What the callbacks of loading are given. */
typedef struct runner_watch {
    runner_progress *progress;
    void (*notice)(void *arg, const char *text);
    void *arg;
} runner_watch;

typedef struct runner {
    const char *king_path;
    pack *pack;
    compute *c;
    king *k;
    king_work *work;
    state_pool *pages;
    state *state;
} runner;

/* How a king is loaded with these; `progress` gets "loading king". */
load_options runner_loading(compute_mode mode, const runner_tiles *tiles, runner_watch *watch);
/* After a failure too: runner_close. */
status runner_open(runner *r, const runner_options *o, error *e);
void runner_close(runner *r);
/* The instruction sets that `cpu` may name, on whatever machine: "ref, avx2, ...". */
enum { RUNNER_KNOWN_CPUS = COMPUTE_KNOWN_TIERS };
void runner_known_cpus(char out[RUNNER_KNOWN_CPUS]);
/* E_ARG: no machine has an instruction set of that name. */
status runner_check_cpu(const char *cpu, error *e);
void runner_reset(runner *r); /* a new sequence */
/* Runs n <= RUNNER_CHUNK further tokens; logits of rows logits_from.. are in *logits until the next
 * call. The message of a result that is not finite names the layer. */
status runner_run(runner *r, const int32_t *ids, int n, int logits_from, const king_hook *hook,
                  const float **logits, error *e);

/* The wanted layers of a king of n_layer in place of the wish. */
status runner_find_layers(runner_layers *wanted, int n_layer, error *e);

/* ---- token files: JSON, [ids] or {"sequences": [[ids], ...]} ---- */
typedef struct sequences {
    int n;
    int *index;    /* [n] number of each in the file */
    int *len;      /* [n] */
    int32_t **ids; /* [n][len] */
    int *answer;   /* [n] first token that the king itself wrote; NULL: nobody says */
    int longest;
    uint64_t total;
} sequences;
status runner_read_sequences(sequences *s, const char *path, error *e);
/* Keeps sequences i with i % shards == shard; shards 0: all. E_ARG when none is left. */
status runner_keep_shard(sequences *s, int shard, int shards, const char *path, error *e);
/* Every id below n_vocab, every length at most max_len. */
status runner_check_sequences(const sequences *s, const char *path, int n_vocab, int max_len,
                              error *e);
void runner_free_sequences(sequences *s);
#endif
