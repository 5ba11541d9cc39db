/* drafter.c - DFlash 2, in the order of docs/model.md section 6: context, block, selection.
 *
 * Context keys and values of a layer live in a ring of pages addressed by position, so neither the
 * order nor the split of appends can matter. A block writes its own keys behind the context; the
 * next append or block overwrites them. */
#include "model/drafter.h"

#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/rng.h"
#include "model/mlp.h"
#include "model/selector.h"
#include "base/banned.h"

/* One half of a layer stands between two dynamic convolutions, whose coefficients are projected
 * from its normed input. */
typedef struct conv_pair {
    const float *norm; /* [n_embd] */
    linear kernel;     /* [side 2, tap, channel group] <- n_embd */
    const float *base; /* [side 2, tap, n_embd] */
} conv_pair;

typedef struct drafter_layer {
    conv_pair attention_conv, mlp_conv;
    linear q, k, v, out;
    const float *q_norm, *k_norm; /* [head_dim] */
    mlp_layer mlp;
} drafter_layer;

struct drafter {
    pack *pack;
    drafter_config config;
    weights w;
    load_report loaded;
    linear fc;
    const float *hidden_norm, *norm; /* [n_embd] */
    drafter_layer *layers;
    selector selector;
    rope *angles;
    kv_layout layout;
    int ring; /* pages of one sequence */
};

/* ---- opening ---- */

static status plan_conv(conv_pair *v, drafter *d, const char *prefix, const char *norm,
                        const char *conv, compute_mode mode, error *e)
{
    const drafter_config *c = &d->config;
    const int64_t sides = 2, taps = c->conv_taps, groups = c->n_embd / c->conv_group;
    const int64_t base_shape[3] = { sides, taps, c->n_embd };
    char name[PLAN_MAX_NAME];
    snprintf(name, sizeof name, "%s.%s.weight", prefix, norm);
    TRY(weights_vector(&d->w, d->pack, name, c->n_embd, &v->norm, e));
    snprintf(name, sizeof name, "%s.%s.base_kernel", prefix, conv);
    TRY(weights_values(&d->w, d->pack, name, 3, base_shape, &v->base, e));
    snprintf(name, sizeof name, "%s.%s.kernel_projection", prefix, conv);
    return weights_matrix(&d->w, d->pack, name, sides * taps * groups, c->n_embd, mode, &v->kernel,
                          e);
}

static status plan_layer(drafter *d, int i, compute_mode mode, error *e)
{
    drafter_layer *l = &d->layers[i];
    const drafter_config *c = &d->config;
    const int64_t n = c->n_embd, dim = c->head_dim, q = c->n_head * dim, kv = c->n_kv_head * dim;
    char prefix[32], name[PLAN_MAX_NAME];
    snprintf(prefix, sizeof prefix, "layers.%d", i);
    TRY(plan_conv(&l->attention_conv, d, prefix, "input_layernorm", "attention_conv", mode, e));
#define NAME(part) (snprintf(name, sizeof name, "%s.self_attn." part, prefix), name)
    TRY(weights_matrix(&d->w, d->pack, NAME("q_proj"), q, n, mode, &l->q, e));
    TRY(weights_matrix(&d->w, d->pack, NAME("k_proj"), kv, n, mode, &l->k, e));
    TRY(weights_matrix(&d->w, d->pack, NAME("v_proj"), kv, n, mode, &l->v, e));
    TRY(weights_matrix(&d->w, d->pack, NAME("o_proj"), n, q, mode, &l->out, e));
    TRY(weights_vector(&d->w, d->pack, NAME("q_norm.weight"), dim, &l->q_norm, e));
    TRY(weights_vector(&d->w, d->pack, NAME("k_norm.weight"), dim, &l->k_norm, e));
#undef NAME
    TRY(plan_conv(&l->mlp_conv, d, prefix, "post_attention_layernorm", "mlp_conv", mode, e));
    return mlp_plan(&l->mlp, &d->w, d->pack, prefix, c->n_embd, c->n_ff, mode, e);
}

