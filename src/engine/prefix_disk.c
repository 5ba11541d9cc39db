/* prefix_disk.c - a folder of entries, and the thread that reads and writes them. */
#include "engine/prefix_disk.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/banned.h"

#define SUFFIX ".prefix"
enum {
    HEX = 64,          /* digits of a SHA-256 */
    NAME_HEX = 16,     /* of which so many are in a name */
    PIECE = 1 << 20,   /* bytes between two looks at whether storing is to be given up */
    STALE_S = 60 * 60, /* a file that was begun so long ago belongs to nobody any more */
    MAX_PATH = 4096
};

/* "FINGERPRINT-TOKENS-HASH.prefix": names of one model are in order of their lengths. */
typedef struct disk_file {
    char name[64];
    uint64_t bytes;
    int64_t used; /* ns */
    bool own;     /* of this model: the next two are known */
    int n;
    uint64_t hash;
} disk_file;

typedef struct listing {
    disk_file *files; /* [n] in order of names */
    size_t n, room;
    uint64_t bytes;
} listing;

typedef enum phase { IDLE, RUNNING, ENDED } phase;

struct prefix_disk {
    char dir[MAX_PATH];
    char model[HEX + 1]; /* fingerprint */
    uint64_t budget;
    void (*notify)(void *arg);
    void *notify_arg;
    pthread_t thread;
    atomic_bool abandoned;

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    bool quit;
    phase phase;
    disk_job job;
    bool holds; /* the job uses the image */
    prefix_image image;
    status result;
    error error;
    listing known; /* as of the last look into the folder */
};

/* ---- names ---- */

static uint64_t hash_begin(const prefix_disk *d)
{
    return rng_mix(strtoull(d->model + HEX - NAME_HEX, NULL, 16));
}

static uint64_t hash_add(uint64_t hash, int32_t token)
{
    return rng_mix(hash ^ (uint32_t)token);
}

static uint64_t hash_of(const prefix_disk *d, const int32_t *tokens, int n)
{
    uint64_t hash = hash_begin(d);
    for (int i = 0; i < n; i++) hash = hash_add(hash, tokens[i]);
    return hash;
}

static status path_of(const prefix_disk *d, const prefix_image *p, char path[MAX_PATH], error *e)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%.*s-%08d-%016llx" SUFFIX, NAME_HEX, d->model, p->n,
                   (unsigned long long)hash_of(d, p->tokens, p->n));
    return file_join(path, MAX_PATH, d->dir, name, e);
}

/* ---- the folder ---- */

typedef struct look {
    const prefix_disk *d;
    listing *out;
} look;

static void remove_stale(const char *path, const struct stat *st)
{
    if (time(NULL) - st->st_mtime > STALE_S) (void)unlink(path);
}

static status look_at(void *arg, const char *name, error *e)
{
    const look *l = arg;
    char path[MAX_PATH];
    struct stat st;
    unsigned long long hash;
    const size_t len = strlen(name), tail = sizeof SUFFIX - 1;
    disk_file f = { .own = strncmp(name, l->d->model, NAME_HEX) == 0 };
    TRY(file_join(path, sizeof path, l->d->dir, name, e));
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) return OK;
    if (strstr(name, SUFFIX ".")) remove_stale(path, &st);
    if (len < tail || len >= sizeof f.name || strcmp(name + len - tail, SUFFIX) != 0) return OK;
    memcpy(f.name, name, len + 1);
    f.bytes = (uint64_t)st.st_size;
    f.used = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    if (f.own) f.own = sscanf(name + NAME_HEX, "-%8d-%16llx" SUFFIX, &f.n, &hash) == 2;
    if (f.own) f.hash = hash;
    listing *out = l->out;
    if (out->n == out->room) {
        const size_t room = out->room ? 2 * out->room : 64;
        disk_file *more = mem_resize(out->files, room * sizeof *more);
        if (!more) return error_set(e, E_NOMEM, "%s: no memory for its files", l->d->dir);
        out->files = more;
        out->room = room;
    }
    out->files[out->n++] = f;
    out->bytes += f.bytes;
    return OK;
}

static void forget(listing *l, size_t i)
{
    l->bytes -= l->files[i].bytes;
    l->n--;
    memmove(l->files + i, l->files + i + 1, (l->n - i) * sizeof *l->files);
}

