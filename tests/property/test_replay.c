/* Drafts as they were right on a real king and drafter (tests/golden/replay), priced with measured
 * passes of the 27B shape: what the choice of blocks makes of them, by the real code of offer,
 * choice and settlement. */
#include "base/json.h"
#include "base/mem.h"
#include "engine/speculate.h"
#include "test.h"

#define FOLDER TEST_ROOT "/tests/golden/replay/"

enum {
    MOST_BLOCK = 8,
    MOST_ROWS = 16,
    MOST_IDS = 512,
    MOST_KINDS = 16,
    MOST_TRACES = 128,
    LAYERS = 64,
    LONG = 4000,
    TURNS = 24
};

typedef struct prices {
    double pass[MOST_ROWS + 1], draft[MOST_BLOCK + 1], append[MOST_BLOCK + 1];
} prices;

/* One answer: right[b - 2][i] drafts of a block of b rows are right after output token i. */
typedef struct trace {
    const char *kind;
    int32_t ids[MOST_IDS];
    int n_prompt, n, thought;
    const char *right[MOST_BLOCK - 1];
} trace;

typedef struct replay {
    const prices *prices;
    cost cost;
    wager_bank bank;
    double seconds, plain;
    int steps, tokens;
} replay;

/* ---- reading ---- */

static json_doc *open_json(const char *name)
{
    error e;
    json_doc *doc;
    EXPECT_OK(json_parse_file(&doc, name, 1 << 22, 0, &e), e);
    return doc;
}

static void numbers(const json_node *o, const char *key, int from, double *out)
{
    const json_node *list = json_get(o, key);
    for (size_t i = 0; i < json_len(list); i++)
        EXPECT(json_f64(json_at(list, i), &out[(int)i + from]));
}

/* Measured on some of the layers; the others cost the same. */
static void read_prices(const json_node *o, prices *p)
{
    double bare[MOST_ROWS + 1], full[MOST_ROWS + 1], layers;
    EXPECT(json_f64(json_get(o, "layers"), &layers));
    numbers(o, "pass_ms", 1, full);
    numbers(o, "without_head_ms", 1, bare);
    numbers(o, "draft_ms", 2, p->draft);
    numbers(o, "append_ms", 1, p->append);
    for (int n = 1; n <= MOST_ROWS; n++) p->pass[n] = full[n] + bare[n] * (LAYERS / layers - 1);
}

static int ids_of(const json_node *list, int32_t *out)
{
    for (size_t i = 0; i < json_len(list); i++) {
        int64_t v;
        EXPECT(json_i64(json_at(list, i), &v));
        out[i] = (int32_t)v;
    }
    return (int)json_len(list);
}

static void read_trace(const json_node *o, trace *t)
{
    int64_t thought;
    t->kind = json_text(json_get(o, "kind"));
    EXPECT(t->kind && json_i64(json_get(o, "thought"), &thought));
    t->thought = (int)thought;
    EXPECT(json_len(json_get(o, "prompt")) + json_len(json_get(o, "output")) <= MOST_IDS);
    t->n_prompt = ids_of(json_get(o, "prompt"), t->ids);
    t->n = ids_of(json_get(o, "output"), t->ids + t->n_prompt);
    for (int b = 2; b <= MOST_BLOCK; b++) {
        t->right[b - 2] = json_text(json_at(json_get(o, "right"), (size_t)b - 2));
        EXPECT(t->right[b - 2] && (int)strlen(t->right[b - 2]) == t->n);
    }
}

/* ---- replaying ---- */

static double append_seconds(const prices *p, int rows)
{
    if (rows <= MOST_BLOCK) return p->append[rows];
    return p->append[MOST_BLOCK] +
           (rows - MOST_BLOCK) * (p->append[MOST_BLOCK] - p->append[1]) / (MOST_BLOCK - 1);
}

