/* amx.c - AVX-512 with AMX int8 tiles, for matmuls of more than 16 rows.
 *
 * A tile product takes 16 token rows x 64 activations (signed, as they stand in an act_q8) and 16
 * quads of inputs x 16 output rows (unsigned codes, the planes of a weight tile in ascending
 * order), and gives 16 x 16 exact integers: one or two products a group. The group chain then runs
 * on them as in the other tiers. Codes are unpacked once for up to four batches of rows.
 * AMX_EMULATED replaces the tile instructions by loops, so that the layout can be tested on a CPU
 * without them. */
#define QUERIES 6
#include "compute/cpu/ops.inc"

/* of 16 rows that share the unpacked codes; each has a tile register for its sums */
enum { BATCHES = 4 };

typedef struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;

#if defined(AMX_EMULATED)
static uint8_t emulated[8][16][64];

static void tile_begin(void)
{
    memset(emulated, 0xff, sizeof emulated);
}
static void tile_end(void) {}
static void emulate_load(int t, const void *p, size_t stride)
{
    for (size_t i = 0; i < 16; i++) memcpy(emulated[t][i], (const uint8_t *)p + i * stride, 64);
}
static void emulate_store(int t, void *p, size_t stride)
{
    for (size_t i = 0; i < 16; i++) memcpy((uint8_t *)p + i * stride, emulated[t][i], 64);
}
/* sums[m][n] += a[m][4k + j] (signed) * b[k][4n + j] (unsigned) */
static void emulate_product(int sums, int a, int b)
{
    for (int m = 0; m < 16; m++)
        for (int n = 0; n < 16; n++) {
            int32_t sum;
            memcpy(&sum, &emulated[sums][m][4 * n], sizeof sum);
            for (int k = 0; k < 16; k++)
                for (int j = 0; j < 4; j++)
                    sum += (int8_t)emulated[a][m][4 * k + j] * emulated[b][k][4 * n + j];
            memcpy(&emulated[sums][m][4 * n], &sum, sizeof sum);
        }
}
#define TILE_ZERO(t) memset(emulated[t], 0, sizeof emulated[t])
#define TILE_LOAD(t, p, stride) emulate_load(t, p, stride)
#define TILE_STORE(t, p, stride) emulate_store(t, p, stride)
#define TILE_PRODUCT(sums, a, b) emulate_product(sums, a, b)
#else
static void tile_begin(void)
{
    tile_config c = { .palette = 1 };
    for (int t = 0; t < 8; t++) {
        c.row_bytes[t] = 64;
        c.rows[t] = 16;
    }
    _tile_loadconfig(&c);
}
static void tile_end(void)
{
    _tile_release();
}
#define TILE_ZERO(t) _tile_zero(t)
#define TILE_LOAD(t, p, stride) _tile_loadd(t, p, stride)
#define TILE_STORE(t, p, stride) _tile_stored(t, p, stride)
#define TILE_PRODUCT(sums, a, b) _tile_dpbsud(sums, a, b)
#endif
/* registers 0 .. 3 are the sums of a batch, 4 and 5 activations, 6 and 7 codes */
#define BATCH_PRODUCT(b, q, stride, halves) \
    do {                                    \
        TILE_ZERO(b);                       \
        TILE_LOAD(4, q, stride);            \
        TILE_PRODUCT(b, 4, 6);              \
        if ((halves) == 2) {                \
            TILE_LOAD(5, (q) + 64, stride); \
            TILE_PRODUCT(b, 5, 7);          \
        }                                   \
        TILE_STORE(b, sums[b], 64);         \
    } while (0)

INLINE __m512 load_scales(dtype t, const uint8_t *p, int from)
{
    if (t == DTYPE_F32) return _mm512_loadu_ps(p + 4 * from);
    const __m256i half = _mm256_loadu_si256((const __m256i *)(const void *)(p + 2 * from));
    if (t == DTYPE_F16) return _mm512_cvtph_ps(half);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}
