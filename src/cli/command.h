/* command.h - the frame of every command: its words, its help, its errors and its exit code. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H
#include "cli/options.h"
#include "ingot/ingot.h"

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_REFUSED = 3, EXIT_INTERRUPTED = 130 };

/* A library error as ours. */
status command_status(ingot_status s, const ingot_error *from, error *e);
/* When the message is about `part` ("messages"; "": whatever it is), which was read from the file
 * `path`, it names the file, and the code is that of a bad file. Returns the code. */
status command_blame(const char *part, const char *path, error *e);
/* Prints "ingot: MESSAGE" (and a hint where one is known) on stderr; returns the exit code. */
int command_fail(const error *e);
/* The frame of every command: parses, prints the help when asked, else runs fn; returns the exit
 * code. */
int command_run(const options_command *c, int argc, char **argv, status (*fn)(void *arg, error *e),
                void *arg);
#endif
