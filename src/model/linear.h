/* linear.h - a weight matrix ready to be multiplied with: its tiles, the rotation its input needs,
 * its arithmetic.
 *
 * Matrices that read the same rows are applied together, so that each distinct rotation and
 * quantization of those rows is done once and the threads make one pass over all the weights. */
#ifndef MODEL_LINEAR_H
#define MODEL_LINEAR_H
#include "compute/compute.h"

typedef struct linear {
    tile_matrix w;
    rotation rot; /* block 0: none; signs live as long as the pack */
    compute_mode mode;
} linear;

typedef struct linear_out {
    const linear *l;
    float *y;      /* [rows, n_out] */
    size_t stride; /* floats between rows of y */
} linear_out;

/* y = W x of every entry, for rows of x [rows, n_in] that stand `stride` floats apart. `act` holds
 * the prepared rows: weights_act_bytes. y must not overlap x. */
void linear_apply(compute *c, void *act, const float *x, int rows, size_t stride,
                  const linear_out *outs, int n);
/* The same for one matrix with contiguous rows on both sides. */
void linear_apply_one(compute *c, void *act, const linear *l, float *y, const float *x, int rows);
#endif
