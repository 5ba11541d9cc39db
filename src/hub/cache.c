/* cache.c - see cache.h. */
#include "hub/cache.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/file.h"
#include "base/banned.h"

enum { LOCK_POLL_MS = 100 };

/* ---- environment ---- */

static const char *variable(const char *name, const char *older)
{
    const char *v = getenv(name);
    if ((!v || !*v) && older) v = getenv(older);
    return v && *v ? v : NULL;
}

static bool is_true(const char *name)
{
    static const char *const words[] = { "1", "on", "yes", "true" };
    const char *v = getenv(name);
    for (int i = 0; v && i < 4; i++) {
        if (strcasecmp(v, words[i]) == 0) return true;
    }
    return false;
}

bool cache_is_offline(void)
{
    return is_true("HF_HUB_OFFLINE") || is_true("TRANSFORMERS_OFFLINE");
}

void cache_endpoint(char out[CACHE_MAX_PATH])
{
    const char *v = variable("HF_ENDPOINT", NULL);
    snprintf(out, CACHE_MAX_PATH, "%s", v ? v : "https://huggingface.co");
    for (size_t n = strlen(out); n && out[n - 1] == '/'; n--) out[n - 1] = '\0';
}

static status home_of(char out[CACHE_MAX_PATH], error *e)
{
    const char *given = variable("HF_HOME", NULL), *xdg = variable("XDG_CACHE_HOME", NULL);
    const char *home = variable("HOME", NULL);
    int n = 0;
    if (given) n = snprintf(out, CACHE_MAX_PATH, "%s", given);
    else if (xdg) n = snprintf(out, CACHE_MAX_PATH, "%s/huggingface", xdg);
    else if (home) n = snprintf(out, CACHE_MAX_PATH, "%s/.cache/huggingface", home);
    else return error_set(e, E_ARG, "no place for downloads: want HF_HOME or HOME");
    if (n > 0 && n < CACHE_MAX_PATH) return OK;
    return error_set(e, E_LIMIT, "HF_HOME: too long");
}

bool cache_token(char out[CACHE_MAX_TOKEN])
{
    char path[CACHE_MAX_PATH], home[CACHE_MAX_PATH];
    const char *given = variable("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN");
    buf text;
    buf_init(&text, CACHE_MAX_TOKEN);
    if (given) {
        buf_text(&text, given);
    } else if (!is_true("HF_HUB_DISABLE_IMPLICIT_TOKEN")) {
        const char *file = variable("HF_TOKEN_PATH", NULL);
        bool known = true;
        if (file) snprintf(path, sizeof path, "%s", file);
        else known = !home_of(home, NULL) && !file_join(path, sizeof path, home, "token", NULL);
        if (known && file_exists(path)) (void)file_read(&text, path, NULL);
    }
    const str token = str_trim(buf_view(&text));
    const bool usable =
        token.len && token.len < CACHE_MAX_TOKEN && !memchr(token.ptr, '\n', token.len);
    if (usable) snprintf(out, CACHE_MAX_TOKEN, "%.*s", STR_ARG(token));
    buf_free(&text);
    return usable;
}

/* ---- layout ---- */

status cache_of(cache *c, const char *repo, error *e)
{
    char folder[256] = "models--";
    size_t n = strlen(folder);
    const char *root = variable("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE");
    for (const char *p = repo; *p; p++) {
        if (n + 3 > sizeof folder) return error_set(e, E_LIMIT, "%s: name too long", repo);
        folder[n++] = *p == '/' ? '-' : *p;
        if (*p == '/') folder[n++] = '-';
    }
    folder[n] = '\0';
    if (root) {
        const int len = snprintf(c->root, sizeof c->root, "%s", root);
        if (len < 0 || len >= CACHE_MAX_PATH)
            return error_set(e, E_LIMIT, "HF_HUB_CACHE: too long");
    } else {
        char home[CACHE_MAX_PATH];
        TRY(home_of(home, e));
        TRY(file_join(c->root, sizeof c->root, home, "hub", e));
    }
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
    for (const char *p = path; *p; p++) {
        if (*p == '/') buf_text(&text, "../");
    }
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
    if (!is_true("HF_HUB_DISABLE_SYMLINKS") && symlink(want, link) == 0) return OK;
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
