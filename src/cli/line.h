/* line.h - one line from the user: with editing and history on a terminal, plain elsewhere. */
#ifndef CLI_LINE_H
#define CLI_LINE_H
#include <stdbool.h>
#include "base/buf.h"

typedef struct line {
    bool terminal; /* stdin and stdout are terminals */
} line;

void line_open(line *l);
/* Replaces *out by the next line, which may hold NUL bytes, without its end; false at the end of
 * input or when interrupted, but for Ctrl-C where lines are edited, which drops the line. The
 * prompt is shown on terminals only. */
bool line_read(line *l, const char *prompt, buf *out);
#endif
