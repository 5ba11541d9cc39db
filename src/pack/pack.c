/* pack.c - opening a model folder: find config and weights, resolve every weight of the plan,
 * refuse the rest. */
#include "pack/pack.h"
#include <stdio.h>
#include "base/digest.h"
#include "base/json.h"
#include "base/mem.h"
#include "pack/shards.h"
#include "base/banned.h"

enum { MAX_PATH = 4096, MAX_CONFIG = 64 << 20 };

/* One entry of the plan, found in the files. */
typedef struct item {
    matrix m;        /* when it is a matrix */
    const tensor *t; /* when it is not */
} item;

struct pack {
    char *folder;      /* as given */
    char *weights_dir; /* folder or folder/dflash */
    char *config_path; /* NULL: no config anywhere */
    buf config_text, contract_text;
    config config;
    bool synthesised, upstream, conv_seen;
    bool headers_only;
    shards shards;
    plan plan;
    item *items; /* [plan.count] */
    map used;    /* names of tensors that belong to something */
    uint64_t text_bytes, skipped_bytes;
    char identity[65];
    arena mem;
};

/* ---- names ---- */

/* DFlash 2 files have no container prefix; re-exports put the encoder's parts under "encoder.". */
static bool drafter_name(str name, char *text, size_t cap)
{
    if (str_starts(name, STR("encoder.fc."))) name = str_sub(name, 8, name.len);
    if (str_eq(name, STR("encoder.output_norm_enc.weight"))) name = STR("hidden_norm.weight");
    if (name.len >= cap) return false;
    memcpy(text, name.ptr, name.len);
    text[name.len] = 0;
    return true;
}

/* Parts of a model that a text engine leaves aside. */
static bool is_skipped(str canonical)
{
    static const char *const prefixes[] = { "vision_tower.",       "visual.", "model.visual.",
                                            "model.vision_tower.", "mtp.",    "model.mtp." };
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (str_starts(canonical, str_from(prefixes[i]))) return true;
    return false;
}

static status no_memory(const pack *p, error *e)
{
    return error_set(e, E_NOMEM, "%s: no memory", p->folder);
}

/* ---- where config and weights are ---- */

static status find_weights(pack *p, error *e)
{
    char path[MAX_PATH];
    if (!file_is_dir(p->folder)) return error_set(e, E_IO, "%s: no such folder", p->folder);
    if (shards_exist(p->folder)) {
        p->weights_dir = p->folder;
        return OK;
    }
    TRY(file_join(path, sizeof path, p->folder, "dflash", e));
    if (!shards_exist(path))
        return error_set(e, E_IO, "%s: no model.safetensors here or in dflash/", p->folder);
    p->weights_dir = arena_strdup(&p->mem, str_from(path));
    return p->weights_dir ? OK : no_memory(p, e);
}

/* Takes folder/name as the config when it exists; a parent's only when it is a drafter's. */
static status try_config(pack *p, const char *folder, const char *name, bool drafter_only, error *e)
{
    char path[MAX_PATH];
    TRY(file_join(path, sizeof path, folder, name, e));
    if (p->config_path || !file_exists(path)) return OK;
    if (drafter_only) {
        json_doc *doc = NULL;
        TRY(json_parse_file(&doc, path, MAX_CONFIG, JSON_UNIQUE, e));
        const bool ours = dflash_is_config(json_root(doc));
        json_free(doc);
        if (!ours) return OK;
    }
    p->config_path = arena_strdup(&p->mem, str_from(path));
    return p->config_path ? OK : no_memory(p, e);
}

static status find_config(pack *p, const char *given, error *e)
{
    if (given) {
        p->config_path = arena_strdup(&p->mem, str_from(given));
        return p->config_path ? OK : no_memory(p, e);
    }
    TRY(try_config(p, p->weights_dir, "config.json", false, e));
    if (p->weights_dir != p->folder) TRY(try_config(p, p->folder, "config.json", false, e));
    str name = str_from(p->folder);
    while (name.len && name.ptr[name.len - 1] == '/') name.len--;
    if (str_eq(name, STR("dflash")) || str_ends(name, STR("/dflash")))
        TRY(try_config(p, p->folder, "../config.json", true, e));
    return OK;
}

