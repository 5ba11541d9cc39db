/* The halves of single layers on the inputs that the reference had, in f32 (king-tiny, first six
 * tokens of a prompt). */
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
    EXPECT_OK(weights_load(&b->w, p, b->f.c, NULL, NULL, &e), e);
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

static void expect_rows(const half *b, const char *name, const float *got)
{
    float *want = golden_f32(&b->g, name, ROWS * WIDTH);
    for (int r = 0; r < ROWS; r++)
        EXPECT_NEAR(relative(got + r * WIDTH, want + r * WIDTH, WIDTH), 2e-6, "%s row %d", name, r);
    mem_free(want);
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
