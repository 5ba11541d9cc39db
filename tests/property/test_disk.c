/* The disk tier of the prefix cache: what comes back from it gives the tokens of a cold run, and
 * what cannot be trusted is never used. Mutations these tests have caught: a checksum that is not
 * compared; tokens that are not compared; a load whose failure is taken for success. */
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "nugget.h"
#include "stride.h"

#define DRAFTER NUGGET "/drafter-q8"
enum { REPLY = 8, MORE = 20, ROOM = 1024 };

/* ---- folders ---- */

typedef struct folder {
    char path[64];
} folder;

static folder folder_new(void)
{
    folder f = { "/tmp/ingot-disk-XXXXXX" };
    EXPECT(mkdtemp(f.path) != NULL);
    return f;
}

/* Calls fn (may be NULL) for every file; returns how many there are. */
static int each_file(const folder *f, void (*fn)(const char *path, void *arg), void *arg)
{
    int n = 0;
    DIR *d = opendir(f->path);
    EXPECT(d != NULL);
    for (struct dirent *at; (at = readdir(d));) {
        char path[512];
        if (at->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", f->path, at->d_name);
        if (fn) fn(path, arg);
        n++;
    }
    closedir(d);
    return n;
}

static void remove_one(const char *path, void *arg)
{
    (void)arg;
    EXPECT(unlink(path) == 0);
}

static void add_size(const char *path, void *arg)
{
    struct stat st;
    if (stat(path, &st) == 0) *(uint64_t *)arg += (uint64_t)st.st_size;
}

static uint64_t bytes_of(const folder *f)
{
    uint64_t bytes = 0;
    each_file(f, add_size, &bytes);
    return bytes;
}

static void folder_remove(const folder *f)
{
    each_file(f, remove_one, NULL);
    EXPECT(rmdir(f->path) == 0);
}

/* ---- engines and conversations ---- */

typedef struct how {
    const char *kv;
    uint64_t memory, disk;
    int parallel;
} how;

static ingot_engine *start(ingot_model *m, const folder *f, how h)
{
    ingot_engine_options o = INGOT_INIT(ingot_engine_options);
    o.context = 2048;
    o.parallel = h.parallel ? h.parallel : 1;
    o.kv_type = h.kv;
    o.cache_bytes = h.memory ? h.memory : f ? 64 << 20 : 0;
    o.cache_dir = f ? f->path : NULL;
    o.cache_dir_bytes = h.disk;
    ingot_engine *g;
    ingot_error e;
    INGOT_EXPECT_OK(ingot_engine_start(&g, m, &o, &e), e);
    return g;
}

/* The prompt of a conversation, and what came of it. */
typedef struct talk {
    int32_t ids[ROOM];
    int n;
} talk;

static void fill(int32_t *ids, int n, uint32_t kind)
{
    for (int i = 0; i < n; i++) {
        kind = kind * 1664525u + 1013904223u;
        ids[i] = (int32_t)(kind >> 8) % 4000;
    }
}

static talk talk_new(int length, uint32_t kind)
{
    talk t = { .n = length };
    fill(t.ids, length, kind);
    return t;
}

static ingot_sampling sampled(void)
{
    ingot_sampling s = INGOT_INIT(ingot_sampling);
    s.max_tokens = REPLY;
    s.ignore_eos = true;
    s.temperature = 0.9f;
    s.has_seed = true;
    s.seed = 77;
    return s;
}

static ingot_prompt prompt_of(const talk *t)
{
    ingot_prompt p = INGOT_INIT(ingot_prompt);
    p.tokens = t->ids;
    p.n_tokens = (size_t)t->n;
    return p;
}

static void run(ingot_engine *g, const talk *t, nugget_result *r)
{
    const ingot_prompt p = prompt_of(t);
    const ingot_sampling s = sampled();
    nugget_run(g, &p, &s, r);
}

/* Appends the reply and MORE tokens of the next turn. */
static void talk_on(talk *t, const nugget_result *r, uint32_t kind)
{
    memcpy(t->ids + t->n, r->ids, (size_t)r->n * sizeof *t->ids);
    t->n += r->n;
    fill(t->ids + t->n, MORE, kind);
    t->n += MORE;
}

/* Runs t on g and on the engine without a cache: they agree; returns the cached tokens. */
static int same_as_cold(ingot_engine *cold, ingot_engine *g, const talk *t)
{
    nugget_result a, b;
    run(cold, t, &a);
    run(g, t, &b);
    nugget_same(&a, &b, "from the disk");
    const int cached = b.usage.cached_tokens;
    nugget_free(&a);
    nugget_free(&b);
    return cached;
}

/* One turn of a conversation is written; `t` is its next turn. */
static void write_turn(ingot_model *m, const folder *f, how h, talk *t)
{
    nugget_result r;
    ingot_engine *g = start(m, f, h);
    run(g, t, &r);
    talk_on(t, &r, 1);
    nugget_free(&r);
    ingot_engine_stop(g);
}

static ingot_stats stats_of(ingot_engine *g)
{
    ingot_stats s;
    ingot_engine_get_stats(g, &s);
    return s;
}

/* ---- what it is for ---- */

TEST(a_restart_goes_on_where_the_last_run_ended)
{
    const folder f = folder_new();
    talk t = talk_new(300, 4);
    ingot_model *m = nugget_open(1, DRAFTER);
    ingot_engine *cold = start(m, NULL, (how){ 0 });
    for (int turn = 0; turn < 3; turn++) {
        const int before = t.n;
        write_turn(m, &f, (how){ 0 }, &t);
        EXPECT_INT(each_file(&f, NULL, NULL), turn + 1);
        ingot_engine *g = start(m, &f, (how){ 0 });
        EXPECT_INT(same_as_cold(cold, g, &t), before + REPLY - 1);
        EXPECT_INT(stats_of(g).cache_disk_loads, 1);
        EXPECT_INT(same_as_cold(cold, g, &t), before + REPLY - 1); /* now from memory */
        EXPECT_INT(stats_of(g).cache_disk_loads, 1);
        ingot_engine_stop(g);
    }
    ingot_engine_stop(cold);
    ingot_model_close(m);
    folder_remove(&f);
}

/* Sessions that memory has no room for go to the disk and come back while short requests run; a
 * state is never taken for another prompt's. */
TEST(R052_a_stored_state_is_used_for_its_own_prompt_alone)
{
    enum { TALKS = 5, TURNS = 3, SHORT = 3 };
    const folder f = folder_new();
    static talk talks[TALKS], brief[SHORT];
    static nugget_result got[TALKS + SHORT], want;
    ingot_model *m = nugget_open(1, DRAFTER);
    ingot_engine *cold = start(m, NULL, (how){ 0 });
    /* each entry takes about 3 MB: few have room */
    ingot_engine *g = start(m, &f, (how){ .memory = 10 << 20, .parallel = 3 });
    for (int i = 0; i < TALKS; i++) talks[i] = talk_new(200 + 10 * i, 7); /* alike, not the same */
    for (int i = 0; i < TALKS; i++) talks[i].ids[100 + i] = 17 + i;
    int cached = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        ingot_request *q[TALKS + SHORT];
        const ingot_sampling s = sampled();
        for (int i = 0; i < SHORT; i++) brief[i] = talk_new(12 + i, (uint32_t)(40 + turn));
        for (int i = 0; i < TALKS + SHORT; i++) {
            const talk *t = i < TALKS ? &talks[i] : &brief[i - TALKS];
            const ingot_prompt p = prompt_of(t);
            nugget_init(&got[i]);
            q[i] = nugget_submit(g, &p, &s);
        }
        for (int i = 0; i < TALKS + SHORT; i++) {
            nugget_finish(q[i], &got[i]);
            run(cold, i < TALKS ? &talks[i] : &brief[i - TALKS], &want);
            nugget_same(&want, &got[i], "one of several");
            nugget_free(&want);
            if (i >= TALKS) continue;
            cached += got[i].usage.cached_tokens > 0;
            talk_on(&talks[i], &got[i], (uint32_t)turn);
        }
        for (int i = 0; i < TALKS + SHORT; i++) nugget_free(&got[i]);
        ingot_engine_stop(g); /* everything that is still in memory is written */
        g = start(m, &f, (how){ .memory = 10 << 20, .parallel = 3 });
    }
    /* one that had to leave memory before the disk was ready for it is lost, which is rare */
    EXPECT(cached >= TALKS * (TURNS - 1) / 2);
    ingot_engine_stop(g);
    ingot_engine_stop(cold);
    ingot_model_close(m);
    folder_remove(&f);
}

