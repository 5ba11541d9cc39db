/* verify.c - see verify.h. */
#include "cli/verify.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "cli/argument.h"
#include "cli/command.h"
#include "base/banned.h"

enum { MOST_PROMPTS = 10000, MOST_FILE = 64 << 20, BESIDE = 8 };
enum { GREEDY, SAMPLED, PENALIZED, MANNERS };

static const char *const own_prompts[] = {
    "Hello!",
    "What is 12 + 7?",
    "Write a bubble sort in C++.",
    "Sort these words: pear, apple, fig.",
    "Which is larger, 31 or 13?",
    "Count from 1 to 9.",
    "What can you do?",
    "Repeat exactly: alpha beta gamma alpha beta gamma alpha beta gamma",
    /* several pages of positions */
    "Sort these words: pear, apple, fig, plum, lemon, melon, cherry, grape, peach, mango, kiwi, "
    "lime, date, olive, papaya, banana, orange, quince, guava, lychee, apricot, currant, medlar, "
    "nectarine, raspberry, blueberry, pomelo, tangerine, coconut, cranberry, gooseberry, damson.",
};

typedef struct tokens {
    int32_t *ids;
    int n;
} tokens;

typedef struct verify {
    setup *s;
    const verify_options *o;
    verify_result *out;
    char **prompts; /* [n] JSON arrays of messages */
    int n;
    tokens *plain;       /* [n * MANNERS] run i is prompt i / MANNERS in manner i % MANNERS */
    tokens *halves;      /* [n * MANNERS] prompt and the first half of the answer */
    int halved, resumed; /* answers that were gone on with, and of these from a cached state */
} verify;

/* ---- prompts ---- */

static status add_prompt(verify *v, str text, error *e)
{
    buf b;
    jsonw w;
    buf_init(&b, MOST_FILE);
    jsonw_init(&w, &b);
    jsonw_array(&w);
    jsonw_object(&w);
    jsonw_member_text(&w, "role", "user");
    jsonw_member_str(&w, "content", text);
    jsonw_end_object(&w);
    jsonw_end_array(&w);
    TRY(buf_status(&b, "prompt", e));
    v->prompts[v->n++] = buf_steal(&b);
    return OK;
}

static status read_prompts(verify *v, error *e)
{
    v->prompts = mem_array(MOST_PROMPTS, sizeof *v->prompts);
    if (!v->prompts) return error_set(e, E_NOMEM, "eval verify: out of memory");
    if (!v->o->prompts) {
        for (size_t i = 0; i < sizeof own_prompts / sizeof *own_prompts; i++)
            TRY(add_prompt(v, str_from(own_prompts[i]), e));
        return OK;
    }
    char *text;
    size_t len;
    TRY(argument_text(v->o->prompts, MOST_FILE, &text, &len, e));
    status s = OK;
    str rest = { text, len };
    while (s == OK && rest.len) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        const size_t n = end ? (size_t)(end - rest.ptr) : rest.len;
        const str line = str_trim((str){ rest.ptr, n });
        if (line.len && v->n == MOST_PROMPTS)
            s = error_set(e, E_LIMIT, "%s: more than %d prompts", v->o->prompts, MOST_PROMPTS);
        else if (line.len) s = add_prompt(v, line, e);
        rest = str_sub(rest, end ? n + 1 : n, rest.len);
    }
    mem_free(text);
    if (s == OK && v->n == 0) s = error_set(e, E_ARG, "%s: no prompt in it", v->o->prompts);
    return s;
}

/* ---- one run ---- */

/* Greedy; sampled with a seed; the same with penalties. */
static ingot_sampling manner(const verify *v, int which, int block)
{
    ingot_sampling s = INGOT_INIT(ingot_sampling);
    s.max_tokens = v->o->max_tokens;
    s.block = block;
    s.has_seed = true;
    s.seed = v->o->seed;
    s.no_copy = block != INGOT_BLOCK_AUTO;
    if (which != GREEDY) s.temperature = 1;
    if (which == PENALIZED) {
        s.presence_penalty = 0.5f;
        s.repetition_penalty = 1.1f;
        s.top_k = 40;
        s.top_p = 0.95f;
    }
    return s;
}

