/* Requests without end: random lengths, settings, seeds, choices and cancels, from several threads,
 * on an engine that is short of everything (memory for positions, cache, disk). Each gives what it
 * gives alone, and memory does not grow. INGOT_SOAK=10000 sets how many; the default is few. */
#include <dirent.h>
#include <pthread.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/sysmem.h"
#include "nugget.h"
#include "stride.h"

enum {
    CLIENTS = 3,
    FLIGHT = 5, /* requests of one client at once */
    KINDS = 500,
    BASES = 8,
    MOST_PROMPT = 360,
    MOST_OUTPUT = 440,
    MOST_CHOICES = 2,
    CONTEXT = 800
};

/* One request, and what it gives alone. */
typedef struct kind {
    int32_t prompt[MOST_PROMPT];
    int n_prompt;
    ingot_sampling sampling;
    int32_t ids[MOST_CHOICES][MOST_OUTPUT];
    int n[MOST_CHOICES];
    ingot_finish finish[MOST_CHOICES];
} kind;

typedef struct soak {
    ingot_engine *engine;
    kind *kinds;
    int n_kinds, each; /* requests of a client */
    pthread_mutex_t lock;
    int done, cancelled;
    size_t early_rss, late_rss, peak_rss; /* after a fifth, at the end */
} soak;

typedef struct client {
    soak *s;
    uint64_t seed;
    pthread_t thread;
} client;

/* ---- kinds ---- */

/* The beginning of one of a few texts, or another request and its answer; then an end of its
 * own. */
static void make_kind(kind *k, const kind *before, rng *r)
{
    rng base = { 1000 + rng_below(r, BASES) };
    const int own = 1 + (int)rng_below(r, 59);
    if (before && before->n_prompt + before->n[0] + own <= MOST_PROMPT && rng_below(r, 3)) {
        k->n_prompt = before->n_prompt + before->n[0];
        memcpy(k->prompt, before->prompt, (size_t)before->n_prompt * sizeof *k->prompt);
        memcpy(k->prompt + before->n_prompt, before->ids[0],
               (size_t)before->n[0] * sizeof *k->prompt);
    } else {
        k->n_prompt = (int)rng_below(r, 200);
        for (int i = 0; i < k->n_prompt; i++) k->prompt[i] = (int32_t)rng_below(&base, 4000);
    }
    for (int i = 0; i < own; i++) k->prompt[k->n_prompt++] = (int32_t)rng_below(r, 4000);
    ingot_sampling *s = &k->sampling;
    *s = INGOT_INIT(ingot_sampling);
    s->has_seed = true;
    s->seed = rng_next(r);
    s->max_tokens = 1 + (int)rng_below(r, rng_below(r, 16) ? 48 : MOST_OUTPUT / test_stride());
    s->ignore_eos = rng_below(r, 4) > 0;
    s->block = (int)rng_below(r, 9);
    s->temperature = rng_below(r, 3) ? 0.3f * (float)rng_below(r, 6) : 0;
    if (rng_below(r, 3) == 0) s->top_p = 0.9f;
    if (rng_below(r, 3) == 0) s->top_k = 30;
    if (rng_below(r, 3) == 0) s->presence_penalty = 0.6f;
    if (rng_below(r, 4) == 0) s->repetition_penalty = 1.15f;
    s->n = rng_below(r, 8) ? 1 : MOST_CHOICES;
}

static ingot_request *submit(ingot_engine *g, const kind *k)
{
    ingot_prompt p = INGOT_INIT(ingot_prompt);
    p.tokens = k->prompt;
    p.n_tokens = (size_t)k->n_prompt;
    return nugget_submit(g, &p, &k->sampling);
}

