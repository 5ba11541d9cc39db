#include "test.h"
#include "tiny_tokenizer.h"

#include <pthread.h>

#include "base/mem.h"
#include "text/added.h"
#include "text/detok.h"
#include "text/tokenizer.h"

#define SMALL TEST_ROOT "/tests/golden/tokenizer/small"

static error err;

static status parse(tokenizer **out, const tiny *parts, const char *config)
{
    buf json;
    buf_init(&json, 1 << 20);
    tiny_write(&json, parts);
    const str config_text = { config, config ? strlen(config) : 0 };
    const status s = tokenizer_parse(out, buf_view(&json), config_text, "folder", &err);
    buf_free(&json);
    return s;
}

static tokenizer *open_tiny(const tiny *parts, const char *config)
{
    tokenizer *t = NULL;
    EXPECT_OK(parse(&t, parts, config), err);
    return t;
}

/* Encodes and compares with ids written as "1 2 3". */
static void expect_ids(const tokenizer *t, str text, tokenizer_special mode, const char *want)
{
    tokenizer_ids ids = { 0 };
    buf got;
    buf_init(&got, 1 << 16);
    EXPECT_OK(tokenizer_encode(t, text, mode, &ids, &err), err);
    for (size_t i = 0; i < ids.len; i++) buf_printf(&got, "%s%d", i ? " " : "", ids.ptr[i]);
    EXPECT_STR(buf_view(&got).ptr, want);
    buf_free(&got);
    tokenizer_ids_free(&ids);
}

/* The file is refused with this message. */
static void refuse(tiny parts, const char *config, status want, const char *message)
{
    tokenizer *t = NULL;
    const status s = parse(&t, &parts, config);
    EXPECT(t == NULL);
    if (s != want) FAIL("want %s, got %s (%s)", message, error_name(s), s ? err.text : "");
    EXPECT_STR(err.text, message);
    EXPECT(strchr(err.text, '\n') == NULL);
}

TEST(tiny_encodes)
{
    tokenizer *t = open_tiny(&(tiny){ 0 }, NULL);
    EXPECT_INT(tokenizer_vocab_size(t), 259);
    expect_ids(t, STR(""), TOKENIZER_ALL, "");
    expect_ids(t, STR("abc"), TOKENIZER_ALL, "257"); /* bc first, then a+bc */
    expect_ids(t, STR("abab"), TOKENIZER_ALL, "256 256");
    expect_ids(t, STR("ab c"), TOKENIZER_ALL, "256 32 99"); /* no merge across the split */
    /* what the split leaves out is a piece */
    expect_ids(t, STR("1ab2"), TOKENIZER_ALL, "49 256 50");
    expect_ids(t, STR("\xc3\xa9"), TOKENIZER_ALL, "195 169");
    expect_ids(t, STR("e\xcc\x81"), TOKENIZER_ALL, "195 169");
    tokenizer_close(t);
}

TEST(no_normalizer)
{
    tokenizer *t = open_tiny(&(tiny){ .normalizer = "null" }, NULL);
    expect_ids(t, STR("e\xcc\x81"), TOKENIZER_ALL, "101 204 129");
    tokenizer_close(t);
}

TEST(byte_level_alone)
{
    tokenizer *own =
        open_tiny(&(tiny){ .pre_tokenizer = "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}",
                           .more = "\"\xc4\xa0"
                                   "a\":300,\"aa\":301,\"  \":400,",
                           .added = "[{\"id\":400,\"content\":\"  \"}]",
                           .merges = "[[\"\xc4\xa0\",\"a\"],\"a a\"]" },
                  NULL);
    expect_ids(own, STR("a a aa"), TOKENIZER_ALL, "97 300 300 97");
    expect_ids(own, STR("aa  "), TOKENIZER_ALL, "301 400");
    tokenizer_close(own);
    tokenizer *whole = open_tiny(&(tiny){ .pre_tokenizer = TINY_BYTE_LEVEL }, NULL);
    expect_ids(whole, STR("ab abc"), TOKENIZER_ALL, "256 32 257");
    tokenizer_close(whole);
}

TEST(ignore_merges)
{
    const char *merges = "[[\"b\",\"c\"]]"; /* abc is not reached */
    tokenizer *t = open_tiny(&(tiny){ .merges = merges }, NULL);
    expect_ids(t, STR("abc"), TOKENIZER_ALL, "97 258");
    tokenizer_close(t);
    t = open_tiny(&(tiny){ .merges = merges, .model = "\"ignore_merges\":true," }, NULL);
    expect_ids(t, STR("abc"), TOKENIZER_ALL, "257");
    expect_ids(t, STR("abca"), TOKENIZER_ALL, "97 258 97");
    tokenizer_close(t);
}

