/* twin.c - see twin.h. */
#include "tools/twin.h"
#include <stdio.h>
#include "base/f64.h"
#include "base/banned.h"

static const char *const names[][2] = {
    { "model.embed_tokens", "token_embd.weight" },
    { "lm_head", "output.weight" },
    { "model.norm.weight", "output_norm.weight" },
    { "input_layernorm.weight", "attn_norm.weight" },
    { "post_attention_layernorm.weight", "post_attention_norm.weight" },
    { "mlp.gate_proj", "ffn_gate.weight" },
    { "mlp.up_proj", "ffn_up.weight" },
    { "mlp.down_proj", "ffn_down.weight" },
    { "self_attn.q_proj", "attn_q.weight" },
    { "self_attn.k_proj", "attn_k.weight" },
    { "self_attn.v_proj", "attn_v.weight" },
    { "self_attn.o_proj", "attn_output.weight" },
    { "self_attn.q_norm.weight", "attn_q_norm.weight" },
    { "self_attn.k_norm.weight", "attn_k_norm.weight" },
    { "linear_attn.in_proj_qkv", "attn_qkv.weight" },
    { "linear_attn.in_proj_z", "attn_gate.weight" },
    { "linear_attn.out_proj", "ssm_out.weight" },
    { "linear_attn.in_proj_a", "ssm_alpha.weight" },
    { "linear_attn.in_proj_b", "ssm_beta.weight" },
    { "linear_attn.A_log", "ssm_a" },
    { "linear_attn.dt_bias", "ssm_dt.bias" },
    { "linear_attn.conv1d.weight", "ssm_conv1d.weight" },
    { "linear_attn.norm.weight", "ssm_norm.weight" },
};

/* The name within its layer, or the whole. */
static const char *inner_name(const plan_entry *t)
{
    char prefix[32];
    if (t->layer < 0) return t->name;
    return t->name + snprintf(prefix, sizeof prefix, "model.layers.%d.", t->layer);
}

void twin_name(const plan_entry *t, char out[TWIN_MAX_NAME])
{
    const char *inner = inner_name(t);
    size_t i = 0;
    while (i < sizeof names / sizeof *names && strcmp(names[i][0], inner) != 0) i++;
    CHECK(i < sizeof names / sizeof *names); /* every weight of a king has a name there */
    if (t->layer < 0) snprintf(out, TWIN_MAX_NAME, "%s", names[i][1]);
    else snprintf(out, TWIN_MAX_NAME, "blk.%d.%s", t->layer, names[i][1]);
}

twin_order twin_order_of(const plan_entry *t, const king_config *k)
{
    const char *inner = inner_name(t);
    const int64_t keys = 2 * (int64_t)k->gdn_k_heads * k->gdn_k_dim;
    const struct {
        const char *name;
        int64_t first, unit;
    } moved[] = {
        { "linear_attn.in_proj_qkv", keys, k->gdn_v_dim },
        { "linear_attn.conv1d.weight", keys, k->gdn_v_dim },
        { "linear_attn.in_proj_z", 0, k->gdn_v_dim },
        { "linear_attn.in_proj_a", 0, 1 },
        { "linear_attn.in_proj_b", 0, 1 },
        { "linear_attn.A_log", 0, 1 },
        { "linear_attn.dt_bias", 0, 1 },
    };
    twin_order o = { .n_key = k->gdn_k_heads, .repeat = k->gdn_v_heads / k->gdn_k_heads };
    for (size_t i = 0; i < sizeof moved / sizeof *moved && o.repeat > 1; i++) {
        if (strcmp(moved[i].name, inner) != 0) continue;
        o.first = moved[i].first;
        o.unit = moved[i].unit;
    }
    return o;
}

/* Head v of n * m heads, transposed: v = a * m + b becomes b * n + a. */
static int64_t transpose(const twin_order *o, int64_t row, int64_t n, int64_t m)
{
    if (!o->unit || row < o->first) return row;
    const int64_t v = (row - o->first) / o->unit, within = (row - o->first) % o->unit;
    return o->first + (v % m * n + v / m) * o->unit + within;
}

int64_t twin_pack_row(const twin_order *o, int64_t row)
{
    return transpose(o, row, o->repeat, o->n_key);
}

int64_t twin_gguf_row(const twin_order *o, int64_t row)
{
    return transpose(o, row, o->n_key, o->repeat);
}

bool twin_is_decay(const plan_entry *t)
{
    return str_ends(str_from(t->name), STR(".A_log"));
}

float twin_decay(float a_log)
{
    return (float)-f64_exp((double)a_log);
}
