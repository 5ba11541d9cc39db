/* scheduler.c - see scheduler.h. */
#include <stdio.h>
#include "base/clock.h"
#include "base/mem.h"
#include "engine/scheduler.h"
#include "base/banned.h"

/* Longest pass of prefill rows alone. */
#define ALONE_SECONDS 2.0
/* Longest pass with prefill rows beside decoding ones, in times of the pass without them. */
#define BESIDE_FACTOR 3.0
/* The first measurements: one is repeated until it has taken so long or run so often. */
#define MEASURE_SECONDS 0.02
enum { MEASURE_RUNS = 10 };
/* The layers that a measured pass runs have at least so many bytes of tiles: no cache holds it. */
#define MEASURE_BYTES ((size_t)256 << 20)
/* Positions beyond what it has that a sequence is promised. */
enum { GROWTH = 256 };

struct scheduler {
    workbench bench;
    speculate speculate;
    int context, chunk, n_seats;
    bool caching;
    state_pool *pages;
    int room;     /* pages for sequences; the cache has the others, and gives them when they lack */
    bool starved; /* a sequence of this pass got no page */
    prefix_cache *cache;
    seat *seats;        /* [n_seats] */
    sequence **running; /* [n_seats], in order of admission */
    int n_running;
    sequence *waiting; /* in order of arrival */
    king_job *jobs;    /* [n_seats] */
    sequence **of_job; /* [n_seats] */
    wager **wagers;    /* [n_seats] */
    cost cost;
    wager_bank bank;
    unsigned turn; /* who is served first when prefill rows are short */
    scheduler_stats stats;
};

void scheduler_rows(int chunk, int parallel, int *rows, int *logits)
{
    *rows = chunk + parallel * REQUEST_MAX_BLOCK;
    *logits = parallel * (REQUEST_MAX_BLOCK + 1) + REQUEST_MAX_BLOCK;
    if (*logits > *rows) *logits = *rows;
}

static workbench_parts sized(const scheduler_options *o)
{
    workbench_parts p = o->parts;
    scheduler_rows(o->chunk, o->parallel, &p.max_rows, &p.max_logits);
    return p;
}

static int pages_of(int positions)
{
    return (positions + KV_PAGE - 1) / KV_PAGE;
}

static status make_seat(scheduler *g, seat *at, error *e)
{
    const workbench *w = &g->bench;
    TRY(state_new(&at->state, king_get_config(w->king), g->pages, g->context, e));
    if (!w->drafter) return OK;
    TRY(drafter_state_new(&at->draft, w->drafter, e));
    at->taps = mem_array((size_t)w->tap_width * REQUEST_MAX_BLOCK, sizeof *at->taps);
    if (!at->taps) return error_set(e, E_NOMEM, "engine: no memory for taps");
    return OK;
}

static status make_parts(scheduler *g, const scheduler_options *o, error *e)
{
    const workbench_parts parts = sized(o);
    TRY(workbench_open(&g->bench, &parts, e));
    TRY(speculate_init(&g->speculate, &g->bench, &g->cost, o->parallel, e));
    const king_config *kc = king_get_config(g->bench.king);
    kv_layout layout;
    TRY(compute_kv_layout(&layout, o->kv, kc->n_attention, kc->n_kv_head, kc->head_dim, e));
    g->room = pages_of(o->total_context);
    g->stats.kv_pages_total = g->room + (int)(o->cache_bytes / layout.page_bytes);
    TRY(state_pool_new(&g->pages, &layout, g->stats.kv_pages_total, e));
    const prefix_cache_options cache = { .budget = o->cache_bytes,
                                         .pages = g->pages,
                                         .king = g->bench.king,
                                         .drafter = g->bench.drafter,
                                         .compute = g->bench.compute,
                                         .disk = o->disk };
    TRY(prefix_cache_new(&g->cache, &cache, e));
    const size_t n = (size_t)o->parallel;
    g->seats = mem_array(n, sizeof *g->seats);
    g->running = mem_array(n, sizeof *g->running);
    g->jobs = mem_array(n, sizeof *g->jobs);
    g->of_job = mem_array(n, sizeof *g->of_job);
    g->wagers = mem_array(n, sizeof *g->wagers);
    if (!g->seats || !g->running || !g->jobs || !g->of_job || !g->wagers)
        return error_set(e, E_NOMEM, "engine: no memory for %d sequences", o->parallel);
    g->n_seats = o->parallel;
    for (int i = 0; i < g->n_seats; i++) TRY(make_seat(g, &g->seats[i], e));
    return OK;
}

