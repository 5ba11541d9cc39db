/* prefix_cache.c - states of token sequences that may come back. */
#include "base/log.h"
#include "base/mem.h"
#include "engine/prefix_cache.h"
#include "base/banned.h"

/* Weights of what should go last: first turns, and what the disk has not got yet. */
enum { MAX_ENTRIES = 256, TURN_WEIGHT = 8, UNWRITTEN_WEIGHT = 8 };

struct prefix_entry {
    prefix_image image;
    bool passing;  /* never written */
    bool stored;   /* handed to the disk, or came from there, and not used since */
    bool arriving; /* its content is still on the way from the disk */
    bool held;     /* the disk uses the image */
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
    const king *king;
    const drafter *drafter;
    state_pool *pages;
    prefix_disk *disk; /* NULL: memory only */
    bool disk_failing; /* said so already */
    uint64_t time;
    prefix_stats stats;
};

status prefix_cache_new(prefix_cache **out, const prefix_cache_options *o, error *e)
{
    prefix_cache *p = mem_zalloc(sizeof *p);
    if (!p) return error_set(e, E_NOMEM, "prefix cache: no memory");
    p->budget = o->budget;
    p->page_bytes = state_pool_layout(o->pages)->page_bytes;
    p->pages = o->pages;
    p->compute = o->compute;
    p->king = o->king;
    p->drafter = o->drafter;
    if (o->disk.dir) {
        const status s = prefix_disk_open(&p->disk, &o->disk, e);
        if (s) {
            mem_free(p);
            return s;
        }
    }
    *out = p;
    return OK;
}

static void free_image(prefix_image *p)
{
    if (p->snap) state_snap_free(p->snap);
    if (p->draft) drafter_state_free(p->draft);
    mem_free(p->tokens);
    *p = (prefix_image){ 0 };
}

/* Tokens that the two have in common from the start. */
static int common(const int32_t *a, int n_a, const int32_t *b, int n_b)
{
    const int most = n_a < n_b ? n_a : n_b;
    int i = 0;
    while (i < most && a[i] == b[i]) i++;
    return i;
}

static size_t own_bytes(const prefix_cache *c, const prefix_image *p)
{
    return state_snap_bytes(p->snap) + (size_t)p->n * sizeof *p->tokens +
           (p->draft ? drafter_state_bytes(c->drafter) : 0);
}

/* Each page counts for the shortest entry that has it. */
static void weigh(prefix_cache *c)
{
    c->bytes = 0;
    for (int i = 0; i < c->n; i++) {
        prefix_entry *p = &c->entries[i];
        const prefix_image *a = &p->image;
        int inside = 0, shared = 0;
        for (int j = 0; j < c->n; j++) {
            const prefix_image *b = &c->entries[j].image;
            if (b->n > a->n || (b->n == a->n && j >= i)) continue;
            const int pages = state_snap_shared(a->snap, b->snap);
            if (pages > shared) shared = pages;
            if (b->n < a->n && b->n > inside && common(a->tokens, a->n, b->tokens, b->n) == b->n)
                inside = b->n;
        }
        p->saves = a->n - inside;
        p->bytes = own_bytes(c, a) + (size_t)(state_snap_pages(a->snap) - shared) * c->page_bytes;
        c->bytes += p->bytes;
    }
}

static void remove_entry(prefix_cache *c, int i)
{
    CHECK(!c->entries[i].held);
    free_image(&c->entries[i].image);
    c->entries[i] = c->entries[--c->n];
    c->entries[c->n] = (prefix_entry){ 0 };
    weigh(c);
}

/* What the disk is being given is let go of only when nothing else is left. */
static bool let_go(prefix_cache *c)
{
    for (int i = 0; i < c->n; i++) {
        if (!c->entries[i].held || c->entries[i].arriving) continue;
        prefix_disk_abandon(c->disk);
        c->entries[i].held = false;
        remove_entry(c, i);
        return true;
    }
    return false;
}

static double worth_of(const prefix_cache *c, const prefix_entry *p)
{
    const double age = (double)(c->time - p->used) + 1;
    double worth = (double)p->saves / (age * (double)p->bytes);
    if (p->image.first_turn) worth *= TURN_WEIGHT;
    if (c->disk && !p->passing && !p->stored) worth *= UNWRITTEN_WEIGHT;
    return worth;
}

bool prefix_cache_evict(prefix_cache *c)
{
    int worst = -1;
    double least = 0;
    for (int i = 0; i < c->n; i++) {
        const prefix_entry *p = &c->entries[i];
        if (p->held) continue;
        const double worth = worth_of(c, p);
        if (worst >= 0 && worth >= least) continue;
        worst = i;
        least = worth;
    }
    if (worst < 0) return let_go(c);
    remove_entry(c, worst);
    return true;
}

