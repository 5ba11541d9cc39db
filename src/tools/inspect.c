/* inspect.c - the description of a model folder. */
#include "tools/inspect.h"
#include <stdio.h>
#include "base/jsonw.h"
#include "engine/scheduler.h"
#include "model/king.h"
#include "model/state.h"
#include "model/tilefile.h"
#include "tools/doctor.h"
#include "base/banned.h"

/* ---- numbers ---- */

int64_t inspect_parameters(const pack *p)
{
    int64_t n = 0;
    for (size_t i = 0; i < pack_plan(p)->count; i++) n += plan_elements(&pack_plan(p)->entries[i]);
    return n;
}

double inspect_bits_per_weight(const pack *p)
{
    return 8.0 * (double)pack_text_bytes(p) / (double)inspect_parameters(p);
}

/* Also the rows of activations that the widest of its products wants prepared. */
static status need_weights(const pack *p, inspect_memory *n, int rows, size_t *prepared, error *e)
{
    *prepared = 0;
    const bool tied = pack_king(p) && pack_king(p)->tied;
    for (size_t i = 0; i < pack_plan(p)->count; i++) {
        const plan_entry *t = &pack_plan(p)->entries[i];
        if (!t->is_matrix) {
            n->values += 4 * (uint64_t)plan_elements(t);
            continue;
        }
        matrix m;
        tile_matrix tiles;
        TRY(pack_matrix_of(p, t, &m, e));
        if (t->is_embedding) n->mapped += matrix_bytes(&m);
        if (t->is_embedding && !tied) continue;
        TRY(tile_plan(&tiles, &m, e));
        n->tiles += tile_bytes(&tiles);
        const size_t bytes =
            compute_act_bytes(rows, tiles.n_in, compute_needs(&tiles, COMPUTE_INT8));
        if (bytes > *prepared) *prepared = bytes;
    }
    return OK;
}

status inspect_need(const pack *p, const inspect_options *o, inspect_memory *out, error *e)
{
    const king_config *k = pack_king(p);
    const drafter_config *d = pack_drafter(p);
    const int limit = k ? k->max_positions : d->max_positions;
    *out = (inspect_memory){ .context = o->context, .parallel = o->parallel ? o->parallel : 1 };
    if (!out->context) out->context = limit < 8192 ? limit : 8192;
    if (out->context < 1 || out->context > limit || out->parallel < 1) {
        return error_set(e, E_ARG, "%s: context %d for %d sequences, want 1 to %d positions",
                         pack_folder(p), out->context, out->parallel, limit);
    }
    int rows, logits;
    size_t prepared;
    scheduler_rows(out->context < SCHEDULER_CHUNK ? out->context : SCHEDULER_CHUNK, out->parallel,
                   &rows, &logits);
    TRY(need_weights(p, out, rows, &prepared, e));
    if (o->tiles && *pack_identity(p)) {
        TRY(tilefile_path(p, o->tiles, out->tiles_file, e));
        if (!file_exists(out->tiles_file)) out->tiles_file[0] = '\0';
    }
    kv_layout kv = { 0 };
    kv_type type;
    TRY(compute_kv_type(&type, o->kv_type, e));
    uint64_t pages = ((uint64_t)out->context + KV_PAGE - 1) / KV_PAGE;
    if (k) {
        out->state = (uint64_t)state_bytes(k) * (uint64_t)out->parallel;
        out->work = king_work_bytes(k, prepared, rows, logits, 0) + sampler_work_bytes(k->n_vocab);
        if (k->n_attention)
            TRY(compute_kv_layout(&kv, type, k->n_attention, k->n_kv_head, k->head_dim, e));
    } else {
        /* a ring of the window and one block, wherever they begin in a page */
        const uint64_t live =
            (uint64_t)(d->window ? d->window - 1 : out->context) + (uint64_t)d->block;
        pages = (live + KV_PAGE - 2) / KV_PAGE + 1;
        TRY(compute_kv_layout(&kv, KV_F16, d->n_layer, d->n_kv_head, d->head_dim, e));
    }
    out->kv = pages * kv.page_bytes * (uint64_t)out->parallel;
    out->total = out->tiles + out->values + out->state + out->kv + out->work;
    return OK;
}