/* ---- first measurements ---- */

/* The fewest layers from the first that no cache holds and that have the king's mix of kinds. */
static int timed_layers(const king *k)
{
    const king_config *c = king_get_config(k);
    int attention = 0;
    for (int n = 1; n < c->n_layer; n++) {
        attention += c->is_attention[n - 1];
        if (king_tile_bytes(k) / (size_t)c->n_layer * (size_t)n >= MEASURE_BYTES &&
            attention * c->n_layer == c->n_attention * n)
            return n;
    }
    return c->n_layer;
}

static void note_time(void *arg, int layer, const float *h, int rows)
{
    (void)layer;
    (void)h;
    (void)rows;
    *(int64_t *)arg = clock_ns();
}

/* Seconds of one king pass over `rows` rows that are taken back, from some of its layers and the
 * head: a start must not take as long as an answer. */
static status time_pass(scheduler *g, int rows, double *seconds, error *e)
{
    static const int32_t tokens[REQUEST_MAX_BLOCK];
    king_job job = { .state = g->seats[0].state, .tokens = tokens, .n = rows };
    TRY(state_begin(job.state, rows, ROWS_PROVISIONAL, e));
    const int layers = timed_layers(g->bench.king);
    int64_t start = clock_ns(), behind = start;
    const king_hook hook = { note_time, &behind, layers };
    king_forward(g->bench.king, g->bench.compute, g->bench.king_work, &job, 1, &hook);
    const double head = (double)(clock_ns() - behind) * 1e-9;
    const double timed = (double)(behind - start) * 1e-9;
    *seconds = timed * king_get_config(g->bench.king)->n_layer / layers + head;
    state_commit(job.state, 0);
    return OK;
}

static status time_append(scheduler *g, int rows, double *seconds, error *e)
{
    (void)e;
    const draft_append job = { g->seats[0].draft, g->seats[0].taps, rows };
    const int64_t start = clock_ns();
    drafter_append(g->bench.drafter, g->bench.compute, g->bench.drafter_work, &job, 1);
    *seconds = (double)(clock_ns() - start) * 1e-9;
    return OK;
}

static status time_draft(scheduler *g, int block, double *seconds, error *e)
{
    (void)e; /* a drafter cannot fail; the signature is that of time_pass */
    int32_t drafts[REQUEST_MAX_BLOCK];
    draft_job job = { .state = g->seats[0].draft,
                      .block = block,
                      .n_vocab = g->bench.n_token,
                      .drafts = drafts };
    const int64_t start = clock_ns();
    drafter_draft(g->bench.drafter, g->bench.compute, g->bench.drafter_work, g->bench.king,
                  g->bench.king_work, &job, 1);
    *seconds = (double)(clock_ns() - start) * 1e-9;
    return OK;
}

/* The quickest of a few runs: short ones are disturbed by whatever else the machine does, long ones
 * need no repetition. */
static status measure_each(scheduler *g, status (*run)(scheduler *, int, double *, error *),
                           const int *rows, int n, double *seconds, error *e)
{
    double once;
    TRY(run(g, rows[0], &once, e)); /* brings pages in and is not counted */
    for (int i = 0; i < n; i++) {
        double spent = 0;
        seconds[i] = MEASURE_SECONDS * 1e9;
        for (int k = 0; k < MEASURE_RUNS && spent < MEASURE_SECONDS; k++) {
            TRY(run(g, rows[i], &once, e));
            spent += once;
            if (once < seconds[i]) seconds[i] = once;
        }
    }
    return OK;
}

