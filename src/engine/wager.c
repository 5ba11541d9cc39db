/* wager.c - how many rows each sequence may draft in a step. */
#include "engine/wager.h"
#include "base/banned.h"

#define FIRST_CHANCE 0.75f /* before anything is known; a copy starts higher */
#define COPY_CHANCE 0.9f
#define FORCED_CHANCE 0.98f
#define OWN_WEIGHT 0.2f
#define COMMON_WEIGHT 0.03f
#define CHANGE 1.02 /* a new block must promise this much more */
#define INCOME 0.016
#define OPENING 1.7
enum {
    CAP = 16,      /* of a purse, in worst cases; */
    LOAN = 3,      /* of what it borrows, */
    BANK_CAP = 64, /* of the bank */
    /* rows whose worst case that is: of a trial, the first block and the most of a request that has
     * not shown that it can use more */
    USUAL_BLOCK = 5,
    TRIAL_AFTER = 4, /* plain steps in a row */
    PLAIN_AFTER = 64 /* drafted steps in a row */
};

void wager_bank_init(wager_bank *b)
{
    wager_chances *c = &b->chances;
    *b = (wager_bank){ .purse = 0 };
    for (int p = 0; p < WAGER_PARTS; p++)
        for (int j = 0; j < WAGER_DRAFTS; j++)
            c->of[p][j] = p == WAGER_COPY     ? COPY_CHANCE
                          : p == WAGER_FORCED ? FORCED_CHANCE
                                              : FIRST_CHANCE;
}

void wager_init(wager *w, wager_bank *bank)
{
    *w = (wager){ .chances = bank->chances, .bank = bank, .last = USUAL_BLOCK, .block = 1 };
}

static void fill_bank(wager *w, double seconds)
{
    if (w->worst <= 0) return;
    w->bank->purse += seconds;
    if (w->bank->purse > BANK_CAP * w->worst) w->bank->purse = BANK_CAP * w->worst;
}

void wager_end(wager *w)
{
    fill_bank(w, w->purse);
    w->purse = 0;
}

/* ---- choosing ---- */

static bool is_copied(const wager *w)
{
    return w->part == WAGER_COPY || w->part == WAGER_FORCED;
}

static int drafter_rows(const wager *w)
{
    return w->block > 1 && !is_copied(w) ? w->block : 0;
}

typedef struct table {
    cost *cost;
    wager *const *list;
    int n, others, context;
    int rows, drafting, appending; /* of the blocks as they stand */
} table;

static void count_rows(table *t)
{
    t->rows = t->others;
    t->drafting = t->appending = 0;
    for (int i = 0; i < t->n; i++) {
        const int drafting = drafter_rows(t->list[i]);
        t->rows += t->list[i]->block;
        t->drafting += drafting;
        if (drafting) t->appending += t->list[i]->waiting;
    }
}

static double seconds_now(const table *t)
{
    return cost_pass(t->cost, t->rows, t->context) + cost_draft(t->cost, t->drafting) +
           cost_append(t->cost, t->appending);
}

/* What the drafts of w add to the pass, and the pass without them. */
static void price(const table *t, wager *w)
{
    const int drafts = w->block - 1, drafting = drafter_rows(w);
    w->alone = cost_pass(t->cost, t->rows - drafts, t->context);
    w->extra = cost_pass(t->cost, t->rows, t->context) - w->alone;
    if (drafting) w->extra += cost_draft(t->cost, t->drafting) * drafting / t->drafting;
    if (drafting && w->waiting)
        w->extra += cost_append(t->cost, t->appending) * w->waiting / t->appending;
    if (w->extra < 0) w->extra = 0;
}

/* Chance that the next row of w, if it were added, yields a token. */
static double next_chance(const wager *w)
{
    double p = 1;
    for (int j = 0; j < w->block; j++) p *= (double)w->chances.of[w->part][j];
    return p;
}

/* A plain step now and then keeps its cost known: every gain is counted in it. Long blocks are for
 * requests that have shown they can use them: what others gained says little about this one. */
static bool may_grow(const wager *w)
{
    const int most = is_copied(w) || w->proven || w->limit < USUAL_BLOCK ? w->limit : USUAL_BLOCK;
    return !w->fixed && !w->barred && w->block < most && w->drafted_run < PLAIN_AFTER;
}

/* Everybody at the beginning of the way; returns the expected tokens. */
static double go_to_start(table *t)
{
    double tokens = 0;
    for (int i = 0; i < t->n; i++) {
        wager *w = t->list[i];
        tokens += 1;
        for (w->block = 1; w->fixed && w->block < w->limit; w->block++) tokens += next_chance(w);
    }
    count_rows(t);
    return tokens;
}

static void remember(const table *t)
{
    for (int i = 0; i < t->n; i++) t->list[i]->best = t->list[i]->block;
}

/* A single sequence changes its block only for a clear gain; several change with the company
 * anyway. */
static double rate_now(const table *t, double tokens)
{
    const double rate = tokens / seconds_now(t);
    return t->n == 1 && t->list[0]->block == t->list[0]->last ? rate * CHANGE : rate;
}

/* Rows are added one by one where the next is most likely to count, as far as the limits go; the
 * best point of that way is taken, its beginning (nobody drafts) included. */
