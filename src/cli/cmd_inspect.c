/* cmd_inspect.c - `ingot inspect`: what a pack is, and the memory that running it takes, before
 * loading it. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/cmd.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/locate.h"
#include "cli/setup.h"
#include "tools/inspect.h"
#include "tools/twininfo.h"
#include "base/banned.h"

enum { MOST_OUTPUT = 256 << 20 };

typedef struct inspection {
    setup base;
    const char *folder, *config_path, *drafter;
    inspect_options how;
    bool verify;
} inspection;

static status report(inspection *i, const inspect_subject *subject, error *e)
{
    buf out;
    int faults = 0;
    buf_init(&out, MOST_OUTPUT);
    status s = inspect_report(subject, &i->how, &out, &faults, e);
    progress_clear(&i->base.bar);
    if (s == OK) s = buf_status(&out, "inspect", e);
    if (s == OK) fwrite(out.ptr, 1, out.len, stdout);
    buf_free(&out);
    TRY(s);
    if (faults == 0) return OK;
    return error_set(e, E_UNSUPPORTED, "%s: %d %s", i->folder, faults,
                     faults == 1 ? "fault" : "faults");
}

static status inspect_folder(inspection *i, const char *folder, error *e)
{
    char drafter[4096];
    inspect_subject subject = { .folder = folder,
                                .config_path = i->config_path,
                                .verify = i->verify,
                                .progress = progress_step,
                                .arg = &i->base.bar };
    if (i->drafter) {
        TRY(locate_folder(i->drafter, "drafter", i->base.offline, &i->base.bar, drafter,
                          sizeof drafter, e));
        subject.drafter = drafter;
    }
    return report(i, &subject, e);
}

/* A GGUF file: what it is, from its own header. */
static status report_twin(const inspection *i, error *e)
{
    buf out;
    buf_init(&out, MOST_OUTPUT);
    const status s = twininfo_write(i->folder, i->how.json, i->how.tensors, &out, e);
    if (s == OK) fwrite(out.ptr, 1, out.len, stdout);
    buf_free(&out);
    return s;
}

#ifdef INGOT_HUB
static status remove_one(void *arg, const char *name, error *e)
{
    char path[4096];
    TRY(file_join(path, sizeof path, arg, name, e));
    if (file_is_dir(path)) TRY(file_list(path, remove_one, path, e));
    if (remove(path) == 0) return OK;
    return error_set(e, E_IO, "%s: cannot be removed", path);
}

/* A model that is not here: its configs and the heads of its files, in a folder for the moment. */
static status inspect_afar(inspection *i, error *e)
{
    char folder[4096];
    const char *tmp = getenv("TMPDIR");
    const int n = snprintf(folder, sizeof folder, "%s/ingot-inspect-XXXXXX", tmp ? tmp : "/tmp");
    if (n < 0 || (size_t)n >= sizeof folder || !mkdtemp(folder))
        return error_set(e, E_IO, "%s: cannot be created", folder);
    hub_options o = { .offline = i->base.offline };
    interrupt_catch(); /* the folder goes again, whatever happens */
    locate_hub_options(&o, &i->base.bar);
    status s = hub_preview(i->folder, &o, folder, e);
    if (s == OK) s = report(i, &(inspect_subject){ .folder = folder, .id = i->folder }, e);
    (void)file_list(folder, remove_one, folder, NULL);
    (void)rmdir(folder);
    return s;
}
#endif

static status run(void *arg, error *e)
{
    inspection *i = arg;
    char folder[4096], tiles[4096];
    bool chosen;
    setup_bar(&i->base, "reading");
    i->how.json = i->base.json;
    TRY(locate_tiles(i->how.tiles, tiles, sizeof tiles, &chosen, e));
    i->how.tiles = tiles[0] ? tiles : NULL;
    if (i->drafter && !i->verify) return error_set(e, E_ARG, "--drafter: only with --verify");
    if (file_exists(i->folder) && !file_is_dir(i->folder)) {
        if (!i->verify) return report_twin(i, e);
        return error_set(e, E_ARG,
                         "--verify: %s is a file: want a folder (`ingot convert` makes "
                         "one, and checks what it reads)",
                         i->folder);
    }
#ifdef INGOT_HUB
    const bool afar = !i->verify && !file_exists(i->folder) && hub_is_name(i->folder);
    if (afar && hub_find(i->folder, &(hub_options){ 0 }, folder, sizeof folder, NULL) != OK)
        return inspect_afar(i, e);
#endif
    TRY(locate_folder(i->folder, "inspect", i->base.offline, &i->base.bar, folder, sizeof folder,
                      e));
    return inspect_folder(i, folder, e);
}

int cmd_inspect(int argc, char **argv)
{
    inspection i = { 0 };
    setup_init(&i.base);
    const option own[] = {
        { OPTION_FLAG, "tensors", 0, &i.how.tensors, NULL, "list every tensor of the files", 0, 0,
          NULL },
        { OPTION_FLAG, "verify", 0, &i.verify, NULL,
          "read every weight and the manifest; end in `ok` or the faults (exit 3)", 0, 0, NULL },
        { OPTION_TEXT, "drafter", 0, &i.drafter, "FOLDER",
          "with --verify: does this drafter fit the king?", 0, 0, NULL },
        { OPTION_INT, "context", 0, &i.how.context, "N",
          "positions of a sequence, for the memory needed", 1, 1 << 24, NULL },
        { OPTION_INT, "parallel", 0, &i.how.parallel, "N",
          "sequences at once, for the memory needed", 1, 4096, NULL },
        { OPTION_TEXT, "kv-type", 0, &i.how.kv_type, "f16|f32|q8",
          "how keys and values are kept, for the memory needed (default f16)", 0, 0, NULL },
        { OPTION_TEXT, "tiles", 0, &i.how.tiles, "DIR",
          "where prepared weights are kept (default: $INGOT_TILES, else your cache)", 0, 0, NULL },
        { OPTION_TEXT, "drafter-config", 0, &i.config_path, "FILE",
          "config.json for a drafter folder without one", 0, 0, NULL },
        { .kind = OPTION_END },
    };
    const options_command c = {
        .name = "inspect",
        .usage = "FOLDER|ID|FILE.gguf [options]",
        .summary = "say what a pack is and what it needs",
        .details =
            "Of a hub id that is not in the cache only the headers are fetched; with --verify "
            "the whole.",
        .tables = { own, i.base.folder_options },
        .positional = { &i.folder },
        .min_positional = 1,
        .max_positional = 1,
    };
    return command_run(&c, argc, argv, run, &i);
}
