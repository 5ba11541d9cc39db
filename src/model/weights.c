/* weights.c - from the mapped pack to tiles, in parallel over strips, one window of source pages at
 * a time. */
#include "model/weights.h"

#include "base/mem.h"
#include "base/banned.h"

enum { REGION_ALIGN = 64 };

typedef struct weights_item {
    matrix src;
    linear *to;
} weights_item;

void weights_init(weights *w)
{
    *w = (weights){ 0 };
    arena_init(&w->mem, 0);
}

void weights_free(weights *w)
{
    if (w->region) mem_unmap(w->region, w->bytes);
    mem_free(w->items);
    arena_free(&w->mem);
    *w = (weights){ 0 };
}

static status grow(weights *w, error *e)
{
    if (w->count < w->cap) return OK;
    const size_t cap = w->cap ? 2 * w->cap : 64;
    weights_item *items = mem_resize(w->items, cap * sizeof *items);
    if (!items) return error_set(e, E_NOMEM, "weights: no memory for a list of %zu matrices", cap);
    w->items = items;
    w->cap = cap;
    return OK;
}

status weights_matrix(weights *w, const pack *p, const char *path, int64_t out, int64_t in,
                      compute_mode mode, linear *to, error *e)
{
    TRY(grow(w, e));
    weights_item *item = &w->items[w->count];
    TRY(pack_matrix(p, path, out, in, &item->src, e));
    *to = (linear){ .rot = { item->src.block, item->src.signs }, .mode = mode };
    TRY(tile_plan(&to->w, &item->src, e));
    item->to = to;
    w->count++;
    return OK;
}

status weights_values(weights *w, const pack *p, const char *name, int rank, const int64_t *shape,
                      const float **out, error *e)
{
    size_t n = 1;
    for (int i = 0; i < rank; i++) n *= (size_t)shape[i];
    float *values = arena_array(&w->mem, n, sizeof *values);
    if (!values) return error_set(e, E_NOMEM, "%s: no memory for %zu values", name, n);
    TRY(pack_values(p, name, rank, shape, values, e));
    *out = values;
    return OK;
}

status weights_vector(weights *w, const pack *p, const char *name, int64_t n, const float **out,
                      error *e)
{
    return weights_values(w, p, name, 1, &n, out, e);
}

/* ---- filling ---- */

typedef struct fill_worker {
    status s;
    error e;
    int64_t code3;
} fill_worker;

typedef struct fill {
    const tile_matrix *w;
    const matrix *src;
    int piece, pieces; /* each worker fills this part of its own share, so its strips stay on its
                          own node */
    fill_worker *workers;
} fill;

static void fill_piece(void *arg, int worker, int workers)
{
    const fill *f = arg;
    fill_worker *me = &f->workers[worker];
    int from, to, at, end;
    pool_share(tile_strips(f->w), worker, workers, &from, &to);
    pool_share(to - from, f->piece, f->pieces, &at, &end);
    if (at == end) return;
    int64_t code3 = 0;
    me->s = tile_fill(f->w, f->src, from + at, from + end, &code3, &me->e);
    me->code3 += code3;
}

static status first_failure(const fill_worker *workers, int n, const char *path, error *e)
{
    for (int i = 0; i < n; i++) {
        if (workers[i].s) return error_set(e, workers[i].s, "%s: %s", path, workers[i].e.text);
    }
    return OK;
}

/* Fills every matrix; pages of sources are dropped when a window's worth has been read. */
static status fill_all(weights *w, const pack *p, pool *threads, fill_worker *workers,
                       weights_progress *progress, void *arg, error *e)
{
    uint64_t done = 0, unread = 0;
    size_t kept = 0; /* the first item whose source pages may still be resident */
    for (size_t i = 0; i < w->count; i++) {
        const weights_item *item = &w->items[i];
        const uint64_t source = matrix_bytes(&item->src), tiles = tile_bytes(&item->to->w);
        fill f = { .w = &item->to->w, .src = &item->src, .workers = workers };
        f.pieces = (int)(source / WEIGHTS_WINDOW) + 1;
        for (f.piece = 0; f.piece < f.pieces; f.piece++) {
            pool_run(threads, fill_piece, &f);
            TRY(first_failure(workers, pool_threads(threads), item->src.path, e));
            unread += source / (uint64_t)f.pieces;
            if (unread >= WEIGHTS_WINDOW) {
                for (; kept < i; kept++) pack_drop(p, &w->items[kept].src);
                pack_drop(p, &item->src);
                unread = 0;
            }
            if (progress)
                progress(arg, done + tiles * (uint64_t)(f.piece + 1) / (uint64_t)f.pieces,
                         w->bytes);
        }
        done += tiles;
    }
    for (; kept < w->count; kept++) pack_drop(p, &w->items[kept].src);
    for (int i = 0; i < pool_threads(threads); i++) w->code3 += workers[i].code3;
    return OK;
}

status weights_load(weights *w, const pack *p, compute *c, weights_progress *progress, void *arg,
                    error *e)
{
    size_t bytes = 0;
    for (size_t i = 0; i < w->count; i++) {
        bytes += (tile_bytes(&w->items[i].to->w) + REGION_ALIGN - 1) / REGION_ALIGN * REGION_ALIGN;
    }
    uint8_t *region = mem_map(bytes);
    if (!region)
        return error_set(e, E_NOMEM, "%s: no memory for %zu bytes of weights", pack_folder(p),
                         bytes);
    w->region = region;
    w->bytes = bytes;
    size_t at = 0;
    for (size_t i = 0; i < w->count; i++) {
        w->items[i].to->w.data = region + at;
        at += (tile_bytes(&w->items[i].to->w) + REGION_ALIGN - 1) / REGION_ALIGN * REGION_ALIGN;
    }
    pool *threads = compute_pool(c);
    fill_worker *workers = mem_array((size_t)pool_threads(threads), sizeof *workers);
    if (!workers) return error_set(e, E_NOMEM, "%s: no memory for loading", pack_folder(p));
    const status s = fill_all(w, p, threads, workers, progress, arg, e);
    mem_free(workers);
    return s;
}

/* Rows of one width may be wanted in every form that a matrix of this width reads. */
size_t weights_act_bytes(const weights *w, int rows)
{
    size_t most = 0;
    for (size_t i = 0; i < w->count; i++) {
        const int n_in = w->items[i].to->w.n_in;
        unsigned needs = 0;
        for (size_t j = 0; j < w->count; j++) {
            const linear *l = w->items[j].to;
            if (l->w.n_in == n_in) needs |= compute_needs(&l->w, l->mode);
        }
        const size_t bytes = compute_act_bytes(rows, n_in, needs);
        if (bytes > most) most = bytes;
    }
    return most;
}
