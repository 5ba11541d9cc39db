/* fidelity.h - how close a king is to its teacher: KL divergence, hidden-state distance,
 * perplexity.
 *
 * With p and q the softmax of the teacher's logits l and the king's logits m of the same row, h*
 * and h their residual streams:
 *
 *   KL               sum_v p_v (l_v - m_v) - (lse l - lse m)
 *   hidden distance  |h - h*|_2 / |h*|_2
 *
 * Natural logarithm, whole vocabulary, temperature 1; f64 sums with ids ascending, so that two
 * machines agree to the last bit. Against a capture that kept the N largest logits only, the rest
 * of the vocabulary counts as one outcome on both sides, which gives a lower bound of the full KL:
 *
 *   KL               sum_top p (ln p - ln q) + P ln(P / Q)
 *                    with P = 1 - sum_top p, Q = 1 - sum_top q */
#ifndef TOOLS_FIDELITY_H
#define TOOLS_FIDELITY_H
#include "base/buf.h"
#include "tools/runner.h"
#include "tools/tokenlists.h"

typedef struct fidelity_options {
    const char *king;
    const char *against;  /* a capture file, or another king's folder (the teacher) */
    const char *tokens;   /* the token file; with a capture it may be NULL, else it must agree */
    runner_layers hidden; /* with a folder; a capture's own layers are compared */
    bool f32;             /* the king's arithmetic; the teacher of a folder always runs in f32 */
    int shard, shards;    /* only sequences i with i % shards == shard; shards 0: all */
    const char *cpu;
    int threads;
    loading_progress *progress;
    void *progress_arg;
    loading_tiles tiles;
} fidelity_options;

/* Values of every row in order; sums over rows are made when it is reported, so that shards merge
 * to the same bits. */
typedef struct fidelity_sequence {
    int index, rows;
    double *kl;       /* [rows] */
    bool *agree;      /* [rows] same top-1 */
    double *distance; /* [n_layer][rows] |h - h*|, and */
    double *length;   /* [n_layer][rows] |h*| */
} fidelity_sequence;
typedef struct fidelity {
    int n_layer, layers[RUNNER_MAX_LAYERS];
    bool bound; /* some row was compared with a top-N capture */
    int n, cap;
    fidelity_sequence *sequences;
} fidelity;

status fidelity_kl(const fidelity_options *o, fidelity *out, error *e);
void fidelity_free(fidelity *f);
/* Shards as plain files: JSON, doubles that read back to the same bits. */
status fidelity_write(const fidelity *f, const char *path, error *e);
/* Adds to what f holds: shards merge. */
status fidelity_read(fidelity *f, const char *path, error *e);
/* Mean, median, p95, p99, max of KL, top-1 agreement, distance per layer (mean of ratios, ratio of
 * means). */
status fidelity_report(const fidelity *f, bool json, buf *out, error *e);

typedef struct perplexity {
    int64_t tokens;          /* scored */
    double mean_nll;         /* nats */
    double standard_error;   /* of mean_nll */
    double value, low, high; /* exp(mean), exp(mean -+ 1 standard error) */
} perplexity;
/* Windows of `context` tokens, each scored from its second token on. */
status fidelity_perplexity(const fidelity_options *o, const tokenlists *windows, perplexity *out,
                           error *e);
#endif
