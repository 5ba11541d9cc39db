/* selector.h - picks a draft among the candidates of one row, given the token before it.
 *
 *   score(previous, c) = logit(c) + sum_k A[previous][k] g[k] B[c][k],   g = projection h
 * A and B are codebooks of low rank, read by row from the mapped pack; quantized ones give what the
 * source library gives, rows rounded to the type of their scales. */
#ifndef MODEL_SELECTOR_H
#define MODEL_SELECTOR_H
#include "model/weights.h"

typedef struct selector {
    linear projection;             /* [rank, n_embd], always on f32 activations */
    matrix predecessor, successor; /* A, B [n_vocab, rank] */
    int rank, top_k;
} selector;

status selector_plan(selector *s, weights *w, const pack *p, const drafter_config *c, error *e);

typedef struct selector_row {
    int n;              /* candidates: at most top_k */
    const int32_t *ids; /* [n] of the largest logits, by (logit descending, id ascending) */
    float *values;      /* [n] their logits; out: with multiplier and cap */
    float *scores;      /* out [n] */
    float multiplier;   /* of every logit, > 0 */
    float cap;          /* then cap * tanh(logit / cap); 0: none */
    const float *g;     /* [rank] */
    int32_t previous;   /* the token before this row */
    float temperature;  /* 0: the largest score */
    uint64_t key;       /* of the sampler's noise at this position */
} selector_row;

/* The token proposed; room: 2 * rank floats. */
int32_t selector_pick(const selector *s, compute *c, const selector_row *row, float *room);
#endif
