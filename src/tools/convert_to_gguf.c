/* convert_to_gguf.c - from a king's pack to its GGUF twin; see convert.h. */
#include "tools/convert.h"
#include "base/mem.h"
#include "pack/gguf.h"
#include "pack/pack.h"
#include "pack/ternary.h"
#include "tools/kingfiles.h"
#include "tools/tokenmeta.h"
#include "tools/twin.h"
#include "base/banned.h"

enum { CHUNK_ROWS = 512, FILE_TYPE_PQ2 = 128 };

typedef struct to_gguf {
    const pack *p;
    const char *source;
    const convert_options *o;
    convert_report *report;
    uint32_t type; /* of packed matrices */
    gguf_writer *w;
    uint64_t done, total;
} to_gguf;

static status no_memory(const char *path, error *e)
{
    return error_set(e, E_NOMEM, "%s: no memory to convert", path);
}

static void put_dimensions(gguf_writer *w, const king_config *k)
{
    const int value = k->gdn_v_heads * k->gdn_v_dim;
    gguf_writer_u32(w, "qwen35.block_count", (uint32_t)k->n_layer);
    gguf_writer_u32(w, "qwen35.context_length", (uint32_t)k->max_positions);
    gguf_writer_u32(w, "qwen35.embedding_length", (uint32_t)k->n_embd);
    gguf_writer_u32(w, "qwen35.feed_forward_length", (uint32_t)k->n_ff);
    gguf_writer_u32(w, "qwen35.attention.head_count", (uint32_t)k->n_head);
    gguf_writer_u32(w, "qwen35.attention.head_count_kv", (uint32_t)k->n_kv_head);
    gguf_writer_u32(w, "qwen35.attention.key_length", (uint32_t)k->head_dim);
    gguf_writer_u32(w, "qwen35.attention.value_length", (uint32_t)k->head_dim);
    gguf_writer_f32(w, "qwen35.attention.layer_norm_rms_epsilon", k->eps);
    gguf_writer_f32(w, "qwen35.rope.freq_base", (float)k->rope_theta);
    gguf_writer_u32(w, "qwen35.rope.dimension_count", (uint32_t)k->rotary_dim);
    const int pairs = k->rotary_dim / 2, first = (pairs + 2) / 3, second = (pairs - first + 1) / 2;
    gguf_writer_array(w, "qwen35.rope.dimension_sections", GGUF_I32, 4);
    gguf_writer_put_i32(w, first);
    gguf_writer_put_i32(w, second);
    gguf_writer_put_i32(w, pairs - first - second);
    gguf_writer_put_i32(w, 0);
    gguf_writer_u32(w, "qwen35.full_attention_interval", (uint32_t)kingfiles_interval(k));
    gguf_writer_u32(w, "qwen35.ssm.conv_kernel", (uint32_t)k->conv_taps);
    gguf_writer_u32(w, "qwen35.ssm.state_size", (uint32_t)k->gdn_k_dim);
    gguf_writer_u32(w, "qwen35.ssm.group_count", (uint32_t)k->gdn_k_heads);
    gguf_writer_u32(w, "qwen35.ssm.time_step_rank", (uint32_t)k->gdn_v_heads);
    gguf_writer_u32(w, "qwen35.ssm.inner_size", (uint32_t)value);
}

static void put_rotated(const to_gguf *c, const char *key, bool embedding)
{
    const hadamard_contract *h = &pack_config(c->p)->hadamard;
    uint64_t n = 0;
    for (size_t i = 0; i < h->count; i++)
        n += h->modules[i].block && h->modules[i].embedding == embedding;
    gguf_writer_array(c->w, key, GGUF_STRING, n);
    for (size_t i = 0; i < h->count; i++) {
        char name[TWIN_MAX_NAME];
        if (!h->modules[i].block || h->modules[i].embedding != embedding) continue;
        twin_name(plan_find(pack_plan(c->p), h->modules[i].path), name);
        gguf_writer_put_str(c->w, str_from(name));
    }
}

static void put_rotation(const to_gguf *c)
{
    const hadamard_contract *h = &pack_config(c->p)->hadamard;
    gguf_writer *w = c->w;
    uint64_t n = 0;
    gguf_writer_u32(w, "prism.hadamard.version", 1);
    gguf_writer_u32(w, "prism.hadamard.block_size", (uint32_t)h->block);
    gguf_writer_str(w, "prism.hadamard.transform", STR("normalized-sylvester-walsh-hadamard"));
    gguf_writer_str(w, "prism.hadamard.axis", STR("input-last-dimension"));
    gguf_writer_str(w, "prism.hadamard.sign_mode", STR("explicit"));
    gguf_writer_array(w, "prism.hadamard.sign_widths", GGUF_I32, (uint64_t)h->n_width);
    for (int i = 0; i < h->n_width; i++) {
        gguf_writer_put_i32(w, (int32_t)h->width[i]);
        n += (uint64_t)h->width[i];
    }
    gguf_writer_array(w, "prism.hadamard.sign_values", GGUF_I32, n);
    for (int i = 0; i < h->n_width; i++)
        for (int64_t k = 0; k < h->width[i]; k++) gguf_writer_put_i32(w, (int32_t)h->signs[i][k]);
    put_rotated(c, "prism.hadamard.weight_names", false);
    put_rotated(c, "prism.hadamard.inverse_weight_names", true);
    gguf_writer_bool(w, "prism.hadamard.gdn_v_grouped", true);
}

