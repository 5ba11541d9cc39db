/* cpu.h - what one instruction set ("tier") has to provide: plain functions over one share of an
 * operation, without threads.
 *
 * Every function is defined in docs/kernels.md in scalar terms; all tiers give the same bits for
 * finite inputs. ref.c is the oracle. Counts may have any tail unless a comment says otherwise; no
 * pointer needs alignment. */
#ifndef COMPUTE_CPU_CPU_H
#define COMPUTE_CPU_CPU_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "compute/compute.h"

enum {
    CPU_SPAN = 512,      /* keys of one attention span, anchored at position 0 */
    CPU_QUERIES = 24,    /* queries of one cpu_span call, at most */
    CPU_MAX_HEAD = 512,  /* head_dim, k_dim: at most, and a multiple of 16 */
    CPU_STATE_ROWS = 16, /* rows of the recurrent state in one cpu_gdn call, at most */
    CPU_MAX_TAPS = 8,
    CPU_BATCH = 16,     /* rows that a matmul takes through a strip at once */
    CPU_BATCH_SLACK = 7 /* a kernel may read, but not use, as many rows more */
};

typedef enum cpu_function { CPU_EXP, CPU_SIGMOID, CPU_SILU, CPU_SOFTPLUS, CPU_TANH } cpu_function;

/* Where group g of a row stands in an act_q8, counted in groups. Rows go in batches of CPU_BATCH,
 * and within a batch the groups of all its rows stand together, so one pointer serves a kernel.
 * Behind the last group CPU_BATCH_SLACK groups may be read. */
static inline size_t cpu_act_at(int rows, int groups, int row, int g)
{
    const int first = row / CPU_BATCH * CPU_BATCH;
    const int batch = rows - first < CPU_BATCH ? rows - first : CPU_BATCH;
    return (size_t)first * (size_t)groups + (size_t)g * (size_t)batch + (size_t)(row - first);
}

/* One sequence's rows over some rows of one head's state. Strides in floats from one token row to
 * the next. */
typedef struct cpu_gdn {
    int k_dim, state_rows, rows, pending;
    float *state; /* [state_rows, k_dim], read and, when final or pending, written */
    bool final;
    const float *k, *q, *v; /* of the head; row strides below; v at the first state row */
    size_t u_stride;        /* of k, q, v */
    const float *g, *beta;
    size_t g_stride; /* of g, beta, old_g */
    float *y;        /* [rows][state_rows] */
    size_t y_stride; /* of y, delta, old_delta */
    float *delta;    /* written when not final */
    const float *old_k, *old_delta, *old_g;
    size_t old_k_stride;
} cpu_gdn;

/* One query head of one row. [from, to): its visible positions within the span; from < to. Writes
 * the span's part: out[dim] = sum p v, max_sum[0] = max score, max_sum[1] = sum p. */
typedef struct cpu_query {
    const float *q; /* [dim], already scaled */
    int from, to;
    float *out, *max_sum;
} cpu_query;

/* Part of a page that belongs to one layer and kv head. Element (slot, d) lies
 *
 *   of keys    at ((slot / 16) * dim + d) * 16 + slot % 16
 *   of values  at KV_PAGE * dim + slot * dim + d
 *
 * KV_Q8 appends float scales: keys [KV_PAGE], values [KV_PAGE]. */
static inline size_t cpu_kv_element(kv_type t)
{
    return t == KV_F32 ? 4 : t == KV_F16 ? 2 : 1;
}
static inline size_t cpu_kv_scales(kv_type t, int dim)
{
    return 2 * (size_t)KV_PAGE * (size_t)dim * cpu_kv_element(t);
}
static inline size_t cpu_kv_bytes(kv_type t, int dim)
{
    return cpu_kv_scales(t, dim) + (t == KV_Q8 ? 2 * KV_PAGE * sizeof(float) : 0);
}

