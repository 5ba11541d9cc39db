/* servebench.h - several requests at once: what all of them together get, against one alone.
 *
 * Plain answers of a fixed length to short prompts that differ, through the public interface;
 * counts of requests are timed in turns, from the first submission to the last token. */
#ifndef CLI_SERVEBENCH_H
#define CLI_SERVEBENCH_H
#include "cli/setup.h"

enum { SERVEBENCH_COUNTS = 4, SERVEBENCH_MOST = 8 };
extern const int servebench_counts[SERVEBENCH_COUNTS]; /* 1 2 4 8 */

typedef struct servebench_result {
    double tok_s[SERVEBENCH_COUNTS], spread[SERVEBENCH_COUNTS]; /* of all requests together */
} servebench_result;

/* s->engine runs for SERVEBENCH_MOST requests at once. */
status servebench_run(setup *s, int turns, int max_tokens, servebench_result *r, error *e);
#endif
