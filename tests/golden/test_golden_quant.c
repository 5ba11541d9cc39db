/* Quantization against mlx 0.32.4, bit for bit: codes, scales, biases, decoded weights, products.
 * Mutations seen to fail: ties of codes away from zero, codes from rounded scales, floor instead of
 * ceil in the mxfp scale, one rounding instead of two in f16, high nibble first. */
#include "test.h"
#include <math.h>
#include "base/json.h"
#include "pack/matrix.h"
#include "pack/safetensors.h"

#define FOLDER TEST_ROOT "/tests/golden/quant/"

typedef struct golden {
    safetensors file;
    const char *name;
} golden;

static golden open_golden(const char *name)
{
    golden g = { .name = name };
    char path[512];
    error e = { 0 };
    snprintf(path, sizeof path, FOLDER "%s.safetensors", name);
    EXPECT_OK(safetensors_open(&g.file, path, &e), e);
    return g;
}

static const tensor *find(const golden *g, const char *prefix, const char *name)
{
    char full[128];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    const tensor *t = safetensors_find(&g->file, str_from(full));
    if (!t) FAIL("%s: no tensor %s", g->name, full);
    return t;
}

static void expect_bytes(const golden *g, const char *what, int64_t row, const void *got,
                         const void *want, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const uint8_t a = ((const uint8_t *)got)[i], b = ((const uint8_t *)want)[i];
        if (a != b) {
            FAIL("%s: %s, row %lld: byte %lld is %02x, want %02x", g->name, what, (long long)row,
                 (long long)i, a, b);
        }
    }
}

static void expect_floats(const golden *g, const char *what, int64_t row, const float *got,
                          const float *want, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (isnan(got[i]) && isnan(want[i])) continue;
        if (memcmp(&got[i], &want[i], sizeof *got) != 0) {
            FAIL("%s: %s, row %lld: element %lld is %.9g, want %.9g", g->name, what, (long long)row,
                 (long long)i, (double)got[i], (double)want[i]);
        }
    }
}

static matrix view(const golden *g, const char *prefix, quant_format f, int64_t in)
{
    matrix m = { .path = g->name,
                 .in = in,
                 .format = f,
                 .weight = find(g, prefix, "weight"),
                 .scales = find(g, prefix, "scales") };
    if (f.mode == QUANT_AFFINE) m.biases = find(g, prefix, "biases");
    m.out = m.weight->shape[0];
    return m;
}

/* Rows of `which` (a list in info.json) as their numbers in the list `all`. */
static int rows_of(const char *which, const char *all, int *rows)
{
    error e = { 0 };
    json_doc *doc = NULL;
    EXPECT_OK(json_parse_file(&doc, FOLDER "info.json", 1 << 20, 0, &e), e);
    const json_node *a = json_get(json_root(doc), all), *w = json_get(json_root(doc), which);
    const int n = (int)json_len(w);
    for (int i = 0; i < n; i++) {
        rows[i] = -1;
        for (int k = 0; k < (int)json_len(a); k++) {
            const char *x = json_text(json_at(w, (size_t)i)), *y = json_text(json_at(a, (size_t)k));
            if (strcmp(x, y) == 0) rows[i] = k;
        }
        EXPECT(rows[i] >= 0);
    }
    json_free(doc);
    return n;
}

/* Encodes `w` (rounded to `type` first) and compares with the stored tensors; then decodes
 * those. */
static void check_affine(const golden *g, const char *prefix, quant_format f, dtype type,
                         const tensor *w, const int *rows, int n)
{
    const matrix m = view(g, prefix, f, 256);
    const tensor *dequant = find(g, prefix, "dequant");
    EXPECT_INT(m.out, n);
    EXPECT(m.scales->type == type && dequant->type == type);
    float x[256], got[256], want[256];
    uint8_t codes[256], scales[4 * 8], biases[4 * 8];
    const int width = dtype_bits(type) / 8;
    for (int r = 0; r < n; r++) {
        tensor_read_f32(w, rows[r] * 256, 256, x);
        for (int i = 0; i < 256; i++) x[i] = dtype_round(type, x[i]);
        quant_encode_row(f, x, 256, type, codes, scales, biases);
        const int64_t bytes = quant_row_bytes(f, 256), side = 256 / f.group * width;
        expect_bytes(g, "weight", r, codes, m.weight->data + r * bytes, bytes);
        expect_bytes(g, "scales", r, scales, m.scales->data + r * side, side);
        expect_bytes(g, "biases", r, biases, m.biases->data + r * side, side);
        matrix_row_f32(&m, r, type, got);
        tensor_read_f32(dequant, r * 256, 256, want);
        expect_floats(g, "dequant", r, got, want, 256);
    }
}

