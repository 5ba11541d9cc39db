/* weights.c - from the mapped pack to tiles, in parallel over strips, one window of source pages at
 * a time. */
#include "model/weights.h"

#include "base/mem.h"
#include "base/banned.h"

void weights_init(weights *w)
{
    *w = (weights){ .file.fd = -1 };
    arena_init(&w->mem, 0);
}

void weights_free(weights *w)
{
    if (w->file.ptr) file_map_close(&w->file);
    else if (w->region) mem_unmap((void *)(uintptr_t)w->region, w->bytes);
    mem_free(w->items);
    arena_free(&w->mem);
    *w = (weights){ .file.fd = -1 };
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
    item->at = w->bytes;
    item->code3 = 0;
    w->bytes += (tile_bytes(&to->w) + WEIGHTS_ALIGN - 1) / WEIGHTS_ALIGN * WEIGHTS_ALIGN;
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

/* ---- making tiles ---- */

typedef struct fill_worker {
    uint8_t *portion; /* [portion bytes] with a sink */
    status s;
    error e;
    int64_t code3; /* of the matrix being filled */
} fill_worker;

typedef struct fill {
    weights *w;
    size_t item;
    uint8_t *region; /* where tiles go, or NULL: to the sink */
    weights_sink *sink;
    void *sink_arg;
    /* each worker fills this part of its own share, so its strips stay on its own node */
    int piece, pieces;
    fill_worker *workers;
} fill;

static int portion_strips(const tile_matrix *t)
{
    return t->strip_bytes < WEIGHTS_PORTION ? (int)(WEIGHTS_PORTION / t->strip_bytes) : 1;
}

static size_t portion_bytes(const weights *w)
{
    size_t most = 0;
    for (size_t i = 0; i < w->count; i++) {
        const tile_matrix *t = &w->items[i].to->w;
        const size_t bytes = (size_t)portion_strips(t) * t->strip_bytes;
        if (bytes > most) most = bytes;
    }
    return most;
}

/* Strips [from, to), portion by portion. */
static status fill_strips(const fill *f, fill_worker *me, int from, int to)
{
    const weights_item *item = &f->w->items[f->item];
    const tile_matrix *t = &item->to->w;
    const int step = f->sink ? portion_strips(t) : to - from;
    for (int at = from; at < to; at += step) {
        const int end = at + step < to ? at + step : to;
        uint8_t *out = f->sink ? me->portion : f->region + item->at + (size_t)at * t->strip_bytes;
        int64_t code3 = 0;
        TRY(tile_fill(t, &item->src, at, end, out, &code3, &me->e));
        me->code3 += code3;
        if (f->sink) TRY(f->sink(f->sink_arg, f->item, at, end, out, &me->e));
    }
    return OK;
}

static void fill_piece(void *arg, int worker, int workers)
{
    const fill *f = arg;
    fill_worker *me = &f->workers[worker];
    int from, to, at, end;
    pool_share(tile_strips(&f->w->items[f->item].to->w), worker, workers, &from, &to);
    pool_share(to - from, f->piece, f->pieces, &at, &end);
    me->s = fill_strips(f, me, from + at, from + end);
}

static status first_failure(const fill_worker *workers, int n, const char *path, error *e)
{
    for (int i = 0; i < n; i++)
        if (workers[i].s) return error_set(e, workers[i].s, "%s: %s", path, workers[i].e.text);
    return OK;
}

/* Where reading the sources stands. */
typedef struct reading {
    const pack *pack;
    size_t ahead, kept; /* the first item not announced yet; the first one not dropped yet */
    uint64_t announced, unread; /* bytes announced and not begun; read since the last drop */
} reading;

static void read_ahead(reading *r, const weights *w, size_t item)
{
    if (item > 0) r->announced -= matrix_bytes(&w->items[item - 1].src);
    for (; r->ahead < w->count && r->announced < WEIGHTS_WINDOW; r->ahead++) {
        pack_ahead(r->pack, &w->items[r->ahead].src);
        r->announced += matrix_bytes(&w->items[r->ahead].src);
    }
}

/* Gives pages back when a window's worth has been read; all of them before item `to`. */
static void drop_read(reading *r, const weights *w, uint64_t bytes, size_t to)
{
    r->unread += bytes;
    if (r->unread < WEIGHTS_WINDOW) return;
    for (; r->kept < to; r->kept++) pack_drop(r->pack, &w->items[r->kept].src);
    if (to < w->count) pack_drop(r->pack, &w->items[to].src);
    r->unread = 0;
}

static status fill_all(fill *f, const pack *p, pool *threads, weights_progress *progress, void *arg,
                       error *e)
{
    weights *w = f->w;
    reading r = { .pack = p };
    uint64_t done = 0;
    for (f->item = 0; f->item < w->count; f->item++) {
        weights_item *item = &w->items[f->item];
        const uint64_t source = matrix_bytes(&item->src), tiles = tile_bytes(&item->to->w);
        read_ahead(&r, w, f->item);
        f->pieces = (int)(source / WEIGHTS_WINDOW) + 1;
        for (f->piece = 0; f->piece < f->pieces; f->piece++) {
            pool_run(threads, fill_piece, f);
            TRY(first_failure(f->workers, pool_threads(threads), item->src.path, e));
            drop_read(&r, w, source / (uint64_t)f->pieces, f->item);
            if (progress)
                progress(arg, done + tiles * (uint64_t)(f->piece + 1) / (uint64_t)f->pieces,
                         w->bytes);
        }
        done += tiles;
        item->code3 = 0;
        for (int i = 0; i < pool_threads(threads); i++) {
            item->code3 += f->workers[i].code3;
            f->workers[i].code3 = 0;
        }
    }
    drop_read(&r, w, WEIGHTS_WINDOW, w->count);
    return OK;
}

static status fill_with(fill *f, const pack *p, compute *c, weights_progress *progress, void *arg,
                        error *e)
{
    pool *threads = compute_pool(c);
    const int n = pool_threads(threads);
    const size_t portion = f->sink ? portion_bytes(f->w) : 0;
    f->workers = mem_array((size_t)n, sizeof *f->workers);
    uint8_t *portions = mem_alloc((size_t)n * portion);
    status s = OK;
    if (!f->workers || !portions) s = error_set(e, E_NOMEM, "%s: no memory", pack_folder(p));
    for (int i = 0; s == OK && i < n; i++) f->workers[i].portion = portions + (size_t)i * portion;
    if (s == OK) s = fill_all(f, p, threads, progress, arg, e);
    mem_free(portions);
    mem_free(f->workers);
    return s;
}

void weights_place(weights *w, const uint8_t *region)
{
    w->region = region;
    for (size_t i = 0; i < w->count; i++) /* only read from now on */
        w->items[i].to->w.data = region ? (uint8_t *)(uintptr_t)region + w->items[i].at : NULL;
}

status weights_fill(weights *w, const pack *p, compute *c, weights_progress *progress, void *arg,
                    error *e)
{
    uint8_t *region = mem_map(w->bytes);
    if (!region)
        return error_set(e, E_NOMEM, "%s: no memory for %zu bytes of weights", pack_folder(p),
                         w->bytes);
    weights_place(w, region);
    fill f = { .w = w, .region = region };
    return fill_with(&f, p, c, progress, arg, e);
}

status weights_stream(weights *w, const pack *p, compute *c, weights_sink *sink, void *sink_arg,
                      weights_progress *progress, void *arg, error *e)
{
    fill f = { .w = w, .sink = sink, .sink_arg = sink_arg };
    return fill_with(&f, p, c, progress, arg, e);
}

int64_t weights_code3(const weights *w)
{
    int64_t n = 0;
    for (size_t i = 0; i < w->count; i++) n += w->items[i].code3;
    return n;
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
