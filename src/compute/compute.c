/* compute.c - see compute.h. Splits every operation into units and calls the tier's function for
 * each; attention is in compute_kv.c. */
#include "compute/compute.h"
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "compute/cpu/features.h"
#include "compute/cpu/fpenv.h"
#include "compute/cpu/turns.h"
#include "compute/units.h"
#include "base/banned.h"

enum {
    PIECE = 1 << 18, /* bytes of tiles that a worker takes at once, at most; */
    PIECES = 8,      /* as many pieces a share, at least */
    TOGETHER = 4,    /* strips that a piece has a multiple of: kernels may take several at once */
    CHUNK = 1024,    /* elements in a unit of an elementwise operation; a multiple of every group */
    GDN_BLOCK = 32   /* rows whose keys and queries stay in the first cache for all of a head */
};

/* ---- opening ---- */

static const cpu_ops *find_tier(const char *name)
{
    const cpu_ops *const *t = features_get()->tiers;
    if (!name) return *t;
    while (*t && strcmp((*t)->name, name) != 0) t++;
    return *t;
}
const char *compute_tiers(void)
{
    return features_get()->names;
}
void compute_known_tiers(char out[COMPUTE_KNOWN_TIERS])
{
    size_t len = 0;
    for (int i = 0; features_known(i); i++) {
        const int n = snprintf(out + len, COMPUTE_KNOWN_TIERS - len, "%s%s", len ? ", " : "",
                               features_known(i));
        CHECK(n > 0 && (size_t)n < COMPUTE_KNOWN_TIERS - len);
        len += (size_t)n;
    }
}
status compute_check_tier(const char *name, error *e)
{
    char known[COMPUTE_KNOWN_TIERS];
    for (int i = 0; features_known(i); i++)
        if (strcmp(features_known(i), name) == 0) return OK;
    compute_known_tiers(known);
    return error_set(e, E_ARG, "cpu tier: found %s, want one of: %s", name, known);
}
typedef struct check {
    const cpu_ops *ops;
    atomic_uint bad;
} check;
/* Sets the mode of every worker for good, and asks the tier whether arithmetic is what it must
 * be. */
static void check_worker(void *arg, int worker, int workers)
{
    (void)workers;
    check *k = arg;
    const uint64_t mode = fpenv_set();
    atomic_fetch_or(&k->bad, k->ops->selfcheck());
    /* the caller's thread; units_run() sets it around each operation */
    if (worker == 0) fpenv_restore(mode);
}
status compute_open(compute **out, const compute_options *o, error *e)
{
    const cpu_ops *ops = find_tier(o->cpu);
    if (!ops)
        return error_set(e, E_UNSUPPORTED, "cpu tier %s: not on this machine, want one of: %s",
                         o->cpu, compute_tiers());
    const int threads = o->threads > 0 ? o->threads : pool_default_threads(NULL, 0);
    compute *c = mem_zalloc(sizeof *c);
    if (!c) return error_set(e, E_NOMEM, "compute: no memory");
    c->ops = ops;
    c->scratch = mem_map(UNITS_SCRATCH);
    c->begun = mem_array((size_t)threads, sizeof *c->begun);
    status s =
        c->scratch && c->begun
            ? pool_start(&c->pool, threads, e)
            : error_set(e, E_NOMEM, "compute: no memory for %d bytes of scratch", UNITS_SCRATCH);
    if (s == OK) {
        check k = { .ops = ops };
        pool_run(c->pool, check_worker, &k);
        const unsigned bad = atomic_load(&k.bad);
        if (bad)
            s = error_set(e, E_UNSUPPORTED,
                          "cpu tier %s: arithmetic is not IEEE (code %u): results would be wrong",
                          ops->name, bad);
    }
    if (s == OK) *out = c;
    else compute_close(c);
    return s;
}
void compute_close(compute *c)
{
    if (!c) return;
    if (c->pool) pool_stop(c->pool);
    if (c->scratch) mem_unmap(c->scratch, UNITS_SCRATCH);
    mem_free(c->begun);
    mem_free(c);
}
const char *compute_tier(const compute *c)
{
    return c->ops->name;
}
int compute_threads(const compute *c)
{
    return pool_threads(c->pool);
}
pool *compute_pool(compute *c)
{
    return c->pool;
}

