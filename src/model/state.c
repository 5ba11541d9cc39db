/* state.c - pages with reference counts, recurrent memory that only kept rows ever change, and
 * snapshots.
 *
 * A provisional pass writes three things: keys and values beyond `len`, the conv input rows behind
 * the window, and the tape. Taking rows back is therefore a matter of numbers: `len` grows by the
 * rows kept, and `pending` says how many rows of conv input and tape are part of the sequence. The
 * next pass slides the window by that number and applies the tape. */
#include "model/state.h"

#include "base/mem.h"
#include "base/banned.h"

/* ---- pages ---- */

struct state_pool {
    kv_layout layout;
    int n_pages, n_free;
    uint8_t *bytes;
    int32_t *refs; /* [n_pages] */
    int32_t *free; /* [n_free] stack of page numbers */
};

status state_pool_new(state_pool **out, const kv_layout *layout, int n_pages, error *e)
{
    if (n_pages < 1) return error_set(e, E_ARG, "key-value pages: %d, want at least 1", n_pages);
    state_pool *p = mem_zalloc(sizeof *p);
    if (!p) return error_set(e, E_NOMEM, "key-value pages: no memory");
    p->layout = *layout;
    p->n_pages = p->n_free = n_pages;
    p->refs = mem_array((size_t)n_pages, sizeof *p->refs);
    p->free = mem_array((size_t)n_pages, sizeof *p->free);
    const bool fits = layout->page_bytes <= SIZE_MAX / (size_t)n_pages;
    p->bytes = fits ? mem_map(layout->page_bytes * (size_t)n_pages) : NULL;
    if (!p->refs || !p->free || !p->bytes) {
        state_pool_free(p);
        return error_set(e, E_NOMEM, "key-value pages: no memory for %d pages of %zu bytes",
                         n_pages, layout->page_bytes);
    }
    for (int i = 0; i < n_pages; i++) p->free[i] = n_pages - 1 - i;
    *out = p;
    return OK;
}

void state_pool_free(state_pool *p)
{
    if (!p) return;
    CHECK(p->n_free == p->n_pages);
    if (p->bytes) mem_unmap(p->bytes, p->layout.page_bytes * (size_t)p->n_pages);
    mem_free(p->refs);
    mem_free(p->free);
    mem_free(p);
}

int state_pool_free_pages(const state_pool *p)
{
    return p->n_free;
}

int state_pool_pages(const state_pool *p)
{
    return p->n_pages;
}

const kv_layout *state_pool_layout(const state_pool *p)
{
    return &p->layout;
}

static int32_t *page_refs(const state_pool *p, const uint8_t *page)
{
    return &p->refs[(size_t)(page - p->bytes) / p->layout.page_bytes];
}

static uint8_t *page_new(state_pool *p)
{
    CHECK(p->n_free > 0);
    const int32_t i = p->free[--p->n_free];
    p->refs[i] = 1;
    return p->bytes + (size_t)i * p->layout.page_bytes;
}

static void page_release(state_pool *p, uint8_t *page)
{
    int32_t *refs = page_refs(p, page);
    if (--*refs == 0) p->free[p->n_free++] = (int32_t)(refs - p->refs);
}

static int pages_for(int positions)
{
    return (int)(((int64_t)positions + KV_PAGE - 1) / KV_PAGE);
}

/* ---- shapes ---- */

gdn_shape state_gdn_shape(const king_config *c)
{
    return (gdn_shape){ .n_k_head = c->gdn_k_heads,
                        .n_v_head = c->gdn_v_heads,
                        .k_dim = c->gdn_k_dim,
                        .v_dim = c->gdn_v_dim,
                        .taps = c->conv_taps };
}

/* Floats that one gated delta net layer keeps. */
typedef struct gdn_sizes {
    size_t recurrent; /* [n_v_head, v_dim, k_dim] */
    size_t window;    /* [taps - 1, channels] */
    size_t conv;      /* window and the input rows of a provisional pass */
    size_t k, delta, g;
} gdn_sizes;

static gdn_sizes gdn_sizes_of(const gdn_shape *s)
{
    const size_t rows = STATE_MAX_PROVISIONAL, channels = (size_t)gdn_channels(s);
    const size_t values = (size_t)s->n_v_head * (size_t)s->v_dim;
    gdn_sizes z = { .recurrent = values * (size_t)s->k_dim,
                    .window = (size_t)(s->taps - 1) * channels,
                    .k = rows * (size_t)s->n_k_head * (size_t)s->k_dim,
                    .delta = rows * values,
                    .g = rows * (size_t)s->n_v_head };
    z.conv = z.window + rows * channels;
    return z;
}