static status read_configs(pack *p, error *e)
{
    TRY(file_read(&p->config_text, p->config_path, e));
    TRY(config_parse(&p->config, buf_view(&p->config_text), p->config_path, e));
    char path[MAX_PATH];
    if (p->config.kind == PACK_KING) {
        TRY(file_join(path, sizeof path, p->folder, p->config.hadamard.file, e));
        TRY(file_read(&p->contract_text, path, e));
        TRY(config_parse_hadamard(&p->config, buf_view(&p->contract_text), path, e));
    }
    TRY(file_join(path, sizeof path, p->folder, "generation_config.json", e));
    if (!file_exists(path)) return OK;
    buf text;
    buf_init(&text, MAX_CONFIG);
    status s = file_read(&text, path, e);
    if (!s) s = config_parse_generation(&p->config, buf_view(&text), path, e);
    buf_free(&text);
    return s;
}

/* ---- a drafter without config ---- */

/* Dimension `dim` of a tensor, 0 when it is absent. */
static int size_of(const pack *p, const char *name, int dim)
{
    const tensor *t = shards_find(&p->shards, name);
    return t && dim < t->rank && t->shape[dim] <= INT32_MAX ? (int)t->shape[dim] : 0;
}

/* Fields of a drafter config that shapes tell; zero where a tensor is missing. Packed matrices keep
 * their number of rows; the width of fc follows from the group, which the first query projection
 * shows (its input is the hidden size). */
static drafter_config drafter_shapes(const pack *p)
{
    drafter_config d = { .n_embd = size_of(p, "norm.weight", 0),
                         .n_ff = size_of(p, "layers.0.mlp.gate_proj.weight", 0),
                         .head_dim = size_of(p, "layers.0.self_attn.q_norm.weight", 0),
                         .rank = size_of(p, "candidate_selector.hidden_projection.weight", 0) };
    char name[64];
    for (int n = 1; n > 0; d.n_layer++) {
        snprintf(name, sizeof name, "layers.%d.input_layernorm.weight", d.n_layer + 1);
        n = size_of(p, name, 0);
    }
    d.n_vocab = size_of(p, "candidate_selector.predecessor_codebook", 0) +
                size_of(p, "candidate_selector.predecessor_codebook.weight", 0);
    const int taps = size_of(p, "layers.0.attention_conv.base_kernel", 1);
    const int rows = size_of(p, "layers.0.attention_conv.kernel_projection.weight", 0);
    const int groups = taps > 0 ? rows / (2 * taps) : 0;
    d.conv_group = groups > 0 ? d.n_embd / groups : 0;
    if (d.head_dim > 0) {
        d.n_head = size_of(p, "layers.0.self_attn.q_proj.weight", 0) / d.head_dim;
        d.n_kv_head = size_of(p, "layers.0.self_attn.k_proj.weight", 0) / d.head_dim;
    }
    int64_t width = size_of(p, "fc.weight", 1);
    const int scales = size_of(p, "layers.0.self_attn.q_proj.scales", 1);
    if (scales > 0) width = (int64_t)size_of(p, "fc.scales", 1) * (d.n_embd / scales);
    if (d.n_embd > 0) d.n_tap = (int)(width / d.n_embd);
    return d;
}

static status synthesise(pack *p, error *e)
{
    if (!size_of(p, "fc.weight", 0) || !size_of(p, "layers.0.attention_conv.base_kernel", 0) ||
        !size_of(p, "candidate_selector.hidden_projection.weight", 0)) {
        return error_set(e, E_IO,
                         "%s: no config.json, and the tensors are not a DFlash 2 drafter's",
                         p->weights_dir);
    }
    const drafter_config shapes = drafter_shapes(p);
    TRY(config_synthesise(&p->config, &shapes, p->weights_dir, e));
    p->synthesised = true;
    return OK;
}

/* ---- tensors ---- */

/* The tensor `path` + `suffix`, or NULL. */
static const tensor *part(const pack *p, const char *path, const char *suffix)
{
    char name[PLAN_MAX_NAME + 16];
    snprintf(name, sizeof name, "%s%s", path, suffix);
    return shards_find(&p->shards, name);
}

static status use(pack *p, const tensor *t, error *e)
{
    p->text_bytes += t->bytes;
    return map_put(&p->used, t->name, 1, e);
}

