/* config.c - config.json of kings and plain packs, quantization blocks, generation_config.json. */
#include "pack/config.h"
#include <math.h>
#include "base/banned.h"

/* ---- quantization ---- */

/* One format object: what it does not say are the defaults of its mode. */
static status parse_format(fields f, quant_format *out, error *e)
{
    str mode = STR("affine");
    char shown[32];
    quant_mode m;
    TRY(field_opt_str(f, "mode", &mode, e));
    if (!quant_mode_from_name(mode, &m)) {
        return error_set(e, E_UNSUPPORTED, "%s: %smode: unknown mode \"%s\"", f.file, f.prefix,
                         field_show(mode, shown, sizeof shown));
    }
    *out = quant_default(m);
    TRY(field_opt_int(f, "bits", 1, 64, &out->bits, e));
    TRY(field_opt_int(f, "group_size", 1, 1 << 20, &out->group, e));
    if (!quant_is_legal(*out)) {
        return error_set(e, E_UNSUPPORTED, "%s: %s%s with %d bits and groups of %d does not exist",
                         f.file, f.prefix, quant_mode_name(m), out->bits, out->group);
    }
    return OK;
}

static status add_rule(config *c, fields block, str key, const json_node *value, error *e)
{
    quant_table *q = &c->quant;
    char canonical[128], shown[128];
    field_show(key, shown, sizeof shown);
    if (str_ends(key, STR(".weight"))) key.len -= 7;
    if (!tensor_canonical(key, canonical, sizeof canonical)) {
        return error_set(e, E_FORMAT, "%s: %s\"%s\": no usable module path", block.file,
                         block.prefix, shown);
    }
    quant_format format = { QUANT_DENSE, 0, 0 };
    if (json_kind(value) == JSON_TRUE) format = q->global;
    if (json_kind(value) == JSON_OBJECT)
        TRY(parse_format((fields){ value, block.file, block.prefix }, &format, e));
    uint64_t at;
    if (map_get(&q->index, str_from(canonical), &at)) {
        if (quant_equal(q->rules[at].format, format)) return OK;
        return error_set(e, E_FORMAT, "%s: %s\"%s\": two different entries for this module",
                         block.file, block.prefix, shown);
    }
    quant_rule *r = &q->rules[q->count];
    r->path = arena_str(&c->mem, str_from(canonical));
    if (!r->path.ptr) return error_set(e, E_NOMEM, "%s: no memory", block.file);
    r->format = format;
    return map_put(&q->index, r->path, q->count++, e);
}

/* `quantization_config` of other tools: those that mean an MLX format are taken as it. */
static status parse_method(fields block, quant_format *global, error *e)
{
    str method = { 0 };
    char shown[48];
    TRY(field_opt_str(block, "quant_method", &method, e));
    if (!field_has(block, "quant_method")) return parse_format(block, global, e);
    if (str_eq(method, STR("mxfp4"))) *global = quant_default(QUANT_MXFP4);
    else if (str_eq(method, STR("mxfp8"))) *global = quant_default(QUANT_MXFP8);
    else {
        return error_set(e, E_UNSUPPORTED, "%s: %squant_method \"%s\": only MLX formats are read",
                         block.file, block.prefix, field_show(method, shown, sizeof shown));
    }
    return OK;
}

static status parse_quantization(config *c, fields root, fields text, error *e)
{
    quant_table *q = &c->quant;
    fields block = field_sub(root, "quantization", "quantization.");
    if (!field_has(root, "quantization")) {
        const fields from = field_has(root, "quantization_config") ? root : text;
        block = field_sub(from, "quantization_config", "quantization_config.");
    }
    if (json_kind(block.object) == JSON_NONE || json_kind(block.object) == JSON_NULL) return OK;
    if (json_kind(block.object) != JSON_OBJECT) {
        return error_set(e, E_FORMAT, "%s: quantization: found %s, want an object", block.file,
                         json_kind_name(block.object));
    }
    q->present = true;
    TRY(parse_method(block, &q->global, e));
    TRY(field_want_bool(block, "quantize_activations", false, e));
    q->rules = arena_array(&c->mem, json_len(block.object), sizeof *q->rules);
    if (!q->rules) return error_set(e, E_NOMEM, "%s: no memory", block.file);
    str key;
    const json_node *value;
    for (void *it = NULL; json_each(block.object, &it, &key, &value);) {
        const json_type t = json_kind(value);
        if (str_eq(key, STR("quantize_activations"))) continue;
        if (t != JSON_OBJECT && t != JSON_TRUE && t != JSON_FALSE) continue;
        TRY(add_rule(c, block, key, value, e));
    }
    return OK;
}