/* ---- sequence ---- */

struct state {
    king_config config;
    gdn_shape shape;
    gdn_sizes size;
    state_pool *pool;
    uint8_t **pages; /* [max_pages]; outside a pass exactly those that positions 0..len-1 need */
    int n_pages, max_pages, max_positions;
    int len; /* committed positions */
    /* rows of the last provisional pass that belong to the sequence, not applied yet */
    int pending;
    int tape; /* which of the two tapes holds them */
    int rows; /* of the pass that has begun, else 0 */
    row_kind kind;
    bool passed; /* its layers have run */
    float *memory;
    size_t bytes;
    float *recurrent; /* [n_gdn] x size.recurrent */
    float *conv;      /* [n_gdn] x size.conv: window, oldest row first, then input rows */
    float *tapes[2];  /* [n_gdn] x (k, delta, g) */
};

size_t state_bytes(const king_config *c)
{
    const gdn_shape shape = state_gdn_shape(c);
    const gdn_sizes z = gdn_sizes_of(&shape);
    return (size_t)c->n_gdn * (z.recurrent + z.conv + 2 * (z.k + z.delta + z.g)) * sizeof(float);
}

status state_new(state **out, const king_config *kc, state_pool *kv, int max_positions, error *e)
{
    const kv_layout *l = &kv->layout;
    if (l->n_layer != kc->n_attention || l->n_kv_head != kc->n_kv_head ||
        l->head_dim != kc->head_dim) {
        return error_set(
            e, E_ARG, "sequence: pages hold %d layers of %d x %d, the king has %d of %d x %d",
            l->n_layer, l->n_kv_head, l->head_dim, kc->n_attention, kc->n_kv_head, kc->head_dim);
    }
    if (max_positions < 1)
        return error_set(e, E_ARG, "sequence: %d positions, want at least 1", max_positions);
    state *s = mem_zalloc(sizeof *s);
    if (!s) return error_set(e, E_NOMEM, "sequence: no memory");
    s->config = *kc;
    s->shape = state_gdn_shape(kc);
    s->size = gdn_sizes_of(&s->shape);
    s->pool = kv;
    s->max_positions = max_positions;
    s->max_pages = pages_for(max_positions);
    s->bytes = state_bytes(kc);
    s->pages = mem_array((size_t)s->max_pages, sizeof *s->pages);
    s->memory = mem_map(s->bytes ? s->bytes : 1);
    if (!s->pages || !s->memory) {
        state_free(s);
        return error_set(e, E_NOMEM, "sequence: no memory for %zu bytes", state_bytes(kc));
    }
    const size_t n = (size_t)kc->n_gdn;
    s->recurrent = s->memory;
    s->conv = s->recurrent + n * s->size.recurrent;
    s->tapes[0] = s->conv + n * s->size.conv;
    s->tapes[1] = s->tapes[0] + n * (s->size.k + s->size.delta + s->size.g);
    *out = s;
    return OK;
}

static void release_pages(state *s, int from)
{
    while (s->n_pages > from) page_release(s->pool, s->pages[--s->n_pages]);
}

void state_free(state *s)
{
    if (!s) return;
    release_pages(s, 0);
    mem_free(s->pages);
    if (s->memory) mem_unmap(s->memory, s->bytes ? s->bytes : 1);
    mem_free(s);
}

void state_reset(state *s)
{
    release_pages(s, 0);
    s->len = s->pending = s->rows = 0;
    s->passed = false;
    const size_t n = (size_t)s->config.n_gdn;
    if (n == 0) return;
    memset(s->recurrent, 0, n * s->size.recurrent * sizeof(float));
    memset(s->conv, 0, n * s->size.conv * sizeof(float));
}

int state_len(const state *s)
{
    return s->len;
}

int state_rows(const state *s)
{
    return s->rows;
}

state_pool *state_get_pool(const state *s)
{
    return s->pool;
}

/* ---- begin, pass, commit ---- */