static status submit(const verify *v, int prompt, const ingot_sampling *s, ingot_request **r,
                     error *e)
{
    ingot_prompt p = INGOT_INIT(ingot_prompt);
    ingot_error ie;
    p.messages = v->prompts[prompt];
    return command_status(ingot_submit(r, v->s->engine, &p, s, &ie), &ie, e);
}

/* Waits for the end and copies the ids; releases r. cached (may be NULL): tokens of the prompt. */
static status collect(ingot_request *r, tokens *out, int *cached, error *e)
{
    ingot_event ev;
    status s = OK;
    *out = (tokens){ 0 };
    for (;;) {
        const ingot_status is = ingot_next(r, &ev, -1);
        if (is != INGOT_OK)
            s = error_set(e, (status)is, "eval verify: a request ended without a result");
        if (s || ev.kind == INGOT_END) break;
    }
    if (s == OK && ev.finish == INGOT_FINISH_ERROR)
        s = error_set(e, E_BUG, "eval verify: %s", ev.error);
    if (s == OK) {
        out->ids = mem_array((size_t)ev.n_ids + 1, sizeof *out->ids);
        if (!out->ids) s = error_set(e, E_NOMEM, "eval verify: out of memory");
        else if (ev.n_ids) memcpy(out->ids, ev.ids, sizeof *ev.ids * (size_t)ev.n_ids);
        out->n = ev.n_ids;
        if (cached) *cached = ev.usage->cached_tokens;
    }
    ingot_release(r);
    return s;
}

/* `got` is run i's answer from token `from` on. */
static void compare(verify *v, int i, const char *way, int from, const tokens *got)
{
    static const char *const manners[] = { "greedy", "sampled", "sampled with penalties" };
    const int32_t *want = v->plain[i].ids + from;
    const int n = v->plain[i].n - from;
    int at = 0;
    v->out->runs++;
    while (at < got->n && at < n && got->ids[at] == want[at]) at++;
    if ((at == got->n && at == n) || !v->out->identical) return;
    v->out->identical = false;
    snprintf(v->out->difference, sizeof v->out->difference,
             "prompt %d, %s, %s: token %d: found %d, plain has %d (lengths %d and %d)",
             i / MANNERS + 1, manners[i % MANNERS], way, from + at, at < got->n ? got->ids[at] : -1,
             at < n ? want[at] : -1, from + got->n, from + n);
}

static status run_and_compare(verify *v, int i, int block, bool copy, const char *way, error *e)
{
    ingot_sampling s = manner(v, i % MANNERS, block);
    s.no_copy = !copy;
    ingot_request *r;
    tokens got;
    TRY(submit(v, i / MANNERS, &s, &r, e));
    TRY(collect(r, &got, NULL, e));
    compare(v, i, way, 0, &got);
    mem_free(got.ids);
    return OK;
}

/* ---- the ways ---- */

static status restart(verify *v, const ingot_engine_options *o, error *e)
{
    if (v->s->engine) ingot_engine_stop(v->s->engine);
    v->s->engine = NULL;
    return setup_start(v->s, o, e);
}

static status run_plain(verify *v, error *e)
{
    digest *d;
    TRY(digest_open(&d, DIGEST_SHA256, e));
    status s = restart(v, NULL, e);
    for (int i = 0; s == OK && i < v->n * MANNERS; i++) {
        const ingot_sampling how = manner(v, i % MANNERS, INGOT_BLOCK_PLAIN);
        ingot_request *r;
        s = submit(v, i / MANNERS, &how, &r, e);
        if (s == OK) s = collect(r, &v->plain[i], NULL, e);
        if (s == OK) digest_put(d, v->plain[i].ids, sizeof(int32_t) * (size_t)v->plain[i].n);
        progress_draw(&v->s->bar, "plain", (uint64_t)i + 1, (uint64_t)(v->n * MANNERS));
    }
    digest_hex(d, v->out->sha256);
    return s;
}

static status run_all_with(verify *v, int block, bool copy, const char *way, error *e)
{
    for (int i = 0; i < v->n * MANNERS; i++) {
        TRY(run_and_compare(v, i, block, copy, way, e));
        progress_draw(&v->s->bar, way, (uint64_t)i + 1, (uint64_t)(v->n * MANNERS));
    }
    return OK;
}

