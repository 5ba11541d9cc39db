/* What an engine takes when nobody says how much. */
#include "api/sizing.h"

#include "base/sysmem.h"
#include "model_fixture.h"

/* nugget: keys and values of 2 layers of attention, 2 heads of 64, in float32 */
enum { POSITION = 2 * 2 * 2 * 64 * 4, WHOLE = 700000 };

static size_t chosen(fixture *f, int context, size_t asked)
{
    error e;
    scheduler_options o = { .parts = { .king = f->k, .compute = { .threads = 1 } },
                            .context = context,
                            .total_context = context,
                            .parallel = 1,
                            .kv = KV_F32,
                            .chunk = 64,
                            .cache_bytes = asked };
    EXPECT_OK(sizing_choose(&o, 1 << 24, &e), e);
    return o.cache_bytes;
}

TEST(the_prefix_cache_has_room_for_a_whole_context)
{
    fixture f;
    if (sysmem_available() < (size_t)6 << 30) skip("wants 6 GiB of free memory");
    fixture_open(&f, (fixture_options){ .folder = NUGGET "king", .kv = KV_F32 });
    const size_t large = chosen(&f, WHOLE, SIZING_CACHE);
    EXPECT(large >= (size_t)WHOLE * POSITION);
    EXPECT(large <= (size_t)WHOLE * POSITION + (32u << 20)); /* two states, a page's rest */
    EXPECT(chosen(&f, 4096, SIZING_CACHE) == (size_t)1 << 30);
    EXPECT(chosen(&f, WHOLE, 12345) == 12345);
    EXPECT(chosen(&f, WHOLE, 0) == 0);
    fixture_close(&f);
}