TEST(questions)
{
    tokenizer *t =
        open_tiny(&(tiny){ .added = "[{\"id\":300,\"content\":\"<x>\",\"special\":true}]" },
                  "{\"added_tokens_decoder\":{\"299\":{\"content\":\"<y>\"}}}");
    EXPECT_INT(tokenizer_vocab_size(t), 301);
    EXPECT_INT(tokenizer_id(t, STR("<x>")), 300);
    EXPECT_INT(tokenizer_id(t, STR("<y>")), 299);
    EXPECT_INT(tokenizer_id(t, STR("abc")), 257);
    EXPECT_INT(tokenizer_id(t, STR("abcd")), -1);
    EXPECT(str_eq(tokenizer_bytes(t, 300), STR("<x>")));
    EXPECT(str_eq(tokenizer_bytes(t, 10), STR("\n")));
    const int32_t none[] = { -1, INT32_MIN, 298, 301, INT32_MAX };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        EXPECT_INT(tokenizer_bytes(t, none[i]).len, 0);
        EXPECT(!tokenizer_is_special(t, none[i]));
    }
    EXPECT(tokenizer_is_special(t, 300));
    EXPECT(!tokenizer_is_special(t, 299));
    EXPECT_INT(tokenizer_added_count(t), 2);
    EXPECT_INT(tokenizer_added_id(t, 0), 299);
    tokenizer_close(t);
}

TEST(added_tokens_are_normalized_unless_special)
{
    added a;
    json_doc *doc;
    added_init(&a);
    EXPECT_OK(json_parse(&doc,
                         STR("[{\"id\":1,\"content\":\"<x>\",\"special\":true},"
                             "{\"id\":0,\"content\":\"<y>\"}]"),
                         0, "list", &err),
              err);
    EXPECT_OK(added_read_array(&a, json_root(doc), &err), err);
    EXPECT_OK(added_finish(&a, true, &err), err);
    EXPECT(added_by_id(&a, 0)->normalized && !added_by_id(&a, 1)->normalized);
    json_free(doc);
    added_free(&a);
}

TEST(longest_added_token_wins)
{
    tokenizer *t = open_tiny(
        &(tiny){ .added = "[{\"id\":300,\"content\":\"<x\"},{\"id\":301,\"content\":\"<x>y\"},"
                          "{\"id\":302,\"content\":\"x>\"}]" },
        NULL);
    expect_ids(t, STR("<x>y<x><"), TOKENIZER_ALL, "301 300 62 60");
    expect_ids(t, STR("-x>"), TOKENIZER_ALL, "45 302");
    tokenizer_close(t);
}

TEST(a_single_word_is_no_part_of_one)
{
    tokenizer *t = open_tiny(
        &(tiny){ .added = "[{\"id\":300,\"content\":\"<w>\",\"single_word\":true}]" }, NULL);
    expect_ids(t, STR("<w>"), TOKENIZER_ALL, "300");
    expect_ids(t, STR("-<w>-"), TOKENIZER_ALL, "45 300 45");
    expect_ids(t, STR("b<w>"), TOKENIZER_ALL, "98 60 119 62");
    expect_ids(t, STR("<w>b"), TOKENIZER_ALL, "60 119 62 98");
    tokenizer_close(t);
}

/* The reference library finds tokens within white space that another swallowed (checked with
 * it). */
TEST(tokens_of_white_space)
{
    tokenizer *t =
        open_tiny(&(tiny){ .added = "[{\"id\":300,\"content\":\"<r>\",\"rstrip\":true},"
                                    "{\"id\":301,\"content\":\" \"},"
                                    "{\"id\":302,\"content\":\"<l>\",\"lstrip\":true}]" },
                  NULL);
    expect_ids(t, STR("<r>  a b"), TOKENIZER_ALL, "300 301 301 97 301 98");
    expect_ids(t, STR("<r>  <l>"), TOKENIZER_ALL, "300 301 301 302");
    expect_ids(t, STR("<r> \ta"), TOKENIZER_ALL, "300 301 9 97");
    tokenizer_close(t);
    t = open_tiny(
        &(tiny){ .added = "[{\"id\":300,\"content\":\"<r>\",\"rstrip\":true},"
                          "{\"id\":301,\"content\":\"\\t\",\"lstrip\":true,\"rstrip\":true}]" },
        NULL);
    expect_ids(t, STR("<r>\t\ta"), TOKENIZER_ALL, "300 97");
    expect_ids(t, STR("b \t \t<r> \t a"), TOKENIZER_ALL, "98 301 300 97");
    tokenizer_close(t);
}

