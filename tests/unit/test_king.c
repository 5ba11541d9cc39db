/* Opening, limits, broken rows, memory. Values: tests/golden/test_golden_king.c, bits:
 * tests/property/test_king_exact.c. */
#include "model_fixture.h"
#include "random_pack.h"
#include "base/sysmem.h"

static const int taps[] = { 0, 3 };

static void open_tiny(fixture *f, compute_mode mode)
{
    fixture_open(
        f,
        (fixture_options){ .folder = PACKS "king-tiny", .mode = mode, .taps = taps, .n_taps = 2 });
}

TEST(refuses_a_drafter_and_bad_sizes)
{
    fixture f;
    error e;
    pack *p;
    king *k;
    king_work *w;
    open_tiny(&f, COMPUTE_INT8);
    EXPECT_OK(pack_open(&p, PACKS "drafter-tiny-q8", NULL, &e), e);
    EXPECT_INT(king_open(&k, p, f.c, &(load_options){ .mode = COMPUTE_INT8 }, &e), E_ARG);
    EXPECT(strstr(e.text, "drafter") != NULL);
    pack_close(p);
    const int beyond = f.config->n_layer;
    EXPECT_INT(king_work_new(&w, f.k, 8, 8, &beyond, 1, &e), E_ARG);
    EXPECT_INT(king_work_new(&w, f.k, 0, 0, NULL, 0, &e), E_ARG);
    EXPECT_INT(king_work_new(&w, f.k, 4, 5, NULL, 0, &e), E_ARG);
    fixture_close(&f);
}

typedef struct progress {
    uint64_t last, total;
    int calls;
} progress;

static void note_progress(void *arg, uint64_t done, uint64_t total)
{
    progress *p = arg;
    EXPECT(done >= p->last && done <= total);
    *p = (progress){ done, total, p->calls + 1 };
}

TEST(progress_reaches_the_tiles)
{
    error e;
    compute *c;
    pack *p;
    king *k;
    progress seen = { 0 };
    EXPECT_OK(compute_open(&c, &(compute_options){ .threads = 2 }, &e), e);
    EXPECT_OK(pack_open(&p, PACKS "king-tiny", NULL, &e), e);
    EXPECT_OK(king_open(&k, p, c, &(load_options){ .progress = note_progress, .arg = &seen }, &e),
              e);
    EXPECT_INT(seen.last, king_tile_bytes(k));
    EXPECT_INT(seen.total, king_tile_bytes(k));
    EXPECT(seen.calls > 20);
    EXPECT_INT(king_code3(k), 0);
    king_close(k);
    pack_close(p);
    compute_close(c);
}

/* Rows that did not ask have no logits; those that did have the same. */
TEST(logits_only_for_rows_that_asked)
{
    fixture f;
    error e;
    open_tiny(&f, COMPUTE_INT8);
    const int32_t tokens[7] = { 4, 900, 3, 3, 77, 512, 1 };
    const size_t vocab = (size_t)f.config->n_vocab;
    float *all = mem_array(7 * vocab, sizeof *all);
    state *s = fixture_state(&f), *other = fixture_state(&f), *third = fixture_state(&f);
    memcpy(all, fixture_pass(&f, s, tokens, 7, ROWS_FINAL, 7).logits, 7 * vocab * sizeof *all);
    state_reset(s);
    king_job jobs[3] = { { .state = s, .tokens = tokens, .n = 7, .logits_from = 5 },
                         { .state = other, .tokens = tokens, .n = 4, .logits_from = 4 },
                         { .state = third, .tokens = tokens, .n = 3, .logits_from = 2 } };
    for (int j = 0; j < 3; j++) EXPECT_OK(state_begin(jobs[j].state, jobs[j].n, ROWS_FINAL, &e), e);
    king_forward(f.k, f.c, f.w, jobs, 3, NULL);
    for (int j = 0; j < 3; j++) state_commit(jobs[j].state, jobs[j].n);
    EXPECT_BITS(jobs[0].logits, all + 5 * vocab, 2 * vocab);
    EXPECT_BITS(jobs[2].logits, all + 2 * vocab, vocab);
    mem_free(all);
    state_free(s);
    state_free(other);
    state_free(third);
    fixture_close(&f);
}

