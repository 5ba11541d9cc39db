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
