/* sampler.h - from a row of logits to a token.
 *
 * Order: penalties and bias from the row's own history, mask, then greedy when the temperature is
 * below SAMPLER_GREEDY; else / temperature, top-k, softmax, top-p (an id stays while the mass
 * before it is < p), min-p, pick. The pick is the largest logit/T + G(seed, choice, position, id)
 * with Gumbel noise G: an exact draw that depends on nothing but its arguments, so that drafted,
 * batched and resumed runs take the same token. Ties and sorts: logit descending, id ascending. */
#ifndef ENGINE_SAMPLER_H
#define ENGINE_SAMPLER_H
#include "compute/compute.h"

#define SAMPLER_GREEDY 1e-5f /* temperatures below it are greedy */

typedef struct sampler_bias {
    int32_t id;
    float value; /* added to the logit */
} sampler_bias;

typedef struct sampler_params {
    float temperature;
    int top_k;                 /* 0: off */
    float top_p, min_p;        /* top_p 1 and min_p 0: off */
    float presence, frequency; /* over the output; 0: off */
    float repetition;          /* over prompt and output; 1: off */
    const sampler_bias *bias;  /* borrowed */
    int n_bias;
    uint64_t seed;
} sampler_params;

/* Scratch shared by all sequences of an engine: one row and its candidates. */
typedef struct sampler_work {
    int n_vocab;
    float *row, *values;
    int32_t *ids;
} sampler_work;
status sampler_work_init(sampler_work *w, int n_vocab, error *e);
void sampler_work_free(sampler_work *w);
size_t sampler_work_bytes(int n_vocab);

/* One choice of one request. Ids >= n_token are never picked. */
typedef struct sampler {
    sampler_params params;
    uint64_t choice;
    int n_token;
    int32_t *output_count; /* [n_token]; NULL without penalties */
    int32_t *seen;         /* distinct ids met, in order of their first appearance */
    uint8_t *met;          /* [n_token] */
    int n_seen;
} sampler;
status sampler_init(sampler *s, const sampler_params *p, uint64_t choice, int n_token, error *e);
void sampler_free(sampler *s);
/* A token of the prompt or of the output enters the history. */
void sampler_saw(sampler *s, int32_t id, bool output);

/* The token at absolute position `position`, from logits [n_vocab] of the row before it. `mask`
 * (may be NULL): bit id of word id / 32 set: allowed; at least one bit is set.
 * -1: none of them has a logit that is a number. */
int32_t sampler_pick(const sampler *s, sampler_work *w, compute *c, const float *logits,
                     int position, const uint32_t *mask);

/* Log-probability of ids under softmax(logits [n]), raw: no penalty, no temperature; log-sum-exp in
 * f64. */
double sampler_log_sum(const float *logits, int n);
#endif
