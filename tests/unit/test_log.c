#include "test.h"
#include <unistd.h>
#include "base/log.h"

/* Runs f with stderr in a file and returns what was printed. */
static char *printed(void (*f)(void))
{
    static char text[8192];
    FILE *file = tmpfile();
    EXPECT(file);
    const int saved = dup(STDERR_FILENO);
    EXPECT(saved >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    f();
    EXPECT(dup2(saved, STDERR_FILENO) >= 0);
    close(saved);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static void one_of_each(void)
{
    log_line(LOG_ERROR, "e %d", 1);
    log_line(LOG_WARN, "w %s", "x");
    log_line(LOG_INFO, "i");
    log_line(LOG_DEBUG, "d");
}

TEST(levels)
{
    EXPECT_STR(printed(one_of_each), "error: e 1\nwarning: w x\n");
    log_set_level(LOG_DEBUG);
    EXPECT_STR(printed(one_of_each), "error: e 1\nwarning: w x\ni\ndebug: d\n");
    log_set_level(LOG_ERROR);
    EXPECT_STR(printed(one_of_each), "error: e 1\n");
}

static void long_line(void)
{
    char text[5000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    log_line(LOG_ERROR, "%s", text);
}

TEST(long_lines_are_cut)
{
    const char *text = printed(long_line);
    const size_t n = strlen(text);
    EXPECT(n < 2100);
    EXPECT_STR(text + n - 5, "x...\n");
}
