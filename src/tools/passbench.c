/* passbench.c - see passbench.h. */
#include "tools/passbench.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "tools/bandwidth.h"
#include "tools/inspect.h"
#include "tools/timing.h"
#include "base/banned.h"

enum {
    CHUNK = 512,
    MOST_TURNS = 64,
    DECODE_STEPS = 4,
    READ_BYTES = 1 << 30,
    MOST_READS = MOST_TURNS * (PASSBENCH_MOST + 1),
};

typedef struct bench {
    const passbench_options *o;
    passbench_result *r;
    pack *pack;
    compute *c;
    king *k;
    king_work *work;
    state_pool *pages;
    state *state;
    int32_t ids[CHUNK];
    float *noise; /* [CHUNK, n_kv_head * head_dim] */
    void *fresh;  /* READ_BYTES, for the bandwidth */
    double reads[MOST_READS];
    int n_reads;
    int max_len;
    uint64_t done, total; /* timed parts, for the progress */
} bench;

static passbench_figure summarise(double *t, int n)
{
    const timing time = timing_of(t, n);
    return (passbench_figure){ time.median, timing_spread(time) };
}

static void told(bench *b)
{
    b->done++;
    if (b->o->progress) b->o->progress(b->o->progress_arg, "measuring", b->done, b->total);
}

/* One pass; rows are kept when `final`, taken back otherwise. Returns seconds. */
static double pass(bench *b, int n, int logits_from, row_kind kind, int keep)
{
    king_job job = { .state = b->state, .tokens = b->ids, .n = n, .logits_from = logits_from };
    CHECK(state_begin(b->state, n, kind, NULL) == OK); /* max_len was reserved */
    const int64_t start = clock_ns();
    king_forward(b->k, b->c, b->work, &job, 1, NULL);
    const int64_t end = clock_ns();
    state_commit(b->state, keep);
    return (double)(end - start) * 1e-9;
}

static double prefill(bench *b, int length)
{
    double seconds = 0;
    for (int at = 0; at < length; at += CHUNK) {
        const int n = length - at < CHUNK ? length - at : CHUNK;
        seconds += pass(b, n, at + n == length ? n - 1 : n, ROWS_FINAL, n);
    }
    return seconds;
}

static void time_rows(bench *b)
{
    double t[PASSBENCH_ROWS + 1][MOST_TURNS];
    state_reset(b->state);
    pass(b, 1, 1, ROWS_FINAL, 1);
    for (int turn = -1; turn < b->o->turns; turn++) /* the first one warms up */
        for (int n = 1; n <= PASSBENCH_ROWS; n++) {
            const double s = pass(b, n, 0, ROWS_PROVISIONAL, 0);
            if (turn >= 0) t[n][turn] = s;
            told(b);
        }
    for (int n = 1; n <= PASSBENCH_ROWS; n++) b->r->rows[n] = summarise(t[n], b->o->turns);
}

static void time_prefill(bench *b)
{
    double t[PASSBENCH_MOST][MOST_TURNS];
    for (int turn = 0; turn < b->o->turns; turn++)
        for (int i = 0; i < b->r->n_lengths; i++) {
            state_reset(b->state);
            t[i][turn] = prefill(b, b->r->lengths[i]);
            told(b);
        }
    for (int i = 0; i < b->r->n_lengths; i++) b->r->prefill[i] = summarise(t[i], b->o->turns);
}

/* Positions up to `depth` with keys and values that nobody computed. */
static void pretend(bench *b, int depth)
{
    const king_config *kc = king_get_config(b->k);
    state_reset(b->state);
    while (state_len(b->state) < depth) {
        const int left = depth - state_len(b->state), n = left < CHUNK ? left : CHUNK;
        CHECK(state_begin(b->state, n, ROWS_FINAL, NULL) == OK); /* max_len was reserved */
        const attn_job job = state_attn_job(b->state, 0);
        for (int layer = 0; layer < kc->n_attention; layer++)
            compute_kv_store(b->c, state_pool_layout(b->pages), layer, b->noise, b->noise, &job, 1);
        state_passed(b->state);
        state_commit(b->state, n);
    }
}

static void time_read(bench *b)
{
    b->reads[b->n_reads++] = bandwidth_time(compute_pool(b->c), b->fresh, READ_BYTES);
}

/* The bandwidth is measured between the passes: what else the machine does slows both alike. */
static void time_decode(bench *b)
{
    double one[MOST_TURNS], block[MOST_TURNS];
    for (int i = 0; i < b->r->n_depths; i++) {
        pretend(b, b->r->depths[i]);
        for (int turn = -1; turn < b->o->turns; turn++) { /* the first one warms up */
            double s = 0;
            for (int step = 0; step < DECODE_STEPS; step++) s += pass(b, 1, 0, ROWS_PROVISIONAL, 1);
            const double of_block = pass(b, PASSBENCH_BLOCK, 0, ROWS_PROVISIONAL, 0);
            if (turn >= 0) one[turn] = s / DECODE_STEPS;
            if (turn >= 0) block[turn] = of_block;
            if (turn >= 0) time_read(b);
            told(b);
        }
        b->r->decode[i] = summarise(one, b->o->turns);
        b->r->verify[i] = summarise(block, b->o->turns);
    }
}

/* ---- opening ---- */

