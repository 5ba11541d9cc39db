/* scheduler.h - which rows of which sequences run in the next pass of the king.
 *
 * One pass: sequences that were cancelled leave, waiting ones take free seats in order of arrival,
 * every decoding sequence gets its rows (anchor and drafts), prefill fills the rest of the pass,
 * and what came out is published. Keys and values live in pages that sequences take as they grow
 * from a pool they share; when it is empty, the youngest is put back and goes on later, with the
 * same tokens. Used by one thread. */
#ifndef ENGINE_SCHEDULER_H
#define ENGINE_SCHEDULER_H
#include "engine/prefix_cache.h"
#include "engine/speculate.h"

enum { SCHEDULER_CHUNK = 512 }; /* where nobody asks for another */

typedef struct scheduler_options {
    workbench_parts parts; /* max_rows and max_logits are set here */
    int context;           /* most positions of a sequence */
    int total_context;     /* of all together, at least `context` */
    int parallel;          /* seats */
    kv_type kv;
    int chunk;                /* most prefill rows of a pass */
    size_t cache_bytes;       /* of the prefix cache; 0: none */
    prefix_disk_options disk; /* its disk tier; dir NULL: none; engine_start sets notify */
} scheduler_options;

typedef struct scheduler_stats {
    int running, queued;
    uint64_t requests, ended, cancelled, failed; /* choices; ended counts those of any finish */
    uint64_t preempted;                          /* times one was put back */
    /* a prompt and its prefill count once, whatever the number of choices; cached_tokens are among
     * prompt_tokens */
    uint64_t prompt_tokens, cached_tokens, generated_tokens, reasoning_tokens;
    double prefill_s, decode_s, plain_s;
    uint64_t passes, pass_rows, drafted, accepted, accepted_at[REQUEST_MAX_BLOCK];
    int kv_pages_free, kv_pages_total;
    prefix_stats cache;
} scheduler_stats;

typedef struct scheduler scheduler;
status scheduler_new(scheduler **out, const scheduler_options *o, error *e);
void scheduler_free(scheduler *g); /* ends what is left as cancelled */
size_t scheduler_bytes(const scheduler_options *o);
/* What the prefix cache holds of a conversation as long as the context: the ends of its last prompt
 * and of the reply. */
size_t scheduler_turn_bytes(const scheduler_options *o);
/* Rows of a pass at most, and those of them that may have logits. */
void scheduler_rows(int chunk, int parallel, int *rows, int *logits);
const workbench *scheduler_bench(const scheduler *g);
/* Takes a list of sequences (chained by next), in order. */
void scheduler_add(scheduler *g, sequence *list);
/* Ends every sequence that is there. */
void scheduler_cancel_all(scheduler *g);
/* Runs one pass; false when there was nothing to do. */
bool scheduler_pass(scheduler *g);
void scheduler_get_stats(const scheduler *g, scheduler_stats *out);
#endif
