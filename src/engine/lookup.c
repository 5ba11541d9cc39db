/* lookup.c - drafts copied from the text itself. */
#include "engine/lookup.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/banned.h"

enum { LOOKUP_MAX_SLOTS = 1 << 17 };

status lookup_init(lookup *l, int max_tokens, error *e)
{
    uint32_t slots = 64;
    while (slots < LOOKUP_MAX_SLOTS && slots < 4 * (uint64_t)max_tokens) slots *= 2;
    *l = (lookup){ .mask = slots - 1, .indexed = LOOKUP_GRAM };
    l->ends = mem_array(slots, sizeof *l->ends);
    return l->ends ? OK : error_set(e, E_NOMEM, "request: no memory for an index of its tokens");
}

void lookup_free(lookup *l)
{
    mem_free(l->ends);
    l->ends = NULL;
}

static uint32_t slot_of(const lookup *l, const int32_t *end)
{
    uint64_t h = 0;
    for (int i = 1; i <= LOOKUP_GRAM; i++) h = rng_mix(h ^ (uint32_t)end[-i]);
    return (uint32_t)h & l->mask;
}

int lookup_find(lookup *l, const int32_t *tokens, int n)
{
    for (; l->indexed < n; l->indexed++) l->ends[slot_of(l, tokens + l->indexed)] = l->indexed;
    if (n < LOOKUP_MATCH) return 0;
    const int at = l->ends[slot_of(l, tokens + n)];
    int match = 0;
    while (match < LOOKUP_MATCH && match < at && tokens[at - 1 - match] == tokens[n - 1 - match])
        match++;
    return match == LOOKUP_MATCH ? at : 0;
}
