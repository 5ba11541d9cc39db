/* capture.h - runs token sequences through a king and stores logits and hidden states: the material
 * of every comparison.
 *
 * Result, a safetensors file. Sequence i has
 *
 *   seq{i}.tokens          I32 [rows]
 *   seq{i}.logits          F32 [rows, n_vocab]; of the last row alone [1, n_vocab]; or, instead,
 *   seq{i}.top_ids         I32 [rows, N], the N largest by (logit descending, id ascending), with
 *   seq{i}.top_logits      F32 [rows, N], and
 *   seq{i}.lse             F64 [rows], the natural log-sum-exp over the whole vocabulary, so that
 *                          the tail's mass is known
 *   seq{i}.answer          I32 [1], the first token that the king wrote, where it wrote the end
 *   seq{i}.hidden.{layer}  F32 [rows, n_embd], the residual stream at the output of that 0-based
 *                          layer
 *
 * Rows are written as they are made; nothing but one chunk is held in memory. */
#ifndef TOOLS_CAPTURE_H
#define TOOLS_CAPTURE_H
#include "tools/runner.h"
#include "tools/tokenlists.h"

enum { CAPTURE_NONE = -2, CAPTURE_ALL = -1, CAPTURE_LAST = 0 }; /* a positive number is N */

typedef struct capture_options {
    const char *king, *tokens, *out; /* folder; JSON: [ids] or {"sequences": [[ids], ...]}; file */
    const tokenlists *given;         /* run instead of what `tokens` holds; NULL: that is read */
    int logits;                      /* CAPTURE_NONE, _ALL, _LAST or N */
    runner_layers hidden;
    int shard, shards; /* of what is read: sequences i with i % shards == shard; 0: all */
    bool f32;          /* float32 activations and keys instead of int8 and f16 */
    const char *cpu;
    int threads;
    loading_progress *progress; /* may be NULL */
    void *progress_arg;
    loading_tiles tiles;
} capture_options;

typedef struct capture_report {
    int sequences;
    uint64_t tokens, answer_tokens; /* answer_tokens: of these, written by the king */
} capture_report;

status capture_run(const capture_options *o, capture_report *r, error *e);
/* ln sum_i e^x[i] in f64, elements ascending; `most` is the largest of x. */
double capture_lse(const float *x, int n, float most);
#endif
