/* sizing.c - see sizing.h. */
#include "api/sizing.h"
#include "api/check.h"
#include "base/sysmem.h"
#include "base/banned.h"

enum { LEAST_CONTEXT = 4096 }; /* of a context that is chosen, where the model has as much */

static const size_t LEAST_CACHE = (size_t)1 << 30; /* of a prefix cache that is chosen */

static size_t bytes_with(const scheduler_options *o, int context, int total)
{
    scheduler_options p = *o;
    p.context = context;
    p.total_context = total;
    return scheduler_bytes(&p);
}

/* The context when none is asked for: the model's own, halved until one fits into memory (and into
 * what was asked for all together). Halving keeps the choice the same from start to start while
 * other programs come and go. */
static void choose_context(scheduler_options *o, int most)
{
    const size_t room = sysmem_available();
    int n = most;
    while (n / 2 >= LEAST_CONTEXT &&
           ((o->total_context && n > o->total_context) || bytes_with(o, n, n) > room))
        n /= 2;
    o->context = n;
}

/* The prefix cache when nobody says how much: a conversation as long as the context, since one that
 * is longer than the cache is read anew each turn; at most half of the memory that is left. */
static void choose_cache(scheduler_options *o)
{
    o->cache_bytes = 0;
    const size_t taken = bytes_with(o, o->context, o->context), available = sysmem_available();
    const size_t half = available > taken ? (available - taken) / 2 : 0;
    const size_t turn = scheduler_turn_bytes(o);
    const size_t most = turn < half ? turn : half;
    o->cache_bytes = most > LEAST_CACHE ? most : LEAST_CACHE;
}

/* Positions of all requests together when none are asked for: whole contexts for all that may run
 * at once, or as many as fit into nine tenths of what is left, but one. */
static void choose_total(scheduler_options *o)
{
    const int one = o->context;
    const size_t rest = bytes_with(o, one, 0), available = sysmem_available();
    const size_t room = available > rest ? (available - rest) / 10 * 9 : 0;
    int64_t total = (int64_t)one * o->parallel;
    if (total > INT32_MAX / 2) total = INT32_MAX / 2;
    while (total > one && bytes_with(o, one, (int)total) > rest + room)
        total = total - total / 16 > one ? total - total / 16 : one;
    o->total_context = (int)total;
}

static status check_memory(const scheduler_options *o, error *e)
{
    const double gb = 1e-9, need = (double)scheduler_bytes(o) * gb;
    const double room = (double)sysmem_available() * gb;
    if (need <= room) return OK;
    return error_set(e, E_NOMEM,
                     "engine: context %d (%d of all requests), parallel %d, prefix cache %.2f GB: "
                     "they need %.2f GB, %.2f GB are available beside the weights; want less of "
                     "one of them",
                     o->context, o->total_context, o->parallel, (double)o->cache_bytes * gb, need,
                     room);
}

status sizing_choose(scheduler_options *o, int most, error *e)
{
    const int asked = o->total_context;
    const bool any_cache = o->cache_bytes == SIZING_CACHE;
    if (any_cache) o->cache_bytes = LEAST_CACHE;
    if (o->context == 0) choose_context(o, most);
    TRY(check_range("context", o->context, 2, most, e));
    if (any_cache) choose_cache(o);
    if (asked == 0) choose_total(o);
    else TRY(check_range("total_context", asked, o->context, INT32_MAX / 2, e));
    if (o->chunk > o->context) o->chunk = o->context;
    return check_memory(o, e);
}
