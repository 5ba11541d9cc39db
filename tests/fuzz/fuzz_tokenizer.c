/* Tokenizer files of any content: tokenizer.json, then "\n---\n" and tokenizer_config.json where
 * that separator stands. What is accepted must encode text in all modes and give it back. */
#include <stdint.h>

#include "text/detok.h"
#include "text/tokenizer.h"

static void use(const tokenizer *t, tokenizer_special mode)
{
    const str text = STR("Hello, <|im_start|>we'll  see 12\n\xc3\xa9 \xe4\xb8\xad");
    error e;
    tokenizer_ids ids = { 0 };
    buf back;
    buf_init(&back, (size_t)1 << 28);
    if (tokenizer_encode(t, text, mode, &ids, &e) == OK) {
        for (size_t i = 0; i < ids.len; i++)
            CHECK(ids.ptr[i] >= 0 && ids.ptr[i] < tokenizer_vocab_size(t));
        detok_all(t, ids.ptr, ids.len, false, &back);
        if (mode == TOKENIZER_NONE) CHECK(str_eq(buf_view(&back), text));
    }
    buf_free(&back);
    tokenizer_ids_free(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const str all = { (const char *)data, size };
    const size_t cut = str_find(all, STR("\n---\n"));
    const str json = str_sub(all, 0, cut == STR_NONE ? size : cut);
    const str config = cut == STR_NONE ? (str){ 0 } : str_sub(all, cut + 5, size);
    error e;
    tokenizer *t = NULL;
    if (tokenizer_parse(&t, json, config, "folder", &e)) {
        CHECK(t == NULL && strchr(e.text, '\n') == NULL);
        return 0;
    }
    use(t, TOKENIZER_ALL);
    use(t, TOKENIZER_SHOWN);
    use(t, TOKENIZER_NONE);
    tokenizer_close(t);
    return 0;
}
