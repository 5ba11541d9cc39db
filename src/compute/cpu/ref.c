/* ref.c - every operation in plain C, the way docs/kernels.md defines it.
 *
 * This is the oracle that the other tiers are compared with bit for bit, and what runs on a CPU
 * without a tier of its own. It is written to be read against the definitions: one element at a
 * time, no code shared with the other tiers. fmaf and sqrtf are IEEE operations (correctly
 * rounded); no other function of the C library touches a value. */
#include <math.h>
#include <string.h>
#include "compute/cpu/canon.h"
#include "compute/cpu/cpu.h"
#include "base/banned.h"

static uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}
static float float_of(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* ---- functions ---- */

static float exp_poly(float r)
{
    static const float c[] = {
#define COEFFICIENT(v) v,
        CANON_EXP_POLY(COEFFICIENT)
    };
    float p = c[0];
    for (size_t i = 1; i < sizeof c / sizeof *c; i++) p = fmaf(p, r, c[i]);
    return p;
}
static float log_poly(float f)
{
    static const float c[] = { CANON_LOG_POLY(COEFFICIENT) };
    float p = c[0];
    for (size_t i = 1; i < sizeof c / sizeof *c; i++) p = fmaf(p, f, c[i]);
    return p;
}
static float tanh_poly(float z)
{
    static const float c[] = { CANON_TANH_POLY(COEFFICIENT) };
    float p = c[0];
    for (size_t i = 1; i < sizeof c / sizeof *c; i++) p = fmaf(p, z, c[i]);
    return p;
}

/* x = n ln2 + r (Cody and Waite), |x| below 88: returns n, *r = r. */
static int reduce(float x, float *r)
{
    const float n = fmaf(x, CANON_LOG2E, CANON_MAGIC) - CANON_MAGIC;
    *r = fmaf(-n, CANON_LN2_LO, fmaf(-n, CANON_LN2_HI, x));
    return (int)n;
}
/* x * 2^n for a normal x and result */
static float scale_up(float x, int n)
{
    return float_of(bits_of(x) + ((uint32_t)n << 23));
}

static float ref_exp(float x)
{
    if (x != x) return float_of(CANON_QNAN);
    if (x > CANON_EXP_HI) return float_of(0x7f800000u);
    if (x < CANON_EXP_LO) return 0.0f;
    float r;
    const int n = reduce(x, &r);
    return scale_up(fmaf(exp_poly(r), r, 1.0f), n);
}
/* e^x = result + *low, where low is the rounding error of the last addition; |x| <=
 * -CANON_EXP_LO */
static float exp_two(float x, float *low)
{
    float r;
    const int n = reduce(x, &r);
    const float q = exp_poly(r), p = fmaf(q, r, 1.0f);
    *low = fmaf(q, r, 1.0f - p) * float_of((uint32_t)(127 + n) << 23);
    return scale_up(p, n);
}
/* log(s + c) for s in [1, 2] and its small correction c */
static float log_of_sum(float s, float c)
{
    const uint32_t d = bits_of(s) - CANON_LOG_PIVOT;
    const int k = (int32_t)d >> 23;
    const float m = float_of((d & 0x7fffffu) + CANON_LOG_PIVOT);
    const float f = fmaf(c, float_of((uint32_t)(127 - k) << 23), m - 1.0f);
    const float tail = fmaf(f * f, log_poly(f), (float)k * CANON_LN2_LO);
    return fmaf((float)k, CANON_LN2_HI, f + tail);
}
static float ref_softplus(float x)
{
    if (x != x) return float_of(CANON_QNAN);
    const float a = -fabsf(x), head = x > 0 ? x : 0.0f;
    if (a < CANON_EXP_LO) return head + 0.0f;
    float low;
    const float e = exp_two(a, &low);
    if (a < -32.0f) low = 0.0f; /* else a subnormal low part could make a tie */
    const float s = e + 1.0f, c = (e - (s - 1.0f)) + low;
    return head + log_of_sum(s, c);
}
/* 1 / (1 + e^-x) = result * (1 + *r) */
static float sigmoid_two(float x, float *r)
{
    float low;
    const float e = exp_two(-x, &low);
    const float s = e + 1.0f, b = s - e;
    const float c = ((1.0f - b) + (e - (s - b))) + low;
    const float inv = 1.0f / s;
    *r = fmaf(-c, inv, fmaf(-s, inv, 1.0f));
    return inv;
}
static float ref_sigmoid(float x)
{
    if (x != x) return float_of(CANON_QNAN);
    if (x > 64.0f) return 1.0f;
    if (x < CANON_EXP_LO) return 0.0f;
    float r;
    const float inv = sigmoid_two(x, &r);
    return fmaf(inv, r, inv);
}
static float ref_silu(float x)
{
    if (x != x) return float_of(CANON_QNAN);
    if (x > 64.0f) return x;
    if (x < CANON_EXP_LO) return -0.0f;
    if (fabsf(x) < 0x1p-125f) return copysignf(0.0f, x);
    float r;
    const float y = x * sigmoid_two(x, &r);
    return fmaf(y, r, y);
}
static float ref_tanh(float x)
{
    if (x != x) return float_of(CANON_QNAN);
    if (fabsf(x) < 0x1p-13f) return x;
    const float z = x * x;
    if (fabsf(x) < CANON_TANH_SPLIT) return fmaf(x * z, tanh_poly(z), x);
    const float e = ref_exp(-2.0f * fabsf(x));
    return copysignf((1.0f - e) / (1.0f + e), x);
}
static void ref_eval(cpu_function f, float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        switch (f) {
        case CPU_EXP: y[i] = ref_exp(x[i]); break;
        case CPU_SIGMOID: y[i] = ref_sigmoid(x[i]); break;
        case CPU_SILU: y[i] = ref_silu(x[i]); break;
        case CPU_SOFTPLUS: y[i] = ref_softplus(x[i]); break;
        case CPU_TANH: y[i] = ref_tanh(x[i]); break;
        }
    }
}

