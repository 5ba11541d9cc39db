#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "engine/schema.h"
#include "test.h"

static grammar *compile(const char *schema)
{
    json_doc *doc;
    error e;
    grammar *g;
    EXPECT_OK(json_parse(&doc, str_from(schema), 0, "schema", &e), e);
    EXPECT_OK(schema_compile(&g, json_root(doc), false, &e), e);
    json_free(doc);
    return g;
}

static bool accepts(grammar *g, const char *text)
{
    int s = GRAMMAR_START;
    for (const char *c = text; *c; c++) s = grammar_next(g, s, (uint8_t)*c);
    return grammar_accepts(g, s);
}

static void check(const char *schema, const char *const *good, const char *const *bad)
{
    grammar *g = compile(schema);
    for (; *good; good++)
        if (!accepts(g, *good)) FAIL("%s: refuses %s", schema, *good);
    for (; *bad; bad++)
        if (accepts(g, *bad)) FAIL("%s: accepts %s", schema, *bad);
    grammar_free(g);
}

#define LIST(...)         \
    (const char *const[]) \
    {                     \
        __VA_ARGS__, NULL \
    }

TEST(scalars)
{
    check("{\"type\":\"integer\"}", LIST("0", "-7", "120"),
          LIST("", "01", "1.5", "-", "1e3", "\"1\""));
    check("{\"type\":\"number\"}", LIST("0", "-0.5", "12e3", "1.25E-7"),
          LIST(".5", "1.", "e1", "1e", "+1"));
    check("{\"type\":\"boolean\"}", LIST("true", "false"), LIST("null", "tru", "True"));
    check("{\"type\":[\"string\",\"null\"]}", LIST("\"\"", "null", "\"a\""), LIST("0", "nul"));
    check("{\"enum\":[\"red\",3,null]}", LIST("\"red\"", "3", "null"),
          LIST("red", "\"blue\"", "4"));
    check("{\"const\":{\"a\":[1]}}", LIST("{\"a\":[1]}"), LIST("{}", "{\"a\":[2]}"));
}

TEST(strings_are_utf8_and_escaped)
{
    check("{\"type\":\"string\"}",
          LIST("\"a b\"", "\"\\\"\\\\\\n\\u00e9\"", "\"\xc3\xa9\xf0\x9f\x98\x80\""),
          LIST("\"\n\"", "\"\\x\"", "\"\\u12\"", "\"\xc3\"", "\"\xed\xa0\x80\"", "\"\xc0\xaf\"",
               "\"\xff\"", "\"a"));
    check("{\"type\":\"string\",\"minLength\":1,\"maxLength\":3}",
          LIST("\"a\"", "\"abc\"", "\"\xc3\xa9\\n\xc3\xa9\""), LIST("\"\"", "\"abcd\""));
}

/* An escape of two halves is one character, and half of one is none. */
TEST(escaped_pairs_are_one_character)
{
    check("{\"type\":\"string\",\"maxLength\":1}",
          LIST("\"\\ud83d\\ude00\"", "\"\\uD7ff\"", "\"\\ue000\"", "\"\\udaAA\\udfff\""),
          LIST("\"\\ud83d\"", "\"\\ude00\"", "\"\\ud83d\\u0041\"", "\"\\ude00\\ud83d\""));
    check("{\"type\":\"string\",\"minLength\":2}", LIST("\"\\ud83d\\ude00a\""),
          LIST("\"\\ud83d\\ude00\""));
}

