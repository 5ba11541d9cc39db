/* The sampler against two published ones (tests/golden/ops/README.md, sampling): what each keeps
 * and how probable each id is. A pick is the largest log-probability plus noise, so the reference's
 * probabilities and the noise alone foretell every pick.
 * Mutations seen to fail: top-p before top-k, the id that crosses p left out, the frequency of an
 * id counted once, a penalty added. */
#include <math.h>

#include "base/mem.h"
#include "base/rng.h"
#include "engine/sampler.h"
#include "pack/safetensors.h"
#include "test.h"

enum { N = 200, ROWS = 2, POSITIONS = 4000, SEED = 11 };

typedef struct rig {
    compute *c;
    sampler_work work;
    safetensors g;
    float logits[ROWS][N];
} rig;

static void read_rows(const rig *r, const char *name, float to[ROWS][N])
{
    const tensor *t = safetensors_find(&r->g, str_from(name));
    if (!t) FAIL("no golden tensor %s", name);
    EXPECT_INT(tensor_elements(t), ROWS * N);
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < N && t->type == DTYPE_U8; k++) to[i][k] = t->data[i * N + k];
        if (t->type == DTYPE_F32) tensor_read_f32(t, i * N, N, to[i]);
    }
}

/* The stored `logits` were written after the library's penalties had changed them in place, so
 * those that the other rows come from are `logprobs` plus a constant, known from an id without
 * history. */
static void rig_open(rig *r)
{
    error e;
    const compute_options o = { .threads = 1 };
    EXPECT_OK(compute_open(&r->c, &o, &e), e);
    EXPECT_OK(sampler_work_init(&r->work, N, &e), e);
    EXPECT_OK(safetensors_open(&r->g, TEST_ROOT "/tests/golden/ops/sampling.safetensors", &e), e);
    float stored[ROWS][N];
    read_rows(r, "logits", stored);
    read_rows(r, "logprobs", r->logits);
    for (int row = 0; row < ROWS; row++) {
        const float constant = stored[row][0] - r->logits[row][0];
        for (int k = 0; k < N; k++) r->logits[row][k] += constant;
    }
}

static void rig_close(rig *r)
{
    safetensors_close(&r->g);
    sampler_work_free(&r->work);
    compute_close(r->c);
}

static sampler_params params(double temperature)
{
    return (sampler_params){ .temperature = (float)temperature,
                             .top_p = 1,
                             .repetition = 1,
                             .seed = SEED };
}

/* Every pick of a row is the one that log-probabilities `want` (-inf: not kept) foretell. */
static void expect_picks(rig *r, const char *name, const sampler_params *p, int row,
                         const double *want, const int32_t *history, int n_history)
{
    sampler s;
    error e;
    EXPECT_OK(sampler_init(&s, p, 0, N, &e), e);
    for (int i = 0; i < n_history; i++) sampler_saw(&s, history[i], true);
    for (int at = 0; at < POSITIONS; at++) {
        const uint64_t key = rng_key(SEED, 0, (uint64_t)at);
        int32_t best = -1;
        double most = -INFINITY;
        for (int32_t id = 0; id < N; id++) {
            const double v = want[id] + rng_gumbel(key, id);
            if (v > most) {
                most = v;
                best = id;
            }
        }
        const int32_t got = sampler_pick(&s, &r->work, r->c, r->logits[row], at, NULL);
        if (got != best)
            FAIL("%s row %d position %d: got %d, want %d", name, row, at, (int)got, (int)best);
    }
    sampler_free(&s);
}

TEST(golden_probabilities)
{
    static const struct {
        const char *name;
        double temperature, top_p;
        int top_k;
    } cases[] = { { "zlab_T1.0_p0.95_k20", 1, 0.95, 20 }, { "zlab_T0.7_p0.8_k20", 0.7, 0.8, 20 },
                  { "zlab_T1.0_p1.0_k0", 1, 1, 0 },       { "zlab_T0.6_p0.5_k0", 0.6, 0.5, 0 },
                  { "zlab_T1.5_p1.0_k5", 1.5, 1, 5 },     { "zlab_T1.0_p0.01_k0", 1, 0.01, 0 } };
    rig r;
    rig_open(&r);
    for (int i = 0; i < 6; i++) {
        sampler_params p = params(cases[i].temperature);
        p.top_p = (float)cases[i].top_p;
        p.top_k = cases[i].top_k;
        float prob[ROWS][N];
        double want[N];
        read_rows(&r, cases[i].name, prob);
        for (int row = 0; row < ROWS; row++) {
            for (int k = 0; k < N; k++) want[k] = log((double)prob[row][k]);
            expect_picks(&r, cases[i].name, &p, row, want, NULL, 0);
        }
    }
    rig_close(&r);
}

/* Masks that another sampler makes before the temperature, which is 1 here. */
TEST(golden_masks)
{
    static const struct {
        const char *name;
        int top_k;
        float top_p, min_p;
    } cases[] = { { "mlxlm_top_k20_kept", 20, 1, 0 },
                  { "mlxlm_top_p0.9_kept", 0, 0.9f, 0 },
                  { "mlxlm_top_p0.3_kept", 0, 0.3f, 0 },
                  { "mlxlm_min_p0.05_kept", 0, 1, 0.05f } };
    rig r;
    rig_open(&r);
    for (int i = 0; i < 4; i++) {
        sampler_params p = params(1);
        p.top_k = cases[i].top_k;
        p.top_p = cases[i].top_p;
        p.min_p = cases[i].min_p;
        float kept[ROWS][N];
        double want[N];
        read_rows(&r, cases[i].name, kept);
        for (int row = 0; row < ROWS; row++) {
            for (int k = 0; k < N; k++)
                want[k] = kept[row][k] > 0 ? (double)r.logits[row][k] : -INFINITY;
            expect_picks(&r, cases[i].name, &p, row, want, NULL, 0);
        }
    }
    rig_close(&r);
}

TEST(golden_penalties)
{
    static const int32_t history[] = { 3, 3, 7, 150, 3, 9 };
    /* each of the library's rows holds the penalties before it as well */
    static const struct {
        const char *name;
        float frequency;
    } cases[] = { { "mlxlm_penalty_presence_1.5", 0 }, { "mlxlm_penalty_frequency_0.7", 0.7f } };
    rig r;
    rig_open(&r);
    for (int i = 0; i < 2; i++) {
        sampler_params p = params(1);
        p.repetition = 1.3f;
        p.presence = 1.5f;
        p.frequency = cases[i].frequency;
        float row_of[ROWS][N];
        double want[N];
        read_rows(&r, cases[i].name, row_of);
        for (int row = 0; row < ROWS; row++) {
            for (int k = 0; k < N; k++) want[k] = (double)row_of[row][k];
            expect_picks(&r, cases[i].name, &p, row, want, history, 6);
        }
    }
    rig_close(&r);
}

TEST(golden_log_probabilities)
{
    rig r;
    float want[ROWS][N];
    rig_open(&r);
    read_rows(&r, "logprobs", want);
    for (int row = 0; row < ROWS; row++) {
        const double sum = sampler_log_sum(r.logits[row], N);
        for (int k = 0; k < N; k++)
            EXPECT(fabs((double)r.logits[row][k] - sum - (double)want[row][k]) <= 1e-6);
    }
    rig_close(&r);
}
