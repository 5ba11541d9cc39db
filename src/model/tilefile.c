/* tilefile.c - see tilefile.h. */
#include "model/tilefile.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/banned.h"

enum {
    VERSION = 1,
    PAGE = 4096,             /* the region begins at a multiple of it */
    SPARE_BYTES = 64 << 20,  /* left free beside the file */
    FETCH_WINDOW = 256 << 20 /* bytes brought in between two reports of progress */
};

/* Numbers are little-endian, as are all machines that this runs on. */
typedef struct header {
    char magic[8];
    uint32_t version, layout;      /* of this header; of the tiles (TILE_LAYOUT) */
    uint64_t count, region, bytes; /* matrices; where the region begins; of the file */
    char identity[64];
    uint64_t sum; /* of the header, this field 0, and the entries */
    uint8_t zero[16];
} header;

typedef struct entry {
    char path[96];
    uint32_t type, scale_type;
    int32_t n_out, n_in, group, zero;
    uint64_t at, bytes; /* in the region */
    int64_t code3;
    uint64_t sum; /* of its tiles: the sum over its strips of strip_sum */
} entry;

_Static_assert(sizeof(header) == 128 && sizeof(entry) == 152, "the file's layout");

static const char magic[8] = { 'I', 'N', 'G', 'O', 'T', 'I', 'L', 'E' };

/* ---- sums ---- */

/* Against damage, not against malice: a changed word always changes its lane. */
static uint64_t sum_of(const uint8_t *p, size_t n, uint64_t seed)
{
    const uint64_t prime = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t lane[8];
    for (uint64_t j = 0; j < 8; j++) lane[j] = (seed + j) * prime + n;
    for (; n >= 64; n -= 64, p += 64)
        for (size_t j = 0; j < 8; j++) {
            uint64_t word;
            memcpy(&word, p + 8 * j, sizeof word);
            lane[j] = (lane[j] ^ word) * prime;
        }
    for (size_t j = 0; n > 0; j++) {
        uint64_t word = 0;
        const size_t part = n < 8 ? n : 8;
        memcpy(&word, p, part);
        lane[j] = (lane[j] ^ word) * prime;
        n -= part;
        p += part;
    }
    uint64_t sum = 0;
    for (size_t j = 0; j < 8; j++) sum = (sum ^ lane[j] ^ lane[j] >> 32) * prime;
    return sum ^ sum >> 29;
}

static uint64_t strips_sum(const tile_matrix *t, const uint8_t *tiles, int from, int to)
{
    uint64_t sum = 0;
    for (int s = from; s < to; s++, tiles += t->strip_bytes)
        sum += sum_of(tiles, t->strip_bytes, (uint64_t)s);
    return sum;
}

/* ---- the header that this pack's file has ---- */

static uint64_t region_at(size_t count)
{
    return (sizeof(header) + count * sizeof(entry) + PAGE - 1) / PAGE * PAGE;
}

static header header_of(const weights *w, const pack *p)
{
    header h = { .version = VERSION, .layout = TILE_LAYOUT, .count = w->count };
    memcpy(h.magic, magic, sizeof magic);
    memcpy(h.identity, pack_identity(p), sizeof h.identity);
    h.region = region_at(w->count);
    h.bytes = h.region + w->bytes;
    return h;
}

/* But for code3 and sum, which come from the tiles. */
static entry entry_of(const weights_item *item)
{
    const tile_matrix *t = &item->to->w;
    entry x = { .type = t->type,
                .scale_type = t->scale_type,
                .n_out = t->n_out,
                .n_in = t->n_in,
                .group = t->group,
                .at = item->at,
                .bytes = tile_bytes(t) };
    snprintf(x.path, sizeof x.path, "%s", item->src.path);
    return x;
}

static uint64_t header_sum(header h, const uint8_t *entries)
{
    h.sum = 0;
    return sum_of((const uint8_t *)&h, sizeof h, 0) +
           sum_of(entries, (size_t)h.count * sizeof(entry), 1);
}

status tilefile_path(const pack *p, const char *folder, char out[TILEFILE_MAX_PATH], error *e)
{
    char name[64];
    CHECK(strlen(pack_identity(p)) == sizeof((header){ 0 }).identity);
    snprintf(name, sizeof name, "%s-%.32s.tiles", pack_drafter(p) ? "drafter" : "king",
             pack_identity(p));
    return file_join(out, TILEFILE_MAX_PATH, folder, name, e);
}

/* ---- reading ---- */

static entry entry_in(const weights *w, size_t i)
{
    entry x;
    memcpy(&x, w->file.ptr + sizeof(header) + i * sizeof x, sizeof x);
    return x;
}