static status measure(scheduler *g, error *e)
{
    static const int rows[] = { 1, 4, 8, 16 }, blocks[] = { 2, 4, 8 };
    double seconds[4];
    int n = g->context < REQUEST_MAX_BLOCK ? 1 : 4;
    TRY(measure_each(g, time_pass, rows, n, seconds, e));
    cost_begin_pass(&g->cost, rows, seconds, n);
    if (!g->bench.draft) return OK;
    drafter_state_reset(g->seats[0].draft, 0);
    for (n = 1; n < 3 && blocks[n] <= g->bench.draft->block;) n++;
    TRY(measure_each(g, time_draft, blocks, n, seconds, e));
    cost_begin_draft(&g->cost, blocks, seconds, n);
    TRY(measure_each(g, time_append, rows, 4, seconds, e));
    cost_begin_append(&g->cost, rows, seconds, 4);
    drafter_state_reset(g->seats[0].draft, 0);
    return OK;
}

status scheduler_new(scheduler **out, const scheduler_options *o, error *e)
{
    scheduler *g = mem_zalloc(sizeof *g);
    if (!g) return error_set(e, E_NOMEM, "engine: no memory");
    g->context = o->context;
    g->chunk = o->chunk;
    g->caching = o->cache_bytes > 0;
    wager_bank_init(&g->bank);
    status s = make_parts(g, o, e);
    if (s == OK) s = measure(g, e);
    if (s) {
        scheduler_free(g);
        return s;
    }
    *out = g;
    return OK;
}

void scheduler_free(scheduler *g)
{
    scheduler_cancel_all(g);
    for (int i = 0; g->seats && i < g->n_seats; i++) {
        if (g->seats[i].state) state_free(g->seats[i].state);
        if (g->seats[i].draft) drafter_state_free(g->seats[i].draft);
        mem_free(g->seats[i].taps);
    }
    mem_free(g->seats);
    mem_free(g->running);
    mem_free(g->jobs);
    mem_free(g->of_job);
    mem_free(g->wagers);
    prefix_cache_free(g->cache);
    if (g->pages) state_pool_free(g->pages);
    speculate_free(&g->speculate);
    workbench_close(&g->bench);
    mem_free(g);
}

const workbench *scheduler_bench(const scheduler *g)
{
    return &g->bench;
}

void scheduler_add(scheduler *g, sequence *list)
{
    sequence **end = &g->waiting;
    while (*end) end = &(*end)->next;
    *end = list;
    for (; list; list = list->next) g->stats.requests++;
}

/* ---- coming and going ---- */

static void count_ended(scheduler *g, const sequence *s)
{
    const request_usage *u = &s->progress.usage;
    g->stats.ended++;
    g->stats.cancelled += s->progress.finish == REQUEST_CANCELLED;
    g->stats.failed += s->progress.finish == REQUEST_FAILED;
    if (s->choice == 0) g->stats.prefill_s += u->prefill_s;
    g->stats.decode_s += u->decode_s;
    g->stats.plain_s += u->plain_s;
    g->stats.reasoning_tokens += (uint64_t)u->reasoning_tokens;
}

/* What has been run comes back when the client goes on from its reply, or tries again after a
 * cancel. Text cut by a stop string does not come back as it was. */
static void keep_end(scheduler *g, sequence *s)
{
    const request_finish f = s->progress.finish;
    if (f == REQUEST_FAILED || s->progress.stop >= 0 || s->params->score) return;
    speculate_flush(&g->speculate, s);
    prefix_cache_put(g->cache, s->tokens, s->seat->state, s->seat->draft, PREFIX_END);
}

/* Publishes the end; the sequence is gone afterwards. */
static void dismiss(scheduler *g, sequence *s)
{
    if (s->seat) {
        wager_end(&s->wager);
        keep_end(g, s);
        state_reset(s->seat->state);
        s->seat->n_taps = 0;
        s->seat->taken = false;
    }
    if (s->choice == 0 && s->shared) s->shared->settled = true;
    count_ended(g, s);
    sequence_publish(s);
    request *r = s->request;
    sequence_free(s);
    request_drop(r);
}

static void dismiss_ended(scheduler *g)
{
    int kept = 0;
    for (int i = 0; i < g->n_running; i++)
        if (g->running[i]->ended) dismiss(g, g->running[i]);
        else g->running[kept++] = g->running[i];
    g->n_running = kept;
}

