/* Simulated clocks: the king's pass and the drafter take what a formula says, drafts are accepted
 * as a script says. */
#include <math.h>
#include "base/rng.h"
#include "engine/wager.h"
#include "test.h"

typedef struct world {
    double first, row;       /* pass of R rows: first + row * (R - 1) */
    double draft, draft_row; /* drafter: draft + draft_row * b */
    double upkeep;           /* of its context, every sixteen tokens */
    cost cost;
    wager_bank bank;
    wager wager;
    double time, plain, worst, least; /* seconds; the largest worst case, the smallest purse met */
    int steps, tokens, waiting, dozed;
} world;

static double pass_of(const world *w, int rows)
{
    return w->first + w->row * (rows - 1);
}

static double draft_of(const world *w, int rows)
{
    return rows > 1 ? w->draft + w->draft_row * rows : 0;
}

static void begin(world *w)
{
    static const int rows[] = { 1, 2, 4, 8, 16 };
    double pass[5], draft[5];
    for (int i = 0; i < 5; i++) {
        pass[i] = pass_of(w, rows[i]);
        draft[i] = draft_of(w, rows[i]);
    }
    cost_begin_pass(&w->cost, rows, pass, 5);
    cost_begin_draft(&w->cost, rows + 1, draft + 1, 4);
    wager_bank_init(&w->bank);
    wager_init(&w->wager, &w->bank);
    w->least = INFINITY;
}

static void note_least(world *w)
{
    w->least = fmin(w->least, fmin(w->wager.purse, w->bank.purse));
}

/* One step; chance: that a draft is accepted. Costs are learned from the world as it is now. */
static void step(world *w, rng *r, double chance)
{
    wager *list[] = { &w->wager };
    w->wager.limit = 8;
    w->wager.part = WAGER_TEXT;
    wager_choose(&w->cost, list, 1, 0, 0);
    const int b = w->wager.block;
    int accepted = 0;
    while (accepted < b - 1 && rng_unit(r) < chance) accepted++;
    const double pass = pass_of(w, b), draft = draft_of(w, b);
    w->time += pass + draft;
    w->plain += (accepted + 1) * pass_of(w, 1);
    w->worst = fmax(w->worst, pass_of(w, 8) + draft_of(w, 8) - pass_of(w, 1));
    note_least(w);
    wager_settle(&w->wager, accepted, false);
    note_least(w);
    cost_saw_pass(&w->cost, b, 0, pass);
    if (b > 1) cost_saw_draft(&w->cost, b, draft);
    w->waiting += accepted + 1;
    if (w->waiting >= 16) {
        const bool paid = wager_pay(&w->wager, w->upkeep);
        w->time += paid ? w->upkeep : 0;
        w->dozed += !paid;
        w->waiting = 0;
        note_least(w);
    }
    w->steps++;
    w->tokens += accepted + 1;
}

static world usual(void)
{
    return (world){ .first = 1, .row = 0.12, .draft = 0.1, .draft_row = 0.02 };
}

TEST(drafts_that_are_always_right_are_used_in_full)
{
    world w = usual();
    rng r = { 1 };
    begin(&w);
    for (int i = 0; i < 200; i++) step(&w, &r, 1);
    EXPECT_INT(w.wager.block, 8);
    EXPECT(w.time < 0.4 * w.plain);
}

TEST(R075_drafts_that_are_always_wrong_cost_little)
{
    world w = usual();
    rng r = { 1 };
    begin(&w);
    for (int i = 0; i < 3000; i++) step(&w, &r, 0);
    EXPECT(w.least >= 0);
    EXPECT(w.time <= 1.016 * w.plain + 2 * w.worst);
    EXPECT(w.wager.block == 1 || w.wager.plain_run == 0);
}