static double seconds_of(ingot_engine *g, const int32_t *ids, int n, int *cached)
{
    ingot_prompt p = INGOT_INIT(ingot_prompt);
    p.tokens = ids;
    p.n_tokens = (size_t)n;
    ingot_sampling s = sampled();
    s.max_tokens = 1;
    nugget_result r;
    const int64_t start_ns = clock_ns();
    nugget_run(g, &p, &s, &r);
    *cached = r.usage.cached_tokens;
    nugget_free(&r);
    return (double)(clock_ns() - start_ns) * 1e-9;
}

/* The next turn of a long conversation costs what its new tokens cost and little more (figures in
 * docs/engine.md; here only that it is far from what the whole costs). */
TEST(R046_the_next_turn_of_a_long_conversation_starts_at_once)
{
    enum { OLD = 3900, NEW = 48 };
    const int rounds = 3 / test_stride();
    static int32_t ids[OLD + NEW];
    double whole = 1e9, resumed[2] = { 1e9, 1e9 };
    const folder f = folder_new();
    ingot_model *m = nugget_open(1, DRAFTER);
    ingot_engine_options o = INGOT_INIT(ingot_engine_options);
    o.context = 4096;
    o.cache_bytes = 64 << 20;
    o.cache_dir = f.path;
    for (int round = 0; round < rounds; round++) {
        ingot_engine *g;
        ingot_error e;
        int cached;
        fill(ids, OLD, 60 + (uint32_t)round);
        for (int from_disk = 0; from_disk < 2; from_disk++) {
            INGOT_EXPECT_OK(ingot_engine_start(&g, m, &o, &e), e);
            if (!from_disk) {
                const double s = seconds_of(g, ids, OLD, &cached);
                EXPECT_INT(cached, 0);
                if (s < whole) whole = s;
            }
            fill(ids + OLD, NEW, 90 + (uint32_t)(2 * round + from_disk)); /* another next turn */
            const double s = seconds_of(g, ids, OLD + NEW, &cached);
            EXPECT_INT(cached, OLD);
            if (s < resumed[from_disk]) resumed[from_disk] = s;
            ingot_engine_stop(g);
        }
    }
    printf("%d tokens: %.0f ms; %d more: from memory %.1f ms, from disk %.1f ms\n", OLD,
           whole * 1e3, NEW, resumed[0] * 1e3, resumed[1] * 1e3);
    EXPECT(resumed[0] < whole / 4);
    EXPECT(resumed[1] < whole / 4);
    ingot_model_close(m);
    folder_remove(&f);
}

