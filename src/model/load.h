/* load.h - how the planned weights of a model come into memory: made from the pack, or mapped from
 * a file of tiles, which is made when asked for. The results are the same bits. */
#ifndef MODEL_LOAD_H
#define MODEL_LOAD_H
#include "model/weights.h"

typedef enum load_tiles {
    LOAD_FIND, /* map the file when there is one; one that is refused is made again */
    LOAD_KEEP, /* make it when there is none, too */
    LOAD_MUST  /* the same; that it cannot be written is an error */
} load_tiles;

typedef struct load_options {
    compute_mode mode;
    const char *folder; /* of files of tiles; NULL: none is used */
    load_tiles tiles;
    bool verify; /* compare a file that is there with its sums and with the pack, wholly */
    weights_progress *progress; /* NULL: none; called on the caller's thread */
    /* Loading goes on but not as asked: a file was refused or could not be written; may be NULL. */
    void (*notice)(void *arg, const char *text);
    void *arg; /* of progress and notice */
} load_options;

/* What came of `folder`. */
typedef struct load_report {
    char path[4096]; /* the file that is mapped; empty: the tiles are in memory */
    bool written;    /* it was made by this call */
} load_report;

/* The mode has been applied by weights_matrix. report may be NULL. */
status load_weights(weights *w, const pack *p, compute *c, const load_options *o,
                    load_report *report, error *e);
#endif
