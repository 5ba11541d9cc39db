/* bpe.h - byte-level byte-pair encoding: bytes of one piece -> ids.
 *
 * Built once from a vocabulary and its merges, then immutable. Encoding starts from single bytes
 * and applies the merge of lowest rank, leftmost on ties, until none applies (Sennrich, Haddow,
 * Birch 2016). A vocabulary entry that no merge reaches is never produced, except when
 * ignore_merges is set. O(n log n) in the length of the piece. */
#ifndef TEXT_BPE_H
#define TEXT_BPE_H
#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"

enum {
    BPE_MAX_ID = (1 << 22) - 1, /* keeps the tables of hostile files small */
    BPE_MAX_BYTES = 1 << 16     /* of one entry */
};

typedef struct bpe_merge {
    int32_t left, right; /* left -1: free slot */
    int32_t rank, id;
} bpe_merge;

typedef struct bpe {
    arena mem;     /* the bytes of all entries */
    str *bytes;    /* [n_ids] by id; ptr NULL: no entry */
    int32_t n_ids; /* highest id + 1 */
    int32_t cap_ids;
    map by_bytes;      /* bytes -> id */
    bpe_merge *merges; /* hash table over (left, right), [merge_mask + 1] */
    size_t merge_mask;
    int32_t n_merges;
    int32_t byte_id[256];
    bool ignore_merges; /* a piece that is an entry becomes that entry; set by the owner */
    buf joined;         /* while merges are added */
} bpe;

status bpe_init(bpe *b, size_t n_entries, size_t n_merges, error *e); /* room for so many */
void bpe_free(bpe *b);                                                /* a zeroed bpe is fine */
/* Errors say only what is wrong with this entry or merge; the caller puts the place before it. */
status bpe_add(bpe *b, int32_t id, str bytes, error *e); /* bytes are copied */
/* The same for an id that encoding never gives (added tokens); OK when the id has these bytes
 * already. */
status bpe_add_apart(bpe *b, int32_t id, str bytes, error *e);
status bpe_add_merge(bpe *b, str left, str right, error *e); /* in order of rank */
status bpe_finish(bpe *b, error *e);                         /* every byte has an entry? */
int32_t bpe_id(const bpe *b, str bytes);                     /* -1: none */

/* Working memory of one encoding, reused from piece to piece. */
typedef struct bpe_work {
    struct bpe_part *parts;
    uint64_t *heap;
    size_t cap;
} bpe_work;

void bpe_work_free(bpe_work *w); /* a zeroed one is fine */
/* Writes the ids of the piece to out (room for piece.len ids) and their count to *n. E_NOMEM;
 * E_LIMIT above 2^31 bytes. */
status bpe_encode(const bpe *b, bpe_work *w, str piece, int32_t *out, size_t *n, error *e);

/* The printable alphabet of byte-level files: bytes 33-126, 161-172, 174-255 stand for
 * themselves, the others for U+0100 onwards in increasing order. */
int bpe_byte_of(uint32_t cp); /* -1: not in the alphabet */
#endif
