/* line.c - see line.h. libedit is used through its readline interface, where it was there at build
 * time. */
#include "cli/line.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef INGOT_EDIT
#include <editline/readline.h>
#endif

#include "cli/interrupt.h"
#include "cli/setup.h"
#include "base/banned.h"

void line_open(line *l)
{
    l->terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    if (!l->terminal) return;
    /* the editor drops what the locale cannot hold; numbers keep their decimal point */
    if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1) setlocale(LC_CTYPE, "C.UTF-8");
}

#ifdef INGOT_EDIT
static bool edited(const char *prompt, buf *out)
{
    char *text;
    while (!(text = readline(prompt))) {
        if (!interrupt_forget_ctrl_c()) return false;
        putchar('\n');
    }
    if (*text) add_history(text);
    buf_text(out, text);
    free(text); /* libedit's own allocation */
    return true;
}
#endif

static bool plain(buf *out)
{
    int ch;
    while ((ch = getc(stdin)) != EOF && ch != '\n') buf_char(out, (char)ch);
    if (ch == EOF && (out->len == 0 || interrupt_seen())) return false;
    while (out->len && out->ptr[out->len - 1] == '\r') out->ptr[--out->len] = '\0';
    return true;
}

bool line_read(line *l, const char *prompt, buf *out)
{
    buf_clear(out);
#ifdef INGOT_EDIT
    if (l->terminal) return edited(prompt, out);
#endif
    if (l->terminal) {
        fputs(prompt, stdout);
        fflush(stdout);
    }
    return plain(out);
}
