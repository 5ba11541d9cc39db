/* command.c - see command.h. */
#include "cli/command.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/banned.h"

status command_status(ingot_status s, const ingot_error *from, error *e)
{
    if (s == INGOT_OK) return OK;
    return error_set(e, (status)s, "%s", from->text);
}

status command_blame(const char *part, const char *path, error *e)
{
    char text[sizeof e->text];
    if (!path || !str_starts(str_from(e->text), str_from(part))) return e->code;
    snprintf(text, sizeof text, "%s", e->text);
    return error_set(e, E_FORMAT, "%s: %s", path, text);
}

/* What to do about errors that users meet most, by words of their messages. */
static const char *hint_for(const char *message)
{
    static const struct {
        const char *words, *hint;
    } hints[] = {
        { ": no such folder",
          "a model is a folder, or a hub id (owner/name) that `ingot pull` fetches" },
        { "found a file, want a folder",
          "`ingot convert FILE.gguf KING` makes a folder of a GGUF" },
        { "no model: no --king", "name one: --king FOLDER or --king owner/name" },
        { "not in the cache", "without --offline it is fetched" },
        { "unknown option", "`ingot help COMMAND` lists a command's options" },
        { "max_tokens", "--context makes room, --max-tokens asks for less" },
        { "found a king, want a drafter", "--king names the model, --drafter its small companion" },
        { "but the king has", "--no-drafter decodes without one" },
    };
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (strstr(message, hints[i].words)) return hints[i].hint;
    return NULL;
}

int command_fail(const error *e)
{
    const char *hint = hint_for(e->text);
    fprintf(stderr, "ingot: %s\n", e->text);
    if (hint) fprintf(stderr, "hint: %s\n", hint);
    switch (e->code) {
    case E_ARG: return EXIT_USAGE;
    case E_UNSUPPORTED: return EXIT_REFUSED;
    case E_CANCELLED: return EXIT_INTERRUPTED;
    default: return EXIT_FAILED;
    }
}

int command_run(const options_command *c, int argc, char **argv, status (*fn)(void *arg, error *e),
                void *arg)
{
    error e;
    bool help;
    status s = options_parse(c, argc, argv, &help, &e);
    if (s == OK && help) {
        options_help(c, stdout);
        return EXIT_DONE;
    }
    if (s == OK) s = fn(arg, &e);
    return s == OK ? EXIT_DONE : command_fail(&e);
}
