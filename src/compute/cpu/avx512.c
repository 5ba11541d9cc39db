/* avx512.c - AVX-512 F, BW, DQ, VL and VNNI.
 *
 * Integer tiles: vpdpbusd takes four codes of 16 output rows (one plane of a vector) and four
 * activations, broadcast. A group's codes are unpacked once for all rows of a batch; the
 * accumulator of a signed code begins at minus the offset times the sum of activations, so codes
 * stay unsigned. Nothing saturates.
 *
 * Two things bound a strip: the memory its codes come from when rows are few, and ports 0 and 5,
 * which take every vector operation that is not a load, when they are many. So codes are masked
 * where they stand and the sums of upper fields divided at the end where that costs less than
 * shifting, and more than a batch of rows shares codes that were unpacked to the stack. */
#define QUERIES 6
#include "compute/cpu/ops.inc"

/* Under a sanitizer every access is checked: unrolled, that takes the compiler minutes and shows no
 * more than the loop does. */
#ifdef INGOT_SANITIZED
#define UNROLL(n)
#else
#define PRAGMA(text) _Pragma(#text)
#define UNROLL(n) PRAGMA(GCC unroll n)
#endif

enum {
    AHEAD = 4096, /* bytes to prefetch ahead of float weights in use */
    FAR = 8192,   /* of codes: into the second cache, */
    NEAR = 2048,  /* and from there into the first */
    MANY = 64     /* rows that share a group's unpacked codes */
};

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
INLINE int code_bits(tile_type t)
{
    return 8 / plane_count(t);
}
/* Codes of a 64-byte vector by plane, those of plane p times 2^(bits * (p mod sums)); e4 (sums 1):
 * twice the value plus 12. */
