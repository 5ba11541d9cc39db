/* tokmask.c - which tokens a grammar allows in a state. */
#include <stdlib.h>
#include "base/mem.h"
#include "engine/tokmask.h"
#include "base/banned.h"

enum { MAX_TOKEN_BYTES = 512, MAX_MASKS = 1024, MAX_FORCED_BYTES = 128 };

typedef struct entry {
    int32_t id;
    int shared; /* bytes in common with the entry before */
} entry;

struct tokmask_vocabulary {
    const tokenizer *tokenizer;
    entry *entries; /* in the order of their bytes */
    int n, n_token;
};

struct tokmask {
    grammar *grammar;
    const tokmask_vocabulary *vocabulary;
    const int32_t *stop_ids;
    int n_stop_ids, words;
    uint32_t *thought; /* mask */
    uint32_t **masks;  /* [GRAMMAR_STATES]; NULL: not made */
    bool *empty;       /* [GRAMMAR_STATES] */
    int32_t *only;     /* [GRAMMAR_STATES] the one token that is allowed, or -1 */
    tokenizer_ids ids; /* of a forced text */
    int *followed[TOKMASK_PLACES];
    int n_followed;
    int n_masks;
    status failed;
};

/* ---- vocabulary ---- */

typedef struct sort_key {
    str bytes;
    int32_t id;
} sort_key;

static int by_bytes(const void *a, const void *b)
{
    const sort_key *x = a, *y = b;
    const int c = str_cmp(x->bytes, y->bytes);
    return c ? c : x->id - y->id;
}

static bool is_listed(const int32_t *ids, int n, int32_t id)
{
    for (int i = 0; i < n; i++)
        if (ids[i] == id) return true;
    return false;
}

static int collect(const tokenizer *t, int n_token, const int32_t *admitted, int n_admitted,
                   sort_key *keys)
{
    int n = 0;
    for (int32_t id = 0; id < n_token; id++) {
        const str bytes = tokenizer_bytes(t, id);
        if (bytes.len > 0 && bytes.len <= MAX_TOKEN_BYTES) keys[n++] = (sort_key){ bytes, id };
    }
    for (size_t i = 0; i < tokenizer_added_count(t); i++) { /* few, and mostly at the end */
        const int32_t id = tokenizer_added_id(t, i);
        if (is_listed(admitted, n_admitted, id)) continue;
        for (int k = n - 1; k >= 0; k--) {
            if (keys[k].id != id) continue;
            keys[k] = keys[--n];
            break;
        }
    }
    return n;
}

static int shared(str a, str b)
{
    size_t i = 0;
    while (i < a.len && i < b.len && a.ptr[i] == b.ptr[i]) i++;
    return (int)i;
}

status tokmask_vocabulary_new(tokmask_vocabulary **out, const tokenizer *t, int n_token,
                              const int32_t *admitted, int n_admitted, error *e)
{
    sort_key *keys = mem_array((size_t)n_token, sizeof *keys);
    tokmask_vocabulary *v = mem_zalloc(sizeof *v);
    if (v) v->entries = mem_array((size_t)n_token, sizeof *v->entries);
    if (!keys || !v || !v->entries) {
        mem_free(keys);
        tokmask_vocabulary_free(v);
        return error_set(e, E_NOMEM, "grammar: no memory for %d tokens", n_token);
    }
    v->tokenizer = t;
    v->n_token = n_token;
    v->n = collect(t, n_token, admitted, n_admitted, keys);
    qsort(keys, (size_t)v->n, sizeof *keys, by_bytes);
    for (int i = 0; i < v->n; i++)
        v->entries[i] = (entry){ keys[i].id, i ? shared(keys[i - 1].bytes, keys[i].bytes) : 0 };
    mem_free(keys);
    *out = v;
    return OK;
}

void tokmask_vocabulary_free(tokmask_vocabulary *v)
{
    if (!v) return;
    mem_free(v->entries);
    mem_free(v);
}

/* ---- masks ---- */