static status missing(const pack *p, const char *path, const char *suffix, error *e)
{
    return error_set(e, E_FORMAT, "%s: tensor %s%s is missing", p->weights_dir, path, suffix);
}

static status bad_shape(const pack *p, const tensor *t, int rank, const int64_t *want, error *e)
{
    char where[300], a[96], b[96];
    return error_set(e, E_FORMAT, "%s: shape %s, want %s",
                     shards_where(&p->shards, t, where, sizeof where),
                     tensor_shape_text(t->rank, t->shape, a, sizeof a),
                     tensor_shape_text(rank, want, b, sizeof b));
}

static status want_shape(const pack *p, const tensor *t, int64_t a, int64_t b, error *e)
{
    const int64_t want[2] = { a, b };
    return tensor_has_shape(t, 2, want) ? OK : bad_shape(p, t, 2, want, e);
}

static status bad_type(const pack *p, const tensor *t, const char *want, error *e)
{
    char where[300];
    return error_set(e, E_FORMAT, "%s: dtype %s, want %s",
                     shards_where(&p->shards, t, where, sizeof where), dtype_name(t->type), want);
}

/* Format of a packed matrix from its tensors: the input width is known, so bits and group
 * follow. */
static status solve_format(const pack *p, matrix *m, error *e)
{
    const tensor *w = m->weight, *s = m->scales;
    char where[300];
    shards_where(&p->shards, w, where, sizeof where);
    if (w->type != DTYPE_U32) return bad_type(p, w, "U32 beside scales", e);
    if (w->rank != 2 || w->shape[0] != m->out) {
        const int64_t want[2] = { m->out, w->rank == 2 ? w->shape[1] : 0 };
        return bad_shape(p, w, 2, want, e);
    }
    if (s->rank != 2 || s->shape[0] != m->out || s->shape[1] < 1 || m->in % s->shape[1]) {
        const int64_t want[2] = { m->out, m->in / 64 };
        return bad_shape(p, s, 2, want, e);
    }
    const int64_t bits = w->shape[1] * 32 / m->in, group = m->in / s->shape[1];
    if (bits < 1 || bits > 8 || bits * m->in != w->shape[1] * 32 || group > 128) {
        return error_set(e, E_FORMAT, "%s: %lld words a row and groups of %lld for %lld weights",
                         where, (long long)w->shape[1], (long long)group, (long long)m->in);
    }
    m->format = (quant_format){ QUANT_AFFINE, (int)bits, (int)group };
    if (s->type == DTYPE_U8)
        m->format.mode = bits == 8 ? QUANT_MXFP8 : group == 16 ? QUANT_NVFP4 : QUANT_MXFP4;
    else if (!dtype_is_float(s->type)) return bad_type(p, s, "F16, BF16, F32 or U8", e);
    if (quant_is_legal(m->format)) return OK;
    return error_set(e, E_UNSUPPORTED, "%s: %lld bits in groups of %lld with %s scales", where,
                     (long long)bits, (long long)group, dtype_name(s->type));
}

static status check_biases(const pack *p, const matrix *m, error *e)
{
    const tensor *b = m->biases;
    char where[300];
    if (m->format.mode != QUANT_AFFINE) {
        if (!b) return OK;
        return error_set(e, E_FORMAT, "%s: biases beside %s weights",
                         shards_where(&p->shards, b, where, sizeof where),
                         quant_mode_name(m->format.mode));
    }
    if (!b) return missing(p, m->path, ".biases", e);
    if (b->type != m->scales->type) return bad_type(p, b, dtype_name(m->scales->type), e);
    return want_shape(p, b, m->out, m->scales->shape[1], e);
}

/* What config.json says of a module must be what its tensors show. For drafters it is a hint
 * only. */
static status check_against_config(const pack *p, const matrix *m, error *e)
{
    if (p->config.kind == PACK_DRAFTER || !p->config.quant.present) return OK;
    bool named;
    const quant_format want = config_quant_of(&p->config, str_from(m->path), &named);
    const bool dense = m->format.mode == QUANT_DENSE;
    if (quant_equal(want, m->format) || (dense && !named)) return OK;
    char a[32], b[32];
    return error_set(e, E_FORMAT, "%s: module %s: tensors are %s, but the config says %s",
                     p->weights_dir, m->path, quant_format_text(m->format, a, sizeof a),
                     quant_format_text(want, b, sizeof b));
}