quant_format config_quant_of(const config *c, str path, bool *named)
{
    uint64_t at;
    *named = map_get(&c->quant.index, path, &at);
    return *named ? c->quant.rules[at].format : c->quant.global;
}

/* ---- stop tokens and sampling defaults ---- */

static status add_eos(config *c, fields f, int64_t id, error *e)
{
    generation_config *g = &c->generation;
    const int n_vocab = c->kind == PACK_DRAFTER ? c->drafter.n_vocab : c->king.n_vocab;
    if (id < 0 || id >= n_vocab) {
        return error_set(e, E_FORMAT, "%s: %seos_token_id: found %lld, want an id below %d", f.file,
                         f.prefix, (long long)id, n_vocab);
    }
    for (int i = 0; i < g->n_eos; i++)
        if (g->eos[i] == id) return OK;
    if (g->n_eos == CONFIG_MAX_EOS) {
        return error_set(e, E_LIMIT, "%s: %seos_token_id: more than %d stop tokens", f.file,
                         f.prefix, CONFIG_MAX_EOS);
    }
    g->eos[g->n_eos++] = (int32_t)id;
    return OK;
}

/* An integer, a list of integers, or nothing. */
static status parse_eos(config *c, fields f, error *e)
{
    if (!field_has(f, "eos_token_id")) return OK;
    const json_node *node = json_get(f.object, "eos_token_id");
    int64_t id;
    if (json_i64(node, &id)) return add_eos(c, f, id, e);
    for (size_t i = 0; i < json_len(node); i++) {
        if (!json_i64(json_at(node, i), &id)) id = -1;
        TRY(add_eos(c, f, id, e));
    }
    if (json_kind(node) == JSON_ARRAY) return OK;
    return error_set(e, E_FORMAT, "%s: %seos_token_id: found %s, want ids", f.file, f.prefix,
                     json_kind_name(node));
}

static status parse_generation(config *c, fields f, error *e)
{
    generation_config *g = &c->generation;
    const int last = (c->kind == PACK_DRAFTER ? c->drafter.n_vocab : c->king.n_vocab) - 1;
    TRY(parse_eos(c, f, e));
    int bos = g->bos, pad = g->pad;
    TRY(field_opt_int(f, "bos_token_id", 0, last, &bos, e));
    TRY(field_opt_int(f, "padding_token_id", 0, last, &pad, e));
    TRY(field_opt_int(f, "pad_token_id", 0, last, &pad, e));
    g->bos = bos;
    g->pad = pad;
    TRY(field_opt_real(f, "temperature", 0.0, 100.0, &g->temperature, e));
    TRY(field_opt_real(f, "top_p", 0.0, 1.0, &g->top_p, e));
    TRY(field_opt_real(f, "min_p", 0.0, 1.0, &g->min_p, e));
    TRY(field_opt_real(f, "repetition_penalty", 0.01, 100.0, &g->repetition_penalty, e));
    TRY(field_opt_real(f, "presence_penalty", -100.0, 100.0, &g->presence_penalty, e));
    TRY(field_opt_int(f, "top_k", -1, 1 << 24, &g->top_k, e));
    bool sample = true;
    TRY(field_opt_bool(f, "do_sample", &sample, e));
    if (!sample) g->temperature = 0.0;
    return OK;
}

/* ---- king and plain packs ---- */

