/* king.c - the target model: embedding, layers, head.
 *
 * The residual stream stays f32 from the embedding to the head. A row never meets a row of another
 * sequence; what jobs share is the reading of the weights. */
#include "model/king.h"

#include <stdio.h>

#include "base/mem.h"
#include "model/attention.h"
#include "model/gdn.h"
#include "model/mlp.h"
#include "base/banned.h"

typedef struct king_layer {
    bool is_attention;
    const float *input_norm, *post_norm; /* [n_embd] */
    union {
        gdn_layer gdn;
        attention_layer attention;
    };
    mlp_layer mlp;
} king_layer;

struct king {
    pack *pack;
    king_config config;
    compute_mode mode;
    weights w;
    load_report loaded;
    king_layer *layers;
    const float *final_norm;
    linear head;
    matrix embedding;
    rotation embedding_rot;
    rope *angles;
};

/* ---- opening ---- */

static status plan_layer(king *k, int i, error *e)
{
    king_layer *l = &k->layers[i];
    const king_config *c = &k->config;
    char prefix[PLAN_MAX_NAME], name[PLAN_MAX_NAME + 40];
    snprintf(prefix, sizeof prefix, "model.layers.%d", i);
    l->is_attention = c->is_attention[i];
    snprintf(name, sizeof name, "%s.input_layernorm.weight", prefix);
    TRY(weights_vector(&k->w, k->pack, name, c->n_embd, &l->input_norm, e));
    if (l->is_attention) TRY(attention_plan(&l->attention, &k->w, k->pack, i, c, k->mode, e));
    else TRY(gdn_plan(&l->gdn, &k->w, k->pack, i, c, k->mode, e));
    snprintf(name, sizeof name, "%s.post_attention_layernorm.weight", prefix);
    TRY(weights_vector(&k->w, k->pack, name, c->n_embd, &l->post_norm, e));
    return mlp_plan(&l->mlp, &k->w, k->pack, prefix, c->n_embd, c->n_ff, k->mode, e);
}

static status open_king(king *k, compute *c, const load_options *o, error *e)
{
    const king_config *kc = &k->config;
    k->layers = mem_array((size_t)kc->n_layer, sizeof *k->layers);
    if (!k->layers) return error_set(e, E_NOMEM, "%s: no memory", pack_folder(k->pack));
    TRY(pack_matrix(k->pack, "model.embed_tokens", kc->n_vocab, kc->n_embd, &k->embedding, e));
    k->embedding_rot = (rotation){ k->embedding.block, k->embedding.signs };
    for (int i = 0; i < kc->n_layer; i++) TRY(plan_layer(k, i, e));
    TRY(weights_vector(&k->w, k->pack, "model.norm.weight", kc->n_embd, &k->final_norm, e));
    TRY(weights_matrix(&k->w, k->pack, "lm_head", kc->n_vocab, kc->n_embd, k->mode, &k->head, e));
    TRY(compute_rope_new(&k->angles, kc->rope_theta, kc->rotary_dim, e));
    return load_weights(&k->w, k->pack, c, o, &k->loaded, e);
}

status king_open(king **out, pack *p, compute *c, const load_options *o, error *e)
{
    if (pack_get_kind(p) == PACK_DRAFTER)
        return error_set(e, E_ARG, "%s: found a drafter, want a king", pack_folder(p));
    king *k = mem_zalloc(sizeof *k);
    if (!k) return error_set(e, E_NOMEM, "%s: no memory", pack_folder(p));
    k->pack = p;
    k->config = *pack_king(p);
    k->mode = o->mode;
    weights_init(&k->w);
    const status s = open_king(k, c, o, e);
    if (s) {
        king_close(k);
        return s;
    }
    *out = k;
    return OK;
}

void king_close(king *k)
{
    if (!k) return;
    compute_rope_free(k->angles);
    weights_free(&k->w);
    mem_free(k->layers);
    mem_free(k);
}

const king_config *king_get_config(const king *k)
{
    return &k->config;
}

size_t king_tile_bytes(const king *k)
{
    return k->w.bytes;
}

const load_report *king_load_report(const king *k)
{
    return &k->loaded;
}

int64_t king_code3(const king *k)
{
    return weights_code3(&k->w);
}

/* ---- the memory of a pass ---- */

struct king_work {
    int max_rows, max_logits, n_taps;
    int taps[DFLASH_MAX_TAPS];
    pass p;
    float *h, *n, *r; /* [max_rows, n_embd] residual, normed input, output of a half layer */
    int32_t *ids;     /* [max_rows] */
    float *kept;      /* [max_logits, n_embd] rows that the head reads */
    float *logits;    /* [max_logits, n_vocab] */
    float *tap_rows;  /* [max_rows, n_taps * n_embd] */
    uint8_t *memory;
    size_t bytes;
};

