/* convert_to_pack.c - from a king's GGUF twin to its pack; see convert.h. The tensors are found by
 * walking the plan of the king that the file describes. */
#include "tools/convert.h"
#include <math.h>
#include <stdio.h>
#include "base/f64.h"
#include "base/mem.h"
#include "pack/gguf.h"
#include "pack/pack.h"
#include "pack/ternary.h"
#include "tools/kingfiles.h"
#include "tools/newfolder.h"
#include "tools/textfiles.h"
#include "tools/twin.h"
#include "base/banned.h"

enum { MAX_PATH = 4096, MAX_CONFIG = 64 << 20, CHUNK_ROWS = 512 };

typedef struct to_pack {
    const gguf *g;
    const char *target;
    newfolder folder;
    const convert_options *o;
    convert_report *report;
    king_config king;
    plan plan;
    const gguf_tensor **found; /* [plan.count] */
    int *block;                /* [plan.count], see kingfiles.h */
    map rotated;               /* GGUF names under the forward or inverse rotation */
    kingfiles files;
    safetensors_writer *w;
    int *index; /* [plan.count] first of the tensors written for an entry */
    uint64_t done, total;
    arena mem;
} to_pack;

static status no_memory(const char *path, error *e)
{
    return error_set(e, E_NOMEM, "%s: no memory to convert", path);
}

static status want_text(const gguf *g, const char *key, const char *want, error *e)
{
    str found = { 0 };
    if (!gguf_str(gguf_find(g, key), &found)) {
        return error_set(e, E_UNSUPPORTED, "%s: %s: found nothing, want \"%s\"", g->path, key,
                         want);
    }
    if (str_eq(found, str_from(want))) return OK;
    char shown[64];
    return error_set(e, E_UNSUPPORTED, "%s: %s: found \"%s\", want \"%s\"", g->path, key,
                     field_show(found, shown, sizeof shown), want);
}

static status read_int(const gguf *g, const char *key, int most, int *out, error *e)
{
    int64_t n = 0;
    const gguf_value *v = gguf_find(g, key);
    if (v && !v->is_array && gguf_i64(v, 0, &n) && n >= 1 && n <= most) {
        *out = (int)n;
        return OK;
    }
    return error_set(e, E_FORMAT, "%s: %s: found %s, want a whole number from 1 to %d", g->path,
                     key, v ? "another" : "nothing", most);
}

static status read_real(const gguf *g, const char *key, double *out, error *e)
{
    const gguf_value *v = gguf_find(g, key);
    if (v && !v->is_array && gguf_f64(v, 0, out) && *out > 0 && isfinite(*out)) return OK;
    return error_set(e, E_FORMAT, "%s: %s: found %s, want a number above 0", g->path, key,
                     v ? "another" : "nothing");
}

static status read_dimensions(const gguf *g, king_config *k, error *e)
{
    enum { MOST = 1 << 24 };
    int interval = 0, value_length = 0, inner = 0;
    double eps = 0;
    const struct {
        const char *key;
        int most, *out;
    } ints[] = {
        { "qwen35.block_count", CONFIG_MAX_LAYERS, &k->n_layer },
        { "qwen35.context_length", 1 << 30, &k->max_positions },
        { "qwen35.embedding_length", MOST, &k->n_embd },
        { "qwen35.feed_forward_length", MOST, &k->n_ff },
        { "qwen35.attention.head_count", MOST, &k->n_head },
        { "qwen35.attention.head_count_kv", MOST, &k->n_kv_head },
        { "qwen35.attention.key_length", 1 << 16, &k->head_dim },
        { "qwen35.attention.value_length", 1 << 16, &value_length },
        { "qwen35.rope.dimension_count", 1 << 16, &k->rotary_dim },
        { "qwen35.full_attention_interval", CONFIG_MAX_LAYERS, &interval },
        { "qwen35.ssm.conv_kernel", 1 << 8, &k->conv_taps },
        { "qwen35.ssm.state_size", 1 << 16, &k->gdn_k_dim },
        { "qwen35.ssm.group_count", 1 << 12, &k->gdn_k_heads },
        { "qwen35.ssm.time_step_rank", 1 << 12, &k->gdn_v_heads },
        { "qwen35.ssm.inner_size", MOST, &inner },
    };
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++)
        TRY(read_int(g, ints[i].key, ints[i].most, ints[i].out, e));
    TRY(read_real(g, "qwen35.attention.layer_norm_rms_epsilon", &eps, e));
    TRY(read_real(g, "qwen35.rope.freq_base", &k->rope_theta, e));
    k->eps = (float)eps;
    if (value_length != k->head_dim || inner % k->gdn_v_heads || k->gdn_v_heads % k->gdn_k_heads) {
        return error_set(e, E_UNSUPPORTED,
                         "%s: value_length %d, inner_size %d, %d value heads, %d key heads: want "
                         "value_length %d and whole multiples",
                         g->path, value_length, inner, k->gdn_v_heads, k->gdn_k_heads, k->head_dim);
    }
    k->gdn_v_dim = inner / k->gdn_v_heads;
    for (int i = 0; i < k->n_layer; i++) {
        k->is_attention[i] = (i + 1) % interval == 0;
        k->n_attention += k->is_attention[i];
    }
    k->n_gdn = k->n_layer - k->n_attention;
    const gguf_tensor *t = gguf_find_tensor(g, "token_embd.weight");
    if (!t || t->rank != 2 || t->shape[0] > MOST) {
        return error_set(e, E_FORMAT, "%s: tensor token_embd.weight: missing, or no matrix",
                         g->path);
    }
    k->n_vocab = (int)t->shape[0];
    return OK;
}

