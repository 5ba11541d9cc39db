/* The rotation contract of a king, broken in one place at a time. */
#include "packkit.h"

static const char CONFIG[] = "config.json", SIGNS[] = "hadamard.json";
#define UP "language_model.model.layers.1.mlp.up_proj"

TEST(king_configs_that_break_the_contract)
{
    static const kit_damage list[] = {
        { CONFIG,
          "\"schema_version\": 2",
          "\"schema_version\": 3",
          { 0 },
          E_FORMAT,
          "schema_version: found 3, want 1 to 2" },
        { CONFIG,
          "\"schema_version\": 2",
          "\"schema_version\": 1",
          { 0 },
          E_UNSUPPORTED,
          "tensor_namespace" },
        { CONFIG,
          "mlx-vlm-qwen3_5",
          "other",
          { 0 },
          E_UNSUPPORTED,
          "tensor_namespace: found \"other\"" },
        { CONFIG,
          "\"gdn_activation_layout\": \"grouped\",",
          "",
          { 0 },
          E_FORMAT,
          "gdn_activation_layout: found nothing" },
        { CONFIG, "\"grouped\"", "\"interleaved\"", { 0 }, E_UNSUPPORTED, "want \"grouped\"" },
        { CONFIG,
          "\"base_model_type\": \"qwen3_5\"",
          "\"base_model_type\": \"qwen3\"",
          { 0 },
          E_UNSUPPORTED,
          "base_model_type" },
        { CONFIG,
          "\"mtp\": false",
          "\"mtp\": true",
          { 0 },
          E_UNSUPPORTED,
          "components.mtp: found true" },
        { CONFIG, "\"bits\": 2", "\"bits\": 4", { 0 }, E_UNSUPPORTED, "want affine 2-bit g128" },
        { CONFIG,
          "\"group_size\": 128",
          "\"group_size\": 64",
          { 0 },
          E_UNSUPPORTED,
          "found affine 2-bit g64" },
        { CONFIG,
          "\"bits\": 2",
          "\"bits\": 7",
          { 0 },
          E_UNSUPPORTED,
          "affine with 7 bits and groups of 128 does not exist" },
        { CONFIG,
          "\"mode\": \"affine\"",
          "\"mode\": \"mxfp4\"",
          { 0 },
          E_UNSUPPORTED,
          "does not exist" },
        { CONFIG,
          "\"mode\": \"affine\"",
          "\"mode\": \"fp3\"",
          { 0 },
          E_UNSUPPORTED,
          "unknown mode \"fp3\"" },
        { CONFIG,
          "\"tie_word_embeddings\": false,\n  \"use_cache\"",
          "\"tie_word_embeddings\": true,\n  \"use_cache\"",
          { 0 },
          E_UNSUPPORTED,
          "a king has its own head" },
        { CONFIG,
          "\"mtp_num_hidden_layers\": 0",
          "\"num_experts\": 8",
          { 0 },
          E_UNSUPPORTED,
          "num_experts: found 8" },
        { CONFIG,
          "\"block\": 512",
          "\"block\": 256",
          { 0 },
          E_UNSUPPORTED,
          "module lm_head: block 256, want 0, 512" },
        { CONFIG,
          "\"block\": 512",
          "\"block\": 1024",
          { 0 },
          E_UNSUPPORTED,
          "want 1024 as in the others" },
        { CONFIG,
          "\"float16\"",
          "\"bfloat16\"",
          { 0 },
          E_UNSUPPORTED,
          "module lm_head: dtype \"bfloat16\"" },
        { CONFIG, "\"embedding\": true", "\"embedding\": false", { 0 }, E_FORMAT, "weight_names" },
        { CONFIG,
          "layers.3.mlp.up_proj",
          "layers.2.mlp.up_proj",
          { 0 },
          E_FORMAT,
          "is listed twice" },
        { CONFIG,
          "layers.3.mlp.up_proj",
          "layers.9.mlp.up_proj",
          { 0 },
          E_FORMAT,
          "is not a rotated module of the config" },
        { CONFIG, "\"hadamard.json\"", "\"../hadamard.json\"", { 0 }, E_FORMAT, "hadamard_config" },
        { CONFIG, "\"hadamard.json\"", "\"other.json\"", { 0 }, E_IO, "other.json" },
        { CONFIG, "\"modules\"", "\"modulus\"", { 0 }, E_FORMAT, "modules: found nothing" },
        { CONFIG,
          "\"prism_hadamard_qwen35\"",
          "\"llama\"",
          { 0 },
          E_UNSUPPORTED,
          "model_type \"llama\"" },
        { CONFIG, "\"schema_version\"", "\"schema_version", { 0 }, E_FORMAT, "config.json" },
    };
    KIT_ALL_REFUSED("king-tiny", list);
}

