/* prefix_cache.h - states of token sequences that may come back: a request that begins with one
 * goes on from there.
 *
 * Attention can be cut anywhere, recurrent state exists only where a snapshot was taken, so an
 * entry is one position in one sequence. Its bits are those a cold run would have. Entries are few
 * and large: they are compared token by token. When the budget is spent, the entry that saves least
 * for its bytes and age goes.
 *
 * With a folder, what ends a turn is written there too, one entry at a time, beside the engine's
 * work, and found again by later processes (prefix_disk.h). No pass waits for that: a request whose
 * prompt begins in a file waits for it while others go on. Used by one thread. */
#ifndef ENGINE_PREFIX_CACHE_H
#define ENGINE_PREFIX_CACHE_H
#include "engine/prefix_disk.h"

enum {
    PREFIX_LEAST = 16, /* tokens that an entry must save beyond the next shorter one */
    PREFIX_TURN = 256, /* tokens of a first turn, or in common with an entry, that are worth one */
    PREFIX_STRIDE = 2048 /* positions between the entries of a long prompt */
};

typedef struct prefix_cache prefix_cache;
typedef struct prefix_entry prefix_entry;

typedef struct prefix_stats {
    uint64_t lookups, hits, partial; /* partial: entries agree further than the one found reaches */
    uint64_t bytes;                  /* held, pages included */
    int entries;
    uint64_t disk_loads, disk_failures, disk_bytes; /* entries brought in; jobs that failed; held */
    int disk_files;
} prefix_stats;

typedef struct prefix_cache_options {
    size_t budget; /* bytes of memory; 0: nothing is ever kept */
    state_pool *pages;
    const king *king;
    const drafter *drafter; /* may be NULL */
    compute *compute;
    prefix_disk_options disk; /* dir NULL: no disk tier */
} prefix_cache_options;

status prefix_cache_new(prefix_cache **out, const prefix_cache_options *o, error *e);
void prefix_cache_free(prefix_cache *c); /* first writes what is not on the disk yet */

/* Between passes: takes what the disk tier has done; and when those that wait have asked for what
 * they need from it, gives it the next entry to write if it has nothing to do. */
void prefix_cache_tend(prefix_cache *c);
void prefix_cache_store(prefix_cache *c);
/* Whether the disk has a longer beginning of tokens[0, n) than memory: PREFIX_COMING when it is
 * being brought in (ask prefix_cache_arriving whether it still is), PREFIX_LATER when the disk is
 * busy with something else. */
typedef enum prefix_fetch { PREFIX_HERE, PREFIX_COMING, PREFIX_LATER } prefix_fetch;
prefix_fetch prefix_cache_fetch(prefix_cache *c, const int32_t *tokens, int n);
bool prefix_cache_arriving(const prefix_cache *c);

/* Longest entry that is a prefix of tokens[0, n) and leaves at least one of them to run; NULL:
 * none. Borrowed until the next call that adds or evicts. *known: how many of the tokens any entry
 * begins with. */
const prefix_entry *prefix_cache_find(prefix_cache *c, const int32_t *tokens, int n, int *known);
int prefix_cache_len(const prefix_entry *e);
/* Puts the entry into a state; the drafter's context (may be NULL) follows or begins empty at that
 * position. */
status prefix_cache_restore(const prefix_entry *p, state *s, drafter_state *d, error *e);
typedef enum prefix_kind {
    PREFIX_PASSING, /* on the way through a long prompt: kept in memory only */
    PREFIX_SHARED,  /* where a prompt parts from an earlier one */
    PREFIX_END,     /* of a prompt's messages, of a reply, of what was cancelled */
    PREFIX_FIRST    /* of the first turn: shared by many conversations, goes last */
} prefix_kind;

/* Keeps state_len(s) positions of `tokens`, unless that saves too little or does not fit. `d` (may
 * be NULL) is kept when it stands at the same position. */
void prefix_cache_put(prefix_cache *c, const int32_t *tokens, state *s, const drafter_state *d,
                      prefix_kind kind);
bool prefix_cache_evict(prefix_cache *c); /* one entry; false: there is none */
void prefix_cache_get_stats(const prefix_cache *c, prefix_stats *out);
#endif
