/* trainset.h - the king's own answers to a file of prompts, as token sequences: the data that its
 * drafter is trained on.
 *
 * A line of the file is an object: {"messages", "tools"?, "thinking"?: true or false} as the API
 * has them, or {"tokens": [ids]}. A sequence is the prompt, the answer, and the token that ended
 * it. Its bits depend on the line and its number alone, as everything that the engine makes. */
#ifndef CLI_TRAINSET_H
#define CLI_TRAINSET_H
#include "cli/setup.h"
#include "tools/tokenlists.h"

typedef struct trainset_options {
    const char *prompts;
    int shard, shards; /* lines i with i % shards == shard; shards 0: all */
    int parallel;      /* requests at once */
    ingot_sampling how;
    bool no_thinking;
} trainset_options;

/* Opens the model of `s`, makes the answers, closes it again. out->index is the line's number (0 is
 * the first that is not empty), out->answer is set. The caller frees with tokenlists_free, on
 * failure too. */
status trainset_make(setup *s, const trainset_options *o, tokenlists *out, error *e);
#endif
