/* random_pack.h - writes small packs of random shape, format and weights, for property tests. */
#ifndef RANDOM_PACK_H
#define RANDOM_PACK_H
#include <math.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "pack/pack.h"
#include "test.h"

typedef struct random_pack {
    char dir[64];
    king_config c;
    bool king;       /* rotated ternary; else plain, every matrix in a format of its own */
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
    const int unit =
        p->king ? 512 : 128; /* every input width is a multiple: of the block, of any group */
    c->n_layer = PICK(r, 2, 3, 5);
    c->n_embd = p->king ? 512 : unit * PICK(r, 1, 2);
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

static inline bool is_dense_in_king(const char *name)
{
    return strstr(name, "in_proj_a") || strstr(name, "in_proj_b");
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
    int *index;           /* [plan->count][4] weight, scales, biases, signs */
    float *signs[8];      /* by input width / 512 */
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
    int *at = v->index + 4 * i;
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
    const dtype scale = !affine ? DTYPE_U8 : v->p->king ? DTYPE_F16 : DTYPE_BF16;
    at[0] = declare(v, t->name, ".weight", DTYPE_U32, 2, words);
    at[1] = declare(v, t->name, ".scales", scale, 2, groups);
    if (affine) at[2] = declare(v, t->name, ".biases", scale, 2, groups);
    if (v->p->king) at[3] = declare(v, t->name, ".signs", DTYPE_F32, 1, &t->shape[1]);
}

static inline void put(random_writer *v, int index, uint64_t at, const void *p, size_t n)
{
    error e;
    EXPECT_OK(safetensors_writer_put(v->w, index, at, p, n, &e), e);
}

static inline void put_ternary_row(random_writer *v, const int *at, int64_t row, int64_t in)
{
    uint8_t codes[4096], packed[1024];
    uint16_t scales[32], biases[32];
    for (int64_t k = 0; k < in; k++) codes[k] = (uint8_t)rng_below(&v->r, 3);
    quant_pack(codes, 2, in, packed);
    const int64_t groups = in / 128;
    for (int64_t g = 0; g < groups; g++) {
        scales[g] = dtype_f32_to_f16((float)((0.5 + rng_unit(&v->r)) / sqrt((double)in)));
        biases[g] = scales[g] ^ 0x8000;
    }
    put(v, at[0], (uint64_t)(row * in / 4), packed, (size_t)in / 4);
    put(v, at[1], (uint64_t)(row * groups * 2), scales, (size_t)groups * 2);
    put(v, at[2], (uint64_t)(row * groups * 2), biases, (size_t)groups * 2);
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
    const int *at = v->index + 4 * i;
    if (!t->is_matrix) {
        const int64_t n = t->shape[0] * (t->rank == 2 ? t->shape[1] : 1);
        for (int64_t k = 0; k < n; k++) {
            const float x = random_value(t, &v->r);
            put(v, at[0], (uint64_t)k * 4, &x, 4);
        }
        return;
    }
    const bool ternary = v->p->king && v->format[i].mode != QUANT_DENSE;
    for (int64_t row = 0; row < t->shape[0]; row++) {
        if (ternary) {
            put_ternary_row(v, at, row, t->shape[1]);
        } else {
            put_row(v, t, v->format[i], at, row);
        }
    }
    if (ternary) put(v, at[3], 0, v->signs[t->shape[1] / 512], (size_t)t->shape[1] * 4);
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
    for (int i = 0; i < c->n_layer; i++) {
        buf_printf(b, "%s\"%s_attention\"", i ? ", " : "", c->is_attention[i] ? "full" : "linear");
    }
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

static inline void write_king_config(const random_writer *v)
{
    buf b;
    buf_init(&b, 1 << 20);
    buf_text(&b,
             "{\"schema_version\": 2, \"model_type\": \"prism_hadamard_qwen35\", "
             "\"base_model_type\": \"qwen3_5\","
             " \"hadamard_config\": \"hadamard.json\", \"tensor_namespace\": \"mlx-vlm-qwen3_5\","
             " \"gdn_activation_layout\": \"grouped\","
             " \"components\": {\"text\": true, \"vision\": true, \"mtp\": false},"
             " \"quantization\": {\"bits\": 2, \"group_size\": 128, \"mode\": \"affine\"},"
             " \"tie_word_embeddings\": false, ");
    put_text_config(&b, &v->p->c);
    buf_text(&b, ", \"modules\": [");
    bool comma = false;
    for (size_t i = 0; i < v->plan->count; i++) {
        const plan_entry *t = &v->plan->entries[i];
        if (!t->is_matrix || v->format[i].mode == QUANT_DENSE) continue;
        buf_printf(
            &b, "%s{\"path\": \"%s\", \"block\": 512, \"embedding\": %s, \"dtype\": \"float16\"}",
            comma ? ", " : "", t->name, t->is_embedding ? "true" : "false");
        comma = true;
    }
    buf_text(&b, "]}");
    save(v->p, "config.json", &b);
}

static inline int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static inline void write_hadamard(random_writer *v)
{
    buf b;
    buf_init(&b, 1 << 20);
    buf_text(
        &b,
        "{\"prism.hadamard.version\": 1, \"prism.hadamard.block_size\": 512,"
        " \"prism.hadamard.transform\": \"normalized-sylvester-walsh-hadamard\","
        " \"prism.hadamard.axis\": \"input-last-dimension\", \"prism.hadamard.sign_mode\": "
        "\"explicit\","
        " \"prism.hadamard.gdn_v_grouped\": true,"
        " \"prism.hadamard.inverse_weight_names\": [\"language_model.model.embed_tokens.weight\"],"
        " \"prism.hadamard.weight_names\": [");
    char(*names)[PLAN_MAX_NAME] = mem_array(v->plan->count, sizeof *names);
    size_t n = 0;
    bool wide[8] = { false };
    for (size_t i = 0; i < v->plan->count; i++) {
        const plan_entry *t = &v->plan->entries[i];
        if (!t->is_matrix || v->format[i].mode == QUANT_DENSE) continue;
        wide[t->shape[1] / 512] = true;
        if (!t->is_embedding) snprintf(names[n++], PLAN_MAX_NAME, "%s", t->name);
    }
    qsort(names, n, sizeof *names, by_text);
    for (size_t i = 0; i < n; i++)
        buf_printf(&b, "%s\"language_model.%s.weight\"", i ? ", " : "", names[i]);
    mem_free(names);
    buf_text(&b, "], \"prism.hadamard.sign_widths\": [");
    bool comma = false;
    for (int w = 1; w < 8; w++) {
        if (!wide[w]) continue;
        buf_printf(&b, "%s%d", comma ? ", " : "", 512 * w);
        comma = true;
    }
    buf_text(&b, "], \"prism.hadamard.sign_values\": [");
    comma = false;
    for (int w = 1; w < 8; w++) {
        if (!wide[w]) continue;
        v->signs[w] = mem_array((size_t)w * 512, sizeof(float));
        for (int i = 0; i < 512 * w; i++) {
            v->signs[w][i] = rng_below(&v->r, 2) ? 1 : -1;
            buf_printf(&b, "%s%d", comma ? ", " : "", (int)v->signs[w][i]);
            comma = true;
        }
    }
    buf_text(&b, "]}");
    save(v->p, "hadamard.json", &b);
}

/* Writes the pack into a new folder, p->dir. */
static inline void random_pack_write(random_pack *p, uint64_t seed)
{
    error e;
    rng shape = { seed };
    plan list;
    random_shape(p, &shape);
    snprintf(p->dir, sizeof p->dir, "/tmp/ingot-pack-XXXXXX");
    EXPECT(mkdtemp(p->dir) != NULL);
    EXPECT_OK(plan_king(&list, &p->c, &e), e);
    random_writer v = { .r = { seed + 1 }, .p = p, .plan = &list };
    v.format = mem_array(list.count, sizeof *v.format);
    v.index = mem_array(list.count * 4, sizeof *v.index);
    for (size_t i = 0; i < list.count; i++) {
        const char *name = list.entries[i].name;
        v.format[i] = !p->king                 ? random_format(&v.r)
                      : is_dense_in_king(name) ? (quant_format){ QUANT_DENSE, 0, 0 }
                                               : (quant_format){ QUANT_AFFINE, 2, 128 };
        if (p->wide || (p->broken_row && list.entries[i].is_embedding))
            v.format[i] = (quant_format){ QUANT_DENSE, 0, 0 };
    }
    if (p->king) {
        write_king_config(&v);
        write_hadamard(&v);
    } else {
        write_plain_config(&v);
    }
    char path[96];
    snprintf(path, sizeof path, "%s/model.safetensors", p->dir);
    EXPECT_OK(safetensors_writer_new(&v.w, &e), e);
    for (size_t i = 0; i < list.count; i++) declare_entry(&v, i);
    EXPECT_OK(safetensors_writer_begin(v.w, path, &e), e);
    for (size_t i = 0; i < list.count; i++) put_entry(&v, i);
    EXPECT_OK(safetensors_writer_commit(v.w, &e), e);
    for (int w = 0; w < 8; w++) mem_free(v.signs[w]);
    mem_free(v.format);
    mem_free(v.index);
    plan_free(&list);
}

static inline void random_pack_remove(const random_pack *p)
{
    static const char *const names[] = { "config.json", "hadamard.json", "model.safetensors" };
    char path[96];
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", p->dir, names[i]);
        unlink(path);
    }
    rmdir(p->dir);
}
#endif
