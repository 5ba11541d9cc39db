/* synth.c - random weights in the real layouts.
 *
 * Every stream of values is drawn from a table of 4,096 entries of the stored type, five a random
 * word, so that writing keeps up with a disk. The entries give each matrix rows of unit gain:
 * products of normed inputs have variance one. */
#include "tools/synth.h"
#include <math.h>
#include <stdio.h>
#include "base/file.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/rng.h"
#include "pack/pack.h"
#include "tools/kingfiles.h"
#include "tools/newfolder.h"
#include "tools/synth_text.h"
#include "base/banned.h"

enum { MAX_PATH = 4096, MAX_CONFIG = 64 << 20, ENTRIES = 4096, CHUNK = 5 << 18 };
enum { INTERVAL = 4 }; /* every so many-th layer is attention */

typedef struct synth {
    const char *folder;
    newfolder made;
    const synth_options *o;
    bool is_drafter;
    king_config king;
    drafter_config drafter;
    int block;           /* king */
    quant_format format; /* drafter: of its linears and codebooks */
    buf text;            /* of the file being written */
    config parsed;       /* config.json as the reader understands it */
    plan plan;
    struct part *parts;
    size_t n_parts;
    uint64_t done, total;
} synth;

/* ---- shapes ---- */

static const king_config king_27b = {
    .n_layer = 64,
    .n_embd = 5120,
    .n_ff = 17408,
    .n_vocab = 248320,
    .max_positions = 262144,
    .eps = 1e-6f,
    .n_head = 24,
    .n_kv_head = 4,
    .head_dim = 256,
    .rotary_dim = 64,
    .rope_theta = 1e7,
    .gdn_k_heads = 16,
    .gdn_v_heads = 48,
    .gdn_k_dim = 128,
    .gdn_v_dim = 128,
    .conv_taps = 4,
};

typedef struct key {
    const char *name;
    int *value;
} key;

/* Reads the keys and refuses others: a misspelt one would silently mean the size of the 27B
 * shape. */
static status read_ints(fields f, const key *keys, size_t n, error *e)
{
    static const char *const others[] = { "kind", "rope_theta", "target_layer_ids" };
    void *it = NULL;
    str name;
    const json_node *value;
    for (size_t i = 0; i < n; i++)
        TRY(field_opt_int(f, keys[i].name, 1, 1 << 24, keys[i].value, e));
    while (json_each(f.object, &it, &name, &value)) {
        bool known = false;
        for (size_t i = 0; i < n; i++) known |= str_eq(name, str_from(keys[i].name));
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            known |= str_eq(name, str_from(others[i]));
        if (!known) {
            return error_set(e, E_ARG,
                             "%s: found the key \"%.*s\", want such as \"num_hidden_layers\"",
                             f.file, (int)(name.len < 60 ? name.len : 60), name.ptr);
        }
    }
    return OK;
}

static status read_king(synth *s, fields f, error *e)
{
    king_config *k = &s->king;
    const key keys[] = {
        { "num_hidden_layers", &k->n_layer },
        { "hidden_size", &k->n_embd },
        { "intermediate_size", &k->n_ff },
        { "vocab_size", &k->n_vocab },
        { "max_position_embeddings", &k->max_positions },
        { "num_attention_heads", &k->n_head },
        { "num_key_value_heads", &k->n_kv_head },
        { "head_dim", &k->head_dim },
        { "linear_num_key_heads", &k->gdn_k_heads },
        { "linear_num_value_heads", &k->gdn_v_heads },
        { "linear_key_head_dim", &k->gdn_k_dim },
        { "linear_value_head_dim", &k->gdn_v_dim },
        { "linear_conv_kernel_dim", &k->conv_taps },
        { "block", &s->block },
    };
    TRY(read_ints(f, keys, sizeof keys / sizeof *keys, e));
    k->rotary_dim = k->head_dim / 4;
    return field_opt_real(f, "rope_theta", 1.0, 1e12, &k->rope_theta, e);
}

