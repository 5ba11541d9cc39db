/* `ingot capture`: logits, hidden states, answers and tables against the reference library and
 * plain arithmetic. */
#include <math.h>

#include "base/file.h"
#include "base/json.h"
#include "pack/safetensors.h"
#include "program.h"

static void near(const tensor *a, const tensor *b, double tolerance)
{
    EXPECT(a && b);
    const int64_t n = tensor_elements(a);
    EXPECT_INT(n, tensor_elements(b));
    for (int64_t i = 0; i < n; i++) {
        float x, y;
        tensor_read_f32(a, i, 1, &x);
        tensor_read_f32(b, i, 1, &y);
        if (!(x - y <= tolerance && y - x <= tolerance))
            FAIL("element %d: %g and %g", (int)i, (double)x, (double)y);
    }
}

/* The command's own file against the reference library's. */
TEST(capture_holds_the_reference_logits)
{
    safetensors mine, golden;
    error e;
    int32_t ids[17];
    EXPECT_OK(safetensors_open(&golden, PACKS "king-tiny/golden/prompt_len17.safetensors", &e), e);
    const tensor *tokens = safetensors_find(&golden, STR("tokens"));
    FILE *f = fopen("ingot-test-ids.json", "w");
    memcpy(ids, tokens->data, sizeof ids);
    for (int i = 0; i < 17; i++) fprintf(f, "%c%d", i ? ',' : '[', ids[i]);
    fputs("]", f);
    fclose(f);
    EXPECT_INT(run("capture --quiet --mode f32 --king " PACKS
                   "king-tiny --tokens ingot-test-ids.json --hidden all"
                   " --out ingot-test.safetensors"),
               0);
    EXPECT_OK(safetensors_open(&mine, "ingot-test.safetensors", &e), e);
    near(safetensors_find(&mine, STR("seq0.logits")), safetensors_find(&golden, STR("logits")),
         3e-4);
    near(safetensors_find(&mine, STR("seq0.hidden.2")),
         safetensors_find(&golden, STR("layer2.output")), 1e-4);
    safetensors_close(&mine);
    safetensors_close(&golden);
    /* a king compared with its own capture is no distance away; int8 activations cost little */
    EXPECT_INT(run("eval kl --quiet --json --mode f32 --king " PACKS
                   "king-tiny --against ingot-test.safetensors"),
               0);
    EXPECT(strstr(out, "\"rows\":17,\"kl\":{\"mean\":0.0,"));
    EXPECT(strstr(out, "\"hidden_mean\":0.0"));
    EXPECT_INT(
        run("eval kl --quiet --json --king " PACKS "king-tiny --against ingot-test.safetensors"),
        0);
    EXPECT(!strstr(out, "\"mean\":0.0,"));
    unlink("ingot-test.safetensors");
    unlink("ingot-test-ids.json");
}

static void expect_part(const safetensors *part, const safetensors *all)
{
    for (size_t i = 0; i < part->count; i++) {
        const tensor *t = &part->tensors[i], *w = safetensors_find(all, t->name);
        EXPECT(w && w->bytes == t->bytes && memcmp(w->data, t->data, t->bytes) == 0);
    }
}

/* Answers come with the hidden states of the chosen layers, in shards that are the whole; a drafter
 * changes nothing, and the tables are embedding and head without their rotation. */
