/* King in f32 mode against mlx-lm and mlx-vlm (tests/golden/packs/README.md). */
#include "model_fixture.h"

typedef struct golden_pack {
    const char *folder; /* the pack that runs */
    const char *from;   /* the pack whose golden folder is compared */
    const char *prefix; /* of tensor names */
    int prompts[4];     /* lengths, 0 ends */
} golden_pack;

static const golden_pack king_tiny = { PACKS "king-tiny", PACKS "king-tiny", "", { 1, 17, 70 } };
static const golden_pack affine4 = {
    PACKS "qwen35-tiny-affine4", PACKS "qwen35-tiny-affine4", "f32.", { 1, 23 }
};
static const golden_pack mxfp4 = {
    PACKS "qwen35-tiny-mxfp4", PACKS "qwen35-tiny-mxfp4", "f32.", { 1, 23 }
};
static const golden_pack bf16 = {
    PACKS "qwen35-tiny-bf16", PACKS "qwen35-tiny-bf16", "f32.", { 1, 23 }
};
static const golden_pack upstream = {
    PACKS "qwen35-tiny-bf16-upstream-layout", PACKS "qwen35-tiny-bf16", "f32.", { 1, 23 }
};

static void open_f32(fixture *f, const golden_pack *g)
{
    fixture_open(
        f,
        (fixture_options){ .folder = g->folder, .mode = COMPUTE_F32, .kv = KV_F32, .threads = 1 });
}

/* ---- outputs of layers, logits, states ---- */

typedef struct layer_check {
    const safetensors *g;
    const char *prefix;
    int n_embd, met;
    fixture *f; /* of the pack whose final norm follows the last layer */
} layer_check;

/* The final norm of the last layer's output, h. */
static void check_final_norm(layer_check *l, const float *h, int rows)
{
    const size_t n = (size_t)l->n_embd;
    char name[64];
    error e;
    snprintf(name, sizeof name, "%sfinal_norm", l->prefix);
    if (!safetensors_find(l->g, str_from(name))) {
        snprintf(name, sizeof name, "%sfinal_norm_last_position", l->prefix);
        h += (size_t)(rows - 1) * n;
        rows = 1;
    }
    float *want = golden_f32(l->g, name, (int64_t)rows * l->n_embd),
          *got = mem_array((size_t)rows * n, sizeof *got), *w = mem_array(n, sizeof *w);
    const int64_t width = l->n_embd;
    EXPECT_OK(pack_values(l->f->p, "model.norm.weight", 1, &width, w, &e), e);
    compute_rmsnorm(l->f->c, got, h, w, rows, l->n_embd, l->f->config->eps);
    for (int r = 0; r < rows; r++) {
        EXPECT_NEAR(relative(got + (size_t)r * n, want + (size_t)r * n, n), 2e-5, "%s row %d", name,
                    r);
    }
    mem_free(want);
    mem_free(got);
    mem_free(w);
    l->met++;
}

static void check_hidden(void *arg, int layer, const float *h, int rows)
{
    layer_check *l = arg;
    char name[64];
    if (layer == l->f->config->n_layer - 1) check_final_norm(l, h, rows);
    snprintf(name, sizeof name, "%slayer%d.output", l->prefix, layer);
    const size_t n = (size_t)l->n_embd;
    if (!safetensors_find(l->g, str_from(name))) {
        snprintf(name, sizeof name, "%slayer%d.output_last_position", l->prefix, layer);
        if (!safetensors_find(l->g, str_from(name))) return;
        h += (size_t)(rows - 1) * n;
        rows = 1;
    }
    float *want = golden_f32(l->g, name, (int64_t)rows * l->n_embd);
    for (int r = 0; r < rows; r++) {
        EXPECT_NEAR(relative(h + (size_t)r * n, want + (size_t)r * n, n), 2e-5, "%s row %d", name,
                    r);
    }
    mem_free(want);
    l->met++;
}