static status read_drafter(synth *s, fields f, error *e)
{
    drafter_config *d = &s->drafter;
    int bits = s->format.bits;
    const key keys[] = {
        { "num_hidden_layers", &d->n_layer },
        { "hidden_size", &d->n_embd },
        { "intermediate_size", &d->n_ff },
        { "vocab_size", &d->n_vocab },
        { "max_position_embeddings", &d->max_positions },
        { "num_attention_heads", &d->n_head },
        { "num_key_value_heads", &d->n_kv_head },
        { "head_dim", &d->head_dim },
        { "sliding_window", &d->window },
        { "block_size", &d->block },
        { "mask_token_id", &d->mask_id },
        { "conv_group_size", &d->conv_group },
        { "selector_rank", &d->rank },
        { "selector_top_k", &d->top_k },
        { "num_target_layers", &d->n_target_layer },
        { "bits", &bits },
    };
    TRY(read_ints(f, keys, sizeof keys / sizeof *keys, e));
    TRY(field_opt_real(f, "rope_theta", 1.0, 1e12, &d->rope_theta, e));
    s->format = bits == 16 ? quant_default(QUANT_DENSE) : (quant_format){ QUANT_AFFINE, bits, 64 };
    if (bits != 16 && (bits < 2 || !quant_is_legal(s->format)))
        return error_set(e, E_ARG, "%s: bits: found %d, want 2 to 6, 8 or 16", f.file, bits);
    const json_node *taps = json_get(f.object, "target_layer_ids");
    if (!taps) return OK;
    d->n_tap = 0;
    for (size_t i = 0; i < json_len(taps) && i < DFLASH_MAX_TAPS; i++) {
        int64_t id = -1;
        json_i64(json_at(taps, i), &id);
        d->tap[d->n_tap++] = id >= 0 && id < INT32_MAX ? (int)id : -1;
    }
    return OK;
}

static status read_shape_file(synth *s, error *e)
{
    json_doc *doc = NULL;
    TRY(json_parse_file(&doc, s->o->shape, MAX_CONFIG, JSON_UNIQUE, e));
    const fields f = { json_root(doc), s->o->shape, "" };
    str kind = { 0 };
    status r = field_opt_str(f, "kind", &kind, e);
    s->is_drafter = str_eq(kind, STR("drafter"));
    if (!r && !s->is_drafter && !str_eq(kind, STR("king")))
        r = error_set(e, E_ARG, "%s: kind: want \"king\" or \"drafter\"", s->o->shape);
    if (!r) r = s->is_drafter ? read_drafter(s, f, e) : read_king(s, f, e);
    json_free(doc);
    return r;
}

static status read_shape(synth *s, error *e)
{
    const str shape = str_from(s->o->shape);
    s->king = king_27b;
    s->drafter = dflash_27b;
    s->block = 1024;
    s->format = (quant_format){ QUANT_AFFINE, 8, 64 };
    s->is_drafter = str_eq(shape, STR("drafter-27b"));
    if (!s->is_drafter && !str_eq(shape, STR("king-27b"))) TRY(read_shape_file(s, e));
    if (s->o->layers) s->king.n_layer = s->drafter.n_layer = s->o->layers;
    const int most = s->is_drafter ? (int)DFLASH_MAX_LAYERS : (int)CONFIG_MAX_LAYERS;
    const int n_layer = s->is_drafter ? s->drafter.n_layer : s->king.n_layer;
    const int least = s->is_drafter ? 1 : INTERVAL;
    if (n_layer < least || n_layer > most) {
        return error_set(e, E_ARG, "%s: found %d layers, want %d to %d", s->o->shape, n_layer,
                         least, most);
    }
    for (int i = 0; i < n_layer; i++) s->king.is_attention[i] = (i + 1) % INTERVAL == 0;
    if (s->is_drafter || s->king.n_vocab >= SYNTH_TEXT_MIN_VOCAB) return OK;
    return error_set(e, E_ARG, "%s: vocab_size: found %d, want at least %d", s->o->shape,
                     s->king.n_vocab, SYNTH_TEXT_MIN_VOCAB);
}

/* ---- config files ---- */

/* Small projections of the delta net stay dense and unrotated, as in the real packs. */
static bool is_packed(const plan_entry *t)
{
    const str name = str_from(t->name);
    return t->is_matrix && !str_ends(name, STR(".in_proj_a")) && !str_ends(name, STR(".in_proj_b"));
}

