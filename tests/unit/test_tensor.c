#include "test.h"
#include "pack/tensor.h"

TEST(sizes)
{
    uint64_t n = 7;
    EXPECT(tensor_bytes_of(DTYPE_F32, 2, (int64_t[]){ 3, 5 }, &n));
    EXPECT_INT(n, 60);
    EXPECT(tensor_bytes_of(DTYPE_F16, 0, NULL, &n));
    EXPECT_INT(n, 2);
    EXPECT(tensor_bytes_of(DTYPE_F32, 2, (int64_t[]){ 0, 5 }, &n));
    EXPECT_INT(n, 0);
    EXPECT(tensor_bytes_of(DTYPE_F4, 1, (int64_t[]){ 6 }, &n));
    EXPECT_INT(n, 3);
}

TEST(sizes_that_do_not_exist)
{
    uint64_t n;
    const int64_t big = (int64_t)1 << 32;
    EXPECT(!tensor_bytes_of(DTYPE_U8, 2, (int64_t[]){ big, big }, &n));
    EXPECT(!tensor_bytes_of(DTYPE_F32, 2, (int64_t[]){ big, (int64_t)1 << 30 }, &n));
    EXPECT(!tensor_bytes_of(DTYPE_F32, 3, (int64_t[]){ 0, INT64_MAX, INT64_MAX }, &n));
    EXPECT(!tensor_bytes_of(DTYPE_F32, 1, (int64_t[]){ -1 }, &n));
    EXPECT(!tensor_bytes_of(DTYPE_F4, 1, (int64_t[]){ 3 }, &n));
}

TEST(shape_text)
{
    char text[32], tiny[8];
    EXPECT_STR(tensor_shape_text(2, (int64_t[]){ 248320, 320 }, text, sizeof text),
               "[248320, 320]");
    EXPECT_STR(tensor_shape_text(0, NULL, text, sizeof text), "[]");
    EXPECT_STR(tensor_shape_text(2, (int64_t[]){ 248320, 320 }, tiny, sizeof tiny), "[248320");
}

TEST(reads_a_range)
{
    const uint8_t data[] = { 0, 0x3c, 0, 0x40, 0, 0x42 }; /* 1, 2, 3 as f16 */
    const tensor t = { .type = DTYPE_F16, .rank = 1, .shape = { 3 }, .data = data, .bytes = 6 };
    float out[2];
    tensor_read_f32(&t, 1, 2, out);
    EXPECT(out[0] == 2.0f && out[1] == 3.0f);
    EXPECT_INT(tensor_elements(&t), 3);
}