TEST(text_that_is_not_utf8)
{
    tokenizer *t = open_tiny(&(tiny){ 0 }, NULL);
    tokenizer_ids ids = { 0 };
    EXPECT_OK(tokenizer_encode(t, STR("ab"), TOKENIZER_ALL, &ids, &err), err);
    EXPECT_INT(tokenizer_encode(t, STR("ab\xff"), TOKENIZER_ALL, &ids, &err), E_ARG);
    EXPECT_STR(err.text, "text: byte 2: found 0xff, want UTF-8");
    EXPECT_INT(tokenizer_encode(t, STR("\xe4\xb8"), TOKENIZER_ALL, &ids, &err), E_ARG);
    EXPECT_STR(err.text, "text: byte 0: found 0xe4, want UTF-8");
    EXPECT_INT(ids.len, 1);
    tokenizer_ids_free(&ids);
    tokenizer_close(t);
}

static tokenizer *open_small(void)
{
    tokenizer *t = NULL;
    EXPECT_OK(tokenizer_open(&t, SMALL, &err), err);
    return t;
}

TEST(R003_backslash_n_is_two_characters)
{
    tokenizer *t = open_small();
    expect_ids(t, STR("abc\n"), TOKENIZER_ALL, "389 66 198");
    expect_ids(t, STR("a\\nb\\tc\\\\d"), TOKENIZER_ALL, "64 387 65 774 66 771 67");
    tokenizer_close(t);
}

TEST(R004_text_beside_added_tokens)
{
    tokenizer *t = open_small();
    expect_ids(t, STR("<|im_start|>G"), TOKENIZER_ALL, "988 38");
    expect_ids(t, STR("<|im_end|>\n x"), TOKENIZER_ALL, "989 198 338");
    expect_ids(t, STR(" <|im_start|> user"), TOKENIZER_ALL, "220 988 220 410 261");
    expect_ids(t, STR("<|im_start|>G"), TOKENIZER_NONE, "27 91 72 76 62 288 790 83 91 29 38");
    tokenizer_close(t);
}

#define FILE_NAME "folder/tokenizer.json: "

TEST(refused_parts)
{
    const status no = E_UNSUPPORTED;
    refuse((tiny){ .normalizer = "{\"type\":\"NFKC\"}" }, NULL, no,
           FILE_NAME "normalizer: found NFKC, want NFC or null");
    refuse((tiny){ .normalizer = "5" }, NULL, no,
           FILE_NAME "normalizer: found integer, want NFC or null");
    refuse((tiny){ .pre_tokenizer = "null" }, NULL, no,
           FILE_NAME "pre_tokenizer: found null, want Sequence or ByteLevel");
    refuse((tiny){ .pre_tokenizer = "{\"type\":\"Metaspace\"}" }, NULL, no,
           FILE_NAME "pre_tokenizer: found Metaspace, want Sequence or ByteLevel");
    refuse((tiny){ .pre_tokenizer = "{\"type\":\"ByteLevel\",\"add_prefix_space\":true}" }, NULL,
           no, FILE_NAME "pre_tokenizer.add_prefix_space: found true, want false");
    refuse((tiny){ .pre_tokenizer = "{\"type\":\"Sequence\",\"pretokenizers\":[]}" }, NULL, no,
           FILE_NAME "pre_tokenizer.pretokenizers: found 0, want Split and ByteLevel");
    refuse((tiny){ .pre_tokenizer = TINY_SEQUENCE("{\"type\":\"Digits\"}") }, NULL, no,
           FILE_NAME "pre_tokenizer.pretokenizers[0]: found Digits, want Split");
    refuse(
        (tiny){ .pre_tokenizer = TINY_SEQUENCE("{\"type\":\"Split\",\"behavior\":\"Removed\"}") },
        NULL, no,
        FILE_NAME "pre_tokenizer.pretokenizers[0].behavior: found Removed, want Isolated");
    refuse((tiny){ .pre_tokenizer = TINY_SEQUENCE(
                       "{\"type\":\"Split\",\"behavior\":\"Isolated\",\"invert\":true}") },
           NULL, no, FILE_NAME "pre_tokenizer.pretokenizers[0].invert: found true, want false");
    refuse(
        (tiny){
            .pre_tokenizer = TINY_SEQUENCE(
                "{\"type\":\"Split\",\"behavior\":\"Isolated\",\"pattern\":{\"String\":\" \"}}") },
        NULL, no, FILE_NAME "pre_tokenizer.pretokenizers[0].pattern: found no Regex, want one");
    refuse(
        (tiny){ .pre_tokenizer = TINY_SEQUENCE(TINY_SPLIT("[a&&b]")) }, NULL, no,
        FILE_NAME
        "pre_tokenizer: split expression, byte 2: found \"&&\", want no intersection of classes");
    refuse((tiny){ .decoder = "null" }, NULL, no, FILE_NAME "decoder: found null, want ByteLevel");
    refuse((tiny){ .post_processor = "{\"type\":\"TemplateProcessing\"}" }, NULL, no,
           FILE_NAME "post_processor: found TemplateProcessing, want ByteLevel or null");
    refuse((tiny){ .model = "\"dropout\":0.1," }, NULL, no,
           FILE_NAME "model.dropout: found a value, want null");
    refuse((tiny){ .model = "\"end_of_word_suffix\":\"</w>\"," }, NULL, no,
           FILE_NAME "model.end_of_word_suffix: found </w>, want null or \"\"");
    refuse((tiny){ .model = "\"ignore_merges\":1," }, NULL, E_FORMAT,
           FILE_NAME "model.ignore_merges: found integer, want a boolean");
}

