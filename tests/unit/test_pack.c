/* Damaged packs: each is a golden pack with one thing changed, and each is refused by name. What is
 * tolerated stands in tests of its own. */
#include "packkit.h"
#include "base/mem.h"
#include "pack/pack.h"

typedef struct damage {
    const char *file, *old, *now; /* edit of a text file; file NULL: none */
    kit_change change;            /* of model.safetensors; tensor NULL: none */
    status want;
    const char *message;
} damage;

#define DROP(t)                     \
    {                               \
        .op = KIT_DROP, .tensor = t \
    }
#define RENAME(t, n)                             \
    {                                            \
        .op = KIT_RENAME, .tensor = t, .name = n \
    }
#define DTYPE(t, d)                             \
    {                                           \
        .op = KIT_DTYPE, .tensor = t, .type = d \
    }
#define SHAPE(t, r, ...)                                                  \
    {                                                                     \
        .op = KIT_SHAPE, .tensor = t, .rank = r, .shape = { __VA_ARGS__ } \
    }
#define ADD(t, d, r, ...)                                                          \
    {                                                                              \
        .op = KIT_ADD, .tensor = t, .type = d, .rank = r, .shape = { __VA_ARGS__ } \
    }
#define SET(t, i, v)                                    \
    {                                                   \
        .op = KIT_F32, .tensor = t, .at = i, .value = v \
    }

static void apply(const kit *k, const damage *d)
{
    if (d->file) kit_edit(k, d->file, d->old, d->now);
    if (d->change.tensor) kit_tensor(k, "model.safetensors", &d->change);
}

static void refused(const kit *k, status want, const char *message)
{
    pack *p = NULL;
    error e = { 0 };
    const status s = pack_open(&p, k->folder, NULL, &e);
    if (s != want || p || !strstr(e.text, message)) {
        FAIL("status %d \"%s\", want %d with \"%s\"", (int)s, e.text, (int)want, message);
    }
    EXPECT(!strchr(e.text, '\n'));
    EXPECT(strstr(e.text, k->folder) || strstr(e.text, "drafter:"));
    EXPECT_INT(mem_live(), 0);
}

static void opens(const kit *k)
{
    pack *p = NULL;
    error e = { 0 };
    EXPECT_OK(pack_open(&p, k->folder, NULL, &e), e);
    pack_close(p);
}

static void all_refused(const char *name, const damage *d, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const kit k = kit_new(name);
        apply(&k, &d[i]);
        refused(&k, d[i].want, d[i].message);
        kit_free(&k);
    }
}
#define ALL_REFUSED(name, list) all_refused(name, list, sizeof(list) / sizeof *(list))

static const char CONFIG[] = "config.json", SIGNS[] = "hadamard.json";
#define UP "language_model.model.layers.1.mlp.up_proj"