INLINE void unpack(tile_type t, int sums, const uint8_t *p, __m512i *plane)
{
    const int planes = plane_count(t), bits = code_bits(t);
    __m512i v = _mm512_loadu_si512(p);
    __asm__("" : "+v"(v)); /* one load, not one for every use */
    for (int i = 0; i < planes; i++) {
        const int field = bits * (i % sums), shift = bits * i - field;
        const __m512i mask = _mm512_set1_epi8((char)(((1 << bits) - 1) << field));
        plane[i] = shift ? _mm512_srli_epi16(v, (unsigned)shift) : v;
        if (planes > 1) plane[i] = _mm512_and_si512(plane[i], mask);
        if (t == TILE_E4) {
            const __m512i table = _mm512_broadcast_i32x4(
                _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
            plane[i] = _mm512_shuffle_epi8(table, plane[i]);
        }
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
typedef int32_t four_codes __attribute__((may_alias, aligned(1)));

/* s + the products of four codes with the four activations at q, in each lane. In assembly because
 * GCC 12 copies the sums before and after the intrinsic and loads the activations apart. */
INLINE __m512i dot(__m512i s, __m512i codes, const int8_t *q)
{
    __asm__("vpdpbusd %2%{1to16%}, %1, %0"
            : "+v"(s)
            : "v"(codes), "m"(*(const four_codes *)(const void *)q));
    return s;
}
INLINE void fetch(const uint8_t *p)
{
    _mm_prefetch((const char *)p + FAR, _MM_HINT_T1);
    _mm_prefetch((const char *)p + NEAR, _MM_HINT_T0);
}
/* where the sum of a row's products begins */
INLINE __m512i sum_begin(tile_type t, const int32_t *neg_sum)
{
    return t == TILE_T2   ? _mm512_set1_epi32(*neg_sum)
           : t == TILE_E4 ? _mm512_set1_epi32((int)((unsigned)code_offset(t) * (unsigned)*neg_sum))
                          : _mm512_setzero_si512();
}
typedef struct scales {
    __m512 d, bias; /* bias: affine only */
} scales;
INLINE scales load_tile_scales(tile_type t, const tile_matrix *w, const uint8_t *p)
{
    scales s = { t == TILE_E4 ? load_e8m0(p) : load_scales(w->scale_type, p, 0),
                 _mm512_setzero_ps() };
    if (is_affine(t)) s.bias = load_scales(w->scale_type, p, 16);
    return s;
}
/* one step of the group chain */
INLINE __m512 chain(tile_type t, __m512 y, __m512i n, const scales *s, float f, int32_t neg_sum)
{
    const __m512 x = _mm512_set1_ps(f);
    y = _mm512_fmadd_ps(_mm512_mul_ps(s->d, x), _mm512_cvtepi32_ps(n), y);
    if (!is_affine(t)) return y;
    const __m512 u = _mm512_cvtepi32_ps(_mm512_set1_epi32(neg_sum));
    return _mm512_fnmadd_ps(_mm512_mul_ps(s->bias, x), u, y);
}
INLINE void store_outputs(const tile_matrix *w, int strip, float *y, __m512 v)
{
    const int left = w->n_out - 16 * strip;
    if (left >= 16) _mm512_storeu_ps(y + 16 * strip, v);
    else _mm512_mask_storeu_ps(y + 16 * strip, tail_mask((size_t)left), v);
}

/* Sums per row, by what unpacking and adding them up cost, and enough to hide the latency. */
INLINE int sum_count(tile_type t, int rows)
{
    if (t == TILE_A8 || t == TILE_E4 || rows > 9) return 1;
    return rows == 1 && plane_count(t) == 4 ? 4 : 2;
}
/* One strip for `rows` rows beginning with `row`, of which `used` are wanted. type, rows and group
 * are constants. */
INLINE void strip_q8(tile_type type, int rows, int group, const tile_matrix *w, const act_q8 *a,
                     int row, int used, float *y, size_t stride, int strip)
{
    enum { MOST = 16 };
    const int groups = w->n_in / group, planes = plane_count(type), sums = sum_count(type, rows);
    const uint8_t *tile = w->data + (size_t)strip * w->strip_bytes;
    const int8_t *q = a->q + (size_t)row * (size_t)w->n_in;
    const float *scale = a->scale + (size_t)row * (size_t)groups;
    const int32_t *neg_sum = a->neg_sum + (size_t)row * (size_t)groups;
    __m512 acc[MOST];
    for (int m = 0; m < rows; m++) acc[m] = _mm512_setzero_ps();
    for (int g = 0; g < groups; g++) {
        __m512i s[MOST][4];
        const uint8_t *codes = tile;
        const int8_t *now = q, *next = q + used * group;
        __asm__("" : "+r"(now), "+r"(next)); /* else GCC makes every address out of the other */
        for (int m = 0; m < rows; m++) {
            s[m][0] = sum_begin(type, neg_sum + m);
            for (int c = 1; c < sums; c++) s[m][c] = _mm512_setzero_si512();
        }
        UNROLL(8)
        for (int k = 0; k < group; k += 4 * planes, codes += 64) {
            __m512i plane[4];
            unpack(type, sums, codes, plane);
            fetch(codes);
            for (int i = 0; rows >= 4 && i < rows * 4 * planes; i += 64) /* of the next group */
                _mm_prefetch((const char *)next + k * rows + i, _MM_HINT_T0);
            UNROLL(4)
            for (int p = 0; p < planes; p++) {
                UNROLL(16)
                for (int m = 0; m < rows; m++)
                    s[m][p % sums] = dot(s[m][p % sums], plane[p], now + m * group + k + 4 * p);
            }
        }
        fetch(codes);
        const scales d = load_tile_scales(type, w, codes);
        for (int m = 0; m < rows; m++) {
            for (int c = 1; c < sums; c++)
                s[m][0] = _mm512_add_epi32(
                    s[m][0], _mm512_srai_epi32(s[m][c], (unsigned)(c * code_bits(type))));
            acc[m] = chain(type, acc[m], s[m][0], &d, scale[m], neg_sum[m]);
        }
        tile += w->tile_bytes;
        q += used * group;
        scale += used;
        neg_sum += used;
    }
    for (int m = 0; m < rows; m++)
        if (m < used) store_outputs(w, strip, y + (size_t)(row + m) * stride, acc[m]);
}

typedef void strip_fn(const tile_matrix *w, const act_q8 *a, int row, int used, float *y,
                      size_t stride, int strip);
#define STRIP(rows, type, suffix, group)                                                        \
    static void type##_##rows##suffix(const tile_matrix *w, const act_q8 *a, int row, int used, \
                                      float *y, size_t stride, int strip)                       \
    {                                                                                           \
        strip_q8(type, rows, group, w, a, row, used, y, stride, strip);                         \
    }
/* the rows that kernels exist for: all that a king verifies often, few for the rest */
#define KING_COUNTS(M, ...) \
    M(1, __VA_ARGS__)       \
    M(2, __VA_ARGS__)       \
    M(3, __VA_ARGS__)       \
    M(4, __VA_ARGS__)       \
    M(5, __VA_ARGS__)       \
    M(6, __VA_ARGS__)       \
    M(7, __VA_ARGS__) M(8, __VA_ARGS__) M(10, __VA_ARGS__) M(12, __VA_ARGS__) M(16, __VA_ARGS__)
#define PLAIN_COUNTS(M, ...) \
    M(1, __VA_ARGS__) M(2, __VA_ARGS__) M(4, __VA_ARGS__) M(8, __VA_ARGS__) M(16, __VA_ARGS__)
#define COUNT(rows, ...) rows,
static const int king_counts[] = { KING_COUNTS(COUNT, ) };
static const int plain_counts[] = { PLAIN_COUNTS(COUNT, ) };
KING_COUNTS(STRIP, TILE_T2, _128, 128) /* the group of the king: its loop is unrolled */
PLAIN_COUNTS(STRIP, TILE_T2, , w->group)
PLAIN_COUNTS(STRIP, TILE_A2, , w->group)
PLAIN_COUNTS(STRIP, TILE_A4, , w->group)
PLAIN_COUNTS(STRIP, TILE_A8, , w->group)
PLAIN_COUNTS(STRIP, TILE_E4, , 32)
PLAIN_COUNTS(STRIP, TILE_A4, _64, 64) /* of drafters */
PLAIN_COUNTS(STRIP, TILE_A8, _64, 64)
#define NAME(rows, type, suffix) type##_##rows##suffix,
static strip_fn *const king_strips[] = { KING_COUNTS(NAME, TILE_T2, _128) };
static strip_fn *const plain_strips[][sizeof plain_counts / sizeof *plain_counts] = {
    { PLAIN_COUNTS(NAME, TILE_T2, ) }, { PLAIN_COUNTS(NAME, TILE_A2, ) },
    { PLAIN_COUNTS(NAME, TILE_A4, ) }, { PLAIN_COUNTS(NAME, TILE_A8, ) },
    { PLAIN_COUNTS(NAME, TILE_E4, ) },
};
static strip_fn *const drafter_strips[][sizeof plain_counts / sizeof *plain_counts] = {
    { PLAIN_COUNTS(NAME, TILE_A4, _64) },
    { PLAIN_COUNTS(NAME, TILE_A8, _64) },
};

/* The planes of a group's codes in ascending order of inputs: group / 4 vectors. */
static void unpack_group(const tile_matrix *w, const uint8_t *codes, __m512i *quads)
{
#define UNPACK(type)                                                                     \
    for (int i = 0; i < w->group / 4; i += plane_count(type), codes += 64, fetch(codes)) \
    unpack(type, 1, codes, quads + i)
    switch (w->type) {
    case TILE_A4: UNPACK(TILE_A4); break;
    case TILE_A8: UNPACK(TILE_A8); break;
    case TILE_E4: UNPACK(TILE_E4); break;
    default: UNPACK(TILE_T2);
    }
#undef UNPACK
}
/* One group of a strip for a whole batch of rows, whose outputs so far stand in acc. The batch that
 * comes next has its activations at `next`. */
INLINE void batch_group(tile_type type, int group, const __m512i *quads, const scales *d,
                        const int8_t *q, const float *scale, const int32_t *neg_sum,
                        const int8_t *next, float (*acc)[16])
{
    __m512i s[CPU_BATCH];
    UNROLL(16)
    for (int m = 0; m < CPU_BATCH; m++) s[m] = sum_begin(type, neg_sum + m);
    UNROLL(2)
    for (int k = 0; k < group; k += 4) {
        _mm_prefetch((const char *)next + CPU_BATCH * k, _MM_HINT_T0);
        UNROLL(16)
        for (int m = 0; m < CPU_BATCH; m++) s[m] = dot(s[m], quads[k / 4], q + m * group + k);
    }
    UNROLL(16)
    for (int m = 0; m < CPU_BATCH; m++)
        _mm512_store_ps(acc[m], chain(type, _mm512_load_ps(acc[m]), s[m], d, scale[m], neg_sum[m]));
}
/* where group g of the whole batch that begins with `row` stands */
INLINE size_t act_of_batch(int row, int groups, int g)
{
    return (size_t)row * (size_t)groups + (size_t)(CPU_BATCH * g);
}
/* One strip for `batches` whole batches of rows beginning with `row`. */
INLINE void strip_many(tile_type type, int group, const tile_matrix *w, const act_q8 *a, int row,
                       int batches, float *y, size_t stride, int strip)
{
    const int groups = w->n_in / group;
    const size_t codes = (size_t)(64 * group / (4 * plane_count(w->type)));
    const uint8_t *tile = w->data + (size_t)strip * w->strip_bytes;
    _Alignas(64) float acc[MANY][16];
    __m512i quads[32];
    memset(acc, 0, (size_t)batches * CPU_BATCH * sizeof *acc);
    for (int g = 0; g < groups; g++, tile += w->tile_bytes) {
        unpack_group(w, tile, quads);
        const scales d = load_tile_scales(type, w, tile + codes);
        for (int b = 0; b < batches; b++) {
            const size_t at = act_of_batch(row + CPU_BATCH * b, groups, g);
            const size_t next = b + 1 < batches ? act_of_batch(row + CPU_BATCH * (b + 1), groups, g)
                                                : act_of_batch(row, groups, g + 1);
            batch_group(type, group, quads, &d, a->q + at * (size_t)group, a->scale + at,
                        a->neg_sum + at, a->q + next * (size_t)group, acc + CPU_BATCH * b);
        }
        for (int m = g; m < CPU_BATCH * batches; m += groups) /* far apart, and slow to come */
            _mm_prefetch((const char *)(y + (size_t)(row + m) * stride + 16 * strip), _MM_HINT_T1);
    }
    for (int m = 0; m < CPU_BATCH * batches; m++)
        store_outputs(w, strip, y + (size_t)(row + m) * stride, _mm512_load_ps(acc[m]));
}
typedef void many_fn(const tile_matrix *w, const act_q8 *a, int row, int batches, float *y,
                     size_t stride, int strip);
#define MANY_STRIP(type, group)                                                                    \
    static void many_##type##_##group(const tile_matrix *w, const act_q8 *a, int row, int batches, \
                                      float *y, size_t stride, int strip)                          \
    {                                                                                              \
        strip_many(type, group, w, a, row, batches, y, stride, strip);                             \
    }
MANY_STRIP(TILE_T2, 32)
MANY_STRIP(TILE_T2, 64)
MANY_STRIP(TILE_T2, 128)
MANY_STRIP(TILE_A8, 32) /* unpacked, all affine codes are the same */
MANY_STRIP(TILE_A8, 64)
MANY_STRIP(TILE_A8, 128)
MANY_STRIP(TILE_E4, 32)
static many_fn *many_for(const tile_matrix *w)
{
    static many_fn *const ternary[] = { many_TILE_T2_32, many_TILE_T2_64, many_TILE_T2_128 };
    static many_fn *const affine[] = { many_TILE_A8_32, many_TILE_A8_64, many_TILE_A8_128 };
    const int i = w->group == 32 ? 0 : w->group == 64 ? 1 : 2;
    return w->type == TILE_E4 ? many_TILE_E4_32 : w->type == TILE_T2 ? ternary[i] : affine[i];
}
static strip_fn *few_for(const tile_matrix *w, int rows)
{
    const bool king = w->type == TILE_T2 && w->group == 128;
    const bool drafter = w->group == 64 && (w->type == TILE_A4 || w->type == TILE_A8);
    const int *counts = king ? king_counts : plain_counts;
    int c = 0;
    while (counts[c] < rows) c++;
    return king      ? king_strips[c]
           : drafter ? drafter_strips[w->type == TILE_A8][c]
                     : plain_strips[w->type][c];
}
/* Strips are the inner loop: the activations of MANY rows stay in the second cache meanwhile. */
static void matmul_q8(const tile_matrix *w, const act_q8 *a, int rows, float *y, size_t stride,
                      int from, int to)
{
    for (int row = 0; row < rows; row += MANY) {
        const int n = rows - row < MANY ? rows - row : MANY;
        const int batches = n > CPU_BATCH ? n / CPU_BATCH : 0, rest = n - CPU_BATCH * batches;
        many_fn *many = many_for(w);
        strip_fn *few = few_for(w, rest);
        for (int s = from; s < to; s++) {
            if (batches) many(w, a, row, batches, y, stride, s);
            if (rest) few(w, a, row + CPU_BATCH * batches, rest, y, stride, s);
        }
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
            unpack(type, 1, codes, plane);
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
