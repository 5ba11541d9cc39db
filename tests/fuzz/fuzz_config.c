/* config.json, then "\n---\n" and hadamard.json, then again and generation_config.json. What is
 * accepted gives a list of weights whose shapes have sizes, signs that are 1 or -1, and stop tokens
 * of the vocabulary. */
#include "pack/plan.h"

static void use_plan(const config *c)
{
    plan p;
    error e;
    const bool drafter = c->kind == PACK_DRAFTER;
    CHECK((drafter ? plan_drafter(&p, &c->drafter, &e) : plan_king(&p, &c->king, &e)) == OK);
    for (size_t i = 0; i < p.count; i++) {
        const plan_entry *t = &p.entries[i];
        uint64_t bytes;
        bool named;
        CHECK(tensor_bytes_of(DTYPE_F32, t->rank, t->shape, &bytes) && bytes > 0);
        CHECK(plan_find(&p, str_from(t->name)) == t);
        const quant_format f = config_quant_of(c, str_from(t->name), &named);
        CHECK(f.mode == QUANT_DENSE || quant_is_legal(f));
    }
    plan_free(&p);
}

static void use(const config *c)
{
    use_plan(c);
    for (int i = 0; i < c->hadamard.n_width; i++)
        for (int64_t k = 0; k < c->hadamard.width[i]; k++)
            CHECK(c->hadamard.signs[i][k] == 1.0f || c->hadamard.signs[i][k] == -1.0f);
    const int n_vocab = c->kind == PACK_DRAFTER ? c->drafter.n_vocab : c->king.n_vocab;
    for (int i = 0; i < c->generation.n_eos; i++)
        CHECK(c->generation.eos[i] >= 0 && c->generation.eos[i] < n_vocab);
}

static str next_part(str *rest)
{
    const size_t cut = str_find(*rest, STR("\n---\n"));
    const str part = str_sub(*rest, 0, cut == STR_NONE ? rest->len : cut);
    *rest = cut == STR_NONE ? (str){ "", 0 } : str_sub(*rest, cut + 5, rest->len);
    return part;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    str rest = { (const char *)data, size };
    const str text = next_part(&rest), signs = next_part(&rest), generation = next_part(&rest);
    config c;
    error e = { 0 };
    status s = config_parse(&c, text, "config.json", &e);
    if (!s && c.kind == PACK_KING) s = config_parse_hadamard(&c, signs, "hadamard.json", &e);
    if (!s && generation.len) s = config_parse_generation(&c, generation, "generation.json", &e);
    if (!s) use(&c);
    else CHECK(e.text[0] && strchr(e.text, '\n') == NULL);
    config_free(&c);
    return 0;
}
