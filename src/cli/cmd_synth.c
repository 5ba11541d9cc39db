/* cmd_synth.c - `ingot synth`: a pack of random weights in a real layout, for benchmarks and tests.
 */
#include <stdio.h>

#include "cli/cmd.h"
#include "cli/setup.h"
#include "tools/synth.h"
#include "base/banned.h"

static void draw(void *arg, uint64_t done, uint64_t total)
{
    progress_draw(arg, "writing", done, total);
}

int cmd_synth(int argc, char **argv)
{
    const char *folder = NULL;
    bool quiet = false;
    progress bar;
    synth_options o = { .seed = 1 };
    const option own[] = {
        { OPTION_TEXT, "shape", 0, &o.shape, "NAME|FILE",
          "king-27b, drafter-27b, or a JSON file of dimensions", 0, 0, NULL },
        { OPTION_INT, "layers", 0, &o.layers, "N", "layers, instead of the shape's own number", 1,
          512, NULL },
        { OPTION_U64, "seed", 0, &o.seed, "N", "the same seed gives the same bytes (default 1)", 0,
          0, NULL },
        { OPTION_FLAG, "quiet", 0, &quiet, NULL, "no progress", 0, 0, NULL },
        { .kind = OPTION_END },
    };
    const options_command c = {
        .name = "synth",
        .usage = "FOLDER --shape king-27b|drafter-27b|FILE.json [options]",
        .summary = "write a pack of random weights in a real layout",
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
    progress_init(&bar, quiet);
    o.progress = draw;
    o.arg = &bar;
    if (s == OK && !o.shape)
        s = error_set(&e, E_ARG, "synth: want --shape king-27b, drafter-27b or a JSON file");
    if (s == OK) s = synth_write(folder, &o, &e);
    progress_clear(&bar);
    return s == OK ? EXIT_DONE : setup_fail(&e);
}
