/* prefix_disk.h - entries of the prefix cache as files of a folder, so that they survive the
 * process.
 *
 * One file is one entry, whole in itself: its header, tokens, snapshot, the drafter's context, and
 * the SHA-256 of all that. Its name has the model's fingerprint, the number of tokens and their
 * hash, so the same content has the same name and folders may be shared, by several processes and
 * models. Files appear under their names only when they are complete. A file is used when
 * everything in it is as it must be, tokens and fingerprint included; otherwise it is deleted and
 * the reason logged. When the budget is spent, the file that was not used for longest goes.
 *
 * A thread of its own reads and writes, one job at a time; the functions here never wait for the
 * disk, but for prefix_disk_wait and prefix_disk_close. Used by one thread. */
#ifndef ENGINE_PREFIX_DISK_H
#define ENGINE_PREFIX_DISK_H
#include "model/drafter.h"

typedef struct prefix_disk_options {
    const char *dir;           /* made when it is missing, for its owner alone */
    uint64_t budget;           /* bytes of all files in it */
    const char *model;         /* text that differs wherever the bits of a state would differ */
    void (*notify)(void *arg); /* a job has ended; called on the disk's thread; may be NULL */
    void *notify_arg;
} prefix_disk_options;

/* What a file is made of. Borrowed by the job until prefix_disk_take says so. */
typedef struct prefix_image {
    int32_t *tokens; /* [n] */
    int n;
    bool first_turn;
    state_snap *snap;
    drafter_state *draft; /* NULL: begins empty (when loading: is not wanted) */
} prefix_image;

/* What has happened: a job has ended, or one still runs and has let go of its image. */
typedef enum disk_job { DISK_NOTHING, DISK_RELEASED, DISK_STORE, DISK_LOAD } disk_job;

typedef struct prefix_disk prefix_disk;
status prefix_disk_open(prefix_disk **out, const prefix_disk_options *o, error *e);
void prefix_disk_close(prefix_disk *d); /* the job under way is finished first */

/* Tokens of the longest file that is a prefix of tokens[0, n) and longer than `above`; 0: none.
 * Told by hashes: the tokens are compared when it is loaded. */
int prefix_disk_find(prefix_disk *d, const int32_t *tokens, int n, int above);
/* Begin a job; only when there is none. Storing what is there already only marks it as used. */
void prefix_disk_store(prefix_disk *d, const prefix_image *from);
/* `into` has its tokens and room for the rest; flags and content are filled in. */
void prefix_disk_load(prefix_disk *d, const prefix_image *into);
bool prefix_disk_busy(prefix_disk *d); /* there is a job, or its result was not taken */
/* DISK_STORE and DISK_LOAD are told once, with the result. */
disk_job prefix_disk_take(prefix_disk *d, prefix_image *image, status *result, error *e);
void prefix_disk_wait(prefix_disk *d);    /* until the job under way has ended */
void prefix_disk_abandon(prefix_disk *d); /* gives up storing: soon the image is free */
/* As of the last look into the folder. */
void prefix_disk_size(prefix_disk *d, uint64_t *bytes, int *files);
#endif
