/* drafter.h - DFlash 2: proposes the next tokens of a block in one non-causal pass over
 * [anchor, mask, mask, ...].
 *
 * Its context is one row per committed token, projected from the king's taps; a ring of the last
 * window-1 rows suffices. It can only cost or gain speed: the king checks every token. Formulas:
 * docs/model.md. */
#ifndef MODEL_DRAFTER_H
#define MODEL_DRAFTER_H
#include "model/king.h"

typedef struct drafter drafter;
typedef struct drafter_work drafter_work;
typedef struct drafter_state drafter_state;

/* Refuses (E_UNSUPPORTED) a drafter whose widths, vocabulary or layer ids do not fit the king,
 * naming both; without a king (NULL) it is opened but cannot draft. */
status drafter_open(drafter **out, pack *p, const king *k, compute *c, const load_options *o,
                    error *e);
void drafter_close(drafter *d);
const drafter_config *drafter_get_config(const drafter *d);
size_t drafter_tile_bytes(const drafter *d);
const load_report *drafter_load_report(const drafter *d);

/* ---- context of one sequence ---- */
status drafter_state_new(drafter_state **out, const drafter *d, error *e);
void drafter_state_free(drafter_state *s);
/* An empty context whose next row stands at `pos`. */
void drafter_state_reset(drafter_state *s, int pos);
int drafter_state_len(const drafter_state *s); /* next absolute position */
size_t drafter_state_bytes(const drafter *d);
/* The states are of the same drafter. */
void drafter_state_copy(drafter_state *to, const drafter_state *from);
/* A context as bytes for a disk tier; read checks every size and empties the context when it
 * fails. */
uint64_t drafter_state_file_bytes(const drafter_state *s); /* that write puts */
status drafter_state_write(const drafter_state *s, state_put_fn *put, void *arg, error *e);
status drafter_state_read(drafter_state *s, state_get_fn *get, void *arg, error *e);

/* max_rows: rows of all blocks of one draft call; appends of any length are cut into pieces of so
 * many. */
status drafter_work_new(drafter_work **out, const drafter *d, int max_rows, error *e);
void drafter_work_free(drafter_work *w);
size_t drafter_work_bytes(const drafter *d, int max_rows);

/* Appends committed rows: taps [n, n_taps*n_embd] as king_forward leaves them. Any split gives the
 * same bits. */
typedef struct draft_append {
    drafter_state *state;
    const float *taps;
    int n;
} draft_append;
void drafter_append(const drafter *d, compute *c, drafter_work *w, const draft_append *jobs,
                    int n_jobs);

/* Drafts block-1 tokens after `anchor`, which stands at drafter_state_len(state). 2 <= block <=
 * config block size. Greedy when temperature is 0, else the selector adds the sampler's own noise
 * rng_gumbel(rng_key(seed, choice, pos), id) to score / temperature. */
typedef struct draft_job {
    drafter_state *state;
    int32_t anchor;
    int block;
    float temperature;
    uint64_t seed, choice;
    int32_t n_vocab; /* ids >= n_vocab are never proposed */
    int32_t *drafts; /* out [block - 1] */
    /* optional, for tests: [block - 1, selector_top_k], candidates by (logit descending, id
     * ascending) */
    int32_t *candidate_ids;
    float *candidate_logits, *candidate_scores;
    float *layers; /* [n_layer, block, n_embd] the residual stream after each layer */
    float *hidden; /* [block - 1, n_embd] after the final norm */
} draft_job;
void drafter_draft(const drafter *d, compute *c, drafter_work *w, const king *k, king_work *kw,
                   draft_job *jobs, int n_jobs);
#endif
