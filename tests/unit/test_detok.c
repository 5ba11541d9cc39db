#include "test.h"
#include "tiny_tokenizer.h"

#include "base/rng.h"
#include "text/detok.h"

#define FFFD "\xef\xbf\xbd"

static error err;

/* Id of byte b is b; 300 is a special token, 301 a shown one. */
static tokenizer *open_bytes(void)
{
    buf json;
    tokenizer *t = NULL;
    buf_init(&json, 1 << 20);
    tiny_write(&json, &(tiny){ .added = "[{\"id\":300,\"content\":\"<s>\",\"special\":true},"
                                        "{\"id\":301,\"content\":\"<t>\"}]" });
    EXPECT_OK(tokenizer_parse(&t, buf_view(&json), (str){ 0 }, "folder", &err), err);
    buf_free(&json);
    return t;
}

/* Streams ids and compares each delta and the tail (the last of `want`). */
static void expect_deltas(bool hide, const int32_t *ids, int n, const char *const *want)
{
    tokenizer *t = open_bytes();
    buf delta;
    detok d;
    buf_init(&delta, 1 << 10);
    detok_init(&d, t, hide);
    for (int i = 0; i <= n; i++) {
        buf_clear(&delta);
        if (i < n) detok_put(&d, ids[i], &delta);
        else detok_finish(&d, &delta);
        EXPECT_STR(buf_view(&delta).ptr, want[i]);
    }
    buf_free(&delta);
    tokenizer_close(t);
}

#define IDS(...) \
    (const int32_t[]){ __VA_ARGS__ }, sizeof((const int32_t[]){ __VA_ARGS__ }) / sizeof(int32_t)
#define TEXTS(...)        \
    (const char *const[]) \
    {                     \
        __VA_ARGS__       \
    }

TEST(R010_halves_of_a_character_are_held)
{
    expect_deltas(false, IDS(0xf0, 0x9f, 0x98, 0xb8), TEXTS("", "", "", "\xf0\x9f\x98\xb8", ""));
    expect_deltas(false, IDS('o', 'k', 0xf0, 0x9f, 0x98), TEXTS("o", "k", "", "", "", FFFD));
    expect_deltas(false, IDS('a', 0xc3, 0xa9), TEXTS("a", "", "\xc3\xa9", ""));
}

TEST(R012_invalid_bytes_give_one_mark_per_part)
{
    expect_deltas(false, IDS(240, 159, 152, 184), TEXTS("", "", "", "\xf0\x9f\x98\xb8", ""));
    expect_deltas(false, IDS(0x80, 0xbf), TEXTS(FFFD, FFFD, ""));
    expect_deltas(false, IDS(0xe4, 'A'), TEXTS("", FFFD "A", ""));
    expect_deltas(false, IDS(0xe4, 0xb8, 'A'), TEXTS("", "", FFFD "A", ""));
    expect_deltas(false, IDS(0xc0, 0xaf), TEXTS(FFFD, FFFD, ""));
    expect_deltas(false, IDS(0xe0, 0x80, 0xaf), TEXTS("", FFFD FFFD, FFFD, ""));
    expect_deltas(false, IDS(0xf4, 0x90, 0x80), TEXTS("", FFFD FFFD, FFFD, ""));
    expect_deltas(false, IDS(0xe4, 0xe4, 0xb8, 0xad), TEXTS("", FFFD, "", "\xe4\xb8\xad", ""));
    expect_deltas(false, IDS(0xf5, 0xff), TEXTS(FFFD, FFFD, ""));
}

TEST(surrogates_are_judged_together)
{
    expect_deltas(false, IDS(0xed, 0xa0, 0x80), TEXTS("", "", FFFD FFFD FFFD, ""));
    expect_deltas(false, IDS(0xed, 0xa0, 'A'), TEXTS("", "", FFFD FFFD "A", ""));
    expect_deltas(false, IDS(0xed, 0xa0), TEXTS("", "", FFFD FFFD));
    expect_deltas(false, IDS(0xed, 0x9f, 0xbf), TEXTS("", "", "\xed\x9f\xbf", ""));
}