static void dismiss_cancelled(scheduler *g)
{
    for (int i = 0; i < g->n_running; i++) {
        sequence *s = g->running[i];
        if (request_is_cancelled(s->request) && !s->ended) sequence_end(s, REQUEST_CANCELLED);
    }
    dismiss_ended(g);
    for (sequence **at = &g->waiting; *at;) {
        sequence *s = *at;
        if (request_is_cancelled(s->request)) {
            *at = s->next;
            sequence_end(s, REQUEST_CANCELLED);
            dismiss(g, s);
        } else {
            at = &s->next;
        }
    }
}

void scheduler_cancel_all(scheduler *g)
{
    for (int i = 0; i < g->n_running; i++) request_cancel(g->running[i]->request);
    for (sequence *s = g->waiting; s; s = s->next) request_cancel(s->request);
    dismiss_cancelled(g);
}

/* Whether the sequence must wait for a beginning of its prompt that is on the disk. It waits once:
 * what has come and was given up again is not worth another wait. */
static bool waits_for_disk(scheduler *g, sequence *s)
{
    if (s->params->score || s->admitted_ns || (s->choice > 0 && s->shared->snap)) return false;
    if (s->fetching) return prefix_cache_arriving(g->cache);
    const prefix_fetch where = prefix_cache_fetch(g->cache, s->tokens, s->n_prompt);
    s->fetching = where == PREFIX_COMING;
    return where != PREFIX_HERE;
}

/* Pages that the sequence will need soon. */
static int pages_wanted(const sequence *s)
{
    const int most = s->n_prompt + s->params->max_tokens;
    return pages_of(most - s->n_tokens < GROWTH ? most : s->n_tokens + GROWTH);
}

/* One is always let in: a whole context has room. */
static bool has_room(const scheduler *g, const sequence *s)
{
    int promised = 0;
    for (int i = 0; i < g->n_running; i++) promised += pages_wanted(g->running[i]);
    return g->n_running == 0 || promised + pages_wanted(s) <= g->room;
}

/* The first of the waiting that may start: a choice waits for the prompt that choice 0 is running,
 * and nobody passes one for whom there is no room yet. */
static sequence *take_next(scheduler *g)
{
    for (sequence **at = &g->waiting; *at; at = &(*at)->next) {
        sequence *s = *at;
        if (s->choice > 0 && s->shared && !s->shared->settled) continue;
        if (waits_for_disk(g, s)) continue;
        if (!has_room(g, s)) break;
        *at = s->next;
        s->next = NULL;
        return s;
    }
    return NULL;
}

/* The prompt is done up to `done`. It counts once, whatever the number of choices, and so do rows
 * that run again because the sequence was put back. */
static void note_prompt(scheduler *g, sequence *s, int done)
{
    const int more = done - s->progress.prompt_done;
    if (more <= 0) return;
    if (s->choice == 0) g->stats.prompt_tokens += (uint64_t)more;
    s->progress.prompt_done = done;
    s->changed = true;
}

/* Puts the longest known beginning of the prompt on the seat. */
static void begin_state(scheduler *g, sequence *s)
{
    seat *at = s->seat;
    const shared_prompt *shared = s->shared;
    at->dozing = false;
    if (at->draft) drafter_state_reset(at->draft, 0);
    if (s->params->score) return;
    status st = OK;
    if (s->choice > 0 && shared && shared->snap) {
        st = state_restore(at->state, shared->snap, NULL);
        if (at->draft && shared->draft) drafter_state_copy(at->draft, shared->draft);
        else if (at->draft) drafter_state_reset(at->draft, state_len(at->state));
    } else {
        const prefix_entry *p = prefix_cache_find(g->cache, s->tokens, s->n_tokens, &s->parting);
        if (s->parting < PREFIX_TURN + (p ? prefix_cache_len(p) : 0)) s->parting = 0;
        if (p) st = prefix_cache_restore(p, at->state, at->draft, NULL);
    }
    if (s->choice > 0) sequence_leave_prompt(s);
    if (st) { /* a cold start is slower and otherwise the same */
        state_reset(at->state);
        if (at->draft) drafter_state_reset(at->draft, 0);
    }
    if (s->admitted_ns) return; /* it goes on: this has been counted */
    const int found = state_len(at->state);
    s->progress.usage.cached_tokens = found;
    note_prompt(g, s, found);
    if (s->choice == 0) g->stats.cached_tokens += (uint64_t)found;
}

