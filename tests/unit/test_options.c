#include "cli/options.h"
#include "test.h"

typedef struct result {
    bool flag, given, help;
    int number;
    uint64_t big, bytes;
    double real;
    const char *text, *first, *second;
    option_list list;
    error e;
} result;

static status parse(result *r, int argc, const char **argv)
{
    *r = (result){ .number = 7, .text = "default" };
    const option table[] = {
        { OPTION_FLAG, "flag", 'f', &r->flag, NULL, "", 0, 0, &r->given },
        { OPTION_INT, "max-tokens", 'n', &r->number, "N", "", 1, 100, NULL },
        { OPTION_U64, "seed", 0, &r->big, "N", "", 0, 0, NULL },
        { OPTION_REAL, "temp", 0, &r->real, "T", "", 0, 2, NULL },
        { OPTION_SIZE, "cache", 0, &r->bytes, "SIZE", "", 0, 0, NULL },
        { OPTION_TEXT, "king", 'm', &r->text, "FOLDER", "", 0, 0, NULL },
        { OPTION_LIST, "stop", 0, &r->list, "TEXT", "", 0, 0, NULL },
        { .kind = OPTION_END },
    };
    const options_command c = { .name = "test",
                                .usage = "[FIRST [SECOND]]",
                                .summary = "",
                                .tables = { table },
                                .positional = { &r->first, &r->second },
                                .max_positional = 2 };
    return options_parse(&c, argc, (char **)argv, &r->help, &r->e);
}
#define PARSE(r, ...)                                                          \
    parse(&r, (int)(sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *)), \
          (const char *[]){ __VA_ARGS__ })

TEST(both_spellings_of_a_value)
{
    result r;
    EXPECT_OK(
        PARSE(r, "--max-tokens", "64", "--temp=0.5", "-m", "a=b", "--seed", "18446744073709551615"),
        r.e);
    EXPECT_INT(r.number, 64);
    EXPECT(r.real == 0.5);
    EXPECT_STR(r.text, "a=b");
    EXPECT(r.big == UINT64_MAX);
    EXPECT_OK(PARSE(r, "-n8", "--king=x=y"), r.e);
    EXPECT_INT(r.number, 8);
    EXPECT_STR(r.text, "x=y");
}

TEST(defaults_flags_lists_and_sizes)
{
    result r;
    EXPECT_OK(PARSE(r, "--stop", "a", "--stop", "--", "--cache", "3G", "-f"), r.e);
    EXPECT_INT(r.list.n, 2);
    EXPECT_STR(r.list.items[1], "--");
    EXPECT_INT(r.bytes, 3LL << 30);
    EXPECT(r.flag && r.given);
    EXPECT_INT(r.number, 7);
    EXPECT_STR(r.text, "default");
}

TEST(positional_arguments_and_the_end_of_options)
{
    result r;
    EXPECT_OK(PARSE(r, "one", "--", "--flag"), r.e);
    EXPECT_STR(r.first, "one");
    EXPECT_STR(r.second, "--flag");
    EXPECT(!r.flag);
    EXPECT_INT(PARSE(r, "a", "b", "c"), E_ARG);
    EXPECT_OK(PARSE(r, "-"), r.e); /* a lone dash is a value: stdin */
    EXPECT_STR(r.first, "-");
}

TEST(unknown_options_name_the_nearest)
{
    result r;
    EXPECT_INT(PARSE(r, "--max-token", "3"), E_ARG);
    EXPECT(strstr(r.e.text, "did you mean --max-tokens?"));
    EXPECT_INT(PARSE(r, "--zebra"), E_ARG);
    EXPECT(!strstr(r.e.text, "did you mean"));
}

TEST(nothing_is_suggested_that_is_mostly_another_word)
{
    const char *const commands[] = { "serve", "generate", "eval" };
    EXPECT(!options_nearest("env", commands, 3));
    EXPECT_STR(options_nearest("sever", commands, 3), "serve");
    EXPECT_STR(options_nearest("evl", commands, 3), "eval");
}

