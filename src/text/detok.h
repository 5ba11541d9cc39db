/* detok.h - ids -> text, one id at a time.
 *
 * What has been put out so far is always whole characters: the bytes of an unfinished one (at
 * most three) are held back. Bytes that cannot become valid are replaced, one U+FFFD per maximal
 * part (Unicode, section 3.9, "substitution of maximal subparts"). However the ids come, the
 * pieces joined equal the decoding of the whole. Work is proportional to the new bytes. A detok
 * is a plain value: it may be copied to try something and go back. */
#ifndef TEXT_DETOK_H
#define TEXT_DETOK_H
#include "base/buf.h"
#include "text/tokenizer.h"

typedef struct detok {
    const tokenizer *tokenizer;
    bool hide_special; /* leave out special tokens; a character may go on after one */
    uint8_t held[4];   /* beginning of an unfinished character */
    uint8_t n_held;
} detok;

void detok_init(detok *d, const tokenizer *t, bool hide_special);
/* Appends the text that id completes; an id that does not exist adds nothing. Check `out` with
 * buf_status. */
void detok_put(detok *d, int32_t id, buf *out);
/* Appends what is still held (as one U+FFFD) and is ready for a new text. */
void detok_finish(detok *d, buf *out);
/* The whole at once. */
void detok_all(const tokenizer *t, const int32_t *ids, size_t n, bool hide_special, buf *out);
#endif
