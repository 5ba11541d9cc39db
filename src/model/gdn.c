/* gdn.c - gated delta net, in the order of docs/model.md section 3. */
#include "model/gdn.h"

#include <stdio.h>

#include "base/banned.h"

status gdn_plan(gdn_layer *l, weights *w, const pack *p, int layer, const king_config *c,
                compute_mode mode, error *e)
{
    const gdn_shape shape = state_gdn_shape(c);
    const int64_t d = c->n_embd, heads = shape.n_v_head, values = heads * shape.v_dim;
    const int64_t channels = gdn_channels(&shape), conv_shape[2] = { channels, shape.taps };
    char name[PLAN_MAX_NAME];
#define NAME(part) (snprintf(name, sizeof name, "model.layers.%d.linear_attn." part, layer), name)
    TRY(weights_matrix(w, p, NAME("in_proj_qkv"), channels, d, mode, &l->qkv, e));
    TRY(weights_matrix(w, p, NAME("in_proj_z"), values, d, mode, &l->z, e));
    TRY(weights_matrix(w, p, NAME("in_proj_a"), heads, d, mode, &l->a, e));
    TRY(weights_matrix(w, p, NAME("in_proj_b"), heads, d, mode, &l->b, e));
    TRY(weights_matrix(w, p, NAME("out_proj"), d, values, mode, &l->out, e));
    TRY(weights_values(w, p, NAME("conv1d.weight"), 2, conv_shape, &l->conv, e));
    TRY(weights_vector(w, p, NAME("A_log"), heads, &l->a_log, e));
    TRY(weights_vector(w, p, NAME("dt_bias"), heads, &l->dt_bias, e));
    TRY(weights_vector(w, p, NAME("norm.weight"), shape.v_dim, &l->norm, e));
#undef NAME
    return OK;
}

size_t gdn_room(const king_config *c)
{
    const gdn_shape shape = state_gdn_shape(c);
    const size_t values = pass_round((size_t)shape.n_v_head * (size_t)shape.v_dim);
    return 2 * pass_round((size_t)gdn_channels(&shape)) + 3 * values +
           4 * pass_round((size_t)shape.n_v_head);
}

void gdn_forward(const gdn_layer *l, const king_config *c, int index, pass *p, float *r,
                 const float *n)
{
    const gdn_shape shape = state_gdn_shape(c);
    const int rows = p->rows, heads = shape.n_v_head, values = heads * shape.v_dim;
    const int channels = gdn_channels(&shape);
    float *room = p->room;
    float *qkv = pass_take(&room, rows, channels), *u = pass_take(&room, rows, channels);
    float *z = pass_take(&room, rows, values), *y = pass_take(&room, rows, values);
    float *o = pass_take(&room, rows, values);
    float *a = pass_take(&room, rows, heads), *b = pass_take(&room, rows, heads);
    float *g = pass_take(&room, rows, heads), *beta = pass_take(&room, rows, heads);

    const linear_out in[] = { { &l->qkv, qkv, (size_t)channels },
                              { &l->z, z, (size_t)values },
                              { &l->a, a, (size_t)heads },
                              { &l->b, b, (size_t)heads } };
    linear_apply(p->c, p->act, n, rows, (size_t)c->n_embd, in, 4);

    for (int j = 0; j < p->n_jobs; j++) {
        p->conv[j] = state_conv_job(p->jobs[j].state, index, p->row[j]);
        p->gdn[j] = state_gdn_job(p->jobs[j].state, index, p->row[j]);
    }
    compute_conv(p->c, u, qkv, l->conv, shape.taps, channels, p->conv, p->n_jobs);
    for (int j = 0; j < p->n_jobs; j++)
        state_conv_keep(p->jobs[j].state, index, qkv + (size_t)p->row[j] * (size_t)channels);
    compute_gdn_gates(p->c, &shape, u, g, beta, a, b, l->a_log, l->dt_bias, rows);
    compute_gdn(p->c, &shape, y, u, g, beta, p->gdn, p->n_jobs);
    compute_gated_norm(p->c, o, y, z, l->norm, rows, heads, shape.v_dim, c->eps);
    linear_apply_one(p->c, p->act, &l->out, r, o, rows);
}
