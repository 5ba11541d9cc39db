/* The JSON-Schema-Test-Suite (tests/golden/json-schema): what is invalid is never accepted, what is
 * valid is, but for the marked ways of writing it, and what is not supported is refused by name. */
#include "base/jsonw.h"
#include "engine/schema.h"
#include "test.h"

typedef struct counts {
    int schemas, refused, valid, invalid, not_written;
} counts;

static bool accepts(grammar *g, const json_node *value)
{
    buf text;
    jsonw w;
    buf_init(&text, 1 << 20);
    jsonw_init(&w, &text);
    jsonw_node(&w, value);
    int s = GRAMMAR_START;
    for (size_t i = 0; i < text.len; i++) s = grammar_next(g, s, (uint8_t)text.ptr[i]);
    buf_free(&text);
    return grammar_accepts(g, s);
}

static void check_instances(const json_node *one, grammar *g, counts *n)
{
    const json_node *tests = json_get(one, "tests");
    const char *from = json_text(json_get(one, "from"));
    for (size_t i = 0; i < json_len(tests); i++) {
        const json_node *t = json_at(tests, i);
        bool valid;
        EXPECT(json_bool(json_get(t, "valid"), &valid));
        const bool accepted = accepts(g, json_get(t, "data"));
        const bool want = valid && !json_get(t, "not_written");
        if (accepted != want)
            FAIL("%s: instance %zu: accepted %d, want %d", from, i, accepted, want);
        n->valid += want;
        n->invalid += !valid;
        n->not_written += valid && !want;
    }
}

static void check_refusal(const char *from, const char *word, const char *text)
{
    const char *message = strchr(text, ':'); /* "schema.path: word: why", or "found KIND, ..." */
    EXPECT(message);
    message += 2;
    if (strncmp(message, "found ", 6) == 0) message += 6;
    if (strncmp(message, word, strlen(word)) != 0)
        FAIL("%s: refused with \"%s\", which does not name %s", from, text, word);
}

TEST(R041_the_test_suite_of_json_schema_holds)
{
    json_doc *doc;
    error e;
    counts n = { 0 };
    EXPECT_OK(
        json_parse_file(&doc, TEST_ROOT "/tests/golden/json-schema/cases.json", 1 << 22, 0, &e), e);
    for (size_t i = 0; i < json_len(json_root(doc)); i++) {
        const json_node *one = json_at(json_root(doc), i);
        const char *from = json_text(json_get(one, "from")),
                   *refused = json_text(json_get(one, "refused"));
        grammar *g;
        const status s = schema_compile(&g, json_get(one, "schema"), false, &e);
        if (refused) {
            if (s == OK) FAIL("%s: compiled, want a refusal of %s", from, refused);
            check_refusal(from, refused, e.text);
            n.refused++;
            continue;
        }
        if (s) FAIL("%s: %s", from, e.text);
        check_instances(one, g, &n);
        EXPECT_OK(grammar_status(g, &e), e);
        grammar_free(g);
        n.schemas++;
    }
    json_free(doc);
    printf("%d schemas: %d valid, %d invalid instances, %d not written; %d refused\n", n.schemas,
           n.valid, n.invalid, n.not_written, n.refused);
    EXPECT(n.valid > 200 && n.invalid > 140 && n.refused > 40 && n.not_written < 40);
}
