/* K6: tiles hold exactly what the pack holds, and what breaks a promise is refused by name. */
#include "compute_fixture.h"

static void expect_rows(const weights *w)
{
    float *want = floats((size_t)w->m.in), *got = floats((size_t)w->m.in);
    for (int row = 0; row < w->m.out; row++) {
        matrix_row_f32(&w->m, row, DTYPE_F32, want);
        tile_row(&w->tiles, row, got);
        for (int k = 0; k < w->m.in; k++) {
            /* 3d - d, which the pack rounds after each step, is 2d in a ternary tile */
            const bool twice =
                w->tiles.type == TILE_T2 && fabsf(got[k] - want[k]) <= 0x1p-23f * fabsf(want[k]);
            if (got[k] != want[k] && !twice)
                FAIL("%s row %d weight %d: got %a, want %a", w->m.path, row, k, (double)got[k],
                     (double)want[k]);
        }
    }
    mem_free(want);
    mem_free(got);
}
TEST(K6_every_format_round_trips)
{
    static const int outs[] = { 1, 15, 16, 17, 40 };
    for (int k = 0; k < WEIGHT_KINDS; k++)
        for (int i = 0; i < 5; i++) {
            weights w;
            weights_init(&w, &weight_kinds[k], outs[i], 256, (uint64_t)(100 * k + i));
            expect_rows(&w);
            weights_free(&w);
        }
}
TEST(types_follow_the_pack)
{
    static const struct {
        int kind;
        tile_type type;
        size_t bytes;
    } want[] = { { 0, TILE_T2, 544 },   { 3, TILE_A2, 576 },  { 4, TILE_A2, 256 },
                 { 6, TILE_A4, 576 },   { 9, TILE_A4, 1152 }, { 10, TILE_A8, 1088 },
                 { 13, TILE_A8, 1088 }, { 15, TILE_E4, 272 }, { 16, TILE_B16, 32 },
                 { 17, TILE_B16, 32 },  { 18, TILE_B16, 32 }, { 19, TILE_F32, 64 },
                 { 20, TILE_F32, 64 } };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        weights w;
        weights_init(&w, &weight_kinds[want[i].kind], 20, 128, 7);
        EXPECT_INT(w.tiles.type, want[i].type);
        EXPECT_INT(w.tiles.tile_bytes, want[i].bytes);
        weights_free(&w);
    }
}
/* The layout of kernels.md written out for one code: lane 5, input 128 + 37 of a ternary matrix. */
TEST(layout_of_a_ternary_tile)
{
    weights w;
    weights_source(&w, &weight_kinds[0], 16, 256, 1, false);
    memset(w.bytes[0], 0x55, w.weight.bytes); /* all codes 1 */
    const int k = 128 + 37;
    w.bytes[0][5 * 256 / 4 + k / 4] = (uint8_t)(0x55 ^ 3 << k % 4 * 2); /* 1 becomes 2 */
    weights_tile(&w);
    for (int i = 0; i < 544 - 32; i++) {
        const int z = 2, p = 1, j = 1; /* 37 = 16z + 4p + j */
        const unsigned want = i == 64 * z + 4 * 5 + j ? 0x55 ^ 3u << 2 * p : 0x55;
        EXPECT_INT(w.tiles.data[544 + i], want);
    }
    weights_free(&w);
}
TEST(parts_filled_apart_equal_the_whole)
{
    weights w;
    weights_init(&w, &weight_kinds[0], 150, 256, 3);
    uint8_t *whole = w.tiles.data;
    w.tiles.data = mem_alloc(tile_bytes(&w.tiles));
    const int cuts[] = { 0, 1, 4, 4, 10 };
    int64_t code3 = 0, want3 = 0;
    error e;
    for (int i = 0; i < 4; i++) {
        int64_t part;
        uint8_t *out = w.tiles.data + (size_t)cuts[i] * w.tiles.strip_bytes;
        EXPECT_OK(tile_fill(&w.tiles, &w.m, cuts[i], cuts[i + 1], out, &part, &e), e);
        code3 += part;
    }
    for (int row = 0; row < 150; row++) {
        int64_t n;
        matrix_row_is_ternary(&w.m, row, &n);
        want3 += n;
    }
    EXPECT(want3 > 0);
    EXPECT_INT(code3, want3);
    EXPECT(same_bits(whole, w.tiles.data, tile_bytes(&w.tiles)));
    mem_free(whole);
    weights_free(&w);
}
static status fill(weights *w, error *e)
{
    int64_t code3;
    TRY(tile_plan(&w->tiles, &w->m, e));
    w->tiles.data = mem_alloc(tile_bytes(&w->tiles));
    return tile_fill(&w->tiles, &w->m, 0, tile_strips(&w->tiles), w->tiles.data, &code3, e);
}
TEST(refuses_scales_that_are_not_finite)
{
    static const int kinds[] = { 0, 5, 15, 12 };
    for (int i = 0; i < 4; i++) {
        weights w;
        error e;
        weights_source(&w, &weight_kinds[kinds[i]], 20, 256, 1, false);
        w.m.block = i == 0 ? 256 : 0; /* a king's matrix: ternary by format */
        const uint16_t nan = 0x7e00;
        if (i == 2) w.bytes[1][9] = 255;
        else memcpy(w.bytes[i == 3 ? 2 : 1] + 18, &nan, 2); /* the last one: a bias */
        EXPECT_INT(fill(&w, &e), E_FORMAT);
        EXPECT(strstr(e.text, i == 2 ? "byte 255" : "not finite"));
        weights_free(&w);
    }
}
TEST(refuses_a_king_matrix_that_is_not_ternary)
{
    weights w;
    error e;
    weights_source(&w, &weight_kinds[5], 20, 256, 1, false);
    w.m.block = 256;
    EXPECT_INT(fill(&w, &e), E_FORMAT);
    EXPECT(strstr(e.text, "want minus the scale"));
    weights_free(&w);
}
TEST(refuses_what_bfloat16_does_not_hold)
{
    weights w;
    error e;
    /* mxfp8: smallest element times smallest scale */
    weights_source(&w, &weight_kinds[16], 4, 256, 1, false);
    memset(w.bytes[0], 3, w.weight.bytes);
    memset(w.bytes[1], 0, w.scales.bytes);
    EXPECT_INT(fill(&w, &e), E_UNSUPPORTED);
    EXPECT(strstr(e.text, "bfloat16"));
    weights_free(&w);
}