/* ---- what must not be used ---- */

static void overwrite(const char *path, long at, int whence, const void *bytes, size_t n)
{
    FILE *file = fopen(path, "r+b");
    EXPECT(file && fseek(file, at, whence) == 0 && fwrite(bytes, 1, n, file) == n);
    EXPECT(fclose(file) == 0);
}

enum { DAMAGES = 10, DAMAGED = 100 }; /* tokens of the prompt */
static void damage(const char *path, void *arg)
{
    struct stat st;
    EXPECT(stat(path, &st) == 0);
    const int32_t other = 3999;
    switch (*(int *)arg) {
    case 0: overwrite(path, 3, SEEK_SET, "X", 1); break;               /* magic */
    case 1: overwrite(path, 50, SEEK_SET, "XYZ", 3); break;            /* fingerprint */
    case 2: overwrite(path, 104 + 4 * 20, SEEK_SET, &other, 4); break; /* a token */
    case 3:                                                            /* the snapshot's header */
        overwrite(path, 104 + 4 * (DAMAGED + REPLY - 1) + 40, SEEK_SET, "X", 1);
        break;
    case 4: overwrite(path, st.st_size / 2, SEEK_SET, "\1\2\3\4", 4); break;
    case 5: overwrite(path, -100, SEEK_END, "\1\2\3\4", 4); break; /* the drafter's last rows */
    case 6: overwrite(path, -1, SEEK_END, "x", 1); break;          /* the checksum */
    case 7: EXPECT(truncate(path, st.st_size - 1) == 0); break;
    case 8: EXPECT(truncate(path, 0) == 0); break;
    case 9: overwrite(path, 0, SEEK_END, "\n", 1); break;
    default: break;
    }
}

