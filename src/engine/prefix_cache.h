/* prefix_cache.h - states of token sequences that may come back: a request that begins with one
 * goes on from there.
 *
 * Attention can be cut anywhere, recurrent state exists only where a snapshot was taken, so an
 * entry is one position in one sequence. Its bits are those a cold run would have. Entries are few
 * and large: they are compared token by token. When the budget is spent, the entry that saves least
 * for its bytes and age goes. Used by one thread. */
#ifndef ENGINE_PREFIX_CACHE_H
#define ENGINE_PREFIX_CACHE_H
#include "model/drafter.h"

enum {
    PREFIX_LEAST = 16,   /* tokens that an entry must save beyond the next shorter one */
    PREFIX_TURN = 256,   /* tokens of a first turn that is worth an entry of its own */
    PREFIX_STRIDE = 2048 /* positions between the entries of a long prompt */
};

typedef struct prefix_cache prefix_cache;
typedef struct prefix_entry prefix_entry;

typedef struct prefix_stats {
    uint64_t lookups, hits, partial; /* partial: entries agree further than the one found reaches */
    uint64_t bytes;                  /* held, pages included */
    int entries;
} prefix_stats;

/* budget 0 is allowed: nothing is ever kept. drafter may be NULL. */
status prefix_cache_new(prefix_cache **out, size_t budget_bytes, size_t page_bytes, compute *c,
                        const drafter *d, error *e);
void prefix_cache_free(prefix_cache *c);
/* Longest entry that is a prefix of tokens[0, n) and leaves at least one of them to run; NULL:
 * none. Borrowed until the next call that adds or evicts. */
const prefix_entry *prefix_cache_find(prefix_cache *c, const int32_t *tokens, int n);
int prefix_cache_len(const prefix_entry *e);
/* Puts the entry into a state; the drafter's context (may be NULL) follows or begins empty at that
 * position. */
status prefix_cache_restore(const prefix_entry *p, state *s, draft_state *d, error *e);
/* Keeps state_len(s) positions of `tokens`, unless that saves too little or does not fit;
 * `first_turn`: shared by many conversations, goes last. `d` (may be NULL) is kept when it stands
 * at the same position. */
void prefix_cache_put(prefix_cache *c, const int32_t *tokens, state *s, const draft_state *d,
                      bool first_turn);
bool prefix_cache_evict(prefix_cache *c); /* one entry; false: there is none */
void prefix_cache_get_stats(const prefix_cache *c, prefix_stats *out);
#endif
