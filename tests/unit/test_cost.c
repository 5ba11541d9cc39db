#include <math.h>
#include "engine/cost.h"
#include "test.h"

TEST(points_rise)
{
    static const int want[] = { 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32 };
    for (int i = 0; i < 12; i++) EXPECT_INT(cost_rows(i), want[i]);
}

TEST(between_points_costs_are_interpolated)
{
    static const int rows[] = { 1, 4, 16 };
    static const double seconds[] = { 1, 1.6, 4 };
    static cost c;
    cost_begin_pass(&c, rows, seconds, 3);
    EXPECT(fabs(cost_pass(&c, 1, 0) - 1) < 1e-12);
    EXPECT(fabs(cost_pass(&c, 2, 0) - 1.2) < 1e-12);
    EXPECT(fabs(cost_pass(&c, 10, 0) - 2.8) < 1e-12);
    EXPECT(fabs(cost_pass(&c, 64, 0) - 16) < 1e-12);
    EXPECT(fabs(cost_pass(&c, 100000, 0) - 25000) < 1e-6);
    EXPECT_INT(cost_fit(&c, 2.85, 512, 0), 10);
    EXPECT_INT(cost_fit(&c, 0.1, 512, 0), 1);
    EXPECT_INT(cost_fit(&c, 1e9, 512, 0), 512);
}

TEST(measurements_pull_the_curve)
{
    static const int rows[] = { 1, 16 };
    static const double seconds[] = { 1, 4 };
    static cost c;
    cost_begin_pass(&c, rows, seconds, 2);
    cost_begin_draft(&c, rows, seconds, 2);
    for (int i = 0; i < 300; i++) cost_saw_pass(&c, 5, 100, 3);
    EXPECT(fabs(cost_pass(&c, 5, 0) - 3) < 1e-3);
    EXPECT(fabs(cost_pass(&c, 1, 0) - 1) < 1e-12);
    for (int i = 0; i < 300; i++) cost_saw_draft(&c, 4, 0.5);
    EXPECT(fabs(cost_draft(&c, 4) - 0.5) < 1e-6);
    EXPECT_INT(cost_draft(&c, 0), 0);
}

/* R073: a long context has its own costs, which begin as those of a shorter one. */
TEST(R073_depth_has_its_own_curve)
{
    static const int rows[] = { 1, 16 };
    static const double seconds[] = { 1, 4 };
    static cost c;
    cost_begin_pass(&c, rows, seconds, 2);
    EXPECT(fabs(cost_pass(&c, 1, 9000) - 1) < 1e-12);
    for (int i = 0; i < 300; i++) cost_saw_pass(&c, 1, 9000, 2);
    EXPECT(fabs(cost_pass(&c, 1, 9000) - 2) < 1e-6);
    EXPECT(fabs(cost_pass(&c, 1, 100) - 1) < 1e-12);
    EXPECT(fabs(cost_pass(&c, 1, 99999999) - 2) < 1e-6);
}
