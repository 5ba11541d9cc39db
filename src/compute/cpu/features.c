/* features.c - which tiers this CPU and system can run. Compiled without any instruction-set flag.
 */
#include "compute/cpu/features.h"
#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#endif
#include "base/banned.h"

#if defined(__x86_64__)
enum { AVX2 = 1, AVXVNNI = 2, AVX512 = 4 };
static const features table[] = {
    { AVX512 | AVXVNNI | AVX2,
      "avx512 avxvnni avx2 ref",
      { &cpu_avx512, &cpu_avxvnni, &cpu_avx2, &cpu_ref, NULL } },
    { AVX512 | AVX2, "avx512 avx2 ref", { &cpu_avx512, &cpu_avx2, &cpu_ref, NULL } },
    { AVXVNNI | AVX2, "avxvnni avx2 ref", { &cpu_avxvnni, &cpu_avx2, &cpu_ref, NULL } },
    { AVX2, "avx2 ref", { &cpu_avx2, &cpu_ref, NULL } },
    { 0, "ref", { &cpu_ref, NULL } },
};

/* register state that the system saves when it switches threads */
static uint64_t saved_state(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}
static unsigned detect(void)
{
    enum { YMM = 0x6, ZMM = 0xe6 }; /* XCR0 */
    unsigned a, b, c, d, have = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) return 0; /* OSXSAVE */
    const uint64_t saved = saved_state();
    const bool fma = c >> 12 & 1, f16c = c >> 29 & 1;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !fma || !f16c) return 0;
    if ((saved & YMM) == YMM && b >> 5 & 1) have |= AVX2;
    const unsigned avx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31; /* F DQ BW VL */
    if ((saved & ZMM) == ZMM && (b & avx512) == avx512 && c >> 11 & 1) have |= AVX512;
    if (have && __get_cpuid_count(7, 1, &a, &b, &c, &d) && a >> 4 & 1) have |= AVXVNNI;
    return have;
}

#elif defined(__aarch64__)
enum { DOT = 1 };
static const features table[] = {
    { DOT, "neon ref", { &cpu_neon, &cpu_ref, NULL } },
    { 0, "ref", { &cpu_ref, NULL } },
};
#if defined(__linux__)
static unsigned detect(void)
{
    return getauxval(AT_HWCAP) & HWCAP_ASIMDDP ? DOT : 0;
}
#elif defined(__APPLE__)
static unsigned detect(void)
{
    int has = 0;
    size_t size = sizeof has;
    return sysctlbyname("hw.optional.arm.FEAT_DotProd", &has, &size, NULL, 0) == 0 && has ? DOT : 0;
}
#else
static unsigned detect(void)
{
    return 0;
}
#endif

#else
static const features table[] = { { 0, "ref", { &cpu_ref, NULL } } };

static unsigned detect(void)
{
    return 0;
}
#endif

const features *features_get(void)
{
    const unsigned have = detect();
    const features *f = table;
    while (f->needs & ~have) f++; /* the last one needs nothing */
    return f;
}
