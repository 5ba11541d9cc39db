/* A king to its GGUF twin and back: codes, scales and plain values byte for byte. */
#include <math.h>
#include <stddef.h>
#include "packkit.h"
#include "base/json.h"
#include "pack/gguf.h"
#include "tools/convert.h"
#include "tools/twin.h"
#include "tools/twininfo.h"

#define TINY KIT_PACKS "king-tiny"

/* Every weight of the text model of one pack is in the other with the same bytes. */
static void expect_same_weights(const char *got, const char *want)
{
    pack *a = NULL, *b = NULL;
    error e = { 0 };
    EXPECT_OK(pack_open(&a, got, NULL, &e), e);
    EXPECT_OK(pack_open(&b, want, NULL, &e), e);
    EXPECT_INT(pack_text_bytes(a), pack_text_bytes(b));
    const safetensors *x = pack_file(a, 0), *y = pack_file(b, 0);
    size_t text = 0;
    for (size_t i = 0; i < y->count; i++) {
        const tensor *w = &y->tensors[i], *g;
        if (!str_starts(w->name, STR("language_model."))) continue;
        text++;
        g = safetensors_find(x, w->name);
        if (!g) FAIL("%.*s is missing", STR_ARG(w->name));
        if (g->type != w->type || !tensor_has_shape(g, w->rank, w->shape) ||
            memcmp(g->data, w->data, w->bytes) != 0)
            FAIL("%.*s differs", STR_ARG(w->name));
    }
    EXPECT_INT(text, x->count);
    const king_config *c = pack_king(a), *d = pack_king(b);
    EXPECT(memcmp(c, d, offsetof(king_config, eps)) == 0);
    EXPECT(c->eps == d->eps && c->rope_theta == d->rope_theta && c->rotary_dim == d->rotary_dim);
    EXPECT(memcmp(c->is_attention, d->is_attention, sizeof c->is_attention) == 0);
    const generation_config *p = &pack_config(a)->generation, *q = &pack_config(b)->generation;
    for (int i = 0; i < q->n_eos; i++) {
        bool there = false;
        for (int k = 0; k < p->n_eos; k++) there |= p->eos[k] == q->eos[i];
        if (!there && i + 1 == q->n_eos) FAIL("stop token %d is lost", q->eos[i]);
    }
    pack_close(a);
    pack_close(b);
}

static void round_trip(const char *king, const char *type)
{
    const kit k = kit_new(NULL);
    error e = { 0 };
    convert_report r;
    const convert_options o = { .type = type };
    EXPECT_OK(convert_to_gguf(king, kit_path(&k, "a.gguf"), &o, &r, &e), e);
    const convert_options back = { .text = king };
    convert_report s;
    EXPECT_OK(convert_to_pack(kit_path(&k, "a.gguf"), kit_path(&k, "king"), &back, &s, &e), e);
    EXPECT_INT(r.packed, s.packed);
    EXPECT_INT(r.plain, s.plain);
    expect_same_weights(kit_path(&k, "king"), king);
    EXPECT_OK(convert_to_gguf(kit_path(&k, "king"), kit_path(&k, "b.gguf"), &o, &s, &e), e);
    EXPECT_INT(s.skipped_bytes, 0);
    gguf a, b;
    EXPECT_OK(gguf_open(&a, kit_path(&k, "a.gguf"), &e), e);
    EXPECT_OK(gguf_open(&b, kit_path(&k, "b.gguf"), &e), e);
    EXPECT_INT(a.len - a.data_at, b.len - b.data_at);
    EXPECT(memcmp(a.bytes + a.data_at, b.bytes + b.data_at, a.len - a.data_at) == 0);
    gguf_close(&a);
    gguf_close(&b);
    kit_free(&k);
    EXPECT_INT(mem_live(), 0);
}

TEST(king_tiny_comes_back_from_pq2_0)
{
    round_trip(TINY, "PQ2_0");
}

TEST(king_tiny_comes_back_from_ptq1_0)
{
    round_trip(TINY, "PTQ1_0");
}

TEST(the_shipped_king_comes_back)
{
    round_trip(TEST_ROOT "/models/nugget/king", "PQ2_0");
}

