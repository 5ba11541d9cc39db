/* scheduler.c - one step of the engine. */
#include <stdio.h>
#include "base/clock.h"
#include "base/mem.h"
#include "engine/scheduler.h"
#include "base/banned.h"

enum {
    CHUNK_BESIDE = 64, /* prefill rows of a pass in which others decode */
    DEFAULT_BLOCK = 4
};

struct scheduler {
    workbench bench;
    speculate speculate;
    int context, chunk, n_seats;
    kv_pool *pages;
    seat *seats;        /* [n_seats] */
    sequence **running; /* [n_seats], in order of admission */
    int n_running;
    sequence *waiting; /* in order of arrival */
    king_job *jobs;    /* [n_seats] */
    sequence **of_job; /* [n_seats] */
    unsigned turn;     /* who is served first when prefill rows are short */
    scheduler_stats stats;
};

static workbench_parts sized(const scheduler_options *o)
{
    workbench_parts p = o->parts;
    p.max_rows = o->chunk + o->parallel * REQUEST_MAX_BLOCK;
    p.max_logits = o->parallel * (REQUEST_MAX_BLOCK + 1) + REQUEST_MAX_BLOCK;
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
    TRY(speculate_init(&g->speculate, &g->bench, o->parallel, e));
    const king_config *kc = king_get_config(g->bench.king);
    kv_layout layout;
    TRY(compute_kv_layout(&layout, o->kv, kc->n_attention, kc->n_kv_head, kc->head_dim, e));
    g->stats.kv_pages_total = o->parallel * pages_of(o->context);
    TRY(state_pool_new(&g->pages, &layout, g->stats.kv_pages_total, e));
    const size_t n = (size_t)o->parallel;
    g->seats = mem_array(n, sizeof *g->seats);
    g->running = mem_array(n, sizeof *g->running);
    g->jobs = mem_array(n, sizeof *g->jobs);
    g->of_job = mem_array(n, sizeof *g->of_job);
    if (!g->seats || !g->running || !g->jobs || !g->of_job)
        return error_set(e, E_NOMEM, "engine: no memory for %d sequences", o->parallel);
    for (g->n_seats = 0; g->n_seats < o->parallel; g->n_seats++)
        TRY(make_seat(g, &g->seats[g->n_seats], e));
    return OK;
}

status scheduler_new(scheduler **out, const scheduler_options *o, error *e)
{
    scheduler *g = mem_zalloc(sizeof *g);
    if (!g) return error_set(e, E_NOMEM, "engine: no memory");
    g->context = o->context;
    g->chunk = o->chunk;
    const status s = make_parts(g, o, e);
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
    for (int i = 0; g->seats && i < g->n_seats + 1 && i < g->stats.kv_pages_total; i++) {
        if (g->seats[i].state) state_free(g->seats[i].state);
        if (g->seats[i].draft) drafter_state_free(g->seats[i].draft);
        mem_free(g->seats[i].taps);
    }
    mem_free(g->seats);
    mem_free(g->running);
    mem_free(g->jobs);
    mem_free(g->of_job);
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
    g->stats.prefill_s += u->prefill_s;
    g->stats.decode_s += u->decode_s;
    g->stats.plain_s += u->plain_s;
    g->stats.reasoning_tokens += (uint64_t)u->reasoning_tokens;
}

/* Publishes the end; the sequence is gone afterwards. */
static void dismiss(scheduler *g, sequence *s)
{
    if (s->seat) {
        state_reset(s->seat->state);
        s->seat->n_taps = 0;
        s->seat->taken = false;
    }
    count_ended(g, s);
    sequence_publish(s);
    request_drop(s->request);
    sequence_free(s);
}

