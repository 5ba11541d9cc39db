/* Pages, limits, copies on write, damaged snapshots. Exactness of the values:
 * tests/property/test_king_exact.c. */
#include "model_fixture.h"

static void open_tiny(fixture *f)
{
    fixture_open(
        f, (fixture_options){ .folder = PACKS "king-tiny", .mode = COMPUTE_INT8, .kv = KV_F16 });
}

static state *new_state(fixture *f, state_pool *pages, int max_positions)
{
    error e;
    state *s;
    EXPECT_OK(state_new(&s, f->config, pages, max_positions, &e), e);
    return s;
}

static state_pool *new_pool(fixture *f, int pages)
{
    error e;
    state_pool *p;
    EXPECT_OK(state_pool_new(&p, state_pool_layout(f->pages), pages, &e), e);
    return p;
}

static void run(fixture *f, state *s, int n)
{
    int32_t tokens[96];
    for (int i = 0; i < n; i++) tokens[i] = (int32_t)((state_len(s) + i) * 37 % 1000);
    fixture_pass(f, s, tokens, n, ROWS_FINAL, n);
}

TEST(pages_follow_the_length)
{
    fixture f;
    open_tiny(&f);
    state *s = fixture_state(&f);
    const int all = state_pool_pages(f.pages);
    error e;
    run(&f, s, KV_PAGE - 2);
    EXPECT_INT(state_pool_free_pages(f.pages), all - 1);
    EXPECT_OK(state_begin(s, 8, ROWS_PROVISIONAL, &e), e);
    EXPECT_INT(state_pool_free_pages(f.pages), all - 2);
    const int32_t tokens[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    king_job job = { .state = s, .tokens = tokens, .n = 8, .logits_from = 8 };
    king_forward(f.k, f.c, f.w, &job, 1, NULL);
    state_commit(s, 2); /* exactly full */
    EXPECT_INT(state_len(s), KV_PAGE);
    EXPECT_INT(state_pool_free_pages(f.pages), all - 1);
    run(&f, s, 1);
    EXPECT_INT(state_pool_free_pages(f.pages), all - 2);
    state_reset(s);
    EXPECT_INT(state_pool_free_pages(f.pages), all);
    EXPECT_INT(state_len(s), 0);
    state_free(s);
    fixture_close(&f);
}

TEST(limits_are_refused_and_change_nothing)
{
    fixture f;
    error e;
    open_tiny(&f);
    state_pool *small = new_pool(&f, 2);
    state *a = new_state(&f, small, 1024), *b = new_state(&f, small, 100);
    run(&f, a, KV_PAGE);
    run(&f, b, 10);
    EXPECT_INT(state_begin(a, 1, ROWS_FINAL, &e), E_LIMIT); /* no page */
    EXPECT_INT(state_len(a), KV_PAGE);
    EXPECT_INT(state_rows(a), 0);
    EXPECT_INT(state_begin(b, 91, ROWS_FINAL, &e), E_LIMIT); /* table full */
    EXPECT(strstr(e.text, "100") != NULL);
    state_reset(a);
    EXPECT_OK(state_begin(b, 90, ROWS_FINAL, &e), e);
    state_commit(b, 0);
    EXPECT_INT(state_len(b), 10);
    state_free(a);
    state_free(b);
    state_pool_free(small);
    EXPECT_INT(state_pool_new(&small, state_pool_layout(f.pages), 0, &e), E_ARG);
    fixture_close(&f);
}

TEST(pages_of_another_shape_are_refused)
{
    fixture f;
    error e;
    open_tiny(&f);
    kv_layout l;
    state_pool *p;
    state *s;
    EXPECT_OK(compute_kv_layout(&l, KV_F16, f.config->n_attention, f.config->n_kv_head + 1,
                                f.config->head_dim, &e),
              e);
    EXPECT_OK(state_pool_new(&p, &l, 1, &e), e);
    EXPECT_INT(state_new(&s, f.config, p, 64, &e), E_ARG);
    state_pool_free(p);
    fixture_close(&f);
}

/* A snapshot shares pages until somebody writes into its last one. */
TEST(snapshots_share_pages_until_written)
{
    fixture f;
    error e;
    open_tiny(&f);
    const int all = state_pool_pages(f.pages);
    state *s = fixture_state(&f), *other = fixture_state(&f);
    state_snap *full, *part;
    run(&f, s, KV_PAGE);
    EXPECT_OK(state_snapshot(s, f.c, &full, &e), e);
    EXPECT_INT(state_pool_free_pages(f.pages), all - 1);
    run(&f, s, 5); /* a new page: nothing to copy */
    EXPECT_INT(state_pool_free_pages(f.pages), all - 2);
    EXPECT_OK(state_snapshot(s, f.c, &part, &e), e);
    EXPECT_INT(state_snap_pages(part), 2);
    run(&f, s, 1); /* the shared second page is copied */
    EXPECT_INT(state_pool_free_pages(f.pages), all - 3);
    EXPECT_OK(state_restore(other, part, &e), e);
    EXPECT_INT(state_pool_free_pages(f.pages), all - 3);
    EXPECT_INT(state_len(other), KV_PAGE + 5);
    state_free(s);
    EXPECT_INT(state_pool_free_pages(f.pages), all - 2);
    state_snap_free(part);
    run(&f, other, 1); /* now the only owner */
    EXPECT_INT(state_pool_free_pages(f.pages), all - 2);
    state_free(other);
    EXPECT_INT(state_pool_free_pages(f.pages), all - 1);
    state_snap_free(full);
    EXPECT_INT(state_pool_free_pages(f.pages), all);
    fixture_close(&f);
}

/* ---- snapshots as bytes ---- */

typedef struct bytes {
    uint8_t *p;
    size_t n, at;
} bytes;

static status put_bytes(void *arg, const void *p, size_t n, error *e)
{
    bytes *b = arg;
    if (b->n + n > 8 << 20) return error_set(e, E_LIMIT, "more than 8 MB");
    memcpy(b->p + b->n, p, n);
    b->n += n;
    return OK;
}

static status get_bytes(void *arg, void *p, size_t n, error *e)
{
    bytes *b = arg;
    if (b->n - b->at < n) return error_set(e, E_FORMAT, "end of bytes");
    memcpy(p, b->p + b->at, n);
    b->at += n;
    return OK;
}

/* What state_snap_write wrote, read into a snapshot of `len` positions. */
static status read_snap(state_snap **out, fixture *f, state_pool *pages, int len, bytes *b,
                        error *e)
{
    b->at = 0;
    const status room = state_snap_room(out, f->config, pages, len, e);
    if (room) return room;
    const status s = state_snap_fill(*out, get_bytes, b, e);
    if (s) state_snap_free(*out);
    return s;
}

TEST(damaged_snapshots_are_refused_and_leave_nothing)
{
    fixture f;
    error e;
    open_tiny(&f);
    state *s = fixture_state(&f);
    state_snap *p;
    run(&f, s, 70);
    EXPECT_OK(state_snapshot(s, f.c, &p, &e), e);
    bytes b = { mem_alloc(8 << 20), 0, 0 };
    EXPECT_OK(state_snap_write(p, put_bytes, &b, &e), e);
    state_snap_free(p);
    const int free_pages = state_pool_free_pages(f.pages);
    const int64_t live = mem_live();
    const size_t whole = b.n;
    for (size_t cut = 0; cut < whole; cut += whole / 9) {
        b.n = cut;
        EXPECT_INT(read_snap(&p, &f, f.pages, 70, &b, &e), E_FORMAT);
        EXPECT_INT(state_pool_free_pages(f.pages), free_pages);
        EXPECT_INT(mem_live(), live);
    }
    for (int field = 0; field < 16; field++) { /* every number of the header */
        int64_t old, changed;
        memcpy(&old, b.p + 8 * field, 8);
        changed = field == 2 ? -1 : old + 1;
        memcpy(b.p + 8 * field, &changed, 8);
        b.n = whole;
        EXPECT_INT(read_snap(&p, &f, f.pages, 70, &b, &e), E_FORMAT);
        memcpy(b.p + 8 * field, &old, 8);
    }
    state_pool *small = new_pool(&f, 1);
    EXPECT_INT(read_snap(&p, &f, small, 70, &b, &e), E_LIMIT);
    state_pool_free(small);
    EXPECT_INT(read_snap(&p, &f, f.pages, 69, &b, &e), E_FORMAT);
    EXPECT_OK(read_snap(&p, &f, f.pages, 70, &b, &e), e);
    state *tiny = new_state(&f, f.pages, 64);
    EXPECT_INT(state_restore(tiny, p, &e), E_LIMIT);
    state_free(tiny);
    state_snap_free(p);
    mem_free(b.p);
    state_free(s);
    fixture_close(&f);
}

TEST(short_memory_is_reported_and_leaks_nothing)
{
    fixture f;
    error e;
    open_tiny(&f);
    state *s = fixture_state(&f), *more;
    state_snap *p;
    run(&f, s, 20);
    state_pool *small;
    const int64_t live = mem_live();
    for (int n = 1;; n++) {
        mem_fail_after(n);
        const status got = state_new(&more, f.config, f.pages, 64, &e);
        mem_fail_after(0);
        if (got == OK) break;
        EXPECT_INT(got, E_NOMEM);
        EXPECT_INT(mem_live(), live);
    }
    state_free(more);
    for (int n = 1;; n++) {
        mem_fail_after(n);
        const status got = state_snapshot(s, f.c, &p, &e);
        mem_fail_after(0);
        if (got == OK) break;
        EXPECT_INT(got, E_NOMEM);
        EXPECT_INT(mem_live(), live);
    }
    state_snap_free(p);
    for (int n = 1;; n++) {
        mem_fail_after(n);
        const status got = state_pool_new(&small, state_pool_layout(f.pages), 4, &e);
        mem_fail_after(0);
        if (got == OK) break;
        EXPECT_INT(got, E_NOMEM);
        EXPECT_INT(mem_live(), live);
    }
    state_pool_free(small);
    state_free(s);
    fixture_close(&f);
}

/* After a reset a sequence is like a new one, whatever it held. */
TEST(reset_equals_new)
{
    fixture f;
    open_tiny(&f);
    state *used = fixture_state(&f), *fresh = fixture_state(&f);
    const int32_t tokens[6] = { 9, 8, 7, 6, 5, 4 };
    run(&f, used, 30);
    fixture_pass(&f, used, tokens, 6, ROWS_PROVISIONAL, 3);
    state_reset(used);
    const size_t n = 6 * (size_t)f.config->n_vocab;
    float *want = mem_array(n, sizeof *want);
    memcpy(want, fixture_pass(&f, fresh, tokens, 6, ROWS_FINAL, 6).logits, n * sizeof *want);
    EXPECT_BITS(fixture_pass(&f, used, tokens, 6, ROWS_FINAL, 6).logits, want, n);
    mem_free(want);
    state_free(used);
    state_free(fresh);
    fixture_close(&f);
}
