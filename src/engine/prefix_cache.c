/* prefix_cache.c - states of token sequences that may come back. */
#include "base/log.h"
#include "base/mem.h"
#include "engine/prefix_cache.h"
#include "base/banned.h"

enum { MAX_ENTRIES = 256, TURN_WEIGHT = 8 };

struct prefix_entry {
    int32_t *tokens; /* [n] */
    int n;
    snap *snap;
    draft_state *draft; /* NULL: begins empty */
    bool first_turn;
    uint64_t used; /* time of the last use, in uses of the cache */
    /* worked out from the company it stands in */
    int saves;    /* tokens beyond the longest other entry that is a prefix of it */
    size_t bytes; /* its own, and the pages it does not share with that one */
};

struct prefix_cache {
    prefix_entry entries[MAX_ENTRIES];
    int n;
    size_t budget, page_bytes, bytes;
    compute *compute;
    const drafter *drafter;
    uint64_t time;
    prefix_stats stats;
};

status prefix_cache_new(prefix_cache **out, size_t budget_bytes, size_t page_bytes, compute *c,
                        const drafter *d, error *e)
{
    prefix_cache *p = mem_zalloc(sizeof *p);
    if (!p) return error_set(e, E_NOMEM, "prefix cache: no memory");
    p->budget = budget_bytes;
    p->page_bytes = page_bytes;
    p->compute = c;
    p->drafter = d;
    *out = p;
    return OK;
}

static void free_entry(prefix_entry *p)
{
    if (p->snap) state_snap_free(p->snap);
    if (p->draft) drafter_state_free(p->draft);
    mem_free(p->tokens);
    *p = (prefix_entry){ 0 };
}

void prefix_cache_free(prefix_cache *c)
{
    if (!c) return;
    for (int i = 0; i < c->n; i++) free_entry(&c->entries[i]);
    mem_free(c);
}

/* Tokens that the two have in common from the start. */
static int common(const int32_t *a, int n_a, const int32_t *b, int n_b)
{
    const int most = n_a < n_b ? n_a : n_b;
    int i = 0;
    while (i < most && a[i] == b[i]) i++;
    return i;
}

static size_t own_bytes(const prefix_cache *c, const prefix_entry *p)
{
    return state_snap_bytes(p->snap) + (size_t)p->n * sizeof *p->tokens +
           (p->draft ? drafter_state_bytes(c->drafter) : 0);
}

/* An entry and the longest entry inside it share that one's full pages. */
static void weigh(prefix_cache *c)
{
    c->bytes = 0;
    for (int i = 0; i < c->n; i++) {
        prefix_entry *p = &c->entries[i];
        int inside = 0;
        for (int j = 0; j < c->n; j++) {
            const prefix_entry *q = &c->entries[j];
            if (q->n < p->n && q->n > inside && common(p->tokens, p->n, q->tokens, q->n) == q->n)
                inside = q->n;
        }
        p->saves = p->n - inside;
        p->bytes = own_bytes(c, p) +
                   (size_t)(state_snap_pages(p->snap) - inside / KV_PAGE) * c->page_bytes;
        c->bytes += p->bytes;
    }
}

static void remove_entry(prefix_cache *c, int i)
{
    free_entry(&c->entries[i]);
    c->entries[i] = c->entries[--c->n];
    c->entries[c->n] = (prefix_entry){ 0 };
    weigh(c);
}

bool prefix_cache_evict(prefix_cache *c)
{
    int worst = -1;
    double least = 0;
    for (int i = 0; i < c->n; i++) {
        const prefix_entry *p = &c->entries[i];
        const double age = (double)(c->time - p->used) + 1;
        const double worth =
            (double)p->saves * (p->first_turn ? TURN_WEIGHT : 1) / (age * (double)p->bytes);
        if (worst >= 0 && worth >= least) continue;
        worst = i;
        least = worth;
    }
    if (worst < 0) return false;
    remove_entry(c, worst);
    return true;
}

const prefix_entry *prefix_cache_find(prefix_cache *c, const int32_t *tokens, int n)
{
    prefix_entry *best = NULL;
    int agree = 0;
    for (int i = 0; i < c->n; i++) {
        prefix_entry *p = &c->entries[i];
        const int same = common(p->tokens, p->n, tokens, n - 1);
        if (same > agree) agree = same;
        if (same == p->n && (!best || p->n > best->n)) best = p;
    }
    const int found = best ? best->n : 0;
    c->stats.lookups++;
    c->stats.hits += best != NULL;
    c->stats.partial += best && agree > found;
    if (agree > found)
        log_line(LOG_INFO,
                 "prefix cache: %d of %d prompt tokens are known, %d are reused: no state was kept "
                 "between, and recurrent state cannot be cut or shifted",
                 agree, n, found);
    if (best) best->used = ++c->time;
    return best;
}

int prefix_cache_len(const prefix_entry *e)
{
    return e->n;
}

status prefix_cache_restore(const prefix_entry *p, state *s, draft_state *d, error *e)
{
    TRY(state_restore(s, p->snap, e));
    if (d && p->draft) drafter_state_copy(d, p->draft);
    else if (d) drafter_state_reset(d, p->n);
    return OK;
}

/* Whether an entry of tokens[0, n) would save anything: false when it, or nearly it, is there. */
static bool is_new(prefix_cache *c, const int32_t *tokens, int n)
{
    int inside = 0;
    for (int i = 0; i < c->n; i++) {
        prefix_entry *p = &c->entries[i];
        if (p->n > n || common(p->tokens, p->n, tokens, n) != p->n) continue;
        if (p->n == n) p->used = ++c->time;
        if (p->n > inside) inside = p->n;
    }
    return n - inside >= PREFIX_LEAST;
}

static status make_entry(prefix_cache *c, prefix_entry *p, const int32_t *tokens, state *s,
                         const draft_state *d, error *e)
{
    p->n = state_len(s);
    p->tokens = mem_array((size_t)p->n, sizeof *p->tokens);
    if (!p->tokens) return error_set(e, E_NOMEM, "prefix cache: no memory for %d tokens", p->n);
    memcpy(p->tokens, tokens, (size_t)p->n * sizeof *p->tokens);
    TRY(state_snapshot(s, c->compute, &p->snap, e));
    if (!d || drafter_state_len(d) != p->n) return OK;
    TRY(drafter_state_new(&p->draft, c->drafter, e));
    drafter_state_copy(p->draft, d);
    return OK;
}

void prefix_cache_put(prefix_cache *c, const int32_t *tokens, state *s, const draft_state *d,
                      bool first_turn)
{
    if (c->budget == 0 || !is_new(c, tokens, state_len(s))) return;
    while (c->n == MAX_ENTRIES) prefix_cache_evict(c);
    prefix_entry made = { .first_turn = first_turn, .used = ++c->time };
    error e = { 0 };
    if (make_entry(c, &made, tokens, s, d, &e)) {
        log_line(LOG_INFO, "%s", e.text); /* the cache is a help, not a promise */
        free_entry(&made);
        return;
    }
    c->entries[c->n++] = made;
    weigh(c);
    while (c->bytes > c->budget && prefix_cache_evict(c)) {}
}

void prefix_cache_get_stats(const prefix_cache *c, prefix_stats *out)
{
    *out = c->stats;
    out->bytes = c->bytes;
    out->entries = c->n;
}