/* Where heads go, from the published order of the 27B model: 16 key heads, 48 value heads. */
TEST(value_heads_are_tiled)
{
    const king_config k = { .gdn_k_heads = 16,
                            .gdn_v_heads = 48,
                            .gdn_k_dim = 128,
                            .gdn_v_dim = 128 };
    plan_entry t = { .name = "model.layers.0.linear_attn.A_log", .layer = 0 };
    const twin_order one = twin_order_of(&t, &k);
    static const int source[6] = { 0, 16, 32, 1, 17, 33 };
    for (int v = 0; v < 6; v++) EXPECT_INT(twin_gguf_row(&one, v), source[v]);
    for (int v = 0; v < 48; v++) EXPECT_INT(twin_pack_row(&one, twin_gguf_row(&one, v)), v);
    plan_entry qkv = { .name = "model.layers.0.linear_attn.in_proj_qkv", .layer = 0 };
    const twin_order rows = twin_order_of(&qkv, &k);
    EXPECT_INT(twin_gguf_row(&rows, 4095), 4095);
    EXPECT_INT(twin_gguf_row(&rows, 4096 + 128 + 5), 4096 + 16 * 128 + 5);
    plan_entry out = { .name = "model.layers.0.linear_attn.out_proj", .layer = 0 };
    const twin_order columns = twin_order_of(&out, &k);
    EXPECT_INT(twin_gguf_row(&columns, 4000), 4000);
}

/* The tensors of the file against the pack by the arithmetic of the formats, not by our reader of
 * blocks. king-tiny has 2 key and 4 value heads of 128. */
TEST(blocks_hold_the_words_and_scales_of_the_pack)
{
    const kit k = kit_new(NULL);
    error e = { 0 };
    convert_report r;
    const convert_options o = { 0 };
    EXPECT_OK(convert_to_gguf(TINY, kit_path(&k, "a.gguf"), &o, &r, &e), e);
    EXPECT(r.skipped_bytes > 0);
    gguf g;
    safetensors s;
    EXPECT_OK(gguf_open(&g, kit_path(&k, "a.gguf"), &e), e);
    EXPECT_OK(safetensors_open(&s, TINY "/model.safetensors", &e), e);
    const gguf_tensor *t = gguf_find_tensor(&g, "blk.1.attn_gate.weight");
#define Z "language_model.model.layers.1.linear_attn.in_proj_z"
    const tensor *w = safetensors_find(&s, STR(Z ".weight"));
    const tensor *d = safetensors_find(&s, STR(Z ".scales"));
    EXPECT(t && w && d && t->shape[0] == 512 && t->shape[1] == 512);
    static const int head[4] = { 0, 2, 1, 3 };
    for (int row = 0; row < 512; row++) {
        const int from = head[row / 128] * 128 + row % 128;
        for (int b = 0; b < 4; b++) {
            const uint8_t *block = t->data + (row * 4 + b) * 34;
            EXPECT(memcmp(block, d->data + (from * 4 + b) * 2, 2) == 0);
            EXPECT(memcmp(block + 2, w->data + (from * 4 + b) * 32, 32) == 0);
        }
    }
    const gguf_tensor *a = gguf_find_tensor(&g, "blk.1.ssm_a");
    const tensor *log =
        safetensors_find(&s, STR("language_model.model.layers.1.linear_attn.A_log"));
    for (int v = 0; v < 4; v++) {
        float decay, a_log;
        memcpy(&decay, a->data + 4 * v, 4);
        memcpy(&a_log, log->data + 4 * head[v], 4);
        EXPECT(decay == (float)-exp((double)a_log));
    }
    safetensors_close(&s);
    gguf_close(&g);
    kit_free(&k);
}

static void refuse_back(const kit *k, const char *old, const char *now, const char *message)
{
    error e = { 0 };
    convert_report r;
    const convert_options o = { .text = TINY };
    buf b = kit_read(kit_path(k, "a.gguf"));
    const size_t at = str_find(buf_view(&b), str_from(old));
    EXPECT(at != STR_NONE && strlen(old) == strlen(now));
    memcpy(b.ptr + at, now, strlen(now));
    kit_write(k, "bad.gguf", buf_view(&b));
    buf_free(&b);
    const status s = convert_to_pack(kit_path(k, "bad.gguf"), kit_path(k, "out"), &o, &r, &e);
    if (s == OK || !strstr(e.text, message))
        FAIL("%d \"%s\", want \"%s\"", (int)s, e.text, message);
    EXPECT(!file_exists(kit_path(k, "out")));
}

