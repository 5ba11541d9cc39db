/* mem.h - the only caller of the system's allocator.
 *
 * Every allocation is counted, and the nth can be made to fail, so that tests walk through every
 * failure. All functions return NULL when memory is short (or the product overflows); the caller
 * reports E_NOMEM. Thread-safe. */
#ifndef BASE_MEM_H
#define BASE_MEM_H
#include <stddef.h>
#include <stdint.h>

void *mem_alloc(size_t bytes); /* 64-byte aligned when bytes >= 64; bytes 0 is allowed */
void *mem_zalloc(size_t bytes);
void *mem_array(size_t count, size_t bytes); /* zeroed, product checked */
/* realloc: alignment of the first kind is not kept beyond 16 bytes */
void *mem_resize(void *p, size_t bytes);
char *mem_strndup(const char *s, size_t len); /* NUL added */
void mem_free(void *p);

/* Anonymous zero pages, huge pages advised; for weights, caches and activations. */
void *mem_map(size_t bytes);
void mem_unmap(void *p, size_t bytes);

int64_t mem_count(void); /* calls of mem_alloc and its kin so far */
int64_t mem_live(void);  /* allocations not freed yet */
/* the nth allocation from now fails, and every later one, until n = 0 resets */
void mem_fail_after(int64_t n);
#endif
