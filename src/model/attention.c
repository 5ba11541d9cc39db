/* attention.c - gated full attention, in the order of docs/model.md section 4. */
#include "model/attention.h"

#include <math.h>
#include <stdio.h>

#include "base/banned.h"

status attention_plan(attention_layer *l, weights *w, const pack *p, int layer,
                      const king_config *c, compute_mode mode, error *e)
{
    const int64_t d = c->n_embd, dim = c->head_dim, q = c->n_head * dim, kv = c->n_kv_head * dim;
    char name[PLAN_MAX_NAME];
#define NAME(part) (snprintf(name, sizeof name, "model.layers.%d.self_attn." part, layer), name)
    TRY(weights_matrix(w, p, NAME("q_proj"), 2 * q, d, mode, &l->q, e)); /* query and gate */
    TRY(weights_matrix(w, p, NAME("k_proj"), kv, d, mode, &l->k, e));
    TRY(weights_matrix(w, p, NAME("v_proj"), kv, d, mode, &l->v, e));
    TRY(weights_matrix(w, p, NAME("o_proj"), d, q, mode, &l->out, e));
    TRY(weights_vector(w, p, NAME("q_norm.weight"), dim, &l->q_norm, e));
    TRY(weights_vector(w, p, NAME("k_norm.weight"), dim, &l->k_norm, e));
#undef NAME
    return OK;
}

size_t attention_room(const king_config *c)
{
    const size_t q = (size_t)c->n_head * (size_t)c->head_dim;
    const size_t kv = (size_t)c->n_kv_head * (size_t)c->head_dim;
    return pass_round(2 * q) + pass_round(q) + 2 * pass_round(kv);
}

void attention_forward(const attention_layer *l, const king_config *c, const rope *angles,
                       int index, pass *p, float *r, const float *n)
{
    const int rows = p->rows, dim = c->head_dim, q = c->n_head * dim, kv = c->n_kv_head * dim;
    float *room = p->room;
    float *qg = pass_take(&room, rows, 2 * q), *o = pass_take(&room, rows, q);
    float *k = pass_take(&room, rows, kv), *v = pass_take(&room, rows, kv);
    const size_t qg_row = 2 * (size_t)q, qg_head = 2 * (size_t)dim; /* per head: query, gate */

    const linear_out in[] = { { &l->q, qg, qg_row },
                              { &l->k, k, (size_t)kv },
                              { &l->v, v, (size_t)kv } };
    linear_apply(p->c, p->act, n, rows, (size_t)c->n_embd, in, 3);
    compute_head_norm_rope(p->c, qg, rows, qg_row, c->n_head, qg_head, dim, l->q_norm, c->eps,
                           angles, p->pos);
    compute_head_norm_rope(p->c, k, rows, (size_t)kv, c->n_kv_head, (size_t)dim, dim, l->k_norm,
                           c->eps, angles, p->pos);

    for (int j = 0; j < p->n_jobs; j++) p->attn[j] = state_attn_job(p->jobs[j].state, p->row[j]);
    const attn_shape shape = { .n_head = c->n_head,
                               .window = INT32_MAX,
                               .causal = true,
                               .scale = 1.0f / sqrtf((float)dim) };
    const kv_layout *layout = state_pool_layout(state_get_pool(p->jobs[0].state));
    compute_kv_attend(p->c, &shape, layout, index, o, qg, qg_row, qg_head, k, v, p->attn,
                      p->n_jobs);
    compute_head_gate(p->c, o, qg + dim, qg_row, qg_head, rows, c->n_head, dim);
    linear_apply_one(p->c, p->act, &l->out, r, o, rows);
}