/* ---- formats in use ---- */

enum { MAX_FORMATS = 16 };

typedef struct format_count {
    quant_format format;
    dtype type; /* dense */
    int matrices;
    uint64_t bytes;
} format_count;

static status count_formats(const pack *p, format_count *list, int *n, error *e)
{
    *n = 0;
    for (size_t i = 0; i < pack_plan(p)->count; i++) {
        const plan_entry *t = &pack_plan(p)->entries[i];
        if (!t->is_matrix) continue;
        matrix m;
        TRY(pack_matrix_of(p, t, &m, e));
        const dtype type = matrix_type(&m);
        int at = 0;
        while (at < *n && !(quant_equal(list[at].format, m.format) && list[at].type == type)) at++;
        if (at == MAX_FORMATS) at--; /* the last one stands for the rest */
        else if (at == *n) list[(*n)++] = (format_count){ .format = m.format, .type = type };
        list[at].matrices++;
        list[at].bytes += matrix_bytes(&m);
    }
    return OK;
}

static const char *format_name(const format_count *f, char *text, size_t cap)
{
    char packed[32];
    if (f->format.mode == QUANT_DENSE) snprintf(text, cap, "dense %s", dtype_name(f->type));
    else snprintf(text, cap, "%s", quant_format_text(f->format, packed, sizeof packed));
    return text;
}

static const char *kind_name(const pack *p)
{
    static const char *const
        names[] = { [PACK_KING] = "king", [PACK_PLAIN] = "plain", [PACK_DRAFTER] = "drafter" };
    return names[pack_get_kind(p)];
}

/* "7.67 GB", decimal as disks and model pages count. */
static const char *bytes_text(uint64_t n, char *text, size_t cap)
{
    static const char *const units[] = { "B", "kB", "MB", "GB", "TB" };
    double v = (double)n;
    int u = 0;
    for (; v >= 999.5 && u < 4; u++) v /= 1000.0;
    snprintf(text, cap, u ? "%.*f %s" : "%.*f %s", u ? 2 : 0, v, units[u]);
    return text;
}

/* ---- text ---- */

static void line_bytes(buf *out, const char *label, uint64_t n, const char *note)
{
    char text[32];
    buf_printf(out, "  %-10s %10s  %s\n", label, bytes_text(n, text, sizeof text), note);
}

static void write_king(const pack *p, buf *out)
{
    const king_config *k = pack_king(p);
    const config *c = pack_config(p);
    buf_printf(out, "layers      %d: %d gated delta nets, %d attention\n", k->n_layer, k->n_gdn,
               k->n_attention);
    buf_printf(out, "width       %d, MLP %d, vocabulary %d%s\n", k->n_embd, k->n_ff, k->n_vocab,
               k->tied ? ", head tied to the embedding" : "");
    buf_printf(out, "attention   %d heads of %d on %d, rotary %d, theta %g\n", k->n_head,
               k->head_dim, k->n_kv_head, k->rotary_dim, k->rope_theta);
    buf_printf(out, "delta net   %d value heads of %d on %d key heads of %d, %d taps\n",
               k->gdn_v_heads, k->gdn_v_dim, k->gdn_k_heads, k->gdn_k_dim, k->conv_taps);
    buf_printf(out, "context     %d positions\n", k->max_positions);
    buf_text(out, "stop ids   ");
    for (int i = 0; i < c->generation.n_eos; i++) buf_printf(out, " %d", (int)c->generation.eos[i]);
    buf_text(out, c->generation.n_eos ? "\n" : " none\n");
    if (c->hadamard.block) {
        buf_printf(out, "rotation    Hadamard blocks of %d, %zu packed modules, schema %d\n",
                   c->hadamard.block, c->hadamard.count, c->hadamard.schema);
    }
}

