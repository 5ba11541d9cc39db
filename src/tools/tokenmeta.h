/* tokenmeta.h - the tokenizer of a model folder as GGUF metadata: tokens, their kinds, merges,
 * special ids, template. */
#ifndef TOOLS_TOKENMETA_H
#define TOOLS_TOKENMETA_H
#include "pack/config.h"
#include "pack/gguf.h"

/* Reads tokenizer.json and chat_template.jinja of `folder`; ids without a token become unused
 * ones. */
status tokenmeta_write(gguf_writer *w, const char *folder, int n_vocab, const generation_config *g,
                       error *e);
#endif
