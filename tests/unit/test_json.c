#include "test.h"
#include <unistd.h>
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"

static json_doc *parse(str text, unsigned flags)
{
    error e = { 0 };
    json_doc *d;
    EXPECT_OK(json_parse(&d, text, flags, "test", &e), e);
    return d;
}

static void refuse(str text, unsigned flags, status want, const char *message)
{
    error e = { 0 };
    json_doc *d;
    const status s = json_parse(&d, text, flags, "test", &e);
    if (s != want) FAIL("%.*s: got %s, want %s", STR_ARG(text), error_name(s), error_name(want));
    EXPECT(!d);
    if (message) EXPECT_STR(e.text, message);
}

TEST(values_and_lookups)
{
    json_doc *d = parse(STR("{\"n\":null,\"t\":true,\"i\":-5,\"r\":1.5,\"s\":\"a\\u0000b\",\"a\":["
                            "1,[2]],\"o\":{\"k\":\"v\"}}"),
                        0);
    const json_node *o = json_root(d);
    int64_t i = 0;
    double r = 0;
    bool t = false;
    str s;
    EXPECT_INT(json_kind(json_get(o, "n")), JSON_NULL);
    EXPECT(json_bool(json_get(o, "t"), &t) && t && json_is_true(json_get(o, "t")));
    EXPECT(json_i64(json_get(o, "i"), &i) && i == -5);
    EXPECT(json_f64(json_get(o, "i"), &r) && r == -5);
    EXPECT(json_f64(json_get(o, "r"), &r) && r == 1.5);
    EXPECT(!json_i64(json_get(o, "r"), &i));
    EXPECT(json_str(json_get(o, "s"), &s));
    EXPECT(str_eq(s, STR("a\0b")));
    EXPECT_INT(json_len(json_get(o, "a")), 2);
    EXPECT(json_i64(json_at(json_at(json_get(o, "a"), 1), 0), &i) && i == 2);
    EXPECT_STR(json_text(json_get(json_get(o, "o"), "k")), "v");
    EXPECT(!json_get(json_get(json_get(o, "x"), "y"), "z"));
    EXPECT(!json_at(o, 0));
    EXPECT(!json_text(json_get(o, "i")));
    EXPECT_STR(json_kind_name(json_get(o, "x")), "nothing");
    EXPECT_STR(json_kind_name(json_get(o, "a")), "array");
    json_free(d);
}

TEST(file_order)
{
    json_doc *d = parse(STR("{\"z\":1,\"a\":2,\"m\":3,\"a\":4}"), 0);
    const char *want[] = { "z", "a", "m" };
    const int64_t values[] = { 1, 4, 3 }; /* the last of two wins, in the first one's place */
    int n = 0;
    str key;
    const json_node *value;
    for (void *it = NULL; json_each(json_root(d), &it, &key, &value); n++) {
        int64_t v = 0;
        EXPECT_STR(key.ptr, want[n]);
        EXPECT(json_i64(value, &v) && v == values[n]);
    }
    EXPECT_INT(n, 3);
    json_free(d);
}

TEST(refusals)
{
    refuse(STR("{\"a\":1,\"a\":2}"), JSON_UNIQUE, E_FORMAT, NULL);
    refuse(STR(""), 0, E_FORMAT, NULL);
    refuse((str){ 0 }, 0, E_FORMAT, NULL);
    const char *bad[] = { "{",
                          "[1,]",
                          "{\"a\" 1}",
                          "nul",
                          "01",
                          "+1",
                          "1.",
                          ".5",
                          "'a'",
                          "[1] 2",
                          "\"\\ud800\"",
                          "\"\\x\"",
                          "\"\xff\"",
                          "\"a\nb\"",
                          "NaN",
                          "1e999",
                          "\"\xed\xa0\x80\"",
                          "// c\n1",
                          "-" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        refuse(str_from(bad[i]), 0, E_FORMAT, NULL);
        refuse(str_from(bad[i]), JSON_KEEP_BIGINT, E_FORMAT, NULL);
    }
    refuse(STR("[1,\n  }"), 0, E_FORMAT, "test: line 2, column 3: unexpected token near '}'");
}

TEST(depth_is_limited)
{
    enum { DEEP = 3000 };
    char text[DEEP];
    memset(text, '[', DEEP);
    refuse((str){ text, DEEP }, 0, E_LIMIT, NULL);
    memset(text + 2000, ']', 1000);
    json_doc *d = parse((str){ text + 1000, 2000 }, 0);
    json_free(d);
}

