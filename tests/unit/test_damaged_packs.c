/* Models that are damaged or cut, and what the program says of them. */
#include "packkit.h"
#include "program.h"

TEST(a_truncated_pack_is_named)
{
    EXPECT_INT(system("rm -rf ingot-test-king && cp -r " NUGGET "king ingot-test-king && "
                      "truncate -s 1000000 ingot-test-king/model.safetensors"),
               0);
    expect_refusal("generate --quiet -p x --king ingot-test-king", 1, "model.safetensors");
    EXPECT_INT(system("rm -rf ingot-test-king && cp -r " NUGGET "king ingot-test-king && "
                      "rm ingot-test-king/chat_template.jinja"),
               0);
    expect_refusal("generate --quiet -p x --king ingot-test-king", 3, "chat_template");
    EXPECT_INT(run("generate --quiet --raw -n 2 -p x --king ingot-test-king"), 0);
    EXPECT_INT(system("rm -rf ingot-test-king"), 0);
}

/* A copy of a golden king or drafter with one thing changed, as a user meets it: the file, what was
 * found there, the exit code. Every rule has its own test in test_pack.c and its neighbours. */
TEST(damaged_packs_are_refused_in_a_line)
{
#define KING_FILE "model.safetensors"
#define HEAD "language_model.lm_head"
#define LAYER "language_model.model.layers.0"
    static const struct {
        const char *pack;
        kit_damage d; /* file, old, now; or a change of a tensor */
        int code;
        const char *words;
    } list[] = {
        { "king-tiny", /* offsets that lie */
          { .file = KING_FILE, .old = "[0,8192]", .now = "[0,8196]" },
          1,
          HEAD ".biases" },
        { "king-tiny",
          { .file = KING_FILE, .old = "[3509408,3509920]", .now = "[9509408,9509920]" },
          1,
          "vision_tower.pos_embed.weight" },
        { "king-tiny", /* overlap and gap */
          { .file = KING_FILE, .old = "[8192,16384]", .now = "[8190,16382]" },
          1,
          HEAD ".scales" },
        { "king-tiny",
          { .file = KING_FILE, .old = "[16384,18432]", .now = "[10384,12432]" },
          1,
          HEAD },
        { "king-tiny", /* the same key twice: in a header, in a config */
          { .file = KING_FILE, .old = HEAD ".scales", .now = HEAD ".biases" },
          1,
          KING_FILE },
        { "king-tiny",
          { .file = "config.json", .old = "{", .now = "{\"model_type\": \"x\"," },
          1,
          "config.json" },
        { "king-tiny", /* shapes and types */
          { .change = SHAPE(LAYER ".input_layernorm.weight", 2, 2, 256) },
          1,
          "shape [2, 256], want [512]" },
        { "king-tiny",
          { .change = DTYPE(LAYER ".mlp.up_proj.scales", DTYPE_BF16) },
          1,
          "biases: dtype F16, want BF16" },
        { "king-tiny", /* missing and left over */
          { .change = DROP(LAYER ".mlp.up_proj.weight") },
          1,
          "up_proj" },
        { "king-tiny", { .change = RENAME(LAYER ".linear_attn.A_log", "A_log") }, 1, "A_log" },
        { "king-tiny", /* signs that disagree */
          { .change = SET(LAYER ".mlp.up_proj.signs", 5, 0.5f) },
          1,
          "sign 5 is 0.5" },
        { "king-tiny",
          { .file = "hadamard.json",
            .old = "sign_values\": [1, -1",
            .now = "sign_values\": [-1, -1" },
          1,
          "as in hadamard.json" },
        { "king-tiny",
          { .file = "tokenizer.json", .old = "\"model\"", .now = "\"modle\"" },
          3,
          "model: found null, want BPE" },
        { "king-tiny", /* an id without a row in the embedding */
          { .file = "tokenizer.json", .old = ": 1011\n", .now = ": 1024\n" },
          1,
          "/tokenizer.json: found 1025 tokens, want at most the king's 1024" },
        { "king-tiny",
          { .file = "chat_template.jinja", .old = "{%", .now = "{% nonsense %}{%" },
          1,
          "chat_template.jinja: line 1: unknown" },
        { "qwen35-tiny-affine4", /* a shard that is named and not there */
          { .file = "model.safetensors.index.json",
            .old = "model-00001-of-00002",
            .now = "model-00001-of-00003" },
          1,
          "its shard \"model-00001-of-00003.safetensors\" is not" },
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        const kit k = kit_new(list[i].pack);
        char command[512];
        kit_apply(&k, &list[i].d);
        snprintf(command, sizeof command, "generate --quiet -p x --no-drafter --king %s", k.folder);
        expect_refusal(command, list[i].code, list[i].words);
        kit_free(&k);
    }
}

TEST(damaged_drafters_are_refused_in_a_line)
{
    static const struct {
        kit_damage d;
        int code;
        const char *words;
    } list[] = {
        { { .change = DROP("norm.weight") }, 1, "norm.weight" },
        { { .change = SHAPE("norm.weight", 2, 2, 256) }, 1, "norm.weight" },
        { { .file = "config.json", .old = "\"hidden_size\": 512", .now = "\"hidden_size\": 0" },
          1,
          "hidden_size" },
        { { .file = "config.json", .old = "DFlash2DraftModel", .now = "DFlashDraftModel" },
          3,
          "DFlashDraftModel" },
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        const kit k = kit_new("drafter-tiny-bf16");
        char command[512];
        kit_apply(&k, &list[i].d);
        snprintf(command, sizeof command,
                 "generate --quiet -p x --king " PACKS "king-tiny --drafter %s", k.folder);
        expect_refusal(command, list[i].code, list[i].words);
        kit_free(&k);
    }
}