static void set_bit(const tokmask *m, uint32_t *mask, int32_t id, bool on)
{
    if (id < 0 || id >= m->vocabulary->n_token) return;
    if (on) mask[id >> 5] |= 1u << (id & 31);
    else mask[id >> 5] &= ~(1u << (id & 31));
}

static void fill_thought(tokmask *m, int32_t call_open)
{
    for (int id = 0; id < m->vocabulary->n_token; id++) set_bit(m, m->thought, id, true);
    for (int i = 0; i < m->n_stop_ids; i++) set_bit(m, m->thought, m->stop_ids[i], false);
    set_bit(m, m->thought, call_open, false);
}

status tokmask_new(tokmask **out, grammar *g, const tokmask_vocabulary *v, const int32_t *stop_ids,
                   int n_stop_ids, int32_t call_open, error *e)
{
    tokmask *m = mem_zalloc(sizeof *m);
    if (!m) {
        grammar_free(g);
        return error_set(e, E_NOMEM, "grammar: no memory");
    }
    *m = (tokmask){ .grammar = g,
                    .vocabulary = v,
                    .stop_ids = stop_ids,
                    .n_stop_ids = n_stop_ids,
                    .words = (v->n_token + 31) / 32 };
    m->masks = mem_array(GRAMMAR_STATES, sizeof *m->masks);
    m->empty = mem_array(GRAMMAR_STATES, sizeof *m->empty);
    m->only = mem_array(GRAMMAR_STATES, sizeof *m->only);
    m->thought = mem_array((size_t)m->words, sizeof *m->thought);
    if (!m->masks || !m->empty || !m->only || !m->thought) {
        tokmask_free(m);
        return error_set(e, E_NOMEM, "grammar: no memory for masks");
    }
    fill_thought(m, call_open);
    *out = m;
    return OK;
}

static void drop_masks(tokmask *m)
{
    for (int i = 0; i < GRAMMAR_STATES && m->masks; i++) {
        mem_free(m->masks[i]);
        m->masks[i] = NULL;
    }
    m->n_masks = 0;
}

void tokmask_free(tokmask *m)
{
    if (!m) return;
    drop_masks(m);
    mem_free(m->masks);
    mem_free(m->empty);
    mem_free(m->only);
    mem_free(m->thought);
    tokenizer_ids_free(&m->ids);
    grammar_free(m->grammar);
    mem_free(m);
}

/* states[d]: after the first d bytes of the entry at hand. Entries that share a dead beginning are
 * passed over. */
static void walk(tokmask *m, int state, uint32_t *mask)
{
    const tokmask_vocabulary *v = m->vocabulary;
    int states[MAX_TOKEN_BYTES + 1];
    states[0] = state;
    int alive = 0; /* states[0..alive] hold */
    for (int i = 0; i < v->n; i++) {
        const entry *t = &v->entries[i];
        const str bytes = tokenizer_bytes(v->tokenizer, t->id);
        if (t->shared > alive) continue;
        int d = t->shared, at = states[d];
        while (d < (int)bytes.len) {
            at = grammar_next(m->grammar, at, (uint8_t)bytes.ptr[d]);
            if (at == GRAMMAR_DEAD) break;
            states[++d] = at;
        }
        alive = d;
        if (d == (int)bytes.len) mask[t->id >> 5] |= 1u << (t->id & 31);
    }
}

/* The one id in the mask, or -1. */
static int32_t only_of(const tokmask *m, const uint32_t *mask)
{
    int32_t id = -1;
    for (int i = 0; i < m->words; i++) {
        if (!mask[i]) continue;
        if (id >= 0 || mask[i] & (mask[i] - 1)) return -1;
        for (id = 32 * i; !(mask[i] >> (id & 31) & 1);) id++;
    }
    return id;
}

