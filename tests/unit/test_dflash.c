/* Drafters: configs, dialects, spellings, and whether they fit a king. */
#include "packkit.h"

static const char CONFIG[] = "config.json";

TEST(R079_drafters_of_other_dialects)
{
    static const kit_damage list[] = {
        { CONFIG,
          "DFlash2DraftModel",
          "DFlashDraftModel",
          { 0 },
          E_UNSUPPORTED,
          "found \"DFlashDraftModel\", want \"DFlash2DraftModel\"" },
        { CONFIG,
          "DFlash2DraftModel",
          "DSparkDraftModel",
          { 0 },
          E_UNSUPPORTED,
          "\"DSparkDraftModel\"" },
        { CONFIG,
          "\"conv_kernel_size\": 2,\n  \"conv_group_size\": 64,\n  \"mask_token_id\": 1017,\n  "
          "\"selector_rank\": 64,\n  \"selector_top_k\": 8,",
          "\"mask_token_id\": 1017,",
          { 0 },
          E_UNSUPPORTED,
          "a DFlash 1 drafter" },
        { CONFIG, "\"selector_top_k\": 8,", "", { 0 }, E_FORMAT, "selector_top_k: found nothing" },
        { CONFIG, "\"selector_rank\": 64,", "", { 0 }, E_FORMAT, "selector_rank: found nothing" },
        { CONFIG,
          "\"conv_group_size\": 64,",
          "",
          { 0 },
          E_FORMAT,
          "conv_group_size: found nothing" },
        { CONFIG,
          "\"conv_group_size\": 64",
          "\"conv_group_size\": 100",
          { 0 },
          E_FORMAT,
          "100 does not divide hidden_size 512" },
        { CONFIG,
          "\"conv_kernel_size\": 2",
          "\"conv_kernel_size\": 3",
          { 0 },
          E_UNSUPPORTED,
          "conv_kernel_size: found 3, want 2" },
        { CONFIG,
          "\"is_causal\": false",
          "\"is_causal\": true",
          { 0 },
          E_UNSUPPORTED,
          "is_causal: found true, want false" },
        { CONFIG,
          "\"is_causal\": false,",
          "",
          { 0 },
          E_UNSUPPORTED,
          "is_causal: found nothing, want false" },
        { CONFIG, "[1, 3]", "[3, 1]", { 0 }, E_FORMAT, "1 after 3, want ascending ids" },
        { CONFIG, "[1, 3]", "[1, 1]", { 0 }, E_FORMAT, "want ascending ids" },
        { CONFIG, "[1, 3]", "[1, 4]", { 0 }, E_FORMAT, "want a layer below 4" },
        { CONFIG, "[1, 3]", "[-1, 3]", { 0 }, E_FORMAT, "want a layer below 4" },
        { CONFIG, "[1, 3]", "[]", { 0 }, E_FORMAT, "array of 0, want 1 to 32 layers" },
        { CONFIG,
          "\"block_size\": 8",
          "\"block_size\": 1",
          { 0 },
          E_FORMAT,
          "block_size: found 1, want 2 to 64" },
        { CONFIG,
          "\"mask_token_id\": 1017",
          "\"mask_token_id\": 1024",
          { 0 },
          E_FORMAT,
          "mask_token_id: found 1024" },
        { CONFIG, "\"mask_token_id\": 1017,", "", { 0 }, E_FORMAT, "mask_token_id: found nothing" },
        { CONFIG,
          "[\"sliding_attention\", ",
          "[\"full_attention\", ",
          { 0 },
          E_UNSUPPORTED,
          "sliding and full layers mixed" },
        { CONFIG,
          "[\"sliding_attention\", ",
          "[",
          { 0 },
          E_FORMAT,
          "layer_types: 1 entries, want 2" },
        { CONFIG, "\"sliding_window\": 32,", "", { 0 }, E_FORMAT, "sliding_window: found nothing" },
        { CONFIG, "\"rope_theta\": 10000000, ", "", { 0 }, E_FORMAT, "rope_theta: found nothing" },
        { CONFIG,
          "\"hidden_size\": 512",
          "\"hidden_size\": 256",
          { 0 },
          E_FORMAT,
          "fc.weight: shape [512, 1024], want [256, 512]" },
        { CONFIG,
          "\"vocab_size\": 1024",
          "\"vocab_size\": 1030",
          { 0 },
          E_FORMAT,
          "predecessor_codebook: shape [1024, 64], want [1030, 64]" },
        { .change = DROP("layers.1.mlp_conv.base_kernel"),
          .want = E_FORMAT,
          .message = "mlp_conv.base_kernel is missing" },
        { .change = SHAPE("layers.1.mlp_conv.base_kernel", 3, 2, 512, 2),
          .want = E_FORMAT,
          .message = "[2, 512, 2], want [2, 2, 512]" },
        { .change = ADD("candidate_selector.predecessor_codebook.weight", DTYPE_BF16, 2, 1024, 64),
          .want = E_FORMAT,
          .message = "both candidate_selector.predecessor_codebook and" },
        { .change = ADD("embed_tokens.weight", DTYPE_BF16, 1, 4),
          .want = E_FORMAT,
          .message = "embed_tokens.weight: belongs to no weight" },
    };
    KIT_ALL_REFUSED("drafter-tiny-bf16", list);
}