static void run_alone(ingot_engine *g, kind *k)
{
    ingot_event ev;
    ingot_request *q = submit(g, k);
    while (ingot_next(q, &ev, 600000) == INGOT_OK) {
        if (ev.kind != INGOT_END) continue;
        EXPECT(ev.n_ids <= MOST_OUTPUT);
        memcpy(k->ids[ev.choice], ev.ids, (size_t)ev.n_ids * sizeof *ev.ids);
        k->n[ev.choice] = ev.n_ids;
        k->finish[ev.choice] = ev.finish;
    }
    ingot_release(q);
}

/* ---- clients ---- */

typedef struct flight {
    ingot_request *q;
    const kind *k;
    int patience; /* events until it is cancelled; -1: it is not */
    bool cut;
} flight;

static void check_end(const flight *f, const ingot_event *ev)
{
    const kind *k = f->k;
    const int c = ev->choice, number = (int)k->sampling.seed;
    if (ev->error) FAIL("request %d failed: %s", number, ev->error);
    if (ev->finish != INGOT_FINISH_CANCELLED &&
        (ev->n_ids != k->n[c] || ev->finish != k->finish[c]))
        FAIL("request %d, choice %d: got %d tokens, end %d, want %d, end %d", number, c, ev->n_ids,
             (int)ev->finish, k->n[c], (int)k->finish[c]);
    if (ev->finish == INGOT_FINISH_CANCELLED) EXPECT(f->cut && ev->n_ids <= k->n[c]);
    if (memcmp(ev->ids, k->ids[c], (size_t)ev->n_ids * sizeof *ev->ids) != 0)
        FAIL("request %d, choice %d: other tokens than alone", number, c);
}

static void note_end(soak *s, bool cut)
{
    pthread_mutex_lock(&s->lock);
    s->done++;
    s->cancelled += cut;
    const size_t rss = sysmem_rss();
    if (s->done == s->each * CLIENTS / 5) s->early_rss = rss;
    if (rss > s->peak_rss) s->peak_rss = rss;
    s->late_rss = rss;
    if (s->done % 500 == 0)
        fprintf(stderr, "%d requests, %d cancelled, %.1f MB\n", s->done, s->cancelled,
                (double)rss * 1e-6);
    pthread_mutex_unlock(&s->lock);
}

/* Takes what there is; true when the request has ended. */
static bool attend(soak *s, flight *f)
{
    ingot_event ev;
    const ingot_status st = ingot_next(f->q, &ev, 1);
    if (st == INGOT_E_AGAIN) return false;
    if (st == INGOT_OK && ev.kind == INGOT_END) check_end(f, &ev);
    if (st == INGOT_OK && f->patience >= 0 && f->patience-- == 0) {
        ingot_cancel(f->q);
        f->cut = true;
    }
    if (st == INGOT_OK) return false;
    ingot_release(f->q);
    f->q = NULL;
    note_end(s, f->cut);
    return true;
}

static void *be_client(void *arg)
{
    client *c = arg;
    soak *s = c->s;
    rng r = { c->seed };
    flight flights[FLIGHT] = { 0 };
    for (int begun = 0, ended = 0; ended < s->each;) {
        for (int i = 0; i < FLIGHT; i++) {
            flight *f = &flights[i];
            if (f->q) {
                ended += attend(s, f);
            } else if (begun < s->each) {
                const kind *k = &s->kinds[rng_below(&r, (uint32_t)s->n_kinds)];
                const bool impatient = rng_below(&r, 6) == 0;
                *f = (flight){ submit(s->engine, k), k, impatient ? (int)rng_below(&r, 8) : -1,
                               false };
                begun++;
            }
        }
    }
    return NULL;
}

/* ---- all of it ---- */

static void remove_folder(const char *path)
{
    DIR *d = opendir(path);
    EXPECT(d != NULL);
    for (struct dirent *at; (at = readdir(d));) {
        char file[512];
        snprintf(file, sizeof file, "%s/%s", path, at->d_name);
        if (at->d_name[0] != '.') EXPECT(unlink(file) == 0);
    }
    closedir(d);
    EXPECT(rmdir(path) == 0);
}