static void sit_down(scheduler *g, sequence *s, seat *at)
{
    at->taken = true;
    s->seat = at;
    begin_state(g, s);
    g->running[g->n_running++] = s;
    if (s->admitted_ns) return;
    wager_init(&s->wager, &g->bank);
    s->admitted_ns = clock_ns();
    s->progress.usage.queue_s = (double)(s->admitted_ns - s->submitted_ns) * 1e-9;
    s->progress.queued = -1;
    s->changed = true;
}

static void admit(scheduler *g)
{
    for (int i = 0; i < g->n_seats; i++) {
        if (g->seats[i].taken) continue;
        sequence *s = take_next(g);
        if (!s) break;
        sit_down(g, s, &g->seats[i]);
    }
    int ahead = 0;
    for (sequence *s = g->waiting; s; s = s->next, ahead++) {
        if (s->admitted_ns) continue; /* it has begun and was put back */
        if (s->progress.queued != ahead) s->changed = true;
        s->progress.queued = ahead;
        sequence_publish(s);
    }
}

/* The youngest gives its place and its pages up. It keeps its tokens, is the first to be let in
 * again, and runs what it had once more: same rows, same bits. */
static void put_back(scheduler *g)
{
    sequence *s = g->running[--g->n_running];
    wager_end(&s->wager);
    state_reset(s->seat->state);
    s->seat->n_taps = 0;
    s->seat->taken = false;
    s->seat = NULL;
    if (sequence_has_begun(s)) s->prefill_end = s->n_tokens - 1;
    s->next = g->waiting;
    g->waiting = s;
    g->stats.preempted++;
}

/* States that choices would begin from are given up: each runs the prompt itself. */
static void drop_shared_prompts(scheduler *g)
{
    for (sequence *s = g->waiting; s; s = s->next)
        if (s->shared) sequence_drop_snapshot(s->shared);
    for (int i = 0; i < g->n_running; i++)
        if (g->running[i]->shared) sequence_drop_snapshot(g->running[i]->shared);
}

/* Pages lacked although the cache has given all of its own. One sequence alone fits, once nothing
 * else holds any; what is on its way from the disk may be evicted when it is there. */
static void give_way(scheduler *g)
{
    if (g->n_running > 1) put_back(g);
    else if (!prefix_cache_arriving(g->cache)) drop_shared_prompts(g);
}

/* ---- the rows of a pass ---- */

/* Mean context of the rows to come: what a pass costs depends on it. */
static int mean_context(const scheduler *g)
{
    int64_t sum = 0;
    for (int i = 0; i < g->n_running; i++) sum += state_len(g->running[i]->seat->state);
    return g->n_running ? (int)(sum / g->n_running) : 0;
}

/* Rows for prefill beside `decoding` sequences. */
static int prefill_budget(scheduler *g, int decoding, int context)
{
    double seconds = ALONE_SECONDS;
    if (decoding) seconds = BESIDE_FACTOR * cost_pass(&g->cost, decoding, context);
    const int rows = cost_fit(&g->cost, seconds, g->chunk + decoding, context) - decoding;
    return rows < 1 ? 1 : rows > g->chunk ? g->chunk : rows;
}

/* Decides the rows of everybody; returns those for prefill. */
static int choose_rows(scheduler *g)
{
    int decoding = 0, wanted = 0;
    for (int i = 0; i < g->n_running; i++) {
        sequence *s = g->running[i];
        s->block = 0;
        if (sequence_prefills(s)) {
            wanted += s->prefill_end - state_len(s->seat->state);
            continue;
        }
        speculate_offer(&g->speculate, s);
        g->wagers[decoding++] = &s->wager;
    }
    const int context = mean_context(g);
    const int budget = wanted ? prefill_budget(g, decoding, context) : 0;
    const int others = wanted < budget ? wanted : budget;
    wager_choose(&g->cost, g->wagers, decoding, others, context);
    for (int i = 0; i < g->n_running; i++)
        if (!sequence_prefills(g->running[i])) g->running[i]->block = g->running[i]->wager.block;
    return budget;
}

