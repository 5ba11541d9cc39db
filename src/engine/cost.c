/* cost.c - how long a pass takes, as measured. */
#include "engine/cost.h"
#include "base/banned.h"

#define COST_WEIGHT (1.0 / 16)
#define OUTLIER 2.0

int cost_rows(int point)
{
    return point < 8 ? point + 1 : (point % 2 ? 4 : 3) << (point / 2 - 2);
}

/* The point at or below `rows`, and how far it is on the way to the next. */
static int bracket(int rows, double *part)
{
    int i = 0;
    while (i + 1 < COST_POINTS && cost_rows(i + 1) <= rows) i++;
    *part = 0;
    if (i + 1 < COST_POINTS)
        *part = (double)(rows - cost_rows(i)) / (double)(cost_rows(i + 1) - cost_rows(i));
    return i;
}

static double read_curve(const cost_curve *c, int rows)
{
    double part;
    const int i = bracket(rows, &part);
    if (i + 1 == COST_POINTS) return c->seconds[i] * rows / cost_rows(i);
    return c->seconds[i] + part * (c->seconds[i + 1] - c->seconds[i]);
}

static void correct(cost_curve *c, int rows, double seconds)
{
    double part;
    const int i = bracket(rows, &part);
    const double now = read_curve(c, rows);
    /* the machine was busy with something else */
    if (seconds > OUTLIER * now) seconds = OUTLIER * now;
    const double error = COST_WEIGHT * (seconds - now);
    c->seconds[i] += (1 - part) * error;
    if (i + 1 < COST_POINTS) c->seconds[i + 1] += part * error;
}

static void begin(cost_curve *c, const int *rows, const double *seconds, int n)
{
    int k = 0;
    for (int i = 0; i < COST_POINTS; i++) {
        const int r = cost_rows(i);
        while (k + 1 < n && rows[k + 1] <= r) k++;
        if (r < rows[0]) c->seconds[i] = seconds[0];
        else if (k + 1 < n)
            c->seconds[i] = seconds[k] +
                            (seconds[k + 1] - seconds[k]) * (r - rows[k]) / (rows[k + 1] - rows[k]);
        else c->seconds[i] = seconds[k] * r / rows[k];
        if (i > 0 && c->seconds[i] < c->seconds[i - 1]) c->seconds[i] = c->seconds[i - 1];
    }
    c->known = true;
}

/* A depth that nothing was measured at begins as a copy of the nearest smaller one. */
static cost_curve *at_depth(cost *c, int context)
{
    int depth = context / COST_DEPTH_STEP;
    if (depth >= COST_DEPTHS) depth = COST_DEPTHS - 1;
    if (c->king[depth].known) return &c->king[depth];
    int from = depth;
    while (from > 0 && !c->king[from].known) from--;
    c->king[depth] = c->king[from];
    return &c->king[depth];
}

double cost_pass(cost *c, int rows, int context)
{
    return read_curve(at_depth(c, context), rows);
}

double cost_draft(const cost *c, int rows)
{
    return rows > 0 ? read_curve(&c->drafter, rows) : 0;
}

double cost_append(const cost *c, int rows)
{
    return rows > 0 ? read_curve(&c->append, rows) : 0;
}

void cost_saw_pass(cost *c, int rows, int context, double seconds)
{
    correct(at_depth(c, context), rows, seconds);
}

void cost_saw_draft(cost *c, int rows, double seconds)
{
    correct(&c->drafter, rows, seconds);
}

void cost_saw_append(cost *c, int rows, double seconds)
{
    correct(&c->append, rows, seconds);
}

void cost_begin_pass(cost *c, const int *rows, const double *seconds, int n)
{
    begin(&c->king[0], rows, seconds, n);
}

void cost_begin_draft(cost *c, const int *rows, const double *seconds, int n)
{
    begin(&c->drafter, rows, seconds, n);
}

void cost_begin_append(cost *c, const int *rows, const double *seconds, int n)
{
    begin(&c->append, rows, seconds, n);
}

int cost_fit(cost *c, double seconds, int most, int context)
{
    int low = 1, high = most;
    while (low < high) {
        const int mid = low + (high - low + 1) / 2;
        if (cost_pass(c, mid, context) <= seconds) low = mid;
        else high = mid - 1;
    }
    return low;
}
