/* download.h - one file over HTTP: parallel ranges, resume, check, and only then its place.
 *
 * While it comes, the file is `partial`, with a map of what is there beside it ("PARTIAL.map");
 * both survive the process, so that the next attempt goes on from the last byte. `target` appears
 * whole, after size and hash were checked, or not at all. */
#ifndef HUB_DOWNLOAD_H
#define HUB_DOWNLOAD_H
#include "hub/fetch.h"

enum { DOWNLOAD_MAX_CONNECTIONS = 16, DOWNLOAD_CHUNK = 16 << 20 }; /* bytes of a range */

typedef struct download {
    const char *url, *token; /* token may be NULL */
    const char *name;        /* for messages */
    uint64_t size;
    const char *hash;   /* hex: SHA-256 of the contents (64), or git's SHA-1 of a blob (40) */
    const char *target; /* moved here at the end */
    const char *partial;
    int connections; /* 1 to DOWNLOAD_MAX_CONNECTIONS */
    int retry_ms;    /* first pause after a failure; doubles */
    /* Told the bytes that are there, from the calling thread; may be NULL. */
    void (*progress)(void *arg, uint64_t bytes);
    bool (*stop)(void *arg); /* may be NULL */
    void *arg;
} download;

/* Bytes already there from an earlier attempt. */
uint64_t download_have(const download *d);
/* E_IO: the network, after every retry; the partial file stays. E_FORMAT: wrong length or hash; it
 * is deleted. */
status download_run(const download *d, error *e);
/* Hash of `path` in the form of `want` (64 or 40 digits); hex has room for 65. */
status download_hash(const char *path, const char *want, char hex[65], error *e);
#endif
