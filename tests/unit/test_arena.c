#include "test.h"
#include "base/arena.h"
#include "base/mem.h"

TEST(pieces_are_zero_aligned_and_apart)
{
    arena a;
    arena_init(&a, 256);
    const int64_t live = mem_live();
    unsigned char *piece[200];
    for (int i = 0; i < 200; i++) {
        const size_t n = (size_t)(i * 37 % 500);
        piece[i] = arena_alloc(&a, n);
        EXPECT(piece[i]);
        EXPECT_INT((uintptr_t)piece[i] % 16, 0);
        for (size_t k = 0; k < n; k++) EXPECT_INT(piece[i][k], 0);
        memset(piece[i], i, n);
    }
    for (int i = 0; i < 200; i++)
        for (size_t k = 0; k < (size_t)(i * 37 % 500); k++)
            EXPECT_INT(piece[i][k], (unsigned char)i);
    arena_free(&a);
    EXPECT_INT(mem_live(), live);
    EXPECT_INT(a.used_bytes, 0);
}

TEST(large_pieces_keep_the_open_block)
{
    arena a;
    arena_init(&a, 1024);
    char *small = arena_alloc(&a, 16);
    EXPECT(arena_alloc(&a, 100000));
    EXPECT(arena_alloc(&a, 16) == (void *)(small + 16));
    arena_free(&a);
}

TEST(strings)
{
    arena a;
    arena_init(&a, 0);
    EXPECT_STR(arena_strdup(&a, STR("abc")), "abc");
    const str s = arena_str(&a, STR("x\0y"));
    EXPECT_INT(s.len, 3);
    EXPECT(memcmp(s.ptr, "x\0y", 4) == 0);
    EXPECT(arena_str(&a, (str){ 0 }).ptr);
    arena_free(&a);
}

TEST(refusals)
{
    arena a;
    arena_init(&a, 0);
    EXPECT(!arena_alloc(&a, SIZE_MAX - 8));
    EXPECT(!arena_array(&a, SIZE_MAX / 4, 8));
    mem_fail_after(1);
    EXPECT(!arena_alloc(&a, 10));
    EXPECT(!arena_str(&a, STR("abc")).ptr);
    mem_fail_after(0);
    EXPECT(arena_alloc(&a, 10));
    arena_free(&a);
}
