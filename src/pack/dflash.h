/* dflash.h - config of a DFlash 2 drafter. */
#ifndef PACK_DFLASH_H
#define PACK_DFLASH_H
#include "pack/field.h"

enum { DFLASH_MAX_LAYERS = 64, DFLASH_MAX_TAPS = 32 };

/* Each layer: attention and MLP, each between two grouped dynamic convolutions. */
typedef struct drafter_config {
    int n_layer, n_embd, n_ff, n_vocab, max_positions;
    float eps;
    int n_head, n_kv_head, head_dim; /* rotary over the whole head */
    double rope_theta;
    int window; /* context position p is seen by row q iff q - p < window; 0: all */
    int block;  /* rows of the trained block: 1 anchor and block - 1 masks */
    int32_t mask_id;
    int conv_taps, conv_group;       /* 2; conv_group divides n_embd */
    int rank, top_k;                 /* candidate selector */
    int n_tap, tap[DFLASH_MAX_TAPS]; /* 0-based target layers whose OUTPUT is tapped, ascending */
    int n_target_layer;              /* 0: the config does not say */
    float embed_scale, output_multiplier, softcap; /* 1, 1 and 0 (none) when absent */
} drafter_config;

extern const drafter_config dflash_27b; /* the published drafter of the 27B king */

/* Whether a config.json speaks of a DFlash drafter of any version. */
bool dflash_is_config(const json_node *root);
/* Refuses what is not DFlash 2 by its name. */
status dflash_parse(drafter_config *d, const json_node *root, const char *file, error *e);
/* A config nobody wrote: the published values of the 27B drafter when the fields of `d` that tensor
 * shapes tell (n_layer, n_embd, n_ff, n_vocab, n_head, n_kv_head, head_dim, n_tap, rank,
 * conv_group) are its own; else E_UNSUPPORTED. */
status dflash_synthesise(drafter_config *d, const char *file, error *e);
#endif