/* Names the first thing in which two entries differ. */
static status refuse_entry(const entry *found, const entry *want, const char *path, error *e)
{
    const struct {
        const char *what;
        uint64_t found, want;
    } numbers[] = {
        { "rows", (uint64_t)found->n_out, (uint64_t)want->n_out },
        { "columns", (uint64_t)found->n_in, (uint64_t)want->n_in },
        { "type of tile", found->type, want->type },
        { "type of scale", found->scale_type, want->scale_type },
        { "group", (uint64_t)found->group, (uint64_t)want->group },
        { "place", found->at, want->at },
        { "bytes", found->bytes, want->bytes },
    };
    if (strncmp(found->path, want->path, sizeof found->path) != 0)
        return error_set(e, E_FORMAT, "%s: found %.95s, want %s", path, found->path, want->path);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].found != numbers[i].want)
            return error_set(e, E_FORMAT, "%s: %s: %s: found %llu, want %llu", path, want->path,
                             numbers[i].what, (unsigned long long)numbers[i].found,
                             (unsigned long long)numbers[i].want);
    return error_set(e, E_FORMAT, "%s: %s: found bytes between its fields, want zeros", path,
                     want->path);
}

static status check_entries(const weights *w, const char *path, error *e)
{
    for (size_t i = 0; i < w->count; i++) {
        entry found = entry_in(w, i);
        const entry want = entry_of(&w->items[i]);
        found.code3 = 0;
        found.sum = 0;
        if (memcmp(&found, &want, sizeof found) != 0) return refuse_entry(&found, &want, path, e);
    }
    return OK;
}

static status check_header(const weights *w, const pack *p, const char *path, error *e)
{
    const file_map *m = &w->file;
    const header want = header_of(w, p);
    header h;
    if (m->len < sizeof h)
        return error_set(e, E_FORMAT, "%s: found %zu bytes, want %llu", path, m->len,
                         (unsigned long long)want.bytes);
    memcpy(&h, m->ptr, sizeof h);
    if (memcmp(h.magic, magic, sizeof magic) != 0)
        return error_set(e, E_FORMAT, "%s: not a file of tiles", path);
    if (h.version != VERSION || h.layout != TILE_LAYOUT)
        return error_set(e, E_FORMAT, "%s: found version %u, tiles of layout %u, want %d and %d",
                         path, (unsigned)h.version, (unsigned)h.layout, (int)VERSION,
                         (int)TILE_LAYOUT);
    if (memcmp(h.identity, want.identity, sizeof h.identity) != 0)
        return error_set(e, E_FORMAT, "%s: found tiles of the pack %.16s..., want %.16s...", path,
                         h.identity, want.identity);
    if (h.count != want.count || h.region != want.region || h.bytes != want.bytes)
        return error_set(e, E_FORMAT, "%s: found %llu matrices in %llu bytes, want %llu in %llu",
                         path, (unsigned long long)h.count, (unsigned long long)h.bytes,
                         (unsigned long long)want.count, (unsigned long long)want.bytes);
    if (m->len != want.bytes)
        return error_set(e, E_FORMAT, "%s: found %zu bytes, want %llu", path, m->len,
                         (unsigned long long)want.bytes);
    if (header_sum(h, m->ptr + sizeof h) != h.sum)
        return error_set(e, E_FORMAT, "%s: the header is damaged", path);
    return check_entries(w, path, e);
}

status tilefile_open(weights *w, const pack *p, const char *path, error *e)
{
    TRY(file_map_open(&w->file, path, e));
    const status s = check_header(w, p, path, e);
    if (s) {
        file_map_close(&w->file);
        return s;
    }
    for (size_t i = 0; i < w->count; i++) w->items[i].code3 = entry_in(w, i).code3;
    weights_place(w, w->file.ptr + region_at(w->count));
    return OK;
}

typedef struct fetching {
    const weights *w;
    size_t from, to; /* of the region */
} fetching;

static void fetch_share(void *arg, int worker, int workers)
{
    const fetching *f = arg;
    const size_t base = (size_t)(f->w->region - f->w->file.ptr);
    const size_t share = (f->to - f->from + (size_t)workers - 1) / (size_t)workers;
    const size_t from = f->from + share * (size_t)worker;
    const size_t to = from + share < f->to ? from + share : f->to;
    if (from < to) file_map_fetch(&f->w->file, base + from, base + to);
}

void tilefile_fetch(const weights *w, compute *c, weights_progress *progress, void *arg)
{
    const size_t base = (size_t)(w->region - w->file.ptr);
    fetching f = { .w = w };
    file_map_ahead(&w->file, base, base + FETCH_WINDOW);
    for (; f.from < w->bytes; f.from = f.to) {
        f.to = w->bytes - f.from < FETCH_WINDOW ? w->bytes : f.from + FETCH_WINDOW;
        file_map_ahead(&w->file, base + f.to, base + f.to + FETCH_WINDOW);
        pool_run(compute_pool(c), fetch_share, &f);
        if (progress) progress(arg, f.to, w->bytes);
    }
}

