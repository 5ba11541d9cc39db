/* tensor.h - a named, typed, shaped view of bytes that somebody else keeps.
 *
 * Data comes from mapped files and may sit at any byte offset: read it through the functions here,
 * which never assume alignment. All formats are little-endian, as are all supported machines. */
#ifndef PACK_TENSOR_H
#define PACK_TENSOR_H
#include "pack/dtype.h"

enum { TENSOR_MAX_RANK = 8 };

typedef struct tensor {
    str name; /* as the file spells it; lives as long as the file is open */
    dtype type;
    int rank;
    int64_t shape[TENSOR_MAX_RANK]; /* outermost first; each >= 0 */
    const uint8_t *data;            /* row-major, valid while the file is open; not aligned */
    uint64_t bytes;
    int file; /* index of the file within its pack */
} tensor;

/* Bytes of a tensor of this type and shape; false when a size is negative, the product overflows,
 * or it is no whole number of bytes. */
bool tensor_bytes_of(dtype t, int rank, const int64_t *shape, uint64_t *bytes);
/* Name of a tensor, or path of a module, without the prefix of its container:
 * "language_model.model.norm" and "model.language_model.norm" give "model.norm",
 * "language_model.lm_head" gives "lm_head". NUL-terminated; false when it does not fit. */
bool tensor_canonical(str name, char *text, size_t cap);
int64_t tensor_elements(const tensor *t);
bool tensor_has_shape(const tensor *t, int rank, const int64_t *shape);
/* "[248320, 320]" for messages; returns buf. */
const char *tensor_shape_text(int rank, const int64_t *shape, char *text, size_t cap);

/* Elements [from, from + n) as f32; F16, BF16 and F32 tensors only. Exact. */
void tensor_read_f32(const tensor *t, int64_t from, int64_t n, float *out);
#endif
