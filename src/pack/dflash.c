/* dflash.c - config of a DFlash 2 drafter: where each value may stand, and what is refused. */
#include "pack/dflash.h"
#include "base/banned.h"

bool dflash_is_config(const json_node *root)
{
    if (json_kind(json_get(root, "dflash_config")) == JSON_OBJECT) return true;
    const json_node *names = json_get(root, "architectures");
    for (size_t i = 0; i < json_len(names); i++) {
        str name = { 0 };
        if (json_str(json_at(names, i), &name) && str_starts(name, STR("DFlash"))) return true;
    }
    return json_get(root, "target_layer_ids") && json_get(root, "mask_token_id");
}

static status check_architecture(fields root, error *e)
{
    const json_node *names = json_get(root.object, "architectures");
    if (!json_len(names)) return OK;
    str name = { 0 };
    char shown[64];
    for (size_t i = 0; i < json_len(names); i++)
        if (json_str(json_at(names, i), &name) && str_eq(name, STR("DFlash2DraftModel"))) return OK;
    return error_set(e, E_UNSUPPORTED,
                     "%s: architectures: found \"%s\", want \"DFlash2DraftModel\"", root.file,
                     field_show(name, shown, sizeof shown));
}

/* block_size, mask_token_id and target_layer_ids stand in dflash_config, or all at the root. */
static status parse_contract(drafter_config *d, fields root, fields inner, error *e)
{
    const fields from = field_has(inner, "target_layer_ids") ? inner : root;
    TRY(field_int(from, "block_size", 2, 64, &d->block, e));
    TRY(field_int(from, "mask_token_id", 0, d->n_vocab - 1, &d->mask_id, e));
    TRY(field_opt_int(root, "num_target_layers", 1, 512, &d->n_target_layer, e));
    const json_node *ids = json_get(from.object, "target_layer_ids");
    if (json_kind(ids) != JSON_ARRAY || json_len(ids) < 1 || json_len(ids) > DFLASH_MAX_TAPS) {
        return error_set(e, E_FORMAT,
                         "%s: %starget_layer_ids: found %s of %zu, want 1 to %d layers", root.file,
                         from.prefix, json_kind_name(ids), json_len(ids), DFLASH_MAX_TAPS);
    }
    d->n_tap = (int)json_len(ids);
    const int64_t layers = d->n_target_layer ? d->n_target_layer : 512;
    for (int i = 0; i < d->n_tap; i++) {
        int64_t id;
        if (!json_i64(json_at(ids, (size_t)i), &id) || id < 0 || id >= layers) {
            return error_set(e, E_FORMAT, "%s: %starget_layer_ids[%d]: want a layer below %lld",
                             root.file, from.prefix, i, (long long)layers);
        }
        if (i && id <= d->tap[i - 1]) {
            return error_set(e, E_FORMAT,
                             "%s: %starget_layer_ids: %lld after %d, want ascending ids", root.file,
                             from.prefix, (long long)id, d->tap[i - 1]);
        }
        d->tap[i] = (int)id;
    }
    return OK;
}

static status parse_selector(drafter_config *d, fields inner, error *e)
{
    if (!field_has(inner, "selector_rank") && !field_has(inner, "selector_top_k") &&
        !field_has(inner, "conv_kernel_size")) {
        return error_set(e, E_UNSUPPORTED,
                         "%s: a DFlash 1 drafter (no candidate selector), want DFlash 2",
                         inner.file);
    }
    TRY(field_int(inner, "selector_rank", 1, 65536, &d->rank, e));
    TRY(field_int(inner, "selector_top_k", 1, 1024, &d->top_k, e));
    TRY(field_int(inner, "conv_kernel_size", 1, 16, &d->conv_taps, e));
    TRY(field_int(inner, "conv_group_size", 1, d->n_embd, &d->conv_group, e));
    if (d->conv_taps != 2) {
        return error_set(e, E_UNSUPPORTED, "%s: %sconv_kernel_size: found %d, want 2", inner.file,
                         inner.prefix, d->conv_taps);
    }
    if (d->n_embd % d->conv_group) {
        return error_set(e, E_FORMAT, "%s: %sconv_group_size: %d does not divide hidden_size %d",
                         inner.file, inner.prefix, d->conv_group, d->n_embd);
    }
    if (d->top_k > d->n_vocab) {
        return error_set(e, E_FORMAT, "%s: %sselector_top_k: %d candidates of %d tokens",
                         inner.file, inner.prefix, d->top_k, d->n_vocab);
    }
    return OK;
}

/* The window, and that the mask is the one we have: every layer alike, not causal inside the block.
 * When nothing says is_causal, the reference takes sliding layers for causal ones. */
static status parse_mask(drafter_config *d, fields root, fields inner, error *e)
{
    bool sliding = false;
    TRY(field_opt_bool(root, "use_sliding_window", &sliding, e));
    const json_node *types = json_get(root.object, "layer_types");
    if (json_kind(types) == JSON_ARRAY) {
        if (json_len(types) != (size_t)d->n_layer) {
            return error_set(e, E_FORMAT, "%s: layer_types: %zu entries, want %d", root.file,
                             json_len(types), d->n_layer);
        }
        size_t n_sliding = 0;
        for (size_t i = 0; i < json_len(types); i++) {
            str type = { 0 };
            char shown[64];
            json_str(json_at(types, i), &type);
            if (str_eq(type, STR("sliding_attention"))) n_sliding++;
            else if (!str_eq(type, STR("full_attention"))) {
                return error_set(e, E_UNSUPPORTED, "%s: layer_types: unknown type \"%s\"",
                                 root.file, field_show(type, shown, sizeof shown));
            }
        }
        if (n_sliding && n_sliding != json_len(types)) {
            return error_set(e, E_UNSUPPORTED,
                             "%s: layer_types: sliding and full layers mixed, want one kind",
                             root.file);
        }
        sliding = n_sliding != 0;
    }
    if (sliding) TRY(field_int(root, "sliding_window", 2, 1 << 24, &d->window, e));
    bool causal = sliding;
    TRY(field_opt_bool(inner, "causal", &causal, e));
    TRY(field_opt_bool(root, "is_causal", &causal, e));
    if (causal) {
        return error_set(e, E_UNSUPPORTED,
                         "%s: is_causal: found %s, want false (the block is drafted in one "
                         "bidirectional pass)",
                         root.file, field_has(root, "is_causal") ? "true" : "nothing");
    }
    return OK;
}

