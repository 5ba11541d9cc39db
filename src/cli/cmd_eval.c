/* cmd_eval.c - `ingot eval kl|merge|ppl|verify`: how close a king is to its teacher, perplexity,
 * and whether all ways of generating agree. */
#include <stdio.h>

#include "base/mem.h"
#include "base/file.h"
#include "cli/argument.h"
#include "cli/cmd.h"
#include "cli/command.h"
#include "cli/locate.h"
#include "cli/result.h"
#include "cli/setup.h"
#include "cli/verify.h"
#include "tools/fidelity.h"
#include "base/banned.h"

enum { MOST_TEXT = 1 << 30, MOST_REPORT = 1 << 20 };

static status print_report(const fidelity *f, bool json, error *e)
{
    buf out;
    buf_init(&out, MOST_REPORT);
    const status s = fidelity_report(f, json, &out, e);
    if (s == OK) fwrite(out.ptr, 1, out.len, stdout);
    buf_free(&out);
    return s;
}

/* Fills what all modes need and finds the king. */
static status prepare(setup *s, fidelity_options *o, error *e)
{
    s->no_drafter = true;
    TRY(setup_mode(s, &o->f32, e));
    TRY(setup_resolve(s, e));
    o->king = s->king_path;
    o->cpu = s->cpu;
    o->threads = s->threads;
    o->progress = progress_run;
    o->progress_arg = &s->bar;
    setup_tiles(s, &o->tiles);
    return OK;
}

/* ---- kl ---- */

typedef struct kl_options {
    setup base;
    fidelity_options o;
    const char *shard, *hidden, *out;
} kl_options;

static status run_kl(void *arg, error *e)
{
    kl_options *k = arg;
    setup *s = &k->base;
    fidelity f;
    if (!k->o.against) return error_set(e, E_ARG, "eval kl: want --against CAPTURE or KING");
    if (k->shard) TRY(argument_shard(k->shard, &k->o.shard, &k->o.shards, e));
    if (k->shard && !k->out)
        return error_set(e, E_ARG, "eval kl: --shard wants --out FILE, to be merged");
    TRY(argument_layers(k->hidden, &k->o.hidden, e));
    TRY(prepare(s, &k->o, e));
    char against[4096];
    if (!file_exists(k->o.against)) { /* no capture: perhaps a king by its hub id */
        TRY(locate_folder(k->o.against, "--against", s->offline, &s->bar, against, sizeof against,
                          e));
        k->o.against = against;
    }
    const status st = fidelity_kl(&k->o, &f, e);
    progress_clear(&s->bar);
    TRY(st);
    status done = k->out ? fidelity_write(&f, k->out, e) : OK;
    if (done == OK && !k->shard) done = print_report(&f, s->json, e);
    fidelity_free(&f);
    return done;
}

static int eval_kl(int argc, char **argv)
{
    kl_options k = { .hidden = "every=8" };
    setup_init(&k.base);
    const option own[] = {
        { OPTION_TEXT, "against", 0, &k.o.against, "CAPTURE|KING",
          "the teacher: a file of `ingot capture`, or another king's folder (run in f32)", 0, 0,
          NULL },
        { OPTION_TEXT, "tokens", 0, &k.o.tokens, "FILE",
          "token sequences, when the teacher is a folder", 0, 0, NULL },
        { OPTION_TEXT, "hidden", 0, &k.hidden, "every=N|all|none|I,J,...",
          "layers to compare, when the teacher is a folder (default every=8)", 0, 0, NULL },
        { OPTION_TEXT, "shard", 0, &k.shard, "I/N",
          "only every Nth sequence, from the Ith: a part for --out", 0, 0, NULL },
        { OPTION_TEXT, "out", 'o', &k.out, "FILE",
          "write every row's values, for `ingot eval merge`", 0, 0, NULL },
        { .kind = OPTION_END },
    };
    const options_command c = {
        .name = "eval kl",
        .usage = "--king K --against CAPTURE|KING2 [--tokens FILE] [options]",
        .summary = "KL divergence and hidden-state distance to a teacher",
        .tables = { own, k.base.king_options, k.base.output_options },
    };
    return command_run(&c, argc, argv, run_kl, &k);
}

/* ---- merge ---- */

typedef struct merging {
    setup base;
    option_rest files;
} merging;