/* ---- the two sums ---- */

/* lane sum of x_i * y_i: element i in partial sum i mod 16, then i with i+8, i+4, i+2, i+1 */
static float fold16(float *lane)
{
    for (int half = 8; half; half /= 2)
        for (int i = 0; i < half; i++) lane[i] = lane[i] + lane[i + half];
    return lane[0];
}
static float lane_dot(const float *x, const float *y, int n)
{
    float lane[16] = { 0 };
    for (int i = 0; i < n; i++) lane[i % 16] = fmaf(x[i], y[i], lane[i % 16]);
    return fold16(lane);
}
typedef struct quad {
    float part[4];
} quad;
static void quad_add(quad *q, int k, float a, float b)
{
    q->part[k % 4] = fmaf(a, b, q->part[k % 4]);
}
static float quad_end(const quad *q)
{
    return (q->part[0] + q->part[1]) + (q->part[2] + q->part[3]);
}

/* ---- tiles ---- */

static unsigned tile_code(const uint8_t *tile, int bits, int lane, int k)
{
    const int planes = 8 / bits, z = k / (4 * planes), p = k % (4 * planes) / 4, j = k % 4;
    return tile[64 * z + 4 * lane + j] >> (p * bits) & ((1u << bits) - 1);
}
static int tile_bits(tile_type t)
{
    return t == TILE_A8 ? 8 : t == TILE_A4 || t == TILE_E4 ? 4 : 2;
}
static float number(dtype t, const uint8_t *p, int i)
{
    float v;
    dtype_decode(t, p + (size_t)i * (size_t)dtype_bits(t) / 8, 1, &v);
    return v;
}
/* scale (or with `bias` the bias) of a lane */
static float tile_scale(const tile_matrix *w, const uint8_t *tile, int lane, bool bias)
{
    const uint8_t *p = tile + 16 * w->group * tile_bits(w->type) / 8;
    if (w->type == TILE_E4) return ldexpf(1.0f, (int)p[lane] - 128);
    return number(w->scale_type, p, lane + (bias ? 16 : 0));
}
/* the integer that a code stands for in the sum of products */
static int code_value(tile_type t, unsigned code)
{
    static const int e2m1_twice[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };
    return t == TILE_T2 ? (int)code - 1 : t == TILE_E4 ? e2m1_twice[code] : (int)code;
}
static bool is_affine(tile_type t)
{
    return t == TILE_A2 || t == TILE_A4 || t == TILE_A8;
}

