/* params.c - see params.h. */
#include "api/params.h"
#include "api/check.h"
#include "base/rng.h"
#include "engine/gbnf.h"
#include "base/banned.h"

enum { MAX_STOP = 16, MAX_BIAS = 1024, MAX_CALLS = 128 };

status params_check(const ingot_sampling *s, const ingot_model *m, error *e)
{
    TRY(check_real("temperature", s->temperature, 0, 100, e));
    TRY(check_range("top_k", s->top_k, 0, INT32_MAX, e));
    TRY(check_real("top_p", s->top_p, 0, 1, e));
    TRY(check_real("min_p", s->min_p, 0, 1, e));
    TRY(check_real("presence_penalty", s->presence_penalty, -100, 100, e));
    TRY(check_real("frequency_penalty", s->frequency_penalty, -100, 100, e));
    if (s->repetition_penalty != 0)
        TRY(check_real("repetition_penalty", s->repetition_penalty, 0.01f, 100, e));
    TRY(check_range("max_tokens", s->max_tokens, 0, INT32_MAX, e));
    TRY(check_range("n", s->n, 0, REQUEST_MAX_CHOICES, e));
    TRY(check_range("top_logprobs", s->top_logprobs, 0, REQUEST_MAX_TOP, e));
    TRY(check_range("thinking_budget", s->thinking_budget, 0, INT32_MAX, e));
    TRY(check_range("stop strings", s->n_stop, 0, MAX_STOP, e));
    if (s->n_bias < 0 || s->n_bias > MAX_BIAS)
        return error_set(e, E_ARG, "logit_bias: found %d entries, want 0..%d", s->n_bias, MAX_BIAS);
    for (int i = 0; i < s->n_stop; i++)
        if (!s->stop[i] || !s->stop[i][0])
            return error_set(e, E_ARG, "stop: string %d is empty", i);
    for (int i = 0; i < s->n_bias; i++) {
        TRY(check_range("logit_bias id", s->bias[i].id, 0, m->info.n_token - 1, e));
        TRY(check_real("logit_bias value", s->bias[i].value, -1000, 1000, e));
    }
    if (s->block > 1 && !m->drafter)
        return error_set(e, E_ARG, "block: found %d, want 0 or 1: there is no drafter", s->block);
    TRY(check_range("block", s->block, 0, m->info.max_block, e));
    return OK;
}

/* Prompt and output share the context; an output that was not bounded takes what is left. */
static status bound_output(int context, int n_prompt, const ingot_sampling *s, int *out, error *e)
{
    const int left = context - n_prompt, asked = s->max_tokens;
    if (left < 1)
        return error_set(e, E_LIMIT, "prompt: %d tokens, the context holds %d and one is generated",
                         n_prompt, context);
    if (asked > left && !s->fit_context)
        return error_set(e, E_LIMIT,
                         "max_tokens: prompt of %d and output of %d tokens, the context "
                         "holds %d",
                         n_prompt, asked, context);
    *out = asked && asked < left ? asked : left;
    return OK;
}

/* 53 bits, so that a client whose numbers are doubles can send it back. */
static uint64_t drawn_seed(void)
{
    return rng_entropy() >> 11;
}

/* `bias` is room for those of s. */
static void copy_sampling(sampler_params *to, const ingot_sampling *s, sampler_bias bias[MAX_BIAS])
{
    for (int i = 0; i < s->n_bias; i++) bias[i] = (sampler_bias){ s->bias[i].id, s->bias[i].value };
    *to = (sampler_params){ .temperature = s->temperature,
                            .top_k = s->top_k,
                            .top_p = s->top_p > 0 ? s->top_p : 1,
                            .min_p = s->min_p,
                            .presence = s->presence_penalty,
                            .frequency = s->frequency_penalty,
                            .repetition = s->repetition_penalty > 0 ? s->repetition_penalty : 1,
                            .bias = bias,
                            .n_bias = s->n_bias,
                            .seed = s->has_seed ? s->seed : drawn_seed() };
}

void params_prompt(request_params *to, const prompt *p)
{
    to->prompt = p->ids.ptr;
    to->n_prompt = (int)p->ids.len;
    to->marks = p->marks;
    to->n_marks = p->n_marks;
    to->in_think = p->in_think;
}

static status compile_schema(grammar **out, const char *schema, bool blank_line, error *e)
{
    json_doc *doc;
    TRY(json_parse(&doc, str_from(schema), 0, "schema", e));
    const status s = schema_compile(out, json_root(doc), blank_line, e);
    json_free(doc);
    return s;
}

static status compile_calls(grammar **out, const ingot_model *m, const prompt *p, error *e)
{
    schema_call calls[MAX_CALLS];
    int n;
    TRY(prompt_calls(p, p->tool_choice, calls, MAX_CALLS, &n, e));
    return schema_compile_calls(out, calls, n, m->tagged_calls, p->in_think, e);
}

/* What the answer must obey, if anything: a schema, a grammar, or the form of a tool call. */
static status make_constraint(request_params *params, ingot_model *m, const prompt *p,
                              const ingot_sampling *s, error *e)
{
    const tokmask_vocabulary *v;
    grammar *g;
    const int asked = (s->schema != NULL) + (s->grammar != NULL) + (p->tool_choice != NULL);
    if (asked == 0) return OK;
    if (asked > 1)
        return error_set(e, E_ARG, "%s: it cannot be asked for beside %s",
                         s->schema ? "schema" : "grammar",
                         s->schema && s->grammar ? "a grammar" : "tool_choice");
    TRY(model_vocabulary(m, &v, e));
    if (s->schema) TRY(compile_schema(&g, s->schema, p->in_think, e));
    else if (s->grammar) TRY(gbnf_compile(&g, str_from(s->grammar), p->in_think, e));
    else TRY(compile_calls(&g, m, p, e));
    return tokmask_new(&params->constraint, g, v, params->stop_ids, params->n_stop_ids,
                       params->call_open, e);
}

status params_request(request **out, ingot_model *m, int context, const prompt *p,
                      const ingot_sampling *s, void *owner, error *e)
{
    const generation_config *gen = &pack_config(m->king_pack)->generation;
    str needles[MAX_STOP];
    for (int i = 0; i < s->n_stop; i++) needles[i] = str_from(s->stop[i]);
    const bool logprobs = s->logprobs || s->top_logprobs > 0;
    request_params params = { .n = s->n ? s->n : 1,
                              .block = s->block,
                              .copy = !s->no_copy,
                              .stop = needles,
                              .n_stop = s->n_stop,
                              .stop_ids = gen->eos,
                              .n_stop_ids = s->ignore_eos ? 0 : gen->n_eos,
                              .hide_special = !s->show_special,
                              .top_logprobs = !logprobs             ? -1
                                              : s->top_logprobs > 0 ? s->top_logprobs
                                                                    : 0,
                              .think_open = m->think_open,
                              .think_close = m->think_close,
                              .call_open = m->call_open,
                              .call_close = m->call_close,
                              .single_call = s->single_call,
                              .thinking_budget = s->thinking_budget };
    sampler_bias bias[MAX_BIAS];
    copy_sampling(&params.sampling, s, bias);
    params_prompt(&params, p);
    TRY(bound_output(context, params.n_prompt, s, &params.max_tokens, e));
    TRY(make_constraint(&params, m, p, s, e));
    return request_new(out, &params, owner, e);
}
