/* cmd_pull.c - `ingot pull`: a model from the hub into the shared cache, or into a folder. */
#include <stdio.h>

#include "cli/cmd.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/locate.h"
#include "cli/result.h"
#include "cli/setup.h"
#include "base/banned.h"

typedef struct pulling {
    setup base;
    const char *name;
    option_list include;
    hub_options o;
} pulling;

static status run(void *arg, error *e)
{
    pulling *p = arg;
    char folder[4096];
    progress *bar = &p->base.bar;
    progress_init(bar, p->base.quiet);
    p->o.include = p->include.items;
    p->o.n_include = p->include.n;
    interrupt_catch();
    locate_hub_options(&p->o, bar);
    const status s = hub_pull(p->name, &p->o, folder, sizeof folder, e);
    progress_clear(bar);
    TRY(s);
    if (!p->base.json) {
        puts(folder);
        return OK;
    }
    result out;
    result_begin(&out);
    jsonw_member_text(&out.w, "folder", folder);
    return result_end(&out, OK, e);
}

int cmd_pull(int argc, char **argv)
{
    pulling p = { 0 };
    setup_init(&p.base);
    const option own[] = {
        { OPTION_TEXT, "to", 0, &p.o.to, "FOLDER",
          "plain files there (default: the cache that the Hugging Face clients share)", 0, 0,
          NULL },
        { OPTION_TEXT, "revision", 0, &p.o.revision, "NAME", "branch, tag or commit (default main)",
          0, 0, NULL },
        { OPTION_LIST, "include", 0, &p.include, "GLOB",
          "only files whose path matches; may be repeated (default: what a model needs)", 0, 0,
          NULL },
        { OPTION_FLAG, "offline", 0, &p.o.offline, NULL, "only say where the cached copy is", 0, 0,
          NULL },
        { OPTION_INT, "connections", 0, &p.o.connections, "N",
          "parts of a file fetched at once (default 4)", 1, 16, NULL },
        { .kind = OPTION_END },
    };
    const options_command c = {
        .name = "pull",
        .usage = "OWNER/NAME[@REVISION] [options]",
        .summary = "fetch a model by its hub id, resume, check it, print its folder",
        .details = "Honours HF_HOME, HF_HUB_CACHE, HF_TOKEN, HF_ENDPOINT and HF_HUB_OFFLINE. An "
                   "interrupted download goes on where it was.",
        .tables = { own, p.base.output_options },
        .positional = { &p.name },
        .min_positional = 1,
        .max_positional = 1,
    };
    return command_run(&c, argc, argv, run, &p);
}