/* What stands beside a type, and branches of which one alone may fit. */
TEST(types_values_and_branches_agree)
{
    check("{\"type\":\"string\",\"enum\":[\"a\",\"b\"]}", LIST("\"a\"", "\"b\""),
          LIST("\"c\"", "1"));
    check("{\"type\":\"integer\",\"const\":3}", LIST("3"), LIST("4"));
    check("{\"minLength\":2}", LIST("\"ab\""), LIST("\"a\"", "7"));
    check("{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"integer\"}]}", LIST("\"a\"", "1"),
          LIST("null"));
    check("{\"oneOf\":[{\"$ref\":\"#/$defs/cat\"},{\"$ref\":\"#/$defs/dog\"}],\"$defs\":{"
          "\"cat\":{\"type\":\"object\",\"properties\":{\"kind\":{\"const\":\"cat\"},\"lives\":"
          "{\"type\":\"integer\"}},\"required\":[\"kind\"]},"
          "\"dog\":{\"type\":\"object\",\"properties\":{\"kind\":{\"enum\":[\"dog\",\"pup\"]}},"
          "\"required\":[\"kind\"]}}}",
          LIST("{\"kind\":\"cat\",\"lives\":9}", "{\"kind\":\"pup\"}"),
          LIST("{\"kind\":\"dog\",\"lives\":9}", "{}", "{\"kind\":\"cow\"}"));
}

TEST(objects)
{
    const char *schema =
        "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},"
        "\"b\":{\"type\":\"string\"},\"c\":{\"type\":\"null\"}},\"required\":[\"b\"],"
        "\"additionalProperties\":false}";
    check(schema,
          LIST("{\"b\":\"\"}", "{\"a\": 1, \"b\": \"x\"}", "{\"b\":\"x\",\"c\":null}",
               "{\n  \"a\": 1,\n  \"b\": \"\"\n}"),
          LIST("{}", "{\"a\":1}", "{\"b\":\"x\",}", "{,\"b\":\"\"}", "{\"b\":\"\",\"d\":1}",
               "{\"a\":1\"b\":\"\"}", "{\"c\":null,\"b\":\"\"}"));
    check("{\"type\":\"object\"}", LIST("{}", "{\"x\":[1,{\"y\":null}]}"),
          LIST("[]", "{x:1}", "{\"x\"}"));
    check("{\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"}}",
          LIST("{}", "{\"x\":1,\"y\":2}"), LIST("{\"x\":\"1\"}"));
    check("{\"type\":\"object\",\"properties\":{},\"additionalProperties\":false}", LIST("{}"),
          LIST("{\"a\":1}"));
}

TEST(arrays)
{
    check("{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"minItems\":1,\"maxItems\":3}",
          LIST("[1]", "[1, 2,3]"), LIST("[]", "[1,2,3,4]", "[1,]", "[,1]", "[\"1\"]"));
    check("{\"type\":\"array\",\"minItems\":2}", LIST("[1,[]]", "[{},null,true]"),
          LIST("[]", "[1]"));
    check("{\"type\":\"array\",\"maxItems\":0}", LIST("[]"), LIST("[1]"));
}

TEST(recursion_through_references)
{
    check("{\"$defs\":{\"tree\":{\"type\":\"object\",\"properties\":{\"v\":{\"type\":\"integer\"},"
          "\"kids\":"
          "{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/tree\"}}},\"required\":[\"v\"]}},"
          "\"$ref\":\"#/$defs/tree\"}",
          LIST("{\"v\":1}", "{\"v\":1,\"kids\":[{\"v\":2},{\"v\":3,\"kids\":[{\"v\":4}]}]}"),
          LIST("{\"kids\":[]}", "{\"v\":1,\"kids\":[1]}"));
}

TEST(nesting_is_bounded)
{
    grammar *g = compile("true");
    char deep[1024];
    for (int depth = 4; depth <= 400; depth += 396) {
        memset(deep, '[', (size_t)depth);
        memset(deep + depth, ']', (size_t)depth);
        deep[2 * depth] = 0;
        EXPECT_INT(accepts(g, deep), depth == 4);
    }
    grammar_free(g);
}