/* ---- operands of a matmul ---- */

static const struct {
    unsigned need;
    int group;
} act_groups[] = { { ACT_G32, 32 }, { ACT_G64, 64 }, { ACT_G128, 128 } };
enum { ACT_GROUPS = sizeof act_groups / sizeof *act_groups };

unsigned compute_needs(const tile_matrix *w, compute_mode mode)
{
    if (mode == COMPUTE_INT8)
        for (int i = 0; i < ACT_GROUPS; i++)
            if (w->group == act_groups[i].group) return act_groups[i].need;
    return ACT_F32;
}
static size_t padded(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}
static size_t q8_bytes(int rows, int n, int group)
{
    const size_t r = (size_t)rows, w = (size_t)n, g = w / (size_t)group;
    const size_t groups = r * g + CPU_BATCH_SLACK;
    return padded(groups * (size_t)group) + 2 * padded(groups * sizeof(float));
}
size_t compute_act_bytes(int rows, int n, unsigned needs)
{
    size_t bytes = padded((size_t)rows * (size_t)n * sizeof(float));
    for (int i = 0; i < ACT_GROUPS; i++)
        if (needs & act_groups[i].need) bytes += q8_bytes(rows, n, act_groups[i].group);
    return bytes;
}
static act_q8 *act_of(act *a, int i)
{
    return i == 0 ? &a->g32 : i == 1 ? &a->g64 : &a->g128;
}
static const act_q8 *act_for(const act *a, int group)
{
    return group == 32 ? &a->g32 : group == 64 ? &a->g64 : &a->g128;
}

typedef struct prepare {
    act *a;
    float *own; /* where rows go that are rotated or gathered; NULL: borrowed */
    const float *x;
    size_t stride;
    const rotation *rot; /* NULL: none */
    int width, pieces;   /* a unit is one piece of a row, `width` wide */
} prepare;

static void prepare_piece(const cpu_ops *ops, const prepare *p, int row, int from)
{
    act *a = p->a;
    const int width = a->n - from < p->width ? a->n - from : p->width;
    const size_t at = (size_t)row * (size_t)a->n + (size_t)from;
    const float *in = p->x + (size_t)row * p->stride + from;
    if (p->rot) ops->rotate(p->own + at, in, p->rot->signs + from, width);
    else if (p->own) memcpy(p->own + at, in, (size_t)width * sizeof *in);
    for (int i = 0; i < ACT_GROUPS; i++) {
        const act_q8 *q = act_of(a, i);
        const int group = act_groups[i].group, groups = a->n / group;
        if (!q->q) continue;
        for (int k = from; k < from + width; k += group) {
            const size_t to = cpu_act_at(a->rows, groups, row, k / group);
            q->scale[to] = ops->quantize(q->q + to * (size_t)group, q->neg_sum + to,
                                         a->x + (size_t)row * (size_t)a->n + k, group);
        }
    }
}
static void prepare_units(const cpu_ops *ops, void *arg, int from, int to)
{
    const prepare *p = arg;
    for (int u = from; u < to; u++) prepare_piece(ops, p, u / p->pieces, u % p->pieces * p->width);
}
void compute_prepare(compute *c, act *a, void *memory, const float *x, int rows, int n,
                     size_t stride, const rotation *rot, unsigned needs)
{
    if (rot && rot->block == 0) rot = NULL;
    const bool borrow = !rot && stride == (size_t)n;
    uint8_t *next = memory;
    float *own = memory;
    CHECK(!rot || n % rot->block == 0);
    *a = (act){ .rows = rows, .n = n, .x = borrow ? x : own };
    next += padded((size_t)rows * (size_t)n * sizeof(float));
    for (int i = 0; i < ACT_GROUPS; i++) {
        if (!(needs & act_groups[i].need)) continue;
        CHECK(n % act_groups[i].group == 0 && (!rot || rot->block % act_groups[i].group == 0));
        const int group = act_groups[i].group;
        const size_t groups = (size_t)rows * (size_t)(n / group) + CPU_BATCH_SLACK;
        act_q8 *q = act_of(a, i);
        q->q = (int8_t *)next;
        q->scale = (float *)(void *)(next + padded(groups * (size_t)group));
        q->neg_sum = (int32_t *)(void *)((uint8_t *)q->scale + padded(groups * sizeof(float)));
        next += q8_bytes(rows, n, act_groups[i].group);
    }
    prepare p = { a, borrow ? NULL : own, x, stride, rot, rot ? rot->block : CHUNK, 0 };
    p.pieces = (n + p.width - 1) / p.width;
    if (borrow && !(needs & ~(unsigned)ACT_F32)) return;
    units_run(c, prepare_units, &p, rows * p.pieces, (size_t)rows * (size_t)n);
}

