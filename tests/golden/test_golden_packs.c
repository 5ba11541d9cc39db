/* Every golden pack opens; what it hands out is what the files were made from.
 * Mutations seen to fail: no +1 for zero-centred norms, codebooks only under their bare names,
 * overrides read under one key spelling only. */
#include "test.h"
#include "base/json.h"
#include "pack/pack.h"

#define PACKS TEST_ROOT "/tests/golden/packs/"
#define NUGGET TEST_ROOT "/models/nugget/"

static pack *open_with(const char *folder, const char *config_path)
{
    pack *p = NULL;
    error e = { 0 };
    EXPECT_OK(pack_open(&p, folder, config_path, &e), e);
    return p;
}

static matrix get(const pack *p, const char *path)
{
    const plan_entry *want = plan_find(pack_plan(p), str_from(path));
    matrix m;
    error e = { 0 };
    if (!want) FAIL("no %s", path);
    EXPECT_OK(pack_matrix(p, path, want->shape[0], want->shape[1], &m, &e), e);
    return m;
}

static void expect_format(const pack *p, const char *path, quant_mode mode, int bits, int group)
{
    char got[32], want[32];
    const matrix m = get(p, path);
    quant_format_text(m.format, got, sizeof got);
    EXPECT_STR(got, quant_format_text((quant_format){ mode, bits, group }, want, sizeof want));
}

TEST(king_tiny)
{
    pack *p = open_with(PACKS "king-tiny", NULL);
    EXPECT_INT(pack_get_kind(p), PACK_KING);
    const king_config *k = pack_king(p);
    EXPECT(k && !pack_drafter(p) && !pack_is_upstream(p) && !pack_is_synthesised(p));
    EXPECT_INT(k->n_layer, 4);
    EXPECT_INT(k->n_attention, 1);
    EXPECT(k->is_attention[3] && !k->is_attention[2]);
    EXPECT_INT(k->n_embd, 512);
    EXPECT_INT(k->n_ff, 1024);
    EXPECT_INT(k->head_dim, 128);
    EXPECT_INT(k->rotary_dim, 32);
    EXPECT(k->rope_theta == 1e7 && k->eps == 1e-6f);
    /* 27 packed modules: 3 of each MLP, 3 of each delta net, 4 of the attention, embedding, head */
    int packed = 0, rotated = 0;
    for (size_t i = 0; i < pack_plan(p)->count; i++) {
        const plan_entry *t = &pack_plan(p)->entries[i];
        if (!t->is_matrix) continue;
        const matrix m = get(p, t->name);
        packed += m.format.mode != QUANT_DENSE;
        rotated += m.block == 512 && (m.signs[0] == 1.0f || m.signs[0] == -1.0f);
        for (int64_t r = 0; r < m.out && m.format.mode != QUANT_DENSE; r++)
            EXPECT(matrix_row_is_ternary(&m, r, NULL));
    }
    EXPECT_INT(packed, 27);
    EXPECT_INT(rotated, 27);
    expect_format(p, "lm_head", QUANT_AFFINE, 2, 128);
    expect_format(p, "model.layers.0.linear_attn.in_proj_a", QUANT_DENSE, 0, 0);
    const generation_config *g = &pack_config(p)->generation;
    EXPECT_INT(g->n_eos, 2);
    EXPECT(pack_skipped_bytes(p) > 0);
    uint64_t data = pack_file_bytes(p) - 8 - pack_file(p, 0)->header_len;
    EXPECT_INT(pack_text_bytes(p) + pack_skipped_bytes(p), data);
    pack_close(p);
}

/* The embedding in the golden file is the stored row, rotated back: S H row, H normalised. Computed
 * here in double. */
