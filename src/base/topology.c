/* topology.c - sched_getaffinity, sysfs and control groups on Linux; sysctl on Apple.
 *
 * Threads are kept to a node and not to a core: two programs that pinned theirs would meet on the
 * same cores while others idle. */
#include "base/topology.h"
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __APPLE__
#include <sys/sysctl.h>
#endif
#include "base/cgroup.h"
#include "base/file.h"
#include "base/banned.h"

enum { LIST = 4096 };

typedef struct span {
    int from, to; /* both belong to it */
} span;

/* The next span of a list such as "0-3,8"; false at its end, or where it is no list. */
static bool next_span(const char **list, span *s)
{
    const char *p = *list;
    if (*p < '0' || *p > '9') return false;
    char *end;
    const long from = strtol(p, &end, 10);
    const long to = *end == '-' ? strtol(end + 1, &end, 10) : from;
    *s = (span){ from > INT_MAX ? INT_MAX : (int)from, to > INT_MAX ? INT_MAX : (int)to };
    *list = *end == ',' ? end + 1 : end;
    return true;
}

/* The first processor of the list that is ours, or -1. */
static int first_of(const topology *t, const char *list)
{
    for (span s; next_span(&list, &s);) {
        for (int i = s.from; i <= s.to && i < TOPOLOGY_CPUS; i++)
            if (t->node[i]) return i;
    }
    return -1;
}

/* Whether processor i stands for its core: the first of its siblings that is ours. */
static bool is_core(const topology *t, const char *sys, int i)
{
    char path[512], list[LIST] = "";
    (void)snprintf(path, sizeof path, "%s/cpu/cpu%d/topology/thread_siblings_list", sys, i);
    (void)file_read_text(path, list, sizeof list);
    const int first = first_of(t, list);
    return first < 0 || first == i;
}

/* Gives the processors of the node that the system calls `id` the next number, if one is ours. */
static void read_node(topology *t, const char *sys, int id)
{
    char path[512], list[LIST] = "";
    (void)snprintf(path, sizeof path, "%s/node/node%d/cpulist", sys, id);
    if (!file_read_text(path, list, sizeof list) || first_of(t, list) < 0) return;
    t->nodes++;
    const char *rest = list;
    for (span s; next_span(&rest, &s);) {
        for (int i = s.from; i <= s.to && i < TOPOLOGY_CPUS; i++)
            if (t->node[i]) t->node[i] = (unsigned char)t->nodes;
    }
}

static void read_nodes(topology *t, const char *sys)
{
    char path[512], online[LIST] = "";
    (void)snprintf(path, sizeof path, "%s/node/online", sys);
    (void)file_read_text(path, online, sizeof online);
    const char *rest = online;
    for (span s; next_span(&rest, &s);)
        for (int id = s.from; id <= s.to && t->nodes < TOPOLOGY_NODES; id++) read_node(t, sys, id);
    if (t->nodes == 0) t->nodes = 1;
}

void topology_describe(topology *t, const char *sys, const unsigned char *allowed, int n)
{
    *t = (topology){ 0 };
    for (int i = 0; i < n && i < TOPOLOGY_CPUS; i++) {
        t->node[i] = allowed[i] != 0;
        t->cpus += allowed[i] != 0;
    }
    read_nodes(t, sys);
    for (int i = 0; i < n && i < TOPOLOGY_CPUS; i++) {
        if (!t->node[i] || !is_core(t, sys, i)) continue;
        t->cores++;
        t->node_cores[t->node[i] - 1]++;
    }
}

/* Fills allowed[i] with 1 for processors that this process may run on; returns their range. */
static int read_mask(unsigned char allowed[TOPOLOGY_CPUS])
{
    memset(allowed, 0, TOPOLOGY_CPUS);
#ifdef __linux__
    unsigned long mask[TOPOLOGY_CPUS / (8 * sizeof(unsigned long))] = { 0 };
    if (sched_getaffinity(0, sizeof mask, (cpu_set_t *)(void *)mask) == 0) {
        for (int i = 0; i < TOPOLOGY_CPUS; i++)
            allowed[i] = CPU_ISSET_S((size_t)i, sizeof mask, (cpu_set_t *)(void *)mask) != 0;
        return TOPOLOGY_CPUS;
    }
#endif
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const int n = online < 1 ? 1 : online > TOPOLOGY_CPUS ? TOPOLOGY_CPUS : (int)online;
    memset(allowed, 1, (size_t)n);
    return n;
}

void topology_read(topology *t)
{
    unsigned char allowed[TOPOLOGY_CPUS];
    const int n = read_mask(allowed);
    topology_describe(t, "/sys/devices/system", allowed, n);
#ifdef __APPLE__
    int cores; /* performance cores alone: all wait for the slowest */
    size_t size = sizeof cores;
    if (sysctlbyname("hw.perflevel0.physicalcpu", &cores, &size, NULL, 0) == 0 ||
        sysctlbyname("hw.physicalcpu", &cores, &size, NULL, 0) == 0)
        t->cores = t->node_cores[0] = cores;
#endif
    if (!cgroup_cpus(&t->quota)) t->quota = 0;
}

int topology_threads(const topology *t, char *why, size_t cap)
{
    char nodes[48] = "", quota[48] = "no quota";
    if (t->nodes > 1) (void)snprintf(nodes, sizeof nodes, " on %d memory nodes", t->nodes);
    if (t->quota > 0) (void)snprintf(quota, sizeof quota, "quota %.2f", t->quota);
    if (why)
        (void)snprintf(why, cap, "%d physical core%s%s, %s", t->cores, t->cores == 1 ? "" : "s",
                       nodes, quota);
    /* a quota of 2.5 processors keeps 2 threads busy; the third would stop all at a barrier */
    if (t->quota > 0 && t->quota < t->cores) return t->quota < 1 ? 1 : (int)t->quota;
    return t->cores;
}

int topology_node(const topology *t, int worker, int workers)
{
    int most = 0, at = 0;
    for (int i = 0; i < t->nodes; i++)
        if (t->node_cores[i] > most) most = t->node_cores[i];
    if (workers <= most) return -1;
    const int core = (int)((long long)worker * t->cores / workers);
    for (int i = 0; i < t->nodes; i++) {
        at += t->node_cores[i];
        if (core < at) return t->nodes > 1 ? i : -1;
    }
    return -1;
}

void topology_keep(const topology *t, pthread_t thread, int node)
{
#ifdef __linux__
    unsigned long mask[TOPOLOGY_CPUS / (8 * sizeof(unsigned long))] = { 0 };
    for (int i = 0; i < TOPOLOGY_CPUS; i++)
        if (t->node[i] == node + 1) CPU_SET_S((size_t)i, sizeof mask, (cpu_set_t *)(void *)mask);
    (void)pthread_setaffinity_np(thread, sizeof mask, (cpu_set_t *)(void *)mask);
#else
    (void)t, (void)thread, (void)node;
#endif
}
