/* map.h - hash map from byte strings to 64-bit values (numbers or pointers). Keys are borrowed and
 * must outlive it. */
#ifndef BASE_MAP_H
#define BASE_MAP_H
#include "base/error.h"
#include "base/str.h"

typedef struct map {
    struct map_slot *slots;
    size_t count, cap;
} map;

static inline void map_init(map *m) /* inline: libedit has a global function of this name */
{
    *m = (map){ 0 };
}
void map_free(map *m);
status map_reserve(map *m, size_t count, error *e);
status map_put(map *m, str key, uint64_t value, error *e); /* replaces */
bool map_get(const map *m, str key, uint64_t *value);      /* value may be NULL */
/* at starts 0; order unspecified */
bool map_next(const map *m, size_t *at, str *key, uint64_t *value);
#endif
