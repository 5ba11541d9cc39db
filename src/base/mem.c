/* mem.c - allocation: counted, failable on demand, and what the system says about memory. */
#include "base/mem.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#ifdef __APPLE__
#include <mach/mach.h>
#include <sys/sysctl.h>
#endif
#include "base/cgroup.h"
#include "base/file.h"
#include "base/banned.h"

static atomic_int_fast64_t mem_calls, mem_blocks, mem_fuse;

void mem_fail_after(int64_t n)
{
    atomic_store(&mem_fuse, n);
}

/* Counts a call; false when it is to fail. The fuse burns down to 1 and stays there: every later
 * call fails too. */
static bool admitted(void)
{
    atomic_fetch_add_explicit(&mem_calls, 1, memory_order_relaxed);
    int_fast64_t fuse = atomic_load_explicit(&mem_fuse, memory_order_relaxed);
    while (fuse > 1) {
        if (atomic_compare_exchange_weak(&mem_fuse, &fuse, fuse - 1)) return true;
    }
    return fuse == 0;
}

static void *counted(void *p)
{
    if (p) atomic_fetch_add_explicit(&mem_blocks, 1, memory_order_relaxed);
    return p;
}

void *mem_alloc(size_t bytes)
{
    if (!admitted()) return NULL;
    if (bytes < 64) return counted(malloc(bytes ? bytes : 1));
    void *p = NULL;
    return posix_memalign(&p, 64, bytes) == 0 ? counted(p) : NULL;
}

void *mem_zalloc(size_t bytes)
{
    void *p = mem_alloc(bytes);
    if (p) memset(p, 0, bytes);
    return p;
}

void *mem_array(size_t count, size_t bytes)
{
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total)) return NULL;
    return mem_zalloc(total);
}

void *mem_resize(void *p, size_t bytes)
{
    if (!p) return mem_alloc(bytes);
    return admitted() ? realloc(p, bytes ? bytes : 1) : NULL;
}

char *mem_strndup(const char *s, size_t len)
{
    if (len == SIZE_MAX) return NULL;
    char *p = mem_alloc(len + 1);
    if (!p) return NULL;
    if (len) memcpy(p, s, len);
    p[len] = '\0';
    return p;
}

void mem_free(void *p)
{
    if (!p) return;
    atomic_fetch_sub_explicit(&mem_blocks, 1, memory_order_relaxed);
    free(p);
}

void *mem_map(size_t bytes)
{
    if (!admitted() || bytes == 0) return NULL;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
#ifdef MADV_HUGEPAGE
    (void)madvise(p, bytes, MADV_HUGEPAGE); /* a wish: small pages do as well */
#endif
    return counted(p);
}

void mem_unmap(void *p, size_t bytes)
{
    if (!p) return;
    atomic_fetch_sub_explicit(&mem_blocks, 1, memory_order_relaxed);
    (void)munmap(p, bytes);
}

int64_t mem_count(void)
{
    return atomic_load_explicit(&mem_calls, memory_order_relaxed);
}

int64_t mem_live(void)
{
    return atomic_load_explicit(&mem_blocks, memory_order_relaxed);
}

size_t mem_peak_rss(void)
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
size_t mem_rss(void)
{
    mach_task_basic_info_data_t info;
    mach_msg_type_number_t n = MACH_TASK_BASIC_INFO_COUNT;
    if (task_info(mach_task_self(), MACH_TASK_BASIC_INFO, (task_info_t)&info, &n) != KERN_SUCCESS)
        return 0;
    return (size_t)info.resident_size;
}

size_t mem_available(void)
{
    vm_statistics64_data_t vm;
    mach_msg_type_number_t n = HOST_VM_INFO64_COUNT;
    if (host_statistics64(mach_host_self(), HOST_VM_INFO64, (host_info64_t)&vm, &n) != KERN_SUCCESS)
        return 0;
    const size_t pages = (size_t)vm.free_count + vm.inactive_count + vm.purgeable_count;
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}
#else
size_t mem_rss(void)
{
    char text[128];
    if (!file_read_text("/proc/self/statm", text, sizeof text)) return 0;
    const char *second = strchr(text, ' ');
    return second ? (size_t)strtoull(second, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE) : 0;
}

size_t mem_available(void)
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
