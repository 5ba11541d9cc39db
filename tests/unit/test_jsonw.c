#include "test.h"
#include <math.h>
#include "base/json.h"
#include "base/jsonw.h"

TEST(commas_and_nesting)
{
    buf b;
    buf_init(&b, 1000);
    jsonw w;
    jsonw_init(&w, &b);
    jsonw_object(&w);
    jsonw_key(&w, "a");
    jsonw_array(&w);
    jsonw_i64(&w, -1);
    jsonw_array(&w);
    jsonw_end_array(&w);
    jsonw_object(&w);
    jsonw_end_object(&w);
    jsonw_u64(&w, UINT64_MAX);
    jsonw_null(&w);
    jsonw_end_array(&w);
    jsonw_key_str(&w, STR("b\"c"));
    jsonw_bool(&w, true);
    jsonw_key(&w, "r");
    jsonw_raw(&w, STR("[1,2]"));
    jsonw_key(&w, "f");
    jsonw_fixed(&w, 1.23456, 2);
    jsonw_key(&w, "n");
    jsonw_f64(&w, NAN);
    jsonw_end_object(&w);
    EXPECT_STR(b.ptr, "{\"a\":[-1,[],{},18446744073709551615,null],\"b\\\"c\":true,\"r\":[1,2],"
                      "\"f\":1.23,\"n\":null}");
    buf_free(&b);
}

TEST(arrays_of_whole_numbers)
{
    static const int32_t a[] = { INT32_MIN, 0, 7 };
    static const int64_t b[] = { INT64_MAX };
    buf text;
    jsonw w;
    buf_init(&text, 1000);
    jsonw_init(&w, &text);
    jsonw_object(&w);
    jsonw_member_i32s(&w, "a", a, 3);
    jsonw_member_i64s(&w, "b", b, 1);
    jsonw_key(&w, "c");
    jsonw_i32s(&w, a, 0);
    jsonw_member_i64s(&w, "d", NULL, 0);
    jsonw_end_object(&w);
    EXPECT_STR(text.ptr, "{\"a\":[-2147483648,0,7],\"b\":[9223372036854775807],\"c\":[],\"d\":[]}");
    buf_free(&text);
}

TEST(deep_nesting)
{
    buf b;
    buf_init(&b, 10000);
    jsonw w;
    jsonw_init(&w, &b);
    for (int i = 0; i < 1000; i++) {
        jsonw_array(&w);
        jsonw_i64(&w, 1);
    }
    for (int i = 0; i < 1000; i++) jsonw_end_array(&w);
    error e = { 0 };
    json_doc *d;
    EXPECT_OK(json_parse(&d, buf_view(&b), 0, "deep", &e), e);
    EXPECT_INT(json_len(json_root(d)), 2);
    json_free(d);
    buf_free(&b);
}

