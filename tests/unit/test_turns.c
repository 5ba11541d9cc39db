/* Rotary angles against long double arithmetic, and their bits (hash of the prototype that the
 * definition comes from). */
#include "test.h"
#include <math.h>
#include "compute/cpu/turns.h"

static uint64_t add_bits(uint64_t hash, float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return (hash ^ u) * 0x100000001b3u;
}
TEST(tables_keep_their_bits)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (int k = 0; k < 2; k++) {
        turns t;
        float c[64], s[64];
        EXPECT(turns_init(&t, 1e7, k ? 128 : 64));
        for (uint32_t p = 0; p < 262144; p += p < 200 ? 1 : 997) {
            turns_row(&t, p, c, s);
            for (int i = 0; i < t.half; i++) hash = add_bits(add_bits(hash, c[i]), s[i]);
        }
    }
    if (hash != 0x5eedec8802516765u) FAIL("hash %016" PRIx64, hash);
}
TEST(K7_angles_against_long_double)
{
    static const struct {
        double theta;
        int dim;
    } cases[] = { { 1e7, 64 }, { 1e7, 128 }, { 1e4, 16 }, { 500000.5, 80 }, { 2, 2 } };
    for (int k = 0; k < 5; k++) {
        turns t;
        float c[64], s[64];
        EXPECT(turns_init(&t, cases[k].theta, cases[k].dim));
        for (uint32_t p = 0; p < 300000; p += 1 + p / 5) {
            turns_row(&t, p, c, s);
            for (int i = 0; i < t.half; i++) {
                const long double a =
                    (long double)p * powl((long double)cases[k].theta, -2.0L * i / cases[k].dim);
                EXPECT(fabsl(cosl(a) - (long double)c[i]) < 0x1.01p-25L &&
                       fabsl(sinl(a) - (long double)s[i]) < 0x1.01p-25L);
            }
        }
    }
}
TEST(refuses_other_bases_and_widths)
{
    turns t;
    EXPECT(!turns_init(&t, 1e7, 63) && !turns_init(&t, 1e7, 0) && !turns_init(&t, 1e7, 514));
    EXPECT(!turns_init(&t, 1.0, 64) && !turns_init(&t, (double)NAN, 64) &&
           !turns_init(&t, 0x1p61, 64));
}
