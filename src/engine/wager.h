/* wager.h - how many rows each sequence may draft in a step, so that drafting pays and can never
 * cost much.
 *
 * Blocks are chosen for the most expected tokens per second: acceptance from averages of each
 * sequence, time from measured costs. Estimates can be wrong, so none is trusted for the guarantee.
 * Every drafted step is settled in seconds against the pass without its drafts. A purse receives
 * 1.6 % of the decode time and half of each gain, and pays each loss and the upkeep of the
 * drafter's context; what it lacks is lent by a bank that all sequences share, up to 3 worst cases
 * (all drafts refused) for each. The bank starts with 1.7 and receives what is left of purses. What
 * copies gain pays for copies alone. A step drafts only while all that covers its worst case.
 * Hence, by these costs and whatever the drafter does, decode time of all sequences <= 1.016 x
 * plain time + 1.7 worst cases, and of each <= 1.016 x plain time + 3. */
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

/* of[part][j]: the chance that draft j is accepted when those before it are. */
typedef struct wager_chances {
    float of[WAGER_PARTS][WAGER_DRAFTS];
} wager_chances;

/* What sequences leave to those that come after them. */
typedef struct wager_bank {
    wager_chances chances;
    double purse; /* seconds that may still be lost */
    bool opened;
} wager_bank;
void wager_bank_init(wager_bank *b);

typedef struct wager {
    wager_chances chances;
    wager_bank *bank;
    double purse;    /* seconds */
    double drawn;    /* from the bank */
    double copied;   /* seconds that copies have gained: they may lose these */
    int last;        /* block of the step before */
    int plain_run;   /* plain steps in a row */
    int drafted_run; /* drafted steps in a row */
    bool proven;     /* all drafts of a step were right */
    /* set for each step */
    wager_part part;
    int limit;      /* most rows; 1: it cannot draft */
    bool fixed;     /* its block is `limit`, not to be chosen */
    int sure;       /* first drafts that cannot be refused: they are no risk */
    int waiting;    /* rows that the drafter must be given before it can draft */
    double reserve; /* seconds that a lost step must leave for wager_pay */
    /* chosen */
    int block;
    double alone, extra; /* seconds of the pass without its drafts; what they add */
    double worst;        /* extra of a usual block: the measure of the purse */
    bool barred;         /* the purse does not cover this step */
    int best;
} wager;
void wager_init(wager *w, wager_bank *bank);
/* The sequence has ended: what it has not lost goes back. */
void wager_end(wager *w);

/* Chooses list[i]->block for all; `others`: rows of the pass that belong to nobody here
 * (prefill). */
void wager_choose(cost *c, wager *const *list, int n, int others, int context);
/* The step is over: `accepted` drafts of block - 1; `cut`: it ended early, so that the first
 * refused draft tells nothing. The bank's chances learn too, slower. */
void wager_settle(wager *w, int accepted, bool cut);
/* Pays what the drafter costs beside drafting, if purse and bank allow; a fixed block is free. */
bool wager_pay(wager *w, double seconds);
#endif
