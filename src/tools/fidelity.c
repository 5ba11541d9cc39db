/* fidelity.c - see fidelity.h. */
#include "tools/fidelity.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/f64.h"
#include "base/file.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "tools/capture.h"
#include "base/banned.h"

enum { MOST_REPORT = 1 << 30, MOST_SEQUENCES = 1 << 24 };

/* One side's rows of the chunk under way. */
typedef struct rows {
    const float *logits; /* [n, n_vocab], or NULL for a top-N capture */

    float *hidden; /* [n_layer][RUNNER_CHUNK][n_embd] */
} rows;

typedef struct comparison {
    const fidelity_options *o;
    fidelity *f;
    runner king, teacher;
    safetensors capture; /* path NULL: the teacher is a folder */
    tokenlists in;
    int top; /* logits kept per row by the capture; 0: all */
    rows mine, theirs;
    float *scratch; /* [n_vocab]: a capture's row */
    int32_t *ids;
    uint64_t done;
} comparison;

/* ---- sums ---- */

static int32_t argmax(const float *x, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

static double full_kl(const float *teacher, const float *mine, int n)
{
    const double lse_t = capture_lse(teacher, n, teacher[argmax(teacher, n)]);
    const double lse_m = capture_lse(mine, n, mine[argmax(mine, n)]);
    double sum = 0;
    for (int i = 0; i < n; i++) {
        const double p = f64_exp((double)teacher[i] - lse_t);
        if (p > 0) sum += p * ((double)teacher[i] - (double)mine[i]);
    }
    return sum - (lse_t - lse_m);
}

static double top_kl(const float *teacher, const int32_t *ids, int n_top, double lse_t,
                     const float *mine, int n)
{
    const double lse_m = capture_lse(mine, n, mine[argmax(mine, n)]);
    double sum = 0, p_rest = 1, q_rest = 1;
    for (int i = 0; i < n_top; i++) {
        const double lp = (double)teacher[i] - lse_t, lq = (double)mine[ids[i]] - lse_m;
        const double p = f64_exp(lp);
        if (p > 0) sum += p * (lp - lq);
        p_rest -= p;
        q_rest -= f64_exp(lq);
    }
    if (p_rest > 0 && q_rest > 0) sum += p_rest * (f64_log(p_rest) - f64_log(q_rest));
    return sum;
}

static void distance(const float *mine, const float *theirs, int n, double *off, double *length)
{
    double d = 0, l = 0;
    for (int i = 0; i < n; i++) {
        const double x = (double)mine[i] - (double)theirs[i];
        d += x * x;
        l += (double)theirs[i] * (double)theirs[i];
    }
    *off = sqrt(d);
    *length = sqrt(l);
}

/* ---- hidden states of a pass ---- */

typedef struct keeper {
    const comparison *c;
    float *to;
} keeper;

static void keep(void *arg, int layer, const float *h, int n)
{
    const keeper *k = arg;
    const size_t width = (size_t)king_get_config(k->c->king.k)->n_embd;
    for (int i = 0; i < k->c->f->n_layer; i++)
        if (k->c->f->layers[i] == layer)
            memcpy(k->to + (size_t)i * RUNNER_CHUNK * width, h, sizeof *h * width * (size_t)n);
}

/* ---- the capture ---- */

static const tensor *part(const comparison *c, int sequence, const char *name, dtype type, error *e)
{
    char full[64];
    snprintf(full, sizeof full, "seq%d.%s", sequence, name);
    const tensor *t = safetensors_find(&c->capture, str_from(full));
    if (!t) error_set(e, E_FORMAT, "%s: no tensor %s", c->o->against, full);
    else if (t->type != type)
        error_set(e, E_FORMAT, "%s: tensor %s: found %s, want %s", c->o->against, full,
                  dtype_name(t->type), dtype_name(type));
    return t && t->type == type ? t : NULL;
}

static bool has_part(const comparison *c, int sequence, const char *name)
{
    char full[64];
    snprintf(full, sizeof full, "seq%d.%s", sequence, name);
    return safetensors_find(&c->capture, str_from(full)) != NULL;
}

static status read_capture_sequence(comparison *c, int number, const tensor *tokens, error *e)
{
    const int i = c->in.n;
    const int64_t rows_here = tensor_elements(tokens);
    if (tokens->type != DTYPE_I32 || tokens->rank != 1 || rows_here < 1 || rows_here > INT32_MAX)
        return error_set(e, E_FORMAT, "%s: tensor seq%d.tokens: want a vector of I32",
                         c->o->against, number);
    c->in.index[i] = number;
    c->in.len[i] = (int)rows_here;
    c->in.ids[i] = mem_array((size_t)rows_here, sizeof(int32_t));
    if (!c->in.ids[i]) return error_set(e, E_NOMEM, "%s: out of memory", c->o->against);
    memcpy(c->in.ids[i], tokens->data, (size_t)tokens->bytes);
    for (int64_t j = 0; j < rows_here; j++)
        if (c->in.ids[i][j] < 0)
            return error_set(e, E_FORMAT, "%s: tensor seq%d.tokens: found id %d", c->o->against,
                             number, c->in.ids[i][j]);
    if (c->in.len[i] > c->in.longest) c->in.longest = c->in.len[i];
    c->in.total += (uint64_t)rows_here;
    c->in.n++;
    return OK;
}

/* The highest number among "seq{number}.tokens", -1: none. A capture made in shards skips some. */
static int last_number(const comparison *c)
{
    int64_t last = -1, number;
    for (size_t i = 0; i < c->capture.count; i++) {
        const str name = c->capture.tensors[i].name;
        if (!str_starts(name, STR("seq")) || !str_ends(name, STR(".tokens"))) continue;
        if (str_to_i64(str_sub(name, 3, name.len - 7), &number) && number > last &&
            number <= MOST_SEQUENCES)
            last = number;
    }
    return (int)last;
}

static bool in_shard(const comparison *c, int number)
{
    return c->o->shards == 0 || number % c->o->shards == c->o->shard;
}

/* Layers that the first sequence kept, ascending. */
static status capture_layers(comparison *c, error *e)
{
    const int first = c->in.index[0];
    for (int layer = 0; layer < RUNNER_MAX_LAYERS; layer++) {
        char name[32];
        snprintf(name, sizeof name, "hidden.%d", layer);
        if (has_part(c, first, name)) c->f->layers[c->f->n_layer++] = layer;
    }
    if (has_part(c, first, "logits")) return OK;
    if (!has_part(c, first, "top_ids"))
        return error_set(e, E_FORMAT, "%s: sequence %d: found no logits, want all or the N largest",
                         c->o->against, first);
    const tensor *top = part(c, first, "top_ids", DTYPE_I32, e);
    if (!top) return E_FORMAT;
    if (top->rank != 2 || top->shape[1] < 1 || top->shape[1] > INT32_MAX)
        return error_set(e, E_FORMAT, "%s: tensor seq%d.top_ids: want two dimensions",
                         c->o->against, first);
    c->top = (int)top->shape[1];
    c->f->bound = true;
    return OK;
}

static status open_capture(comparison *c, error *e)
{
    TRY(safetensors_open(&c->capture, c->o->against, e));
    c->in.len = mem_array(c->capture.count, sizeof *c->in.len);
    c->in.ids = mem_array(c->capture.count, sizeof *c->in.ids);
    c->in.index = mem_array(c->capture.count, sizeof *c->in.index);
    if (!c->in.len || !c->in.ids || !c->in.index)
        return error_set(e, E_NOMEM, "%s: out of memory", c->o->against);
    const int last = last_number(c);
    for (int number = 0; number <= last; number++) {
        if (!has_part(c, number, "tokens") || !in_shard(c, number)) continue;
        char full[64];
        snprintf(full, sizeof full, "seq%d.tokens", number);
        TRY(read_capture_sequence(c, number, safetensors_find(&c->capture, str_from(full)), e));
    }
    if (c->in.n == 0)
        return error_set(e, E_FORMAT, "%s: no sequence of this shard in the capture",
                         c->o->against);
    return capture_layers(c, e);
}

static bool shaped(const tensor *t, int64_t a, int64_t b)
{
    return b ? tensor_has_shape(t, 2, (int64_t[]){ a, b })
             : tensor_has_shape(t, 1, (int64_t[]){ a });
}

/* KL and agreement of one row against the capture. */
static status row_against_capture(comparison *c, int i, int row, const float *mine, double *kl,
                                  bool *agree, error *e)
{
    const int n_vocab = king_get_config(c->king.k)->n_vocab, len = c->in.len[i];
    if (c->top == 0) {
        const tensor *t = part(c, c->in.index[i], "logits", DTYPE_F32, e);
        if (!t) return E_FORMAT;
        if (!shaped(t, len, n_vocab))
            return error_set(e, E_FORMAT, "%s: tensor seq%d.logits: want [%d, %d]", c->o->against,
                             c->in.index[i], len, n_vocab);
        tensor_read_f32(t, (int64_t)row * n_vocab, n_vocab, c->scratch);
        *kl = full_kl(c->scratch, mine, n_vocab);
        *agree = argmax(c->scratch, n_vocab) == argmax(mine, n_vocab);
        return OK;
    }
    const tensor *ids = part(c, c->in.index[i], "top_ids", DTYPE_I32, e);
    const tensor *logits = part(c, c->in.index[i], "top_logits", DTYPE_F32, e);
    const tensor *lses = part(c, c->in.index[i], "lse", DTYPE_F64, e);
    if (!ids || !logits || !lses) return E_FORMAT;
    if (!shaped(ids, len, c->top) || !shaped(logits, len, c->top) || !shaped(lses, len, 0))
        return error_set(e, E_FORMAT,
                         "%s: sequence %d: want top_ids and top_logits [%d, %d], lse [%d]",
                         c->o->against, c->in.index[i], len, c->top, len);
    double lse;
    memcpy(&lse, lses->data + sizeof lse * (size_t)row, sizeof lse);
    memcpy(c->ids, ids->data + sizeof *c->ids * (size_t)row * (size_t)c->top,
           sizeof *c->ids * (size_t)c->top);
    tensor_read_f32(logits, (int64_t)row * c->top, c->top, c->scratch);
    for (int k = 0; k < c->top; k++)
        if (c->ids[k] < 0 || c->ids[k] >= n_vocab)
            return error_set(e, E_FORMAT,
                             "%s: tensor seq%d.top_ids: found id %d, want one below %d",
                             c->o->against, c->in.index[i], c->ids[k], n_vocab);
    *kl = top_kl(c->scratch, c->ids, c->top, lse, mine, n_vocab);
    *agree = c->ids[0] == argmax(mine, n_vocab);
    return OK;
}

static status capture_hidden(comparison *c, int i, int layer, int row, float *to, error *e)
{
    char name[32];
    const int n_embd = king_get_config(c->king.k)->n_embd;
    snprintf(name, sizeof name, "hidden.%d", layer);
    const tensor *t = part(c, c->in.index[i], name, DTYPE_F32, e);
    if (!t) return E_FORMAT;
    if (!shaped(t, c->in.len[i], n_embd))
        return error_set(e, E_FORMAT, "%s: tensor seq%d.%s: want [%d, %d]", c->o->against,
                         c->in.index[i], name, c->in.len[i], n_embd);
    tensor_read_f32(t, (int64_t)row * n_embd, n_embd, to);
    return OK;
}

/* ---- running ---- */

static status compare_row(comparison *c, int i, fidelity_sequence *out, int row, int in_chunk,
                          error *e)
{
    const king_config *kc = king_get_config(c->king.k);
    const size_t vocab = (size_t)kc->n_vocab, width = (size_t)kc->n_embd;
    const float *mine = c->mine.logits + (size_t)in_chunk * vocab;
    const bool from_capture = c->capture.path != NULL;
    if (from_capture) {
        TRY(row_against_capture(c, i, row, mine, &out->kl[row], &out->agree[row], e));
    } else {
        const float *theirs = c->theirs.logits + (size_t)in_chunk * vocab;
        out->kl[row] = full_kl(theirs, mine, kc->n_vocab);
        out->agree[row] = argmax(theirs, kc->n_vocab) == argmax(mine, kc->n_vocab);
    }
    for (int l = 0; l < c->f->n_layer; l++) {
        const size_t at = ((size_t)l * RUNNER_CHUNK + (size_t)in_chunk) * width;
        const size_t to = (size_t)l * (size_t)out->rows + (size_t)row;
        if (from_capture) TRY(capture_hidden(c, i, c->f->layers[l], row, c->theirs.hidden + at, e));
        distance(c->mine.hidden + at, c->theirs.hidden + at, kc->n_embd, &out->distance[to],
                 &out->length[to]);
    }
    return OK;
}

static status compare_chunk(comparison *c, int i, fidelity_sequence *out, int row, int n, error *e)
{
    const int32_t *ids = c->in.ids[i] + row;
    keeper mine = { c, c->mine.hidden }, theirs = { c, c->theirs.hidden };
    const king_hook mine_hook = { .hidden = keep, .arg = &mine };
    const king_hook theirs_hook = { .hidden = keep, .arg = &theirs };
    TRY(runner_run(&c->king, ids, n, 0, &mine_hook, &c->mine.logits, e));
    if (!c->capture.path)
        TRY(runner_run(&c->teacher, ids, n, 0, &theirs_hook, &c->theirs.logits, e));
    for (int r = 0; r < n; r++) TRY(compare_row(c, i, out, row + r, r, e));
    c->done += (uint64_t)n;
    if (c->o->progress) c->o->progress(c->o->progress_arg, "comparing", c->done, c->in.total);
    return OK;
}

static status add_sequence(fidelity *f, int index, int n, fidelity_sequence **out, error *e)
{
    if (f->n == f->cap) {
        const int cap = f->cap ? 2 * f->cap : 16;
        fidelity_sequence *bigger = mem_resize(f->sequences, sizeof *bigger * (size_t)cap);
        if (!bigger) return error_set(e, E_NOMEM, "fidelity: out of memory");
        f->sequences = bigger;
        f->cap = cap;
    }
    const size_t count = (size_t)n, layers = (size_t)f->n_layer;
    fidelity_sequence *s = &f->sequences[f->n++];
    *s = (fidelity_sequence){ .index = index, .rows = n };
    s->kl = mem_array(count, sizeof *s->kl);
    s->agree = mem_array(count, sizeof *s->agree);
    s->distance = mem_array(count * layers + 1, sizeof *s->distance);
    s->length = mem_array(count * layers + 1, sizeof *s->length);
    *out = s;
    if (!s->kl || !s->agree || !s->distance || !s->length)
        return error_set(e, E_NOMEM, "fidelity: out of memory");
    return OK;
}

static status read_tokens(comparison *c, error *e)
{
    if (!c->o->tokens)
        return error_set(e, E_ARG, "eval kl: want --tokens FILE when --against names a king");
    TRY(tokenlists_read(&c->in, c->o->tokens, e));
    return tokenlists_keep_shard(&c->in, c->o->shard, c->o->shards, c->o->tokens, e);
}

static runner_options runner_of(const fidelity_options *o, int longest)
{
    return (runner_options){ .king = o->king,
                             .f32 = o->f32,
                             .cpu = o->cpu,
                             .threads = o->threads,
                             .max_len = longest,
                             .all_logits = true,
                             .progress = o->progress,
                             .progress_arg = o->progress_arg,
                             .tiles = o->tiles };
}

static status open_teacher(comparison *c, const runner_options *like, error *e)
{
    runner_options ro = *like;
    ro.king = c->o->against;
    ro.f32 = true;
    TRY(runner_open(&c->teacher, &ro, e));
    const king_config *a = king_get_config(c->king.k), *b = king_get_config(c->teacher.k);
    if (a->n_vocab != b->n_vocab || a->n_embd != b->n_embd || a->n_layer != b->n_layer)
        return error_set(e, E_UNSUPPORTED,
                         "%s: found %d layers of %d and %d ids, want %d of %d and %d like %s",
                         c->o->against, b->n_layer, b->n_embd, b->n_vocab, a->n_layer, a->n_embd,
                         a->n_vocab, c->o->king);
    return OK;
}

/* A capture holds its tokens; a token file beside it must say the same. */
static status check_tokens(const comparison *c, error *e)
{
    tokenlists s;
    TRY(tokenlists_read(&s, c->o->tokens, e));
    status st = OK;
    for (int i = 0; st == OK && i < c->in.n; i++) {
        const int number = c->in.index[i];
        const bool same =
            number < s.n && s.len[number] == c->in.len[i] &&
            memcmp(s.ids[number], c->in.ids[i], sizeof(int32_t) * (size_t)c->in.len[i]) == 0;
        if (!same)
            st = error_set(e, E_ARG, "%s: sequence %d is not the one that %s was made of",
                           c->o->tokens, number, c->o->against);
    }
    tokenlists_free(&s);
    return st;
}

static status open_all(comparison *c, error *e)
{
    const fidelity_options *o = c->o;
    const bool folder = file_is_dir(o->against);
    TRY(folder ? read_tokens(c, e) : open_capture(c, e));
    if (!folder && o->tokens) TRY(check_tokens(c, e));
    const runner_options ro = runner_of(o, c->in.longest);
    TRY(runner_open(&c->king, &ro, e));
    const king_config *kc = king_get_config(c->king.k);
    TRY(tokenlists_check(&c->in, folder ? o->tokens : o->against, kc->n_vocab, kc->max_positions,
                         e));
    if (folder) {
        TRY(open_teacher(c, &ro, e));
        runner_layers hidden = o->hidden;
        TRY(runner_find_layers(&hidden, kc->n_layer, e));
        memcpy(c->f->layers, hidden.list, sizeof hidden.list);
        c->f->n_layer = hidden.n;
    }
    const size_t hidden = (size_t)c->f->n_layer * RUNNER_CHUNK * (size_t)kc->n_embd + 1;
    c->mine.hidden = mem_array(hidden, sizeof(float));
    c->theirs.hidden = mem_array(hidden, sizeof(float));
    c->scratch = mem_array((size_t)(c->top > kc->n_vocab ? c->top : kc->n_vocab), sizeof(float));
    c->ids = mem_array((size_t)c->top + 1, sizeof *c->ids);
    if (!c->mine.hidden || !c->theirs.hidden || !c->scratch || !c->ids)
        return error_set(e, E_NOMEM, "fidelity: out of memory");
    return OK;
}

static status compare_all(comparison *c, error *e)
{
    TRY(open_all(c, e));
    for (int i = 0; i < c->in.n; i++) {
        fidelity_sequence *out;
        const int len = c->in.len[i];
        TRY(add_sequence(c->f, c->in.index[i], len, &out, e));
        runner_reset(&c->king);
        if (!c->capture.path) runner_reset(&c->teacher);
        for (int row = 0; row < len; row += RUNNER_CHUNK)
            TRY(compare_chunk(c, i, out, row, len - row < RUNNER_CHUNK ? len - row : RUNNER_CHUNK,
                              e));
    }
    return OK;
}

status fidelity_kl(const fidelity_options *o, fidelity *out, error *e)
{
    *out = (fidelity){ 0 };
    comparison c = { .o = o, .f = out };
    const status s = compare_all(&c, e);
    runner_close(&c.king);
    runner_close(&c.teacher);
    if (c.capture.path) safetensors_close(&c.capture);
    tokenlists_free(&c.in);
    mem_free(c.mine.hidden);
    mem_free(c.theirs.hidden);
    mem_free(c.scratch);
    mem_free(c.ids);
    if (s) fidelity_free(out);
    return s;
}

void fidelity_free(fidelity *f)
{
    for (int i = 0; i < f->n; i++) {
        mem_free(f->sequences[i].kl);
        mem_free(f->sequences[i].agree);
        mem_free(f->sequences[i].distance);
        mem_free(f->sequences[i].length);
    }
    mem_free(f->sequences);
    *f = (fidelity){ 0 };
}

/* ---- shards ---- */

static void write_doubles(jsonw *w, const char *key, const double *x, size_t n)
{
    jsonw_member_array(w, key);
    for (size_t i = 0; i < n; i++) jsonw_f64(w, x[i]);
    jsonw_end_array(w);
}

status fidelity_write(const fidelity *f, const char *path, error *e)
{
    buf out;
    jsonw w;
    buf_init(&out, MOST_REPORT);
    jsonw_init(&w, &out);
    jsonw_object(&w);
    jsonw_member_i32s(&w, "layers", f->layers, (size_t)f->n_layer);
    jsonw_member_bool(&w, "lower_bound", f->bound);
    jsonw_member_array(&w, "sequences");
    for (int i = 0; i < f->n; i++) {
        const fidelity_sequence *s = &f->sequences[i];
        const size_t n = (size_t)s->rows;
        jsonw_object(&w);
        jsonw_member_i64(&w, "index", s->index);
        write_doubles(&w, "kl", s->kl, n);
        jsonw_member_array(&w, "agree");
        for (size_t r = 0; r < n; r++) jsonw_bool(&w, s->agree[r]);
        jsonw_end_array(&w);
        write_doubles(&w, "distance", s->distance, n * (size_t)f->n_layer);
        write_doubles(&w, "length", s->length, n * (size_t)f->n_layer);
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    status s = buf_status(&out, path, e);
    if (s == OK) s = file_write(path, buf_view(&out), e);
    buf_free(&out);
    return s;
}

static bool read_doubles(const json_node *array, double *x, size_t n)
{
    if (json_len(array) != n) return false;
    for (size_t i = 0; i < n; i++)
        if (!json_f64(json_at(array, i), &x[i])) return false;
    return true;
}

static status read_sequence(fidelity *f, const json_node *in, const char *path, error *e)
{
    int64_t index;
    fidelity_sequence *s;
    const size_t n = json_len(json_get(in, "kl"));
    if (!json_i64(json_get(in, "index"), &index) || index < 0 || index > INT32_MAX || n == 0 ||
        n > INT32_MAX)
        return error_set(e, E_FORMAT, "%s: not a result of eval kl: a sequence lacks index or kl",
                         path);
    for (int i = 0; i < f->n; i++)
        if (f->sequences[i].index == index)
            return error_set(e, E_FORMAT, "%s: sequence %d is in another shard too", path,
                             (int)index);
    TRY(add_sequence(f, (int)index, (int)n, &s, e));
    const json_node *agree = json_get(in, "agree");
    bool good = json_len(agree) == n && read_doubles(json_get(in, "kl"), s->kl, n) &&
                read_doubles(json_get(in, "distance"), s->distance, n * (size_t)f->n_layer) &&
                read_doubles(json_get(in, "length"), s->length, n * (size_t)f->n_layer);
    for (size_t r = 0; good && r < n; r++) good = json_bool(json_at(agree, r), &s->agree[r]);
    return good ? OK
                : error_set(e, E_FORMAT, "%s: sequence %d: lists of differing lengths or kinds",
                            path, (int)index);
}

static status read_shard(fidelity *f, const json_node *root, const char *path, error *e)
{
    const json_node *layers = json_get(root, "layers"), *list = json_get(root, "sequences");
    const bool first = f->n == 0;
    bool same = json_kind(layers) == JSON_ARRAY && json_len(layers) <= RUNNER_MAX_LAYERS &&
                (first || (int)json_len(layers) == f->n_layer);
    if (first && same) f->n_layer = (int)json_len(layers);
    for (int l = 0; same && l < f->n_layer; l++) {
        int64_t layer;
        same = json_i64(json_at(layers, (size_t)l), &layer) && (first || layer == f->layers[l]);
        if (same) f->layers[l] = (int)layer;
    }
    if (!same)
        return error_set(e, E_FORMAT, "%s: its layers are not those of the other shards", path);
    if (json_is_true(json_get(root, "lower_bound"))) f->bound = true;
    for (size_t i = 0; i < json_len(list); i++) TRY(read_sequence(f, json_at(list, i), path, e));
    return OK;
}

status fidelity_read(fidelity *f, const char *path, error *e)
{
    json_doc *doc;
    TRY(json_parse_file(&doc, path, MOST_REPORT, 0, e));
    const status s = read_shard(f, json_root(doc), path, e);
    json_free(doc);
    return s;
}

/* ---- the report ---- */

static int by_index(const void *a, const void *b)
{
    return ((const fidelity_sequence *)a)->index - ((const fidelity_sequence *)b)->index;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct summary {
    size_t rows, agreed;
    double mean, median, p95, p99, max;
    double *sorted;
} summary;

/* The smallest value that at least this share of the rows does not exceed. */
static double percentile(const summary *s, double share)
{
    size_t at = (size_t)ceil(share * (double)s->rows);
    return s->sorted[at ? at - 1 : 0];
}

static status summarise(const fidelity *f, summary *s, error *e)
{
    *s = (summary){ 0 };
    for (int i = 0; i < f->n; i++) s->rows += (size_t)f->sequences[i].rows;
    if (s->rows == 0) return error_set(e, E_ARG, "eval kl: no rows to report");
    s->sorted = mem_array(s->rows, sizeof *s->sorted);
    if (!s->sorted) return error_set(e, E_NOMEM, "fidelity: out of memory");
    /* shards may have come in any order */
    qsort(f->sequences, (size_t)f->n, sizeof *f->sequences, by_index);
    double sum = 0;
    size_t at = 0;
    for (int i = 0; i < f->n; i++) {
        for (int r = 0; r < f->sequences[i].rows; r++) {
            sum += f->sequences[i].kl[r];
            s->agreed += f->sequences[i].agree[r];
            s->sorted[at++] = f->sequences[i].kl[r];
        }
    }
    qsort(s->sorted, s->rows, sizeof *s->sorted, by_value);
    s->mean = sum / (double)s->rows;
    s->median = percentile(s, 0.5);
    s->p95 = percentile(s, 0.95);
    s->p99 = percentile(s, 0.99);
    s->max = s->sorted[s->rows - 1];
    return OK;
}

static void layer_distance(const fidelity *f, int l, size_t n_rows, double *mean_ratio,
                           double *ratio_of_means)
{
    double ratios = 0, off = 0, length = 0;
    for (int i = 0; i < f->n; i++) {
        const fidelity_sequence *s = &f->sequences[i];
        const size_t at = (size_t)l * (size_t)s->rows;
        for (size_t r = 0; r < (size_t)s->rows; r++) {
            const double d = s->distance[at + r], h = s->length[at + r];
            ratios += h > 0 ? d / h : 0;
            off += d;
            length += h;
        }
    }
    *mean_ratio = ratios / (double)n_rows;
    *ratio_of_means = length > 0 ? off / length : 0;
}

static void report_text(const fidelity *f, const summary *s, buf *out)
{
    buf_printf(out, "rows              %zu\n", s->rows);
    buf_printf(out, "KL (nat)%s  mean %.9g  median %.9g  p95 %.9g  p99 %.9g  max %.9g\n",
               f->bound ? " lower bound" : "            ", s->mean, s->median, s->p95, s->p99,
               s->max);
    buf_printf(out, "top-1 agreement   %.4f %%\n", 100.0 * (double)s->agreed / (double)s->rows);
    double all = 0;
    for (int l = 0; l < f->n_layer; l++) {
        double mean_ratio, ratio_of_means;
        layer_distance(f, l, s->rows, &mean_ratio, &ratio_of_means);
        all += mean_ratio;
        buf_printf(out, "hidden, layer %-3d %.9g (ratio of means %.9g)\n", f->layers[l], mean_ratio,
                   ratio_of_means);
    }
    if (f->n_layer) buf_printf(out, "hidden, mean      %.9g\n", all / f->n_layer);
}

static void report_json(const fidelity *f, const summary *s, buf *out)
{
    jsonw w;
    double all = 0;
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_member_u64(&w, "rows", s->rows);
    jsonw_member_object(&w, "kl");
    jsonw_member_f64(&w, "mean", s->mean);
    jsonw_member_f64(&w, "median", s->median);
    jsonw_member_f64(&w, "p95", s->p95);
    jsonw_member_f64(&w, "p99", s->p99);
    jsonw_member_f64(&w, "max", s->max);
    jsonw_member_bool(&w, "lower_bound", f->bound);
    jsonw_end_object(&w);
    jsonw_member_f64(&w, "top1_agreement", (double)s->agreed / (double)s->rows);
    jsonw_member_array(&w, "hidden");
    for (int l = 0; l < f->n_layer; l++) {
        double mean_ratio, ratio_of_means;
        layer_distance(f, l, s->rows, &mean_ratio, &ratio_of_means);
        all += mean_ratio;
        jsonw_object(&w);
        jsonw_member_i64(&w, "layer", f->layers[l]);
        jsonw_member_f64(&w, "mean_ratio", mean_ratio);
        jsonw_member_f64(&w, "ratio_of_means", ratio_of_means);
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    if (f->n_layer) jsonw_member_f64(&w, "hidden_mean", all / f->n_layer);
    jsonw_end_object(&w);
    buf_char(out, '\n');
}

status fidelity_report(const fidelity *f, bool json, buf *out, error *e)
{
    summary s;
    const status st = summarise(f, &s, e);
    if (st == OK) {
        if (json) report_json(f, &s, out);
        else report_text(f, &s, out);
    }
    mem_free(s.sorted);
    return st ? st : buf_status(out, "report", e);
}

/* ---- perplexity ---- */

static status score_window(runner *r, const int32_t *ids, int len, double *sum, double *squares,
                           int64_t *n, error *e)
{
    const int vocab = king_get_config(r->k)->n_vocab;
    runner_reset(r);
    for (int row = 0; row < len; row += RUNNER_CHUNK) {
        const int rows_here = len - row < RUNNER_CHUNK ? len - row : RUNNER_CHUNK;
        const float *logits;
        TRY(runner_run(r, ids + row, rows_here, 0, NULL, &logits, e));
        for (int i = 0; i < rows_here && row + i + 1 < len; i++) {
            const float *l = logits + (size_t)i * (size_t)vocab;
            const double nll =
                capture_lse(l, vocab, l[argmax(l, vocab)]) - (double)l[ids[row + i + 1]];
            *sum += nll;
            *squares += nll * nll;
            (*n)++;
        }
    }
    return OK;
}

status fidelity_perplexity(const fidelity_options *o, const tokenlists *windows, perplexity *out,
                           error *e)
{
    runner r = { 0 };
    const runner_options ro = runner_of(o, windows->longest);
    double sum = 0, squares = 0;
    uint64_t done = 0;
    *out = (perplexity){ 0 };
    status s = runner_open(&r, &ro, e);
    if (s == OK) {
        const king_config *kc = king_get_config(r.k);
        s = tokenlists_check(windows, "text", kc->n_vocab, kc->max_positions, e);
    }
    for (int i = 0; s == OK && i < windows->n; i++) {
        s = score_window(&r, windows->ids[i], windows->len[i], &sum, &squares, &out->tokens, e);
        done += (uint64_t)windows->len[i];
        if (o->progress) o->progress(o->progress_arg, "scoring", done, windows->total);
    }
    runner_close(&r);
    TRY(s);
    if (out->tokens < 2)
        return error_set(e, E_ARG, "eval ppl: the text has fewer than three tokens");
    const double n = (double)out->tokens;
    out->mean_nll = sum / n;
    const double variance = (squares - sum * out->mean_nll) / (n - 1);
    out->standard_error = sqrt((variance > 0 ? variance : 0) / n);
    out->value = f64_exp(out->mean_nll);
    out->low = f64_exp(out->mean_nll - out->standard_error);
    out->high = f64_exp(out->mean_nll + out->standard_error);
    return OK;
}
