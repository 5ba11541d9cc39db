/* Folders, shards and tensors: each is a golden pack with one thing changed, and each is refused by
 * name. What is tolerated stands in tests of its own. */
#include "packkit.h"

static const char CONFIG[] = "config.json";
static const char SECOND[] = "model-00002-of-00002.safetensors";
static const char INDEX[] = "model.safetensors.index.json";
#define UP "language_model.model.layers.1.mlp.up_proj"

TEST(king_tensors_that_do_not_fit)
{
    static const kit_damage list[] = {
        { .change = DROP(UP ".weight"),
          .want = E_FORMAT,
          .message = "model.layers.1.mlp.up_proj.weight is missing" },
        { .change = DROP(UP ".scales"), .want = E_FORMAT, .message = "up_proj.scales is missing" },
        { .change = DROP(UP ".biases"), .want = E_FORMAT, .message = "up_proj.biases is missing" },
        { .change = DTYPE(UP ".biases", DTYPE_BF16),
          .want = E_FORMAT,
          .message = UP ".biases: dtype BF16, want F16" },
        { .change = DTYPE(UP ".weight", DTYPE_I32),
          .want = E_FORMAT,
          .message = UP ".weight: dtype I32, want U32" },
        { .change = SHAPE(UP ".weight", 2, 512, 64),
          .want = E_FORMAT,
          .message = UP ".weight: shape [512, 64], want [1024, 64]" },
        { .change = SHAPE(UP ".scales", 2, 512, 8),
          .want = E_FORMAT,
          .message = UP ".scales: shape [512, 8]" },
        { .change = SHAPE(UP ".biases", 1, 4096),
          .want = E_FORMAT,
          .message = UP ".biases: shape [4096], want [1024, 4]" },
        { .change = DROP("language_model.model.norm.weight"),
          .want = E_FORMAT,
          .message = "model.norm.weight is missing" },
        { .change = SHAPE("language_model.model.norm.weight", 2, 1, 512),
          .want = E_FORMAT,
          .message = "norm.weight: shape [1, 512], want [512]" },
        { .change = DTYPE("language_model.model.norm.weight", DTYPE_I32),
          .want = E_FORMAT,
          .message = "norm.weight: dtype I32" },
        { .change = SHAPE("language_model.model.layers.1.linear_attn.conv1d.weight", 3, 1024, 1, 4),
          .want = E_FORMAT,
          .message = "shape [1024, 1, 4], want [1024, 4, 1]" },
        { .change = ADD("language_model.model.layers.1.mlp.up_proj.bias", DTYPE_F32, 1, 1024),
          .want = E_UNSUPPORTED,
          .message = "output bias" },
        { .change = ADD("language_model.model.extra.weight", DTYPE_F32, 1, 4),
          .want = E_FORMAT,
          .message = "extra.weight: belongs to no weight of this model" },
        { .change = ADD("model.norm.weight", DTYPE_F32, 1, 512),
          .want = E_FORMAT,
          .message = "is also" },
        { CONFIG,
          "{\"path\": \"model.layers.1.mlp.up_proj\", \"block\": 512,",
          "{\"path\": \"model.layers.1.mlp.up_proj\", \"block\": 0,",
          { 0 },
          E_FORMAT,
          "weight_names" },
        { CONFIG,
          "\"hidden_size\": 512",
          "\"hidden_size\": 1024",
          { 0 },
          E_FORMAT,
          "32 words a row and groups of 256 for 1024 weights" },
        { CONFIG, "\"vocab_size\": 1024", "\"vocab_size\": 1025", { 0 }, E_FORMAT, "want [1025," },
        { CONFIG,
          "\"linear_num_value_heads\": 4",
          "\"linear_num_value_heads\": 6",
          { 0 },
          E_FORMAT,
          "want [1280," },
    };
    KIT_ALL_REFUSED("king-tiny", list);
}

TEST(R086_head_by_the_tensors_present)
{
    /* Tied, and a head is there too: the embedding serves, the head is left aside. */
    kit k = kit_new("qwen35-tiny-bf16");
    kit_edit(&k, CONFIG, "\"tie_word_embeddings\": false", "\"tie_word_embeddings\": true");
    kit_edit(&k, CONFIG, "\"tie_word_embeddings\": false", "\"tie_word_embeddings\": true");
    pack *p = NULL;
    error e = { 0 };
    EXPECT_OK(pack_open(&p, k.folder, NULL, &e), e);
    EXPECT_INT(pack_skipped_bytes(p), 512 * 64 * 2);
    pack_close(p);
    kit_tensor(&k, "model.safetensors", &(const kit_change)DROP("language_model.lm_head.weight"));
    kit_opens(&k);
    kit_free(&k);
    /* Not tied, and it is not there. */
    k = kit_new("qwen35-tiny-mxfp4");
    kit_edit(&k, CONFIG, "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false");
    kit_edit(&k, CONFIG, "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false");
    kit_refused(&k, E_FORMAT, "tensor lm_head.weight is missing");
    kit_free(&k);
    /* A bare prefix instead of the usual one, dense head beside quantized layers. */
    k = kit_new("qwen35-tiny-bf16");
    kit_tensor(&k, "model.safetensors",
               &(const kit_change)RENAME("language_model.lm_head.weight", "lm_head.weight"));
    kit_tensor(&k, "model.safetensors",
               &(const kit_change)RENAME("language_model.model.norm.weight", "model.norm.weight"));
    kit_opens(&k);
    kit_free(&k);
}

