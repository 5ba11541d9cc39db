/* quantize.c - see quantize.h. Rows are encoded in chunks, shared among threads; a chunk's codes,
 * scales and biases are then written each to its place. */
#include "tools/quantize.h"
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/pool.h"
#include "tools/newfolder.h"
#include "tools/textfiles.h"
#include "base/banned.h"

enum { MAX_PATH = 4096, MAX_CONFIG = 64 << 20, CHUNK_ELEMENTS = 1 << 22 };

/* A tensor of the source and where it goes. */
typedef struct piece {
    const tensor *from;
    bool quantized;
    int64_t rows, width;       /* quantized: of the matrix */
    int codes, scales, biases; /* indices in the output; unquantized: codes is the copy */
} piece;

typedef struct work {
    const quantize_options *o;
    const pack *p;
    map chosen; /* the weights to be quantized: a key is the address of the tensor */
    piece *pieces;
    size_t n_pieces;
    newfolder folder;
    safetensors_writer *out;
    pool *team;
    uint64_t done;
    quantize_report *report;
} work;

/* ---- which matrices ---- */

static bool is_wanted(const quantize_options *o, const char *path)
{
    for (int i = 0; i < o->n_only; i++)
        if (fnmatch(o->only[i], path, 0) == 0) return true;
    return o->n_only == 0;
}

static str key_of(const tensor *const *t)
{
    return (str){ (const char *)t, sizeof *t };
}

/* Fills `chosen`: the weight tensors to be quantized. Keys are the tensors' addresses, kept in
 * `list`. */
static status choose(work *w, const tensor **list, error *e)
{
    const plan *want = pack_plan(w->p);
    const quant_format f = w->o->format;
    int matched = 0;
    for (size_t i = 0; i < want->count; i++) {
        const plan_entry *t = &want->entries[i];
        matrix m;
        if (!t->is_matrix) continue;
        TRY(pack_matrix_of(w->p, t, &m, e));
        const bool wanted = is_wanted(w->o, t->name);
        matched += wanted;
        if (wanted && m.format.mode != QUANT_DENSE) {
            char text[32];
            return error_set(e, E_UNSUPPORTED,
                             "%s: module %s is %s already, want dense weights (leave it out with "
                             "--only, or start from the original)",
                             pack_folder(w->p), t->name,
                             quant_format_text(m.format, text, sizeof text));
        }
        if (!wanted || m.in % f.group) {
            w->report->dense++;
            if (wanted && !w->report->indivisible[0])
                snprintf(w->report->indivisible, sizeof w->report->indivisible, "%s", t->name);
            continue;
        }
        list[i] = m.weight;
        TRY(map_put(&w->chosen, key_of(&list[i]), 1, e));
        w->report->quantized++;
    }
    if (w->report->quantized) return OK;
    return error_set(e, E_ARG, "%s: %s", pack_folder(w->p),
                     matched ? "no width of the chosen modules is a multiple of the group"
                             : "no module matches --only");
}

/* ---- the file ---- */

static status declare_quantized(work *w, piece *x, error *e)
{
    const quant_format f = w->o->format;
    str stem = x->from->name;
    if (str_ends(stem, STR(".weight"))) stem.len -= 7;
    x->rows = x->from->shape[0];
    x->width = x->from->shape[1];
    const int64_t codes[2] = { x->rows, x->width * f.bits / 32 };
    const int64_t scales[2] = { x->rows, x->width / f.group };
    const bool affine = f.mode == QUANT_AFFINE;
    const dtype type = affine ? x->from->type : DTYPE_U8;
    const struct {
        const char *suffix;
        dtype type;
        const int64_t *shape;
        int *index;
    } parts[] = { { ".weight", DTYPE_U32, codes, &x->codes },
                  { ".scales", type, scales, &x->scales },
                  { ".biases", type, scales, &x->biases } };
    for (int i = 0; i < (affine ? 3 : 2); i++) {
        char name[SAFETENSORS_MAX_NAME + 16];
        uint64_t bytes;
        const int n = snprintf(name, sizeof name, "%.*s%s", STR_ARG(stem), parts[i].suffix);
        CHECK(n > 0 && (size_t)n < sizeof name);
        CHECK(tensor_bytes_of(parts[i].type, 2, parts[i].shape, &bytes));
        w->report->bytes_after += bytes;
        TRY(safetensors_writer_declare(w->out, str_from(name), parts[i].type, 2, parts[i].shape,
                                       parts[i].index, e));
    }
    return OK;
}