static void write_drafter(const pack *p, buf *out)
{
    const drafter_config *d = pack_drafter(p);
    buf_printf(out, "layers      %d, width %d, MLP %d, vocabulary %d\n", d->n_layer, d->n_embd,
               d->n_ff, d->n_vocab);
    buf_printf(out, "attention   %d heads of %d on %d, theta %g, window %d\n", d->n_head,
               d->head_dim, d->n_kv_head, d->rope_theta, d->window);
    buf_printf(out, "block       %d rows: 1 anchor, %d drafts; mask id %d\n", d->block,
               d->block - 1, (int)d->mask_id);
    buf_printf(out, "selector    %d candidates, rank %d\n", d->top_k, d->rank);
    buf_text(out, "taps        after layers");
    for (int i = 0; i < d->n_tap; i++) buf_printf(out, " %d", d->tap[i]);
    if (d->n_target_layer) buf_printf(out, " of %d", d->n_target_layer);
    buf_text(out, "\n");
    if (pack_is_synthesised(p))
        buf_text(out, "config      none in the folder: the published one of this shape\n");
}

static void write_tensors(const pack *p, buf *out)
{
    for (size_t i = 0; i < pack_file_count(p); i++) {
        const safetensors *f = pack_file(p, i);
        buf_printf(out, "%s\n", f->path);
        for (size_t k = 0; k < f->count; k++) {
            const tensor *t = &f->tensors[k];
            char shape[96];
            buf_printf(out, "  %-5s %-16s %12llu  %.*s\n", dtype_name(t->type),
                       tensor_shape_text(t->rank, t->shape, shape, sizeof shape),
                       (unsigned long long)t->bytes, STR_ARG(t->name));
        }
    }
}

static void write_memory(const inspect_memory *n, buf *out)
{
    buf_printf(out, "memory      for %d sequence%s of %d positions\n", n->parallel,
               n->parallel == 1 ? "" : "s", n->context);
    line_bytes(out, "tiles", n->tiles, "matrices as they are computed with");
    if (n->tiles_file[0]) buf_printf(out, "  %-10s %10s  %s\n", "", "shared:", n->tiles_file);
    line_bytes(out, "values", n->values, "norms, convolutions, gates");
    if (n->state) line_bytes(out, "state", n->state, "recurrent state, windows, tapes");
    line_bytes(out, "keys", n->kv, "keys and values");
    if (n->work) line_bytes(out, "work", n->work, "activations and logits of a pass");
    line_bytes(out, "total", n->total, "without the prefix cache");
    line_bytes(out, "mapped", n->mapped, "beside it: rows read from the files");
}

static status write_text(const pack *p, const inspect_options *o, const inspect_memory *need,
                         buf *out, error *e)
{
    char a[32], b[32], c[32];
    format_count formats[MAX_FORMATS];
    int n;
    TRY(count_formats(p, formats, &n, e));
    buf_printf(out, "%-11s %s\n", kind_name(p), pack_folder(p));
    buf_printf(out, "size        %s in %zu file%s: text %s, skipped %s\n",
               bytes_text(pack_file_bytes(p), a, sizeof a), pack_file_count(p),
               pack_file_count(p) == 1 ? "" : "s", bytes_text(pack_text_bytes(p), b, sizeof b),
               bytes_text(pack_skipped_bytes(p), c, sizeof c));
    buf_printf(out, "weights     %.3f billion, %.2f bits each\n",
               (double)inspect_parameters(p) / 1e9, inspect_bits_per_weight(p));
    for (int i = 0; i < n; i++) {
        char name[48];
        buf_printf(out, "%s%-20s %4d matrices %10s\n", i ? "            " : "formats     ",
                   format_name(&formats[i], name, sizeof name), formats[i].matrices,
                   bytes_text(formats[i].bytes, a, sizeof a));
    }
    if (pack_king(p)) write_king(p, out);
    else write_drafter(p, out);
    if (*pack_identity(p)) buf_printf(out, "identity    %s\n", pack_identity(p));
    write_memory(need, out);
    if (o->tensors) write_tensors(p, out);
    return OK;
}

