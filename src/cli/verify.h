/* verify.h - `ingot eval verify`: does every way of generating give the same tokens?
 *
 * Each prompt is generated plain, alone, in a fresh engine; then again with every block, with
 * copied drafts, in other prefill chunks, resumed from memory and from disk (in the middle of the
 * answer, and at the prompt), and beside others some of which are cancelled; greedy, sampled with a
 * seed, and with penalties. The first difference is reported with its place. */
#ifndef CLI_VERIFY_H
#define CLI_VERIFY_H
#include "cli/setup.h"

typedef struct verify_options {
    const char *prompts; /* file: one prompt a line; NULL: a few of our own */
    int max_tokens;
    uint64_t seed;
} verify_options;

typedef struct verify_result {
    int prompts, runs;
    bool identical;
    char difference[512]; /* when not identical */
    char sha256[65];      /* over the ids of all plain runs */
} verify_result;

/* s->model is open. */
status verify_run(setup *s, const verify_options *o, verify_result *out, error *e);
#endif
