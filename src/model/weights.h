/* weights.h - the weights of one model: tiles of every matrix in one region, and the small f32
 * values.
 *
 * First every matrix is planned (sizes only), then one region is mapped and filled by all threads
 * in order of use. Source pages go back to the system every WEIGHTS_WINDOW bytes, so memory peaks
 * at the tiles plus one window. */
#ifndef MODEL_WEIGHTS_H
#define MODEL_WEIGHTS_H
#include "base/arena.h"
#include "model/linear.h"

enum { WEIGHTS_WINDOW = 64 << 20 }; /* bytes of source read between two drops */

typedef void weights_progress(void *arg, uint64_t done, uint64_t total); /* bytes of tiles */

typedef struct weights {
    struct weights_item *items; /* in order of use */
    size_t count, cap;
    uint8_t *region;
    size_t bytes;  /* of the region */
    int64_t code3; /* ternary codes of value 3 (+2d) met while filling */
    arena mem;     /* values */
} weights;

void weights_init(weights *w);
void weights_free(weights *w);
/* Plans the matrix of module `path`; *to is filled now except for the data, which weights_load
 * brings. */
status weights_matrix(weights *w, const pack *p, const char *path, int64_t out, int64_t in,
                      compute_mode mode, linear *to, error *e);
/* Values that are no matrix, as f32, valid until weights_free. */
status weights_values(weights *w, const pack *p, const char *name, int rank, const int64_t *shape,
                      const float **out, error *e);
status weights_vector(weights *w, const pack *p, const char *name, int64_t n, const float **out,
                      error *e);
/* Maps the region and fills it. progress may be NULL; it is called on this thread. */
status weights_load(weights *w, const pack *p, compute *c, weights_progress *progress, void *arg,
                    error *e);
/* Memory that linear_apply needs for `rows` rows of any of these matrices. */
size_t weights_act_bytes(const weights *w, int rows);
#endif