static void ref_matmul_q8(const tile_matrix *w, const act_q8 *a, int rows, float *y, size_t stride,
                          int from, int to)
{
    const int groups = w->n_in / w->group;
    for (int j = 16 * from; j < 16 * to && j < w->n_out; j++) {
        for (int r = 0; r < rows; r++) y[(size_t)r * stride + (size_t)j] = 0;
        for (int g = 0; g < groups; g++) {
            const uint8_t *tile =
                w->data + (size_t)(j / 16) * w->strip_bytes + (size_t)g * w->tile_bytes;
            const float scale = tile_scale(w, tile, j % 16, false);
            int value[128];
            for (int k = 0; k < w->group; k++)
                value[k] = code_value(w->type, tile_code(tile, tile_bits(w->type), j % 16, k));
            for (int r = 0; r < rows; r++) {
                const size_t at = cpu_act_at(rows, groups, r, g);
                const int8_t *q = a->q + at * (size_t)w->group;
                float *out = y + (size_t)r * stride + (size_t)j;
                int32_t n = 0;
                for (int k = 0; k < w->group; k++) n += value[k] * q[k];
                *out = fmaf(scale * a->scale[at], (float)n, *out);
                if (is_affine(w->type))
                    *out = fmaf(tile_scale(w, tile, j % 16, true) * a->scale[at],
                                (float)-a->neg_sum[at], *out);
            }
        }
    }
}
static float float_output(const tile_matrix *w, const uint8_t *tiles, int lane, const float *x)
{
    if (w->type == TILE_B16 || w->type == TILE_F32) {
        quad q = { { 0 } };
        for (int k = 0; k < w->n_in; k++)
            quad_add(&q, k,
                     number(w->type == TILE_B16 ? DTYPE_BF16 : DTYPE_F32,
                            tiles + (size_t)k * w->tile_bytes, lane),
                     x[k]);
        return quad_end(&q);
    }
    float y = 0;
    for (int g = 0; g < w->n_in / w->group; g++) {
        const uint8_t *tile = tiles + (size_t)g * w->tile_bytes;
        quad n = { { 0 } }, u = { { 0 } };
        for (int k = 0; k < w->group; k++) {
            const float v = x[g * w->group + k];
            quad_add(&n, k,
                     (float)code_value(w->type, tile_code(tile, tile_bits(w->type), lane, k)), v);
            quad_add(&u, k, 1.0f, v);
        }
        y = fmaf(tile_scale(w, tile, lane, false), quad_end(&n), y);
        if (is_affine(w->type)) y = fmaf(tile_scale(w, tile, lane, true), quad_end(&u), y);
    }
    return y;
}
static void ref_matmul_f32(const tile_matrix *w, const float *x, int rows, float *y, size_t stride,
                           int from, int to)
{
    for (int j = 16 * from; j < 16 * to && j < w->n_out; j++)
        for (int r = 0; r < rows; r++)
            y[(size_t)r * stride + (size_t)j] =
                float_output(w, w->data + (size_t)(j / 16) * w->strip_bytes, j % 16,
                             x + (size_t)r * (size_t)w->n_in);
}

/* ---- rotation and quantization ---- */

