/* random_pack.h - writes small packs of random shape, format and weights, for property tests: plain
 * ones here, kings and drafters by synth. */
#ifndef RANDOM_PACK_H
#define RANDOM_PACK_H
#include <math.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "pack/pack.h"
#include "tools/synth.h"
#include "test.h"

typedef struct random_pack {
    char dir[64];
    king_config c;
    bool wide;       /* more than 100 MB of dense weights */
    bool broken_row; /* embedding of token 1 is not finite (plain packs) */
} random_pack;

static inline int pick(rng *r, const int *list, int n)
{
    return list[rng_below(r, (uint32_t)n)];
}
#define PICK(r, ...) \
    pick(r, (const int[]){ __VA_ARGS__ }, (int)(sizeof((const int[]){ __VA_ARGS__ }) / sizeof(int)))

static inline void random_shape(random_pack *p, rng *r)
{
    king_config *c = &p->c;
    *c = (king_config){ .n_vocab = 256,
                        .max_positions = 2048,
                        .eps = 1e-6f,
                        .conv_taps = 4,
                        .rope_theta = 1e7 };
    const int unit = 128; /* every input width is a multiple of any group */
    c->n_layer = PICK(r, 2, 3, 5);
    c->n_embd = unit * PICK(r, 1, 2);
    c->n_ff = unit * PICK(r, 1, 2, 3);
    c->head_dim = PICK(r, 32, 64, 128);
    c->n_head = unit / c->head_dim;
    c->n_kv_head = c->n_head > 1 && rng_below(r, 2) ? c->n_head / 2 : 1;
    c->rotary_dim = c->head_dim / PICK(r, 1, 2, 4);
    c->gdn_v_dim = PICK(r, 32, 64, 128);
    c->gdn_v_heads = unit / c->gdn_v_dim;
    c->gdn_k_heads = c->gdn_v_heads > 1 && rng_below(r, 2) ? c->gdn_v_heads / 2 : 1;
    c->gdn_k_dim = PICK(r, 32, 64, 128);
    if (p->wide) {
        c->n_embd = 1024;
        c->n_ff = 4096;
        c->n_layer = 2;
    }
    const int attention = (int)rng_below(r, (uint32_t)c->n_layer);
    for (int i = 0; i < c->n_layer; i++) {
        c->is_attention[i] =
            i == attention || (i != (attention + 1) % c->n_layer && rng_below(r, 3) == 0);
        c->n_attention += c->is_attention[i];
    }
    c->n_gdn = c->n_layer - c->n_attention;
}

/* ---- weights ---- */

static inline quant_format random_format(rng *r)
{
    switch (rng_below(r, 8)) {
    case 0: return (quant_format){ QUANT_DENSE, 0, 0 };
    case 1: return (quant_format){ QUANT_MXFP4, 4, 32 };
    default: return (quant_format){ QUANT_AFFINE, PICK(r, 2, 3, 4, 5, 6, 8), PICK(r, 32, 64, 128) };
    }
}

static inline float random_value(const plan_entry *t, rng *r)
{
    if (strstr(t->name, "A_log")) return (float)rng_unit(r);
    if (strstr(t->name, "dt_bias")) return (float)rng_normal(r);
    if (strstr(t->name, "conv1d")) return 0.5f * (float)rng_normal(r);
    return 1.0f + 0.2f * (float)rng_normal(r); /* norms */
}

typedef struct random_writer {
    safetensors_writer *w;
    rng r;
    const random_pack *p;
    const plan *plan;
    quant_format *format; /* [plan->count] */
    int *index;           /* [plan->count][3] weight, scales, biases */
} random_writer;

static inline int declare(random_writer *v, const char *name, const char *part, dtype type,
                          int rank, const int64_t *shape)
{
    error e;
    char full[160];
    int index;
    snprintf(full, sizeof full, "language_model.%s%s", name, part);
    EXPECT_OK(safetensors_writer_declare(v->w, str_from(full), type, rank, shape, &index, &e), e);
    return index;
}

