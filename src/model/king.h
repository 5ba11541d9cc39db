/* king.h - the target model: one forward pass over rows of many sequences.
 *
 * Serves king packs (rotated ternary) and plain qwen3_5 packs of any quantization. Immutable after
 * opening; a king_work holds the activations of one pass and belongs to one thread. Formulas:
 * docs/model.md. */
#ifndef MODEL_KING_H
#define MODEL_KING_H
#include "model/load.h"
#include "model/state.h"

typedef struct king king;
typedef struct king_work king_work;

/* Makes or maps the tiles (load.h); the pack stays open for the embedding. */
status king_open(king **out, pack *p, compute *c, const load_options *o, error *e);
void king_close(king *k);
const king_config *king_get_config(const king *k);
size_t king_tile_bytes(const king *k);
const load_report *king_load_report(const king *k);
int64_t king_code3(const king *k); /* ternary codes of value 3 met */

/* max_rows: rows of one pass; max_logits: rows that may ask for logits; taps: layer ids whose
 * outputs are kept. */
status king_work_new(king_work **out, const king *k, int max_rows, int max_logits, const int *taps,
                     int n_taps, error *e);
void king_work_free(king_work *w);
/* act_bytes: room for max_rows prepared rows (king_act_bytes). */
size_t king_work_bytes(const king_config *c, size_t act_bytes, int max_rows, int max_logits,
                       int n_taps);
size_t king_act_bytes(const king *k, int rows);

/* Rows of one sequence in a pass. state_begin(state, n, kind) must have been called. */
typedef struct king_job {
    state *state;
    const int32_t *tokens; /* [n] */
    int n;
    int logits_from; /* rows logits_from..n-1 produce logits; n: none */
    /* results, valid until the next pass with the same work */
    const float *logits; /* [n - logits_from, n_vocab] */
    const float *taps;   /* [n, n_taps * n_embd], in list order; NULL without taps */
    int bad_layer;       /* -1, or the first layer whose output was not finite: results are void */
} king_job;
/* hidden (may be NULL) is called after each layer with the residual stream [rows, n_embd] of the
 * whole batch. */
typedef struct king_hook {
    void (*hidden)(void *arg, int layer, const float *h, int rows);
    void *arg;
    /* 0: all; else the pass skips those behind so many: for timing, its results are void */
    int layers;
} king_hook;
void king_forward(const king *k, compute *c, king_work *w, king_job *jobs, int n_jobs,
                  const king_hook *hook);

/* For the drafter: embedding rows and the bare head of the target (no final norm). */
void king_embed(const king *k, compute *c, float *y, const int32_t *ids, int rows);
void king_head(const king *k, compute *c, king_work *w, float *logits, const float *h, int rows);
#endif
