/* avx512.c - AVX-512 F, BW, DQ, VL and VNNI.
 *
 * Integer tiles: vpdpbusd takes four codes of 16 output rows (one plane of a vector) and four
 * activations, broadcast. A group's codes are unpacked once for all rows of a batch; the
 * accumulator of a signed code begins at minus the offset times the sum of activations, so codes
 * stay unsigned. Nothing saturates. */
#define QUERIES 6
#include "compute/cpu/ops.inc"

enum { AHEAD = 4096 }; /* bytes to prefetch ahead of the codes in use */

INLINE __m512 load_scales(dtype t, const uint8_t *p, int from)
{
    if (t == DTYPE_F32) return _mm512_loadu_ps(p + 4 * from);
    const __m256i half = _mm256_loadu_si256((const __m256i *)(const void *)(p + 2 * from));
    if (t == DTYPE_F16) return _mm512_cvtph_ps(half);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}
/* 2^(e-128), subnormals included: half of 2^(e-127), which is 2^-127 for byte 0 */
INLINE __m512 load_e8m0(const uint8_t *p)
{
    const __m512i e = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
    const __m512i power =
        _mm512_mask_blend_epi32(_mm512_cmpeq_epi32_mask(e, _mm512_setzero_si512()),
                                _mm512_slli_epi32(e, 23), _mm512_set1_epi32(0x00400000));
    return _mm512_mul_ps(_mm512_castsi512_ps(power), _mm512_set1_ps(0.5f));
}
INLINE int plane_count(tile_type t)
{
    return t == TILE_A8 ? 1 : t == TILE_A4 || t == TILE_E4 ? 2 : 4;
}
/* codes of a 64-byte vector by plane; e4: twice the value plus 12 */
INLINE void unpack(tile_type t, const uint8_t *p, __m512i *plane)
{
    const __m512i v = _mm512_loadu_si512(p);
    if (t == TILE_A8) {
        plane[0] = v;
        return;
    }
    const int planes = plane_count(t);
    const __m512i mask = _mm512_set1_epi8(planes == 2 ? 15 : 3);
    plane[0] = _mm512_and_si512(v, mask);
    if (planes == 4) {
        plane[1] = _mm512_and_si512(_mm512_srli_epi16(v, 2), mask);
        plane[2] = _mm512_and_si512(_mm512_srli_epi16(v, 4), mask);
        plane[3] = _mm512_and_si512(_mm512_srli_epi16(v, 6), mask);
    } else {
        plane[1] = _mm512_and_si512(_mm512_srli_epi16(v, 4), mask);
    }
    if (t == TILE_E4) {
        const __m512i table = _mm512_broadcast_i32x4(
            _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
        plane[0] = _mm512_shuffle_epi8(table, plane[0]);
        plane[1] = _mm512_shuffle_epi8(table, plane[1]);
    }
}
INLINE int code_offset(tile_type t)
{
    return t == TILE_T2 ? 1 : t == TILE_E4 ? 12 : 0;
}
INLINE bool is_affine(tile_type t)
{
    return t == TILE_A2 || t == TILE_A4 || t == TILE_A8;
}
INLINE int32_t load_four(const int8_t *q)
{
    int32_t x;
    memcpy(&x, q, sizeof x);
    return x;
}
INLINE void store_outputs(const tile_matrix *w, int strip, float *y, __m512 v)
{
    const int left = w->n_out - 16 * strip;
    if (left >= 16) _mm512_storeu_ps(y + 16 * strip, v);
    else _mm512_mask_storeu_ps(y + 16 * strip, tail_mask((size_t)left), v);
}

/* One strip for `rows` rows beginning with `row`, of which `used` are wanted. type, rows and group
 * are constants. */
INLINE void strip_q8(tile_type type, int rows, int group, const tile_matrix *w, const act_q8 *a,
                     int row, int used, float *y, size_t stride, int strip)
{
    enum { MOST = 16 };
    const int groups = w->n_in / group, planes = plane_count(type);
    const int chains = rows <= 2 ? 4 : rows <= 8 ? 2 : 1; /* exact in any order */
    const uint8_t *tile = w->data + (size_t)strip * w->strip_bytes;
    const int8_t *q = a->q + (size_t)row * (size_t)w->n_in;
    const float *scale = a->scale + (size_t)row * (size_t)groups;
    const int32_t *sum = a->sum + (size_t)row * (size_t)groups;
    __m512 acc[MOST];
    for (int m = 0; m < rows; m++) acc[m] = _mm512_setzero_ps();
    for (int g = 0; g < groups; g++) {
        __m512i s[MOST][4];
        const uint8_t *codes = tile;
        for (int m = 0; m < rows; m++) {
            s[m][0] = _mm512_set1_epi32((int)((unsigned)-code_offset(type) * (unsigned)sum[m]));
            for (int c = 1; c < chains; c++) s[m][c] = _mm512_setzero_si512();
        }
#pragma GCC unroll 8
        for (int k = 0; k < group; k += 4 * planes, codes += 64) {
            __m512i plane[4];
            unpack(type, codes, plane);
            _mm_prefetch((const char *)codes + AHEAD, _MM_HINT_T0);
#pragma GCC unroll 16
            for (int m = 0; m < rows; m++)
#pragma GCC unroll 4
                for (int p = 0; p < planes; p++) {
                    const __m512i x = _mm512_set1_epi32(load_four(q + m * group + k + 4 * p));
                    s[m][p % chains] = _mm512_dpbusd_epi32(s[m][p % chains], plane[p], x);
                }
        }
        const __m512 d = type == TILE_E4 ? load_e8m0(codes) : load_scales(w->scale_type, codes, 0);
        for (int m = 0; m < rows; m++) {
            for (int c = 1; c < chains; c++) s[m][0] = _mm512_add_epi32(s[m][0], s[m][c]);
            const __m512 f = _mm512_set1_ps(scale[m]);
            acc[m] = _mm512_fmadd_ps(_mm512_mul_ps(d, f), _mm512_cvtepi32_ps(s[m][0]), acc[m]);
            if (is_affine(type)) {
                const __m512 b = load_scales(w->scale_type, codes, 16);
                acc[m] =
                    _mm512_fmadd_ps(_mm512_mul_ps(b, f), _mm512_set1_ps((float)sum[m]), acc[m]);
            }
        }
        tile += w->tile_bytes;
        q += used * group;
        scale += used;
        sum += used;
    }
    for (int m = 0; m < rows; m++)
        if (m < used) store_outputs(w, strip, y + (size_t)(row + m) * stride, acc[m]);
}

typedef void strip_fn(const tile_matrix *w, const act_q8 *a, int row, int used, float *y,
                      size_t stride, int strip);
#define STRIP(type, rows, suffix, group)                                                        \
    static void type##_##rows##suffix(const tile_matrix *w, const act_q8 *a, int row, int used, \
                                      float *y, size_t stride, int strip)                       \
    {                                                                                           \
        strip_q8(type, rows, group, w, a, row, used, y, stride, strip);                         \
    }
