#include "test.h"

#include "base/mem.h"
#include "text/unicode.h"

static error err;

static void expect(void (*f)(buf *out, str s), const char *text, const char *want)
{
    buf out;
    buf_init(&out, 1 << 16);
    f(&out, str_from(text));
    EXPECT_STR(buf_view(&out).ptr, want);
    buf_free(&out);
}

static void expect_nfc(const char *text, const char *want)
{
    buf out;
    buf_init(&out, 1 << 16);
    EXPECT_OK(unicode_nfc(&out, str_from(text), &err), err);
    EXPECT_STR(buf_view(&out).ptr, want);
    buf_free(&out);
}

TEST(categories)
{
    EXPECT_INT(unicode_category_of('A'), UNICODE_LU);
    EXPECT_INT(unicode_category_of('_'), UNICODE_PC);
    EXPECT_INT(unicode_category_of(0x4e2d), UNICODE_LO);
    EXPECT_INT(unicode_category_of(0x301), UNICODE_MN);
    EXPECT_INT(unicode_category_of(0xe000), UNICODE_CO);
    EXPECT_INT(unicode_category_of(0x110000), UNICODE_CN);
    EXPECT_INT(unicode_category_of(UINT32_MAX), UNICODE_CN);
    EXPECT(unicode_is_letter(0xaa) && !unicode_is_letter('1') && !unicode_is_letter(0x301));
    EXPECT(unicode_is_mark(0x903) && unicode_is_mark(0x20dd) && !unicode_is_mark('a'));
    EXPECT(unicode_is_number('0') && unicode_is_number(0x2167) && unicode_is_number(0xbd));
    EXPECT(!unicode_is_number(0x4e00));
    EXPECT(unicode_is_printable(' ') && unicode_is_printable(0x1f600));
    EXPECT(!unicode_is_printable('\n') && !unicode_is_printable(0xa0));
    EXPECT(!unicode_is_printable(0x200b) && !unicode_is_printable(0x10ffff));
}

/* The 25 characters of White_Space (PropList.txt), and the four more that Python strips. */
TEST(white_space)
{
    static const uint32_t white[] = { 0x9,    0xa,    0xb,    0xc,    0xd,    0x20,   0x85,
                                      0xa0,   0x1680, 0x2000, 0x2001, 0x2002, 0x2003, 0x2004,
                                      0x2005, 0x2006, 0x2007, 0x2008, 0x2009, 0x200a, 0x2028,
                                      0x2029, 0x202f, 0x205f, 0x3000 };
    size_t next = 0;
    for (uint32_t cp = 0; cp < 0x110000; cp++) {
        const bool want = next < 25 && white[next] == cp;
        next += want;
        if (unicode_is_white(cp) != want) FAIL("U+%04X", cp);
        if (unicode_is_space(cp) != (want || (cp >= 0x1c && cp <= 0x1f))) FAIL("U+%04X", cp);
    }
    EXPECT_INT(next, 25);
}

TEST(words)
{
    static const uint32_t in[] = { 'a',   'Z',    '0',    '_',    0xe9,   0x4e2d,
                                   0x301, 0x2160, 0x203f, 0x200d, 0x24b6, 0x1f170 };
    static const uint32_t out[] = { ' ', '-', '.', '<', 0xb2, 0x2460, 0x1f600, 0x2014 };
    for (size_t i = 0; i < sizeof in / sizeof *in; i++)
        if (!unicode_is_word(in[i])) FAIL("U+%04X is part of a word", in[i]);
    for (size_t i = 0; i < sizeof out / sizeof *out; i++)
        if (unicode_is_word(out[i])) FAIL("U+%04X is not part of a word", out[i]);
}

/* Values of CPython's lower, upper and capitalize. */
TEST(cases)
{
    expect(unicode_lower, "ABC \xc3\x89 \xc3\x9f", "abc \xc3\xa9 \xc3\x9f");
    expect(unicode_lower, "\xc4\xb0", "i\xcc\x87");
    expect(unicode_upper, "abc \xc3\xa9 \xc3\x9f", "ABC \xc3\x89 SS");
    expect(unicode_upper, "\xef\xac\x83 \xe1\xbe\x81", "FFI \xe1\xbc\x89\xce\x99");
    expect(unicode_capitalize, "hello WORLD", "Hello world");
    expect(unicode_capitalize, "\xc7\x86X", "\xc7\x85x");
    expect(unicode_capitalize, "\xc3\x9f\xc3\x9f", "Ss\xc3\x9f");
    expect(unicode_upper, "", "");
    expect(unicode_lower, "A\xff\xc3Z", "a\xff\xc3z");
}

