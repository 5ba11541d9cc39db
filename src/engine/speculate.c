/* speculate.c - drafts and their verification. */
#include "base/clock.h"
#include "base/mem.h"
#include "engine/speculate.h"
#include "base/banned.h"

enum { FORCED_ENOUGH = 3, DOZING_ROWS = REQUEST_MAX_BLOCK / 2 };

status speculate_init(speculate *p, workbench *w, cost *c, int room, error *e)
{
    *p = (speculate){ .bench = w, .cost = c };
    p->drafts = mem_array((size_t)room, sizeof *p->drafts);
    p->appends = mem_array((size_t)room, sizeof *p->appends);
    if (p->drafts && p->appends) return OK;
    speculate_free(p);
    return error_set(e, E_NOMEM, "engine: no memory for drafts of %d sequences", room);
}

void speculate_free(speculate *p)
{
    mem_free(p->drafts);
    mem_free(p->appends);
    *p = (speculate){ 0 };
}

static void append(const speculate *p, const draft_append *jobs, int n)
{
    int rows = 0;
    for (int i = 0; i < n; i++) rows += jobs[i].n;
    if (rows == 0) return;
    const int64_t start = clock_ns();
    drafter_append(p->bench->drafter, p->bench->compute, p->bench->drafter_work, jobs, n);
    cost_saw_append(p->cost, rows, (double)(clock_ns() - start) * 1e-9);
}

void speculate_flush(speculate *p, sequence *s)
{
    seat *at = s->seat;
    if (at->dozing) return;
    const draft_append job = { at->draft, at->taps, at->n_taps };
    append(p, &job, 1);
    at->n_taps = 0;
}

/* A request that never drafts pays nothing for a drafter. */
static bool may_draft(const sequence *s)
{
    return s->seat->draft && s->params->block != REQUEST_BLOCK_PLAIN && !s->params->score;
}

/* The drafter's context is let go, but for the newest rows that wait, beside which n must fit. */
static void doze(const speculate *p, seat *at, int n)
{
    const size_t width = (size_t)p->bench->tap_width;
    int keep = at->n_taps < DOZING_ROWS ? at->n_taps : DOZING_ROWS;
    if (keep > REQUEST_MAX_BLOCK - n) keep = REQUEST_MAX_BLOCK - n;
    memmove(at->taps, at->taps + (size_t)(at->n_taps - keep) * width,
            (size_t)keep * width * sizeof *at->taps);
    at->n_taps = keep;
    at->dozing = true;
}

/* Makes room for n rows: those that wait reach the drafter if the request can pay for it. */
static void keep_up(speculate *p, sequence *s, int n)
{
    const double seconds = cost_append(p->cost, s->seat->n_taps);
    if (s->seat->dozing || !wager_pay(&s->wager, seconds)) {
        doze(p, s->seat, n);
        return;
    }
    s->spent_s += seconds;
    speculate_flush(p, s);
}

/* Committed rows wait on the seat until the drafter is asked or no more fit: several then share one
 * pass over its weights. */
static void queue_taps(speculate *p, sequence *s, const float *taps, int n)
{
    const size_t width = (size_t)p->bench->tap_width;
    seat *at = s->seat;
    if (at->n_taps + n > REQUEST_MAX_BLOCK) keep_up(p, s, n);
    memcpy(at->taps + (size_t)at->n_taps * width, taps, (size_t)n * width * sizeof *taps);
    at->n_taps += n;
}

static wager_part part_of(const sequence *s)
{
    return s->in_call ? WAGER_CALL : s->in_think ? WAGER_THOUGHT : WAGER_TEXT;
}

/* Where the constraint leaves no choice, its tokens come first; enough of them make the drafter
 * needless. */
static void offer_forced(sequence *s, int left)
{
    wager *w = &s->wager;
    const bool drafts = w->limit > 1;
    sequence_force(s, (left < REQUEST_MAX_BLOCK ? left : REQUEST_MAX_BLOCK) - 1);
    const int enough = w->fixed ? w->limit - 1 : drafts ? FORCED_ENOUGH : 1;
    if (s->n_forced == 0 || s->n_forced < enough) return;
    w->part = WAGER_FORCED;
    if (!w->fixed) w->limit = s->n_forced + 1;
}

void speculate_offer(const speculate *p, sequence *s)
{
    const int asked = s->broken ? REQUEST_BLOCK_PLAIN : s->params->block, left = sequence_left(s);
    wager *w = &s->wager;
    w->fixed = asked != REQUEST_BLOCK_AUTO;
    w->limit = w->fixed ? asked : p->bench->draft ? p->bench->draft->block : 1;
    w->part = part_of(s);
    if (w->limit > left) w->limit = left;
    w->waiting = s->seat->n_taps;
    w->reserve = s->seat->dozing ? 0 : cost_append(p->cost, REQUEST_MAX_BLOCK);
    s->n_forced = w->sure = 0;
    s->copy_from = 0;
    s->broken = false;
    if (w->fixed && w->limit == 1) return;
    offer_forced(s, left);
    if (w->part == WAGER_FORCED) return;
    s->copy_from = s->lookup.ends ? lookup_find(&s->lookup, s->tokens, s->n_tokens) : 0;
    if (!s->copy_from) return;
    const int copies = s->n_tokens - s->copy_from;
    if (w->fixed && copies < w->limit - 1) {
        s->copy_from = 0;
        return;
    }
    w->part = WAGER_COPY;
    if (w->fixed) return;
    w->limit = copies < REQUEST_MAX_BLOCK - 1 ? copies + 1 : REQUEST_MAX_BLOCK;
    if (w->limit > left) w->limit = left;
}