/* It pays a little at two rows and nothing at more: the choice must find it. */
TEST(the_block_follows_the_costs)
{
    world cheap = usual(), dear = usual();
    dear.row = 0.5;
    rng r = { 2 };
    begin(&cheap);
    begin(&dear);
    for (int i = 0; i < 2000; i++) {
        step(&cheap, &r, 0.7);
        step(&dear, &r, 0.7);
    }
    EXPECT(cheap.time < 0.75 * cheap.plain);
    EXPECT((double)cheap.tokens / cheap.steps > (double)dear.tokens / dear.steps + 0.3);
    EXPECT(dear.time <= 1.016 * dear.plain + 2 * dear.worst);
}

/* E6: drafters that lure and then fail, and clocks that lie, for many seeds. */
TEST(E6_the_purse_is_never_overdrawn)
{
    for (uint64_t seed = 0; seed < 300; seed++) {
        rng r = { seed };
        world w = usual();
        w.row = 0.02 + rng_unit(&r);
        w.draft = rng_unit(&r) * 0.5;
        w.draft_row = rng_unit(&r) * 0.1;
        w.upkeep = rng_below(&r, 2) ? 3 * rng_unit(&r) : 0;
        begin(&w);
        double chance = rng_unit(&r);
        for (int i = 0; i < 600; i++) {
            if (rng_below(&r, 40) == 0) chance = rng_below(&r, 2) ? rng_unit(&r) : 0;
            step(&w, &r, chance);
        }
        EXPECT(w.least >= 0);
        if (w.time > 1.016 * w.plain + 2 * w.worst)
            FAIL("seed %d: %.2f s drafted, %.2f s plain, worst case %.2f s", (int)seed, w.time,
                 w.plain, w.worst);
    }
}

/* A drafter that fails for a while and then is right is found again: the 2 % pay for the trials. */
TEST(good_drafts_are_found_again)
{
    world w = usual();
    rng r = { 4 };
    begin(&w);
    for (int i = 0; i < 600; i++) step(&w, &r, 0);
    const double time = w.time, plain = w.plain;
    for (int i = 0; i < 1200; i++) step(&w, &r, 0.95);
    EXPECT(w.time - time < 0.6 * (w.plain - plain));
}

TEST(a_fixed_block_is_kept)
{
    world w = usual();
    begin(&w);
    wager *list[] = { &w.wager };
    w.wager.fixed = true;
    for (int b = 1; b <= 8; b++) {
        w.wager.limit = b;
        wager_choose(&w.cost, list, 1, 0, 0);
        EXPECT_INT(w.wager.block, b);
        wager_settle(&w.wager, 0, false);
    }
}

/* Rows go to those who use them; with many sequences and dear rows nobody drafts. */
TEST(several_sequences_share_the_rows)
{
    static wager w[20];
    wager *list[20];
    world s = usual();
    begin(&s);
    for (int i = 0; i < 20; i++) {
        wager_init(&w[i], &s.bank);
        w[i].limit = 8;
        w[i].part = WAGER_TEXT;
        for (int j = 0; j < WAGER_DRAFTS; j++)
            w[i].chances.of[WAGER_TEXT][j] = i % 2 ? 0.95f : 0.3f;
        list[i] = &w[i];
    }
    wager_choose(&s.cost, list, 2, 0, 0);
    EXPECT(w[1].block > w[0].block);
    world dear = usual();
    dear.first = 1;
    dear.row = 1;
    begin(&dear);
    for (int i = 0; i < 20; i++) w[i].bank = &dear.bank;
    wager_choose(&dear.cost, list, 20, 0, 0);
    for (int i = 0; i < 20; i++) EXPECT_INT(w[i].block, 1);
}

/* Many short requests whose drafts are wrong lose no more than one long one: what one has lost the
 * next has not. A request that follows good ones may spend what they left, and gives back the
 * rest. */
