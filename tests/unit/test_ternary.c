/* Ternary blocks: the published bytes of a known pattern, and all round trips. */
#include "base/rng.h"
#include "pack/ternary.h"
#include "test.h"

static void set_code(uint8_t *codes, int e, unsigned code)
{
    codes[e / 4] = (uint8_t)((codes[e / 4] & ~(3u << 2 * (e % 4))) | code << 2 * (e % 4));
}

/* Codes e mod 3: 24 49 92 ..., and in base 3 the bytes that the reference packer gives. */
TEST(the_pattern_0_1_2_has_the_known_bytes)
{
    static const uint8_t cycle[3] = { 0x31, 0x94, 0xbb };
    static const uint8_t tail[10] = { 0xcf, 0x45, 0x6c, 0xcf, 0x45, 0x6c, 0xcf, 0x45, 0x43, 0x6c };
    uint8_t codes[TERNARY_CODES] = { 0 }, pq2[TERNARY_PQ2], ptq1[TERNARY_PTQ1];
    for (int e = 0; e < 128; e++) set_code(codes, e, (unsigned)e % 3);
    ternary_put_pq2(codes, 0x3c00, pq2);
    EXPECT(ternary_put_ptq1(codes, 0x3c00, ptq1));
    EXPECT_INT(pq2[0], 0x00);
    EXPECT_INT(pq2[1], 0x3c);
    static const uint8_t plain[3] = { 0x24, 0x49, 0x92 };
    for (int i = 0; i < 32; i++) EXPECT_INT(pq2[2 + i], plain[i % 3]);
    for (int i = 0; i < 16; i++) EXPECT_INT(ptq1[i], cycle[i % 3]);
    for (int i = 0; i < 10; i++) EXPECT_INT(ptq1[16 + i], tail[i]);
    EXPECT_INT(ptq1[26], 0x00);
    EXPECT_INT(ptq1[27], 0x3c);
}

TEST(random_blocks_come_back)
{
    rng r = { 5 };
    for (int n = 0; n < 2000; n++) {
        uint8_t codes[TERNARY_CODES] = { 0 }, again[TERNARY_CODES], block[TERNARY_PQ2];
        uint16_t d = (uint16_t)rng_next(&r), back;
        for (int e = 0; e < 128; e++) set_code(codes, e, rng_below(&r, 3));
        EXPECT(ternary_put_ptq1(codes, d, block));
        ternary_get_ptq1(block, again, &back);
        EXPECT(memcmp(codes, again, sizeof codes) == 0 && back == d);
        ternary_put_pq2(codes, d, block);
        ternary_get_pq2(block, again, &back);
        EXPECT(memcmp(codes, again, sizeof codes) == 0 && back == d);
    }
}

TEST(base_3_has_no_code_3)
{
    uint8_t codes[TERNARY_CODES] = { 0 }, block[TERNARY_PTQ1];
    set_code(codes, 127, 3);
    EXPECT(!ternary_put_ptq1(codes, 0, block));
}
