/* compute.h - the operations of the models.
 *
 * Contracts, for every operation: a row's result depends on that row and the weights alone, never
 * on the number of rows, the threads, or the instruction set; sums follow the canonical orders of
 * docs/kernels.md. Nothing is allocated. A `compute` belongs to one thread at a time (the
 * engine's), which is worker 0 of its pool. All activations are float32, rows contiguous unless a
 * stride (in floats) is given. */
#ifndef COMPUTE_COMPUTE_H
#define COMPUTE_COMPUTE_H
#include "base/pool.h"
#include "compute/tile.h"

typedef struct compute compute;

typedef struct compute_options {
    const char *cpu; /* tier name, or NULL: the best that this CPU has */
    int threads;     /* 0: pool_default_threads */
} compute_options;

/* E_UNSUPPORTED: the tier is not on this CPU. */
status compute_open(compute **out, const compute_options *o, error *e);
void compute_close(compute *c);
const char *compute_tier(const compute *c);
int compute_threads(const compute *c);
pool *compute_pool(compute *c);
/* Space-separated tiers that this CPU can run, best first ("avx512 avx2 ref"). */
const char *compute_tiers(void);
/* Every tier there is, on whatever machine: "ref, avx2, ...". */
enum { COMPUTE_KNOWN_TIERS = 128 };
void compute_known_tiers(char out[COMPUTE_KNOWN_TIERS]);
/* E_ARG: no machine has a tier of that name. */
status compute_check_tier(const char *name, error *e);

/* ---- activations as operands of a matmul ---- */

typedef enum compute_mode { COMPUTE_INT8, COMPUTE_F32 } compute_mode;

/* Rotation of an input vector: signs, then blocks of the normalised Sylvester-Hadamard matrix. */
typedef struct rotation {
    int block;          /* power of two; 0: no rotation */
    const float *signs; /* [n], +1 or -1 */
} rotation;

/* A batch of rows made ready: rotated float32 rows and, where needed, their int8 form with one
 * scale and one code sum per group. The memory is the caller's (compute_act_bytes); q is NULL where
 * that group size was not asked for. */
typedef struct act_q8 {
    int8_t *q;    /* [rows, n] in groups, -127..127; order of the groups: cpu_act_at in cpu/cpu.h */
    float *scale; /* of each group, in the same order */
    int32_t *neg_sum; /* minus the sum of the codes of each group */
} act_q8;
typedef struct act {
    int rows, n;
    const float *x; /* [rows, n] */
    act_q8 g32, g64, g128;
} act;
enum { ACT_F32 = 1, ACT_G32 = 2, ACT_G64 = 4, ACT_G128 = 8 };

/* The ACT_ bit that a matmul with w reads. */
unsigned compute_needs(const tile_matrix *w, compute_mode mode);
size_t compute_act_bytes(int rows, int n, unsigned needs);
/* x [rows, n] with row stride `stride`. The act borrows x when nothing rotates and the stride is n.
 * rot may be NULL. */
void compute_prepare(compute *c, act *a, void *memory, const float *x, int rows, int n,
                     size_t stride, const rotation *rot, unsigned needs);

/* Several matrices with one operand in one pass over the threads:
 * y[r * stride + j] = sum_k W[j][k] a[r][k]. */
typedef struct matmul_out {
    const tile_matrix *w;
    float *y;
    size_t stride;
} matmul_out;
void compute_matmul(compute *c, const act *a, const matmul_out *outs, int n_outs,
                    compute_mode mode);

/* ---- elementwise and norms ---- */

void compute_rmsnorm(compute *c, float *y, const float *x, const float *w, int rows, int n,
                     float eps);
void compute_add(compute *c, float *y, const float *x, size_t n); /* y += x */
/* silu(gate)*up; y may be gate */
void compute_swiglu(compute *c, float *y, const float *gate, const float *up, size_t n);
void compute_softcap(compute *c, float *x, size_t n, float cap); /* cap * tanh(x / cap) */
bool compute_finite(compute *c, const float *x, size_t n);
/* Embedding rows: dequantised from the mapped matrix, inverse rotation for a king (rounded to f16
 * before and after). */
void compute_embed(compute *c, float *y, const matrix *table, const rotation *rot,
                   const int32_t *ids, int rows);
/* Per head of `dim` values at x[row*stride + head*head_stride]: RMSNorm with weight w (NULL: none),
 * then RoPE of the first rotary_dim values at pos[row] (r NULL: none). In place. */
typedef struct rope rope;
status compute_rope_new(rope **out, double theta, int rotary_dim, error *e);
void compute_rope_free(rope *r);
void compute_head_norm_rope(compute *c, float *x, int rows, size_t stride, int heads,
                            size_t head_stride, int dim, const float *w, float eps, const rope *r,
                            const int32_t *pos);

/* ---- gated delta net ---- */

typedef struct gdn_shape {
    int n_k_head, n_v_head, k_dim, v_dim, taps;
} gdn_shape;
static inline int gdn_channels(const gdn_shape *s)
{
    return 2 * s->n_k_head * s->k_dim + s->n_v_head * s->v_dim;
}

/* Causal depthwise convolution over [window (taps-1 rows, oldest first); rows], then SiLU. Windows
 * are not changed. */
typedef struct conv_job {
    int row, rows;       /* rows of x and y that belong to this sequence */
    const float *window; /* [taps - 1, channels] */
} conv_job;
void compute_conv(compute *c, float *y, const float *x, const float *w /* [channels, taps] */,
                  int taps, int channels, const conv_job *jobs, int n_jobs);

