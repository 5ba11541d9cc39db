/* program.h - the program as users run it: a command line, its exit code, what it said.
 *
 * Every test that includes this works in a folder of its own: names of files are relative, and
 * tests may run at once. */
#ifndef PROGRAM_H
#define PROGRAM_H
#include <sys/wait.h>
#include <unistd.h>

#include "base/json.h"
#include "test.h"

#define NUGGET TEST_ROOT "/models/nugget/"
#define PACKS TEST_ROOT "/tests/golden/packs/"
#define KING " --king " NUGGET "king"

static char folder[] = "/tmp/ingot-main-XXXXXX";

static inline void leave_folder(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (chdir("/") == 0 && system(command) != 0) perror(command);
}

__attribute__((constructor)) static inline void enter_folder(void)
{
    if (!mkdtemp(folder) || chdir(folder) != 0) FAIL("cannot make %s", folder);
    atexit(leave_folder);
}

/* stdout and stderr of the last run */
static char out[1 << 20], err[1 << 16];

/* The content of a file, which is removed. */
static inline void read_back(const char *path, char *to, size_t cap)
{
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(to, 1, cap - 1, f) : 0;
    to[n] = '\0';
    if (f) fclose(f);
    unlink(path);
}

static inline int run(const char *arguments)
{
    char command[8192];
    snprintf(command, sizeof command, "%s >ingot-test.out 2>ingot-test.err %s", TEST_PROGRAM,
             arguments);
    const int code = system(command);
    read_back("ingot-test.out", out, sizeof out);
    read_back("ingot-test.err", err, sizeof err);
    if (!WIFEXITED(code)) FAIL("ingot %s: ended by signal %d", arguments, WTERMSIG(code));
    return WEXITSTATUS(code);
}

/* One line "ingot: ...", and a hint line at most. */
static inline void expect_refusal(const char *arguments, int code, const char *words)
{
    const int got = run(arguments);
    if (got != code) FAIL("ingot %s: exit %d, want %d (%s)", arguments, got, code, err);
    if (strncmp(err, "ingot: ", 7) != 0 || !strstr(err, words))
        FAIL("ingot %s: said \"%s\"", arguments, err);
    const char *end = strchr(err, '\n');
    if (!end || (end[1] && strncmp(end + 1, "hint: ", 6) != 0))
        FAIL("ingot %s: more than a line: %s", arguments, err);
    if (out[0]) FAIL("ingot %s: printed \"%s\"", arguments, out);
}

/* A member of the JSON object that the last run printed. */
static inline void expect_text(const char *member, const char *want)
{
    json_doc *doc;
    error e;
    EXPECT_OK(json_parse(&doc, str_from(out), 0, "stdout", &e), e);
    EXPECT_STR(json_text(json_get(json_root(doc), member)), want);
    json_free(doc);
}
#endif
