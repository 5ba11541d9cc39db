/* params.h - what a caller wants of an answer becomes the parameters of a request: ranges,
 * defaults, the bound of the output, and the grammar that it must obey. */
#ifndef API_PARAMS_H
#define API_PARAMS_H
#include "api/prompt.h"

/* E_ARG: out of range, or what this model cannot do. */
status params_check(const ingot_sampling *s, const ingot_model *m, error *e);
/* A request for the answers to p, checked before; `owner` is handed to wake. E_LIMIT: prompt and
 * output do not fit into `context` positions. */
status params_request(request **out, ingot_model *m, int context, const prompt *p,
                      const ingot_sampling *s, void *owner, error *e);
/* The part of it that is the prompt's; borrowed. */
void params_prompt(request_params *to, const prompt *p);
#endif