static void check_codes(const golden *g, quant_format f)
{
    const matrix m = view(g, "f32.", f, 256);
    const tensor *want = find(g, "f32.", "codes");
    uint8_t codes[256];
    for (int r = 0; r < m.out; r++) {
        matrix_row_codes(&m, r, codes);
        expect_bytes(g, "codes", r, codes, want->data + r * 256, 256);
        for (int k = 0; k < 256; k++) {
            EXPECT_INT(quant_code(m.weight->data + r * quant_row_bytes(f, 256), f.bits, k),
                       codes[k]);
        }
    }
}

TEST(affine_of_all_widths_and_groups)
{
    golden in = open_golden("affine_inputs");
    const tensor *w = find(&in, "", "w");
    int all[32], f16[32];
    const int n = rows_of("rows_f32_and_bf16", "rows_f32_and_bf16", all);
    const int n16 = rows_of("rows_f16", "rows_f32_and_bf16", f16);
    static const int bits[] = { 2, 3, 4, 5, 6, 8 }, groups[] = { 32, 64, 128 };
    for (int b = 0; b < 6; b++) {
        for (int k = 0; k < 3; k++) {
            char name[64];
            snprintf(name, sizeof name, "affine_b%d_g%d", bits[b], groups[k]);
            golden g = open_golden(name);
            const quant_format f = { QUANT_AFFINE, bits[b], groups[k] };
            check_affine(&g, "f32.", f, DTYPE_F32, w, all, n);
            check_codes(&g, f);
            if (safetensors_find(&g.file, STR("f16.weight"))) {
                check_affine(&g, "f16.", f, DTYPE_F16, w, f16, n16);
                check_affine(&g, "bf16.", f, DTYPE_BF16, w, all, n);
            }
            safetensors_close(&g.file);
        }
    }
    safetensors_close(&in.file);
}

TEST(affine_of_one_bit)
{
    golden in = open_golden("affine_inputs"), g = open_golden("affine_b1_all_groups");
    int all[32];
    const int n = rows_of("rows_f32_and_bf16", "rows_f32_and_bf16", all);
    static const int groups[] = { 32, 64, 128 };
    for (int k = 0; k < 3; k++) {
        char prefix[8];
        snprintf(prefix, sizeof prefix, "g%d.", groups[k]);
        const quant_format f = { QUANT_AFFINE, 1, groups[k] };
        check_affine(&g, prefix, f, DTYPE_F32, find(&in, "", "w"), all, n);
    }
    safetensors_close(&g.file);
    safetensors_close(&in.file);
}

static void check_floating(const golden *g, const char *prefix, quant_format f, dtype type,
                           const tensor *w, int skip_row)
{
    const matrix m = view(g, prefix, f, 256);
    const tensor *exact = find(g, prefix, "dequant_f32"),
                 *bf16 = find(g, prefix, "dequant_default");
    float x[256], got[256], want[256];
    uint8_t codes[256], scales[16];
    for (int r = 0; r < m.out; r++) {
        if (r == skip_row) continue;
        tensor_read_f32(w, r * 256, 256, x);
        for (int i = 0; i < 256; i++) x[i] = dtype_round(type, x[i]);
        quant_encode_row(f, x, 256, type, codes, scales, NULL);
        const int64_t bytes = quant_row_bytes(f, 256), side = 256 / f.group;
        expect_bytes(g, "scales", r, scales, m.scales->data + r * side, side);
        expect_bytes(g, "weight", r, codes, m.weight->data + r * bytes, bytes);
        matrix_row_f32(&m, r, DTYPE_F32, got);
        tensor_read_f32(exact, r * 256, 256, want);
        expect_floats(g, "dequant", r, got, want, 256);
        matrix_row_f32(&m, r, DTYPE_BF16, got);
        tensor_read_f32(bf16, r * 256, 256, want);
        expect_floats(g, "dequant in bf16", r, got, want, 256);
    }
}