typedef struct hidden {
    float *layer[2]; /* outputs of the tapped layers */
    size_t n;
} hidden;

static void keep_hidden(void *arg, int layer, const float *h, int rows)
{
    hidden *k = arg;
    for (int t = 0; t < 2; t++) {
        if (taps[t] != layer) continue;
        k->layer[t] = mem_array((size_t)rows * k->n, sizeof *h);
        memcpy(k->layer[t], h, (size_t)rows * k->n * sizeof *h);
    }
}

TEST(taps_are_layer_outputs_side_by_side)
{
    fixture f;
    error e;
    open_tiny(&f, COMPUTE_INT8);
    const int32_t tokens[5] = { 4, 900, 3, 3, 77 };
    state *s = fixture_state(&f), *other = fixture_state(&f);
    EXPECT_OK(state_begin(s, 3, ROWS_FINAL, &e), e);
    EXPECT_OK(state_begin(other, 2, ROWS_PROVISIONAL, &e), e);
    king_job jobs[2] = { { .state = s, .tokens = tokens, .n = 3, .logits_from = 3 },
                         { .state = other, .tokens = tokens + 3, .n = 2, .logits_from = 2 } };
    const size_t n = (size_t)f.config->n_embd;
    hidden kept = { .n = n };
    king_forward(f.k, f.c, f.w, jobs, 2, &(king_hook){ .hidden = keep_hidden, .arg = &kept });
    for (size_t row = 0; row < 5; row++) {
        const float *got = row < 3 ? jobs[0].taps + row * 2 * n : jobs[1].taps + (row - 3) * 2 * n;
        EXPECT_BITS(got, kept.layer[0] + row * n, n);
        EXPECT_BITS(got + n, kept.layer[1] + row * n, n);
    }
    state_commit(s, 3);
    state_commit(other, 0);
    mem_free(kept.layer[0]);
    mem_free(kept.layer[1]);
    state_free(s);
    state_free(other);
    fixture_close(&f);
}

/* ---- rows that are not finite ---- */

TEST(R057_broken_rows_are_reported_and_stay_alone)
{
    random_pack p = { .broken_row = true };
    random_pack_plain(&p, 77);
    fixture f;
    error e;
    fixture_open(&f, (fixture_options){ .folder = p.dir, .mode = COMPUTE_INT8, .kv = KV_F16 });
    const int32_t good[4] = { 5, 9, 200, 31 }, bad[4] = { 5, 1, 200, 31 };
    const size_t n = 4 * (size_t)f.config->n_vocab;
    float *want = mem_array(n, sizeof *want);
    state *a = fixture_state(&f), *b = fixture_state(&f), *c = fixture_state(&f);
    memcpy(want, fixture_pass(&f, a, good, 4, ROWS_FINAL, 4).logits, n * sizeof *want);
    state_reset(a);
    king_job jobs[3] = { { .state = a, .tokens = good, .n = 4 },
                         { .state = b, .tokens = bad, .n = 4 },
                         { .state = c, .tokens = good, .n = 4 } };
    for (int j = 0; j < 3; j++) EXPECT_OK(state_begin(jobs[j].state, 4, ROWS_PROVISIONAL, &e), e);
    king_forward(f.k, f.c, f.w, jobs, 3, NULL);
    EXPECT_INT(jobs[0].bad_layer, -1);
    EXPECT_INT(jobs[1].bad_layer, 0);
    EXPECT_INT(jobs[2].bad_layer, -1);
    EXPECT(compute_finite(f.c, jobs[1].logits, n)); /* they went on as zeros */
    EXPECT_BITS(jobs[0].logits, want, n);
    EXPECT_BITS(jobs[2].logits, want, n);
    for (int j = 0; j < 3; j++) state_commit(jobs[j].state, j == 1 ? 0 : 4);
    /* what the broken rows left in their pages harms nobody who gets them next */
    state_free(b);
    state_reset(a);
    state_reset(c);
    for (int j = 0; j < 3; j += 2)
        EXPECT_BITS(fixture_pass(&f, jobs[j].state, good, 4, ROWS_FINAL, 4).logits, want, n);
    mem_free(want);
    state_free(a);
    state_free(c);
    fixture_close(&f);
    random_pack_remove(&p);
}

