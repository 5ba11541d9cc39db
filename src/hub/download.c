/* download.c - see download.h. Workers take chunks of the file in turn; each chunk's bytes are
 * written first and then counted in the map, so that a killed process loses nothing it counted. */
#include "hub/download.h"
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/banned.h"

enum { MAX_PATH = 4096, MOST_FAILURES = 5, COUNT_EVERY = 256 << 10, STALL_S = 30, DRAW_MS = 50 };

typedef struct transfer {
    const download *d;
    int fd, map_fd;
    int n_chunks;
    _Atomic uint64_t *have; /* [n_chunks] bytes from the start of each that are there */
    _Atomic uint64_t total; /* their sum */
    _Atomic int next, busy;
    atomic_bool halt;  /* some worker failed, or ranges are no use */
    atomic_bool whole; /* the server answers ranges with the whole file, or denies them */
    atomic_flag said;  /* an error is in `first` */
    status failed;
    error first;
    fetch *fetches[DOWNLOAD_MAX_CONNECTIONS];
} transfer;

/* One request of one worker. */
typedef struct piece {
    transfer *t;
    int worker, chunk;
    uint64_t from, to; /* of the file: the range asked for */
    uint64_t counted;  /* of `have`, in the map file */
    bool whole;
} piece;

static uint64_t chunk_length(const download *d, int chunk)
{
    const uint64_t from = (uint64_t)chunk * DOWNLOAD_CHUNK;
    return d->size - from < DOWNLOAD_CHUNK ? d->size - from : DOWNLOAD_CHUNK;
}

static int chunks_of(const download *d)
{
    return (int)((d->size + DOWNLOAD_CHUNK - 1) / DOWNLOAD_CHUNK);
}

static status io_error(error *e, const char *path, const char *action)
{
    return error_set(e, E_IO, "%s: cannot %s: %s", path, action, strerror(errno));
}

static status map_path(const download *d, char out[MAX_PATH], error *e)
{
    const int n = snprintf(out, MAX_PATH, "%s.map", d->partial);
    if (n > 0 && n < MAX_PATH) return OK;
    return error_set(e, E_LIMIT, "%s: path too long", d->name);
}

/* ---- what is there ---- */

/* Reads the map of an earlier attempt; a map that cannot be right counts as none. Returns the
 * sum. */
static uint64_t read_map(const download *d, int fd, _Atomic uint64_t *have)
{
    const int n = chunks_of(d);
    uint64_t sum = 0, value, size = 0;
    if (!file_size(d->partial, &size) || size > d->size) return 0;
    for (int i = 0; i < n; i++) {
        if (pread(fd, &value, sizeof value, (off_t)(8 * i)) != (ssize_t)sizeof value) value = 0;
        const uint64_t end = (uint64_t)i * DOWNLOAD_CHUNK + value;
        if (value > chunk_length(d, i) || (value && end > size)) value = 0;
        if (have) have[i] = value;
        sum += value;
    }
    return sum;
}

uint64_t download_have(const download *d)
{
    char path[MAX_PATH];
    if (map_path(d, path, NULL)) return 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    const uint64_t sum = read_map(d, fd, NULL);
    (void)close(fd);
    return sum;
}

static void count(piece *p)
{
    const uint64_t value = p->t->have[p->chunk];
    if (p->whole || value == p->counted) return;
    if (pwrite(p->t->map_fd, &value, sizeof value, (off_t)(8 * p->chunk)) == (ssize_t)sizeof value)
        p->counted = value;
}

/* ---- one request ---- */

static bool should_stop(void *arg)
{
    const piece *p = arg;
    const download *d = p->t->d;
    if (p->worker == 0 && d->progress) d->progress(d->arg, p->t->total);
    return p->t->halt || (d->stop && d->stop(d->arg));
}

static status on_begin(void *arg, const fetch_reply *r, error *e)
{
    piece *p = arg;
    const download *d = p->t->d;
    if (r->etag[0] && strcmp(r->etag, d->hash) != 0) {
        return error_set(e, E_FORMAT, "%s: the server has another file: found hash %s, want %s",
                         d->name, r->etag, d->hash);
    }
    if (r->code == 200) {
        const bool all = p->from == 0 && p->to == d->size;
        if (!all) { /* it does not do ranges: the file comes from its beginning */
            p->t->whole = true;
            return E_AGAIN;
        }
        if (!r->has_size || r->size == d->size) return OK;
        return error_set(e, E_FORMAT, "%s: the server sends %llu bytes, want %llu", d->name,
                         (unsigned long long)r->size, (unsigned long long)d->size);
    }
    if (r->has_range && r->range_from == p->from && r->range_total == d->size) return OK;
    return error_set(e, E_FORMAT, "%s: the server sends bytes from %llu of %llu, want %llu of %llu",
                     d->name, (unsigned long long)r->range_from, (unsigned long long)r->range_total,
                     (unsigned long long)p->from, (unsigned long long)d->size);
}