static void check_tables(const golden *g, quant_format f)
{
    const matrix m = view(g, "table.elements.", f, 256);
    float got[256], want[256];
    matrix_row_f32(&m, 0, DTYPE_F32, got);
    tensor_read_f32(find(g, "table.elements.", "dequant_f32"), 0, 256, want);
    expect_floats(g, "elements", 0, got, want, 256);
    tensor_read_f32(find(g, "table.scales.", "value_of_code_one_f32"), 0, 256, want);
    for (int s = 0; s < 256; s++) {
        const uint8_t byte = (uint8_t)s;
        got[s] = quant_scale(f.mode, DTYPE_U8, &byte, 0);
    }
    expect_floats(g, "scale bytes", 0, got, want, 256);
    tensor_read_f32(find(g, "table.scales.", "value_of_code_one_default"), 0, 256, want);
    for (int s = 0; s < 256; s++) got[s] = dtype_round(DTYPE_BF16, got[s]);
    expect_floats(g, "scale bytes in bf16", 0, got, want, 256);
}

TEST(floating_modes)
{
    golden in = open_golden("fp_inputs");
    const tensor *w = find(&in, "", "w");
    static const struct {
        const char *name;
        quant_mode mode;
    } cases[] = { { "mxfp4_g32", QUANT_MXFP4 },
                  { "mxfp8_g32", QUANT_MXFP8 },
                  { "nvfp4_g16", QUANT_NVFP4 } };
    for (int i = 0; i < 3; i++) {
        golden g = open_golden(cases[i].name);
        const quant_format f = quant_default(cases[i].mode);
        check_floating(&g, "f32.", f, DTYPE_F32, w, 9);
        check_floating(&g, "bf16.", f, DTYPE_BF16, w, 9);
        check_tables(&g, f);
        safetensors_close(&g.file);
    }
    safetensors_close(&in.file);
}

static void check_product(const golden *g, const char *prefix, quant_format f)
{
    const tensor *x = find(g, prefix, "x"), *y = find(g, prefix, "y_x_f32");
    const tensor *bound = find(g, prefix, "abs_bound");
    const int64_t n = x->shape[1];
    const matrix m = view(g, prefix, f, n);
    float row[512], w[512], want, most;
    for (int64_t j = 0; j < m.out; j++) {
        matrix_row_f32(&m, j, DTYPE_F32, w);
        for (int64_t r = 0; r < x->shape[0]; r++) {
            double sum = 0.0;
            tensor_read_f32(x, r * n, n, row);
            for (int64_t k = 0; k < n; k++) sum += (double)row[k] * (double)w[k];
            tensor_read_f32(y, r * m.out + j, 1, &want);
            tensor_read_f32(bound, r * m.out + j, 1, &most);
            if (fabs(sum - (double)want) > 1e-6 * (double)most) {
                FAIL("%s%s: y[%lld][%lld] = %g, want %g", g->name, prefix, (long long)r,
                     (long long)j, sum, (double)want);
            }
        }
    }
}

TEST(products_of_decoded_rows)
{
    static const struct {
        const char *name;
        quant_format f;
    } cases[] = {
        { "matmul_affine_b2_g128", { QUANT_AFFINE, 2, 128 } },
        { "matmul_affine_b3_g32", { QUANT_AFFINE, 3, 32 } },
        { "matmul_affine_b4_g64", { QUANT_AFFINE, 4, 64 } },
        { "matmul_affine_b5_g64", { QUANT_AFFINE, 5, 64 } },
        { "matmul_affine_b6_g32", { QUANT_AFFINE, 6, 32 } },
        { "matmul_affine_b8_g64", { QUANT_AFFINE, 8, 64 } },
        { "matmul_mxfp4_b4_g32", { QUANT_MXFP4, 4, 32 } },
        { "matmul_mxfp8_b8_g32", { QUANT_MXFP8, 8, 32 } },
        { "matmul_nvfp4_b4_g16", { QUANT_NVFP4, 4, 16 } },
    };
    static const char *const shapes[] = { "m1_k128_n48.", "m5_k512_n24.", "m17_k256_n33." };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        golden g = open_golden(cases[i].name);
        for (int s = 0; s < 3; s++) check_product(&g, shapes[s], cases[i].f);
        safetensors_close(&g.file);
    }
}
