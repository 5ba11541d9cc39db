/* cmd_capture.c - `ingot capture`: token sequences in, logits and hidden states out. */
#include <stdio.h>

#include "cli/cmd.h"
#include "cli/setup.h"
#include "tools/capture.h"
#include "base/banned.h"

static void draw(void *arg, const char *what, uint64_t done, uint64_t total)
{
    progress *bar = arg;
    bar->bytes = strcmp(what, "running") != 0;
    progress_draw(bar, what, done, total);
}

static status logits_of(const char *text, int *out, error *e)
{
    int64_t n;
    if (strcmp(text, "all") == 0) *out = CAPTURE_ALL;
    else if (strcmp(text, "last") == 0) *out = CAPTURE_LAST;
    else if (str_starts(str_from(text), STR("top")) && str_to_i64(str_from(text + 3), &n) &&
             n > 0 && n <= 1 << 24)
        *out = (int)n;
    else return error_set(e, E_ARG, "--logits: found %s, want all, last or topN", text);
    return OK;
}

typedef struct capturing {
    setup base;
    capture_options o;
    const char *logits, *hidden, *shard;
} capturing;

static status run(void *arg, error *e)
{
    capturing *p = arg;
    setup *s = &p->base;
    capture_options *o = &p->o;
    if (!o->tokens || !o->out)
        return error_set(e, E_ARG, "capture: want --tokens FILE and --out FILE");
    TRY(logits_of(p->logits, &o->logits, e));
    TRY(setup_every(p->hidden, &o->hidden_every, e));
    if (p->shard) TRY(setup_shard(p->shard, &o->shard, &o->shards, e));
    TRY(setup_mode(s, &o->f32, e));
    s->no_drafter = true;
    TRY(setup_resolve(s, e));
    o->king = s->king_path;
    o->cpu = s->cpu;
    o->threads = s->threads;
    o->progress = draw;
    o->progress_arg = &s->bar;
    setup_tiles(s, &o->tiles);
    const status st = capture_run(o, e);
    progress_clear(&s->bar);
    return st;
}

int cmd_capture(int argc, char **argv)
{
    capturing p = { .logits = "all", .hidden = "none" };
    setup_init(&p.base);
    const option own[] = {
        { OPTION_TEXT, "tokens", 0, &p.o.tokens, "FILE",
          "JSON: [ids] or {\"sequences\": [[ids], ...]}", 0, 0, NULL },
        { OPTION_TEXT, "out", 'o', &p.o.out, "FILE", "the safetensors file to write", 0, 0, NULL },
        { OPTION_TEXT, "logits", 0, &p.logits, "all|last|topN",
          "which logits to keep (default all)", 0, 0, NULL },
        { OPTION_TEXT, "hidden", 0, &p.hidden, "every=N|all|none",
          "after which layers to keep the residual stream (default none)", 0, 0, NULL },
        { OPTION_TEXT, "shard", 0, &p.shard, "I/N",
          "only sequences whose number leaves I when divided by N, under their own numbers", 0, 0,
          NULL },
        { .kind = OPTION_END },
    };
    const options_command c = {
        .name = "capture",
        .usage = "--king FOLDER --tokens FILE --out FILE.safetensors [options]",
        .summary = "run token sequences and store logits and hidden states",
        .details = "--mode f32 keeps float32 activations, keys and values: the reference "
                   "arithmetic of the pack.",
        .tables = { own, p.base.model_options, &p.base.output_options[1] },
    };
    return setup_command(&c, argc, argv, run, &p);
}