/* What this drafter asks for beyond what pack checked. */
static status check(const drafter *d, const king *k, error *e)
{
    const drafter_config *c = &d->config;
    const char *folder = pack_folder(d->pack);
    const status s = k ? config_check_pair(c, king_get_config(k), e) : OK;
    if (s) return error_prefix(e, s, "%s", folder);
    if (c->window < 2) {
        return error_set(e, E_UNSUPPORTED, "%s: sliding_window: found %d, want 2 or more", folder,
                         c->window);
    }
    if (!(c->output_multiplier > 0)) {
        return error_set(e, E_UNSUPPORTED, "%s: output_multiplier: found %g, want more than 0",
                         folder, (double)c->output_multiplier);
    }
    return OK;
}

static status open_drafter(drafter *d, const king *k, compute *c, const load_options *o, error *e)
{
    const drafter_config *dc = &d->config;
    const compute_mode mode = o->mode;
    TRY(check(d, k, e));
    /* A position takes the place of the one a ring earlier: no row of the block sees that far
     * back. */
    const int live = dc->window - 1 + dc->block;
    d->ring = (live + KV_PAGE - 1) / KV_PAGE;
    TRY(compute_kv_layout(&d->layout, mode == COMPUTE_F32 ? KV_F32 : KV_F16, dc->n_layer,
                          dc->n_kv_head, dc->head_dim, e));
    d->layers = mem_array((size_t)dc->n_layer, sizeof *d->layers);
    if (!d->layers) return error_set(e, E_NOMEM, "%s: no memory", pack_folder(d->pack));
    /* Taps are neither normed nor rotated and have outliers: fc reads them in f32 in every mode. */
    TRY(weights_matrix(&d->w, d->pack, "fc", dc->n_embd, (int64_t)dc->n_tap * dc->n_embd,
                       COMPUTE_F32, &d->fc, e));
    TRY(weights_vector(&d->w, d->pack, "hidden_norm.weight", dc->n_embd, &d->hidden_norm, e));
    for (int i = 0; i < dc->n_layer; i++) TRY(plan_layer(d, i, mode, e));
    TRY(weights_vector(&d->w, d->pack, "norm.weight", dc->n_embd, &d->norm, e));
    TRY(selector_plan(&d->selector, &d->w, d->pack, dc, e));
    TRY(compute_rope_new(&d->angles, dc->rope_theta, dc->head_dim, e));
    return load_weights(&d->w, d->pack, c, o, &d->loaded, e);
}

status drafter_open(drafter **out, pack *p, const king *k, compute *c, const load_options *o,
                    error *e)
{
    if (pack_get_kind(p) != PACK_DRAFTER) {
        return error_set(e, E_UNSUPPORTED, "%s: found a language model, want a DFlash 2 drafter",
                         pack_folder(p));
    }
    drafter *d = mem_zalloc(sizeof *d);
    if (!d) return error_set(e, E_NOMEM, "%s: no memory", pack_folder(p));
    d->pack = p;
    d->config = *pack_drafter(p);
    weights_init(&d->w);
    const status s = open_drafter(d, k, c, o, e);
    if (s) {
        drafter_close(d);
        return s;
    }
    *out = d;
    return OK;
}

void drafter_close(drafter *d)
{
    if (!d) return;
    compute_rope_free(d->angles);
    weights_free(&d->w);
    mem_free(d->layers);
    mem_free(d);
}

const drafter_config *drafter_get_config(const drafter *d)
{
    return &d->config;
}

size_t drafter_tile_bytes(const drafter *d)
{
    return d->w.bytes;
}

const load_report *drafter_load_report(const drafter *d)
{
    return &d->loaded;
}

/* ---- context of one sequence ---- */

struct drafter_state {
    const drafter *d;
    int first; /* lowest position that was appended */
    int len;   /* next position */
    uint8_t *memory;
    uint8_t **pages; /* [ring] */
};

