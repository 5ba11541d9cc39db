/* Drafters of random shape and format, on random kings: splits of appends, companions and threads
 * change no bit. */
#include "model_fixture.h"
#include "random_pack.h"

enum { ROWS = 150, WIDTH = 2 * 512, BLOCK = 8, TOP = 8, N = 3 };
static const int taps[] = { 1, 3 };

typedef struct pair {
    fixture f;
    pack *p;
    drafter *d;
    drafter_work *w;
} pair;

static void pair_open(pair *v, const random_pack *k, const random_pack *d, compute_mode mode,
                      int threads)
{
    error e;
    fixture_open(&v->f, (fixture_options){ .folder = k->dir,
                                           .mode = mode,
                                           .kv = KV_F16,
                                           .threads = threads,
                                           .taps = taps,
                                           .n_taps = 2 });
    EXPECT_OK(pack_open(&v->p, d->dir, NULL, &e), e);
    EXPECT_OK(drafter_open(&v->d, v->p, v->f.k, v->f.c, &(load_options){ .mode = mode }, &e), e);
    EXPECT_OK(drafter_work_new(&v->w, v->d, 30, &e), e);
}

static void pair_close(pair *v)
{
    drafter_work_free(v->w);
    drafter_close(v->d);
    pack_close(v->p);
    fixture_close(&v->f);
}

typedef struct shown {
    int32_t drafts[BLOCK - 1], ids[(BLOCK - 1) * TOP];
    float scores[(BLOCK - 1) * TOP], hidden[(BLOCK - 1) * 512];
} shown;

static draft_job job_of(drafter_state *s, int32_t anchor, int block, shown *out)
{
    memset(out, 0, sizeof *out);
    return (draft_job){ .state = s,
                        .anchor = anchor,
                        .block = block,
                        .n_vocab = 1024,
                        .drafts = out->drafts,
                        .candidate_ids = out->ids,
                        .candidate_scores = out->scores,
                        .hidden = out->hidden };
}

/* Contexts of different lengths: first each in one append and one draft of its own, then all
 * together in pieces. */
static void contexts(pair *v, rng *r, const float *rows, shown out[N], bool together)
{
    static const int length[N] = { 3, 70, ROWS }, block[N] = { 8, 5, 8 };
    error e;
    drafter_state *s[N];
    draft_job jobs[N];
    for (int i = 0; i < N; i++) {
        EXPECT_OK(drafter_state_new(&s[i], v->d, &e), e);
        jobs[i] = job_of(s[i], 7 * i, block[i], &out[i]);
        if (together) continue;
        const draft_append whole = { s[i], rows, length[i] };
        drafter_append(v->d, v->f.c, v->w, &whole, 1);
        drafter_draft(v->d, v->f.c, v->w, v->f.k, v->f.w, &jobs[i], 1);
    }
    for (bool more = together; more;) {
        draft_append pieces[N];
        more = false;
        for (int i = 0; i < N; i++) {
            const int at = drafter_state_len(s[i]), left = length[i] - at;
            const int n = left > 0 ? 1 + (int)rng_below(r, (uint32_t)(left < 40 ? left : 40)) : 0;
            pieces[i] = (draft_append){ s[i], rows + (size_t)at * WIDTH, n };
            more |= n < left;
        }
        drafter_append(v->d, v->f.c, v->w, pieces, N);
    }
    if (together) drafter_draft(v->d, v->f.c, v->w, v->f.k, v->f.w, jobs, N);
    for (int i = 0; i < N; i++) drafter_state_free(s[i]);
}

TEST(splits_companions_and_threads_do_not_matter)
{
    float *rows = mem_array((size_t)ROWS * WIDTH, sizeof *rows);
    for (uint64_t seed = 1; seed <= 8; seed++) {
        rng r = { seed };
        random_pack k = { 0 }, d = { 0 };
        random_pack_king(&k, seed);
        random_pack_drafter(&d, &k, seed + 100);
        for (int i = 0; i < ROWS * WIDTH; i++) rows[i] = 3.0f * (float)rng_normal(&r);
        static shown alone[N], shared[N];
        for (int mode = 0; mode < 2; mode++) {
            pair v;
            pair_open(&v, &k, &d, mode ? COMPUTE_F32 : COMPUTE_INT8, 1);
            contexts(&v, &r, rows, alone, false);
            pair_close(&v);
            pair_open(&v, &k, &d, mode ? COMPUTE_F32 : COMPUTE_INT8, 3);
            contexts(&v, &r, rows, shared, true);
            pair_close(&v);
            EXPECT(memcmp(alone, shared, sizeof alone) == 0);
        }
        random_pack_remove(&k);
        random_pack_remove(&d);
    }
    mem_free(rows);
}