TEST(king_embedding_rows_rotate_back_to_the_golden_ones)
{
    pack *p = open_with(PACKS "king-tiny", NULL);
    const matrix m = get(p, "model.embed_tokens");
    safetensors g;
    error e = { 0 };
    EXPECT_OK(safetensors_open(&g, PACKS "king-tiny/golden/prompt_len17.safetensors", &e), e);
    const tensor *tokens = safetensors_find(&g, STR("tokens"));
    const tensor *want = safetensors_find(&g, STR("embedding"));
    EXPECT(tokens && want);
    for (int i = 0; i < 17; i++) {
        float row[512], gold[512];
        int32_t id;
        memcpy(&id, tokens->data + (size_t)i * 4, 4);
        matrix_row_f32(&m, id, DTYPE_F16, row);
        tensor_read_f32(want, (int64_t)i * 512, 512, gold);
        for (int a = 0; a < 512; a++) {
            double sum = 0.0;
            for (int b = 0; b < 512; b++)
                sum += __builtin_parity((unsigned)(a & b)) ? -(double)row[b] : (double)row[b];
            const float y = (float)(sum / 22.627416997969522) * m.signs[a];
            const double gap = (double)y - (double)gold[a];
            EXPECT(gap < 1e-3 * (1 + (double)gold[a] * gold[a]) &&
                   gap > -1e-3 * (1 + (double)gold[a] * gold[a]));
        }
    }
    safetensors_close(&g);
    pack_close(p);
}

TEST(plain_affine_with_overrides)
{
    pack *p = open_with(PACKS "qwen35-tiny-affine4", NULL);
    EXPECT_INT(pack_get_kind(p), PACK_PLAIN);
    EXPECT_INT(pack_file_count(p), 2);
    expect_format(p, "model.embed_tokens", QUANT_AFFINE, 4, 64);
    expect_format(p, "lm_head", QUANT_AFFINE, 6, 64);
    expect_format(p, "model.layers.0.mlp.down_proj", QUANT_AFFINE, 8, 32);
    expect_format(p, "model.layers.1.linear_attn.out_proj", QUANT_AFFINE, 3, 128);
    expect_format(p, "model.layers.2.linear_attn.in_proj_qkv", QUANT_AFFINE, 5, 64);
    expect_format(p, "model.layers.3.self_attn.o_proj", QUANT_MXFP4, 4, 32);
    expect_format(p, "model.layers.3.mlp.up_proj", QUANT_AFFINE, 2, 64);
    expect_format(p, "model.layers.2.linear_attn.in_proj_b", QUANT_DENSE, 0, 0);
    EXPECT(get(p, "lm_head").block == 0 && !get(p, "lm_head").signs);
    EXPECT_INT(pack_skipped_bytes(p), 0);
    pack_close(p);
}

TEST(plain_mxfp4_tied)
{
    pack *p = open_with(PACKS "qwen35-tiny-mxfp4", NULL);
    EXPECT(pack_king(p)->tied);
    matrix head;
    error e = { 0 };
    EXPECT_OK(pack_matrix(p, "lm_head", 512, 128, &head, &e), e);
    EXPECT_STR(head.path, "model.embed_tokens");
    expect_format(p, "model.layers.0.linear_attn.in_proj_a", QUANT_MXFP4, 4, 32);
    pack_close(p);
}

/* Same weights in two layouts. Norms differ by the 1, and the files spell their names
 * differently. */
TEST(upstream_layout_gives_the_same_values)
{
    pack *a = open_with(PACKS "qwen35-tiny-bf16", NULL);
    pack *b = open_with(PACKS "qwen35-tiny-bf16-upstream-layout", NULL);
    EXPECT(!pack_is_upstream(a) && pack_is_upstream(b));
    EXPECT_INT(pack_plan(a)->count, pack_plan(b)->count);
    error e = { 0 };
    static float x[1024], y[1024];
    int zero_centred = 0;
    for (size_t i = 0; i < pack_plan(a)->count; i++) {
        const plan_entry *t = &pack_plan(a)->entries[i];
        if (t->is_matrix) {
            const matrix m = get(a, t->name), n = get(b, t->name);
            for (int64_t r = 0; r < m.out; r++) {
                matrix_row_f32(&m, r, DTYPE_F32, x);
                matrix_row_f32(&n, r, DTYPE_F32, y);
                if (memcmp(x, y, (size_t)m.in * 4) != 0)
                    FAIL("%s: row %d differs", t->name, (int)r);
            }
            continue;
        }
        int64_t n = 1;
        for (int d = 0; d < t->rank; d++) n *= t->shape[d];
        EXPECT(n <= 1024);
        EXPECT_OK(pack_values(a, t->name, t->rank, t->shape, x, &e), e);
        EXPECT_OK(pack_values(b, t->name, t->rank, t->shape, y, &e), e);
        for (int64_t k = 0; k < n; k++)
            if (x[k] != y[k])
                FAIL("%s[%d]: %g and %g", t->name, (int)k, (double)x[k], (double)y[k]);
        zero_centred += t->is_zero_centred;
    }
    EXPECT_INT(zero_centred, 4 * 2 + 2 * 2 + 1);
    pack_close(a);
    pack_close(b);
}