/* The exact A_log of every layer that has one, in order, heads as in the pack. */
static status put_a_log(const to_gguf *c, error *e)
{
    const king_config *k = pack_king(c->p);
    const plan *all = pack_plan(c->p);
    float *values = mem_array((size_t)k->gdn_v_heads, sizeof *values);
    status s = values ? OK : no_memory(c->source, e);
    if (!s) {
        gguf_writer_array(c->w, TWIN_A_LOG, GGUF_F32,
                          (uint64_t)k->n_gdn * (uint64_t)k->gdn_v_heads);
    }
    for (size_t i = 0; i < all->count && !s; i++) {
        const plan_entry *t = &all->entries[i];
        if (!twin_is_decay(t)) continue;
        s = pack_values(c->p, t->name, t->rank, t->shape, values, e);
        for (int v = 0; v < k->gdn_v_heads && !s; v++) gguf_writer_put_f32(c->w, values[v]);
    }
    mem_free(values);
    return s;
}

static status put_metadata(const to_gguf *c, error *e)
{
    const char *name = strrchr(c->source, '/');
    const bool pq2 = c->type == GGUF_PQ2_0;
    gguf_writer_str(c->w, "general.architecture", STR("qwen35"));
    gguf_writer_str(c->w, "general.name", str_from(name && name[1] ? name + 1 : c->source));
    gguf_writer_u32(c->w, "general.file_type", FILE_TYPE_PQ2 + (pq2 ? 0 : 1));
    put_dimensions(c->w, pack_king(c->p));
    put_rotation(c);
    TRY(put_a_log(c, e));
    return tokenmeta_write(c->w, c->source, pack_king(c->p)->n_vocab,
                           &pack_config(c->p)->generation, e);
}

static uint32_t data_type(dtype t)
{
    return t == DTYPE_F16 ? GGUF_F16_DATA : t == DTYPE_BF16 ? GGUF_BF16_DATA : GGUF_F32_DATA;
}

static status declare_gguf(to_gguf *c, error *e)
{
    const plan *all = pack_plan(c->p);
    for (size_t i = 0; i < all->count; i++) {
        const plan_entry *t = &all->entries[i];
        uint32_t type = GGUF_F32_DATA;
        char name[TWIN_MAX_NAME];
        matrix m = { 0 };
        if (t->is_matrix) {
            TRY(pack_matrix_of(c->p, t, &m, e));
            type = m.scales ? c->type : data_type(m.weight->type);
        }
        twin_name(t, name);
        TRY(gguf_writer_declare(c->w, name, type, t->rank, t->shape, NULL, e));
        c->total += t->is_matrix ? m.weight->bytes : (uint64_t)plan_elements(t) * sizeof(float);
        if (m.scales) c->report->packed++;
        else c->report->plain++;
    }
    return OK;
}

static void advance(to_gguf *c, uint64_t bytes)
{
    c->done += bytes;
    if (c->o->progress) c->o->progress(c->o->arg, c->done, c->total);
}

/* One row of a packed matrix as blocks. */
static status encode_row(const to_gguf *c, const matrix *m, int64_t row, uint8_t *out, error *e)
{
    const int64_t blocks = m->in / TERNARY_GROUP;
    const uint8_t *codes = m->weight->data + row * blocks * TERNARY_CODES;
    const uint8_t *scales = m->scales->data + row * blocks * 2;
    const uint8_t *biases = m->biases->data + row * blocks * 2;
    for (int64_t b = 0; b < blocks; b++) {
        uint16_t d, bias;
        memcpy(&d, scales + 2 * b, sizeof d);
        memcpy(&bias, biases + 2 * b, sizeof bias);
        if (bias != (d ^ 0x8000u)) {
            return error_set(e, E_UNSUPPORTED,
                             "%s: module %s: row %lld, group %lld: bias %04x, want %04x, the scale "
                             "with its sign flipped",
                             c->source, m->path, (long long)row, (long long)b, bias, d ^ 0x8000u);
        }
        const uint8_t *from = codes + b * TERNARY_CODES;
        if (c->type == GGUF_PQ2_0) {
            ternary_put_pq2(from, d, out + b * TERNARY_PQ2);
        } else if (!ternary_put_ptq1(from, d, out + b * TERNARY_PTQ1)) {
            return error_set(e, E_UNSUPPORTED,
                             "%s: module %s: row %lld, group %lld: code 3, which PTQ1_0 cannot "
                             "hold: want PQ2_0",
                             c->source, m->path, (long long)row, (long long)b);
        }
    }
    return OK;
}

