#include "nugget.h"
#include "packkit.h"
#include "base/json.h"
#include "base/mem.h"
#include "tools/inspect.h"
#include "tools/synth.h"

static pack *open_pack(const char *folder)
{
    pack *p = NULL;
    error e = { 0 };
    EXPECT_OK(pack_open(&p, folder, NULL, &e), e);
    return p;
}

static buf describe(const pack *p, const inspect_options *o)
{
    buf out;
    error e = { 0 };
    buf_init(&out, 1 << 24);
    EXPECT_OK(inspect_write(p, o, &out, &e), e);
    return out;
}

static void has(const buf *b, const char *text)
{
    if (str_find(buf_view(b), str_from(text)) == STR_NONE) FAIL("no \"%s\" in\n%s", text, b->ptr);
}

TEST(text_of_a_king)
{
    pack *p = open_pack(KIT_PACKS "king-tiny");
    buf b = describe(p, &(inspect_options){ .tensors = true });
    has(&b, "king        ");
    has(&b, "layers      4: 3 gated delta nets, 1 attention");
    has(&b, "affine 2-bit g128      27 matrices");
    has(&b, "dense F32               6 matrices");
    has(&b, "context     4096 positions");
    has(&b, "stop ids    1012 1014");
    has(&b, "rotation    Hadamard blocks of 512, 27 packed modules, schema 2");
    has(&b, "for 1 sequence of 4096 positions");
    has(&b, "language_model.lm_head.signs");
    has(&b, "[1024, 32]");
    buf_free(&b);
    pack_close(p);
    EXPECT_INT(mem_live(), 0);
}

TEST(json_of_a_drafter)
{
    pack *p = open_pack(KIT_PACKS "drafter-tiny-q4");
    buf b = describe(p, &(inspect_options){ .json = true, .tensors = true, .parallel = 3 });
    json_doc *doc = NULL;
    error e = { 0 };
    EXPECT_OK(json_parse(&doc, buf_view(&b), JSON_UNIQUE, "inspect", &e), e);
    const json_node *r = json_root(doc);
    int64_t v;
    EXPECT_STR(json_text(json_get(r, "kind")), "drafter");
    EXPECT(json_i64(json_get(r, "block"), &v) && v == 8);
    EXPECT(json_i64(json_at(json_get(r, "taps"), 1), &v) && v == 3);
    EXPECT_INT(json_len(json_get(r, "tensors")), pack_file(p, 0)->count);
    EXPECT_STR(json_text(json_get(json_at(json_get(r, "formats"), 0), "format")),
               "affine 4-bit g64");
    EXPECT(json_i64(json_get(json_get(r, "memory"), "parallel"), &v) && v == 3);
    json_free(doc);
    buf_free(&b);
    pack_close(p);
}

/* State and keys of the published 27B layout, which do not depend on its widths: per position and
 * attention layer 4,096 bytes; per delta net 3,145,728 and 122,880 bytes, and tapes beside. */
TEST(memory_of_a_sequence_of_the_27b_layout)
{
    const kit k = kit_new(NULL);
    error e = { 0 };
    kit_write(&k, "shape.json",
              STR("{\"kind\":\"king\",\"vocab_size\":512,\"num_hidden_layers\":4,"
                  "\"hidden_size\":1024,\"intermediate_size\":1024}"));
    char shape[512], folder[512];
    snprintf(shape, sizeof shape, "%s", kit_path(&k, "shape.json"));
    snprintf(folder, sizeof folder, "%s", kit_path(&k, "king"));
    EXPECT_OK(synth_write(folder, &(synth_options){ .shape = shape }, &e), e);
    pack *p = open_pack(folder);
    inspect_memory n;
    EXPECT_OK(inspect_need(p, &(inspect_options){ .context = 8192, .parallel = 2 }, &n, &e), e);
    EXPECT_INT(n.kv, 2 * 8192 * 4096);
    const uint64_t lasting = 2 * 3 * (3145728 + 122880);
    EXPECT(n.state > lasting && n.state < 2 * lasting);
    EXPECT_INT(n.mapped, 512 * (1024 / 4 + 2 * 2 * 1024 / 128));
    /* codes and scales, one bias in every pair left out */
    const uint64_t packed = 26 * (uint64_t)1024 * 1024;
    EXPECT(n.tiles > packed / 2 && n.tiles < pack_text_bytes(p));
    EXPECT_INT(n.total, n.tiles + n.values + n.state + n.kv + n.work);
    EXPECT_INT(inspect_need(p, &(inspect_options){ .context = 262145 }, &n, &e), E_ARG);
    EXPECT(strstr(e.text, "want 1 to 262144 positions"));
    pack_close(p);
    kit_free(&k);
}

/* What is foretold of a pack's headers is what the engine takes for the loaded model. */
TEST(memory_is_what_the_engine_takes)
{
    static const char *const types[] = { "f16", "f32", "q8" };
    ingot_model *m = nugget_open(1, NULL);
    pack *p = open_pack(NUGGET "/king");
    for (int parallel = 1; parallel <= 3; parallel += 2) {
        for (int i = 0; i < 3; i++) {
            ingot_engine_options o = INGOT_INIT(ingot_engine_options);
            o.context = 1000;
            o.parallel = parallel;
            o.total_context = 1024 * parallel;
            o.kv_type = types[i];
            ingot_engine *g;
            ingot_error why;
            INGOT_EXPECT_OK(ingot_engine_start(&g, m, &o, &why), why);
            ingot_stats stats;
            ingot_engine_get_stats(g, &stats);
            ingot_engine_stop(g);
            inspect_memory n;
            error e = { 0 };
            const inspect_options how = { .context = 1000,
                                          .parallel = parallel,
                                          .kv_type = types[i] };
            EXPECT_OK(inspect_need(p, &how, &n, &e), e);
            EXPECT_INT(n.state + n.kv + n.work, stats.engine_bytes);
            EXPECT_INT(n.tiles, stats.king_bytes);
        }
    }
    pack_close(p);
    ingot_model_close(m);
}

TEST(bits_per_weight)
{
    pack *p = open_pack(KIT_PACKS "qwen35-tiny-bf16");
    EXPECT(inspect_bits_per_weight(p) > 16.0 && inspect_bits_per_weight(p) < 16.01);
    pack_close(p);
    p = open_pack(KIT_PACKS "qwen35-tiny-mxfp4");
    EXPECT(inspect_bits_per_weight(p) > 4.25 && inspect_bits_per_weight(p) < 4.4);
    pack_close(p);
}
