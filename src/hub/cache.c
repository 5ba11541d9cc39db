/* cache.c - see cache.h. */
#include "hub/cache.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/file.h"
#include "hub/environment.h"
#include "base/banned.h"

enum { LOCK_POLL_MS = 100 };

/* ---- layout ---- */

status cache_of(cache *c, const char *repo, error *e)
{
    char folder[256] = "models--";
    size_t n = strlen(folder);
    for (const char *p = repo; *p; p++) {
        if (n + 3 > sizeof folder) return error_set(e, E_LIMIT, "%s: name too long", repo);
        folder[n++] = *p == '/' ? '-' : *p;
        if (*p == '/') folder[n++] = '-';
    }
    folder[n] = '\0';
    TRY(environment_cache(c->root, e));
    TRY(file_join(c->repo, sizeof c->repo, c->root, folder, e));
    char locks[CACHE_MAX_PATH];
    TRY(file_join(locks, sizeof locks, c->root, ".locks", e));
    return file_join(c->locks, sizeof c->locks, locks, folder, e);
}

bool cache_is_commit(str s)
{
    if (s.len != 40) return false;
    for (size_t i = 0; i < s.len; i++) {
        const char c = s.ptr[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return false;
    }
    return true;
}

static status within(const cache *c, const char *part, const char *name, char out[CACHE_MAX_PATH],
                     error *e)
{
    char folder[CACHE_MAX_PATH];
    TRY(file_join(folder, sizeof folder, c->repo, part, e));
    return file_join(out, CACHE_MAX_PATH, folder, name, e);
}

status cache_snapshot(const cache *c, const char *commit, char out[CACHE_MAX_PATH], error *e)
{
    return within(c, "snapshots", commit, out, e);
}

status cache_blob(const cache *c, const char *hash, const char *suffix, char out[CACHE_MAX_PATH],
                  error *e)
{
    char name[128];
    snprintf(name, sizeof name, "%s%s", hash, suffix);
    return within(c, "blobs", name, out, e);
}

bool cache_read_ref(const cache *c, const char *revision, char commit[65])
{
    char path[CACHE_MAX_PATH];
    buf text;
    if (cache_is_commit(str_from(revision))) {
        snprintf(commit, 65, "%s", revision);
        return true;
    }
    if (within(c, "refs", revision, path, NULL) || !file_exists(path)) return false;
    buf_init(&text, 256);
    const bool ok = !file_read(&text, path, NULL) && cache_is_commit(str_trim(buf_view(&text)));
    if (ok) snprintf(commit, 65, "%.*s", STR_ARG(str_trim(buf_view(&text))));
    buf_free(&text);
    return ok;
}

status cache_make_parents(const char *path, error *e)
{
    char folder[CACHE_MAX_PATH];
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path) return OK;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    return file_make_dirs(folder, e);
}

status cache_write_ref(const cache *c, const char *revision, const char *commit, error *e)
{
    char path[CACHE_MAX_PATH];
    if (cache_is_commit(str_from(revision))) return OK;
    TRY(within(c, "refs", revision, path, e));
    TRY(cache_make_parents(path, e));
    return file_write(path, str_from(commit), e);
}

/* "../../blobs/HASH" as seen from snapshots/COMMIT/path: one ".." more for each folder in path. */
static status link_text(const char *path, const char *hash, char out[CACHE_MAX_PATH], error *e)
{
    buf text;
    buf_init(&text, CACHE_MAX_PATH - 1);
    for (const char *p = path; *p; p++)
        if (*p == '/') buf_text(&text, "../");
    buf_printf(&text, "../../blobs/%s", hash);
    const status s = buf_status(&text, path, e);
    if (!s) memcpy(out, text.ptr, text.len + 1);
    buf_free(&text);
    return s;
}

status cache_link(const cache *c, const char *commit, const char *path, const char *hash, error *e)
{
    char snapshot[CACHE_MAX_PATH], link[CACHE_MAX_PATH], blob[CACHE_MAX_PATH];
    char want[CACHE_MAX_PATH], found[CACHE_MAX_PATH];
    TRY(cache_snapshot(c, commit, snapshot, e));
    TRY(file_join(link, sizeof link, snapshot, path, e));
    TRY(cache_blob(c, hash, "", blob, e));
    TRY(link_text(path, hash, want, e));
    TRY(cache_make_parents(link, e));
    const ssize_t n = readlink(link, found, sizeof found);
    if (n > 0 && (size_t)n == strlen(want) && memcmp(found, want, (size_t)n) == 0) return OK;
    (void)unlink(link);
    if (environment_has_links() && symlink(want, link) == 0) return OK;
    if (rename(blob, link) == 0) return OK;
    return error_set(e, E_IO, "%s: cannot be put in place: %s", link, strerror(errno));
}

/* ---- locks and space ---- */

status cache_lock(const char *path, int *fd, bool (*stop)(void *arg), void *arg, error *e)
{
    TRY(cache_make_parents(path, e));
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (*fd < 0) return error_set(e, E_IO, "%s: cannot open: %s", path, strerror(errno));
    while (flock(*fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) return OK; /* no locks here: best effort */
        if (stop && stop(arg)) {
            cache_unlock(*fd);
            *fd = -1;
            return error_set(e, E_CANCELLED, "interrupted");
        }
        clock_sleep_ms(LOCK_POLL_MS);
    }
    return OK;
}

void cache_unlock(int fd)
{
    if (fd >= 0) (void)close(fd);
}
