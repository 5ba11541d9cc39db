/* cmd_quantize.c - `ingot quantize`: a drafter or plain pack in, the same quantized as MLX does it
 * out. */
#include <stdio.h>

#include "base/pool.h"
#include "cli/cmd.h"
#include "cli/command.h"
#include "cli/locate.h"
#include "cli/result.h"
#include "cli/setup.h"
#include "tools/quantize.h"
#include "base/banned.h"

typedef struct quantizing {
    setup base;
    const char *source, *target, *mode;
    int bits, group;
    option_list only;
    quantize_options o;
} quantizing;

static void summarise(const quantize_report *r)
{
    char before[32], after[32];
    progress_bytes(before, r->bytes_before);
    progress_bytes(after, r->bytes_after);
    printf("%d matrices quantized, %d left dense; %s -> %s\n", r->quantized, r->dense, before,
           after);
    if (r->indivisible[0])
        printf("left dense for its width: %s%s\n", r->indivisible,
               r->dense > 1 ? " (or more)" : "");
}

static status print_json(const char *target, const quantize_report *r, error *e)
{
    result out;
    result_begin(&out);
    jsonw_member_text(&out.w, "out", target);
    jsonw_member_i64(&out.w, "quantized", r->quantized);
    jsonw_member_i64(&out.w, "dense", r->dense);
    jsonw_member_u64(&out.w, "bytes_before", r->bytes_before);
    jsonw_member_u64(&out.w, "bytes_after", r->bytes_after);
    return result_end(&out, OK, e);
}

static status run(void *arg, error *e)
{
    quantizing *q = arg;
    progress *bar = &q->base.bar;
    quantize_report r;
    TRY(quantize_format(q->mode, q->bits, q->group, &q->o.format, e));
    for (int i = 0; i < q->only.n; i++) q->o.only[q->o.n_only++] = q->only.items[i];
    if (!q->o.threads) q->o.threads = pool_default_threads(NULL, 0);
    setup_bar(&q->base, "quantizing");
    q->o.progress = progress_step;
    q->o.arg = bar;
    char source[4096];
    TRY(locate_folder(q->source, "quantize", q->base.offline, bar, source, sizeof source, e));
    const status s = quantize_run(source, q->target, &q->o, &r, e);
    progress_clear(bar);
    TRY(s);
    if (q->base.json) return print_json(q->target, &r, e);
    summarise(&r);
    return OK;
}

int cmd_quantize(int argc, char **argv)
{
    quantizing q = { .mode = "affine" };
    setup_init(&q.base);
    const option own[] = {
        { OPTION_TEXT, "mode", 0, &q.mode, "affine|mxfp4|mxfp8|nvfp4", "format (default affine)", 0,
          0, NULL },
        { OPTION_INT, "bits", 0, &q.bits, "N", "affine: 2, 3, 4, 5, 6 or 8 (default 4)", 1, 16,
          NULL },
        { OPTION_INT, "group", 0, &q.group, "N", "affine: 32, 64 or 128 (default 64)", 1, 1024,
          NULL },
        { OPTION_LIST, "only", 0, &q.only, "GLOB",
          "only modules whose path matches, such as 'layers.*'; may be repeated", 0, 0, NULL },
        { OPTION_TEXT, "drafter-config", 0, &q.o.config_path, "FILE",
          "config.json for a drafter folder without one", 0, 0, NULL },
        { OPTION_INT, "threads", 't', &q.o.threads, "N",
          "threads (default: physical cores this process may use)", 1, 1024, NULL },
        { .kind = OPTION_END },
    };
    const options_command c = {
        .name = "quantize",
        .usage = "SOURCE TARGET [--mode affine|mxfp4|mxfp8|nvfp4] [--bits N] [--group N] "
                 "[--only GLOB]",
        .summary = "quantize a drafter or plain pack as MLX does",
        .details = "Codes, scales and biases are the bytes that mx.quantize of MLX writes; all "
                   "other tensors are copied. A second run with another --only adds a second "
                   "format. Kings are refused: they are quantized already.",
        .tables = { own, q.base.folder_options },
        .positional = { &q.source, &q.target },
        .min_positional = 2,
        .max_positional = 2,
    };
    return command_run(&c, argc, argv, run, &q);
}
