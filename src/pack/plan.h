/* plan.h - the weights a model of a given config consists of: names, shapes, and which are
 * matrices.
 *
 * One list serves reading (is everything there, is nothing left over), writing synthetic packs, and
 * inspection. Names are canonical: "model.layers.0.mlp.up_proj" for a matrix (the module path),
 * "model.norm.weight" for other values. */
#ifndef PACK_PLAN_H
#define PACK_PLAN_H
#include "pack/config.h"

enum { PLAN_MAX_NAME = 96 };

typedef struct plan_entry {
    char name[PLAN_MAX_NAME];
    bool is_matrix;
    bool is_embedding;    /* a matrix of which single rows are read: embedding, codebooks */
    bool is_zero_centred; /* a norm that the upstream layout stores minus 1 */
    int rank;
    int64_t shape[3]; /* matrix: [out, in] */
    int layer;        /* -1: outside the layers */
} plan_entry;

typedef struct plan {
    plan_entry *entries; /* in order of use */
    size_t count;
    map index; /* name -> position */
} plan;

status plan_king(plan *p, const king_config *c, error *e); /* no lm_head when tied */
status plan_drafter(plan *p, const drafter_config *c, error *e);
void plan_free(plan *p);
const plan_entry *plan_find(const plan *p, str name);
int64_t plan_elements(const plan_entry *t);
#endif
