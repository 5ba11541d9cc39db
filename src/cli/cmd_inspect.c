/* cmd_inspect.c - `ingot inspect`: what a pack is, and the memory that running it takes, before
 * loading it. */
#include <stdio.h>

#include "base/file.h"
#include "cli/cmd.h"
#include "cli/setup.h"
#include "tools/inspect.h"
#include "base/banned.h"

enum { MOST_OUTPUT = 256 << 20 };

static status run(const char *folder, const char *config_path, const inspect_options *o, error *e)
{
    pack *p;
    buf out;
    if (!file_is_dir(folder)) return error_set(e, E_IO, "inspect: %s: no such folder", folder);
    TRY(pack_open(&p, folder, config_path, e));
    buf_init(&out, MOST_OUTPUT);
    status s = inspect_write(p, o, &out, e);
    if (s == OK) s = buf_status(&out, "inspect", e);
    if (s == OK) fwrite(out.ptr, 1, out.len, stdout);
    buf_free(&out);
    pack_close(p);
    return s;
}

int cmd_inspect(int argc, char **argv)
{
    const char *folder = NULL, *config_path = NULL;
    inspect_options o = { 0 };
    const option own[] = {
        { OPTION_FLAG, "json", 0, &o.json, NULL, "one JSON object on stdout and nothing else", 0, 0,
          NULL },
        { OPTION_FLAG, "tensors", 0, &o.tensors, NULL, "list every tensor of the files", 0, 0,
          NULL },
        { OPTION_INT, "context", 0, &o.context, "N",
          "positions of a sequence, for the memory needed", 1, 1 << 24, NULL },
        { OPTION_INT, "parallel", 0, &o.parallel, "N", "sequences at once, for the memory needed",
          1, 4096, NULL },
        { OPTION_TEXT, "drafter-config", 0, &config_path, "FILE",
          "config.json for a drafter folder without one", 0, 0, NULL },
        { .kind = OPTION_END },
    };
    const options_command c = {
        .name = "inspect",
        .usage = "FOLDER [options]",
        .summary = "say what a pack is and what it needs",
        .tables = { own },
        .positional = { &folder },
        .min_positional = 1,
        .max_positional = 1,
    };
    error e;
    bool help;
    status s = options_parse(&c, argc, argv, &help, &e);
    if (s == OK && help) {
        options_help(&c, stdout);
        return EXIT_DONE;
    }
    if (s == OK) s = run(folder, config_path, &o, &e);
    return s == OK ? EXIT_DONE : setup_fail(&e);
}