static status on_body(void *arg, const void *bytes, size_t n, error *e)
{
    piece *p = arg;
    transfer *t = p->t;
    if (n > p->to - p->from) {
        return error_set(e, E_FORMAT,
                         "%s: the server sends more than was asked for: want %llu "
                         "bytes in all",
                         t->d->name, (unsigned long long)t->d->size);
    }
    for (size_t done = 0; done < n;) {
        const ssize_t w =
            pwrite(t->fd, (const char *)bytes + done, n - done, (off_t)(p->from + done));
        if (w < 0 && errno == EINTR) continue;
        if (w < 0) return io_error(e, t->d->partial, "write");
        done += (size_t)w;
    }
    p->from += n;
    t->have[p->chunk] += n;
    t->total += n;
    if (t->have[p->chunk] - p->counted >= COUNT_EVERY) count(p);
    return OK;
}

/* ---- retries ---- */

static void fail(transfer *t, status s, const error *e)
{
    if (!atomic_flag_test_and_set(&t->said)) {
        t->failed = s;
        t->first = *e;
    }
    t->halt = true;
}

/* Sleeps, but not through an interrupt; false: stop. */
static bool pause_for(piece *p, int64_t ms)
{
    const int64_t until = clock_ns() + ms * 1000000;
    while (clock_ns() < until) {
        if (should_stop(p)) return false;
        clock_sleep_ms(DRAW_MS < ms ? DRAW_MS : (int)ms);
    }
    return !should_stop(p);
}

static bool is_passing(const fetch_reply *r)
{
    return r->transient || r->code == 408 || r->code == 429 || r->code >= 500;
}

static void say_code(const download *d, const fetch_reply *r, error *e)
{
    error_set(e, E_IO, "%s: HTTP %d%s%s", d->name, r->code, r->error_message[0] ? ": " : "",
              r->error_message);
}

/* Asks once. True: ask again; `failures` counts attempts since the last byte. */
static bool attempt(piece *p, int *failures)
{
    transfer *t = p->t;
    const download *d = t->d;
    const uint64_t before = p->from;
    const bool ranged = !(p->from == 0 && p->to == d->size);
    const fetch_request q = {
        .url = d->url,
        .token = d->token,
        .ranged = ranged,
        .from = p->from,
        .to = p->to,
        .stall_s = STALL_S,
        .begin = on_begin,
        .body = on_body,
        .stop = should_stop,
        .arg = p,
    };
    fetch_reply r;
    error e = { 0 };
    const status s = fetch_run(t->fetches[p->worker], &q, &r, &e);
    count(p);
    if (s == E_AGAIN || s == E_CANCELLED) {
        if (s == E_CANCELLED && !t->halt) fail(t, s, &e);
        t->halt = true;
        return false;
    }
    if (p->from == p->to) return false;
    if (s == OK && r.code == 416 && !p->whole) { /* it has fewer bytes than we: begin again */
        t->whole = t->halt = true;
        return false;
    }
    if (s && s != E_IO) {
        fail(t, s, &e);
        return false;
    }
    const bool ended = s == OK && (r.code == 200 || r.code == 206); /* early, but in order */
    if (s == OK && !ended) say_code(d, &r, &e);
    if (ended) error_set(&e, E_IO, "%s: the answer ended early", d->name);
    if (p->from > before) *failures = 0;
    if ((!ended && !is_passing(&r)) || ++*failures >= MOST_FAILURES) {
        fail(t, E_IO, &e);
        return false;
    }
    int64_t ms = (int64_t)d->retry_ms << (*failures - (*failures > 0));
    if (r.retry_after_s >= 0) ms = (int64_t)r.retry_after_s * 1000;
    if (pause_for(p, ms)) return true;
    if (!t->halt) {
        error_set(&e, E_CANCELLED, "interrupted");
        fail(t, E_CANCELLED, &e);
    }
    return false;
}

static void fetch_chunk(transfer *t, int worker, int chunk)
{
    const uint64_t start = (uint64_t)chunk * DOWNLOAD_CHUNK, have = t->have[chunk];
    piece p = { .t = t, .worker = worker, .chunk = chunk, .counted = have };
    p.from = start + have;
    p.to = start + chunk_length(t->d, chunk);
    for (int failures = 0; p.from < p.to && !t->halt && attempt(&p, &failures);) continue;
}

static void work(void *arg, int worker, int workers)
{
    transfer *t = arg;
    (void)workers;
    for (int c = t->next++; c < t->n_chunks && !t->halt; c = t->next++) fetch_chunk(t, worker, c);
    t->busy--;
    const piece watch = { .t = t, .worker = worker };
    while (worker == 0 && t->busy > 0) { /* the others are still at it: keep drawing */
        if (should_stop((void *)&watch) && !t->halt) {
            error e = { 0 };
            error_set(&e, E_CANCELLED, "interrupted");
            fail(t, E_CANCELLED, &e);
        }
        clock_sleep_ms(DRAW_MS);
    }
}