/* Lays the parts out from `base` (NULL: only counts) and returns their size. */
static size_t lay_out(king_work *w, const king_config *c, size_t act_bytes, uint8_t *base)
{
    const size_t rows = (size_t)w->max_rows, d = (size_t)c->n_embd;
    size_t room = 2 * (size_t)c->n_ff;
    if (room < gdn_room(c)) room = gdn_room(c);
    if (room < attention_room(c)) room = attention_room(c);
    size_t at = 0;
#define PART(field, count, size)                     \
    do {                                             \
        (field) = base ? (void *)(base + at) : NULL; \
        at += ((count) * (size) + 63) / 64 * 64;     \
    } while (0)
    PART(w->h, rows * d, sizeof(float));
    PART(w->n, rows * d, sizeof(float));
    PART(w->r, rows * d, sizeof(float));
    PART(w->kept, (size_t)w->max_logits * d, sizeof(float));
    PART(w->logits, (size_t)w->max_logits * (size_t)c->n_vocab, sizeof(float));
    PART(w->tap_rows, rows * (size_t)w->n_taps * d, sizeof(float));
    PART(w->p.room, rows * room, sizeof(float));
    PART(w->p.act, act_bytes, 1);
    PART(w->ids, rows, sizeof(int32_t));
    PART(w->p.pos, rows, sizeof(int32_t));
    PART(w->p.row, rows, sizeof(int));
    PART(w->p.conv, rows, sizeof(conv_job));
    PART(w->p.gdn, rows, sizeof(gdn_job));
    PART(w->p.attn, rows, sizeof(attn_job));
#undef PART
    return at;
}

size_t king_work_bytes(const king_config *c, size_t act_bytes, int max_rows, int max_logits,
                       int n_taps)
{
    king_work w = { .max_rows = max_rows, .max_logits = max_logits, .n_taps = n_taps };
    return lay_out(&w, c, act_bytes, NULL);
}

size_t king_act_bytes(const king *k, int rows)
{
    return weights_act_bytes(&k->w, rows);
}

status king_work_new(king_work **out, const king *k, int max_rows, int max_logits, const int *taps,
                     int n_taps, error *e)
{
    if (max_rows < 1 || max_logits < 0 || max_logits > max_rows)
        return error_set(e, E_ARG, "pass: %d rows, %d of them with logits", max_rows, max_logits);
    if (n_taps < 0 || n_taps > DFLASH_MAX_TAPS)
        return error_set(e, E_ARG, "pass: %d taps, want at most %d", n_taps, DFLASH_MAX_TAPS);
    for (int i = 0; i < n_taps; i++) {
        if (taps[i] < 0 || taps[i] >= k->config.n_layer) {
            return error_set(e, E_ARG, "pass: tap of layer %d, the king has %d layers", taps[i],
                             k->config.n_layer);
        }
    }
    king_work *w = mem_zalloc(sizeof *w);
    if (!w) return error_set(e, E_NOMEM, "pass: no memory");
    w->max_rows = max_rows;
    w->max_logits = max_logits;
    w->n_taps = n_taps;
    for (int i = 0; i < n_taps; i++) w->taps[i] = taps[i];
    const size_t act_bytes = king_act_bytes(k, max_rows);
    w->bytes = lay_out(w, &k->config, act_bytes, NULL);
    w->memory = mem_map(w->bytes);
    if (!w->memory) {
        mem_free(w);
        return error_set(e, E_NOMEM, "pass: no memory for %d rows", max_rows);
    }
    lay_out(w, &k->config, act_bytes, w->memory);
    *out = w;
    return OK;
}

void king_work_free(king_work *w)
{
    if (!w) return;
    mem_unmap(w->memory, w->bytes);
    mem_free(w);
}

/* ---- the pass ---- */

/* Rows of all jobs in order: residual from the embedding, absolute positions. */
static void enter(const king *k, king_work *w, king_job *jobs, int n_jobs)
{
    pass *p = &w->p;
    p->jobs = jobs;
    p->n_jobs = n_jobs;
    p->rows = 0;
    for (int j = 0; j < n_jobs; j++) {
        king_job *job = &jobs[j];
        CHECK(job->n > 0 && job->n == state_rows(job->state));
        CHECK(job->n <= w->max_rows - p->rows);
        job->bad_layer = -1;
        p->row[j] = p->rows;
        for (int i = 0; i < job->n; i++, p->rows++) {
            CHECK(job->tokens[i] >= 0 && job->tokens[i] < k->config.n_vocab);
            w->ids[p->rows] = job->tokens[i];
            p->pos[p->rows] = state_len(job->state) + i;
        }
    }
    king_embed(k, p->c, w->h, w->ids, p->rows);
}

