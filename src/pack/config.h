/* config.h - what the JSON files of a model folder say, parsed and checked: config.json,
 * hadamard.json, generation_config.json.
 *
 * Every number that a config holds is range-checked here, so that products of two of them fit
 * int64_t and a layer count can be looped over. Keys nobody needs are ignored; what cannot be
 * honoured is refused by name. */
#ifndef PACK_CONFIG_H
#define PACK_CONFIG_H
#include "pack/dflash.h"
#include "pack/hadamard.h"
#include "pack/quant.h"

typedef enum pack_kind {
    PACK_KING,   /* prism_hadamard_qwen35: rotated ternary weights */
    PACK_PLAIN,  /* qwen3_5 (or its text_config alone): dense or MLX-quantized, not rotated */
    PACK_DRAFTER /* DFlash 2 */
} pack_kind;

enum { CONFIG_MAX_LAYERS = 512, CONFIG_MAX_EOS = 16 };

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

/* `name` is the file in messages. On failure `c` is empty; config_free in both cases. */
status config_parse(config *c, str text, const char *name, error *e);
/* After config_parse of a king: the contract file, checked against modules[]. */
status config_parse_hadamard(config *c, str text, const char *name, error *e);
/* After config_parse; adds to the stop tokens found there. */
status config_parse_generation(config *c, str text, const char *name, error *e);
/* The config of a drafter whose files have none: see dflash_synthesise. */
status config_synthesise(config *c, const drafter_config *shapes, const char *name, error *e);
void config_free(config *c);

/* The format that the config gives to a module; `named`: by an entry of its own. */
quant_format config_quant_of(const config *c, str path, bool *named);

/* Whether this drafter can draft for this king; the message says why not. */
status config_check_pair(const drafter_config *d, const king_config *k, error *e);
#endif