#define EACH_COUNT(M, type, suffix, group) \
    M(type, 1, suffix, group)              \
    M(type, 2, suffix, group)              \
    M(type, 3, suffix, group)              \
    M(type, 4, suffix, group)              \
    M(type, 5, suffix, group)              \
    M(type, 6, suffix, group)              \
    M(type, 8, suffix, group) M(type, 12, suffix, group) M(type, 16, suffix, group)
enum { COUNTS = 9 };
static const int row_counts[COUNTS] = { 1, 2, 3, 4, 5, 6, 8, 12, 16 };
EACH_COUNT(STRIP, TILE_T2, _128, 128) /* the group of the king: its loop is unrolled */
EACH_COUNT(STRIP, TILE_T2, , w->group)
EACH_COUNT(STRIP, TILE_A2, , w->group)
EACH_COUNT(STRIP, TILE_A4, , w->group)
EACH_COUNT(STRIP, TILE_A8, , w->group)
EACH_COUNT(STRIP, TILE_E4, , 32)
#define NAME(type, rows, suffix, group) type##_##rows##suffix,
static strip_fn *const strips[][COUNTS] = {
    { EACH_COUNT(NAME, TILE_T2, , ) }, { EACH_COUNT(NAME, TILE_A2, , ) },
    { EACH_COUNT(NAME, TILE_A4, , ) }, { EACH_COUNT(NAME, TILE_A8, , ) },
    { EACH_COUNT(NAME, TILE_E4, , ) },
};
static strip_fn *const strips_t2_128[COUNTS] = { EACH_COUNT(NAME, TILE_T2, _128, ) };

