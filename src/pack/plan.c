/* plan.c - the weights of a king and of a DFlash 2 drafter. */
#include "pack/plan.h"
#include <stdarg.h>
#include <stdio.h>
#include "base/mem.h"
#include "base/banned.h"

/* Fills entries in order; `layer` is put before names while it is not -1. */
typedef struct filler {
    plan *p;
    size_t cap;
    int layer;
    const char *stem; /* "model." for a king */
    bool king;
} filler;

static plan_entry *add(filler *f, const char *name, int rank, int64_t a, int64_t b, int64_t c)
{
    CHECK(f->p->count < f->cap);
    plan_entry *t = &f->p->entries[f->p->count++];
    if (f->layer >= 0) snprintf(t->name, sizeof t->name, "%slayers.%d.%s", f->stem, f->layer, name);
    else snprintf(t->name, sizeof t->name, "%s", name);
    t->rank = rank;
    t->shape[0] = a;
    t->shape[1] = b;
    t->shape[2] = c;
    t->layer = f->layer;
    return t;
}

static plan_entry *add_matrix(filler *f, const char *name, int64_t out, int64_t in)
{
    plan_entry *t = add(f, name, 2, out, in, 0);
    t->is_matrix = true;
    return t;
}

static plan_entry *add_vector(filler *f, const char *name, int64_t n)
{
    return add(f, name, 1, n, 0, 0);
}

static void add_norm(filler *f, const char *name, int64_t n)
{
    add_vector(f, name, n)->is_zero_centred = f->king;
}

/* Bounded by the ranges that config.c checks: no product overflows. */
static void add_attention(filler *f, int64_t n_embd, int64_t q, int64_t heads, int64_t kv,
                          int64_t dim)
{
    add_matrix(f, "self_attn.q_proj", q, n_embd);
    add_matrix(f, "self_attn.k_proj", kv * dim, n_embd);
    add_matrix(f, "self_attn.v_proj", kv * dim, n_embd);
    add_norm(f, "self_attn.q_norm.weight", dim);
    add_norm(f, "self_attn.k_norm.weight", dim);
    add_matrix(f, "self_attn.o_proj", n_embd, heads * dim);
}

static void add_gdn(filler *f, const king_config *c)
{
    const int64_t key = (int64_t)c->gdn_k_heads * c->gdn_k_dim;
    const int64_t value = (int64_t)c->gdn_v_heads * c->gdn_v_dim;
    const int64_t channels = 2 * key + value;
    add_matrix(f, "linear_attn.in_proj_qkv", channels, c->n_embd);
    add_matrix(f, "linear_attn.in_proj_z", value, c->n_embd);
    add_matrix(f, "linear_attn.in_proj_b", c->gdn_v_heads, c->n_embd);
    add_matrix(f, "linear_attn.in_proj_a", c->gdn_v_heads, c->n_embd);
    add(f, "linear_attn.conv1d.weight", 2, channels, c->conv_taps, 0);
    add_vector(f, "linear_attn.A_log", c->gdn_v_heads);
    add_vector(f, "linear_attn.dt_bias", c->gdn_v_heads);
    add_vector(f, "linear_attn.norm.weight", c->gdn_v_dim);
    add_matrix(f, "linear_attn.out_proj", c->n_embd, value);
}

static void add_mlp(filler *f, int64_t n_embd, int64_t n_ff)
{
    add_matrix(f, "mlp.gate_proj", n_ff, n_embd);
    add_matrix(f, "mlp.up_proj", n_ff, n_embd);
    add_matrix(f, "mlp.down_proj", n_embd, n_ff);
}

static status start(filler *f, plan *p, size_t cap, const char *stem, error *e)
{
    *p = (plan){ 0 };
    map_init(&p->index);
    p->entries = mem_array(cap, sizeof *p->entries);
    if (!p->entries) return error_set(e, E_NOMEM, "no memory for the list of weights");
    *f = (filler){ p, cap, -1, stem, stem[0] != 0 };
    return OK;
}

static status finish(plan *p, error *e)
{
    status s = map_reserve(&p->index, p->count, e);
    for (size_t i = 0; i < p->count && !s; i++)
        s = map_put(&p->index, str_from(p->entries[i].name), i, e);
    if (s) plan_free(p);
    return s;
}

status plan_king(plan *p, const king_config *c, error *e)
{
    filler f = { 0 };
    TRY(start(&f, p, (size_t)c->n_layer * 14 + 3, "model.", e));
    add_matrix(&f, "model.embed_tokens", c->n_vocab, c->n_embd)->is_embedding = true;
    for (f.layer = 0; f.layer < c->n_layer; f.layer++) {
        add_norm(&f, "input_layernorm.weight", c->n_embd);
        if (c->is_attention[f.layer]) {
            add_attention(&f, c->n_embd, (int64_t)c->n_head * c->head_dim * 2, c->n_head,
                          c->n_kv_head, c->head_dim);
        } else {
            add_gdn(&f, c);
        }
        add_norm(&f, "post_attention_layernorm.weight", c->n_embd);
        add_mlp(&f, c->n_embd, c->n_ff);
    }
    f.layer = -1;
    add_norm(&f, "model.norm.weight", c->n_embd);
    if (!c->tied) add_matrix(&f, "lm_head", c->n_vocab, c->n_embd);
    return finish(p, e);
}

static void add_conv(filler *f, const drafter_config *c, const char *which)
{
    char name[48];
    const int64_t groups = c->n_embd / c->conv_group;
    snprintf(name, sizeof name, "%s.base_kernel", which);
    add(f, name, 3, 2, c->conv_taps, c->n_embd);
    snprintf(name, sizeof name, "%s.kernel_projection", which);
    add_matrix(f, name, 2 * c->conv_taps * groups, c->n_embd);
}

status plan_drafter(plan *p, const drafter_config *c, error *e)
{
    filler f = { 0 };
    TRY(start(&f, p, (size_t)c->n_layer * 15 + 6, "", e));
    add_matrix(&f, "fc", c->n_embd, (int64_t)c->n_tap * c->n_embd);
    add_vector(&f, "hidden_norm.weight", c->n_embd);
    for (f.layer = 0; f.layer < c->n_layer; f.layer++) {
        add_vector(&f, "input_layernorm.weight", c->n_embd);
        add_conv(&f, c, "attention_conv");
        add_attention(&f, c->n_embd, (int64_t)c->n_head * c->head_dim, c->n_head, c->n_kv_head,
                      c->head_dim);
        add_vector(&f, "post_attention_layernorm.weight", c->n_embd);
        add_conv(&f, c, "mlp_conv");
        add_mlp(&f, c->n_embd, c->n_ff);
    }
    f.layer = -1;
    add_vector(&f, "norm.weight", c->n_embd);
    add_matrix(&f, "candidate_selector.hidden_projection", c->rank, c->n_embd);
    add_matrix(&f, "candidate_selector.predecessor_codebook", c->n_vocab, c->rank)->is_embedding =
        true;
    add_matrix(&f, "candidate_selector.successor_codebook", c->n_vocab, c->rank)->is_embedding =
        true;
    return finish(p, e);
}

void plan_free(plan *p)
{
    map_free(&p->index);
    mem_free(p->entries);
    *p = (plan){ 0 };
}

const plan_entry *plan_find(const plan *p, str name)
{
    uint64_t i;
    return map_get(&p->index, name, &i) ? &p->entries[i] : NULL;
}

int64_t plan_elements(const plan_entry *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++) n *= t->shape[i];
    return n;
}