/* q and k of conv output u [rows, channels] are l2-normalised in place (epsilon 1e-6 on the sum of
 * squares; q also times k_dim^-1/2). Of each row and head:
 * g = exp(-exp(A_log) softplus(a + dt_bias)), beta = sigmoid(b). */
void compute_gdn_gates(compute *c, const gdn_shape *s, float *u, float *g, float *beta,
                       const float *a, const float *b, const float *a_log, const float *dt_bias,
                       int rows);

/* The recurrence. State [n_v_head, v_dim, k_dim]. For each sequence: first `pending` rows of the
 * old tape are applied to the stored state, S = g*S; S += delta k^T, and written back. Then its
 * rows run in order, each in
 *
 *   S = g*S;  m_i = S_i . k;  delta_i = beta*(v_i - m_i);  S_i += delta_i*k;  y_i = S_i . q
 *
 * Final rows leave the new state in place; provisional rows leave the stored state as it was and
 * fill the new tape. rows may be 0 (only the pending rows are applied). */
typedef struct gdn_tape {
    float *k;     /* [rows, n_k_head * k_dim] */
    float *delta; /* [rows, n_v_head * v_dim] */
    float *g;     /* [rows, n_v_head] */
} gdn_tape;
typedef struct gdn_job {
    int row, rows;
    float *state;
    int pending;
    gdn_tape old; /* read when pending > 0 */
    bool final;
    gdn_tape tape; /* written when not final; never the same memory as old */
} gdn_job;
void compute_gdn(compute *c, const gdn_shape *s, float *y /* [rows, n_v_head*v_dim] */,
                 const float *u, const float *g, const float *beta, const gdn_job *jobs,
                 int n_jobs);
/* o = silu(z) * rmsnorm(y; w [dim]) per value head. */
void compute_gated_norm(compute *c, float *o, const float *y, const float *z, const float *w,
                        int rows, int heads, int dim, float eps);

/* ---- attention ---- */

typedef enum kv_type { KV_F16, KV_F32, KV_Q8 } kv_type;
/* The type called "f16", "f32" or "q8"; NULL: f16. */
status compute_kv_type(kv_type *out, const char *name, error *e);
enum { KV_PAGE = 64 }; /* positions in a page; a page holds keys and values of all layers */

typedef struct kv_layout {
    kv_type type;
    int n_layer, n_kv_head, head_dim;
    size_t head_bytes; /* keys and values of one page, layer, head */
    size_t page_bytes;
} kv_layout;
status compute_kv_layout(kv_layout *l, kv_type type, int n_layer, int n_kv_head, int head_dim,
                         error *e);

/* One sequence: its rows stand at positions pos, pos+1, ... Position p lives in
 * pages[(p / KV_PAGE) % n_pages]. A row at position q sees position p iff
 *
 *   p >= first  and  q - p < window  and  (causal ? p <= q : p < pos + rows) */
typedef struct attn_job {
    int row, rows, pos;
    int first; /* lowest position that exists (0, or where a ring or a late start begins) */
    uint8_t *const *pages;
    int n_pages;
} attn_job;
typedef struct attn_shape {
    int n_head; /* query heads; n_kv_head divides it */
    /* INT32_MAX: none; applies to positions before pos only (a block sees all of itself) */
    int window;
    bool causal;
    float scale; /* head_dim^-1/2 */
} attn_shape;
/* Stores keys and values of the rows, then attends. out [rows, n_head*head_dim]; q with row and
 * head strides; k, v [rows, n_kv_head*head_dim]. */
void compute_kv_attend(compute *c, const attn_shape *s, const kv_layout *l, int layer, float *out,
                       const float *q, size_t q_stride, size_t q_head_stride, const float *k,
                       const float *v, const attn_job *jobs, int n_jobs);
/* Only stores (drafter context). */
void compute_kv_store(compute *c, const kv_layout *l, int layer, const float *k, const float *v,
                      const attn_job *jobs, int n_jobs);
/* out *= sigmoid(gate), gate of head h of a row at gate[row*stride + h*head_stride]. */
void compute_head_gate(compute *c, float *out, const float *gate, size_t stride, size_t head_stride,
                       int rows, int heads, int dim);
/* Keys or values of positions [0, n) as float32 [n_kv_head, n, head_dim]: for tests and capture. */
void compute_kv_read(const kv_layout *l, int layer, bool values, uint8_t *const *pages, int n_pages,
                     int n, float *out);

/* ---- drafter ---- */

/* Grouped dynamic causal convolution over blocks (per job rows row..row+rows-1; the row before the
 * first is zero): y[r][ch] = sum_tap (base[tap][ch] + d[r][tap][ch / group]) * x[r - tap][ch]. */
typedef struct dynconv_job {
    int row, rows;
} dynconv_job;
void compute_dynconv(compute *c, float *y, const float *x, int n, const float *base /* [taps, n] */,
                     const float *d, size_t d_stride /* d[r*d_stride + tap*(n/group) + g] */,
                     int taps, int group, const dynconv_job *jobs, int n_jobs);

/* ---- picking ---- */

/* The k largest of x[0..n), by (value descending, index ascending); NaN counts as -inf. Returns how
 * many (k or n). */
int compute_topk(compute *c, const float *x, int n, int k, int32_t *ids, float *values);
/* The same of each of several rows; ids, values [rows, k]. */
int compute_topk_rows(compute *c, const float *x, size_t stride, int rows, int n, int k,
                      int32_t *ids, float *values);
int32_t compute_argmax(compute *c, const float *x, int n); /* lowest index on ties */
#endif