/* Deletes what was not used for longest until `more` bytes fit beside the rest. */
static void trim(const prefix_disk *d, listing *l, uint64_t more)
{
    while (l->n && l->bytes + more > d->budget) {
        char path[MAX_PATH];
        size_t oldest = 0;
        for (size_t i = 1; i < l->n; i++)
            if (l->files[i].used < l->files[oldest].used) oldest = i;
        if (file_join(path, sizeof path, d->dir, l->files[oldest].name, NULL) == OK)
            (void)unlink(path);
        forget(l, oldest);
    }
}

/* Looks into the folder and makes room in it. */
static status refresh(prefix_disk *d, uint64_t more, error *e)
{
    listing l = { 0 };
    look at = { d, &l };
    const status s = file_list(d->dir, look_at, &at, e);
    if (s) {
        mem_free(l.files);
        return s;
    }
    trim(d, &l, more);
    pthread_mutex_lock(&d->lock);
    const listing old = d->known;
    d->known = l;
    pthread_mutex_unlock(&d->lock);
    mem_free(old.files);
    return OK;
}

/* ---- files ---- */

typedef struct header {
    int64_t magic, version, n, first_turn, draft;
    char model[HEX];
} header;

static header header_of(const prefix_disk *d, const prefix_image *p)
{
    header h = { 0x786966657270676e, /* "ngprefix" */
                 1,
                 p->n,
                 p->first_turn,
                 p->draft != NULL,
                 { 0 } };
    memcpy(h.model, d->model, HEX);
    return h;
}

typedef struct stream {
    prefix_disk *d;
    file_writer *to;
    file_reader from;
    digest *sum;
} stream;

static status put(void *arg, const void *bytes, size_t n, error *e)
{
    stream *f = arg;
    const uint8_t *from = bytes;
    digest_put(f->sum, bytes, n);
    while (n > 0) {
        const size_t piece = n < PIECE ? n : PIECE;
        if (atomic_load(&f->d->abandoned))
            return error_set(e, E_CANCELLED, "%s: an entry was given up half written", f->d->dir);
        TRY(file_writer_put(f->to, from, piece, e));
        from += piece;
        n -= piece;
    }
    return OK;
}

static status get(void *arg, void *bytes, size_t n, error *e)
{
    stream *f = arg;
    TRY(file_reader_get(&f->from, bytes, n, e));
    digest_put(f->sum, bytes, n);
    return OK;
}

static status put_image(stream *f, const prefix_image *p, error *e)
{
    const header h = header_of(f->d, p);
    TRY(put(f, &h, sizeof h, e));
    TRY(put(f, p->tokens, (size_t)p->n * sizeof *p->tokens, e));
    TRY(state_snap_write(p->snap, put, f, e));
    return p->draft ? drafter_state_write(p->draft, put, f, e) : OK;
}

static void release_image(prefix_disk *d)
{
    pthread_mutex_lock(&d->lock);
    d->holds = false;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
}

static status write_file(prefix_disk *d, const prefix_image *p, const char *path, error *e)
{
    stream f = { .d = d };
    char sum[HEX + 1];
    TRY(file_writer_open(&f.to, path, e));
    status s = digest_open(&f.sum, DIGEST_SHA256, e);
    if (s == OK) {
        s = put_image(&f, p, e);
        digest_hex(f.sum, sum);
    }
    if (s == OK) s = file_writer_put(f.to, sum, HEX, e);
    if (s) {
        file_writer_abort(f.to);
        return s;
    }
    release_image(d); /* what follows is waiting for the disk */
    return file_writer_commit(f.to, e);
}

static status store(prefix_disk *d, const prefix_image *p, error *e)
{
    char path[MAX_PATH];
    TRY(path_of(d, p, path, e));
    if (utimensat(AT_FDCWD, path, NULL, 0) == 0) return OK; /* there: now it is the newest */
    const uint64_t bytes = state_snap_file_bytes(p->snap) +
                           (p->draft ? drafter_state_file_bytes(p->draft) : 0) + sizeof(header) +
                           (uint64_t)p->n * sizeof *p->tokens + HEX;
    if (bytes > d->budget)
        return error_set(e, E_LIMIT,
                         "%s: an entry of %d tokens takes %llu bytes, the budget is %llu", d->dir,
                         p->n, (unsigned long long)bytes, (unsigned long long)d->budget);
    TRY(refresh(d, bytes, e));
    TRY(write_file(d, p, path, e));
    return refresh(d, 0, e);
}

