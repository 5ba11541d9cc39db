/* Quantized packs against those that MLX wrote (tests/golden/packs), byte for byte. */
#include <math.h>

#include "packkit.h"
#include "tools/quantize.h"
#include "tools/synth.h"

static quantize_options options(quant_mode mode, int bits, int group)
{
    return (quantize_options){ .format = { mode, bits, group }, .threads = 2 };
}

static void run(const char *source, const char *target, const quantize_options *o,
                quantize_report *r)
{
    error e = { 0 };
    EXPECT_OK(quantize_run(source, target, o, r, &e), e);
}

static void refuse(const char *source, const char *target, const quantize_options *o, status want,
                   const char *message)
{
    error e = { 0 };
    quantize_report r;
    const status s = quantize_run(source, target, o, &r, &e);
    if (s != want || !strstr(e.text, message))
        FAIL("%d \"%s\", want \"%s\"", (int)s, e.text, message);
    EXPECT_INT(mem_live(), 0);
}

/* Every tensor of one file is in the other, with the same type, shape and bytes. */
static void expect_same_tensors(const char *got, const char *want)
{
    safetensors a, b;
    error e = { 0 };
    EXPECT_OK(safetensors_open(&a, got, &e), e);
    EXPECT_OK(safetensors_open(&b, want, &e), e);
    EXPECT_INT(a.count, b.count);
    EXPECT_STR(safetensors_metadata(&a, "format"), "mlx");
    for (size_t i = 0; i < b.count; i++) {
        const tensor *w = &b.tensors[i], *g = safetensors_find(&a, w->name);
        if (!g) FAIL("tensor %.*s is missing", STR_ARG(w->name));
        if (g->type != w->type || !tensor_has_shape(g, w->rank, w->shape) ||
            memcmp(g->data, w->data, w->bytes) != 0)
            FAIL("tensor %.*s differs", STR_ARG(w->name));
    }
    safetensors_close(&a);
    safetensors_close(&b);
}

TEST(q8_of_a_drafter_is_what_mlx_writes)
{
    const kit k = kit_new(NULL);
    const quantize_options o = options(QUANT_AFFINE, 8, 64);
    quantize_report r;
    run(KIT_PACKS "drafter-tiny-bf16", kit_path(&k, "q8"), &o, &r);
    EXPECT_INT(r.quantized, 22);
    EXPECT_INT(r.dense, 0);
    expect_same_tensors(kit_path(&k, "q8/model.safetensors"),
                        KIT_PACKS "drafter-tiny-q8/model.safetensors");
    buf b = kit_read(kit_path(&k, "q8/config.json"));
    EXPECT(str_find(buf_view(&b), STR("\"quantization\":{\"group_size\":64,\"bits\":8,\"mode\":"
                                      "\"affine\"}")) != STR_NONE);
    buf_free(&b);
    kit_free(&k);
    EXPECT_INT(mem_live(), 0);
}

TEST(q4_of_the_linears_leaves_codebooks_under_their_bare_names)
{
    const kit k = kit_new(NULL);
    quantize_options o = options(QUANT_AFFINE, 4, 64);
    o.only[o.n_only++] = "fc";
    o.only[o.n_only++] = "layers.*";
    o.only[o.n_only++] = "*.hidden_projection";
    quantize_report r;
    run(KIT_PACKS "drafter-tiny-bf16", kit_path(&k, "q4"), &o, &r);
    EXPECT_INT(r.dense, 2);
    expect_same_tensors(kit_path(&k, "q4/model.safetensors"),
                        KIT_PACKS "drafter-tiny-q4/model.safetensors");
    kit_free(&k);
}

/* 4-bit linears with 8-bit codebooks, in two steps: the second adds entries of its own. */
TEST(a_second_run_adds_a_second_format)
{
    const kit k = kit_new(NULL);
    quantize_options o = options(QUANT_AFFINE, 8, 64);
    o.only[o.n_only++] = "*_codebook";
    quantize_report r;
    run(KIT_PACKS "drafter-tiny-q4", kit_path(&k, "mixed"), &o, &r);
    EXPECT_INT(r.quantized, 2);
    pack *p = NULL;
    error e = { 0 };
    EXPECT_OK(pack_open(&p, kit_path(&k, "mixed"), NULL, &e), e);
    bool named = false;
    const quant_format f =
        config_quant_of(pack_config(p), STR("candidate_selector.successor_codebook"), &named);
    EXPECT(named);
    EXPECT(quant_equal(f, o.format));
    matrix m;
    EXPECT_OK(pack_matrix(p, "fc", 512, 1024, &m, &e), e);
    EXPECT_INT(m.format.bits, 4);
    pack_close(p);
    kit_free(&k);
}