static status resolve_matrix(pack *p, const plan_entry *want, matrix *m, error *e)
{
    *m = (matrix){ .path = want->name, .out = want->shape[0], .in = want->shape[1] };
    const tensor *bare = want->is_embedding ? part(p, want->name, "") : NULL;
    m->weight = part(p, want->name, ".weight");
    m->scales = part(p, want->name, ".scales");
    m->biases = part(p, want->name, ".biases");
    if (bare && (m->weight || m->scales)) {
        return error_set(e, E_FORMAT, "%s: both %s and %s.weight or .scales", p->weights_dir,
                         want->name, want->name);
    }
    if (bare) m->weight = bare;
    if (!m->weight) return missing(p, want->name, ".weight", e);
    if (m->scales) {
        TRY(solve_format(p, m, e));
        TRY(check_biases(p, m, e));
    } else {
        if (m->weight->type == DTYPE_U32) return missing(p, want->name, ".scales", e);
        if (!dtype_is_float(m->weight->type)) return bad_type(p, m->weight, "F16, BF16 or F32", e);
        TRY(want_shape(p, m->weight, m->out, m->in, e));
    }
    TRY(check_against_config(p, m, e));
    TRY(use(p, m->weight, e));
    if (m->scales) TRY(use(p, m->scales, e));
    if (m->scales && m->biases) TRY(use(p, m->biases, e));
    return OK;
}

/* Convolutions are stored [C, taps, 1], upstream [C, 1, taps]: the same bytes. */
static status resolve_values(pack *p, const plan_entry *want, const tensor **out, error *e)
{
    const tensor *t = part(p, want->name, "");
    if (!t) return missing(p, want->name, "", e);
    if (!dtype_is_float(t->type)) return bad_type(p, t, "F16, BF16 or F32", e);
    const int64_t a = want->shape[0], b = want->shape[1];
    const int64_t ours[3] = { a, b, 1 }, theirs[3] = { a, 1, b };
    const bool conv = str_ends(str_from(want->name), STR(".conv1d.weight"));
    const bool upstream = tensor_has_shape(t, 3, theirs);
    if (conv && !upstream && !tensor_has_shape(t, 3, ours)) return bad_shape(p, t, 3, ours, e);
    if (!conv && !tensor_has_shape(t, want->rank, want->shape))
        return bad_shape(p, t, want->rank, want->shape, e);
    if (conv && upstream && p->config.kind == PACK_KING) return bad_shape(p, t, 3, ours, e);
    if (conv && p->conv_seen && upstream != p->upstream)
        return bad_shape(p, t, 3, p->upstream ? theirs : ours, e);
    if (conv) p->upstream = upstream;
    p->conv_seen |= conv;
    *out = t;
    return use(p, t, e);
}

/* ---- the rotation contract ---- */

static status check_signs(pack *p, const matrix *m, error *e)
{
    const tensor *t = part(p, m->path, ".signs");
    char where[300];
    if (!m->block) {
        if (!t) return OK;
        return error_set(e, E_FORMAT, "%s: signs of a module that is not rotated",
                         shards_where(&p->shards, t, where, sizeof where));
    }
    if (!t) return missing(p, m->path, ".signs", e);
    if (t->type != DTYPE_F32) return bad_type(p, t, "F32", e);
    if (!tensor_has_shape(t, 1, &m->in)) return bad_shape(p, t, 1, &m->in, e);
    for (int64_t i = 0; i < m->in && !p->headers_only; i++) {
        float sign;
        tensor_read_f32(t, i, 1, &sign);
        if (sign == m->signs[i]) continue;
        const bool unit = sign == 1.0f || sign == -1.0f;
        return error_set(e, E_FORMAT, "%s: sign %lld is %g, want %s%s",
                         shards_where(&p->shards, t, where, sizeof where), (long long)i,
                         (double)sign,
                         unit ? (m->signs[i] > 0 ? "1 as in " : "-1 as in ") : "1 or -1",
                         unit ? p->config.hadamard.file : "");
    }
    return use(p, t, e);
}

