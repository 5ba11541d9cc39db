/* cgroup.c - see cgroup.h. Reads a few small files; allocates nothing. */
#include "base/cgroup.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/file.h"
#include "base/banned.h"

enum { PATH_BYTES = 4096 };

/* A file of one group; false when it is missing or its path too long. */
static bool read_group(const char *mount, const char *group, const char *file, char *out,
                       size_t cap)
{
    char path[PATH_BYTES];
    const int n = snprintf(path, sizeof path, "%s%s/%s", mount, group, file);
    return n > 0 && n < PATH_BYTES && file_read_text(path, out, cap);
}

static bool read_number(const char *mount, const char *group, const char *file, uint64_t *out)
{
    char text[64];
    if (!read_group(mount, group, file, text, sizeof text) || text[0] < '0' || text[0] > '9')
        return false;
    *out = strtoull(text, NULL, 10);
    return true;
}

/* The group's path in the hierarchy of `controller` ("" is that of version 2): the lines of
 * `groups` read "id:controller,controller:/path". */
static bool find_group(const char *groups, const char *controller, char *out, size_t cap)
{
    for (const char *line = groups; line && *line;) {
        const char *end = strchr(line, '\n');
        const size_t len = end ? (size_t)(end - line) : strlen(line);
        const char *names = memchr(line, ':', len);
        const char *path = names ? memchr(names + 1, ':', len - (size_t)(names + 1 - line)) : NULL;
        if (path) {
            const size_t want = strlen(controller);
            bool found = want == 0 && path == names + 1;
            for (const char *p = names + 1; want && p < path;) {
                const char *comma = memchr(p, ',', (size_t)(path - p));
                const char *stop = comma ? comma : path;
                found = found || ((size_t)(stop - p) == want && memcmp(p, controller, want) == 0);
                p = stop + 1;
            }
            const size_t path_len = len - (size_t)(path + 1 - line);
            if (found && path_len < cap) {
                memcpy(out, path + 1, path_len);
                out[path_len] = '\0';
                if (strcmp(out, "/") == 0) out[0] = '\0';
                return true;
            }
        }
        line = end ? end + 1 : NULL;
    }
    return false;
}

/* Drops the last component; false at the root. */
static bool go_up(char *group)
{
    char *slash = strrchr(group, '/');
    if (!slash) return false;
    *slash = '\0';
    return true;
}

/* The value of a line "key value" of memory.stat, or 0. */
static uint64_t stat_value(const char *text, const char *key)
{
    const size_t n = strlen(key);
    for (const char *line = text; line && *line;) {
        if (strncmp(line, key, n) == 0 && line[n] == ' ') return strtoull(line + n, NULL, 10);
        line = strchr(line, '\n');
        if (line) line++;
    }
    return 0;
}

/* Walks from `group` to the root. A container often sees its own group mounted as the root while
 * /proc/self/cgroup names the path outside: missing files are passed over, and the root always
 * counts. */
static bool memory_walk(const char *mount, char *group, bool v2, uint64_t *bytes)
{
    bool any = false;
    do {
        uint64_t limit, used;
        if (!read_number(mount, group, v2 ? "memory.max" : "memory.limit_in_bytes", &limit))
            continue;
        if (limit >= (uint64_t)1 << 62) continue; /* version 1 says "no limit" with a huge number */
        if (!read_number(mount, group, v2 ? "memory.current" : "memory.usage_in_bytes", &used))
            continue;
        char text[8192];
        const bool has_stat = read_group(mount, group, "memory.stat", text, sizeof text);
        const uint64_t cache =
            has_stat ? stat_value(text, v2 ? "inactive_file" : "total_inactive_file") : 0;
        used = used > cache ? used - cache : 0;
        const uint64_t left = limit > used ? limit - used : 0;
        if (!any || left < *bytes) *bytes = left;
        any = true;
    } while (go_up(group));
    return any;
}

bool cgroup_memory_left_in(const char *root, const char *groups, uint64_t *bytes)
{
    char group[PATH_BYTES], mount[PATH_BYTES];
    if (find_group(groups, "memory", group, sizeof group)) {
        const int n = snprintf(mount, sizeof mount, "%s/memory", root);
        if (n > 0 && n < PATH_BYTES && memory_walk(mount, group, false, bytes)) return true;
    }
    return find_group(groups, "", group, sizeof group) && memory_walk(root, group, true, bytes);
}

static bool cpu_walk(const char *mount, char *group, bool v2, double *cpus)
{
    bool any = false;
    do {
        double quota, period;
        if (v2) {
            char text[128], *end;
            if (!read_group(mount, group, "cpu.max", text, sizeof text)) continue;
            if (text[0] < '0' || text[0] > '9') continue; /* "max" */
            quota = (double)strtoull(text, &end, 10);
            period = (double)strtoull(end, NULL, 10);
        } else {
            uint64_t q, p;
            if (!read_number(mount, group, "cpu.cfs_quota_us", &q)) continue; /* -1: none */
            if (!read_number(mount, group, "cpu.cfs_period_us", &p)) continue;
            quota = (double)q;
            period = (double)p;
        }
        if (quota <= 0 || period <= 0) continue;
        if (!any || quota / period < *cpus) *cpus = quota / period;
        any = true;
    } while (go_up(group));
    return any;
}

bool cgroup_cpus_in(const char *root, const char *groups, double *cpus)
{
    char group[PATH_BYTES], mount[PATH_BYTES];
    if (find_group(groups, "cpu", group, sizeof group)) {
        const int n = snprintf(mount, sizeof mount, "%s/cpu", root);
        if (n > 0 && n < PATH_BYTES && cpu_walk(mount, group, false, cpus)) return true;
    }
    return find_group(groups, "", group, sizeof group) && cpu_walk(root, group, true, cpus);
}

bool cgroup_memory_left(uint64_t *bytes)
{
    char groups[PATH_BYTES];
    return file_read_text("/proc/self/cgroup", groups, sizeof groups) &&
           cgroup_memory_left_in("/sys/fs/cgroup", groups, bytes);
}

bool cgroup_cpus(double *cpus)
{
    char groups[PATH_BYTES];
    return file_read_text("/proc/self/cgroup", groups, sizeof groups) &&
           cgroup_cpus_in("/sys/fs/cgroup", groups, cpus);
}
