/* The halves of single layers, and each step inside them, on the inputs that the reference had, in
 * f32 (king-tiny, first six tokens of a prompt). */
#include "model/attention.h"
#include "model/gdn.h"
#include "model/mlp.h"
#include "model_fixture.h"

enum { ROWS = 6, WIDTH = 512, GDN_LAYER = 1, ATTENTION_LAYER = 3 };

typedef struct half {
    fixture f;
    weights w;
    gdn_layer gdn;
    attention_layer attention;
    mlp_layer gdn_mlp, attention_mlp;
    rope *angles;
    state *s;
    pass p;
    int row[1];
    int32_t pos[ROWS];
    king_job job;
    conv_job conv;
    gdn_job gdn_rows;
    attn_job attn;
    safetensors g;
} half;

static void half_open(half *b)
{
    error e;
    *b = (half){ 0 };
    fixture_open(
        &b->f, (fixture_options){ .folder = PACKS "king-tiny", .mode = COMPUTE_F32, .kv = KV_F32 });
    const king_config *c = b->f.config;
    const pack *p = b->f.p;
    weights_init(&b->w);
    EXPECT_OK(gdn_plan(&b->gdn, &b->w, p, GDN_LAYER, c, COMPUTE_F32, &e), e);
    EXPECT_OK(
        mlp_plan(&b->gdn_mlp, &b->w, p, "model.layers.1", c->n_embd, c->n_ff, COMPUTE_F32, &e), e);
    EXPECT_OK(attention_plan(&b->attention, &b->w, p, ATTENTION_LAYER, c, COMPUTE_F32, &e), e);
    EXPECT_OK(mlp_plan(&b->attention_mlp, &b->w, p, "model.layers.3", c->n_embd, c->n_ff,
                       COMPUTE_F32, &e),
              e);
    EXPECT_OK(weights_fill(&b->w, p, b->f.c, NULL, NULL, &e), e);
    EXPECT_OK(compute_rope_new(&b->angles, c->rope_theta, c->rotary_dim, &e), e);
    b->s = fixture_state(&b->f);
    EXPECT_OK(state_begin(b->s, ROWS, ROWS_FINAL, &e), e);
    for (int i = 0; i < ROWS; i++) b->pos[i] = i;
    b->job = (king_job){ .state = b->s, .n = ROWS };
    size_t room = gdn_room(c) > attention_room(c) ? gdn_room(c) : attention_room(c);
    if (room < 2 * (size_t)c->n_ff) room = 2 * (size_t)c->n_ff;
    b->p = (pass){ .c = b->f.c,
                   .rows = ROWS,
                   .n_jobs = 1,
                   .jobs = &b->job,
                   .row = b->row,
                   .pos = b->pos,
                   .act = mem_alloc(weights_act_bytes(&b->w, ROWS)),
                   .room = mem_array(ROWS * room, sizeof(float)),
                   .conv = &b->conv,
                   .gdn = &b->gdn_rows,
                   .attn = &b->attn };
    golden_open(&b->g, PACKS "king-tiny", "internals_first6_of_len17.safetensors");
}

static void half_close(half *b)
{
    safetensors_close(&b->g);
    mem_free(b->p.act);
    mem_free(b->p.room);
    state_commit(b->s, 0);
    state_free(b->s);
    compute_rope_free(b->angles);
    weights_free(&b->w);
    fixture_close(&b->f);
}

static void expect_wide(const half *b, const char *name, const float *got, int width)
{
    float *want = golden_f32(&b->g, name, ROWS * width);
    for (int r = 0; r < ROWS; r++)
        EXPECT_NEAR(relative(got + r * width, want + r * width, (size_t)width), 2e-6, "%s row %d",
                    name, r);
    mem_free(want);
}

static void expect_rows(const half *b, const char *name, const float *got)
{
    expect_wide(b, name, got, WIDTH);
}

/* The same where the golden lies head by head: [heads, ROWS, dim]. */
static void expect_heads(const half *b, const char *name, const float *got, size_t stride,
                         size_t head_stride, int heads, int dim)
{
    float *rows = mem_array((size_t)(heads * ROWS * dim), sizeof *rows);
    for (int h = 0; h < heads; h++)
        for (int r = 0; r < ROWS; r++)
            memcpy(rows + (h * ROWS + r) * dim, got + (size_t)r * stride + (size_t)h * head_stride,
                   (size_t)dim * sizeof *rows);
    expect_wide(b, name, rows, heads * dim); /* groups of numbers, all compared */
    mem_free(rows);
}

TEST(golden_gdn_layer)
{
    half b;
    float out[ROWS * WIDTH];
    half_open(&b);
    float *n = golden_f32(&b.g, "gdn.01_input_layernorm", ROWS * WIDTH);
    gdn_forward(&b.gdn, b.f.config, GDN_LAYER, &b.p, out, n);
    expect_rows(&b, "gdn.10_out_proj", out);
    mem_free(n);
    half_close(&b);
}

