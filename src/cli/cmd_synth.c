/* cmd_synth.c - `ingot synth`: a pack of random weights in a real layout, for benchmarks and
 * tests. */
#include "cli/cmd.h"
#include "cli/command.h"
#include "cli/result.h"
#include "cli/setup.h"
#include "tools/synth.h"
#include "base/banned.h"

typedef struct synthesis {
    setup base;
    const char *folder;
    synth_options o;
} synthesis;

static status run(void *arg, error *e)
{
    synthesis *y = arg;
    if (!y->o.shape)
        return error_set(e, E_ARG, "synth: want --shape king-27b, drafter-27b or a JSON file");
    setup_bar(&y->base, "writing");
    y->o.progress = progress_step;
    y->o.arg = &y->base.bar;
    const status s = synth_write(y->folder, &y->o, e);
    progress_clear(&y->base.bar);
    if (s || !y->base.json) return s;
    result out;
    result_begin(&out);
    jsonw_member_text(&out.w, "out", y->folder);
    return result_end(&out, OK, e);
}

int cmd_synth(int argc, char **argv)
{
    synthesis y = { .o.seed = 1 };
    setup_init(&y.base);
    const option own[] = {
        { OPTION_TEXT, "shape", 0, &y.o.shape, "NAME|FILE",
          "king-27b, drafter-27b, or a JSON file of dimensions", 0, 0, NULL },
        { OPTION_INT, "layers", 0, &y.o.layers, "N", "layers, instead of the shape's own number", 1,
          512, NULL },
        { OPTION_U64, "seed", 0, &y.o.seed, "N", "the same seed gives the same bytes (default 1)",
          0, 0, NULL },
        { .kind = OPTION_END },
    };
    const options_command c = {
        .name = "synth",
        .usage = "FOLDER --shape king-27b|drafter-27b|FILE.json [options]",
        .summary = "write a pack of random weights in a real layout",
        .tables = { own, y.base.output_options },
        .positional = { &y.folder },
        .min_positional = 1,
        .max_positional = 1,
    };
    return command_run(&c, argc, argv, run, &y);
}
