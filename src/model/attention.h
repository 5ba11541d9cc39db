/* attention.h - the full attention layer: grouped heads, normed and partly rotated, with an output
 * gate. */
#ifndef MODEL_ATTENTION_H
#define MODEL_ATTENTION_H
#include "model/pass.h"
#include "model/weights.h"

typedef struct attention_layer {
    linear q, k, v, out;
    const float *q_norm, *k_norm; /* [head_dim] */
} attention_layer;

status attention_plan(attention_layer *l, weights *w, const pack *p, int layer,
                      const king_config *c, compute_mode mode, error *e);
size_t attention_room(const king_config *c); /* floats of pass.room per row */
/* r [rows, n_embd] = ATTN(n [rows, n_embd]); `index` counts attention layers. */
void attention_forward(const attention_layer *l, const king_config *c, const rope *angles,
                       int index, pass *p, float *r, const float *n);
#endif
