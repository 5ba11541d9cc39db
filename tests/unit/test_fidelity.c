/* Closeness of a king to a teacher: against the definitions in long double, over tiers of the CPU,
 * top-N captures and shards. The teacher is the golden run of king-tiny by another program, each
 * row moved by one, so that it is far from the king. */
#include <math.h>
#include "compute/cpu/features.h"
#include "packkit.h"
#include "tools/capture.h"
#include "tools/fidelity.h"

#define TINY KIT_PACKS "king-tiny"
enum { VOCAB = 1024, EMBD = 512, ROWS = 17, MOST = 4 };

static const tensor *find(const safetensors *s, const char *name)
{
    const tensor *t = safetensors_find(s, str_from(name));
    if (!t) FAIL("%s: no tensor %s", s->path, name);
    return t;
}

/* Row r of the teacher is row r + 1 of the golden run, the last one the first. */
static int moved(int row)
{
    return (row + 1) % ROWS;
}

/* The teacher as a capture of one sequence, numbered `number`. */
static void write_teacher(const kit *k, const char *name, int number)
{
    safetensors g;
    safetensors_writer *w = NULL;
    error e = { 0 };
    const int64_t logits[2] = { ROWS, VOCAB }, hidden[2] = { ROWS, EMBD };
    char text[64];
    EXPECT_OK(safetensors_open(&g, TINY "/golden/prompt_len17.safetensors", &e), e);
    EXPECT_OK(safetensors_writer_new(&w, &e), e);
    const tensor *from[3] = { find(&g, "tokens"), find(&g, "logits"), find(&g, "layer2.output") };
    const char *const parts[3] = { "tokens", "logits", "hidden.2" };
    const int64_t *shapes[3] = { logits, logits, hidden };
    for (int i = 0; i < 3; i++) {
        snprintf(text, sizeof text, "seq%d.%s", number, parts[i]);
        EXPECT_OK(safetensors_writer_declare(w, str_from(text), i ? DTYPE_F32 : DTYPE_I32,
                                             i ? 2 : 1, shapes[i], NULL, &e),
                  e);
    }
    EXPECT_OK(safetensors_writer_begin(w, kit_path(k, name), &e), e);
    for (int r = 0; r < ROWS; r++) {
        EXPECT_OK(safetensors_writer_put(w, 0, 4 * (uint64_t)r, from[0]->data + 4 * r, 4, &e), e);
        for (int i = 1; i < 3; i++) {
            const uint64_t n = (uint64_t)shapes[i][1] * 4;
            EXPECT_OK(safetensors_writer_put(w, i, n * (uint64_t)r,
                                             from[i]->data + n * (uint64_t)moved(r), n, &e),
                      e);
        }
    }
    EXPECT_OK(safetensors_writer_commit(w, &e), e);
    safetensors_close(&g);
}

static void write_tokens(const kit *k, const char *name, int n)
{
    buf b;
    buf_init(&b, 1 << 20);
    buf_text(&b, "{\"sequences\":[");
    for (int s = 0; s < n; s++) {
        buf_text(&b, s ? ",[" : "[");
        for (int i = 0; i < 5 + s; i++)
            buf_printf(&b, "%s%d", i ? "," : "", (s * 37 + i * 11) % 1000);
        buf_text(&b, "]");
    }
    buf_text(&b, "]}");
    kit_write(k, name, buf_view(&b));
    buf_free(&b);
}

static void capture(const kit *k, const char *tokens, const char *out, capture_options o)
{
    error e = { 0 };
    char a[512], b[512];
    snprintf(a, sizeof a, "%s", kit_path(k, tokens));
    snprintf(b, sizeof b, "%s", kit_path(k, out));
    o.king = TINY;
    o.tokens = a;
    o.out = b;
    capture_report r;
    EXPECT_OK(capture_run(&o, &r, &e), e);
}

