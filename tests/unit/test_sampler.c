#include <math.h>
#include "base/mem.h"
#include "base/rng.h"
#include "engine/sampler.h"
#include "test.h"

enum { VOCAB = 3000 };

typedef struct rig {
    compute *c;
    sampler_work work;
    float logits[VOCAB];
} rig;

static rig *rig_new(uint64_t seed, double spread)
{
    rig *r = mem_zalloc(sizeof *r);
    error e;
    const compute_options o = { .threads = 1 };
    EXPECT_OK(compute_open(&r->c, &o, &e), e);
    EXPECT_OK(sampler_work_init(&r->work, VOCAB, &e), e);
    rng g = { seed };
    for (int i = 0; i < VOCAB; i++) r->logits[i] = (float)(rng_normal(&g) * spread);
    return r;
}

static void rig_free(rig *r)
{
    sampler_work_free(&r->work);
    compute_close(r->c);
    mem_free(r);
}

static sampler_params plain_params(float temperature)
{
    return (sampler_params){ .temperature = temperature, .top_p = 1, .repetition = 1, .seed = 42 };
}

static int32_t pick(rig *r, const sampler_params *p, int n, int position)
{
    sampler s;
    error e;
    EXPECT_OK(sampler_init(&s, p, 0, n, &e), e);
    const int32_t id = sampler_pick(&s, &r->work, r->c, r->logits, position, NULL);
    sampler_free(&s);
    return id;
}

static int32_t argmax(const float *x, int n)
{
    int32_t best = 0;
    for (int i = 1; i < n; i++)
        if (x[i] > x[best]) best = i;
    return best;
}

/* ---- an independent account of the same definition, with the C library and a full sort ---- */

typedef struct entry {
    int32_t id;
    double logit;
} entry;

static int by_logit(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    if (x->logit != y->logit) return x->logit > y->logit ? -1 : 1;
    return x->id - y->id;
}

/* Entries that survive, with their probabilities; returns how many. */
static int survivors(const float *logits, int n, const sampler_params *p, entry *out, double *prob)
{
    for (int i = 0; i < n; i++) out[i] = (entry){ i, logits[i] };
    qsort(out, (size_t)n, sizeof *out, by_logit);
    int k = p->top_k > 0 && p->top_k < n ? p->top_k : n;
    double total = 0;
    for (int i = 0; i < k; i++) total += exp((out[i].logit - out[0].logit) / p->temperature);
    double before = 0;
    int kept = 0;
    for (int i = 0; i < k; i++) {
        const double q = exp((out[i].logit - out[0].logit) / p->temperature) / total;
        if (i && before >= p->top_p) break;
        before += q;
        if (q < p->min_p / total) break; /* the best has 1 / total */
        prob[kept++] = q;
    }
    double sum = 0;
    for (int i = 0; i < kept; i++) sum += prob[i];
    for (int i = 0; i < kept; i++) prob[i] /= sum;
    return kept;
}

static int32_t want_pick(const rig *r, const sampler_params *p, int n, int position, entry *e,
                         double *prob)
{
    const int kept = survivors(r->logits, n, p, e, prob);
    const uint64_t key = rng_key(p->seed, 0, (uint64_t)position);
    int32_t best = -1;
    double best_value = -INFINITY;
    for (int i = 0; i < kept; i++) {
        const double v = e[i].logit / p->temperature + rng_gumbel(key, e[i].id);
        if (v > best_value) {
            best_value = v;
            best = e[i].id;
        }
    }
    return best;
}

TEST(every_truncation_picks_as_defined)
{
    static entry e[VOCAB];
    static double prob[VOCAB];
    rig *r = rig_new(1, 3);
    static const struct {
        float t, top_p, min_p;
        int top_k;
    } cases[] = { { 1, 1, 0, 0 },
                  { 0.7f, 0.9f, 0, 0 },
                  { 1, 0.95f, 0, 20 },
                  { 2, 1, 0.05f, 0 },
                  { 1.5f, 0.99f, 0.01f, 0 },
                  { 1, 1, 0, 1 },
                  { 5, 0.999f, 0, 0 },
                  { 0.3f, 0.5f, 0.2f, 50 },
                  { 1, 1e-6f, 0, 0 },
                  { 100, 1, 0, 0 },
                  { 1, 1, 1, 0 } };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        sampler_params p = plain_params(cases[k].t);
        p.top_p = cases[k].top_p;
        p.min_p = cases[k].min_p;
        p.top_k = cases[k].top_k;
        for (int position = 0; position < 60; position++) {
            const int n = position % 2 ? VOCAB : VOCAB - 1000;
            EXPECT_INT(pick(r, &p, n, position), want_pick(r, &p, n, position, e, prob));
        }
    }
    rig_free(r);
}

