/* arena.h - many small allocations with one end.
 *
 * Memory is zeroed and aligned to 16 bytes; nothing is freed singly. Returns NULL when memory is
 * short. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H
#include <stddef.h>
#include "base/str.h"

typedef struct arena {
    struct arena_block *head;
    size_t block_bytes, used_bytes;
} arena;

void arena_init(arena *a, size_t block_bytes); /* 0: 64 KiB */
void arena_free(arena *a);
void *arena_alloc(arena *a, size_t bytes);
void *arena_array(arena *a, size_t count, size_t bytes);
char *arena_strdup(arena *a, str s); /* NUL added */
str arena_str(arena *a, str s);      /* copy; ptr NULL when memory is short */
#endif