static void transform(float *y, int block)
{
    for (int h = 1; h < block; h *= 2)
        for (int j = 0; j < block; j++)
            if (!(j & h)) {
                const float a = y[j], b = y[j + h];
                y[j] = a + b;
                y[j + h] = a - b;
            }
    const float factor = (float)(1.0 / sqrt((double)block));
    for (int j = 0; j < block; j++) y[j] = y[j] * factor;
}
static void ref_rotate(float *y, const float *x, const float *signs, int block)
{
    for (int j = 0; j < block; j++) y[j] = x[j] * signs[j];
    transform(y, block);
}
static void ref_unrotate(float *y, const float *x, const float *signs, int block)
{
    memmove(y, x, (size_t)block * sizeof *y);
    transform(y, block);
    for (int j = 0; j < block; j++) y[j] = y[j] * signs[j];
}
static float ref_quantize(int8_t *q, int32_t *neg_sum, const float *x, int n)
{
    uint32_t most = 0; /* magnitudes compare like their bits, NaN above all */
    for (int k = 0; k < n; k++)
        if ((bits_of(x[k]) & 0x7fffffffu) > most) most = bits_of(x[k]) & 0x7fffffffu;
    *neg_sum = 0;
    for (int k = 0; k < n; k++) q[k] = 0;
    if (most >= 0x7f800000u) return float_of(CANON_QNAN);
    if (most < CANON_TINY_ROW) return 0.0f;
    const float inverse = 127.0f / float_of(most);
    for (int k = 0; k < n; k++) {
        /* the product is exact in double */
        q[k] = (int8_t)nearbyint((double)x[k] * (double)inverse);
        *neg_sum -= q[k];
    }
    return float_of(most) / 127.0f;
}

/* ---- rows ---- */

static void ref_rmsnorm(float *y, const float *x, const float *w, int n, float eps)
{
    const float r = 1.0f / sqrtf(lane_dot(x, x, n) / (float)n + eps);
    for (int i = 0; i < n; i++) y[i] = w ? (x[i] * r) * w[i] : x[i] * r;
}
static void ref_l2norm(float *x, int n, float factor)
{
    const float r = factor / sqrtf(lane_dot(x, x, n) + 1e-6f);
    for (int i = 0; i < n; i++) x[i] = x[i] * r;
}
static void ref_add(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = y[i] + x[i];
}
static void ref_swiglu(float *y, const float *gate, const float *up, size_t n)
{
    for (size_t i = 0; i < n; i++) y[i] = ref_silu(gate[i]) * up[i];
}
static void ref_softcap(float *x, size_t n, float cap)
{
    for (size_t i = 0; i < n; i++) x[i] = cap * ref_tanh(x[i] / cap);
}
static bool ref_finite(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i])) return false;
    return true;
}
static void ref_rope(float *x, const float *cosine, const float *sine, int half)
{
    for (int i = 0; i < half; i++) {
        const float a = x[i], b = x[i + half];
        x[i] = fmaf(a, cosine[i], -(b * sine[i]));
        x[i + half] = fmaf(a, sine[i], b * cosine[i]);
    }
}
static void ref_gates(float *g, float *beta, const float *a, const float *b, const float *a_log,
                      const float *dt_bias, int n)
{
    for (int i = 0; i < n; i++) {
        g[i] = ref_exp(-(ref_exp(a_log[i]) * ref_softplus(a[i] + dt_bias[i])));
        beta[i] = ref_sigmoid(b[i]);
    }
}
static void ref_gated_norm(float *o, const float *y, const float *z, const float *w, int n,
                           float eps)
{
    const float r = 1.0f / sqrtf(lane_dot(y, y, n) / (float)n + eps);
    for (int i = 0; i < n; i++) o[i] = ref_silu(z[i]) * ((y[i] * r) * w[i]);
}
static void ref_head_gate(float *o, const float *gate, int n)
{
    for (int i = 0; i < n; i++) o[i] = o[i] * ref_sigmoid(gate[i]);
}
static void ref_conv(float *y, const float *x, const float *window, const float *w, int taps,
                     int channels, int rows, int from, int to)
{
    for (int r = 0; r < rows; r++)
        for (int c = from; c < to; c++) {
            float sum = 0;
            for (int t = 0; t < taps; t++) {
                const int row = r + t - (taps - 1); /* negative: in the window */
                const float *in =
                    row < 0 ? window + (taps - 1 + row) * channels : x + row * channels;
                sum = fmaf(w[c * taps + t], in[c], sum);
            }
            y[r * channels + c] = ref_silu(sum);
        }
}
static void ref_dynconv(float *y, const float *x, int n, const float *base, const float *d,
                        int have, int group)
{
    for (int c = 0; c < n; c++) {
        float sum = 0;
        for (int t = 0; t < have; t++)
            sum = fmaf(base[t * n + c] + d[t * (n / group) + c / group], x[c - t * n], sum);
        y[c] = sum;
    }
}

