/* features.c - which tiers this CPU and system can run. Compiled without any instruction-set flag.
 */
#include "compute/cpu/features.h"
#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#endif
#include "base/banned.h"

const char *const features_known[] = { "ref", "avx2", "avxvnni", "avx512", "gfni",
                                       "amx", "neon", "i8mm",    NULL };

#if defined(__x86_64__)
enum { AVX2 = 1, AVXVNNI = 2, AVX512 = 4, GFNI = 8, AMX = 16 };
static const features table[] = {
    { AMX | GFNI | AVX512 | AVXVNNI | AVX2,
      "amx gfni avx512 avxvnni avx2 ref",
      { &amx_ops, &gfni_ops, &avx512_ops, &avxvnni_ops, &avx2_ops, &ref_ops, NULL } },
    { GFNI | AVX512 | AVXVNNI | AVX2,
      "gfni avx512 avxvnni avx2 ref",
      { &gfni_ops, &avx512_ops, &avxvnni_ops, &avx2_ops, &ref_ops, NULL } },
    { GFNI | AVX512 | AVX2,
      "gfni avx512 avx2 ref",
      { &gfni_ops, &avx512_ops, &avx2_ops, &ref_ops, NULL } },
    { AVX512 | AVXVNNI | AVX2,
      "avx512 avxvnni avx2 ref",
      { &avx512_ops, &avxvnni_ops, &avx2_ops, &ref_ops, NULL } },
    { AVX512 | AVX2, "avx512 avx2 ref", { &avx512_ops, &avx2_ops, &ref_ops, NULL } },
    { AVXVNNI | AVX2, "avxvnni avx2 ref", { &avxvnni_ops, &avx2_ops, &ref_ops, NULL } },
    { AVX2, "avx2 ref", { &avx2_ops, &ref_ops, NULL } },
    { 0, "ref", { &ref_ops, NULL } },
};

/* register state that the system saves when it switches threads */
static uint64_t saved_state(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}
/* Linux lends the tile registers to a process that asks. */
static bool may_use_tiles(void)
{
#if defined(__linux__)
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
#else
    return false;
#endif
}
static unsigned detect(void)
{
    enum { YMM = 0x6, ZMM = 0xe6, TILES = 0x60000 }; /* XCR0 */
    unsigned a, b, c, d, have = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) return 0; /* OSXSAVE */
    const uint64_t saved = saved_state();
    const bool fma = c >> 12 & 1, f16c = c >> 29 & 1;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !fma || !f16c) return 0;
    if ((saved & YMM) == YMM && b >> 5 & 1) have |= AVX2;
    const unsigned avx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31; /* F DQ BW VL */
    if ((saved & ZMM) == ZMM && (b & avx512) == avx512 && c >> 11 & 1) have |= AVX512;
    if (have & AVX512 && c >> 8 & 1) have |= GFNI;
    const bool tiles = (d >> 24 & 3) == 3; /* AMX-TILE, AMX-INT8 */
    if (have & GFNI && tiles && (saved & TILES) == TILES && may_use_tiles()) have |= AMX;
    if (have && __get_cpuid_count(7, 1, &a, &b, &c, &d) && a >> 4 & 1) have |= AVXVNNI;
    return have;
}

#elif defined(__aarch64__)
enum { DOT = 1, I8MM = 2 };
static const features table[] = {
    { I8MM | DOT, "i8mm neon ref", { &i8mm_ops, &neon_ops, &ref_ops, NULL } },
    { DOT, "neon ref", { &neon_ops, &ref_ops, NULL } },
    { 0, "ref", { &ref_ops, NULL } },
};
#if defined(__linux__)
static unsigned detect(void)
{
    const unsigned have = getauxval(AT_HWCAP) & HWCAP_ASIMDDP ? DOT : 0;
    return getauxval(AT_HWCAP2) & HWCAP2_I8MM ? have | I8MM : have;
}
#elif defined(__APPLE__)
static bool has(const char *feature)
{
    int yes = 0;
    size_t size = sizeof yes;
    return sysctlbyname(feature, &yes, &size, NULL, 0) == 0 && yes;
}
static unsigned detect(void)
{
    const unsigned have = has("hw.optional.arm.FEAT_DotProd") ? DOT : 0;
    return has("hw.optional.arm.FEAT_I8MM") ? have | I8MM : have;
}
#else
static unsigned detect(void)
{
    return 0;
}
#endif

#else
static const features table[] = { { 0, "ref", { &ref_ops, NULL } } };

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
