/* features.h - which tiers this CPU and system can run. */
#ifndef COMPUTE_CPU_FEATURES_H
#define COMPUTE_CPU_FEATURES_H
#include "compute/cpu/cpu.h"

enum { FEATURES_MOST = 8 }; /* tiers there are */

typedef struct features {
    const cpu_ops *tiers[FEATURES_MOST + 1]; /* best first, NULL at the end */
    char names[64];                          /* the same order: "avx512 avx2 ref" */
} features;

const features *features_get(void);
/* The name of tier i of all there are, on whatever machine; NULL after the last. */
const char *features_known(int i);
#endif