/* ---- gated delta net ---- */

static void ref_gdn(const cpu_gdn *u)
{
    for (int i = 0; i < u->state_rows; i++) {
        float s[CPU_MAX_HEAD], *stored = u->state + i * u->k_dim;
        memcpy(s, stored, (size_t)u->k_dim * sizeof *s);
        for (int r = 0; r < u->pending; r++) {
            const float *k = u->old_k + (size_t)r * u->old_k_stride;
            const float g = u->old_g[(size_t)r * u->g_stride],
                        delta = u->old_delta[(size_t)r * u->y_stride + (size_t)i];
            for (int j = 0; j < u->k_dim; j++) s[j] = fmaf(delta, k[j], g * s[j]);
        }
        if (u->pending) memcpy(stored, s, (size_t)u->k_dim * sizeof *s);
        for (int r = 0; r < u->rows; r++) {
            const float *k = u->k + (size_t)r * u->u_stride, *q = u->q + (size_t)r * u->u_stride;
            const float g = u->g[(size_t)r * u->g_stride], beta = u->beta[(size_t)r * u->g_stride];
            const size_t at = (size_t)r * u->y_stride + (size_t)i;
            for (int j = 0; j < u->k_dim; j++) s[j] = g * s[j];
            const float delta =
                beta * (u->v[(size_t)r * u->u_stride + (size_t)i] - lane_dot(s, k, u->k_dim));
            for (int j = 0; j < u->k_dim; j++) s[j] = fmaf(delta, k[j], s[j]);
            u->y[at] = lane_dot(s, q, u->k_dim);
            if (!u->final) u->delta[at] = delta;
        }
        if (u->final) memcpy(stored, s, (size_t)u->k_dim * sizeof *s);
    }
}

/* ---- attention ---- */

static float saturate_f16(float x)
{
    return x > 65504.0f ? 65504.0f : x < -65504.0f ? -65504.0f : x;
}