static int rows_of_decoding(const scheduler *g)
{
    int rows = 0;
    for (int i = 0; i < g->n_running; i++) rows += g->running[i]->block;
    return rows;
}

/* A position of a prompt whose state the prefix cache is to keep. */
typedef struct keeping {
    int at;
    prefix_kind kind;
} keeping;

/* The nearer of *k and what lies at or after `from`; of two in one place the kind that lasts. */
static void nearer(keeping *k, int from, int at, prefix_kind kind)
{
    if (at < from || at > k->at || (at == k->at && kind < k->kind)) return;
    *k = (keeping){ at, kind };
}

/* The first at or after `from` > 0: the ends of the first message and of the last, where the
 * sequence parts from an earlier prompt (what two have in common a third may have), and strides
 * between. */
static keeping next_keeping(const scheduler *g, const sequence *s, int from)
{
    const request_params *p = s->params;
    keeping k = { INT32_MAX, PREFIX_PASSING };
    if (!g->caching || p->score) return k;
    nearer(&k, from, (from + PREFIX_STRIDE - 1) / PREFIX_STRIDE * PREFIX_STRIDE, PREFIX_PASSING);
    nearer(&k, from, s->parting, PREFIX_SHARED);
    if (p->n_marks > 0) nearer(&k, from, p->marks[p->n_marks - 1], PREFIX_END);
    if (p->n_marks > 1 && p->marks[0] >= PREFIX_TURN) nearer(&k, from, p->marks[0], PREFIX_FIRST);
    return k;
}

/* Where the prefill of a sequence must pause after position `at`, because its state is wanted
 * there, by its other choices or by the prefix cache. */
static int next_pause(const scheduler *g, const sequence *s, int at)
{
    const int keep = next_keeping(g, s, at + 1).at;
    int pause = s->prefill_end;
    if (s->shared && s->choice == 0 && at < s->n_prompt - 1) pause = s->n_prompt - 1;
    return keep < pause ? keep : pause;
}

/* Prefill rows of one sequence, at most `most`. */
static int chunk_of(const scheduler *g, const sequence *s, int most)
{
    const int at = state_len(s->seat->state), left = next_pause(g, s, at) - at;
    return left < most ? left : most;
}

static status add_job(scheduler *g, int *n_jobs, sequence *s, int rows, error *e)
{
    king_job *j = &g->jobs[*n_jobs];
    const bool decodes = s->block > 0;
    const int at = state_len(s->seat->state);
    const row_kind kind = decodes ? ROWS_PROVISIONAL : ROWS_FINAL;
    status st;
    do {
        st = state_begin(s->seat->state, rows, kind, e);
    } while (st == E_LIMIT && prefix_cache_evict(g->cache));
    TRY(st);
    const bool to_end = at + rows == s->prefill_end;
    *j = (king_job){ .state = s->seat->state,
                     .tokens = decodes ? s->rows : s->tokens + at,
                     .n = rows,
                     .logits_from = decodes || s->params->score ? 0
                                    : to_end                    ? rows - 1
                                                                : rows,
                     .bad_layer = -1 };
    g->of_job[(*n_jobs)++] = s;
    return OK;
}

/* Without a page for it the sequence stands still in this pass. */
static void try_job(scheduler *g, int *n_jobs, sequence *s, int rows)
{
    if (add_job(g, n_jobs, s, rows, NULL)) g->starved = true;
}

/* Rows for each that prefills, the same for all but those that need fewer; *left is what is left of
 * the budget then, less than a row for each of the others. */
static int share_of(const scheduler *g, int budget, int *left)
{
    int share = 0;
    for (*left = budget;;) {
        int hungry = 0, used = 0;
        for (int i = 0; i < g->n_running; i++) {
            const sequence *s = g->running[i];
            hungry += s->block == 0 && chunk_of(g, s, budget) > share;
        }
        if (hungry == 0 || *left < hungry) return share;
        const int next = share + *left / hungry;
        for (int i = 0; i < g->n_running; i++)
            if (g->running[i]->block == 0)
                used += chunk_of(g, g->running[i], next) - chunk_of(g, g->running[i], share);
        *left -= used;
        share = next;
    }
}