static fidelity compare(const kit *k, const char *against, fidelity_options o)
{
    error e = { 0 };
    fidelity f = { 0 };
    char path[512];
    snprintf(path, sizeof path, "%s", kit_path(k, against));
    o.king = TINY;
    o.against = path;
    EXPECT_OK(fidelity_kl(&o, &f, &e), e);
    return f;
}

/* sum p (ln p - ln q), with probabilities made first. */
static double kl_of(const float *teacher, const float *mine)
{
    long double zp = 0, zq = 0, kl = 0;
    for (int v = 0; v < VOCAB; v++) {
        zp += expl((long double)teacher[v]);
        zq += expl((long double)mine[v]);
    }
    for (int v = 0; v < VOCAB; v++) {
        const long double p = expl((long double)teacher[v]) / zp;
        kl += p * (logl(p) - logl(expl((long double)mine[v]) / zq));
    }
    return (double)kl;
}

static double length_of(const float *a, const float *b)
{
    long double sum = 0;
    for (int i = 0; i < EMBD; i++) {
        const long double d = (long double)a[i] - (b ? (long double)b[i] : 0);
        sum += d * d;
    }
    return (double)sqrtl(sum);
}

TEST(kl_and_distance_are_what_they_are_defined_to_be)
{
    const kit k = kit_new(NULL);
    error e = { 0 };
    safetensors g, mine;
    buf ids;
    write_teacher(&k, "teacher.safetensors", 0);
    EXPECT_OK(safetensors_open(&g, TINY "/golden/prompt_len17.safetensors", &e), e);
    buf_init(&ids, 4096);
    const tensor *tokens = find(&g, "tokens");
    for (int i = 0; i < ROWS; i++) {
        int32_t id;
        memcpy(&id, tokens->data + 4 * i, 4);
        buf_printf(&ids, "%s%d", i ? "," : "[", id);
    }
    buf_text(&ids, "]");
    kit_write(&k, "tokens.json", buf_view(&ids));
    buf_free(&ids);
    capture(&k, "tokens.json", "mine.safetensors",
            (capture_options){ .logits = CAPTURE_ALL, .hidden = { .every = 1 }, .f32 = true });
    fidelity f = compare(&k, "teacher.safetensors", (fidelity_options){ .f32 = true });
    EXPECT_OK(safetensors_open(&mine, kit_path(&k, "mine.safetensors"), &e), e);
    const tensor *l = find(&mine, "seq0.logits"), *h = find(&mine, "seq0.hidden.2");
    const tensor *tl = find(&g, "logits"), *th = find(&g, "layer2.output");
    EXPECT_INT(f.n_layer, 1);
    EXPECT_INT(f.layers[0], 2);
    for (int r = 0; r < ROWS; r++) {
        float a[VOCAB], b[VOCAB];
        tensor_read_f32(tl, (int64_t)moved(r) * VOCAB, VOCAB, a);
        tensor_read_f32(l, (int64_t)r * VOCAB, VOCAB, b);
        const double want = kl_of(a, b);
        EXPECT(want > 0.01);
        EXPECT(fabs(f.sequences[0].kl[r] - want) <= 1e-9 * (1 + want));
        tensor_read_f32(th, (int64_t)moved(r) * EMBD, EMBD, a);
        tensor_read_f32(h, (int64_t)r * EMBD, EMBD, b);
        EXPECT(fabs(f.sequences[0].distance[r] - length_of(b, a)) <= 1e-9 * length_of(a, NULL));
        EXPECT(fabs(f.sequences[0].length[r] - length_of(a, NULL)) <= 1e-9 * length_of(a, NULL));
    }
    safetensors_close(&mine);
    safetensors_close(&g);
    fidelity_free(&f);
    kit_free(&k);
    EXPECT_INT(mem_live(), 0);
}

