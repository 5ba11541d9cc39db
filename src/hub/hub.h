/* hub.h - models by name: "owner/name" or "owner/name@revision".
 *
 * A name is looked up in the cache that the Hugging Face clients share (cache.h) and fetched when
 * it is missing: parallel ranges, resume, sizes and hashes checked (download.h). A folder that is
 * handed out is complete: every file the repository lists and a model needs. */
#ifndef HUB_HUB_H
#define HUB_HUB_H
#include "base/error.h"
#include "base/str.h"

enum { HUB_MAX_NAME = 200, HUB_MAX_FILES = 10000 };

typedef struct hub_options {
    const char *revision;       /* instead of the one in the name; NULL: that, else "main" */
    const char *const *include; /* patterns over paths; none: what a model folder needs */
    int n_include;
    const char *to;  /* plain files in this folder instead of the cache; NULL: the cache */
    bool offline;    /* also when the environment says so */
    int connections; /* at once, of one file; 0: 4 */
    int retry_ms;    /* first pause after a failure; 0: 1,000 */
    void (*progress)(void *arg, const char *name, uint64_t done, uint64_t total); /* may be NULL */
    bool (*stop)(void *arg);                                                      /* may be NULL */
    void *arg;
} hub_options;

bool hub_is_name(const char *text);
/* The folder of a complete copy in the cache, without any network. E_IO: there is none, or what is
 * missing from it. */
status hub_find(const char *name, const hub_options *o, char *folder, size_t cap, error *e);
/* Asks the hub what the revision holds, fetches what is not there, and gives the folder. Without a
 * network, a complete copy is used, with a warning in the log. */
status hub_pull(const char *name, const hub_options *o, char *folder, size_t cap, error *e);
/* hub_find, else hub_pull. */
status hub_open(const char *name, const hub_options *o, char *folder, size_t cap, error *e);
/* Fills `folder` with the configs of a model and files of its weights' names and sizes that hold
 * their headers only (the rest is a hole): enough to describe it. */
status hub_preview(const char *name, const hub_options *o, const char *folder, error *e);
#endif
