/* cmd_inspect.c - `ingot inspect`: what a pack is, and the memory that running it takes, before
 * loading it. */
#include <stdio.h>

#include "base/file.h"
#include "cli/cmd.h"
#include "cli/setup.h"
#include "tools/doctor.h"
#include "tools/inspect.h"
#include "base/banned.h"

enum { MOST_OUTPUT = 256 << 20 };

typedef struct inspection {
    const char *folder, *config_path, *drafter;
    inspect_options how;
    bool verify, quiet;
} inspection;

static status describe(const pack *p, const inspect_options *o, error *e)
{
    buf out;
    buf_init(&out, MOST_OUTPUT);
    status s = inspect_write(p, o, &out, e);
    if (s == OK) s = buf_status(&out, "inspect", e);
    if (s == OK) fwrite(out.ptr, 1, out.len, stdout);
    buf_free(&out);
    return s;
}

static void draw(void *arg, uint64_t done, uint64_t total)
{
    progress_draw(arg, "reading", done, total);
}

/* Ends in `ok`, or in the list of faults (E_UNSUPPORTED: exit 3). */
static status examine(const pack *p, const pack *drafter, bool quiet, error *e)
{
    doctor_report r;
    progress bar;
    progress_init(&bar, quiet);
    const status s = doctor_check(p, drafter, draw, &bar, &r, e);
    progress_clear(&bar);
    const int faults = r.faults;
    if (s == OK && r.lines.len) fwrite(r.lines.ptr, 1, r.lines.len, stdout);
    doctor_free(&r);
    TRY(s);
    if (faults == 0) puts("ok");
    return faults ? error_set(e, E_UNSUPPORTED, "%s: %d faults", pack_folder(p), faults) : OK;
}

static status run(void *arg, error *e)
{
    const inspection *i = arg;
    pack *p = NULL, *drafter = NULL;
    if (!file_is_dir(i->folder))
        return error_set(e, E_IO, "inspect: %s: no such folder", i->folder);
    status s = pack_open(&p, i->folder, i->config_path, e);
    if (s == OK && i->drafter) s = pack_open(&drafter, i->drafter, NULL, e);
    if (s == OK) s = describe(p, &i->how, e);
    if (s == OK && i->verify) s = examine(p, drafter, i->quiet, e);
    if (drafter) pack_close(drafter);
    if (p) pack_close(p);
    return s;
}

int cmd_inspect(int argc, char **argv)
{
    inspection i = { 0 };
    const option own[] = {
        { OPTION_FLAG, "json", 0, &i.how.json, NULL, "one JSON object on stdout", 0, 0, NULL },
        { OPTION_FLAG, "tensors", 0, &i.how.tensors, NULL, "list every tensor of the files", 0, 0,
          NULL },
        { OPTION_FLAG, "verify", 0, &i.verify, NULL,
          "read every weight; end in `ok` or the faults (exit 3)", 0, 0, NULL },
        { OPTION_TEXT, "drafter", 0, &i.drafter, "FOLDER",
          "with --verify: does this drafter fit the king?", 0, 0, NULL },
        { OPTION_INT, "context", 0, &i.how.context, "N",
          "positions of a sequence, for the memory needed", 1, 1 << 24, NULL },
        { OPTION_INT, "parallel", 0, &i.how.parallel, "N",
          "sequences at once, for the memory needed", 1, 4096, NULL },
        { OPTION_TEXT, "drafter-config", 0, &i.config_path, "FILE",
          "config.json for a drafter folder without one", 0, 0, NULL },
        { OPTION_FLAG, "quiet", 0, &i.quiet, NULL, "no progress", 0, 0, NULL },
        { .kind = OPTION_END },
    };
    const options_command c = {
        .name = "inspect",
        .usage = "FOLDER [options]",
        .summary = "say what a pack is and what it needs",
        .tables = { own },
        .positional = { &i.folder },
        .min_positional = 1,
        .max_positional = 1,
    };
    return setup_command(&c, argc, argv, run, &i);
}
