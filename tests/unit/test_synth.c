#include "packkit.h"
#include "base/mem.h"
#include "pack/pack.h"
#include "text/tokenizer.h"
#include "tools/synth.h"

static const char king_shape[] = "{\"kind\":\"king\",\"num_hidden_layers\":5,\"hidden_size\":512,"
                                 "\"intermediate_size\":1536,\"vocab_size\":600,"
                                 "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":"
                                 "128,\"linear_num_key_heads\":2,"
                                 "\"linear_num_value_heads\":4,\"linear_key_head_dim\":64,\"linear_"
                                 "value_head_dim\":128,\"block\":512,"
                                 "\"max_position_embeddings\":4096}";
static const char drafter_shape[] =
    "{\"kind\":\"drafter\",\"num_hidden_layers\":2,\"hidden_size\":512,\"intermediate_size\":256,"
    "\"vocab_size\":600,"
    "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":64,\"selector_rank\":64,"
    "\"mask_token_id\":590,"
    "\"num_target_layers\":5,\"target_layer_ids\":[1,3],\"bits\":%d}";

static void write_shape(const kit *k, const char *folder, const char *shape, uint64_t seed)
{
    error e = { 0 };
    kit_write(k, "shape.json", str_from(shape));
    const synth_options o = { .shape = kit_path(k, "shape.json"), .seed = seed };
    EXPECT_OK(synth_write(kit_path(k, folder), &o, &e), e);
}

static pack *open_at(const kit *k, const char *folder)
{
    pack *p = NULL;
    error e = { 0 };
    EXPECT_OK(pack_open(&p, kit_path(k, folder), NULL, &e), e);
    return p;
}

TEST(a_king_opens_and_is_ternary)
{
    const kit k = kit_new(NULL);
    write_shape(&k, "king", king_shape, 7);
    pack *p = open_at(&k, "king");
    EXPECT_INT(pack_get_kind(p), PACK_KING);
    EXPECT_INT(pack_king(p)->n_layer, 5);
    EXPECT_INT(pack_king(p)->n_attention, 1);
    EXPECT_INT(pack_config(p)->generation.n_eos, 2);
    int64_t zeros = 0, all = 0;
    double squares = 0.0;
    for (size_t i = 0; i < pack_plan(p)->count; i++) {
        const plan_entry *t = &pack_plan(p)->entries[i];
        matrix m;
        error e = { 0 };
        if (!t->is_matrix || t->is_embedding) continue;
        EXPECT_OK(pack_matrix(p, t->name, t->shape[0], t->shape[1], &m, &e), e);
        if (m.format.mode == QUANT_DENSE) continue;
        EXPECT_INT(m.block, 512);
        float row[1536];
        for (int64_t r = 0; r < m.out; r++) {
            EXPECT(matrix_row_is_ternary(&m, r, NULL));
            matrix_row_f32(&m, r, DTYPE_F32, row);
            for (int64_t c = 0; c < m.in; c++) {
                zeros += row[c] == 0.0f;
                squares += (double)row[c] * (double)row[c] * (double)m.in;
            }
            all += m.in;
        }
    }
    const double rate = (double)zeros / (double)all, gain = squares / (double)all;
    EXPECT(rate > 0.32 && rate < 0.345);
    EXPECT(gain > 0.9 && gain < 1.15);
    pack_close(p);
    kit_free(&k);
}

TEST(drafters_open_and_fit_the_king)
{
    const kit k = kit_new(NULL);
    write_shape(&k, "king", king_shape, 7);
    pack *king = open_at(&k, "king");
    static const int bits[] = { 16, 8, 4, 3 };
    for (int i = 0; i < 4; i++) {
        char shape[1024], name[32];
        error e = { 0 };
        snprintf(shape, sizeof shape, drafter_shape, bits[i]);
        snprintf(name, sizeof name, "drafter-%d", bits[i]);
        write_shape(&k, name, shape, 7);
        pack *d = open_at(&k, name);
        EXPECT_OK(config_check_pair(pack_drafter(d), pack_king(king), &e), e);
        matrix m;
        EXPECT_OK(pack_matrix(d, "fc", 512, 1024, &m, &e), e);
        EXPECT_INT(m.format.bits, bits[i] == 16 ? 0 : bits[i]);
        float row[1024];
        double sum = 0.0, squares = 0.0;
        for (int r = 0; r < 512; r++) {
            matrix_row_f32(&m, r, DTYPE_F32, row);
            for (int c = 0; c < 1024; c++) {
                sum += (double)row[c];
                squares += (double)row[c] * (double)row[c];
            }
        }
        EXPECT(sum / 512 > -2.0 && sum / 512 < 2.0);
        EXPECT(squares / 512 > 0.85 && squares / 512 < 1.2);
        pack_close(d);
    }
    pack_close(king);
    kit_free(&k);
}

