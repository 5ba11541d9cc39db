/* request.h - what a client asks of the engine, and what comes back while it runs.
 *
 * The client owns one reference and the engine one for each choice; the last one frees it.
 * Everything above the line is fixed when it is made. What the engine publishes is guarded by the
 * lock and copied out by request_read; the tokens themselves are written once, before they are
 * published, and may then be read without it. No reader can make the engine wait: the room for all
 * output is there from the start. */
#ifndef ENGINE_REQUEST_H
#define ENGINE_REQUEST_H
#include <pthread.h>
#include <stdatomic.h>
#include "base/arena.h"
#include "engine/sampler.h"
#include "engine/tokmask.h"

enum { REQUEST_MAX_BLOCK = 16, REQUEST_MAX_TOP = 20, REQUEST_MAX_CHOICES = 8 };
enum { REQUEST_BLOCK_AUTO = 0, REQUEST_BLOCK_PLAIN = 1 };

typedef enum request_finish {
    REQUEST_RUNNING,
    REQUEST_STOP,   /* a stop id or a stop string */
    REQUEST_LENGTH, /* max_tokens */
    REQUEST_CANCELLED,
    REQUEST_FAILED /* see error */
} request_finish;

typedef struct request_params {
    const int32_t *prompt; /* [n_prompt], at least one */
    int n_prompt;
    const int *marks; /* [n_marks] token counts, rising: where a message of the prompt ends */
    int n_marks;
    sampler_params sampling;
    int n;           /* choices */
    int max_tokens;  /* of a choice, >= 1; n_prompt + max_tokens fits the context */
    int block;       /* REQUEST_BLOCK_AUTO, REQUEST_BLOCK_PLAIN, or the rows of every step */
    bool copy;       /* drafts may be copied from prompt and output */
    const str *stop; /* [n_stop], none empty */
    int n_stop;
    const int32_t *stop_ids;
    int n_stop_ids;
    bool hide_special; /* special tokens are no part of the text (matters to stop strings) */
    int top_logprobs;  /* -1: no log-probabilities */
    bool in_think;     /* the prompt ends inside a thought */
    int32_t think_open, think_close, call_open, call_close; /* ids, -1: the tokenizer has none */
    bool single_call;    /* the output ends with its first call */
    int thinking_budget; /* tokens; 0: none */
    tokmask *constraint; /* what the output must obey outside thoughts, or NULL; taken over */
    float *score; /* [n_prompt - 1], or NULL: only log-probabilities of the prompt are wanted */
} request_params;

typedef struct request_top {
    int32_t id;
    float logprob;
} request_top;

typedef struct request_usage {
    int cached_tokens, reasoning_tokens;
    double queue_s, prefill_s, decode_s, plain_s;
    int steps, drafted, accepted, copy_drafted, copy_accepted;
    int drafted_at[REQUEST_MAX_BLOCK], accepted_at[REQUEST_MAX_BLOCK];
    int blocks[REQUEST_MAX_BLOCK + 1];
} request_usage;

/* One choice, as far as it is published. */
typedef struct request_progress {
    int n_ids;    /* tokens of the output so far, stop id excluded */
    size_t shown; /* bytes of the decoded output that may be shown; STR_NONE: all */
    request_finish finish;
    int stop;        /* index of the stop string that ended it, -1 */
    int32_t stop_id; /* the stop id that ended it, -1 */
    int queued;      /* requests ahead, -1 when it has started */
    int prompt_done; /* prompt tokens run or found in the cache */
    request_usage usage;
} request_progress;

typedef struct request_choice {
    const int32_t *ids;                        /* output, [max_tokens] room */
    const int32_t *step_accepted, *step_block; /* [usage.steps] */
    const float *logprob;                      /* of each output token; NULL: not asked for */
    const request_top *top; /* [top_logprobs] for each output token, best first */
    const char *error;      /* with REQUEST_FAILED */
} request_choice;

typedef struct request request;
/* Called on the engine's thread with the request's lock held: must not block and must not call
 * back. */
typedef void request_wake(void *arg, void *owner);

/* Copies all of `p` but score and constraint; the latter is freed with the request, on failure
 * too. */
status request_new(request **out, const request_params *p, void *owner, error *e);
const request_params *request_get_params(const request *r);

/* ---- client's side ---- */
void request_cancel(request *r);  /* any thread */
void request_release(request *r); /* no wake call after it returns; cancels */
/* Waits until something was published that *seen (starts at 0) does not count yet, at most
 * timeout_ms (-1: for ever); E_AGAIN when nothing was. */
status request_wait(request *r, uint64_t *seen, int timeout_ms);
void request_read(request *r, int choice, request_progress *out);
request_choice request_peek(const request *r, int choice); /* rows up to what request_read said */

/* ---- engine's side ---- */
typedef struct request_slot {
    int32_t *tokens; /* [n_prompt + max_tokens], prompt filled in */
    int32_t *step_accepted, *step_block;
    float *logprob;
    request_top *top;
    char error[256];
    request_progress progress; /* guarded by the lock */
} request_slot;
request_slot *request_get_slot(request *r, int choice);
bool request_is_cancelled(const request *r);
void request_set_wake(request *r, request_wake *wake, void *arg);
void request_publish(request *r, int choice, const request_progress *p);
void request_drop(request *r); /* one reference of the engine */
#endif
