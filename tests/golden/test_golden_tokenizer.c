/* Tokenizer cases made with another implementation (tests/golden/tokenizer/README.md).
 *
 * Mutations these caught: whole-piece look-up before merging; ties broken rightmost; stale merges
 * taken; NFC left out; marks left unordered; \s and \p{L} of the engine's own tables; the mode
 * keep_shown recognising everything; one U+FFFD per byte; the tail not flushed. */
#include "test.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "text/detok.h"
#include "text/regex.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

#define GOLDEN TEST_ROOT "/tests/golden/tokenizer/"

static error err;

static void read_file(buf *out, const char *path)
{
    buf_init(out, (size_t)64 << 20);
    EXPECT_OK(file_read(out, path, &err), err);
}

/* Calls check for each line of a .jsonl file; returns how many there were. */
static int each_row(const char *path, void (*check)(const tokenizer *t, const json_node *row),
                    const tokenizer *t)
{
    buf text;
    read_file(&text, path);
    str rest = buf_view(&text);
    int rows = 0;
    while (rest.len) {
        size_t end = str_find(rest, STR("\n"));
        if (end == STR_NONE) end = rest.len;
        json_doc *doc = NULL;
        EXPECT_OK(json_parse(&doc, str_sub(rest, 0, end), 0, path, &err), err);
        check(t, json_root(doc));
        json_free(doc);
        rest = str_sub(rest, end < rest.len ? end + 1 : end, rest.len);
        rows++;
    }
    buf_free(&text);
    return rows;
}

static tokenizer_special mode_of(const char *name)
{
    if (strcmp(name, "all") == 0) return TOKENIZER_ALL;
    if (strcmp(name, "none") == 0) return TOKENIZER_NONE;
    EXPECT_STR(name, "keep_shown");
    return TOKENIZER_SHOWN;
}

static void read_ids(tokenizer_ids *out, const json_node *list)
{
    *out = (tokenizer_ids){ .ptr = malloc((json_len(list) + 1) * sizeof(int32_t)),
                            .len = json_len(list) };
    for (size_t i = 0; i < out->len; i++) {
        int64_t id = 0;
        EXPECT(json_i64(json_at(list, i), &id));
        out->ptr[i] = (int32_t)id;
    }
}

static void check_encoding(const tokenizer *t, const json_node *row)
{
    str text = { 0 };
    tokenizer_ids want;
    tokenizer_ids got = { 0 };
    EXPECT(json_str(json_get(row, "text"), &text));
    read_ids(&want, json_get(row, "ids"));
    EXPECT_OK(tokenizer_encode(t, text, mode_of(json_text(json_get(row, "mode"))), &got, &err),
              err);
    for (size_t i = 0; i < got.len && i < want.len; i++)
        if (got.ptr[i] != want.ptr[i])
            FAIL("%s (%s): id %zu is %d, want %d", json_text(json_get(row, "note")),
                 json_text(json_get(row, "mode")), i, got.ptr[i], want.ptr[i]);
    if (got.len != want.len)
        FAIL("%s: %zu ids, want %zu", json_text(json_get(row, "note")), got.len, want.len);
    free(want.ptr);
    tokenizer_ids_free(&got);
}

static void expect_text(const json_node *row, const char *what, str got, const json_node *want)
{
    str w = { 0 };
    EXPECT(json_str(want, &w));
    if (!str_eq(got, w))
        FAIL("%s: %s: got \"%.*s\", want \"%.*s\"", json_text(json_get(row, "note")), what,
             STR_ARG(got), STR_ARG(w));
}

static void check_stream(const tokenizer *t, const json_node *row, const tokenizer_ids *ids,
                         bool hide)
{
    const json_node *want = json_get(row, hide ? "hidden" : "shown");
    buf delta;
    buf whole;
    buf_init(&delta, 1 << 20);
    buf_init(&whole, 1 << 20);
    detok d;
    detok_init(&d, t, hide);
    for (size_t i = 0; i < ids->len; i++) {
        buf_clear(&delta);
        detok_put(&d, ids->ptr[i], &delta);
        expect_text(row, "delta", buf_view(&delta), json_at(json_get(want, "deltas"), i));
        buf_add(&whole, buf_view(&delta));
    }
    buf_clear(&delta);
    detok_finish(&d, &delta);
    expect_text(row, "tail", buf_view(&delta), json_get(want, "tail"));
    buf_add(&whole, buf_view(&delta));
    expect_text(row, "text", buf_view(&whole), json_get(want, "text"));
    buf_clear(&whole);
    detok_all(t, ids->ptr, ids->len, hide, &whole);
    expect_text(row, "whole text", buf_view(&whole), json_get(want, "text"));
    buf_free(&delta);
    buf_free(&whole);
}