/* The planes of a group's codes in ascending order of inputs: 16 or 32 vectors of 64 bytes. */
static void unpack_group(const tile_matrix *w, const uint8_t *codes, uint8_t (*quads)[64])
{
    const int planes = w->type == TILE_A8 ? 1 : w->type == TILE_A4 ? 2 : 4, bits = 8 / planes;
    const __m512i mask = _mm512_set1_epi8((char)((1 << bits) - 1));
    for (int i = 0; i < w->group / 4; i += planes, codes += 64) {
        const __m512i v = _mm512_loadu_si512(codes);
        _mm_prefetch((const char *)codes + 4096, _MM_HINT_T0);
        for (int p = 0; p < planes; p++)
            _mm512_store_si512(
                quads[i + p],
                _mm512_and_si512(_mm512_srl_epi16(v, _mm_cvtsi32_si128(p * bits)), mask));
    }
}
/* one group of the chain for the 16 rows of a batch */
static void chain(const tile_matrix *w, const uint8_t *scales, int32_t (*sums)[16],
                  const float *scale, const int32_t *neg_sum, float (*acc)[16])
{
    const __m512 d = load_scales(w->scale_type, scales, 0);
    const bool ternary = w->type == TILE_T2;
    const __m512 b = ternary ? d : load_scales(w->scale_type, scales, 16);
    for (int m = 0; m < 16; m++) {
        const __m512 f = _mm512_set1_ps(scale[m]);
        __m512i n = _mm512_load_si512(sums[m]);
        __m512 y = _mm512_load_ps(acc[m]);
        if (ternary) n = _mm512_add_epi32(n, _mm512_set1_epi32(neg_sum[m]));
        y = _mm512_fmadd_ps(_mm512_mul_ps(d, f), _mm512_cvtepi32_ps(n), y);
        if (!ternary)
            y = _mm512_fnmadd_ps(_mm512_mul_ps(b, f), _mm512_set1_ps((float)neg_sum[m]), y);
        _mm512_store_ps(acc[m], y);
    }
}
/* One strip for `batches` whole batches of rows beginning with `row`. */
static void strip_tiles(const tile_matrix *w, const act_q8 *a, int row, int batches, float *y,
                        size_t stride, int strip)
{
    const int group = w->group, groups = w->n_in / group, halves = group / 64;
    const uint8_t *tile = w->data + (size_t)strip * w->strip_bytes;
    const size_t code_bytes = (size_t)(16 * group *
                                       (w->type == TILE_A8   ? 8
                                        : w->type == TILE_A4 ? 4
                                                             : 2) /
                                       8);
    _Alignas(64) float acc[BATCHES][16][16];
    memset(acc, 0, sizeof acc);
    for (int g = 0; g < groups; g++, tile += w->tile_bytes) {
        _Alignas(64) uint8_t quads[32][64];
        _Alignas(64) int32_t sums[BATCHES][16][16];
        const int8_t *q[BATCHES];
        size_t at[BATCHES];
        for (int b = 0; b < batches; b++) {
            at[b] = ((size_t)(row + 16 * b) * (size_t)groups) + 16 * (size_t)g;
            q[b] = a->q + at[b] * (size_t)group;
        }
        unpack_group(w, tile, quads);
        TILE_LOAD(6, quads[0], 64);
        if (halves == 2) TILE_LOAD(7, quads[16], 64);
        BATCH_PRODUCT(0, q[0], (size_t)group, halves);
        if (batches > 1) BATCH_PRODUCT(1, q[1], (size_t)group, halves);
        if (batches > 2) BATCH_PRODUCT(2, q[2], (size_t)group, halves);
        if (batches > 3) BATCH_PRODUCT(3, q[3], (size_t)group, halves);
        for (int b = 0; b < batches; b++)
            chain(w, tile + code_bytes, sums[b], a->scale + at[b], a->neg_sum + at[b], acc[b]);
    }
    const int left = w->n_out - 16 * strip;
    for (int m = 0; m < 16 * batches; m++)
        put(y + (size_t)(row + m) * stride + 16 * strip, _mm512_load_ps(acc[m / 16][m % 16]),
            part((size_t)left));
}
static bool has_tiles(const tile_matrix *w)
{
    return w->group >= 64 && w->type != TILE_E4;
}
static void matmul_q8(const tile_matrix *w, const act_q8 *a, int rows, float *y, size_t stride,
                      int from, int to)
{
    const int whole = rows / CPU_BATCH; /* batches; the rest goes to gfni */
    if (!has_tiles(w) || rows <= CPU_BATCH) {
        gfni_ops.matmul_q8(w, a, rows, y, stride, from, to);
        return;
    }
    tile_begin();
    for (int s = from; s < to; s++)
        for (int b = 0; b < whole; b += BATCHES)
            strip_tiles(w, a, CPU_BATCH * b, whole - b < BATCHES ? whole - b : BATCHES, y, stride,
                        s);
    tile_end();
    const int rest = rows % CPU_BATCH;
    if (!rest) return;
    const size_t done = (size_t)(CPU_BATCH * whole), at = done * (size_t)(w->n_in / w->group);
    const act_q8 last = { a->q + at * (size_t)w->group, a->scale + at, a->neg_sum + at };
    gfni_ops.matmul_q8(w, &last, rest, y + done * stride, stride, from, to);
}
static void matmul_f32(const tile_matrix *w, const float *x, int rows, float *y, size_t stride,
                       int from, int to)
{
    avx512_ops.matmul_f32(w, x, rows, y, stride, from, to);
}

/* A tile product of known numbers, besides the arithmetic of the vectors. */
static unsigned selfcheck(void)
{
    _Alignas(64) int8_t a[16][64];
    _Alignas(64) uint8_t b[16][64];
    _Alignas(64) int32_t sums[1][16][16];
    unsigned bad = op_selfcheck();
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 64; j++) {
            a[i][j] = (int8_t)(i * 31 + j * 7 - 127);
            b[i][j] = (uint8_t)(i * 13 + j * 5);
        }
    tile_begin();
    TILE_LOAD(6, b, 64);
    BATCH_PRODUCT(0, &a[0][0], 64, 1);
    tile_end();
    for (int m = 0; m < 16; m++)
        for (int n = 0; n < 16; n++) {
            int32_t want = 0;
            for (int k = 0; k < 64; k++) want += a[m][k] * b[k / 4][4 * n + k % 4];
            if (sums[0][m][n] != want) bad |= CPU_BAD_TILES;
        }
    return bad;
}

const cpu_ops amx_ops = { .name = "amx",
                          .selfcheck = selfcheck,
                          .matmul_q8 = matmul_q8,
                          .matmul_f32 = matmul_f32,
                          OPS_TABLE };