static status parse_rope(king_config *k, fields text, error *e)
{
    const fields rope = field_sub(text, "rope_parameters", "text_config.rope_parameters.");
    double share = 0.25;
    if (field_has(rope, "rope_theta"))
        TRY(field_real(rope, "rope_theta", 1.0, 1e12, &k->rope_theta, e));
    else TRY(field_real(text, "rope_theta", 1.0, 1e12, &k->rope_theta, e));
    TRY(field_want_str(rope, "rope_type", "default", e));
    TRY(field_want_str(rope, "type", "default", e));
    if (field_has(text, "rope_scaling")) {
        const fields old = field_sub(text, "rope_scaling", "text_config.rope_scaling.");
        TRY(field_want_str(old, "rope_type", "default", e));
        TRY(field_want_str(old, "type", "default", e));
    }
    TRY(field_opt_real(text, "partial_rotary_factor", 0.0, 1.0, &share, e));
    const double outer = share;
    TRY(field_opt_real(rope, "partial_rotary_factor", 0.0, 1.0, &share, e));
    if (share != outer && field_has(text, "partial_rotary_factor")) {
        return error_set(e, E_FORMAT, "%s: partial_rotary_factor: %g and %g contradict each other",
                         text.file, outer, share);
    }
    const double dims = share * k->head_dim;
    k->rotary_dim = (int)dims;
    if (k->rotary_dim < 2 || k->rotary_dim % 2 || (double)k->rotary_dim != dims) {
        return error_set(e, E_FORMAT, "%s: rotary width %g of head_dim %d, want whole pairs",
                         text.file, dims, k->head_dim);
    }
    return OK;
}

/* layer_types, or every interval-th layer is attention. Entries beyond the layers (of MTP layers,
 * R087) are ignored. */
static status parse_layers(king_config *k, fields text, error *e)
{
    int interval = 0, n_mtp = 0;
    TRY(field_opt_int(text, "full_attention_interval", 1, CONFIG_MAX_LAYERS, &interval, e));
    TRY(field_opt_int(text, "mtp_num_hidden_layers", 0, CONFIG_MAX_LAYERS, &n_mtp, e));
    const json_node *types = json_get(text.object, "layer_types");
    const size_t n = json_len(types), most = (size_t)k->n_layer + (size_t)(n_mtp > 1 ? n_mtp : 1);
    const bool listed = json_kind(types) == JSON_ARRAY;
    if (listed && (n < (size_t)k->n_layer || n > most)) {
        return error_set(e, E_FORMAT, "%s: %slayer_types: %zu entries, want %d", text.file,
                         text.prefix, n, k->n_layer);
    }
    if (!listed && !interval) interval = 4;
    for (int i = 0; i < k->n_layer; i++) {
        const bool by_interval = interval && (i + 1) % interval == 0;
        k->is_attention[i] = by_interval;
        if (listed) {
            str type = { 0 };
            json_str(json_at(types, (size_t)i), &type);
            k->is_attention[i] = str_eq(type, STR("full_attention"));
            if (!k->is_attention[i] && !str_eq(type, STR("linear_attention"))) {
                char shown[48];
                return error_set(e, E_UNSUPPORTED, "%s: %slayer_types[%d]: unknown type \"%s\"",
                                 text.file, text.prefix, i, field_show(type, shown, sizeof shown));
            }
        }
        if (interval && k->is_attention[i] != by_interval) {
            return error_set(e, E_FORMAT,
                             "%s: %slayer_types[%d] contradicts full_attention_interval %d",
                             text.file, text.prefix, i, interval);
        }
        k->n_attention += k->is_attention[i];
    }
    k->n_gdn = k->n_layer - k->n_attention;
    if (k->n_attention) return OK;
    return error_set(e, E_UNSUPPORTED,
                     "%s: %slayer_types: %d layers and no full attention, want one at least",
                     text.file, text.prefix, k->n_layer);
}