static status declare_all(work *w, error *e)
{
    TRY(safetensors_writer_metadata(w->out, STR("format"), STR("mlx"), e));
    for (size_t i = 0; i < pack_file_count(w->p); i++) {
        const safetensors *f = pack_file(w->p, i);
        for (size_t k = 0; k < f->count; k++) {
            const tensor *t = &f->tensors[k];
            piece *x = &w->pieces[w->n_pieces++];
            *x = (piece){ .from = t };
            x->quantized = map_get(&w->chosen, key_of(&t), NULL);
            w->report->bytes_before += t->bytes;
            if (x->quantized) {
                TRY(declare_quantized(w, x, e));
                continue;
            }
            w->report->bytes_after += t->bytes;
            TRY(safetensors_writer_declare(w->out, t->name, t->type, t->rank, t->shape, &x->codes,
                                           e));
        }
    }
    return OK;
}

/* ---- encoding ---- */

/* Rows [first, first + rows) of a matrix, encoded by the team. */
typedef struct chunk {
    const piece *x;
    quant_format format;
    dtype type;
    int64_t first;
    int rows;
    size_t code_bytes, scale_bytes; /* of a row */
    float *values;                  /* [rows, width] */
    uint8_t *codes, *scales, *biases;
    int64_t *bad; /* [rows] element that is not finite, -1: none */
} chunk;

static void encode_rows(void *arg, int worker, int workers)
{
    const chunk *c = arg;
    const int64_t width = c->x->width;
    int from, to;
    pool_share(c->rows, worker, workers, &from, &to);
    for (int r = from; r < to; r++) {
        float *v = c->values + (size_t)r * (size_t)width;
        tensor_read_f32(c->x->from, (c->first + r) * width, width, v);
        c->bad[r] = -1;
        for (int64_t k = 0; k < width && c->bad[r] < 0; k++)
            if (!isfinite(v[k])) c->bad[r] = k;
        if (c->bad[r] >= 0) continue;
        const size_t at = (size_t)r * c->scale_bytes;
        quant_encode_row(c->format, v, width, c->type, c->codes + (size_t)r * c->code_bytes,
                         c->scales + at, c->biases ? c->biases + at : NULL);
    }
}

static status put_chunk(work *w, const chunk *c, error *e)
{
    for (int r = 0; r < c->rows; r++) {
        if (c->bad[r] < 0) continue;
        const str name = c->x->from->name;
        return error_set(e, E_FORMAT, "%s: tensor %.*s: element [%lld, %lld] is not finite",
                         pack_folder(w->p), STR_ARG(name), (long long)(c->first + r),
                         (long long)c->bad[r]);
    }
    const size_t codes = (size_t)c->rows * c->code_bytes, scales = (size_t)c->rows * c->scale_bytes;
    const uint64_t code_at = (uint64_t)c->first * c->code_bytes;
    const uint64_t scale_at = (uint64_t)c->first * c->scale_bytes;
    TRY(safetensors_writer_put(w->out, c->x->codes, code_at, c->codes, codes, e));
    TRY(safetensors_writer_put(w->out, c->x->scales, scale_at, c->scales, scales, e));
    if (!c->biases) return OK;
    return safetensors_writer_put(w->out, c->x->biases, scale_at, c->biases, scales, e);
}

static void advance(work *w, uint64_t bytes)
{
    w->done += bytes;
    if (w->o->progress) w->o->progress(w->o->arg, w->done, w->report->bytes_before);
}

