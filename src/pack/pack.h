/* pack.h - a model folder, opened: validated, read-only, mapped.
 *
 * pack_open succeeds only when the folder holds one whole model: every weight its config asks for
 * is there once, with the right shape and a format that config and tensors agree on, and nothing
 * else is in the files except parts that are skipped by prefix (vision tower, MTP). Weights are
 * asked for by canonical names (plan.h), whatever prefix or layout the files use. Nothing is copied
 * but sign vectors; reading weights may still fault pages in from disk. Accepted: king packs of
 * schema 1 and 2; qwen3_5 packs in MLX or upstream layout; DFlash 2 drafters in bf16 or MLX
 * formats, with both spellings of codebooks and encoder, weights at the root or in dflash/.
 * Thread-safe after opening. */
#ifndef PACK_PACK_H
#define PACK_PACK_H
#include "pack/matrix.h"
#include "pack/plan.h"
#include "pack/safetensors.h"

typedef struct pack pack;

/* `config_path` (may be NULL) replaces the folder's config.json. A drafter without any config is
 * recognised by its tensors, and opened when its shapes are those of the published 27B drafter;
 * another one asks for a config (E_UNSUPPORTED). */
status pack_open(pack **out, const char *folder, const char *config_path, error *e);
/* The same for a folder whose weight files hold their headers and nothing behind them, to describe
 * a model that is elsewhere: `name` is shown as its folder, signs are not compared, and there is no
 * identity (an empty text). */
status pack_open_headers(pack **out, const char *folder, const char *name, error *e);
void pack_close(pack *p);

pack_kind pack_get_kind(const pack *p);
const char *pack_folder(const pack *p);
const config *pack_config(const pack *p);
const king_config *pack_king(const pack *p);       /* NULL for a drafter */
const drafter_config *pack_drafter(const pack *p); /* NULL for the others */
const plan *pack_plan(const pack *p);              /* every weight of the model */
str pack_config_text(const pack *p);     /* config.json as it is; empty when synthesised */
bool pack_is_synthesised(const pack *p); /* the config was made from shapes: tell the user */
bool pack_is_upstream(const pack *p);    /* zero-centred norms, [C, 1, K] convolutions on disk */

/* W[out, in] of a module: "model.layers.3.mlp.up_proj", "lm_head" (tied: the embedding),
 * "model.embed_tokens", "fc", "candidate_selector.predecessor_codebook". The wanted shape is
 * checked against the pack (E_FORMAT). */
status pack_matrix(const pack *p, const char *path, int64_t out, int64_t in, matrix *m, error *e);
/* The matrix of an entry of its plan. */
status pack_matrix_of(const pack *p, const plan_entry *t, matrix *m, error *e);
/* Values that are no matrix, as f32: "model.norm.weight" [n_embd],
 * "model.layers.0.linear_attn.conv1d.weight" [channels, taps] (last tap: current row),
 * "layers.0.attention_conv.base_kernel" [2, taps, n_embd]. Zero-centred norms arrive with their 1
 * added. */
status pack_values(const pack *p, const char *name, int rank, const int64_t *shape, float *out,
                   error *e);

/* The pages of a matrix will be wanted soon: the system may begin to read them. */
void pack_ahead(const pack *p, const matrix *m);
/* The pages of a matrix go back to the system; reading it again faults them in from disk. */
void pack_drop(const pack *p, const matrix *m);

uint64_t pack_text_bytes(const pack *p);    /* of the weights in the plan, signs included */
uint64_t pack_skipped_bytes(const pack *p); /* of tensors skipped by prefix */
uint64_t pack_file_bytes(const pack *p);    /* of the weight files */
size_t pack_file_count(const pack *p);
const safetensors *pack_file(const pack *p, size_t i);

/* 64 hex digits: SHA-256 over config and contract, every header, file sizes, and 4 KiB samples of
 * each file's data (first, last, and 62 evenly spaced). Equal for copies of a folder at other paths
 * or times; any change of shape, name, type, length or config changes it. A change confined to data
 * bytes between the samples is not noticed: it binds caches, it does not verify downloads. */
const char *pack_identity(const pack *p);
#endif
