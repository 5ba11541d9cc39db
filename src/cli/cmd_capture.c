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

static status hidden_of(const char *text, int *out, error *e)
{
    int64_t n;
    if (strcmp(text, "all") == 0) *out = 1;
    else if (strcmp(text, "none") == 0) *out = 0;
    else if (str_starts(str_from(text), STR("every=")) && str_to_i64(str_from(text + 6), &n) &&
             n > 0 && n <= 512)
        *out = (int)n;
    else return error_set(e, E_ARG, "--hidden: found %s, want every=N, all or none", text);
    return OK;
}

static status mode_of(const char *text, bool *f32, error *e)
{
    *f32 = text && strcmp(text, "f32") == 0;
    if (!text || *f32 || strcmp(text, "int8") == 0) return OK;
    return error_set(e, E_ARG, "--mode: found %s, want int8 or f32", text);
}

static status run(setup *s, capture_options *o, const char *logits, const char *hidden, error *e)
{
    if (!o->tokens || !o->out)
        return error_set(e, E_ARG, "capture: want --tokens FILE and --out FILE");
    TRY(logits_of(logits, &o->logits, e));
    TRY(hidden_of(hidden, &o->hidden_every, e));
    TRY(mode_of(s->mode, &o->f32, e));
    s->no_drafter = true;
    TRY(setup_resolve(s, e));
    o->king = s->king_path;
    o->cpu = s->cpu;
    o->threads = s->threads;
    o->progress = draw;
    o->progress_arg = &s->bar;
    const status st = capture_run(o, e);
    progress_clear(&s->bar);
    return st;
}

int cmd_capture(int argc, char **argv)
{
    setup s;
    capture_options o = { 0 };
    const char *logits = "all", *hidden = "none";
    setup_init(&s);
    const option own[] = {
        { OPTION_TEXT, "tokens", 0, &o.tokens, "FILE",
          "JSON: [ids] or {\"sequences\": [[ids], ...]}", 0, 0, NULL },
        { OPTION_TEXT, "out", 'o', &o.out, "FILE", "the safetensors file to write", 0, 0, NULL },
        { OPTION_TEXT, "logits", 0, &logits, "all|last|topN", "which logits to keep (default all)",
          0, 0, NULL },
        { OPTION_TEXT, "hidden", 0, &hidden, "every=N|all|none",
          "after which layers to keep the residual stream (default none)", 0, 0, NULL },
        { .kind = OPTION_END },
    };
    const options_command c = {
        .name = "capture",
        .usage = "--king FOLDER --tokens FILE --out FILE.safetensors [options]",
        .summary = "run token sequences and store logits and hidden states",
        .details = "--mode f32 keeps float32 activations, keys and values: the reference "
                   "arithmetic of the pack.",
        .tables = { own, s.model_options, &s.output_options[1] },
    };
    error e;
    bool help;
    status st = options_parse(&c, argc, argv, &help, &e);
    if (st == OK && help) {
        options_help(&c, stdout);
        return EXIT_DONE;
    }
    if (st == OK) st = run(&s, &o, logits, hidden, &e);
    return st == OK ? EXIT_DONE : setup_fail(&e);
}