static status check_rotation(const to_pack *c, error *e)
{
    const gguf *g = c->g;
    int version = 0;
    bool grouped = false;
    if (!gguf_find(g, "prism.hadamard.version")) {
        return error_set(e, E_UNSUPPORTED,
                         "%s: no rotation metadata (prism.hadamard.*): no king's twin", g->path);
    }
    TRY(read_int(g, "prism.hadamard.version", 1 << 20, &version, e));
    if (version != 1) {
        return error_set(e, E_UNSUPPORTED, "%s: prism.hadamard.version: found %d, want 1", g->path,
                         version);
    }
    TRY(want_text(g, "prism.hadamard.transform", "normalized-sylvester-walsh-hadamard", e));
    TRY(want_text(g, "prism.hadamard.axis", "input-last-dimension", e));
    TRY(want_text(g, "prism.hadamard.sign_mode", "explicit", e));
    (void)gguf_bool(gguf_find(g, "prism.hadamard.gdn_v_grouped"), &grouped);
    if (grouped || c->king.gdn_v_heads == c->king.gdn_k_heads) return OK;
    return error_set(e, E_UNSUPPORTED,
                     "%s: prism.hadamard.gdn_v_grouped: found false or nothing, want true: its "
                     "rotated ssm_out cannot be put into the order of a pack",
                     g->path);
}

static status read_names(to_pack *c, const char *key, error *e)
{
    const gguf_value *v = gguf_find(c->g, key);
    const uint8_t *at = NULL;
    str name;
    if (!v || !v->is_array || v->type != GGUF_STRING)
        return error_set(e, E_FORMAT, "%s: %s: want an array of strings", c->g->path, key);
    while (gguf_each_str(v, &at, &name)) {
        if (!map_get(&c->g->tensor_index, name, NULL)) {
            char shown[80];
            return error_set(e, E_FORMAT, "%s: %s: \"%s\" is no tensor of the file", c->g->path,
                             key, field_show(name, shown, sizeof shown));
        }
        TRY(map_put(&c->rotated, name, 1, e));
    }
    return OK;
}