TEST(big_integers_need_the_flag)
{
    refuse(STR("[9223372036854775808]"), 0, E_FORMAT, NULL);
    json_doc *d = parse(STR("[0,1,9223372036854775807,9223372036854775808,-9223372036854775809,"
                            "\"9223372036854775808\","
                            "\"\\\"1\",{\"k\":123456789012345678901234567890,\"j\":1},1.0,"
                            "12345678901234567890e0,-0]"),
                        JSON_KEEP_BIGINT);
    const json_node *a = json_root(d);
    const int64_t small[] = { 0, 1, INT64_MAX };
    for (size_t i = 0; i < 3; i++) {
        int64_t v = -1;
        EXPECT(json_i64(json_at(a, i), &v));
        EXPECT_INT(v, small[i]);
    }
    str digits;
    double r = 0;
    int64_t v = -1;
    EXPECT_INT(json_kind(json_at(a, 3)), JSON_BIGINT);
    EXPECT(json_bigint(json_at(a, 3), &digits) && str_eq(digits, STR("9223372036854775808")));
    EXPECT(json_f64(json_at(a, 3), &r) && r == 9223372036854775808.0);
    EXPECT(!json_i64(json_at(a, 3), &v));
    EXPECT(json_bigint(json_at(a, 4), &digits) && str_eq(digits, STR("-9223372036854775809")));
    EXPECT_STR(json_text(json_at(a, 5)), "9223372036854775808");
    EXPECT_STR(json_text(json_at(a, 6)), "\"1");
    EXPECT(json_bigint(json_get(json_at(a, 7), "k"), &digits));
    EXPECT(str_eq(digits, STR("123456789012345678901234567890")));
    EXPECT(json_i64(json_get(json_at(a, 7), "j"), &v) && v == 1);
    EXPECT_INT(json_kind(json_at(a, 8)), JSON_REAL);
    EXPECT(json_f64(json_at(a, 9), &r) && r == 12345678901234567890e0);
    EXPECT(json_i64(json_at(a, 10), &v) && v == 0);
    json_free(d);
    d = parse(STR(" 18446744073709551616 "), JSON_KEEP_BIGINT);
    EXPECT(json_bigint(json_root(d), &digits) && str_eq(digits, STR("18446744073709551616")));
    json_free(d);
    refuse(STR("[99999999999999999999, 007]"), JSON_KEEP_BIGINT, E_FORMAT, NULL);
}

TEST(big_integers_keep_error_positions)
{
    refuse(STR("[99999999999999999999,5,\n 123456, \"\xc3\xa9\", 7x]"), JSON_KEEP_BIGINT, E_FORMAT,
           "test: line 2, column 16: ']' expected near 'x'");
}

static const str sample = {
    "{\"a\":[1,2,99999999999999999999],\"b\":{\"c\":\"text\",\"d\":123456789012345678901}}", 75
};

TEST(every_allocation_may_fail)
{
    const int64_t live = mem_live();
    for (int n = 1;; n++) {
        error e = { 0 };
        json_doc *d;
        mem_fail_after(n);
        const status s = json_parse(&d, sample, JSON_KEEP_BIGINT, "test", &e);
        mem_fail_after(0);
        json_free(d);
        if (!s) {
            EXPECT(n > 5);
            break;
        }
        if (s != E_NOMEM) FAIL("allocation %d: %s: %s", n, error_name(s), e.text);
        if (mem_live() != live) FAIL("allocation %d: %d blocks lost", n, (int)(mem_live() - live));
    }
    EXPECT_INT(mem_live(), live);
}

TEST(files)
{
    error e = { 0 };
    char path[64];
    snprintf(path, sizeof path, "test_json.%ld.json", (long)getpid());
    EXPECT_OK(file_write(path, STR("{\"a\":"), &e), e);
    json_doc *d;
    EXPECT_INT(json_parse_file(&d, path, 100, 0, &e), E_FORMAT);
    EXPECT(strncmp(e.text, path, strlen(path)) == 0);
    EXPECT_INT(json_parse_file(&d, path, 4, 0, &e), E_LIMIT);
    EXPECT_INT(json_parse_file(&d, "does/not/exist", 4, 0, &e), E_IO);
    remove(path);
}
