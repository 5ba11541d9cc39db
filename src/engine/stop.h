/* stop.h - stop strings in text that arrives in pieces.
 *
 * Says how much of the text may be shown: everything before the longest ending that could still
 * become a stop string, and after a match everything before it. Of several matches the one that
 * begins first counts, then the first listed. */
#ifndef ENGINE_STOP_H
#define ENGINE_STOP_H
#include "base/buf.h"

typedef struct stop {
    const str *needles; /* borrowed, none empty */
    int n;
    buf window;   /* the end of the text, as far as a match may still begin in it */
    size_t start; /* offset of the window in the text */
    size_t shown; /* bytes of the text that may be shown */
    int matched;  /* index of the needle found, -1 */
} stop;

void stop_init(stop *s, const str *needles, int n);
void stop_free(stop *s);
/* Text has been appended to s->window (by the caller, in place): looks at it. True when a needle
 * was found; the text is over then. */
bool stop_look(stop *s);
#endif