TEST(short_requests_share_a_bank)
{
    world w = usual();
    rng r = { 5 };
    begin(&w);
    for (int i = 0; i < 200; i++) {
        wager_init(&w.wager, &w.bank);
        for (int k = 0; k < 10; k++) step(&w, &r, 0);
        wager_end(&w.wager);
    }
    EXPECT(w.least >= 0);
    EXPECT(w.time <= 1.016 * w.plain + 2 * w.worst);
    const double poor = w.bank.purse;
    for (int i = 0; i < 60; i++) {
        wager_init(&w.wager, &w.bank);
        for (int k = 0; k < 40; k++) step(&w, &r, 0.95);
        wager_end(&w.wager);
    }
    EXPECT(w.bank.purse > poor + 10 * w.wager.worst);
    wager_init(&w.wager, &w.bank);
    const double time = w.time, plain = w.plain;
    for (int k = 0; k < 400; k++) step(&w, &r, 0);
    EXPECT(w.time - time <= 1.016 * (w.plain - plain) + 3 * w.worst);
    EXPECT(w.time - time > 1.016 * (w.plain - plain));
}

/* What copies have gained is no stake for drafts. */
TEST(copies_pay_for_copies_alone)
{
    world w = usual();
    wager *list[] = { &w.wager };
    begin(&w);
    w.bank.opened = true;
    w.wager.limit = 8;
    w.wager.part = WAGER_COPY;
    w.bank.purse = 10;
    for (int i = 0; i < 10; i++) {
        wager_choose(&w.cost, list, 1, 0, 0);
        EXPECT_INT(w.wager.block, 8);
        wager_settle(&w.wager, 7, false);
    }
    w.wager.purse = w.bank.purse = 0;
    wager_choose(&w.cost, list, 1, 0, 0);
    EXPECT_INT(w.wager.block, 8);
    w.wager.part = WAGER_TEXT;
    wager_choose(&w.cost, list, 1, 0, 0);
    EXPECT_INT(w.wager.block, 1);
}

/* The drafter's context is kept up only as long as that can be paid. */
TEST(upkeep_is_paid_or_refused)
{
    world w = usual();
    rng r = { 6 };
    w.upkeep = 4; /* of some 16 */
    begin(&w);
    for (int i = 0; i < 4000; i++) step(&w, &r, 0);
    EXPECT(w.dozed > 200);
    EXPECT(w.least >= 0);
    EXPECT(w.time <= 1.016 * w.plain + 2 * w.worst);
    w.wager.purse = w.bank.purse = 0;
    EXPECT(!wager_pay(&w.wager, 0.001));
    w.wager.fixed = true;
    EXPECT(wager_pay(&w.wager, 1000));
}

/* Drafts that cannot be refused need nobody's money. */
TEST(sure_drafts_are_no_risk)
{
    world w = usual();
    wager *list[] = { &w.wager };
    begin(&w);
    w.wager.limit = 8;
    w.wager.part = WAGER_FORCED;
    for (int sure = 0; sure <= 7; sure += 7) {
        w.wager.sure = sure;
        w.wager.purse = 0;
        w.bank.opened = true;
        w.bank.purse = 0;
        wager_choose(&w.cost, list, 1, 0, 0);
        EXPECT_INT(w.wager.block, sure + 1);
    }
}

/* Two that draft in one step cannot both spend the last of the bank, and a block that was asked for
 * costs it nothing. */
TEST(the_bank_lends_once)
{
    world s = usual();
    wager a, b, *list[] = { &a, &b };
    begin(&s);
    wager_init(&a, &s.bank);
    wager_init(&b, &s.bank);
    a.limit = b.limit = 8;
    for (int i = 0; i < 200; i++) {
        wager_choose(&s.cost, list, 2, 0, 0);
        wager_settle(&a, 0, false);
        wager_settle(&b, 0, false);
        EXPECT(s.bank.purse >= -1e-12);
    }
    const double left = s.bank.purse;
    a.fixed = true;
    for (int i = 0; i < 50; i++) {
        wager_choose(&s.cost, list, 1, 0, 0);
        EXPECT_INT(a.block, 8);
        wager_settle(&a, 0, false);
    }
    EXPECT(s.bank.purse == left);
}
