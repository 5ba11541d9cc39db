/* cost.h - how long passes take, as measured: the king's by rows and context, the drafter's by rows
 * of drafts and by rows that enter its context. All results and arguments of time are seconds.
 *
 * Values between the measured points are interpolated, and each measurement moves the points around
 * it by a sixteenth of the error. Nothing here reaches a token: it decides only how many rows are
 * worth their time. */
#ifndef ENGINE_COST_H
#define ENGINE_COST_H
#include <stdbool.h>

enum { COST_POINTS = 26, COST_DEPTHS = 64, COST_DEPTH_STEP = 4096 };

typedef struct cost_curve {
    double seconds[COST_POINTS]; /* at cost_rows(i) */
    bool known;                  /* by a measurement, or taken over from a neighbour */
} cost_curve;

typedef struct cost {
    cost_curve king[COST_DEPTHS]; /* by context / COST_DEPTH_STEP */
    cost_curve drafter, append;
} cost;

int cost_rows(int point); /* rows of a point: 1 to 8, 12, 16, 24, 32, ... */
/* `context`: mean positions before the rows. Zero while nothing has been measured. */
double cost_pass(cost *c, int rows, int context);
double cost_draft(const cost *c, int rows); /* rows 0: nothing */
void cost_saw_pass(cost *c, int rows, int context, double seconds);
void cost_saw_draft(cost *c, int rows, double seconds);
double cost_append(const cost *c, int rows);
void cost_saw_append(cost *c, int rows, double seconds);
/* First measurements: n pairs, rows rising; everything else is interpolated or extended in
 * proportion. */
void cost_begin_pass(cost *c, const int *rows, const double *seconds, int n);
void cost_begin_draft(cost *c, const int *rows, const double *seconds, int n);
void cost_begin_append(cost *c, const int *rows, const double *seconds, int n);
/* Most rows whose pass takes at most `seconds`, between 1 and `most`. */
int cost_fit(cost *c, double seconds, int most, int context);
#endif
