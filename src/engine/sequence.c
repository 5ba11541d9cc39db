/* sequence.c - the history of one choice: what is appended to it and what ends it. */
#include <stdio.h>
#include "base/clock.h"
#include "base/mem.h"
#include "engine/sequence.h"
#include "base/banned.h"

_Static_assert((int)REQUEST_MAX_CHOICES <= (int)TOKMASK_PLACES,
               "each choice has a place in the constraint");

status sequence_new(sequence **out, request *r, int choice, const workbench *w, error *e)
{
    const request_params *p = request_get_params(r);
    sequence *s = mem_zalloc(sizeof *s);
    if (!s) return error_set(e, E_NOMEM, "request: no memory for a sequence");
    s->request = r;
    s->params = p;
    s->choice = choice;
    s->slot = request_get_slot(r, choice);
    s->progress = s->slot->progress;
    s->tokens = s->slot->tokens;
    s->n_prompt = s->n_tokens = p->n_prompt;
    /* The last token of a scored prompt predicts nothing that is asked for. */
    s->prefill_end = p->score ? p->n_prompt - 1 : p->n_prompt;
    s->in_think = p->in_think;
    s->submitted_ns = clock_ns();
    stop_init(&s->stop, p->stop, p->n_stop);
    detok_init(&s->detok, w->tokenizer, p->hide_special);
    status st = sampler_init(&s->sampler, &p->sampling, (uint64_t)choice, w->n_token, e);
    if (st == OK && p->copy && p->block != REQUEST_BLOCK_PLAIN)
        st = lookup_init(&s->lookup, p->n_prompt + p->max_tokens, e);
    if (st) {
        sequence_free(s);
        return st;
    }
    for (int i = 0; i < p->n_prompt; i++) sampler_saw(&s->sampler, s->tokens[i], false);
    if (p->constraint) tokmask_follow(p->constraint, &s->grammar);
    *out = s;
    return OK;
}

status sequence_share_prompt(sequence *list, error *e)
{
    shared_prompt *shared = mem_zalloc(sizeof *shared);
    if (!shared) return error_set(e, E_NOMEM, "request: no memory for its choices");
    for (; list; list = list->next) {
        list->shared = shared;
        shared->references++;
    }
    return OK;
}

void sequence_drop_snapshot(shared_prompt *shared)
{
    if (shared->snap) state_snap_free(shared->snap);
    if (shared->draft) drafter_state_free(shared->draft);
    shared->snap = NULL;
    shared->draft = NULL;
}

void sequence_leave_prompt(sequence *s)
{
    shared_prompt *shared = s->shared;
    s->shared = NULL;
    if (!shared || --shared->references) return;
    sequence_drop_snapshot(shared);
    mem_free(shared);
}

void sequence_free(sequence *s)
{
    sequence_leave_prompt(s);
    if (s->params->constraint) tokmask_leave(s->params->constraint, &s->grammar);
    stop_free(&s->stop);
    sampler_free(&s->sampler);
    lookup_free(&s->lookup);
    mem_free(s);
}

/* Whether what comes now has to obey the constraint; before it a thought may be under way. */
static bool is_constrained(const sequence *s)
{
    return s->params->constraint && !s->in_think;
}

/* The mask of the constraint; false when the sequence has ended. */
static bool find_mask(sequence *s, const uint32_t **mask)
{
    bool none = false;
    *mask = tokmask_of(s->params->constraint, s->grammar, &none);
    if (!*mask && tokmask_forget(s->params->constraint))
        *mask = tokmask_of(s->params->constraint, s->grammar, &none);
    if (*mask && !none) return true;
    error e = { .text = "grammar: a token left it" };
    if (*mask && tokmask_accepts(s->params->constraint, s->grammar)) {
        sequence_end(s, REQUEST_STOP);
    } else if (*mask) {
        sequence_fail(s, "grammar: no token goes on from here");
    } else {
        (void)tokmask_status(s->params->constraint, &e);
        sequence_fail(s, e.text);
    }
    return false;
}

int32_t sequence_pick(sequence *s, workbench *w, const float *logits)
{
    const request_params *p = s->params;
    if (s->in_think && p->thinking_budget > 0 && p->think_close >= 0 &&
        s->progress.usage.reasoning_tokens >= p->thinking_budget)
        return p->think_close;
    const uint32_t *mask = NULL;
    if (is_constrained(s) && !find_mask(s, &mask)) return -1;
    if (s->in_think && p->constraint) mask = tokmask_thought(p->constraint);
    const int32_t id =
        sampler_pick(&s->sampler, &w->sampler, w->compute, logits, s->n_tokens, mask);
    if (id < 0) sequence_fail(s, "sampling: no logit is a number that can be picked");
    return id;
}

