/* prepare.h - writes the file of tiles of a king or a drafter, so that later starts map it. */
#ifndef TOOLS_PREPARE_H
#define TOOLS_PREPARE_H
#include "base/error.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct prepare_options {
    const char *pack, *config_path; /* folders; config.json for a drafter without one, or NULL */
    const char *tiles;              /* folder of files of tiles */
    int threads;                    /* 0: chosen */
    bool verify;                    /* a file that is there is compared with the pack, wholly */
    void (*progress)(void *arg, uint64_t done, uint64_t total); /* bytes; may be NULL */
    void (*notice)(void *arg, const char *text); /* a file that is there is refused; may be NULL */
    void *arg;
} prepare_options;

typedef struct prepare_report {
    char path[4096];
    uint64_t bytes;
    bool written; /* false: it was there */
} prepare_report;

/* A file that is there, and is the one that would be written, stays. */
status prepare_run(const prepare_options *o, prepare_report *out, error *e);
#endif
