#include "cli/svg.h"
#include "test.h"

/* Points at known places: the axes begin at zero and end at five ticks of 1, 2 or 5 times a power
 * of ten. */
TEST(a_line_goes_through_its_points)
{
    svg_chart c = { .title = "a < b & c", .x_label = "x", .y_label = "y", .n = 1 };
    c.lines[0] = (svg_line){ .name = "line", .x = { 0, 10 }, .y = { 1, 5 }, .n = 2 };
    buf out;
    buf_init(&out, 1 << 20);
    svg_write(&out, "heading", &c, 1);
    EXPECT(!out.failed);
    EXPECT(strstr(out.ptr, "a &lt; b &amp; c"));
    /* plot: x from 70 to 490, y from 290 down to 80; x tick 2, y tick 1 */
    EXPECT(strstr(out.ptr, "points=\"70.0,248.0 490.0,80.0 \""));
    EXPECT(strstr(out.ptr, "viewBox=\"0 0 640 340\""));
    buf_free(&out);
}

TEST(no_points_are_no_trouble)
{
    svg_chart c = { .title = "", .x_label = "", .y_label = "", .n = 1 };
    c.lines[0].name = "";
    buf out;
    buf_init(&out, 1 << 20);
    svg_write(&out, "", &c, 1);
    EXPECT(strstr(out.ptr, "points=\"\"") && strstr(out.ptr, "</svg>"));
    buf_free(&out);
}
