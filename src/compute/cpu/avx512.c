/* avx512.c - AVX-512 F, BW, DQ, VL and VNNI. Codes are unpacked by shifts and masks. */
#define QUERIES 6
#include "compute/cpu/ops.inc"

enum { IN_PLACE = 1 };
INLINE __m512i field(__m512i v, int bits, int from, int to)
{
    const __m512i mask = _mm512_set1_epi8((char)(((1 << bits) - 1) << to));
    if (from > to) v = _mm512_srli_epi16(v, (unsigned)(from - to));
    return _mm512_and_si512(v, mask);
}
#include "compute/cpu/tiles512.inc"

/* fewer row counts than a king has */
#define PLAIN_COUNTS(M, ...) \
    M(1, __VA_ARGS__) M(2, __VA_ARGS__) M(4, __VA_ARGS__) M(8, __VA_ARGS__) M(16, __VA_ARGS__)
static const int plain_counts[] = { PLAIN_COUNTS(COUNT, ) };
PLAIN_COUNTS(STRIP, TILE_T2, , w->group)
PLAIN_COUNTS(STRIP, TILE_A2, , w->group)
PLAIN_COUNTS(STRIP, TILE_A4, , w->group)
PLAIN_COUNTS(STRIP, TILE_A8, , w->group)
PLAIN_COUNTS(STRIP, TILE_E4, , 32)
ALL_COUNTS(STRIP, TILE_A8, _64, 64) /* of drafters */
static strip_fn *const plain_strips[][sizeof plain_counts / sizeof *plain_counts] = {
    { PLAIN_COUNTS(NAME, TILE_T2, ) }, { PLAIN_COUNTS(NAME, TILE_A2, ) },
    { PLAIN_COUNTS(NAME, TILE_A4, ) }, { PLAIN_COUNTS(NAME, TILE_A8, ) },
    { PLAIN_COUNTS(NAME, TILE_E4, ) },
};
static strip_fn *const drafter8_strips[] = { ALL_COUNTS(NAME, TILE_A8, _64) };

MANY_STRIP(TILE_T2, 32)
MANY_STRIP(TILE_T2, 64)
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
    if (w->type == TILE_T2 && w->group == 128) return for_rows(king_strips, all_counts, rows);
    if (w->type == TILE_A4 && w->group == 64) return for_rows(drafter4_strips, all_counts, rows);
    if (w->type == TILE_A8 && w->group == 64) return for_rows(drafter8_strips, all_counts, rows);
    return for_rows(plain_strips[w->type], plain_counts, rows);
}
/* ---- float activations ---- */

/* What the codes stand for, by the low four bits of a lane. Codes of two bits repeat. */
INLINE __m512 value_table(tile_type t)
{
    const __m512 nibbles = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512 e2m1_twice =
        _mm512_setr_ps(0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12);
    const __m512 pairs = _mm512_setr_ps(0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3);
    return t == TILE_A4   ? nibbles
           : t == TILE_E4 ? e2m1_twice
           : t == TILE_A2 ? pairs
                          : _mm512_sub_ps(pairs, _mm512_set1_ps(1));
}
/* The values of the codes at bit `bit` of every lane: of up to four bits a look-up, which sees no
 * others; of eight the code itself. */
