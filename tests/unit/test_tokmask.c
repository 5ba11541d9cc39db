/* Masks and forced tokens, on the tokenizer of the small king. */
#include "engine/gbnf.h"
#include "engine/schema.h"
#include "engine/tokmask.h"
#include "test.h"

enum { MOST = 15, STOP = 3, CALL = 70 };

typedef struct kit {
    tokenizer *t;
    tokmask_vocabulary *v;
    tokmask *m;
} kit;

static void open_kit(kit *k, const char *text)
{
    static const int32_t stop[] = { STOP };
    error e;
    grammar *g;
    EXPECT_OK(tokenizer_open(&k->t, TEST_ROOT "/models/nugget/king", &e), e);
    EXPECT_OK(tokmask_vocabulary_new(&k->v, k->t, tokenizer_vocab_size(k->t), NULL, 0, &e), e);
    EXPECT_OK(gbnf_compile(&g, str_from(text), false, &e), e);
    EXPECT_OK(tokmask_new(&k->m, g, k->v, stop, 1, CALL, &e), e);
}

static void close_kit(kit *k)
{
    tokmask_free(k->m);
    tokmask_vocabulary_free(k->v);
    tokenizer_close(k->t);
}

/* Every token whose bytes the grammar takes one by one, and no other. */
TEST(a_mask_is_what_the_bytes_say)
{
    kit k;
    grammar *g;
    error e;
    static const char text[] = "root ::= [a-m ]{1,6} \"!\"? | \"1\" [0-9]*";
    open_kit(&k, text);
    EXPECT_OK(gbnf_compile(&g, str_from(text), false, &e), e);
    bool none;
    const uint32_t *mask = tokmask_of(k.m, GRAMMAR_START, &none);
    EXPECT(mask && !none);
    int allowed = 0;
    for (int32_t id = 0; id < tokenizer_vocab_size(k.t); id++) {
        const str bytes = tokenizer_bytes(k.t, id);
        int at = GRAMMAR_START;
        for (size_t i = 0; i < bytes.len; i++) at = grammar_next(g, at, (uint8_t)bytes.ptr[i]);
        const bool want = bytes.len > 0 && at != GRAMMAR_DEAD;
        EXPECT_INT(mask[id >> 5] >> (id & 31) & 1, want);
        EXPECT_INT(tokmask_next(k.m, GRAMMAR_START, id) != GRAMMAR_DEAD, bytes.len == 0 || want);
        allowed += want;
    }
    EXPECT(allowed > 20);
    grammar_free(g);
    close_kit(&k);
}

TEST(a_thought_is_of_all_tokens_but_two)
{
    kit k;
    open_kit(&k, "root ::= \"a\"");
    const uint32_t *mask = tokmask_thought(k.m);
    for (int32_t id = 0; id < tokenizer_vocab_size(k.t); id++) {
        EXPECT_INT(mask[id >> 5] >> (id & 31) & 1, id != STOP && id != CALL);
        EXPECT_INT(tokmask_in_thought(k.m, id), id != STOP && id != CALL);
    }
    EXPECT(!tokmask_in_thought(k.m, -1));
    EXPECT(!tokmask_in_thought(k.m, tokenizer_vocab_size(k.t)));
    close_kit(&k);
}

/* Where tokens of several lengths begin the same text, the tokenizer says which; they end where the
 * text may go on in two ways. */
TEST(a_forced_text_is_written_as_the_tokenizer_does)
{
    kit k;
    error e;
    tokenizer_ids want = { 0 };
    int32_t got[MOST];
    int sure = -1;
    open_kit(&k, "root ::= \"<tool_call>\\n<function=get_weather>\" [a-z]");
    EXPECT_OK(tokenizer_encode(k.t, STR("<tool_call>\n<function=get_weather>"), TOKENIZER_NONE,
                               &want, &e),
              e);
    EXPECT(want.len > 3 && want.len < MOST);
    EXPECT_INT(tokmask_forced(k.m, GRAMMAR_START, got, MOST, &sure), want.len);
    EXPECT(sure >= 0 && sure < (int)want.len);
    for (size_t i = 0; i < want.len; i++) EXPECT_INT(got[i], want.ptr[i]);
    EXPECT_INT(tokmask_forced(k.m, GRAMMAR_START, got, 2, &sure), 2);
    int at = GRAMMAR_START;
    for (size_t i = 0; i < want.len; i++) at = tokmask_next(k.m, at, want.ptr[i]);
    EXPECT_INT(tokmask_forced(k.m, at, got, MOST, &sure), 0); /* any letter */
    tokenizer_ids_free(&want);
    close_kit(&k);
}