static void check_decoding(const tokenizer *t, const json_node *row)
{
    tokenizer_ids ids;
    read_ids(&ids, json_get(row, "ids"));
    for (size_t i = 0; i < ids.len; i++) {
        char hex[2 * 256 + 1] = "";
        const str bytes = tokenizer_bytes(t, ids.ptr[i]);
        for (size_t k = 0; k < bytes.len && k < 256; k++)
            snprintf(hex + 2 * k, 3, "%02x", (unsigned)(uint8_t)bytes.ptr[k]);
        EXPECT_STR(hex, json_text(json_at(json_get(row, "bytes"), i)));
    }
    check_stream(t, row, &ids, false);
    check_stream(t, row, &ids, true);
    free(ids.ptr);
}

static tokenizer *open_folder(const char *folder)
{
    tokenizer *t = NULL;
    EXPECT_OK(tokenizer_open(&t, folder, &err), err);
    return t;
}

static void run(const char *folder, const char *cases,
                void (*check)(const tokenizer *t, const json_node *row), int rows)
{
    tokenizer *t = open_folder(folder);
    EXPECT_INT(each_row(cases, check, t), rows);
    tokenizer_close(t);
}

static const char *cached(const char *name)
{
    static char path[1024];
    const char *cache = getenv("INGOT_TEST_TOKENIZERS");
    if (!cache || !*cache) skip("INGOT_TEST_TOKENIZERS is not set (tests/golden/tokenizer/cache)");
    snprintf(path, sizeof path, "%s/%s", cache, name);
    if (!file_exists(path))
        skip("the folder of INGOT_TEST_TOKENIZERS does not hold this tokenizer");
    return path;
}

TEST(small_encode)
{
    run(GOLDEN "small", GOLDEN "small/cases.jsonl", check_encoding, 558);
}

TEST(small_decode)
{
    run(GOLDEN "small", GOLDEN "small/decode.jsonl", check_decoding, 80);
}

TEST(small_flags)
{
    run(GOLDEN "small/flags", GOLDEN "small/flags/cases.jsonl", check_encoding, 86);
}

TEST(small_merges_as_strings)
{
    buf json;
    buf config;
    read_file(&json, GOLDEN "small/tokenizer-string-merges.json");
    read_file(&config, GOLDEN "small/tokenizer_config.json");
    tokenizer *t = NULL;
    EXPECT_OK(tokenizer_parse(&t, buf_view(&json), buf_view(&config), "memory", &err), err);
    EXPECT_INT(each_row(GOLDEN "small/cases.jsonl", check_encoding, t), 558);
    tokenizer_close(t);
    buf_free(&json);
    buf_free(&config);
}

TEST(qwen35_encode)
{
    run(cached("qwen35"), GOLDEN "qwen35.jsonl", check_encoding, 602);
}

TEST(qwen35_decode)
{
    run(cached("qwen35"), GOLDEN "qwen35-decode.jsonl", check_decoding, 80);
}

TEST(qwen3_encode)
{
    run(cached("qwen3"), GOLDEN "qwen3.jsonl", check_encoding, 569);
}

TEST(qwen3_decode)
{
    run(cached("qwen3"), GOLDEN "qwen3-decode.jsonl", check_decoding, 80);
}

/* Every id whose bytes are text: encoding those gives NFC text back. Returns how many come back as
 * the one id. */
static int round_trip(const tokenizer *t, int *tried)
{
    tokenizer_ids ids = { 0 };
    buf text;
    buf normal;
    buf_init(&text, 1 << 20);
    buf_init(&normal, 1 << 20);
    const int32_t first_added = tokenizer_added_id(t, 0);
    int same = 0;
    *tried = 0;
    for (int32_t id = 0; id < tokenizer_vocab_size(t); id++) {
        const str bytes = tokenizer_bytes(t, id);
        if (!str_utf8_valid(bytes)) continue;
        ++*tried;
        ids.len = 0;
        buf_clear(&text);
        buf_clear(&normal);
        EXPECT_OK(tokenizer_encode(t, bytes, TOKENIZER_ALL, &ids, &err), err);
        detok_all(t, ids.ptr, ids.len, false, &text);
        EXPECT_OK(unicode_nfc(&normal, bytes, &err), err);
        if (!str_eq(buf_view(&text), buf_view(&normal))) FAIL("id %d does not survive", id);
        const bool alone = ids.len == 1 && ids.ptr[0] == id;
        if (id >= first_added && !alone) FAIL("added token %d is not recognised", id);
        same += alone;
    }
    tokenizer_ids_free(&ids);
    buf_free(&text);
    buf_free(&normal);
    return same;
}

