/* reader.h - one choice from the caller's side: published tokens become text, text becomes events.
 *
 * Text that a stop string could still swallow is held back, as the engine says how much may be
 * shown; whatever is shown, the last flush included, goes through the same splitter. */
#ifndef API_READER_H
#define API_READER_H
#include "api/events.h"
#include "engine/request.h"
#include "text/detok.h"

typedef struct reader {
    request *request;
    int choice;
    detok detok;
    reply *reply;            /* NULL: raw text */
    buf text;                /* decoded, not shown yet */
    size_t passed;           /* bytes that have left `text` */
    int n_ids;               /* decoded */
    int n_told;              /* tokens whose log-probabilities have been handed out */
    int queued, prompt_done; /* last told */
    bool ended;
    ingot_logprob *logprobs; /* of one event */
    struct ingot_top *tops;
    int room;
    ingot_usage usage;
} reader;

/* `tools` may be NULL; `raw`: no splitting. The reader's events go to `out` as long as it lives. */
status reader_init(reader *r, request *q, int choice, const tokenizer *t, const json_node *tools,
                   bool raw, events *out, error *e);
void reader_free(reader *r);
/* Adds to `out` what has been published since the last call, the end included. */
status reader_take(reader *r, events *out, error *e);
#endif
