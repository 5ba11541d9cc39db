/* neon.c - Armv8.2 with the dot product extension.
 *
 * sdot by element multiplies four codes of each of four output rows with four activations: one
 * register of 16 activations serves the planes of a vector. */
#define QUERIES 6
#include "compute/cpu/ops.inc"
#include "compute/cpu/tiles128.inc"

/* Planes of one vector (planes x 4 activations from q) into the sums of four output rows. */
INLINE int32x4_t dot_planes(int planes, const int8x16_t *plane, const int8_t *q, int32x4_t s)
{
    if (planes == 1) {
        int32_t four;
        memcpy(&four, q, sizeof four);
        return vdotq_s32(s, plane[0], vreinterpretq_s8_s32(vdupq_n_s32(four)));
    }
    if (planes == 2) {
        const int8x8_t x = vld1_s8(q);
        return vdotq_lane_s32(vdotq_lane_s32(s, plane[0], x, 0), plane[1], x, 1);
    }
    const int8x16_t x = vld1q_s8(q);
    s = vdotq_laneq_s32(vdotq_laneq_s32(s, plane[0], x, 0), plane[1], x, 1);
    return vdotq_laneq_s32(vdotq_laneq_s32(s, plane[2], x, 2), plane[3], x, 3);
}
/* One strip for `rows` of the `all` rows, beginning with `row`. type and rows are constants. */
INLINE void strip_q8(tile_type type, int rows, const tile_matrix *w, const act_q8 *a, int all,
                     int row, float *y, size_t stride, int strip)
{
    enum { MOST = 4 };
    const int group = w->group, groups = w->n_in / group, planes = plane_count(type);
    const uint8_t *tile = w->data + (size_t)strip * w->strip_bytes;
    float32x4_t acc[MOST][4];
    for (int m = 0; m < rows; m++)
        for (int i = 0; i < 4; i++) acc[m][i] = vdupq_n_f32(0);
    for (int g = 0; g < groups; g++, tile += w->tile_bytes) {
        const size_t first = cpu_act_at(all, groups, row, g);
        int32x4_t s[MOST][4];
        const uint8_t *codes = tile;
        for (int m = 0; m < rows; m++) {
            const int32_t u = a->neg_sum[first + (size_t)m];
            for (int i = 0; i < 4; i++) s[m][i] = vdupq_n_s32(code_offset(type) * u);
        }
        for (int k = 0; k < group; k += 4 * planes, codes += 64) {
            __builtin_prefetch(codes + 2048);
            for (int i = 0; i < 4; i++) {
                int8x16_t plane[4];
                unpack(type, codes + 16 * i, plane);
                for (int m = 0; m < rows; m++) {
                    const int8_t *q = a->q + (first + (size_t)m) * (size_t)group + k;
                    s[m][i] = dot_planes(planes, plane, q, s[m][i]);
                }
            }
        }
        for (int m = 0; m < rows; m++) {
            const size_t at = first + (size_t)m;
            for (int i = 0; i < 4; i++)
                acc[m][i] =
                    chain(type, w, codes, i, acc[m][i], s[m][i], a->scale[at], a->neg_sum[at]);
        }
    }
    for (int m = 0; m < rows; m++)
        for (int i = 0; i < 4; i++)
            store_outputs(w, strip, i, y + (size_t)(row + m) * stride, acc[m][i]);
}
#define COUNTS(type) STRIP(type, 1) STRIP(type, 2) STRIP(type, 3) STRIP(type, 4)
COUNTS(TILE_T2)
COUNTS(TILE_A2)
COUNTS(TILE_A4)
COUNTS(TILE_A8)
COUNTS(TILE_E4)
#define NAMES(type)                            \
    {                                          \
        type##_1, type##_2, type##_3, type##_4 \
    }
static strip_fn *const strips[][4] = { NAMES(TILE_T2), NAMES(TILE_A2), NAMES(TILE_A4),
                                       NAMES(TILE_A8), NAMES(TILE_E4) };
static void matmul_q8(const tile_matrix *w, const act_q8 *a, int rows, float *y, size_t stride,
                      int from, int to)
{
    for (int s = from; s < to; s++)
        for (int row = 0; row < rows; row += 4) {
            const int count = rows - row < 4 ? rows - row : 4;
            strips[w->type][count - 1](w, a, rows, row, y, stride, s);
        }
}

/* ---- float activations, one row and four outputs at a time ---- */

