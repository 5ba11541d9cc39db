#include <math.h>
#include "packkit.h"
#include "base/mem.h"
#include "tools/doctor.h"

static pack *open_pack(const char *folder)
{
    pack *p = NULL;
    error e = { 0 };
    EXPECT_OK(pack_open(&p, folder, NULL, &e), e);
    return p;
}

static void expect(const char *folder, int faults, const char *line)
{
    pack *p = open_pack(folder);
    doctor_report r;
    error e = { 0 };
    EXPECT_OK(doctor_check(p, NULL, NULL, NULL, &r, &e), e);
    const str lines = buf_view(&r.lines);
    if (r.faults != faults) FAIL("%d faults, want %d:\n%.*s", r.faults, faults, STR_ARG(lines));
    if (line && str_find(lines, str_from(line)) == STR_NONE)
        FAIL("no \"%s\" in\n%.*s", line, STR_ARG(lines));
    EXPECT(r.weights > 0);
    doctor_free(&r);
    pack_close(p);
    EXPECT_INT(mem_live(), 0);
}

TEST(sound_models)
{
    expect(KIT_PACKS "king-tiny", 0, NULL);
    expect(KIT_PACKS "qwen35-tiny-affine4", 0, NULL);
    expect(KIT_PACKS "drafter-tiny-q8", 0, NULL);
    expect(TEST_ROOT "/models/nugget/king", 0, NULL);
}

/* Overwrites bytes of one tensor of the copy. */
static void patch(const kit *k, const char *name, uint64_t at, const void *bytes, size_t n)
{
    safetensors s;
    error e = { 0 };
    EXPECT_OK(safetensors_open(&s, kit_path(k, "model.safetensors"), &e), e);
    const tensor *t = safetensors_find(&s, str_from(name));
    EXPECT(t && at + n <= t->bytes);
    const size_t offset = (size_t)(t->data - s.bytes) + at;
    safetensors_close(&s);
    buf b = kit_read(kit_path(k, "model.safetensors"));
    memcpy(b.ptr + offset, bytes, n);
    kit_write(k, "model.safetensors", buf_view(&b));
    buf_free(&b);
}

#define UP "language_model.model.layers.1.mlp.up_proj"

