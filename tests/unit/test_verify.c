/* `ingot eval verify` on the shipped pair. */
#include "program.h"

TEST(verify_finds_all_ways_identical)
{
    FILE *f = fopen("ingot-test-prompts", "w");
    fputs("What is 17 + 26?\nRepeat exactly: alpha beta alpha beta alpha beta alpha beta\n", f);
    fclose(f);
    EXPECT_INT(run("eval verify --quiet --json --max-tokens 24 --prompts ingot-test-prompts" KING
                   " --drafter " NUGGET "drafter-q8"),
               0);
    EXPECT(strstr(out, "\"identical\":true,\"prompts\":2,"));
    unlink("ingot-test-prompts");
}