static drafter_config tiny_drafter(void)
{
    pack *p = NULL;
    error e = { 0 };
    EXPECT_OK(pack_open(&p, KIT_PACKS "drafter-tiny-bf16", NULL, &e), e);
    const drafter_config d = *pack_drafter(p);
    pack_close(p);
    return d;
}

static void no_pair(drafter_config d, const king_config *k, const char *message)
{
    error e = { 0 };
    EXPECT_INT(config_check_pair(&d, k, &e), E_UNSUPPORTED);
    if (!strstr(e.text, message)) FAIL("found \"%s\", want \"%s\"", e.text, message);
}

TEST(R079_pairs_that_do_not_fit)
{
    pack *p = NULL;
    error e = { 0 };
    EXPECT_OK(pack_open(&p, KIT_PACKS "king-tiny", NULL, &e), e);
    const king_config *k = pack_king(p);
    const drafter_config good = tiny_drafter();
    EXPECT_OK(config_check_pair(&good, k, &e), e);
    drafter_config d = good;
    d.n_embd = 5120;
    no_pair(d, k, "hidden size 5120, but the king has 512");
    d = good;
    d.n_vocab = 1023;
    no_pair(d, k, "codebooks of 1023 tokens, but the king has 1024");
    d = good;
    d.n_vocab = 248320;
    d.mask_id = 248070;
    no_pair(d, k, "mask token 248070, but the king has 1024 tokens");
    d = good;
    d.n_target_layer = 64;
    no_pair(d, k, "made for 64 layers, but the king has 4");
    d = good;
    d.n_target_layer = 0;
    d.tap[1] = 61;
    no_pair(d, k, "taps layer 61, but the king has 4 layers");
    d.tap[1] = 4; /* layers count from 0 */
    no_pair(d, k, "taps layer 4, but the king has 4 layers");
    d = good;
    d.mask_id = 1024;
    no_pair(d, k, "mask token 1024, but the king has 1024 tokens");
    pack_close(p);
}

TEST(drafter_spellings)
{
    /* encoder.fc, encoder.output_norm_enc; codebooks X.weight; weights and config in dflash/ */
    kit k = kit_new("drafter-tiny-bf16");
    static const kit_change renames[] = {
        RENAME("fc.weight", "encoder.fc.weight"),
        RENAME("hidden_norm.weight", "encoder.output_norm_enc.weight"),
        RENAME("candidate_selector.successor_codebook",
               "candidate_selector.successor_codebook.weight"),
    };
    for (int i = 0; i < 3; i++) kit_tensor(&k, "model.safetensors", &renames[i]);
    kit_opens(&k);
    /* contract at the root, a scale in dflash_config */
    kit_edit(&k, CONFIG, "\"target_layer_ids\": [1, 3]", "\"output_multiplier\": 0.5");
    kit_refused(&k, E_FORMAT, "block_size");
    kit_edit(
        &k, CONFIG, "\"is_causal\"",
        "\"block_size\": 8, \"mask_token_id\": 7, \"target_layer_ids\": [1, 3], \"is_causal\"");
    pack *p = NULL;
    error e = { 0 };
    EXPECT_OK(pack_open(&p, k.folder, NULL, &e), e);
    EXPECT(pack_drafter(p)->output_multiplier == 0.5f && pack_drafter(p)->mask_id == 7);
    pack_close(p);
    kit_free(&k);
}

TEST(drafter_in_a_subfolder)
{
    const kit outer = kit_new(NULL);
    kit inner;
    error e = { 0 };
    snprintf(inner.folder, sizeof inner.folder, "%.200s/dflash", outer.folder);
    EXPECT_OK(file_make_dirs(inner.folder, &e), e);
    kit_copy(&inner, KIT_PACKS "drafter-tiny-q8");
    kit_opens(&outer);
    kit_opens(&inner);
    /* the config one level up */
    EXPECT(rename(kit_path(&inner, CONFIG), kit_path(&outer, CONFIG)) == 0);
    kit_opens(&outer);
    kit_opens(&inner);
    /* a king's config up there is not the drafter's */
    buf king = kit_read(KIT_PACKS "king-tiny/config.json");
    kit_write(&outer, CONFIG, buf_view(&king));
    buf_free(&king);
    pack *p = NULL;
    EXPECT_INT(pack_open(&p, inner.folder, NULL, &e), E_UNSUPPORTED);
    EXPECT(strstr(e.text, "no config.json, and a drafter of 2 layers"));
    kit_free(&outer);
}
