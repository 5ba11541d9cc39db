/* Any JSON is a schema that compiles or is refused, and every text that a compiled one accepts is
 * JSON. The first bytes steer a walk through the grammar, the rest is the schema. */
#include "base/rng.h"
#include "engine/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STEER = 4, LONGEST = 300 };

/* A byte that goes on from `state`, by preference one that closes something. */
static int step(grammar *g, rng *r, int state, char *byte)
{
    static const char often[] = "\"]},:{[0tfn";
    for (int i = 0; i < 64; i++) {
        *byte = rng_below(r, 4) ? often[rng_below(r, sizeof often - 1)] : (char)rng_below(r, 256);
        const int next = grammar_next(g, state, (uint8_t)*byte);
        if (next != GRAMMAR_DEAD) return next;
    }
    return GRAMMAR_DEAD;
}

static void walk(grammar *g, uint64_t seed)
{
    rng r = { seed };
    char text[LONGEST];
    size_t n = 0;
    int state = GRAMMAR_START;
    while (n < LONGEST && state != GRAMMAR_DEAD) {
        if (grammar_accepts(g, state)) {
            json_doc *doc = NULL;
            error e;
            const status s = json_parse(&doc, (str){ text, n }, 0, "text", &e);
            CHECK(s != E_FORMAT && s != E_ARG);
            json_free(doc);
        }
        state = step(g, &r, state, &text[n++]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < STEER) return 0;
    json_doc *doc;
    error e;
    uint64_t seed = 0;
    memcpy(&seed, data, STEER);
    if (json_parse(&doc, (str){ (const char *)data + STEER, size - STEER }, 0, "schema", &e))
        return 0;
    grammar *g;
    if (schema_compile(&g, json_root(doc), false, &e) == OK) {
        for (uint64_t i = 0; i < 4; i++) walk(g, seed + i);
        grammar_free(g);
    }
    json_free(doc);
    return 0;
}