static void expect_same(const fidelity *a, const fidelity *b)
{
    EXPECT_INT(a->n, b->n);
    EXPECT_INT(a->n_layer, b->n_layer);
    for (int i = 0; i < a->n; i++) {
        const fidelity_sequence *x = &a->sequences[i], *y = &b->sequences[i];
        const size_t rows = (size_t)x->rows, cells = rows * (size_t)a->n_layer;
        EXPECT_INT(x->index, y->index);
        EXPECT_INT(x->rows, y->rows);
        EXPECT(memcmp(x->kl, y->kl, rows * sizeof *x->kl) == 0);
        EXPECT(memcmp(x->agree, y->agree, rows * sizeof *x->agree) == 0);
        EXPECT(memcmp(x->distance, y->distance, cells * sizeof *x->distance) == 0);
        EXPECT(memcmp(x->length, y->length, cells * sizeof *x->length) == 0);
    }
}

TEST(every_tier_and_any_number_of_threads_gives_the_same_bits)
{
    const kit k = kit_new(NULL);
    write_teacher(&k, "teacher.safetensors", 0);
    fidelity want = compare(&k, "teacher.safetensors", (fidelity_options){ .cpu = "ref" });
    for (const cpu_ops *const *t = features_get()->tiers; *t; t++) {
        fidelity got = compare(&k, "teacher.safetensors",
                               (fidelity_options){ .cpu = (*t)->name, .threads = 3 });
        expect_same(&got, &want);
        fidelity_free(&got);
    }
    fidelity_free(&want);
    kit_free(&k);
}

/* A capture of the N likeliest ids gives a bound that grows with N towards the whole. */
TEST(the_largest_logits_give_a_lower_bound)
{
    const kit k = kit_new(NULL);
    write_tokens(&k, "tokens.json", MOST);
    double before[MOST][8] = { { 0 } };
    const int top[] = { 1, 8, 64, VOCAB, CAPTURE_ALL };
    for (int i = 0; i < 5; i++) {
        capture(&k, "tokens.json", "t.safetensors",
                (capture_options){ .logits = top[i], .f32 = true });
        fidelity f = compare(&k, "t.safetensors", (fidelity_options){ 0 }); /* int8 against f32 */
        EXPECT_INT(f.n, MOST);
        EXPECT(f.bound == (top[i] != CAPTURE_ALL));
        for (int s = 0; s < MOST; s++) {
            for (int r = 0; r < f.sequences[s].rows; r++) {
                const double kl = f.sequences[s].kl[r];
                if (top[i] == CAPTURE_ALL) EXPECT(fabs(kl - before[s][r]) <= 1e-9);
                if (!(kl >= before[s][r] - 1e-12))
                    FAIL("top %d: %g after %g", top[i], kl, before[s][r]);
                before[s][r] = kl;
            }
        }
        fidelity_free(&f);
    }
    EXPECT(before[0][4] > 0);
    kit_free(&k);
}

/* Of a sequence longer than one pass too. */
TEST(the_largest_logits_are_those_of_their_row)
{
    enum { LEN = 70, TOP = 8 };
    const kit k = kit_new(NULL);
    safetensors all, some;
    error e = { 0 };
    buf b;
    buf_init(&b, 1 << 16);
    for (int i = 0; i < LEN; i++)
        buf_printf(&b, "%s%d", i ? "," : "{\"sequences\":[[", i * 11 % 1000);
    buf_text(&b, "]]}");
    kit_write(&k, "tokens.json", buf_view(&b));
    buf_free(&b);
    capture(&k, "tokens.json", "all.safetensors", (capture_options){ .logits = CAPTURE_ALL });
    capture(&k, "tokens.json", "top.safetensors", (capture_options){ .logits = TOP });
    EXPECT_OK(safetensors_open(&all, kit_path(&k, "all.safetensors"), &e), e);
    EXPECT_OK(safetensors_open(&some, kit_path(&k, "top.safetensors"), &e), e);
    const tensor *logits = find(&all, "seq0.logits"), *values = find(&some, "seq0.top_logits");
    const tensor *ids = find(&some, "seq0.top_ids");
    for (int r = 0; r < LEN; r++) {
        float row[VOCAB], top[TOP];
        int32_t id[TOP];
        tensor_read_f32(logits, (int64_t)r * VOCAB, VOCAB, row);
        tensor_read_f32(values, (int64_t)r * TOP, TOP, top);
        memcpy(id, ids->data + sizeof id * (size_t)r, sizeof id);
        for (int i = 0; i < TOP; i++) {
            int above = 0;
            for (int v = 0; v < VOCAB; v++) above += row[v] > row[id[i]];
            EXPECT(above <= i && top[i] == row[id[i]]);
        }
    }
    safetensors_close(&all);
    safetensors_close(&some);
    kit_free(&k);
}

