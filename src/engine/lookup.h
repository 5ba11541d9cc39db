/* lookup.h - drafts copied from the text itself: what followed the last occurrence of the newest
 * tokens.
 *
 * An index of the last LOOKUP_GRAM tokens at each position; a proposal is made only when the
 * occurrence agrees in at least LOOKUP_MATCH tokens. The index keeps the latest position of each
 * slot, so it is bounded and never wrong: what it finds is compared token by token. */
#ifndef ENGINE_LOOKUP_H
#define ENGINE_LOOKUP_H
#include "base/error.h"
#include <stdint.h>

enum { LOOKUP_GRAM = 6, LOOKUP_MATCH = 8 };

typedef struct lookup {
    int32_t *ends; /* [mask + 1] position after the gram, 0: none */
    uint32_t mask;
    int indexed; /* positions below it are in the index */
} lookup;

status lookup_init(lookup *l, int max_tokens, error *e);
void lookup_free(lookup *l);
/* Where the continuation of tokens[0, n) stands, or 0; tokens[result, n) may be proposed. Indexes
 * what is new. */
int lookup_find(lookup *l, const int32_t *tokens, int n);
#endif
