/* passbench.h - times whole passes of a real king: rows of a verify, prefill, decode and verify at
 * depth, beside the read bandwidth.
 *
 * What stands before a decode at depth is noise that is stored without computing it: reading 32,768
 * positions for real takes as long as a hundred measurements, and the time of a pass does not
 * depend on what they are.
 *
 * Everything is measured in turns (one of each, then again), so that a busy machine disturbs all
 * alike; reported are the median and the spread (largest - smallest, over the median) of the
 * turns. */
#ifndef TOOLS_PASSBENCH_H
#define TOOLS_PASSBENCH_H
#include "model/king.h"
#include "tools/runner.h"

enum { PASSBENCH_ROWS = 16, PASSBENCH_BLOCK = 4, PASSBENCH_MOST = 8 };

typedef struct passbench_options {
    const char *king, *cpu;
    int threads, turns, cooldown_s;
    const char *kv_type;                    /* f16, f32, q8; NULL: f16 */
    bool rows, prefill, decode;             /* what to measure; the read bandwidth always is */
    int lengths[PASSBENCH_MOST], n_lengths; /* prompt tokens of a prefill */
    /* positions before a decode; what the model cannot hold is left out */
    int depths[PASSBENCH_MOST], n_depths;
    loading_progress *progress;
    loading_tiles tiles;
    void *progress_arg;
} passbench_options;

typedef struct passbench_figure {
    double seconds, spread;
} passbench_figure;

typedef struct passbench_result {
    double read_gb_s, read_spread;
    int threads;
    char tier[32];
    uint64_t pass_bytes;     /* weights and recurrent state that a decode step reads and writes */
    uint64_t kv_token_bytes; /* keys and values read per position of depth */
    double macs_per_token;   /* of the matrices, embedding and head left out */
    passbench_figure rows[PASSBENCH_ROWS + 1]; /* [n]: a verify pass of n rows, logits for each */
    int lengths[PASSBENCH_MOST], n_lengths;
    passbench_figure prefill[PASSBENCH_MOST]; /* of the whole prompt */
    int depths[PASSBENCH_MOST], n_depths;
    passbench_figure decode[PASSBENCH_MOST]; /* of one token */
    passbench_figure verify[PASSBENCH_MOST]; /* of a verify pass of PASSBENCH_BLOCK rows there */
} passbench_result;

status passbench_run(const passbench_options *o, passbench_result *r, error *e);
#endif
