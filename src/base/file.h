/* file.h - files as a whole: mapped, read, or replaced atomically. Errors name the path and the
 * system's reason. */
#ifndef BASE_FILE_H
#define BASE_FILE_H
#include "base/buf.h"

typedef struct file_map {
    const uint8_t *ptr; /* read-only mapping; an empty file has len 0 */
    size_t len;
    int fd; /* kept open: -1 when unmapped */
} file_map;

status file_map_open(file_map *m, const char *path, error *e); /* regular files only */
void file_map_close(file_map *m);
/* give the pages back to the system */
void file_map_drop(const file_map *m, size_t from, size_t to);
void file_map_sequential(const file_map *m); /* the whole will be read once, in order */
void file_map_ahead(const file_map *m, size_t from, size_t to); /* these will be read soon */
/* brings the pages in, and returns when they are there */
void file_map_fetch(const file_map *m, size_t from, size_t to);

/* appends; out->ceiling bounds it; "-" is stdin */
status file_read(buf *out, const char *path, error *e);
/* The start of a small system file as text, at most cap - 1 bytes; allocates nothing. */
bool file_read_text(const char *path, char *out, size_t cap);
/* Writes beside the target, syncs, renames: readers see the old content or the new, never a
 * part. */
status file_write(const char *path, str content, error *e);

/* The same for content that is produced in pieces. */
typedef struct file_writer file_writer;
status file_writer_open(file_writer **out, const char *path, error *e);
status file_writer_put(file_writer *w, const void *p, size_t n, error *e);
status file_writer_put_at(file_writer *w, uint64_t offset, const void *p, size_t n, error *e);
/* frees w, also on failure (target untouched then) */
status file_writer_commit(file_writer *w, error *e);
void file_writer_abort(file_writer *w);

/* A regular file, read from front to back. */
typedef struct file_reader {
    int fd; /* -1: closed */
    uint64_t at;
    const char *path; /* borrowed */
} file_reader;
status file_reader_open(file_reader *r, const char *path, error *e);
/* exactly n bytes; E_FORMAT when the file ends before */
status file_reader_get(file_reader *r, void *p, size_t n, error *e);
bool file_reader_at_end(file_reader *r);
void file_reader_close(file_reader *r);

bool file_exists(const char *path);
bool file_same(const char *a, const char *b); /* both exist and are one file */
bool file_is_dir(const char *path);
bool file_size(const char *path, uint64_t *bytes);
/* E_LIMIT when the file system of `folder` has less free; OK when it does not say. */
status file_want_space(const char *folder, uint64_t bytes, error *e);
status file_make_dirs(const char *path, error *e);
/* Calls fn for each entry but . and .., in bytewise order of names; stops on the first failure. */
status file_list(const char *dir, status (*fn)(void *arg, const char *name, error *e), void *arg,
                 error *e);
/* E_LIMIT when too long */
status file_join(char *out, size_t cap, const char *dir, const char *name, error *e);
status file_executable_dir(char *out, size_t cap, error *e); /* folder of the running program */
#endif
