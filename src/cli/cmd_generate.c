/* cmd_generate.c - `ingot generate`: one prompt, one answer. */
#include <unistd.h>

#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "cli/answer.h"
#include "cli/argument.h"
#include "cli/cmd.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/sampling.h"
#include "cli/setup.h"
#include "base/banned.h"

enum { MOST_INPUT = 256 << 20 };

typedef struct generate {
    setup base;
    sampling how;
    const char *prompt, *system, *messages, *tools, *tokens, *schema, *grammar, *image;
    bool raw;
    /* files read */
    char *prompt_text, *messages_text, *tools_text, *schema_text, *grammar_text;
    size_t prompt_len;
    int32_t *ids;
    size_t n_ids;
} generate;

/* The conversation of --system and --prompt as a messages array. */
static status build_messages(generate *g, error *e)
{
    buf b;
    jsonw w;
    buf_init(&b, 2 * (size_t)MOST_INPUT);
    jsonw_init(&w, &b);
    jsonw_array(&w);
    const str parts[2] = { str_from(g->system), { g->prompt_text, g->prompt_len } };
    for (int i = g->system ? 0 : 1; i < 2; i++) {
        jsonw_object(&w);
        jsonw_member_text(&w, "role", i == 0 ? "system" : "user");
        jsonw_member_str(&w, "content", parts[i]);
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    const status s = buf_status(&b, "--prompt", e);
    if (s) {
        buf_free(&b);
        return s;
    }
    g->messages_text = buf_steal(&b);
    return OK;
}

static status read_ids(generate *g, error *e)
{
    json_doc *doc;
    TRY(json_parse_file(&doc, g->tokens, MOST_INPUT, 0, e));
    const json_node *root = json_root(doc);
    status s = OK;
    if (json_kind(root) != JSON_ARRAY)
        s = error_set(e, E_FORMAT, "%s: found %s, want an array of token ids", g->tokens,
                      json_kind_name(root));
    g->n_ids = json_len(root);
    g->ids = mem_array(g->n_ids + 1, sizeof *g->ids);
    if (s == OK && !g->ids) s = error_set(e, E_NOMEM, "%s: out of memory", g->tokens);
    for (size_t i = 0; s == OK && i < g->n_ids; i++) {
        int64_t id;
        if (!json_i64(json_at(root, i), &id) || id < 0 || id > INT32_MAX)
            s = error_set(e, E_FORMAT, "%s: item %zu: found %s, want a token id", g->tokens, i,
                          json_kind_name(json_at(root, i)));
        else g->ids[i] = (int32_t)id;
    }
    json_free(doc);
    return s;
}

static status read_file(const char *path, char **text, error *e)
{
    size_t len;
    return path ? argument_text(path, MOST_INPUT, text, &len, e) : OK;
}

/* Reads what the options name; exactly one source of a prompt. */
static status read_input(generate *g, error *e)
{
    const int sources = (g->prompt != NULL) + (g->messages != NULL) + (g->tokens != NULL);
    if (g->image)
        return error_set(e, E_UNSUPPORTED, "--image: found %s, but this program reads text only",
                         g->image);
    if (sources != 1)
        return error_set(e, E_ARG,
                         "generate: found %d prompts, want one of --prompt, --messages, --tokens",
                         sources);
    if (g->messages && (g->system || g->raw))
        return error_set(e, E_ARG, "--messages: does not go together with --system or --raw");
    if ((g->raw || g->tokens) && (g->tools || g->system || g->how.no_thinking || g->how.effort))
        return error_set(e, E_ARG,
                         "%s: without the template, --tools, --system, --no-thinking and "
                         "--reasoning-effort say nothing",
                         g->tokens ? "--tokens" : "--raw");
    TRY(read_file(g->tools, &g->tools_text, e));
    TRY(read_file(g->schema, &g->schema_text, e));
    TRY(read_file(g->grammar, &g->grammar_text, e));
    if (g->tokens) return read_ids(g, e);
    if (g->messages) return read_file(g->messages, &g->messages_text, e);
    if (strcmp(g->prompt, "-") == 0) {
        TRY(argument_text("-", MOST_INPUT, &g->prompt_text, &g->prompt_len, e));
    } else {
        g->prompt_len = strlen(g->prompt);
        g->prompt_text = mem_strndup(g->prompt, g->prompt_len);
        if (!g->prompt_text) return error_set(e, E_NOMEM, "--prompt: out of memory");
    }
    if (g->prompt_len == 0) return error_set(e, E_ARG, "--prompt: empty, want text");
    if (!str_utf8_valid((str){ g->prompt_text, g->prompt_len }) ||
        (g->system && !str_utf8_valid(str_from(g->system))))
        return error_set(e, E_ARG, "%s: not UTF-8",
                         g->system ? "--prompt or --system" : "--prompt");
    return g->raw ? OK : build_messages(g, e);
}

static status submit(generate *g, ingot_sampling s, ingot_request **r, error *e)
{
    ingot_prompt p = INGOT_INIT(ingot_prompt);
    if (g->tokens) {
        p.tokens = g->ids;
        p.n_tokens = g->n_ids;
    } else if (g->raw) {
        p.text = g->prompt_text;
        p.text_len = g->prompt_len;
    } else {
        p.messages = g->messages_text;
    }
    p.tools = g->tools_text;
    p.thinking = g->how.no_thinking ? INGOT_THINKING_OFF : INGOT_THINKING_DEFAULT;
    p.reasoning_effort = g->how.effort;
    s.schema = g->schema_text;
    s.grammar = g->grammar_text;
    s.raw = g->tokens || g->raw;
    ingot_error ie;
    status st = command_status(ingot_submit(r, g->base.engine, &p, &s, &ie), &ie, e);
    if (st) st = command_blame("messages", g->messages, e);
    if (st) st = command_blame("tools", g->tools, e);
    return st;
}

static status run(void *arg, error *e)
{
    generate *g = arg;
    answer a;
    ingot_request *r = NULL;
    ingot_sampling how;
    TRY(sampling_get(&g->how, &how, e));
    TRY(read_input(g, e));
    TRY(setup_open(&g->base, false, e));
    ingot_engine_options o = INGOT_INIT(ingot_engine_options);
    if (g->base.cache_dir) setup_cache(&g->base, &o); /* else there is nothing to come back to */
    TRY(setup_start(&g->base, &o, e));
    interrupt_catch();
    TRY(submit(g, how, &r, e));
    answer_init(&a, &g->base.bar);
    a.print = !g->base.json;
    a.show_thinking = g->how.show_thinking;
    a.dim = isatty(STDOUT_FILENO);
    status s = answer_run(&a, r, e);
    if (a.print && a.printed) putchar('\n');
    fflush(stdout);
    if (s == OK && g->base.json) s = answer_json(&a, r, e);
    if (s == OK && a.print) answer_explain(&a);
    if (s == OK && g->how.stats) answer_stats(&a, g->base.model);
    answer_free(&a);
    ingot_release(r);
    return s;
}

int cmd_generate(int argc, char **argv)
{
    generate g = { 0 };
    setup_init(&g.base);
    sampling_init(&g.how);
    const option own[] = {
        { OPTION_TEXT, "prompt", 'p', &g.prompt, "TEXT", "what the user says; - reads stdin", 0, 0,
          NULL },
        { OPTION_TEXT, "system", 0, &g.system, "TEXT", "a system message before it", 0, 0, NULL },
        { OPTION_TEXT, "messages", 0, &g.messages, "FILE",
          "a whole conversation: JSON array; - reads stdin", 0, 0, NULL },
        { OPTION_TEXT, "tools", 0, &g.tools, "FILE", "tools that may be called: JSON array", 0, 0,
          NULL },
        { OPTION_FLAG, "raw", 0, &g.raw, NULL, "the prompt as it is, without the chat template", 0,
          0, NULL },
        { OPTION_TEXT, "tokens", 0, &g.tokens, "FILE",
          "the prompt as a JSON array of token ids; implies --raw", 0, 0, NULL },
        { OPTION_TEXT, "schema", 0, &g.schema, "FILE", "JSON Schema that the answer must fit", 0, 0,
          NULL },
        { OPTION_TEXT, "grammar", 0, &g.grammar, "FILE", "grammar (GBNF) that the answer must fit",
          0, 0, NULL },
        { OPTION_TEXT, "image", 0, &g.image, "FILE", "refused: text only", 0, 0, NULL },
        { .kind = OPTION_END },
    };
    const options_command c = {
        .name = "generate",
        .usage = "--prompt TEXT [options]",
        .summary = "answer one prompt",
        .details = "The answer is written to stdout while it is made. With --json one object comes "
                   "at the end; two runs "
                   "gave the same tokens if their sha256 is the same.",
        .tables = { own, g.how.options, g.base.model_options, g.base.engine_options,
                    g.base.cache_options, g.base.output_options },
    };
    const int code = command_run(&c, argc, argv, run, &g);
    setup_close(&g.base);
    mem_free(g.prompt_text);
    mem_free(g.messages_text);
    mem_free(g.tools_text);
    mem_free(g.schema_text);
    mem_free(g.grammar_text);
    mem_free(g.ids);
    return code;
}