/* Byte offset of element d of a slot, in keys or values. */
static size_t kv_offset(kv_type t, int dim, bool value, int slot, int d)
{
    const int at =
        value ? KV_PAGE * dim + slot * dim + d : ((slot / 16) * dim + d) * 16 + slot % 16;
    return (size_t)at * cpu_kv_element(t);
}
static void store_vector(kv_type t, int dim, uint8_t *block, bool value, int slot, const float *x)
{
    int8_t code[CPU_MAX_HEAD];
    if (t == KV_Q8) {
        int32_t neg_sum;
        const float scale = ref_quantize(code, &neg_sum, x, dim);
        memcpy(block + cpu_kv_scales(t, dim) +
                   sizeof scale * (size_t)(value ? KV_PAGE + slot : slot),
               &scale, sizeof scale);
    }
    for (int d = 0; d < dim; d++) {
        uint8_t *p = block + kv_offset(t, dim, value, slot, d);
        const uint16_t half = dtype_f32_to_f16(saturate_f16(x[d]));
        if (t == KV_F32) memcpy(p, &x[d], sizeof x[d]);
        else if (t == KV_F16) memcpy(p, &half, sizeof half);
        else memcpy(p, &code[d], 1);
    }
}
static void ref_kv_store(kv_type t, int dim, uint8_t *block, int slot, const float *k,
                         const float *v)
{
    store_vector(t, dim, block, false, slot, k);
    store_vector(t, dim, block, true, slot, v);
}
/* stored element; for KV_Q8 the code */
static float kv_element(kv_type t, int dim, const uint8_t *block, bool value, int slot, int d)
{
    const uint8_t *p = block + kv_offset(t, dim, value, slot, d);
    uint32_t word;
    uint16_t half;
    switch (t) {
    case KV_F32: memcpy(&word, p, sizeof word); return float_of(word);
    case KV_F16: memcpy(&half, p, sizeof half); return dtype_f16_to_f32(half);
    default: return (float)(int8_t)*p;
    }
}
static float kv_scale(kv_type t, int dim, const uint8_t *block, bool value, int slot)
{
    return t == KV_Q8
               ? number(DTYPE_F32, block + cpu_kv_scales(t, dim), value ? KV_PAGE + slot : slot)
               : 1.0f;
}
static void attend_one(kv_type t, int dim, uint8_t *const *blocks, const cpu_query *q)
{
    float p[CPU_SPAN], most = -INFINITY, lane[16] = { 0 };
    for (int i = q->from; i < q->to; i++) {
        quad sum = { { 0 } };
        for (int d = 0; d < dim; d++)
            quad_add(&sum, d, kv_element(t, dim, blocks[i / KV_PAGE], false, i % KV_PAGE, d),
                     q->q[d]);
        p[i] = quad_end(&sum) * kv_scale(t, dim, blocks[i / KV_PAGE], false, i % KV_PAGE);
        if (p[i] > most) most = p[i];
    }
    for (int i = q->from; i < q->to; i++) {
        p[i] = ref_exp(p[i] - most);
        lane[i % 16] = lane[i % 16] + p[i];
    }
    q->max_sum[0] = most;
    q->max_sum[1] = fold16(lane);
    for (int d = 0; d < dim; d++) {
        float sum = 0;
        for (int i = q->from; i < q->to; i++)
            sum = fmaf(p[i] * kv_scale(t, dim, blocks[i / KV_PAGE], true, i % KV_PAGE),
                       kv_element(t, dim, blocks[i / KV_PAGE], true, i % KV_PAGE, d), sum);
        q->out[d] = sum;
    }
}
static void ref_attend(kv_type t, int dim, uint8_t *const *blocks, const cpu_query *q, int n)
{
    for (int i = 0; i < n; i++) attend_one(t, dim, blocks, &q[i]);
}
static void ref_attend_merge(float *out, float *max_sum, const float *span,
                             const float *span_max_sum, int dim)
{
    if (max_sum[1] == 0) {
        memcpy(out, span, (size_t)dim * sizeof *out);
        memcpy(max_sum, span_max_sum, 2 * sizeof *max_sum);
    } else if (span_max_sum[0] > max_sum[0]) {
        const float shrink = ref_exp(max_sum[0] - span_max_sum[0]);
        for (int d = 0; d < dim; d++) out[d] = fmaf(out[d], shrink, span[d]);
        max_sum[1] = fmaf(max_sum[1], shrink, span_max_sum[1]);
        max_sum[0] = span_max_sum[0];
    } else {
        const float shrink = ref_exp(span_max_sum[0] - max_sum[0]);
        for (int d = 0; d < dim; d++) out[d] = fmaf(span[d], shrink, out[d]);
        max_sum[1] = fmaf(span_max_sum[1], shrink, max_sum[1]);
    }
}
static void ref_attend_end(float *out, const float *max_sum, int dim)
{
    const float inverse = max_sum[1] == 0 ? 0.0f : 1.0f / max_sum[1];
    for (int d = 0; d < dim; d++) out[d] = max_sum[1] == 0 ? 0.0f : out[d] * inverse;
}