static void matmul_q8(const tile_matrix *w, const act_q8 *a, int rows, float *y, size_t stride,
                      int from, int to)
{
    strip_fn *const *fn = w->type == TILE_T2 && w->group == 128 ? strips_t2_128 : strips[w->type];
    for (int s = from; s < to; s++)
        for (int row = 0; row < rows; row += CPU_BATCH) {
            const int used = rows - row < CPU_BATCH ? rows - row : CPU_BATCH;
            int c = 0;
            while (row_counts[c] < used) c++;
            fn[c](w, a, row, used, y, stride, s);
        }
}

/* ---- float activations ---- */

/* four of the codes of a lane as values */
INLINE __m512 code_values(tile_type t, __m512i plane, int j)
{
    const __m512i code =
        _mm512_and_si512(_mm512_srli_epi32(plane, (unsigned)(8 * j)), _mm512_set1_epi32(255));
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(code, _mm512_set1_epi32(code_offset(t))));
}
INLINE __m512 quad_end(const __m512 *p)
{
    return _mm512_add_ps(_mm512_add_ps(p[0], p[1]), _mm512_add_ps(p[2], p[3]));
}
/* quad sum of a group of x */
INLINE float quad_sum(const float *x, int n)
{
    __m128 u = _mm_setzero_ps();
    float p[4];
    for (int k = 0; k < n; k += 4) u = _mm_add_ps(u, _mm_loadu_ps(x + k));
    _mm_storeu_ps(p, u);
    return (p[0] + p[1]) + (p[2] + p[3]);
}
INLINE void strip_codes(tile_type type, int rows, const tile_matrix *w, const float *x, float *y,
                        size_t stride, int strip)
{
    enum { MOST = 4 };
    const int group = w->group, planes = plane_count(type);
    const uint8_t *tile = w->data + (size_t)strip * w->strip_bytes;
    __m512 acc[MOST];
    for (int m = 0; m < rows; m++) acc[m] = _mm512_setzero_ps();
    for (int at = 0; at < w->n_in; at += group, tile += w->tile_bytes) {
        __m512 n[MOST][4];
        const uint8_t *codes = tile;
        for (int m = 0; m < rows; m++)
            for (int j = 0; j < 4; j++) n[m][j] = _mm512_setzero_ps();
        for (int k = 0; k < group; k += 4 * planes, codes += 64) {
            __m512i plane[4];
            unpack(type, codes, plane);
            for (int p = 0; p < planes; p++)
                for (int j = 0; j < 4; j++) {
                    const __m512 c = code_values(type, plane[p], j);
                    for (int m = 0; m < rows; m++) {
                        const float v =
                            x[(size_t)m * (size_t)w->n_in + (size_t)(at + k + 4 * p + j)];
                        n[m][j] = _mm512_fmadd_ps(c, _mm512_set1_ps(v), n[m][j]);
                    }
                }
        }
        const __m512 d = type == TILE_E4 ? load_e8m0(codes) : load_scales(w->scale_type, codes, 0);
        for (int m = 0; m < rows; m++) {
            acc[m] = _mm512_fmadd_ps(d, quad_end(n[m]), acc[m]);
            if (!is_affine(type)) continue;
            const float u = quad_sum(x + (size_t)m * (size_t)w->n_in + (size_t)at, group);
            acc[m] =
                _mm512_fmadd_ps(load_scales(w->scale_type, codes, 16), _mm512_set1_ps(u), acc[m]);
        }
    }
    for (int m = 0; m < rows; m++) store_outputs(w, strip, y + (size_t)m * stride, acc[m]);
}
INLINE void strip_floats(tile_type type, int rows, const tile_matrix *w, const float *x, float *y,
                         size_t stride, int strip)
{
    enum { MOST = 4 };
    const uint8_t *tile = w->data + (size_t)strip * w->strip_bytes;
    const dtype t = type == TILE_B16 ? DTYPE_BF16 : DTYPE_F32;
    const int bytes = type == TILE_B16 ? 32 : 64;
    __m512 acc[MOST][4];
    for (int m = 0; m < rows; m++)
        for (int j = 0; j < 4; j++) acc[m][j] = _mm512_setzero_ps();
    for (int k = 0; k < w->n_in; k += 4)
        for (int j = 0; j < 4 && k + j < w->n_in; j++, tile += bytes) {
            const __m512 v = load_scales(t, tile, 0);
            _mm_prefetch((const char *)tile + AHEAD, _MM_HINT_T0);
            for (int m = 0; m < rows; m++)
                acc[m][j] = _mm512_fmadd_ps(
                    v, _mm512_set1_ps(x[(size_t)m * (size_t)w->n_in + (size_t)(k + j)]), acc[m][j]);
        }
    for (int m = 0; m < rows; m++)
        store_outputs(w, strip, y + (size_t)m * stride, quad_end(acc[m]));
}
INLINE void strip_f32(tile_type type, int rows, const tile_matrix *w, const float *x, float *y,
                      size_t stride, int strip)
{
    if (type == TILE_B16 || type == TILE_F32) strip_floats(type, rows, w, x, y, stride, strip);
    else strip_codes(type, rows, w, x, y, stride, strip);
}
typedef void float_fn(const tile_matrix *w, const float *x, float *y, size_t stride, int strip);
#define FLOAT_STRIP(type, rows)                                                                    \
    static void f32_##type##_##rows(const tile_matrix *w, const float *x, float *y, size_t stride, \
                                    int strip)                                                     \
    {                                                                                              \
        strip_f32(type, rows, w, x, y, stride, strip);                                             \
    }
