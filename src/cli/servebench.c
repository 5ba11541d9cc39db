/* servebench.c - see servebench.h. */
#include "cli/servebench.h"

#include <stdio.h>

#include "base/clock.h"
#include "cli/command.h"
#include "tools/timing.h"
#include "base/banned.h"

enum { MOST_TURNS = 64 };
const int servebench_counts[SERVEBENCH_COUNTS] = { 1, 2, 4, 8 };

/* A prompt of a token or two, decoded plainly: the figures are those of decoding, and do not depend
 * on what the text happens to repeat. */
static status submit(const setup *s, int number, int max_tokens, ingot_request **r, error *e)
{
    char text[16];
    ingot_error ie;
    ingot_prompt p = INGOT_INIT(ingot_prompt);
    ingot_sampling how = INGOT_INIT(ingot_sampling);
    how.max_tokens = max_tokens;
    how.ignore_eos = true;
    how.block = INGOT_BLOCK_PLAIN;
    how.raw = true;
    snprintf(text, sizeof text, "%d", number);
    p.text = text;
    p.text_len = strlen(text);
    return command_status(ingot_submit(r, s->engine, &p, &how, &ie), &ie, e);
}

static status finish(ingot_request *r, error *e)
{
    ingot_event ev;
    do {
        const ingot_status is = ingot_next(r, &ev, -1);
        if (is != INGOT_OK) return error_set(e, (status)is, "bench: a request ended early");
    } while (ev.kind != INGOT_END);
    if (ev.finish != INGOT_FINISH_ERROR) return OK;
    return error_set(e, E_BUG, "bench: %s", ev.error);
}

/* Seconds until `n` requests that begin together have all ended. */
static status time_requests(const setup *s, int n, int max_tokens, double *seconds, error *e)
{
    ingot_request *r[SERVEBENCH_MOST] = { NULL };
    status st = OK;
    const int64_t start = clock_ns();
    for (int i = 0; st == OK && i < n; i++) st = submit(s, i, max_tokens, &r[i], e);
    for (int i = 0; st == OK && i < n; i++) st = finish(r[i], e);
    *seconds = (double)(clock_ns() - start) * 1e-9;
    for (int i = 0; i < n; i++)
        if (r[i]) ingot_release(r[i]);
    return st;
}

status servebench_run(setup *s, int turns, int max_tokens, servebench_result *r, error *e)
{
    double t[SERVEBENCH_COUNTS][MOST_TURNS];
    if (turns < 1 || turns > MOST_TURNS)
        return error_set(e, E_ARG, "--repeat: found %d, want 1 to %d", turns, MOST_TURNS);
    s->bar.bytes = false;
    for (int turn = -1; turn < turns; turn++) /* the first one warms up */
        for (int i = 0; i < SERVEBENCH_COUNTS; i++) {
            double seconds;
            TRY(time_requests(s, servebench_counts[i], max_tokens, &seconds, e));
            if (turn >= 0) t[i][turn] = seconds;
            progress_draw(&s->bar, "serving",
                          (uint64_t)(turn + 1) * SERVEBENCH_COUNTS + (uint64_t)i,
                          (uint64_t)(turns + 1) * SERVEBENCH_COUNTS);
        }
    progress_clear(&s->bar);
    for (int i = 0; i < SERVEBENCH_COUNTS; i++) {
        const timing time = timing_of(t[i], turns);
        r->tok_s[i] = servebench_counts[i] * max_tokens / time.median;
        r->spread[i] = timing_spread(time);
    }
    return OK;
}