/* dir NULL: without any cache, and short of memory for positions; `alone`: for one at a time. */
static ingot_engine *start(ingot_model *m, const char *dir, bool alone)
{
    ingot_engine_options o = INGOT_INIT(ingot_engine_options);
    o.context = CONTEXT;
    o.queue = CLIENTS * FLIGHT * MOST_CHOICES;
    o.parallel = alone ? 1 : 6;
    o.total_context = alone ? 0 : CONTEXT * 5 / 4;
    if (dir) {
        o.cache_bytes = 20 << 20;
        o.cache_dir = dir;
        o.cache_dir_bytes = 60 << 20;
    }
    ingot_engine *g;
    ingot_error e;
    INGOT_EXPECT_OK(ingot_engine_start(&g, m, &o, &e), e);
    return g;
}

/* All clients at once, until each has had s->each requests. */
static void run_clients(soak *s, ingot_model *m, const char *dir)
{
    const int64_t live = mem_live(), began = clock_ns();
    client clients[CLIENTS];
    s->done = s->cancelled = 0;
    s->peak_rss = 0;
    s->engine = start(m, dir, false);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = (client){ .s = s, .seed = 100 + (uint64_t)i };
        EXPECT(pthread_create(&clients[i].thread, NULL, be_client, &clients[i]) == 0);
    }
    for (int i = 0; i < CLIENTS; i++) pthread_join(clients[i].thread, NULL);
    ingot_stats st;
    ingot_engine_get_stats(s->engine, &st);
    EXPECT_INT(st.failed, 0);
    ingot_engine_stop(s->engine); /* checks that every page is back */
    EXPECT_INT(mem_live(), live);
    printf(
        "%s: %d requests, %d cancelled, in %.1f s: %llu steps, %llu tokens, %llu cache hits, %llu "
        "from disk, put back %llu times; memory %.1f MB after a fifth, %.1f at the end, %.1f at "
        "most\n",
        dir ? "with a cache" : "without", s->done, s->cancelled,
        (double)(clock_ns() - began) * 1e-9, (unsigned long long)st.passes,
        (unsigned long long)st.generated_tokens, (unsigned long long)st.cache_hits,
        (unsigned long long)st.cache_disk_loads, (unsigned long long)st.preempted,
        (double)s->early_rss * 1e-6, (double)s->late_rss * 1e-6, (double)s->peak_rss * 1e-6);
    if (s->done >= 1000) EXPECT(s->late_rss < s->early_rss + (24 << 20));
}

TEST(R057_R061_R066_requests_without_end_equal_those_alone)
{
    const char *asked = getenv("INGOT_SOAK");
    const int count = asked ? (int)strtol(asked, NULL, 10) : 60;
    EXPECT(count >= 2 * CLIENTS);
    soak s = { .each = count / 2 / CLIENTS, .n_kinds = count / 2 < KINDS ? count / 2 : KINDS };
    rng r = { 4711 };
    char dir[] = "/tmp/ingot-soak-XXXXXX";
    s.kinds = calloc((size_t)s.n_kinds, sizeof *s.kinds);
    EXPECT(s.kinds != NULL && mkdtemp(dir) != NULL);
    pthread_mutex_init(&s.lock, NULL);
    ingot_model *m = nugget_open(1, NUGGET "/drafter-q8");
    s.engine = start(m, NULL, true);
    for (int i = 0; i < s.n_kinds; i++) {
        make_kind(&s.kinds[i], i ? &s.kinds[i - 1] : NULL, &r);
        run_alone(s.engine, &s.kinds[i]);
    }
    ingot_engine_stop(s.engine);
    run_clients(&s, m, dir);
    run_clients(&s, m, NULL);
    ingot_model_close(m);
    pthread_mutex_destroy(&s.lock);
    free(s.kinds);
    remove_folder(dir);
}
