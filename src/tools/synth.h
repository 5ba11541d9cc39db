/* synth.h - model folders of random weights in the real layouts, for benchmarks and tests.
 *
 * A synthetic king is a schema 2 Hadamard pack, a synthetic drafter an MLX-quantized (or bf16)
 * DFlash 2 folder; both open as the real ones do, and their activations stay finite through every
 * layer. Weights are streamed to disk: memory does not grow with the model. The same shape and seed
 * give the same bytes. */
#ifndef TOOLS_SYNTH_H
#define TOOLS_SYNTH_H
#include "base/error.h"
#include <stdint.h>

typedef struct synth_options {
    /* "king-27b", "drafter-27b", or a JSON file: {"kind": "king" or "drafter", and any of the keys
     * that config.json has (hidden_size, num_hidden_layers, ...), "block" (Hadamard), "bits"
     * (drafter: 2 to 8, or 16 for bf16)}. What it does not say is as in the 27B shape. */
    const char *shape;
    int layers; /* 0: as the shape says */
    uint64_t seed;
    void (*progress)(void *arg, uint64_t done, uint64_t total); /* bytes; may be NULL */
    void *arg;
} synth_options;

/* Makes the folder, which must be new or empty; a failure leaves nothing behind. E_ARG: something
 * is in it, or a shape that cannot be (a width that is no multiple of block or group, ...). */
status synth_write(const char *folder, const synth_options *o, error *e);
#endif