INLINE __m512 code_values(tile_type t, __m512 table, __m512i codes, int bit)
{
    if (t == TILE_A8) { /* one byte of each lane, and three zeros */
        const __m512i first =
            _mm512_set4_epi32((int)0x8080800c, (int)0x80808008, (int)0x80808004, (int)0x80808000);
        const __m512i byte = _mm512_or_si512(first, _mm512_set1_epi32(bit / 8));
        return _mm512_cvtepi32_ps(_mm512_shuffle_epi8(codes, byte));
    }
    if (bit) codes = _mm512_srli_epi32(codes, (unsigned)bit);
    return _mm512_permutexvar_ps(codes, table);
}
INLINE __m512 quad_end(const __m512 *p)
{
    return _mm512_add_ps(_mm512_add_ps(p[0], p[1]), _mm512_add_ps(p[2], p[3]));
}
/* the quad sum of n floats, a multiple of 4 */
INLINE float quad_sum(const float *x, int n)
{
    __m128 u = _mm_setzero_ps();
    for (int k = 0; k < n; k += 4) u = _mm_add_ps(u, _mm_loadu_ps(x + k));
    float p[4];
    _mm_storeu_ps(p, u);
    return (p[0] + p[1]) + (p[2] + p[3]);
}
enum { FLOAT_ROWS = 4, FLOAT_STRIPS = 4 }; /* of one call, at most */
/* `strips` neighbouring strips, which share the sums of the activations; outputs on the stack. */
INLINE void strips_codes(tile_type type, int rows, const tile_matrix *w, const float *x, float *y,
                         size_t stride, int strip, int strips)
{
    const int group = w->group, planes = plane_count(type), bits = code_bits(type);
    const size_t n_in = (size_t)w->n_in;
    const uint8_t *tile = w->data + (size_t)strip * w->strip_bytes;
    const __m512 table = value_table(type);
    _Alignas(64) float acc[FLOAT_STRIPS][FLOAT_ROWS][16];
    memset(acc, 0, sizeof acc);
    for (int at = 0; at < w->n_in; at += group, tile += w->tile_bytes, x += group) {
        float u[FLOAT_ROWS];
        for (int m = 0; m < rows; m++)
            if (is_affine(type)) u[m] = quad_sum(x + (size_t)m * n_in, group);
        for (int i = 0; i < strips; i++) {
            __m512 n[FLOAT_ROWS][4];
            const uint8_t *codes = tile + (size_t)i * w->strip_bytes;
            for (int m = 0; m < rows; m++)
                for (int j = 0; j < 4; j++) n[m][j] = _mm512_setzero_ps();
            for (int k = 0; k < group; codes += 64) {
                const __m512i v = _mm512_loadu_si512(codes);
                fetch(codes);
                for (int p = 0; p < planes; p++, k += 4)
                    for (int j = 0; j < 4; j++) {
                        const __m512 c = code_values(type, table, v, 8 * j + bits * p);
                        const float *a = x + k + j;
                        for (int m = 0; m < rows; m++, a += n_in)
                            n[m][j] = _mm512_fmadd_ps(c, _mm512_set1_ps(*a), n[m][j]);
                    }
            }
            fetch(codes);
            const scales s = load_tile_scales(type, w, codes);
            for (int m = 0; m < rows; m++) {
                __m512 y_m = _mm512_load_ps(acc[i][m]);
                y_m = _mm512_fmadd_ps(s.d, quad_end(n[m]), y_m);
                if (is_affine(type)) y_m = _mm512_fmadd_ps(s.bias, _mm512_set1_ps(u[m]), y_m);
                _mm512_store_ps(acc[i][m], y_m);
            }
        }
    }
    for (int i = 0; i < strips; i++)
        for (int m = 0; m < rows; m++)
            store_outputs(w, strip + i, y + (size_t)m * stride, _mm512_load_ps(acc[i][m]));
}
INLINE void strip_floats(tile_type type, int rows, const tile_matrix *w, const float *x, float *y,
                         size_t stride, int strip)
{
    const uint8_t *tile = w->data + (size_t)strip * w->strip_bytes;
    const dtype t = type == TILE_B16 ? DTYPE_BF16 : DTYPE_F32;
    const int bytes = type == TILE_B16 ? 32 : 64;
    __m512 acc[FLOAT_ROWS][4];
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
INLINE void strips_f32(tile_type type, int rows, const tile_matrix *w, const float *x, float *y,
                       size_t stride, int strip, int strips)
{
    if (type != TILE_B16 && type != TILE_F32)
        strips_codes(type, rows, w, x, y, stride, strip, strips);
    else
        for (int i = 0; i < strips; i++) strip_floats(type, rows, w, x, y, stride, strip + i);
}
typedef void float_fn(const tile_matrix *w, const float *x, float *y, size_t stride, int strip,
                      int strips);
#define FLOAT_STRIP(type, rows)                                                                    \
    static void f32_##type##_##rows(const tile_matrix *w, const float *x, float *y, size_t stride, \
                                    int strip, int strips)                                         \
    {                                                                                              \
        strips_f32(type, rows, w, x, y, stride, strip, strips);                                    \
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
static float_fn *const float_strips[][FLOAT_ROWS] = {
    FLOAT_NAMES(TILE_T2), FLOAT_NAMES(TILE_A2),  FLOAT_NAMES(TILE_A4),  FLOAT_NAMES(TILE_A8),
    FLOAT_NAMES(TILE_E4), FLOAT_NAMES(TILE_B16), FLOAT_NAMES(TILE_F32),
};
static void matmul_f32(const tile_matrix *w, const float *x, int rows, float *y, size_t stride,
                       int from, int to)
{
    for (int s = from; s < to; s += FLOAT_STRIPS)
        for (int row = 0; row < rows; row += FLOAT_ROWS) {
            const int used = rows - row < FLOAT_ROWS ? rows - row : FLOAT_ROWS;
            const int strips = to - s < FLOAT_STRIPS ? to - s : FLOAT_STRIPS;
            float_strips[w->type][used - 1](w, x + (size_t)row * (size_t)w->n_in,
                                            y + (size_t)row * stride, stride, s, strips);
        }
}

const cpu_ops avx512_ops = { .name = "avx512",
                             .selfcheck = op_selfcheck,
                             .matmul_q8 = matmul_q8,
                             .matmul_f32 = matmul_f32,
                             OPS_TABLE };
