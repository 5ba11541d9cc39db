/* answer.h - receives the events of one answer: prints them as they come, or keeps them for
 * JSON. */
#ifndef CLI_ANSWER_H
#define CLI_ANSWER_H
#include "base/buf.h"
#include "cli/progress.h"
#include "ingot/ingot.h"

typedef struct answer {
    /* how */
    bool print, show_thinking, dim; /* dim: reasoning in a faint colour instead of between tags */
    progress *bar;
    /* what came */
    buf text, reasoning;
    buf calls;     /* JSON array of {"name","arguments"}, open until answer_json */
    buf arguments; /* of the call in progress */
    bool in_thinking, printed;
    int n_calls;
    ingot_event end; /* the last event: valid until the request is released */
} answer;

void answer_init(answer *a, progress *bar);
void answer_free(answer *a);
/* Runs the request to its end. Ctrl-C cancels it: E_CANCELLED after what had come was printed. */
status answer_run(answer *a, ingot_request *r, error *e);
/* Says on stderr what an answer that was cut, or shows nothing, would leave open. */
void answer_explain(const answer *a);
/* The statistics of --stats, on stderr. */
void answer_stats(const answer *a, const ingot_model *m);
/* The object of --json on stdout. */
status answer_json(answer *a, ingot_request *r, error *e);
#endif
