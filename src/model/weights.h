/* weights.h - the weights of one model: tiles of every matrix in one region, and the small f32
 * values.
 *
 * First every matrix is planned (sizes and places only), then the tiles are made by all threads in
 * order of use, or come from a file that holds them (load.h decides). While tiles are made, source
 * pages go back to the system every WEIGHTS_WINDOW bytes, so memory peaks at the tiles plus one
 * window. */
#ifndef MODEL_WEIGHTS_H
#define MODEL_WEIGHTS_H
#include "base/arena.h"
#include "base/file.h"
#include "model/linear.h"

enum {
    WEIGHTS_ALIGN = 64,         /* of every matrix in the region */
    WEIGHTS_WINDOW = 64 << 20,  /* bytes of source read between two drops */
    WEIGHTS_PORTION = 512 << 10 /* bytes of tiles, or one strip if that is more, a sink gets */
};

typedef void weights_progress(void *arg, uint64_t done, uint64_t total); /* bytes of tiles */

typedef struct weights_item {
    matrix src;
    linear *to;
    uint64_t at;   /* of its tiles in the region */
    int64_t code3; /* ternary codes of value 3 (+2d) */
} weights_item;

typedef struct weights {
    weights_item *items; /* in order of use */
    size_t count, cap;
    const uint8_t *region; /* NULL: no tiles yet */
    size_t bytes;          /* of the region */
    file_map file;         /* that the region lies in; not mapped: anonymous memory */
    arena mem;             /* values */
} weights;

void weights_init(weights *w);
void weights_free(weights *w);
/* Plans the matrix of module `path`; *to is filled now except for the data, which loading
 * brings. */
status weights_matrix(weights *w, const pack *p, const char *path, int64_t out, int64_t in,
                      compute_mode mode, linear *to, error *e);
/* Values that are no matrix, as f32, valid until weights_free. */
status weights_values(weights *w, const pack *p, const char *name, int rank, const int64_t *shape,
                      const float **out, error *e);
status weights_vector(weights *w, const pack *p, const char *name, int64_t n, const float **out,
                      error *e);

/* Makes the tiles in memory. progress may be NULL; it is called on this thread. */
status weights_fill(weights *w, const pack *p, compute *c, weights_progress *progress, void *arg,
                    error *e);
/* Makes the tiles and gives them away: strips [from, to) of matrix `item`, each once, in any order,
 * on any thread. */
typedef status weights_sink(void *arg, size_t item, int from, int to, const uint8_t *tiles,
                            error *e);
status weights_stream(weights *w, const pack *p, compute *c, weights_sink *sink, void *sink_arg,
                      weights_progress *progress, void *arg, error *e);
/* The tiles of every matrix are at region + its place; NULL: nowhere. */
void weights_place(weights *w, const uint8_t *region);

int64_t weights_code3(const weights *w); /* of all matrices */
/* Memory that linear_apply needs for `rows` rows of any of these matrices. */
size_t weights_act_bytes(const weights *w, int rows);
#endif