static inline void declare_entry(random_writer *v, size_t i)
{
    const plan_entry *t = &v->plan->entries[i];
    int *at = v->index + 3 * i;
    if (!t->is_matrix) {
        const int64_t shape[3] = { t->shape[0], t->shape[1], 1 };
        at[0] = declare(v, t->name, "", DTYPE_F32, t->rank == 2 ? 3 : 1, shape);
        return;
    }
    const quant_format f = v->format[i];
    const bool affine = f.mode == QUANT_AFFINE;
    if (f.mode == QUANT_DENSE) {
        at[0] = declare(v, t->name, ".weight", DTYPE_F32, 2, t->shape);
        return;
    }
    const int64_t words[2] = { t->shape[0], t->shape[1] * f.bits / 32 };
    const int64_t groups[2] = { t->shape[0], t->shape[1] / f.group };
    const dtype scale = affine ? DTYPE_BF16 : DTYPE_U8;
    at[0] = declare(v, t->name, ".weight", DTYPE_U32, 2, words);
    at[1] = declare(v, t->name, ".scales", scale, 2, groups);
    if (affine) at[2] = declare(v, t->name, ".biases", scale, 2, groups);
}

static inline void put(random_writer *v, int index, uint64_t at, const void *p, size_t n)
{
    error e;
    EXPECT_OK(safetensors_writer_put(v->w, index, at, p, n, &e), e);
}

static inline void put_row(random_writer *v, const plan_entry *t, quant_format f, const int *at,
                           int64_t row)
{
    const int64_t in = t->shape[1];
    float w[4096];
    uint8_t codes[4096], scales[512], biases[512];
    const float size = t->is_embedding ? 1.0f : 1.0f / sqrtf((float)in);
    for (int64_t k = 0; k < in; k++) w[k] = size * (float)rng_normal(&v->r);
    if (f.mode == QUANT_DENSE) {
        if (t->is_embedding && v->p->broken_row && row == 1) w[in / 2] = INFINITY;
        put(v, at[0], (uint64_t)(row * in) * 4, w, (size_t)in * 4);
        return;
    }
    quant_encode_row(f, w, in, DTYPE_BF16, codes, scales, biases);
    const size_t bytes = (size_t)quant_row_bytes(f, in);
    const size_t scale_bytes = (size_t)(in / f.group) * (f.mode == QUANT_AFFINE ? 2 : 1);
    put(v, at[0], (uint64_t)row * bytes, codes, bytes);
    put(v, at[1], (uint64_t)row * scale_bytes, scales, scale_bytes);
    if (f.mode == QUANT_AFFINE) put(v, at[2], (uint64_t)row * scale_bytes, biases, scale_bytes);
}

static inline void put_entry(random_writer *v, size_t i)
{
    const plan_entry *t = &v->plan->entries[i];
    const int *at = v->index + 3 * i;
    if (!t->is_matrix) {
        const int64_t n = t->shape[0] * (t->rank == 2 ? t->shape[1] : 1);
        for (int64_t k = 0; k < n; k++) {
            const float x = random_value(t, &v->r);
            put(v, at[0], (uint64_t)k * 4, &x, 4);
        }
        return;
    }
    for (int64_t row = 0; row < t->shape[0]; row++) put_row(v, t, v->format[i], at, row);
}

/* ---- config.json and hadamard.json ---- */

