/* mlp.c - the gated feed-forward layer. */
#include "model/mlp.h"

#include <stdio.h>

#include "base/banned.h"

status mlp_plan(mlp_layer *l, weights *w, const pack *p, const char *prefix, int n_embd, int n_ff,
                compute_mode mode, error *e)
{
    char name[PLAN_MAX_NAME];
#define NAME(part) (snprintf(name, sizeof name, "%s.mlp." part, prefix), name)
    TRY(weights_matrix(w, p, NAME("gate_proj"), n_ff, n_embd, mode, &l->gate, e));
    TRY(weights_matrix(w, p, NAME("up_proj"), n_ff, n_embd, mode, &l->up, e));
    TRY(weights_matrix(w, p, NAME("down_proj"), n_embd, n_ff, mode, &l->down, e));
#undef NAME
    return OK;
}

void mlp_forward(const mlp_layer *l, compute *c, void *act_room, float *room, float *r,
                 const float *n, int rows)
{
    const size_t n_ff = (size_t)l->gate.w.n_out;
    float *gate = room, *up = room + (size_t)rows * n_ff;
    const linear_out in[] = { { &l->gate, gate, n_ff }, { &l->up, up, n_ff } };
    linear_apply(c, act_room, n, rows, (size_t)l->gate.w.n_in, in, 2);
    compute_swiglu(c, gate, gate, up, (size_t)rows * n_ff);
    linear_apply_one(c, act_room, &l->down, r, gate, rows);
}
