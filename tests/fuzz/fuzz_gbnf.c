/* Any text is a grammar that compiles or is refused with its place, and a text that a compiled one
 * accepts is UTF-8. The first bytes steer a walk through the grammar, the rest is the grammar. */
#include "base/rng.h"
#include "engine/gbnf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STEER = 4, LONGEST = 200, TRIES = 300 };

static void walk(grammar *g, uint64_t seed)
{
    rng r = { seed };
    char text[LONGEST];
    int state = GRAMMAR_START;
    for (size_t n = 0; n < LONGEST && state != GRAMMAR_DEAD; n++) {
        if (grammar_accepts(g, state)) CHECK(str_utf8_valid((str){ text, n }));
        int next = GRAMMAR_DEAD;
        for (int i = 0; i < TRIES && next == GRAMMAR_DEAD; i++) {
            text[n] = (char)rng_below(&r, rng_below(&r, 4) ? 128 : 256);
            next = grammar_next(g, state, (uint8_t)text[n]);
        }
        state = next;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < STEER) return 0;
    grammar *g;
    error e;
    uint64_t seed = 0;
    memcpy(&seed, data, STEER);
    const str text = { (const char *)data + STEER, size - STEER };
    const status s = gbnf_compile(&g, text, seed & 1, &e);
    if (s == OK) {
        walk(g, seed);
        grammar_free(g);
    } else {
        CHECK(s == E_ARG && str_starts(str_from(e.text), STR("grammar: ")));
    }
    return 0;
}
