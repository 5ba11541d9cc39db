/* reader.c - published tokens become text, text becomes events. */
#include "api/reader.h"
#include "base/digest.h"
#include "base/mem.h"
#include "base/banned.h"

enum { READER_MAX_TEXT = 1 << 30 };

status reader_init(reader *r, request *q, int choice, const tokenizer *t, const json_node *tools,
                   bool raw, events *out, error *e)
{
    const request_params *p = request_get_params(q);
    *r = (reader){ .request = q, .choice = choice };
    detok_init(&r->detok, t, p->hide_special);
    buf_init(&r->text, READER_MAX_TEXT);
    if (raw) return OK;
    return reply_new(&r->reply, p->in_think, tools, events_sink, out, e);
}

void reader_free(reader *r)
{
    if (r->reply) reply_free(r->reply);
    buf_free(&r->text);
    mem_free(r->logprobs);
    mem_free(r->tops);
    *r = (reader){ 0 };
}

/* Text up to byte `shown` of the output leaves the reader. */
static status show(reader *r, size_t shown, events *out, error *e)
{
    TRY(buf_status(&r->text, "output", e));
    size_t n = shown - r->passed;
    if (n > r->text.len) n = r->text.len;
    if (n == 0) return OK;
    const str piece = { buf_view(&r->text).ptr, n };
    if (r->reply) TRY(reply_put(r->reply, piece, e));
    else TRY(events_text(out, INGOT_TEXT, 0, piece, e));
    buf_consume(&r->text, n);
    r->passed += n;
    return OK;
}

static status make_room(reader *r, int n, int n_top, error *e)
{
    if (n <= r->room) return OK;
    mem_free(r->logprobs);
    mem_free(r->tops);
    r->logprobs = mem_array((size_t)n, sizeof *r->logprobs);
    r->tops = mem_array((size_t)n * (size_t)n_top, sizeof *r->tops);
    r->room = r->logprobs && r->tops ? n : 0;
    return r->room ? OK : error_set(e, E_NOMEM, "output: no memory for %d log-probabilities", n);
}

/* The log-probabilities of the tokens decoded since they were last handed out go with the first
 * event of this round. */
static status attach_logprobs(reader *r, events *out, size_t first, error *e)
{
    const request_choice c = request_peek(r->request, r->choice);
    if (!c.logprob || out->n == first) return OK;
    const int k = request_get_params(r->request)->top_logprobs, n = r->n_ids - r->n_told;
    TRY(make_room(r, n, k, e));
    for (int i = 0; i < n; i++) {
        const int at = r->n_told + i;
        struct ingot_top *top = r->tops + (size_t)i * (size_t)k;
        int n_top = 0;
        for (int j = 0; j < k; j++) {
            const request_top *t = &c.top[(size_t)at * (size_t)k + (size_t)j];
            if (t->id >= 0) top[n_top++] = (struct ingot_top){ t->id, t->logprob };
        }
        r->logprobs[i] = (ingot_logprob){ c.ids[at], c.logprob[at], n_top, top };
    }
    r->n_told = r->n_ids;
    events_set_logprobs(out, first, r->logprobs, n);
    return OK;
}

static status hash_ids(const int32_t *ids, int n, char out[65], error *e)
{
    digest *d;
    TRY(digest_open(&d, DIGEST_SHA256, e));
    for (int i = 0; i < n; i++) {
        const uint32_t v = (uint32_t)ids[i];
        const uint8_t bytes[4] = { (uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16),
                                   (uint8_t)(v >> 24) };
        digest_put(d, bytes, sizeof bytes);
    }
    digest_hex(d, out);
    return OK;
}

static void copy_usage(ingot_usage *to, const request_params *p, const request_progress *g)
{
    const request_usage *u = &g->usage;
    *to = (ingot_usage){ .prompt_tokens = p->n_prompt,
                         .cached_tokens = u->cached_tokens,
                         .completion_tokens = g->n_ids,
                         .decoded_tokens = g->n_ids > 0 ? g->n_ids - 1 : 0,
                         .reasoning_tokens = u->reasoning_tokens,
                         .queue_s = u->queue_s,
                         .prefill_s = u->prefill_s,
                         .decode_s = u->decode_s,
                         .steps = u->steps,
                         .drafted = u->drafted,
                         .accepted = u->accepted,
                         .copy_drafted = u->copy_drafted,
                         .copy_accepted = u->copy_accepted,
                         .plain_s = u->plain_s,
                         .seed = p->sampling.seed };
    for (int i = 0; i < INGOT_MAX_BLOCK; i++) {
        to->drafted_at[i] = u->drafted_at[i];
        to->accepted_at[i] = u->accepted_at[i];
    }
    for (int i = 0; i <= INGOT_MAX_BLOCK; i++) to->blocks[i] = u->blocks[i];
}

static ingot_finish finish_of(const reader *r, request_finish f)
{
    switch (f) {
    case REQUEST_STOP:
        return r->reply && reply_calls(r->reply) > 0 ? INGOT_FINISH_TOOL_CALLS : INGOT_FINISH_STOP;
    case REQUEST_LENGTH: return INGOT_FINISH_LENGTH;
    case REQUEST_CANCELLED: return INGOT_FINISH_CANCELLED;
    default: return INGOT_FINISH_ERROR;
    }
}

static status take_end(reader *r, const request_progress *g, events *out, error *e)
{
    const request_params *p = request_get_params(r->request);
    const request_choice c = request_peek(r->request, r->choice);
    const size_t first = out->n;
    detok_finish(&r->detok, &r->text);
    TRY(show(r, g->shown, out, e));
    if (r->reply) TRY(reply_finish(r->reply, e));
    copy_usage(&r->usage, p, g);
    TRY(hash_ids(c.ids, g->n_ids, r->usage.sha256, e));
    const ingot_event ev = { .kind = INGOT_END,
                             .finish = finish_of(r, g->finish),
                             .usage = &r->usage,
                             .ids = c.ids,
                             .n_ids = g->n_ids,
                             .stop_id = g->stop_id,
                             .step_accepted = c.step_accepted,
                             .step_block = c.step_block,
                             .stop = g->stop >= 0 ? p->stop[g->stop].ptr : NULL,
                             .error = g->finish == REQUEST_FAILED ? c.error : NULL };
    r->ended = true;
    TRY(events_add(out, &ev, e));
    return r->n_told < r->n_ids ? attach_logprobs(r, out, first, e) : OK;
}

static status take_progress(reader *r, const request_progress *g, events *out, error *e)
{
    if (g->queued == r->queued && g->prompt_done == r->prompt_done) return OK;
    r->queued = g->queued;
    r->prompt_done = g->prompt_done;
    const bool waits = g->queued >= 0;
    const ingot_event ev = { .kind = INGOT_PROGRESS,
                             .done = waits ? g->queued : g->prompt_done,
                             .total = waits ? 0 : request_get_params(r->request)->n_prompt };
    return events_add(out, &ev, e);
}

status reader_take(reader *r, events *out, error *e)
{
    if (r->ended) return OK;
    out->choice = r->choice;
    request_progress g;
    request_read(r->request, r->choice, &g);
    if (r->n_ids == 0) TRY(take_progress(r, &g, out, e));
    const size_t first = out->n;
    const int32_t *ids = request_peek(r->request, r->choice).ids;
    while (r->n_ids < g.n_ids) detok_put(&r->detok, ids[r->n_ids++], &r->text);
    TRY(show(r, g.shown, out, e));
    TRY(attach_logprobs(r, out, first, e));
    return g.finish == REQUEST_RUNNING ? OK : take_end(r, &g, out, e);
}