static void check_states(fixture *f, state *s, const safetensors *g, const char *prefix)
{
    const king_config *c = f->config;
    const gdn_shape shape = state_gdn_shape(c);
    const int recurrent_n = shape.n_v_head * shape.v_dim * shape.k_dim,
              conv_n = 3 * gdn_channels(&shape);
    const int kv_n = c->n_kv_head * state_len(s) * c->head_dim;
    for (int i = 0; i < c->n_layer; i++) {
        char name[64];
        snprintf(name, sizeof name, "%slayer%d.recurrent_state", prefix, i);
        if (safetensors_find(g, str_from(name))) {
            float *want = golden_f32(g, name, recurrent_n);
            const float *recurrent, *conv;
            state_peek_gdn(s, f->c, i, &recurrent, &conv);
            EXPECT_NEAR(max_diff(recurrent, want, (size_t)recurrent_n), 1e-4, "%s", name);
            mem_free(want);
            snprintf(name, sizeof name, "%slayer%d.conv_state", prefix, i);
            want = golden_f32(g, name, conv_n);
            EXPECT_NEAR(max_diff(conv, want, (size_t)conv_n), 1e-4, "%s", name);
            mem_free(want);
        }
        for (int values = 0; values < 2; values++) {
            snprintf(name, sizeof name, "%slayer%d.%s", prefix, i, values ? "values" : "keys");
            if (!safetensors_find(g, str_from(name))) continue;
            float *want = golden_f32(g, name, kv_n), *got = mem_array((size_t)kv_n, sizeof *got);
            state_peek_kv(s, i, values, got);
            EXPECT_NEAR(max_diff(got, want, (size_t)kv_n), 1e-4, "%s", name);
            mem_free(want);
            mem_free(got);
        }
    }
}

static void check_prompts(const golden_pack *p)
{
    fixture f;
    open_f32(&f, p);
    for (const int *len = p->prompts; *len; len++) {
        char file[64], name[64];
        safetensors g;
        snprintf(file, sizeof file, "prompt_len%d.safetensors", *len);
        golden_open(&g, p->from, file);
        int n;
        int32_t *tokens = golden_i32(&g, "tokens", &n);
        EXPECT_INT(n, *len);

        state *s = fixture_state(&f);
        error e;
        EXPECT_OK(state_begin(s, n, ROWS_FINAL, &e), e);
        king_job job = { .state = s, .tokens = tokens, .n = n };
        layer_check check = { &g, p->prefix, f.config->n_embd, 0, &f };
        const king_hook hook = { .hidden = check_hidden, .arg = &check };
        king_forward(f.k, f.c, f.w, &job, 1, &hook);
        EXPECT_INT(job.bad_layer, -1);
        state_commit(s, n);
        EXPECT_INT(check.met, f.config->n_layer + 1);

        const int vocab = f.config->n_vocab;
        snprintf(name, sizeof name, "%slogits", p->prefix);
        float *want = golden_f32(&g, name, (int64_t)n * vocab);
        for (int r = 0; r < n; r++) {
            const size_t at = (size_t)r * (size_t)vocab;
            EXPECT_NEAR(max_diff(job.logits + at, want + at, (size_t)vocab), 3e-4, "%s %s row %d",
                        p->folder, file, r);
        }
        check_states(&f, s, &g, p->prefix);
        mem_free(want);
        mem_free(tokens);
        state_free(s);
        safetensors_close(&g);
    }
    fixture_close(&f);
}

TEST(golden_king_tiny)
{
    check_prompts(&king_tiny);
}

TEST(golden_affine4)
{
    check_prompts(&affine4);
}

TEST(golden_mxfp4)
{
    check_prompts(&mxfp4);
}

TEST(golden_bf16)
{
    check_prompts(&bf16);
}

TEST(golden_upstream_layout)
{
    check_prompts(&upstream);
}

/* The same weights in two layouts give the same bits. */
TEST(upstream_layout_equals_mlx_layout)
{
    fixture a, b;
    open_f32(&a, &bf16);
    open_f32(&b, &upstream);
    const int32_t tokens[] = { 5, 17, 300, 2, 2, 511, 0, 44 };
    state *sa = fixture_state(&a), *sb = fixture_state(&b);
    const king_job ja = fixture_pass(&a, sa, tokens, 8, ROWS_FINAL, 8);
    const king_job jb = fixture_pass(&b, sb, tokens, 8, ROWS_FINAL, 8);
    EXPECT_BITS(ja.logits, jb.logits, 8 * a.config->n_vocab);
    state_free(sa);
    state_free(sb);
    fixture_close(&a);
    fixture_close(&b);
}