/* Sign k of the vector of a width. */
static float sign_of(const synth *s, int64_t width, int64_t k)
{
    return rng_key(s->o->seed, (uint64_t)width, (uint64_t)k) & 1u ? 1.0f : -1.0f;
}

/* config.json and hadamard.json of a king, as `write` makes them. */
static status describe_king(synth *s, void (*write)(const kingfiles *f, buf *out), error *e)
{
    const king_config *k = &s->king;
    const int64_t all[] = { k->n_embd, (int64_t)k->n_head * k->head_dim,
                            (int64_t)k->gdn_v_heads * k->gdn_v_dim, k->n_ff };
    kingfiles f = { .king = k,
                    .plan = &s->plan,
                    .rotation = s->block,
                    .eos = synth_text_first_added(k->n_vocab) };
    arena mem;
    arena_init(&mem, 0);
    int *block = arena_array(&mem, s->plan.count, sizeof *block);
    status r = block ? OK : error_set(e, E_NOMEM, "%s: no memory", s->folder);
    for (size_t i = 0; i < s->plan.count && !r; i++)
        block[i] = is_packed(&s->plan.entries[i]) ? s->block : KINGFILES_DENSE;
    f.block = block;
    for (int i = 0; i < 4 && !r; i++) {
        bool seen = false;
        for (int j = 0; j < f.n_width; j++) seen |= f.width[j] == all[i];
        if (seen) continue;
        float *signs = arena_array(&mem, (size_t)all[i], sizeof *signs);
        if (!signs) r = error_set(e, E_NOMEM, "%s: no memory", s->folder);
        for (int64_t x = 0; x < all[i] && !r; x++) signs[x] = sign_of(s, all[i], x);
        f.width[f.n_width] = all[i];
        f.signs[f.n_width++] = signs;
    }
    if (!r) write(&f, &s->text);
    arena_free(&mem);
    return r;
}

static void put_dflash(jsonw *w, const drafter_config *d)
{
    jsonw_object(w);
    jsonw_member_i64(w, "block_size", d->block);
    jsonw_member_i64(w, "conv_kernel_size", d->conv_taps);
    jsonw_member_i64(w, "conv_group_size", d->conv_group);
    jsonw_member_i64(w, "mask_token_id", d->mask_id);
    jsonw_member_i64(w, "selector_rank", d->rank);
    jsonw_member_i64(w, "selector_top_k", d->top_k);
    jsonw_member_i32s(w, "target_layer_ids", d->tap, (size_t)d->n_tap);
    jsonw_end_object(w);
}

static void write_drafter_config(synth *s)
{
    const drafter_config *d = &s->drafter;
    jsonw w;
    jsonw_init(&w, &s->text);
    jsonw_object(&w);
    jsonw_member_raw(&w, "architectures", "[\"DFlash2DraftModel\"]");
    jsonw_member_text(&w, "model_type", "qwen3");
    jsonw_member_raw(&w, "is_causal", "false");
    jsonw_member_i64(&w, "num_hidden_layers", d->n_layer);
    jsonw_member_i64(&w, "hidden_size", d->n_embd);
    jsonw_member_i64(&w, "intermediate_size", d->n_ff);
    jsonw_member_i64(&w, "vocab_size", d->n_vocab);
    jsonw_member_i64(&w, "max_position_embeddings", d->max_positions);
    jsonw_member_i64(&w, "num_attention_heads", d->n_head);
    jsonw_member_i64(&w, "num_key_value_heads", d->n_kv_head);
    jsonw_member_i64(&w, "head_dim", d->head_dim);
    jsonw_member_f64(&w, "rms_norm_eps", 1e-6);
    jsonw_member_text(&w, "hidden_act", "silu");
    jsonw_member_raw(&w, "attention_bias", "false");
    jsonw_member_raw(&w, "use_sliding_window", "true");
    jsonw_member_i64(&w, "sliding_window", d->window);
    jsonw_member_object(&w, "rope_parameters");
    jsonw_member_text(&w, "rope_type", "default");
    jsonw_member_f64(&w, "rope_theta", d->rope_theta);
    jsonw_end_object(&w);
    jsonw_member_i64(&w, "num_target_layers", d->n_target_layer);
    jsonw_key(&w, "dflash_config");
    put_dflash(&w, d);
    if (s->format.mode != QUANT_DENSE) {
        jsonw_member_object(&w, "quantization");
        jsonw_member_i64(&w, "group_size", s->format.group);
        jsonw_member_i64(&w, "bits", s->format.bits);
        jsonw_member_text(&w, "mode", "affine");
        jsonw_end_object(&w);
    }
    jsonw_end_object(&w);
    buf_char(&s->text, '\n');
}

