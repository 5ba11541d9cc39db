/* progress.h - one line on a terminal for work that takes long: what, share, rate, time left.
 * Silent elsewhere. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H
#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
    bool enabled;
    bool bytes;        /* the unit is bytes, else plain numbers */
    const char *label; /* what progress_step says */
    const char *what;  /* the line being drawn, or NULL */
    int64_t started_ns, drawn_ns;
    uint64_t first;
} progress;

void progress_init(progress *p, bool quiet); /* enabled when stderr is a terminal and not quiet */
void progress_draw(progress *p, const char *what, uint64_t done, uint64_t total);
/* For the callbacks of the tools (arg is a progress): bytes while the king loads, then numbers. */
void progress_run(void *arg, const char *what, uint64_t done, uint64_t total);
void progress_step(void *arg, uint64_t done, uint64_t total); /* for callbacks: arg is a progress */
void progress_clear(progress *p);
/* "6.80 GB", "512 MB"; decimal units. */
void progress_bytes(char out[32], uint64_t bytes);
#endif