TEST(shards_and_their_index)
{
    static const kit_damage list[] = {
        { INDEX,
          "model-00001-of-00002.safetensors",
          "model-00003-of-00003.safetensors",
          { 0 },
          E_FORMAT,
          "its shard \"model-00003-of-00003.safetensors\" is not in the folder" },
        { INDEX,
          "model-00001-of-00002.safetensors",
          "../model-00001-of-00002.safetensors",
          { 0 },
          E_FORMAT,
          "its shard \"../model-00001-of-00002.safetensors\" is not in the folder" },
        { INDEX,
          "model-00001-of-00002.safetensors",
          "model-00002-of-00002.safetensors",
          { 0 },
          E_FORMAT,
          "not in model-00002-of-00002.safetensors" },
        { INDEX,
          "\"language_model.lm_head.biases\": \"model-00001-of-00002.safetensors\", ",
          "",
          { 0 },
          E_FORMAT,
          "tensors in the index" },
        { INDEX,
          "\"language_model.lm_head.biases\"",
          "\"language_model.lm_head.scales\"",
          { 0 },
          E_FORMAT,
          "index.json" },
        { INDEX, "weight_map", "weights", { 0 }, E_FORMAT, "weight_map is nothing" },
    };
    KIT_ALL_REFUSED("qwen35-tiny-affine4", list);
    kit k = kit_new("qwen35-tiny-affine4");
    buf b = kit_read(kit_path(&k, SECOND));
    kit_write(&k, "model-00003-of-00003.safetensors", buf_view(&b));
    buf_free(&b);
    kit_refused(&k, E_FORMAT,
                "model-00003-of-00003.safetensors is in the folder but not in the index");
    kit_free(&k);
    k = kit_new("qwen35-tiny-affine4");
    EXPECT(remove(kit_path(&k, SECOND)) == 0);
    kit_refused(&k, E_FORMAT,
                "its shard \"model-00002-of-00002.safetensors\" is not in the folder");
    kit_free(&k);
    k = kit_new("qwen35-tiny-affine4");
    EXPECT(remove(kit_path(&k, INDEX)) == 0);
    kit_refused(&k, E_IO, "no model.safetensors here or in dflash/");
    EXPECT(rename(kit_path(&k, "model-00001-of-00002.safetensors"),
                  kit_path(&k, "model.safetensors")) == 0);
    kit_refused(&k, E_FORMAT, "2 weight files and no model.safetensors.index.json");
    kit_free(&k);
}

TEST(folders_that_are_none)
{
    kit k = kit_new(NULL);
    kit_refused(&k, E_IO, "no model.safetensors here or in dflash/");
    kit_write(&k, "model.safetensors", STR("0123456789"));
    kit_refused(&k, E_FORMAT, "header of");
    kit_free(&k);
    pack *p = NULL;
    error e = { 0 };
    EXPECT_INT(pack_open(&p, k.folder, NULL, &e), E_IO);
    EXPECT(strstr(e.text, "no such folder"));
    EXPECT_INT(pack_open(&p, KIT_PACKS "drafter-tiny-q4-loose", "/no/config.json", &e), E_IO);
    EXPECT(strstr(e.text, "/no/config.json"));
    k = kit_new("qwen35-tiny-bf16");
    EXPECT(remove(kit_path(&k, CONFIG)) == 0);
    kit_refused(&k, E_IO, "no config.json, and the tensors are not a DFlash 2 drafter's");
    kit_free(&k);
}

TEST(identity_follows_content_only)
{
    const kit a = kit_new("king-tiny"), b = kit_new("king-tiny");
    pack *p = NULL, *q = NULL;
    error e = { 0 };
    EXPECT_OK(pack_open(&p, a.folder, NULL, &e), e);
    EXPECT_OK(pack_open(&q, b.folder, NULL, &e), e);
    EXPECT_STR(pack_identity(p), pack_identity(q));
    pack_close(q);
    kit_edit(&b, "generation_config.json", "1014", "1015");
    EXPECT_OK(pack_open(&q, b.folder, NULL, &e), e);
    EXPECT_STR(pack_identity(p), pack_identity(q));
    pack_close(q);
    kit_edit(&b, CONFIG, "4096", "8192");
    EXPECT_OK(pack_open(&q, b.folder, NULL, &e), e);
    EXPECT(strcmp(pack_identity(p), pack_identity(q)) != 0);
    pack_close(q);
    pack_close(p);
    kit_free(&a);
    kit_free(&b);
}