static size_t ring_bytes(const drafter *d)
{
    return (size_t)d->ring * d->layout.page_bytes;
}

size_t drafter_state_bytes(const drafter *d)
{
    return ring_bytes(d) + (size_t)d->ring * sizeof(uint8_t *);
}

status drafter_state_new(drafter_state **out, const drafter *d, error *e)
{
    drafter_state *s = mem_zalloc(sizeof *s);
    if (!s) return error_set(e, E_NOMEM, "drafter context: no memory");
    s->d = d;
    s->memory = mem_map(ring_bytes(d));
    s->pages = mem_array((size_t)d->ring, sizeof *s->pages);
    if (!s->memory || !s->pages) {
        drafter_state_free(s);
        return error_set(e, E_NOMEM, "drafter context: no memory for %zu bytes", ring_bytes(d));
    }
    for (int i = 0; i < d->ring; i++) s->pages[i] = s->memory + (size_t)i * d->layout.page_bytes;
    *out = s;
    return OK;
}

void drafter_state_free(drafter_state *s)
{
    if (!s) return;
    if (s->memory) mem_unmap(s->memory, ring_bytes(s->d));
    mem_free(s->pages);
    mem_free(s);
}

void drafter_state_reset(drafter_state *s, int pos)
{
    CHECK(pos >= 0);
    s->first = s->len = pos;
}

int drafter_state_len(const drafter_state *s)
{
    return s->len;
}

void drafter_state_copy(drafter_state *to, const drafter_state *from)
{
    CHECK(to->d == from->d);
    to->first = from->first;
    to->len = from->len;
    memcpy(to->memory, from->memory, ring_bytes(from->d));
}

enum { RING_FIELDS = 10 };

static void ring_header(int64_t h[RING_FIELDS], const drafter_state *s)
{
    const kv_layout *l = &s->d->layout;
    const int64_t values[RING_FIELDS] = { 0x74666172646e6769, /* "igndraft" */
                                          1,
                                          s->first,
                                          s->len,
                                          (int64_t)l->type,
                                          l->n_layer,
                                          l->n_kv_head,
                                          l->head_dim,
                                          s->d->ring,
                                          (int64_t)l->page_bytes };
    memcpy(h, values, sizeof values);
}

uint64_t drafter_state_file_bytes(const drafter_state *s)
{
    return RING_FIELDS * sizeof(int64_t) + ring_bytes(s->d);
}

status drafter_state_write(const drafter_state *s, state_put_fn *put, void *arg, error *e)
{
    int64_t h[RING_FIELDS];
    ring_header(h, s);
    TRY(put(arg, h, sizeof h, e));
    return put(arg, s->memory, ring_bytes(s->d), e);
}

status drafter_state_read(drafter_state *s, state_get_fn *get, void *arg, error *e)
{
    int64_t got[RING_FIELDS], want[RING_FIELDS];
    TRY(get(arg, got, sizeof got, e));
    const int64_t first = got[2], len = got[3];
    ring_header(want, s);
    want[2] = first;
    want[3] = len;
    if (memcmp(got, want, sizeof got) != 0)
        return error_set(e, E_FORMAT, "drafter context: written by another drafter or version");
    if (first < 0 || len < first || len > INT32_MAX) {
        return error_set(e, E_FORMAT, "drafter context: positions %lld to %lld", (long long)first,
                         (long long)len);
    }
    drafter_state_reset(s, 0);
    TRY(get(arg, s->memory, ring_bytes(s->d), e));
    s->first = (int)first;
    s->len = (int)len;
    return OK;
}

/* ---- the memory of a call ---- */

enum { DRAFTER_LOGITS = 32 }; /* draft rows of one use of the head, which is read once for them */

