/* inspect.h - what a model folder is: kind, formats, sizes, bits per weight, shape, and the memory
 * that running it takes. Reads headers and configs only. */
#ifndef TOOLS_INSPECT_H
#define TOOLS_INSPECT_H
#include "base/buf.h"
#include "pack/pack.h"

typedef struct inspect_options {
    int context;         /* positions; 0: 8,192, or the model's limit if that is less */
    int parallel;        /* sequences; 0: 1 */
    const char *kv_type; /* f16, f32 or q8; NULL: f16 */
    bool json;           /* one JSON object instead of lines of text */
    bool tensors;        /* list every tensor of the files, too */
    const char *tiles;   /* folder in which files of tiles are looked for, or NULL */
} inspect_options;

/* Bytes. */
typedef struct inspect_memory {
    int context, parallel;
    char tiles_file[4096]; /* that holds the tiles, to be mapped and shared; empty: none */
    uint64_t tiles;        /* matrices, repacked */
    uint64_t values;       /* norms, convolutions and the like, as f32 */
    uint64_t mapped;       /* embedding and codebooks: stay in the files, read by row */
    uint64_t state;        /* of all sequences: recurrent state, convolution windows, tapes */
    uint64_t kv;           /* of all sequences: keys and values; a drafter's rings */
    uint64_t work;         /* activations and logits of the largest pass; of a drafter none */
    uint64_t total;        /* of the above but `mapped` */
} inspect_memory;

/* E_ARG when the context exceeds the model's limit. */
status inspect_need(const pack *p, const inspect_options *o, inspect_memory *out, error *e);
/* Weights (elements of the logical matrices and vectors), and bits stored for each. */
int64_t inspect_parameters(const pack *p);
double inspect_bits_per_weight(const pack *p);
status inspect_write(const pack *p, const inspect_options *o, buf *out, error *e);

typedef struct inspect_subject {
    const char *folder;
    const char *id;          /* the model whose headers alone lie there; NULL: a whole pack does */
    const char *config_path; /* for a drafter folder without config.json; may be NULL */
    const char *drafter;     /* with verify: the folder of one that must fit; may be NULL */
    bool verify;             /* read every weight and the manifest (doctor.h) */
    void (*progress)(void *arg, uint64_t done, uint64_t total); /* of verify */
    void *arg;
} inspect_subject;

/* Opens the subject, and writes what inspect_write does and what the doctor finds; *faults counts
 * the latter. E_UNSUPPORTED: `drafter` is none, or is beside another. */
status inspect_report(const inspect_subject *s, const inspect_options *o, buf *out, int *faults,
                      error *e);
#endif