static void dismiss_ended(scheduler *g)
{
    int kept = 0;
    for (int i = 0; i < g->n_running; i++) {
        if (g->running[i]->ended) dismiss(g, g->running[i]);
        else g->running[kept++] = g->running[i];
    }
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

static void admit(scheduler *g)
{
    for (int i = 0; i < g->n_seats && g->waiting; i++) {
        if (g->seats[i].taken) continue;
        sequence *s = g->waiting;
        g->waiting = s->next;
        s->next = NULL;
        s->seat = &g->seats[i];
        s->seat->taken = true;
        if (s->seat->draft) drafter_state_reset(s->seat->draft, 0);
        s->admitted_ns = clock_ns();
        s->progress.usage.queue_s = (double)(s->admitted_ns - s->submitted_ns) * 1e-9;
        s->progress.queued = -1;
        s->changed = true;
        g->running[g->n_running++] = s;
    }
    int ahead = 0;
    for (sequence *s = g->waiting; s; s = s->next, ahead++) {
        if (s->progress.queued != ahead) s->changed = true;
        s->progress.queued = ahead;
        sequence_publish(s);
    }
}

/* ---- the rows of a step ---- */

static void choose_blocks(scheduler *g)
{
    for (int i = 0; i < g->n_running; i++) {
        sequence *s = g->running[i];
        s->block = 0;
        s->copied = false;
        if (sequence_prefills(s)) continue;
        const int most = g->bench.draft ? g->bench.draft->block : 1;
        int block = s->params->block == REQUEST_BLOCK_AUTO ? DEFAULT_BLOCK : s->params->block;
        if (block > most) block = most;
        if (block > sequence_left(s)) block = sequence_left(s);
        s->block = block;
        s->rows[0] = s->tokens[s->n_tokens - 1];
    }
}

static int rows_of_decoding(const scheduler *g)
{
    int rows = 0;
    for (int i = 0; i < g->n_running; i++) rows += g->running[i]->block;
    return rows;
}

/* Prefill rows of one sequence, at most `most`. */
static int chunk_of(const sequence *s, int most)
{
    const int left = s->prefill_end - state_len(s->seat->state);
    return left < most ? left : most;
}

static status add_job(scheduler *g, int *n_jobs, sequence *s, int rows, error *e)
{
    king_job *j = &g->jobs[*n_jobs];
    const bool decodes = s->block > 0;
    const int at = state_len(s->seat->state);
    TRY(state_begin(s->seat->state, rows, decodes ? ROWS_PROVISIONAL : ROWS_FINAL, e));
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

static void try_job(scheduler *g, int *n_jobs, sequence *s, int rows)
{
    error e = { 0 };
    if (add_job(g, n_jobs, s, rows, &e)) sequence_fail(s, e.text);
}

/* Equal shares for all that prefill, what one does not need going to the others; the order turns,
 * so that nobody is last for ever. Scoring rows all have logits, which bounds their number. */
static void add_prefill_jobs(scheduler *g, int *n_jobs, int budget, int logits)
{
    int left = 0;
    for (int i = 0; i < g->n_running; i++) left += g->running[i]->block == 0;
    g->turn++;
    for (int i = 0; i < g->n_running && budget > 0; i++) {
        sequence *s = g->running[(g->turn + (unsigned)i) % (unsigned)g->n_running];
        if (s->block > 0) continue;
        int most = (budget + left - 1) / left;
        left--;
        if (s->params->score && most > logits) most = logits;
        const int rows = chunk_of(s, most);
        if (rows == 0) continue;
        if (s->params->score) logits -= rows;
        budget -= rows;
        try_job(g, n_jobs, s, rows);
    }
}

static int make_jobs(scheduler *g)
{
    int n_jobs = 0;
    const int decoding = rows_of_decoding(g);
    for (int i = 0; i < g->n_running; i++)
        if (g->running[i]->block > 0) try_job(g, &n_jobs, g->running[i], g->running[i]->block);
    const int chunk = decoding && g->chunk > CHUNK_BESIDE ? CHUNK_BESIDE : g->chunk;
    add_prefill_jobs(g, &n_jobs, chunk, g->bench.max_logits - decoding - g->n_running);
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

static void settle_prefill(scheduler *g, sequence *s, const king_job *job)
{
    const int from = state_len(s->seat->state);
    state_commit(s->seat->state, job->n);
    speculate_feed(&g->speculate, s, job->taps, from, job->n);
    s->progress.prompt_done = from + job->n;
    s->changed = true;
    g->stats.prompt_tokens += (uint64_t)job->n;
    if (s->params->score) note_scores(g, s, job, from);
    if (from + job->n < s->prefill_end) return;
    s->first_ns = clock_ns();
    s->progress.usage.prefill_s = (double)(s->first_ns - s->admitted_ns) * 1e-9;
    if (s->params->score) {
        sequence_end(s, REQUEST_LENGTH);
        return;
    }
    const int32_t pick = sequence_pick(s, &g->bench, job->logits);
    sequence_push(s, &g->bench, pick, job->logits);
}

static void settle(scheduler *g, sequence *s, const king_job *job)
{
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
    if (s->block > 0) speculate_settle(&g->speculate, s, job);
    else settle_prefill(g, s, job);
    const request_usage *u = &s->progress.usage;
    g->stats.generated_tokens += (uint64_t)(s->progress.n_ids - n_before);
    g->stats.drafted += (uint64_t)(u->drafted - before.drafted);
    g->stats.accepted += (uint64_t)(u->accepted - before.accepted);
    for (int i = 0; i < u->accepted - before.accepted; i++) g->stats.accepted_at[i]++;
}

bool scheduler_step(scheduler *g)
{
    dismiss_cancelled(g);
    admit(g);
    if (g->n_running == 0) return false;
    choose_blocks(g);
    speculate_draft(&g->speculate, g->running, g->n_running);
    const int n_jobs = make_jobs(g);
    if (n_jobs)
        king_forward(g->bench.king, g->bench.compute, g->bench.king_work, g->jobs, n_jobs, NULL);
    for (int i = 0; i < n_jobs; i++) {
        settle(g, g->of_job[i], &g->jobs[i]);
        g->stats.step_rows += (uint64_t)g->jobs[i].n;
    }
    g->stats.steps++;
    for (int i = 0; i < g->n_running; i++)
        if (!g->running[i]->ended) sequence_publish(g->running[i]);
    dismiss_ended(g);
    return true;
}

void scheduler_get_stats(const scheduler *g, scheduler_stats *out)
{
    *out = g->stats;
    out->running = g->n_running;
    out->queued = 0;
    for (const sequence *s = g->waiting; s; s = s->next) out->queued++;
    out->kv_pages_free = state_pool_free_pages(g->pages);
}

size_t scheduler_bytes(const scheduler_options *o)
{
    const workbench_parts parts = sized(o);
    const king_config *kc = king_get_config(parts.king);
    kv_layout layout;
    if (compute_kv_layout(&layout, o->kv, kc->n_attention, kc->n_kv_head, kc->head_dim, NULL))
        return 0;
    size_t each = state_bytes(kc) + (size_t)pages_of(o->context) * layout.page_bytes;
    if (parts.drafter)
        each += drafter_state_bytes(parts.drafter) +
                (size_t)drafter_get_config(parts.drafter)->n_tap * (size_t)kc->n_embd *
                    REQUEST_MAX_BLOCK * sizeof(float);
    return workbench_bytes(&parts) + (size_t)o->parallel * each;
}
