/* sampler.c - penalties, truncation and the position-keyed draw.
 *
 * All arithmetic beyond the logits is in f64, so a pick is the same on every machine. Nothing is
 * allocated per pick. */
#include <math.h>
#include "base/f64.h"
#include "base/mem.h"
#include "base/rng.h"
#include "engine/sampler.h"
#include "base/banned.h"

status sampler_work_init(sampler_work *w, int n_vocab, error *e)
{
    *w = (sampler_work){ .n_vocab = n_vocab };
    w->row = mem_array((size_t)n_vocab, sizeof *w->row);
    w->values = mem_array((size_t)n_vocab, sizeof *w->values);
    w->ids = mem_array((size_t)n_vocab, sizeof *w->ids);
    if (w->row && w->values && w->ids) return OK;
    sampler_work_free(w);
    return error_set(e, E_NOMEM, "sampler: no memory for rows of %d logits", n_vocab);
}

void sampler_work_free(sampler_work *w)
{
    mem_free(w->row);
    mem_free(w->values);
    mem_free(w->ids);
    *w = (sampler_work){ 0 };
}

size_t sampler_work_bytes(int n_vocab)
{
    return (size_t)n_vocab * (2 * sizeof(float) + sizeof(int32_t));
}

static bool has_penalties(const sampler_params *p)
{
    return p->presence != 0 || p->frequency != 0 || p->repetition != 1;
}

status sampler_init(sampler *s, const sampler_params *p, uint64_t choice, int n_token, error *e)
{
    *s = (sampler){ .params = *p, .choice = choice, .n_token = n_token };
    if (!has_penalties(p)) return OK;
    s->output_count = mem_array((size_t)n_token, sizeof *s->output_count);
    s->seen = mem_array((size_t)n_token, sizeof *s->seen);
    s->met = mem_array((size_t)n_token, sizeof *s->met);
    if (s->output_count && s->seen && s->met) return OK;
    sampler_free(s);
    return error_set(e, E_NOMEM, "sampler: no memory for the history of %d ids", n_token);
}

void sampler_free(sampler *s)
{
    mem_free(s->output_count);
    mem_free(s->seen);
    mem_free(s->met);
    s->output_count = NULL;
    s->seen = NULL;
    s->met = NULL;
}

void sampler_saw(sampler *s, int32_t id, bool output)
{
    if (!s->met || id < 0 || id >= s->n_token) return;
    if (!s->met[id]) {
        s->met[id] = 1;
        s->seen[s->n_seen++] = id;
    }
    if (output) s->output_count[id]++;
}

static float largest(const float *x, int n)
{
    float m = -INFINITY;
    for (int i = 0; i < n; i++)
        if (x[i] > m) m = x[i];
    return m;
}

double sampler_log_sum(const float *logits, int n)
{
    const double m = largest(logits, n);
    double sum = 0;
    for (int i = 0; i < n; i++) sum += f64_exp((double)logits[i] - m);
    return m + f64_log(sum);
}

/* The row after penalties, bias and mask: `logits` itself when there are none. */
static const float *adjusted(const sampler *s, sampler_work *w, const float *logits,
                             const uint32_t *mask)
{
    const sampler_params *p = &s->params;
    if (!s->met && !p->n_bias && !mask) return logits;
    float *x = w->row;
    memcpy(x, logits, (size_t)s->n_token * sizeof *x);
    for (int i = 0; i < s->n_seen; i++) {
        const int32_t id = s->seen[i];
        float v = x[id];
        if (p->repetition != 1) v = v > 0 ? v / p->repetition : v * p->repetition;
        const int32_t count = s->output_count[id];
        if (count) v = v - p->frequency * (float)count - p->presence;
        x[id] = v;
    }
    for (int i = 0; i < p->n_bias; i++) x[p->bias[i].id] += p->bias[i].value;
    if (mask)
        for (int id = 0; id < s->n_token; id++)
            if (!(mask[id >> 5] >> (id & 31) & 1)) x[id] = -INFINITY;
    return x;
}

/* Whether the noise of id can exceed `need`: spares two logarithms for nearly every id. G > t needs
 * 1 - u < exp(-t), because 1 - u <= -ln u, and exp(-t) <= 2^-floor(t / ln 2); the bound is one
 * power of two too large, far beyond any rounding. */
