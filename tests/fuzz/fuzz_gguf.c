/* GGUF files of any content. A tensor that is handed out lies in the file, has the bytes of its
 * type and shape, shares none with another, and every value can be read. */
#include "pack/gguf.h"

static void read_value(const gguf_value *v)
{
    const uint8_t *at = NULL;
    double f;
    str s;
    bool b;
    for (uint64_t i = 0; i < v->count && gguf_f64(v, i, &f); i++) continue;
    uint64_t strings = 0;
    while (gguf_each_str(v, &at, &s)) strings++;
    CHECK(!v->is_array || v->type != GGUF_STRING || strings == v->count);
    (void)gguf_str(v, &s);
    (void)gguf_bool(v, &b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gguf g;
    error e;
    if (gguf_parse(&g, data, size, "x", &e)) {
        CHECK(e.text[0] && strchr(e.text, '\n') == NULL);
        return 0;
    }
    const uint8_t *at = data + g.data_at;
    for (size_t i = 0; i < g.n_tensors; i++) {
        const gguf_tensor *t = &g.tensors[i];
        CHECK(t->data >= at && t->bytes <= (uint64_t)(data + size - t->data));
        int64_t n = t->bytes / t->block_bytes * t->block;
        for (int d = 0; d < t->rank; d++) {
            CHECK(t->shape[d] > 0 && n % t->shape[d] == 0);
            n /= t->shape[d];
        }
        CHECK(n == 1);
        at = t->data + t->bytes;
    }
    for (size_t i = 0; i < g.n_values; i++) read_value(&g.values[i]);
    gguf_close(&g);
    return 0;
}