static status run_all(verify *v, const char *way, error *e)
{
    return run_all_with(v, INGOT_BLOCK_AUTO, true, way, e);
}

static status run_blocks(verify *v, error *e)
{
    ingot_model_info info;
    char way[32];
    ingot_model_get_info(v->s->model, &info);
    for (int block = 2; block <= info.max_block; block++) {
        snprintf(way, sizeof way, "block %d", block);
        TRY(run_all_with(v, block, false, way, e));
    }
    TRY(run_all_with(v, info.max_block, true, "copies of a whole block", e));
    return run_all(v, "block auto, with copies", e);
}

static status run_chunks(verify *v, error *e)
{
    static const int chunks[] = { 1, 7, 48 };
    char way[32];
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        ingot_engine_options o = INGOT_INIT(ingot_engine_options);
        o.chunk = chunks[i];
        snprintf(way, sizeof way, "chunks of %d", chunks[i]);
        TRY(restart(v, &o, e));
        TRY(run_all(v, way, e));
    }
    return OK;
}

/* ---- resumed ---- */

/* The first half of the plain answer of run i, again: what it leaves behind is the beginning of
 * v->halves[i], its prompt and that half. */
static status first_half(verify *v, int i, error *e)
{
    const tokens *plain = &v->plain[i];
    const int half = plain->n / 2;
    /* penalties tell prompt and answer apart */
    if (i % MANNERS == PENALIZED || half == 0) return OK;
    ingot_sampling s = manner(v, i % MANNERS, INGOT_BLOCK_AUTO);
    s.max_tokens = half;
    ingot_request *r;
    tokens got, *whole = &v->halves[i];
    int n;
    TRY(submit(v, i / MANNERS, &s, &r, e));
    const int32_t *prompt = ingot_prompt_ids(r, &n);
    whole->ids = mem_array((size_t)(n + half), sizeof *whole->ids);
    if (whole->ids) {
        memcpy(whole->ids, prompt, (size_t)n * sizeof *prompt);
        memcpy(whole->ids + n, plain->ids, (size_t)half * sizeof *plain->ids);
        whole->n = n + half;
    }
    TRY(collect(r, &got, NULL, e));
    mem_free(got.ids);
    return whole->ids ? OK : error_set(e, E_NOMEM, "eval verify: out of memory");
}

/* The rest, from there. */
static status second_half(verify *v, int i, const char *way, error *e)
{
    const tokens *plain = &v->plain[i];
    tokens *whole = &v->halves[i], got;
    if (!whole->ids) return OK;
    ingot_sampling s = manner(v, i % MANNERS, INGOT_BLOCK_AUTO);
    s.max_tokens -= plain->n / 2;
    ingot_prompt p = INGOT_INIT(ingot_prompt);
    p.tokens = whole->ids;
    p.n_tokens = (size_t)whole->n;
    ingot_request *r;
    ingot_error ie;
    int cached;
    TRY(command_status(ingot_submit(&r, v->s->engine, &p, &s, &ie), &ie, e));
    TRY(collect(r, &got, &cached, e));
    compare(v, i, way, plain->n / 2, &got);
    mem_free(got.ids);
    v->halved++;
    v->resumed += cached >= whole->n - 1;
    mem_free(whole->ids);
    *whole = (tokens){ 0 };
    return OK;
}

/* Answers that go on in their middle, and whole prompts a second time. */
static status run_resumed(verify *v, const char *dir, error *e)
{
    ingot_engine_options o = INGOT_INIT(ingot_engine_options);
    const char *way = dir ? "resumed from disk" : "resumed from memory";
    o.cache_bytes = 1u << 30;
    o.cache_dir = dir;
    v->halved = v->resumed = 0;
    TRY(restart(v, &o, e));
    for (int i = 0; i < v->n * MANNERS; i++) {
        TRY(first_half(v, i, e));
        if (!dir) TRY(second_half(v, i, way, e));
    }
    TRY(run_all(v, "filling the cache", e));
    if (dir) TRY(restart(v, &o, e));
    for (int i = 0; dir && i < v->n * MANNERS; i++) TRY(second_half(v, i, way, e));
    if (v->halved && !v->resumed && v->out->identical) {
        v->out->identical = false;
        snprintf(v->out->difference, sizeof v->out->difference,
                 "%s: nothing was found of %d answers that had been begun", way, v->halved);
    }
    return run_all(v, way, e);
}