/* ---- matmul ---- */

typedef struct matmul {
    const cpu_ops *ops;
    const act *a;
    const matmul_out *outs;
    int n_outs;
    compute_mode mode;
    size_t bytes; /* of all tiles */
    units_begun *begun;
} matmul;

/* Of the n strips of `w` whose first stands at byte `at`, in runs of TOGETHER: where the first run
 * is that begins at byte `from` or later; n if none does. */
static int first_strip(const tile_matrix *w, int n, size_t at, size_t from)
{
    if (from <= at) return 0;
    const size_t run = TOGETHER * w->strip_bytes;
    const size_t s = (from - at + run - 1) / run * TOGETHER;
    return s < (size_t)n ? (int)s : n;
}
static size_t share_bytes(const matmul *m, int owner, int workers)
{
    size_t bytes = 0;
    for (int i = 0; i < m->n_outs; i++) {
        int from, to;
        pool_share(tile_strips(m->outs[i].w), owner, workers, &from, &to);
        bytes += (size_t)(to - from) * m->outs[i].w->strip_bytes;
    }
    return bytes;
}
/* The strips whose runs begin in bytes [lo, hi) of a share. */
static void matmul_piece(const matmul *m, int owner, int workers, size_t lo, size_t hi)
{
    size_t at = 0;
    for (int i = 0; i < m->n_outs; i++) {
        const matmul_out *o = &m->outs[i];
        int first, last;
        pool_share(tile_strips(o->w), owner, workers, &first, &last);
        const int from = first + first_strip(o->w, last - first, at, lo),
                  to = first + first_strip(o->w, last - first, at, hi);
        at += (size_t)(last - first) * o->w->strip_bytes;
        if (from >= to) continue;
        if (compute_needs(o->w, m->mode) == ACT_F32)
            m->ops->matmul_f32(o->w, m->a->x, m->a->rows, o->y, o->stride, from, to);
        else
            m->ops->matmul_q8(o->w, act_for(m->a, o->w->group), m->a->rows, o->y, o->stride, from,
                              to);
    }
}
/* A worker's share of a matrix is what it filled (weights.c), and so lies near it. It takes the
 * pieces of its share in order, then what others have not begun: cores are never equally fast, and
 * all wait for the last. */
