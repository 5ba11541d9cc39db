/* Texts of any bytes through a fixed small tokenizer: decode(encode(x)) == NFC(x), or E_ARG when x
 * is not UTF-8. */
#include <stdint.h>

#include "text/detok.h"
#include "text/tokenizer.h"
#include "text/unicode.h"
#include "tiny_tokenizer.h"

static const tokenizer *fixed(void)
{
    static tokenizer *t;
    if (t) return t;
    buf json;
    buf_init(&json, 1 << 20);
    tiny_write(
        &json,
        &(tiny){ .pre_tokenizer = TINY_SEQUENCE(TINY_SPLIT(
                     "(?i:'s|'t|'re)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[\\\\p{L}\\\\p{M}]+|\\\\p{N}|"
                     " ?[^\\\\s\\\\p{L}\\\\p{M}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?"
                     "!\\\\S)|\\\\s+")),
                 .added = "[{\"id\":300,\"content\":\"<s>\",\"special\":true},{\"id\":301,"
                          "\"content\":\"a\xc3\xa9\",\"normalized\":true},"
                          "{\"id\":302,\"content\":\"<w>\",\"single_word\":true},{\"id\":303,"
                          "\"content\":\"<l>\",\"lstrip\":true},"
                          "{\"id\":304,\"content\":\"<r>\",\"rstrip\":true}]" });
    error e;
    CHECK(tokenizer_parse(&t, buf_view(&json), (str){ 0 }, "folder", &e) == OK);
    buf_free(&json);
    return t;
}

static void check(const tokenizer *t, str text, tokenizer_special mode)
{
    error e;
    tokenizer_ids ids = { 0 };
    buf normal;
    buf back;
    buf_init(&normal, 3 * text.len);
    buf_init(&back, 3 * text.len);
    const status s = tokenizer_encode(t, text, mode, &ids, &e);
    if (!str_utf8_valid(text)) {
        CHECK(s == E_ARG && ids.len == 0);
    } else {
        CHECK(s == OK);
        CHECK(unicode_nfc(&normal, text, &e) == OK);
        detok_all(t, ids.ptr, ids.len, false, &back);
        if (mode == TOKENIZER_NONE) CHECK(str_eq(buf_view(&normal), buf_view(&back)));
    }
    buf_free(&normal);
    buf_free(&back);
    tokenizer_ids_free(&ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const str text = { (const char *)data, size };
    check(fixed(), text, TOKENIZER_ALL);
    check(fixed(), text, TOKENIZER_SHOWN);
    check(fixed(), text, TOKENIZER_NONE);
    return 0;
}
