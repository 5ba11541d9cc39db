/* The prefix cache beside a disk that does what the test says: this file takes the place of
 * prefix_disk.c. */
#include "engine/engine.h"
#include "model_fixture.h"

enum { N = 200, STORED = 64, OUTPUT = 4, BUDGET = 32 << 20 };

struct prefix_disk {
    disk_job job;
    prefix_image image;
    bool ended;
    bool slow;  /* jobs do not end, else right behind the first look at them */
    int stored; /* tokens of the one file there is; 0: none */
    int begun[DISK_LOAD + 1];
};
static prefix_disk disk;

status prefix_disk_open(prefix_disk **out, const prefix_disk_options *o, error *e)
{
    (void)o;
    (void)e;
    disk = (prefix_disk){ 0 };
    *out = &disk;
    return OK;
}

void prefix_disk_close(prefix_disk *d)
{
    (void)d;
}

int prefix_disk_find(prefix_disk *d, const int32_t *tokens, int n, int above)
{
    (void)tokens;
    return d->stored <= n && d->stored > above ? d->stored : 0;
}

static void begin(prefix_disk *d, disk_job job, const prefix_image *image)
{
    EXPECT_INT(d->job, DISK_NOTHING);
    d->job = job;
    d->image = *image;
    d->ended = false;
    d->begun[job]++;
}

void prefix_disk_store(prefix_disk *d, const prefix_image *from)
{
    begin(d, DISK_STORE, from);
}

void prefix_disk_load(prefix_disk *d, const prefix_image *into)
{
    begin(d, DISK_LOAD, into);
}

bool prefix_disk_busy(prefix_disk *d)
{
    return d->job != DISK_NOTHING;
}

disk_job prefix_disk_take(prefix_disk *d, prefix_image *image, status *result, error *e)
{
    const disk_job job = d->job;
    if (job == DISK_NOTHING || !d->ended) {
        d->ended = !d->slow;
        return DISK_NOTHING;
    }
    (void)e;
    *image = d->image;
    *result = OK;
    d->job = DISK_NOTHING;
    return job;
}

void prefix_disk_wait(prefix_disk *d)
{
    d->ended = true;
}

void prefix_disk_abandon(prefix_disk *d)
{
    d->ended = true;
}

void prefix_disk_size(prefix_disk *d, uint64_t *bytes, int *files)
{
    (void)d;
    *bytes = 0;
    *files = 0;
}

static void fill(int32_t *tokens, int n, int kind)
{
    for (int i = 0; i < n; i++) tokens[i] = 300 + (kind + i * 7) % 3000;
}

/* ---- the cache alone ---- */

typedef struct rig {
    fixture f;
    prefix_cache *c;
} rig;

/* With memory for an entry of so many positions. */
static void rig_open(rig *r, int positions)
{
    error e;
    fixture_open(&r->f, (fixture_options){ .folder = NUGGET "king", .kv = KV_F16 });
    const size_t budget = state_snap_room_bytes(king_get_config(r->f.k), r->f.pages, positions);
    const prefix_cache_options o = { .budget = budget,
                                     .pages = r->f.pages,
                                     .king = r->f.k,
                                     .compute = r->f.c,
                                     .disk = { .dir = "a folder" } };
    EXPECT_OK(prefix_cache_new(&r->c, &o, &e), e);
}

static void rig_close(rig *r)
{
    prefix_cache_free(r->c);
    fixture_close(&r->f);
}

static prefix_stats stats_of(rig *r)
{
    prefix_stats s;
    prefix_cache_get_stats(r->c, &s);
    return s;
}

/* A load that ends right behind a look that did not see it end yet. */
TEST(a_load_may_end_at_any_moment)
{
    rig r;
    int32_t tokens[N];
    rig_open(&r, 1024);
    fill(tokens, N, 0);
    disk.stored = STORED;
    EXPECT_INT(prefix_cache_fetch(r.c, tokens, N), PREFIX_COMING);
    EXPECT_INT(disk.begun[DISK_LOAD], 1);
    prefix_cache_tend(r.c);
    EXPECT(disk.ended && prefix_cache_arriving(r.c));
    prefix_cache_tend(r.c);
    EXPECT(!prefix_cache_arriving(r.c));
    EXPECT_INT(stats_of(&r).disk_loads, 1);
    int known;
    const prefix_entry *p = prefix_cache_find(r.c, tokens, N, &known);
    EXPECT(p != NULL);
    EXPECT_INT(prefix_cache_len(p), STORED);
    rig_close(&r);
}