static void matmul_share(void *arg, int worker, int workers)
{
    const matmul *m = arg;
    ASSERT(fpenv_ok());
    for (int i = 0; i < workers; i++) {
        const int owner = (worker + i) % workers;
        const size_t bytes = share_bytes(m, owner, workers), even = bytes / PIECES + 1,
                     piece = even < PIECE ? even : PIECE;
        size_t at;
        while ((at = piece * (size_t)atomic_fetch_add(&m->begun[owner].n, 1)) < bytes)
            matmul_piece(m, owner, workers, at, at + piece);
    }
}
void compute_matmul(compute *c, const act *a, const matmul_out *outs, int n_outs, compute_mode mode)
{
    matmul m = { c->ops, a, outs, n_outs, mode, 0, c->begun };
    if (a->rows == 0) return;
    for (int i = 0; i < n_outs; i++) {
        const tile_matrix *w = outs[i].w;
        CHECK(w->n_in == a->n && outs[i].stride >= (size_t)w->n_out && w->data);
        CHECK(compute_needs(w, mode) == ACT_F32 || act_for(a, w->group)->q);
        m.bytes += tile_bytes(w);
    }
    const uint64_t saved = fpenv_set();
    for (int i = 0; i < pool_threads(c->pool); i++) atomic_store(&c->begun[i].n, 0);
    if (m.bytes * (size_t)a->rows < UNITS_SMALL) matmul_share(&m, 0, 1);
    else pool_run(c->pool, matmul_share, &m);
    fpenv_restore(saved);
}

/* ---- elementwise and norms ---- */

typedef struct rows_job {
    float *y;
    const float *x, *w, *z;
    int n, heads;
    size_t total;
    float eps;
} rows_job;

static void rmsnorm_units(const cpu_ops *ops, void *arg, int from, int to)
{
    const rows_job *j = arg;
    for (int r = from; r < to; r++)
        ops->rmsnorm(j->y + (size_t)r * (size_t)j->n, j->x + (size_t)r * (size_t)j->n, j->w, j->n,
                     j->eps);
}
void compute_rmsnorm(compute *c, float *y, const float *x, const float *w, int rows, int n,
                     float eps)
{
    rows_job j = { .y = y, .x = x, .w = w, .n = n, .eps = eps };
    if (rows > 0) units_run(c, rmsnorm_units, &j, rows, (size_t)rows * (size_t)n);
}
/* elements of chunk u */
static size_t chunk_size(size_t total, int u)
{
    const size_t rest = total - (size_t)u * CHUNK;
    return rest < CHUNK ? rest : CHUNK;
}
static int chunk_count(size_t total)
{
    return (int)((total + CHUNK - 1) / CHUNK);
}

static void add_units(const cpu_ops *ops, void *arg, int from, int to)
{
    const rows_job *j = arg;
    for (int u = from; u < to; u++)
        ops->add(j->y + (size_t)u * CHUNK, j->x + (size_t)u * CHUNK, chunk_size(j->total, u));
}
void compute_add(compute *c, float *y, const float *x, size_t n)
{
    rows_job j = { .y = y, .x = x, .total = n };
    if (n) units_run(c, add_units, &j, chunk_count(n), n);
}
static void swiglu_units(const cpu_ops *ops, void *arg, int from, int to)
{
    const rows_job *j = arg;
    for (int u = from; u < to; u++)
        ops->swiglu(j->y + (size_t)u * CHUNK, j->x + (size_t)u * CHUNK, j->z + (size_t)u * CHUNK,
                    chunk_size(j->total, u));
}
void compute_swiglu(compute *c, float *y, const float *gate, const float *up, size_t n)
{
    rows_job j = { .y = y, .x = gate, .z = up, .total = n };
    if (n) units_run(c, swiglu_units, &j, chunk_count(n), n);
}
static void softcap_units(const cpu_ops *ops, void *arg, int from, int to)
{
    const rows_job *j = arg;
    for (int u = from; u < to; u++)
        ops->softcap(j->y + (size_t)u * CHUNK, chunk_size(j->total, u), j->eps);
}
void compute_softcap(compute *c, float *x, size_t n, float cap)
{
    rows_job j = { .y = x, .total = n, .eps = cap };
    if (n) units_run(c, softcap_units, &j, chunk_count(n), n);
}
typedef struct finite_job {
    const float *x;
    size_t total;
    atomic_bool bad;
} finite_job;
static void finite_units(const cpu_ops *ops, void *arg, int from, int to)
{
    finite_job *j = arg;
    for (int u = from; u < to; u++)
        if (!ops->finite(j->x + (size_t)u * CHUNK, chunk_size(j->total, u)))
            atomic_store_explicit(&j->bad, true, memory_order_relaxed);
}
bool compute_finite(compute *c, const float *x, size_t n)
{
    finite_job j = { .x = x, .total = n };
    if (n) units_run(c, finite_units, &j, chunk_count(n), n);
    return !atomic_load_explicit(&j.bad, memory_order_relaxed);
}

