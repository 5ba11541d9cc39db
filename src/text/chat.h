/* chat.h - messages to prompt: what a server must do around the chat template of a model folder.
 *
 * Before rendering: `developer` becomes `system`; leading system messages are merged into one,
 * later ones are rendered in place as user text; null or missing content is ""; tool-call
 * arguments given as JSON text become objects; reasoning is taken from `reasoning_content`,
 * `reasoning` or a leading <think> block of the content. Parts other than text are refused. A
 * message that breaks the request's shape fails with E_ARG and a text that begins with its place
 * ("messages.2.content: ..."), as does a template's own complaint. There is no fallback
 * template. */
#ifndef TEXT_CHAT_H
#define TEXT_CHAT_H
#include "text/template.h"

/* A model folder's template and the special tokens that it sees. Immutable; any number of
 * threads may render at once. */
typedef struct chat chat;

/* Reads chat_template.jinja of the folder, else `chat_template` of tokenizer_config.json (a
 * text, or a list whose entry named "default" counts). A folder with neither is E_UNSUPPORTED. */
status chat_open(chat **out, const char *folder, error *e);
/* The same from texts: `config` is the content of tokenizer_config.json, or empty. */
status chat_new(chat **out, str template_text, str config, error *e);
void chat_free(chat *c);
/* Whether the template writes calls in the tagged form, <function=NAME>. */
bool chat_writes_tags(const chat *c);
/* The template itself, for rendering with bare variables. */
const template *chat_template(const chat *c);

typedef enum chat_thinking {
    CHAT_THINKING_UNSET,
    CHAT_THINKING_ON,
    CHAT_THINKING_OFF
} chat_thinking;

typedef struct chat_options {
    chat_thinking thinking; /* UNSET leaves enable_thinking undefined */
    /* reasoning_effort as the client spells it; ptr NULL: undefined. "none" and "off" turn thinking
     * off; "minimal" and "low" are low; "medium"; "high", "xhigh" and "max" are xhigh; anything
     * else is E_ARG. */
    str effort;
    bool no_generation_prompt;
    /* object of further variables (chat_template_kwargs) or NULL; they win */
    const json_node *kwargs;
    int64_t now_s; /* see template_render; 0 reads the clock */
} chat_options;

typedef struct chat_prompt {
    buf text;
    /* Byte offsets just after the turn-end token of each turn, rising. The token is special, so
     * the tokens of prompt[0, end) do not depend on what follows. */
    size_t *ends;
    int n_ends;
    bool in_think; /* the prompt ends inside an open <think> block: the reply begins as a thought */
} chat_prompt;

/* `messages`: the request's array; `tools`: its array, or NULL. `fault` as in template_render
 * (TEMPLATE_OK when the message shapes were at fault). On failure `out` holds nothing. Free with
 * chat_prompt_free. */
status chat_render(const chat *c, const json_node *messages, const json_node *tools,
                   const chat_options *options, chat_prompt *out, template_fault *fault, error *e);
void chat_prompt_free(chat_prompt *p);
/* Is the end of `prompt` inside an open <think> block? */
bool chat_ends_in_think(str prompt);
#endif