static void begin(replay *r, const prices *p)
{
    static const int rows[] = { 1, 4, 8, 16 }, blocks[] = { 2, 4, 8 };
    double pass[4], draft[3], append[4];
    *r = (replay){ .prices = p };
    for (int i = 0; i < 4; i++) pass[i] = p->pass[rows[i]], append[i] = append_seconds(p, rows[i]);
    for (int i = 0; i < 3; i++) draft[i] = p->draft[blocks[i]];
    cost_begin_pass(&r->cost, rows, pass, 4);
    cost_begin_draft(&r->cost, blocks, draft, 3);
    cost_begin_append(&r->cost, rows, append, 4);
    wager_bank_init(&r->bank);
}

/* The context of the drafter is kept up at these prices: no trace says what happens without. */
static void queue_rows(replay *r, wager *w, int *waiting, int rows)
{
    if (*waiting + rows > REQUEST_MAX_BLOCK) {
        const double seconds = append_seconds(r->prices, *waiting);
        if (!w->fixed || w->limit > 1) r->seconds += seconds;
        EXPECT(wager_pay(w, cost_append(&r->cost, *waiting)));
        *waiting = 0;
    }
    *waiting += rows;
}

static int right_copies(const sequence *s, int end)
{
    int n = 0;
    while (n < s->block - 1 && s->n_tokens + n < end &&
           s->tokens[s->copy_from + n] == s->tokens[s->n_tokens + n])
        n++;
    return n;
}

/* One step of the sequence; the tokens that will come are known. */
static void step(replay *r, const speculate *p, sequence *s, const trace *t, int *waiting)
{
    wager *w = &s->wager;
    const int end = t->n_prompt + t->n, at = s->n_tokens - t->n_prompt - 1;
    s->in_think = at < t->thought;
    s->seat->n_taps = *waiting;
    speculate_offer(p, s);
    wager_choose(&r->cost, &w, 1, 0, 0);
    s->block = w->block;
    int right = 0;
    double draft = 0;
    if (s->block > 1 && s->copy_from) {
        right = right_copies(s, end);
    } else if (s->block > 1) {
        right = t->right[s->block - 2][at] - '0';
        draft = r->prices->draft[s->block] + append_seconds(r->prices, *waiting);
        *waiting = 0;
        cost_saw_draft(&r->cost, s->block, r->prices->draft[s->block]);
    }
    if (right > end - s->n_tokens - 1) right = end - s->n_tokens - 1;
    s->n_tokens += right + 1;
    queue_rows(r, w, waiting, right + 1);
    r->seconds += r->prices->pass[s->block] + draft;
    r->plain += (right + 1) * r->prices->pass[1];
    r->steps++;
    r->tokens += right + 1;
    cost_saw_pass(&r->cost, s->block, 0, r->prices->pass[s->block]);
    wager_settle(w, right, s->n_tokens == end);
}

/* The answer with blocks of `block`, or chosen; the first token comes from the prompt's last
 * row. */
static void run(replay *r, trace *t, int block)
{
    error e;
    const drafter_config draft = { .block = MOST_BLOCK };
    workbench bench = { .draft = &draft };
    const speculate p = { .bench = &bench, .cost = &r->cost };
    const request_params params = { .block = block, .max_tokens = t->n };
    seat at = { .draft = NULL };
    sequence s = { .params = &params,
                   .seat = &at,
                   .tokens = t->ids,
                   .n_prompt = t->n_prompt,
                   .n_tokens = t->n_prompt + 1 };
    if (block != REQUEST_BLOCK_PLAIN) EXPECT_OK(lookup_init(&s.lookup, t->n_prompt + t->n, &e), e);
    wager_init(&s.wager, &r->bank);
    int waiting = 0;
    while (s.n_tokens < t->n_prompt + t->n) step(r, &p, &s, t, &waiting);
    wager_end(&s.wager);
    lookup_free(&s.lookup);
}

typedef struct kind {
    const char *name;
    trace *traces;
    int n;
    replay of[MOST_BLOCK + 1]; /* [0]: auto, [b]: blocks of b rows */
} kind;