/* One byte can be one token only; after it the text ends, by a stop id. */
TEST(a_single_token_is_sure)
{
    kit k;
    int32_t got[MOST];
    int sure = -1;
    open_kit(&k, "root ::= \"q\"");
    EXPECT_INT(tokmask_forced(k.m, GRAMMAR_START, got, MOST, &sure), 2);
    EXPECT_INT(sure, 2);
    EXPECT(str_eq(tokenizer_bytes(k.t, got[0]), STR("q")));
    EXPECT_INT(got[1], STOP);
    close_kit(&k);
}

static int next_of(tokmask *m, int state, tokenizer *t, const char *text)
{
    error e;
    tokenizer_ids ids = { 0 };
    EXPECT_OK(tokenizer_encode(t, str_from(text), TOKENIZER_NONE, &ids, &e), e);
    for (size_t i = 0; i < ids.len; i++) state = tokmask_next(m, state, ids.ptr[i]);
    tokenizer_ids_free(&ids);
    return state;
}

static void step(kit *k, int *state)
{
    int next = next_of(k->m, *state, k->t, "x");
    if (tokmask_forget(k->m)) next = next_of(k->m, *state, k->t, "x");
    *state = next;
}

/* A text that needs more states than are kept at once: whoever stands in it keeps its place. Two
 * places, of which one stays behind, count the characters of a long string right to its end. */
TEST(states_that_nobody_is_in_make_room)
{
    enum { LENGTH = 4096, BEHIND = 10 };
    kit k;
    error e;
    json_doc *doc;
    grammar *g;
    bool none;
    int first = GRAMMAR_START, second = GRAMMAR_START, forgotten = 0;
    open_kit(&k, "root ::= \"a\"");
    tokmask_free(k.m);
    EXPECT_OK(json_parse(&doc, STR("{\"type\":\"string\",\"minLength\":4096,\"maxLength\":4096}"),
                         0, "schema", &e),
              e);
    EXPECT_OK(schema_compile(&g, json_root(doc), false, &e), e);
    json_free(doc);
    EXPECT_OK(tokmask_new(&k.m, g, k.v, NULL, 0, -1, &e), e);
    tokmask_follow(k.m, &first);
    tokmask_follow(k.m, &second);
    first = next_of(k.m, first, k.t, "\"");
    second = next_of(k.m, second, k.t, "\"");
    for (int i = 0; i < LENGTH; i++) {
        const uint32_t *mask = tokmask_of(k.m, first, &none);
        if (!mask) {
            EXPECT(tokmask_forget(k.m));
            forgotten++;
            mask = tokmask_of(k.m, first, &none);
        }
        if (!mask || none) FAIL("no mask after %d characters", i);
        step(&k, &first);
        if (i < BEHIND) step(&k, &second);
    }
    EXPECT(forgotten > 0);
    EXPECT(!tokmask_accepts(k.m, first));
    EXPECT_INT(next_of(k.m, first, k.t, "x"), GRAMMAR_DEAD);
    EXPECT(tokmask_accepts(k.m, next_of(k.m, first, k.t, "\"")));
    for (int i = BEHIND; i < LENGTH; i++) {
        EXPECT(!tokmask_accepts(k.m, next_of(k.m, second, k.t, "\"")));
        step(&k, &second);
    }
    EXPECT(tokmask_accepts(k.m, next_of(k.m, second, k.t, "\"")));
    close_kit(&k);
}