/* Pages come from whoever used them before: their content must not matter. */
TEST(R057_old_page_content_does_not_matter)
{
    const kv_type types[] = { KV_F16, KV_F32, KV_Q8 };
    for (int t = 0; t < 3; t++) {
        fixture f;
        error e;
        fixture_open(&f, (fixture_options){ .folder = PACKS "king-tiny", .kv = types[t] });
        const int32_t tokens[5] = { 5, 9, 200, 31, 8 };
        const size_t n = 5 * (size_t)f.config->n_vocab;
        float *want = mem_array(n, sizeof *want);
        state *s = fixture_state(&f);
        memcpy(want, fixture_pass(&f, s, tokens, 5, ROWS_FINAL, 5).logits, n * sizeof *want);
        state_reset(s);
        EXPECT_OK(state_begin(s, 1, ROWS_FINAL, &e), e); /* the page that will be used next */
        const attn_job job = state_attn_job(s, 0);
        memset(job.pages[0], 0xff, state_pool_layout(f.pages)->page_bytes); /* NaN in every type */
        state_commit(s, 0);
        EXPECT_BITS(fixture_pass(&f, s, tokens, 5, ROWS_FINAL, 5).logits, want, n);
        mem_free(want);
        state_free(s);
        fixture_close(&f);
    }
}

/* ---- memory ---- */

TEST(passes_allocate_nothing)
{
    fixture f;
    open_tiny(&f, COMPUTE_INT8);
    state *s = fixture_state(&f);
    const int64_t before = mem_count();
    for (int i = 0; i < 200; i++) {
        const int32_t tokens[4] = { i, 2 * i, 3 * i, 7 };
        fixture_pass(&f, s, tokens, 4, ROWS_PROVISIONAL, 1 + i % 4);
    }
    EXPECT_INT(mem_count(), before);
    EXPECT(state_len(s) == 500);
    state_free(s);
    fixture_close(&f);
}

TEST(short_memory_while_opening_is_reported)
{
    error e;
    compute *c;
    pack *p;
    king *k;
    EXPECT_OK(compute_open(&c, &(compute_options){ .threads = 1 }, &e), e);
    EXPECT_OK(pack_open(&p, PACKS "king-tiny", NULL, &e), e);
    const int64_t live = mem_live();
    int n = 1;
    for (;; n++) {
        mem_fail_after(n);
        const status got = king_open(&k, p, c, &(load_options){ .mode = COMPUTE_INT8 }, &e);
        mem_fail_after(0);
        if (got == OK) break;
        EXPECT_INT(got, E_NOMEM);
        EXPECT_INT(mem_live(), live);
    }
    EXPECT(n > 4);
    king_close(k);
    EXPECT_INT(mem_live(), live);
    pack_close(p);
    compute_close(c);
}

/* Source pages are given back while tiles are built: what stays resident is the tiles. */
TEST(R098_loading_does_not_double_memory)
{
    random_pack p = { .wide = true };
    random_pack_plain(&p, 3);
    error e;
    compute *c;
    pack *source;
    king *k;
    EXPECT_OK(compute_open(&c, &(compute_options){ .threads = 2 }, &e), e);
    EXPECT_OK(pack_open(&source, p.dir, NULL, &e), e);
    const size_t before = sysmem_rss();
    EXPECT_OK(king_open(&k, source, c, &(load_options){ .mode = COMPUTE_INT8 }, &e), e);
    const size_t tiles = king_tile_bytes(k), grown = sysmem_rss() - before,
                 peak = sysmem_peak_rss() - before;
    EXPECT(tiles > 100 << 20);
    if (grown > tiles + tiles / 10) FAIL("resident %zu, want at most 1.1 x %zu", grown, tiles);
    if (peak > tiles + tiles / 10 + (64 << 20)) FAIL("peak %zu for %zu of tiles", peak, tiles);
    king_close(k);
    pack_close(source);
    compute_close(c);
    random_pack_remove(&p);
}
