/* file.c - whole files. A file that is written appears under its name only when it is complete. */
#include "base/file.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif
#include "base/mem.h"
#include "base/banned.h"

static status io_error(error *e, const char *path, const char *action)
{
    return error_set(e, E_IO, "%s: cannot %s: %s", path, action, strerror(errno));
}

status file_map_open(file_map *m, const char *path, error *e)
{
    *m = (file_map){ .fd = -1 };
    /* O_NONBLOCK: a pipe of that name must not hang us */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return io_error(e, path, "open");
    struct stat st;
    status s = OK;
    void *p = NULL;
    if (fstat(fd, &st) != 0) {
        s = io_error(e, path, "inspect");
    } else if (!S_ISREG(st.st_mode)) {
        s = error_set(e, E_IO, "%s: not a regular file", path);
    } else if (st.st_size > 0) {
        p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED) s = io_error(e, path, "map");
    }
    if (s) {
        (void)close(fd);
        return s;
    }
    *m = (file_map){ p, (size_t)st.st_size, fd };
    return OK;
}

void file_map_close(file_map *m)
{
    if (m->ptr) (void)munmap((void *)(uintptr_t)m->ptr, m->len);
    if (m->fd >= 0) (void)close(m->fd);
    *m = (file_map){ .fd = -1 };
}

void file_map_drop(const file_map *m, size_t from, size_t to)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (to > m->len) to = m->len;
    const size_t first = (from + page - 1) / page * page;
    const size_t last = to == m->len ? to : to / page * page;
    if (!m->ptr || first >= last) return;
    (void)madvise((void *)(uintptr_t)(m->ptr + first), last - first, MADV_DONTNEED);
}

void file_map_sequential(const file_map *m)
{
    if (m->ptr) (void)madvise((void *)(uintptr_t)m->ptr, m->len, MADV_SEQUENTIAL);
}

/* The whole pages that [from, to) touches: false when there are none. */
static bool pages_of(const file_map *m, size_t *from, size_t *to)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (*to > m->len) *to = m->len;
    if (!m->ptr || *from >= *to) return false;
    *from = *from / page * page;
    return true;
}

void file_map_ahead(const file_map *m, size_t from, size_t to)
{
    if (pages_of(m, &from, &to))
        (void)madvise((void *)(uintptr_t)(m->ptr + from), to - from, MADV_WILLNEED);
}

void file_map_fetch(const file_map *m, size_t from, size_t to)
{
    if (!pages_of(m, &from, &to)) return;
#ifdef MADV_POPULATE_READ
    if (madvise((void *)(uintptr_t)(m->ptr + from), to - from, MADV_POPULATE_READ) == 0) return;
#endif
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    volatile uint8_t sink = 0;
    for (size_t at = from; at < to; at += page) sink ^= m->ptr[at];
    (void)sink;
}

/* Appends what the descriptor gives until its end. */
static status read_all(buf *out, int fd, const char *name, error *e)
{
    for (;;) {
        size_t want = out->cap > out->len + 1 ? out->cap - out->len - 1 : 64 * 1024;
        if (want > out->ceiling - out->len) want = out->ceiling - out->len;
        char probe = 0;
        /* one byte more tells "full" from "too long" */
        char *at = want ? buf_reserve(out, want) : &probe;
        if (!at) return buf_status(out, name, e);
        const ssize_t n = read(fd, at, want ? want : 1);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return io_error(e, name, "read");
        if (n == 0) return OK;
        if (!want) {
            out->failed = E_LIMIT;
            return buf_status(out, name, e);
        }
        buf_advance(out, (size_t)n);
    }
}

status file_read(buf *out, const char *path, error *e)
{
    if (strcmp(path, "-") == 0) return read_all(out, STDIN_FILENO, "standard input", e);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return io_error(e, path, "open");
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
        (uint64_t)st.st_size < out->ceiling - out->len) {
        /* One allocation, with a byte to find the end by; a failure shows in read_all. */
        (void)buf_reserve(out, (size_t)st.st_size + 1);
    }
    const status s = read_all(out, fd, path, e);
    (void)close(fd);
    return s;
}

bool file_read_text(const char *path, char *out, size_t cap)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const ssize_t n = read(fd, out, cap - 1);
    (void)close(fd);
    if (n < 0) return false;
    out[n] = '\0';
    return true;
}

struct file_writer {
    int fd;
    uint64_t at; /* where file_writer_put goes on */
    char *path;  /* target */
    /* what is being written; where the system can, it has no name before the commit */
    char *beside;
    bool nameless;
};

static void free_writer(file_writer *w)
{
    if (w->fd >= 0) (void)close(w->fd);
    mem_free(w->path);
    mem_free(w->beside);
    mem_free(w);
}