static status read_signs(to_pack *c, error *e)
{
    const gguf_value *widths = gguf_find(c->g, "prism.hadamard.sign_widths");
    const gguf_value *values = gguf_find(c->g, "prism.hadamard.sign_values");
    uint64_t at = 0;
    if (!widths || !values || widths->count > KINGFILES_MAX_WIDTHS) {
        return error_set(e, E_FORMAT, "%s: sign_widths, sign_values: missing, or more than %d",
                         c->g->path, KINGFILES_MAX_WIDTHS);
    }
    for (uint64_t i = 0; i < widths->count; i++) {
        int64_t width = 0;
        if (!gguf_i64(widths, i, &width) || width < 1 || (uint64_t)width > values->count - at) {
            return error_set(
                e, E_FORMAT, "%s: prism.hadamard.sign_widths[%d]: %lld with %llu sign_values left",
                c->g->path, (int)i, (long long)width, (unsigned long long)(values->count - at));
        }
        float *signs = arena_array(&c->mem, (size_t)width, sizeof *signs);
        if (!signs) return no_memory(c->g->path, e);
        for (int64_t k = 0; k < width; k++, at++) {
            double v = 0;
            if (!gguf_f64(values, at, &v) || (v != 1.0 && v != -1.0)) {
                return error_set(e, E_FORMAT,
                                 "%s: prism.hadamard.sign_values[%llu]: found %g, want 1 or -1",
                                 c->g->path, (unsigned long long)at, v);
            }
            signs[k] = (float)v;
        }
        c->files.width[i] = width;
        c->files.signs[i] = signs;
        c->files.n_width++;
    }
    if (at == values->count) return OK;
    return error_set(e, E_FORMAT, "%s: prism.hadamard.sign_values: %llu, want %llu", c->g->path,
                     (unsigned long long)values->count, (unsigned long long)at);
}

static const float *signs_of(const to_pack *c, int64_t width)
{
    for (int i = 0; i < c->files.n_width; i++)
        if (c->files.width[i] == width) return c->files.signs[i];
    return NULL;
}

static bool is_dense(uint32_t type)
{
    return type == GGUF_F32_DATA || type == GGUF_F16_DATA || type == GGUF_BF16_DATA;
}

/* Blocks of 128 whose bytes are known here: also the older name and number of PQ2_0. */
static bool is_ternary(const gguf_tensor *t)
{
    return t->type == GGUF_PQ2_0 || t->type == GGUF_PTQ1_0 ||
           (t->type == GGUF_Q2_0 && t->block == TERNARY_GROUP);
}

/* Finds the tensor of a plan entry and says how it will be stored. */
static status resolve(to_pack *c, size_t i, error *e)
{
    const plan_entry *t = &c->plan.entries[i];
    char name[TWIN_MAX_NAME], shown[24];
    twin_name(t, name);
    const gguf_tensor *g = gguf_find_tensor(c->g, name);
    if (!g) return error_set(e, E_FORMAT, "%s: tensor %s is missing", c->g->path, name);
    bool same = g->rank == t->rank;
    for (int d = 0; same && d < g->rank; d++) same = g->shape[d] == t->shape[d];
    if (!same) {
        char a[96], b[96];
        return error_set(e, E_FORMAT, "%s: tensor %s: shape %s, want %s", c->g->path, name,
                         tensor_shape_text(g->rank, g->shape, a, sizeof a),
                         tensor_shape_text(t->rank, t->shape, b, sizeof b));
    }
    const bool rotated = map_get(&c->rotated, str_from(name), NULL);
    c->found[i] = g;
    c->block[i] = KINGFILES_DENSE;
    if (t->is_matrix && is_ternary(g)) {
        c->block[i] = rotated ? c->files.rotation : 0;
        if (!rotated || signs_of(c, t->shape[1])) return OK;
        return error_set(e, E_FORMAT, "%s: tensor %s: no signs of its width %lld", c->g->path, name,
                         (long long)t->shape[1]);
    }
    if (is_dense(g->type) && !rotated) return OK;
    return error_set(e, E_UNSUPPORTED, "%s: tensor %s: %s%s, want %s", c->g->path, name,
                     gguf_type_text(g->type, shown, sizeof shown), rotated ? " and rotated" : "",
                     t->is_matrix ? "PQ2_0 or PTQ1_0 (or F32, F16, BF16 where not rotated)"
                                  : "F32, F16 or BF16");
}