struct drafter_work {
    int max_rows, max_logits;
    float *x, *a, *b, *r; /* [max_rows, n_embd] residual, normed, convolved, output of a half */
    float *coef;          /* [max_rows, side 2, tap, channel group] */
    float *q, *o;         /* [max_rows, n_head * head_dim] */
    float *kv;            /* [n_layer, key and value, max_rows, n_kv_head * head_dim] */
    float *room;          /* [max_rows, 2 * n_ff] */
    float *taps;          /* [max_rows, n_tap * n_embd] */
    float *logits;        /* [max_logits, n_vocab] */
    float *g;             /* [max_rows, rank] */
    float *pair;          /* [2, rank] */
    float *values;        /* [block - 1, top_k] of one job */
    int32_t *candidates;  /* the same */
    float *scores;        /* [top_k] */
    int32_t *ids, *pos;   /* [max_rows] */
    attn_job *attn;       /* [max_rows] */
    dynconv_job *conv;    /* [max_rows] */
    linear_out *outs;     /* [2 * n_layer] */
    void *act;
    uint8_t *memory;
    size_t bytes;
};

static size_t lay_out(drafter_work *w, const drafter *d, uint8_t *base)
{
    const drafter_config *c = &d->config;
    const size_t rows = (size_t)w->max_rows, n = (size_t)c->n_embd;
    const size_t q = (size_t)c->n_head * (size_t)c->head_dim;
    const size_t kv = (size_t)c->n_kv_head * (size_t)c->head_dim;
    w->max_logits = w->max_rows < DRAFTER_LOGITS ? w->max_rows : DRAFTER_LOGITS;
    if (w->max_logits < c->block - 1) w->max_logits = c->block - 1;
    const size_t coef = 2 * (size_t)c->conv_taps * (n / (size_t)c->conv_group);
    size_t at = 0;
#define PART(field, count, size)                     \
    do {                                             \
        (field) = base ? (void *)(base + at) : NULL; \
        at += ((count) * (size) + 63) / 64 * 64;     \
    } while (0)
    PART(w->x, rows * n, sizeof(float));
    PART(w->a, rows * n, sizeof(float));
    PART(w->b, rows * n, sizeof(float));
    PART(w->r, rows * n, sizeof(float));
    PART(w->coef, rows * coef, sizeof(float));
    PART(w->q, rows * q, sizeof(float));
    PART(w->o, rows * q, sizeof(float));
    PART(w->kv, 2 * (size_t)c->n_layer * rows * kv, sizeof(float));
    PART(w->room, rows * 2 * (size_t)c->n_ff, sizeof(float));
    PART(w->taps, rows * (size_t)c->n_tap * n, sizeof(float));
    PART(w->logits, (size_t)w->max_logits * (size_t)c->n_vocab, sizeof(float));
    PART(w->g, rows * (size_t)c->rank, sizeof(float));
    PART(w->pair, 2 * (size_t)c->rank, sizeof(float));
    PART(w->values, (size_t)(c->block - 1) * (size_t)c->top_k, sizeof(float));
    PART(w->candidates, (size_t)(c->block - 1) * (size_t)c->top_k, sizeof(int32_t));
    PART(w->scores, (size_t)c->top_k, sizeof(float));
    PART(w->ids, rows, sizeof(int32_t));
    PART(w->pos, rows, sizeof(int32_t));
    PART(w->attn, rows, sizeof(attn_job));
    PART(w->conv, rows, sizeof(dynconv_job));
    PART(w->outs, 2 * (size_t)c->n_layer, sizeof(linear_out));
    PART(w->act, weights_act_bytes(&d->w, w->max_rows), 1);
#undef PART
    return at;
}

size_t drafter_work_bytes(const drafter *d, int max_rows)
{
    drafter_work w = { .max_rows = max_rows };
    return lay_out(&w, d, NULL);
}

status drafter_work_new(drafter_work **out, const drafter *d, int max_rows, error *e)
{
    if (max_rows < d->config.block) {
        return error_set(e, E_ARG, "drafter: %d rows, want at least a block of %d", max_rows,
                         d->config.block);
    }
    drafter_work *w = mem_zalloc(sizeof *w);
    if (!w) return error_set(e, E_NOMEM, "drafter: no memory");
    w->max_rows = max_rows;
    w->bytes = lay_out(w, d, NULL);
    w->memory = mem_map(w->bytes);
    if (!w->memory) {
        mem_free(w);
        return error_set(e, E_NOMEM, "drafter: no memory for %d rows", max_rows);
    }
    lay_out(w, d, w->memory);
    *out = w;
    return OK;
}