/* ---- JSON ---- */

static void put_king(jsonw *w, const pack *p)
{
    const king_config *k = pack_king(p);
    const config *c = pack_config(p);
    jsonw_member_i64(w, "layers", k->n_layer);
    jsonw_member_i64(w, "attention_layers", k->n_attention);
    jsonw_member_i64(w, "hidden_size", k->n_embd);
    jsonw_member_i64(w, "intermediate_size", k->n_ff);
    jsonw_member_i64(w, "vocab_size", k->n_vocab);
    jsonw_member_i64(w, "context", k->max_positions);
    jsonw_member_bool(w, "tied", k->tied);
    jsonw_member_i32s(w, "stop_ids", c->generation.eos, (size_t)c->generation.n_eos);
    jsonw_member_i64(w, "hadamard_block", c->hadamard.block);
}

static void put_drafter(jsonw *w, const pack *p)
{
    const drafter_config *d = pack_drafter(p);
    jsonw_member_i64(w, "layers", d->n_layer);
    jsonw_member_i64(w, "hidden_size", d->n_embd);
    jsonw_member_i64(w, "intermediate_size", d->n_ff);
    jsonw_member_i64(w, "vocab_size", d->n_vocab);
    jsonw_member_i64(w, "context", d->max_positions);
    jsonw_member_i64(w, "window", d->window);
    jsonw_member_i64(w, "block", d->block);
    jsonw_member_i64(w, "mask_id", d->mask_id);
    jsonw_member_i64(w, "candidates", d->top_k);
    jsonw_member_i64(w, "target_layers", d->n_target_layer);
    jsonw_member_i32s(w, "taps", d->tap, (size_t)d->n_tap);
    jsonw_member_bool(w, "config_synthesised", pack_is_synthesised(p));
}

static void put_memory(jsonw *w, const inspect_memory *n)
{
    jsonw_member_object(w, "memory");
    jsonw_member_i64(w, "context", n->context);
    jsonw_member_i64(w, "parallel", n->parallel);
    jsonw_member_u64(w, "tiles", n->tiles);
    jsonw_member_text(w, "tiles_file", n->tiles_file[0] ? n->tiles_file : NULL);
    jsonw_member_u64(w, "values", n->values);
    jsonw_member_u64(w, "state", n->state);
    jsonw_member_u64(w, "kv", n->kv);
    jsonw_member_u64(w, "work", n->work);
    jsonw_member_u64(w, "total", n->total);
    jsonw_member_u64(w, "mapped", n->mapped);
    jsonw_end_object(w);
}

static void put_tensors(jsonw *w, const pack *p)
{
    jsonw_member_array(w, "tensors");
    for (size_t i = 0; i < pack_file_count(p); i++) {
        const safetensors *f = pack_file(p, i);
        for (size_t k = 0; k < f->count; k++) {
            const tensor *t = &f->tensors[k];
            jsonw_object(w);
            jsonw_member_str(w, "name", t->name);
            jsonw_member_text(w, "dtype", dtype_name(t->type));
            jsonw_member_i64s(w, "shape", t->shape, (size_t)t->rank);
            jsonw_member_u64(w, "bytes", t->bytes);
            jsonw_member_i64(w, "file", (int64_t)i);
            jsonw_end_object(w);
        }
    }
    jsonw_end_array(w);
}