static status write_quantized(work *w, const piece *x, error *e)
{
    const quant_format f = w->o->format;
    const bool affine = f.mode == QUANT_AFFINE;
    const int64_t most = x->width < CHUNK_ELEMENTS ? CHUNK_ELEMENTS / x->width : 1;
    const size_t rows = (size_t)(x->rows < most ? x->rows : most);
    chunk c = { .x = x, .format = f, .type = x->from->type };
    c.code_bytes = (size_t)quant_row_bytes(f, x->width);
    c.scale_bytes = (size_t)(x->width / f.group) * (affine ? (size_t)dtype_bits(c.type) / 8 : 1);
    c.values = mem_array(rows, (size_t)x->width * sizeof *c.values);
    c.codes = mem_array(rows, c.code_bytes);
    c.scales = mem_array(rows, c.scale_bytes);
    c.biases = affine ? mem_array(rows, c.scale_bytes) : NULL;
    c.bad = mem_array(rows, sizeof *c.bad);
    status s = c.values && c.codes && c.scales && c.bad && (c.biases || !affine)
                   ? OK
                   : error_set(e, E_NOMEM, "%s: no memory to quantize", pack_folder(w->p));
    while (c.first < x->rows && !s) {
        c.rows = (int)(x->rows - c.first < (int64_t)rows ? x->rows - c.first : (int64_t)rows);
        pool_run(w->team, encode_rows, &c);
        s = put_chunk(w, &c, e);
        c.first += c.rows;
        advance(w, (uint64_t)c.rows * (uint64_t)x->width * (uint64_t)dtype_bits(c.type) / 8);
    }
    mem_free(c.values);
    mem_free(c.codes);
    mem_free(c.scales);
    mem_free(c.biases);
    mem_free(c.bad);
    return s;
}

static status write_pieces(work *w, error *e)
{
    for (size_t i = 0; i < w->n_pieces; i++) {
        const piece *x = &w->pieces[i];
        if (x->quantized) {
            TRY(write_quantized(w, x, e));
            continue;
        }
        TRY(safetensors_writer_put(w->out, x->codes, 0, x->from->data, (size_t)x->from->bytes, e));
        advance(w, x->from->bytes);
    }
    return OK;
}

/* ---- config.json ---- */

static void put_format(jsonw *j, quant_format f)
{
    jsonw_member_i64(j, "group_size", f.group);
    jsonw_member_i64(j, "bits", f.bits);
    jsonw_member_text(j, "mode", quant_mode_name(f.mode));
}

/* Whether a rule of the source, whose path may be spelled with another prefix, is for a module that
 * is quantized here. */
static bool is_replaced(const work *w, str key)
{
    char path[PLAN_MAX_NAME];
    if (str_ends(key, STR(".weight"))) key.len -= 7;
    if (!tensor_canonical(key, path, sizeof path)) return false;
    const plan_entry *t = plan_find(pack_plan(w->p), str_from(path));
    matrix m;
    if (!t || !t->is_matrix || pack_matrix_of(w->p, t, &m, NULL)) return false;
    return map_get(&w->chosen, key_of(&m.weight), NULL);
}

/* `old` is the source's block, or NULL. */
static void put_quantization(const work *w, jsonw *j, const json_node *old)
{
    str key;
    const json_node *value;
    jsonw_object(j);
    if (!old) put_format(j, w->o->format);
    for (void *it = NULL; old && json_each(old, &it, &key, &value);) {
        if (is_replaced(w, key)) continue;
        jsonw_key_str(j, key);
        jsonw_node(j, value);
    }
    for (size_t i = 0; old && i < w->n_pieces; i++) {
        if (!w->pieces[i].quantized) continue;
        str path = w->pieces[i].from->name;
        if (str_ends(path, STR(".weight"))) path.len -= 7;
        jsonw_key_str(j, path);
        jsonw_object(j);
        put_format(j, w->o->format);
        jsonw_end_object(j);
    }
    jsonw_end_object(j);
}

/* The block that the reader took, config.c: `quantization`, else the `quantization_config` of other
 * tools, of the whole or of the text model. NULL: none. */
static const json_node *old_block(const json_node *root)
{
    const json_node *const places[] = {
        json_get(root, "quantization"),
        json_get(root, "quantization_config"),
        json_get(json_get(root, "text_config"), "quantization_config"),
    };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (json_kind(places[i]) == JSON_OBJECT) return places[i];
    return NULL;
}

/* The source's config with the new block in place of every other. */
static void put_config(const work *w, jsonw *j, const json_node *object, bool whole)
{
    str key;
    const json_node *value;
    jsonw_object(j);
    for (void *it = NULL; json_each(object, &it, &key, &value);) {
        if (str_eq(key, STR("quantization")) || str_eq(key, STR("quantization_config"))) continue;
        jsonw_key_str(j, key);
        if (whole && str_eq(key, STR("text_config")) && json_kind(value) == JSON_OBJECT)
            put_config(w, j, value, false);
        else jsonw_node(j, value);
    }
    if (whole) {
        jsonw_key(j, "quantization");
        put_quantization(w, j, old_block(object));
    }
    jsonw_end_object(j);
}