static bool can_exceed(uint64_t key, int32_t id, double need)
{
    if (!(need > 2)) return true;
    if (need > 38) return false; /* 1 - u >= 2^-53 bounds the noise by 36.8 */
    const double bound = (double)(2ull << 54 >> (int)(need * 1.4426950408889634)) * 0x1p-54;
    return 1 - rng_uniform(key, id) < bound;
}

/* Largest x/T + G over all ids with x >= lowest. */
static int32_t pick_all(const float *x, int n, double t, uint64_t key, double lowest)
{
    int32_t best = -1;
    double best_value = -INFINITY;
    for (int32_t id = 0; id < n; id++) {
        if (!(x[id] >= lowest) || x[id] == -INFINITY) continue;
        const double score = (double)x[id] / t;
        if (!can_exceed(key, id, best_value - score)) continue;
        const double value = score + rng_gumbel(key, id);
        if (value > best_value) {
            best_value = value;
            best = id;
        }
    }
    return best;
}

static int32_t pick_among(const int32_t *ids, const float *values, int n, double t, uint64_t key)
{
    int32_t best = ids[0];
    double best_value = -INFINITY;
    for (int i = 0; i < n; i++) {
        const double value = (double)values[i] / t + rng_gumbel(key, ids[i]);
        if (value > best_value) {
            best_value = value;
            best = ids[i];
        }
    }
    return best;
}

/* How many of the n candidates (descending) stay under top-p, where `total` is the mass relative to
 * the first; -1 when the mass before the last one is still below p, so that more candidates may
 * belong to the set. */
static int cut_top_p(const float *values, int n, double t, double p, double total)
{
    double before = 0;
    for (int i = 0; i < n; i++) {
        if (i && !(before < p * total)) return i;
        before += f64_exp(((double)values[i] - (double)values[0]) / t);
    }
    return -1;
}

/* Candidates by top-k and top-p into w->ids and w->values, descending; returns how many. */
static int candidates(const sampler *s, sampler_work *w, compute *c, const float *x)
{
    const sampler_params *p = &s->params;
    const int n = s->n_token;
    const double t = p->temperature;
    const bool by_mass = p->top_p < 1;
    if (p->top_k > 0 && p->top_k < n) {
        const int k = compute_topk(c, x, n, p->top_k, w->ids, w->values);
        if (!by_mass) return k;
        double total = 0;
        for (int i = 0; i < k; i++)
            total += f64_exp(((double)w->values[i] - (double)w->values[0]) / t);
        const int kept = cut_top_p(w->values, k, t, p->top_p, total);
        return kept < 0 ? k : kept;
    }
    const double m = largest(x, n);
    double total = 0;
    for (int i = 0; i < n; i++) total += f64_exp(((double)x[i] - m) / t);
    for (int want = 256;; want *= 16) {
        const int k = compute_topk(c, x, n, want < n ? want : n, w->ids, w->values);
        const int kept = cut_top_p(w->values, k, t, p->top_p, total);
        if (kept >= 0) return kept;
        if (k == n) return n;
    }
}

int32_t sampler_pick(const sampler *s, sampler_work *w, compute *c, const float *logits,
                     int position, const uint32_t *mask)
{
    const sampler_params *p = &s->params;
    const float *x = adjusted(s, w, logits, mask);
    if (!(p->temperature >= SAMPLER_GREEDY)) {
        const int32_t best = compute_argmax(c, x, s->n_token);
        return x[best] > -INFINITY ? best : -1;
    }
    const uint64_t key = rng_key(p->seed, s->choice, (uint64_t)position);
    const double t = p->temperature;
    const double below = p->min_p > 0 ? t * f64_log(p->min_p) : -INFINITY; /* of the largest */
    if (p->top_k <= 0 && !(p->top_p < 1))
        return pick_all(x, s->n_token, t, key, (double)largest(x, s->n_token) + below);
    int n = candidates(s, w, c, x);
    if (w->values[0] == -INFINITY) return -1;
    while (n > 1 && ((double)w->values[n - 1] < (double)w->values[0] + below ||
                     w->values[n - 1] == -INFINITY))
        n--;
    return pick_among(w->ids, w->values, n, t, key);
}