/* ---- picking ---- */

static int ref_topk(const float *x, int n, int k, int32_t *ids, float *values)
{
    int count = 0;
    for (int i = 0; i < n; i++) {
        const float v = x[i] != x[i] ? -INFINITY : x[i];
        int at = count;
        while (at > 0 && v > values[at - 1]) at--;
        if (at == k) continue;
        const int moved = (count < k ? count : k - 1) - at;
        memmove(values + at + 1, values + at, (size_t)moved * sizeof *values);
        memmove(ids + at + 1, ids + at, (size_t)moved * sizeof *ids);
        values[at] = v;
        ids[at] = i;
        if (count < k) count++;
    }
    return count;
}
static int32_t ref_argmax(const float *x, int n)
{
    int32_t best = n > 0 ? 0 : -1;
    float most = -INFINITY;
    for (int i = 0; i < n; i++)
        if (x[i] > most) {
            most = x[i];
            best = i;
        }
    return best;
}

/* ---- is this arithmetic IEEE, as compiled and as the thread is set? ---- */

/* Not inlined: with the operands in sight a compiler may fuse elsewhere and not here. */
static __attribute__((noinline)) float two_steps(float a, float b, float c)
{
    return a * b + c;
}

static unsigned ref_selfcheck(void)
{
    volatile float in[8] = { 1.0f, 0x1p-12f, 0x1p-126f, 0.5f, 3.0f, 0x1p+24f, 5.0f, 7.0f };
    const float one = in[0], eps = in[1], tiny = in[2], half = in[3], three = in[4], big = in[5];
    const float y = one + eps, d = -(one + 2 * eps), nan = float_of(CANON_QNAN);
    unsigned bad = 0;
    if (bits_of(fmaf(y, y, d)) != 0x33800000u) bad |= CPU_BAD_FMA;
    if (two_steps(y, y, d) != 0.0f) bad |= CPU_BAD_CONTRACT;
    if (bits_of(tiny * half) != 0x00400000u ||
        bits_of(float_of(0x00400000u) * (one + one)) != 0x00800000u)
        bad |= CPU_BAD_SUBNORM;
    if (bits_of(one + eps * eps) != 0x3f800000u || bits_of(one + 3 * eps * eps) != 0x3f800002u ||
        bits_of(-one - eps * eps * half) != 0xbf800000u)
        bad |= CPU_BAD_ROUND;
    if ((one + big) - big != 0.0f) bad |= CPU_BAD_ASSOC;
    if (bits_of(in[6] / three) != 0x3fd55555u || bits_of(in[7] / three) != 0x40155555u)
        bad |= CPU_BAD_RECIP;
    if (nan == nan || !(nan != nan)) bad |= CPU_BAD_NAN;
    return bad;
}

const cpu_ops ref_ops = {
    .name = "ref",
    .selfcheck = ref_selfcheck,
    .eval = ref_eval,
    .matmul_q8 = ref_matmul_q8,
    .matmul_f32 = ref_matmul_f32,
    .rotate = ref_rotate,
    .unrotate = ref_unrotate,
    .quantize = ref_quantize,
    .rmsnorm = ref_rmsnorm,
    .l2norm = ref_l2norm,
    .add = ref_add,
    .swiglu = ref_swiglu,
    .softcap = ref_softcap,
    .finite = ref_finite,
    .rope = ref_rope,
    .gates = ref_gates,
    .gated_norm = ref_gated_norm,
    .head_gate = ref_head_gate,
    .conv = ref_conv,
    .dynconv = ref_dynconv,
    .gdn = ref_gdn,
    .kv_store = ref_kv_store,
    .attend = ref_attend,
    .attend_merge = ref_attend_merge,
    .attend_end = ref_attend_end,
    .topk = ref_topk,
    .argmax = ref_argmax,
};