/* R070, R067: the empirical distribution over 4,000 positions against the true one. */
TEST(R070_draws_follow_the_distribution)
{
    static entry e[VOCAB];
    static double prob[VOCAB];
    enum { N = 30, DRAWS = 4000 };
    rig *r = rig_new(3, 1.2);
    for (int k = 0; k < 3; k++) {
        sampler_params p = plain_params(k == 0 ? 1 : k == 1 ? 0.7f : 1.6f);
        if (k == 1) p.top_k = 12;
        if (k == 2) p.top_p = 0.9f;
        p.seed = 100 + (uint64_t)k;
        int counts[N] = { 0 };
        for (int i = 0; i < DRAWS; i++) counts[pick(r, &p, N, i)]++;
        const int kept = survivors(r->logits, N, &p, e, prob);
        double chi = 0;
        int total = 0;
        for (int i = 0; i < kept; i++) {
            const double want = prob[i] * DRAWS, d = counts[e[i].id] - want;
            chi += d * d / want;
            total += counts[e[i].id];
        }
        EXPECT_INT(total, DRAWS);
        /* mean kept - 1, deviation sqrt(2 (kept - 1)): four deviations */
        EXPECT(chi < kept - 1 + 4 * sqrt(2.0 * (kept - 1)));
    }
    rig_free(r);
}

TEST(R069_tiny_temperatures_are_greedy)
{
    rig *r = rig_new(5, 40);
    static const float temperatures[] = { 0, -0.0f, 1e-6f, 9.9e-6f };
    for (int i = 0; i < 4; i++) {
        const sampler_params p = plain_params(temperatures[i]);
        EXPECT_INT(pick(r, &p, VOCAB, i), argmax(r->logits, VOCAB));
    }
    /* just above the threshold nothing overflows into a wrong pick */
    const sampler_params p = plain_params(1e-5f);
    EXPECT_INT(pick(r, &p, VOCAB, 9), argmax(r->logits, VOCAB));
    rig_free(r);
}

TEST(ties_go_to_the_lowest_id)
{
    rig *r = rig_new(5, 1);
    for (int i = 0; i < VOCAB; i++) r->logits[i] = i % 7 == 3 ? 2.0f : 1.0f;
    sampler_params p = plain_params(0);
    EXPECT_INT(pick(r, &p, VOCAB, 0), 3);
    p = plain_params(1);
    p.top_k = 1;
    EXPECT_INT(pick(r, &p, VOCAB, 0), 3);
    rig_free(r);
}

TEST(padding_ids_are_never_picked)
{
    rig *r = rig_new(6, 1);
    r->logits[VOCAB - 1] = 1000;
    for (int i = 0; i < 50; i++) {
        const sampler_params p = plain_params(i % 2 ? 1.0f : 0.0f);
        EXPECT(pick(r, &p, VOCAB - 1, i) < VOCAB - 1);
    }
    rig_free(r);
}

