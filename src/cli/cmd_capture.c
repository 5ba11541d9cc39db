/* cmd_capture.c - `ingot capture`: token sequences or prompts in; logits and hidden states out, and
 * with --tables the matrices that a drafter shares with its king. */
#include <stdio.h>

#include "cli/argument.h"
#include "cli/cmd.h"
#include "cli/command.h"
#include "cli/result.h"
#include "cli/trainset.h"
#include "tools/capture.h"
#include "tools/tables.h"
#include "base/banned.h"

static status logits_of(const char *text, int *out, error *e)
{
    int64_t n;
    if (strcmp(text, "all") == 0) *out = CAPTURE_ALL;
    else if (strcmp(text, "last") == 0) *out = CAPTURE_LAST;
    else if (strcmp(text, "none") == 0) *out = CAPTURE_NONE;
    else if (str_starts(str_from(text), STR("top")) && str_to_i64(str_from(text + 3), &n) &&
             n > 0 && n <= 1 << 24)
        *out = (int)n;
    else return error_set(e, E_ARG, "--logits: found %s, want all, last, none or topN", text);
    return OK;
}

typedef struct capturing {
    setup base;
    capture_options o;
    trainset_options ask;
    const char *logits, *hidden, *shard, *tables;
    double temperature, top_p;
    bool asking; /* an option of answers was given */
} capturing;

static status check(capturing *p, error *e)
{
    capture_options *o = &p->o;
    if (o->tokens && p->ask.prompts)
        return error_set(e, E_ARG, "capture: --tokens does not go together with --prompts");
    if ((o->tokens || p->ask.prompts) != (o->out != NULL) || (!o->out && !p->tables))
        return error_set(e, E_ARG,
                         "capture: want --tokens FILE or --prompts FILE with --out FILE, or "
                         "--tables FILE");
    if (p->asking && !p->ask.prompts)
        return error_set(e, E_ARG,
                         "capture: options for answers (--max-tokens, --temp, ...) want --prompts");
    TRY(logits_of(p->logits, &o->logits, e));
    TRY(argument_layers(p->hidden, &o->hidden, e));
    if (p->shard) TRY(argument_shard(p->shard, &o->shard, &o->shards, e));
    return setup_mode(&p->base, &o->f32, e);
}

static status ask(capturing *p, tokenlists *out, error *e)
{
    p->ask.shard = p->o.shard;
    p->ask.shards = p->o.shards;
    p->ask.how.temperature = (float)p->temperature;
    p->ask.how.top_p = (float)p->top_p;
    if (p->ask.how.top_p < INGOT_TOP_P_LEAST) p->ask.how.top_p = INGOT_TOP_P_LEAST;
    p->ask.how.has_seed = true;
    p->ask.how.fit_context = true;
    TRY(trainset_make(&p->base, &p->ask, out, e));
    p->o.tokens = p->ask.prompts;
    p->o.given = out;
    return OK;
}

static status print_report(const capture_options *o, const capture_report *r, error *e)
{
    result out;
    uint64_t bytes = 0;
    file_size(o->out, &bytes);
    result_begin(&out);
    jsonw_member_text(&out.w, "out", o->out);
    jsonw_member_i64(&out.w, "sequences", r->sequences);
    jsonw_member_u64(&out.w, "tokens", r->tokens);
    if (o->given) jsonw_member_u64(&out.w, "answer_tokens", r->answer_tokens);
    jsonw_member_u64(&out.w, "bytes", bytes);
    return result_end(&out, OK, e);
}

static status run_capture(capturing *p, error *e)
{
    setup *s = &p->base;
    capture_options *o = &p->o;
    capture_report r;
    o->king = s->king_path;
    o->cpu = s->cpu;
    o->threads = s->threads;
    o->progress = progress_run;
    o->progress_arg = &s->bar;
    setup_tiles(s, &o->tiles);
    TRY(capture_run(o, &r, e));
    return s->json ? print_report(o, &r, e) : OK;
}