static status save_text(synth *s, const char *name, error *e)
{
    char path[MAX_PATH];
    TRY(buf_status(&s->text, name, e));
    TRY(file_join(path, sizeof path, s->folder, name, e));
    return file_write(path, buf_view(&s->text), e);
}

/* config.json, read back by the reader of packs: what it refuses, we refuse to write. */
static status check_config(synth *s, error *e)
{
    buf_clear(&s->text);
    if (s->is_drafter) write_drafter_config(s);
    else TRY(describe_king(s, kingfiles_config, e));
    TRY(buf_status(&s->text, "config.json", e));
    const status r = config_parse(&s->parsed, buf_view(&s->text), s->o->shape, e);
    if (r && r != E_NOMEM && e) e->code = E_ARG;
    return !r || r == E_NOMEM ? r : E_ARG;
}

/* After check_config, whose text is still there. */
static status write_configs(synth *s, error *e)
{
    TRY(save_text(s, "config.json", e));
    if (s->is_drafter) return OK;
    buf_clear(&s->text);
    TRY(describe_king(s, kingfiles_hadamard, e));
    TRY(save_text(s, "hadamard.json", e));
    return synth_text_write(s->folder, s->king.n_vocab, s->king.max_positions, e);
}

/* ---- tensors ---- */

typedef enum content { TERNARY, CODES, NORMAL, UNIFORM, SCALES, SIGNS } content;

/* One tensor of the file. NORMAL: mean a, deviation b. UNIFORM: from a to b. SCALES: b * (0.75
 * to 1.25) * a. */
typedef struct part {
    content what;
    dtype type;
    double a, b;
    uint64_t bytes, stream; /* parts of one stream draw the same entries: scales and their biases */
    int64_t width;          /* SIGNS */
} part;

static status declare(synth *s, safetensors_writer *w, const plan_entry *t, const char *suffix,
                      int rank, const int64_t *shape, part p, error *e)
{
    char name[PLAN_MAX_NAME + 32];
    snprintf(name, sizeof name, "%s%s%s", s->is_drafter ? "" : "language_model.", t->name, suffix);
    CHECK(tensor_bytes_of(p.type, rank, shape, &p.bytes));
    s->total += p.bytes;
    s->parts[s->n_parts++] = p;
    return safetensors_writer_declare(w, str_from(name), p.type, rank, shape, NULL, e);
}

/* A packed matrix: codes, scales, biases, and signs for a king. Scales give the weights variance
 * gain^2 / in. */
static status declare_packed(synth *s, safetensors_writer *w, const plan_entry *t, quant_format f,
                             uint64_t stream, error *e)
{
    const int64_t out = t->shape[0], in = t->shape[1];
    const int64_t words[2] = { out, in * f.bits / 32 }, groups[2] = { out, in / f.group };
    if (in % f.group || (!s->is_drafter && in % s->block)) {
        return error_set(e, E_ARG, "%s: %s: width %lld is no multiple of %d", s->o->shape, t->name,
                         (long long)in, s->is_drafter ? f.group : s->block);
    }
    const int levels = 1 << f.bits;
    /* ternary: variance 2/3 d^2; uniform codes: (levels^2 - 1) / 12 d^2 */
    const double spread = s->is_drafter ? (levels * (double)levels - 1) / 12 : 2.0 / 3.0;
    const double gain = t->is_embedding ? 0.02 * sqrt((double)in) : 1.0;
    const double d = gain / sqrt(spread * (double)in);
    const double middle = s->is_drafter ? (levels - 1) / 2.0 : 1.0;
    const dtype type = s->is_drafter ? DTYPE_BF16 : DTYPE_F16;
    const content codes = s->is_drafter ? CODES : TERNARY;
    TRY(declare(s, w, t, ".weight", 2, words,
                (part){ .what = codes, .type = DTYPE_U32, .stream = stream }, e));
    TRY(declare(s, w, t, ".scales", 2, groups,
                (part){ .what = SCALES, .type = type, .a = 1.0, .b = d, .stream = stream + 1 }, e));
    TRY(declare(s, w, t, ".biases", 2, groups,
                (part){ .what = SCALES, .type = type, .a = -middle, .b = d, .stream = stream + 1 },
                e));
    if (s->is_drafter) return OK;
    return declare(s, w, t, ".signs", 1, &in,
                   (part){ .what = SIGNS, .type = DTYPE_F32, .width = in }, e);
}