status state_begin(state *s, int rows, row_kind kind, error *e)
{
    CHECK(s->rows == 0 && rows > 0);
    CHECK(kind == ROWS_FINAL || rows <= STATE_MAX_PROVISIONAL);
    if (rows > s->max_positions - s->len) {
        return error_set(e, E_LIMIT, "sequence: %d rows at position %d, want at most %d positions",
                         rows, s->len, s->max_positions);
    }
    /* The page that the first row falls into may be shared with a snapshot: then it is copied. */
    const bool copies = s->len % KV_PAGE != 0 && *page_refs(s->pool, s->pages[s->n_pages - 1]) > 1;
    const int want = pages_for(s->len + rows);
    const int more = want - s->n_pages + (copies ? 1 : 0);
    if (more > s->pool->n_free) {
        return error_set(e, E_LIMIT, "sequence: %d key-value pages free, want %d", s->pool->n_free,
                         more);
    }
    if (copies) {
        uint8_t *own = page_new(s->pool), **last = &s->pages[s->n_pages - 1];
        memcpy(own, *last, s->pool->layout.page_bytes);
        page_release(s->pool, *last);
        *last = own;
    }
    while (s->n_pages < want) s->pages[s->n_pages++] = page_new(s->pool);
    s->rows = rows;
    s->kind = kind;
    s->passed = false;
    return OK;
}

/* The window of layer `gdn` moves to the front of its rows: rows pending.. of [old window; kept
 * rows]. */
static float *slide_window(state *s, int gdn)
{
    float *conv = s->conv + (size_t)gdn * s->size.conv;
    if (s->pending > 0) {
        const size_t channels = (size_t)gdn_channels(&s->shape);
        memmove(conv, conv + (size_t)s->pending * channels, s->size.window * sizeof(float));
    }
    return conv;
}

conv_job state_conv_job(state *s, int gdn, int row)
{
    return (conv_job){ .row = row, .rows = s->rows, .window = slide_window(s, gdn) };
}

void state_conv_keep(state *s, int gdn, const float *x)
{
    float *conv = s->conv + (size_t)gdn * s->size.conv;
    const size_t channels = (size_t)gdn_channels(&s->shape);
    const int window = s->shape.taps - 1;
    if (s->kind == ROWS_PROVISIONAL) {
        memcpy(conv + s->size.window, x, (size_t)s->rows * channels * sizeof(float));
        return;
    }
    /* final rows: the last rows of [window; x] are the new window */
    const int fresh = s->rows < window ? s->rows : window, old = window - fresh;
    memmove(conv, conv + (size_t)fresh * channels, (size_t)old * channels * sizeof(float));
    memcpy(conv + (size_t)old * channels, x + (size_t)(s->rows - fresh) * channels,
           (size_t)fresh * channels * sizeof(float));
}

static gdn_tape tape_of(const state *s, int which, int gdn)
{
    const size_t k = s->size.k, delta = s->size.delta, g = s->size.g;
    float *at = s->tapes[which] + (size_t)gdn * (k + delta + g);
    return (gdn_tape){ .k = at, .delta = at + k, .g = at + k + delta };
}

gdn_job state_gdn_job(state *s, int gdn, int row)
{
    return (gdn_job){ .row = row,
                      .rows = s->rows,
                      .state = s->recurrent + (size_t)gdn * s->size.recurrent,
                      .pending = s->pending,
                      .old = tape_of(s, s->tape, gdn),
                      .final = s->kind == ROWS_FINAL,
                      .tape = tape_of(s, 1 - s->tape, gdn) };
}

attn_job state_attn_job(const state *s, int row)
{
    return (attn_job){ .row = row,
                       .rows = s->rows,
                       .pos = s->len,
                       .first = 0,
                       .pages = s->pages,
                       .n_pages = s->n_pages };
}

void state_passed(state *s)
{
    CHECK(s->rows > 0 && !s->passed);
    s->passed = true;
    s->pending = 0;
    s->tape = 1 - s->tape;
}

void state_commit(state *s, int keep)
{
    CHECK(keep >= 0 && keep <= s->rows);
    CHECK(s->passed ? s->kind == ROWS_PROVISIONAL || keep == s->rows : keep == 0);
    s->len += keep;
    if (s->passed && s->kind == ROWS_PROVISIONAL) s->pending = keep;
    release_pages(s, pages_for(s->len));
    s->rows = 0;
    s->passed = false;
}

/* Brings window and recurrent state up to `len`, as the next pass would. */
static void apply_pending(state *s, compute *c)
{
    CHECK(s->rows == 0);
    if (s->pending == 0) return;
    for (int gdn = 0; gdn < s->config.n_gdn; gdn++) {
        slide_window(s, gdn);
        const gdn_job job = state_gdn_job(s, gdn, 0);
        compute_gdn(c, &s->shape, NULL, NULL, NULL, NULL, &job, 1);
    }
    s->pending = 0;
}

/* ---- snapshots ---- */

struct state_snap {
    king_config config;
    gdn_sizes size;
    state_pool *pool;
    int len;
    int n_pages;
    uint8_t **pages;
    float *recurrent; /* [n_gdn] x size.recurrent */
    float *window;    /* [n_gdn] x size.window */
};

