/* cmd_chat.c - `ingot chat`: a conversation, in a terminal or one prompt per line from a pipe.
 *
 * The conversation is kept as the JSON text of its messages; the engine's prefix cache keeps what
 * was read of it. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "cli/answer.h"
#include "cli/argument.h"
#include "cli/cmd.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/line.h"
#include "cli/sampling.h"
#include "cli/setup.h"
#include "base/banned.h"

enum { MOST_HISTORY = 64 << 20 };

typedef struct conversation {
    setup base;
    sampling how;
    const char *system;
    char *system_copy; /* what /system set last, owned */
    line in;
    buf messages; /* elements of the array, separated by commas */
    ingot_thinking thinking;
    int code; /* exit code of the last turn that failed, when nobody watches */
} conversation;

/* ---- messages ---- */

static void add_message(conversation *c, const char *role, str content, str reasoning)
{
    jsonw w;
    if (c->messages.len) buf_char(&c->messages, ',');
    jsonw_init(&w, &c->messages);
    jsonw_object(&w);
    jsonw_member_text(&w, "role", role);
    jsonw_member_str(&w, "content", content);
    if (reasoning.len) jsonw_member_str(&w, "reasoning_content", reasoning);
    jsonw_end_object(&w);
}

static void reset(conversation *c)
{
    buf_clear(&c->messages);
    if (c->system && *c->system) add_message(c, "system", str_from(c->system), (str){ 0 });
}

/* The whole array as a new string. */
static status whole(const conversation *c, char **out, error *e)
{
    buf b;
    buf_init(&b, (size_t)MOST_HISTORY + 2);
    buf_char(&b, '[');
    buf_add(&b, buf_view(&c->messages));
    buf_char(&b, ']');
    const status s = buf_status(&b, "conversation", e);
    if (s == OK) *out = buf_steal(&b);
    else buf_free(&b);
    return s;
}

static status save(const conversation *c, const char *path, error *e)
{
    char *text = NULL;
    TRY(whole(c, &text, e));
    const status s = file_write(path, str_from(text), e);
    mem_free(text);
    return s;
}

static status load(conversation *c, const char *path, error *e)
{
    char *text = NULL;
    size_t len = 0;
    json_doc *doc = NULL;
    TRY(argument_text(path, MOST_HISTORY, &text, &len, e));
    status s = json_parse(&doc, (str){ text, len }, 0, path, e);
    if (s == OK && json_kind(json_root(doc)) != JSON_ARRAY)
        s = error_set(e, E_FORMAT, "%s: found %s, want an array of messages", path,
                      json_kind_name(json_root(doc)));
    if (s == OK) {
        const str all = str_trim((str){ text, len });
        buf_clear(&c->messages);
        buf_add(&c->messages, str_trim(str_sub(all, 1, all.len - 1)));
    }
    if (doc) json_free(doc);
    mem_free(text);
    return s;
}

/* ---- one turn ---- */

static status submit(conversation *c, ingot_request **r, error *e)
{
    ingot_sampling s;
    ingot_prompt p = INGOT_INIT(ingot_prompt);
    ingot_error ie;
    char *messages = NULL;
    TRY(sampling_get(&c->how, &s, e));
    TRY(whole(c, &messages, e));
    p.messages = messages;
    p.thinking = c->thinking;
    p.reasoning_effort = c->how.effort;
    const ingot_status st = ingot_submit(r, c->base.engine, &p, &s, &ie);
    mem_free(messages);
    return command_status(st, &ie, e);
}

/* A turn that fails or is interrupted before anything came leaves the conversation as it was. */
static status turn(conversation *c, str text, error *e)
{
    const size_t before = c->messages.len;
    ingot_request *r = NULL;
    answer a;
    add_message(c, "user", text, (str){ 0 });
    status s = buf_status(&c->messages, "conversation", e);
    if (s == OK) s = submit(c, &r, e);
    if (s) {
        c->messages.len = before;
        return s;
    }
    answer_init(&a, &c->base.bar);
    a.print = true;
    a.show_thinking = c->how.show_thinking || c->in.terminal;
    a.dim = c->in.terminal;
    s = answer_run(&a, r, e);
    if (a.printed) putchar('\n');
    fflush(stdout);
    if (s == OK || (s == E_CANCELLED && a.text.len))
        add_message(c, "assistant", buf_view(&a.text), buf_view(&a.reasoning));
    else c->messages.len = before;
    if (s == OK) answer_explain(&a);
    if (s == OK && c->how.stats) answer_stats(&a, c->base.model);
    answer_free(&a);
    ingot_release(r);
    return s;
}

/* ---- commands of the conversation ---- */

static void show_help(void)
{
    fputs("/reset         forget the conversation\n"
          "/save FILE     write it as a JSON array of messages\n"
          "/load FILE     go on with one that was saved\n"
          "/system TEXT   set the system message and start anew\n"
          "/think on|off  let the model reason before it answers, or not\n"
          "/stats         speed and acceptance after each answer, on or off\n"
          "/quit          end (also Ctrl-D)\n"
          "\"\"\"            begins and ends a text of several lines\n"
          "Ctrl-C         stops the answer\n",
          stderr);
}

