/* quantize.h - writes a copy of a drafter or plain pack with its matrices quantized as MLX does it.
 *
 * Codes, scales and biases are the bytes of mx.quantize (mlx 0.32.4, CPU); every other tensor is
 * copied byte for byte, under its own name and in the layout of the source. config.json gets the
 * `quantization` block that mlx-lm and mlx-vlm read: global numbers in a source without one, else
 * an entry for each module quantized here. Streamed: memory does not grow with the model. */
#ifndef TOOLS_QUANTIZE_H
#define TOOLS_QUANTIZE_H
#include "pack/pack.h"

enum { QUANTIZE_MAX_GLOBS = 64 };

typedef struct quantize_options {
    quant_format format; /* legal, not dense */
    /* Patterns of fnmatch over canonical module paths ("layers.*", "lm_head"); a module is taken
     * when any matches, or there is none. */
    const char *only[QUANTIZE_MAX_GLOBS];
    int n_only;
    const char *config_path; /* instead of the folder's config.json; may be NULL */
    int threads;
    void (*progress)(void *arg, uint64_t done, uint64_t total); /* source bytes; may be NULL */
    void *arg;
} quantize_options;

typedef struct quantize_report {
    int quantized; /* matrices */
    /* matrices left as they are: not asked for, or a width the group does not divide */
    int dense;
    char indivisible[PLAN_MAX_NAME];    /* the first of the latter; empty: none */
    uint64_t bytes_before, bytes_after; /* of all tensors */
} quantize_report;

/* The format of a mode ("affine", "mxfp4", ...); bits and group 0: the mode's own. E_ARG names the
 * option that is wrong. */
status quantize_format(const char *mode, int bits, int group, quant_format *out, error *e);
/* `target` is the folder to write, new or empty; a failure leaves nothing behind. E_UNSUPPORTED: a
 * king, or a chosen matrix that is quantized already. E_ARG: no module matches, or something is in
 * the target. E_FORMAT: a weight that is not finite. */
status quantize_run(const char *source, const char *target, const quantize_options *o,
                    quantize_report *r, error *e);
#endif