static status parse_widths(king_config *k, fields text, error *e)
{
    TRY(field_int(text, "hidden_size", 1, 1 << 20, &k->n_embd, e));
    TRY(field_int(text, "intermediate_size", 1, 1 << 22, &k->n_ff, e));
    TRY(field_int(text, "vocab_size", 1, 1 << 24, &k->n_vocab, e));
    TRY(field_int(text, "num_hidden_layers", 1, CONFIG_MAX_LAYERS, &k->n_layer, e));
    TRY(field_int(text, "num_attention_heads", 1, 1024, &k->n_head, e));
    TRY(field_int(text, "num_key_value_heads", 1, k->n_head, &k->n_kv_head, e));
    k->head_dim = k->n_embd / k->n_head;
    TRY(field_opt_int(text, "head_dim", 1, 2048, &k->head_dim, e));
    TRY(field_int(text, "linear_num_key_heads", 1, 1024, &k->gdn_k_heads, e));
    TRY(field_int(text, "linear_num_value_heads", 1, 1024, &k->gdn_v_heads, e));
    TRY(field_int(text, "linear_key_head_dim", 1, 2048, &k->gdn_k_dim, e));
    TRY(field_int(text, "linear_value_head_dim", 1, 2048, &k->gdn_v_dim, e));
    TRY(field_int(text, "linear_conv_kernel_dim", 2, 16, &k->conv_taps, e));
    k->max_positions = 1 << 24;
    TRY(field_opt_int(text, "max_position_embeddings", 1, 1 << 24, &k->max_positions, e));
    if (k->n_head % k->n_kv_head || k->gdn_v_heads % k->gdn_k_heads) {
        return error_set(e, E_FORMAT, "%s: %d heads on %d, %d value heads on %d: want whole groups",
                         text.file, k->n_head, k->n_kv_head, k->gdn_v_heads, k->gdn_k_heads);
    }
    double eps = 1e-6;
    TRY(field_opt_real(text, "rms_norm_eps", 0.0, 1.0, &eps, e));
    k->eps = (float)eps;
    return OK;
}

static status parse_king(config *c, fields root, fields text, error *e)
{
    king_config *k = &c->king;
    TRY(parse_widths(k, text, e));
    TRY(parse_rope(k, text, e));
    TRY(parse_layers(k, text, e));
    TRY(field_opt_bool(root, "tie_word_embeddings", &k->tied, e));
    TRY(field_opt_bool(text, "tie_word_embeddings", &k->tied, e));
    TRY(field_want_str(text, "hidden_act", "silu", e));
    TRY(field_want_bool(text, "attention_bias", false, e));
    TRY(field_want_bool(text, "attn_output_gate", true, e));
    str gate = STR("swish");
    TRY(field_opt_str(text, "output_gate_type", &gate, e));
    if (!str_eq(gate, STR("silu"))) TRY(field_want_str(text, "output_gate_type", "swish", e));
    int experts = 0;
    TRY(field_opt_int(text, "num_experts", 0, 1 << 20, &experts, e));
    if (experts) {
        return error_set(e, E_UNSUPPORTED, "%s: %snum_experts: found %d, want a dense model",
                         text.file, text.prefix, experts);
    }
    TRY(parse_quantization(c, root, text, e));
    TRY(parse_eos(c, root, e));
    return text.object == root.object ? OK : parse_eos(c, text, e);
}

/* A king is 2-bit affine with groups of 128 throughout, and its head is its own. */
static status check_king(const config *c, const char *file, error *e)
{
    const quant_format want = { QUANT_AFFINE, 2, 128 };
    char found[32];
    if (!c->quant.present || !quant_equal(c->quant.global, want)) {
        return error_set(
            e, E_UNSUPPORTED, "%s: quantization: found %s, want affine 2-bit g128", file,
            c->quant.present ? quant_format_text(c->quant.global, found, sizeof found) : "nothing");
    }
    for (size_t i = 0; i < c->quant.count; i++) {
        const quant_rule *r = &c->quant.rules[i];
        if (r->format.mode == QUANT_DENSE || quant_equal(r->format, want)) continue;
        return error_set(e, E_UNSUPPORTED,
                         "%s: quantization of %.*s: found %s, want affine 2-bit g128", file,
                         STR_ARG(r->path), quant_format_text(r->format, found, sizeof found));
    }
    if (c->king.tied) {
        return error_set(e, E_UNSUPPORTED, "%s: tie_word_embeddings: a king has its own head",
                         file);
    }
    return OK;
}

