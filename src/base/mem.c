/* mem.c - allocation: counted, and failable on demand. */
#include "base/mem.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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
    while (fuse > 1)
        if (atomic_compare_exchange_weak(&mem_fuse, &fuse, fuse - 1)) return true;
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
