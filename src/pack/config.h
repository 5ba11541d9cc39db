/* config.h - what the JSON files of a model folder say, parsed and checked: config.json,
 * hadamard.json, generation_config.json.
 *
 * Every number that a config holds is range-checked here, so that products of two of them fit
 * int64_t and a layer count can be looped over. Keys nobody needs are ignored; what cannot be
 * honoured is refused by name. */
#ifndef PACK_CONFIG_H
#define PACK_CONFIG_H
#include "base/arena.h"
#include "base/map.h"
#include "pack/quant.h"

typedef enum pack_kind {
    PACK_KING,   /* prism_hadamard_qwen35: rotated ternary weights */
    PACK_PLAIN,  /* qwen3_5 (or its text_config alone): dense or MLX-quantized, not rotated */
    PACK_DRAFTER /* DFlash 2 */
} pack_kind;

enum { CONFIG_MAX_LAYERS = 512, CONFIG_MAX_TAPS = 32, CONFIG_MAX_EOS = 16 };

/* Text model of a king or plain pack. Widths of the gated delta net: key gdn_k_heads * gdn_k_dim,
 * value gdn_v_heads * gdn_v_dim, convolution 2 * key + value channels. */
typedef struct king_config {
    int n_layer, n_embd, n_ff, n_vocab, max_positions;
    float eps;                /* of every RMS norm */
    int n_head, n_kv_head;    /* full attention; n_kv_head divides n_head */
    int head_dim, rotary_dim; /* rotary_dim is even and at most head_dim */
    double rope_theta;
    int gdn_k_heads, gdn_v_heads; /* gdn_k_heads divides gdn_v_heads */
    int gdn_k_dim, gdn_v_dim, conv_taps;
    bool tied;                            /* the head is the embedding */
    bool is_attention[CONFIG_MAX_LAYERS]; /* full attention; else gated delta net */
    int n_attention, n_gdn;               /* n_layer in sum */
} king_config;

/* DFlash 2 drafter. Each layer: attention and MLP, each between two grouped dynamic convolutions.
 */
typedef struct drafter_config {
    int n_layer, n_embd, n_ff, n_vocab, max_positions;
    float eps;
    int n_head, n_kv_head, head_dim; /* rotary over the whole head */
    double rope_theta;
    int window; /* context position p is seen by row q iff q - p < window; 0: all */
    int block;  /* rows of the trained block: 1 anchor and block - 1 masks */
    int32_t mask_id;
    int conv_taps, conv_group;       /* conv_group divides n_embd */
    int rank, top_k;                 /* candidate selector */
    int n_tap, tap[CONFIG_MAX_TAPS]; /* 0-based target layers whose OUTPUT is tapped, ascending */
    int n_target_layer;              /* 0: the config does not say */
    float embed_scale, output_multiplier, softcap; /* 1, 1 and 0 (none) when absent */
} drafter_config;

/* The `quantization` block: a global format and what modules say for themselves. */
typedef struct quant_rule {
    str path;            /* canonical module path */
    quant_format format; /* QUANT_DENSE for `false`, the global one for `true` */
} quant_rule;
typedef struct quant_table {
    bool present;
    quant_format global;
    quant_rule *rules;
    size_t count;
    map index; /* path -> position in rules */
} quant_table;

/* modules[] of a king and hadamard.json: which modules are packed and rotated, by which signs. */
typedef struct king_module {
    str path;  /* canonical module path */
    int block; /* 0: packed but not rotated */
    bool embedding;
} king_module;
typedef struct hadamard_contract {
    int schema; /* 1 or 2 */
    king_module *modules;
    size_t count;
    map index;   /* path -> position in modules */
    int block;   /* of every rotated module */
    int n_width; /* sign vectors, one per input width */
    int64_t *width;
    float **signs; /* signs[i]: [width[i]], each +1 or -1 */
} hadamard_contract;

/* generation_config.json: advice, used where a request says nothing. */
typedef struct generation_config {
    int32_t eos[CONFIG_MAX_EOS]; /* any of them ends a reply: all that the three files name */
    int n_eos;
    int32_t bos, pad; /* -1: none */
    /* Absent: NAN, and -1 for top_k. `do_sample: false` is temperature 0. */
    double temperature, top_p, min_p, repetition_penalty, presence_penalty;
    int top_k;
} generation_config;

typedef struct config {
    pack_kind kind;
    king_config king;       /* PACK_KING and PACK_PLAIN */
    drafter_config drafter; /* PACK_DRAFTER */
    quant_table quant;
    hadamard_contract hadamard; /* PACK_KING */
    generation_config generation;
    arena mem; /* owns every pointer above */
} config;

/* `name` is the file in messages. The config is empty or whole; config_free in both cases. */
status config_parse(config *c, str text, const char *name, error *e);
/* After config_parse of a king: checks every field against modules[] and keeps the sign vectors. */
status config_parse_hadamard(config *c, str text, const char *name, error *e);
/* After config_parse; adds to the stop tokens found there. */
status config_parse_generation(config *c, str text, const char *name, error *e);
void config_free(config *c);

/* A drafter config nobody wrote: the published values of the 27B drafter when `shapes` (every field
 * that tensor shapes tell: n_layer, n_embd, n_ff, n_vocab, n_head, n_kv_head, head_dim, n_tap,
 * rank, conv_taps, conv_group) are its own, else E_UNSUPPORTED. */
status config_synthesise_drafter(config *c, const drafter_config *shapes, const char *name,
                                 error *e);

/* Module path or tensor name without the prefix of its container: "language_model.model.norm" and
 * "model.language_model.norm" give "model.norm", "language_model.lm_head" gives "lm_head".
 * NUL-terminated; false when it does not fit. */
bool config_canonical(str name, char *text, size_t cap);
/* The format that the config gives to a module; `named`: by an entry of its own. */
quant_format config_quant_of(const config *c, str path, bool *named);
const king_module *config_module(const config *c, str path); /* NULL: not packed */
const float *config_signs(const config *c, int64_t width);   /* NULL: no such width */

/* Whether this drafter can draft for this king; the message says why not. */
status config_check_pair(const drafter_config *d, const king_config *k, error *e);
#endif