static status resolve_all(to_pack *c, error *e)
{
    TRY(plan_king(&c->plan, &c->king, e));
    c->found = arena_array(&c->mem, c->plan.count, sizeof *c->found);
    c->block = arena_array(&c->mem, c->plan.count, sizeof *c->block);
    c->index = arena_array(&c->mem, c->plan.count, sizeof *c->index);
    if (!c->found || !c->block || !c->index) return no_memory(c->g->path, e);
    for (size_t i = 0; i < c->plan.count; i++) TRY(resolve(c, i, e));
    if (c->g->n_tensors == c->plan.count) return OK;
    map known;
    map_init(&known);
    status s = OK;
    char name[TWIN_MAX_NAME];
    for (size_t i = 0; i < c->plan.count && !s; i++) s = map_put(&known, c->found[i]->name, 1, e);
    for (size_t i = 0; i < c->g->n_tensors && !s; i++) {
        if (map_get(&known, c->g->tensors[i].name, NULL)) continue;
        s = error_set(e, E_UNSUPPORTED, "%s: tensor %s: belongs to no weight of a king", c->g->path,
                      field_show(c->g->tensors[i].name, name, sizeof name));
    }
    map_free(&known);
    return s;
}

static status declare_one(to_pack *c, const char *path, const char *suffix, dtype type, int rank,
                          const int64_t *shape, int *index, error *e)
{
    char name[PLAN_MAX_NAME + 32];
    snprintf(name, sizeof name, "language_model.%s%s", path, suffix);
    return safetensors_writer_declare(c->w, str_from(name), type, rank, shape, index, e);
}

static status declare_pack(to_pack *c, error *e)
{
    TRY(safetensors_writer_metadata(c->w, STR("format"), STR("mlx"), e));
    for (size_t i = 0; i < c->plan.count; i++) {
        const plan_entry *t = &c->plan.entries[i];
        const int64_t shape[3] = { t->shape[0], t->shape[1], 1 };
        const bool conv = str_ends(str_from(t->name), STR(".conv1d.weight"));
        c->total += c->found[i]->bytes;
        if (c->block[i] == KINGFILES_DENSE) {
            TRY(declare_one(c, t->name, t->is_matrix ? ".weight" : "", DTYPE_F32,
                            conv ? 3 : t->rank, shape, &c->index[i], e));
            c->report->plain++;
            continue;
        }
        const int64_t codes[2] = { t->shape[0], t->shape[1] / 16 };
        const int64_t groups[2] = { t->shape[0], t->shape[1] / TERNARY_GROUP };
        TRY(declare_one(c, t->name, ".weight", DTYPE_U32, 2, codes, &c->index[i], e));
        TRY(declare_one(c, t->name, ".scales", DTYPE_F16, 2, groups, NULL, e));
        TRY(declare_one(c, t->name, ".biases", DTYPE_F16, 2, groups, NULL, e));
        if (c->block[i])
            TRY(declare_one(c, t->name, ".signs", DTYPE_F32, 1, &t->shape[1], NULL, e));
        c->report->packed++;
    }
    return OK;
}

static void advance(to_pack *c, uint64_t bytes)
{
    c->done += bytes;
    if (c->o->progress) c->o->progress(c->o->arg, c->done, c->total);
}

/* A chunk of a packed matrix, taken apart. */
typedef struct parts {
    uint8_t *codes, *scales, *biases;
} parts;

/* False when a scale is no number. */
static bool decode_row(const gguf_tensor *g, int64_t row, int64_t blocks, int64_t at, parts *p)
{
    enum { EXPONENT = 0x7c00 };
    bool finite = true;
    const uint8_t *block = g->data + row * blocks * g->block_bytes;
    for (int64_t b = 0; b < blocks; b++, block += g->block_bytes) {
        const int64_t k = at * blocks + b;
        uint16_t d;
        if (g->type == GGUF_PTQ1_0) ternary_get_ptq1(block, p->codes + k * TERNARY_CODES, &d);
        else ternary_get_pq2(block, p->codes + k * TERNARY_CODES, &d);
        memcpy(p->scales + 2 * k, &d, sizeof d);
        finite = finite && (d & EXPONENT) != EXPONENT;
        d ^= 0x8000u;
        memcpy(p->biases + 2 * k, &d, sizeof d);
    }
    return finite;
}

static status not_finite(const to_pack *c, const gguf_tensor *g, int64_t row, error *e)
{
    return error_set(e, E_FORMAT, "%s: tensor %.*s: row %lld: found values that are not finite",
                     c->g->path, STR_ARG(g->name), (long long)row);
}

