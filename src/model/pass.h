/* pass.h - one pass through a king: its rows, and the memory its layers work in.
 *
 * The rows of all jobs lie one after the other; job j's rows begin at row[j]. */
#ifndef MODEL_PASS_H
#define MODEL_PASS_H
#include "model/king.h"

typedef struct pass {
    compute *c;
    int rows;
    int n_jobs;
    const king_job *jobs;
    int *row;       /* [n_jobs] first row of each job */
    int32_t *pos;   /* [rows] absolute positions */
    void *act;      /* for linear_apply */
    float *room;    /* activations inside a layer; every layer lays out its own */
    conv_job *conv; /* [n_jobs], filled by the layer that uses them */
    gdn_job *gdn;   /* [n_jobs] */
    attn_job *attn; /* [n_jobs] */
} pass;

/* The next n floats of a layer's room; layers count their room with the same rounding. */
enum { PASS_ROUND = 16 };
static inline size_t pass_round(size_t n)
{
    return (n + PASS_ROUND - 1) / PASS_ROUND * PASS_ROUND;
}
static inline float *pass_take(float **room, int rows, int n)
{
    float *at = *room;
    *room += (size_t)rows * pass_round((size_t)n);
    return at;
}
#endif
