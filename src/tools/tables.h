/* tables.h - what a drafter shares with its king, as plain numbers: all that its training needs of
 * a king besides answers and hidden states.
 *
 * Result, a safetensors file: `embedding` and `head` F32 [n_vocab, n_embd], for inputs that are not
 * rotated (a rotated matrix is rounded to f16 on the way, as its embedding always is); metadata
 * `king`, the pack's identity, and `layers`. Written in pieces, whatever the size. */
#ifndef TOOLS_TABLES_H
#define TOOLS_TABLES_H
#include "tools/runner.h"

status tables_write(const char *folder, const char *out, int threads, loading_progress *progress,
                    void *progress_arg, error *e);
#endif
