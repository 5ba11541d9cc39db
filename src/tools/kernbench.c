/* kernbench.c - see kernbench.h. */
#include "tools/kernbench.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "tools/bandwidth.h"
#include "base/banned.h"

enum { N_OUT = 17408, N_IN = 5120, GROUP = 128, MOST_ROWS = 64 };
const int kernbench_rows[KERNBENCH_COUNTS] = { 1, 2, 3, 4, 8, 16, 64 };

typedef struct bench {
    compute *c;
    tile_matrix w; /* data: `copies` matrices one after the other */
    size_t copies;
    uint8_t *tiles;
    float *y;
    act a;
} bench;

/* Each worker fills the tiles that it will read, so that they lie on its own node. */
static void fill(void *arg, int worker, int workers)
{
    bench *b = arg;
    const size_t tile = b->w.tile_bytes, tiles = b->copies * tile_bytes(&b->w) / tile;
    rng r = { (uint64_t)worker };
    for (size_t t = tiles / (size_t)workers * (size_t)worker; t < tiles; t++) {
        if (worker + 1 < workers && t >= tiles / (size_t)workers * ((size_t)worker + 1)) break;
        uint8_t *at = b->tiles + t * tile;
        for (size_t i = 0; i < tile - 32; i += 8) {
            const uint64_t word = rng_next(&r), odd = word & UINT64_C(0x5555555555555555);
            const uint64_t codes = word & ~(odd << 1); /* no code 3 */
            memcpy(at + i, &codes, sizeof codes);
        }
        for (size_t i = tile - 32; i < tile; i += 2) {
            const uint16_t scale = (uint16_t)(0x2000 + (rng_next(&r) & 0x3ff)); /* about 0.01 */
            memcpy(at + i, &scale, sizeof scale);
        }
    }
}
/* seconds for one matrix with `rows` rows */
static double time_rows(bench *b, int rows)
{
    act a = b->a;
    tile_matrix w = b->w;
    a.rows = rows;
    const int64_t start = clock_ns();
    for (size_t i = 0; i < b->copies; i++) {
        w.data = b->tiles + i * tile_bytes(&w);
        const matmul_out o = { &w, b->y, N_OUT };
        compute_matmul(b->c, &a, &o, 1, COMPUTE_INT8);
    }
    return (double)(clock_ns() - start) * 1e-9 / (double)b->copies;
}
static void measure(kernbench_result *r, bench *b, int turns)
{
    double read = 1e9, best[KERNBENCH_COUNTS];
    for (int i = 0; i < KERNBENCH_COUNTS; i++) best[i] = 1e9;
    for (int turn = 0; turn < turns; turn++) {
        const double s =
            bandwidth_time(compute_pool(b->c), b->tiles, b->copies * tile_bytes(&b->w));
        read = s < read ? s : read;
        for (int i = 0; i < KERNBENCH_COUNTS; i++) {
            const double t = time_rows(b, kernbench_rows[i]);
            best[i] = t < best[i] ? t : best[i];
        }
    }
    const double bytes = (double)tile_bytes(&b->w);
    r->read_gb_s = bytes * (double)b->copies / read * 1e-9;
    for (int i = 0; i < KERNBENCH_COUNTS; i++) {
        r->ms[i] = best[i] * 1e3;
        r->gb_s[i] = bytes / best[i] * 1e-9;
        r->gmac_s[i] = (double)N_OUT * N_IN * kernbench_rows[i] / best[i] * 1e-9;
        r->cost[i] = best[i] / best[0];
    }
}
status kernbench_run(kernbench_result *r, compute *c, size_t bytes, int turns, error *e)
{
    bench b = { .c = c,
                .w = { .type = TILE_T2,
                       .scale_type = DTYPE_F16,
                       .n_out = N_OUT,
                       .n_in = N_IN,
                       .group = GROUP,
                       .tile_bytes = GROUP * TILE_ROWS / 4 + 2 * TILE_ROWS } };
    b.w.strip_bytes = b.w.tile_bytes * (N_IN / GROUP);
    b.copies = bytes > tile_bytes(&b.w) ? bytes / tile_bytes(&b.w) : 1;
    const size_t total = b.copies * tile_bytes(&b.w);
    float *x = mem_alloc(sizeof *x * MOST_ROWS * N_IN);
    void *memory = mem_alloc(compute_act_bytes(MOST_ROWS, N_IN, ACT_G128));
    b.y = mem_alloc(sizeof *b.y * MOST_ROWS * N_OUT);
    b.tiles = mem_map(total);
    status s = OK;
    if (x && memory && b.y && b.tiles) {
        rng g = { 1 };
        for (int i = 0; i < MOST_ROWS * N_IN; i++) x[i] = (float)rng_normal(&g);
        compute_prepare(c, &b.a, memory, x, MOST_ROWS, N_IN, N_IN, NULL, ACT_G128);
        pool_run(compute_pool(c), fill, &b);
        measure(r, &b, turns);
    } else {
        s = error_set(e, E_NOMEM, "kernel bench: no memory for %zu bytes of tiles", total);
    }
    if (b.tiles) mem_unmap(b.tiles, total);
    mem_free(b.y);
    mem_free(memory);
    mem_free(x);
    return s;
}
