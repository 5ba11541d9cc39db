/* sampling.c - see sampling.h. */
#include "cli/sampling.h"

#include "base/banned.h"

void sampling_init(sampling *s)
{
    *s = (sampling){ .max_tokens = 512, .top_p = 1, .block = "auto" };
    const option table[] = {
        { OPTION_REAL, "temp", 0, &s->temperature, "T", "temperature; 0 is greedy (default 0)", 0,
          100, NULL },
        { OPTION_TEXT, "block", 0, &s->block, "B|auto",
          "rows verified per step: B-1 drafts and 1 token; 1 is plain (default auto)", 0, 0, NULL },
        { OPTION_INT, "max-tokens", 'n', &s->max_tokens, "N",
          "most tokens to generate (default 512)", 1, 1 << 24, &s->max_tokens_given },
        { OPTION_FLAG, "show-thinking", 0, &s->show_thinking, NULL, "print the reasoning too", 0, 0,
          NULL },
        { OPTION_FLAG, "no-thinking", 0, &s->no_thinking, NULL,
          "ask the template for an answer without reasoning", 0, 0, NULL },
        SAMPLING_EFFORT(&s->effort),
        { OPTION_INT, "thinking-budget", 0, &s->thinking_budget, "N",
          "tokens of reasoning after which it is closed", 1, 1 << 24, NULL },
        { OPTION_U64, "seed", 0, &s->seed, "N", "seed of the sampler (default: drawn and shown)", 0,
          0, &s->has_seed },
        { OPTION_REAL, "top-p", 0, &s->top_p, "P",
          "keep the likeliest tokens of this total probability; 0: one token (default 1)", 0, 1,
          NULL },
        { OPTION_INT, "top-k", 0, &s->top_k, "K", "keep the K likeliest tokens", 0, 1 << 24, NULL },
        { OPTION_REAL, "min-p", 0, &s->min_p, "P",
          "drop tokens less likely than P times the likeliest", 0, 1, NULL },
        { OPTION_REAL, "presence-penalty", 0, &s->presence, "X", "lower tokens that occurred", -2,
          2, NULL },
        { OPTION_REAL, "frequency-penalty", 0, &s->frequency, "X",
          "lower tokens by how often they occurred", -2, 2, NULL },
        { OPTION_REAL, "repetition-penalty", 0, &s->repetition, "X",
          "divide the logits of tokens that occurred", 0.01, 100, NULL },
        { OPTION_LIST, "stop", 0, &s->stop, "TEXT", "end before this text (repeatable)", 0, 0,
          NULL },
        { OPTION_FLAG, "no-copy", 0, &s->no_copy, NULL, "no drafts copied from earlier text", 0, 0,
          NULL },
        { OPTION_FLAG, "stats", 0, &s->stats, NULL, "speed, acceptance and memory on stderr", 0, 0,
          NULL },
        { .kind = OPTION_END },
    };
    _Static_assert(sizeof s->options == sizeof table,
                   "the table of sampling has room for its options");
    memcpy(s->options, table, sizeof table);
}

status sampling_get(const sampling *s, ingot_sampling *out, error *e)
{
    *out = INGOT_INIT(ingot_sampling);
    out->temperature = (float)s->temperature;
    out->top_k = s->top_k;
    out->top_p = (float)s->top_p;
    if (out->top_p < INGOT_TOP_P_LEAST) out->top_p = INGOT_TOP_P_LEAST;
    out->min_p = (float)s->min_p;
    out->presence_penalty = (float)s->presence;
    out->frequency_penalty = (float)s->frequency;
    out->repetition_penalty = (float)s->repetition;
    out->has_seed = s->has_seed;
    out->seed = s->seed;
    out->max_tokens = s->max_tokens;
    out->fit_context = !s->max_tokens_given;
    out->thinking_budget = s->thinking_budget;
    out->no_copy = s->no_copy;
    out->stop = s->stop.items;
    out->n_stop = s->stop.n;
    return options_block(s->block, &out->block, e);
}
