/* loading.c - see loading.h. */
#include "tools/loading.h"

#include "base/banned.h"

static void loading(void *arg, uint64_t done, uint64_t total)
{
    const loading_watch *w = arg;
    if (w->progress) w->progress(w->arg, "loading king", done, total);
}

static void notice(void *arg, const char *text)
{
    const loading_watch *w = arg;
    if (w->notice) w->notice(w->arg, text);
}

load_options loading_of(compute_mode mode, const loading_tiles *tiles, loading_watch *watch)
{
    return (load_options){ .mode = mode,
                           .folder = tiles->folder,
                           .tiles = tiles->keep ? LOAD_KEEP : LOAD_FIND,
                           .progress = loading,
                           .notice = notice,
                           .arg = watch };
}

void loading_known_cpus(char out[LOADING_KNOWN_CPUS])
{
    compute_known_tiers(out);
}

status loading_check_cpu(const char *cpu, error *e)
{
    return compute_check_tier(cpu, e);
}
