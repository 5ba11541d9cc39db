/* speculate.h - drafts and their verification.
 *
 * A step runs [anchor, drafts] through the king; row i gives the token after it, picked with that
 * row's own history. Drafts count as long as they equal the picks, so the output is that of plain
 * decoding whatever is proposed. The rows of the picks that stay are committed, the others taken
 * back. */
#ifndef ENGINE_SPECULATE_H
#define ENGINE_SPECULATE_H
#include "engine/sequence.h"

typedef struct speculate {
    workbench *bench;
    cost *cost;
    draft_job *drafts;     /* [room of speculate_init] */
    draft_append *appends; /* the same */
} speculate;
/* room: sequences of a step; what drafts cost is read from `c`, and noted there. */
status speculate_init(speculate *p, workbench *w, cost *c, int room, error *e);
void speculate_free(speculate *p);

/* What the sequence could draft in this step: part, limit and fixed of its wager. */
void speculate_offer(const speculate *p, sequence *s);
/* Fills rows[0, block) of every sequence whose block is above 0: anchor and drafts. */
void speculate_draft(speculate *p, sequence *const *list, int n);
/* After the king's pass: picks, appends to the output, commits. Returns the drafts accepted. */
int speculate_settle(speculate *p, sequence *s, const king_job *job);
/* Prefilled rows [from, from + n) of the sequence reach the drafter, as far as its window still
 * sees them from the end of the prompt. */
void speculate_feed(speculate *p, sequence *s, const float *taps, int from, int n);
/* Committed rows that still wait reach the drafter, unless its context was let go. */
void speculate_flush(speculate *p, sequence *s);
#endif
