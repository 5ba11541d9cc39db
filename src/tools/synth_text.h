/* synth_text.h - the text files of a synthetic king: a byte-level tokenizer with as many entries as
 * the model has rows, a chat template, and what generation_config.json says. */
#ifndef TOOLS_SYNTH_TEXT_H
#define TOOLS_SYNTH_TEXT_H
#include "base/error.h"
#include <stdint.h>

/* First added token: <|endoftext|>; <|im_start|> and <|im_end|> follow. 248044 where the vocabulary
 * has it. */
int32_t synth_text_first_added(int n_vocab);
enum { SYNTH_TEXT_ADDED = 12, SYNTH_TEXT_MIN_VOCAB = 512 };
status synth_text_write(const char *folder, int n_vocab, int max_positions, error *e);
#endif