TEST(R052_damaged_files_are_dropped_and_never_used)
{
    const folder f = folder_new();
    ingot_model *m = nugget_open(1, DRAFTER);
    nugget_result want, got;
    for (int kind = 0; kind < DAMAGES; kind++) {
        talk t = talk_new(DAMAGED, 4);
        write_turn(m, &f, (how){ 0 }, &t);
        if (kind == 0) { /* the cold answer, the same for all */
            ingot_engine *cold = start(m, NULL, (how){ 0 });
            run(cold, &t, &want);
            ingot_engine_stop(cold);
        }
        EXPECT_INT(each_file(&f, damage, &kind), 1);
        ingot_engine *g = start(m, &f, (how){ 0 });
        run(g, &t, &got);
        nugget_same(&want, &got, "beside a damaged file");
        EXPECT_INT(got.usage.cached_tokens, 0);
        nugget_free(&got);
        EXPECT_INT(stats_of(g).cache_disk_loads, 0);
        EXPECT_INT(stats_of(g).cache_disk_failures, 1);
        ingot_engine_stop(g);
        EXPECT_INT(each_file(&f, remove_one, NULL), 1); /* of the second turn alone */
    }
    nugget_free(&want);
    ingot_model_close(m);
    folder_remove(&f);
}

static void note_path(const char *path, void *arg)
{
    snprintf(arg, 512, "%s", path);
}

TEST(a_file_that_cannot_be_opened_is_kept)
{
    const folder f = folder_new();
    talk t = talk_new(300, 4);
    char path[512] = "";
    struct rlimit before, none;
    ingot_model *m = nugget_open(1, DRAFTER);
    ingot_engine *cold = start(m, NULL, (how){ 0 });
    write_turn(m, &f, (how){ 0 }, &t);
    EXPECT_INT(each_file(&f, note_path, path), 1);
    ingot_engine *g = start(m, &f, (how){ 0 });
    EXPECT(getrlimit(RLIMIT_NOFILE, &before) == 0);
    none = (struct rlimit){ 0, before.rlim_max };
    EXPECT(setrlimit(RLIMIT_NOFILE, &none) == 0);
    EXPECT_INT(same_as_cold(cold, g, &t), 0);
    EXPECT(setrlimit(RLIMIT_NOFILE, &before) == 0);
    /* that of reading it, and where the turn was already to be written, that of its writing */
    const uint64_t failures = stats_of(g).cache_disk_failures;
    EXPECT(failures == 1 || failures == 2);
    ingot_engine_stop(g);
    EXPECT(access(path, F_OK) == 0);
    ingot_engine_stop(cold);
    ingot_model_close(m);
    folder_remove(&f);
}

/* Whole, checked, of this model and this length: only its tokens tell. */
TEST(R052_a_file_under_another_prompts_name_is_never_used)
{
    const folder f = folder_new();
    char one[512], other[512];
    ingot_model *m = nugget_open(1, DRAFTER);
    talk t = talk_new(300, 4), u = talk_new(300, 5);
    write_turn(m, &f, (how){ 0 }, &t);
    EXPECT_INT(each_file(&f, note_path, one), 1);
    EXPECT_INT(each_file(&f, remove_one, NULL), 1);
    write_turn(m, &f, (how){ 0 }, &u);
    EXPECT_INT(each_file(&f, note_path, other), 1);
    EXPECT(rename(other, one) == 0);
    ingot_engine *cold = start(m, NULL, (how){ 0 }), *g = start(m, &f, (how){ 0 });
    EXPECT_INT(same_as_cold(cold, g, &t), 0);
    EXPECT_INT(stats_of(g).cache_disk_failures, 1);
    ingot_engine_stop(g);
    ingot_engine_stop(cold);
    ingot_model_close(m);
    folder_remove(&f);
}

typedef struct renaming {
    char dir[64], fingerprint[17];
} renaming;

static void note_fingerprint(const char *path, void *arg)
{
    renaming *r = arg;
    snprintf(r->fingerprint, sizeof r->fingerprint, "%s", strrchr(path, '/') + 1);
}

static void forge_name(const char *path, void *arg)
{
    const renaming *r = arg;
    char other[512];
    snprintf(other, sizeof other, "%s/%s%s", r->dir, r->fingerprint, strrchr(path, '/') + 17);
    EXPECT(rename(path, other) == 0);
}