static void climb(table *t)
{
    double tokens = go_to_start(t), best = rate_now(t, tokens);
    remember(t);
    for (;;) {
        wager *next = NULL;
        double chance = 0;
        for (int i = 0; i < t->n; i++) {
            if (!may_grow(t->list[i])) continue;
            const double p = next_chance(t->list[i]);
            if (p <= chance) continue;
            chance = p;
            next = t->list[i];
        }
        if (!next) break;
        next->block++;
        tokens += chance;
        count_rows(t);
        const double rate = rate_now(t, tokens);
        if (rate <= best) continue;
        best = rate;
        remember(t);
    }
    for (int i = 0; i < t->n; i++) t->list[i]->block = t->list[i]->best;
}

/* Averages that say "plain" would never be corrected without a trial now and then; the purse pays
 * for it. */
static void try_again(table *t)
{
    for (int i = 0; i < t->n; i++) {
        wager *w = t->list[i];
        if (w->block == 1 && may_grow(w) && w->plain_run >= TRIAL_AFTER)
            w->block = w->limit < USUAL_BLOCK ? w->limit : USUAL_BLOCK;
    }
    count_rows(t);
}

/* What the step loses when all drafts are refused that can be, and what must be left then. */
static double risk_of(const wager *w)
{
    const int sure = w->sure < w->block - 1 ? w->sure : w->block - 1;
    const double risk = w->extra - sure * w->alone, own = is_copied(w) ? w->copied : 0;
    return (risk > own ? risk - own : 0) + w->reserve;
}

/* What a purse lacks is lent by the bank, of which `left` is left; returns it, or < 0. */
static double lend(const wager *w, double seconds, double left)
{
    const double lack = seconds > w->purse ? seconds - w->purse : 0;
    return lack <= LOAN * w->worst - w->drawn ? left - lack : -1;
}

/* Everybody in the step together borrows no more than the bank has. */
static bool bar_the_poor(table *t)
{
    bool changed = false;
    double left = t->n ? t->list[0]->bank->purse : 0;
    for (int i = 0; i < t->n; i++) {
        wager *w = t->list[i];
        if (w->fixed || w->block == 1) continue;
        const double rest = lend(w, risk_of(w), left);
        if (rest >= 0) left = rest;
        else w->barred = changed = true;
    }
    return changed;
}

/* Purses are measured in worst cases of a usual block, drafted alone beside the others' single
 * rows. */
static void find_worst(const table *t, wager *w)
{
    if (w->limit < 2 || (w->limit < USUAL_BLOCK && w->worst > 0)) return;
    const int block = w->limit < USUAL_BLOCK ? w->limit : USUAL_BLOCK, rows = t->others + t->n;
    w->worst = cost_pass(t->cost, rows + block - 1, t->context) -
               cost_pass(t->cost, rows, t->context) + cost_draft(t->cost, block);
    if (w->bank->opened || w->worst <= 0) return;
    w->bank->opened = true;
    w->bank->purse = OPENING * w->worst;
}

void wager_choose(cost *c, wager *const *list, int n, int others, int context)
{
    table t = { .cost = c, .list = list, .n = n, .others = others, .context = context };
    for (int i = 0; i < n; i++) {
        list[i]->barred = false;
        find_worst(&t, list[i]);
    }
    do {
        climb(&t);
        try_again(&t);
        for (int i = 0; i < n; i++) price(&t, list[i]);
    } while (bar_the_poor(&t));
}

/* ---- settling ---- */

static void learn(float *of, int accepted, int drafts, bool cut, float weight)
{
    const int up = accepted == drafts && drafts > 0 ? WAGER_DRAFTS : accepted;
    for (int j = 0; j < up; j++) of[j] += weight * (1 - of[j]);
    if (accepted < drafts && !cut) of[accepted] -= weight * of[accepted];
}

static void add_to_purse(wager *w, double seconds)
{
    const double most = CAP * w->worst;
    w->purse += seconds;
    if (w->purse < 0) {
        w->drawn -= w->purse;
        w->bank->purse += w->purse;
        w->purse = 0;
    } else if (w->purse > most) {
        fill_bank(w, w->purse - most);
        w->purse = most;
    }
}

bool wager_pay(wager *w, double seconds)
{
    if (w->fixed) return true;
    if (lend(w, seconds, w->bank->purse) < 0) return false;
    add_to_purse(w, -seconds);
    return true;
}

/* What copies gain pays for copies alone. */
static double book_copies(wager *w, double gain)
{
    const double most = CAP * w->worst;
    double rest = 0;
    w->copied += gain;
    if (w->copied > most) w->copied = most;
    if (w->copied < 0) {
        rest = w->copied;
        w->copied = 0;
    }
    return rest;
}

/* Nobody pays for a block that was asked for. */
static void book(wager *w, int accepted)
{
    double gain = accepted * w->alone - w->extra;
    if (w->fixed) return;
    if (gain > 0) gain /= 2;
    if (is_copied(w)) gain = book_copies(w, gain);
    add_to_purse(w, gain + INCOME * (accepted + 1) * w->alone);
}

void wager_settle(wager *w, int accepted, bool cut)
{
    const int drafts = w->block - 1;
    book(w, accepted);
    w->plain_run = drafts ? 0 : w->plain_run + 1;
    w->drafted_run = drafts ? w->drafted_run + 1 : 0;
    w->last = w->block;
    if (drafts && accepted == drafts && !is_copied(w)) w->proven = true;
    learn(w->chances.of[w->part], accepted, drafts, cut, OWN_WEIGHT);
    learn(w->bank->chances.of[w->part], accepted, drafts, cut, COMMON_WEIGHT);
}
