/* Replies of the shipped pair against golden.json, which another implementation made (see
 * models/nugget/README.md). */
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
