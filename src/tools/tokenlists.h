/* tokenlists.h - lists of token ids, the input of teacher-forced runs. Their files are JSON: [ids],
 * or {"sequences": [[ids], ...]}. */
#ifndef TOOLS_TOKENLISTS_H
#define TOOLS_TOKENLISTS_H
#include "base/json.h"

typedef struct tokenlists {
    int n;
    int *index;    /* [n] number of each in the file */
    int *len;      /* [n] */
    int32_t **ids; /* [n][len] */
    int *answer;   /* [n] first token that the king itself wrote; NULL: nobody says */
    int longest;
    uint64_t total;
} tokenlists;
status tokenlists_read(tokenlists *s, const char *path, error *e);
/* Keeps sequences i with i % shards == shard; shards 0: all. E_ARG when none is left. */
status tokenlists_keep_shard(tokenlists *s, int shard, int shards, const char *path, error *e);
/* Every id below n_vocab, every length at most max_len. */
status tokenlists_check(const tokenlists *s, const char *path, int n_vocab, int max_len, error *e);
void tokenlists_free(tokenlists *s);
#endif
