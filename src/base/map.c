/* map.c - open addressing with linear probing, at most 3/4 full; deletion shifts back, so there are
 * no tombstones. */
#include "base/map.h"
#include "base/mem.h"
#include "base/banned.h"

struct map_slot {
    str key; /* ptr NULL: free */
    uint64_t hash, value;
};

void map_free(map *m)
{
    mem_free(m->slots);
    map_init(m);
}

/* The slot of the key, or the free one where it belongs. cap > 0, and at least one slot is free. */
static struct map_slot *find(const map *m, str key, uint64_t hash)
{
    for (size_t i = (size_t)hash & (m->cap - 1);; i = (i + 1) & (m->cap - 1)) {
        struct map_slot *s = &m->slots[i];
        if (!s->key.ptr || (s->hash == hash && str_eq(s->key, key))) return s;
    }
}

status map_reserve(map *m, size_t count, error *e)
{
    size_t cap = m->cap ? m->cap : 16;
    while (count > cap / 4 * 3) {
        if (cap > SIZE_MAX / 2)
            return error_set(e, E_NOMEM, "map: %zu entries do not fit in memory", count);
        cap *= 2;
    }
    if (cap == m->cap) return OK;
    map grown = { .slots = mem_array(cap, sizeof(struct map_slot)), .count = m->count, .cap = cap };
    if (!grown.slots) return error_set(e, E_NOMEM, "map: out of memory for %zu entries", count);
    for (size_t i = 0; i < m->cap; i++) {
        const struct map_slot *s = &m->slots[i];
        if (s->key.ptr) *find(&grown, s->key, s->hash) = *s;
    }
    mem_free(m->slots);
    *m = grown;
    return OK;
}

status map_put(map *m, str key, uint64_t value, error *e)
{
    if (!key.ptr) key = STR("");
    const uint64_t hash = str_hash(key);
    if (m->cap) {
        struct map_slot *s = find(m, key, hash);
        if (s->key.ptr) {
            s->value = value;
            return OK;
        }
    }
    TRY(map_reserve(m, m->count + 1, e));
    *find(m, key, hash) = (struct map_slot){ key, hash, value };
    m->count++;
    return OK;
}

bool map_get(const map *m, str key, uint64_t *value)
{
    if (m->count == 0) return false;
    const struct map_slot *s = find(m, key, str_hash(key));
    if (!s->key.ptr) return false;
    if (value) *value = s->value;
    return true;
}

bool map_next(const map *m, size_t *at, str *key, uint64_t *value)
{
    while (*at < m->cap) {
        const struct map_slot *s = &m->slots[(*at)++];
        if (!s->key.ptr) continue;
        *key = s->key;
        *value = s->value;
        return true;
    }
    return false;
}
