/* `ingot chat` from a pipe: a turn a line, and what becomes of those that fail. */
#include <math.h>

#include "base/json.h"
#include "packkit.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
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

/* A tiny model whose numbers break as soon as it reads "~" or the third token of its answer to
 * "Hello!". */
static kit breakable_king(void)
{
    const kit k = kit_new("qwen35-tiny-bf16");
    const char *const table = "language_model.model.embed_tokens.weight";
    char command[1024];
    json_doc *doc;
    error e;
    int64_t id;
    snprintf(command, sizeof command,
             "cd " PACKS "qwen35-tiny-affine4 && cp *oken*.json *.jinja %s", k.folder);
    EXPECT_INT(system(command), 0);
    snprintf(command, sizeof command,
             "generate --quiet --json --no-thinking -n 6 -p Hello! --king %s", k.folder);
    EXPECT_INT(run(command), 0);
    EXPECT_OK(json_parse(&doc, str_from(out), 0, "stdout", &e), e);
    EXPECT(json_i64(json_at(json_get(json_root(doc), "token_ids"), 2), &id));
    json_free(doc);
    const int64_t ids[] = { id, 93 }, pairs = 64 / 2; /* of halves in a row */
    for (int i = 0; i < 2; i++) {
        const kit_change broken = SET(table, ids[i] * pairs, INFINITY);
        kit_tensor(&k, "model.safetensors", &broken);
    }
    return k;
}

/* What fails in the engine, at once or after some words, is no part of the conversation, and the
 * next turn is answered as if it had not been tried. */
TEST(a_turn_that_breaks_leaves_no_trace)
{
    static char want[1 << 12], line[1 << 12];
    char command[1024];
    const kit k = breakable_king();
#define TALK "chat --quiet --max-tokens 6 --no-thinking --king %s"
    snprintf(command, sizeof command, TALK " <<'X'\nAgain.\n/save want\nX\n", k.folder);
    EXPECT_INT(run(command), 0);
    snprintf(line, sizeof line, "\n%s", out);
    read_back("want", want, sizeof want);
    EXPECT(strstr(want, "\"assistant\""));
    snprintf(command, sizeof command, TALK " <<'X'\nHello!\nAgain.\n~\n/save got\nX\n", k.folder);
    EXPECT_INT(run(command), 1);
    const char *said = strstr(err, "not finite");
    EXPECT(said && strstr(said + 1, "not finite"));
    EXPECT(out[0] != '\n' && strstr(out, line)); /* some words, then the answer of before */
    read_back("got", out, sizeof out);
    EXPECT_STR(out, want);
    kit_free(&k);
}

/* Idle at its prompt, which is no end of the conversation. */
TEST(chat_that_is_told_to_end_was_interrupted)
{
    EXPECT_INT(system("mkfifo in; " TEST_PROGRAM " chat --quiet" KING " <in 2>said & exec 3>in;"
                      "echo /save done.json >&3; until [ -s done.json ]; do sleep 0.05; done;"
                      "sleep 0.2; kill -TERM $!; wait $!; [ $? = 130 ]"),
               0);
    read_back("said", err, sizeof err);
    EXPECT_STR(err, "ingot: interrupted\n");
}

/* The master's side of a new terminal; the program is started on the other. */
static int chat_on_terminal(pid_t *pid)
{
    const int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) skip("no terminals here");
    *pid = fork();
    if (*pid == 0) {
        setsid();
        const int slave = open(ptsname(master), O_RDWR);
        ioctl(slave, TIOCSCTTY, 0);
        for (int fd = 0; fd < 3; fd++) dup2(slave, fd);
        setenv("TERM", "dumb", 1);
        execl(TEST_PROGRAM, "ingot", "chat", "--quiet", "--king", NUGGET "king", (char *)NULL);
        _exit(127);
    }
    return master;
}

/* Reads until the prompt stands there; false when a minute passes, or at the end. */
static bool prompted(int terminal)
{
    char last = '\0', ch;
    for (struct pollfd p = { .fd = terminal, .events = POLLIN };;) {
        if (poll(&p, 1, 60000) != 1 || read(terminal, &ch, 1) != 1) return false;
        if (last == '>' && ch == ' ') return true;
        last = ch;
    }
}

TEST(chat_on_a_terminal_ends_when_told_to)
{
    pid_t pid;
    int code;
    const int terminal = chat_on_terminal(&pid);
    EXPECT(prompted(terminal));
    usleep(300000); /* until it reads */
    kill(pid, SIGTERM);
    for (int i = 0; waitpid(pid, &code, WNOHANG) == 0; i++) {
        if (i == 1000) kill(pid, SIGKILL);
        usleep(10000);
    }
    EXPECT(WIFEXITED(code) && WEXITSTATUS(code) == 130);
    close(terminal);
}

TEST(a_line_may_not_hold_a_nul)
{
    EXPECT_INT(system("printf 'a\\0b\\n/save nul.json\\n' > turns"), 0);
    EXPECT_INT(run("chat --quiet" KING " < turns"), 1);
    EXPECT_STR(err, "ingot: stdin: found a NUL byte, want text\n");
    read_back("nul.json", out, sizeof out);
    EXPECT_STR(out, "[]");
}
