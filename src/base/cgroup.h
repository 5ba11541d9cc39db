/* cgroup.h - the limits of the control group (Linux, versions 1 and 2) that this process runs in,
 * containers included.
 *
 * Every group from the process's own up to the root counts; the tightest limit wins. False when
 * there is none, or when the system has no control groups. Source:
 * Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst of the kernel. */
#ifndef BASE_CGROUP_H
#define BASE_CGROUP_H
#include <stdbool.h>
#include <stdint.h>

/* limit - use; page cache that can be dropped counts as free */
bool cgroup_memory_left(uint64_t *bytes);
bool cgroup_cpus(double *cpus); /* quota / period */
/* The same below other folders than /sys/fs/cgroup and with another text than /proc/self/cgroup,
 * for tests. */
bool cgroup_memory_left_in(const char *root, const char *groups, uint64_t *bytes);
bool cgroup_cpus_in(const char *root, const char *groups, double *cpus);
#endif