TEST(damaged_weights)
{
    static const struct {
        const char *tensor;
        uint64_t at;
        uint16_t bits;
        const char *line;
    } cases[] = {
        { UP ".biases", 2 * 4 * 7, 0x3c00,
          "model.layers.1.mlp.up_proj: row 7: bias 0 is 1, want -" },
        { UP ".scales", 2 * 4 * 7 + 2, 0x7e00, "model.layers.1.mlp.up_proj: row 7: scale 1 is" },
        { UP ".biases", 2 * 4 * 7 + 4, 0xfc00, "row 7: bias 2 is -inf" },
        { "language_model.model.norm.weight", 4 * 9 + 2, 0x7fc0, "model.norm.weight: value 9 is" },
        { "language_model.model.layers.0.linear_attn.in_proj_a.weight", 4 * 512 * 2 + 2, 0x7f80,
          "in_proj_a: row 2: weight 0 is" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const kit k = kit_new("king-tiny");
        patch(&k, cases[i].tensor, cases[i].at, &cases[i].bits, 2);
        expect(k.folder, 1, cases[i].line);
        kit_free(&k);
    }
}

/* Code 3 is legal and counted. */
TEST(codes_of_three_are_a_note)
{
    const kit k = kit_new("king-tiny");
    patch(&k, UP ".weight", 100, "\xff\x03", 2);
    expect(k.folder, 0, "note: 5 codes of value 3 (+2d)");
    kit_free(&k);
}

TEST(text_files)
{
    kit k = kit_new("king-tiny");
    EXPECT(remove(kit_path(&k, "tokenizer.json")) == 0);
    EXPECT(remove(kit_path(&k, "chat_template.jinja")) == 0);
    expect(k.folder, 2, "tokenizer.json");
    kit_free(&k);
    k = kit_new("king-tiny");
    kit_write(&k, "chat_template.jinja", STR("{% for %}"));
    expect(k.folder, 1, "chat_template.jinja");
    kit_free(&k);
    k = kit_new(NULL);
    kit_copy(&k, TEST_ROOT "/models/nugget/king");
    kit_edit(&k, "generation_config.json", "4066", "4090");
    expect(k.folder, 1, "tokenizer: has no stop token 4090");
    kit_free(&k);
    k = kit_new("king-tiny");
    kit_edit(&k, "tokenizer.json", "\"added_tokens\": [",
             "\"added_tokens\": [{\"id\": 1024, \"content\": \"<more>\"},");
    expect(k.folder, 1, "tokenizer: 1025 ids, but the model has 1024 rows");
    kit_free(&k);
}

/* The manifest as another program writes it: sha256sum and stat. */
static void write_manifest(const kit *k)
{
    char command[1200];
    snprintf(
        command, sizeof command,
        "cd %s && { printf '{'; for f in *.safetensors *.json *.jinja; do printf "
        "'%%s\"%%s\": {\"sha256\": \"%%s\", \"size\": %%s}' \"$c\" $f $(sha256sum $f | cut -c1-64) "
        "$(stat -L -c %%s $f); c=,; done; printf ',\"README.md\": {\"sha256\": \"%%064d\", "
        "\"size\": 5}}' 0; } > ../files.$$ && mv ../files.$$ files.json",
        k->folder);
    EXPECT_INT(system(command), 0);
}

TEST(the_manifest_of_a_published_pack)
{
    kit k = kit_new("king-tiny");
    write_manifest(&k);
    expect(k.folder, 0, NULL);
    kit_edit(&k, "chat_template.jinja", "<|im_start|>", "<|im_strat|>");
    expect(k.folder, 1, "chat_template.jinja: found sha256 ");
    kit_write(&k, "generation_config.json", STR("{}"));
    expect(k.folder, 2, "generation_config.json: found 2 bytes, files.json says ");
    EXPECT(remove(kit_path(&k, "generation_config.json")) == 0);
    expect(k.folder, 2, "generation_config.json: missing; files.json lists it");
    kit_write(&k, "files.json", STR("{\"config.json\": {\"size\": -1}}"));
    expect(k.folder, 1, "files.json: config.json: want a size and a sha256");
    kit_write(&k, "files.json", STR("[]"));
    expect(k.folder, 1, "files.json: want an object");
    kit_write(&k, "files.json", STR("{"));
    expect(k.folder, 1, "files.json");
    kit_free(&k);
}

TEST(a_drafter_of_another_king)
{
    pack *king = open_pack(TEST_ROOT "/models/nugget/king");
    pack *drafter = open_pack(KIT_PACKS "drafter-tiny-q8");
    doctor_report r;
    error e = { 0 };
    EXPECT_OK(doctor_check(king, drafter, NULL, NULL, &r, &e), e);
    EXPECT_INT(r.faults, 1);
    EXPECT(str_find(buf_view(&r.lines), STR("codebooks of 1024 tokens, but the king has 4096")) !=
           STR_NONE);
    doctor_free(&r);
    pack_close(king);
    pack_close(drafter);
}

/* What `inspect --verify` says of a folder: why it does not open, or the findings. */
static void verdict(const char *folder, buf *out)
{
    pack *p = NULL;
    doctor_report r;
    error e = { 0 };
    if (pack_open(&p, folder, NULL, &e)) {
        buf_printf(out, "fault: %s\n", e.text);
        return;
    }
    EXPECT_OK(doctor_check(p, NULL, NULL, NULL, &r, &e), e);
    buf_add(out, buf_view(&r.lines));
    doctor_free(&r);
    pack_close(p);
}

/* Each kind of damage, by what it does to a sound pack, and the words that name it. */
TEST(every_kind_of_damage_is_named)
{
#define FILE_ "model.safetensors"
#define L0 "language_model.model.layers.0"
#define HEAD "language_model.lm_head"
    static const struct {
        const char *kind, *pack;
        kit_damage d;
        const char *words;
    } list[] = {
        { "a tensor longer than its shape",
          "king-tiny",
          { .file = FILE_, .old = "[0,8192]", .now = "[0,8196]" },
          HEAD ".biases" },
        { "a tensor beyond the file",
          "king-tiny",
          { .file = FILE_, .old = "[3509408,3509920]", .now = "[9509408,9509920]" },
          "vision_tower.pos_embed.weight" },
        { "tensors that overlap",
          "king-tiny",
          { .file = FILE_, .old = "[8192,16384]", .now = "[8190,16382]" },
          HEAD ".scales" },
        { "bytes that belong to nothing",
          "king-tiny",
          { .file = FILE_, .old = "[16384,18432]", .now = "[10384,12432]" },
          HEAD },
        { "a tensor twice",
          "king-tiny",
          { .file = FILE_, .old = HEAD ".scales", .now = HEAD ".biases" },
          FILE_ },
        { "a key of the config twice",
          "king-tiny",
          { .file = "config.json", .old = "{", .now = "{\"model_type\": \"x\"," },
          "config.json" },
        { "another shape",
          "king-tiny",
          { .change = SHAPE(L0 ".input_layernorm.weight", 2, 2, 256) },
          "shape [2, 256], want [512]" },
        { "another type",
          "king-tiny",
          { .change = DTYPE(L0 ".mlp.up_proj.scales", DTYPE_BF16) },
          "dtype F16, want BF16" },
        { "a tensor missing",
          "king-tiny",
          { .change = DROP(L0 ".mlp.up_proj.weight") },
          "up_proj" },
        { "a tensor too many",
          "king-tiny",
          { .change = ADD("language_model.model.extra", DTYPE_F32, 1, 4) },
          "extra" },
        { "a tensor of another name",
          "king-tiny",
          { .change = RENAME(L0 ".linear_attn.A_log", "A_log") },
          "A_log" },
        { "a sign that is neither 1 nor -1",
          "king-tiny",
          { .change = SET(L0 ".mlp.up_proj.signs", 5, 0.5f) },
          "sign 5 is 0.5" },
        { "signs that differ from the contract",
          "king-tiny",
          { .file = "hadamard.json",
            .old = "sign_values\": [1, -1",
            .now = "sign_values\": [-1, -1" },
          "as in hadamard.json" },
        { "a drafter's tensor missing",
          "drafter-tiny-bf16",
          { .change = DROP("norm.weight") },
          "norm.weight" },
        { "a drafter's tensor of another shape",
          "drafter-tiny-bf16",
          { .change = SHAPE("norm.weight", 2, 2, 256) },
          "norm.weight" },
        { "a size of nothing",
          "drafter-tiny-bf16",
          { .file = "config.json", .old = "\"hidden_size\": 512", .now = "\"hidden_size\": 0" },
          "hidden_size" },
        { "a drafter of another kind",
          "drafter-tiny-bf16",
          { .file = "config.json", .old = "DFlash2DraftModel", .now = "DFlashDraftModel" },
          "DFlashDraftModel" },
        { "a shard that is not there",
          "qwen35-tiny-affine4",
          { .file = "model.safetensors.index.json",
            .old = "model-00001-of-00002",
            .now = "model-00001-of-00003" },
          "its shard \"model-00001-of-00003.safetensors\" is not" },
        { "a tokenizer of another kind",
          "king-tiny",
          { .file = "tokenizer.json", .old = "\"model\"", .now = "\"modle\"" },
          "model: found null, want BPE" },
        { "a template that does not parse",
          "king-tiny",
          { .file = "chat_template.jinja", .old = "{%", .now = "{% nonsense %}{%" },
          "chat_template.jinja: line 1: unknown" },
        { "a norm that is no number",
          "king-tiny",
          { .change = SET("language_model.model.norm.weight", 9, NAN) },
          "model.norm.weight: value 9 is" },
        { "a dense weight that is no number",
          "king-tiny",
          { .change = SET(L0 ".linear_attn.in_proj_a.weight", 1024, INFINITY) },
          "in_proj_a: row 2: weight 0 is" },
    };
    static const struct {
        const char *kind, *tensor;
        uint64_t at;
        uint16_t bits;
        const char *words;
    } bytes[] = {
        { "a bias that is not the negated scale", UP ".biases", 56, 0x3c00, "row 7: bias 0 is 1" },
        { "a scale that is no number", UP ".scales", 58, 0x7e00, "row 7: scale 1 is" },
        { "a bias that is infinite", UP ".biases", 60, 0xfc00, "row 7: bias 2 is" },
    };
    const size_t n = sizeof list / sizeof *list, m = sizeof bytes / sizeof *bytes;
    EXPECT(n + m >= 25);
    for (size_t i = 0; i < n + m; i++) {
        const kit k = kit_new(i < n ? list[i].pack : "king-tiny");
        const char *kind = i < n ? list[i].kind : bytes[i - n].kind;
        const char *words = i < n ? list[i].words : bytes[i - n].words;
        buf found;
        buf_init(&found, 1 << 20);
        if (i < n) kit_apply(&k, &list[i].d);
        else patch(&k, bytes[i - n].tensor, bytes[i - n].at, &bytes[i - n].bits, 2);
        verdict(k.folder, &found);
        const str said = buf_view(&found);
        if (str_find(said, STR("fault: ")) == STR_NONE ||
            str_find(said, str_from(words)) == STR_NONE)
            FAIL("%s: no \"%s\" in \"%.*s\"", kind, words, STR_ARG(said));
        buf_free(&found);
        kit_free(&k);
    }
}

TEST(a_missing_generation_config_is_a_note)
{
    const kit k = kit_new("king-tiny");
    (void)remove(kit_path(&k, "generation_config.json"));
    expect(k.folder, 0, "note: no generation_config.json");
    kit_free(&k);
}
