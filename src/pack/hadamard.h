/* hadamard.h - the rotation contract of a king: modules[] of config.json and hadamard.json.
 *
 * Which modules are packed, which of those are rotated, in which block, and by which signs. The two
 * files must agree with each other (checked here) and with the tensors (checked by pack.c). */
#ifndef PACK_HADAMARD_H
#define PACK_HADAMARD_H
#include "base/arena.h"
#include "base/map.h"
#include "pack/field.h"

typedef struct king_module {
    str path;  /* canonical module path */
    int block; /* 0: packed but not rotated */
    bool embedding;
} king_module;

typedef struct hadamard_contract {
    int schema;       /* 1 or 2 */
    const char *file; /* name of the contract within the folder: "hadamard.json" */
    king_module *modules;
    size_t count;
    map index;   /* path -> position in modules */
    int block;   /* of every rotated module; 0: nothing is rotated */
    int n_width; /* sign vectors, one per input width */
    int64_t *width;
    float **signs; /* signs[i]: [width[i]], each +1 or -1 */
} hadamard_contract;

/* Schema, namespace, layout, components and modules[] of config.json. Memory from `mem`. */
status hadamard_parse_modules(hadamard_contract *h, fields root, arena *mem, error *e);
/* hadamard.json; the names it lists must be exactly the rotated modules. */
status hadamard_parse_signs(hadamard_contract *h, const json_node *root, const char *file,
                            arena *mem, error *e);
const king_module *hadamard_module(const hadamard_contract *h, str path); /* NULL: not packed */
const float *hadamard_signs(const hadamard_contract *h, int64_t width);   /* NULL: none */
void hadamard_free(hadamard_contract *h); /* what is not in the arena */
#endif
