/* timing.h - what is reported of something that was timed several times. */
#ifndef TOOLS_TIMING_H
#define TOOLS_TIMING_H

typedef struct timing {
    double median, least, most; /* seconds */
} timing;

/* Of n > 0 times, which are sorted. */
timing timing_of(double *seconds, int n);
double timing_spread(timing t); /* largest - smallest, over the median; 0 where that is 0 */
#endif
