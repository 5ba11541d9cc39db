#include "test.h"

#include "base/buf.h"
#include "base/mem.h"
#include "text/regex.h"

static error err;

/* Matches and what lies between them, as "a|b|c". */
static void expect_pieces(const char *pattern, str text, const char *want)
{
    regex *r = NULL;
    regex_scan *scan = NULL;
    buf got;
    buf_init(&got, 1 << 16);
    EXPECT_OK(regex_open(&r, str_from(pattern), "test", &err), err);
    EXPECT_OK(regex_scan_open(&scan, r, &err), err);
    for (size_t at = 0, from, to; at < text.len; at = to) {
        EXPECT_OK(regex_next(scan, text, at, &from, &to, &err), err);
        EXPECT(from >= at && to >= from && (to > from || to == text.len));
        if (from > at && at > 0) buf_char(&got, '|');
        buf_add(&got, str_sub(text, at, from));
        if (to > from && from > 0) buf_char(&got, '|');
        buf_add(&got, str_sub(text, from, to));
    }
    EXPECT_STR(buf_view(&got).ptr, want);
    buf_free(&got);
    regex_scan_close(scan);
    regex_close(r);
}

static void refuse(const char *pattern, status want, const char *message)
{
    regex *r = NULL;
    const status s = regex_open(&r, str_from(pattern), "test", &err);
    EXPECT(r == NULL);
    if (s != want) FAIL("%s: got %s, want %s", pattern, error_name(s), error_name(want));
    EXPECT_STR(err.text, message);
}

TEST(pieces)
{
    expect_pieces("[a-z]+", STR("ab1cd"), "ab|1|cd");
    expect_pieces("\\s+(?!\\S)|\\s+", STR("a   b"), "a|  | |b");
    expect_pieces("(?i:'s)|.", STR("'S'x"), "'S|'|x");
    expect_pieces("\\p{Lu}\\p{Ll}*", STR("AbcDE"), "Abc|D|E");
    expect_pieces("\\x{e9}|[\\x{4e2d}]", STR("x\xc3\xa9\xe4\xb8\xad"), "x|\xc3\xa9|\xe4\xb8\xad");
    expect_pieces("\\p{N}{1,3}", STR("12345"), "123|45");
    expect_pieces("(?<=a)b|(?>c+)|(d)(?:e)(?=f)(?<!x)", STR("abccdef"), "a|b|cc|de|f");
    expect_pieces("[\\]\\-x]+", STR("a]-xb"), "a|]-x|b");
    expect_pieces("]", STR("a]"), "a|]");
    expect_pieces("[\\s-]+", STR("a -b"), "a| -|b"); /* a last hyphen is no range */
}

TEST(dot_stops_at_a_line_feed_only)
{
    expect_pieces(".+", STR("a\rb\xe2\x80\xa8\nc"), "a\rb\xe2\x80\xa8|\n|c");
}

TEST(white_space_is_the_unicode_property)
{
    expect_pieces("\\s", STR("\xe1\xa0\x8e"), "\xe1\xa0\x8e"); /* U+180E is not: no match */
    regex *r = NULL;
    regex_scan *scan = NULL;
    size_t from = 9;
    size_t to = 9;
    EXPECT_OK(regex_open(&r, STR("[\\s]"), "test", &err), err);
    EXPECT_OK(regex_scan_open(&scan, r, &err), err);
    EXPECT_OK(regex_next(scan, STR("\xe1\xa0\x8e"), 0, &from, &to, &err), err);
    EXPECT(from == 3 && to == 3);
    EXPECT_OK(regex_next(scan, STR("\xe1\xa0\x8e\xe3\x80\x80"), 0, &from, &to, &err), err);
    EXPECT(from == 3 && to == 6);
    regex_scan_close(scan);
    regex_close(r);
}

TEST(empty_matches_do_not_count)
{
    expect_pieces("x*", STR("ax\xc3\xa9xx"), "a|x|\xc3\xa9|xx");
    expect_pieces("", STR("ab"), "ab");
}