/* ---- looking up ---- */

const prefix_entry *prefix_cache_find(prefix_cache *c, const int32_t *tokens, int n, int *known)
{
    prefix_entry *best = NULL;
    int agree = 0;
    for (int i = 0; i < c->n; i++) {
        prefix_entry *p = &c->entries[i];
        if (p->arriving) continue;
        const int same = common(p->image.tokens, p->image.n, tokens, n - 1);
        if (same > agree) agree = same;
        if (same == p->image.n && (!best || p->image.n > best->image.n)) best = p;
    }
    const int found = best ? best->image.n : 0;
    *known = agree;
    c->stats.lookups++;
    c->stats.hits += best != NULL;
    c->stats.partial += best && agree > found;
    if (agree > found)
        log_line(LOG_INFO,
                 "prefix cache: %d of %d prompt tokens are known, %d are reused: no state was kept "
                 "between, and recurrent state cannot be cut or shifted",
                 agree, n, found);
    if (best) {
        best->used = ++c->time;
        best->stored = false; /* so that its file becomes the newest too */
    }
    return best;
}

int prefix_cache_len(const prefix_entry *e)
{
    return e->image.n;
}

status prefix_cache_restore(const prefix_entry *p, state *s, drafter_state *d, error *e)
{
    TRY(state_restore(s, p->image.snap, e));
    if (d && p->image.draft) drafter_state_copy(d, p->image.draft);
    else if (d) drafter_state_reset(d, p->image.n);
    return OK;
}

/* ---- putting in ---- */

/* Whether an entry of tokens[0, n) would save anything: false when it, or nearly it, is there. */
static bool is_new(prefix_cache *c, const int32_t *tokens, int n)
{
    int inside = 0;
    for (int i = 0; i < c->n; i++) {
        prefix_entry *p = &c->entries[i];
        if (p->image.n > n || common(p->image.tokens, p->image.n, tokens, n) != p->image.n)
            continue;
        if (p->image.n == n) p->used = ++c->time;
        if (p->image.n > inside) inside = p->image.n;
    }
    return n - inside >= PREFIX_LEAST;
}

static status copy_tokens(prefix_image *p, const int32_t *tokens, int n, error *e)
{
    p->n = n;
    p->tokens = mem_array((size_t)n, sizeof *p->tokens);
    if (!p->tokens) return error_set(e, E_NOMEM, "prefix cache: no memory for %d tokens", n);
    memcpy(p->tokens, tokens, (size_t)n * sizeof *p->tokens);
    return OK;
}

static status make_image(prefix_cache *c, prefix_image *p, const int32_t *tokens, state *s,
                         const drafter_state *d, error *e)
{
    TRY(copy_tokens(p, tokens, state_len(s), e));
    TRY(state_snapshot(s, c->compute, &p->snap, e));
    if (!d || drafter_state_len(d) != p->n) return OK;
    TRY(drafter_state_new(&p->draft, c->drafter, e));
    drafter_state_copy(p->draft, d);
    return OK;
}

static void add(prefix_cache *c, const prefix_entry *p)
{
    while (c->n == MAX_ENTRIES) (void)prefix_cache_evict(c);
    c->entries[c->n++] = *p;
    weigh(c);
    while (c->bytes > c->budget && prefix_cache_evict(c)) {}
}

void prefix_cache_put(prefix_cache *c, const int32_t *tokens, state *s, const drafter_state *d,
                      prefix_kind kind)
{
    if (c->budget == 0 || !is_new(c, tokens, state_len(s))) return;
    prefix_entry made = { .image.first_turn = kind == PREFIX_FIRST,
                          .passing = kind == PREFIX_PASSING,
                          .used = ++c->time };
    error e = { 0 };
    if (make_image(c, &made.image, tokens, s, d, &e)) {
        log_line(LOG_INFO, "%s", e.text); /* the cache is a help, not a promise */
        free_image(&made.image);
        return;
    }
    add(c, &made);
}

/* ---- the disk tier ---- */

static prefix_entry *held_entry(prefix_cache *c)
{
    for (int i = 0; i < c->n; i++)
        if (c->entries[i].held) return &c->entries[i];
    return NULL;
}

bool prefix_cache_arriving(const prefix_cache *c)
{
    for (int i = 0; i < c->n; i++)
        if (c->entries[i].arriving) return true;
    return false;
}

/* A file that is dropped is worth a line each time; a disk that takes nothing is said once, until
 * it works again. */