/* Left: bytes. Right: as JSON, worked out by hand from RFC 8259, section 7. */
TEST(escapes)
{
    static const struct {
        str in;
        const char *want;
    } cases[] = {
        { { "a\"b\\c/d", 7 }, "\"a\\\"b\\\\c/d\"" },
        { { "\b\f\n\r\t", 5 }, "\"\\b\\f\\n\\r\\t\"" },
        { { "\0\x01\x1f\x7f", 4 }, "\"\\u0000\\u0001\\u001f\x7f\"" },
        { { "\xc3\xa9\xf0\x9f\x98\x80", 6 }, "\"\xc3\xa9\xf0\x9f\x98\x80\"" },
        { { "x\xffy\xc3", 4 }, "\"x\xef\xbf\xbdy\xef\xbf\xbd\"" },
        { { "\xed\xa0\x80", 3 }, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
        { { "", 0 }, "\"\"" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buf b;
        buf_init(&b, 1000);
        jsonw w;
        jsonw_init(&w, &b);
        jsonw_str(&w, cases[i].in);
        EXPECT_STR(b.ptr, cases[i].want);
        buf_free(&b);
    }
}

/* Right: repr() of Python 3.11, which prints the shortest form too. */
TEST(reals_like_python)
{
    static const struct {
        double v;
        const char *want;
    } cases[] = {
        { 0.0, "0.0" },
        { -0.0, "-0.0" },
        { 1.0, "1.0" },
        { 0.1, "0.1" },
        { 0.7, "0.7" },
        { 1e-5, "1e-05" },
        { 0.0001, "0.0001" },
        { 0.00012345, "0.00012345" },
        { 123456789012345680.0, "1.2345678901234568e+17" },
        { 1e15, "1000000000000000.0" },
        { 1e16, "1e+16" },
        { 9007199254740993.0, "9007199254740992.0" },
        { 1.0 / 3, "0.3333333333333333" },
        { 2.0 / 3, "0.6666666666666666" },
        { 5e-324, "5e-324" },
        { 1.7976931348623157e308, "1.7976931348623157e+308" },
        { 2.2250738585072014e-308, "2.2250738585072014e-308" },
        { 100.5, "100.5" },
        { 1e100, "1e+100" },
        { -1234.5678, "-1234.5678" },
        { 0.1 + 0.2, "0.30000000000000004" },
        { 0x1p-24, "5.960464477539063e-08" },
        { 0x1p-44, "5.684341886080802e-14" },
        { 0x1p+976, "6.386688990511104e+293" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buf b;
        buf_init(&b, 100);
        jsonw_real(&b, cases[i].v);
        EXPECT_STR(b.ptr, cases[i].want);
        buf_free(&b);
    }
}

TEST(reals_read_back)
{
    uint64_t x = 88172645463325252u;
    for (int i = 0; i < 100000; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17; /* xorshift64, Marsaglia 2003 */
        double v, back;
        memcpy(&v, &x, sizeof v);
        if (!isfinite(v)) continue;
        buf b;
        buf_init(&b, 100);
        jsonw_real(&b, v);
        EXPECT(str_to_f64(buf_view(&b), &back));
        if (memcmp(&v, &back, sizeof v) != 0) FAIL("%a printed as %s", v, b.ptr);
        buf_free(&b);
    }
}

TEST(fixed)
{
    static const struct {
        double v;
        int decimals;
        const char *want;
    } cases[] = { { 0.5, 0, "0" },
                  { 2.5, 3, "2.500" },
                  { -0.125, 2, "-0.12" },
                  { INFINITY, 2, "null" } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buf b;
        buf_init(&b, 100);
        jsonw w;
        jsonw_init(&w, &b);
        jsonw_fixed(&w, cases[i].v, cases[i].decimals);
        EXPECT_STR(b.ptr, cases[i].want);
        buf_free(&b);
    }
}

/* A parsed document is written back value for value: kinds, order and spelling of numbers stay. */
TEST(node_writes_what_was_read)
{
    const char *text = "{\"b\":[1,1.0,-0.0,1e+16,true,false,null,\"\\u0001\\\"\"],\"a\":{},"
                       "\"big\":123456789012345678901234567890,\"empty\":[]}";
    json_doc *doc;
    error e;
    buf out;
    jsonw w;
    EXPECT_OK(json_parse(&doc, str_from(text), JSON_KEEP_BIGINT, "test", &e), e);
    buf_init(&out, 1 << 16);
    jsonw_init(&w, &out);
    jsonw_node(&w, json_root(doc));
    EXPECT_STR(out.ptr, text);
    buf_free(&out);
    json_free(doc);
}

TEST(members_are_a_key_and_a_value)
{
    buf out;
    jsonw w;
    buf_init(&out, 1 << 10);
    jsonw_init(&w, &out);
    jsonw_object(&w);
    jsonw_member_text(&w, "text", "x");
    jsonw_member_text(&w, "none", NULL);
    jsonw_member_str(&w, "str", STR(""));
    jsonw_member_i64(&w, "i64", -1);
    jsonw_member_u64(&w, "u64", UINT64_MAX);
    jsonw_member_f64(&w, "f64", 0.5);
    jsonw_member_fixed(&w, "fixed", 0.5, 3);
    jsonw_member_bool(&w, "bool", true);
    jsonw_member_raw(&w, "raw", "[1]");
    jsonw_member_object(&w, "object");
    jsonw_member_array(&w, "array");
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    jsonw_end_object(&w);
    EXPECT_STR(out.ptr, "{\"text\":\"x\",\"none\":null,\"str\":\"\",\"i64\":-1,"
                        "\"u64\":18446744073709551615,\"f64\":0.5,\"fixed\":0.500,"
                        "\"bool\":true,\"raw\":[1],\"object\":{\"array\":[]}}");
    buf_free(&out);
}