typedef struct embed_job {
    float *y;
    const matrix *table;
    const rotation *rot;
    const int32_t *ids;
} embed_job;
static void embed_units(const cpu_ops *ops, void *arg, int from, int to)
{
    const embed_job *j = arg;
    const int n = (int)j->table->in;
    for (int r = from; r < to; r++) {
        float *y = j->y + (size_t)r * (size_t)n;
        matrix_row_f32(j->table, j->ids[r], j->rot ? DTYPE_F16 : DTYPE_F32, y);
        if (!j->rot) continue;
        for (int k = 0; k < n; k += j->rot->block)
            ops->unrotate(y + k, y + k, j->rot->signs + k, j->rot->block);
        for (int k = 0; k < n; k++) y[k] = dtype_round(DTYPE_F16, y[k]);
    }
}
void compute_embed(compute *c, float *y, const matrix *table, const rotation *rot,
                   const int32_t *ids, int rows)
{
    if (rot && rot->block == 0) rot = NULL;
    embed_job j = { y, table, rot, ids };
    CHECK(!rot || table->in % rot->block == 0);
    for (int r = 0; r < rows; r++) CHECK(0 <= ids[r] && ids[r] < table->out);
    if (rows > 0) units_run(c, embed_units, &j, rows, 4 * (size_t)rows * (size_t)table->in);
}

struct rope {
    turns t;
};
status compute_rope_new(rope **out, double theta, int rotary_dim, error *e)
{
    rope *r = mem_zalloc(sizeof *r);
    if (!r) return error_set(e, E_NOMEM, "rope: no memory");
    if (!turns_init(&r->t, theta, rotary_dim)) {
        mem_free(r);
        return error_set(
            e, E_UNSUPPORTED,
            "rope: base %g over %d dimensions, want a base in (1, 2^60] and an even number "
            "of dimensions up to %d",
            theta, rotary_dim, 2 * TURNS_MAX_HALF);
    }
    *out = r;
    return OK;
}
void compute_rope_free(rope *r)
{
    mem_free(r);
}

typedef struct head_job {
    float *x;
    size_t stride, head_stride;
    int heads, dim;
    const float *w;
    float eps;
    const rope *rope;
    const int32_t *pos;
} head_job;
static void head_units(const cpu_ops *ops, void *arg, int from, int to)
{
    const head_job *j = arg;
    float cosine[TURNS_MAX_HALF], sine[TURNS_MAX_HALF];
    for (int r = from; r < to; r++) {
        if (j->rope) turns_row(&j->rope->t, (uint32_t)j->pos[r], cosine, sine);
        for (int h = 0; h < j->heads; h++) {
            float *x = j->x + (size_t)r * j->stride + (size_t)h * j->head_stride;
            if (j->w) ops->rmsnorm(x, x, j->w, j->dim, j->eps);
            if (j->rope) ops->rope(x, cosine, sine, j->rope->t.half);
        }
    }
}
void compute_head_norm_rope(compute *c, float *x, int rows, size_t stride, int heads,
                            size_t head_stride, int dim, const float *w, float eps, const rope *r,
                            const int32_t *pos)
{
    head_job j = { x, stride, head_stride, heads, dim, w, eps, r, pos };
    CHECK(!r || 2 * r->t.half <= dim);
    if (rows > 0) units_run(c, head_units, &j, rows, (size_t)rows * (size_t)heads * (size_t)dim);
}
static void head_gate_units(const cpu_ops *ops, void *arg, int from, int to)
{
    const head_job *j = arg;
    for (int u = from; u < to; u++)
        ops->head_gate(j->x + (size_t)u * (size_t)j->dim,
                       j->w + (size_t)(u / j->heads) * j->stride +
                           (size_t)(u % j->heads) * j->head_stride,
                       j->dim);
}
void compute_head_gate(compute *c, float *out, const float *gate, size_t stride, size_t head_stride,
                       int rows, int heads, int dim)
{
    head_job j = { .x = out,
                   .w = gate,
                   .stride = stride,
                   .head_stride = head_stride,
                   .heads = heads,
                   .dim = dim };
    if (rows > 0)
        units_run(c, head_gate_units, &j, rows * heads, (size_t)rows * (size_t)heads * (size_t)dim);
}