static inline void put_text_config(buf *b, const king_config *c)
{
    buf_printf(b,
               "\"text_config\": {\"model_type\": \"qwen3_5_text\", \"hidden_size\": %d, "
               "\"intermediate_size\": %d,"
               " \"vocab_size\": %d, \"num_hidden_layers\": %d, \"num_attention_heads\": %d,"
               " \"num_key_value_heads\": %d, \"head_dim\": %d, \"rms_norm_eps\": 1e-06, "
               "\"hidden_act\": \"silu\","
               " \"linear_num_key_heads\": %d, \"linear_num_value_heads\": %d, "
               "\"linear_key_head_dim\": %d,"
               " \"linear_value_head_dim\": %d, \"linear_conv_kernel_dim\": %d, "
               "\"max_position_embeddings\": %d,"
               " \"attn_output_gate\": true, \"attention_bias\": false, \"eos_token_id\": 2,"
               " \"tie_word_embeddings\": false, \"partial_rotary_factor\": %g,"
               " \"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 10000000,"
               " \"partial_rotary_factor\": %g}, \"layer_types\": [",
               c->n_embd, c->n_ff, c->n_vocab, c->n_layer, c->n_head, c->n_kv_head, c->head_dim,
               c->gdn_k_heads, c->gdn_v_heads, c->gdn_k_dim, c->gdn_v_dim, c->conv_taps,
               c->max_positions, (double)c->rotary_dim / c->head_dim,
               (double)c->rotary_dim / c->head_dim);
    for (int i = 0; i < c->n_layer; i++)
        buf_printf(b, "%s\"%s_attention\"", i ? ", " : "", c->is_attention[i] ? "full" : "linear");
    buf_text(b, "]}");
}

static inline void save(const random_pack *p, const char *name, buf *b)
{
    error e;
    char path[96];
    snprintf(path, sizeof path, "%s/%s", p->dir, name);
    EXPECT_OK(buf_status(b, name, &e), e);
    EXPECT_OK(file_write(path, buf_view(b), &e), e);
    buf_free(b);
}

static inline void write_plain_config(const random_writer *v)
{
    buf b;
    buf_init(&b, 1 << 20);
    buf_text(&b, "{\"model_type\": \"qwen3_5\", \"tie_word_embeddings\": false, ");
    put_text_config(&b, &v->p->c);
    buf_text(&b, ", \"quantization\": {\"group_size\": 64, \"bits\": 4, \"mode\": \"affine\"");
    for (size_t i = 0; i < v->plan->count; i++) {
        const plan_entry *t = &v->plan->entries[i];
        const quant_format f = v->format[i];
        if (!t->is_matrix) continue;
        buf_printf(&b, ", \"language_model.%s\": ", t->name);
        if (f.mode == QUANT_DENSE) {
            buf_text(&b, "false");
        } else {
            buf_printf(&b, "{\"group_size\": %d, \"bits\": %d, \"mode\": \"%s\"}", f.group, f.bits,
                       quant_mode_name(f.mode));
        }
    }
    buf_text(&b, "}}");
    save(v->p, "config.json", &b);
}

static inline void random_pack_dir(random_pack *p)
{
    snprintf(p->dir, sizeof p->dir, "/tmp/ingot-pack-XXXXXX");
    EXPECT(mkdtemp(p->dir) != NULL);
}

/* Writes a plain pack into a new folder, p->dir. */
static inline void random_pack_plain(random_pack *p, uint64_t seed)
{
    error e;
    rng shape = { seed };
    plan list;
    random_shape(p, &shape);
    random_pack_dir(p);
    EXPECT_OK(plan_king(&list, &p->c, &e), e);
    random_writer v = { .r = { seed + 1 }, .p = p, .plan = &list };
    v.format = mem_array(list.count, sizeof *v.format);
    v.index = mem_array(list.count * 3, sizeof *v.index);
    for (size_t i = 0; i < list.count; i++) {
        v.format[i] = random_format(&v.r);
        if (p->wide || (p->broken_row && list.entries[i].is_embedding))
            v.format[i] = (quant_format){ QUANT_DENSE, 0, 0 };
    }
    write_plain_config(&v);
    char path[96];
    snprintf(path, sizeof path, "%s/model.safetensors", p->dir);
    EXPECT_OK(safetensors_writer_new(&v.w, &e), e);
    for (size_t i = 0; i < list.count; i++) declare_entry(&v, i);
    EXPECT_OK(safetensors_writer_begin(v.w, path, &e), e);
    for (size_t i = 0; i < list.count; i++) put_entry(&v, i);
    EXPECT_OK(safetensors_writer_commit(v.w, &e), e);
    mem_free(v.format);
    mem_free(v.index);
    plan_free(&list);
}