static status snap_new(state_snap **out, const king_config *kc, state_pool *kv, int len, error *e)
{
    state_snap *p = mem_zalloc(sizeof *p);
    if (!p) return error_set(e, E_NOMEM, "snapshot: no memory");
    const gdn_shape shape = state_gdn_shape(kc);
    p->config = *kc;
    p->size = gdn_sizes_of(&shape);
    p->pool = kv;
    p->len = len;
    const size_t n = (size_t)kc->n_gdn, pages = (size_t)pages_for(len);
    const size_t bytes = n * (p->size.recurrent + p->size.window) * sizeof(float);
    p->pages = mem_array(pages, sizeof *p->pages);
    p->recurrent = mem_alloc(n * p->size.recurrent * sizeof(float));
    p->window = mem_alloc(n * p->size.window * sizeof(float));
    if (!p->pages || !p->recurrent || !p->window) {
        state_snap_free(p);
        return error_set(e, E_NOMEM, "snapshot: no memory for %zu bytes", bytes);
    }
    *out = p;
    return OK;
}

status state_snapshot(state *s, compute *c, state_snap **out, error *e)
{
    state_snap *p;
    TRY(snap_new(&p, &s->config, s->pool, s->len, e));
    apply_pending(s, c);
    const size_t n = (size_t)s->config.n_gdn, window = s->size.window * sizeof(float);
    memcpy(p->recurrent, s->recurrent, n * s->size.recurrent * sizeof(float));
    for (size_t i = 0; i < n; i++)
        memcpy(p->window + i * s->size.window, s->conv + i * s->size.conv, window);
    for (int i = 0; i < s->n_pages; i++) {
        p->pages[i] = s->pages[i];
        ++*page_refs(s->pool, s->pages[i]);
    }
    p->n_pages = s->n_pages;
    *out = p;
    return OK;
}

void state_snap_free(state_snap *p)
{
    if (!p) return;
    while (p->n_pages > 0) page_release(p->pool, p->pages[--p->n_pages]);
    mem_free(p->pages);
    mem_free(p->recurrent);
    mem_free(p->window);
    mem_free(p);
}

status state_restore(state *s, const state_snap *p, error *e)
{
    CHECK(s->rows == 0 && p->pool == s->pool);
    CHECK(p->config.n_gdn == s->config.n_gdn && p->size.recurrent == s->size.recurrent &&
          p->size.window == s->size.window);
    if (p->len > s->max_positions) {
        return error_set(e, E_LIMIT, "snapshot: %d positions, want at most %d", p->len,
                         s->max_positions);
    }
    for (int i = 0; i < p->n_pages; i++) ++*page_refs(p->pool, p->pages[i]);
    release_pages(s, 0);
    memcpy(s->pages, p->pages, (size_t)p->n_pages * sizeof *s->pages);
    s->n_pages = p->n_pages;
    const size_t n = (size_t)s->config.n_gdn, window = s->size.window * sizeof(float);
    memcpy(s->recurrent, p->recurrent, n * s->size.recurrent * sizeof(float));
    for (size_t i = 0; i < n; i++)
        memcpy(s->conv + i * s->size.conv, p->window + i * s->size.window, window);
    s->len = p->len;
    s->pending = 0;
    return OK;
}

int state_snap_len(const state_snap *p)
{
    return p->len;
}

int state_snap_pages(const state_snap *p)
{
    return p->n_pages;
}

int state_snap_shared(const state_snap *a, const state_snap *b)
{
    const int most = a->n_pages < b->n_pages ? a->n_pages : b->n_pages;
    int n = 0;
    while (n < most && a->pages[n] == b->pages[n]) n++;
    return n;
}

size_t state_snap_bytes(const state_snap *p)
{
    const size_t floats = (size_t)p->config.n_gdn * (p->size.recurrent + p->size.window);
    return sizeof *p + floats * sizeof(float) + (size_t)p->n_pages * sizeof *p->pages;
}

/* ---- snapshots as bytes: header, recurrent state, windows, pages ---- */

enum { SNAP_FIELDS = 16 };
static const char *const snap_field_name[SNAP_FIELDS] = {
    "magic",       "version",        "positions",        "gdn layers",
    "value heads", "value dim",      "key dim",          "key heads",
    "conv taps",   "key-value type", "attention layers", "key-value heads",
    "head dim",    "page positions", "page bytes",       "reserved"
};
static const int64_t snap_magic = 0x70616e73746f676e; /* "ngotsnap" */