static status write_json(const pack *p, const inspect_options *o, const inspect_memory *need,
                         buf *out, error *e)
{
    format_count formats[MAX_FORMATS];
    int n;
    TRY(count_formats(p, formats, &n, e));
    jsonw w;
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_member_text(&w, "kind", kind_name(p));
    jsonw_member_text(&w, "folder", pack_folder(p));
    jsonw_member_text(&w, "identity", pack_identity(p));
    jsonw_member_i64(&w, "files", (int64_t)pack_file_count(p));
    jsonw_member_u64(&w, "file_bytes", pack_file_bytes(p));
    jsonw_member_u64(&w, "text_bytes", pack_text_bytes(p));
    jsonw_member_u64(&w, "skipped_bytes", pack_skipped_bytes(p));
    jsonw_member_i64(&w, "parameters", inspect_parameters(p));
    jsonw_member_fixed(&w, "bits_per_weight", inspect_bits_per_weight(p), 4);
    jsonw_member_array(&w, "formats");
    for (int i = 0; i < n; i++) {
        char name[48];
        jsonw_object(&w);
        jsonw_member_text(&w, "format", format_name(&formats[i], name, sizeof name));
        jsonw_member_i64(&w, "matrices", formats[i].matrices);
        jsonw_member_u64(&w, "bytes", formats[i].bytes);
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    if (pack_king(p)) put_king(&w, p);
    else put_drafter(&w, p);
    put_memory(&w, need);
    if (o->tensors) put_tensors(&w, p);
    jsonw_end_object(&w);
    buf_char(out, '\n');
    return OK;
}

status inspect_write(const pack *p, const inspect_options *o, buf *out, error *e)
{
    inspect_memory need;
    TRY(inspect_need(p, o, &need, e));
    if (o->json) TRY(write_json(p, o, &need, out, e));
    else TRY(write_text(p, o, &need, out, e));
    return buf_status(out, pack_folder(p), e);
}

/* ---- with what the doctor finds ---- */

/* The findings as a member of the object that `out` holds. */
static void write_verdict(const doctor_report *r, buf *out)
{
    jsonw w;
    str rest = buf_view(&r->lines);
    while (out->len && (out->ptr[out->len - 1] == '\n' || out->ptr[out->len - 1] == '}')) {
        const bool closing = out->ptr[out->len - 1] == '}';
        out->ptr[--out->len] = '\0';
        if (closing) break;
    }
    buf_text(out, r->faults ? ",\"verify\":{\"ok\":false,\"findings\":"
                            : ",\"verify\":{\"ok\":true,\"findings\":");
    jsonw_init(&w, out);
    jsonw_array(&w);
    while (rest.len) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        const size_t n = end ? (size_t)(end - rest.ptr) : rest.len;
        jsonw_str(&w, (str){ rest.ptr, n });
        rest = str_sub(rest, end ? n + 1 : n, rest.len);
    }
    jsonw_end_array(&w);
    buf_text(out, "}}\n");
}

static status examine(const inspect_subject *i, const inspect_options *o, const pack *p,
                      const pack *companion, buf *out, int *faults, error *e)
{
    doctor_report r;
    const status s = doctor_check(p, companion, i->progress, i->arg, &r, e);
    if (s == OK) {
        *faults = r.faults;
        if (o->json) write_verdict(&r, out);
        else buf_add(out, buf_view(&r.lines));
        if (!o->json && r.faults == 0) buf_text(out, "ok\n");
    }
    doctor_free(&r);
    return s;
}

static status open_pair(const inspect_subject *i, pack **p, pack **companion, error *e)
{
    if (i->id) return pack_open_headers(p, i->folder, i->id, e);
    TRY(pack_open(p, i->folder, i->config_path, e));
    if (!i->drafter) return OK;
    TRY(pack_open(companion, i->drafter, i->config_path, e));
    if (pack_get_kind(*companion) != PACK_DRAFTER)
        return error_set(e, E_UNSUPPORTED, "%s: found a king, want a drafter", i->drafter);
    if (pack_get_kind(*p) != PACK_DRAFTER) return OK;
    return error_set(e, E_UNSUPPORTED, "%s: found a drafter, want a king beside --drafter",
                     i->folder);
}

status inspect_report(const inspect_subject *i, const inspect_options *o, buf *out, int *faults,
                      error *e)
{
    pack *p = NULL, *companion = NULL;
    *faults = 0;
    status s = open_pair(i, &p, &companion, e);
    if (s == OK) s = inspect_write(p, o, out, e);
    if (s == OK && i->verify) s = examine(i, o, p, companion, out, faults, e);
    if (companion) pack_close(companion);
    if (p) pack_close(p);
    return s;
}