/* Text begins in column 35 and ends before column 100; where the name takes more, below it. */
TEST(help_is_laid_out_in_columns)
{
    const option table[] = {
        { OPTION_FLAG, "flag", 'f', NULL, NULL,
          "a text that is much longer than what is left of a line of a hundred columns", 0, 0,
          NULL },
        { OPTION_TEXT, "layers", 0, NULL, "every=N|all|none|I,J,...", "which", 0, 0, NULL },
        { .kind = OPTION_END },
    };
    const options_command c = { .name = "test", .usage = "", .summary = "x", .tables = { table } };
    char text[1024];
    FILE *f = tmpfile();
    EXPECT(f != NULL);
    options_help(&c, f);
    rewind(f);
    const size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = '\0';
    fclose(f);
    EXPECT_STR(strstr(text, "  -f"), "  -f, --flag                       "
                                     "a text that is much longer than what is left of a line of a\n"
                                     "                                   hundred columns\n"
                                     "      --layers every=N|all|none|I,J,...\n"
                                     "                                   which\n");
}

TEST(bad_values_are_refused)
{
    result r;
    EXPECT_INT(PARSE(r, "-n", "0"), E_ARG);
    EXPECT(strstr(r.e.text, "found 0, want a whole number from 1 to 100"));
    EXPECT_INT(PARSE(r, "-n", "5x"), E_ARG);
    EXPECT_INT(PARSE(r, "-n"), E_ARG);
    EXPECT_INT(PARSE(r, "--temp", "nan"), E_ARG);
    EXPECT_INT(PARSE(r, "--temp", "2.5"), E_ARG);
    EXPECT_INT(PARSE(r, "--seed", "-1"), E_ARG);
    EXPECT_INT(PARSE(r, "--seed", "18446744073709551616"), E_ARG);
    EXPECT_INT(PARSE(r, "--cache", "many"), E_ARG);
    EXPECT_INT(PARSE(r, "--flag=1"), E_ARG);
}

TEST(help_wins)
{
    result r;
    EXPECT_OK(PARSE(r, "--help", "--nonsense"), r.e);
    EXPECT(r.help);
}

TEST(block_sizes)
{
    int block = -1;
    error e;
    EXPECT_OK(options_block("auto", &block, &e), e);
    EXPECT_INT(block, 0);
    EXPECT_OK(options_block("0", &block, &e), e); /* R078: no rows to draft is plain */
    EXPECT_INT(block, 1);
    EXPECT_OK(options_block("8", &block, &e), e);
    EXPECT_INT(block, 8);
    EXPECT_INT(options_block("-1", &block, &e), E_ARG);
    EXPECT_INT(options_block("four", &block, &e), E_ARG);
}

/* One of two values would be lost. */
TEST(a_value_given_twice_is_an_error)
{
    result r;
    EXPECT_INT(PARSE(r, "--king", "a", "-m", "b"), E_ARG);
    EXPECT_STR(r.e.text, "--king: given twice, want one value");
    EXPECT_INT(PARSE(r, "-n", "3", "--max-tokens=3"), E_ARG);
    EXPECT_INT(PARSE(r, "--flag", "-f", "--stop", "a", "--stop", "b"), OK);
    EXPECT_INT(r.list.n, 2);
}

TEST(further_arguments_are_kept_in_order)
{
    option_rest rest = { 0 };
    const char *first = NULL;
    bool help, flag = false;
    error e;
    const option table[] = { { OPTION_FLAG, "flag", 'f', &flag, NULL, "", 0, 0, NULL },
                             { .kind = OPTION_END } };
    const options_command c = { .name = "test",
                                .usage = "",
                                .summary = "",
                                .tables = { table },
                                .positional = { &first },
                                .max_positional = 1,
                                .rest = &rest };
    const char *words[] = { "a", "b", "-f", "c", "--", "-d" };
    EXPECT_OK(options_parse(&c, 6, (char **)words, &help, &e), e);
    EXPECT_STR(first, "a");
    EXPECT(flag);
    EXPECT_INT(rest.n, 3);
    EXPECT_STR(rest.items[0], "b");
    EXPECT_STR(rest.items[1], "c");
    EXPECT_STR(rest.items[2], "-d");
}
