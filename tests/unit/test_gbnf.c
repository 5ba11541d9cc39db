/* GBNF: what it allows, and where it is refused. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "engine/gbnf.h"
#include "test.h"

static bool accepts(grammar *g, str text)
{
    int s = GRAMMAR_START;
    for (size_t i = 0; i < text.len; i++) s = grammar_next(g, s, (uint8_t)text.ptr[i]);
    return grammar_accepts(g, s);
}

static grammar *compile(const char *text)
{
    grammar *g;
    error e;
    EXPECT_OK(gbnf_compile(&g, str_from(text), false, &e), e);
    return g;
}

static void check(const char *text, const char *const *good, const char *const *bad)
{
    grammar *g = compile(text);
    for (; *good; good++)
        if (!accepts(g, str_from(*good))) FAIL("%s: refuses \"%s\"", text, *good);
    for (; *bad; bad++)
        if (accepts(g, str_from(*bad))) FAIL("%s: accepts \"%s\"", text, *bad);
    error e;
    EXPECT_OK(grammar_status(g, &e), e);
    grammar_free(g);
}

#define LIST(...)         \
    (const char *const[]) \
    {                     \
        __VA_ARGS__, NULL \
    }

TEST(literals_and_escapes)
{
    check("root ::= \"a b\"", LIST("a b"), LIST("", "ab", "a b ", "a"));
    check("root ::= \"\"", LIST(""), LIST("a"));
    check("root ::= \"\\n\\r\\t\\\\\\\"\\[\\]\"", LIST("\n\r\t\\\"[]"), LIST("n"));
    check("root ::= \"\\x41\\u00e9\\U0001F600\"", LIST("A\xc3\xa9\xf0\x9f\x98\x80"),
          LIST("A\xe9", "A"));
    check("root ::= \"\xe6\x97\xa5\"", LIST("\xe6\x97\xa5"), LIST("\xe6\x97", "\xe6\x97\xa6"));
    check("root ::= \"two\nlines\"", LIST("two\nlines"), LIST("two"));
}

TEST(classes)
{
    check("root ::= [a-cx]", LIST("a", "b", "c", "x"), LIST("", "d", "-", "ab"));
    check("root ::= [^a-cx]", LIST("d", "-", "\n", "\xc3\xa9", "\xf0\x9f\x98\x80"),
          LIST("a", "x", "", "\xc3", "\xff", "\xed\xa0\x80", "\xf4\x90\x80\x80"));
    check("root ::= [-a]", LIST("-", "a"), LIST("b"));
    check("root ::= [a-]", LIST("-", "a"), LIST("b"));
    check("root ::= [\\]\\[\\\\^]", LIST("]", "[", "\\", "^"), LIST("a"));
    check("root ::= [\\x30-\\x39\\t]", LIST("0", "9", "\t"), LIST("a", "x"));
    check("root ::= .", LIST("a", "\n", "\xc3\xa9", "\xed\x9f\xbf", "\xee\x80\x80"),
          LIST("", "ab", "\x80", "\xc0\x80", "\xed\xa0\x80"));
    /* Cyrillic capital A .. small ya: U+0410 .. U+044F, over the edge of a lead byte */
    check("root ::= [\xd0\x90-\xd1\x8f]+", LIST("\xd0\x90", "\xd0\xbf\xd1\x80\xd1\x8f"),
          LIST("\xd0\x8f", "\xd1\x90", "a", "\xd0"));
}

static void put(uint32_t code, char *text, str *out)
{
    *out = (str){ text, str_utf8_put(code, text) };
}

/* Every code point on both sides of odd ranges, by arithmetic on the numbers themselves. */
TEST(ranges_of_code_points_are_exact)
{
    static const uint32_t ends[][2] = { { 0x20, 0x7ff },      { 0x7f, 0x80 },
                                        { 0x3ff, 0x1234 },    { 0xd7ff, 0xe000 },
                                        { 0x800, 0xffff },    { 0xfffe, 0x10fffe },
                                        { 0x1f5ff, 0x1f64f }, { 0x5d, 0x10ffff } };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char text[80], bytes[4];
        snprintf(text, sizeof text, "root ::= [\\U%08x-\\U%08x]", (unsigned)ends[i][0],
                 (unsigned)ends[i][1]);
        grammar *g = compile(text);
        for (uint32_t code = 0; code <= 0x10ffff; code += code < 0x1400 ? 1 : 7) {
            if (code >= 0xd800 && code <= 0xdfff) continue;
            str one;
            put(code, bytes, &one);
            if (accepts(g, one) != (code >= ends[i][0] && code <= ends[i][1]))
                FAIL("%s: U+%04X", text, (unsigned)code);
        }
        for (int side = 0; side < 2; side++) {
            str one;
            put(ends[i][side], bytes, &one);
            EXPECT(accepts(g, one));
        }
        grammar_free(g);
    }
}