/* Other tools name the block otherwise: its rules go on to hold, and under one name. */
TEST(rules_in_quantization_config_are_kept)
{
    const kit source = kit_new("drafter-tiny-q4"), k = kit_new(NULL);
    kit_edit(&source, "config.json", "\"quantization\": {",
             "\"quantization_config\": {\"candidate_selector.successor_codebook.weight\": false, ");
    quantize_options o = options(QUANT_AFFINE, 8, 64);
    o.only[o.n_only++] = "*_codebook";
    quantize_report r;
    run(source.folder, kit_path(&k, "mixed"), &o, &r);
    pack *p = NULL;
    matrix m;
    error e = { 0 };
    EXPECT_OK(pack_open(&p, kit_path(&k, "mixed"), NULL, &e), e);
    EXPECT_OK(pack_matrix(p, "fc", 512, 1024, &m, &e), e);
    EXPECT_INT(m.format.bits, 4);
    bool named = false;
    const quant_format f =
        config_quant_of(pack_config(p), STR("candidate_selector.successor_codebook"), &named);
    EXPECT(named && quant_equal(f, o.format));
    EXPECT(str_find(pack_config_text(p), STR("quantization_config")) == STR_NONE);
    EXPECT(str_find(pack_config_text(p), STR("codebook.weight")) == STR_NONE); /* replaced */
    pack_close(p);
    kit_free(&source);
    kit_free(&k);
}

TEST(a_plain_pack_keeps_its_text_files_and_opens)
{
    const kit k = kit_new(NULL);
    const quantize_options o = options(QUANT_MXFP4, 4, 32);
    quantize_report r;
    run(KIT_PACKS "qwen35-tiny-bf16", kit_path(&k, "fp4"), &o, &r);
    pack *p = NULL;
    error e = { 0 };
    EXPECT_OK(pack_open(&p, kit_path(&k, "fp4"), NULL, &e), e);
    EXPECT(file_exists(kit_path(&k, "fp4/generation_config.json")));
    pack_close(p);
    kit_free(&k);
}

TEST(every_mode_opens_and_decodes_near_the_source)
{
    const quant_format formats[] = { { QUANT_AFFINE, 2, 32 }, { QUANT_AFFINE, 3, 64 },
                                     { QUANT_AFFINE, 5, 32 }, { QUANT_AFFINE, 6, 128 },
                                     { QUANT_MXFP4, 4, 32 },  { QUANT_MXFP8, 8, 32 },
                                     { QUANT_NVFP4, 4, 16 } };
    const double most[] = { 0.60, 0.25, 0.06, 0.04, 0.25, 0.06, 0.20 }; /* relative, of the norm */
    pack *source = NULL;
    error e = { 0 };
    EXPECT_OK(pack_open(&source, KIT_PACKS "drafter-tiny-bf16", NULL, &e), e);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const kit k = kit_new(NULL);
        const quantize_options o = options(formats[i].mode, formats[i].bits, formats[i].group);
        quantize_report r;
        pack *p = NULL;
        matrix a, b;
        run(KIT_PACKS "drafter-tiny-bf16", kit_path(&k, "q"), &o, &r);
        EXPECT_OK(pack_open(&p, kit_path(&k, "q"), NULL, &e), e);
        EXPECT_OK(pack_matrix(source, "fc", 512, 1024, &a, &e), e);
        EXPECT_OK(pack_matrix(p, "fc", 512, 1024, &b, &e), e);
        EXPECT(quant_equal(b.format, formats[i]));
        double off = 0, all = 0;
        for (int64_t row = 0; row < 512; row++) {
            float x[1024], y[1024];
            matrix_row_f32(&a, row, DTYPE_F32, x);
            matrix_row_f32(&b, row, DTYPE_F32, y);
            for (int c = 0; c < 1024; c++) {
                off += (double)(x[c] - y[c]) * (double)(x[c] - y[c]);
                all += (double)x[c] * (double)x[c];
            }
        }
        if (!(off <= most[i] * most[i] * all)) FAIL("format %zu: error %g of %g", i, off, all);
        pack_close(p);
        kit_free(&k);
    }
    pack_close(source);
}

TEST(threads_do_not_change_the_bytes)
{
    const kit k = kit_new(NULL);
    quantize_options o = options(QUANT_NVFP4, 4, 16);
    quantize_report r;
    o.threads = 1;
    run(KIT_PACKS "drafter-tiny-bf16", kit_path(&k, "one"), &o, &r);
    o.threads = 5;
    run(KIT_PACKS "drafter-tiny-bf16", kit_path(&k, "five"), &o, &r);
    expect_same_tensors(kit_path(&k, "five/model.safetensors"),
                        kit_path(&k, "one/model.safetensors"));
    kit_free(&k);
}