static void check_drafter(const char *folder, const char *config_path, quant_format linear,
                          quant_format codebook)
{
    pack *p = open_with(folder, config_path);
    EXPECT_INT(pack_get_kind(p), PACK_DRAFTER);
    const drafter_config *d = pack_drafter(p);
    EXPECT_INT(d->n_layer, 2);
    EXPECT_INT(d->block, 8);
    EXPECT_INT(d->window, 32);
    EXPECT_INT(d->mask_id, 1017);
    EXPECT_INT(d->n_tap, 2);
    EXPECT(d->tap[0] == 1 && d->tap[1] == 3);
    EXPECT(d->embed_scale == 1.0f && d->output_multiplier == 1.0f && d->softcap == 0.0f);
    expect_format(p, "fc", linear.mode, linear.bits, linear.group);
    expect_format(p, "layers.1.mlp_conv.kernel_projection", linear.mode, linear.bits, linear.group);
    expect_format(p, "candidate_selector.predecessor_codebook", codebook.mode, codebook.bits,
                  codebook.group);
    static float kernel[2 * 2 * 512];
    error e = { 0 };
    EXPECT_OK(pack_values(p, "layers.0.attention_conv.base_kernel", 3, (int64_t[]){ 2, 2, 512 },
                          kernel, &e),
              e);
    pack_close(p);
}

TEST(drafters)
{
    const quant_format dense = { QUANT_DENSE, 0, 0 };
    const quant_format q8 = { QUANT_AFFINE, 8, 64 }, q4 = { QUANT_AFFINE, 4, 64 };
    check_drafter(PACKS "drafter-tiny-bf16", NULL, dense, dense);
    check_drafter(PACKS "drafter-tiny-q8", NULL, q8, q8);
    check_drafter(PACKS "drafter-tiny-q4", NULL, q4, dense);
    check_drafter(PACKS "drafter-tiny-q4-loose", PACKS "drafter-tiny-bf16/config.json", q4, dense);
}

TEST(loose_drafter_of_unknown_shape_asks_for_a_config)
{
    pack *p = NULL;
    error e = { 0 };
    EXPECT_INT(pack_open(&p, PACKS "drafter-tiny-q4-loose", NULL, &e), E_UNSUPPORTED);
    EXPECT(strstr(e.text, "2 layers, width 512, 2 taps") && strstr(e.text, "give its config"));
}

TEST(nugget_pair)
{
    pack *k = open_with(NUGGET "king", NULL), *d = open_with(NUGGET "drafter-q8", NULL);
    pack *d4 = open_with(NUGGET "drafter-q4", NULL);
    error e = { 0 };
    EXPECT_OK(config_check_pair(pack_drafter(d), pack_king(k), &e), e);
    EXPECT_OK(config_check_pair(pack_drafter(d4), pack_king(k), &e), e);
    EXPECT_INT(pack_config(k)->generation.n_eos, 2);
    EXPECT_INT(pack_config(k)->generation.eos[0], 4064);
    EXPECT_INT(pack_config(k)->generation.eos[1], 4066);
    EXPECT(pack_config(k)->generation.temperature == 0.6);
    EXPECT_INT(pack_config(k)->generation.top_k, 20);
    EXPECT(strlen(pack_identity(k)) == 64 && strcmp(pack_identity(d), pack_identity(d4)) != 0);
    pack_close(k);
    pack_close(d);
    pack_close(d4);
}
