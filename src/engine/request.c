/* request.c - the meeting place of a client and the engine. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/queue.h"
#include "engine/request.h"
#include "base/banned.h"

struct request {
    request_params params;
    arena mem;
    void *owner;
    atomic_int references;
    atomic_bool cancelled;
    request_slot slots[REQUEST_MAX_CHOICES];

    pthread_mutex_t lock;
    queue *bell;        /* holds nothing: it is woken at each publication */
    request_wake *wake; /* NULL once the client has left */
    void *wake_arg;
    uint64_t version; /* counts publications */
};

static void free_all(request *r)
{
    for (int i = 0; i < r->params.n; i++) {
        request_slot *s = &r->slots[i];
        mem_free(s->tokens);
        mem_free(s->step_accepted);
        mem_free(s->step_block);
        mem_free(s->logprob);
        mem_free(s->top);
    }
    queue_free(r->bell);
    pthread_mutex_destroy(&r->lock);
    arena_free(&r->mem);
    tokmask_free(r->params.constraint);
    mem_free(r);
}

static status no_memory(const request_params *p, error *e)
{
    return error_set(e, E_NOMEM, "request: no memory for %d prompt and %d output tokens",
                     p->n_prompt, p->max_tokens);
}

/* Output arrays are not cleared: their pages cost nothing until they are written. */
static status new_slot(request_slot *s, const request_params *p, error *e)
{
    const size_t room = (size_t)p->max_tokens;
    s->tokens = mem_alloc(((size_t)p->n_prompt + room) * sizeof *s->tokens);
    s->step_accepted = mem_alloc(room * sizeof *s->step_accepted);
    s->step_block = mem_alloc(room * sizeof *s->step_block);
    if (!s->tokens || !s->step_accepted || !s->step_block) return no_memory(p, e);
    if (p->top_logprobs >= 0) {
        s->logprob = mem_alloc(room * sizeof *s->logprob);
        s->top = mem_alloc(room * (size_t)p->top_logprobs * sizeof *s->top);
        if (!s->logprob || !s->top) return no_memory(p, e);
    }
    memcpy(s->tokens, p->prompt, (size_t)p->n_prompt * sizeof *s->tokens);
    s->progress =
        (request_progress){ .stop = -1, .stop_id = -1, .shown = p->n_stop ? 0 : STR_NONE };
    return OK;
}

static void *copy_array(arena *a, const void *from, int n, size_t bytes, bool *failed)
{
    if (n <= 0) return NULL;
    void *to = arena_array(a, (size_t)n, bytes);
    if (to) memcpy(to, from, (size_t)n * bytes);
    else *failed = true;
    return to;
}

static status copy_params(request *r, const request_params *p, error *e)
{
    bool failed = false;
    request_params *q = &r->params;
    q->stop_ids = copy_array(&r->mem, p->stop_ids, p->n_stop_ids, sizeof *p->stop_ids, &failed);
    q->marks = copy_array(&r->mem, p->marks, p->n_marks, sizeof *p->marks, &failed);
    q->sampling.bias = copy_array(&r->mem, p->sampling.bias, p->sampling.n_bias,
                                  sizeof *p->sampling.bias, &failed);
    str *stop = copy_array(&r->mem, p->stop, p->n_stop, sizeof *p->stop, &failed);
    for (int i = 0; i < p->n_stop && stop; i++) {
        stop[i] = arena_str(&r->mem, p->stop[i]);
        if (!stop[i].ptr) failed = true;
    }
    q->stop = stop;
    return failed ? no_memory(p, e) : OK;
}

status request_new(request **out, const request_params *p, void *owner, error *e)
{
    CHECK(p->n >= 1 && p->n <= REQUEST_MAX_CHOICES && p->n_prompt >= 1 && p->max_tokens >= 1);
    request *r = mem_zalloc(sizeof *r);
    if (!r) {
        tokmask_free(p->constraint);
        return no_memory(p, e);
    }
    r->params = *p;
    r->owner = owner;
    arena_init(&r->mem, 0);
    atomic_init(&r->references, 1 + p->n);
    atomic_init(&r->cancelled, false);
    pthread_mutex_init(&r->lock, NULL);
    status s = queue_new(&r->bell, 1, e);
    if (s == OK) s = copy_params(r, p, e);
    for (int i = 0; i < p->n && s == OK; i++) s = new_slot(&r->slots[i], p, e);
    if (s) {
        free_all(r);
        return s;
    }
    r->params.prompt = r->slots[0].tokens;
    *out = r;
    return OK;
}

const request_params *request_get_params(const request *r)
{
    return &r->params;
}

void request_cancel(request *r)
{
    atomic_store(&r->cancelled, true);
}

bool request_is_cancelled(const request *r)
{
    return atomic_load(&r->cancelled);
}

void request_drop(request *r)
{
    if (atomic_fetch_sub(&r->references, 1) == 1) free_all(r);
}

void request_release(request *r)
{
    request_cancel(r);
    pthread_mutex_lock(&r->lock);
    r->wake = NULL;
    pthread_mutex_unlock(&r->lock);
    request_drop(r);
}

static bool has_news(request *r, uint64_t *seen)
{
    pthread_mutex_lock(&r->lock);
    const bool news = r->version != *seen;
    *seen = r->version;
    pthread_mutex_unlock(&r->lock);
    return news;
}

status request_wait(request *r, uint64_t *seen, int timeout_ms)
{
    const int64_t until = clock_ns() + (int64_t)timeout_ms * 1000000;
    while (!has_news(r, seen)) {
        const int64_t left_ms = timeout_ms < 0 ? -1 : (until - clock_ns() + 999999) / 1000000;
        if (timeout_ms >= 0 && left_ms <= 0) return E_AGAIN;
        queue_wait(r->bell, (int)left_ms);
    }
    return OK;
}

void request_read(request *r, int choice, request_progress *out)
{
    pthread_mutex_lock(&r->lock);
    *out = r->slots[choice].progress;
    pthread_mutex_unlock(&r->lock);
}

request_choice request_peek(const request *r, int choice)
{
    const request_slot *s = &r->slots[choice];
    return (request_choice){ .ids = s->tokens + r->params.n_prompt,
                             .step_accepted = s->step_accepted,
                             .step_block = s->step_block,
                             .logprob = s->logprob,
                             .top = s->top,
                             .error = s->error };
}

request_slot *request_get_slot(request *r, int choice)
{
    return &r->slots[choice];
}

void request_set_wake(request *r, request_wake *wake, void *arg)
{
    r->wake = wake;
    r->wake_arg = arg;
}

void request_publish(request *r, int choice, const request_progress *p)
{
    pthread_mutex_lock(&r->lock);
    r->slots[choice].progress = *p;
    r->version++;
    queue_wake(r->bell);
    if (r->wake) r->wake(r->wake_arg, r->owner);
    pthread_mutex_unlock(&r->lock);
}
