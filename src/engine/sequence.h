/* sequence.h - one choice of a request on its way through the engine.
 *
 * While it runs it sits on a seat: the state of the king and the context of the drafter, used by
 * one sequence after another. Its tokens are prompt, then output. In prefill the rows [state
 * length, prefill_end) are still to be run; in decoding the newest token, the anchor, is the only
 * one that has not been run. One that lost its seat on the way prefills all but its anchor. */
#ifndef ENGINE_SEQUENCE_H
#define ENGINE_SEQUENCE_H
#include "engine/lookup.h"
#include "engine/stop.h"
#include "engine/wager.h"
#include "engine/workbench.h"
#include "text/detok.h"

typedef struct seat {
    state *state;
    drafter_state *draft; /* NULL without a drafter */
    /* [REQUEST_MAX_BLOCK, tap_width] committed rows that the drafter has not got yet */
    float *taps;
    int n_taps;
    bool dozing; /* the drafter's context is let go: it begins anew with the rows of taps */
    bool taken;
} seat;

/* The prompt of a request with several choices is run once, by choice 0 up to its last token; the
 * others go on from there. Touched by the engine's thread alone once it is posted. */
typedef struct shared_prompt {
    int references;       /* choices that have not begun */
    bool settled;         /* taken, or given up: the others need not wait */
    state_snap *snap;     /* NULL: each runs the prompt itself */
    drafter_state *draft; /* NULL: begins empty */
} shared_prompt;

typedef struct sequence sequence;
struct sequence {
    sequence *next; /* in a list of the scheduler */
    request *request;
    const request_params *params;
    request_slot *slot;
    int choice;
    request_progress progress; /* what will be published next */
    bool changed;              /* and has not been */

    shared_prompt *shared; /* NULL with one choice, and once this one has begun */
    seat *seat;            /* NULL while it waits */
    int32_t *tokens;       /* the slot's */
    int n_tokens, n_prompt;
    int prefill_end; /* rows below it are prefilled */
    int parting;     /* an earlier prompt had the same tokens up to here; 0: nothing to keep */
    bool ended;
    bool broken;   /* a row was not finite, perhaps of a draft: the next pass is one without */
    bool fetching; /* it waits, or has waited, for a beginning that came from the disk */

    sampler sampler;
    stop stop;
    detok detok;
    lookup lookup; /* empty when nothing may be copied */
    wager wager;
    double plain_s, spent_s; /* of the decoding so far, by the table of costs: see sequence_end */
    int grammar;             /* state of the constraint */
    bool in_think, in_call;
    int64_t submitted_ns, admitted_ns, first_ns;

    /* the current step */
    int block;     /* rows of decoding; 0: it prefills */
    int copy_from; /* the drafts are a copy of the tokens there; 0: they are not */
    int n_forced;  /* the first drafts are what the constraint leaves no choice about */
    int32_t forced[REQUEST_MAX_BLOCK - 1];
    int32_t rows[REQUEST_MAX_BLOCK]; /* anchor, drafts */
};

status sequence_new(sequence **out, request *r, int choice, const workbench *w, error *e);
void sequence_free(sequence *s); /* before the request it is of */
/* Gives the sequences of one request one new shared_prompt. */
status sequence_share_prompt(sequence *list, error *e);
/* This one has begun; the last frees what they share. */
void sequence_leave_prompt(sequence *s);
/* The choices that have not begun run the prompt themselves. */
void sequence_drop_snapshot(shared_prompt *shared);

static inline bool sequence_prefills(const sequence *s)
{
    return state_len(s->seat->state) < s->prefill_end;
}
/* Whether a token has been put out. */
static inline bool sequence_has_begun(const sequence *s)
{
    return s->n_tokens > s->n_prompt;
}
/* Tokens that may still be put out. */
static inline int sequence_left(const sequence *s)
{
    return s->n_prompt + s->params->max_tokens - s->n_tokens;
}

/* The token after the newest one, from the logits [n_vocab] of its row; -1 when the sequence has
 * ended instead: its constraint allows nothing more, or failed. */
int32_t sequence_pick(sequence *s, workbench *w, const float *logits);
/* Fills in `forced`, at most `most` of them. */
void sequence_force(sequence *s, int most);
/* How many of the n drafts the constraint allows, one after the other. */
int sequence_legal(const sequence *s, const int32_t *drafts, int n);
/* Appends a picked token; `logits` are those it was picked from. The sequence may have ended
 * afterwards. */
void sequence_push(sequence *s, workbench *w, int32_t id, const float *logits);
void sequence_end(sequence *s, request_finish finish);
void sequence_fail(sequence *s, const char *text);
/* Tells the client what has changed since the last call. */
void sequence_publish(sequence *s);
#endif
