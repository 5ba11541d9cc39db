/* `ingot prepare`, and commands that map what it made. */
#include "base/json.h"
#include "program.h"

/* Prepared weights are the same weights: the same answer, said in the same words. */
TEST(prepare_keeps_tiles_that_every_command_maps)
{
    char dir[] = "/tmp/ingot-test-tiles-XXXXXX", command[512], want[128], path[4096];
    const char *const pair = KING " --drafter " NUGGET "drafter-q8";
    json_doc *doc;
    error e;
    EXPECT(mkdtemp(dir) != NULL);
    snprintf(command, sizeof command, "prepare --quiet --json --tiles %s " NUGGET "king", dir);
    for (int turn = 0; turn < 2; turn++) {
        EXPECT_INT(run(command), 0);
        EXPECT_OK(json_parse(&doc, str_from(out), 0, "stdout", &e), e);
        EXPECT(json_is_true(json_get(json_root(doc), "written")) == (turn == 0));
        snprintf(path, sizeof path, "%s", json_text(json_get(json_root(doc), "file")));
        json_free(doc);
    }
    snprintf(command, sizeof command, "generate --quiet --raw -p Hello -n 24 --json%s", pair);
    EXPECT_INT(run(command), 0);
    const char *hash = strstr(out, "\"sha256\":");
    EXPECT(hash != NULL);
    snprintf(want, sizeof want, "%.75s", hash);
    for (int turn = 0; turn < 2; turn++) { /* the drafter's file is made by the first one */
        snprintf(command, sizeof command,
                 "generate --quiet --raw -p Hello -n 24 --json --tiles %s%s", dir, pair);
        EXPECT_INT(run(command), 0);
        EXPECT(strstr(out, want));
        EXPECT_STR(err, "");
    }
    snprintf(command, sizeof command, "inspect --json --tiles %s " NUGGET "king", dir);
    EXPECT_INT(run(command), 0);
    EXPECT(strstr(out, path));
    EXPECT_INT(truncate(path, 5000), 0);
    snprintf(command, sizeof command, "prepare --quiet --tiles %s " NUGGET "king", dir);
    EXPECT_INT(run(command), 0);
    EXPECT(strstr(err, "found 5000 bytes, want ") && strstr(err, "made again"));
    EXPECT(strstr(out, "written"));
    snprintf(command, sizeof command, "rm -r %s", dir);
    EXPECT_INT(system(command), 0);
    expect_refusal("prepare --quiet --tiles /dev/null/x " NUGGET "king", 1, "/dev/null");
    expect_refusal("prepare", 2, "prepare");
}
