#include "test.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "pack/safetensors.h"

/* A file of this header and `data` zero bytes, parsed; returns the status, the message in *e. */
static status parse(const char *header, size_t data, error *e)
{
    const uint64_t n = strlen(header);
    const size_t len = 8 + n + data;
    uint8_t *bytes = calloc(1, len);
    memcpy(bytes, &n, 8);
    memcpy(bytes + 8, header, n);
    safetensors s;
    *e = (error){ 0 };
    const status r = safetensors_parse(&s, bytes, len, "x.safetensors", e);
    if (!r) {
        for (size_t i = 0; i < s.count; i++) {
            EXPECT(s.tensors[i].data >= bytes + 8 + n);
            EXPECT(s.tensors[i].data + s.tensors[i].bytes <= bytes + len);
        }
        safetensors_close(&s);
    }
    free(bytes);
    return r;
}

static void refused(const char *header, size_t data, status want, const char *message)
{
    error e;
    EXPECT_INT(parse(header, data, &e), want);
    if (!strstr(e.text, message)) FAIL("found \"%s\", want \"%s\" in it", e.text, message);
    EXPECT(strstr(e.text, "x.safetensors") && !strchr(e.text, '\n'));
}

TEST(minimal_files)
{
    error e;
    EXPECT_OK(parse("{}", 0, &e), e);
    EXPECT_OK(parse("{\"__metadata__\":{\"format\":\"mlx\"}}   ", 0, &e), e);
    EXPECT_OK(parse("{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, &e), e);
    EXPECT_OK(parse("{\"a\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[0,0]}}", 0, &e),
              e);
    /* the order of entries is not the order of data */
    EXPECT_OK(parse("{\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[3,5]},"
                    "\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}",
                    5, &e),
              e);
}

TEST(truncated_and_oversized_headers)
{
    error e = { 0 };
    safetensors s;
    EXPECT_INT(safetensors_parse(&s, "", 0, "x.safetensors", &e), E_FORMAT);
    EXPECT_INT(safetensors_parse(&s, "\1\0\0", 3, "x.safetensors", &e), E_FORMAT);
    uint8_t bytes[16] = { 0 };
    const uint64_t sizes[] = { 9, 1 << 20, (uint64_t)1 << 40, UINT64_MAX, UINT64_MAX - 7 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        memcpy(bytes, &sizes[i], 8);
        EXPECT_INT(safetensors_parse(&s, bytes, sizeof bytes, "x.safetensors", &e), E_FORMAT);
        EXPECT(strstr(e.text, "want at most 8"));
    }
    refused("", 0, E_FORMAT, "x.safetensors");
    refused("[]", 0, E_FORMAT, "header is array");
    refused("{\"a\":", 0, E_FORMAT, "x.safetensors");
    refused("{}{}", 0, E_FORMAT, "x.safetensors");
    refused("{\"\xff\":1}", 0, E_FORMAT, "x.safetensors");
}

TEST(R088_shape_beyond_file)
{
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1000,1000],\"data_offsets\":[0,4]}}", 4, E_FORMAT,
            "tensor a: 4 bytes, want 4000000 for F32 [1000, 1000]");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1000],\"data_offsets\":[0,4000]}}", 4, E_FORMAT,
            "bytes [0, 4000), want a range within [0, 4)");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,16]}}", 16, E_FORMAT,
            "tensor a: 16 bytes, want 8 for F32 [2]");
}

TEST(R090_unknown_dtype_and_wrapping_offsets)
{
    refused("{\"a\":{\"dtype\":\"F8_WEIRD\",\"shape\":[8],\"data_offsets\":[0,8]}}", 8,
            E_UNSUPPORTED, "tensor a: unknown dtype F8_WEIRD");
    refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[18446744073709551608,0]}}", 8,
            E_FORMAT, "x.safetensors");
    refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[9223372036854775800,"
            "9223372036854775807]}}",
            8, E_FORMAT, "want a range within [0, 8)");
    refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[-8,0]}}", 8, E_FORMAT,
            "[-8, 0)");
    refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[8,0]}}", 8, E_FORMAT,
            "[8, 0)");
    refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0.0,8.0]}}", 8, E_FORMAT,
            "no two integers");
    refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0]}}", 8, E_FORMAT,
            "no two integers");
}