/* What fits the model's context, in the order given. */
static int fitting(int *to, const int *from, int n, int most)
{
    int kept = 0;
    for (int i = 0; i < n; i++)
        if (from[i] <= most) to[kept++] = from[i];
    return kept;
}

static void describe(bench *b)
{
    passbench_result *r = b->r;
    const king_config *kc = king_get_config(b->k);
    const double head = (double)kc->n_vocab * kc->n_embd;
    r->threads = compute_threads(b->c);
    snprintf(r->tier, sizeof r->tier, "%s", compute_tier(b->c));
    r->pass_bytes = king_tile_bytes(b->k) + 2 * sizeof(float) * (uint64_t)kc->n_gdn *
                                                (uint64_t)kc->gdn_v_heads *
                                                (uint64_t)kc->gdn_k_dim * (uint64_t)kc->gdn_v_dim;
    r->kv_token_bytes = state_pool_layout(b->pages)->page_bytes / KV_PAGE;
    r->macs_per_token = (double)inspect_parameters(b->pack) - (kc->tied ? 1 : 2) * head;
}

static status open_all(bench *b, error *e)
{
    const passbench_options *o = b->o;
    const compute_options co = { o->cpu, o->threads };
    loading_watch watch = { o->progress, o->tiles.notice, o->progress_arg };
    const load_options ko = loading_of(COMPUTE_INT8, &o->tiles, &watch);
    kv_layout layout;
    TRY(pack_open(&b->pack, o->king, NULL, e));
    if (!pack_king(b->pack))
        return error_set(e, E_UNSUPPORTED, "%s: found a drafter, want a king", o->king);
    TRY(compute_open(&b->c, &co, e));
    TRY(king_open(&b->k, b->pack, b->c, &ko, e));
    const king_config *kc = king_get_config(b->k);
    const int spare = (o->turns + 1) * DECODE_STEPS + PASSBENCH_ROWS + 1;
    b->r->n_lengths =
        o->prefill ? fitting(b->r->lengths, o->lengths, o->n_lengths, kc->max_positions - spare)
                   : 0;
    b->r->n_depths =
        o->decode ? fitting(b->r->depths, o->depths, o->n_depths, kc->max_positions - spare) : 0;
    for (int i = 0; i < b->r->n_lengths; i++)
        b->max_len = b->r->lengths[i] > b->max_len ? b->r->lengths[i] : b->max_len;
    for (int i = 0; i < b->r->n_depths; i++)
        b->max_len = b->r->depths[i] > b->max_len ? b->r->depths[i] : b->max_len;
    b->max_len += spare;
    kv_type kv;
    TRY(compute_kv_type(&kv, o->kv_type, e));
    TRY(compute_kv_layout(&layout, kv, kc->n_attention, kc->n_kv_head, kc->head_dim, e));
    TRY(state_pool_new(&b->pages, &layout, b->max_len / KV_PAGE + 2, e));
    TRY(state_new(&b->state, kc, b->pages, b->max_len, e));
    TRY(king_work_new(&b->work, b->k, CHUNK, PASSBENCH_ROWS, NULL, 0, e));
    rng g = { 1 };
    for (int i = 0; i < CHUNK; i++) b->ids[i] = (int32_t)rng_below(&g, (uint32_t)kc->n_vocab);
    const size_t n = (size_t)CHUNK * (size_t)kc->n_kv_head * (size_t)kc->head_dim;
    b->noise = mem_array(n, sizeof *b->noise);
    if (!b->noise) return error_set(e, E_NOMEM, "bench: no memory");
    for (size_t i = 0; i < n; i++) b->noise[i] = (float)rng_normal(&g);
    return bandwidth_buffer(compute_pool(b->c), READ_BYTES, &b->fresh, e);
}

static void count_parts(bench *b)
{
    const int turns = b->o->turns;
    if (b->o->rows) b->total += (uint64_t)(PASSBENCH_ROWS * (turns + 1));
    b->total += (uint64_t)(b->r->n_lengths * turns + b->r->n_depths * (turns + 1));
}

status passbench_run(const passbench_options *o, passbench_result *r, error *e)
{
    *r = (passbench_result){ 0 };
    bench b = { .o = o, .r = r };
    if (o->turns < 1 || o->turns > MOST_TURNS)
        return error_set(e, E_ARG, "--repeat: found %d, want 1 to %d", o->turns, MOST_TURNS);
    status s = open_all(&b, e);
    if (s == OK) {
        describe(&b);
        count_parts(&b);
        for (int turn = 0; turn < o->turns; turn++) time_read(&b);
        if (o->rows) time_rows(&b);
        if (o->cooldown_s) clock_sleep_ms(o->cooldown_s * 1000);
        time_prefill(&b);
        if (o->cooldown_s) clock_sleep_ms(o->cooldown_s * 1000);
        time_decode(&b);
        const passbench_figure read = summarise(b.reads, b.n_reads);
        r->read_gb_s = READ_BYTES / read.seconds * 1e-9;
        r->read_spread = read.spread;
    }
    if (b.fresh) mem_unmap(b.fresh, READ_BYTES);
    mem_free(b.noise);
    if (b.work) king_work_free(b.work);
    if (b.state) state_free(b.state);
    if (b.pages) state_pool_free(b.pages);
    if (b.k) king_close(b.k);
    if (b.c) compute_close(b.c);
    if (b.pack) pack_close(b.pack);
    return s;
}