TEST(repetitions)
{
    check("root ::= \"a\"*", LIST("", "a", "aaaa"), LIST("b", "ab"));
    check("root ::= \"a\"+", LIST("a", "aaaa"), LIST("", "b"));
    check("root ::= \"a\"? \"b\"", LIST("b", "ab"), LIST("a", "aab"));
    check("root ::= \"a\"{3}", LIST("aaa"), LIST("aa", "aaaa", ""));
    check("root ::= \"ab\"{ 2 , }", LIST("abab", "ababab"), LIST("ab", "aba"));
    check("root ::= [ab]{0,2}", LIST("", "a", "ba"), LIST("aba"));
    check("root ::= (\"a\" | \"b\" \"c\"){2,3} \".\"", LIST("aa.", "bca.", "bcbcbc."),
          LIST("a.", "bb.", "aaaa.", "aa"));
    check("root ::= \"a\"{0} \"b\"", LIST("b"), LIST("ab"));
    check("root ::= (\"a\"{2}){2}", LIST("aaaa"), LIST("aa", "aaa", "aaaaa"));
    check("root ::= \"a\" * \"b\"", LIST("b", "aab"), LIST("a"));
    /* what may be empty, again and again */
    check("root ::= ((\"a\"*)*)+ (\"b\"? \"c\"?){0,5}", LIST("", "aaa", "abcbc", "cccc"),
          LIST("ba", "d"));
}

TEST(long_counts_are_exact)
{
    grammar *g = compile("root ::= [a-z\xc3\xa9]{2,1000}");
    static char text[1002];
    memset(text, 'q', sizeof text);
    for (size_t n = 0; n < sizeof text; n++)
        EXPECT_INT(accepts(g, (str){ text, n }), n >= 2 && n <= 1000);
    grammar_free(g);
}

TEST(rules_groups_and_lines)
{
    check("# lists\nroot ::= item (\",\" item)* # some\n\n  item ::= \"a\" |\n  \"b\"\n",
          LIST("a", "b,a", "a,a,b"), LIST("", ",", "a,", "ab"));
    check("root::=(\n  \"a\" # first\n  | \"b\"\n\n)\r\n", LIST("a", "b"), LIST("ab", ""));
    check("root ::=\n  x_1 Y-2\nx_1 ::= \"x\"\nY-2 ::= | \"y\"", LIST("x", "xy"), LIST("y", ""));
    check("root ::= (\"a\" | ) \"b\"", LIST("ab", "b"), LIST("a"));
    check("root ::= \"x\" |", LIST("x", ""), LIST("xx"));
    check("root ::= \"\"", LIST(""), LIST("x"));
}

/* A list by right recursion does not nest; brackets do, to GRAMMAR_DEPTH and no further. */
TEST(recursion)
{
    static char text[4003];
    grammar *g = compile("root ::= digit root | digit\ndigit ::= [0-9]");
    memset(text, '7', sizeof text);
    EXPECT(accepts(g, (str){ text, 4000 }));
    EXPECT(!accepts(g, (str){ text, 0 }));
    grammar_free(g);
    g = compile("root ::= \"(\" root \")\" | \"x\"");
    for (size_t depth = 0; depth < 100; depth++) {
        memset(text, '(', depth);
        text[depth] = 'x';
        memset(text + depth + 1, ')', depth);
        EXPECT_INT(accepts(g, (str){ text, 2 * depth + 1 }), depth <= GRAMMAR_DEPTH);
        EXPECT(depth == 0 || !accepts(g, (str){ text, 2 * depth }));
    }
    grammar_free(g);
}

