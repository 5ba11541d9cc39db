/* `ingot bench`, and what of it does not depend on the machine. */
#include "base/file.h"
#include "base/json.h"
#include "program.h"

/* Times differ from run to run; what must not is that every figure promised is there. */
TEST(bench_reports_what_it_promises)
{
    json_doc *doc;
    error e;
    double share;
    int64_t rows;
    EXPECT_INT(run("bench --quiet --json --repeat 1 --max-tokens 4 --lengths 16 --depths 0,9" KING
                   " --drafter " NUGGET "drafter-q8 --plot ingot-test.svg"),
               0);
    EXPECT_OK(json_parse(&doc, str_from(out), 0, "stdout", &e), e);
    const json_node *root = json_root(doc);
    EXPECT_INT(json_len(json_get(root, "rows")), 16);
    EXPECT(json_i64(json_get(json_at(json_get(root, "rows"), 15), "rows"), &rows) && rows == 16);
    EXPECT_INT(json_len(json_get(root, "prefill")), 1);
    EXPECT_INT(json_len(json_get(root, "decode")), 2);
    EXPECT(json_f64(json_get(json_at(json_get(root, "decode"), 1), "bandwidth_share"), &share) &&
           share > 0);
    EXPECT(json_f64(json_get(json_at(json_get(root, "decode"), 1), "verify_cost"), &share) &&
           share > 0);
    EXPECT(json_f64(json_get(json_get(root, "read"), "spread"), &share) && share >= 0);
    EXPECT_STR(json_text(json_get(json_at(json_get(root, "draft"), 0), "block")), "plain");
    EXPECT_INT(json_len(json_get(root, "prompts")), 6);
    EXPECT(json_f64(json_get(json_at(json_get(root, "prompts"), 4), "acceptance"), &share) &&
           share >= 0 && share <= 1); /* 0: drafts did not pay */
    EXPECT_INT(json_len(json_get(root, "serve")), 4);
    EXPECT(json_i64(json_get(json_at(json_get(root, "serve"), 3), "requests"), &rows) && rows == 8);
    EXPECT(json_f64(json_get(json_at(json_get(root, "serve"), 3), "tok_s"), &share) && share > 0);
    EXPECT(json_get(json_get(root, "memory"), "rss_peak"));
    EXPECT(file_exists("ingot-test.svg"));
    unlink("ingot-test.svg");
    json_free(doc);
    expect_refusal("bench --quiet --what nothing", 2, "--what");
    expect_refusal("bench --quiet --depths 1,x" KING, 2, "--depths");
}
