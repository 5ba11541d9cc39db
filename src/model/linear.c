/* linear.c - several matrices on one input: prepare the rows once per rotation and mode, multiply
 * in one call. */
#include "model/linear.h"

#include "base/banned.h"

enum { LINEAR_CALL = 16 }; /* matrices of one compute_matmul */

static bool same_input(const linear *a, const linear *b)
{
    return a->mode == b->mode && a->rot.block == b->rot.block &&
           (a->rot.block == 0 || a->rot.signs == b->rot.signs);
}

static bool met_before(const linear_out *outs, int at)
{
    for (int i = 0; i < at; i++)
        if (same_input(outs[i].l, outs[at].l)) return true;
    return false;
}

void linear_apply(compute *c, void *act_memory, const float *x, int rows, size_t stride,
                  const linear_out *outs, int n)
{
    for (int first = 0; first < n; first++) {
        if (met_before(outs, first)) continue;
        const linear *lead = outs[first].l;
        unsigned needs = 0;
        for (int i = first; i < n; i++)
            if (same_input(outs[i].l, lead)) needs |= compute_needs(&outs[i].l->w, lead->mode);
        act a;
        compute_prepare(c, &a, act_memory, x, rows, lead->w.n_in, stride,
                        lead->rot.block ? &lead->rot : NULL, needs);
        matmul_out call[LINEAR_CALL];
        int filled = 0;
        for (int i = first; i < n; i++) {
            if (same_input(outs[i].l, lead))
                call[filled++] = (matmul_out){ &outs[i].l->w, outs[i].y, outs[i].stride };
            if (filled == LINEAR_CALL || (filled > 0 && i == n - 1)) {
                compute_matmul(c, &a, call, filled, lead->mode);
                filled = 0;
            }
        }
    }
}

void linear_apply_one(compute *c, void *act_memory, const linear *l, float *y, const float *x,
                      int rows)
{
    const linear_out out = { l, y, (size_t)l->w.n_out };
    linear_apply(c, act_memory, x, rows, (size_t)l->w.n_in, &out, 1);
}