/* Anything that is not as it was written is E_FORMAT. */
static status get_image(stream *f, prefix_image *p, error *e)
{
    header h;
    int32_t some[1024];
    TRY(get(f, &h, sizeof h, e));
    p->first_turn = h.first_turn != 0;
    header want = header_of(f->d, p);
    want.draft = h.draft;
    if (memcmp(&h, &want, sizeof h) != 0)
        return error_set(e, E_FORMAT, "%s: the header is that of another model, length or version",
                         f->from.path);
    for (int at = 0; at < p->n;) {
        const int n = p->n - at < 1024 ? p->n - at : 1024;
        TRY(get(f, some, (size_t)n * sizeof *some, e));
        if (memcmp(some, p->tokens + at, (size_t)n * sizeof *some) != 0)
            return error_set(e, E_FORMAT, "%s: its tokens are not those of its name", f->from.path);
        at += n;
    }
    TRY(state_snap_fill(p->snap, get, f, e));
    if (!h.draft) {
        if (p->draft) drafter_state_reset(p->draft, p->n);
        return OK;
    }
    if (!p->draft)
        return error_set(e, E_FORMAT, "%s: a drafter's context, and there is no drafter",
                         f->from.path);
    TRY(drafter_state_read(p->draft, get, f, e));
    if (drafter_state_len(p->draft) == p->n) return OK;
    return error_set(e, E_FORMAT, "%s: the drafter's context ends elsewhere", f->from.path);
}

static status read_file(prefix_disk *d, prefix_image *p, const char *path, error *e)
{
    stream f = { .d = d };
    char sum[HEX + 1], want[HEX];
    TRY(file_reader_open(&f.from, path, e));
    status s = digest_open(&f.sum, DIGEST_SHA256, e);
    if (s == OK) {
        s = get_image(&f, p, e);
        digest_hex(f.sum, sum);
    }
    if (s == OK) s = file_reader_get(&f.from, want, HEX, e);
    if (s == OK && memcmp(sum, want, HEX) != 0)
        s = error_set(e, E_FORMAT, "%s: the checksum is wrong", path);
    if (s == OK && !file_reader_at_end(&f.from))
        s = error_set(e, E_FORMAT, "%s: bytes after its end", path);
    file_reader_close(&f.from);
    return s;
}

/* The file that failed is not tried again. It is deleted if it is at fault: where memory, files or
 * rights are wanting it may serve another day. Another process may have deleted it before. */
static status load(prefix_disk *d, prefix_image *p, error *e)
{
    char path[MAX_PATH];
    TRY(path_of(d, p, path, e));
    status s = read_file(d, p, path, e);
    if (s == OK) {
        (void)utimensat(AT_FDCWD, path, NULL, 0);
        return OK;
    }
    if (!file_exists(path)) s = error_set(e, E_CANCELLED, "%s: it is gone", path);
    else if (!str_starts(str_from(e->text), str_from(path))) s = error_prefix(e, s, "%s", path);
    if (s == E_FORMAT) (void)unlink(path);
    pthread_mutex_lock(&d->lock);
    const uint64_t hash = hash_of(d, p->tokens, p->n);
    for (size_t i = 0; i < d->known.n; i++) {
        const disk_file *f = &d->known.files[i];
        if (!f->own || f->n != p->n || f->hash != hash) continue;
        forget(&d->known, i);
        break;
    }
    pthread_mutex_unlock(&d->lock);
    return s;
}

/* ---- the thread ---- */

static void work(prefix_disk *d)
{
    prefix_image image = d->image;
    error e = { 0 };
    const status s = d->job == DISK_STORE ? store(d, &image, &e) : load(d, &image, &e);
    pthread_mutex_lock(&d->lock);
    d->image = image;
    d->result = s;
    d->error = e;
    d->holds = false;
    d->phase = ENDED;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    if (d->notify) d->notify(d->notify_arg);
}

static void *run(void *arg)
{
    prefix_disk *d = arg;
    for (;;) {
        pthread_mutex_lock(&d->lock);
        while (d->phase != RUNNING && !d->quit) pthread_cond_wait(&d->changed, &d->lock);
        const bool go = d->phase == RUNNING;
        pthread_mutex_unlock(&d->lock);
        if (!go) return NULL;
        work(d);
    }
}

static status make_dir(const char *dir, error *e)
{
    if (file_is_dir(dir)) return OK;
    TRY(file_make_dirs(dir, e));
    (void)chmod(dir, 0700); /* conversations are nobody else's business */
    return OK;
}