TEST(king_configs_that_break_the_contract)
{
    static const damage list[] = {
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
    ALL_REFUSED("king-tiny", list);
}

TEST(king_signs_that_break_the_contract)
{
    static const damage list[] = {
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
    ALL_REFUSED("king-tiny", list);
    const kit k = kit_new("king-tiny");
    EXPECT(remove(kit_path(&k, SIGNS)) == 0);
    refused(&k, E_IO, "hadamard.json");
    kit_free(&k);
}

TEST(king_tensors_that_do_not_fit)
{
    static const damage list[] = {
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
    ALL_REFUSED("king-tiny", list);
}

/* The king's tensors under a plain pack's model type: fluent nonsense in loaders that ignore the
 * signs. */
TEST(R081_rotation_signs_without_a_contract)
{
    const kit k = kit_new("king-tiny");
    kit_edit(&k, CONFIG, "\"prism_hadamard_qwen35\"", "\"qwen3_5\"");
    refused(&k, E_UNSUPPORTED, "rotation signs, but");
    kit_free(&k);
}

TEST(plain_packs_that_do_not_fit)
{
    static const damage list[] = {
        { CONFIG,
          "\"hidden_act\": \"silu\"",
          "\"hidden_act\": \"gelu\"",
          { 0 },
          E_UNSUPPORTED,
          "hidden_act: found \"gelu\"" },
        { CONFIG,
          "\"attention_bias\": false",
          "\"attention_bias\": true",
          { 0 },
          E_UNSUPPORTED,
          "attention_bias: found true" },
        { CONFIG,
          "\"rope_type\": \"default\"",
          "\"rope_type\": \"yarn\"",
          { 0 },
          E_UNSUPPORTED,
          "rope_type: found \"yarn\"" },
        { CONFIG,
          "\"full_attention_interval\": 2",
          "\"full_attention_interval\": 4",
          { 0 },
          E_FORMAT,
          "contradicts full_attention_interval 4" },
        { CONFIG,
          "[\"linear_attention\", ",
          "[",
          { 0 },
          E_FORMAT,
          "layer_types: 3 entries, want 4" },
        { CONFIG,
          "[\"linear_attention\"",
          "[\"sliding_attention\"",
          { 0 },
          E_UNSUPPORTED,
          "unknown type \"sliding_attention\"" },
        { CONFIG,
          "\"num_hidden_layers\": 4",
          "\"num_hidden_layers\": 0",
          { 0 },
          E_FORMAT,
          "num_hidden_layers: found 0" },
        { CONFIG,
          "\"num_hidden_layers\": 4",
          "\"num_hidden_layers\": 4000000000",
          { 0 },
          E_FORMAT,
          "want 1 to 512" },
        { CONFIG,
          "\"num_hidden_layers\": 4",
          "\"num_hidden_layers\": \"4\"",
          { 0 },
          E_FORMAT,
          "found string, want an integer" },
        { CONFIG,
          "\"num_hidden_layers\": 4,",
          "",
          { 0 },
          E_FORMAT,
          "num_hidden_layers: found nothing, want an integer" },
        { CONFIG,
          "\"num_key_value_heads\": 2",
          "\"num_key_value_heads\": 3",
          { 0 },
          E_FORMAT,
          "4 heads on 3" },
        { CONFIG,
          "\"linear_num_key_heads\": 2",
          "\"linear_num_key_heads\": 3",
          { 0 },
          E_FORMAT,
          "value heads on 3" },
        { CONFIG,
          "\"partial_rotary_factor\": 0.25",
          "\"partial_rotary_factor\": 0.27",
          { 0 },
          E_FORMAT,
          "contradict" },
        { CONFIG,
          "\"eos_token_id\": 500",
          "\"eos_token_id\": 512",
          { 0 },
          E_FORMAT,
          "eos_token_id: found 512, want an id below 512" },
        { CONFIG,
          "\"eos_token_id\": 500",
          "\"eos_token_id\": \"x\"",
          { 0 },
          E_FORMAT,
          "eos_token_id: found string" },
        { CONFIG,
          "\"num_attention_heads\": 4",
          "\"num_attention_heads\": 8",
          { 0 },
          E_FORMAT,
          "q_proj.weight: shape [256, 64], want [512, 64]" },
        { "generation_config.json",
          "[502, 500]",
          "[502, 512]",
          { 0 },
          E_FORMAT,
          "generation_config.json: eos_token_id: found 512" },
        { "generation_config.json",
          "[502, 500]",
          "[502, 500",
          { 0 },
          E_FORMAT,
          "generation_config.json" },
        { "generation_config.json",
          "{",
          "{\"temperature\": -1,",
          { 0 },
          E_FORMAT,
          "temperature: found -1, want 0 to 100" },
        { .change = DROP("language_model.lm_head.weight"),
          .want = E_FORMAT,
          .message = "lm_head.weight is missing" },
        { .change = SHAPE("language_model.model.layers.2.linear_attn.conv1d.weight", 3, 256, 1, 4),
          .want = E_FORMAT,
          .message = "shape [256, 1, 4], want [256, 4, 1]" },
        { .change = DTYPE("language_model.model.embed_tokens.weight", DTYPE_U16),
          .want = E_FORMAT,
          .message = "embed_tokens.weight: dtype U16, want F16, BF16 or F32" },
        { .change = RENAME("language_model.model.norm.weight", "language_model.model.norm.gamma"),
          .want = E_FORMAT,
          .message = "model.norm.weight is missing" },
        { .change = ADD("language_model.model.rotary.inv_freq", DTYPE_F32, 1, 8),
          .want = E_FORMAT,
          .message = "inv_freq: belongs to no weight" },
    };
    ALL_REFUSED("qwen35-tiny-bf16", list);
}

TEST(R087_one_layer_type_too_many_and_unknown_keys)
{
    kit k = kit_new("qwen35-tiny-bf16");
    kit_edit(&k, CONFIG, "\"layer_types\": [", "\"future_key\": {\"a\": [1]}, \"layer_types\": [");
    kit_edit(&k, CONFIG, "\"full_attention\"]", "\"full_attention\", \"full_attention\"]");
    opens(&k);
    kit_edit(&k, CONFIG, "\"full_attention\"]", "\"full_attention\", \"full_attention\"]");
    refused(&k, E_FORMAT, "layer_types: 6 entries, want 4");
    kit_free(&k);
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
    opens(&k);
    kit_free(&k);
    /* Not tied, and it is not there. */
    k = kit_new("qwen35-tiny-mxfp4");
    kit_edit(&k, CONFIG, "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false");
    kit_edit(&k, CONFIG, "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false");
    refused(&k, E_FORMAT, "tensor lm_head.weight is missing");
    kit_free(&k);
    /* A bare prefix instead of the usual one, dense head beside quantized layers. */
    k = kit_new("qwen35-tiny-bf16");
    kit_tensor(&k, "model.safetensors",
               &(const kit_change)RENAME("language_model.lm_head.weight", "lm_head.weight"));
    kit_tensor(&k, "model.safetensors",
               &(const kit_change)RENAME("language_model.model.norm.weight", "model.norm.weight"));
    opens(&k);
    kit_free(&k);
}

#define Q3 "language_model.model.layers.3.self_attn.o_proj"
static const char SECOND[] = "model-00002-of-00002.safetensors",
                  INDEX[] = "model.safetensors.index.json";

TEST(R083_overrides_under_either_spelling)
{
    static const char old[] =
        "\"language_model.model.layers.0.mlp.down_proj\": {\"group_size\": 32, \"bits\": 8}";
    static const char *const spellings[] = {
        "\"model.language_model.layers.0.mlp.down_proj\": {\"group_size\": 32, \"bits\": 8}",
        "\"model.layers.0.mlp.down_proj\": {\"group_size\": 32, \"bits\": 8}",
        "\"language_model.model.layers.0.mlp.down_proj.weight\": {\"group_size\": 32, \"bits\": 8}",
        "\"model.layers.0.mlp.down_proj\": {\"bits\": 8, \"group_size\": 32, \"mode\": "
        "\"affine\"}, "
        "\"language_model.model.layers.0.mlp.down_proj\": {\"group_size\": 32, \"bits\": 8}",
    };
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        const kit k = kit_new("qwen35-tiny-affine4");
        kit_edit(&k, CONFIG, old, spellings[i]);
        opens(&k);
        kit_free(&k);
    }
    const kit k = kit_new("qwen35-tiny-affine4");
    kit_edit(&k, CONFIG, old, "\"x\": 1");
    refused(&k, E_FORMAT,
            "module model.layers.0.mlp.down_proj: tensors are affine 8-bit g32, but the config "
            "says affine 4-bit g64");
    kit_free(&k);
}

TEST(R084_mode_per_module)
{
    static const damage list[] = {
        { CONFIG,
          "\"bits\": 4, \"mode\": \"mxfp4\"}",
          "\"bits\": 4}",
          { 0 },
          E_FORMAT,
          "tensors are mxfp4 4-bit g32, but the config says affine 4-bit g32" },
        { CONFIG,
          "\"language_model.model.layers.0.linear_attn.in_proj_a\": false",
          "\"language_model.model.layers.0.linear_attn.in_proj_a\": true",
          { 0 },
          E_FORMAT,
          "in_proj_a: tensors are dense, but the config says affine 4-bit g64" },
        { CONFIG,
          "{\"group_size\": 64, \"bits\": 6}",
          "false",
          { 0 },
          E_FORMAT,
          "module lm_head: tensors are affine 6-bit g64, but the config says dense" },
        { CONFIG,
          "{\"group_size\": 64, \"bits\": 6}",
          "{\"bits\": 8}",
          { 0 },
          E_FORMAT,
          "but the config says affine 8-bit g64" },
        { CONFIG,
          "{\"group_size\": 64, \"bits\": 6}",
          "{\"mode\": \"mxfp8\"}",
          { 0 },
          E_FORMAT,
          "but the config says mxfp8 8-bit g32" },
        { CONFIG,
          "\"mode\": \"affine\",",
          "\"mode\": \"affine\", \"quantize_activations\": true,",
          { 0 },
          E_UNSUPPORTED,
          "quantize_activations: found true" },
    };
    ALL_REFUSED("qwen35-tiny-affine4", list);
    /* biases beside mxfp4 weights; scales of a type that is none */
    kit k = kit_new("qwen35-tiny-affine4");
    kit_tensor(&k, SECOND, &(const kit_change)ADD(Q3 ".biases", DTYPE_U8, 2, 128, 8));
    kit_edit(&k, INDEX, "\"weight_map\": {",
             "\"weight_map\": {\"" Q3 ".biases\": \"model-00002-of-00002.safetensors\", ");
    refused(&k, E_FORMAT, "biases beside mxfp4 weights");
    kit_free(&k);
    k = kit_new("qwen35-tiny-affine4");
    kit_tensor(&k, SECOND, &(const kit_change)DTYPE(Q3 ".scales", DTYPE_I8));
    refused(&k, E_FORMAT, Q3 ".scales: dtype I8");
    kit_free(&k);
}

TEST(quantization_blocks_of_other_tools)
{
    static const char old[] =
        "\"quantization\": {\"group_size\": 32, \"bits\": 4, \"mode\": \"mxfp4\"}";
    static const char twin[] =
        "\"quantization_config\": {\"group_size\": 32, \"bits\": 4, \"mode\": \"mxfp4\"}";
    kit k = kit_new("qwen35-tiny-mxfp4");
    kit_edit(&k, CONFIG, old, "\"other\": 1");
    opens(&k);
    kit_edit(&k, CONFIG, twin, "\"quantization_config\": {\"quant_method\": \"mxfp4\"}");
    opens(&k);
    kit_edit(&k, CONFIG, "{\"quant_method\": \"mxfp4\"}", "{\"quant_method\": \"awq\"}");
    refused(&k, E_UNSUPPORTED, "quant_method \"awq\": only MLX formats are read");
    kit_edit(&k, CONFIG, "{\"quant_method\": \"awq\"}", "[]");
    refused(&k, E_FORMAT, "quantization: found array");
    kit_free(&k);
}

TEST(shards_and_their_index)
{
    static const damage list[] = {
        { INDEX,
          "model-00001-of-00002.safetensors",
          "model-00003-of-00003.safetensors",
          { 0 },
          E_FORMAT,
          "its shard is not in the folder" },
        { INDEX,
          "model-00001-of-00002.safetensors",
          "../model-00001-of-00002.safetensors",
          { 0 },
          E_FORMAT,
          "its shard is not in the folder" },
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
    ALL_REFUSED("qwen35-tiny-affine4", list);
    kit k = kit_new("qwen35-tiny-affine4");
    buf b = kit_read(kit_path(&k, SECOND));
    kit_write(&k, "model-00003-of-00003.safetensors", buf_view(&b));
    buf_free(&b);
    refused(&k, E_FORMAT, "model-00003-of-00003.safetensors is in the folder but not in the index");
    kit_free(&k);
    k = kit_new("qwen35-tiny-affine4");
    EXPECT(remove(kit_path(&k, SECOND)) == 0);
    refused(&k, E_FORMAT, "its shard is not in the folder");
    kit_free(&k);
    k = kit_new("qwen35-tiny-affine4");
    EXPECT(remove(kit_path(&k, INDEX)) == 0);
    refused(&k, E_IO, "no model.safetensors here or in dflash/");
    EXPECT(rename(kit_path(&k, "model-00001-of-00002.safetensors"),
                  kit_path(&k, "model.safetensors")) == 0);
    refused(&k, E_FORMAT, "2 weight files and no model.safetensors.index.json");
    kit_free(&k);
}

TEST(folders_that_are_none)
{
    kit k = kit_new(NULL);
    refused(&k, E_IO, "no model.safetensors here or in dflash/");
    kit_write(&k, "model.safetensors", STR("0123456789"));
    refused(&k, E_FORMAT, "header of");
    kit_free(&k);
    pack *p = NULL;
    error e = { 0 };
    EXPECT_INT(pack_open(&p, k.folder, NULL, &e), E_IO);
    EXPECT(strstr(e.text, "no such folder"));
    k = kit_new("qwen35-tiny-bf16");
    EXPECT(remove(kit_path(&k, CONFIG)) == 0);
    refused(&k, E_IO, "no config.json, and the tensors are not a DFlash 2 drafter's");
    kit_free(&k);
}

/* ---- drafters ---- */

TEST(R079_drafters_of_other_dialects)
{
    static const damage list[] = {
        { CONFIG,
          "DFlash2DraftModel",
          "DFlashDraftModel",
          { 0 },
          E_UNSUPPORTED,
          "found \"DFlashDraftModel\", want \"DFlash2DraftModel\"" },
        { CONFIG,
          "DFlash2DraftModel",
          "DSparkDraftModel",
          { 0 },
          E_UNSUPPORTED,
          "\"DSparkDraftModel\"" },
        { CONFIG,
          "\"conv_kernel_size\": 2,\n  \"conv_group_size\": 64,\n  \"mask_token_id\": 1017,\n  "
          "\"selector_rank\": 64,\n  \"selector_top_k\": 8,",
          "\"mask_token_id\": 1017,",
          { 0 },
          E_UNSUPPORTED,
          "a DFlash 1 drafter" },
        { CONFIG, "\"selector_top_k\": 8,", "", { 0 }, E_FORMAT, "selector_top_k: found nothing" },
        { CONFIG, "\"selector_rank\": 64,", "", { 0 }, E_FORMAT, "selector_rank: found nothing" },
        { CONFIG,
          "\"conv_group_size\": 64,",
          "",
          { 0 },
          E_FORMAT,
          "conv_group_size: found nothing" },
        { CONFIG,
          "\"conv_group_size\": 64",
          "\"conv_group_size\": 100",
          { 0 },
          E_FORMAT,
          "100 does not divide hidden_size 512" },
        { CONFIG,
          "\"conv_kernel_size\": 2",
          "\"conv_kernel_size\": 3",
          { 0 },
          E_UNSUPPORTED,
          "conv_kernel_size: found 3, want 2" },
        { CONFIG,
          "\"is_causal\": false",
          "\"is_causal\": true",
          { 0 },
          E_UNSUPPORTED,
          "is_causal: found true, want false" },
        { CONFIG,
          "\"is_causal\": false,",
          "",
          { 0 },
          E_UNSUPPORTED,
          "is_causal: found nothing, want false" },
        { CONFIG, "[1, 3]", "[3, 1]", { 0 }, E_FORMAT, "1 after 3, want ascending ids" },
        { CONFIG, "[1, 3]", "[1, 1]", { 0 }, E_FORMAT, "want ascending ids" },
        { CONFIG, "[1, 3]", "[1, 4]", { 0 }, E_FORMAT, "want a layer below 4" },
        { CONFIG, "[1, 3]", "[-1, 3]", { 0 }, E_FORMAT, "want a layer below 4" },
        { CONFIG, "[1, 3]", "[]", { 0 }, E_FORMAT, "array of 0, want 1 to 32 layers" },
        { CONFIG,
          "\"block_size\": 8",
          "\"block_size\": 1",
          { 0 },
          E_FORMAT,
          "block_size: found 1, want 2 to 64" },
        { CONFIG,
          "\"mask_token_id\": 1017",
          "\"mask_token_id\": 1024",
          { 0 },
          E_FORMAT,
          "mask_token_id: found 1024" },
        { CONFIG, "\"mask_token_id\": 1017,", "", { 0 }, E_FORMAT, "mask_token_id: found nothing" },
        { CONFIG,
          "[\"sliding_attention\", ",
          "[\"full_attention\", ",
          { 0 },
          E_UNSUPPORTED,
          "sliding and full layers mixed" },
        { CONFIG,
          "[\"sliding_attention\", ",
          "[",
          { 0 },
          E_FORMAT,
          "layer_types: 1 entries, want 2" },
        { CONFIG, "\"sliding_window\": 32,", "", { 0 }, E_FORMAT, "sliding_window: found nothing" },
        { CONFIG, "\"rope_theta\": 10000000, ", "", { 0 }, E_FORMAT, "rope_theta: found nothing" },
        { CONFIG,
          "\"hidden_size\": 512",
          "\"hidden_size\": 256",
          { 0 },
          E_FORMAT,
          "fc.weight: shape [512, 1024], want [256, 512]" },
        { CONFIG,
          "\"vocab_size\": 1024",
          "\"vocab_size\": 1030",
          { 0 },
          E_FORMAT,
          "predecessor_codebook: shape [1024, 64], want [1030, 64]" },
        { .change = DROP("layers.1.mlp_conv.base_kernel"),
          .want = E_FORMAT,
          .message = "mlp_conv.base_kernel is missing" },
        { .change = SHAPE("layers.1.mlp_conv.base_kernel", 3, 2, 512, 2),
          .want = E_FORMAT,
          .message = "[2, 512, 2], want [2, 2, 512]" },
        { .change = ADD("candidate_selector.predecessor_codebook.weight", DTYPE_BF16, 2, 1024, 64),
          .want = E_FORMAT,
          .message = "both candidate_selector.predecessor_codebook and" },
        { .change = ADD("embed_tokens.weight", DTYPE_BF16, 1, 4),
          .want = E_FORMAT,
          .message = "embed_tokens.weight: belongs to no weight" },
    };
    ALL_REFUSED("drafter-tiny-bf16", list);
}

static drafter_config tiny_drafter(void)
{
    pack *p = NULL;
    error e = { 0 };
    EXPECT_OK(pack_open(&p, KIT_PACKS "drafter-tiny-bf16", NULL, &e), e);
    const drafter_config d = *pack_drafter(p);
    pack_close(p);
    return d;
}

static void no_pair(drafter_config d, const king_config *k, const char *message)
{
    error e = { 0 };
    EXPECT_INT(config_check_pair(&d, k, &e), E_UNSUPPORTED);
    if (!strstr(e.text, message)) FAIL("found \"%s\", want \"%s\"", e.text, message);
}

TEST(R079_pairs_that_do_not_fit)
{
    pack *p = NULL;
    error e = { 0 };
    EXPECT_OK(pack_open(&p, KIT_PACKS "king-tiny", NULL, &e), e);
    const king_config *k = pack_king(p);
    const drafter_config good = tiny_drafter();
    EXPECT_OK(config_check_pair(&good, k, &e), e);
    drafter_config d = good;
    d.n_embd = 5120;
    no_pair(d, k, "hidden size 5120, but the king has 512");
    d = good;
    d.n_vocab = 1023;
    no_pair(d, k, "codebooks of 1023 tokens, but the king has 1024");
    d = good;
    d.n_vocab = 248320;
    d.mask_id = 248070;
    no_pair(d, k, "mask token 248070, but the king has 1024 tokens");
    d = good;
    d.n_target_layer = 64;
    no_pair(d, k, "made for 64 layers, but the king has 4");
    d = good;
    d.n_target_layer = 0;
    d.tap[1] = 61;
    no_pair(d, k, "taps layer 61, but the king has 4 layers");
    pack_close(p);
}

TEST(drafter_spellings)
{
    /* encoder.fc, encoder.output_norm_enc; codebooks X.weight; weights and config in dflash/ */
    kit k = kit_new("drafter-tiny-bf16");
    static const kit_change renames[] = {
        RENAME("fc.weight", "encoder.fc.weight"),
        RENAME("hidden_norm.weight", "encoder.output_norm_enc.weight"),
        RENAME("candidate_selector.successor_codebook",
               "candidate_selector.successor_codebook.weight"),
    };
    for (int i = 0; i < 3; i++) kit_tensor(&k, "model.safetensors", &renames[i]);
    opens(&k);
    /* contract at the root, a scale in dflash_config */
    kit_edit(&k, CONFIG, "\"target_layer_ids\": [1, 3]", "\"output_multiplier\": 0.5");
    refused(&k, E_FORMAT, "block_size");
    kit_edit(
        &k, CONFIG, "\"is_causal\"",
        "\"block_size\": 8, \"mask_token_id\": 7, \"target_layer_ids\": [1, 3], \"is_causal\"");
    pack *p = NULL;
    error e = { 0 };
    EXPECT_OK(pack_open(&p, k.folder, NULL, &e), e);
    EXPECT(pack_drafter(p)->output_multiplier == 0.5f && pack_drafter(p)->mask_id == 7);
    pack_close(p);
    kit_free(&k);
}

TEST(drafter_in_a_subfolder)
{
    const kit outer = kit_new(NULL);
    kit inner;
    error e = { 0 };
    snprintf(inner.folder, sizeof inner.folder, "%.200s/dflash", outer.folder);
    EXPECT_OK(file_make_dirs(inner.folder, &e), e);
    kit_copy(&inner, KIT_PACKS "drafter-tiny-q8");
    opens(&outer);
    opens(&inner);
    /* the config one level up */
    EXPECT(rename(kit_path(&inner, CONFIG), kit_path(&outer, CONFIG)) == 0);
    opens(&outer);
    opens(&inner);
    /* a king's config up there is not the drafter's */
    buf king = kit_read(KIT_PACKS "king-tiny/config.json");
    kit_write(&outer, CONFIG, buf_view(&king));
    buf_free(&king);
    pack *p = NULL;
    EXPECT_INT(pack_open(&p, inner.folder, NULL, &e), E_UNSUPPORTED);
    EXPECT(strstr(e.text, "no config.json, and a drafter of 2 layers"));
    kit_free(&outer);
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
    opens(&k);
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
    EXPECT_INT(pack_vector(p, "lm_head", 512, x, &e), E_FORMAT);
    EXPECT_INT(pack_vector(p, "model.norm.weight", 511, x, &e), E_FORMAT);
    EXPECT_OK(pack_vector(p, "model.norm.weight", 512, x, &e), e);
    EXPECT_OK(pack_matrix(p, "lm_head", 1024, 512, &m, &e), e);
    const unsigned code = quant_code(m.weight->data, 2, 100);
    pack_drop(p, &m);
    pack_drop_all(p);
    EXPECT_INT(quant_code(m.weight->data, 2, 100), code);
    pack_close(p);
}

TEST(every_allocation_of_opening_may_fail)
{
    static const char *const packs[] = { "king-tiny", "qwen35-tiny-affine4", "drafter-tiny-q8" };
    for (int i = 0; i < 3; i++) {
        char folder[512];
        snprintf(folder, sizeof folder, KIT_PACKS "%s", packs[i]);
        status s = E_NOMEM;
        /* every one of the first 300 and a sample of the many small ones of the parser after them
         */
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