static status remove_one(void *arg, const char *name, error *e)
{
    char path[4096];
    TRY(file_join(path, sizeof path, arg, name, e));
    (void)unlink(path);
    return OK;
}

static status run_resumed_from_disk(verify *v, error *e)
{
    char dir[4096];
    const char *tmp = getenv("TMPDIR");
    const int n = snprintf(dir, sizeof dir, "%s/ingot-verify-XXXXXX", tmp ? tmp : "/tmp");
    if (n < 0 || (size_t)n >= sizeof dir || !mkdtemp(dir))
        return error_set(e, E_IO, "%s: cannot make a folder for the disk tier: %s", dir,
                         strerror(errno));
    status s = run_resumed(v, dir, e);
    if (v->s->engine) ingot_engine_stop(v->s->engine); /* it writes until it is stopped */
    v->s->engine = NULL;
    const status cleaned = file_list(dir, remove_one, dir, s ? NULL : e);
    (void)rmdir(dir);
    return s ? s : cleaned;
}

/* Eight at once in all manners; every third is cancelled after its first event and not compared. */
static status run_beside(verify *v, error *e)
{
    ingot_engine_options o = INGOT_INIT(ingot_engine_options);
    o.parallel = BESIDE;
    TRY(restart(v, &o, e));
    status s = OK;
    for (int first = 0; s == OK && first < v->n * MANNERS; first += BESIDE) {
        ingot_request *r[BESIDE] = { NULL };
        int n = 0;
        for (; s == OK && n < BESIDE && first + n < v->n * MANNERS; n++) {
            const int i = first + n;
            const ingot_sampling how =
                manner(v, i % MANNERS, i % 2 ? INGOT_BLOCK_AUTO : INGOT_BLOCK_PLAIN);
            s = submit(v, i / MANNERS, &how, &r[n], e);
        }
        for (int k = 0; k < n; k++) {
            tokens got;
            ingot_event ev;
            if (!r[k]) continue;
            if (k % 3 == 2) {
                ingot_next(r[k], &ev, 1000);
                ingot_release(r[k]);
                continue;
            }
            const status one = collect(r[k], &got, NULL, s ? NULL : e);
            if (s == OK) s = one;
            if (one == OK) compare(v, first + k, "beside others", 0, &got);
            mem_free(got.ids);
        }
        progress_draw(&v->s->bar, "beside others", (uint64_t)(first + n),
                      (uint64_t)(v->n * MANNERS));
    }
    return s;
}

status verify_run(setup *s, const verify_options *o, verify_result *out, error *e)
{
    *out = (verify_result){ .identical = true };
    verify v = { .s = s, .o = o, .out = out };
    s->bar.bytes = false;
    status st = read_prompts(&v, e);
    const size_t runs = (size_t)(v.n ? v.n : 1) * MANNERS;
    v.plain = mem_array(runs, sizeof *v.plain);
    v.halves = mem_array(runs, sizeof *v.halves);
    if (st == OK && (!v.plain || !v.halves))
        st = error_set(e, E_NOMEM, "eval verify: out of memory");
    if (st == OK) st = run_plain(&v, e);
    if (st == OK) st = run_blocks(&v, e);
    if (st == OK) st = run_chunks(&v, e);
    if (st == OK) st = run_resumed(&v, NULL, e);
    if (st == OK) st = run_resumed_from_disk(&v, e);
    if (st == OK) st = run_beside(&v, e);
    progress_clear(&s->bar);
    out->prompts = v.n;
    for (int i = 0; v.plain && i < v.n * MANNERS; i++) mem_free(v.plain[i].ids);
    for (int i = 0; v.halves && i < v.n * MANNERS; i++) mem_free(v.halves[i].ids);
    for (int i = 0; i < v.n; i++) mem_free(v.prompts[i]);
    mem_free(v.plain);
    mem_free(v.halves);
    mem_free(v.prompts);
    return st;
}
