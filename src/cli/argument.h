/* argument.h - what some arguments stand for: the text of a file, layers, a shard. */
#ifndef CLI_ARGUMENT_H
#define CLI_ARGUMENT_H
#include <stddef.h>

#include "base/error.h"

struct runner_layers; /* tools/runner.h */

/* --hidden: "every=N", "all", "none", or rising layers "1,5,9". */
status argument_layers(const char *text, struct runner_layers *out, error *e);
/* --shard: "I/N" with 0 <= I < N. */
status argument_shard(const char *text, int *shard, int *shards, error *e);
/* Whole file as text ("-": stdin), NUL-terminated; the caller frees with mem_free. */
status argument_text(const char *path, size_t most, char **text, size_t *len, error *e);
#endif
