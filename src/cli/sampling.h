/* sampling.h - the options that say how tokens are picked, shared by generate and chat. */
#ifndef CLI_SAMPLING_H
#define CLI_SAMPLING_H
#include "cli/options.h"
#include "ingot/ingot.h"

/* The row of --reasoning-effort, which `render` has, too. */
#define SAMPLING_EFFORT(to)                                                                       \
    {                                                                                             \
        OPTION_TEXT, "reasoning-effort", 0, (to), "LEVEL",                                        \
            "none or off, minimal, low, medium, high, xhigh or max: where the template knows it", \
            0, 0, NULL                                                                            \
    }

typedef struct sampling {
    double temperature, top_p, min_p, presence, frequency, repetition;
    int top_k, max_tokens, thinking_budget;
    uint64_t seed;
    bool has_seed, max_tokens_given, no_thinking, show_thinking, stats, no_copy;
    const char *block, *effort;
    option_list stop;
    option options[18];
} sampling;

void sampling_init(sampling *s);
/* The library's form; stop strings are borrowed from s. E_ARG for a bad block. */
status sampling_get(const sampling *s, ingot_sampling *out, error *e);
#endif