/* All requests of the kind, one after another, as a server would meet them. */
static void run_all(kind *k)
{
    for (int i = 0; i < k->n; i++)
        for (int b = 0; b <= MOST_BLOCK; b++) run(&k->of[b], &k->traces[i], b);
}

static int best_of(const kind *k)
{
    int best = 1;
    for (int b = 2; b <= MOST_BLOCK; b++)
        if (k->of[b].seconds < k->of[best].seconds) best = b;
    return best;
}

/* Plain decoding takes 1. */
static bool judge(const kind *k, const char *when, bool learned)
{
    const double chosen = k->of[0].seconds / k->of[1].seconds;
    const int best = best_of(k);
    const double least = k->of[best].seconds / k->of[1].seconds;
    const bool good = chosen <= 1 / 0.98 && (!learned || chosen <= 1.05 * least);
    printf("%5d %-10s %s: auto %.3f, best block %d %.3f, auto/best %.3f%s\n", k->of[0].tokens,
           k->name, when, chosen, best, least, chosen / least, good ? "" : "  <- out of bounds");
    return good;
}

/* All kinds in turns, as a server meets them. What drafts gain in some is not lost in others, but
 * for what one request may borrow to find out: three times all drafts of a block of five
 * refused. */
static int check_mixed(kind *kinds, int n, const prices *p)
{
    static replay all;
    double seconds[MOST_KINDS] = { 0 }, plain[MOST_KINDS] = { 0 };
    const double lent = 3 * (p->pass[5] - p->pass[1] + p->draft[5]);
    int bad = 0;
    begin(&all, p);
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < n; i++) {
            const double before = all.seconds, plain_before = all.plain;
            run(&all, &kinds[i].traces[turn % kinds[i].n], REQUEST_BLOCK_AUTO);
            seconds[i] += all.seconds - before;
            plain[i] += all.plain - plain_before;
        }
    for (int i = 0; i < n; i++) {
        const bool good = seconds[i] <= 1.02 * plain[i] + TURNS * lent;
        printf("%-10s mixed with the others: auto %.3f%s\n", kinds[i].name, seconds[i] / plain[i],
               good ? "" : "  <- out of bounds");
        bad += !good;
    }
    return bad;
}

/* The first time through, nothing is known and no answer may lose much; after LONG tokens the
 * choice is near the best that is made once and for all. */
static void check(const prices *p)
{
    static kind kinds[MOST_KINDS];
    static trace traces[MOST_TRACES];
    int n = 0, bad = 0;
    json_doc *doc = open_json(FOLDER "traces.json");
    EXPECT(json_len(json_root(doc)) <= MOST_TRACES);
    for (size_t i = 0; i < json_len(json_root(doc)); i++) {
        trace *t = &traces[i];
        read_trace(json_at(json_root(doc), i), t);
        if (n == 0 || strcmp(kinds[n - 1].name, t->kind) != 0) {
            EXPECT(n < MOST_KINDS);
            kinds[n] = (kind){ .name = t->kind, .traces = t };
            for (int b = 0; b <= MOST_BLOCK; b++) begin(&kinds[n].of[b], p);
            n++;
        }
        kinds[n - 1].n++;
    }
    EXPECT(n > 8);
    for (int i = 0; i < n; i++) {
        run_all(&kinds[i]);
        bad += !judge(&kinds[i], "at first", false);
        while (kinds[i].of[0].tokens < LONG) run_all(&kinds[i]);
        bad += !judge(&kinds[i], "at length", true);
    }
    bad += check_mixed(kinds, n, p);
    json_free(doc);
    EXPECT_INT(bad, 0);
}

static void check_with(const char *name)
{
    prices p = { 0 };
    json_doc *doc = open_json(FOLDER "costs.json");
    const json_node *o = json_get(json_root(doc), name);
    EXPECT(o);
    read_prices(o, &p);
    check(&p);
    json_free(doc);
}

TEST(auto_is_near_the_best_block_with_the_8_bit_drafter)
{
    check_with("drafter of 8 bits");
}

TEST(auto_is_near_the_best_block_with_the_4_bit_drafter)
{
    check_with("drafter of 4 bits");
}
