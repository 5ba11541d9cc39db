/* kingfiles.c - see kingfiles.h. */
#include "tools/kingfiles.h"
#include <stdio.h>
#include "base/jsonw.h"
#include "base/banned.h"

/* The pairs of a head's rotary part, shared among time, height and width as the published models
 * do: as even as can be, the first the largest. */
static void put_rope(jsonw *w, const king_config *k)
{
    const int pairs = k->rotary_dim / 2, first = (pairs + 2) / 3, second = (pairs - first + 1) / 2;
    jsonw_member_object(w, "rope_parameters");
    jsonw_member_text(w, "rope_type", "default");
    jsonw_member_f64(w, "rope_theta", k->rope_theta);
    jsonw_member_f64(w, "partial_rotary_factor", (double)k->rotary_dim / k->head_dim);
    jsonw_member_array(w, "mrope_section");
    jsonw_i64(w, first);
    jsonw_i64(w, second);
    jsonw_i64(w, pairs - first - second);
    jsonw_end_array(w);
    jsonw_member_raw(w, "mrope_interleaved", "true");
    jsonw_end_object(w);
}

static void put_layer_types(jsonw *w, const king_config *k)
{
    jsonw_member_array(w, "layer_types");
    for (int i = 0; i < k->n_layer; i++)
        jsonw_text(w, k->is_attention[i] ? "full_attention" : "linear_attention");
    jsonw_end_array(w);
}

int kingfiles_interval(const king_config *k)
{
    int interval = 1;
    while (interval <= k->n_layer && !k->is_attention[interval - 1]) interval++;
    return interval;
}

static void put_text_config(jsonw *w, const kingfiles *f)
{
    const king_config *k = f->king;
    jsonw_object(w);
    jsonw_member_text(w, "model_type", "qwen3_5_text");
    jsonw_member_i64(w, "num_hidden_layers", k->n_layer);
    jsonw_member_i64(w, "hidden_size", k->n_embd);
    jsonw_member_i64(w, "intermediate_size", k->n_ff);
    jsonw_member_i64(w, "vocab_size", k->n_vocab);
    jsonw_member_i64(w, "max_position_embeddings", k->max_positions);
    jsonw_member_i64(w, "num_attention_heads", k->n_head);
    jsonw_member_i64(w, "num_key_value_heads", k->n_kv_head);
    jsonw_member_i64(w, "head_dim", k->head_dim);
    jsonw_member_i64(w, "linear_num_key_heads", k->gdn_k_heads);
    jsonw_member_i64(w, "linear_num_value_heads", k->gdn_v_heads);
    jsonw_member_i64(w, "linear_key_head_dim", k->gdn_k_dim);
    jsonw_member_i64(w, "linear_value_head_dim", k->gdn_v_dim);
    jsonw_member_i64(w, "linear_conv_kernel_dim", k->conv_taps);
    jsonw_member_i64(w, "full_attention_interval", kingfiles_interval(k));
    put_layer_types(w, k);
    if (f->eos >= 0) jsonw_member_i64(w, "eos_token_id", f->eos);
    jsonw_member_f64(w, "rms_norm_eps", (double)k->eps);
    jsonw_member_text(w, "hidden_act", "silu");
    jsonw_member_raw(w, "attention_bias", "false");
    jsonw_member_raw(w, "attn_output_gate", "true");
    jsonw_member_f64(w, "partial_rotary_factor", (double)k->rotary_dim / k->head_dim);
    jsonw_member_raw(w, "tie_word_embeddings", "false");
    put_rope(w, k);
    jsonw_end_object(w);
}

void kingfiles_config(const kingfiles *f, buf *out)
{
    jsonw w;
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_member_i64(&w, "schema_version", 2);
    jsonw_member_text(&w, "model_type", "prism_hadamard_qwen35");
    jsonw_member_text(&w, "base_model_type", "qwen3_5");
    jsonw_member_text(&w, "hadamard_config", "hadamard.json");
    jsonw_member_text(&w, "tensor_namespace", "mlx-vlm-qwen3_5");
    jsonw_member_text(&w, "gdn_activation_layout", "grouped");
    jsonw_member_raw(&w, "components", "{\"text\":true,\"vision\":false,\"mtp\":false}");
    jsonw_member_raw(&w, "quantization", "{\"bits\":2,\"group_size\":128,\"mode\":\"affine\"}");
    jsonw_member_raw(&w, "tie_word_embeddings", "false");
    jsonw_member_array(&w, "modules");
    for (size_t i = 0; i < f->plan->count; i++) {
        const plan_entry *t = &f->plan->entries[i];
        if (f->block[i] == KINGFILES_DENSE) continue;
        jsonw_object(&w);
        jsonw_member_text(&w, "path", t->name);
        jsonw_member_i64(&w, "block", f->block[i]);
        jsonw_member_raw(&w, "embedding", t->is_embedding ? "true" : "false");
        jsonw_member_text(&w, "dtype", "float16");
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    jsonw_key(&w, "text_config");
    put_text_config(&w, f);
    jsonw_end_object(&w);
    buf_char(out, '\n');
}

static void put_names(const kingfiles *f, jsonw *w, const char *name, bool embedding)
{
    jsonw_member_array(w, name);
    for (size_t i = 0; i < f->plan->count; i++) {
        const plan_entry *t = &f->plan->entries[i];
        char full[PLAN_MAX_NAME + 32];
        if (f->block[i] <= 0 || t->is_embedding != embedding) continue;
        snprintf(full, sizeof full, "language_model.%s.weight", t->name);
        jsonw_text(w, full);
    }
    jsonw_end_array(w);
}

void kingfiles_hadamard(const kingfiles *f, buf *out)
{
    jsonw w;
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_member_i64(&w, "prism.hadamard.version", 1);
    jsonw_member_i64(&w, "prism.hadamard.block_size", f->rotation);
    jsonw_member_text(&w, "prism.hadamard.transform", "normalized-sylvester-walsh-hadamard");
    jsonw_member_text(&w, "prism.hadamard.axis", "input-last-dimension");
    jsonw_member_text(&w, "prism.hadamard.sign_mode", "explicit");
    put_names(f, &w, "prism.hadamard.weight_names", false);
    put_names(f, &w, "prism.hadamard.inverse_weight_names", true);
    jsonw_member_i64s(&w, "prism.hadamard.sign_widths", f->width, (size_t)f->n_width);
    jsonw_member_array(&w, "prism.hadamard.sign_values");
    for (int i = 0; i < f->n_width; i++)
        for (int64_t x = 0; x < f->width[i]; x++) jsonw_i64(&w, (int64_t)f->signs[i][x]);
    jsonw_end_array(&w);
    jsonw_member_raw(&w, "prism.hadamard.gdn_v_grouped", "true");
    jsonw_end_object(&w);
    buf_char(out, '\n');
}