static void snap_header(int64_t h[SNAP_FIELDS], const king_config *c, const kv_layout *l, int len)
{
    const int64_t values[SNAP_FIELDS] = { snap_magic,
                                          1,
                                          len,
                                          c->n_gdn,
                                          c->gdn_v_heads,
                                          c->gdn_v_dim,
                                          c->gdn_k_dim,
                                          c->gdn_k_heads,
                                          c->conv_taps,
                                          (int64_t)l->type,
                                          l->n_layer,
                                          l->n_kv_head,
                                          l->head_dim,
                                          KV_PAGE,
                                          (int64_t)l->page_bytes,
                                          0 };
    memcpy(h, values, sizeof values);
}

uint64_t state_snap_file_bytes(const state_snap *p)
{
    const uint64_t floats = (uint64_t)p->config.n_gdn * (p->size.recurrent + p->size.window);
    return SNAP_FIELDS * sizeof(int64_t) + floats * sizeof(float) +
           (uint64_t)p->n_pages * p->pool->layout.page_bytes;
}

status state_snap_write(const state_snap *p, state_put_fn *put, void *arg, error *e)
{
    int64_t h[SNAP_FIELDS];
    snap_header(h, &p->config, &p->pool->layout, p->len);
    TRY(put(arg, h, sizeof h, e));
    const size_t n = (size_t)p->config.n_gdn;
    TRY(put(arg, p->recurrent, n * p->size.recurrent * sizeof(float), e));
    TRY(put(arg, p->window, n * p->size.window * sizeof(float), e));
    for (int i = 0; i < p->n_pages; i++) TRY(put(arg, p->pages[i], p->pool->layout.page_bytes, e));
    return OK;
}

static status read_header(const state_snap *p, state_get_fn *get, void *arg, error *e)
{
    int64_t got[SNAP_FIELDS], want[SNAP_FIELDS];
    TRY(get(arg, got, sizeof got, e));
    snap_header(want, &p->config, &p->pool->layout, p->len);
    for (int i = 0; i < SNAP_FIELDS; i++) {
        if (got[i] != want[i]) {
            return error_set(e, E_FORMAT, "snapshot: %s: found %lld, want %lld", snap_field_name[i],
                             (long long)got[i], (long long)want[i]);
        }
    }
    return OK;
}

size_t state_snap_room_bytes(const king_config *kc, const state_pool *kv, int len)
{
    const gdn_shape shape = state_gdn_shape(kc);
    const gdn_sizes z = gdn_sizes_of(&shape);
    const size_t floats = (size_t)kc->n_gdn * (z.recurrent + z.window);
    return sizeof(state_snap) + floats * sizeof(float) +
           (size_t)pages_for(len) * (sizeof(uint8_t *) + kv->layout.page_bytes);
}

status state_snap_room(state_snap **out, const king_config *kc, state_pool *kv, int len, error *e)
{
    if (pages_for(len) > kv->n_free) {
        return error_set(e, E_LIMIT, "snapshot: %d key-value pages free, want %d", kv->n_free,
                         pages_for(len));
    }
    state_snap *p;
    TRY(snap_new(&p, kc, kv, len, e));
    while (p->n_pages < pages_for(len)) p->pages[p->n_pages++] = page_new(kv);
    *out = p;
    return OK;
}

status state_snap_fill(state_snap *p, state_get_fn *get, void *arg, error *e)
{
    TRY(read_header(p, get, arg, e));
    const size_t n = (size_t)p->config.n_gdn;
    TRY(get(arg, p->recurrent, n * p->size.recurrent * sizeof(float), e));
    TRY(get(arg, p->window, n * p->size.window * sizeof(float), e));
    for (int i = 0; i < p->n_pages; i++) TRY(get(arg, p->pages[i], p->pool->layout.page_bytes, e));
    return OK;
}

/* ---- peeks ---- */

/* How many layers of the same kind come before `layer`. */
static int layer_index(const king_config *c, int layer)
{
    int index = 0;
    for (int i = 0; i < layer; i++) index += c->is_attention[i] == c->is_attention[layer];
    return index;
}

void state_peek_gdn(state *s, compute *c, int layer, const float **recurrent, const float **conv)
{
    CHECK(!s->config.is_attention[layer]);
    apply_pending(s, c);
    const size_t gdn = (size_t)layer_index(&s->config, layer);
    *recurrent = s->recurrent + gdn * s->size.recurrent;
    *conv = s->conv + gdn * s->size.conv;
}

void state_peek_kv(const state *s, int layer, bool values, float *out)
{
    CHECK(s->config.is_attention[layer]);
    compute_kv_read(&s->pool->layout, layer_index(&s->config, layer), values, s->pages, s->n_pages,
                    s->len, out);
}