TEST(capture_answers_prompts)
{
    error e;
    safetensors all, part, tables;
    EXPECT_INT(
        system("for i in 1 2 3; do printf '{\"messages\":[{\"role\":\"user\",\"content\":"
               "\"What is %d + 4?\"}],\"thinking\":false}\\n\\n' $i; done > ingot-test-asked; "
               "echo '{\"tokens\":[1,2,3]}' >> ingot-test-asked"),
        0);
#define ASK \
    "capture --quiet --json --prompts ingot-test-asked --hidden 0,3 --logits none -n 12" KING
    EXPECT_INT(run(ASK " --no-drafter --out all.safetensors"), 0);
    EXPECT(strstr(out, "{\"out\":\"all.safetensors\",\"sequences\":4,\"tokens\":"));
    EXPECT(strstr(out, ",\"answer_tokens\":"));
    EXPECT_OK(safetensors_open(&all, "all.safetensors", &e), e);
    EXPECT_INT(all.count, 4 * 4);
    EXPECT_INT(run(ASK " --drafter " NUGGET "drafter-q8 --shard 1/2 --parallel 1"
                       " --tables t.safetensors --out part.safetensors"),
               0);
    EXPECT_OK(safetensors_open(&part, "part.safetensors", &e), e);
    EXPECT_INT(part.count, 2 * 4);
    expect_part(&part, &all);
    safetensors_close(&part);
    safetensors_close(&all);
    /* drawn with the seed of its line, whatever is asked beside it */
    EXPECT_INT(run(ASK " --temp 2 --seed 5 --no-drafter --out all.safetensors"), 0);
    EXPECT_INT(run(ASK " --temp 2 --seed 5 --no-drafter --shard 1/2 --out part.safetensors"), 0);
    EXPECT_OK(safetensors_open(&all, "all.safetensors", &e), e);
    EXPECT_OK(safetensors_open(&part, "part.safetensors", &e), e);
    expect_part(&part, &all);
    safetensors_close(&part);
    safetensors_close(&all);
    EXPECT_INT(run(ASK " --no-drafter --out all.safetensors"), 0);
    EXPECT_INT(run(ASK " --temp 2 --seed 5 --top-p 0 --no-drafter --out part.safetensors"), 0);
    EXPECT_OK(safetensors_open(&all, "all.safetensors", &e), e);
    EXPECT_OK(safetensors_open(&part, "part.safetensors", &e), e);
    expect_part(&part, &all); /* one token is left: the likeliest */
    safetensors_close(&part);
    /* the answer of `generate`, and the token that ended it */
    const tensor *ids = safetensors_find(&all, STR("seq1.tokens"));
    const tensor *answer = safetensors_find(&all, STR("seq1.answer"));
    EXPECT_INT(run("generate --quiet --json -p 'What is 2 + 4?' --no-thinking -n 12" KING), 0);
    json_doc *doc;
    EXPECT_OK(json_parse(&doc, str_from(out), 0, "stdout", &e), e);
    const json_node *want = json_get(json_root(doc), "token_ids");
    const bool stopped = strcmp(json_text(json_get(json_root(doc), "finish_reason")), "stop") == 0;
    int32_t first;
    memcpy(&first, answer->data, sizeof first);
    EXPECT_INT(first, (int64_t)json_len(json_get(json_root(doc), "prompt_token_ids")));
    EXPECT_INT(ids->shape[0], first + (int64_t)json_len(want) + stopped);
    for (size_t i = 0; i < json_len(want); i++) {
        int32_t id;
        int64_t w;
        memcpy(&id, ids->data + sizeof id * ((size_t)first + i), sizeof id);
        EXPECT(json_i64(json_at(want, i), &w));
        EXPECT_INT(id, w);
    }
    json_free(doc);
    /* row 9 of the head, times the input of the head, is logit 9: its rotation is undone */
    EXPECT_OK(safetensors_open(&tables, "t.safetensors", &e), e);
    EXPECT(
        tensor_has_shape(safetensors_find(&tables, STR("embedding")), 2, (int64_t[]){ 4096, 512 }));
    EXPECT(tensor_has_shape(safetensors_find(&tables, STR("head")), 2, (int64_t[]){ 4096, 512 }));
    EXPECT_STR(safetensors_metadata(&tables, "layers"), "4");
    EXPECT_STR(safetensors_metadata(&tables, "king"), safetensors_metadata(&all, "king"));
    safetensors_close(&tables);
    safetensors_close(&all);
}