/* A matrix of a king: packed and rotated as modules[] say, or dense and not listed. */
static status apply_contract(pack *p, const plan_entry *want, matrix *m, error *e)
{
    const king_module *k = hadamard_module(&p->config.hadamard, str_from(m->path));
    const quant_format ternary = { QUANT_AFFINE, 2, 128 };
    char found[32];
    if (!k && m->scales) {
        return error_set(e, E_FORMAT, "%s: module %s is packed but not listed in modules[]",
                         p->weights_dir, m->path);
    }
    if (!k) return OK;
    if (!quant_equal(m->format, ternary) || m->scales->type != DTYPE_F16) {
        return error_set(
            e, E_UNSUPPORTED, "%s: module %s is %s, want affine 2-bit g128 with F16 scales",
            p->weights_dir, m->path, quant_format_text(m->format, found, sizeof found));
    }
    if (k->embedding != want->is_embedding) {
        return error_set(e, E_FORMAT, "%s: module %s: embedding is %s in modules[], want %s",
                         p->weights_dir, m->path, k->embedding ? "true" : "false",
                         want->is_embedding ? "true" : "false");
    }
    m->block = k->block;
    if (m->block && m->in % m->block) {
        return error_set(e, E_FORMAT, "%s: module %s: block %d does not divide its width %lld",
                         p->weights_dir, m->path, m->block, (long long)m->in);
    }
    if (m->block) m->signs = hadamard_signs(&p->config.hadamard, m->in);
    if (m->block && !m->signs) {
        return error_set(e, E_FORMAT, "%s: module %s: %s has no signs of width %lld",
                         p->weights_dir, m->path, p->config.hadamard.file, (long long)m->in);
    }
    return check_signs(p, m, e);
}

static status check_modules(const pack *p, error *e)
{
    const hadamard_contract *h = &p->config.hadamard;
    for (size_t i = 0; i < h->count; i++) {
        const plan_entry *want = plan_find(&p->plan, h->modules[i].path);
        if (want && want->is_matrix) continue;
        return error_set(e, E_FORMAT, "%s: modules[]: %.*s is no module of this model",
                         p->config_path, STR_ARG(h->modules[i].path));
    }
    return OK;
}

/* ---- everything accounted for ---- */

static status leftover(const pack *p, const tensor *t, error *e)
{
    char where[300];
    shards_where(&p->shards, t, where, sizeof where);
    if (p->config.kind == PACK_PLAIN && str_ends(t->name, STR(".signs"))) {
        return error_set(e, E_UNSUPPORTED,
                         "%s: rotation signs, but %s is no king's: without the rotation the output "
                         "is nonsense",
                         where, p->config_path);
    }
    if (str_ends(t->name, STR(".bias")))
        return error_set(e, E_UNSUPPORTED, "%s: linear layers with an output bias", where);
    return error_set(e, E_FORMAT, "%s: belongs to no weight of this model", where);
}

static status check_leftovers(pack *p, error *e)
{
    for (size_t i = 0; i < p->shards.count; i++) {
        for (size_t k = 0; k < p->shards.files[i].count; k++) {
            const tensor *t = &p->shards.files[i].tensors[k];
            char name[SAFETENSORS_MAX_NAME + 16];
            if (map_get(&p->used, t->name, NULL)) continue;
            const bool king = p->config.kind != PACK_DRAFTER;
            if (!king || !tensor_canonical(t->name, name, sizeof name)) return leftover(p, t, e);
            const bool spare_head =
                p->config.king.tied && str_starts(str_from(name), STR("lm_head."));
            if (!is_skipped(str_from(name)) && !spare_head) return leftover(p, t, e);
            p->skipped_bytes += t->bytes;
        }
    }
    return OK;
}

/* Rotation signs in a plain pack are the surest sign of a king whose config was edited: say that
 * before anything else. */
static status check_no_signs(const pack *p, error *e)
{
    for (size_t i = 0; i < p->shards.count; i++) {
        for (size_t k = 0; k < p->shards.files[i].count; k++) {
            const tensor *t = &p->shards.files[i].tensors[k];
            if (str_ends(t->name, STR(".signs"))) return leftover(p, t, e);
        }
    }
    return OK;
}

