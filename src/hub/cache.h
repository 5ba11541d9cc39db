/* cache.h - where downloads lie on disk: the layout of the Hugging Face clients, so that what they
 * fetched is found, and the reverse.
 *
 *   ROOT/.locks/models--OWNER--NAME/HASH.lock
 *   ROOT/models--OWNER--NAME/refs/REVISION           a commit, 40 hex digits
 *                            blobs/HASH              contents
 *                            snapshots/COMMIT/path   relative link to its blob */
#ifndef HUB_CACHE_H
#define HUB_CACHE_H
#include "base/error.h"
#include "base/str.h"
#include "hub/environment.h"

enum { CACHE_MAX_PATH = ENVIRONMENT_MAX_PATH };

typedef struct cache {
    char root[CACHE_MAX_PATH];
    char repo[CACHE_MAX_PATH];  /* ROOT/models--OWNER--NAME */
    char locks[CACHE_MAX_PATH]; /* ROOT/.locks/models--OWNER--NAME */
} cache;

/* Paths only; nothing is created. `repo` is "owner/name". */
status cache_of(cache *c, const char *repo, error *e);
bool cache_is_commit(str revision); /* 40 hex digits */
/* The commit a revision stands for; false: not known here. */
bool cache_read_ref(const cache *c, const char *revision, char commit[65]);
status cache_write_ref(const cache *c, const char *revision, const char *commit, error *e);
status cache_snapshot(const cache *c, const char *commit, char out[CACHE_MAX_PATH], error *e);
status cache_blob(const cache *c, const char *hash, const char *suffix, char out[CACHE_MAX_PATH],
                  error *e);
/* Makes snapshots/COMMIT/path a link to blobs/HASH; where the file system has no links, the blob is
 * moved there. */
status cache_link(const cache *c, const char *commit, const char *path, const char *hash, error *e);
/* Waits for the lock of a file (with other programs, too); `stop` may be NULL. */
status cache_lock(const char *path, int *fd, bool (*stop)(void *arg), void *arg, error *e);
void cache_unlock(int fd);
/* Creates the folders above a file. */
status cache_make_parents(const char *path, error *e);
#endif