static void check_embedding(const golden_pack *p)
{
    fixture f;
    open_f32(&f, p);
    for (const int *len = p->prompts; *len && *len < 70; len++) { /* the longest has none */
        char file[64], name[64];
        safetensors g;
        int n;
        snprintf(file, sizeof file, "prompt_len%d.safetensors", *len);
        golden_open(&g, p->from, file);
        int32_t *tokens = golden_i32(&g, "tokens", &n);
        const int d = f.config->n_embd;
        snprintf(name, sizeof name, "%sembedding", p->prefix);
        float *want = golden_f32(&g, name, (int64_t)n * d),
              *got = mem_array((size_t)(n * d), sizeof *got);
        king_embed(f.k, f.c, got, tokens, n);
        EXPECT_BITS(got, want, n * d);
        mem_free(want);
        mem_free(got);
        mem_free(tokens);
        safetensors_close(&g);
    }
    fixture_close(&f);
}

TEST(golden_embedding_rows)
{
    check_embedding(&king_tiny);
    check_embedding(&affine4);
    check_embedding(&mxfp4);
    check_embedding(&bf16);
    check_embedding(&upstream);
}

/* ---- greedy continuations ---- */

enum { GREEDY_STEPS = 64 };

static void check_greedy_of(fixture *f, const golden_pack *p, int len, const json_node *info)
{
    char key[16], file[64];
    snprintf(key, sizeof key, "len%d", len);
    const json_node *g = json_get(json_get(info, "greedy"), key);
    const bool plain = json_get(g, "f32") != NULL;
    if (plain) g = json_get(g, "f32");
    int n_prompt, n;
    int32_t *prompt = json_ints(json_get(json_get(info, "prompts"), key), &n_prompt);
    int32_t *tokens = json_ints(json_get(g, "tokens"), &n);
    snprintf(file, sizeof file, "greedy_len%d%s_first_rows.safetensors", len, plain ? "_f32" : "");
    safetensors rows;
    golden_open(&rows, p->from, file);
    const int vocab = f->config->n_vocab, n_rows = (int)golden_tensor(&rows, "logits")->shape[0];
    float *want = golden_f32(&rows, "logits", (int64_t)n_rows * vocab);

    state *s = fixture_state(f);
    king_job job = fixture_pass(f, s, prompt, n_prompt, ROWS_FINAL, n_prompt);
    const float *logits = job.logits + (size_t)(n_prompt - 1) * (size_t)vocab;
    int compared = 0;
    if (n > GREEDY_STEPS) n = GREEDY_STEPS;
    for (int i = 0; i < n; i++) {
        if (i < n_rows) {
            EXPECT_NEAR(max_diff(logits, want + (size_t)i * (size_t)vocab, (size_t)vocab), 3e-4,
                        "%s step %d", key, i);
        }
        double margin = 0;
        json_f64(json_get(json_at(json_get(g, "steps"), (size_t)i), "margin"), &margin);
        if (margin > 1e-3) {
            EXPECT_INT(argmax(logits, vocab), tokens[i]);
            compared++;
        }
        job = fixture_pass(f, s, &tokens[i], 1, ROWS_FINAL, 1);
        logits = job.logits;
    }
    EXPECT(compared > n * 9 / 10);
    state_free(s);
    mem_free(prompt);
    mem_free(tokens);
    mem_free(want);
    safetensors_close(&rows);
}

static void check_greedy(const golden_pack *p)
{
    fixture f;
    open_f32(&f, p);
    char path[512];
    snprintf(path, sizeof path, "%s/golden/info.json", p->from);
    json_doc *info = golden_json(path);
    for (const int *len = p->prompts; *len; len++) check_greedy_of(&f, p, *len, json_root(info));
    json_free(info);
    fixture_close(&f);
}

TEST(golden_greedy_king_tiny)
{
    check_greedy(&king_tiny);
}

TEST(golden_greedy_affine4)
{
    check_greedy(&affine4);
}

TEST(golden_greedy_mxfp4)
{
    check_greedy(&mxfp4);
}

TEST(golden_greedy_bf16)
{
    check_greedy(&bf16);
}

TEST(golden_greedy_upstream_layout)
{
    check_greedy(&upstream);
}
