/* kingfiles.h - writes the two JSON files that describe a king: config.json (schema 2) and
 * hadamard.json. Text model only: no vision tower, no MTP. */
#ifndef TOOLS_KINGFILES_H
#define TOOLS_KINGFILES_H
#include "base/buf.h"
#include "pack/plan.h"

enum { KINGFILES_DENSE = -1, KINGFILES_MAX_WIDTHS = 8 };

typedef struct kingfiles {
    const king_config *king;
    const plan *plan;
    /* [plan->count]; Hadamard block of a packed matrix, 0: packed, not rotated; KINGFILES_DENSE:
     * not packed */
    const int *block;
    int rotation; /* the block of those that are rotated */
    int32_t eos;  /* -1: not known, and not written */
    int n_width;
    int64_t width[KINGFILES_MAX_WIDTHS];
    const float *signs[KINGFILES_MAX_WIDTHS]; /* [width], each 1 or -1 */
} kingfiles;

/* n: every n-th layer is attention; one more than the layers when none is. */
int kingfiles_interval(const king_config *k);
void kingfiles_config(const kingfiles *k, buf *out);
void kingfiles_hadamard(const kingfiles *k, buf *out);
#endif