TEST(asking_for_what_is_not_there)
{
    pack *p = NULL;
    error e = { 0 };
    matrix m;
    float x[512];
    EXPECT_OK(pack_open(&p, KIT_PACKS "king-tiny", NULL, &e), e);
    EXPECT_INT(pack_matrix(p, "model.layers.3.mlp.up_proj", 1024, 511, &m, &e), E_FORMAT);
    EXPECT(strstr(e.text, "[1024, 512], want [1024, 511]"));
    EXPECT_INT(pack_matrix(p, "model.layers.9.mlp.up_proj", 1024, 512, &m, &e), E_FORMAT);
    EXPECT_INT(pack_matrix(p, "model.norm.weight", 1, 512, &m, &e), E_FORMAT);
    const int64_t wide = 512, less = 511;
    EXPECT_INT(pack_values(p, "lm_head", 1, &wide, x, &e), E_FORMAT);
    EXPECT_INT(pack_values(p, "model.norm.weight", 1, &less, x, &e), E_FORMAT);
    EXPECT_OK(pack_values(p, "model.norm.weight", 1, &wide, x, &e), e);
    EXPECT_OK(pack_matrix(p, "lm_head", 1024, 512, &m, &e), e);
    const unsigned code = quant_code(m.weight->data, 2, 100);
    pack_drop(p, &m);
    EXPECT_INT(quant_code(m.weight->data, 2, 100), code);
    pack_close(p);
}

/* One byte of header or config at a time, anywhere: opened or refused, never worse. */
TEST(a_byte_changed_anywhere)
{
    static const char *const files[] = { "model.safetensors", "config.json", "hadamard.json" };
    const kit k = kit_new("king-tiny");
    rng r = { 5 };
    int opened = 0, rejected = 0;
    buf weights = kit_read(kit_path(&k, files[0]));
    uint64_t header;
    memcpy(&header, weights.ptr, 8);
    kit_write(&k, files[0], buf_view(&weights)); /* no link to the original any more */
    buf_free(&weights);
    for (int round = 0; round < 600; round++) {
        const char *name = files[round % 3];
        buf text = kit_read(kit_path(&k, name));
        const size_t most = round % 3 ? text.len : 8 + (size_t)header;
        const size_t at = rng_below(&r, (uint32_t)most);
        const char old = text.ptr[at];
        const char now = rng_below(&r, 2) ? (char)rng_next(&r) : (char)(old ^ 1);
        FILE *f = fopen(kit_path(&k, name), "r+b");
        EXPECT(f && fseek(f, (long)at, SEEK_SET) == 0 && fputc(now, f) != EOF && fclose(f) == 0);
        buf_free(&text);
        pack *p = NULL;
        error e = { 0 };
        const status s = pack_open(&p, k.folder, NULL, &e);
        EXPECT((s == OK) == (p != NULL) && (s == OK || (e.text[0] && !strchr(e.text, '\n'))));
        opened += s == OK;
        rejected += s != OK;
        pack_close(p);
        EXPECT_INT(mem_live(), 0);
        f = fopen(kit_path(&k, name), "r+b");
        EXPECT(f && fseek(f, (long)at, SEEK_SET) == 0 && fputc(old, f) != EOF && fclose(f) == 0);
    }
    EXPECT(opened > 20 && rejected > 200);
    kit_free(&k);
}

TEST(every_allocation_of_opening_may_fail)
{
    static const char *const packs[] = { "king-tiny", "qwen35-tiny-affine4", "drafter-tiny-q8" };
    for (int i = 0; i < 3; i++) {
        char folder[512];
        snprintf(folder, sizeof folder, KIT_PACKS "%s", packs[i]);
        status s = E_NOMEM;
        /* every one of the first 300 and a sample of the many small ones of the parser after
         * them */
        for (int n = 1; s != OK; n += n < 300 ? 1 : 13) {
            pack *p = NULL;
            error e = { 0 };
            mem_fail_after(n);
            s = pack_open(&p, folder, NULL, &e);
            mem_fail_after(0);
            if (s != OK && s != E_NOMEM)
                FAIL("%s at %d: status %d: %s", packs[i], n, (int)s, e.text);
            EXPECT((s == OK) == (p != NULL));
            pack_close(p);
            EXPECT_INT(mem_live(), 0);
        }
    }
}