static status parse_root(config *c, const json_node *node, const char *file, error *e)
{
    const fields root = { node, file, "" };
    str type = { 0 };
    char shown[64];
    if (json_kind(node) != JSON_OBJECT)
        return error_set(e, E_FORMAT, "%s: found %s, want an object", file, json_kind_name(node));
    TRY(field_opt_str(root, "model_type", &type, e));
    if (str_eq(type, STR("prism_hadamard_qwen35"))) {
        c->kind = PACK_KING;
        const fields text = field_sub(root, "text_config", "text_config.");
        TRY(hadamard_parse_modules(&c->hadamard, root, &c->mem, e));
        TRY(parse_king(c, root, text, e));
        return check_king(c, file, e);
    }
    if (str_eq(type, STR("qwen3_5")) || str_eq(type, STR("qwen3_5_text"))) {
        c->kind = PACK_PLAIN;
        if (!field_has(root, "text_config")) return parse_king(c, root, root, e);
        return parse_king(c, root, field_sub(root, "text_config", "text_config."), e);
    }
    if (dflash_is_config(node)) {
        c->kind = PACK_DRAFTER;
        TRY(dflash_parse(&c->drafter, node, file, e));
        return parse_quantization(c, root, root, e);
    }
    return error_set(e, E_UNSUPPORTED,
                     "%s: model_type \"%s\": want prism_hadamard_qwen35, qwen3_5, or a DFlash 2 "
                     "drafter",
                     file, field_show(type, shown, sizeof shown));
}

static void init(config *c)
{
    *c = (config){ .generation = { .bos = -1, .pad = -1, .top_k = -1 } };
    generation_config *g = &c->generation;
    g->temperature = g->top_p = g->min_p = NAN;
    g->repetition_penalty = g->presence_penalty = NAN;
    arena_init(&c->mem, 0);
    map_init(&c->quant.index);
    map_init(&c->hadamard.index);
}

status config_parse(config *c, str text, const char *name, error *e)
{
    init(c);
    json_doc *doc = NULL;
    status s = json_parse(&doc, text, JSON_UNIQUE, name, e);
    if (!s) s = parse_root(c, json_root(doc), name, e);
    json_free(doc);
    if (s) config_free(c);
    return s;
}

status config_parse_hadamard(config *c, str text, const char *name, error *e)
{
    CHECK(c->kind == PACK_KING);
    json_doc *doc = NULL;
    status s = json_parse(&doc, text, JSON_UNIQUE, name, e);
    if (!s) s = hadamard_parse_signs(&c->hadamard, json_root(doc), name, &c->mem, e);
    json_free(doc);
    return s;
}

status config_parse_generation(config *c, str text, const char *name, error *e)
{
    json_doc *doc = NULL;
    status s = json_parse(&doc, text, JSON_UNIQUE, name, e);
    if (!s && json_kind(json_root(doc)) != JSON_OBJECT) {
        s = error_set(e, E_FORMAT, "%s: found %s, want an object", name,
                      json_kind_name(json_root(doc)));
    }
    if (!s) s = parse_generation(c, (fields){ json_root(doc), name, "" }, e);
    json_free(doc);
    return s;
}

status config_synthesise(config *c, const drafter_config *shapes, const char *name, error *e)
{
    init(c);
    c->kind = PACK_DRAFTER;
    c->drafter = *shapes;
    const status s = dflash_synthesise(&c->drafter, name, e);
    if (s) config_free(c);
    return s;
}

void config_free(config *c)
{
    map_free(&c->quant.index);
    hadamard_free(&c->hadamard);
    arena_free(&c->mem);
    *c = (config){ 0 };
}

/* ---- pairs ---- */

status config_check_pair(const drafter_config *d, const king_config *k, error *e)
{
    if (d->n_embd != k->n_embd) {
        return error_set(e, E_UNSUPPORTED, "drafter: hidden size %d, but the king has %d",
                         d->n_embd, k->n_embd);
    }
    if (d->n_vocab < k->n_vocab) {
        return error_set(e, E_UNSUPPORTED, "drafter: codebooks of %d tokens, but the king has %d",
                         d->n_vocab, k->n_vocab);
    }
    if (d->mask_id >= k->n_vocab) {
        return error_set(e, E_UNSUPPORTED, "drafter: mask token %d, but the king has %d tokens",
                         d->mask_id, k->n_vocab);
    }
    if (d->n_target_layer && d->n_target_layer != k->n_layer) {
        return error_set(e, E_UNSUPPORTED, "drafter: made for %d layers, but the king has %d",
                         d->n_target_layer, k->n_layer);
    }
    if (d->tap[d->n_tap - 1] >= k->n_layer) {
        return error_set(e, E_UNSUPPORTED, "drafter: taps layer %d, but the king has %d layers",
                         d->tap[d->n_tap - 1], k->n_layer);
    }
    return OK;
}
