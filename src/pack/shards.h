/* shards.h - the weight files of a folder, and one name space over their tensors.
 *
 * With model.safetensors.index.json, the shards it names must be exactly the files
 * model*.safetensors of the folder, and every tensor must be in the shard named for it; without it,
 * the folder must hold model.safetensors alone. No tensor may appear twice, also not under two
 * spellings of one canonical name. */
#ifndef PACK_SHARDS_H
#define PACK_SHARDS_H
#include "pack/safetensors.h"

enum { SHARDS_MAX_FILES = 1000 };

/* Canonical name of a tensor, or false when it does not fit; see tensor_canonical. */
typedef bool shards_name_fn(str name, char *text, size_t cap);

typedef struct shards {
    safetensors *files; /* in bytewise order of their names */
    size_t count;
    map index;      /* canonical name -> tensor */
    uint64_t bytes; /* of the files */
} shards;

bool shards_exist(const char *folder); /* weight files of any form */
status shards_open(shards *s, const char *folder, shards_name_fn *canonical, arena *mem, error *e);
void shards_close(shards *s);
const tensor *shards_find(const shards *s, const char *canonical); /* NULL: absent */
/* "folder/model.safetensors: tensor NAME", for messages. */
const char *shards_where(const shards *s, const tensor *t, char *text, size_t cap);
#endif
