/* wager.h - how many rows each sequence may draft in a step, so that drafting pays and can never
 * cost much.
 *
 * Blocks are chosen for the most expected tokens per second: acceptance from averages of each
 * sequence, time from measured costs. Estimates can be wrong, so none is trusted for the guarantee.
 * Every drafted step is settled in seconds against the pass without its drafts; a purse starts with
 * four worst cases (all drafts refused), receives 2 % of the decode time and half of each gain,
 * pays each loss, holds at most eight worst cases, and a step drafts only while the purse covers
 * its worst case. Hence, by these costs and whatever the drafter does, decode time <= 1.02 x plain
 * time + four worst cases. */
#ifndef ENGINE_WAGER_H
#define ENGINE_WAGER_H
#include "engine/cost.h"
#include "engine/request.h"

typedef enum wager_part {
    WAGER_TEXT,
    WAGER_THOUGHT,
    WAGER_CALL,
    WAGER_COPY,
    WAGER_FORCED,
    WAGER_PARTS
} wager_part;
enum { WAGER_DRAFTS = REQUEST_MAX_BLOCK - 1 };

/* chance[part][j]: that draft j is accepted when those before it are. */
typedef struct wager_chances {
    float of[WAGER_PARTS][WAGER_DRAFTS];
} wager_chances;
void wager_chances_init(wager_chances *c);

typedef struct wager {
    wager_chances chances;
    double purse;    /* seconds */
    bool opened;     /* the purse has got its first content */
    int last;        /* block of the step before */
    int plain_run;   /* plain steps in a row */
    int drafted_run; /* drafted steps in a row */
    /* set for each step */
    wager_part part;
    int limit;  /* most rows; 1: it cannot draft */
    bool fixed; /* its block is `limit`, not to be chosen */
    /* chosen */
    int block;
    double alone, extra; /* seconds of the pass without its drafts; what they add */
    double worst;        /* extra of a usual block: the measure of the purse */
    bool barred;         /* the purse does not cover this step */
    int best;
} wager;
void wager_init(wager *w, const wager_chances *from);

/* Chooses list[i]->block for all; `others`: rows of the pass that belong to nobody here (prefill).
 */
void wager_choose(cost *c, wager *const *list, int n, int others, int context);
/* The step is over: `accepted` drafts of block - 1; `cut`: it ended early, so that the first
 * refused draft tells nothing. `common` (may be NULL), from which new sequences start, learns too,
 * slower. */
void wager_settle(wager *w, int accepted, bool cut, wager_chances *common);
#endif