INLINE float32x4_t quad_end(const float32x4_t *p)
{
    return v_add(v_add(p[0], p[1]), v_add(p[2], p[3]));
}
/* quad sum of a group of x */
INLINE float quad_sum(const float *x, int n)
{
    float32x4_t u = vdupq_n_f32(0);
    float p[4];
    for (int k = 0; k < n; k += 4) u = v_add(u, v_load(x + k));
    v_store(p, u);
    return (p[0] + p[1]) + (p[2] + p[3]);
}
/* The four codes of each output row (one plane) as four vectors of values. */
INLINE void code_values(tile_type t, int8x16_t plane, float32x4_t *value)
{
    const int32x4_t v = vreinterpretq_s32_s8(plane), offset = vdupq_n_s32(code_offset(t));
    value[0] = vcvtq_f32_s32(vsubq_s32(vshrq_n_s32(vshlq_n_s32(v, 24), 24), offset));
    value[1] = vcvtq_f32_s32(vsubq_s32(vshrq_n_s32(vshlq_n_s32(v, 16), 24), offset));
    value[2] = vcvtq_f32_s32(vsubq_s32(vshrq_n_s32(vshlq_n_s32(v, 8), 24), offset));
    value[3] = vcvtq_f32_s32(vsubq_s32(vshrq_n_s32(v, 24), offset));
}
INLINE float32x4_t part_codes(tile_type t, const tile_matrix *w, const uint8_t *tile,
                              const float *x, int i)
{
    const int group = w->group, planes = plane_count(t);
    float32x4_t acc = vdupq_n_f32(0);
    for (int at = 0; at < w->n_in; at += group, tile += w->tile_bytes) {
        float32x4_t n[4] = { vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0) };
        const uint8_t *codes = tile;
        for (int k = 0; k < group; codes += 64) {
            int8x16_t plane[4];
            unpack(t, codes + 16 * i, plane);
            for (int p = 0; p < planes; p++, k += 4) {
                float32x4_t value[4];
                code_values(t, plane[p], value);
                for (int j = 0; j < 4; j++)
                    n[j] = v_fma(value[j], vdupq_n_f32(x[at + k + j]), n[j]);
            }
        }
        const float32x4_t d =
            t == TILE_E4 ? load_e8m0(codes + 4 * i) : load_scales(w->scale_type, codes, 4 * i);
        acc = v_fma(d, quad_end(n), acc);
        if (is_affine(t))
            acc = v_fma(load_scales(w->scale_type, codes, 16 + 4 * i),
                        vdupq_n_f32(quad_sum(x + at, group)), acc);
    }
    return acc;
}
INLINE void strip_floats(dtype t, const tile_matrix *w, const uint8_t *tile, const float *x,
                         float32x4_t *out)
{
    float32x4_t acc[4][4];
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) acc[i][j] = vdupq_n_f32(0);
    for (int k = 0; k < w->n_in; k += 4)
        for (int j = 0; j < 4 && k + j < w->n_in; j++, tile += t == DTYPE_BF16 ? 32 : 64)
            for (int i = 0; i < 4; i++)
                acc[i][j] = v_fma(load_scales(t, tile, 4 * i), vdupq_n_f32(x[k + j]), acc[i][j]);
    for (int i = 0; i < 4; i++) out[i] = quad_end(acc[i]);
}
static void row_outputs(const tile_matrix *w, const uint8_t *tile, const float *x, float32x4_t *out)
{
    switch (w->type) {
    case TILE_B16: strip_floats(DTYPE_BF16, w, tile, x, out); return;
    case TILE_F32: strip_floats(DTYPE_F32, w, tile, x, out); return;
    default: break;
    }
    for (int i = 0; i < 4; i++) {
        switch (w->type) {
        case TILE_T2: out[i] = part_codes(TILE_T2, w, tile, x, i); break;
        case TILE_A2: out[i] = part_codes(TILE_A2, w, tile, x, i); break;
        case TILE_A4: out[i] = part_codes(TILE_A4, w, tile, x, i); break;
        case TILE_A8: out[i] = part_codes(TILE_A8, w, tile, x, i); break;
        default: out[i] = part_codes(TILE_E4, w, tile, x, i); break;
        }
    }
}
static void matmul_f32(const tile_matrix *w, const float *x, int rows, float *y, size_t stride,
                       int from, int to)
{
    for (int s = from; s < to; s++)
        for (int r = 0; r < rows; r++) {
            float32x4_t out[4];
            row_outputs(w, w->data + (size_t)s * w->strip_bytes, x + (size_t)r * (size_t)w->n_in,
                        out);
            for (int i = 0; i < 4; i++) store_outputs(w, s, i, y + (size_t)r * stride, out[i]);
        }
}

const cpu_ops neon_ops = { .name = "neon",
                           .selfcheck = op_selfcheck,
                           .matmul_q8 = matmul_q8,
                           .matmul_f32 = matmul_f32,
                           OPS_TABLE };