static inline void random_pack_synth(random_pack *p, const char *shape, uint64_t seed)
{
    error e;
    char path[96];
    random_pack_dir(p);
    snprintf(path, sizeof path, "%s.json", p->dir); /* beside the folder, which must be empty */
    EXPECT_OK(file_write(path, str_from(shape), &e), e);
    EXPECT_OK(synth_write(p->dir, &(synth_options){ .shape = path, .seed = seed }, &e), e);
    (void)unlink(path);
}

/* Hidden size 512, vocabulary 1024: what random_pack_drafter drafts for. */
static inline void random_pack_king(random_pack *p, uint64_t seed)
{
    rng r = { seed };
    const int dim = PICK(&r, 32, 64, 128), heads = 512 / dim, v_dim = PICK(&r, 32, 64, 128),
              v_heads = 512 / v_dim;
    char shape[512];
    p->c.n_layer = PICK(&r, 4, 5, 8);
    snprintf(
        shape, sizeof shape,
        "{\"kind\": \"king\", \"block\": 512, \"hidden_size\": 512, \"vocab_size\": 1024,"
        " \"num_hidden_layers\": %d, \"intermediate_size\": %d, \"max_position_embeddings\": 2048,"
        " \"head_dim\": %d, \"num_attention_heads\": %d, \"num_key_value_heads\": %d,"
        " \"linear_value_head_dim\": %d, \"linear_num_value_heads\": %d, \"linear_key_head_dim\": "
        "%d,"
        " \"linear_num_key_heads\": %d}",
        p->c.n_layer, 512 * PICK(&r, 1, 2, 3), dim, heads, heads / PICK(&r, 1, 2), v_dim, v_heads,
        PICK(&r, 32, 64, 128), v_heads / PICK(&r, 1, 2));
    random_pack_synth(p, shape, seed);
}

static inline void random_pack_drafter(random_pack *p, const random_pack *target, uint64_t seed)
{
    rng r = { seed };
    const int dim = PICK(&r, 32, 64), heads = PICK(&r, 4, 8);
    char shape[512];
    snprintf(shape, sizeof shape,
             "{\"kind\": \"drafter\", \"hidden_size\": 512, \"vocab_size\": 1024, "
             "\"num_hidden_layers\": %d,"
             " \"intermediate_size\": %d, \"head_dim\": %d, \"num_attention_heads\": %d,"
             " \"num_key_value_heads\": %d, \"sliding_window\": %d, \"block_size\": 8, "
             "\"mask_token_id\": 1000,"
             " \"conv_group_size\": %d, \"selector_rank\": 64, \"selector_top_k\": 8, "
             "\"num_target_layers\": %d,"
             " \"target_layer_ids\": [1, 3], \"max_position_embeddings\": 2048, \"bits\": %d}",
             PICK(&r, 1, 2, 3), 64 * PICK(&r, 2, 3, 8), dim, heads, heads / PICK(&r, 1, 2, 4),
             PICK(&r, 9, 32, 58, 2048), PICK(&r, 16, 64), target->c.n_layer,
             PICK(&r, 2, 3, 4, 6, 8, 16));
    random_pack_synth(p, shape, seed);
}

static inline status random_pack_unlink(void *arg, const char *name, error *e)
{
    char path[512];
    (void)e;
    snprintf(path, sizeof path, "%s/%s", (const char *)arg, name);
    unlink(path);
    return OK;
}

static inline void random_pack_remove(random_pack *p)
{
    error e;
    EXPECT_OK(file_list(p->dir, random_pack_unlink, p->dir, &e), e);
    rmdir(p->dir);
}
#endif