TEST(refused)
{
#define AT(n) "test: split expression, byte " #n ": found "
    const status no = E_UNSUPPORTED;
    refuse("[a&&b]", no, AT(2) "\"&&\", want no intersection of classes");
    refuse("[a[b]]", no, AT(2) "\"[\", want no class inside a class");
    refuse("[[:alpha:]]", no, AT(1) "\"[\", want no class inside a class");
    refuse("[]a]", no, AT(1) "\"]\", want a class with something in it");
    refuse("^a", no, AT(0) "\"^\", want no anchor");
    refuse("a$", no, AT(1) "\"$\", want no anchor");
    refuse("(?s:a)", no, AT(0) "\"(?s:\", want (?: (?i: (?= (?! (?<= (?<! or (?>");
    refuse("(?", no, AT(0) "\"(?\", want (?: (?i: (?= (?! (?<= (?<! or (?>");
    refuse("(*ACCEPT)", no, AT(0) "\"(*\", want no verb");
    refuse("a{,3}", no, AT(1) "\"{,\", want {n}, {n,} or {n,m}");
    refuse("a{2}+", no, AT(1) "\"{2}\", want {n}, {n,} or {n,m}");
    refuse("a{", no, AT(1) "\"{\", want {n}, {n,} or {n,m}");
#define ESCAPES "want only \\s \\S \\p{} \\P{} \\x{} \\r \\n \\t \\f or escaped punctuation"
    refuse("a\\w", no, AT(1) "\"\\w\", " ESCAPES);
    refuse("(a)\\1", no, AT(3) "\"\\1\", " ESCAPES);
    refuse("\\", no, AT(0) "\"\\\", " ESCAPES);
    refuse("\\p{Han}", no, AT(0) "\"\\p{Han}\", want \\p{..} with a general category");
    refuse("\\pL", no, AT(0) "\"\\pL\", want \\p{..} with a general category");
    refuse("\\x{110000000}", no, AT(0) "\"\\x{\", want \\x{..} of at most six digits");
    refuse("[\\S]", no, AT(1) "\"\\S\", want no complement inside a class");
    refuse("[\\s-z]", no, AT(1) "\"\\s\", want no range that begins or ends at a set");
    refuse("[!-\\s]", no, AT(3) "\"\\s\", want no range that begins or ends at a set");
}

TEST(not_an_expression)
{
    regex *r = NULL;
    EXPECT_INT(regex_open(&r, STR("(a"), "test", &err), E_FORMAT);
    EXPECT(str_starts(str_from(err.text), STR("test: split expression: ")));
    EXPECT_INT(regex_open(&r, STR("[a"), "test", &err), E_FORMAT);
    EXPECT_INT(regex_open(&r, STR("+"), "test", &err), E_FORMAT);
    EXPECT_INT(regex_open(&r, STR("\\x{110000}"), "test", &err), E_FORMAT);
    EXPECT_INT(regex_open(&r, STR("\xff"), "test", &err), E_FORMAT);
    EXPECT_INT(regex_open(&r, STR("a\0b"), "test", &err), E_FORMAT);
    buf big;
    buf_init(&big, 1 << 20);
    for (int i = 0; i < 70000; i++) buf_char(&big, 'a');
    EXPECT_INT(regex_open(&r, buf_view(&big), "test", &err), E_LIMIT);
    buf_free(&big);
    EXPECT(r == NULL);
}

TEST(backtracking_has_a_limit)
{
    regex *r = NULL;
    regex_scan *scan = NULL;
    size_t from = 0;
    size_t to = 0;
    EXPECT_OK(regex_open(&r, STR("(?:a|aa)+[bc]"), "test", &err), err);
    EXPECT_OK(regex_scan_open(&scan, r, &err), err);
    EXPECT_INT(
        regex_next(scan,
                   STR("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), 0,
                   &from, &to, &err),
        E_LIMIT);
    EXPECT(str_starts(str_from(err.text), STR("text: byte 0: too much backtracking in the split")));
    regex_scan_close(scan);
    regex_close(r);
}

#define QWEN35                                                                   \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}|" \
    " ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

TEST(R001_symbols_stay_together_and_digits_apart)
{
    expect_pieces(QWEN35, STR("x->y"), "x|->|y");
    expect_pieces(QWEN35, STR("(x):\n"), "(x|):\n");
    expect_pieces(QWEN35, STR("1234567"), "1|2|3|4|5|6|7");
    expect_pieces(QWEN35, STR("if (a) {\n    b;\n}"), "if| (|a|)| {\n|   | b|;\n|}");
}

/* The split of Qwen3.5 on a megabyte that is one run: neither the stack of the engine nor its
 * limits are met. */
TEST(long_runs)
{
    enum { LEN = 1 << 20 };
    regex *r = NULL;
    regex_scan *scan = NULL;
    EXPECT_OK(regex_open(&r, STR(QWEN35), "test", &err), err);
    EXPECT_OK(regex_scan_open(&scan, r, &err), err);
    char *text = malloc(LEN + 1);
    for (const char *c = "a. \n"; *c; c++) {
        size_t from = 0;
        size_t to = 0;
        memset(text, *c, LEN);
        text[LEN] = 'x';
        EXPECT_OK(regex_next(scan, (str){ text, LEN + 1 }, 0, &from, &to, &err), err);
        EXPECT_INT(from, 0);
        EXPECT_INT(to, *c == 'a' ? LEN + 1 : *c == ' ' ? LEN - 1 : LEN);
    }
    free(text);
    regex_scan_close(scan);
    regex_close(r);
}
