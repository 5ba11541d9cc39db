/* Loading: the same tiles for any threads, damaged scales named, values as the pack has them. */
#include "model/weights.h"
#include "model_fixture.h"
#include "random_pack.h"

static void load(weights *w, linear *l, const pack *p, int threads)
{
    error e;
    compute *c;
    EXPECT_OK(compute_open(&c, &(compute_options){ .threads = threads }, &e), e);
    weights_init(w);
    EXPECT_OK(
        weights_matrix(w, p, "model.layers.0.mlp.up_proj", 1024, 512, COMPUTE_INT8, &l[0], &e), e);
    EXPECT_OK(weights_matrix(w, p, "model.layers.0.linear_attn.in_proj_a", 4, 512, COMPUTE_INT8,
                             &l[1], &e),
              e);
    EXPECT_OK(weights_matrix(w, p, "lm_head", 1024, 512, COMPUTE_INT8, &l[2], &e), e);
    EXPECT_OK(weights_fill(w, p, c, NULL, NULL, &e), e);
    compute_close(c);
}

TEST(any_threads_fill_the_same_tiles)
{
    error e;
    pack *p;
    weights one, many;
    linear a[3], b[3];
    EXPECT_OK(pack_open(&p, PACKS "king-tiny", NULL, &e), e);
    load(&one, a, p, 1);
    for (int threads = 2; threads <= 5; threads++) {
        load(&many, b, p, threads);
        EXPECT_INT(many.bytes, one.bytes);
        EXPECT_BITS(many.region, one.region, one.bytes);
        weights_free(&many);
    }
    float got[512], want[512];
    matrix m;
    EXPECT_OK(pack_matrix(p, "lm_head", 1024, 512, &m, &e), e);
    for (int row = 0; row < 1024; row += 31) { /* the last matrix lies where it should */
        tile_row(&a[2].w, row, got);
        matrix_row_f32(&m, row, DTYPE_F32, want);
        EXPECT_BITS(got, want, 512);
    }
    weights_free(&one);
    pack_close(p);
}

TEST(wrong_shapes_and_names_are_refused)
{
    error e;
    pack *p;
    weights w;
    linear l;
    const float *values;
    EXPECT_OK(pack_open(&p, PACKS "king-tiny", NULL, &e), e);
    weights_init(&w);
    EXPECT_INT(weights_matrix(&w, p, "lm_head", 1024, 640, COMPUTE_INT8, &l, &e), E_FORMAT);
    EXPECT(weights_matrix(&w, p, "no_such_module", 1, 1, COMPUTE_INT8, &l, &e) != OK);
    EXPECT(weights_vector(&w, p, "model.norm.weight", 511, &values, &e) != OK);
    EXPECT_OK(weights_vector(&w, p, "model.norm.weight", 512, &values, &e), e);
    EXPECT(values[0] > 0.1f && values[0] < 10.0f);
    weights_free(&w);
    pack_close(p);
}

/* Overwrites the first bytes of a tensor in the file. */
static void overwrite(const char *dir, const char *name, const uint8_t *bytes, size_t n)
{
    error e;
    safetensors g;
    char path[96];
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    EXPECT_OK(safetensors_open(&g, path, &e), e);
    const tensor *t = safetensors_find(&g, str_from(name));
    EXPECT(t && t->bytes >= n);
    const long at = (long)(t->data - g.bytes);
    safetensors_close(&g);
    FILE *f = fopen(path, "r+b");
    EXPECT(f && fseek(f, at, SEEK_SET) == 0 && fwrite(bytes, n, 1, f) == 1 && fclose(f) == 0);
}

TEST(a_scale_that_is_no_number_is_refused_by_module)
{
    random_pack source = { 0 };
    error e;
    compute *c;
    pack *p;
    struct king *k;
    random_pack_king(&source, 9);
    const uint8_t nan16[2] = { 0x00, 0x7e };
    overwrite(source.dir, "language_model.model.layers.1.mlp.down_proj.scales", nan16, 2);
    EXPECT_OK(compute_open(&c, &(compute_options){ .threads = 3 }, &e), e);
    EXPECT_OK(pack_open(&p, source.dir, NULL, &e), e);
    const int64_t live = mem_live();
    EXPECT_INT(king_open(&k, p, c, &(load_options){ .mode = COMPUTE_INT8 }, &e), E_FORMAT);
    EXPECT(strstr(e.text, "model.layers.1.mlp.down_proj") != NULL);
    EXPECT_INT(mem_live(), live);
    pack_close(p);
    compute_close(c);
    random_pack_remove(&source);
}

/* Code 3 stands for +2d: legal, never seen in kings, counted. */
TEST(codes_of_value_3_are_counted_and_computed)
{
    random_pack source = { 0 };
    error e;
    compute *c;
    pack *p;
    weights w;
    linear l;
    matrix m;
    random_pack_king(&source, 10);
    const uint8_t codes[2] = { 0xff, 0x03 };
    overwrite(source.dir, "language_model.lm_head.weight", codes, 2);
    EXPECT_OK(compute_open(&c, &(compute_options){ .threads = 2 }, &e), e);
    EXPECT_OK(pack_open(&p, source.dir, NULL, &e), e);
    weights_init(&w);
    EXPECT_OK(weights_matrix(&w, p, "lm_head", 1024, 512, COMPUTE_INT8, &l, &e), e);
    EXPECT_OK(weights_fill(&w, p, c, NULL, NULL, &e), e);
    EXPECT_INT(weights_code3(&w), 5);
    float got[512], want[512], scale[4];
    EXPECT_OK(pack_matrix(p, "lm_head", 1024, 512, &m, &e), e);
    tile_row(&l.w, 0, got);
    matrix_row_f32(&m, 0, DTYPE_F32, want);
    matrix_row_scales(&m, 0, scale, NULL);
    EXPECT_BITS(got, want, 512);
    EXPECT(got[0] == 2 * scale[0] && got[4] == 2 * scale[0] && got[5] == -scale[0]);
    weights_free(&w);
    pack_close(p);
    compute_close(c);
    random_pack_remove(&source);
}
