/* Bytes as ids, streamed: each piece is valid UTF-8, and joined they are the decoding of the whole.
 * The first byte says whether special tokens are hidden; 0x00 0xnn stands for an id of the added
 * tokens and beyond. */
#include <stdint.h>

#include "base/mem.h"
#include "text/detok.h"
#include "tiny_tokenizer.h"

static const tokenizer *fixed(void)
{
    static tokenizer *t;
    if (t) return t;
    buf json;
    buf_init(&json, 1 << 20);
    tiny_write(&json, &(tiny){ .added = "[{\"id\":300,\"content\":\"<s>\",\"special\":true},"
                                        "{\"id\":301,\"content\":\"\xc3\xa9\xc3\xa9\"}]" });
    error e;
    CHECK(tokenizer_parse(&t, buf_view(&json), (str){ 0 }, "folder", &e) == OK);
    buf_free(&json);
    return t;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    const tokenizer *t = fixed();
    int32_t *ids = mem_array(size, sizeof *ids);
    size_t n = 0;
    for (size_t i = 1; i < size; i++) {
        ids[n] = data[i];
        if (data[i] == 0 && i + 1 < size) ids[n] = 298 + data[++i] % 8;
        n++;
    }
    const bool hide = data[0] & 1;
    buf streamed;
    buf whole;
    buf_init(&streamed, 16 * size);
    buf_init(&whole, 16 * size);
    detok d;
    detok_init(&d, t, hide);
    for (size_t i = 0; i <= n; i++) {
        const size_t before = streamed.len;
        if (i < n) detok_put(&d, ids[i], &streamed);
        else detok_finish(&d, &streamed);
        CHECK(str_utf8_valid(str_sub(buf_view(&streamed), before, streamed.len)));
    }
    detok_all(t, ids, n, hide, &whole);
    CHECK(str_eq(buf_view(&streamed), buf_view(&whole)));
    buf_free(&streamed);
    buf_free(&whole);
    mem_free(ids);
    return 0;
}