typedef struct checking {
    const weights *w;
    size_t item;
    atomic_uint_least64_t *sums; /* [count] of the tiles */
} checking;

static status sum_strips(void *arg, size_t item, int from, int to, const uint8_t *tiles, error *e)
{
    const checking *k = arg;
    (void)e;
    atomic_fetch_add(&k->sums[item], strips_sum(&k->w->items[item].to->w, tiles, from, to));
    return OK;
}

static void sum_share(void *arg, int worker, int workers)
{
    const checking *k = arg;
    const tile_matrix *t = &k->w->items[k->item].to->w;
    int from, to;
    pool_share(tile_strips(t), worker, workers, &from, &to);
    (void)sum_strips(arg, k->item, from, to, t->data + (size_t)from * t->strip_bytes, NULL);
}

static status compare_sums(const checking *k, const char *what, error *e)
{
    for (size_t i = 0; i < k->w->count; i++) {
        if (k->sums[i] != entry_in(k->w, i).sum)
            return error_set(e, E_FORMAT, "the tiles of %s %s", k->w->items[i].src.path, what);
        k->sums[i] = 0;
    }
    return OK;
}

static status check_all(checking *k, weights *w, const pack *p, compute *c,
                        weights_progress *progress, void *arg, error *e)
{
    for (k->item = 0; k->item < w->count; k->item++) {
        pool_run(compute_pool(c), sum_share, k);
        if (progress) progress(arg, w->items[k->item].at, w->bytes);
    }
    TRY(compare_sums(k, "are damaged", e));
    TRY(weights_stream(w, p, c, sum_strips, k, progress, arg, e));
    return compare_sums(k, "are not those of the pack", e);
}

status tilefile_check(weights *w, const pack *p, compute *c, weights_progress *progress, void *arg,
                      error *e)
{
    checking k = { .w = w, .sums = mem_array(w->count, sizeof *k.sums) };
    if (!k.sums) return error_set(e, E_NOMEM, "%s: no memory", pack_folder(p));
    const status s = check_all(&k, w, p, c, progress, arg, e);
    mem_free(k.sums);
    return s;
}

/* ---- writing ---- */

typedef struct writing {
    checking sums; /* strips come in any order, and a sum does not mind */
    file_writer *file;
} writing;

static status write_strips(void *arg, size_t item, int from, int to, const uint8_t *tiles, error *e)
{
    writing *x = arg;
    const weights *w = x->sums.w;
    const tile_matrix *t = &w->items[item].to->w;
    const uint64_t at = region_at(w->count) + w->items[item].at;
    (void)sum_strips(&x->sums, item, from, to, tiles, e);
    return file_writer_put_at(x->file, at + (uint64_t)from * t->strip_bytes, tiles,
                              (size_t)(to - from) * t->strip_bytes, e);
}

static status write_header(const writing *x, const pack *p, entry *entries, error *e)
{
    const weights *w = x->sums.w;
    header h = header_of(w, p);
    for (size_t i = 0; i < w->count; i++) {
        entries[i] = entry_of(&w->items[i]);
        entries[i].code3 = w->items[i].code3;
        entries[i].sum = x->sums.sums[i];
    }
    h.sum = header_sum(h, (const uint8_t *)entries);
    TRY(file_writer_put_at(x->file, 0, &h, sizeof h, e));
    return file_writer_put_at(x->file, sizeof h, entries, w->count * sizeof *entries, e);
}

/* Gaps between matrices are holes, which read as zeros; one at the end needs its last byte. */
static status write_all(weights *w, const pack *p, compute *c, writing *x, entry *entries,
                        weights_progress *progress, void *arg, error *e)
{
    const uint64_t end = region_at(w->count) + w->bytes;
    TRY(file_writer_put_at(x->file, end - 1, "", 1, e));
    TRY(weights_stream(w, p, c, write_strips, x, progress, arg, e));
    return write_header(x, p, entries, e);
}

status tilefile_write(weights *w, const pack *p, compute *c, const char *path,
                      weights_progress *progress, void *arg, error *e)
{
    char folder[TILEFILE_MAX_PATH];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    TRY(file_make_dirs(folder[0] ? folder : "/", e));
    TRY(file_want_space(folder[0] ? folder : "/", header_of(w, p).bytes + SPARE_BYTES, e));
    writing x = { .sums = { .w = w, .sums = mem_array(w->count, sizeof *x.sums.sums) } };
    entry *entries = mem_array(w->count, sizeof *entries);
    status s = x.sums.sums && entries ? file_writer_open(&x.file, path, e)
                                      : error_set(e, E_NOMEM, "%s: no memory", path);
    if (s == OK) {
        s = write_all(w, p, c, &x, entries, progress, arg, e);
        if (s == OK) s = file_writer_commit(x.file, e);
        else file_writer_abort(x.file);
    }
    mem_free(entries);
    mem_free(x.sums.sums);
    return s;
}
