/* prompt.h - what a caller asks becomes the text and the tokens that the king sees. */
#ifndef API_PROMPT_H
#define API_PROMPT_H
#include "api/handle.h"
#include "engine/schema.h"

typedef struct prompt {
    buf text; /* rendered; empty when tokens were given */
    tokenizer_ids ids;
    int *marks; /* [n_marks] token counts at the ends of complete messages */
    int n_marks;
    bool in_think;           /* it ends inside a thought */
    json_doc *tools;         /* NULL: none */
    const char *tool_choice; /* the caller's; NULL: the model decides */
} prompt;

/* Renders only: text and in_think. Errors as ingot_render says. */
status prompt_render(prompt *p, const ingot_model *m, const ingot_prompt *from, error *e);
/* Renders and tokenizes; at least one token. */
status prompt_build(prompt *p, const ingot_model *m, const ingot_prompt *from, error *e);
void prompt_free(prompt *p);
/* The tools that `choice` allows ("required": any of them); out [max], borrowed from p. */
status prompt_calls(const prompt *p, const char *choice, schema_call *out, int max, int *n,
                    error *e);
status prompt_need_tokenizer(const ingot_model *m, error *e);
/* The template to render with: the model's own, or one compiled from `text` into *own (freed by the
 * caller). */
status prompt_chat(const ingot_model *m, const char *text, const chat **use, chat **own, error *e);
#endif