TEST(hidden_tokens)
{
    expect_deltas(true, IDS(0xf0, 0x9f, 300, 0x98, 0xb8),
                  TEXTS("", "", "", "", "\xf0\x9f\x98\xb8", ""));
    expect_deltas(false, IDS(0xf0, 300), TEXTS("", FFFD "<s>", ""));
    expect_deltas(true, IDS(0xf0, 301), TEXTS("", FFFD "<t>", ""));
}

TEST(ids_that_do_not_exist)
{
    expect_deltas(false, IDS('a', -1, 302, INT32_MAX, INT32_MIN, 'b'),
                  TEXTS("a", "", "", "", "", "b", ""));
    expect_deltas(false, IDS(0xc3, 299, 0xa9), TEXTS("", "", "\xc3\xa9", ""));
}

TEST(a_copy_goes_its_own_way)
{
    tokenizer *t = open_bytes();
    buf out;
    buf_init(&out, 64);
    detok d;
    detok_init(&d, t, false);
    detok_put(&d, 0xc3, &out);
    detok copy = d;
    detok_put(&copy, 0xa8, &out);
    detok_put(&d, 0xa9, &out);
    EXPECT_STR(out.ptr, "\xc3\xa8\xc3\xa9");
    buf_free(&out);
    tokenizer_close(t);
}

/* Python's bytes.decode("utf-8", "replace") as a rule: at each place either a valid character
 * (Table 3-7), or one U+FFFD for the longest beginning of a valid one, at least a byte. */
static void decode_by_table(buf *out, const uint8_t *p, int n)
{
    static const uint8_t table[][9] = { /* lead range, then ranges of what follows; 0: end */
                                        { 0x00, 0x7f, 0 },
                                        { 0xc2, 0xdf, 0x80, 0xbf, 0 },
                                        { 0xe0, 0xe0, 0xa0, 0xbf, 0x80, 0xbf, 0 },
                                        { 0xe1, 0xec, 0x80, 0xbf, 0x80, 0xbf, 0 },
                                        { 0xed, 0xed, 0x80, 0x9f, 0x80, 0xbf, 0 },
                                        { 0xee, 0xef, 0x80, 0xbf, 0x80, 0xbf, 0 },
                                        { 0xf0, 0xf0, 0x90, 0xbf, 0x80, 0xbf, 0x80, 0xbf, 0 },
                                        { 0xf1, 0xf3, 0x80, 0xbf, 0x80, 0xbf, 0x80, 0xbf, 0 },
                                        { 0xf4, 0xf4, 0x80, 0x8f, 0x80, 0xbf, 0x80, 0xbf, 0 }
    };
    for (int at = 0, length; at < n; at += length) {
        length = 1;
        bool whole = false;
        for (size_t row = 0; row < sizeof table / sizeof *table; row++) {
            const uint8_t *r = table[row];
            if (p[at] < r[0] || p[at] > r[1]) continue;
            int k = 1;
            while (r[2 * k] && at + k < n && p[at + k] >= r[2 * k] && p[at + k] <= r[2 * k + 1])
                k++;
            whole = r[2 * k] == 0;
            length = k;
        }
        if (whole) buf_put(out, p + at, (size_t)length);
        else buf_text(out, FFFD);
    }
}

TEST(random_bytes_decode_as_the_table_says)
{
    static const uint8_t nasty[] = { 'a',  0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc1, 0xc2,
                                     0xdf, 0xe0, 0xe1, 0xed, 0xef, 0xf0, 0xf1, 0xf4, 0xf5 };
    tokenizer *t = open_bytes();
    buf got;
    buf want;
    buf_init(&got, 1 << 10);
    buf_init(&want, 1 << 10);
    rng r = { 11 };
    for (int round = 0; round < 100000; round++) {
        uint8_t bytes[12];
        int32_t ids[12];
        const int n = (int)rng_below(&r, 13);
        for (int i = 0; i < n; i++) ids[i] = bytes[i] = nasty[rng_below(&r, sizeof nasty)];
        buf_clear(&got);
        buf_clear(&want);
        detok_all(t, ids, (size_t)n, false, &got);
        decode_by_table(&want, bytes, n);
        if (!str_eq(buf_view(&got), buf_view(&want))) FAIL("round %d", round);
    }
    buf_free(&got);
    buf_free(&want);
    tokenizer_close(t);
}