static status take_packed(to_pack *c, size_t i, error *e)
{
    const plan_entry *t = &c->plan.entries[i];
    const gguf_tensor *g = c->found[i];
    const twin_order order = twin_order_of(t, &c->king);
    const int64_t rows = t->shape[0], blocks = t->shape[1] / TERNARY_GROUP;
    const size_t groups = (size_t)CHUNK_ROWS * (size_t)blocks;
    parts p = { mem_array(groups, TERNARY_CODES), mem_array(groups, 2), mem_array(groups, 2) };
    status s = p.codes && p.scales && p.biases ? OK : no_memory(c->target, e);
    for (int64_t first = 0; first < rows && !s; first += CHUNK_ROWS) {
        const int64_t n = rows - first < CHUNK_ROWS ? rows - first : CHUNK_ROWS;
        for (int64_t r = 0; r < n && !s; r++) {
            const int64_t row = twin_gguf_row(&order, first + r);
            if (!decode_row(g, row, blocks, r, &p)) s = not_finite(c, g, row, e);
        }
        const uint64_t at = (uint64_t)(first * blocks), count = (uint64_t)(n * blocks);
        if (!s)
            s = safetensors_writer_put(c->w, c->index[i], at * TERNARY_CODES, p.codes,
                                       count * TERNARY_CODES, e);
        if (!s) s = safetensors_writer_put(c->w, c->index[i] + 1, at * 2, p.scales, count * 2, e);
        if (!s) s = safetensors_writer_put(c->w, c->index[i] + 2, at * 2, p.biases, count * 2, e);
        advance(c, count * (uint64_t)g->block_bytes);
    }
    mem_free(p.codes);
    mem_free(p.scales);
    mem_free(p.biases);
    if (s || !c->block[i]) return s;
    return safetensors_writer_put(c->w, c->index[i] + 3, 0, signs_of(c, t->shape[1]),
                                  (size_t)t->shape[1] * sizeof(float), e);
}

/* A_log of one layer from the decays there [n], in place. The exact values of a file made here are
 * used when they are the logarithms of what the tensor holds. */
static status take_decay(const to_pack *c, const plan_entry *t, float *values, error *e)
{
    const int n = c->king.gdn_v_heads;
    const gguf_value *exact = gguf_find(c->g, TWIN_A_LOG);
    uint64_t before = 0;
    for (int l = 0; l < t->layer; l++) before += c->king.is_attention[l] ? 0 : 1;
    for (int v = 0; v < n; v++) {
        double known;
        if (!(values[v] < 0.0f) || !isfinite(values[v])) {
            return error_set(e, E_FORMAT, "%s: tensor blk.%d.ssm_a: element %d is %g, want below 0",
                             c->g->path, t->layer, v, (double)values[v]);
        }
        const bool kept = gguf_f64(exact, before * (uint64_t)n + (uint64_t)v, &known) &&
                          twin_decay((float)known) == values[v];
        values[v] = kept ? (float)known : (float)f64_log(-(double)values[v]);
    }
    return OK;
}

static status take_dense(to_pack *c, size_t i, error *e)
{
    const plan_entry *t = &c->plan.entries[i];
    const gguf_tensor *g = c->found[i];
    const twin_order order = twin_order_of(t, &c->king);
    const int64_t n = plan_elements(t), rows = t->shape[0], width = n / rows;
    const dtype type = g->type == GGUF_F16_DATA    ? DTYPE_F16
                       : g->type == GGUF_BF16_DATA ? DTYPE_BF16
                                                   : DTYPE_F32;
    float *values = mem_array((size_t)n, sizeof *values);
    status s = values ? OK : no_memory(c->target, e);
    for (int64_t r = 0; r < rows && !s; r++) {
        const int64_t from = twin_gguf_row(&order, r);
        dtype_decode(type, g->data + from * width * (dtype_bits(type) / 8), width,
                     values + r * width);
        for (int64_t k = r * width; k < (r + 1) * width && !s; k++)
            if (!isfinite(values[k])) s = not_finite(c, g, from, e);
    }
    if (!s && twin_is_decay(t)) s = take_decay(c, t, values, e);
    if (!s) s = safetensors_writer_put(c->w, c->index[i], 0, values, (size_t)n * sizeof *values, e);
    mem_free(values);
    advance(c, g->bytes);
    return s;
}

