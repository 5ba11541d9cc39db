/* grammar.h - a language over bytes: a pushdown automaton that is made deterministic as far as it
 * is used.
 *
 * Built backwards: every builder takes the node that follows and returns the one that comes first.
 * Running it, a state is a number; states and their transitions are worked out when they are first
 * met and kept, so going back to an earlier state costs nothing. Rules may be recursive, but not
 * before they have taken a byte; nesting is bounded by GRAMMAR_DEPTH, beyond which a text is
 * refused, and a call that ends a rule does not nest. Memory and work are bounded too: a grammar
 * that would take more fails. */
#ifndef ENGINE_GRAMMAR_H
#define ENGINE_GRAMMAR_H
#include "base/error.h"
#include "base/str.h"

enum {
    GRAMMAR_NODES = 1 << 17,  /* most nodes */
    GRAMMAR_STATES = 1 << 14, /* most states kept at once */
    GRAMMAR_DEPTH = 64        /* rules within rules */
};
enum { GRAMMAR_START = 0, GRAMMAR_DEAD = -1 };

typedef struct grammar grammar;
typedef struct grammar_set {
    uint32_t bits[8];
} grammar_set;

typedef struct grammar_range {
    uint32_t from, to; /* code points, both included; surrogates in it are passed over */
} grammar_range;

status grammar_new(grammar **out, error *e);
void grammar_free(grammar *g);

/* ---- building; a failure (memory, GRAMMAR_NODES) shows in grammar_finish ---- */
void grammar_set_add(grammar_set *s, int from, int to); /* bytes from..to */
int grammar_bytes(grammar *g, const grammar_set *set, int next);
int grammar_byte(grammar *g, char c, int next);
/* One character of the ranges, in UTF-8. */
int grammar_chars(grammar *g, const grammar_range *ranges, size_t n, int next);
int grammar_literal(grammar *g, str text, int next);
int grammar_either(grammar *g, int a, int b);
int grammar_loop(grammar *g); /* a node to come back to; grammar_loop_set says where it leads */
void grammar_loop_set(grammar *g, int loop, int body, int next);
int grammar_rule(grammar *g);   /* a new rule, to be defined */
int grammar_return(grammar *g); /* what follows at the end of a rule, and of the whole */
void grammar_define(grammar *g, int rule, int start);
int grammar_call(grammar *g, int rule, int next);
status grammar_finish(grammar *g, int start, error *e);

/* ---- running ---- */
int grammar_next(grammar *g, int state, uint8_t byte); /* GRAMMAR_DEAD: no text goes on like this */
bool grammar_accepts(const grammar *g, int state);     /* the text may end here */
/* E_ARG (too large) or E_NOMEM when a state could not be made: texts are refused that should not
 * be. */
status grammar_status(const grammar *g, error *e);
/* Forgets all states but the start and *states[0..n), which get new numbers, and a limit that was
 * met: there is room for others then, but no work beyond that of the whole run. */
void grammar_keep(grammar *g, int *const *states, int n);
#endif
