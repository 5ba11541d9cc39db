/* convert.h - a king as a pack and as its GGUF twin, both ways without loss.
 *
 * Codes and scales are carried bit for bit (a bias is its scale with the sign flipped, which is
 * checked), norms and other plain values exactly. Streamed: memory does not grow with the model.
 * What only one side can hold: a GGUF file has no vision tower and no tokenizer.json; a pack stores
 * A_log where GGUF stores -exp(A_log), so the file also gets the exact values as `ingot.a_log`. */
#ifndef TOOLS_CONVERT_H
#define TOOLS_CONVERT_H
#include "base/error.h"
#include <stdint.h>

typedef struct convert_options {
    const char *type; /* to GGUF: "PQ2_0" or "PTQ1_0"; NULL: PQ2_0 */
    const char *text; /* to a pack: folder whose tokenizer files the new one gets */
    void (*progress)(void *arg, uint64_t done, uint64_t total); /* bytes; may be NULL */
    void *arg;
} convert_options;

typedef struct convert_report {
    int packed, plain;      /* tensors carried over */
    uint64_t skipped_bytes; /* vision tower and the like, which GGUF has no room for */
} convert_report;

/* `target` is the file to write, whole or not at all. E_ARG: something of that name is there.
 * E_UNSUPPORTED: no king; a code 3 and PTQ1_0. */
status convert_to_gguf(const char *source, const char *target, const convert_options *o,
                       convert_report *r, error *e);
/* `target` is the folder to write, new or empty; the pack is opened once it is there, and a failure
 * leaves nothing behind. E_ARG: something is in the folder. E_UNSUPPORTED: no king's twin, or a
 * form that would lose. */
status convert_to_pack(const char *source, const char *target, const convert_options *o,
                       convert_report *r, error *e);
#endif