static status start(prefix_disk *d, const prefix_disk_options *o, error *e)
{
    if (strlen(o->dir) + 128 > sizeof d->dir)
        return error_set(e, E_ARG, "cache_dir: a path of %zu bytes is too long", strlen(o->dir));
    memcpy(d->dir, o->dir, strlen(o->dir) + 1);
    TRY(digest_sha256(o->model, strlen(o->model), d->model, e));
    TRY(make_dir(d->dir, e));
    TRY(refresh(d, 0, e));
    if (pthread_create(&d->thread, NULL, run, d) == 0) return OK;
    return error_set(e, E_IO, "prefix cache: the system gives no thread");
}

static void free_all(prefix_disk *d)
{
    pthread_mutex_destroy(&d->lock);
    pthread_cond_destroy(&d->changed);
    mem_free(d->known.files);
    mem_free(d);
}

status prefix_disk_open(prefix_disk **out, const prefix_disk_options *o, error *e)
{
    prefix_disk *d = mem_zalloc(sizeof *d);
    if (!d) return error_set(e, E_NOMEM, "prefix cache: no memory");
    d->budget = o->budget;
    d->notify = o->notify;
    d->notify_arg = o->notify_arg;
    atomic_init(&d->abandoned, false);
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->changed, NULL);
    const status s = start(d, o, e);
    if (s) {
        free_all(d);
        return s;
    }
    *out = d;
    return OK;
}

void prefix_disk_close(prefix_disk *d)
{
    if (!d) return;
    pthread_mutex_lock(&d->lock);
    d->quit = true;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    pthread_join(d->thread, NULL);
    free_all(d);
}

/* ---- asking ---- */

int prefix_disk_find(prefix_disk *d, const int32_t *tokens, int n, int above)
{
    int found = 0, at = 0;
    uint64_t hash = hash_begin(d);
    pthread_mutex_lock(&d->lock);
    for (size_t i = 0; i < d->known.n; i++) {
        const disk_file *f = &d->known.files[i];
        if (!f->own || f->n > n || f->n <= above) continue;
        for (; at < f->n; at++) hash = hash_add(hash, tokens[at]);
        if (hash == f->hash) found = f->n;
    }
    pthread_mutex_unlock(&d->lock);
    return found;
}

static void post(prefix_disk *d, disk_job job, const prefix_image *image)
{
    atomic_store(&d->abandoned, false);
    pthread_mutex_lock(&d->lock);
    CHECK(d->phase == IDLE);
    d->phase = RUNNING;
    d->job = job;
    d->image = *image;
    d->holds = true;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
}

void prefix_disk_store(prefix_disk *d, const prefix_image *from)
{
    post(d, DISK_STORE, from);
}

void prefix_disk_load(prefix_disk *d, const prefix_image *into)
{
    post(d, DISK_LOAD, into);
}

bool prefix_disk_busy(prefix_disk *d)
{
    pthread_mutex_lock(&d->lock);
    const bool busy = d->phase != IDLE;
    pthread_mutex_unlock(&d->lock);
    return busy;
}

disk_job prefix_disk_take(prefix_disk *d, prefix_image *image, status *result, error *e)
{
    disk_job job = DISK_NOTHING;
    pthread_mutex_lock(&d->lock);
    if (d->phase == ENDED) {
        job = d->job;
        *image = d->image;
        *result = d->result;
        *e = d->error;
        d->phase = IDLE;
    } else if (d->phase == RUNNING && !d->holds) {
        job = DISK_RELEASED;
    }
    pthread_mutex_unlock(&d->lock);
    return job;
}

void prefix_disk_wait(prefix_disk *d)
{
    pthread_mutex_lock(&d->lock);
    while (d->phase == RUNNING) pthread_cond_wait(&d->changed, &d->lock);
    pthread_mutex_unlock(&d->lock);
}

void prefix_disk_abandon(prefix_disk *d)
{
    atomic_store(&d->abandoned, true);
    pthread_mutex_lock(&d->lock);
    while (d->holds) pthread_cond_wait(&d->changed, &d->lock);
    pthread_mutex_unlock(&d->lock);
}

void prefix_disk_size(prefix_disk *d, uint64_t *bytes, int *files)
{
    pthread_mutex_lock(&d->lock);
    *bytes = d->known.bytes;
    *files = (int)d->known.n;
    pthread_mutex_unlock(&d->lock);
}