/* Codes are never wrong, but scales and plain values can be. */
static void refuse_values(const kit *k, size_t part)
{
    error e = { 0 };
    convert_report r;
    const convert_options o = { .text = TINY };
    buf b = kit_read(kit_path(k, "a.gguf"));
    memset(b.ptr + b.len / part - 64, 0xff, 64);
    kit_write(k, "bad.gguf", buf_view(&b));
    buf_free(&b);
    EXPECT_INT(convert_to_pack(kit_path(k, "bad.gguf"), kit_path(k, "out"), &o, &r, &e), E_FORMAT);
    EXPECT(strstr(e.text, "not finite") || strstr(e.text, "want below 0"));
    EXPECT(!file_exists(kit_path(k, "out")));
}

TEST(refuses_what_would_lose)
{
    const kit k = kit_new(NULL);
    error e = { 0 };
    convert_report r;
    convert_options o = { .text = TINY };
    EXPECT_OK(convert_to_gguf(TINY, kit_path(&k, "a.gguf"), &o, &r, &e), e);
    refuse_back(&k, "qwen35", "qwen33", "general.architecture");
    refuse_back(&k, "prism.hadamard.version", "prism.hadamard.vErsion", "no rotation metadata");
    refuse_back(&k, "prism.hadamard.gdn_v_grouped", "prism.hadamard.gdn_v_grOuped",
                "gdn_v_grouped");
    refuse_back(&k, "normalized-sylvester", "normalizeD-sylvester", "prism.hadamard.transform");
    refuse_back(&k, "qwen35.ssm.inner_size", "qwen35.ssm.innEr_size", "inner_size: found nothing");
    refuse_values(&k, 2); /* a packed matrix */
    refuse_values(&k, 1); /* the last tensor */
    o.text = NULL;
    EXPECT_INT(convert_to_pack(kit_path(&k, "a.gguf"), kit_path(&k, "out"), &o, &r, &e), E_ARG);
    EXPECT(strstr(e.text, "--text"));
    EXPECT_INT(convert_to_gguf(KIT_PACKS "drafter-tiny-q8", kit_path(&k, "b.gguf"), &o, &r, &e),
               E_UNSUPPORTED);
    o.type = "Q4_K";
    EXPECT_INT(convert_to_gguf(TINY, kit_path(&k, "b.gguf"), &o, &r, &e), E_ARG);
    EXPECT(!file_exists(kit_path(&k, "b.gguf")));
    kit_free(&k);
}

/* A second name where the target belongs must not cost the weights that are there. */
TEST(what_is_there_is_not_replaced)
{
    const kit k = kit_new("king-tiny");
    error e = { 0 };
    convert_report r;
    const convert_options o = { 0 };
    kit_write(&k, "a.gguf", STR("mine"));
    static const char *const there[] = { "model.safetensors", "config.json", "a.gguf", "" };
    for (int i = 0; i < 4; i++) {
        uint64_t before = 0, after = 0;
        const bool is_file = file_size(kit_path(&k, there[i]), &before);
        EXPECT_INT(convert_to_gguf(TINY, kit_path(&k, there[i]), &o, &r, &e), E_ARG);
        EXPECT(strstr(e.text, "is there already"));
        EXPECT(file_size(kit_path(&k, there[i]), &after) == is_file && before == after);
    }
    kit_opens(&k);
    kit_free(&k);
    EXPECT_INT(mem_live(), 0);
}