typedef struct cpu_ops {
    const char *name;
    /* 0, or CPU_BAD_ bits: compiled or running with other arithmetic than IEEE */
    unsigned (*selfcheck)(void);
    void (*eval)(cpu_function f, float *y, const float *x, size_t n);

    /* y[r * stride + 16 * s + lane] for rows r < rows and strips s in [from, to), outputs beyond
     * n_out not written */
    void (*matmul_q8)(const tile_matrix *w, const act_q8 *a, int rows, float *y, size_t stride,
                      int from, int to);
    void (*matmul_f32)(const tile_matrix *w, const float *x, int rows, float *y, size_t stride,
                       int from, int to);

    /* one block: signs, transform, 1/sqrt(block); y may be x */
    void (*rotate)(float *y, const float *x, const float *signs, int block);
    void (*unrotate)(float *y, const float *x, const float *signs, int block);
    /* one group: 32, 64, 128 or a head; *neg_sum: minus the sum of the codes; returns the scale */
    float (*quantize)(int8_t *q, int32_t *neg_sum, const float *x, int group);

    /* w NULL: none; y may be x */
    void (*rmsnorm)(float *y, const float *x, const float *w, int n, float eps);
    void (*l2norm)(float *x, int n, float factor); /* x * (factor / sqrt(sum x^2 + 1e-6)) */
    void (*add)(float *y, const float *x, size_t n);
    void (*swiglu)(float *y, const float *gate, const float *up, size_t n);
    void (*softcap)(float *x, size_t n, float cap);
    bool (*finite)(const float *x, size_t n);
    void (*rope)(float *x, const float *cosine, const float *sine, int half);
    void (*gates)(float *g, float *beta, const float *a, const float *b, const float *a_log,
                  const float *dt_bias, int n);
    void (*gated_norm)(float *o, const float *y, const float *z, const float *w, int n, float eps);
    void (*head_gate)(float *o, const float *gate, int n);
    /* channels [from, to) of all rows of one sequence; row stride of x, y and window is
     * `channels` */
    void (*conv)(float *y, const float *x, const float *window, const float *w, int taps,
                 int channels, int rows, int from, int to);
    /* one row; x - n, x - 2n ... are the rows before it, of which taps 1..have-1 exist */
    void (*dynconv)(float *y, const float *x, int n, const float *base, const float *d, int have,
                    int group);
    void (*gdn)(const cpu_gdn *u);

    void (*kv_store)(kv_type t, int dim, uint8_t *block, int slot, const float *k, const float *v);
    /* Of one span: its blocks, and those of the span that is read next, of which any may be
     * NULL. */
    void (*attend)(kv_type t, int dim, uint8_t *const *blocks /* [2 * CPU_SPAN / KV_PAGE] */,
                   const cpu_query *q, int n);
    /* folds a span into (out, max_sum); max_sum[1] == 0: nothing there yet */
    void (*attend_merge)(float *out, float *max_sum, const float *span, const float *span_max_sum,
                         int dim);
    /* out * (1 / sum); 0 when nothing was seen */
    void (*attend_end)(float *out, const float *max_sum, int dim);

    int (*topk)(const float *x, int n, int k, int32_t *ids, float *values);
    int32_t (*argmax)(const float *x, int n);
} cpu_ops;

enum {
    CPU_BAD_CONTRACT = 1, /* a*b+c written as two operations was fused */
    CPU_BAD_FMA = 2,      /* fma was not fused */
    CPU_BAD_SUBNORM = 4,  /* subnormal inputs or results are flushed */
    CPU_BAD_ROUND = 8,    /* not round to nearest even */
    CPU_BAD_ASSOC = 16,   /* (a+b)-b was simplified */
    CPU_BAD_RECIP = 32,   /* x/y became x*(1/y) */
    CPU_BAD_NAN = 64,     /* comparisons assume that NaN does not exist */
    CPU_BAD_TILES = 128   /* a tile product is wrong */
};

extern const cpu_ops ref_ops;
#if defined(__x86_64__)
extern const cpu_ops avx2_ops, avxvnni_ops, avx512_ops, gfni_ops, amx_ops;
#elif defined(__aarch64__)
extern const cpu_ops neon_ops, i8mm_ops;
#endif
#endif
