/* features.c - which tiers this CPU and system can run. Compiled without any instruction-set flag.
 */
#include "compute/cpu/features.h"
#include "base/banned.h"

static const features table[] = {
    { 0, "ref", { &cpu_ref, NULL } },
};

/* Bits of what the CPU has and the system lets programs use. */
static unsigned detect(void)
{
    return 0;
}
const features *features_get(void)
{
    const unsigned have = detect();
    const features *f = table;
    while (f->needs & ~have) f++; /* the last one needs nothing */
    return f;
}