/* A token that no row of the model is, or none: no token is made up. */
TEST(the_stop_token_is_the_files_own)
{
    static const char key[] = "tokenizer.ggml.eos_token_id";
    const kit k = kit_new(NULL);
    error e = { 0 };
    convert_report r;
    const convert_options o = { .text = TINY };
    EXPECT_OK(convert_to_gguf(TINY, kit_path(&k, "a.gguf"), &o, &r, &e), e);
    buf b = kit_read(kit_path(&k, "a.gguf"));
    const size_t at = str_find(buf_view(&b), str_from(key));
    const uint32_t beyond = 1024; /* king-tiny has rows 0 to 1023 */
    EXPECT(at != STR_NONE);
    memcpy(b.ptr + at + strlen(key) + 4, &beyond, sizeof beyond);
    kit_write(&k, "bad.gguf", buf_view(&b));
    EXPECT_INT(convert_to_pack(kit_path(&k, "bad.gguf"), kit_path(&k, "out"), &o, &r, &e),
               E_FORMAT);
    EXPECT(strstr(e.text, "eos_token_id: found 1024, want a token id below 1024"));
    b.ptr[at] = 'T';
    kit_write(&k, "none.gguf", buf_view(&b));
    buf_free(&b);
    EXPECT_OK(convert_to_pack(kit_path(&k, "none.gguf"), kit_path(&k, "out"), &o, &r, &e), e);
    b = kit_read(kit_path(&k, "out/config.json"));
    EXPECT(str_find(buf_view(&b), STR("eos_token_id")) == STR_NONE);
    buf_free(&b);
    kit_free(&k);
    EXPECT_INT(mem_live(), 0);
}

static status count_entry(void *arg, const char *name, error *e)
{
    int *n = arg;
    (void)name;
    (void)e;
    ++*n;
    return OK;
}

static int entries(const char *folder)
{
    int n = 0;
    error e = { 0 };
    EXPECT_OK(file_list(folder, count_entry, &n, &e), e);
    return n;
}

/* What the reader of packs refuses once everything is written is taken away again, and the same
 * command can be given again. */
/* 1 normal, 3 control, 4 user defined, 5 unused: the numbers of the format. */
TEST(tokens_have_their_kinds)
{
    const kit k = kit_new(NULL), source = kit_new("king-tiny");
    error e = { 0 };
    convert_report r;
    const convert_options o = { 0 };
    kit_write(&source, "tokenizer.json",
              STR("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]},"
                  "\"added_tokens\":[{\"id\":2,\"content\":\"<|end|>\",\"special\":true},"
                  "{\"id\":3,\"content\":\"<think>\",\"special\":false}]}"));
    EXPECT_OK(convert_to_gguf(source.folder, kit_path(&k, "a.gguf"), &o, &r, &e), e);
    gguf g;
    EXPECT_OK(gguf_open(&g, kit_path(&k, "a.gguf"), &e), e);
    const gguf_value *kinds = gguf_find(&g, "tokenizer.ggml.token_type");
    static const int64_t want[] = { 1, 1, 3, 4, 5 };
    for (uint64_t i = 0; i < 5; i++) {
        int64_t kind;
        EXPECT(kinds && gguf_i64(kinds, i, &kind));
        EXPECT_INT(kind, want[i]);
    }
    gguf_close(&g);
    kit_free(&source);
    kit_free(&k);
}

TEST(a_refused_pack_does_not_stay)
{
    const kit k = kit_new(NULL), text = kit_new("king-tiny");
    error e = { 0 };
    convert_report r;
    const convert_options o = { .text = text.folder };
    EXPECT_OK(convert_to_gguf(TINY, kit_path(&k, "a.gguf"), &o, &r, &e), e);
    EXPECT_OK(file_make_dirs(kit_path(&k, "mine"), &e), e);
    kit_write(&text, "generation_config.json", STR("{\"eos_token_id\":-5}"));
    static const char *const targets[] = { "new", "mine" };
    for (int i = 0; i < 2; i++) {
        const char *target = kit_path(&k, targets[i]);
        EXPECT_INT(convert_to_pack(kit_path(&k, "a.gguf"), target, &o, &r, &e), E_FORMAT);
        EXPECT(strstr(e.text, "eos_token_id: found -5"));
    }
    EXPECT(!file_exists(kit_path(&k, "new")));
    EXPECT_INT(entries(kit_path(&k, "mine")), 0);
    EXPECT(unlink(kit_path(&text, "generation_config.json")) == 0);
    for (int i = 0; i < 2; i++) {
        const char *target = kit_path(&k, targets[i]);
        EXPECT_OK(convert_to_pack(kit_path(&k, "a.gguf"), target, &o, &r, &e), e);
        expect_same_weights(target, TINY);
    }
    kit_free(&text);
    kit_free(&k);
    EXPECT_INT(mem_live(), 0);
}

