/* selector.c - candidates by logit, rescored by what usually follows the token before. */
#include "model/selector.h"

#include "base/rng.h"
#include "base/banned.h"

status selector_plan(selector *s, weights *w, const pack *p, const drafter_config *c, error *e)
{
    s->rank = c->rank;
    s->top_k = c->top_k;
    TRY(weights_matrix(w, p, "candidate_selector.hidden_projection", c->rank, c->n_embd,
                       COMPUTE_F32, &s->projection, e));
    TRY(pack_matrix(p, "candidate_selector.predecessor_codebook", c->n_vocab, c->rank,
                    &s->predecessor, e));
    return pack_matrix(p, "candidate_selector.successor_codebook", c->n_vocab, c->rank,
                       &s->successor, e);
}

int32_t selector_pick(const selector *s, compute *c, const selector_row *row, float *room)
{
    const int n = row->n;
    for (int i = 0; i < n; i++) row->values[i] *= row->multiplier;
    if (row->cap > 0) compute_softcap(c, row->values, (size_t)n, row->cap);
    float *follows = room, *successor = room + s->rank;
    matrix_row_f32(&s->predecessor, row->previous, matrix_type(&s->predecessor), follows);
    for (int k = 0; k < s->rank; k++) follows[k] *= row->g[k];
    int best = 0;
    double best_value = 0;
    for (int i = 0; i < n; i++) {
        matrix_row_f32(&s->successor, row->ids[i], matrix_type(&s->successor), successor);
        float bilinear = 0;
        for (int k = 0; k < s->rank; k++) bilinear += follows[k] * successor[k];
        row->scores[i] = row->values[i] + bilinear;
        double value = row->scores[i];
        if (row->temperature > 0)
            value = value / row->temperature + rng_gumbel(row->key, row->ids[i]);
        /* ties go to the lower id, as in the sampler */
        if (i == 0 || value > best_value || (value == best_value && row->ids[i] < row->ids[best])) {
            best = i;
            best_value = value;
        }
    }
    return row->ids[best];
}
