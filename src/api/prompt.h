/* prompt.h - what a caller asks becomes the text and the tokens that the king sees. */
#ifndef API_PROMPT_H
#define API_PROMPT_H
#include "api/handle.h"

typedef struct prompt {
    buf text; /* rendered; empty when tokens were given */
    tokenizer_ids ids;
    int *marks; /* [n_marks] token counts at the ends of complete messages */
    int n_marks;
    bool in_think;   /* it ends inside a thought */
    json_doc *tools; /* NULL: none */
} prompt;

/* Renders only: text and in_think. Errors as ingot_render says. */
status prompt_render(prompt *p, const ingot_model *m, const ingot_prompt *from, error *e);
/* Renders and tokenizes; at least one token. */
status prompt_build(prompt *p, const ingot_model *m, const ingot_prompt *from, error *e);
void prompt_free(prompt *p);
status prompt_need_tokenizer(const ingot_model *m, error *e);
/* The template to render with: the model's own, or one compiled from `text` into *own (freed by the
 * caller). */
status prompt_chat(const ingot_model *m, const char *text, const chat **use, chat **own, error *e);
#endif