TEST(penalties_and_bias_change_the_row)
{
    rig *r = rig_new(7, 0);
    error e;
    r->logits[10] = 5;
    r->logits[11] = 4.5f;
    r->logits[12] = 4;
    r->logits[13] = -1;
    sampler_params p = plain_params(0);
    p.presence = 0.4f;
    p.frequency = 0.2f;
    sampler s;
    EXPECT_OK(sampler_init(&s, &p, 0, VOCAB, &e), e);
    sampler_saw(&s, 10, false); /* a prompt token costs nothing here */
    EXPECT_INT(sampler_pick(&s, &r->work, r->c, r->logits, 0, NULL), 10);
    sampler_saw(&s, 10, true); /* 5 - 0.4 - 0.2 = 4.4 */
    EXPECT_INT(sampler_pick(&s, &r->work, r->c, r->logits, 0, NULL), 11);
    sampler_saw(&s, 11, true); /* 4.5 - 0.6 = 3.9 < 4.4 */
    EXPECT_INT(sampler_pick(&s, &r->work, r->c, r->logits, 0, NULL), 10);
    sampler_saw(&s, 10, true); /* 5 - 0.4 - 0.4 = 4.2 > 4 */
    EXPECT_INT(sampler_pick(&s, &r->work, r->c, r->logits, 0, NULL), 10);
    sampler_saw(&s, 10, true); /* 4.0, equal to id 12: the lower id */
    sampler_saw(&s, 10, true);
    EXPECT_INT(sampler_pick(&s, &r->work, r->c, r->logits, 0, NULL), 12);
    sampler_free(&s);

    p = plain_params(0);
    p.repetition = 2; /* positive logits are halved, also those of the prompt */
    EXPECT_OK(sampler_init(&s, &p, 0, VOCAB, &e), e);
    sampler_saw(&s, 10, false);
    EXPECT_INT(sampler_pick(&s, &r->work, r->c, r->logits, 0, NULL), 11);
    static uint32_t two[VOCAB / 32 + 1];
    two[0] = 1u << 13 | 1u << 14; /* negative ones are doubled: -2 < -1.5 */
    r->logits[14] = -1.5f;
    EXPECT_INT(sampler_pick(&s, &r->work, r->c, r->logits, 0, two), 13);
    sampler_saw(&s, 13, true);
    EXPECT_INT(sampler_pick(&s, &r->work, r->c, r->logits, 0, two), 14);
    sampler_free(&s);

    const sampler_bias bias[] = { { 13, 7 }, { 10, -100 } };
    p = plain_params(0);
    p.bias = bias;
    p.n_bias = 2;
    EXPECT_OK(sampler_init(&s, &p, 0, VOCAB, &e), e);
    EXPECT_INT(sampler_pick(&s, &r->work, r->c, r->logits, 0, NULL), 13);
    sampler_free(&s);
    rig_free(r);
}

TEST(a_mask_allows_only_its_bits)
{
    rig *r = rig_new(8, 2);
    error e;
    uint32_t mask[(VOCAB + 31) / 32] = { 0 };
    mask[100 / 32] |= 1u << 100 % 32;
    mask[2999 / 32] |= 1u << 2999 % 32;
    int seen[2] = { 0 };
    for (int i = 0; i < 200; i++) {
        sampler_params p = plain_params(3);
        if (i % 2) p.top_p = 0.999f;
        sampler s;
        EXPECT_OK(sampler_init(&s, &p, 0, VOCAB, &e), e);
        const int32_t id = sampler_pick(&s, &r->work, r->c, r->logits, i, mask);
        EXPECT(id == 100 || id == 2999);
        seen[id == 2999]++;
        sampler_free(&s);
    }
    EXPECT(seen[0] && seen[1]);
    rig_free(r);
}

/* Nothing is picked from a row without a number that could be. */
TEST(a_row_without_numbers_gives_no_token)
{
    static const float greedy_and_not[] = { 0, 1 };
    static const int top_k[] = { 0, 5 };
    static const float top_p[] = { 1, 0.5f };
    rig *r = rig_new(11, 1);
    for (int kind = 0; kind < 2; kind++) {
        for (int i = 0; i < VOCAB; i++) r->logits[i] = kind ? NAN : -INFINITY;
        for (int i = 0; i < 8; i++) {
            sampler_params p = plain_params(greedy_and_not[i & 1]);
            p.top_k = top_k[i >> 1 & 1];
            p.top_p = top_p[i >> 2];
            EXPECT_INT(pick(r, &p, VOCAB, i), -1);
        }
    }
    rig_free(r);
}

TEST(choices_and_seeds_have_their_own_noise)
{
    rig *r = rig_new(9, 0.1);
    error e;
    int32_t ids[3];
    for (int i = 0; i < 3; i++) {
        sampler_params p = plain_params(1);
        if (i == 2) p.seed++;
        sampler s;
        EXPECT_OK(sampler_init(&s, &p, i == 1, VOCAB, &e), e);
        ids[i] = sampler_pick(&s, &r->work, r->c, r->logits, 77, NULL);
        sampler_free(&s);
    }
    EXPECT(ids[0] != ids[1] && ids[0] != ids[2] && ids[1] != ids[2]);
    rig_free(r);
}

TEST(log_sum_is_that_of_the_library)
{
    rig *r = rig_new(10, 8);
    double m = -INFINITY, sum = 0;
    for (int i = 0; i < VOCAB; i++) m = r->logits[i] > m ? r->logits[i] : m;
    for (int i = 0; i < VOCAB; i++) sum += exp(r->logits[i] - m);
    EXPECT(fabs(sampler_log_sum(r->logits, VOCAB) - (m + log(sum))) < 1e-12 * fabs(m));
    rig_free(r);
}
