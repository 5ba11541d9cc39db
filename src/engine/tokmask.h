/* tokmask.h - which tokens a grammar allows in a state.
 *
 * The vocabulary is kept in the order of its bytes, each token with the length it shares with the
 * one before: one walk in that order tries every token and repeats no common beginning. Masks are
 * kept by state. Added tokens (turn ends, tags) are never part of constrained text. */
#ifndef ENGINE_TOKMASK_H
#define ENGINE_TOKMASK_H
#include "engine/grammar.h"
#include "text/tokenizer.h"

/* The ordered vocabulary: immutable, shared by all requests. */
typedef struct tokmask_vocabulary tokmask_vocabulary;
status tokmask_vocabulary_new(tokmask_vocabulary **out, const tokenizer *t, int n_token,
                              const int32_t *admitted, int n_admitted, error *e);
void tokmask_vocabulary_free(tokmask_vocabulary *v);

/* One grammar on one vocabulary, with its masks; used by one thread. States are numbers until
 * tokmask_forget. */
typedef struct tokmask tokmask;
enum { TOKMASK_PLACES = 8 };
/* Takes the grammar over, also on failure. stop_ids are allowed where the text may end; borrowed.
 * call_open: the token that opens a call, or -1. */
status tokmask_new(tokmask **out, grammar *g, const tokmask_vocabulary *v, const int32_t *stop_ids,
                   int n_stop_ids, int32_t call_open, error *e);
void tokmask_free(tokmask *m);
/* Bit id of word id / 32: the token is allowed. NULL when it could not be made (tokmask_status).
 * Valid until the next call. *none: no token at all is allowed: the text ends, or is stuck. */
const uint32_t *tokmask_of(tokmask *m, int state, bool *none);
/* The mask of a thought before the text: every token but those that would end it all or be a call
 * in its middle. */
const uint32_t *tokmask_thought(const tokmask *m);
bool tokmask_in_thought(const tokmask *m, int32_t id); /* it is in that mask */
bool tokmask_accepts(const tokmask *m, int state);     /* the text may end here */
/* The state after a token's bytes. */
int tokmask_next(tokmask *m, int state, int32_t id);
/* Tokens that follow from `state`, at most `most`: those that alone are allowed, then, where
 * several are but all begin the same text, how the tokenizer would write that text. Returns how
 * many, *sure of them of the first kind. */
int tokmask_forced(tokmask *m, int state, int32_t *out, int most, int *sure);
status tokmask_status(const tokmask *m, error *e);
/* *state is to be kept: at most TOKMASK_PLACES of them. */
void tokmask_follow(tokmask *m, int *state);
void tokmask_leave(tokmask *m, const int *state);
/* When the states are used up: forgets all that are not followed; the others get new numbers.
 * False: there is another fault. */
bool tokmask_forget(tokmask *m);
#endif
