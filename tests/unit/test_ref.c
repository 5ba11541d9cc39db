/* K7 of the oracle: functions within 2 ulp of f64 and with the bits they have always had; its
 * arithmetic checks itself. The hashes were made with the prototype that the definitions come from;
 * they change only with a definition. */
#include "compute_fixture.h"
#include "compute/cpu/cpu.h"
#include "compute/cpu/fpenv.h"
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

static float float_of(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}
static uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}
TEST(functions_keep_their_bits)
{
    static const uint64_t want[] = { 0x3bbb227f3f0eeab7u, 0x055dd4a182b79d48u, 0x90bde3dec5a0f1a1u,
                                     0xceea677702e4621eu, 0x657cbecabc522de8u };
    for (int f = CPU_EXP; f <= CPU_TANH; f++) {
        uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a over words */
        for (uint32_t i = 0; i < 65536; i++) {
            float x = float_of(i * 65537u), y;
            ref_ops.eval((cpu_function)f, &y, &x, 1);
            hash = (hash ^ bits_of(y)) * 0x100000001b3u;
        }
        if (hash != want[f])
            FAIL("function %d: hash %016" PRIx64 ", want %016" PRIx64, f, hash, want[f]);
    }
}
static double truth(cpu_function f, double x)
{
    switch (f) {
    case CPU_EXP: return exp(x);
    case CPU_SIGMOID: return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
    case CPU_SILU: return x < 0 ? x * (exp(x) / (1 + exp(x))) : x / (1 + exp(-x));
    case CPU_SOFTPLUS: return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
    default: return tanh(x);
    }
}
TEST(K7_functions_within_two_ulp)
{
    for (int f = CPU_EXP; f <= CPU_TANH; f++)
        for (uint32_t i = 0; i < 1u << 20; i++) {
            const float x =
                i % 2 ? float_of(i * 4096u + i % 4096) : (float)((int)i - (1 << 19)) * 0x1p-12f;
            float y;
            if (!isfinite(x)) continue;
            ref_ops.eval((cpu_function)f, &y, &x, 1);
            const double want = truth((cpu_function)f, (double)x);
            if (f == CPU_EXP && x > 0x1.62e42ep+6f) {
                EXPECT(isinf(y));
                continue;
            }
            if (fabs(want) < 0x1p-125) { /* flushed, or the argument itself */
                EXPECT(fabsf(y) <= 0x1p-125f);
                continue;
            }
            if (f == CPU_SILU && x < -87.0f) continue; /* below 1.1e-36: defined as -0 */
            if (!(fabs((double)y - want) <= 2 * ldexp(1, ilogb(want) - 23)))
                FAIL("function %d at %a: got %a, want %a", f, (double)x, (double)y, want);
        }
}
TEST(edges_of_functions)
{
    static const float x[] = { INFINITY, -INFINITY, NAN, 0.0f, -0.0f };
    static const uint32_t want[5][5] = {
        { 0x7f800000, 0, 0x7fc00000, 0x3f800000, 0x3f800000 }, /* exp */
        { 0x3f800000, 0, 0x7fc00000, 0x3f000000, 0x3f000000 }, /* sigmoid */
        { 0x7f800000, 0x80000000, 0x7fc00000, 0, 0x80000000 }, /* silu */
        { 0x7f800000, 0, 0x7fc00000, 0x3f317218, 0x3f317218 }, /* softplus: ln 2 */
        { 0x3f800000, 0xbf800000, 0x7fc00000, 0, 0x80000000 }, /* tanh */
    };
    for (int f = CPU_EXP; f <= CPU_TANH; f++)
        for (int i = 0; i < 5; i++) {
            float y;
            ref_ops.eval((cpu_function)f, &y, &x[i], 1);
            if (bits_of(y) != want[f][i])
                FAIL("function %d of %g: got %08x, want %08x", f, (double)x[i], bits_of(y),
                     want[f][i]);
        }
}
TEST(selfcheck_sees_flush_to_zero)
{
    EXPECT_INT(ref_ops.selfcheck(), 0);
#if defined(__x86_64__)
    const unsigned csr = _mm_getcsr();
    _mm_setcsr(csr | 0x8040); /* FTZ and DAZ, as a library linked with fast-math sets them */
    const unsigned bad = ref_ops.selfcheck();
    const bool ok = fpenv_ok();
    const uint64_t found = fpenv_set();
    const unsigned good = ref_ops.selfcheck();
    fpenv_restore(found);
    _mm_setcsr(csr);
    EXPECT_INT(bad, CPU_BAD_SUBNORM);
    EXPECT(!ok);
    EXPECT_INT(good, 0);
#else
    skip("sets MXCSR");
#endif
}
/* Sums against f64: the error of 16 partial sums of n / 16 terms each. */
TEST(K7_norms_against_f64)
{
    for (int n = 1; n < 6000; n = n * 3 + 1) {
        float *x = random_floats((size_t)n, (uint64_t)n), *w = random_floats((size_t)n, 3),
              *y = floats((size_t)n);
        double sum = 0;
        for (int i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
        ref_ops.rmsnorm(y, x, w, n, 1e-6f);
        const double r = 1 / sqrt(sum / n + 1e-6);
        for (int i = 0; i < n; i++)
            EXPECT(fabs((double)y[i] - (double)x[i] * r * (double)w[i]) <=
                   1e-6 * fabs((double)y[i]));
        mem_free(x);
        mem_free(w);
        mem_free(y);
    }
}
TEST(K7_topk_against_sorting)
{
    float x[200], values[200];
    int32_t ids[200];
    for (int run = 0; run < 50; run++) {
        rng r = { (uint64_t)run };
        for (int i = 0; i < 200; i++) x[i] = (float)rng_below(&r, 40);
        const int k = 1 + (int)rng_below(&r, 199);
        EXPECT_INT(ref_ops.topk(x, 200, k, ids, values), k);
        for (int i = 0; i < k; i++) { /* rank i: exactly i elements come before it */
            int before = 0;
            for (int j = 0; j < 200; j++)
                before += x[j] > x[ids[i]] || (x[j] == x[ids[i]] && j < ids[i]);
            EXPECT_INT(before, i);
            EXPECT(values[i] == x[ids[i]]);
        }
    }
}