TEST(shards_merge_to_the_same_bits)
{
    const kit k = kit_new(NULL);
    error e = { 0 };
    buf got, want;
    write_tokens(&k, "tokens.json", MOST);
    const capture_options o = { .logits = 16, .hidden = { .every = 2 }, .f32 = true };
    capture(&k, "tokens.json", "all.safetensors", o);
    fidelity all = compare(&k, "all.safetensors", (fidelity_options){ 0 }), merged = { 0 };
    for (int i = 2; i >= 0; i--) {
        fidelity part =
            compare(&k, "all.safetensors", (fidelity_options){ .shard = i, .shards = 3 });
        EXPECT_OK(fidelity_write(&part, kit_path(&k, "part.json"), &e), e);
        EXPECT_OK(fidelity_read(&merged, kit_path(&k, "part.json"), &e), e);
        fidelity_free(&part);
    }
    buf_init(&got, 1 << 20);
    buf_init(&want, 1 << 20);
    EXPECT_OK(fidelity_report(&merged, true, &got, &e), e);
    EXPECT_OK(fidelity_report(&all, true, &want, &e), e);
    EXPECT(str_eq(buf_view(&got), buf_view(&want)));
    buf_free(&got);
    buf_free(&want);
    fidelity_free(&merged);
    fidelity_free(&all);
    kit_free(&k);
}

/* A capture may be made in shards, too: each holds its own sequences under their own numbers. */
TEST(a_capture_in_shards_is_the_capture)
{
    const kit k = kit_new(NULL);
    error e = { 0 };
    safetensors all;
    size_t tensors = 0;
    write_tokens(&k, "tokens.json", MOST);
    capture_options o = { .logits = CAPTURE_LAST, .hidden = { .every = 4 } };
    capture(&k, "tokens.json", "all.safetensors", o);
    EXPECT_OK(safetensors_open(&all, kit_path(&k, "all.safetensors"), &e), e);
    o.shards = 3;
    for (o.shard = 0; o.shard < 3; o.shard++) {
        safetensors s;
        capture(&k, "tokens.json", "part.safetensors", o);
        EXPECT_OK(safetensors_open(&s, kit_path(&k, "part.safetensors"), &e), e);
        for (size_t i = 0; i < s.count; i++, tensors++) {
            const tensor *t = &s.tensors[i], *w = safetensors_find(&all, t->name);
            EXPECT(w && w->bytes == t->bytes && memcmp(w->data, t->data, t->bytes) == 0);
        }
        safetensors_close(&s);
    }
    EXPECT_INT(tensors, all.count);
    safetensors_close(&all);
    o.shard = 4;
    o.shards = 5;
    o.king = TINY;
    o.tokens = kit_path(&k, "tokens.json");
    o.out = kit_path(&k, "none.safetensors");
    capture_report r;
    EXPECT_INT(capture_run(&o, &r, &e), E_ARG);
    EXPECT(strstr(e.text, "no sequence"));
    kit_free(&k);
}

/* Sequences far apart in number, as the last shard of many has them, are found. */
TEST(a_capture_with_few_sequences_of_high_number_is_read)
{
    const kit k = kit_new(NULL);
    write_teacher(&k, "teacher.safetensors", 4711);
    fidelity f = compare(&k, "teacher.safetensors", (fidelity_options){ 0 });
    EXPECT_INT(f.n, 1);
    EXPECT_INT(f.sequences[0].index, 4711);
    fidelity_free(&f);
    kit_free(&k);
}
