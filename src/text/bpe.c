/* bpe.c - building the tables of byte-pair encoding, and the merge loop over one piece.
 *
 * The loop keeps the parts of the piece as a linked list and the possible merges in a heap ordered
 * by (rank, position); entries that a later merge made stale are recognised when they come up. */
#include "text/bpe.h"

#include "base/mem.h"
#include "base/banned.h"

/* A part of the piece, named by the offset of its first byte. */
struct bpe_part {
    int32_t id;         /* -1: swallowed by the part before it */
    int32_t prev, next; /* -1: none */
    int32_t rank;       /* of the merge with the next part; -1: none */
    int32_t merged;     /* the id that merge gives */
};

/* ---- building ------------------------------------------------------------------------------ */

int bpe_byte_of(uint32_t cp)
{
    /* The bytes that are not printable Latin-1, in increasing order, are U+0100, U+0101 ... */
    if ((cp >= 33 && cp <= 126) || (cp >= 161 && cp <= 172) || (cp >= 174 && cp <= 255))
        return (int)cp;
    if (cp >= 256 && cp < 256 + 33) return (int)(cp - 256);       /* 0 .. 32 */
    if (cp >= 289 && cp < 289 + 34) return (int)(cp - 289 + 127); /* 127 .. 160 */
    return cp == 323 ? 173 : -1;
}

status bpe_init(bpe *b, size_t n_entries, size_t n_merges, error *e)
{
    *b = (bpe){ 0 };
    arena_init(&b->mem, 0);
    map_init(&b->by_bytes);
    buf_init(&b->joined, BPE_MAX_BYTES);
    size_t slots = 16;
    while (slots / 2 < n_merges) slots *= 2;
    b->merges = mem_array(slots, sizeof *b->merges);
    if (!b->merges) return error_set(e, E_NOMEM, "merges: out of memory");
    for (size_t i = 0; i < slots; i++) b->merges[i].left = -1;
    b->merge_mask = slots - 1;
    return map_reserve(&b->by_bytes, n_entries, e);
}

void bpe_free(bpe *b)
{
    arena_free(&b->mem);
    map_free(&b->by_bytes);
    buf_free(&b->joined);
    mem_free(b->bytes);
    mem_free(b->merges);
    *b = (bpe){ 0 };
}

/* Writes the bytes of an id into the table, growing it. */
static status name_id(bpe *b, int32_t id, str bytes, error *e)
{
    if (id < 0 || id > BPE_MAX_ID)
        return error_set(e, E_FORMAT, "found id %d, want 0 to %d", id, BPE_MAX_ID);
    if (bytes.len == 0 || bytes.len > BPE_MAX_BYTES)
        return error_set(e, E_FORMAT, "found %zu bytes, want 1 to %d", bytes.len, BPE_MAX_BYTES);
    if (id >= b->cap_ids) {
        int32_t cap = b->cap_ids ? b->cap_ids : 1024;
        while (cap <= id) cap *= 2;
        str *grown = mem_resize(b->bytes, (size_t)cap * sizeof *grown);
        if (!grown) return error_set(e, E_NOMEM, "out of memory");
        memset(grown + b->cap_ids, 0, (size_t)(cap - b->cap_ids) * sizeof *grown);
        b->bytes = grown;
        b->cap_ids = cap;
    }
    if (b->bytes[id].ptr) return error_set(e, E_FORMAT, "found id %d, which another entry has", id);
    const str own = arena_str(&b->mem, bytes);
    if (!own.ptr) return error_set(e, E_NOMEM, "out of memory");
    b->bytes[id] = own;
    if (id >= b->n_ids) b->n_ids = id + 1;
    return OK;
}

status bpe_add_apart(bpe *b, int32_t id, str bytes, error *e)
{
    const bool same = id >= 0 && id < b->n_ids && str_eq(b->bytes[id], bytes);
    return same ? OK : name_id(b, id, bytes, e);
}

status bpe_add(bpe *b, int32_t id, str bytes, error *e)
{
    const size_t before = b->by_bytes.count;
    TRY(name_id(b, id, bytes, e));
    TRY(map_put(&b->by_bytes, b->bytes[id], (uint64_t)id, e));
    if (b->by_bytes.count > before) return OK;
    return error_set(e, E_FORMAT, "found the bytes of an earlier entry, want them once");
}

int32_t bpe_id(const bpe *b, str bytes)
{
    uint64_t id = 0;
    return map_get(&b->by_bytes, bytes, &id) ? (int32_t)id : -1;
}

/* The slot of the pair, or the free slot where it belongs. */
static bpe_merge *find_merge(const bpe *b, int32_t left, int32_t right)
{
    const uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    size_t i = (size_t)((key * 0x9e3779b97f4a7c15u) >> 32) & b->merge_mask;
    while (b->merges[i].left >= 0 && (b->merges[i].left != left || b->merges[i].right != right))
        i = (i + 1) & b->merge_mask;
    return &b->merges[i];
}