/* Arithmetic, against a count of its own: brackets balance and operators stand between numbers. */
TEST(an_expression_grammar)
{
    check("root  ::= term ([-+] term)*\n"
          "term  ::= factor ([*/] factor)*\n"
          "factor ::= \"-\"? (number | \"(\" root \")\")\n"
          "number ::= \"0\" | [1-9] [0-9]* (\".\" [0-9]+)?\n",
          LIST("1", "-1", "1+2*3", "(1+2)*-3", "((((0))))", "12.50/(4-3)", "0-0"),
          LIST("", "01", "1+", "(1", "1)", "1**2", "--1", "1.", "()"));
}

TEST(a_json_grammar)
{
    check(
        "root ::= object\n"
        "value ::= object | array | string | number | (\"true\" | \"false\" | \"null\") ws\n"
        "object ::= \"{\" ws (string \":\" ws value (\",\" ws string \":\" ws value)*)? \"}\" ws\n"
        "array ::= \"[\" ws (value (\",\" ws value)*)? \"]\" ws\n"
        "string ::= \"\\\"\" ([^\"\\\\\\x00-\\x1f] | \"\\\\\" ([\"\\\\/bfnrt] | \"u\" "
        "[0-9a-fA-F]{4}))* \"\\\"\" ws\n"
        "number ::= \"-\"? (\"0\" | [1-9] [0-9]{0,15}) (\".\" [0-9]+)? ([eE] [-+]? [0-9]+)? ws\n"
        "ws ::= | \" \" | \"\\n\" [ \\t]{0,20}\n",
        LIST("{}", "{\"a\": [1, -2.5e3, {\"b\": null}], \"\\u00e9\": \"\xc3\xa9\"}",
             "{\n  \"x\": true\n}"),
        LIST("", "[]", "{", "{\"a\"}", "{\"a\":1,}", "{\"a\": 01}", "{\"a\":\"\n\"}", "{}}"));
}

TEST(an_empty_line_may_come_first)
{
    grammar *g;
    error e;
    EXPECT_OK(gbnf_compile(&g, STR("root ::= \"a\""), true, &e), e);
    EXPECT(accepts(g, STR("a")) && accepts(g, STR("\n\na")));
    EXPECT(!accepts(g, STR("\na")) && !accepts(g, STR("\n\n")));
    grammar_free(g);
}

TEST(refusals_name_the_place)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "", "line 1, column 1: there is no rule named root" },
        { "start ::= \"a\"", "line 1, column 14: there is no rule named root" },
        { "root ::= \"a\"\n  item = \"b\"", "line 2, column 8: found '=', want ::=" },
        { "root ::= \"\xc3\xa9\" )", "line 1, column 14: found ')', want an item" },
        { "root ::= (\"a\" | \"b\"\n", "line 2, column 1: found the end of the text, want" },
        { "root ::= \"a", "line 1, column 10: what begins here is never closed" },
        { "root ::= [a-z", "line 1, column 10: what begins here is never closed" },
        { "root ::= [z-a]", "line 1, column 11: this range ends before it begins" },
        { "root ::= []", "line 1, column 10: this class has no character" },
        { "root ::= [^\\x00-\\U0010ffff]", "line 1, column 10: this class has no character" },
        { "root ::= \"\\q\"", "line 1, column 12: found 'q', want one of n r t" },
        { "root ::= \"\\x4g\"", "line 1, column 14: found 'g', want a hexadecimal digit" },
        { "root ::= \"\\ud800\"", "line 1, column 13: this code point does not exist" },
        { "root ::= \"\\U00110000\"", "line 1, column 13: this code point does not exist" },
        { "root ::= \"a\"{,3}", "line 1, column 14: found ',', want a number" },
        { "root ::= \"a\"{3", "line 1, column 15: found the end of the text, want }" },
        { "root ::= \"a\"{3,2}", "line 1, column 13: the upper bound is below" },
        { "root ::= \"a\"{10001}", "line 1, column 14: more than 10000 repetitions" },
        { "root ::= *", "line 1, column 10: found '*', want an item" },
        { "root ::= \"a\"\n| \"b\"", "line 2, column 1: found '|', want a rule" },
        { "root ::= thing\n", "line 1, column 10: rule thing is used and not defined" },
        { "root ::= \"a\"\nroot ::= \"b\"", "line 2, column 1: rule root is defined a second" },
        { "root ::=", "line 1, column 1: rule root has no body (an empty text is written \"\")" },
        { "root ::= a\n a ::= # none\n\n", "line 2, column 2: rule a has no body" },
        { "root ::= <think>", "line 1, column 10: tokens are not supported" },
        { "root ::= !<[7]>", "line 1, column 10: tokens are not supported" },
        { "root ::= a\na ::= a \"x\" | \"x\"", "line 2, column 1: rule a begins with itself" },
        { "root ::= a | \"y\"\na ::= \"x\"? b\nb ::= (a \"z\")* \"q\"",
          "line 2, column 1: rule a begins with itself" },
        { "root ::= \"a\" b\nb ::= \"x\" b", "line 2, column 1: rule b stands for no text that" },
        { "root ::= \"\xff\"", "line 1, column 11: this is not UTF-8" },
        { "root ::= \"a\"\n\x01", "line 2, column 1: found U+0001, want the name of a rule" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        grammar *g;
        error e = { 0 };
        EXPECT_INT(gbnf_compile(&g, str_from(cases[i].text), false, &e), E_ARG);
        const char *want = cases[i].want, *got = e.text + strlen("grammar: ");
        if (strncmp(got, want, strlen(want)) != 0)
            FAIL("%s: got \"%s\", want \"%s...\"", cases[i].text, e.text, want);
    }
}