void drafter_work_free(drafter_work *w)
{
    if (!w) return;
    mem_unmap(w->memory, w->bytes);
    mem_free(w);
}

/* ---- context rows: taps -> keys and values of every layer ---- */

static attn_job ring_job(const drafter_state *s, int row, int rows)
{
    return (attn_job){ .row = row,
                       .rows = rows,
                       .pos = s->len,
                       .first = s->first,
                       .pages = s->pages,
                       .n_pages = s->d->ring };
}

/* The `rows` tap rows gathered in w->taps, which belong to w->attn[0..n_jobs). */
static void append_rows(const drafter *d, compute *c, drafter_work *w, int rows, int n_jobs)
{
    const drafter_config *dc = &d->config;
    const size_t kv = (size_t)dc->n_kv_head * (size_t)dc->head_dim;
    for (int j = 0; j < n_jobs; j++) {
        const attn_job *job = &w->attn[j];
        for (int i = 0; i < job->rows; i++) w->pos[job->row + i] = job->pos + i;
    }
    linear_apply_one(c, w->act, &d->fc, w->r, w->taps, rows);
    compute_rmsnorm(c, w->x, w->r, d->hidden_norm, rows, dc->n_embd, dc->eps);
    for (int i = 0; i < dc->n_layer; i++) {
        float *k = w->kv + (size_t)(2 * i) * (size_t)rows * kv, *v = k + (size_t)rows * kv;
        w->outs[2 * i] = (linear_out){ &d->layers[i].k, k, kv };
        w->outs[2 * i + 1] = (linear_out){ &d->layers[i].v, v, kv };
    }
    linear_apply(c, w->act, w->x, rows, (size_t)dc->n_embd, w->outs, 2 * dc->n_layer);
    for (int i = 0; i < dc->n_layer; i++) {
        float *k = w->outs[2 * i].y, *v = w->outs[2 * i + 1].y;
        compute_head_norm_rope(c, k, rows, kv, dc->n_kv_head, (size_t)dc->head_dim, dc->head_dim,
                               d->layers[i].k_norm, dc->eps, d->angles, w->pos);
        compute_kv_store(c, &d->layout, i, k, v, w->attn, n_jobs);
    }
}

void drafter_append(const drafter *d, compute *c, drafter_work *w, const draft_append *jobs,
                    int n_jobs)
{
    const int context = d->config.window - 1; /* rows that a later block can still see */
    const size_t width = (size_t)d->config.n_tap * (size_t)d->config.n_embd;
    int rows = 0, filled = 0;
    for (int j = 0; j < n_jobs; j++) {
        drafter_state *s = jobs[j].state;
        const int skip = jobs[j].n > context ? jobs[j].n - context : 0;
        s->len += skip;
        for (int at = skip; at < jobs[j].n;) {
            const int left = jobs[j].n - at, space = w->max_rows - rows;
            const int n = left < space ? left : space;
            memcpy(w->taps + (size_t)rows * width, jobs[j].taps + (size_t)at * width,
                   (size_t)n * width * sizeof(float));
            w->attn[filled++] = ring_job(s, rows, n);
            s->len += n;
            at += n;
            rows += n;
            if (rows == w->max_rows) {
                append_rows(d, c, w, rows, filled);
                rows = filled = 0;
            }
        }
    }
    if (rows > 0) append_rows(d, c, w, rows, filled);
}

/* ---- the block ---- */

/* side 0 prepares the input of a half, side 1 finishes its output; both read the coefficients of
 * the input. */
