/* The GGUF reader against good and damaged files; the writer against the reader. */
#include "packkit.h"
#include "pack/gguf.h"

static buf sample(const kit *k)
{
    gguf_writer *w = NULL;
    error e = { 0 };
    const int64_t shape[2] = { 3, 128 };
    EXPECT_OK(gguf_writer_new(&w, &e), e);
    gguf_writer_str(w, "general.architecture", STR("test"));
    gguf_writer_u32(w, "a.number", 7);
    gguf_writer_f32(w, "a.real", 0.5f);
    gguf_writer_bool(w, "a.flag", true);
    gguf_writer_array(w, "some.words", GGUF_STRING, 3);
    gguf_writer_put_str(w, STR("one"));
    gguf_writer_put_str(w, STR(""));
    gguf_writer_put_str(w, STR("three"));
    gguf_writer_array(w, "some.signs", GGUF_I32, 2);
    gguf_writer_put_i32(w, -1);
    gguf_writer_put_i32(w, 1);
    EXPECT_OK(gguf_writer_declare(w, "m.weight", GGUF_PQ2_0, 2, shape, NULL, &e), e);
    EXPECT_OK(gguf_writer_declare(w, "v", GGUF_F32_DATA, 1, shape, NULL, &e), e);
    EXPECT_OK(gguf_writer_begin(w, kit_path(k, "a.gguf"), &e), e);
    uint8_t block[3 * 34];
    for (size_t i = 0; i < sizeof block; i++) block[i] = (uint8_t)i;
    const float v[3] = { 1, 2, 3 };
    EXPECT_OK(gguf_writer_put(w, 1, 0, v, sizeof v, &e), e);
    EXPECT_OK(gguf_writer_put(w, 0, 0, block, sizeof block, &e), e);
    EXPECT_OK(gguf_writer_commit(w, &e), e);
    return kit_read(kit_path(k, "a.gguf"));
}

TEST(what_was_written_is_read)
{
    const kit k = kit_new(NULL);
    buf b = sample(&k);
    gguf g;
    error e = { 0 };
    EXPECT_OK(gguf_open(&g, kit_path(&k, "a.gguf"), &e), e);
    EXPECT_INT(g.n_values, 6);
    EXPECT_INT(g.n_tensors, 2);
    str s;
    int64_t n;
    double f;
    bool flag = false;
    EXPECT(gguf_str(gguf_find(&g, "general.architecture"), &s) && str_eq(s, STR("test")));
    EXPECT(gguf_i64(gguf_find(&g, "a.number"), 0, &n) && n == 7);
    EXPECT(gguf_f64(gguf_find(&g, "a.real"), 0, &f) && f == 0.5);
    EXPECT(!gguf_i64(gguf_find(&g, "a.real"), 0, &n));
    EXPECT(gguf_bool(gguf_find(&g, "a.flag"), &flag) && flag);
    EXPECT(gguf_i64(gguf_find(&g, "some.signs"), 0, &n) && n == -1);
    EXPECT(!gguf_i64(gguf_find(&g, "some.signs"), 2, &n));
    EXPECT(!gguf_i64(gguf_find(&g, "not.there"), 0, &n));
    static const char *const words[] = { "one", "", "three" };
    const uint8_t *at = NULL;
    for (int i = 0; i < 3; i++) {
        EXPECT(gguf_each_str(gguf_find(&g, "some.words"), &at, &s));
        EXPECT(str_eq(s, str_from(words[i])));
    }
    EXPECT(!gguf_each_str(gguf_find(&g, "some.words"), &at, &s));
    const gguf_tensor *t = gguf_find_tensor(&g, "m.weight");
    EXPECT(t && t->type == GGUF_PQ2_0 && t->rank == 2);
    EXPECT_INT(t->shape[0], 3);
    EXPECT_INT(t->shape[1], 128);
    EXPECT_INT(t->bytes, 102);
    EXPECT_INT(t->data[101], 101);
    t = gguf_find_tensor(&g, "v");
    float third;
    memcpy(&third, t->data + 8, 4);
    EXPECT(third == 3.0f);
    EXPECT_INT((t->data - g.bytes) % 32, 0);
    gguf_close(&g);
    EXPECT(gguf_is_file(kit_path(&k, "a.gguf")));
    buf_free(&b);
    kit_free(&k);
    EXPECT_INT(mem_live(), 0);
}

/* Every prefix of a good file is refused, and the refusal leaves nothing behind. */
TEST(every_cut_is_refused)
{
    const kit k = kit_new(NULL);
    buf b = sample(&k);
    for (size_t n = 0; n + 20 < b.len; n++) { /* the last 20 bytes are padding */
        gguf g;
        error e = { 0 };
        char *part = malloc(n + 1);
        memcpy(part, b.ptr, n);
        const int64_t live = mem_live();
        if (gguf_parse(&g, part, n, "cut.gguf", &e) == OK)
            FAIL("%zu bytes are taken for a file", n);
        EXPECT(strstr(e.text, "cut.gguf"));
        EXPECT_INT(mem_live(), live);
        free(part);
    }
    buf_free(&b);
    kit_free(&k);
}

