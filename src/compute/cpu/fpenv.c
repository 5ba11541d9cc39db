/* fpenv.c - see fpenv.h. */
#include "compute/cpu/fpenv.h"
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif
#include "base/banned.h"

#if defined(__x86_64__)
enum { MODE = 0x1f80, STICKY = 0x3f }; /* MXCSR after reset; flags of past exceptions */

uint64_t fpenv_set(void)
{
    const unsigned found = _mm_getcsr();
    _mm_setcsr(MODE);
    return found;
}
void fpenv_restore(uint64_t mode)
{
    _mm_setcsr((unsigned)mode);
}
bool fpenv_ok(void)
{
    return (_mm_getcsr() & 0xffffu & ~(unsigned)STICKY) == MODE;
}

#elif defined(__aarch64__)
/* FPCR: AHP, DN, FZ, RMode (22-26), FZ16 (19), FIZ, AH, NEP (0-2) */
static const uint64_t wrong = UINT64_C(0x1f) << 22 | UINT64_C(1) << 19 | UINT64_C(7);

static uint64_t get(void)
{
    uint64_t v;
    __asm__ volatile("mrs %0, fpcr" : "=r"(v));
    return v;
}
uint64_t fpenv_set(void)
{
    const uint64_t found = get();
    fpenv_restore(found & ~wrong);
    return found;
}
void fpenv_restore(uint64_t mode)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(mode));
}
bool fpenv_ok(void)
{
    return (get() & wrong) == 0;
}

#else /* the mode is the system's default */
uint64_t fpenv_set(void)
{
    return 0;
}
void fpenv_restore(uint64_t mode)
{
    (void)mode;
}
bool fpenv_ok(void)
{
    return true;
}
#endif