static status run_merge(void *arg, error *e)
{
    const merging *m = arg;
    fidelity f = { 0 };
    status s = OK;
    if (!m->files.n) return error_set(e, E_ARG, "eval merge: want files of `eval kl --out`");
    for (int i = 0; s == OK && i < m->files.n; i++) s = fidelity_read(&f, m->files.items[i], e);
    if (s == OK) s = print_report(&f, m->base.json, e);
    fidelity_free(&f);
    return s;
}

static int eval_merge(int argc, char **argv)
{
    merging m = { .files.n = 0 };
    setup_init(&m.base);
    const options_command c = {
        .name = "eval merge",
        .usage = "PART... [--json]",
        .summary = "report the parts of a sharded `eval kl` as one",
        .tables = { m.base.output_options },
        .rest = &m.files,
    };
    return command_run(&c, argc, argv, run_merge, &m);
}

/* ---- ppl ---- */

static void cut_windows(const ingot_tokens *ids, int context, tokenlists *w)
{
    for (size_t at = 0; at < ids->len; at += (size_t)context) {
        const size_t n = ids->len - at < (size_t)context ? ids->len - at : (size_t)context;
        w->ids[w->n] = ids->ids + at;
        w->len[w->n++] = (int)n;
        if ((int)n > w->longest) w->longest = (int)n;
        w->total += n;
    }
}

static status tokenize_file(setup *s, const char *path, ingot_tokens *ids, error *e)
{
    char *text;
    size_t len;
    ingot_error ie;
    TRY(argument_text(path, MOST_TEXT, &text, &len, e));
    status st = setup_open(s, true, e);
    if (st == OK)
        st = command_status(ingot_tokenize(s->model, text, len, INGOT_SPECIAL_NONE, ids, &ie), &ie,
                            e);
    if (st) st = command_blame("text", path, e);
    if (st == OK && ids->len < 3) {
        ingot_tokens_free(ids);
        st = error_set(e, E_ARG, "%s: found %zu tokens, want at least three", path, ids->len);
    }
    setup_close(s);
    mem_free(text);
    return st;
}

static status print_perplexity(const perplexity *p, bool json, error *e)
{
    result out;
    if (!json) {
        printf("perplexity %.6f (%.6f .. %.6f), mean NLL %.9f +- %.9f nat over %lld tokens\n",
               p->value, p->low, p->high, p->mean_nll, p->standard_error, (long long)p->tokens);
        return OK;
    }
    result_begin(&out);
    jsonw_member_i64(&out.w, "tokens", p->tokens);
    jsonw_member_f64(&out.w, "mean_nll", p->mean_nll);
    jsonw_member_f64(&out.w, "standard_error", p->standard_error);
    jsonw_member_f64(&out.w, "perplexity", p->value);
    jsonw_member_f64(&out.w, "low", p->low);
    jsonw_member_f64(&out.w, "high", p->high);
    return result_end(&out, OK, e);
}

typedef struct scoring {
    setup base;
    const char *path;
    int context;
} scoring;

static status run_ppl(void *arg, error *e)
{
    scoring *p = arg;
    setup *s = &p->base;
    ingot_tokens ids = { 0 };
    fidelity_options o = { 0 };
    perplexity found;
    if (!p->path) return error_set(e, E_ARG, "eval ppl: want --text FILE");
    TRY(tokenize_file(s, p->path, &ids, e));
    const size_t most = ids.len / (size_t)p->context + 1;
    tokenlists w = { .len = mem_array(most, sizeof *w.len), .ids = mem_array(most, sizeof *w.ids) };
    status st =
        w.len && w.ids ? prepare(s, &o, e) : error_set(e, E_NOMEM, "eval ppl: out of memory");
    if (st == OK) {
        cut_windows(&ids, p->context, &w);
        st = fidelity_perplexity(&o, &w, &found, e);
    }
    progress_clear(&s->bar);
    if (st == OK) st = print_perplexity(&found, s->json, e);
    mem_free(w.len);
    mem_free(w.ids);
    ingot_tokens_free(&ids);
    return st;
}

