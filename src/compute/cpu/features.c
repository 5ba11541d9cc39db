/* features.c - which tiers this CPU and system can run. Compiled without any instruction-set
 * flag. */
#include "compute/cpu/features.h"

#include <pthread.h>
#include <stdio.h>
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

enum { AVX2 = 1, AVXVNNI = 2, AVX512 = 4, GFNI = 8, AMX = 16, DOT = 32, I8MM = 64 };

/* Tiers of another architecture are known by name alone. */
#if defined(__x86_64__)
#define X86(ops) &ops
#else
#define X86(ops) NULL
#endif
#if defined(__aarch64__)
#define ARM(ops) &ops
#else
#define ARM(ops) NULL
#endif
/* Every tier there is, the best of a CPU last. */
static const struct {
    const char *name;
    unsigned needs;
    const cpu_ops *ops;
} table[] = {
    { "ref", 0, &ref_ops },
    { "avx2", AVX2, X86(avx2_ops) },
    { "avxvnni", AVXVNNI | AVX2, X86(avxvnni_ops) },
    { "avx512", AVX512 | AVX2, X86(avx512_ops) },
    { "gfni", GFNI | AVX512 | AVX2, X86(gfni_ops) },
    { "amx", AMX | GFNI | AVX512 | AVX2, X86(amx_ops) },
    { "neon", DOT, ARM(neon_ops) },
    { "i8mm", I8MM | DOT, ARM(i8mm_ops) },
};
enum { TIERS = sizeof table / sizeof *table };
_Static_assert((int)TIERS <= (int)FEATURES_MOST, "every tier has room in `features`");

#if defined(__x86_64__)
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
static unsigned detect(void)
{
    return 0;
}
#endif

/* What the machine has does not change: found once. */
static features found;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find(void)
{
    const unsigned have = detect();
    size_t len = 0;
    int n = 0;
    for (int i = TIERS - 1; i >= 0; i--) {
        if (!table[i].ops || table[i].needs & ~have) continue;
        found.tiers[n++] = table[i].ops;
        len += (size_t)snprintf(found.names + len, sizeof found.names - len, "%s%s", len ? " " : "",
                                table[i].name);
        CHECK(len < sizeof found.names);
    }
}

const features *features_get(void)
{
    (void)pthread_once(&once, find);
    return &found;
}

const char *features_known(int i)
{
    return i < TIERS ? table[i].name : NULL;
}