/* Another drafter, another form of keys and values, other arithmetic: nothing is shared. */
TEST(R052_files_of_another_model_are_never_used)
{
    const folder f = folder_new();
    talk t = talk_new(300, 4);
    ingot_model *m = nugget_open(1, DRAFTER), *alone = nugget_open(2, NULL);
    write_turn(m, &f, (how){ 0 }, &t);
    ingot_engine *g = start(alone, &f, (how){ 0 }), *cold = start(alone, NULL, (how){ 0 });
    EXPECT_INT(same_as_cold(cold, g, &t), 0);
    ingot_engine_stop(g);
    ingot_engine_stop(cold);
    cold = start(m, NULL, (how){ .kv = "f32" });
    g = start(m, &f, (how){ .kv = "f32" });
    EXPECT_INT(same_as_cold(cold, g, &t), 0);
    ingot_engine_stop(g);
    ingot_engine_stop(cold);
    EXPECT_INT(each_file(&f, NULL, NULL), 3); /* theirs were left alone */
    each_file(&f, remove_one, NULL);
    /* a file that has the other model's name is deleted, not believed */
    renaming r;
    memcpy(r.dir, f.path, sizeof r.dir);
    talk plain = talk_new(300, 4), short_one = talk_new(20, 9);
    write_turn(alone, &f, (how){ 0 }, &short_one);
    each_file(&f, note_fingerprint, &r);
    each_file(&f, remove_one, NULL);
    write_turn(m, &f, (how){ 0 }, &plain);
    each_file(&f, forge_name, &r);
    cold = start(alone, NULL, (how){ 0 });
    g = start(alone, &f, (how){ 0 });
    EXPECT_INT(same_as_cold(cold, g, &plain), 0);
    ingot_engine_stop(g);
    ingot_engine_stop(cold);
    ingot_model_close(alone);
    ingot_model_close(m);
    folder_remove(&f);
}

/* ---- budgets and faults of the disk ---- */

TEST(the_budget_holds_and_the_oldest_goes)
{
    enum { TALKS = 5 };
    const folder f = folder_new();
    static talk talks[TALKS];
    ingot_model *m = nugget_open(1, DRAFTER);
    uint64_t one = 0;
    for (int i = 0; i < TALKS; i++) {
        talks[i] = talk_new(200, 20 + (uint32_t)i);
        write_turn(m, &f, (how){ .disk = one * 3 + one / 2 }, &talks[i]);
        if (i == 0) one = bytes_of(&f);
        EXPECT(bytes_of(&f) <= one * 3 + one / 2);
    }
    EXPECT_INT(each_file(&f, NULL, NULL), 3);
    ingot_engine *cold = start(m, NULL, (how){ 0 });
    ingot_engine *g = start(m, &f, (how){ .disk = one * 100 });
    EXPECT_INT(stats_of(g).cache_disk_bytes, bytes_of(&f));
    for (int i = 0; i < TALKS; i++)
        EXPECT_INT(same_as_cold(cold, g, &talks[i]) > 0, i >= TALKS - 3);
    ingot_engine_stop(g);
    /* one entry is more than the budget: nothing is written */
    each_file(&f, remove_one, NULL);
    talk t = talk_new(200, 50);
    write_turn(m, &f, (how){ .disk = 4096 }, &t);
    EXPECT_INT(each_file(&f, NULL, NULL), 0);
    ingot_engine_stop(cold);
    ingot_model_close(m);
    folder_remove(&f);
}

/* Runs fn in a process of its own; returns how that ended. */
static int in_child(void (*fn)(const folder *f), const folder *f)
{
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        fn(f);
        exit(0);
    }
    int how_it_ended;
    EXPECT(pid > 0 && waitpid(pid, &how_it_ended, 0) == pid);
    return how_it_ended;
}