TEST(R041_what_is_not_supported_is_refused_with_its_path)
{
    static const struct {
        const char *schema, *want;
    } cases[] = {
        { "{\"type\":\"string\",\"pattern\":\"a+\"}", "schema: pattern" },
        { "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\",\"minimum\":3}}}",
          "schema.n: minimum" },
        { "{\"type\":\"array\",\"items\":{\"not\":{}}}", "schema.items: not" },
        { "{\"type\":\"strin\"}", "schema: type" },
        { "{\"$ref\":\"#/$defs/none\"}", "schema: $ref" },
        { "{\"$ref\":\"other.json\"}", "schema: $ref" },
        { "{\"anyOf\":[{\"type\":\"null\"}],\"properties\":{\"a\":true}}", "schema: properties" },
        { "{\"type\":\"object\",\"required\":[\"a\"]}", "schema: required" },
        { "{\"type\":\"array\",\"minItems\":3,\"maxItems\":2}", "schema: maxItems" },
        { "{\"type\":\"array\",\"maxItems\":1000000}", "schema: maxItems" },
        { "{\"type\":\"string\",\"enum\":[\"a\",1]}", "schema: type" },
        { "{\"type\":\"string\",\"anyOf\":[{\"type\":\"null\"}]}", "schema: type" },
        { "{\"oneOf\":[{\"type\":\"number\"},{\"type\":\"integer\"}]}", "schema: oneOf" },
        { "{\"oneOf\":[{\"const\":1},{\"const\":1.0}]}", "schema: oneOf" },
        { "{\"oneOf\":[{\"type\":\"object\",\"properties\":{\"a\":{\"const\":1}}},{\"type\":"
          "\"object\","
          "\"properties\":{\"a\":{\"const\":2}}}]}",
          "schema: oneOf" },
        { "{\"required\":[\"a\"]}", "schema: required" },
        { "[1]", "schema: found array" },
        { "{\"$ref\":\"#\"}", "grammar: a part of it stands for no text that ends" },
        { "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#/properties/a\"}}}",
          "grammar: a part of it stands for no text that ends" },
        { "{\"type\":\"array\",\"items\":{\"$ref\":\"#\"},\"minItems\":1}",
          "grammar: a part of it stands for no text that ends" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_doc *doc;
        error e;
        grammar *g;
        EXPECT_OK(json_parse(&doc, str_from(cases[i].schema), 0, "schema", &e), e);
        EXPECT(schema_compile(&g, json_root(doc), false, &e) != OK);
        if (strncmp(e.text, cases[i].want, strlen(cases[i].want)) != 0)
            FAIL("%s: got \"%s\", want \"%s...\"", cases[i].schema, e.text, cases[i].want);
        json_free(doc);
    }
}

/* Two branches that lead to the same recursive object: each level asks about every property of the
 * one below. */
TEST(branches_of_oneOf_are_compared_in_bounded_time)
{
    buf b;
    buf_init(&b, 1 << 16);
    buf_text(&b, "{\"$defs\":{\"n\":{\"type\":\"object\",\"properties\":{");
    for (int i = 0; i < 10; i++)
        buf_printf(&b, "%s\"%c\":{\"$ref\":\"#/$defs/n\"}", i ? "," : "", 'a' + i);
    buf_text(&b, "},\"required\":[");
    for (int i = 0; i < 10; i++) buf_printf(&b, "%s\"%c\"", i ? "," : "", 'a' + i);
    buf_text(&b, "]}},\"oneOf\":[{\"$ref\":\"#/$defs/n\"},{\"$ref\":\"#/$defs/n\"}]}");
    json_doc *doc;
    error e;
    grammar *g;
    EXPECT_OK(json_parse(&doc, buf_view(&b), 0, "schema", &e), e);
    const int64_t start = clock_ns();
    EXPECT_INT(schema_compile(&g, json_root(doc), false, &e), E_UNSUPPORTED);
    EXPECT_STR(e.text, "schema: oneOf: two of its schemas may fit the same value (anyOf?)");
    EXPECT(clock_ns() - start < 30000000000);
    json_free(doc);
    buf_free(&b);
}

/* Any way through the grammar that ends where it may is JSON, by the reader's account. */
TEST(random_texts_of_a_grammar_are_json)
{
    grammar *g =
        compile("{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"number\"},\"b\":{},"
                "\"c\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}}}");
    rng r = { 11 };
    int whole = 0;
    for (int round = 0; round < 400; round++) {
        char text[400];
        size_t n = 0;
        int s = GRAMMAR_START;
        while (n < sizeof text - 1) {
            if (grammar_accepts(g, s)) {
                json_doc *doc;
                error e;
                EXPECT_OK(json_parse(&doc, (str){ text, n }, 0, "text", &e), e);
                json_free(doc);
                whole++;
                break;
            }
            int next = GRAMMAR_DEAD;
            char c = 0;
            while (next == GRAMMAR_DEAD) { /* closing bytes more often, so that texts end */
                static const char often[] = "\"]},:";
                c = rng_below(&r, 2) ? often[rng_below(&r, 5)] : (char)rng_below(&r, 256);
                next = grammar_next(g, s, (uint8_t)c);
            }
            text[n++] = c;
            s = next;
        }
    }
    error e;
    EXPECT_OK(grammar_status(g, &e), e);
    EXPECT(whole > 100);
    grammar_free(g);
}

/* Both forms of calls; a text argument holds anything but its own end. */
TEST(calls_in_both_forms)
{
    json_doc *doc;
    error e;
    grammar *g;
    const char *schema = "{\"type\":\"object\",\"properties\":{\"q\":{\"type\":\"string\"},\"n\":"
                         "{\"type\":\"integer\"}},\"required\":[\"q\"]}";
    EXPECT_OK(json_parse(&doc, str_from(schema), 0, "schema", &e), e);
    const schema_call calls[] = { { STR("find"), json_root(doc) }, { STR("stop"), NULL } };
    EXPECT_OK(schema_compile_calls(&g, calls, 2, true, true, &e), e);
#define CALL(name, inner) "<tool_call>\n<function=" name ">\n" inner "</function>\n</tool_call>"
#define ARG(key, value) "<parameter=" key ">\n" value "\n</parameter>\n"
    EXPECT(accepts(g, CALL("stop", "")));
    EXPECT(accepts(g, "\n\n" CALL("find", ARG("q", "a <b> </b>\n</param> \xc3\xa9"))));
    EXPECT(accepts(g, CALL("find", ARG("q", "") ARG("n", "12"))));
    EXPECT(accepts(g, CALL("find", ARG("q", "\n\n<</parameter \xf0\x9f\x98\x80\n"))));
    EXPECT(!accepts(g, CALL("find", ARG("q", "x\n</parameter> y"))));
    EXPECT(!accepts(g, CALL("find", "")));
    EXPECT(!accepts(g, CALL("find", ARG("n", "12"))));
    EXPECT(!accepts(g, CALL("find", ARG("q", "x") ARG("n", "\"12\""))));
    EXPECT(!accepts(g, CALL("find", ARG("q", "x") "junk")));
    EXPECT(!accepts(g, CALL("other", "")));
    grammar_free(g);
    EXPECT_OK(schema_compile_calls(&g, calls, 2, false, false, &e), e);
    EXPECT(accepts(g, "<tool_call>\n{\"name\": \"find\", \"arguments\": {\"q\": \"x\", \"n\": "
                      "3}}\n</tool_call>"));
    EXPECT(accepts(g, "<tool_call>\n{\"name\": \"stop\", \"arguments\": {}}\n</tool_call>"));
    EXPECT(!accepts(g, "<tool_call>\n{\"name\": \"find\", \"arguments\": {}}\n</tool_call>"));
    grammar_free(g);
    json_free(doc);
}

static grammar *one_tagged_call(const char *schema, status want, error *e)
{
    json_doc *doc;
    grammar *g = NULL;
    EXPECT_OK(json_parse(&doc, str_from(schema), 0, "schema", e), *e);
    const schema_call call = { STR("find"), json_root(doc) };
    EXPECT_INT(schema_compile_calls(&g, &call, 1, true, false, e), want);
    json_free(doc);
    return g;
}

/* Without quotes the words of an enum stand as they are; a length cannot be held against an end. */
TEST(text_arguments_of_tagged_calls)
{
    error e;
    grammar *g = one_tagged_call("{\"type\":\"object\",\"properties\":{\"q\":{\"type\":\"string\","
                                 "\"enum\":[\"up\",\"down\"]}},\"required\":[\"q\"]}",
                                 OK, &e);
    EXPECT(accepts(g, CALL("find", ARG("q", "up"))));
    EXPECT(accepts(g, CALL("find", ARG("q", "down"))));
    EXPECT(!accepts(g, CALL("find", ARG("q", "left"))));
    EXPECT(!accepts(g, CALL("find", ARG("q", "\"up\""))));
    grammar_free(g);
    one_tagged_call("{\"type\":\"object\",\"properties\":{\"q\":{\"type\":\"string\","
                    "\"minLength\":2}}}",
                    E_UNSUPPORTED, &e);
    EXPECT(strstr(e.text, "length of a text argument"));
    one_tagged_call(
        "{\"type\":\"object\",\"properties\":{\"q\":{\"type\":\"string\",\"enum\":[]}}}",
        E_UNSUPPORTED, &e);
}

/* Values of a tagged argument are enforced, and what cannot be is refused as in the other form. */
TEST(tagged_arguments_are_enforced_or_refused)
{
#define ONE(inner) "{\"type\":\"object\",\"properties\":{\"q\":{\"type\":\"string\"," inner "}}}"
    static const struct {
        const char *schema, *want;
    } refused[] = {
        { ONE("\"anyOf\":[{\"type\":\"string\"}]"), "schema.find.q: anyOf" },
        { ONE("\"oneOf\":[{\"type\":\"string\"}]"), "schema.find.q: oneOf" },
        { ONE("\"allOf\":[{\"maxLength\":3}]"), "schema.find.q: " },
        { ONE("\"$ref\":\"#/$defs/x\""), "schema.find.q: " },
        { ONE("\"const\":1"), "schema.find.q: type" },
        { ONE("\"enum\":[1]"), "schema.find.q: type" },
        { ONE("\"const\":\"a\",\"enum\":[\"a\"]"), "schema.find.q: enum" },
        { "{\"anyOf\":[{\"type\":\"object\",\"properties\":{\"q\":{}},\"required\":[\"q\"]}]}",
          "schema.find: anyOf" },
        { "{\"$ref\":\"#/$defs/x\",\"$defs\":{\"x\":{\"type\":\"object\"}}}", "schema.find: $ref" },
        { "{\"type\":\"string\"}", "schema.find: type" },
    };
    error e;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        one_tagged_call(refused[i].schema, E_UNSUPPORTED, &e);
        if (strncmp(e.text, refused[i].want, strlen(refused[i].want)) != 0)
            FAIL("%s: got \"%s\", want \"%s...\"", refused[i].schema, e.text, refused[i].want);
    }
    grammar *g = one_tagged_call(ONE("\"const\":\"x\""), OK, &e);
    EXPECT(accepts(g, CALL("find", ARG("q", "x"))));
    EXPECT(!accepts(g, CALL("find", ARG("q", "wrong"))));
    grammar_free(g);
}