TEST(damaged_vocabulary)
{
    const status bad = E_FORMAT;
    refuse((tiny){ .vocab = "[]" }, NULL, bad,
           FILE_NAME "model.vocab: found array, want an object");
    refuse((tiny){ .vocab = "{}" }, NULL, bad,
           FILE_NAME "model.vocab: found no entry for the byte 0x00, want one for each byte");
    refuse((tiny){ .more = "\"xy\":-1," }, NULL, bad,
           FILE_NAME "model.vocab[\"xy\"]: found id -1, want 0 to 4194303");
    refuse((tiny){ .more = "\"xy\":4194304," }, NULL, bad,
           FILE_NAME "model.vocab[\"xy\"]: found id 4194304, want 0 to 4194303");
    refuse((tiny){ .more = "\"xy\":1.5," }, NULL, bad,
           FILE_NAME "model.vocab[\"xy\"]: found real, want an integer");
    refuse((tiny){ .more = "\"xy\":300,\"xz\":300," }, NULL, bad,
           FILE_NAME "model.vocab[\"xz\"]: found id 300, which another entry has");
    refuse((tiny){ .more = "\"\":300," }, NULL, bad,
           FILE_NAME "model.vocab[\"\"]: found 0 bytes, want 1 to 65536");
    refuse(
        (tiny){ .more = "\"\xe2\x96\x81x\":300," }, NULL, E_UNSUPPORTED,
        FILE_NAME
        "model.vocab[\"\xe2\x96\x81x\"]: found U+2581, want characters of the byte alphabet only");
}

TEST(damaged_merges)
{
    const status bad = E_FORMAT;
    refuse((tiny){ .merges = "{}" }, NULL, bad,
           FILE_NAME "model.merges: found object, want an array");
    refuse((tiny){ .merges = "[5]" }, NULL, bad,
           FILE_NAME "model.merges[0]: found integer, want a pair of texts");
    refuse((tiny){ .merges = "[[\"a\"]]" }, NULL, bad,
           FILE_NAME "model.merges[0]: found array, want a pair of texts");
    refuse((tiny){ .merges = "[\"a b\",\"ab\"]" }, NULL, bad,
           FILE_NAME "model.merges[1]: found \"ab\", want two texts with one space between");
    refuse((tiny){ .merges = "[\"a b c\"]" }, NULL, bad,
           FILE_NAME "model.merges[0]: found \"a b c\", want two texts with one space between");
    refuse((tiny){ .merges = "[\"xx y\"]" }, NULL, bad,
           FILE_NAME "model.merges[0]: found a left side that is no entry of the vocabulary");
    refuse((tiny){ .merges = "[\"x yy\"]" }, NULL, bad,
           FILE_NAME "model.merges[0]: found a right side that is no entry of the vocabulary");
    refuse((tiny){ .merges = "[\"x y\"]" }, NULL, bad,
           FILE_NAME "model.merges[0]: found a result that is no entry of the vocabulary");
    refuse((tiny){ .merges = "[\"a b\",\"b c\",\"a b\"]" }, NULL, bad,
           FILE_NAME "model.merges[2]: found the pair of merge 0 again, want it once");
}