static status parse_scales(drafter_config *d, fields root, fields inner, error *e)
{
    double embed = 1.0, multiplier = 1.0, cap = 0.0;
    TRY(field_opt_real(root, "input_embedding_scale", -1e6, 1e6, &embed, e));
    TRY(field_opt_real(inner, "input_embedding_scale", -1e6, 1e6, &embed, e));
    TRY(field_opt_real(inner, "output_multiplier", -1e6, 1e6, &multiplier, e));
    TRY(field_opt_real(root, "final_logit_softcapping", 0.0, 1e6, &cap, e));
    TRY(field_opt_real(inner, "final_logit_softcapping", 0.0, 1e6, &cap, e));
    d->embed_scale = (float)embed;
    d->output_multiplier = (float)multiplier;
    d->softcap = (float)cap;
    return OK;
}

status dflash_parse(drafter_config *d, const json_node *node, const char *file, error *e)
{
    const fields root = { node, file, "" };
    const fields inner = field_sub(root, "dflash_config", "dflash_config.");
    const fields rope = field_sub(root, "rope_parameters", "rope_parameters.");
    *d = (drafter_config){ 0 };
    TRY(check_architecture(root, e));
    TRY(field_int(root, "hidden_size", 1, 1 << 20, &d->n_embd, e));
    TRY(field_int(root, "intermediate_size", 1, 1 << 22, &d->n_ff, e));
    TRY(field_int(root, "num_hidden_layers", 1, DFLASH_MAX_LAYERS, &d->n_layer, e));
    TRY(field_int(root, "vocab_size", 1, 1 << 24, &d->n_vocab, e));
    TRY(field_int(root, "num_attention_heads", 1, 1024, &d->n_head, e));
    d->n_kv_head = d->n_head;
    TRY(field_opt_int(root, "num_key_value_heads", 1, d->n_head, &d->n_kv_head, e));
    d->head_dim = d->n_embd / d->n_head;
    TRY(field_opt_int(root, "head_dim", 2, 4096, &d->head_dim, e));
    if (d->n_head % d->n_kv_head || d->head_dim < 2 || d->head_dim % 2) {
        return error_set(e, E_FORMAT,
                         "%s: %d heads of %d on %d key heads: no whole groups or pairs", file,
                         d->n_head, d->head_dim, d->n_kv_head);
    }
    double eps = 1e-6;
    TRY(field_opt_real(root, "rms_norm_eps", 0.0, 1.0, &eps, e));
    d->eps = (float)eps;
    if (field_has(rope, "rope_theta"))
        TRY(field_real(rope, "rope_theta", 1.0, 1e12, &d->rope_theta, e));
    else TRY(field_real(root, "rope_theta", 1.0, 1e12, &d->rope_theta, e));
    TRY(field_want_str(rope, "rope_type", "default", e));
    TRY(field_want_str(root, "hidden_act", "silu", e));
    TRY(field_want_bool(root, "attention_bias", false, e));
    d->max_positions = 1 << 24;
    TRY(field_opt_int(root, "max_position_embeddings", 1, 1 << 24, &d->max_positions, e));
    TRY(parse_selector(d, inner, e));
    TRY(parse_contract(d, root, inner, e));
    TRY(parse_mask(d, root, inner, e));
    return parse_scales(d, root, inner, e);
}

/* z-lab/Qwen3.8-27B-DFlash2, config.json. */
const drafter_config dflash_27b = {
    .n_layer = 5,
    .n_embd = 5120,
    .n_ff = 17408,
    .n_vocab = 248320,
    .max_positions = 262144,
    .eps = 1e-6f,
    .n_head = 32,
    .n_kv_head = 8,
    .head_dim = 128,
    .rope_theta = 1e7,
    .window = 2048,
    .block = 8,
    .mask_id = 248070,
    .conv_taps = 2,
    .conv_group = 16,
    .rank = 256,
    .top_k = 16,
    .n_tap = 5,
    .tap = { 5, 19, 33, 47, 61 },
    .n_target_layer = 64,
    .embed_scale = 1.0f,
    .output_multiplier = 1.0f,
};

status dflash_synthesise(drafter_config *d, const char *file, error *e)
{
    const drafter_config *p = &dflash_27b;
    if (d->n_layer != p->n_layer || d->n_embd != p->n_embd || d->n_ff != p->n_ff ||
        d->n_vocab != p->n_vocab || d->n_head != p->n_head || d->n_kv_head != p->n_kv_head ||
        d->head_dim != p->head_dim || d->n_tap != p->n_tap || d->rank != p->rank ||
        d->conv_group != p->conv_group) {
        return error_set(e, E_UNSUPPORTED,
                         "%s: no config.json, and a drafter of %d layers, width %d, %d taps is not "
                         "the published 27B one: give its config",
                         file, d->n_layer, d->n_embd, d->n_tap);
    }
    *d = *p;
    return OK;
}
