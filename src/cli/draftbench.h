/* draftbench.h - drafted against plain decoding, as users get it: through the public interface, on
 * prompts of several kinds.
 *
 * Every prompt is answered with every block in turns (plain, 2, 4, ..., auto, plain, ...); a figure
 * is the median of its turns. All answers to a prompt must be the same tokens, or the run fails. */
#ifndef CLI_DRAFTBENCH_H
#define CLI_DRAFTBENCH_H
#include "cli/setup.h"

enum { DRAFTBENCH_BLOCKS = 9, DRAFTBENCH_PROMPTS = 6 };

typedef struct draftbench_figure {
    int block;                          /* INGOT_BLOCK_AUTO is 0 */
    double tok_s, spread, ratio;        /* over all prompts; ratio to plain */
    double tokens_per_step, acceptance; /* accepted drafts of all drafts */
    double by_position[INGOT_MAX_BLOCK];
    int n_positions;
} draftbench_figure;

typedef struct draftbench_result {
    draftbench_figure blocks[DRAFTBENCH_BLOCKS]; /* the first one is plain */
    int n_blocks;
    const char *prompts[DRAFTBENCH_PROMPTS];
    /* by prompt, for auto: speed against plain; accepted drafts of all drafts */
    double auto_ratio[DRAFTBENCH_PROMPTS], auto_acceptance[DRAFTBENCH_PROMPTS];
} draftbench_result;

typedef struct draftbench_options {
    int turns, max_tokens;
} draftbench_options;

/* s->engine runs. */
status draftbench_run(setup *s, const draftbench_options *o, draftbench_result *r, error *e);
#endif