TEST(damaged_added_tokens)
{
    const status bad = E_FORMAT;
    refuse((tiny){ .added = "{}" }, NULL, bad,
           FILE_NAME "added_tokens: found object, want an array");
    refuse((tiny){ .added = "[5]" }, NULL, bad,
           FILE_NAME "added_tokens[0]: found integer, want an object");
    refuse((tiny){ .added = "[{\"id\":300}]" }, NULL, bad,
           FILE_NAME "added_tokens[0]: content: found nothing, want a string");
    refuse((tiny){ .added = "[{\"id\":300,\"content\":\"\"}]" }, NULL, bad,
           FILE_NAME "added_tokens[0]: content: found 0 bytes, want 1 to 65536");
    refuse((tiny){ .added = "[{\"content\":\"<x>\"}]" }, NULL, bad,
           FILE_NAME "added_tokens[0]: id: found nothing, want an integer");
    refuse((tiny){ .added = "[{\"id\":-1,\"content\":\"<x>\"}]" }, NULL, bad,
           FILE_NAME "added_tokens[0]: found id -1, want 0 to 4194303");
    refuse((tiny){ .added = "[{\"id\":300,\"content\":\"<x>\",\"special\":1}]" }, NULL, bad,
           FILE_NAME "added_tokens[0]: special: found integer, want a boolean");
    refuse((tiny){ .added = "[{\"id\":300,\"content\":\"<x>\"},{\"id\":300,\"content\":\"<y>\"}]" },
           NULL, bad,
           FILE_NAME "added tokens: found id 300 as \"<x>\" and as \"<y>\", want one text");
    refuse((tiny){ .added = "[{\"id\":300,\"content\":\"<x>\"},{\"id\":301,\"content\":\"<x>\"}]" },
           NULL, bad,
           FILE_NAME "added_tokens[1]: found \"<x>\" as id 300 and as id 301, want one id");
    refuse((tiny){ .added = "[{\"id\":97,\"content\":\"<x>\"}]" }, NULL, bad,
           FILE_NAME "added token \"<x>\": found id 97, which another entry has");
    refuse((tiny){ .added = "[{\"id\":300,\"content\":\"abc\"}]" }, NULL, bad,
           FILE_NAME "added token \"abc\": found id 300, want 257 as in model.vocab");
    refuse((tiny){ .added = "[{\"id\":300,\"content\":\"\xc3\xa9\",\"normalized\":true},"
                            "{\"id\":301,\"content\":\"e\xcc\x81\",\"normalized\":true}]" },
           NULL, bad, FILE_NAME "added tokens: found \"\xc3\xa9\" twice once normalized");
}

TEST(files_that_contradict_each_other)
{
    const tiny one = { .added = "[{\"id\":300,\"content\":\"<x>\",\"special\":true}]" };
#define WITH FILE_NAME "with tokenizer_config.json: added_tokens_decoder"
    refuse(one, "{\"added_tokens_decoder\":{\"300\":{\"content\":\"<x>\"}}}", E_FORMAT,
           WITH ".300: found two values of special for id 300, want one");
    static const char *const flags[] = { "lstrip", "rstrip", "single_word", "normalized" };
    for (int i = 0; i < 4; i++) {
        char config[160], message[160];
        snprintf(config, sizeof config,
                 "{\"added_tokens_decoder\":{\"300\":{\"content\":\"<x>\",\"special\":true,"
                 "\"%s\":true}}}",
                 flags[i]);
        snprintf(message, sizeof message, WITH ".300: found two values of %s for id 300, want one",
                 flags[i]);
        refuse(one, config, E_FORMAT, message);
    }
    refuse(one, "{\"added_tokens_decoder\":{\"301\":{\"content\":\"<x>\",\"special\":true}}}",
           E_FORMAT, WITH ".301: found \"<x>\" as id 300 and as id 301, want one id");
    refuse(one, "{\"added_tokens_decoder\":{\"300\":{\"content\":\"<y>\",\"special\":true}}}",
           E_FORMAT,
           FILE_NAME "added tokens: found id 300 as \"<x>\" and as \"<y>\", want one text");
    refuse(one, "{\"added_tokens_decoder\":{\"x\":{\"content\":\"<y>\"}}}", E_FORMAT,
           WITH ".x: found this key, want an id");
    refuse(one, "{\"added_tokens_decoder\":{\"99999999999999999999\":{\"content\":\"<y>\"}}}",
           E_FORMAT, WITH ".99999999999999999999: found this key, want an id");
    refuse(one, "{\"added_tokens_decoder\":[]}", E_FORMAT, WITH ": found array, want an object");
    refuse(one, "[]", E_FORMAT, "folder/tokenizer_config.json: found array, want an object");
}

