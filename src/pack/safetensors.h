/* safetensors.h - reading and writing one .safetensors file.
 *
 * Layout (huggingface/safetensors, format page): u64 header length, JSON header
 * {name: {dtype, shape, data_offsets}}, data. The reader believes nothing: header length, depth,
 * name length, duplicate names, types, shape products, ranges, overlaps, gaps and trailing bytes
 * are all checked, so that a tensor it hands out lies in the file and has exactly the bytes its
 * shape needs. */
#ifndef PACK_SAFETENSORS_H
#define PACK_SAFETENSORS_H
#include "base/arena.h"
#include "base/file.h"
#include "base/map.h"
#include "pack/tensor.h"

enum { SAFETENSORS_MAX_HEADER = 128 << 20, SAFETENSORS_MAX_NAME = 512 }; /* bytes */

typedef struct safetensors_pair {
    str key, value;
} safetensors_pair;

typedef struct safetensors {
    const char *path;         /* as given; for messages */
    const uint8_t *bytes;     /* the whole file */
    uint64_t len, header_len; /* header_len: of the JSON, without the 8 length bytes */
    tensor *tensors;          /* in order of their data */
    size_t count;
    safetensors_pair *metadata; /* __metadata__, in file order */
    size_t n_metadata;
    map index;    /* name -> position in tensors */
    file_map map; /* fd -1 when parsed from memory */
    arena mem;
} safetensors;

status safetensors_open(safetensors *s, const char *path, error *e);
/* The same for bytes in memory, borrowed until close; `name` stands for the path in messages. */
status safetensors_parse(safetensors *s, const void *bytes, size_t len, const char *name, error *e);
void safetensors_close(safetensors *s);
const tensor *safetensors_find(const safetensors *s, str name);          /* NULL when absent */
const char *safetensors_metadata(const safetensors *s, const char *key); /* NULL when absent */

/* Writing: declare every tensor, begin, put the bytes in any order and pieces, commit. The file
 * appears whole or not at all. The header is padded with spaces to a multiple of 8. */
typedef struct safetensors_writer safetensors_writer;
status safetensors_writer_new(safetensors_writer **out, error *e);
status safetensors_writer_metadata(safetensors_writer *w, str key, str value, error *e);
/* Data lies in the order of declaration; the first tensor has index 0. `index` may be NULL. */
status safetensors_writer_declare(safetensors_writer *w, str name, dtype type, int rank,
                                  const int64_t *shape, int *index, error *e);
status safetensors_writer_begin(safetensors_writer *w, const char *path, error *e);
/* Bytes [at, at + n) of tensor `index`. In order is fastest. */
status safetensors_writer_put(safetensors_writer *w, int index, uint64_t at, const void *p,
                              size_t n, error *e);
/* Frees w, also on failure; refuses (E_BUG) when fewer or more bytes were put than declared. */
status safetensors_writer_commit(safetensors_writer *w, error *e);
void safetensors_writer_abort(safetensors_writer *w);
#endif