TEST(king_signs_that_break_the_contract)
{
    static const kit_damage list[] = {
        { SIGNS, "version\": 1", "version\": 2", { 0 }, E_UNSUPPORTED, "version: found 2, want 1" },
        { SIGNS, "normalized-sylvester", "sequency", { 0 }, E_UNSUPPORTED, "transform" },
        { SIGNS, "input-last-dimension", "output", { 0 }, E_UNSUPPORTED, "axis" },
        { SIGNS,
          "\"explicit\"",
          "\"identity\"",
          { 0 },
          E_UNSUPPORTED,
          "sign_mode: found \"identity\"" },
        { SIGNS,
          "prism.hadamard.sign_mode",
          "sign_mode",
          { 0 },
          E_FORMAT,
          "sign_mode: found nothing" },
        { SIGNS,
          "block_size\": 512",
          "block_size\": 1024",
          { 0 },
          E_FORMAT,
          "found 1024, but modules[] say 512" },
        { SIGNS,
          "\"prism.hadamard.gdn_v_grouped\": true",
          "\"prism.hadamard.gdn_v_grouped\": false",
          { 0 },
          E_UNSUPPORTED,
          "gdn_v_grouped" },
        { SIGNS,
          "language_model.lm_head.weight",
          "language_model.lm_tail.weight",
          { 0 },
          E_FORMAT,
          "lm_tail.weight\" is not a rotated module" },
        { SIGNS,
          "language_model.lm_head.weight",
          "language_model.model.layers.0.mlp.up_proj.weight",
          { 0 },
          E_FORMAT,
          "or twice" },
        { SIGNS, "[512, 1024]", "[512, 1023]", { 0 }, E_FORMAT, "1536 sign_values, want 1535" },
        { SIGNS, "[512, 1024]", "[512, 512]", { 0 }, E_FORMAT, "sign_widths[1]" },
        { SIGNS, "[512, 1024]", "[512, 2048]", { 0 }, E_FORMAT, "sign_widths[1]: 2048 with 1024" },
        { SIGNS, "[512, 1024]", "[512, 1024, 0]", { 0 }, E_FORMAT, "sign_widths[2]" },
        { SIGNS,
          "\"prism.hadamard.sign_values\": [1, -1",
          "\"prism.hadamard.sign_values\": [1, 0",
          { 0 },
          E_FORMAT,
          "sign_values[1]: found 0, want 1 or -1" },
        { SIGNS,
          "\"prism.hadamard.sign_values\": [1, -1",
          "\"prism.hadamard.sign_values\": [-1, -1",
          { 0 },
          E_FORMAT,
          "sign 0 is 1, want -1 as in hadamard.json" },
        { .change = SET(UP ".signs", 5, 0.5f),
          .want = E_FORMAT,
          .message = UP ".signs: sign 5 is 0.5, want 1 or -1" },
        { .change = DROP(UP ".signs"), .want = E_FORMAT, .message = "up_proj.signs is missing" },
        { .change = DTYPE(UP ".signs", DTYPE_I32),
          .want = E_FORMAT,
          .message = UP ".signs: dtype I32, want F32" },
        { .change = SHAPE(UP ".signs", 2, 2, 256),
          .want = E_FORMAT,
          .message = UP ".signs: shape [2, 256], want [512]" },
        { .change =
              ADD("language_model.model.layers.0.linear_attn.in_proj_a.signs", DTYPE_F32, 1, 512),
          .want = E_FORMAT,
          .message = "belongs to no weight" },
    };
    KIT_ALL_REFUSED("king-tiny", list);
    const kit k = kit_new("king-tiny");
    EXPECT(remove(kit_path(&k, SIGNS)) == 0);
    kit_refused(&k, E_IO, "hadamard.json");
    kit_free(&k);
}

#define ENTRY "{\"path\": \"model.layers.3.mlp.up_proj\", \"block\": 512, "
#define LISTED "\"language_model.model.layers.3.mlp.up_proj.weight\", "