/* ---- gated delta net ---- */

typedef struct conv_work {
    float *y;
    const float *x, *w;
    int taps, channels, pieces;
    const conv_job *jobs;
} conv_work;
static void conv_units(const cpu_ops *ops, void *arg, int from, int to)
{
    const conv_work *c = arg;
    for (int u = from; u < to; u++) {
        const conv_job *j = &c->jobs[u / c->pieces];
        const size_t at = (size_t)j->row * (size_t)c->channels;
        const int lo = u % c->pieces * CHUNK,
                  hi = lo + CHUNK < c->channels ? lo + CHUNK : c->channels;
        ops->conv(c->y + at, c->x + at, j->window, c->w, c->taps, c->channels, j->rows, lo, hi);
    }
}
void compute_conv(compute *c, float *y, const float *x, const float *w, int taps, int channels,
                  const conv_job *jobs, int n_jobs)
{
    conv_work k = { y, x, w, taps, channels, (channels + CHUNK - 1) / CHUNK, jobs };
    size_t rows = 0;
    CHECK(1 <= taps && taps <= CPU_MAX_TAPS);
    for (int i = 0; i < n_jobs; i++) rows += (size_t)jobs[i].rows;
    if (rows)
        units_run(c, conv_units, &k, n_jobs * k.pieces, rows * (size_t)channels * (size_t)taps);
}

typedef struct gates_job {
    const gdn_shape *s;
    float *u, *g, *beta;
    const float *a, *b, *a_log, *dt_bias;
} gates_job;
static void gates_units(const cpu_ops *ops, void *arg, int from, int to)
{
    const gates_job *j = arg;
    const gdn_shape *s = j->s;
    const size_t channels = (size_t)gdn_channels(s), heads = (size_t)s->n_v_head;
    const float q_factor = 1.0f / sqrtf((float)s->k_dim);
    for (int r = from; r < to; r++) {
        float *u = j->u + (size_t)r * channels;
        for (int h = 0; h < s->n_k_head; h++) {
            ops->l2norm(u + h * s->k_dim, s->k_dim, q_factor);
            ops->l2norm(u + (s->n_k_head + h) * s->k_dim, s->k_dim, 1.0f);
        }
        const size_t at = (size_t)r * heads;
        ops->gates(j->g + at, j->beta + at, j->a + at, j->b + at, j->a_log, j->dt_bias,
                   s->n_v_head);
    }
}
void compute_gdn_gates(compute *c, const gdn_shape *s, float *u, float *g, float *beta,
                       const float *a, const float *b, const float *a_log, const float *dt_bias,
                       int rows)
{
    gates_job j = { s, u, g, beta, a, b, a_log, dt_bias };
    if (rows > 0)
        units_run(c, gates_units, &j, rows, (size_t)rows * 2 * (size_t)(s->n_k_head * s->k_dim));
}

typedef struct gdn_work {
    const gdn_shape *s;
    float *y;
    const float *u, *g, *beta;
    const gdn_job *jobs;
    int slices; /* of a head's state: CPU_STATE_ROWS rows each */
} gdn_work;