/* The whole file in one answer, from its beginning at each attempt. */
static void fetch_whole(transfer *t)
{
    t->halt = t->whole = false;
    for (int failures = 0; !t->halt && t->total < t->d->size;) {
        for (int c = 0; c < t->n_chunks; c++) t->have[c] = 0;
        t->total = 0;
        (void)ftruncate(t->map_fd, 0); /* the next program begins again, too */
        piece p = { .t = t, .to = t->d->size, .whole = true };
        int once = failures; /* bytes that will come again are no progress */
        if (!attempt(&p, &once)) break;
        failures++;
        if (failures >= MOST_FAILURES) {
            error e = { 0 };
            error_set(&e, E_IO, "%s: the connection breaks each time", t->d->name);
            fail(t, E_IO, &e);
        }
    }
}

/* ---- the whole ---- */

status download_hash(const char *path, const char *want, char hex[65], error *e)
{
    file_map m;
    digest *d = NULL;
    TRY(file_map_open(&m, path, e));
    const status s = digest_open(&d, strlen(want) == 40 ? DIGEST_SHA1 : DIGEST_SHA256, e);
    if (!s && strlen(want) == 40) { /* git hashes a head before the contents */
        char head[32];
        const int n = snprintf(head, sizeof head, "blob %zu", m.len);
        digest_put(d, head, (size_t)n + 1);
    }
    if (!s) {
        digest_put_map(d, &m, NULL, NULL);
        digest_hex(d, hex);
    }
    file_map_close(&m);
    return s;
}

static status check(const download *d, error *e)
{
    char hex[65];
    uint64_t size = 0;
    if (!file_size(d->partial, &size) || size != d->size) {
        return error_set(e, E_FORMAT, "%s: %llu bytes came, want %llu", d->name,
                         (unsigned long long)size, (unsigned long long)d->size);
    }
    TRY(download_hash(d->partial, d->hash, hex, e));
    if (strcmp(hex, d->hash) == 0) return OK;
    return error_set(e, E_FORMAT, "%s: %s of what came is %s, want %s", d->name,
                     strlen(d->hash) == 40 ? "git hash" : "SHA-256", hex, d->hash);
}

static status transfer_all(transfer *t, pool *team, error *e)
{
    t->total = read_map(t->d, t->map_fd, t->have);
    t->busy = pool_threads(team);
    pool_run(team, work, t);
    if (t->whole && !t->failed) fetch_whole(t);
    if (t->d->progress) t->d->progress(t->d->arg, t->total);
    if (!t->failed) return OK;
    if (e) *e = t->first;
    return t->failed;
}

static status open_files(transfer *t, const char *map, error *e)
{
    t->fd = open(t->d->partial, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (t->fd < 0) return io_error(e, t->d->partial, "create");
    t->map_fd = open(map, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    return t->map_fd < 0 ? io_error(e, map, "create") : OK;
}

static status run(transfer *t, const char *map, error *e)
{
    const download *d = t->d;
    pool *team = NULL;
    int n = d->connections < t->n_chunks ? d->connections : t->n_chunks;
    if (n < 1) n = 1;
    TRY(open_files(t, map, e));
    for (int i = 0; i < n; i++) TRY(fetch_open(&t->fetches[i], e));
    TRY(pool_start(&team, n, e));
    const status s = transfer_all(t, team, e);
    pool_stop(team);
    TRY(s);
    if (fsync(t->fd) != 0) return io_error(e, d->partial, "sync");
    return OK;
}

status download_run(const download *d, error *e)
{
    char map[MAX_PATH];
    CHECK(d->connections >= 1 && d->connections <= DOWNLOAD_MAX_CONNECTIONS);
    TRY(map_path(d, map, e));
    transfer t = { .d = d, .fd = -1, .map_fd = -1, .n_chunks = chunks_of(d) };
    t.have = mem_array((size_t)t.n_chunks + 1, sizeof *t.have);
    status s = t.have ? run(&t, map, e) : error_set(e, E_NOMEM, "%s: no memory", d->name);
    for (int i = 0; i < DOWNLOAD_MAX_CONNECTIONS; i++) fetch_close(t.fetches[i]);
    if (t.fd >= 0) (void)close(t.fd);
    if (t.map_fd >= 0) (void)close(t.map_fd);
    mem_free((void *)t.have);
    if (!s) s = check(d, e);
    if (!s && rename(d->partial, d->target) != 0) s = io_error(e, d->target, "put in place");
    if (!s) (void)unlink(map);
    if (s == E_FORMAT) { /* nothing of it can be used again */
        (void)unlink(d->partial);
        (void)unlink(map);
    }
    return s;
}