/* The order turns, so that nobody is last for ever. Scoring rows all have logits, which bounds
 * their number. */
static void add_prefill_jobs(scheduler *g, int *n_jobs, int budget, int logits)
{
    int left;
    const int share = share_of(g, budget, &left);
    g->turn++;
    for (int i = 0; i < g->n_running; i++) {
        sequence *s = g->running[(g->turn + (unsigned)i) % (unsigned)g->n_running];
        if (s->block > 0) continue;
        int most = share + (left > 0);
        if (s->params->score && most > logits) most = logits;
        const int rows = chunk_of(g, s, most);
        if (rows == 0) continue;
        if (s->params->score) logits -= rows;
        left -= rows > share;
        try_job(g, n_jobs, s, rows);
    }
}

static int make_jobs(scheduler *g, int budget)
{
    int n_jobs = 0;
    const int decoding = rows_of_decoding(g);
    for (int i = 0; i < g->n_running; i++)
        if (g->running[i]->block > 0) try_job(g, &n_jobs, g->running[i], g->running[i]->block);
    const int free_logits = g->bench.max_logits - decoding - g->n_running;
    add_prefill_jobs(g, &n_jobs, budget, free_logits > 0 ? free_logits : 0);
    return n_jobs;
}

/* ---- what comes out ---- */

static void note_scores(scheduler *g, const sequence *s, const king_job *job, int from)
{
    for (int i = 0; i < job->n; i++) {
        const float *logits = job->logits + (size_t)i * (size_t)g->bench.n_vocab;
        const int32_t next = s->tokens[from + i + 1];
        s->params->score[from + i] =
            (float)(logits[next] - sampler_log_sum(logits, g->bench.n_vocab));
    }
}

/* The state of all choices but the last row of their prompt. Without memory for it each runs the
 * prompt itself. */
static void share_prompt(scheduler *g, sequence *s)
{
    shared_prompt *shared = s->shared;
    const seat *at = s->seat;
    shared->settled = true;
    if (state_snapshot(at->state, g->bench.compute, &shared->snap, NULL)) shared->snap = NULL;
    if (!shared->snap || !at->draft || drafter_state_len(at->draft) != state_len(at->state)) return;
    if (drafter_state_new(&shared->draft, g->bench.drafter, NULL)) return;
    drafter_state_copy(shared->draft, at->draft);
}

/* The prefill has paused: is the state here wanted? */
static void keep_prefix(scheduler *g, sequence *s)
{
    const int at = state_len(s->seat->state);
    const keeping k = next_keeping(g, s, at);
    if (s->shared && s->choice == 0 && !s->shared->settled) {
        if (at == s->n_prompt - 1) share_prompt(g, s);
        if (at == s->n_prompt) s->shared->settled = true; /* it came from the cache: so can they */
        if (s->shared->settled) sequence_leave_prompt(s);
    }
    if (k.at == at) prefix_cache_put(g->cache, s->tokens, s->seat->state, s->seat->draft, k.kind);
}

static void settle_prefill(scheduler *g, sequence *s, const king_job *job)
{
    const int from = state_len(s->seat->state);
    state_commit(s->seat->state, job->n);
    speculate_feed(&g->speculate, s, job->taps, from, job->n);
    if (!sequence_has_begun(s)) note_prompt(g, s, from + job->n);
    if (s->params->score) note_scores(g, s, job, from);
    keep_prefix(g, s);
    if (from + job->n < s->prefill_end || sequence_has_begun(s)) return;
    s->first_ns = clock_ns();
    s->progress.usage.prefill_s = (double)(s->first_ns - s->admitted_ns) * 1e-9;
    if (s->params->score) {
        sequence_end(s, REQUEST_LENGTH);
        return;
    }
    const int32_t pick = sequence_pick(s, &g->bench, job->logits);
    if (pick >= 0) sequence_push(s, &g->bench, pick, job->logits);
}