/* What the tape keeps besides delta; each key head and each value head once. */
static void record_tape(const gdn_work *w, const gdn_job *j, int head)
{
    const gdn_shape *s = w->s;
    const int per = s->n_v_head / s->n_k_head, kh = head / per;
    for (int r = 0; r < j->rows; r++) {
        const size_t row = (size_t)(j->row + r), heads = (size_t)s->n_v_head;
        j->tape.g[(size_t)r * heads + (size_t)head] = w->g[row * heads + (size_t)head];
        if (head % per) continue;
        memcpy(j->tape.k + (size_t)r * (size_t)(s->n_k_head * s->k_dim) + kh * s->k_dim,
               w->u + row * (size_t)gdn_channels(s) + (s->n_k_head + kh) * s->k_dim,
               (size_t)s->k_dim * sizeof *w->u);
    }
}
/* Rows [from, to) of a job over the state rows of one head that begin with `first`. */
static void gdn_unit(const cpu_ops *ops, const gdn_work *w, const gdn_job *j, int head, int first,
                     int from, int to)
{
    const gdn_shape *s = w->s;
    const size_t channels = (size_t)gdn_channels(s), heads = (size_t)s->n_v_head,
                 v_width = heads * (size_t)s->v_dim;
    const size_t row = (size_t)(j->row + from), kh = (size_t)(head / (s->n_v_head / s->n_k_head));
    /* of the first state row among all v rows */
    const size_t at = (size_t)head * (size_t)s->v_dim + (size_t)first;
    const float *u = w->u + row * channels;
    const int left = s->v_dim - first;
    const cpu_gdn g = {
        .k_dim = s->k_dim,
        .state_rows = left < CPU_STATE_ROWS ? left : CPU_STATE_ROWS,
        .rows = to - from,
        .pending = from == 0 ? j->pending : 0,
        .state = j->state + at * (size_t)s->k_dim,
        .final = j->final,
        .q = u + kh * (size_t)s->k_dim,
        .k = u + ((size_t)s->n_k_head + kh) * (size_t)s->k_dim,
        .v = u + 2 * (size_t)(s->n_k_head * s->k_dim) + at,
        .u_stride = channels,
        .g = w->g + row * heads + head,
        .beta = w->beta + row * heads + head,
        .g_stride = heads,
        .y = w->y + row * v_width + at,
        .y_stride = v_width,
        .delta = j->final ? NULL : j->tape.delta + at,
        .old_k = j->pending ? j->old.k + kh * (size_t)s->k_dim : NULL,
        .old_delta = j->pending ? j->old.delta + at : NULL,
        .old_g = j->pending ? j->old.g + head : NULL,
        .old_k_stride = (size_t)(s->n_k_head * s->k_dim),
    };
    if (first == 0 && !j->final) record_tape(w, j, head);
    ops->gdn(&g);
}
static void gdn_units(const cpu_ops *ops, void *arg, int from, int to)
{
    const gdn_work *w = arg;
    for (int i = from, end; i < to; i = end) { /* the slices of one head */
        const int head = i / w->slices % w->s->n_v_head, first = i / w->slices * w->slices;
        const gdn_job *j = &w->jobs[i / w->slices / w->s->n_v_head];
        const int block = j->final ? GDN_BLOCK : j->rows;
        end = first + w->slices < to ? first + w->slices : to;
        int row = 0;
        do {
            const int stop = j->rows - row < block ? j->rows : row + block;
            for (int s = i; s < end; s++)
                gdn_unit(ops, w, j, head, (s - first) * CPU_STATE_ROWS, row, stop);
            row = stop;
        } while (row < j->rows);
    }
}
void compute_gdn(compute *c, const gdn_shape *s, float *y, const float *u, const float *g,
                 const float *beta, const gdn_job *jobs, int n_jobs)
{
    gdn_work w = { s, y, u, g, beta, jobs, (s->v_dim + CPU_STATE_ROWS - 1) / CPU_STATE_ROWS };
    CHECK(s->k_dim % 16 == 0 && s->k_dim <= CPU_MAX_HEAD && s->n_v_head % s->n_k_head == 0);
    if (n_jobs > 0)
        units_run(c, gdn_units, &w, n_jobs * s->n_v_head * w.slices,
                  (size_t)n_jobs * (size_t)s->n_v_head * (size_t)s->v_dim * (size_t)s->k_dim);
}
static void gated_norm_units(const cpu_ops *ops, void *arg, int from, int to)
{
    const rows_job *j = arg;
    for (int u = from; u < to; u++) {
        const size_t at = (size_t)u * (size_t)j->n;
        ops->gated_norm(j->y + at, j->x + at, j->z + at, j->w, j->n, j->eps);
    }
}
void compute_gated_norm(compute *c, float *o, const float *y, const float *z, const float *w,
                        int rows, int heads, int dim, float eps)
{
    rows_job j = { .y = o, .x = y, .z = z, .w = w, .n = dim, .eps = eps };
    if (rows > 0)
        units_run(c, gated_norm_units, &j, rows * heads,
                  (size_t)rows * (size_t)heads * (size_t)dim);
}

