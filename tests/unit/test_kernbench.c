#include "test.h"
#include "tools/kernbench.h"

TEST(figures_fit_together)
{
    error e;
    compute *c;
    kernbench_result r;
    const compute_options o = { NULL, 2 };
    EXPECT_OK(compute_open(&c, &o, &e), e);
    EXPECT_OK(kernbench_run(&r, c, 0, 1, &e), e);
    EXPECT(r.read_gb_s > 0);
    for (int i = 0; i < KERNBENCH_COUNTS; i++) {
        EXPECT(r.ms[i] > 0);
        EXPECT(r.cost[i] > 0.99 * r.ms[i] / r.ms[0] && r.cost[i] < 1.01 * r.ms[i] / r.ms[0]);
        const double macs = 17408.0 * 5120 * kernbench_rows[i] / (r.ms[i] * 1e6);
        EXPECT(r.gmac_s[i] > 0.99 * macs && r.gmac_s[i] < 1.01 * macs);
    }
    compute_close(c);
}