status bpe_add_merge(bpe *b, str left, str right, error *e)
{
    CHECK((size_t)b->n_merges < b->merge_mask);
    buf_clear(&b->joined);
    buf_add(&b->joined, left);
    buf_add(&b->joined, right);
    TRY(buf_status(&b->joined, "merged token", e));
    const bpe_merge m = { .left = bpe_id(b, left),
                          .right = bpe_id(b, right),
                          .rank = b->n_merges,
                          .id = bpe_id(b, buf_view(&b->joined)) };
    if (m.left < 0)
        return error_set(e, E_FORMAT, "found a left side that is no entry of the vocabulary");
    if (m.right < 0)
        return error_set(e, E_FORMAT, "found a right side that is no entry of the vocabulary");
    if (m.id < 0)
        return error_set(e, E_FORMAT, "found a result that is no entry of the vocabulary");
    bpe_merge *slot = find_merge(b, m.left, m.right);
    if (slot->left >= 0)
        return error_set(e, E_FORMAT, "found the pair of merge %d again, want it once", slot->rank);
    *slot = m;
    b->n_merges++;
    return OK;
}

status bpe_finish(bpe *b, error *e)
{
    for (int i = 0; i < 256; i++) {
        const char byte = (char)i;
        b->byte_id[i] = bpe_id(b, (str){ &byte, 1 });
        if (b->byte_id[i] < 0)
            return error_set(e, E_FORMAT,
                             "found no entry for the byte 0x%02x, want one for each byte",
                             (unsigned)i);
    }
    buf_free(&b->joined);
    return OK;
}

/* ---- encoding ------------------------------------------------------------------------------ */

void bpe_work_free(bpe_work *w)
{
    mem_free(w->parts);
    mem_free(w->heap);
    *w = (bpe_work){ 0 };
}

static status work_grow(bpe_work *w, size_t n, error *e)
{
    if (n <= w->cap) return OK;
    size_t cap = w->cap ? w->cap : 256;
    while (cap < n) cap *= 2;
    struct bpe_part *parts = mem_resize(w->parts, cap * sizeof *parts);
    if (parts) w->parts = parts;
    /* n - 1 at first; a merge takes one and adds two */
    uint64_t *heap = mem_resize(w->heap, 2 * cap * sizeof *heap);
    if (heap) w->heap = heap;
    if (!parts || !heap)
        return error_set(e, E_NOMEM, "text: out of memory for a piece of %zu bytes", n);
    w->cap = cap;
    return OK;
}

/* Puts x at `i` or below, in a heap of n whose order holds below i. */
static void sift_down(uint64_t *heap, size_t n, size_t i, uint64_t x)
{
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && heap[child + 1] < heap[child]) child++;
        if (x <= heap[child]) break;
        heap[i] = heap[child];
    }
    heap[i] = x;
}

static void sift_up(uint64_t *heap, size_t i, uint64_t x)
{
    for (size_t parent; i > 0 && x < heap[parent = (i - 1) / 2]; i = parent) heap[i] = heap[parent];
    heap[i] = x;
}

static inline uint64_t heap_entry(int32_t rank, int32_t at)
{
    return (uint64_t)(uint32_t)rank << 32 | (uint32_t)at;
}

/* Looks up the merge of the part at `at` with the one behind it; false when there is none. */
static bool find_pair(const bpe *b, struct bpe_part *parts, int32_t at)
{
    struct bpe_part *p = &parts[at];
    p->rank = -1;
    if (p->next < 0) return false;
    const bpe_merge *m = find_merge(b, p->id, parts[p->next].id);
    if (m->left < 0) return false;
    p->rank = m->rank;
    p->merged = m->id;
    return true;
}

/* The part at `at` swallows the next one. */
static void merge_next(struct bpe_part *parts, int32_t at)
{
    struct bpe_part *p = &parts[at];
    struct bpe_part *gone = &parts[p->next];
    p->id = p->merged;
    p->next = gone->next;
    if (p->next >= 0) parts[p->next].prev = at;
    gone->id = gone->rank = -1;
}

status bpe_encode(const bpe *b, bpe_work *w, str piece, int32_t *out, size_t *n, error *e)
{
    *n = 0;
    const int32_t len = (int32_t)piece.len;
    if (piece.len > INT32_MAX / 2)
        return error_set(e, E_LIMIT, "text: found a piece of %zu bytes, want less than 1 GiB",
                         piece.len);
    if (b->ignore_merges && (*out = bpe_id(b, piece)) >= 0) {
        *n = 1;
        return OK;
    }
    TRY(work_grow(w, piece.len, e));
    struct bpe_part *parts = w->parts;
    for (int32_t i = 0; i < len; i++)
        parts[i] = (struct bpe_part){ b->byte_id[(uint8_t)piece.ptr[i]], i - 1,
                                      i + 1 < len ? i + 1 : -1, -1, -1 };

    uint64_t *heap = w->heap;
    size_t waiting = 0;
    for (int32_t i = 0; i < len; i++)
        if (find_pair(b, parts, i)) heap[waiting++] = heap_entry(parts[i].rank, i);
    for (size_t i = waiting / 2; i-- > 0;) sift_down(heap, waiting, i, heap[i]);

    while (waiting > 0) {
        const uint64_t best = heap[0];
        const uint64_t last = heap[--waiting];
        if (waiting) sift_down(heap, waiting, 0, last);
        const int32_t at = (int32_t)(uint32_t)best;
        if (parts[at].rank != (int32_t)(best >> 32)) continue; /* stale */
        merge_next(parts, at);
        const int32_t before = parts[at].prev;
        if (find_pair(b, parts, at)) sift_up(heap, waiting++, heap_entry(parts[at].rank, at));
        if (before >= 0 && find_pair(b, parts, before))
            sift_up(heap, waiting++, heap_entry(parts[before].rank, before));
    }
    for (int32_t i = 0; i >= 0 && i < len; i = parts[i].next) out[(*n)++] = parts[i].id;
    return OK;
}