/* The folder of a path; false when it is too long. */
static bool folder_of(const char *path, char dir[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    const size_t n = slash ? (size_t)(slash - path) + (slash == path) : 1;
    if (n >= PATH_MAX) return false;
    memcpy(dir, slash ? path : ".", n);
    dir[n] = '\0';
    return true;
}

/* A file without a name: a process that is killed leaves nothing behind. */
static bool open_nameless(file_writer *w)
{
#ifdef O_TMPFILE
    char dir[PATH_MAX];
    if (!folder_of(w->path, dir) || !file_is_dir("/proc/self/fd")) return false;
    w->fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
    return w->fd >= 0;
#else
    (void)w;
    return false;
#endif
}

/* Gives the nameless file the name `beside`. */
static int name_it(const file_writer *w)
{
    char link[64];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", w->fd);
    return linkat(AT_FDCWD, link, AT_FDCWD, w->beside, AT_SYMLINK_FOLLOW);
}

/* Takes "<path>.<pid>-<k>.part" for the first k that does not exist: opens it, or names what is
 * open. */
static status take_name(file_writer *w, error *e)
{
    const size_t cap = strlen(w->path) + 48;
    for (int k = 0; k < 1000; k++) {
        (void)snprintf(w->beside, cap, "%s.%ld-%d.part", w->path, (long)getpid(), k);
        if (w->nameless && name_it(w) == 0) return OK;
        if (!w->nameless) w->fd = open(w->beside, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (!w->nameless && w->fd >= 0) return OK;
        if (errno != EEXIST) break;
    }
    return io_error(e, w->path, "create");
}

static status open_beside(file_writer *w, error *e)
{
    const size_t cap = strlen(w->path) + 48;
    w->beside = mem_alloc(cap);
    if (!w->beside) return error_set(e, E_NOMEM, "%s: out of memory", w->path);
    (void)snprintf(w->beside, cap, "%s", w->path); /* for messages until it has a name */
    w->nameless = open_nameless(w);
    return w->nameless ? OK : take_name(w, e);
}

status file_writer_open(file_writer **out, const char *path, error *e)
{
    *out = NULL;
    struct stat st;
    const bool exists = stat(path, &st) == 0;
    if (exists && !S_ISREG(st.st_mode))
        return error_set(e, E_IO, "%s: cannot be replaced: not a regular file", path);
    file_writer *w = mem_zalloc(sizeof *w);
    if (!w) return error_set(e, E_NOMEM, "%s: out of memory", path);
    w->fd = -1;
    w->path = mem_strndup(path, strlen(path));
    status s = w->path ? open_beside(w, e) : error_set(e, E_NOMEM, "%s: out of memory", path);
    if (s) {
        free_writer(w);
        return s;
    }
    if (exists) (void)fchmod(w->fd, st.st_mode & 0777);
    *out = w;
    return OK;
}

status file_writer_put_at(file_writer *w, uint64_t offset, const void *p, size_t n, error *e)
{
    const char *from = p;
    while (n > 0) {
        const size_t piece = n < (size_t)1 << 30 ? n : (size_t)1 << 30;
        const ssize_t done = pwrite(w->fd, from, piece, (off_t)offset);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return io_error(e, w->beside, "write");
        from += done;
        offset += (uint64_t)done;
        n -= (size_t)done;
    }
    return OK;
}

status file_writer_put(file_writer *w, const void *p, size_t n, error *e)
{
    TRY(file_writer_put_at(w, w->at, p, n, e));
    w->at += n;
    return OK;
}

/* Makes the new name itself durable; a file system that cannot is no reason to fail. */
static void sync_folder(const char *path)
{
    char dir[PATH_MAX];
    if (!folder_of(path, dir)) return;
    const int fd = open(dir, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    if (fd < 0) return;
    (void)fsync(fd);
    (void)close(fd);
}

status file_writer_commit(file_writer *w, error *e)
{
    status s = OK;
    if (fsync(w->fd) != 0) {
        s = io_error(e, w->beside, "sync");
        goto done;
    }
    if (w->nameless) {
        TRY_GOTO(s, take_name(w, e), done);
        w->nameless = false;
    }
    const int closed = close(w->fd);
    w->fd = -1;
    if (closed != 0) {
        s = io_error(e, w->beside, "close");
        goto done;
    }
    if (rename(w->beside, w->path) != 0) {
        s = io_error(e, w->path, "replace");
        goto done;
    }
    sync_folder(w->path);
done:
    if (s && !w->nameless) (void)unlink(w->beside);
    free_writer(w);
    return s;
}

void file_writer_abort(file_writer *w)
{
    if (!w) return;
    if (!w->nameless) (void)unlink(w->beside);
    free_writer(w);
}

status file_write(const char *path, str content, error *e)
{
    file_writer *w;
    TRY(file_writer_open(&w, path, e));
    const status s = file_writer_put(w, content.ptr, content.len, e);
    if (s) {
        file_writer_abort(w);
        return s;
    }
    return file_writer_commit(w, e);
}

status file_reader_open(file_reader *r, const char *path, error *e)
{
    *r = (file_reader){ .fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), .path = path };
    if (r->fd < 0) return io_error(e, path, "open");
    struct stat st;
    status s = OK;
    if (fstat(r->fd, &st) != 0) s = io_error(e, path, "inspect");
    else if (!S_ISREG(st.st_mode)) s = error_set(e, E_IO, "%s: not a regular file", path);
    if (s) file_reader_close(r);
    return s;
}

status file_reader_get(file_reader *r, void *p, size_t n, error *e)
{
    char *to = p;
    while (n > 0) {
        const ssize_t got = read(r->fd, to, n < (size_t)1 << 30 ? n : (size_t)1 << 30);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return io_error(e, r->path, "read");
        if (got == 0)
            return error_set(e, E_FORMAT, "%s: ends at byte %llu, want %zu more", r->path,
                             (unsigned long long)r->at, n);
        to += got;
        r->at += (uint64_t)got;
        n -= (size_t)got;
    }
    return OK;
}

bool file_reader_at_end(file_reader *r)
{
    char probe;
    return read(r->fd, &probe, 1) == 0;
}

void file_reader_close(file_reader *r)
{
    if (r->fd >= 0) (void)close(r->fd);
    r->fd = -1;
}

bool file_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

bool file_same(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

bool file_is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool file_size(const char *path, uint64_t *bytes)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) return false;
    *bytes = (uint64_t)st.st_size;
    return true;
}

status file_want_space(const char *folder, uint64_t bytes, error *e)
{
    struct statvfs s;
    if (statvfs(folder, &s) != 0) return OK; /* not known: the write will tell */
    const uint64_t room = (uint64_t)s.f_bavail * s.f_frsize;
    if (room >= bytes) return OK;
    return error_set(e, E_LIMIT, "%s: %.1f MB free, want %.1f MB", folder, (double)room / 1e6,
                     (double)bytes / 1e6);
}

status file_make_dirs(const char *path, error *e)
{
    char part[PATH_MAX];
    const size_t len = strlen(path);
    if (len == 0 || len >= sizeof part)
        return error_set(e, E_ARG, "\"%s\": not a usable folder name", path);
    for (size_t i = 1; i <= len; i++) {
        if (i < len && path[i] != '/') continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0777) == 0) continue;
        const int why = errno;
        if (file_is_dir(part)) continue;
        errno = why;
        return io_error(e, part, "create the folder");
    }
    return OK;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Every name of the folder, each with its NUL, one behind the other. */