static uint32_t *make(tokmask *m, int state)
{
    if (m->n_masks == MAX_MASKS) drop_masks(m);
    uint32_t *mask = mem_array((size_t)m->words, sizeof *mask);
    if (!mask) {
        m->failed = E_NOMEM;
        return NULL;
    }
    walk(m, state, mask);
    if (grammar_accepts(m->grammar, state))
        for (int i = 0; i < m->n_stop_ids; i++) set_bit(m, mask, m->stop_ids[i], true);
    bool empty = true;
    for (int i = 0; i < m->words; i++) empty = empty && mask[i] == 0;
    m->empty[state] = empty;
    m->only[state] = only_of(m, mask);
    m->masks[state] = mask;
    m->n_masks++;
    return mask;
}

const uint32_t *tokmask_of(tokmask *m, int state, bool *none)
{
    if (m->failed || state < 0) return NULL;
    uint32_t *mask = m->masks[state];
    if (!mask) mask = make(m, state);
    if (!mask || grammar_status(m->grammar, NULL)) return NULL;
    *none = m->empty[state];
    return mask;
}

const uint32_t *tokmask_thought(const tokmask *m)
{
    return m->thought;
}

bool tokmask_in_thought(const tokmask *m, int32_t id)
{
    return id >= 0 && id < m->vocabulary->n_token && (m->thought[id >> 5] >> (id & 31) & 1);
}

bool tokmask_accepts(const tokmask *m, int state)
{
    return grammar_accepts(m->grammar, state);
}

int tokmask_next(tokmask *m, int state, int32_t id)
{
    const str bytes = tokenizer_bytes(m->vocabulary->tokenizer, id);
    for (size_t i = 0; i < bytes.len; i++)
        state = grammar_next(m->grammar, state, (uint8_t)bytes.ptr[i]);
    return state;
}

/* The one byte that goes on from a state, or -1. */
static int only_byte(grammar *g, int state)
{
    int only = -1;
    if (grammar_accepts(g, state)) return -1;
    for (int b = 0; b < 256; b++) {
        if (grammar_next(g, state, (uint8_t)b) == GRAMMAR_DEAD) continue;
        if (only >= 0) return -1;
        only = b;
    }
    return only;
}

static int forced_text(tokmask *m, int state, int32_t *out, int most)
{
    char text[MAX_FORCED_BYTES];
    size_t n = 0;
    for (int b; n < sizeof text && (b = only_byte(m->grammar, state)) >= 0; n++) {
        text[n] = (char)b;
        state = grammar_next(m->grammar, state, (uint8_t)b);
    }
    m->ids.len = 0;
    if (n < 2 ||
        tokenizer_encode(m->vocabulary->tokenizer, (str){ text, n }, TOKENIZER_NONE, &m->ids, NULL))
        return 0;
    int k = 0;
    for (; k < most && k < (int)m->ids.len; k++) out[k] = m->ids.ptr[k];
    return k;
}

int tokmask_forced(tokmask *m, int state, int32_t *out, int most, int *sure)
{
    int n = 0;
    bool none;
    while (n < most && tokmask_of(m, state, &none) && m->only[state] >= 0) {
        out[n] = m->only[state];
        state = tokmask_next(m, state, out[n++]);
    }
    *sure = n;
    return state < 0 || n == most ? n : n + forced_text(m, state, out + n, most - n);
}

status tokmask_status(const tokmask *m, error *e)
{
    if (m->failed) return error_set(e, m->failed, "grammar: no memory for masks");
    return grammar_status(m->grammar, e);
}

void tokmask_follow(tokmask *m, int *state)
{
    CHECK(m->n_followed < TOKMASK_PLACES);
    m->followed[m->n_followed++] = state;
}

void tokmask_leave(tokmask *m, const int *state)
{
    for (int i = 0; i < m->n_followed; i++) {
        if (m->followed[i] != state) continue;
        m->followed[i] = m->followed[--m->n_followed];
        return;
    }
}

bool tokmask_forget(tokmask *m)
{
    if (m->failed || grammar_status(m->grammar, NULL) != E_ARG) return false;
    drop_masks(m);
    grammar_keep(m->grammar, m->followed, m->n_followed);
    return true;
}
