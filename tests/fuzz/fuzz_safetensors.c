/* Tensor files of any content. A tensor that is handed out lies in the file, has the bytes of its
 * shape, shares none with another, and is found under its name. */
#include "pack/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    safetensors s;
    error e;
    if (safetensors_parse(&s, data, size, "x", &e)) {
        CHECK(e.text[0] && strchr(e.text, '\n') == NULL);
        return 0;
    }
    const uint8_t *at = data + 8 + s.header_len;
    for (size_t i = 0; i < s.count; i++) {
        const tensor *t = &s.tensors[i];
        uint64_t bytes;
        CHECK(t->data == at && tensor_bytes_of(t->type, t->rank, t->shape, &bytes));
        CHECK(bytes == t->bytes && safetensors_find(&s, t->name) == t);
        at += bytes;
        float sum[1];
        if (dtype_is_float(t->type) && tensor_elements(t) > 0)
            tensor_read_f32(t, tensor_elements(t) - 1, 1, sum);
    }
    CHECK(at == data + size);
    safetensors_close(&s);
    return 0;
}
