/* Matrices that share an input, some of them rotated, against sums in double precision over the
 * pack's own rows. */
#include "model/weights.h"
#include "model_fixture.h"

enum { ROWS = 3, WIDTH = 512 };

/* signs, then the normalised Hadamard transform straight from its definition */
static void rotate(const matrix *m, const float *x, double *out)
{
    for (int i = 0; i < WIDTH; i++) {
        out[i] = 0;
        if (m->block == 0) {
            out[i] = x[i];
            continue;
        }
        const int base = i / m->block * m->block;
        for (int j = 0; j < m->block; j++) {
            const double v = (double)x[base + j] * m->signs[base + j];
            out[i] += __builtin_parity((unsigned)((i - base) & j)) ? -v : v;
        }
        out[i] /= sqrt(m->block);
    }
}

static void expect_product(const pack *p, const char *path, int64_t n_out, const float *x,
                           const float *y, double limit)
{
    error e;
    matrix m;
    EXPECT_OK(pack_matrix(p, path, n_out, WIDTH, &m, &e), e);
    float w[WIDTH];
    double in[WIDTH];
    for (int r = 0; r < ROWS; r++) {
        rotate(&m, x + r * WIDTH, in);
        for (int64_t j = 0; j < n_out; j++) {
            double want = 0, size = 0;
            matrix_row_f32(&m, j, DTYPE_F32, w);
            for (int k = 0; k < WIDTH; k++) {
                want += w[k] * in[k];
                size += fabs(w[k] * in[k]);
            }
            EXPECT_NEAR(fabs(y[r * n_out + j] - want), limit * size, "%s[%d] row %d", path, (int)j,
                        r);
        }
    }
}

static void check(compute_mode mode, double limit)
{
    static const char *const paths[] = {
        "model.layers.0.linear_attn.in_proj_qkv",
        "model.layers.0.linear_attn.in_proj_a",
        "model.layers.0.linear_attn.in_proj_z",
        "model.layers.0.linear_attn.in_proj_b",
        "lm_head",
    };
    static const int64_t n_out[] = { 1024, 4, 512, 4, 1024 };
    enum { N = 5 };
    error e;
    compute *c;
    pack *p;
    weights w;
    linear l[N];
    linear_out outs[N];
    EXPECT_OK(compute_open(&c, &(compute_options){ .threads = 2 }, &e), e);
    EXPECT_OK(pack_open(&p, PACKS "king-tiny", NULL, &e), e);
    weights_init(&w);
    for (int i = 0; i < N; i++) {
        EXPECT_OK(weights_matrix(&w, p, paths[i], n_out[i], WIDTH, mode, &l[i], &e), e);
        outs[i] = (linear_out){ &l[i], mem_array((size_t)(ROWS * n_out[i]), sizeof(float)),
                                (size_t)n_out[i] };
    }
    l[4].mode = COMPUTE_F32; /* one that insists on f32, as some of the drafter's do */
    EXPECT_OK(weights_fill(&w, p, c, NULL, NULL, &e), e);
    void *room = mem_alloc(weights_act_bytes(&w, ROWS));
    float x[ROWS * WIDTH], wide[ROWS * (WIDTH + 32)], y[ROWS * 1024];
    rng r = { 4 };
    for (int i = 0; i < ROWS * WIDTH; i++) x[i] = (float)rng_normal(&r);
    for (int i = 0; i < ROWS; i++)
        memcpy(wide + i * (WIDTH + 32), x + i * WIDTH, WIDTH * sizeof *x);
    linear_apply(c, room, wide, ROWS, WIDTH + 32, outs, N); /* rows need not be contiguous */
    for (int i = 0; i < N; i++) {
        const bool dense = l[i].w.type == TILE_F32 || l[i].mode == COMPUTE_F32;
        expect_product(p, paths[i], n_out[i], x, outs[i].y, dense ? 1e-6 : limit);
        linear_apply_one(c, room, &l[i], y, x, ROWS);
        EXPECT_BITS(y, outs[i].y, ROWS * n_out[i]); /* alone or together */
        mem_free(outs[i].y);
    }
    mem_free(room);
    weights_free(&w);
    pack_close(p);
    compute_close(c);
}

TEST(products_in_f32)
{
    check(COMPUTE_F32, 1e-6);
}

/* rounding to int8: at most half a step of 1/127 of the largest value of a group */
TEST(products_in_int8)
{
    check(COMPUTE_INT8, 4e-3);
}
