/* arena.c - a list of blocks; the newest one is filled. */
#include "base/arena.h"
#include "base/mem.h"
#include "base/banned.h"

enum { ALIGN = 16, DEFAULT_BLOCK = 64 * 1024 };

struct arena_block {
    struct arena_block *next;
    size_t used, cap; /* of the bytes behind this header */
};
_Static_assert(sizeof(struct arena_block) <= 2 * ALIGN, "the header takes HEADER bytes");
enum { HEADER = 2 * ALIGN };

void arena_init(arena *a, size_t block_bytes)
{
    *a = (arena){ .block_bytes = block_bytes ? block_bytes : DEFAULT_BLOCK };
}

void arena_free(arena *a)
{
    for (struct arena_block *b = a->head; b;) {
        struct arena_block *next = b->next;
        mem_free(b);
        b = next;
    }
    a->head = NULL;
    a->used_bytes = 0;
}

void *arena_alloc(arena *a, size_t bytes)
{
    if (bytes > SIZE_MAX - HEADER - ALIGN) return NULL;
    const size_t need = bytes ? (bytes + ALIGN - 1) / ALIGN * ALIGN : ALIGN;
    struct arena_block *b = a->head;
    if (!b || b->cap - b->used < need) {
        const size_t cap = need > a->block_bytes ? need : a->block_bytes;
        b = cap <= SIZE_MAX - HEADER ? mem_zalloc(HEADER + cap) : NULL;
        if (!b) return NULL;
        b->cap = cap;
        /* A block made for one large piece is full: it goes behind the one that still has room. */
        if (a->head && cap == need) {
            b->next = a->head->next;
            a->head->next = b;
        } else {
            b->next = a->head;
            a->head = b;
        }
    }
    void *p = (char *)b + HEADER + b->used;
    b->used += need;
    a->used_bytes += need;
    return p;
}

void *arena_array(arena *a, size_t count, size_t bytes)
{
    size_t total;
    return __builtin_mul_overflow(count, bytes, &total) ? NULL : arena_alloc(a, total);
}

char *arena_strdup(arena *a, str s)
{
    if (s.len == SIZE_MAX) return NULL;
    char *p = arena_alloc(a, s.len + 1);
    if (p && s.len) memcpy(p, s.ptr, s.len);
    return p;
}

str arena_str(arena *a, str s)
{
    char *p = arena_strdup(a, s);
    return (str){ p, p ? s.len : 0 };
}
