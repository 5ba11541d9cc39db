/* cmd_prepare.c - `ingot prepare`: the weights of a pack kept on disk as they are computed with,
 * for instant starts. */
#include <stdio.h>

#include "cli/cmd.h"
#include "cli/command.h"
#include "cli/locate.h"
#include "cli/result.h"
#include "cli/setup.h"
#include "tools/prepare.h"
#include "base/banned.h"

typedef struct preparing {
    setup base;
    const char *pack, *tiles;
    prepare_options o;
} preparing;

static status print_json(const prepare_report *r, error *e)
{
    result out;
    result_begin(&out);
    jsonw_member_text(&out.w, "file", r->path);
    jsonw_member_u64(&out.w, "bytes", r->bytes);
    jsonw_member_bool(&out.w, "written", r->written);
    return result_end(&out, OK, e);
}

static status run(void *arg, error *e)
{
    preparing *y = arg;
    char folder[4096], tiles[4096], size[32];
    bool chosen;
    progress *bar = &y->base.bar;
    prepare_report r;
    setup_bar(&y->base, "preparing");
    TRY(locate_tiles(y->tiles, tiles, sizeof tiles, &chosen, e));
    if (!tiles[0])
        return error_set(e, E_ARG, "prepare: want --tiles DIR, $INGOT_TILES or $HOME to be set");
    TRY(locate_folder(y->pack, "prepare", y->base.offline, bar, folder, sizeof folder, e));
    y->o.pack = folder;
    y->o.tiles = tiles;
    y->o.progress = progress_step;
    y->o.notice = setup_note;
    y->o.arg = bar;
    const status s = prepare_run(&y->o, &r, e);
    progress_clear(bar);
    TRY(s);
    if (y->base.json) return print_json(&r, e);
    progress_bytes(size, r.bytes);
    printf("%s  %s, %s\n", r.path, size,
           r.written     ? "written"
           : y->o.verify ? "there, and whole"
                         : "there");
    return OK;
}

int cmd_prepare(int argc, char **argv)
{
    preparing y = { .pack = NULL };
    setup_init(&y.base);
    const option own[] = {
        { OPTION_TEXT, "tiles", 0, &y.tiles, "DIR",
          "where to keep them (default: $INGOT_TILES, else ingot/tiles in your cache)", 0, 0,
          NULL },
        { OPTION_FLAG, "verify", 0, &y.o.verify, NULL,
          "compare all of a file that is there with the pack; one that differs is made again", 0, 0,
          NULL },
        { OPTION_TEXT, "drafter-config", 0, &y.o.config_path, "FILE",
          "config.json for a drafter folder without one", 0, 0, NULL },
        { OPTION_INT, "threads", 't', &y.o.threads, "N",
          "threads (default: physical cores this process may use)", 1, 1024, NULL },
        { .kind = OPTION_END },
    };
    const options_command c = {
        .name = "prepare",
        .usage = "FOLDER|ID [--tiles DIR] [options]",
        .summary = "keep the weights on disk as they are computed with",
        .details =
            "Loading a king or a drafter repacks its weights. This does it once: every command "
            "that loads "
            "then maps the file, at once, and processes share it. The file belongs to the pack's "
            "content; one "
            "of another pack or version, or a damaged one, is refused and made again. It can be "
            "deleted at any time.",
        .tables = { own, y.base.folder_options },
        .positional = { &y.pack },
        .min_positional = 1,
        .max_positional = 1,
    };
    return command_run(&c, argc, argv, run, &y);
}