TEST(king_modules_and_tensors_must_agree)
{
    /* Packed, and neither file speaks of it. */
    kit k = kit_new("king-tiny");
    kit_edit(&k, CONFIG, ENTRY "\"embedding\": false, \"dtype\": \"float16\"},", "");
    kit_edit(&k, SIGNS, LISTED, "");
    kit_refused(&k, E_FORMAT,
                "module model.layers.3.mlp.up_proj is packed but not listed in modules[]");
    kit_free(&k);
    /* Listed with block 0: packed, not rotated, and then without signs. */
    k = kit_new("king-tiny");
    kit_edit(&k, CONFIG, ENTRY, "{\"path\": \"model.layers.3.mlp.up_proj\", \"block\": 0, ");
    kit_edit(&k, SIGNS, LISTED, "");
    kit_refused(&k, E_FORMAT, "signs of a module that is not rotated");
    const kit_change drop = DROP("language_model.model.layers.3.mlp.up_proj.signs");
    kit_tensor(&k, "model.safetensors", &drop);
    pack *p = NULL;
    matrix m;
    error e = { 0 };
    EXPECT_OK(pack_open(&p, k.folder, NULL, &e), e);
    EXPECT_OK(pack_matrix(p, "model.layers.3.mlp.up_proj", 1024, 512, &m, &e), e);
    EXPECT(m.block == 0 && !m.signs && m.format.bits == 2);
    pack_close(p);
    /* Listed, and no module at all; or one that is dense in the files. */
    kit_edit(&k, CONFIG, "model.layers.3.mlp.up_proj", "model.layers.9.mlp.up_proj");
    kit_refused(&k, E_FORMAT, "modules[]: model.layers.9.mlp.up_proj is no module of this model");
    kit_edit(&k, CONFIG, "model.layers.9.mlp.up_proj", "model.layers.0.linear_attn.in_proj_a");
    kit_refused(&k, E_UNSUPPORTED, "module model.layers.0.linear_attn.in_proj_a is dense");
    kit_free(&k);
}

/* The king's tensors under a plain pack's model type: fluent nonsense in loaders that ignore the
 * signs. */
TEST(R081_rotation_signs_without_a_contract)
{
    const kit k = kit_new("king-tiny");
    kit_edit(&k, CONFIG, "\"prism_hadamard_qwen35\"", "\"qwen3_5\"");
    kit_refused(&k, E_UNSUPPORTED, "rotation signs, but");
    kit_free(&k);
}

/* The config and skipped parts of a king pack vary; schema 1 has bare names and fewer fields. */
TEST(king_of_schema_one)
{
    const kit k = kit_new("king-tiny");
    safetensors s;
    safetensors_writer *w;
    error e = { 0 };
    EXPECT_OK(safetensors_open(&s, kit_path(&k, "model.safetensors"), &e), e);
    EXPECT_OK(safetensors_writer_new(&w, &e), e);
    const str prefix = STR("language_model.");
    for (size_t i = 0; i < s.count; i++) {
        tensor *t = &s.tensors[i];
        if (!str_starts(t->name, prefix)) continue;
        EXPECT_OK(safetensors_writer_declare(w, str_sub(t->name, prefix.len, t->name.len), t->type,
                                             t->rank, t->shape, &t->file, &e),
                  e);
    }
    EXPECT_OK(safetensors_writer_begin(w, kit_path(&k, "model.safetensors"), &e), e);
    for (size_t i = 0; i < s.count; i++) {
        const tensor *t = &s.tensors[i];
        if (!str_starts(t->name, prefix)) continue;
        EXPECT_OK(safetensors_writer_put(w, t->file, 0, t->data, t->bytes, &e), e);
    }
    EXPECT_OK(safetensors_writer_commit(w, &e), e);
    safetensors_close(&s);
    kit_edit(&k, CONFIG, "\"schema_version\": 2", "\"schema_version\": 1");
    kit_edit(&k, CONFIG, "\"base_model_type\": \"qwen3_5\",", "");
    kit_edit(&k, CONFIG, "\"tensor_namespace\": \"mlx-vlm-qwen3_5\",", "");
    kit_edit(&k, CONFIG, "\"gdn_activation_layout\": \"grouped\",", "");
    kit_edit(&k, CONFIG, "\"components\": {\"text\": true, \"vision\": true, \"mtp\": false},", "");
    kit_opens(&k);
    kit_free(&k);
}