static status write_config(const work *w, const char *path, error *e)
{
    json_doc *doc = NULL;
    buf text;
    jsonw j;
    TRY(json_parse(&doc, pack_config_text(w->p), JSON_UNIQUE, "config.json", e));
    buf_init(&text, MAX_CONFIG);
    jsonw_init(&j, &text);
    put_config(w, &j, json_root(doc), true);
    buf_char(&text, '\n');
    status s = buf_status(&text, path, e);
    if (!s) s = file_write(path, buf_view(&text), e);
    buf_free(&text);
    json_free(doc);
    return s;
}

/* ---- the whole ---- */

static status check_source(const pack *p, const quantize_options *o, error *e)
{
    CHECK(o->format.mode != QUANT_DENSE && quant_is_legal(o->format));
    if (pack_get_kind(p) == PACK_KING) {
        return error_set(e, E_UNSUPPORTED,
                         "%s: a king's weights are quantized already, and rotated: want a drafter "
                         "or a plain pack",
                         pack_folder(p));
    }
    if (pack_is_synthesised(p)) {
        return error_set(e, E_UNSUPPORTED,
                         "%s: no config.json to carry over: name one with --drafter-config",
                         pack_folder(p));
    }
    return OK;
}

static status write_all(work *w, const char *target, error *e)
{
    char path[MAX_PATH];
    TRY(declare_all(w, e));
    TRY(newfolder_begin(&w->folder, target, e));
    TRY(file_join(path, sizeof path, target, "model.safetensors", e));
    TRY(safetensors_writer_begin(w->out, path, e));
    TRY(write_pieces(w, e));
    TRY(textfiles_copy(pack_folder(w->p), target, e));
    TRY(file_join(path, sizeof path, target, "config.json", e));
    TRY(write_config(w, path, e));
    safetensors_writer *out = w->out;
    w->out = NULL;
    return safetensors_writer_commit(out, e);
}

status quantize_format(const char *mode, int bits, int group, quant_format *out, error *e)
{
    quant_mode m;
    if (!quant_mode_from_name(str_from(mode), &m))
        return error_set(e, E_ARG, "--mode: found %s, want affine, mxfp4, mxfp8 or nvfp4", mode);
    const quant_format want = quant_default(m);
    *out = want;
    if (bits) out->bits = bits;
    if (group) out->group = group;
    if (quant_is_legal(*out) && out->bits > 1) return OK;
    if (m != QUANT_AFFINE) {
        return error_set(e, E_ARG, "--mode %s: found %d bits in groups of %d, want %d in %d", mode,
                         out->bits, out->group, want.bits, want.group);
    }
    return error_set(e, E_ARG,
                     "--mode affine: found %d bits in groups of %d, want 2, 3, 4, 5, 6 or 8 in 32, "
                     "64 or 128",
                     out->bits, out->group);
}

status quantize_run(const char *source, const char *target, const quantize_options *o,
                    quantize_report *r, error *e)
{
    pack *p = NULL;
    *r = (quantize_report){ 0 };
    TRY(newfolder_check(target, e));
    TRY(pack_open(&p, source, o->config_path, e));
    work w = { .o = o, .p = p, .report = r };
    map_init(&w.chosen);
    size_t tensors = 0;
    for (size_t i = 0; i < pack_file_count(p); i++) tensors += pack_file(p, i)->count;
    w.pieces = mem_array(tensors, sizeof *w.pieces);
    const tensor **list = mem_array(pack_plan(p)->count, sizeof *list);
    status s = check_source(p, o, e);
    if (!s && (!w.pieces || !list)) s = error_set(e, E_NOMEM, "%s: no memory", source);
    if (!s) s = choose(&w, list, e);
    if (!s) s = safetensors_writer_new(&w.out, e);
    if (!s) s = pool_start(&w.team, o->threads > 0 ? o->threads : 1, e);
    if (!s) s = write_all(&w, target, e);
    if (w.team) pool_stop(w.team);
    safetensors_writer_abort(w.out);
    if (s) newfolder_discard(&w.folder);
    map_free(&w.chosen);
    mem_free(list);
    mem_free(w.pieces);
    pack_close(p);
    return s;
}