static void settle(scheduler *g, sequence *s, const king_job *job)
{
    if (job->bad_layer >= 0 && s->block > 1) {
        state_commit(s->seat->state, 0);
        s->broken = true;
        return;
    }
    if (job->bad_layer >= 0) {
        char text[128];
        snprintf(text, sizeof text, "layer %d: output at position %d is not finite", job->bad_layer,
                 state_len(s->seat->state));
        state_commit(s->seat->state, s->block > 0 ? 0 : job->n);
        sequence_fail(s, text);
        return;
    }
    const request_usage before = s->progress.usage;
    const int n_before = s->progress.n_ids;
    if (s->block > 0) {
        const int accepted = speculate_settle(&g->speculate, s, job);
        s->plain_s += (accepted + 1) * s->wager.alone;
        s->spent_s += s->wager.alone + s->wager.extra;
        wager_settle(&s->wager, accepted, s->ended);
    } else {
        settle_prefill(g, s, job);
    }
    const request_usage *u = &s->progress.usage;
    g->stats.generated_tokens += (uint64_t)(s->progress.n_ids - n_before);
    g->stats.drafted += (uint64_t)(u->drafted - before.drafted);
    g->stats.accepted += (uint64_t)(u->accepted - before.accepted);
    for (int i = 0; i < u->accepted - before.accepted; i++) g->stats.accepted_at[i]++;
}

/* The king's pass and what follows from it, up to the committed rows. */
static void run_jobs(scheduler *g, int n_jobs)
{
    const int64_t start = clock_ns();
    const int context = mean_context(g);
    int rows = 0;
    king_forward(g->bench.king, g->bench.compute, g->bench.king_work, g->jobs, n_jobs, NULL);
    for (int i = 0; i < n_jobs; i++) {
        settle(g, g->of_job[i], &g->jobs[i]);
        rows += g->jobs[i].n;
    }
    cost_saw_pass(&g->cost, rows, context, (double)(clock_ns() - start) * 1e-9);
    g->stats.passes++;
    g->stats.pass_rows += (uint64_t)rows;
}

bool scheduler_pass(scheduler *g)
{
    prefix_cache_tend(g->cache);
    dismiss_cancelled(g);
    admit(g);
    prefix_cache_store(g->cache);
    if (g->n_running == 0) return false;
    const int budget = choose_rows(g);
    speculate_draft(&g->speculate, g->running, g->n_running);
    g->starved = false;
    const int n_jobs = make_jobs(g, budget), running = g->n_running;
    if (n_jobs) run_jobs(g, n_jobs);
    for (int i = 0; i < g->n_running; i++)
        if (!g->running[i]->ended) sequence_publish(g->running[i]);
    dismiss_ended(g);
    if (g->starved && g->n_running == running) give_way(g);
    return true;
}

void scheduler_get_stats(const scheduler *g, scheduler_stats *out)
{
    *out = g->stats;
    out->running = g->n_running;
    out->queued = 0;
    for (const sequence *s = g->waiting; s; s = s->next) out->queued++;
    out->kv_pages_free = state_pool_free_pages(g->pages);
    prefix_cache_get_stats(g->cache, &out->cache);
}

/* What a sequence takes beside its pages. */
static size_t state_of_one(const scheduler_options *o)
{
    const king_config *kc = king_get_config(o->parts.king);
    const drafter *d = o->parts.drafter;
    if (!d) return state_bytes(kc);
    const size_t taps = (size_t)drafter_get_config(d)->n_tap * (size_t)kc->n_embd *
                        REQUEST_MAX_BLOCK * sizeof(float);
    return state_bytes(kc) + drafter_state_bytes(d) + taps;
}

static size_t page_bytes(const scheduler_options *o, int positions)
{
    const king_config *kc = king_get_config(o->parts.king);
    kv_layout layout;
    if (compute_kv_layout(&layout, o->kv, kc->n_attention, kc->n_kv_head, kc->head_dim, NULL))
        return 0;
    return (size_t)pages_of(positions) * layout.page_bytes;
}

size_t scheduler_bytes(const scheduler_options *o)
{
    const workbench_parts parts = sized(o);
    return workbench_bytes(&parts) + (size_t)o->parallel * state_of_one(o) +
           page_bytes(o, o->total_context) + o->cache_bytes;
}

size_t scheduler_turn_bytes(const scheduler_options *o)
{
    return 2 * state_of_one(o) + page_bytes(o, o->context);
}
