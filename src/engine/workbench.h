/* workbench.h - what the engine's thread works with: models, their scratch memory, and the
 * sampler's. */
#ifndef ENGINE_WORKBENCH_H
#define ENGINE_WORKBENCH_H
#include "engine/sampler.h"
#include "model/drafter.h"
#include "text/tokenizer.h"

typedef struct workbench_parts {
    const king *king;
    const drafter *drafter; /* NULL: drafts are only copied */
    const tokenizer *tokenizer;
    compute_options compute;
    int max_rows;   /* of one king pass */
    int max_logits; /* of these, rows with logits */
} workbench_parts;

typedef struct workbench {
    const king *king;
    const drafter *drafter;
    const tokenizer *tokenizer;
    const drafter_config *draft; /* NULL without a drafter */
    compute *compute;
    king_work *king_work;
    drafter_work *drafter_work;
    sampler_work sampler;
    int n_vocab, n_token;
    int max_rows, max_logits;
    int tap_width; /* floats of one row of taps; 0 without a drafter */
} workbench;

status workbench_open(workbench *w, const workbench_parts *p, error *e);
void workbench_close(workbench *w);
size_t workbench_bytes(const workbench_parts *p);
#endif