TEST(final_sigma)
{
    expect(unicode_lower, "\xce\xa3", "\xcf\x83");   /* alone */
    expect(unicode_lower, "A\xce\xa3", "a\xcf\x82"); /* at the end of a word */
    expect(unicode_lower,
           "A\xce\xa3"
           "B",
           "a\xcf\x83"
           "b");                                             /* inside */
    expect(unicode_lower, "A.\xce\xa3. B", "a.\xcf\x82. b"); /* ignorable on both sides */
    expect(unicode_lower, "A.\xce\xa3.B", "a.\xcf\x83.b");
    expect(unicode_lower, "1\xce\xa3", "1\xcf\x83");
}

/* UAX #15, and corner cases of the composition rules. */
TEST(nfc)
{
    expect_nfc("", "");
    expect_nfc("plain", "plain");
    expect_nfc("e\xcc\x81", "\xc3\xa9");
    expect_nfc("x e\xcc\x81 y", "x \xc3\xa9 y");
    expect_nfc("\xe2\x84\xab", "\xc3\x85");                             /* Angstrom sign */
    expect_nfc("q\xcc\x87\xcc\xa3", "q\xcc\xa3\xcc\x87");               /* marks are ordered */
    expect_nfc("D\xcc\x87\xcc\xa3", "\xe1\xb8\x8c\xcc\x87");            /* ordered, then composed */
    expect_nfc("\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8", "\xea\xb0\x81"); /* jamo L V T */
    expect_nfc("\xea\xb0\x80\xe1\x86\xa8", "\xea\xb0\x81");             /* LV T */
    expect_nfc("\xea\xb0\x80\xe1\x86\xa7", "\xea\xb0\x80\xe1\x86\xa7"); /* U+11A7 is no T */
    expect_nfc("\xe0\xa5\x98", "\xe0\xa4\x95\xe0\xa4\xbc");             /* composition exclusion */
    expect_nfc("a\xcc\xb8\xcd\x8f\xcc\x81", "a\xcc\xb8\xcd\x8f\xcc\x81"); /* CGJ blocks */
    expect_nfc("\xcc\x81", "\xcc\x81");
    expect_nfc("\xe3\x81\x8b\xe3\x82\x99", "\xe3\x81\x8c"); /* kana with voicing mark */
}

TEST(nfc_is_linear_in_a_run_of_marks)
{
    enum { PAIRS = 300000 };
    buf text;
    buf out;
    buf_init(&text, 8 << 20);
    buf_init(&out, 8 << 20);
    buf_char(&text, 'x');
    for (int i = 0; i < PAIRS; i++) buf_text(&text, "\xcc\x81\xcc\xa3"); /* class 230, class 220 */
    EXPECT_OK(unicode_nfc(&out, buf_view(&text), &err), err);
    /* x with dot below has no composed form with x, so all dots below come first. */
    EXPECT_INT(out.len, text.len);
    EXPECT(memcmp(out.ptr, "x\xcc\xa3\xcc\xa3", 5) == 0);
    EXPECT(memcmp(out.ptr + out.len - 4, "\xcc\x81\xcc\x81", 4) == 0);
    buf_free(&text);
    buf_free(&out);
}

TEST(nfc_ceiling_and_memory)
{
    buf out;
    buf_init(&out, 4);
    EXPECT_INT(unicode_nfc(&out, STR("too long"), &err), E_LIMIT);
    buf_free(&out);
    const int64_t live = mem_live();
    status s = E_NOMEM;
    for (int64_t n = 1; s != OK; n++) {
        buf_init(&out, 1 << 10);
        mem_fail_after(n);
        s = unicode_nfc(&out, STR("e\xcc\x81"), &err);
        mem_fail_after(0);
        EXPECT(s == OK || s == E_NOMEM);
        buf_free(&out);
        EXPECT_INT(mem_live(), live);
    }
}
