/* progress.c - see progress.h. */
#include "cli/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/banned.h"

enum { REDRAW_NS = 100000000 };

void progress_init(progress *p, bool quiet)
{
    *p = (progress){ .enabled = !quiet && isatty(STDERR_FILENO), .bytes = true };
}

void progress_bytes(char out[32], uint64_t bytes)
{
    if (bytes >= 1000000000) snprintf(out, 32, "%.2f GB", (double)bytes / 1e9);
    else if (bytes >= 1000000) snprintf(out, 32, "%.1f MB", (double)bytes / 1e6);
    else snprintf(out, 32, "%.1f kB", (double)bytes / 1e3);
}

static void amount(const progress *p, char out[32], uint64_t n)
{
    if (p->bytes) progress_bytes(out, n);
    else snprintf(out, 32, "%llu", (unsigned long long)n);
}

void progress_draw(progress *p, const char *what, uint64_t done, uint64_t total)
{
    if (!p->enabled || total == 0) return;
    const int64_t now = clock_ns();
    if (!p->what || strcmp(p->what, what) != 0) {
        p->what = what;
        p->started_ns = now;
        p->drawn_ns = 0;
        p->first = done;
    }
    if (done < total && now - p->drawn_ns < REDRAW_NS) return;
    p->drawn_ns = now;
    char so_far[32], all[32], rate[32];
    amount(p, so_far, done);
    amount(p, all, total);
    const double seconds = (double)(now - p->started_ns) / 1e9;
    const double per_second = seconds > 0 ? (double)(done - p->first) / seconds : 0;
    amount(p, rate, (uint64_t)per_second);
    const double left = per_second > 0 ? (double)(total - done) / per_second : 0;
    fprintf(stderr, "\r\033[K%s %3.0f %%  %s of %s, %s/s, %.0f s left", what,
            100.0 * (double)done / (double)total, so_far, all, rate, left);
    fflush(stderr);
}

void progress_run(void *arg, const char *what, uint64_t done, uint64_t total)
{
    progress *p = arg;
    p->bytes = strcmp(what, "loading king") == 0;
    progress_draw(p, what, done, total);
}

void progress_step(void *arg, uint64_t done, uint64_t total)
{
    progress *p = arg;
    progress_draw(p, p->label, done, total);
}

void progress_clear(progress *p)
{
    if (p->enabled && p->what) fprintf(stderr, "\r\033[K");
    p->what = NULL;
}
