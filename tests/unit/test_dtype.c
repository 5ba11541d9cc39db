#include "test.h"
#include <math.h>
#include "pack/dtype.h"

TEST(names_and_sizes)
{
    static const struct {
        const char *name;
        int bits;
    } want[] = { { "BOOL", 8 }, { "F4", 4 },    { "U8", 8 },   { "F8_E4M3", 8 },
                 { "F16", 16 }, { "BF16", 16 }, { "F32", 32 }, { "U32", 32 },
                 { "C64", 64 }, { "F64", 64 },  { "I64", 64 } };
    dtype t;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        EXPECT(dtype_from_name(str_from(want[i].name), &t));
        EXPECT_STR(dtype_name(t), want[i].name);
        EXPECT_INT(dtype_bits(t), want[i].bits);
    }
    EXPECT(!dtype_from_name(STR("F8_WEIRD"), &t));
    EXPECT(!dtype_from_name(STR("f32"), &t));
    EXPECT(!dtype_from_name(STR(""), &t));
}

/* IEEE 754 binary16 vectors. */
TEST(f16_values)
{
    EXPECT(dtype_f16_to_f32(0x3c00) == 1.0f);
    EXPECT(dtype_f16_to_f32(0xc000) == -2.0f);
    EXPECT(dtype_f16_to_f32(0x7bff) == 65504.0f);
    EXPECT(dtype_f16_to_f32(0x0001) == 5.9604644775390625e-8f);
    EXPECT(dtype_f16_to_f32(0x0400) == 6.103515625e-5f);
    EXPECT(dtype_f16_to_f32(0x7c00) == INFINITY);
    EXPECT(isnan(dtype_f16_to_f32(0x7e01)));
    EXPECT(signbit(dtype_f16_to_f32(0x8000)));
}

/* Every f16 survives the way through f32; halfway cases go to even. */
TEST(f16_round_trip_and_ties)
{
    for (uint32_t h = 0; h < 0x10000u; h++) {
        const float f = dtype_f16_to_f32((uint16_t)h);
        if (isnan(f)) EXPECT(isnan(dtype_f16_to_f32(dtype_f32_to_f16(f))));
        else EXPECT_INT(dtype_f32_to_f16(f), h);
    }
    for (uint32_t h = 0; h < 0x7bffu; h++) {
        const double a = (double)dtype_f16_to_f32((uint16_t)h);
        const double b = (double)dtype_f16_to_f32((uint16_t)(h + 1));
        const float half = (float)((a + b) / 2);
        EXPECT_INT(dtype_f32_to_f16(half), h & 1u ? h + 1 : h);
        EXPECT_INT(dtype_f32_to_f16(nextafterf(half, 0.0f)), h);
        EXPECT_INT(dtype_f32_to_f16(nextafterf(half, 1e9f)), h + 1);
    }
    EXPECT_INT(dtype_f32_to_f16(65519.9f), 0x7bff);
    EXPECT_INT(dtype_f32_to_f16(65520.0f), 0x7c00);
    EXPECT_INT(dtype_f32_to_f16(-1e30f), 0xfc00);
    EXPECT_INT(dtype_f32_to_f16(1e-30f), 0);
}

TEST(bf16_ties)
{
    EXPECT_INT(dtype_f32_to_bf16(1.0f), 0x3f80);
    EXPECT_INT(dtype_f32_to_bf16(1.00390625f), 0x3f80); /* halfway, even below */
    EXPECT_INT(dtype_f32_to_bf16(1.01171875f), 0x3f82); /* halfway, even above */
    EXPECT_INT(dtype_f32_to_bf16(3.4e38f), 0x7f80);
    EXPECT(isnan(dtype_bf16_to_f32(dtype_f32_to_bf16(dtype_f32_from_bits(0x7f800001u)))));
    EXPECT(dtype_round(DTYPE_F32, 1.00390625f) == 1.00390625f);
}

TEST(arrays_at_odd_addresses)
{
    uint8_t bytes[1 + 3 * 4];
    const float in[3] = { 1.5f, -0.25f, 3e4f };
    static const dtype types[] = { DTYPE_F16, DTYPE_BF16, DTYPE_F32 };
    for (int i = 0; i < 3; i++) {
        float out[3];
        dtype_encode(types[i], in, 3, bytes + 1);
        dtype_decode(types[i], bytes + 1, 3, out);
        for (int k = 0; k < 3; k++) EXPECT(out[k] == dtype_round(types[i], in[k]));
    }
}