static bool is_stop_id(const sequence *s, int32_t id)
{
    for (int i = 0; i < s->params->n_stop_ids; i++)
        if (s->params->stop_ids[i] == id) return true;
    return false;
}

void sequence_force(sequence *s, int most)
{
    s->n_forced = s->wager.sure = 0;
    if (is_constrained(s))
        s->n_forced =
            tokmask_forced(s->params->constraint, s->grammar, s->forced, most, &s->wager.sure);
}

int sequence_legal(const sequence *s, const int32_t *drafts, int n)
{
    tokmask *constraint = s->params->constraint;
    int at = s->grammar;
    bool thought = s->in_think;
    for (int i = 0; constraint && i < n; i++) {
        if (thought && !tokmask_in_thought(constraint, drafts[i])) return i;
        if (thought) thought = drafts[i] != s->params->think_close;
        else if (is_stop_id(s, drafts[i])) return tokmask_accepts(constraint, at) ? i + 1 : i;
        else if ((at = tokmask_next(constraint, at, drafts[i])) == GRAMMAR_DEAD) return i;
    }
    return n;
}

static void note_logprobs(sequence *s, workbench *w, int32_t id, const float *logits)
{
    const int i = s->progress.n_ids, k = s->params->top_logprobs;
    const double sum = sampler_log_sum(logits, w->n_vocab);
    s->slot->logprob[i] = (float)(logits[id] - sum);
    if (!k) return;
    const int n =
        compute_topk(w->compute, logits, w->n_token, k, w->sampler.ids, w->sampler.values);
    request_top *top = s->slot->top + (size_t)i * (size_t)k;
    for (int j = 0; j < k; j++)
        top[j] = j < n ? (request_top){ w->sampler.ids[j], (float)(w->sampler.values[j] - sum) }
                       : (request_top){ -1, 0 };
}

/* Thought and call are told by their marker tokens. A thought may only open the reply. */
static void follow_parts(sequence *s, int32_t id)
{
    const request_params *p = s->params;
    if (s->in_think) {
        s->progress.usage.reasoning_tokens++;
        if (id == p->think_close) s->in_think = false;
    } else if (id == p->think_open && s->progress.n_ids == 0) {
        s->in_think = true;
        s->progress.usage.reasoning_tokens++;
    }
    if (id == p->call_open && id >= 0) {
        s->in_think = false;
        s->in_call = true;
    }
}

/* Feeds the stop search; true when a stop string is complete. */
static bool look_for_stop(sequence *s, int32_t id)
{
    detok_put(&s->detok, id, &s->stop.window);
    const bool found = stop_look(&s->stop);
    s->progress.shown = s->stop.shown;
    s->progress.stop = s->stop.matched;
    return found;
}

void sequence_push(sequence *s, workbench *w, int32_t id, const float *logits)
{
    s->changed = true;
    if (is_stop_id(s, id)) {
        s->progress.stop_id = id;
        sequence_end(s, REQUEST_STOP);
        return;
    }
    if (s->slot->logprob) note_logprobs(s, w, id, logits);
    if (is_constrained(s)) s->grammar = tokmask_next(s->params->constraint, s->grammar, id);
    follow_parts(s, id);
    s->tokens[s->n_tokens++] = id;
    s->progress.n_ids++;
    sampler_saw(&s->sampler, id, true);
    if (s->params->n_stop && look_for_stop(s, id)) sequence_end(s, REQUEST_STOP);
    else if (s->stop.window.failed) sequence_fail(s, "stop strings: no memory to look for them");
    else if (s->in_call && s->params->single_call && id == s->params->call_close)
        sequence_end(s, REQUEST_STOP);
    else if (sequence_left(s) == 0) sequence_end(s, REQUEST_LENGTH);
}

void sequence_end(sequence *s, request_finish finish)
{
    s->ended = true;
    s->changed = true;
    s->progress.finish = finish;
    s->progress.queued = -1;
    if (s->progress.stop < 0) s->progress.shown = STR_NONE;
    const int64_t now = clock_ns();
    request_usage *u = &s->progress.usage;
    if (!s->admitted_ns) u->queue_s = (double)(now - s->submitted_ns) * 1e-9;
    else if (!s->first_ns) u->prefill_s = (double)(now - s->admitted_ns) * 1e-9;
    else u->decode_s = (double)(now - s->first_ns) * 1e-9;
    /* The clock counts what the table of costs knows nothing of: other work of this machine,
     * too. */
    if (s->spent_s > 0) u->plain_s = u->decode_s * s->plain_s / s->spent_s;
}

void sequence_fail(sequence *s, const char *text)
{
    snprintf(s->slot->error, sizeof s->slot->error, "%s", text);
    sequence_end(s, REQUEST_FAILED);
}

void sequence_publish(sequence *s)
{
    if (!s->changed) return;
    s->changed = false;
    request_publish(s->request, s->choice, &s->progress);
}
