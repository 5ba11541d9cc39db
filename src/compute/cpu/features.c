/* features.c - which tiers this CPU and system can run. Compiled without any instruction-set flag.
 */
#include "compute/cpu/cpu.h"
#include "base/banned.h"

static const cpu_ops *const portable[] = { &cpu_ref, NULL };

const cpu_ops *const *features_tiers(void)
{
    return portable;
}