static void convolve(const drafter *d, compute *c, const drafter_work *w, const conv_pair *v,
                     int side, float *y, const float *x, int n_jobs)
{
    const drafter_config *dc = &d->config;
    const size_t groups = (size_t)(dc->n_embd / dc->conv_group), taps = (size_t)dc->conv_taps;
    compute_dynconv(c, y, x, dc->n_embd, v->base + (size_t)side * taps * (size_t)dc->n_embd,
                    w->coef + (size_t)side * taps * groups, 2 * taps * groups, dc->conv_taps,
                    dc->conv_group, w->conv, n_jobs);
}

static void block_attention(const drafter *d, compute *c, drafter_work *w, int layer, int rows,
                            int n_jobs)
{
    const drafter_config *dc = &d->config;
    const drafter_layer *l = &d->layers[layer];
    const size_t dim = (size_t)dc->head_dim, q = (size_t)dc->n_head * dim;
    const size_t kv = (size_t)dc->n_kv_head * dim;
    float *k = w->kv, *v = w->kv + (size_t)rows * kv;
    const linear_out in[] = { { &l->q, w->q, q }, { &l->k, k, kv }, { &l->v, v, kv } };
    linear_apply(c, w->act, w->b, rows, (size_t)dc->n_embd, in, 3);
    compute_head_norm_rope(c, w->q, rows, q, dc->n_head, dim, dc->head_dim, l->q_norm, dc->eps,
                           d->angles, w->pos);
    compute_head_norm_rope(c, k, rows, kv, dc->n_kv_head, dim, dc->head_dim, l->k_norm, dc->eps,
                           d->angles, w->pos);
    const attn_shape shape = { .n_head = dc->n_head,
                               .window = dc->window,
                               .causal = false,
                               .scale = 1.0f / sqrtf((float)dc->head_dim) };
    compute_kv_attend(c, &shape, &d->layout, layer, w->o, w->q, q, dim, k, v, w->attn, n_jobs);
    linear_apply_one(c, w->act, &l->out, w->r, w->o, rows);
}

static void block_layer(const drafter *d, compute *c, drafter_work *w, int layer, int rows,
                        int n_jobs)
{
    const drafter_config *dc = &d->config;
    const drafter_layer *l = &d->layers[layer];
    const size_t all = (size_t)rows * (size_t)dc->n_embd;

    compute_rmsnorm(c, w->a, w->x, l->attention_conv.norm, rows, dc->n_embd, dc->eps);
    linear_apply_one(c, w->act, &l->attention_conv.kernel, w->coef, w->a, rows);
    convolve(d, c, w, &l->attention_conv, 0, w->b, w->a, n_jobs);
    block_attention(d, c, w, layer, rows, n_jobs);
    convolve(d, c, w, &l->attention_conv, 1, w->b, w->r, n_jobs);
    compute_add(c, w->x, w->b, all);

    compute_rmsnorm(c, w->a, w->x, l->mlp_conv.norm, rows, dc->n_embd, dc->eps);
    linear_apply_one(c, w->act, &l->mlp_conv.kernel, w->coef, w->a, rows);
    convolve(d, c, w, &l->mlp_conv, 0, w->b, w->a, n_jobs);
    mlp_forward(&l->mlp, c, w->act, w->room, w->r, w->b, rows);
    convolve(d, c, w, &l->mlp_conv, 1, w->b, w->r, n_jobs);
    compute_add(c, w->x, w->b, all);
}

/* [anchor, mask, mask, ...] of every job as embedding rows; returns how many rows. */
static int enter(const drafter *d, compute *c, drafter_work *w, const king *k,
                 const draft_job *jobs, int n_jobs)
{
    const drafter_config *dc = &d->config;
    int rows = 0;
    for (int j = 0; j < n_jobs; j++) {
        const draft_job *job = &jobs[j];
        CHECK(job->block >= 2 && job->block <= dc->block && job->block <= w->max_rows - rows);
        w->attn[j] = ring_job(job->state, rows, job->block);
        w->conv[j] = (dynconv_job){ .row = rows, .rows = job->block };
        for (int i = 0; i < job->block; i++, rows++) {
            w->ids[rows] = i == 0 ? job->anchor : dc->mask_id;
            w->pos[rows] = job->state->len + i;
        }
    }
    king_embed(k, c, w->x, w->ids, rows);
    if (dc->embed_scale != 1.0f) {
        const size_t all = (size_t)rows * (size_t)dc->n_embd;
        for (size_t i = 0; i < all; i++) w->x[i] *= dc->embed_scale;
    }
    return rows;
}