/* Codebooks of 68,000 rows are written in two parts: a row of the second is that of its values. */
TEST(large_matrices_are_written_in_parts)
{
    enum { ROW = 67890, RANK = 64 };
    const kit k = kit_new(NULL);
    error e = { 0 };
    quantize_options o = options(QUANT_AFFINE, 8, 64);
    quantize_report r;
    char shape[512];
    kit_write(&k, "shape.json",
              STR("{\"kind\":\"drafter\",\"hidden_size\":128,\"vocab_size\":68000,"
                  "\"num_hidden_layers\":1,\"intermediate_size\":128,\"head_dim\":32,"
                  "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"sliding_window\":32,"
                  "\"block_size\":4,\"mask_token_id\":9,\"conv_group_size\":64,"
                  "\"selector_rank\":64,\"selector_top_k\":4,\"num_target_layers\":2,"
                  "\"target_layer_ids\":[1],\"bits\":16}"));
    snprintf(shape, sizeof shape, "%s", kit_path(&k, "shape.json"));
    EXPECT_OK(synth_write(kit_path(&k, "big"), &(synth_options){ .shape = shape }, &e), e);
    char source[512];
    snprintf(source, sizeof source, "%s", kit_path(&k, "big"));
    run(source, kit_path(&k, "q8"), &o, &r);
    pack *big, *q8;
    matrix want, got;
    float x[RANK], y[RANK], low = 0, high = 0;
    static const char name[] = "candidate_selector.successor_codebook";
    EXPECT_OK(pack_open(&big, source, NULL, &e), e);
    EXPECT_OK(pack_open(&q8, kit_path(&k, "q8"), NULL, &e), e);
    EXPECT_OK(pack_matrix(big, name, 68000, RANK, &want, &e), e);
    EXPECT_OK(pack_matrix(q8, name, 68000, RANK, &got, &e), e);
    EXPECT(got.format.bits == 8);
    matrix_row_f32(&want, ROW, DTYPE_F32, x);
    matrix_row_f32(&got, ROW, DTYPE_F32, y);
    for (int i = 0; i < RANK; i++) {
        if (x[i] < low) low = x[i];
        if (x[i] > high) high = x[i];
    }
    for (int i = 0; i < RANK; i++) EXPECT(fabsf(x[i] - y[i]) <= (high - low) / 100);
    pack_close(big);
    pack_close(q8);
    kit_free(&k);
}

TEST(refuses_what_it_cannot_do)
{
    const kit k = kit_new(NULL);
    quantize_options o = options(QUANT_AFFINE, 4, 64);
    const char *target = kit_path(&k, "out");
    refuse(KIT_PACKS "king-tiny", target, &o, E_UNSUPPORTED, "a king's weights are quantized");
    refuse(KIT_PACKS "drafter-tiny-q4", target, &o, E_UNSUPPORTED, "already, want dense");
    refuse(KIT_PACKS "drafter-tiny-bf16", KIT_PACKS "drafter-tiny-q8", &o, E_ARG,
           "in it, want a new or empty folder");
    o.only[o.n_only++] = "no.such.*";
    refuse(KIT_PACKS "drafter-tiny-bf16", target, &o, E_ARG, "no module matches");
    EXPECT(!file_exists(target));
    const kit full = kit_new(NULL);
    kit_write(&full, "LICENSE", STR("mine"));
    refuse(KIT_PACKS "drafter-tiny-bf16", full.folder, &o, E_ARG, "found LICENSE in it");
    kit_free(&full);
    kit_free(&k);
}

TEST(refuses_weights_that_are_not_finite)
{
    const kit k = kit_new("drafter-tiny-bf16");
    buf b = kit_read(kit_path(&k, "model.safetensors"));
    safetensors s;
    error e = { 0 };
    EXPECT_OK(safetensors_parse(&s, b.ptr, b.len, "copy", &e), e);
    const tensor *t = safetensors_find(&s, STR("fc.weight"));
    const uint16_t nan = 0x7fc0;
    memcpy(b.ptr + (t->data - s.bytes) + 2 * (1024 * 3 + 5), &nan, sizeof nan);
    safetensors_close(&s);
    kit_write(&k, "model.safetensors", buf_view(&b));
    buf_free(&b);
    const quantize_options o = options(QUANT_AFFINE, 4, 64);
    refuse(k.folder, kit_path(&k, "out"), &o, E_FORMAT,
           "tensor fc.weight: element [3, 5] is not finite");
    EXPECT(!file_exists(kit_path(&k, "out")));
    kit_free(&k);
}

/* Whatever allocation fails, it is reported, and neither memory nor a file stays behind. */
TEST(every_failing_allocation_is_reported)
{
    const kit k = kit_new(NULL);
    quantize_options o = options(QUANT_AFFINE, 8, 64);
    o.threads = 1;
    char target[512];
    snprintf(target, sizeof target, "%s", kit_path(&k, "q8"));
    error e = { 0 };
    quantize_report r;
    status s = E_NOMEM;
    int failures = 0;
    for (int64_t n = 1; s != OK; n += 1 + n / 20, failures++) {
        mem_fail_after(n);
        s = quantize_run(KIT_PACKS "drafter-tiny-bf16", target, &o, &r, &e);
        mem_fail_after(0);
        EXPECT_INT(mem_live(), 0);
        if (s == OK) break;
        EXPECT_INT(s, E_NOMEM);
        EXPECT(!file_exists(target));
    }
    EXPECT(failures > 20);
    expect_same_tensors(kit_path(&k, "q8/model.safetensors"),
                        KIT_PACKS "drafter-tiny-q8/model.safetensors");
    kit_free(&k);
}