/* What the reader would refuse is not written: seen before the weights are read. */
static status check_config(const to_pack *c, error *e)
{
    buf text;
    config parsed = { 0 };
    buf_init(&text, MAX_CONFIG);
    kingfiles_config(&c->files, &text);
    status s = buf_status(&text, c->g->path, e);
    if (!s) {
        s = config_parse(&parsed, buf_view(&text), c->g->path, e);
        config_free(&parsed);
    }
    buf_free(&text);
    return s;
}

static status write_text(const to_pack *c, const char *name,
                         void (*write)(const kingfiles *, buf *), error *e)
{
    char path[MAX_PATH];
    buf text;
    TRY(file_join(path, sizeof path, c->target, name, e));
    buf_init(&text, MAX_CONFIG);
    write(&c->files, &text);
    status s = buf_status(&text, path, e);
    if (!s) s = file_write(path, buf_view(&text), e);
    buf_free(&text);
    return s;
}

/* -1 when the file does not say. */
static status read_eos(const to_pack *c, int32_t *out, error *e)
{
    static const char key[] = "tokenizer.ggml.eos_token_id";
    const gguf_value *v = gguf_find(c->g, key);
    int64_t id = -1;
    *out = -1;
    if (!v) return OK;
    if (v->is_array || !gguf_i64(v, 0, &id) || id < 0 || id >= c->king.n_vocab) {
        return error_set(e, E_FORMAT, "%s: %s: found %lld, want a token id below %d", c->g->path,
                         key, (long long)id, c->king.n_vocab);
    }
    *out = (int32_t)id;
    return OK;
}

/* Everything that the file says but the values: shapes, rotation, where each tensor goes. */
static status read_description(to_pack *c, error *e)
{
    TRY(want_text(c->g, "general.architecture", "qwen35", e));
    TRY(read_dimensions(c->g, &c->king, e));
    TRY(check_rotation(c, e));
    TRY(read_int(c->g, "prism.hadamard.block_size", 1 << 20, &c->files.rotation, e));
    TRY(read_names(c, "prism.hadamard.weight_names", e));
    TRY(read_names(c, "prism.hadamard.inverse_weight_names", e));
    TRY(read_signs(c, e));
    TRY(resolve_all(c, e));
    c->files.king = &c->king;
    c->files.plan = &c->plan;
    c->files.block = c->block;
    TRY(read_eos(c, &c->files.eos, e));
    TRY(check_config(c, e));
    return declare_pack(c, e);
}

static status write_pack(to_pack *c, error *e)
{
    char path[MAX_PATH];
    TRY(read_description(c, e));
    TRY(newfolder_begin(&c->folder, c->target, e));
    TRY(file_join(path, sizeof path, c->target, "model.safetensors", e));
    TRY(safetensors_writer_begin(c->w, path, e));
    for (size_t i = 0; i < c->plan.count; i++)
        TRY(c->block[i] == KINGFILES_DENSE ? take_dense(c, i, e) : take_packed(c, i, e));
    TRY(write_text(c, "config.json", kingfiles_config, e));
    TRY(write_text(c, "hadamard.json", kingfiles_hadamard, e));
    TRY(textfiles_copy(c->o->text, c->target, e));
    safetensors_writer *w = c->w;
    c->w = NULL;
    return safetensors_writer_commit(w, e);
}

status convert_to_pack(const char *source, const char *target, const convert_options *o,
                       convert_report *r, error *e)
{
    gguf g;
    pack *made = NULL;
    *r = (convert_report){ 0 };
    if (!o->text || !file_is_dir(o->text)) {
        return error_set(e, E_ARG,
                         "%s: a GGUF file has no tokenizer.json: name a folder that has it with "
                         "--text",
                         source);
    }
    TRY(newfolder_check(target, e));
    TRY(gguf_open(&g, source, e));
    to_pack c = { .g = &g, .target = target, .o = o, .report = r };
    arena_init(&c.mem, 0);
    map_init(&c.rotated);
    status s = safetensors_writer_new(&c.w, e);
    if (!s) s = write_pack(&c, e);
    safetensors_writer_abort(c.w);
    if (!s) s = pack_open(&made, target, NULL, e);
    pack_close(made);
    if (s) newfolder_discard(&c.folder);
    plan_free(&c.plan);
    map_free(&c.rotated);
    arena_free(&c.mem);
    gguf_close(&g);
    return s;
}