static status read_names(buf *names, const char *dir, error *e)
{
    DIR *d = opendir(dir);
    if (!d) return io_error(e, dir, "open the folder");
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(d);
        if (!entry) break;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        buf_put(names, entry->d_name, strlen(entry->d_name) + 1);
    }
    const status s = errno ? io_error(e, dir, "read the folder") : buf_status(names, dir, e);
    (void)closedir(d);
    return s;
}

status file_list(const char *dir, status (*fn)(void *arg, const char *name, error *e), void *arg,
                 error *e)
{
    buf names, order;
    buf_init(&names, (size_t)1 << 30);
    buf_init(&order, SIZE_MAX);
    status s;
    TRY_GOTO(s, read_names(&names, dir, e), done);
    for (size_t at = 0; at < names.len;) {
        const char *name = names.ptr + at;
        buf_put(&order, &name, sizeof name);
        at += strlen(name) + 1;
    }
    TRY_GOTO(s, buf_status(&order, dir, e), done);
    const size_t count = order.len / sizeof(char *);
    const char **list = (const char **)(void *)order.ptr;
    if (count) qsort(list, count, sizeof *list, by_bytes);
    for (size_t i = 0; i < count; i++) TRY_GOTO(s, fn(arg, list[i], e), done);
done:
    buf_free(&names);
    buf_free(&order);
    return s;
}

status file_join(char *out, size_t cap, const char *dir, const char *name, error *e)
{
    const size_t len = strlen(dir);
    const bool slash = len > 0 && dir[len - 1] != '/';
    const int n = snprintf(out, cap, "%s%s%s", dir, slash ? "/" : "", name);
    if (n < 0 || (size_t)n >= cap)
        return error_set(e, E_LIMIT, "%s/%s: path longer than %zu bytes", dir, name, cap - 1);
    return OK;
}

status file_executable_dir(char *out, size_t cap, error *e)
{
    char path[PATH_MAX];
#ifdef __APPLE__
    char given[PATH_MAX];
    uint32_t room = sizeof given;
    if (_NSGetExecutablePath(given, &room) != 0 || !realpath(given, path))
        return error_set(e, E_IO, "the program's own path cannot be found");
#else
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n < 0) return io_error(e, "/proc/self/exe", "read");
    path[n] = '\0';
#endif
    char *slash = strrchr(path, '/');
    if (slash) *(slash == path ? slash + 1 : slash) = '\0';
    const size_t len = strlen(path);
    if (len >= cap) return error_set(e, E_LIMIT, "%s: path longer than %zu bytes", path, cap - 1);
    memcpy(out, path, len + 1);
    return OK;
}