#define FLOAT_COUNTS(type) \
    FLOAT_STRIP(type, 1) FLOAT_STRIP(type, 2) FLOAT_STRIP(type, 3) FLOAT_STRIP(type, 4)
FLOAT_COUNTS(TILE_T2)
FLOAT_COUNTS(TILE_A2)
FLOAT_COUNTS(TILE_A4)
FLOAT_COUNTS(TILE_A8)
FLOAT_COUNTS(TILE_E4)
FLOAT_COUNTS(TILE_B16)
FLOAT_COUNTS(TILE_F32)
#define FLOAT_NAMES(type)                                              \
    {                                                                  \
        f32_##type##_1, f32_##type##_2, f32_##type##_3, f32_##type##_4 \
    }
static float_fn *const float_strips[][4] = {
    FLOAT_NAMES(TILE_T2), FLOAT_NAMES(TILE_A2),  FLOAT_NAMES(TILE_A4),  FLOAT_NAMES(TILE_A8),
    FLOAT_NAMES(TILE_E4), FLOAT_NAMES(TILE_B16), FLOAT_NAMES(TILE_F32),
};
static void matmul_f32(const tile_matrix *w, const float *x, int rows, float *y, size_t stride,
                       int from, int to)
{
    for (int s = from; s < to; s++)
        for (int row = 0; row < rows; row += 4) {
            const int used = rows - row < 4 ? rows - row : 4;
            float_strips[w->type][used - 1](w, x + (size_t)row * (size_t)w->n_in,
                                            y + (size_t)row * stride, stride, s);
        }
}

const cpu_ops avx512_ops = { .name = "avx512",
                             .selfcheck = op_selfcheck,
                             .matmul_q8 = matmul_q8,
                             .matmul_f32 = matmul_f32,
                             OPS_TABLE };