/* `words` begins with a slash. *quit is set by /quit. */
static status command(conversation *c, char *words, bool *quit, error *e)
{
    char *rest = words + strcspn(words, " ");
    if (*rest) *rest++ = '\0';
    const bool on = strcmp(rest, "on") == 0;
    if (strcmp(words, "/quit") == 0 || strcmp(words, "/exit") == 0) {
        *quit = true;
    } else if (strcmp(words, "/reset") == 0) {
        reset(c);
    } else if (strcmp(words, "/help") == 0) {
        show_help();
    } else if (strcmp(words, "/stats") == 0) {
        c->how.stats = !c->how.stats;
    } else if (strcmp(words, "/think") == 0 && (on || strcmp(rest, "off") == 0)) {
        c->thinking = on ? INGOT_THINKING_ON : INGOT_THINKING_OFF;
    } else if (strcmp(words, "/system") == 0) {
        char *copy = mem_strndup(rest, strlen(rest));
        if (!copy) return error_set(e, E_NOMEM, "/system: out of memory");
        mem_free(c->system_copy);
        c->system = c->system_copy = copy;
        reset(c);
    } else if (strcmp(words, "/save") == 0 && *rest) {
        return save(c, rest, e);
    } else if (strcmp(words, "/load") == 0 && *rest) {
        return load(c, rest, e);
    } else {
        return error_set(e, E_ARG, "%s: no such command, or it wants a value (/help lists them)",
                         words);
    }
    return OK;
}

/* Collects a """ block: `first` is what followed the opening quotes. */
static void read_block(conversation *c, const char *first, buf *out)
{
    buf next;
    const char *end = strstr(first, "\"\"\"");
    buf_init(&next, MOST_HISTORY);
    buf_put(out, first, end ? (size_t)(end - first) : strlen(first));
    while (!end && line_read(&c->in, "... ", &next)) {
        end = strstr(next.ptr, "\"\"\"");
        if (out->len) buf_char(out, '\n');
        buf_put(out, next.ptr, end ? (size_t)(end - next.ptr) : next.len);
    }
    buf_free(&next);
}

static status converse(conversation *c, error *e)
{
    buf words, block;
    status s = OK;
    bool quit = false;
    buf_init(&words, MOST_HISTORY);
    buf_init(&block, MOST_HISTORY);
    while (!quit && line_read(&c->in, "> ", &words)) {
        str text = str_trim(buf_view(&words));
        if (text.len == 0) continue;
        if (str_starts(text, STR("\"\"\""))) {
            buf_clear(&block);
            read_block(c, words.ptr + (text.ptr - words.ptr) + 3, &block);
            text = buf_view(&block);
        }
        if (c->in.terminal) interrupt_forget_ctrl_c();
        if (memchr(text.ptr, '\0', text.len))
            s = error_set(e, E_FORMAT, "stdin: found a NUL byte, want text");
        else if (text.ptr[0] == '/' && text.ptr != block.ptr)
            s = command(c, words.ptr + (text.ptr - words.ptr), &quit, e);
        else s = turn(c, text, e);
        if (s == E_CANCELLED && !(c->in.terminal && interrupt_forget_ctrl_c())) break;
        if (s && s != E_CANCELLED) {
            const int code = command_fail(e);
            if (s == E_LIMIT) fputs("hint: /reset forgets the conversation\n", stderr);
            if (!c->in.terminal) c->code = code;
        }
    }
    buf_free(&words);
    buf_free(&block);
    return interrupt_seen() ? error_set(e, E_CANCELLED, "interrupted") : OK;
}

static status run(void *arg, error *e)
{
    conversation *c = arg;
    ingot_engine_options o = INGOT_INIT(ingot_engine_options);
    setup_cache(&c->base, &o);
    TRY(setup_open(&c->base, false, e));
    TRY(setup_start(&c->base, &o, e));
    interrupt_catch();
    line_open(&c->in);
    buf_init(&c->messages, MOST_HISTORY);
    c->thinking = c->how.no_thinking ? INGOT_THINKING_OFF : INGOT_THINKING_DEFAULT;
    reset(c);
    if (c->in.terminal)
        fputs("/help lists the commands, Ctrl-C stops an answer, Ctrl-D ends.\n", stderr);
    const status s = converse(c, e);
    buf_free(&c->messages);
    mem_free(c->system_copy);
    return s;
}

int cmd_chat(int argc, char **argv)
{
    conversation c = { 0 };
    setup_init(&c.base);
    sampling_init(&c.how);
    const option own[] = {
        { OPTION_TEXT, "system", 0, &c.system, "TEXT", "the system message", 0, 0, NULL },
        { .kind = OPTION_END },
    };
    const options_command command_line = {
        .name = "chat",
        .usage = "[options]",
        .summary = "hold a conversation",
        .details = "On a terminal with history and editing; /help lists the commands there. From a "
                   "pipe each line is a prompt.",
        .tables = { own, c.how.options, c.base.model_options, c.base.engine_options,
                    c.base.cache_options, c.base.quiet_options },
    };
    const int code = command_run(&command_line, argc, argv, run, &c);
    setup_close(&c.base);
    return code ? code : c.code;
}
