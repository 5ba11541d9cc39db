/* twin.h - how a king lies in its GGUF twin: names of tensors, the order of value heads, and their
 * decay.
 *
 * A pack keeps value heads grouped by their key head (v = k * rep + r), GGUF keeps them tiled
 * (v = r * nk + k), so that the key head of v is v mod nk. Whole rows move, with their blocks and
 * scales; query and key rows stay. The columns of ssm_out stay grouped in a rotated file, for the
 * rotation mixes them (metadata prism.hadamard.gdn_v_grouped). */
#ifndef TOOLS_TWIN_H
#define TOOLS_TWIN_H
#include "pack/plan.h"

enum { TWIN_MAX_NAME = 64 };

/* GGUF's name of a weight of the plan: "blk.3.attn_q.weight". */
void twin_name(const plan_entry *t, char out[TWIN_MAX_NAME]);

/* Rows from `first` on are heads of `unit` rows, to be reordered. */
typedef struct twin_order {
    int64_t first, unit; /* unit 0: nothing moves */
    int n_key, repeat;
} twin_order;

twin_order twin_order_of(const plan_entry *t, const king_config *k);
/* The row of the pack that is row `row` of the GGUF tensor, and the reverse. */
int64_t twin_pack_row(const twin_order *o, int64_t row);
int64_t twin_gguf_row(const twin_order *o, int64_t row);

/* The decay of value heads: a pack stores A_log, GGUF -exp(A_log), and a file that was made here
 * the exact A_log of all layers, too, under this key. */
#define TWIN_A_LOG "ingot.a_log"
bool twin_is_decay(const plan_entry *t);
float twin_decay(float a_log);
#endif