static status resolve(pack *p, error *e)
{
    const bool drafter = p->config.kind == PACK_DRAFTER;
    TRY(drafter ? plan_drafter(&p->plan, &p->config.drafter, e)
                : plan_king(&p->plan, &p->config.king, e));
    if (p->config.kind == PACK_KING) TRY(check_modules(p, e));
    if (p->config.kind == PACK_PLAIN) TRY(check_no_signs(p, e));
    p->items = arena_array(&p->mem, p->plan.count, sizeof *p->items);
    if (!p->items) return no_memory(p, e);
    for (size_t i = 0; i < p->plan.count; i++) {
        const plan_entry *want = &p->plan.entries[i];
        item *it = &p->items[i];
        if (!want->is_matrix) {
            TRY(resolve_values(p, want, &it->t, e));
            continue;
        }
        TRY(resolve_matrix(p, want, &it->m, e));
        if (p->config.kind == PACK_KING) TRY(apply_contract(p, want, &it->m, e));
    }
    return check_leftovers(p, e);
}

/* ---- identity ---- */

static void digest_number(digest *d, uint64_t n)
{
    digest_put(d, &n, sizeof n);
}

static void digest_text(digest *d, const buf *b)
{
    digest_number(d, b->len);
    if (b->len) digest_put(d, b->ptr, b->len);
}

static status compute_identity(pack *p, error *e)
{
    enum { SAMPLE = 4096, SAMPLES = 64 };
    digest *d = NULL;
    TRY(digest_open(&d, DIGEST_SHA256, e));
    digest_put(d, "ingot pack 1", 12);
    digest_text(d, &p->config_text);
    digest_text(d, &p->contract_text);
    for (size_t i = 0; i < p->shards.count; i++) {
        const safetensors *f = &p->shards.files[i];
        const uint64_t from = 8 + f->header_len, room = f->len - from;
        digest_number(d, f->len);
        digest_put(d, f->bytes, (size_t)from);
        if (room <= SAMPLE * SAMPLES) {
            digest_put(d, f->bytes + from, (size_t)room);
            continue;
        }
        for (uint64_t s = 0; s < SAMPLES; s++) {
            const uint64_t at = (room - SAMPLE) / (SAMPLES - 1) * s;
            digest_put(d, f->bytes + from + (s == SAMPLES - 1 ? room - SAMPLE : at), SAMPLE);
        }
    }
    digest_hex(d, p->identity);
    return OK;
}

/* ---- opening and asking ---- */

static status open_pack(pack *p, const char *folder, const char *config_path, error *e)
{
    p->folder = arena_strdup(&p->mem, str_from(folder));
    if (!p->folder) return error_set(e, E_NOMEM, "%s: no memory", folder);
    TRY(find_weights(p, e));
    TRY(find_config(p, config_path, e));
    if (p->config_path) TRY(read_configs(p, e));
    const bool drafter = !p->config_path || p->config.kind == PACK_DRAFTER;
    TRY(shards_open(&p->shards, p->weights_dir, drafter ? drafter_name : tensor_canonical, &p->mem,
                    e));
    if (!p->config_path) TRY(synthesise(p, e));
    TRY(resolve(p, e));
    return p->headers_only ? OK : compute_identity(p, e);
}

static status open_new(pack **out, const char *folder, const char *config_path, bool headers_only,
                       error *e)
{
    *out = NULL;
    pack *p = mem_zalloc(sizeof *p);
    if (!p) return error_set(e, E_NOMEM, "%s: no memory", folder);
    p->headers_only = headers_only;
    arena_init(&p->mem, 0);
    map_init(&p->used);
    buf_init(&p->config_text, MAX_CONFIG);
    buf_init(&p->contract_text, MAX_CONFIG);
    const status s = open_pack(p, folder, config_path, e);
    if (s) pack_close(p);
    else *out = p;
    return s;
}

status pack_open(pack **out, const char *folder, const char *config_path, error *e)
{
    return open_new(out, folder, config_path, false, e);
}

status pack_open_headers(pack **out, const char *folder, const char *name, error *e)
{
    TRY(open_new(out, folder, NULL, true, e));
    (*out)->folder = arena_strdup(&(*out)->mem, str_from(name));
    if ((*out)->folder) return OK;
    pack_close(*out);
    *out = NULL;
    return error_set(e, E_NOMEM, "%s: no memory", name);
}

void pack_close(pack *p)
{
    if (!p) return;
    plan_free(&p->plan);
    shards_close(&p->shards);
    config_free(&p->config);
    buf_free(&p->config_text);
    buf_free(&p->contract_text);
    map_free(&p->used);
    arena_free(&p->mem);
    mem_free(p);
}