TEST(same_seed_same_bytes)
{
    const kit k = kit_new(NULL);
    write_shape(&k, "a", king_shape, 7);
    write_shape(&k, "b", king_shape, 7);
    write_shape(&k, "c", king_shape, 8);
    static const char *const names[] = { "model.safetensors", "config.json", "hadamard.json",
                                         "tokenizer.json" };
    for (int i = 0; i < 4; i++) {
        char path[3][64];
        buf b[3];
        for (int j = 0; j < 3; j++) {
            snprintf(path[j], sizeof path[j], "%c/%s", 'a' + j, names[i]);
            b[j] = kit_read(kit_path(&k, path[j]));
        }
        EXPECT(str_eq(buf_view(&b[0]), buf_view(&b[1])));
        if (i == 0) EXPECT(!str_eq(buf_view(&b[0]), buf_view(&b[2])));
        for (int j = 0; j < 3; j++) buf_free(&b[j]);
    }
    kit_free(&k);
}

TEST(its_tokenizer_knows_every_row)
{
    const kit k = kit_new(NULL);
    write_shape(&k, "king", king_shape, 7);
    tokenizer *t = NULL;
    error e = { 0 };
    EXPECT_OK(tokenizer_open(&t, kit_path(&k, "king"), &e), e);
    EXPECT_INT(tokenizer_vocab_size(t), 600);
    for (int32_t id = 0; id < 600; id++) EXPECT(tokenizer_bytes(t, id).len > 0);
    tokenizer_ids ids = { 0 };
    const str text = STR("<|im_start|>h\xc3\xa9\n\x01<|im_end|>");
    EXPECT_OK(tokenizer_encode(t, text, TOKENIZER_ALL, &ids, &e), e);
    char back[64];
    size_t n = 0;
    for (size_t i = 0; i < ids.len; i++) {
        const str piece = tokenizer_bytes(t, ids.ptr[i]);
        memcpy(back + n, piece.ptr, piece.len);
        n += piece.len;
    }
    EXPECT(str_eq((str){ back, n }, text));
    EXPECT_INT(ids.ptr[0], 600 - 12 + 1);
    tokenizer_ids_free(&ids);
    tokenizer_close(t);
    kit_free(&k);
}

static void refused(const char *shape, const char *message)
{
    const kit k = kit_new(NULL);
    error e = { 0 };
    kit_write(&k, "shape.json", str_from(shape));
    const synth_options o = { .shape = kit_path(&k, "shape.json") };
    const status s = synth_write(kit_path(&k, "out"), &o, &e);
    if (s != E_ARG || !strstr(e.text, message))
        FAIL("status %d \"%s\", want \"%s\"", (int)s, e.text, message);
    EXPECT(!file_exists(kit_path(&k, "out/model.safetensors")));
    EXPECT_INT(mem_live(), 0);
    kit_free(&k);
}

TEST(shapes_that_cannot_be)
{
    refused("{}", "kind: want \"king\" or \"drafter\"");
    refused("{\"kind\":\"king\",\"hidden_size\":5000}", "width 5000 is no multiple of 1024");
    refused("{\"kind\":\"king\",\"block\":256}", "block 256, want 0, 512");
    refused("{\"kind\":\"king\",\"num_hidden_layers\":513}", "found 513 layers, want 4 to 512");
    refused("{\"kind\":\"king\",\"vocab_size\":100}", "vocab_size: found 100, want at least 512");
    refused("{\"kind\":\"king\",\"num_key_value_heads\":7}", "24 heads on 7");
    refused("{\"kind\":\"drafter\",\"bits\":7}", "bits: found 7, want 2 to 6, 8 or 16");
    refused("{\"kind\":\"drafter\",\"bits\":1}", "bits: found 1, want 2 to 6, 8 or 16");
    refused("{\"kind\":\"drafter\",\"target_layer_ids\":[5,64]}", "want a layer below 64");
    refused("{\"kind\":\"drafter\",\"hidden_size\":5130,\"conv_group_size\":10}",
            "no multiple of 64");
}

TEST(every_allocation_may_fail)
{
    const kit k = kit_new(NULL);
    char shape[1024];
    snprintf(shape, sizeof shape, drafter_shape, 4);
    kit_write(&k, "shape.json", str_from(shape));
    char path[512], out[512];
    snprintf(path, sizeof path, "%s", kit_path(&k, "shape.json"));
    snprintf(out, sizeof out, "%s", kit_path(&k, "out"));
    const synth_options o = { .shape = path };
    status s = E_NOMEM;
    for (int n = 1; s != OK; n += n < 100 ? 1 : 37) {
        error e = { 0 };
        mem_fail_after(n);
        s = synth_write(out, &o, &e);
        mem_fail_after(0);
        if (s != OK && s != E_NOMEM) FAIL("at %d: status %d: %s", n, (int)s, e.text);
        if (s != OK) EXPECT(!file_exists(out));
        EXPECT_INT(mem_live(), 0);
    }
    kit_free(&k);
}