/* ---- drafter ---- */

typedef struct dynconv_work {
    float *y;
    const float *x, *base, *d;
    size_t d_stride;
    int n, taps, group;
    const dynconv_job *jobs;
} dynconv_work;
static void dynconv_units(const cpu_ops *ops, void *arg, int from, int to)
{
    const dynconv_work *w = arg;
    int job = 0, before = 0; /* rows of the jobs before `job` */
    for (int u = from; u < to; u++) {
        while (u >= before + w->jobs[job].rows) before += w->jobs[job++].rows;
        const int r = u - before, have = r + 1 < w->taps ? r + 1 : w->taps;
        const size_t row = (size_t)(w->jobs[job].row + r);
        ops->dynconv(w->y + row * (size_t)w->n, w->x + row * (size_t)w->n, w->n, w->base,
                     w->d + row * w->d_stride, have, w->group);
    }
}
void compute_dynconv(compute *c, float *y, const float *x, int n, const float *base, const float *d,
                     size_t d_stride, int taps, int group, const dynconv_job *jobs, int n_jobs)
{
    dynconv_work w = { y, x, base, d, d_stride, n, taps, group, jobs };
    int rows = 0;
    CHECK(n % group == 0);
    for (int i = 0; i < n_jobs; i++) rows += jobs[i].rows;
    if (rows) units_run(c, dynconv_units, &w, rows, (size_t)rows * (size_t)n * (size_t)taps);
}

/* ---- picking: a row is one scan that compares whole vectors with the k-th value ---- */

typedef struct topk_job {
    const float *x;
    size_t stride;
    int n, k;
    int32_t *ids;
    float *values;
} topk_job;
static void topk_units(const cpu_ops *ops, void *arg, int from, int to)
{
    const topk_job *j = arg;
    for (int r = from; r < to; r++) {
        const size_t out = (size_t)r * (size_t)j->k;
        ops->topk(j->x + (size_t)r * j->stride, j->n, j->k, j->ids + out, j->values + out);
    }
}
int compute_topk_rows(compute *c, const float *x, size_t stride, int rows, int n, int k,
                      int32_t *ids, float *values)
{
    CHECK(n >= 0 && k >= 0);
    topk_job j = { x, stride, n, k, ids, values };
    if (rows > 0 && k > 0) units_run(c, topk_units, &j, rows, (size_t)rows * (size_t)n);
    return n < k ? n : k;
}
int compute_topk(compute *c, const float *x, int n, int k, int32_t *ids, float *values)
{
    return compute_topk_rows(c, x, 0, 1, n, k, ids, values);
}
int32_t compute_argmax(compute *c, const float *x, int n)
{
    const uint64_t saved = fpenv_set();
    const int32_t best = c->ops->argmax(x, n);
    fpenv_restore(saved);
    return best;
}
