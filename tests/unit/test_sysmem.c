#include "test.h"
#include "base/mem.h"
#include "base/sysmem.h"

TEST(touched_pages_are_resident)
{
    const size_t bytes = (size_t)64 << 20, before = sysmem_rss();
    char *p = mem_map(bytes);
    EXPECT(p);
    for (size_t i = 0; i < bytes; i += 4096) p[i] = 1;
    EXPECT(sysmem_rss() >= before + bytes / 2);
    EXPECT(sysmem_peak_rss() >= bytes / 2);
    mem_unmap(p, bytes);
}

TEST(available_is_plausible)
{
    const size_t n = sysmem_available();
    EXPECT(n > (size_t)1 << 20);
    EXPECT(n < (size_t)1 << 50);
}
