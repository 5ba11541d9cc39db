/* runner.h - a king opened for teacher-forced runs: token ids in, rows of logits and hidden
 * states out, chunk by chunk, so that a run longer than memory works. */
#ifndef TOOLS_RUNNER_H
#define TOOLS_RUNNER_H
#include "model/king.h"
#include "tools/loading.h"

enum { RUNNER_CHUNK = 64 }; /* most rows of a pass */

typedef struct runner_options {
    const char *king; /* folder */
    bool f32;         /* float32 activations, keys and values; else int8 and f16 */
    const char *cpu;
    int threads;
    int max_len;                /* of a sequence */
    bool all_logits;            /* every row may ask for logits, else one of a pass */
    loading_progress *progress; /* may be NULL */
    loading_tiles tiles;
    void *progress_arg;
} runner_options;

/* Which layers' outputs are wanted. */
enum { RUNNER_MAX_LAYERS = 512 };
typedef struct runner_layers {
    int every; /* n: layers n-1, 2n-1, ...; 0: those listed, rising */
    int n, list[RUNNER_MAX_LAYERS];
} runner_layers;

typedef struct runner {
    const char *king_path;
    pack *pack;
    compute *c;
    king *k;
    king_work *work;
    state_pool *pages;
    state *state;
} runner;

/* After a failure too: runner_close. */
status runner_open(runner *r, const runner_options *o, error *e);
void runner_close(runner *r);
void runner_reset(runner *r); /* a new sequence */
/* Runs n <= RUNNER_CHUNK further tokens; logits of rows logits_from.. are in *logits until the next
 * call. The message of a result that is not finite names the layer. */
status runner_run(runner *r, const int32_t *ids, int n, int logits_from, const king_hook *hook,
                  const float **logits, error *e);

/* The wanted layers of a king of n_layer in place of the wish. */
status runner_find_layers(runner_layers *wanted, int n_layer, error *e);
#endif