TEST(a_folder_with_something_in_it_is_left_alone)
{
    const kit k = kit_new(NULL), full = kit_new(NULL);
    error e = { 0 };
    convert_report r;
    const convert_options o = { .text = TINY };
    EXPECT_OK(convert_to_gguf(TINY, kit_path(&k, "a.gguf"), &o, &r, &e), e);
    kit_write(&full, "README.md", STR("mine"));
    EXPECT_INT(convert_to_pack(kit_path(&k, "a.gguf"), full.folder, &o, &r, &e), E_ARG);
    EXPECT(strstr(e.text, "found README.md in it, want a new or empty folder"));
    const char *file = kit_path(&full, "README.md");
    EXPECT_INT(convert_to_pack(kit_path(&k, "a.gguf"), file, &o, &r, &e), E_ARG);
    EXPECT(strstr(e.text, "found a file"));
    buf b = kit_read(kit_path(&full, "README.md"));
    EXPECT(str_eq(buf_view(&b), STR("mine")));
    buf_free(&b);
    EXPECT_INT(entries(full.folder), 1);
    kit_free(&full);
    kit_free(&k);
    EXPECT_INT(mem_live(), 0);
}

TEST(a_twin_is_described)
{
    const kit k = kit_new(NULL);
    error e = { 0 };
    convert_report r;
    const convert_options o = { 0 };
    EXPECT_OK(convert_to_gguf(TINY, kit_path(&k, "a.gguf"), &o, &r, &e), e);
    buf out;
    json_doc *doc = NULL;
    buf_init(&out, 1 << 20);
    EXPECT_OK(twininfo_write(kit_path(&k, "a.gguf"), true, true, &out, &e), e);
    EXPECT_OK(json_parse(&doc, buf_view(&out), JSON_UNIQUE, "twininfo", &e), e);
    EXPECT_STR(json_text(json_get(json_root(doc), "architecture")), "qwen35");
    EXPECT(json_is_true(json_get(json_root(doc), "rotated")));
    EXPECT_INT(json_len(json_get(json_root(doc), "tensors")), r.packed + r.plain);
    json_free(doc);
    buf_clear(&out);
    EXPECT_OK(twininfo_write(kit_path(&k, "a.gguf"), false, false, &out, &e), e);
    EXPECT(str_find(buf_view(&out), STR("PQ2_0")) != STR_NONE);
    buf_clear(&out);
    EXPECT_INT(twininfo_write(TINY "/config.json", false, false, &out, &e), E_FORMAT);
    buf_free(&out);
    kit_free(&k);
}

/* Whatever allocation fails, it is reported, and neither memory nor a file stays behind. */
TEST(every_failing_allocation_is_reported)
{
    const kit k = kit_new(NULL);
    error e = { 0 };
    convert_report r;
    char file[512], folder[512];
    snprintf(file, sizeof file, "%s", kit_path(&k, "a.gguf"));
    snprintf(folder, sizeof folder, "%s", kit_path(&k, "king"));
    const convert_options o = { .text = TINY };
    for (int way = 0; way < 2; way++) {
        status s = E_NOMEM;
        int failures = 0;
        for (int64_t n = 1; s != OK; n += 1 + n / 20, failures++) {
            mem_fail_after(n);
            s = way == 0 ? convert_to_gguf(TINY, file, &o, &r, &e)
                         : convert_to_pack(file, folder, &o, &r, &e);
            mem_fail_after(0);
            EXPECT_INT(mem_live(), 0);
            if (s == OK) break;
            EXPECT_INT(s, E_NOMEM);
            EXPECT(!file_exists(way == 0 ? file : folder));
        }
        EXPECT(failures > 20);
    }
    expect_same_weights(folder, TINY);
    kit_free(&k);
}