TEST(R091_duplicates_overlaps_gaps)
{
    refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
            "\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}",
            8, E_FORMAT, "x.safetensors");
    refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[100],\"data_offsets\":[0,100]},"
            "\"b\":{\"dtype\":\"U8\",\"shape\":[100],\"data_offsets\":[50,150]}}",
            150, E_FORMAT, "tensor b: data begin at 50, want 100 (overlap)");
    refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
            "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[6,10]}}",
            10, E_FORMAT, "tensor b: data begin at 6, want 4 (gap)");
    refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[2,6]}}", 6, E_FORMAT,
            "(gap)");
    refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 6, E_FORMAT,
            "6 bytes of data, tensors account for 4");
    refused("{}", 1, E_FORMAT, "1 bytes of data, tensors account for 0");
    /* the same range twice */
    refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
            "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
            4, E_FORMAT, "(overlap)");
    /* nothing may hide inside an empty tensor's place */
    error e;
    EXPECT_OK(parse("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
                    "\"z\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[4,4]}}",
                    4, &e),
              e);
    refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
            "\"z\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[2,2]}}",
            4, E_FORMAT, "(overlap)");
}

TEST(R093_overflow_depth_and_names)
{
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,4]}}",
            4, E_FORMAT, "has no size");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904],\"data_offsets\":[0,0]}}", 0,
            E_FORMAT, "has no size");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,0]}}", 0, E_FORMAT,
            "dimension 0 is no size");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,4]}}", 4, E_FORMAT,
            "dimension 0 is no size");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4,
            E_FORMAT, "9 dimensions, want at most 8");
    refused("{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,1]}}", 1, E_FORMAT,
            "has no size");
    refused("{\"a\\u0000b\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", 1, E_FORMAT,
            "x.safetensors");
    refused("{\"a\\nb\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", 1, E_FORMAT,
            "name of 3 bytes");
    refused("{\"\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", 1, E_FORMAT,
            "name of 0");
    char name[SAFETENSORS_MAX_NAME + 2], header[SAFETENSORS_MAX_NAME + 128];
    memset(name, 'n', sizeof name);
    name[SAFETENSORS_MAX_NAME + 1] = 0;
    snprintf(header, sizeof header,
             "{\"%s\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", name);
    refused(header, 1, E_FORMAT, "name of 513 bytes");
    /* nesting of 100,000 */
    const size_t depth = 100000;
    char *deep = malloc(2 * depth + 64);
    const int at = snprintf(deep, 64, "{\"a\":");
    memset(deep + at, '[', depth);
    memset(deep + at + depth, ']', depth);
    memcpy(deep + at + 2 * depth, "}", 2);
    refused(deep, 0, E_LIMIT, "x.safetensors");
    free(deep);
}

TEST(entries_of_the_wrong_kind)
{
    refused("{\"a\":7}", 0, E_FORMAT, "entry is integer");
    refused("{\"a\":{\"dtype\":5,\"shape\":[],\"data_offsets\":[0,1]}}", 1, E_FORMAT,
            "dtype is integer");
    refused("{\"a\":{\"shape\":[],\"data_offsets\":[0,1]}}", 1, E_FORMAT, "dtype is nothing");
    refused("{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, E_FORMAT, "shape is nothing");
    refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[]}}", 0, E_FORMAT, "no two integers");
    refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1],\"x\":[[[]]]}}", 1,
            E_FORMAT, "unknown field");
    refused("{\"__metadata__\":[]}", 0, E_FORMAT, "__metadata__ is array");
    refused("{\"__metadata__\":{\"a\":1}}", 0, E_FORMAT, "value is integer");
}

static void temp_path(char *path, size_t cap)
{
    const char *dir = getenv("TMPDIR");
    snprintf(path, cap, "%s/ingot-st-%d.safetensors", dir ? dir : "/tmp",
             (int)(rng_entropy() % 1000000000u));
}

