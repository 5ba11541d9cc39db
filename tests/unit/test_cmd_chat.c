/* `ingot chat` from a pipe: a turn a line, and what becomes of those that fail. */
#include "program.h"

TEST(chat_answers_a_prompt_a_line)
{
    EXPECT_INT(run("chat --quiet --max-tokens 8 --no-thinking" KING
                   " <<'X'\nHello!\n/system Be brief.\nHello!\nX\n"),
               0);
    int lines = 0;
    for (const char *p = out; *p; p++) lines += *p == '\n';
    EXPECT_INT(lines, 2);
    EXPECT_INT(run("chat --quiet" KING " <<'X'\n/nonsense\nX\n"), 2);
}

/* What was refused is no part of the conversation; lines may end as on other systems. */
TEST(a_refused_turn_leaves_no_trace)
{
    static char want[1 << 12];
#define CHAT "chat --quiet --context 64 --max-tokens 8 --no-thinking" KING
    EXPECT_INT(run(CHAT " <<'X'\nHello!\n/save plain.json\nX\n"), 0);
    read_back("plain.json", want, sizeof want);
    EXPECT(strstr(want, "Hello!"));
    EXPECT(system("for i in $(seq 100); do printf 'word '; done > turns;"
                  "printf '\\nHello!\\r\\n/save long.json\\r\\n' >> turns") == 0);
    EXPECT(run(CHAT " < turns") != 0);
    EXPECT(strstr(err, "hint: /reset"));
    read_back("long.json", out, sizeof out);
    EXPECT_STR(out, want);
}

TEST(a_block_of_lines_holds_no_carriage_returns)
{
    EXPECT_INT(system("printf '\"\"\"a\\r\\nb\"\"\"\\r\\n/save block.json\\r\\n' > turns"), 0);
    EXPECT_INT(run("chat --quiet --max-tokens 1 --no-thinking" KING " < turns"), 0);
    read_back("block.json", out, sizeof out);
    EXPECT(strstr(out, "\"a\\nb\""));
}