/* Logits by hand from the last layer's output, the final norm and the table, in double. */
TEST(tables_are_the_matrices_without_rotation)
{
    enum { D = 512, V = 1024, N = 17 };
    error e;
    safetensors tables, golden, king;
    EXPECT_INT(run("capture --quiet --king " PACKS "king-tiny --tables t.safetensors"), 0);
    EXPECT_OK(safetensors_open(&tables, "t.safetensors", &e), e);
    EXPECT_OK(safetensors_open(&golden, PACKS "king-tiny/golden/prompt_len17.safetensors", &e), e);
    EXPECT_OK(safetensors_open(&king, PACKS "king-tiny/model.safetensors", &e), e);
    const tensor *head = safetensors_find(&tables, STR("head"));
    const tensor *norm = safetensors_find(&king, STR("language_model.model.norm.weight"));
    const tensor *logits = safetensors_find(&golden, STR("logits"));
    char name[32];
    const tensor *h = NULL;
    for (int layer = 0; layer < 64; layer++) {
        snprintf(name, sizeof name, "layer%d.output", layer);
        const tensor *t = safetensors_find(&golden, str_from(name));
        if (t) h = t;
    }
    EXPECT(head && norm && logits && h);
    float x[D], w[D], row[D], want[V];
    tensor_read_f32(norm, 0, D, w);
    tensor_read_f32(h, (N - 1) * D, D, x);
    tensor_read_f32(logits, (N - 1) * V, V, want);
    double squares = 0;
    for (int i = 0; i < D; i++) squares += (double)x[i] * (double)x[i];
    for (int v = 0; v < V; v++) {
        double sum = 0;
        tensor_read_f32(head, (int64_t)v * D, D, row);
        for (int i = 0; i < D; i++) sum += (double)row[i] * (double)w[i] * (double)x[i];
        sum /= sqrt(squares / D + 1e-6);
        if (!(fabs(sum - (double)want[v]) < 5e-3))
            FAIL("logit %d: %g, want %g", v, sum, (double)want[v]);
    }
    safetensors_close(&king);
    safetensors_close(&golden);
    safetensors_close(&tables);
}

TEST(captures_that_cannot_be)
{
    EXPECT_INT(system("echo '{\"text\":1}' > ingot-test-asked; echo '{\"tokens\":[5000]}' > "
                      "ingot-test-high; : > ingot-test-empty; echo '[1]' > ingot-test-ids"),
               0);
    expect_refusal("capture --quiet" KING, 2, "want --tokens FILE or --prompts FILE");
    expect_refusal("capture --quiet --prompts x" KING, 2, "with --out FILE");
    expect_refusal("capture --quiet --tokens x --prompts y --out z" KING, 2, "together");
    expect_refusal("capture --quiet -n 3 --tokens ingot-test-ids --out z" KING, 2, "--prompts");
    expect_refusal("capture --quiet --prompts none --out z" KING, 1, "none");
    expect_refusal("capture --quiet --prompts ingot-test-empty --out z" KING, 2, "no prompt");
    expect_refusal("capture --quiet --prompts ingot-test-asked --out z" KING, 1,
                   "ingot-test-asked: prompt 0: ");
    expect_refusal("capture --quiet --prompts ingot-test-high --out z" KING, 1, "5000");
    static const char *const lines[][2] = {
        { "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"think\":true}", "\"think\"" },
        { "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"thinking\":1}",
          "thinking: found" },
        { "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"tools\":1}", "tools: found" },
        { "{\"messages\":[]}", "at least one message" },
        { "{\"tokens\":[1],\"tools\":[]}", "beside tokens" },
        { "{\"tokens\":[1.5]}", "found real" },
        { "[]", "want an object" },
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        error e;
        EXPECT_OK(file_write("ingot-test-asked", str_from(lines[i][0]), &e), e);
        expect_refusal("capture --quiet --prompts ingot-test-asked --out z" KING, 1, lines[i][1]);
    }
    expect_refusal("capture --quiet --hidden 3,1 --tokens ingot-test-ids --out z" KING, 2,
                   "rising layers");
    expect_refusal("capture --quiet --hidden 1,4 --tokens ingot-test-ids --out z" KING, 2,
                   "layer 4");
    expect_refusal("capture --quiet --tables z --king " NUGGET "drafter-q8", 3, "want a king");
    EXPECT(!file_exists("z"));
}