/* Whatever allocation of a compilation fails, it is reported and nothing stays behind. */
TEST(every_failing_allocation_is_reported)
{
    const char *schema =
        "{\"$defs\":{\"leaf\":{\"enum\":[\"a\",1,null,[\"b\"]]}},\"type\":\"object\","
        "\"properties\":{"
        "\"s\":{\"type\":\"string\"},\"l\":{\"type\":\"array\","
        "\"items\":{\"$ref\":\"#/$defs/leaf\"},\"maxItems\":3},\"n\":{\"anyOf\":[{\"type\":"
        "\"integer\"},{\"type\":\"boolean\"}]}},\"required\":[\"s\"]}";
    json_doc *doc;
    error e = { 0 };
    EXPECT_OK(json_parse(&doc, str_from(schema), 0, "schema", &e), e);
    const schema_call calls[] = { { STR("find"), json_root(doc) }, { STR("stop"), NULL } };
    const int64_t live = mem_live();
    for (int form = 0; form < 3; form++) {
        status s = E_NOMEM;
        int64_t n = 1;
        for (; s != OK; n++) {
            grammar *g = NULL;
            mem_fail_after(n);
            s = form == 0 ? schema_compile(&g, json_root(doc), true, &e)
                          : schema_compile_calls(&g, calls, 2, form == 1, true, &e);
            mem_fail_after(0);
            if (s == OK) grammar_free(g);
            else if (s != E_NOMEM) FAIL("%lld: %s", (long long)n, e.text);
            EXPECT_INT(mem_live(), live);
        }
        EXPECT(n > 10);
    }
    json_free(doc);
}