/* Bytes of a file being put together by hand. */
static void u32(buf *b, uint32_t v)
{
    buf_put(b, &v, 4);
}
static void u64(buf *b, uint64_t v)
{
    buf_put(b, &v, 8);
}
static void text(buf *b, const char *s)
{
    u64(b, strlen(s));
    buf_text(b, s);
}
static void head(buf *b, uint32_t version, uint64_t tensors, uint64_t values)
{
    buf_clear(b);
    buf_text(b, "GGUF");
    u32(b, version);
    u64(b, tensors);
    u64(b, values);
}
static void info(buf *b, const char *name, uint64_t cols, uint64_t rows, uint32_t type, uint64_t at)
{
    text(b, name);
    u32(b, 2);
    u64(b, cols);
    u64(b, rows);
    u32(b, type);
    u64(b, at);
}
static void data(buf *b, size_t n)
{
    while (b->len % 32) buf_char(b, 0);
    for (size_t i = 0; i < n; i++) buf_char(b, 0);
}
static void refused(const buf *b, status want, const char *message)
{
    gguf g;
    error e = { 0 };
    const status s = gguf_parse(&g, b->ptr, b->len, "bad.gguf", &e);
    if (s != want || !strstr(e.text, message))
        FAIL("%d \"%s\", want \"%s\"", (int)s, e.text, message);
}

TEST(damage_is_named)
{
    buf b;
    buf_init(&b, 1 << 20);
    head(&b, 2, 0, 0);
    refused(&b, E_UNSUPPORTED, "GGUF version 2, want 3");
    head(&b, 0x03000000, 0, 0);
    refused(&b, E_UNSUPPORTED, "big-endian");
    head(&b, 3, UINT64_MAX, 0);
    refused(&b, E_LIMIT, "want at most");
    head(&b, 3, 1000, 0);
    refused(&b, E_FORMAT, "1000 tensors");
    head(&b, 3, 0, 1);
    text(&b, "k");
    u32(&b, 13);
    u64(&b, 0);
    refused(&b, E_FORMAT, "k: found value type 13");
    head(&b, 3, 0, 1);
    text(&b, "k");
    u32(&b, GGUF_ARRAY);
    u32(&b, GGUF_U64);
    u64(&b, UINT64_MAX / 4);
    refused(&b, E_FORMAT, "k at byte");
    head(&b, 3, 0, 2);
    for (int i = 0; i < 2; i++) {
        text(&b, "twice");
        u32(&b, GGUF_U32);
        u32(&b, 1);
    }
    refused(&b, E_FORMAT, "twice in the metadata");
    head(&b, 3, 0, 1);
    text(&b, "general.alignment");
    u32(&b, GGUF_U32);
    u32(&b, 20);
    refused(&b, E_FORMAT, "general.alignment: found 20");
    head(&b, 3, 1, 0);
    info(&b, "t", 128, 2, 99, 0);
    data(&b, 68);
    refused(&b, E_UNSUPPORTED, "tensor t: type 99");
    head(&b, 3, 1, 0);
    info(&b, "t", 100, 2, GGUF_PQ2_0, 0);
    data(&b, 68);
    refused(&b, E_FORMAT, "rows of whole blocks");
    head(&b, 3, 1, 0);
    info(&b, "t", UINT64_MAX / 4, 1000, 0, 0);
    data(&b, 68);
    refused(&b, E_FORMAT, "tensor t: 68 bytes up to the next one");
    head(&b, 3, 1, 0);
    info(&b, "t", 0, 2, 0, 0);
    refused(&b, E_FORMAT, "tensor t: dimension 0");
    head(&b, 3, 2, 0);
    info(&b, "a", 8, 1, 0, 0);
    info(&b, "b", 8, 1, 0, 64);
    data(&b, 96);
    refused(&b, E_FORMAT, "tensor a: 64 bytes up to the next one, want 32");
    head(&b, 3, 2, 0);
    info(&b, "a", 8, 1, 0, 0);
    info(&b, "a", 8, 1, 0, 32);
    data(&b, 64);
    refused(&b, E_FORMAT, "tensor a: declared twice");
    head(&b, 3, 1, 0);
    info(&b, "a", 8, 1, 0, 0);
    data(&b, 128);
    refused(&b, E_FORMAT, "tensor a: 128 bytes");
    buf_free(&b);
}

/* Number 42 is a block of 64 in today's files and was one of 128: the span decides. */
TEST(type_42_is_told_apart_by_its_size)
{
    const struct {
        size_t bytes;
        int block;
    } forms[] = { { 4 * 36, 64 }, { 4 * 34, 128 } };
    for (int i = 0; i < 2; i++) {
        buf b;
        gguf g;
        error e = { 0 };
        buf_init(&b, 1 << 20);
        head(&b, 3, 1, 0);
        info(&b, "t", 128, 4, GGUF_Q2_0, 0);
        data(&b, forms[i].bytes);
        EXPECT_OK(gguf_parse(&g, b.ptr, b.len, "q2.gguf", &e), e);
        EXPECT_INT(g.tensors[0].block, forms[i].block);
        EXPECT_INT(g.tensors[0].bytes, forms[i].bytes);
        gguf_close(&g);
        buf_free(&b);
    }
}