pack_kind pack_get_kind(const pack *p)
{
    return p->config.kind;
}

const char *pack_folder(const pack *p)
{
    return p->folder;
}

const config *pack_config(const pack *p)
{
    return &p->config;
}

const king_config *pack_king(const pack *p)
{
    return p->config.kind == PACK_DRAFTER ? NULL : &p->config.king;
}

const drafter_config *pack_drafter(const pack *p)
{
    return p->config.kind == PACK_DRAFTER ? &p->config.drafter : NULL;
}

const plan *pack_plan(const pack *p)
{
    return &p->plan;
}

str pack_config_text(const pack *p)
{
    return buf_view(&p->config_text);
}

bool pack_is_synthesised(const pack *p)
{
    return p->synthesised;
}

bool pack_is_upstream(const pack *p)
{
    return p->upstream;
}

status pack_matrix(const pack *p, const char *path, int64_t out, int64_t in, matrix *m, error *e)
{
    const plan_entry *want = plan_find(&p->plan, str_from(path));
    if (!want && p->config.king.tied && str_eq(str_from(path), STR("lm_head")))
        want = plan_find(&p->plan, STR("model.embed_tokens"));
    if (!want || !want->is_matrix)
        return error_set(e, E_FORMAT, "%s: no matrix %s in this model", p->folder, path);
    if (want->shape[0] != out || want->shape[1] != in) {
        return error_set(e, E_FORMAT, "%s: matrix %s: [%lld, %lld], want [%lld, %lld]", p->folder,
                         path, (long long)want->shape[0], (long long)want->shape[1], (long long)out,
                         (long long)in);
    }
    *m = p->items[want - p->plan.entries].m;
    return OK;
}

status pack_matrix_of(const pack *p, const plan_entry *t, matrix *m, error *e)
{
    return pack_matrix(p, t->name, t->shape[0], t->shape[1], m, e);
}

status pack_values(const pack *p, const char *name, int rank, const int64_t *shape, float *out,
                   error *e)
{
    const plan_entry *want = plan_find(&p->plan, str_from(name));
    if (!want || want->is_matrix)
        return error_set(e, E_FORMAT, "%s: no tensor %s in this model", p->folder, name);
    bool same = want->rank == rank;
    for (int i = 0; same && i < rank; i++) same = want->shape[i] == shape[i];
    if (!same) {
        char a[96], b[96];
        return error_set(e, E_FORMAT, "%s: tensor %s: %s, want %s", p->folder, name,
                         tensor_shape_text(want->rank, want->shape, a, sizeof a),
                         tensor_shape_text(rank, shape, b, sizeof b));
    }
    const tensor *t = p->items[want - p->plan.entries].t;
    const int64_t n = tensor_elements(t);
    tensor_read_f32(t, 0, n, out);
    if (want->is_zero_centred && p->upstream)
        for (int64_t i = 0; i < n; i++) out[i] += 1.0f;
    return OK;
}

typedef void advice(const file_map *m, size_t from, size_t to);

static void advise(const pack *p, const tensor *t, advice *fn)
{
    if (!t) return;
    const safetensors *f = &p->shards.files[t->file];
    const size_t from = (size_t)(t->data - f->bytes);
    fn(&f->map, from, from + (size_t)t->bytes);
}

static void advise_matrix(const pack *p, const matrix *m, advice *fn)
{
    advise(p, m->weight, fn);
    advise(p, m->scales, fn);
    advise(p, m->biases, fn);
}

void pack_ahead(const pack *p, const matrix *m)
{
    advise_matrix(p, m, file_map_ahead);
}

void pack_drop(const pack *p, const matrix *m)
{
    advise_matrix(p, m, file_map_drop);
}

uint64_t pack_text_bytes(const pack *p)
{
    return p->text_bytes;
}

uint64_t pack_skipped_bytes(const pack *p)
{
    return p->skipped_bytes;
}

uint64_t pack_file_bytes(const pack *p)
{
    return p->shards.bytes;
}

size_t pack_file_count(const pack *p)
{
    return p->shards.count;
}

const safetensors *pack_file(const pack *p, size_t i)
{
    return &p->shards.files[i];
}

const char *pack_identity(const pack *p)
{
    return p->identity;
}
