/* topology.h - the processors that this process may use: the affinity mask, its physical cores and
 * memory nodes, the control group's quota. */
#ifndef BASE_TOPOLOGY_H
#define BASE_TOPOLOGY_H
#include <pthread.h>
#include <stddef.h>

enum { TOPOLOGY_CPUS = 8192, TOPOLOGY_NODES = 64 };

typedef struct topology {
    int cpus;     /* processors in the mask */
    int cores;    /* physical cores among them, at least 1; on Apple those for performance */
    double quota; /* processors' worth of time; 0: no limit */
    int nodes;    /* memory nodes that have such a core; 1 where nothing is known of them */
    int node_cores[TOPOLOGY_NODES];
    unsigned char node[TOPOLOGY_CPUS]; /* of each processor, from 1; 0: not ours */
} topology;

void topology_read(topology *t);
/* The processors `allowed` (one byte each, n of them) as the folder `sys` (/sys/devices/system)
 * describes them; one it says nothing of is a core of its own, on the first node. No quota. */
void topology_describe(topology *t, const char *sys, const unsigned char *allowed, int n);
/* Threads that pay: a core each, at most floor(quota), at least 1. `why` (may be NULL) gets a line
 * such as "32 physical cores on 2 memory nodes, quota 24.00". */
int topology_threads(const topology *t, char *why, size_t cap);
/* The node [0, nodes) that worker `worker` of `workers` keeps to, so that it finds the memory that
 * it was the first to touch near it: nodes get workers as they have cores. -1: any, where one node
 * has cores for all workers. */
int topology_node(const topology *t, int worker, int workers);
/* Lets a thread run on the processors of that node alone; where that fails it runs on any. */
void topology_keep(const topology *t, pthread_t thread, int node);
#endif