/* Walks the rows of one job's block. Its first draft stands in row `at` of hidden rows and
 * projections, and in row `head` of the logits. */
static void choose(const drafter *d, compute *c, drafter_work *w, const draft_job *job, int at,
                   int head)
{
    const drafter_config *dc = &d->config;
    const size_t n = (size_t)dc->n_embd, vocab = (size_t)dc->n_vocab, k = (size_t)dc->top_k;
    int32_t *ids = job->candidate_ids ? job->candidate_ids : w->candidates;
    float *values = job->candidate_logits ? job->candidate_logits : w->values;
    const int known = job->n_vocab < dc->n_vocab ? job->n_vocab : dc->n_vocab;
    const int found = compute_topk_rows(c, w->logits + (size_t)head * vocab, vocab, job->block - 1,
                                        known, dc->top_k, ids, values);
    int32_t previous = job->anchor;
    for (int i = 0; i < job->block - 1; i++) {
        const size_t row = (size_t)(at + i), out = (size_t)i * k;
        const selector_row s = {
            .n = found,
            .ids = ids + out,
            .values = values + out,
            .scores = job->candidate_scores ? job->candidate_scores + out : w->scores,
            .multiplier = dc->output_multiplier,
            .cap = dc->softcap,
            .g = w->g + row * (size_t)dc->rank,
            .previous = previous,
            .temperature = job->temperature,
            .key = rng_key(job->seed, job->choice, (uint64_t)job->state->len + (uint64_t)i + 1)
        };
        previous = job->drafts[i] = selector_pick(&d->selector, c, &s, w->pair);
        if (job->hidden) memcpy(job->hidden + (size_t)i * n, w->b + row * n, n * sizeof(float));
    }
}

void drafter_draft(const drafter *d, compute *c, drafter_work *w, const king *k, king_work *kw,
                   draft_job *jobs, int n_jobs)
{
    const drafter_config *dc = &d->config;
    const size_t n = (size_t)dc->n_embd;
    const int rows = enter(d, c, w, k, jobs, n_jobs);
    for (int i = 0; i < dc->n_layer; i++) {
        block_layer(d, c, w, i, rows, n_jobs);
        for (int j = 0; j < n_jobs; j++) {
            if (!jobs[j].layers) continue;
            const size_t all = (size_t)jobs[j].block * n;
            memcpy(jobs[j].layers + (size_t)i * all, w->x + (size_t)w->conv[j].row * n,
                   all * sizeof(float));
        }
    }

    /* The anchor's row predicts nothing; every other row predicts the token at its own position. */
    int drafts = 0;
    for (int j = 0; j < n_jobs; j++) {
        memcpy(w->a + (size_t)drafts * n, w->x + (size_t)(w->conv[j].row + 1) * n,
               (size_t)(jobs[j].block - 1) * n * sizeof(float));
        drafts += jobs[j].block - 1;
    }
    compute_rmsnorm(c, w->b, w->a, d->norm, drafts, dc->n_embd, dc->eps);
    linear_apply_one(c, w->act, &d->selector.projection, w->g, w->b, drafts);
    for (int j = 0, at = 0; j < n_jobs;) {
        int end = j, head = 0; /* as many whole blocks as the logits hold */
        while (end < n_jobs && head + jobs[end].block - 1 <= w->max_logits)
            head += jobs[end++].block - 1;
        king_head(k, c, kw, w->logits, w->b + (size_t)at * n, head);
        for (head = 0; j < end; head += jobs[j].block - 1, j++)
            choose(d, c, w, &jobs[j], at + head, head);
        at += head;
    }
}
