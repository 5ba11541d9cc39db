/* Templates against the rendering of the reference library: golden/template/README.md. */
#include "base/digest.h"
#include "base/file.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "test.h"
#include "text/template.h"

#include "golden_rows.h"

static const int64_t NOW = 1796042096; /* 2026-11-30 12:34:56 */

typedef struct outcome {
    template_fault fault;
    buf text;
    error e;
} outcome;

static void render(outcome *o, const template *t, const json_node *variables)
{
    buf_init(&o->text, TEMPLATE_MAX_OUTPUT);
    template_render(t, variables, NOW, &o->text, &o->fault, &o->e);
}

static void compile_and_render(outcome *o, str source, const json_node *variables)
{
    template *t;
    *o = (outcome){ .fault = TEMPLATE_SYNTAX };
    if (template_compile(&t, source, "template", &o->e)) return;
    render(o, t, variables);
    template_free(t);
}

/* The outcome agrees with the row; prints where it does not. */
static bool agrees(const outcome *o, const json_node *row, bool exact_kind)
{
    str want;
    const json_node *failure = json_get(row, "error");
    if (!json_str(json_get(row, "expected"), &want)) {
        const char *kind = json_text(json_get(failure, "kind"));
        if (o->fault == TEMPLATE_OK) return false;
        if (exact_kind && strcmp(kind, template_fault_name(o->fault)) != 0) return false;
        if (strcmp(kind, "raise") != 0) return true;
        return o->fault == TEMPLATE_RAISE &&
               strcmp(o->e.text, json_text(json_get(failure, "message"))) == 0;
    }
    return o->fault == TEMPLATE_OK && str_eq(buf_view(&o->text), want);
}

static void show(const outcome *o, const json_node *row, const char *what)
{
    str want = STR("(a failure)"), name = { 0 };
    json_str(json_get(row, "expected"), &want);
    if (!json_str(json_get(row, "name"), &name)) json_str(json_get(row, "template"), &name);
    fprintf(stderr, "%s: %.*s\n  got  [%s] %.*s %s\n  want %.*s\n", what, STR_ARG(name),
            template_fault_name(o->fault), STR_ARG(buf_view(&o->text)), o->e.text, STR_ARG(want));
}

typedef struct tally {
    int rows, right, refused;
} tally;

static void check_unit(void *arg, const json_node *row)
{
    tally *n = arg;
    str source;
    outcome o;
    EXPECT(json_str(json_get(row, "template"), &source));
    compile_and_render(&o, source, json_get(row, "context"));
    n->rows++;
    if (agrees(&o, row, true)) {
        n->right++;
    } else if (o.fault == TEMPLATE_SYNTAX || o.fault == TEMPLATE_RUNTIME) {
        n->refused++; /* beyond the subset, and said so */
        if (getenv("INGOT_TEST_VERBOSE")) show(&o, row, "refused");
    } else {
        show(&o, row, "differs");
        FAIL("a unit case renders differently");
    }
    buf_free(&o.text);
}

TEST(units_equal_the_reference_or_are_refused)
{
    tally n = { 0 };
    golden_rows_each("template/units.jsonl", check_unit, &n);
    printf("%d cases, %d right, %d refused\n", n.rows, n.right, n.refused);
    EXPECT_INT(n.rows, 579);
    EXPECT(n.refused <= 8);
}

/* The template of a row, kept while consecutive rows name the same one. */
typedef struct source {
    char name[64];
    template *compiled; /* NULL: not here */
    tally n;
    int skipped;
} source;

/* Templates written for these tests lie here; others in the folder of reference tokenizers, and
 * count only when they are the ones that the rows were made with. */
static bool read_source(const char *name, const char *sha, buf *out)
{
    char path[1024], hex[65];
    error e;
    const char *cache = getenv("INGOT_TEST_TOKENIZERS");
    snprintf(path, sizeof path, "%s/tests/golden/template/templates/%s.jinja", TEST_ROOT, name);
    if (!file_exists(path))
        snprintf(path, sizeof path, "%s/templates/%s.jinja", cache ? cache : "", name);
    if (file_read(out, path, &e)) return false;
    EXPECT_OK(digest_sha256(out->ptr, out->len, hex, &e), e);
    return strcmp(hex, sha) == 0;
}

static void load_source(source *s, const char *name)
{
    char path[1024];
    error e;
    json_doc *hashes;
    buf text;
    template_free(s->compiled);
    s->compiled = NULL;
    snprintf(s->name, sizeof s->name, "%s", name);
    snprintf(path, sizeof path, "%s/tests/golden/template/templates.json", TEST_ROOT);
    EXPECT_OK(json_parse_file(&hashes, path, 1 << 20, 0, &e), e);
    buf_init(&text, TEMPLATE_MAX_SOURCE);
    if (read_source(name, json_text(json_get(json_root(hashes), name)), &text))
        EXPECT_OK(template_compile(&s->compiled, buf_view(&text), name, &e), e);
    buf_free(&text);
    json_free(hashes);
}

/* Rows leave out the special tokens that the template saw. */
static json_doc *with_tokens(const json_node *row)
{
    buf b;
    jsonw w;
    json_doc *doc;
    error e;
    buf_init(&b, 1 << 24);
    jsonw_init(&w, &b);
    jsonw_object(&w);
    jsonw_member_text(&w, "eos_token", "<|im_end|>");
    jsonw_member_text(&w, "pad_token", "<|endoftext|>");
    str key;
    const json_node *value;
    for (void *it = NULL; json_each(json_get(row, "variables"), &it, &key, &value);) {
        jsonw_key_str(&w, key);
        jsonw_node(&w, value);
    }
    jsonw_end_object(&w);
    EXPECT_OK(json_parse(&doc, buf_view(&b), JSON_KEEP_BIGINT, "row", &e), e);
    buf_free(&b);
    return doc;
}

static void check_render(void *arg, const json_node *row)
{
    source *s = arg;
    outcome o = { 0 };
    const char *name = json_text(json_get(row, "template"));
    if (strcmp(name, s->name) != 0) load_source(s, name);
    if (!s->compiled) {
        s->skipped++;
        return;
    }
    json_doc *variables = with_tokens(row);
    render(&o, s->compiled, json_root(variables));
    if (!agrees(&o, row, true)) {
        show(&o, row, s->name);
        FAIL("a conversation renders differently");
    }
    s->n.rows++;
    buf_free(&o.text);
    json_free(variables);
}

TEST(conversations_equal_the_reference)
{
    source s = { .name = "" };
    golden_rows_each("template/renders.jsonl", check_render, &s);
    template_free(s.compiled);
    printf("%d conversations, %d without their template\n", s.n.rows, s.skipped);
    EXPECT(s.n.rows >= 3 * 102);
    EXPECT_INT(s.n.rows + s.skipped, 7 * 102);
}

TEST(conversations_of_the_real_templates)
{
    if (!getenv("INGOT_TEST_TOKENIZERS")) skip("INGOT_TEST_TOKENIZERS is not set");
    source s = { .name = "" };
    golden_rows_each("template/renders.jsonl", check_render, &s);
    template_free(s.compiled);
    EXPECT(s.n.rows >= 6 * 102);
}
