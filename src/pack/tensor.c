/* tensor.c - shapes and sizes of tensors. */
#include "pack/tensor.h"
#include <stdio.h>
#include "base/banned.h"

bool tensor_bytes_of(dtype t, int rank, const int64_t *shape, uint64_t *bytes)
{
    uint64_t n = 1;
    bool zero = false;
    for (int i = 0; i < rank; i++) {
        if (shape[i] < 0) return false;
        if (shape[i] == 0) zero = true;
        else if (__builtin_mul_overflow(n, (uint64_t)shape[i], &n)) return false;
    }
    if (zero) n = 0;
    uint64_t bits;
    if (__builtin_mul_overflow(n, (uint64_t)dtype_bits(t), &bits)) return false;
    if (bits % 8 != 0 || n > INT64_MAX) return false;
    *bytes = bits / 8;
    return true;
}

bool tensor_canonical(str name, char *text, size_t cap)
{
    str head = STR("");
    if (str_starts(name, STR("language_model."))) {
        name = str_sub(name, sizeof "language_model." - 1, name.len);
    } else if (str_starts(name, STR("model.language_model."))) {
        name = str_sub(name, sizeof "model.language_model." - 1, name.len);
        head = STR("model.");
    }
    if (head.len + name.len >= cap || memchr(name.ptr, 0, name.len)) return false;
    memcpy(text, head.ptr, head.len);
    memcpy(text + head.len, name.ptr, name.len);
    text[head.len + name.len] = 0;
    return true;
}

int64_t tensor_elements(const tensor *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++) n *= t->shape[i];
    return n;
}

bool tensor_has_shape(const tensor *t, int rank, const int64_t *shape)
{
    if (t->rank != rank) return false;
    for (int i = 0; i < rank; i++)
        if (t->shape[i] != shape[i]) return false;
    return true;
}

const char *tensor_shape_text(int rank, const int64_t *shape, char *text, size_t cap)
{
    size_t at = 0;
    for (int i = 0; i < rank && at < cap; i++) {
        const int n = snprintf(text + at, cap - at, "%s%lld", i ? ", " : "[", (long long)shape[i]);
        at += n > 0 ? (size_t)n : 0;
    }
    if (at < cap) snprintf(text + at, cap - at, "%s", rank ? "]" : "[]");
    return text;
}

void tensor_read_f32(const tensor *t, int64_t from, int64_t n, float *out)
{
    const uint64_t width = (uint64_t)dtype_bits(t->type) / 8;
    CHECK(from >= 0 && n >= 0 && (uint64_t)from * width + (uint64_t)n * width <= t->bytes);
    dtype_decode(t->type, t->data + (uint64_t)from * width, n, out);
}
