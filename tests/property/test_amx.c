/* The AMX tier with its tile instructions emulated, on a CPU with AVX-512: operand layout, chain,
 * batches. */
#include "compute_fixture.h"
#if defined(__AVX512F__)
#define AMX_EMULATED
#define amx_ops emulated_ops
#include "compute/cpu/amx.c"
#include "compute/cpu/features.h"

static void tile_products(void)
{
    static const int counts[] = { 17, 31, 32, 33, 48, 64, 70, 130 };
    if (!strstr(features_get()->names, "gfni")) skip("no gfni on this machine");
    for (int k = 0; k < WEIGHT_KINDS; k++)
        for (int c = 0; c < 8; c++) {
            enum { N_IN = 256, WIDTH = 40 };
            const int n_out = c % 2 ? 37 : 32, count = counts[c];
            weights w;
            weights_source(&w, &weight_kinds[k], n_out, N_IN, (uint64_t)c, c % 3 == 0);
            weights_tile(&w);
            const int group = w.tiles.group, groups = N_IN / group;
            if (group == 1) {
                weights_free(&w);
                continue;
            }
            const size_t room = (size_t)(count * groups + CPU_BATCH_SLACK);
            const act_q8 a = { mem_zalloc(room * (size_t)group), floats(room),
                               mem_array(room, sizeof(int32_t)) };
            float *x = random_floats((size_t)(count * N_IN), 5);
            float *got = floats((size_t)(count * WIDTH)), *want = floats((size_t)(count * WIDTH));
            for (int r = 0; r < count; r++)
                for (int g = 0; g < groups; g++) {
                    const size_t at = cpu_act_at(count, groups, r, g);
                    a.scale[at] = ref_ops.quantize(a.q + at * (size_t)group, &a.neg_sum[at],
                                                   x + r * N_IN + g * group, group);
                }
            EXPECT_INT(emulated_ops.selfcheck(), 0);
            emulated_ops.matmul_q8(&w.tiles, &a, count, got, WIDTH, 0, tile_strips(&w.tiles));
            ref_ops.matmul_q8(&w.tiles, &a, count, want, WIDTH, 0, tile_strips(&w.tiles));
            if (!same_bits(got, want, (size_t)(count * WIDTH) * sizeof *got))
                FAIL("%s, %d rows", weight_kinds[k].name, count);
            mem_free(a.q);
            mem_free(a.scale);
            mem_free(a.neg_sum);
            mem_free(x);
            mem_free(got);
            mem_free(want);
            weights_free(&w);
        }
}
#else
static void tile_products(void)
{
    skip("this build has no AVX-512");
}
#endif

TEST(K3_K4_tile_products_equal_the_oracle)
{
    tile_products();
}