TEST(golden_attention_layer)
{
    half b;
    float out[ROWS * WIDTH];
    half_open(&b);
    float *n = golden_f32(&b.g, "attn.01_input_layernorm", ROWS * WIDTH);
    attention_forward(&b.attention, b.f.config, b.angles, 0, &b.p, out, n);
    expect_rows(&b, "attn.10_o_proj", out);
    mem_free(n);
    half_close(&b);
}

TEST(golden_mlp_layers)
{
    half b;
    float out[ROWS * WIDTH];
    half_open(&b);
    float *n = golden_f32(&b.g, "gdn.20_post_attention_layernorm", ROWS * WIDTH);
    mlp_forward(&b.gdn_mlp, b.f.c, b.p.act, b.p.room, out, n, ROWS);
    expect_rows(&b, "gdn.21_mlp_down_proj", out);
    mem_free(n);
    n = golden_f32(&b.g, "attn.20_post_attention_layernorm", ROWS * WIDTH);
    mlp_forward(&b.attention_mlp, b.f.c, b.p.act, b.p.room, out, n, ROWS);
    expect_rows(&b, "attn.21_mlp_down_proj", out);
    mem_free(n);
    half_close(&b);
}

/* ---- steps ---- */

enum { HEADS = 4, KV_HEADS = 2, DIM = 128, CHANNELS = 1024, KV = KV_HEADS * DIM };

static float *step(const half *b, const char *name, int width)
{
    return golden_f32(&b->g, name, ROWS * width);
}

static void expect_linear(half *b, const char *from, int from_width, const linear *l,
                          const char *to)
{
    float *x = step(b, from, from_width), *y = mem_array(ROWS * (size_t)l->w.n_out, sizeof *y);
    linear_apply_one(b->f.c, b->p.act, l, y, x, ROWS);
    expect_wide(b, to, y, (int)l->w.n_out);
    mem_free(x);
    mem_free(y);
}

static void expect_norm(half *b, const char *weight, const float *x, const char *to)
{
    const float *w;
    float y[ROWS * WIDTH];
    error e;
    EXPECT_OK(weights_vector(&b->w, b->f.p, weight, WIDTH, &w, &e), e);
    compute_rmsnorm(b->f.c, y, x, w, ROWS, WIDTH, b->f.config->eps);
    expect_rows(b, to, y);
}

TEST(golden_gdn_steps)
{
    half b;
    half_open(&b);
    const gdn_shape shape = state_gdn_shape(b.f.config);
    EXPECT(gdn_channels(&shape) == CHANNELS && shape.n_v_head == HEADS && shape.v_dim == DIM);
    expect_linear(&b, "gdn.01_input_layernorm", WIDTH, &b.gdn.qkv, "gdn.02_in_proj_qkv");
    expect_linear(&b, "gdn.01_input_layernorm", WIDTH, &b.gdn.z, "gdn.02_in_proj_z");
    expect_linear(&b, "gdn.01_input_layernorm", WIDTH, &b.gdn.a, "gdn.02_in_proj_a");
    expect_linear(&b, "gdn.01_input_layernorm", WIDTH, &b.gdn.b, "gdn.02_in_proj_b");

    float *qkv = step(&b, "gdn.02_in_proj_qkv", CHANNELS), *z = step(&b, "gdn.02_in_proj_z", WIDTH),
          *a = step(&b, "gdn.02_in_proj_a", HEADS), *beta_in = step(&b, "gdn.02_in_proj_b", HEADS);
    float u[ROWS * CHANNELS], g[ROWS * HEADS], beta[ROWS * HEADS], window[3 * CHANNELS] = { 0 };
    const conv_job conv = { .rows = ROWS, .window = window };
    compute_conv(b.f.c, u, qkv, b.gdn.conv, shape.taps, CHANNELS, &conv, 1);
    compute_gdn_gates(b.f.c, &shape, u, g, beta, a, beta_in, b.gdn.a_log, b.gdn.dt_bias, ROWS);
    float part[ROWS * WIDTH];
    for (int i = 0; i < 3; i++) { /* queries, keys, values */
        static const char *const names[] = { "gdn.05_q_normed_scaled", "gdn.05_k_normed",
                                             "gdn.05_v_after_conv_silu" };
        const int width = i < 2 ? KV : WIDTH;
        for (int r = 0; r < ROWS; r++)
            memcpy(part + r * width, u + r * CHANNELS + i * KV, (size_t)width * sizeof *part);
        expect_wide(&b, names[i], part, width);
    }
    expect_wide(&b, "gdn.06_g", g, HEADS);
    expect_wide(&b, "gdn.06_beta", beta, HEADS);

    float *memory = mem_zalloc(HEADS * DIM * DIM * sizeof *memory), y[ROWS * WIDTH];
    const gdn_job job = { .rows = ROWS, .state = memory, .final = true };
    compute_gdn(b.f.c, &shape, y, u, g, beta, &job, 1);
    expect_rows(&b, "gdn.08_y_recurrence_out", y);
    compute_gated_norm(b.f.c, part, y, z, b.gdn.norm, ROWS, HEADS, DIM, b.f.config->eps);
    expect_rows(&b, "gdn.09_gated_norm_out", part);
    expect_linear(&b, "gdn.09_gated_norm_out", WIDTH, &b.gdn.out, "gdn.10_out_proj");
    mem_free(memory);
    mem_free(qkv);
    mem_free(z);
    mem_free(a);
    mem_free(beta_in);
    half_close(&b);
}

