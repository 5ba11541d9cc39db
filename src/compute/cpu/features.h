/* features.h - which tiers this CPU and system can run. */
#ifndef COMPUTE_CPU_FEATURES_H
#define COMPUTE_CPU_FEATURES_H
#include "compute/cpu/cpu.h"

typedef struct features {
    unsigned needs;          /* of the CPU; private to features.c */
    const char *names;       /* of the tiers, best first: "avx512 avx2 ref" */
    const cpu_ops *tiers[7]; /* the same order, NULL at the end */
} features;

const features *features_get(void);
/* The name of every tier there is, on whatever machine; NULL at the end. */
extern const char *const features_known[];
#endif