static status put_matrix(to_gguf *c, const plan_entry *t, int index, error *e)
{
    matrix m;
    TRY(pack_matrix_of(c->p, t, &m, e));
    const twin_order order = twin_order_of(t, pack_king(c->p));
    const int64_t blocks = m.in / TERNARY_GROUP;
    const size_t bytes = m.scales
                             ? (size_t)blocks * (c->type == GGUF_PQ2_0 ? TERNARY_PQ2 : TERNARY_PTQ1)
                             : (size_t)m.in * (size_t)dtype_bits(m.weight->type) / 8;
    uint8_t *chunk = mem_array(CHUNK_ROWS, bytes);
    if (!chunk) return no_memory(c->source, e);
    status s = OK;
    for (int64_t row = 0; row < m.out && !s;) {
        const int64_t first = row;
        for (; row < m.out && row - first < CHUNK_ROWS && !s; row++) {
            uint8_t *out = chunk + (size_t)(row - first) * bytes;
            const int64_t from = twin_pack_row(&order, row);
            if (m.scales) s = encode_row(c, &m, from, out, e);
            else memcpy(out, m.weight->data + (size_t)from * bytes, bytes);
        }
        if (s) break;
        const size_t n = (size_t)(row - first) * bytes;
        s = gguf_writer_put(c->w, index, (uint64_t)first * bytes, chunk, n, e);
        const uint64_t part = m.weight->bytes / (uint64_t)m.out * (uint64_t)(row - first);
        advance(c, part);
    }
    mem_free(chunk);
    pack_drop(c->p, &m);
    return s;
}

static status put_values(to_gguf *c, const plan_entry *t, int index, error *e)
{
    const twin_order order = twin_order_of(t, pack_king(c->p));
    const int64_t n = plan_elements(t), rows = t->shape[0], width = n / rows;
    float *in = mem_array((size_t)n, sizeof *in), *out = mem_array((size_t)n, sizeof *out);
    status s = in && out ? OK : no_memory(c->source, e);
    if (!s) s = pack_values(c->p, t->name, t->rank, t->shape, in, e);
    for (int64_t r = 0; r < rows && !s; r++) {
        const int64_t from = twin_pack_row(&order, r);
        memcpy(out + r * width, in + from * width, (size_t)width * sizeof *out);
    }
    for (int64_t i = 0; i < n && !s && twin_is_decay(t); i++) out[i] = twin_decay(out[i]);
    if (!s) s = gguf_writer_put(c->w, index, 0, out, (size_t)n * sizeof *out, e);
    mem_free(in);
    mem_free(out);
    advance(c, (uint64_t)n * sizeof *out);
    return s;
}

static status write_gguf(to_gguf *c, const char *target, error *e)
{
    const plan *all = pack_plan(c->p);
    const char *type = c->o->type ? c->o->type : "PQ2_0";
    if (strcmp(type, "PQ2_0") != 0 && strcmp(type, "PTQ1_0") != 0)
        return error_set(e, E_ARG, "--type: found %s, want PQ2_0 or PTQ1_0", type);
    c->type = strcmp(type, "PQ2_0") == 0 ? GGUF_PQ2_0 : GGUF_PTQ1_0;
    if (pack_get_kind(c->p) != PACK_KING)
        return error_set(e, E_UNSUPPORTED, "%s: no king: only kings have a GGUF twin", c->source);
    c->report->skipped_bytes = pack_skipped_bytes(c->p);
    TRY(put_metadata(c, e));
    TRY(declare_gguf(c, e));
    TRY(gguf_writer_begin(c->w, target, e));
    for (size_t i = 0; i < all->count; i++) {
        const plan_entry *t = &all->entries[i];
        TRY(t->is_matrix ? put_matrix(c, t, (int)i, e) : put_values(c, t, (int)i, e));
    }
    gguf_writer *w = c->w;
    c->w = NULL;
    return gguf_writer_commit(w, e);
}

status convert_to_gguf(const char *source, const char *target, const convert_options *o,
                       convert_report *r, error *e)
{
    pack *p = NULL;
    *r = (convert_report){ 0 };
    if (file_exists(target))
        return error_set(e, E_ARG, "%s: is there already, want the name of a new file", target);
    TRY(pack_open(&p, source, NULL, e));
    to_gguf c = { .p = p, .source = source, .o = o, .report = r };
    status s = gguf_writer_new(&c.w, e);
    if (!s) s = write_gguf(&c, target, e);
    gguf_writer_abort(c.w);
    pack_close(p);
    return s;
}
