/* gdn.h - the gated delta net layer: a causal convolution, then a recurrence with a matrix per head
 * as its memory. */
#ifndef MODEL_GDN_H
#define MODEL_GDN_H
#include "model/pass.h"
#include "model/weights.h"

typedef struct gdn_layer {
    linear qkv, z, a, b, out;
    const float *conv;    /* [channels, taps], last tap: current row */
    const float *a_log;   /* [n_v_head] */
    const float *dt_bias; /* [n_v_head] */
    const float *norm;    /* [v_dim] */
} gdn_layer;

status gdn_plan(gdn_layer *l, weights *w, const pack *p, int layer, const king_config *c,
                compute_mode mode, error *e);
size_t gdn_room(const king_config *c); /* floats of pass.room per row */
/* r [rows, n_embd] = GDN(n [rows, n_embd]); `index` counts gated delta net layers. */
void gdn_forward(const gdn_layer *l, const king_config *c, int index, pass *p, float *r,
                 const float *n);
#endif