/* Values that are no packed matrix. Decays of the delta net: A in 1 .. 16, softplus(dt_bias) in
 * 0.001 .. 0.1. */
static status declare_plain(synth *s, safetensors_writer *w, const plan_entry *t, uint64_t stream,
                            error *e)
{
    const str name = str_from(t->name);
    part p = { .what = NORMAL,
               .type = s->is_drafter ? DTYPE_BF16 : DTYPE_F32,
               .a = 1.0,
               .b = 0.1,
               .stream = stream };
    int64_t shape[3] = { t->shape[0], t->shape[1], t->rank == 3 ? t->shape[2] : 1 };
    int rank = t->rank;
    if (t->is_matrix) {
        p.a = 0.0;
        p.b = t->is_embedding ? 0.02 : 1.0 / sqrt((double)t->shape[1]);
    } else if (str_ends(name, STR(".conv1d.weight"))) {
        p.a = 0.0;
        p.b = 0.5;
        rank = 3;
    } else if (str_ends(name, STR(".base_kernel"))) {
        p.a = 0.5;
    } else if (str_ends(name, STR(".A_log"))) {
        p = (part){ .what = UNIFORM, .type = p.type, .a = 0.0, .b = 2.77, .stream = stream };
    } else if (str_ends(name, STR(".dt_bias"))) {
        p = (part){ .what = UNIFORM, .type = p.type, .a = -6.9, .b = -2.25, .stream = stream };
    }
    const bool bare = !t->is_matrix || (t->is_embedding && s->is_drafter);
    return declare(s, w, t, bare ? "" : ".weight", rank, shape, p, e);
}

static status declare_all(synth *s, safetensors_writer *w, error *e)
{
    TRY(safetensors_writer_metadata(w, STR("format"), STR("mlx"), e));
    for (size_t i = 0; i < s->plan.count; i++) {
        const plan_entry *t = &s->plan.entries[i];
        const bool packed =
            s->is_drafter ? t->is_matrix && s->format.mode != QUANT_DENSE : is_packed(t);
        const quant_format f = s->is_drafter ? s->format : (quant_format){ QUANT_AFFINE, 2, 128 };
        if (packed) TRY(declare_packed(s, w, t, f, 2 * i, e));
        else TRY(declare_plain(s, w, t, 2 * i, e));
    }
    return OK;
}

static uint8_t ternary_byte(rng *r)
{
    unsigned byte = 0;
    for (int k = 0; k < 4; k++) byte = byte << 2 | rng_below(r, 3);
    return (uint8_t)byte;
}

/* Fills a table of ENTRIES values in the type of the part (codes: whole words of them); returns the
 * bytes of one, 2 or 4. */
static size_t make_table(const synth *s, const part *p, uint8_t *table)
{
    const size_t width = (size_t)dtype_bits(p->type) / 8;
    CHECK(p->what != SIGNS);
    rng r = { rng_key(s->o->seed, p->stream, UINT64_MAX) };
    for (size_t i = 0; i < ENTRIES; i++) {
        const double u = ((double)i + 0.5) / ENTRIES;
        float v = 0.0f;
        switch (p->what) {
        case TERNARY:
            for (size_t b = 0; b < width; b++) table[i * width + b] = ternary_byte(&r);
            continue;
        case CODES:
            for (size_t b = 0; b < width; b++) table[i * width + b] = (uint8_t)rng_next(&r);
            continue;
        case NORMAL: v = (float)(p->a + p->b * rng_normal(&r)); break;
        case UNIFORM: v = (float)(p->a + (p->b - p->a) * u); break;
        case SCALES: v = (float)(p->a * p->b * (0.75 + 0.5 * u)); break;
        case SIGNS: break;
        }
        dtype_encode(p->type, &v, 1, table + i * width);
    }
    return width;
}