/* Random tensors, written in random pieces, read back equal. */
TEST(what_is_written_reads_back)
{
    rng r = { 42 };
    for (int round = 0; round < 20; round++) {
        char path[512];
        error e = { 0 };
        temp_path(path, sizeof path);
        enum { MOST = 12 };
        uint8_t *data[MOST];
        uint64_t sizes[MOST];
        int64_t shapes[MOST][3];
        dtype types[MOST];
        int ranks[MOST];
        const int n = (int)rng_below(&r, MOST + 1);
        safetensors_writer *w;
        EXPECT_OK(safetensors_writer_new(&w, &e), e);
        if (round % 2)
            EXPECT_OK(safetensors_writer_metadata(w, STR("format"), STR("mlx \"x\"\n\\"), &e), e);
        for (int i = 0; i < n; i++) {
            char name[32];
            int index;
            snprintf(name, sizeof name, "t\xc3\xa9.%d", i);
            types[i] = round % 3 ? DTYPE_BF16 : DTYPE_U8;
            ranks[i] = (int)rng_below(&r, 4);
            for (int d = 0; d < ranks[i]; d++) shapes[i][d] = rng_below(&r, 9);
            EXPECT(tensor_bytes_of(types[i], ranks[i], shapes[i], &sizes[i]));
            data[i] = malloc(sizes[i] + 1);
            for (uint64_t k = 0; k < sizes[i]; k++) data[i][k] = (uint8_t)rng_next(&r);
            EXPECT_OK(safetensors_writer_declare(w, str_from(name), types[i], ranks[i], shapes[i],
                                                 &index, &e),
                      e);
            EXPECT_INT(index, i);
        }
        EXPECT_OK(safetensors_writer_begin(w, path, &e), e);
        for (int i = n - 1; i >= 0; i--) {
            const uint64_t cut = sizes[i] ? rng_below(&r, (uint32_t)sizes[i]) : 0;
            EXPECT_OK(
                safetensors_writer_put(w, i, cut, data[i] + cut, (size_t)(sizes[i] - cut), &e), e);
            EXPECT_OK(safetensors_writer_put(w, i, 0, data[i], (size_t)cut, &e), e);
        }
        EXPECT(!file_exists(path));
        EXPECT_OK(safetensors_writer_commit(w, &e), e);
        safetensors s;
        EXPECT_OK(safetensors_open(&s, path, &e), e);
        EXPECT_INT(s.count, n);
        EXPECT_INT(s.header_len % 8, 0);
        for (int i = 0; i < n; i++) {
            char name[32];
            snprintf(name, sizeof name, "t\xc3\xa9.%d", i);
            const tensor *t = safetensors_find(&s, str_from(name));
            EXPECT(t && t->type == types[i] && tensor_has_shape(t, ranks[i], shapes[i]));
            EXPECT(memcmp(t->data, data[i], sizes[i]) == 0);
            free(data[i]);
        }
        if (round % 2) EXPECT_STR(safetensors_metadata(&s, "format"), "mlx \"x\"\n\\");
        EXPECT(!safetensors_metadata(&s, "other") && !safetensors_find(&s, STR("other")));
        safetensors_close(&s);
        remove(path);
    }
    EXPECT_INT(mem_live(), 0);
}

TEST(writer_refuses_and_leaves_no_file)
{
    char path[512];
    error e = { 0 };
    temp_path(path, sizeof path);
    safetensors_writer *w;
    EXPECT_OK(safetensors_writer_new(&w, &e), e);
    const int64_t four = 4, big[2] = { (int64_t)1 << 40, (int64_t)1 << 40 };
    EXPECT_OK(safetensors_writer_declare(w, STR("a"), DTYPE_U8, 1, &four, NULL, &e), e);
    EXPECT_INT(safetensors_writer_declare(w, STR("a"), DTYPE_U8, 1, &four, NULL, &e), E_ARG);
    EXPECT_INT(safetensors_writer_declare(w, STR("b"), DTYPE_U8, 2, big, NULL, &e), E_ARG);
    EXPECT_INT(safetensors_writer_declare(w, STR(""), DTYPE_U8, 1, &four, NULL, &e), E_ARG);
    EXPECT_OK(safetensors_writer_begin(w, path, &e), e);
    EXPECT_OK(safetensors_writer_put(w, 0, 0, "ab", 2, &e), e);
    EXPECT_INT(safetensors_writer_commit(w, &e), E_BUG);
    EXPECT(strstr(e.text, "tensor a: 2 bytes put, want 4"));
    EXPECT(!file_exists(path));
    EXPECT_INT(mem_live(), 0);
}

static status write_and_read(const char *path, error *e)
{
    safetensors_writer *w = NULL;
    const int64_t four = 4;
    status s = safetensors_writer_new(&w, e);
    if (!s) s = safetensors_writer_metadata(w, STR("k"), STR("v"), e);
    if (!s) s = safetensors_writer_declare(w, STR("a"), DTYPE_U8, 1, &four, NULL, e);
    if (!s) s = safetensors_writer_begin(w, path, e);
    if (!s) s = safetensors_writer_put(w, 0, 0, "abcd", 4, e);
    if (!s) {
        s = safetensors_writer_commit(w, e);
        w = NULL;
    }
    safetensors_writer_abort(w);
    safetensors f;
    if (!s) s = safetensors_open(&f, path, e);
    if (!s) safetensors_close(&f);
    return s;
}

TEST(every_allocation_may_fail)
{
    char path[512];
    temp_path(path, sizeof path);
    status s = E_NOMEM;
    int n = 0;
    while (s != OK) {
        error e = { 0 };
        mem_fail_after(++n);
        s = write_and_read(path, &e);
        mem_fail_after(0);
        EXPECT(s == OK || s == E_NOMEM);
        EXPECT_INT(mem_live(), 0);
        EXPECT(n < 10000);
    }
    EXPECT(n > 10);
    remove(path);
}
