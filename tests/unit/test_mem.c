#include "test.h"
#include "base/mem.h"
#include "base/sysmem.h"

TEST(alignment_and_zero)
{
    for (size_t n = 0; n < 300; n += 7) {
        unsigned char *p = mem_zalloc(n);
        EXPECT(p);
        EXPECT_INT((uintptr_t)p % (n >= 64 ? 64 : 16), 0);
        for (size_t i = 0; i < n; i++) EXPECT_INT(p[i], 0);
        memset(p, 0xff, n);
        mem_free(p);
    }
}

TEST(counts)
{
    const int64_t calls = mem_count(), live = mem_live();
    void *a = mem_alloc(10), *b = mem_array(3, 100), *c = mem_strndup("abc", 2);
    EXPECT_STR((char *)c, "ab");
    EXPECT_INT(mem_count() - calls, 3);
    EXPECT_INT(mem_live() - live, 3);
    a = mem_resize(a, 1000);
    EXPECT_INT(mem_live() - live, 3);
    mem_free(a);
    mem_free(b);
    mem_free(c);
    mem_free(NULL);
    EXPECT_INT(mem_live(), live);
}

TEST(products_that_overflow_fail)
{
    EXPECT(!mem_array(SIZE_MAX / 2, 3));
    EXPECT(!mem_array((size_t)1 << 33, (size_t)1 << 31));
    EXPECT(!mem_strndup("", SIZE_MAX));
}

TEST(nth_call_and_all_later_ones_fail)
{
    mem_fail_after(3);
    void *a = mem_alloc(1), *b = mem_alloc(100), *c = mem_alloc(1), *d = mem_zalloc(1);
    void *r = mem_resize(a, 50), *m = mem_map(4096);
    mem_fail_after(0);
    EXPECT(a && b);
    EXPECT(!c && !d && !r && !m);
    mem_free(a);
    mem_free(b);
    a = mem_alloc(1);
    EXPECT(a);
    mem_free(a);
}

TEST(map_is_zero_and_given_back)
{
    const size_t bytes = (size_t)64 << 20;
    const int64_t live = mem_live();
    char *p = mem_map(bytes);
    EXPECT(p);
    const size_t before = sysmem_rss();
    for (size_t i = 0; i < bytes; i += 4096) {
        EXPECT_INT(p[i], 0);
        p[i] = 1;
    }
    EXPECT(sysmem_rss() >= before + bytes / 2);
    mem_unmap(p, bytes);
    EXPECT(sysmem_rss() < before + bytes / 2);
    EXPECT_INT(mem_live(), live);
}
