/* mlp.h - the gated feed-forward half of a layer: down(silu(gate x) * up x). King and drafter share
 * it. */
#ifndef MODEL_MLP_H
#define MODEL_MLP_H
#include "model/weights.h"

typedef struct mlp_layer {
    linear gate, up, down;
} mlp_layer;

/* `prefix` is the module path up to the layer: "model.layers.3" or "layers.3". */
status mlp_plan(mlp_layer *l, weights *w, const pack *p, const char *prefix, int n_embd, int n_ff,
                compute_mode mode, error *e);
/* r [rows, n_embd] = MLP(n [rows, n_embd]); room: 2 * n_ff floats per row. */
void mlp_forward(const mlp_layer *l, compute *c, void *act_room, float *room, float *r,
                 const float *n, int rows);
#endif