/* One that the memory has no room for at all drives nothing out, although pages are short. */
TEST(a_file_beyond_the_budget_evicts_nothing)
{
    rig r;
    error e;
    int32_t tokens[N], longer[1024];
    rig_open(&r, 512);
    state *s = fixture_state(&r.f);
    fill(tokens, N, 0);
    fixture_pass(&r.f, s, tokens, STORED, ROWS_FINAL, STORED);
    prefix_cache_put(r.c, tokens, s, NULL, PREFIX_END);
    state_free(s);
    EXPECT_INT(stats_of(&r).entries, 1);
    state_snap *other;
    const int left = state_pool_free_pages(r.f.pages) - 4;
    EXPECT_OK(state_snap_room(&other, r.f.config, r.f.pages, left * KV_PAGE, &e), e);
    fill(longer, 1024, 1000);
    disk.stored = 1000;
    EXPECT_INT(prefix_cache_fetch(r.c, longer, 1024), PREFIX_HERE);
    EXPECT_INT(disk.begun[DISK_LOAD], 0);
    EXPECT_INT(stats_of(&r).entries, 1);
    state_snap_free(other);
    rig_close(&r);
}

/* ---- requests ---- */

typedef struct bench {
    fixture f;
    tokenizer *t;
} bench;

static scheduler_options open_bench(bench *b)
{
    error e;
    fixture_open(&b->f, (fixture_options){ .folder = NUGGET "king", .kv = KV_F16 });
    EXPECT_OK(tokenizer_open(&b->t, NUGGET "king", &e), e);
    return (scheduler_options){
        .parts = { .king = b->f.k, .tokenizer = b->t, .compute = { .threads = 1 } },
        .context = 512,
        .total_context = 512,
        .parallel = 1,
        .kv = KV_F16,
        .chunk = N,
        .cache_bytes = BUDGET,
        .disk = { .dir = "a folder" }
    };
}

static void close_bench(bench *b)
{
    tokenizer_close(b->t);
    fixture_close(&b->f);
}

static request *new_request(int kind)
{
    error e;
    int32_t prompt[N];
    request *r;
    fill(prompt, N, kind);
    const request_params p = { .prompt = prompt,
                               .n_prompt = N,
                               .n = 1,
                               .sampling = { .top_p = 1, .repetition = 1 },
                               .max_tokens = OUTPUT,
                               .block = REQUEST_BLOCK_PLAIN,
                               .top_logprobs = -1,
                               .think_open = -1,
                               .think_close = -1,
                               .call_open = -1,
                               .call_close = -1 };
    EXPECT_OK(request_new(&r, &p, NULL, &e), e);
    return r;
}

static request *add(scheduler *g, int kind)
{
    error e;
    sequence *s;
    request *r = new_request(kind);
    EXPECT_OK(sequence_new(&s, r, 0, scheduler_bench(g), &e), e);
    scheduler_add(g, s);
    return r;
}

/* Two replies are to be written when a request comes that needs a file: it waits for the one that
 * is being written, not for the other. */
TEST(a_request_waits_for_one_store_at_most)
{
    bench b;
    scheduler *g;
    error e;
    const scheduler_options o = open_bench(&b);
    EXPECT_OK(scheduler_new(&g, &o, &e), e);
    disk.slow = true;
    for (int kind = 0; kind < 2; kind++) {
        request *r = add(g, 1000 * kind);
        while (scheduler_pass(g)) {}
        request_release(r);
    }
    EXPECT_INT(disk.begun[DISK_STORE], 1);
    disk.stored = STORED;
    request *r = add(g, 2000);
    EXPECT(!scheduler_pass(g));
    EXPECT_INT(disk.begun[DISK_LOAD], 0);
    disk.ended = true;
    EXPECT(!scheduler_pass(g));
    EXPECT_INT(disk.begun[DISK_LOAD], 1);
    EXPECT_INT(disk.begun[DISK_STORE], 1);
    disk.slow = false;
    for (int i = 0; i < 20; i++) (void)scheduler_pass(g);
    request_progress p;
    request_read(r, 0, &p);
    EXPECT_INT(p.usage.cached_tokens, STORED);
    EXPECT(disk.begun[DISK_STORE] > 1); /* then the other */
    request_release(r);
    scheduler_free(g);
    close_bench(&b);
}

/* The disk takes for ever: a request that waits for it can be cancelled all the same. */
TEST(a_request_that_waits_for_the_disk_can_be_cancelled)
{
    bench b;
    engine *g;
    error e;
    const engine_options o = { .scheduler = open_bench(&b), .queue = 4 };
    EXPECT_OK(engine_start(&g, &o, &e), e);
    disk.slow = true;
    disk.stored = STORED;
    request *r = new_request(0);
    EXPECT_OK(engine_submit(g, r, &e), e);
    scheduler_stats s;
    do engine_get_stats(g, &s);
    while (s.queued == 0);
    request_cancel(r);
    request_progress p;
    uint64_t seen = 0;
    do {
        EXPECT_OK(request_wait(r, &seen, 20000), e);
        request_read(r, 0, &p);
    } while (p.finish == 0);
    EXPECT_INT(p.finish, REQUEST_CANCELLED);
    disk.slow = false;
    request_release(r);
    engine_stop(g);
    close_bench(&b);
}