static draft_job job_of(const workbench *w, sequence *s)
{
    const sampler_params *p = &s->params->sampling;
    return (draft_job){ .state = s->seat->draft,
                        .anchor = s->rows[0],
                        .block = s->block,
                        .temperature = p->temperature < SAMPLER_GREEDY ? 0 : p->temperature,
                        .seed = p->seed,
                        .choice = (uint64_t)s->choice,
                        .n_vocab = w->n_token,
                        .drafts = s->rows + 1 };
}

/* Forced tokens take the first places, and the list ends before what is not allowed. */
static void finish_drafts(sequence *s)
{
    if (s->block < 2) return;
    const int drafts = s->block - 1, n = s->n_forced < drafts ? s->n_forced : drafts;
    memcpy(s->rows + 1, s->forced, (size_t)n * sizeof *s->rows);
    s->block = 1 + sequence_legal(s, s->rows + 1, drafts);
}

void speculate_draft(speculate *p, sequence *const *list, int n)
{
    workbench *w = p->bench;
    int n_drafts = 0, n_appends = 0, rows = 0;
    for (int i = 0; i < n; i++) {
        sequence *s = list[i];
        if (s->block == 0) continue;
        s->rows[0] = s->tokens[s->n_tokens - 1];
        if (s->block == 1 || s->wager.part == WAGER_FORCED) continue;
        if (s->copy_from) {
            memcpy(s->rows + 1, s->tokens + s->copy_from, (size_t)(s->block - 1) * sizeof *s->rows);
            continue;
        }
        seat *at = s->seat;
        if (at->dozing) drafter_state_reset(at->draft, state_len(at->state) - at->n_taps);
        if (at->n_taps) p->appends[n_appends++] = (draft_append){ at->draft, at->taps, at->n_taps };
        at->n_taps = 0;
        at->dozing = false;
        p->drafts[n_drafts++] = job_of(w, s);
        rows += s->block;
    }
    if (n_appends) append(p, p->appends, n_appends);
    if (n_drafts) {
        const int64_t start = clock_ns();
        drafter_draft(w->drafter, w->compute, w->drafter_work, w->king, w->king_work, p->drafts,
                      n_drafts);
        cost_saw_draft(p->cost, rows, (double)(clock_ns() - start) * 1e-9);
    }
    for (int i = 0; i < n; i++) finish_drafts(list[i]);
}

static void count_step(sequence *s, int accepted)
{
    request_usage *u = &s->progress.usage;
    s->slot->step_accepted[u->steps] = accepted;
    s->slot->step_block[u->steps] = s->block;
    u->steps++;
    u->blocks[s->block]++;
    const int drafted = s->block - 1;
    u->drafted += drafted;
    u->accepted += accepted;
    if (s->copy_from) {
        u->copy_drafted += drafted;
        u->copy_accepted += accepted;
    }
    for (int i = 0; i < drafted; i++) u->drafted_at[i]++;
    for (int i = 0; i < accepted; i++) u->accepted_at[i]++;
}

int speculate_settle(speculate *p, sequence *s, const king_job *job)
{
    workbench *w = p->bench;
    int keep = 0;
    while (keep < s->block && !s->ended) {
        const float *logits = job->logits + (size_t)keep * (size_t)w->n_vocab;
        const int32_t pick = sequence_pick(s, w, logits);
        keep++;
        if (pick < 0) break;
        sequence_push(s, w, pick, logits);
        if (keep < s->block && s->rows[keep] != pick) break;
    }
    state_commit(s->seat->state, keep);
    if (may_draft(s)) queue_taps(p, s, job->taps, keep);
    count_step(s, keep - 1);
    return keep - 1;
}

void speculate_feed(speculate *p, sequence *s, const float *taps, int from, int n)
{
    workbench *w = p->bench;
    drafter_state *draft = s->seat->draft;
    if (!may_draft(s)) return;
    const int window = w->draft->window;
    const int first = window > 0 && s->prefill_end > window ? s->prefill_end - window : 0;
    if (from + n <= first) return;
    if (from < first) {
        taps += (size_t)(first - from) * (size_t)w->tap_width;
        n -= first - from;
        from = first;
    }
    if (drafter_state_len(draft) != from) drafter_state_reset(draft, from);
    const draft_append job = { draft, taps, n };
    drafter_append(w->drafter, w->compute, w->drafter_work, &job, 1);
}
