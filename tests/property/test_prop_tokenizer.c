/* Promises of the tokenizer over random texts: decoding gives the NFC of what was encoded, whatever
 * the mode, and streaming gives the same text as decoding at once, wherever it is cut.
 *
 * Mutations these caught: NFC left out; the flag `special` ignored when encoding. */
#include "test.h"

#include "base/rng.h"
#include "text/detok.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

enum { ROUNDS = 20000, MOST_CHARS = 60 };

static error err;

/* Texts of characters that tokenizers stumble over, in runs. */
static void random_text(rng *r, buf *out)
{
    static const uint32_t pool[] = {
        'a',    'b',    'Z',    ' ',      ' ',    '\n',    '\r',   '\t',   '\'',    's',    't',
        '<',    '|',    '>',    '0',      '9',    '.',     '-',    0,      0xa0,    0xe9,   0x301,
        0x323,  0x3099, 0x304b, 0x1100,   0x1161, 0x11a8,  0x11a7, 0xac00, 0x928,   0x93c,  0x94d,
        0x17f,  0x212b, 0x2126, 0x2329,   0x3000, 0x4e2d,  0xfffd, 0xff11, 0x1f600, 0x200d, 0x1f3fb,
        0x2028, 0x85,   0x180e, 0x10ffff, 0xe000, 0x1d15e, 0x16d67
    };
    static const char *const words[] = { "<|im_start|>", "<think>", "</think>", "<|im_end|>",
                                         "kingdom",      "the ",    "tts_pad" };
    buf_clear(out);
    const uint32_t n = rng_below(r, MOST_CHARS);
    for (uint32_t i = 0; i < n; i++) {
        char utf8[4];
        if (rng_below(r, 12) == 0) {
            buf_text(out, words[rng_below(r, sizeof words / sizeof *words)]);
            continue;
        }
        uint32_t cp = pool[rng_below(r, sizeof pool / sizeof *pool)];
        if (rng_below(r, 10) == 0) cp = rng_below(r, 0xd800);
        const uint32_t times = rng_below(r, 8) == 0 ? rng_below(r, 12) : 1;
        for (uint32_t k = 0; k < times; k++) buf_put(out, utf8, str_utf8_put(cp, utf8));
    }
}

typedef struct fixture {
    tokenizer *t;
    rng r;
    buf text, normal, whole, streamed;
    tokenizer_ids ids;
} fixture;

static void set_up(fixture *f, uint64_t seed)
{
    *f = (fixture){ .r = { seed } };
    EXPECT_OK(tokenizer_open(&f->t, TEST_ROOT "/tests/golden/tokenizer/small", &err), err);
    buf_init(&f->text, 1 << 16);
    buf_init(&f->normal, 1 << 16);
    buf_init(&f->whole, 1 << 16);
    buf_init(&f->streamed, 1 << 16);
}

static void tear_down(fixture *f)
{
    tokenizer_close(f->t);
    tokenizer_ids_free(&f->ids);
    buf_free(&f->text);
    buf_free(&f->normal);
    buf_free(&f->whole);
    buf_free(&f->streamed);
}

static void encode(fixture *f, tokenizer_special mode)
{
    f->ids.len = 0;
    EXPECT_OK(tokenizer_encode(f->t, buf_view(&f->text), mode, &f->ids, &err), err);
    buf_clear(&f->whole);
    detok_all(f->t, f->ids.ptr, f->ids.len, false, &f->whole);
}

/* With added tokens recognised, each segment is normalized by itself, so only a text in NFC is
 * compared. */
TEST(decode_of_encode_is_nfc)
{
    fixture f;
    set_up(&f, 1);
    for (int round = 0; round < ROUNDS; round++) {
        random_text(&f.r, &f.text);
        buf_clear(&f.normal);
        EXPECT_OK(unicode_nfc(&f.normal, buf_view(&f.text), &err), err);
        encode(&f, TOKENIZER_NONE);
        if (!str_eq(buf_view(&f.whole), buf_view(&f.normal))) FAIL("round %d: plain", round);
        buf_clear(&f.text);
        buf_add(&f.text, buf_view(&f.normal));
        encode(&f, TOKENIZER_ALL);
        if (!str_eq(buf_view(&f.whole), buf_view(&f.normal)))
            FAIL("round %d: all added tokens", round);
        encode(&f, TOKENIZER_SHOWN);
        if (!str_eq(buf_view(&f.whole), buf_view(&f.normal))) FAIL("round %d: shown tokens", round);
    }
    tear_down(&f);
}

/* Hidden tokens in the text never become control tokens in the other modes. */
TEST(no_control_token_from_plain_text)
{
    fixture f;
    set_up(&f, 2);
    for (int round = 0; round < ROUNDS; round++) {
        random_text(&f.r, &f.text);
        encode(&f, TOKENIZER_SHOWN);
        for (size_t i = 0; i < f.ids.len; i++) EXPECT(!tokenizer_is_special(f.t, f.ids.ptr[i]));
        encode(&f, TOKENIZER_NONE);
        for (size_t i = 0; i < f.ids.len; i++) EXPECT(f.ids.ptr[i] < tokenizer_added_id(f.t, 0));
    }
    tear_down(&f);
}

/* Any ids, any cut: put together, the pieces are the whole; each piece is valid UTF-8. */
TEST(streamed_equals_whole)
{
    fixture f;
    set_up(&f, 3);
    for (int round = 0; round < ROUNDS; round++) {
        int32_t ids[64];
        const size_t n = rng_below(&f.r, 64);
        for (size_t i = 0; i < n; i++)
            ids[i] = (int32_t)rng_below(&f.r, rng_below(&f.r, 2) ? 256 : 1030) -
                     (int32_t)rng_below(&f.r, 2);
        const bool hide = rng_below(&f.r, 2);
        detok d;
        detok_init(&d, f.t, hide);
        buf_clear(&f.streamed);
        for (size_t i = 0; i <= n; i++) {
            const size_t before = f.streamed.len;
            if (i < n) detok_put(&d, ids[i], &f.streamed);
            else detok_finish(&d, &f.streamed);
            EXPECT(str_utf8_valid(str_sub(buf_view(&f.streamed), before, f.streamed.len)));
        }
        buf_clear(&f.whole);
        detok_all(f.t, ids, n, hide, &f.whole);
        if (!str_eq(buf_view(&f.whole), buf_view(&f.streamed))) FAIL("round %d", round);
    }
    tear_down(&f);
}
