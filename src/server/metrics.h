/* metrics.h - counters of the server and the Prometheus text made of them. Loop thread only. */
#ifndef SERVER_METRICS_H
#define SERVER_METRICS_H
#include "base/buf.h"
#include "ingot/ingot.h"

typedef enum outcome {
    OUTCOME_OK,
    OUTCOME_REFUSED,
    OUTCOME_FAILED,
    OUTCOME_CANCELLED,
    OUTCOME_COUNT
} outcome;

enum { METRICS_ROUTES = 19, METRICS_BUCKETS = 14 };

typedef struct histogram {
    uint64_t buckets[METRICS_BUCKETS + 1]; /* the last one: above every bound */
    double sum;
    uint64_t count;
} histogram;

typedef struct metrics {
    uint64_t requests[METRICS_ROUTES][OUTCOME_COUNT]; /* by routes_id */
    uint64_t disconnects;
    histogram first_token_s, per_token_s, queue_s;
} metrics;

void metrics_observe(histogram *h, double seconds);
void metrics_write(const metrics *m, ingot_engine *g, const ingot_model_info *info, int connections,
                   buf *out);
#endif
