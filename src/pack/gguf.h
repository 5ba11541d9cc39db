/* gguf.h - reading and writing one GGUF file (version 3, little-endian).
 *
 * Layout (ggml-org/ggml, docs/gguf.md): magic, counts, metadata, tensor infos, data. The reader
 * believes nothing: counts, lengths, value types, names, shapes, types and offsets are all checked,
 * so that a tensor it hands out lies in the file and has exactly the bytes its type and shape need.
 * Tensors lie back to back in the order of their infos, each at a multiple of the alignment, as
 * ggml writes and demands. */
#ifndef PACK_GGUF_H
#define PACK_GGUF_H
#include "base/arena.h"
#include "base/file.h"
#include "base/map.h"

enum {
    GGUF_MAX_RANK = 4,
    GGUF_MAX_NAME = 64,   /* bytes of a tensor's name */
    GGUF_MAX_KEY = 65535, /* bytes of a key of the metadata */
    GGUF_MAX_TENSORS = 1 << 20,
    GGUF_MAX_VALUES = 1 << 16, /* entries of the metadata */
};

/* Types of metadata values, as the file numbers them. */
typedef enum gguf_type {
    GGUF_U8,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64
} gguf_type;

/* How a tensor's elements are stored, as the file numbers it; the types that convert needs. */
enum {
    GGUF_F32_DATA = 0,
    GGUF_F16_DATA = 1,
    GGUF_BF16_DATA = 30,
    GGUF_Q2_0 = 42,    /* 64 elements: f16 d, 16 bytes of codes; or the older form of 128 */
    GGUF_PQ2_0 = 142,  /* 128 elements: f16 d, 32 bytes of codes, value (code - 1) * d */
    GGUF_PTQ1_0 = 143, /* 128 elements: 26 bytes of trits in base 3, f16 d, (trit - 1) * d */
};

typedef struct gguf_value {
    str key;
    gguf_type type; /* of the elements when is_array */
    bool is_array;
    uint64_t count;          /* elements of an array, else 1 */
    const uint8_t *at, *end; /* its bytes; strings: u64 length, then that many */
} gguf_value;

typedef struct gguf_tensor {
    str name;
    uint32_t type;
    int rank;
    int64_t shape[GGUF_MAX_RANK]; /* outermost first, unlike the file */
    const uint8_t *data;
    uint64_t bytes;
    int block, block_bytes; /* elements and bytes of a block; a row is a whole number of them */
} gguf_tensor;

typedef struct gguf {
    const char *path;
    const uint8_t *bytes;
    uint64_t len, data_at;
    uint32_t alignment;
    gguf_value *values; /* in file order */
    size_t n_values;
    gguf_tensor *tensors; /* in file order */
    size_t n_tensors;
    map value_index, tensor_index;
    file_map map; /* fd -1 when parsed from memory */
    arena mem;
} gguf;

bool gguf_is_file(const char *path); /* begins with the magic */
status gguf_open(gguf *g, const char *path, error *e);
/* The same for bytes in memory, borrowed until close; `name` stands for the path in messages. */
status gguf_parse(gguf *g, const void *bytes, size_t len, const char *name, error *e);
void gguf_close(gguf *g);

const gguf_value *gguf_find(const gguf *g, const char *key); /* NULL when absent */
const gguf_tensor *gguf_find_tensor(const gguf *g, const char *name);
/* "F32", "PQ2_0", ...; "type 99" when unknown; returns text. */
const char *gguf_type_text(uint32_t type, char *text, size_t cap);

/* Element i of a value of any number or bool type; false when it is none, or not whole. */
bool gguf_i64(const gguf_value *v, uint64_t i, int64_t *out);
bool gguf_f64(const gguf_value *v, uint64_t i, double *out);
bool gguf_bool(const gguf_value *v, bool *out);
bool gguf_str(const gguf_value *v, str *out);
/* Strings of an array in order: *at is NULL first; false after the last, or when it is none. */
bool gguf_each_str(const gguf_value *v, const uint8_t **at, str *out);

/* Writing: metadata, then tensors, begin, the bytes in any order and pieces, commit. The file
 * appears whole or not at all. Failures of the metadata calls show in gguf_writer_begin. */
typedef struct gguf_writer gguf_writer;
status gguf_writer_new(gguf_writer **out, error *e);
void gguf_writer_u32(gguf_writer *w, const char *key, uint32_t v);
void gguf_writer_f32(gguf_writer *w, const char *key, float v);
void gguf_writer_bool(gguf_writer *w, const char *key, bool v);
void gguf_writer_str(gguf_writer *w, const char *key, str v);
/* An array: its head, then exactly `count` elements through gguf_writer_put_*. */
void gguf_writer_array(gguf_writer *w, const char *key, gguf_type type, uint64_t count);
void gguf_writer_put_i32(gguf_writer *w, int32_t v);
void gguf_writer_put_f32(gguf_writer *w, float v);
void gguf_writer_put_str(gguf_writer *w, str v);
/* `shape` outermost first. E_ARG: a name too long or twice, a row that is no whole number of
 * blocks. */
status gguf_writer_declare(gguf_writer *w, const char *name, uint32_t type, int rank,
                           const int64_t *shape, int *index, error *e);
status gguf_writer_begin(gguf_writer *w, const char *path, error *e);
status gguf_writer_put(gguf_writer *w, int index, uint64_t at, const void *p, size_t n, error *e);
/* Frees w, also on failure; refuses (E_BUG) when fewer or more bytes were put than declared. */
status gguf_writer_commit(gguf_writer *w, error *e);
void gguf_writer_abort(gguf_writer *w);
#endif
