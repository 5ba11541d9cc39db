/* sysmem.c - see sysmem.h. */
#include "base/sysmem.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#ifdef __APPLE__
#include <mach/mach.h>
#endif
#include "base/cgroup.h"
#include "base/file.h"
#include "base/banned.h"

size_t sysmem_peak_rss(void)
{
    struct rusage u;
    if (getrusage(RUSAGE_SELF, &u) != 0) return 0;
#ifdef __APPLE__
    return (size_t)u.ru_maxrss;
#else
    return (size_t)u.ru_maxrss * 1024;
#endif
}

#ifdef __APPLE__
size_t sysmem_rss(void)
{
    mach_task_basic_info_data_t info;
    mach_msg_type_number_t n = MACH_TASK_BASIC_INFO_COUNT;
    if (task_info(mach_task_self(), MACH_TASK_BASIC_INFO, (task_info_t)&info, &n) != KERN_SUCCESS)
        return 0;
    return (size_t)info.resident_size;
}

size_t sysmem_available(void)
{
    vm_statistics64_data_t vm;
    mach_msg_type_number_t n = HOST_VM_INFO64_COUNT;
    if (host_statistics64(mach_host_self(), HOST_VM_INFO64, (host_info64_t)&vm, &n) != KERN_SUCCESS)
        return 0;
    const size_t pages = (size_t)vm.free_count + vm.inactive_count + vm.purgeable_count;
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}
#else
size_t sysmem_rss(void)
{
    char text[128];
    if (!file_read_text("/proc/self/statm", text, sizeof text)) return 0;
    const char *second = strchr(text, ' ');
    return second ? (size_t)strtoull(second, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE) : 0;
}

size_t sysmem_available(void)
{
    char text[2048];
    uint64_t bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    if (file_read_text("/proc/meminfo", text, sizeof text)) {
        const char *line = strstr(text, "MemAvailable:");
        if (line) bytes = strtoull(line + sizeof "MemAvailable:" - 1, NULL, 10) * 1024;
    }
    uint64_t left;
    if (cgroup_memory_left(&left) && left < bytes) bytes = left;
    return (size_t)bytes;
}
#endif