static void refuse_repeated(const char *before, const char *each, size_t n, const char *after,
                            const char *want)
{
    buf b;
    grammar *g;
    error e = { 0 };
    buf_init(&b, 1 << 22);
    buf_text(&b, before);
    for (size_t i = 0; i < n; i++) buf_text(&b, each);
    buf_text(&b, after);
    EXPECT_INT(gbnf_compile(&g, buf_view(&b), false, &e), E_ARG);
    if (!strstr(e.text, want)) FAIL("got \"%s\", want \"%s\"", e.text, want);
    buf_free(&b);
}

TEST(limits_are_refusals)
{
    refuse_repeated("root ::= ", "(", 65, "", "groups nested deeper than 64");
    refuse_repeated("root ::= \"a\"", "*", 9, "", "more than 8 repetitions");
    refuse_repeated("root ::= \"", "a", GBNF_BYTES, "\"", "want at most");
    refuse_repeated("root ::= \"", "a", GRAMMAR_NODES + 1, "\"", "too large");
    refuse_repeated("root ::= ", "\"a\"? ", 10000, "", "too large");
    refuse_repeated("root ::= ", "(((", 1, "\"a\"{0,9999}){0,9999}){0,9999}){0,9999}", "too large");
    buf b;
    grammar *g;
    error e = { 0 };
    buf_init(&b, 1 << 22);
    buf_text(&b, "root ::= \"a\"\n");
    for (int i = 0; i < GBNF_RULES; i++) buf_printf(&b, "r%d ::= \"a\"\n", i);
    EXPECT_INT(gbnf_compile(&g, buf_view(&b), false, &e), E_ARG);
    EXPECT(strstr(e.text, "line 1025, column 1: more than 1024 rules"));
    buf_free(&b);
}

/* A grammar made to explode gives up in bounded time. */
TEST(work_is_bounded)
{
    grammar *g = compile("root ::= (([a-z]{0,20} [b-y]{1,20}){30})* | [a-z]{9999}");
    const int64_t start = clock_ns();
    uint32_t n = 1;
    for (int state = GRAMMAR_START; state != GRAMMAR_DEAD; n = n * 1103515245u + 12345u)
        state = grammar_next(g, state, (uint8_t)('b' + (n >> 16) % 20));
    error e;
    EXPECT_INT(grammar_status(g, &e), E_ARG);
    EXPECT((double)(clock_ns() - start) * 1e-9 < 60);
    grammar_free(g);
}

/* Whatever allocation of a compilation fails, it is reported and nothing stays behind. */
TEST(every_failing_allocation_is_reported)
{
    const str text = STR("root ::= item (\",\" item){0,3} # list\n"
                         "item ::= \"a\" [0-9]+ | [^\"\\x00-\\x1f] . | (\"\\u00e9\" item)?\n");
    const int64_t live = mem_live();
    error e = { 0 };
    status s = E_NOMEM;
    int64_t n = 1;
    for (; s != OK; n++) {
        grammar *g = NULL;
        mem_fail_after(n);
        s = gbnf_compile(&g, text, true, &e);
        mem_fail_after(0);
        if (s == OK) grammar_free(g);
        else EXPECT_INT(s, E_NOMEM);
        EXPECT_INT(mem_live(), live);
    }
    EXPECT(n > 10);
}