static status run(void *arg, error *e)
{
    capturing *p = arg;
    setup *s = &p->base;
    tokenlists asked = { 0 };
    TRY(check(p, e));
    status st = OK;
    if (p->ask.prompts) {
        st = ask(p, &asked, e);
    } else {
        s->no_drafter = true;
        st = setup_resolve(s, e);
    }
    if (st == OK && p->tables)
        st = tables_write(s->king_path, p->tables, s->threads, progress_run, &s->bar, e);
    if (st == OK && p->o.out) st = run_capture(p, e);
    progress_clear(&s->bar);
    tokenlists_free(&asked);
    return st;
}

int cmd_capture(int argc, char **argv)
{
    capturing p = { .logits = "all", .hidden = "none", .top_p = 1, .ask = { .parallel = 8 } };
    setup_init(&p.base);
    p.ask.how = INGOT_INIT(ingot_sampling);
    p.ask.how.max_tokens = 512;
    const option own[] = {
        { OPTION_TEXT, "tokens", 0, &p.o.tokens, "FILE",
          "JSON: [ids] or {\"sequences\": [[ids], ...]}", 0, 0, NULL },
        { OPTION_TEXT, "prompts", 0, &p.ask.prompts, "FILE",
          "prompts that the king answers first, a JSON object a line", 0, 0, NULL },
        { OPTION_TEXT, "out", 'o', &p.o.out, "FILE", "the safetensors file to write", 0, 0, NULL },
        { OPTION_TEXT, "logits", 0, &p.logits, "all|last|topN|none",
          "which logits to keep (default all)", 0, 0, NULL },
        { OPTION_TEXT, "hidden", 0, &p.hidden, "every=N|all|none|I,J,...",
          "after which layers to keep the residual stream (default none)", 0, 0, NULL },
        { OPTION_TEXT, "shard", 0, &p.shard, "I/N",
          "only sequences whose number leaves I when divided by N, under their own numbers", 0, 0,
          NULL },
        { OPTION_TEXT, "tables", 0, &p.tables, "FILE",
          "write embedding and head as float32: what a drafter shares with its king", 0, 0, NULL },
        { .kind = OPTION_END },
    };
    const option answering[] = {
        { OPTION_INT, "max-tokens", 'n', &p.ask.how.max_tokens, "N",
          "with --prompts: most tokens of an answer (default 512)", 1, 1 << 24, &p.asking },
        { OPTION_REAL, "temp", 0, &p.temperature, "T",
          "with --prompts: temperature; 0 is greedy (default 0)", 0, 100, &p.asking },
        { OPTION_REAL, "top-p", 0, &p.top_p, "P",
          "with --prompts: keep the likeliest tokens of this total probability; 0: one token", 0, 1,
          &p.asking },
        { OPTION_INT, "top-k", 0, &p.ask.how.top_k, "K",
          "with --prompts: keep the K likeliest tokens", 0, 1 << 24, &p.asking },
        { OPTION_U64, "seed", 0, &p.ask.how.seed, "N",
          "with --prompts: seed; each prompt's number is added (default 0)", 0, 0, &p.asking },
        { OPTION_FLAG, "no-thinking", 0, &p.ask.no_thinking, NULL,
          "with --prompts: answers without reasoning, whatever the lines say", 0, 0, &p.asking },
        { OPTION_INT, "parallel", 0, &p.ask.parallel, "N",
          "with --prompts: requests at once (default 8)", 1, 64, &p.asking },
        { OPTION_INT, "context", 0, &p.base.context, "N",
          "with --prompts: positions of a request (default: what fits, at most the model's)", 1,
          1 << 24, &p.asking },
        { .kind = OPTION_END },
    };
    const options_command c = {
        .name = "capture",
        .usage = "--king FOLDER --tokens FILE --out FILE.safetensors [options]\n"
                 "       ingot capture --king FOLDER --prompts FILE --out FILE.safetensors "
                 "[options]\n"
                 "       ingot capture --king FOLDER --tables FILE.safetensors",
        .summary = "run token sequences and store logits and hidden states",
        .details = "--mode f32 keeps float32 activations, keys and values: the reference "
                   "arithmetic of the pack. "
                   "A line of --prompts is {\"messages\", \"tools\"?, \"thinking\"?} or "
                   "{\"tokens\": [ids]}; a drafter makes "
                   "answers come sooner and changes none.",
        .tables = { own, answering, p.base.model_options, p.base.output_options },
    };
    return command_run(&c, argc, argv, run, &p);
}
