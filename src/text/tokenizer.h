/* tokenizer.h - text <-> token ids, exactly as the model's tokenizer files say.
 *
 * Reads tokenizer.json and, where there is one, the added_tokens_decoder of
 * tokenizer_config.json (some tokens stand only there; a contradiction between the two is an
 * error). Supported: byte-level BPE with NFC or no normalizer, a Split expression or the GPT-2
 * split as pre-tokenizer. Everything else is refused by name. No start or end token is inserted.
 * A tokenizer is immutable: any number of threads may encode and decode with it at once. */
#ifndef TEXT_TOKENIZER_H
#define TEXT_TOKENIZER_H
#include "base/error.h"
#include "base/str.h"

typedef struct tokenizer tokenizer;

/* Errors: "FILE: PLACE: found X, want Y". */
status tokenizer_open(tokenizer **out, const char *folder, error *e);
/* The same from memory; config may be (str){0}. `name` stands for the folder in errors. */
status tokenizer_parse(tokenizer **out, str json, str config, const char *name, error *e);
void tokenizer_close(tokenizer *t); /* NULL is fine */

/* Which added tokens are recognised in the text. Text from outside that must not inject control
 * tokens is encoded with TOKENIZER_NONE (or SHOWN); a rendered prompt with ALL. */
typedef enum tokenizer_special {
    TOKENIZER_ALL,   /* every one */
    TOKENIZER_SHOWN, /* those whose `special` is false */
    TOKENIZER_NONE   /* none: the text is plain */
} tokenizer_special;

/* A growing array of ids; start with {0}, end with tokenizer_ids_free. */
typedef struct tokenizer_ids {
    int32_t *ptr;
    size_t len, cap;
} tokenizer_ids;
void tokenizer_ids_free(tokenizer_ids *ids);

/* Appends the ids of text; on failure `out` is as long as before. E_ARG when the text is not
 * UTF-8, E_LIMIT when it is larger than 1 GiB or needs too much backtracking in the split. */
status tokenizer_encode(const tokenizer *t, str text, tokenizer_special mode, tokenizer_ids *out,
                        error *e);

/* Highest id + 1. Rows of the model at or above it are padding and must never be sampled. */
int32_t tokenizer_vocab_size(const tokenizer *t);
/* The bytes an id stands for, borrowed from t; empty for an id that does not exist (negative and
 * huge ones too). */
str tokenizer_bytes(const tokenizer *t, int32_t id);
/* Hidden when decoding for people: an added token with special = true. */
bool tokenizer_is_special(const tokenizer *t, int32_t id);
/* The id of an added token with exactly this text, else of the vocabulary entry with these
 * bytes, else -1. */
int32_t tokenizer_id(const tokenizer *t, str text);

/* Added tokens, in the order of their ids. */
size_t tokenizer_added_count(const tokenizer *t);
int32_t tokenizer_added_id(const tokenizer *t, size_t i);
#endif
