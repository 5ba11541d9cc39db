/* Replies of the shipped pair against golden.json, which another implementation made (see
 * models/nugget/README.md). */
#include "base/jsonw.h"
#include "nugget.h"

/* Where the margin between the two best logits is small, a correct engine may choose differently:
 * the comparison ends. */
static void compare(const json_node *want, const nugget_result *got)
{
    const json_node *ids = json_get(want, "greedy_ids"), *margins = json_get(want, "margins");
    for (size_t i = 0; i < json_len(ids); i++) {
        double margin;
        int64_t id;
        EXPECT(json_f64(json_at(margins, i), &margin) && json_i64(json_at(ids, i), &id));
        if (margin < 0.06) return;
        if ((int)i == got->n) { /* the stop id ends the golden list and is no part of ours */
            EXPECT_INT(got->finish, INGOT_FINISH_STOP);
            return;
        }
        if (got->ids[i] != id)
            FAIL("%s: token %zu (margin %.3f): got %d, want %d", json_text(json_get(want, "name")),
                 i, margin, got->ids[i], (int)id);
    }
}

TEST(greedy_replies_are_those_of_the_reference)
{
    ingot_model *m = nugget_open(2, NULL);
    ingot_engine *g = nugget_start(m, 1, 0);
    for (int i = 0; i < NUGGET_PROMPTS; i++) {
        int32_t ids[512];
        const ingot_prompt p = nugget_prompt(i, ids, 512);
        ingot_sampling s = INGOT_INIT(ingot_sampling);
        s.max_tokens = 96;
        s.block = INGOT_BLOCK_PLAIN;
        nugget_result r;
        nugget_run(g, &p, &s, &r);
        compare(nugget_case(i), &r);
        nugget_free(&r);
    }
    ingot_engine_stop(g);
    ingot_model_close(m);
}

/* The drafter's quality as a whole: accepted drafts over all prompts within a tenth of the
 * reference's. */
TEST(accepted_drafts_are_those_of_the_reference)
{
    ingot_model *m = nugget_open(2, NUGGET "/drafter-q8");
    ingot_engine *g = nugget_start(m, 1, 0);
    static const int blocks[] = { 4, 8 };
    static const char *const names[] = { "drafted_block_4", "drafted_block_8" };
    for (int b = 0; b < 2; b++) {
        int64_t want = 0, got = 0;
        for (int i = 0; i < NUGGET_PROMPTS; i++) {
            int32_t ids[512];
            const ingot_prompt p = nugget_prompt(i, ids, 512);
            ingot_sampling s = INGOT_INIT(ingot_sampling);
            s.max_tokens = 96;
            s.block = blocks[b];
            s.no_copy = true;
            nugget_result r;
            nugget_run(g, &p, &s, &r);
            got += r.usage.accepted;
            nugget_free(&r);
            const json_node *steps = json_get(json_get(nugget_case(i), names[b]), "accepted");
            for (size_t k = 0; k < json_len(steps); k++) {
                int64_t v;
                EXPECT(json_i64(json_at(steps, k), &v));
                want += v;
            }
        }
        printf("block %d: accepted %lld, reference %lld\n", blocks[b], (long long)got,
               (long long)want);
        EXPECT(got * 10 >= want * 9 && got * 10 <= want * 11);
    }
    ingot_engine_stop(g);
    ingot_model_close(m);
}

/* JSON text of a member, NUL-terminated; the caller frees the buffer. */
static void member_text(buf *out, const json_node *of, const char *name)
{
    jsonw w;
    buf_init(out, 1 << 20);
    jsonw_init(&w, out);
    jsonw_node(&w, json_get(of, name));
    buf_char(out, '\0');
}

/* Template, tokenizer and detokenizer of the shipped king against the reference's. */
TEST(prompts_and_texts_are_those_of_the_reference)
{
    ingot_model *m = nugget_open(1, NULL);
    for (int i = 0; i < NUGGET_PROMPTS; i++) {
        const json_node *c = nugget_case(i);
        const char *want = json_text(json_get(c, "prompt"));
        bool thinking;
        buf messages, tools;
        ingot_text text;
        ingot_error e;
        ingot_tokens got;
        int32_t ids[512];
        member_text(&messages, c, "messages");
        member_text(&tools, c, "tools");
        EXPECT(json_bool(json_get(c, "enable_thinking"), &thinking));
        ingot_prompt p = INGOT_INIT(ingot_prompt);
        p.messages = messages.ptr;
        p.tools = json_len(json_get(c, "tools")) ? tools.ptr : NULL;
        p.thinking = thinking ? INGOT_THINKING_ON : INGOT_THINKING_OFF;
        INGOT_EXPECT_OK(ingot_render(m, &p, &text, &e), e);
        EXPECT_STR(text.ptr, want);
        ingot_text_free(&text);

        INGOT_EXPECT_OK(ingot_tokenize(m, want, strlen(want), INGOT_SPECIAL_ALL, &got, &e), e);
        EXPECT_INT(got.len, nugget_ids(json_get(c, "prompt_ids"), ids, 512));
        for (size_t k = 0; k < got.len; k++) EXPECT_INT(got.ids[k], ids[k]);
        ingot_tokens_free(&got);

        const size_t n = (size_t)nugget_ids(json_get(c, "greedy_ids"), ids, 512);
        INGOT_EXPECT_OK(ingot_detokenize(m, ids, n, false, &text, &e), e);
        EXPECT_STR(text.ptr, json_text(json_get(c, "greedy_text")));
        ingot_text_free(&text);
        buf_free(&messages);
        buf_free(&tools);
    }
    ingot_model_close(m);
}