/* n entries of 2 or 4 bytes. The sizes are spelled out for speed. */
static void fill(rng *r, const uint8_t *table, size_t width, uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n;) {
        uint64_t word = rng_next(r);
        for (int k = 0; k < 5 && i < n; k++, i++, word >>= 12) {
            const size_t entry = word & (ENTRIES - 1);
            if (width == 2) memcpy(out + i * 2, table + entry * 2, 2);
            else memcpy(out + i * 4, table + entry * 4, 4);
        }
    }
}

static void fill_signs(const synth *s, int64_t width, int64_t from, uint8_t *out, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        const float sign = sign_of(s, width, from + (int64_t)k);
        memcpy(out + 4 * k, &sign, sizeof sign);
    }
}

static status write_part(synth *s, safetensors_writer *w, int index, uint8_t *table, uint8_t *chunk,
                         error *e)
{
    const part *p = &s->parts[index];
    const size_t width = p->what == SIGNS ? 4 : make_table(s, p, table);
    rng r = { rng_key(s->o->seed, p->stream, 0) };
    for (uint64_t at = 0; at < p->bytes;) {
        uint64_t n = (uint64_t)CHUNK * width;
        if (n > p->bytes - at) n = p->bytes - at;
        if (p->what == SIGNS) fill_signs(s, p->width, (int64_t)at / 4, chunk, (size_t)n / 4);
        else fill(&r, table, width, chunk, (size_t)n / width);
        TRY(safetensors_writer_put(w, index, at, chunk, (size_t)n, e));
        at += n;
        s->done += n;
        if (s->o->progress) s->o->progress(s->o->arg, s->done, s->total);
    }
    return OK;
}

static status write_weights(synth *s, error *e)
{
    char path[MAX_PATH];
    safetensors_writer *w = NULL;
    uint8_t *table = mem_alloc((size_t)ENTRIES * 4), *chunk = mem_alloc((size_t)CHUNK * 4);
    s->parts = mem_array(s->plan.count * 4, sizeof *s->parts);
    status r = table && chunk && s->parts ? OK : error_set(e, E_NOMEM, "%s: no memory", s->folder);
    if (!r) r = file_join(path, sizeof path, s->folder, "model.safetensors", e);
    if (!r) r = safetensors_writer_new(&w, e);
    if (!r) r = declare_all(s, w, e);
    if (!r) r = newfolder_begin(&s->made, s->folder, e); /* everything was found possible */
    if (!r) r = write_configs(s, e);
    if (!r) r = safetensors_writer_begin(w, path, e);
    for (size_t i = 0; i < s->n_parts && !r; i++) r = write_part(s, w, (int)i, table, chunk, e);
    if (!r) {
        r = safetensors_writer_commit(w, e);
        w = NULL;
    }
    safetensors_writer_abort(w);
    mem_free(table);
    mem_free(chunk);
    return r;
}

static status run(synth *s, error *e)
{
    TRY(newfolder_check(s->folder, e));
    TRY(read_shape(s, e));
    TRY(s->is_drafter ? plan_drafter(&s->plan, &s->drafter, e) : plan_king(&s->plan, &s->king, e));
    TRY(check_config(s, e));
    return write_weights(s, e);
}

status synth_write(const char *folder, const synth_options *o, error *e)
{
    synth s = { .folder = folder, .o = o };
    buf_init(&s.text, MAX_CONFIG);
    const status r = run(&s, e);
    if (r) newfolder_discard(&s.made);
    buf_free(&s.text);
    plan_free(&s.plan);
    config_free(&s.parsed);
    mem_free(s.parts);
    return r;
}