/* The counts are those of the reference library. */
TEST(qwen35_vocabulary)
{
    tokenizer *t = open_folder(cached("qwen35"));
    int tried = 0;
    EXPECT_INT(tokenizer_vocab_size(t), 248077);
    EXPECT_INT(tokenizer_added_count(t), 33);
    EXPECT_INT(round_trip(t, &tried), 246930);
    EXPECT_INT(tried, 247133);
    tokenizer_close(t);
}

TEST(small_vocabulary)
{
    tokenizer *t = open_folder(GOLDEN "small");
    int tried = 0;
    EXPECT_INT(tokenizer_vocab_size(t), 1020);
    EXPECT_INT(tokenizer_added_count(t), 33);
    EXPECT_INT(round_trip(t, &tried), 740);
    EXPECT_INT(tried, 742);
    tokenizer_close(t);
}

/* Which characters a one-character expression matches, against ranges (json) of another engine. */
static void check_class(const json_node *ranges, const char *pattern)
{
    regex *r = NULL;
    regex_scan *scan = NULL;
    EXPECT_OK(regex_open(&r, str_from(pattern), "class", &err), err);
    EXPECT_OK(regex_scan_open(&scan, r, &err), err);
    size_t range = 0;
    for (uint32_t cp = 0; cp < 0x110000; cp++) {
        if (cp >= 0xd800 && cp <= 0xdfff) continue;
        int64_t low = INT64_MAX;
        int64_t high = 0;
        for (; range < json_len(ranges); range++) {
            json_i64(json_at(json_at(ranges, range), 0), &low);
            json_i64(json_at(json_at(ranges, range), 1), &high);
            if (cp <= high) break;
        }
        const bool want = range < json_len(ranges) && cp >= low;
        char utf8[4];
        const str text = { utf8, str_utf8_put(cp, utf8) };
        size_t from = 0;
        size_t to = 0;
        EXPECT_OK(regex_next(scan, text, 0, &from, &to, &err), err);
        if ((to > from) != want)
            FAIL("%s: U+%04X: want %s", pattern, cp, want ? "a match" : "none");
    }
    regex_scan_close(scan);
    regex_close(r);
}

TEST(classes)
{
    json_doc *doc = NULL;
    EXPECT_OK(json_parse_file(&doc, GOLDEN "classes.json", 1 << 20, 0, &err), err);
    check_class(json_get(json_root(doc), "L"), "\\p{L}");
    check_class(json_get(json_root(doc), "M"), "[\\p{M}]");
    check_class(json_get(json_root(doc), "N"), "\\p{N}");
    check_class(json_get(json_root(doc), "space"), "\\s");
    json_free(doc);
}

TEST(folded_letters)
{
    json_doc *doc = NULL;
    EXPECT_OK(json_parse_file(&doc, GOLDEN "classes.json", 1 << 20, 0, &err), err);
    const json_node *letters = json_get(json_root(doc), "case_insensitive");
    str letter = { 0 };
    const json_node *members = NULL;
    for (void *it = NULL; json_each(letters, &it, &letter, &members);) {
        buf ranges;
        buf pattern;
        buf_init(&ranges, 1 << 10);
        buf_init(&pattern, 1 << 10);
        buf_printf(&pattern, "(?i:%.*s)", STR_ARG(letter));
        buf_char(&ranges, '[');
        for (size_t i = 0; i < json_len(members); i++) {
            int64_t cp = 0;
            EXPECT(json_i64(json_at(members, i), &cp));
            buf_printf(&ranges, "%s[%d,%d]", i ? "," : "", (int)cp, (int)cp);
        }
        buf_char(&ranges, ']');
        json_doc *one = NULL;
        EXPECT_OK(json_parse(&one, buf_view(&ranges), 0, "ranges", &err), err);
        check_class(json_root(one), pattern.ptr);
        json_free(one);
        buf_free(&ranges);
        buf_free(&pattern);
    }
    json_free(doc);
}