/* Rows of a job whose residual is no longer finite are void: they go on as zeros, so that nothing
 * else meets them. */
static void check_finite(const king *k, king_work *w, king_job *jobs, int layer)
{
    const size_t d = (size_t)k->config.n_embd;
    for (int j = 0; j < w->p.n_jobs; j++) {
        float *h = w->h + (size_t)w->p.row[j] * d;
        const size_t n = (size_t)jobs[j].n * d;
        if (compute_finite(w->p.c, h, n)) continue;
        if (jobs[j].bad_layer < 0) jobs[j].bad_layer = layer;
        memset(h, 0, n * sizeof *h);
    }
}

static void keep_taps(const king *k, king_work *w, int layer)
{
    const size_t d = (size_t)k->config.n_embd, stride = (size_t)w->n_taps * d;
    for (int t = 0; t < w->n_taps; t++) {
        if (w->taps[t] != layer) continue;
        for (size_t i = 0; i < (size_t)w->p.rows; i++)
            memcpy(w->tap_rows + i * stride + (size_t)t * d, w->h + i * d, d * sizeof(float));
    }
}

/* Final norm and head for the rows that asked. */
static void leave(const king *k, king_work *w, king_job *jobs, int n_jobs)
{
    const size_t d = (size_t)k->config.n_embd, vocab = (size_t)k->config.n_vocab;
    int asked = 0;
    for (int j = 0; j < n_jobs; j++) {
        king_job *job = &jobs[j];
        const int n = job->n - job->logits_from;
        CHECK(n >= 0 && job->logits_from >= 0 && n <= w->max_logits - asked);
        memcpy(w->kept + (size_t)asked * d, w->h + (size_t)(w->p.row[j] + job->logits_from) * d,
               (size_t)n * d * sizeof(float));
        job->logits = w->logits + (size_t)asked * vocab;
        job->taps = w->n_taps ? w->tap_rows + (size_t)w->p.row[j] * (size_t)w->n_taps * d : NULL;
        asked += n;
        state_passed(job->state);
    }
    if (asked == 0) return;
    compute_rmsnorm(w->p.c, w->kept, w->kept, k->final_norm, asked, k->config.n_embd,
                    k->config.eps);
    linear_apply_one(w->p.c, w->p.act, &k->head, w->logits, w->kept, asked);
}

void king_forward(const king *k, compute *c, king_work *w, king_job *jobs, int n_jobs,
                  const king_hook *hook)
{
    const king_config *kc = &k->config;
    const int d = kc->n_embd;
    pass *p = &w->p;
    p->c = c;
    enter(k, w, jobs, n_jobs);
    const size_t all = (size_t)p->rows * (size_t)d;
    const int layers = hook && hook->layers ? hook->layers : kc->n_layer;
    int n_gdn = 0, n_attention = 0;
    CHECK(layers <= kc->n_layer);
    for (int i = 0; i < layers; i++) {
        const king_layer *l = &k->layers[i];
        compute_rmsnorm(c, w->n, w->h, l->input_norm, p->rows, d, kc->eps);
        if (l->is_attention)
            attention_forward(&l->attention, kc, k->angles, n_attention++, p, w->r, w->n);
        else gdn_forward(&l->gdn, kc, n_gdn++, p, w->r, w->n);
        compute_add(c, w->h, w->r, all);
        compute_rmsnorm(c, w->n, w->h, l->post_norm, p->rows, d, kc->eps);
        mlp_forward(&l->mlp, c, p->act, p->room, w->r, w->n, p->rows);
        compute_add(c, w->h, w->r, all);
        check_finite(k, w, jobs, i);
        keep_taps(k, w, i);
        if (hook && hook->hidden) hook->hidden(hook->arg, i, w->h, p->rows);
    }
    leave(k, w, jobs, n_jobs);
}

/* ---- for the drafter ---- */

void king_embed(const king *k, compute *c, float *y, const int32_t *ids, int rows)
{
    compute_embed(c, y, &k->embedding, k->embedding_rot.block ? &k->embedding_rot : NULL, ids,
                  rows);
}

void king_head(const king *k, compute *c, king_work *w, float *logits, const float *h, int rows)
{
    const size_t d = (size_t)k->config.n_embd, vocab = (size_t)k->config.n_vocab;
    for (int at = 0; at < rows; at += w->max_rows) {
        const int n = rows - at < w->max_rows ? rows - at : w->max_rows;
        linear_apply_one(c, w->p.act, &k->head, logits + (size_t)at * vocab, h + (size_t)at * d, n);
    }
}
