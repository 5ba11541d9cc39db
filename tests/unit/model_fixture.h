/* model_fixture.h - what tests of king and drafter share: opened packs, passes over rows, golden
 * tensors. */
#ifndef MODEL_FIXTURE_H
#define MODEL_FIXTURE_H
#include <math.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/rng.h"
#include "model/drafter.h"
#include "model/king.h"
#include "test.h"

#define PACKS TEST_ROOT "/tests/golden/packs/"
#define NUGGET TEST_ROOT "/models/nugget/"

typedef struct fixture {
    compute *c;
    pack *p;
    king *k;
    king_work *w;
    state_pool *pages;
    const king_config *config;
} fixture;

typedef struct fixture_options {
    const char *folder;
    compute_mode mode;
    kv_type kv;
    const char *cpu; /* NULL: the best tier */
    int threads, rows;
    const int *taps;
    int n_taps;
} fixture_options;

static inline void fixture_open(fixture *f, fixture_options o)
{
    error e;
    *f = (fixture){ 0 };
    const compute_options co = { .cpu = o.cpu, .threads = o.threads ? o.threads : 1 };
    EXPECT_OK(compute_open(&f->c, &co, &e), e);
    EXPECT_OK(pack_open(&f->p, o.folder, NULL, &e), e);
    const load_options ko = { .mode = o.mode };
    EXPECT_OK(king_open(&f->k, f->p, f->c, &ko, &e), e);
    f->config = king_get_config(f->k);
    const int rows = o.rows ? o.rows : 96;
    EXPECT_OK(king_work_new(&f->w, f->k, rows, rows, o.taps, o.n_taps, &e), e);
    kv_layout l;
    EXPECT_OK(compute_kv_layout(&l, o.kv, f->config->n_attention, f->config->n_kv_head,
                                f->config->head_dim, &e),
              e);
    EXPECT_OK(state_pool_new(&f->pages, &l, 64, &e), e);
}

static inline void fixture_close(fixture *f)
{
    EXPECT_INT(state_pool_free_pages(f->pages), state_pool_pages(f->pages));
    state_pool_free(f->pages);
    king_work_free(f->w);
    king_close(f->k);
    pack_close(f->p);
    compute_close(f->c);
}

static inline state *fixture_state(fixture *f)
{
    error e;
    state *s;
    EXPECT_OK(state_new(&s, f->config, f->pages, 2048, &e), e);
    return s;
}

/* One pass of one sequence over n tokens of which `keep` stay; returns the job with logits of every
 * row. */
static inline king_job fixture_pass(fixture *f, state *s, const int32_t *tokens, int n,
                                    row_kind kind, int keep)
{
    error e;
    EXPECT_OK(state_begin(s, n, kind, &e), e);
    king_job job = { .state = s, .tokens = tokens, .n = n };
    king_forward(f->k, f->c, f->w, &job, 1, NULL);
    EXPECT_INT(job.bad_layer, -1);
    state_commit(s, keep);
    return job;
}

/* ---- golden tensors ---- */

static inline void golden_open(safetensors *g, const char *folder, const char *file)
{
    error e;
    char path[512];
    snprintf(path, sizeof path, "%s/golden/%s", folder, file);
    EXPECT_OK(safetensors_open(g, path, &e), e);
}

static inline json_doc *golden_json(const char *path)
{
    error e;
    json_doc *d;
    EXPECT_OK(json_parse_file(&d, path, 8 << 20, 0, &e), e);
    return d;
}

static inline const tensor *golden_tensor(const safetensors *g, const char *name)
{
    const tensor *t = safetensors_find(g, str_from(name));
    if (!t) FAIL("no golden tensor %s in %s", name, g->path);
    return t;
}

static inline float *golden_f32(const safetensors *g, const char *name, int64_t n)
{
    const tensor *t = golden_tensor(g, name);
    EXPECT_INT(tensor_elements(t), n);
    float *x = mem_array((size_t)n, sizeof *x);
    tensor_read_f32(t, 0, n, x);
    return x;
}

static inline int32_t *golden_i32(const safetensors *g, const char *name, int *n)
{
    const tensor *t = golden_tensor(g, name);
    EXPECT(t->type == DTYPE_I32);
    *n = (int)tensor_elements(t);
    int32_t *x = mem_array((size_t)*n, sizeof *x);
    memcpy(x, t->data, t->bytes);
    return x;
}

/* A list of numbers; the caller frees. */
static inline int32_t *json_ints(const json_node *list, int *n)
{
    *n = (int)json_len(list);
    int32_t *x = mem_array((size_t)*n, sizeof *x);
    for (int i = 0; i < *n; i++) {
        int64_t v = -1;
        EXPECT(json_i64(json_at(list, (size_t)i), &v));
        x[i] = (int32_t)v;
    }
    return x;
}

static inline double max_diff(const float *a, const float *b, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = fabs((double)a[i] - b[i]);
        if (!(d <= most)) most = d;
    }
    return most;
}

/* |a - b| / |b| */
static inline double relative(const float *a, const float *b, size_t n)
{
    double d = 0, s = 0;
    for (size_t i = 0; i < n; i++) {
        d += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
        s += (double)b[i] * b[i];
    }
    return sqrt(d / s);
}

static inline int32_t argmax(const float *x, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++) best = x[i] > x[best] ? i : best;
    return best;
}

#define EXPECT_NEAR(diff, limit, ...)                                  \
    do {                                                               \
        const double d_ = (diff);                                      \
        if (!(d_ <= (limit))) {                                        \
            fprintf(stderr, __VA_ARGS__);                              \
            FAIL(": off by %g, want at most %g", d_, (double)(limit)); \
        }                                                              \
    } while (0)
#define EXPECT_BITS(a, b, n) EXPECT(memcmp((a), (b), (size_t)(n) * sizeof *(a)) == 0)
#endif
