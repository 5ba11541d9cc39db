/* sizing.h - how many positions and how large a prefix cache an engine gets when its caller does
 * not say, and whether what it was asked for fits into memory. */
#ifndef API_SIZING_H
#define API_SIZING_H
#include "engine/scheduler.h"

#define SIZING_CACHE SIZE_MAX /* cache_bytes that are to be chosen */

/* Fills cache_bytes where they are SIZING_CACHE, context (at most `most`) and total_context where
 * they are 0, and bounds chunk by the context. E_ARG: out of range. E_NOMEM: more than is
 * available. */
status sizing_choose(scheduler_options *o, int most, error *e);
#endif
