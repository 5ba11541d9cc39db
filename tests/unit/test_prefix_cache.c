/* The prefix cache beside a disk that does what the test says: this file takes the place of
 * prefix_disk.c. */
#include "engine/prefix_cache.h"
#include "model_fixture.h"

enum { N = 200, STORED = 64, BUDGET = 32 << 20 };

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

static void rig_open(rig *r, size_t budget)
{
    error e;
    fixture_open(&r->f, (fixture_options){ .folder = NUGGET "king", .kv = KV_F16 });
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
    rig_open(&r, BUDGET);
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