TEST(files_that_are_no_json)
{
    tokenizer *t = NULL;
    EXPECT_INT(tokenizer_parse(&t, STR(""), (str){ 0 }, "folder", &err), E_FORMAT);
    EXPECT(str_starts(str_from(err.text), STR("folder/tokenizer.json: ")));
    EXPECT_INT(tokenizer_parse(&t, STR("{\"model\":"), (str){ 0 }, "folder", &err), E_FORMAT);
    EXPECT_INT(tokenizer_parse(&t, STR("{\"model\":1,\"model\":1}"), (str){ 0 }, "folder", &err),
               E_FORMAT);
    EXPECT_INT(tokenizer_parse(&t, STR("[]"), (str){ 0 }, "folder", &err), E_FORMAT);
    EXPECT_STR(err.text, "folder/tokenizer.json: found array, want an object");
    EXPECT_INT(tokenizer_open(&t, TEST_ROOT "/tests", &err), E_IO);
    EXPECT(str_find(str_from(err.text), STR("/tests/tokenizer.json")) != STR_NONE);
    EXPECT(t == NULL);
}

/* Every allocation of opening and encoding fails once: an error, nothing leaked, nothing half
 * done. */
TEST(memory_runs_out)
{
    const tiny parts = { .added = "[{\"id\":300,\"content\":\"<x>\"},{\"id\":301,\"content\":"
                                  "\"\xc3\xa9+\",\"normalized\":true}]" };
    const str text = STR("<x>abc e\xcc\x81+ abab");
    buf json;
    buf_init(&json, 1 << 20);
    tiny_write(&json, &parts);
    const int64_t live = mem_live();
    status s = E_NOMEM;
    for (int64_t n = 1; s != OK; n++) {
        tokenizer *t = NULL;
        tokenizer_ids ids = { 0 };
        mem_fail_after(n);
        s = tokenizer_parse(&t, buf_view(&json), STR("{\"added_tokens_decoder\":{}}"), "folder",
                            &err);
        if (!s) s = tokenizer_encode(t, text, TOKENIZER_ALL, &ids, &err);
        mem_fail_after(0);
        if (s != OK && s != E_NOMEM) FAIL("allocation %d: %s", (int)n, err.text);
        if (s != OK) EXPECT_INT(ids.len, 0);
        tokenizer_ids_free(&ids);
        tokenizer_close(t);
        EXPECT_INT(mem_live(), live);
        EXPECT(n < 100000);
    }
    buf_free(&json);
}

TEST(opening_a_folder_leaks_nothing)
{
    const int64_t live = mem_live();
    tokenizer *t = NULL;
    EXPECT_OK(tokenizer_open(&t, SMALL, &err), err);
    tokenizer_close(t);
    EXPECT_INT(mem_live(), live);
}

typedef struct job {
    const tokenizer *t;
    bool same;
} job;

static void *encode_often(void *arg)
{
    job *j = arg;
    /* tests/golden/tokenizer/small/decode.jsonl */
    static const int32_t want[] = { 628, 11, 323, 579, 0 };
    j->same = true;
    for (int i = 0; i < 500; i++) {
        tokenizer_ids ids = { 0 };
        error e;
        const status s = tokenizer_encode(j->t, STR("Hello, world!"), TOKENIZER_ALL, &ids, &e);
        j->same = j->same && s == OK && ids.len == 5 && memcmp(ids.ptr, want, sizeof want) == 0;
        tokenizer_ids_free(&ids);
    }
    return NULL;
}

TEST(many_threads_encode_at_once)
{
    enum { THREADS = 4 };
    tokenizer *t = NULL;
    pthread_t threads[THREADS];
    job jobs[THREADS];
    EXPECT_OK(tokenizer_open(&t, SMALL, &err), err);
    for (int i = 0; i < THREADS; i++) {
        jobs[i].t = t;
        EXPECT_INT(pthread_create(&threads[i], NULL, encode_often, &jobs[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        EXPECT(jobs[i].same);
    }
    tokenizer_close(t);
}