static int eval_ppl(int argc, char **argv)
{
    scoring p = { .context = 512 };
    setup_init(&p.base);
    const option own[] = {
        { OPTION_TEXT, "text", 0, &p.path, "FILE", "the text; - reads stdin", 0, 0, NULL },
        { OPTION_INT, "context", 0, &p.context, "N",
          "tokens of a window, scored from its second on (default 512)", 2, 1 << 24, NULL },
        { .kind = OPTION_END },
    };
    const options_command c = {
        .name = "eval ppl",
        .usage = "--king K --text FILE [--context N]",
        .summary = "perplexity of a text, with its standard error",
        .tables = { own, p.base.king_options, p.base.output_options },
    };
    return command_run(&c, argc, argv, run_ppl, &p);
}

/* ---- verify ---- */

static status print_verdict(const verify_result *r, bool json, error *e)
{
    result out;
    if (json) {
        result_begin(&out);
        jsonw_member_bool(&out.w, "identical", r->identical);
        jsonw_member_i64(&out.w, "prompts", r->prompts);
        jsonw_member_i64(&out.w, "runs", r->runs);
        jsonw_member_text(&out.w, "difference", r->difference[0] ? r->difference : NULL);
        jsonw_member_text(&out.w, "sha256", r->sha256);
        return result_end(&out, OK, e);
    }
    if (r->identical)
        printf("identical: %d prompts, %d runs, %s\n", r->prompts, r->runs, r->sha256);
    else printf("different: %s\n", r->difference);
    return OK;
}

typedef struct verifying {
    setup base;
    verify_options o;
    verify_result result;
} verifying;

static status run_verify(void *arg, error *e)
{
    verifying *v = arg;
    TRY(setup_open(&v->base, false, e));
    TRY(verify_run(&v->base, &v->o, &v->result, e));
    return print_verdict(&v->result, v->base.json, e);
}

static int eval_verify(int argc, char **argv)
{
    verifying v = { .o = { .max_tokens = 64, .seed = 1 }, .result.identical = true };
    setup_init(&v.base);
    const option own[] = {
        { OPTION_TEXT, "prompts", 0, &v.o.prompts, "FILE",
          "one prompt a line (default: a few of our own)", 0, 0, NULL },
        { OPTION_INT, "max-tokens", 'n', &v.o.max_tokens, "N", "tokens of an answer (default 64)",
          1, 1 << 20, NULL },
        { OPTION_U64, "seed", 0, &v.o.seed, "N", "seed of the sampled runs (default 1)", 0, 0,
          NULL },
        { .kind = OPTION_END },
    };
    const options_command c = {
        .name = "eval verify",
        .usage = "--king K --drafter D [--prompts FILE]",
        .summary = "does every way of generating give the same tokens?",
        .details = "Plain, drafted at every block, in chunks, resumed from memory and disk, beside "
                   "others; ends in `identical` "
                   "and a hash, or names the first difference (exit code 1).",
        .tables = { own, v.base.model_options, v.base.engine_options, v.base.output_options },
    };
    const int code = command_run(&c, argc, argv, run_verify, &v);
    setup_close(&v.base);
    return code ? code : v.result.identical ? EXIT_DONE : EXIT_FAILED;
}

int cmd_eval(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } parts[] = { { "kl", eval_kl },
                  { "merge", eval_merge },
                  { "ppl", eval_ppl },
                  { "verify", eval_verify } };
    for (size_t i = 0; argc > 0 && i < sizeof parts / sizeof *parts; i++)
        if (strcmp(argv[0], parts[i].name) == 0) return parts[i].run(argc - 1, argv + 1);
    const bool help = argc > 0 && strcmp(argv[0], "--help") == 0;
    if (argc > 0 && !help) {
        fprintf(stderr, "ingot: eval: found %s, want kl, merge, ppl or verify\n", argv[0]);
        return EXIT_USAGE;
    }
    fputs("ingot eval - KL divergence, hidden-state distance, perplexity, exactness\n\n"
          "usage: ingot eval kl|merge|ppl|verify [options]\n\n"
          "  kl      KL divergence and hidden-state distance to a teacher\n"
          "  merge   report the parts of a sharded `eval kl` as one\n"
          "  ppl     perplexity of a text, with its standard error\n"
          "  verify  does every way of generating give the same tokens?\n\n"
          "`ingot help eval kl` lists the options of a part.\n",
          help ? stdout : stderr);
    return help ? EXIT_DONE : EXIT_USAGE;
}