TEST(golden_attention_steps)
{
    half b;
    half_open(&b);
    const king_config *c = b.f.config;
    EXPECT(c->n_head == HEADS && c->n_kv_head == KV_HEADS && c->head_dim == DIM);
    expect_linear(&b, "attn.01_input_layernorm", WIDTH, &b.attention.q, "attn.02_q_proj");
    expect_linear(&b, "attn.01_input_layernorm", WIDTH, &b.attention.k, "attn.02_k_proj");
    expect_linear(&b, "attn.01_input_layernorm", WIDTH, &b.attention.v, "attn.02_v_proj");

    const size_t q_row = 2 * HEADS * DIM, q_head = 2 * DIM; /* query and gate of each head */
    float *q = step(&b, "attn.02_q_proj", (int)q_row), *k = step(&b, "attn.02_k_proj", KV),
          *v = step(&b, "attn.02_v_proj", KV), o[ROWS * WIDTH];
    compute_head_norm_rope(b.f.c, q, ROWS, q_row, HEADS, q_head, DIM, b.attention.q_norm, c->eps,
                           b.angles, b.pos);
    compute_head_norm_rope(b.f.c, k, ROWS, KV, KV_HEADS, DIM, DIM, b.attention.k_norm, c->eps,
                           b.angles, b.pos);
    expect_heads(&b, "attn.05_q_normed_roped", q, q_row, q_head, HEADS, DIM);
    expect_heads(&b, "attn.05_k_normed_roped", k, KV, DIM, KV_HEADS, DIM);
    expect_heads(&b, "attn.05_v", v, KV, DIM, KV_HEADS, DIM);
    const attn_job job = state_attn_job(b.s, 0);
    const attn_shape shape = { .n_head = HEADS,
                               .window = INT32_MAX,
                               .causal = true,
                               .scale = 1.0f / sqrtf(DIM) };
    compute_kv_attend(b.f.c, &shape, state_pool_layout(state_get_pool(b.s)), 0, o, q, q_row, q_head,
                      k, v, &job, 1);
    expect_heads(&b, "attn.08_sdpa_out", o, WIDTH, DIM, HEADS, DIM);
    mem_free(q);
    mem_free(k);
    mem_free(v);
    half_close(&b);
}

/* Norms, the feed-forward layer's projections, and the two sums of the residual stream. */
TEST(golden_residual_steps)
{
    static const struct {
        const char *in, *first, *half, *second, *gate, *up, *down, *out, *first_norm, *second_norm;
    } layers[] = {
        { "gdn.00_layer_input", "gdn.01_input_layernorm", "gdn.10_out_proj",
          "gdn.20_post_attention_layernorm", "gdn.21_mlp_gate_proj", "gdn.21_mlp_up_proj",
          "gdn.21_mlp_down_proj", "gdn.30_layer_output", "model.layers.1.input_layernorm.weight",
          "model.layers.1.post_attention_layernorm.weight" },
        { "attn.00_layer_input", "attn.01_input_layernorm", "attn.10_o_proj",
          "attn.20_post_attention_layernorm", "attn.21_mlp_gate_proj", "attn.21_mlp_up_proj",
          "attn.21_mlp_down_proj", "attn.30_layer_output", "model.layers.3.input_layernorm.weight",
          "model.layers.3.post_attention_layernorm.weight" }
    };
    half b;
    half_open(&b);
    for (int i = 0; i < 2; i++) {
        const mlp_layer *mlp = i == 0 ? &b.gdn_mlp : &b.attention_mlp;
        float *x = step(&b, layers[i].in, WIDTH), *first = step(&b, layers[i].half, WIDTH),
              *down = step(&b, layers[i].down, WIDTH);
        expect_norm(&b, layers[i].first_norm, x, layers[i].first);
        compute_add(b.f.c, x, first, ROWS * WIDTH);
        expect_norm(&b, layers[i].second_norm, x, layers[i].second);
        expect_linear(&b, layers[i].second, WIDTH, &mlp->gate, layers[i].gate);
        expect_linear(&b, layers[i].second, WIDTH, &mlp->up, layers[i].up);
        compute_add(b.f.c, x, down, ROWS * WIDTH);
        expect_rows(&b, layers[i].out, x);
        mem_free(x);
        mem_free(first);
        mem_free(down);
    }
    half_close(&b);
}