static void note(prefix_cache *c, disk_job job, status s, const error *e)
{
    if (job == DISK_STORE && s == OK) c->disk_failing = false;
    if (s == OK || s == E_CANCELLED) return;
    c->stats.disk_failures++;
    if (job == DISK_LOAD) {
        log_line(LOG_WARN, "prefix cache: dropped %s", e->text);
        return;
    }
    log_line(c->disk_failing || s == E_LIMIT ? LOG_INFO : LOG_WARN,
             "prefix cache: %s; going on without it", e->text);
    if (s != E_LIMIT) c->disk_failing = true;
}

static void take_done(prefix_cache *c)
{
    prefix_image image;
    status s;
    error e;
    const disk_job job = prefix_disk_take(c->disk, &image, &s, &e);
    if (job == DISK_NOTHING) return;
    prefix_entry *p = held_entry(c);
    if (p) p->held = false;
    if (job == DISK_RELEASED) return;
    note(c, job, s, &e);
    if (job == DISK_STORE) return;
    CHECK(p && p->arriving);
    p->arriving = false;
    if (s == OK) {
        c->stats.disk_loads++;
        p->image.first_turn = image.first_turn;
        p->used = ++c->time;
    } else {
        remove_entry(c, (int)(p - c->entries));
    }
}

/* The entry used last that the disk does not have. */
static prefix_entry *next_to_store(prefix_cache *c)
{
    prefix_entry *best = NULL;
    for (int i = 0; i < c->n; i++) {
        prefix_entry *p = &c->entries[i];
        if (!p->passing && !p->stored && (!best || p->used > best->used)) best = p;
    }
    return best;
}

static bool store_next(prefix_cache *c)
{
    prefix_entry *p = next_to_store(c);
    if (!p) return false;
    p->stored = p->held = true;
    prefix_disk_store(c->disk, &p->image);
    return true;
}

void prefix_cache_tend(prefix_cache *c)
{
    if (c->disk) take_done(c);
}

void prefix_cache_store(prefix_cache *c)
{
    if (c->disk && !prefix_disk_busy(c->disk)) (void)store_next(c);
}

static status make_room(prefix_cache *c, prefix_image *p, const int32_t *tokens, int n, error *e)
{
    const king_config *kc = king_get_config(c->king);
    const size_t bytes = state_snap_room_bytes(kc, c->pages, n) + (size_t)n * sizeof *tokens +
                         (c->drafter ? drafter_state_bytes(c->drafter) : 0);
    if (bytes > c->budget)
        return error_set(e, E_LIMIT,
                         "prefix cache: an entry of %d tokens on the disk takes %zu bytes of "
                         "memory, the budget is %zu",
                         n, bytes, c->budget);
    status s;
    TRY(copy_tokens(p, tokens, n, e));
    do {
        s = state_snap_room(&p->snap, kc, c->pages, n, e);
    } while (s == E_LIMIT && prefix_cache_evict(c));
    TRY(s);
    return c->drafter ? drafter_state_new(&p->draft, c->drafter, e) : OK;
}

prefix_fetch prefix_cache_fetch(prefix_cache *c, const int32_t *tokens, int n)
{
    if (!c->disk) return PREFIX_HERE;
    int here = 0, coming = 0;
    for (int i = 0; i < c->n; i++) {
        const prefix_entry *p = &c->entries[i];
        if (common(p->image.tokens, p->image.n, tokens, n - 1) != p->image.n) continue;
        int *longest = p->arriving ? &coming : &here;
        if (p->image.n > *longest) *longest = p->image.n;
    }
    const int found = prefix_disk_find(c->disk, tokens, n - 1, here + PREFIX_LEAST - 1);
    if (found == 0) return PREFIX_HERE;
    if (found == coming) return PREFIX_COMING;
    if (prefix_disk_busy(c->disk)) return PREFIX_LATER;
    prefix_entry made = { .stored = true, .arriving = true, .held = true, .used = ++c->time };
    error e = { 0 };
    if (make_room(c, &made.image, tokens, found, &e)) {
        log_line(LOG_INFO, "%s", e.text);
        free_image(&made.image);
        return PREFIX_HERE;
    }
    add(c, &made);
    prefix_disk_load(c->disk, &made.image);
    return PREFIX_COMING;
}

/* What is not on the disk is written there, as long as the disk takes it. */
static void flush(prefix_cache *c)
{
    do {
        prefix_disk_wait(c->disk);
        take_done(c);
    } while (!c->disk_failing && store_next(c));
    prefix_disk_close(c->disk);
}

void prefix_cache_free(prefix_cache *c)
{
    if (!c) return;
    if (c->disk) flush(c);
    for (int i = 0; i < c->n; i++) free_image(&c->entries[i].image);
    mem_free(c);
}

void prefix_cache_get_stats(const prefix_cache *c, prefix_stats *out)
{
    *out = c->stats;
    out->bytes = c->bytes;
    out->entries = c->n;
    if (c->disk) prefix_disk_size(c->disk, &out->disk_bytes, &out->disk_files);
}