static void run_on_a_full_disk(const folder *f)
{
    const struct rlimit limit = { 1 << 20, 1 << 20 };
    talk t = talk_new(300, 4);
    ingot_model *m = nugget_open(1, DRAFTER);
    ingot_engine *cold = start(m, NULL, (how){ 0 }), *g = start(m, f, (how){ 0 });
    signal(SIGXFSZ, SIG_IGN);
    EXPECT(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    nugget_result r;
    run(g, &t, &r);
    talk_on(&t, &r, 1);
    nugget_free(&r);
    EXPECT_INT(same_as_cold(cold, g, &t), 307); /* from memory */
    ingot_engine_stop(g);
    ingot_engine_stop(cold);
    ingot_model_close(m);
}

TEST(a_full_disk_is_a_warning)
{
    const folder f = folder_new();
    EXPECT_INT(in_child(run_on_a_full_disk, &f), 0);
    EXPECT_INT(each_file(&f, NULL, NULL), 0); /* nothing half written is left */
    folder_remove(&f);
}

enum { CRASH_TALKS = 10 };

static void write_for_ever(const folder *f)
{
    ingot_model *m = nugget_open(1, DRAFTER);
    ingot_engine *g = start(m, f, (how){ .disk = 64 << 20 });
    for (uint32_t i = 0;; i++) {
        nugget_result r;
        const talk t = talk_new(40, 100 + i % CRASH_TALKS);
        run(g, &t, &r);
        nugget_free(&r);
        if (i % CRASH_TALKS) continue;
        ingot_engine_stop(g); /* so that it is all written again */
        each_file(f, remove_one, NULL);
        g = start(m, f, (how){ .disk = 64 << 20 });
    }
}

/* Goes on with all conversations and exits with 2 + the entries that came from the disk; their
 * replies are those of a cold run. */
static void go_on_after_a_crash(const folder *f)
{
    ingot_model *m = nugget_open(1, DRAFTER);
    ingot_engine *cold = start(m, NULL, (how){ 0 }), *g = start(m, f, (how){ 0 });
    for (uint32_t i = 0; i < CRASH_TALKS; i++) {
        nugget_result r;
        talk t = talk_new(40, 100 + i);
        run(cold, &t, &r);
        talk_on(&t, &r, 1);
        nugget_free(&r);
        same_as_cold(cold, g, &t);
    }
    const ingot_stats st = stats_of(g);
    EXPECT_INT(st.cache_disk_failures, 0);
    ingot_engine_stop(g);
    ingot_engine_stop(cold);
    ingot_model_close(m);
    exit(2 + (int)st.cache_disk_loads);
}

/* Whatever is there after a crash is whole, or is not used. This process has no threads of its own,
 * so that it may fork (and sanitizers agree). */
TEST(a_crash_while_writing_leaves_only_whole_files)
{
    const folder f = folder_new();
    int whole = 0;
    for (int round = 0; round < 5 || (whole == 0 && round < 12); round++) {
        fflush(NULL);
        const pid_t pid = fork();
        if (pid == 0) write_for_ever(&f);
        EXPECT(pid > 0);
        for (int i = 0; i < 60000 && bytes_of(&f) == 0; i++) usleep(1000);
        usleep((useconds_t)(round < 5 ? 5300 * round : 20000 << (round - 4))); /* slow builds */
        EXPECT(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
        const int how_it_ended = in_child(go_on_after_a_crash, &f);
        EXPECT(WIFEXITED(how_it_ended) && WEXITSTATUS(how_it_ended) >= 2);
        whole += WEXITSTATUS(how_it_ended) - 2;
        each_file(&f, remove_one, NULL);
    }
    EXPECT(whole > 0);
    folder_remove(&f);
}

static void share_with_another(const folder *f)
{
    ingot_model *m = nugget_open(1, DRAFTER);
    ingot_engine *cold = start(m, NULL, (how){ 0 });
    for (int round = 0; round < 4; round += test_stride()) {
        ingot_engine *g = start(m, f, (how){ .memory = 4 << 20, .disk = 12 << 20 });
        for (uint32_t i = 0; i < 6; i++) {
            nugget_result r;
            talk t = talk_new(60, i);
            run(g, &t, &r);
            talk_on(&t, &r, 1);
            nugget_free(&r);
            same_as_cold(cold, g, &t);
        }
        ingot_engine_stop(g);
    }
    ingot_engine_stop(cold);
    ingot_model_close(m);
}

/* Both write, read, delete and replace the same names all the time. */
TEST(two_processes_share_a_folder)
{
    const folder f = folder_new();
    pid_t pid[2];
    for (int i = 0; i < 2; i++) {
        fflush(NULL);
        pid[i] = fork();
        if (pid[i] == 0) {
            share_with_another(&f);
            exit(0);
        }
    }
    for (int i = 0; i < 2; i++) {
        int how_it_ended;
        EXPECT(waitpid(pid[i], &how_it_ended, 0) == pid[i]);
        EXPECT_INT(how_it_ended, 0);
    }
    folder_remove(&f);
}

TEST(a_disk_tier_needs_the_cache_and_a_folder)
{
    ingot_model *m = nugget_open(1, NULL);
    ingot_engine_options o = INGOT_INIT(ingot_engine_options);
    ingot_engine *g;
    ingot_error e;
    o.context = 512;
    o.cache_dir = "/tmp";
    EXPECT_INT(ingot_engine_start(&g, m, &o, &e), INGOT_E_ARG);
    EXPECT(strstr(e.text, "cache_bytes") != NULL);
    o.cache_bytes = 1 << 20;
    o.cache_dir = "/dev/null/no";
    EXPECT_INT(ingot_engine_start(&g, m, &o, &e), INGOT_E_IO);
    EXPECT(strstr(e.text, "/dev/null") != NULL);
    ingot_model_close(m);
}
