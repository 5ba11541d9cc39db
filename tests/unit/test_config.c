/* Configs of plain packs: numbers, layer types, quantization. */
#include "packkit.h"

static const char CONFIG[] = "config.json";

#define Q3 "language_model.model.layers.3.self_attn.o_proj"
static const char SECOND[] = "model-00002-of-00002.safetensors",
                  INDEX[] = "model.safetensors.index.json";

TEST(plain_packs_that_do_not_fit)
{
    static const kit_damage list[] = {
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
    KIT_ALL_REFUSED("qwen35-tiny-bf16", list);
}

TEST(R087_one_layer_type_too_many_and_unknown_keys)
{
    kit k = kit_new("qwen35-tiny-bf16");
    kit_edit(&k, CONFIG, "\"layer_types\": [", "\"future_key\": {\"a\": [1]}, \"layer_types\": [");
    kit_edit(&k, CONFIG, "\"full_attention\"]", "\"full_attention\", \"full_attention\"]");
    kit_opens(&k);
    kit_edit(&k, CONFIG, "\"full_attention\"]", "\"full_attention\", \"full_attention\"]");
    kit_refused(&k, E_FORMAT, "layer_types: 6 entries, want 4");
    kit_free(&k);
}

/* Keys and values would have no size: whoever divides by it falls. */
TEST(a_king_without_attention_is_refused)
{
    kit k = kit_new("qwen35-tiny-bf16");
    kit_edit(&k, CONFIG, "\"layer_types\": [", "\"future_key\": [");
    kit_edit(&k, CONFIG, "\"full_attention_interval\": 2", "\"full_attention_interval\": 8");
    kit_refused(&k, E_UNSUPPORTED, "layer_types: 4 layers and no full attention");
    kit_free(&k);
}

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
        kit_opens(&k);
        kit_free(&k);
    }
    const kit k = kit_new("qwen35-tiny-affine4");
    kit_edit(&k, CONFIG, old, "\"x\": 1");
    kit_refused(&k, E_FORMAT,
                "module model.layers.0.mlp.down_proj: tensors are affine 8-bit g32, but the config "
                "says affine 4-bit g64");
    kit_free(&k);
}

TEST(R084_mode_per_module)
{
    static const kit_damage list[] = {
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
    KIT_ALL_REFUSED("qwen35-tiny-affine4", list);
    /* biases beside mxfp4 weights; scales of a type that is none */
    kit k = kit_new("qwen35-tiny-affine4");
    kit_tensor(&k, SECOND, &(const kit_change)ADD(Q3 ".biases", DTYPE_U8, 2, 128, 8));
    kit_edit(&k, INDEX, "\"weight_map\": {",
             "\"weight_map\": {\"" Q3 ".biases\": \"model-00002-of-00002.safetensors\", ");
    kit_refused(&k, E_FORMAT, "biases beside mxfp4 weights");
    kit_free(&k);
    k = kit_new("qwen35-tiny-affine4");
    kit_tensor(&k, SECOND, &(const kit_change)DTYPE(Q3 ".scales", DTYPE_I8));
    kit_refused(&k, E_FORMAT, Q3 ".scales: dtype I8");
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
    kit_opens(&k);
    kit_edit(&k, CONFIG, twin, "\"quantization_config\": {\"quant_method\": \"mxfp4\"}");
    kit_opens(&k);
    kit_edit(&k, CONFIG, "{\"quant_method\": \"mxfp4\"}", "{\"quant_method\": \"awq\"}");
    kit_refused(&k, E_UNSUPPORTED, "quant_method \"awq\": only MLX formats are read");
    kit_edit(&k, CONFIG, "{\"quant_method\": \"awq\"}", "[]");
    kit_refused(&k, E_FORMAT, "quantization: found array");
    kit_free(&k);
}
