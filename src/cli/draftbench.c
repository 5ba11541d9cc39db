/* draftbench.c - see draftbench.h. */
#include "cli/draftbench.h"

#include "base/buf.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "cli/command.h"
#include "tools/timing.h"
#include "base/banned.h"

enum { MOST_TURNS = 64 };

/* Of kinds that differ in how well they can be guessed. */
static const char *const prompts[DRAFTBENCH_PROMPTS] = {
    "Write a bubble sort in C++.",
    "What is 48 + 37?",
    "Hello! What can you do?",
    "Tell me a short story about a river.",
    "Repeat exactly: alpha beta gamma delta alpha beta gamma delta",
    "Extract the name and the city as JSON: Anna lives in Paris.",
};

typedef struct run {
    double seconds[MOST_TURNS];
    timing time; /* of these */
    char sha256[65];
    ingot_usage usage; /* of the last turn */
} run;

typedef struct bench {
    setup *s;
    const draftbench_options *o;
    draftbench_result *r;
    run (*runs)[DRAFTBENCH_PROMPTS]; /* [n_blocks] */
} bench;

static status submit(const bench *b, int prompt, int block, ingot_request **r, error *e)
{
    buf messages;
    jsonw w;
    ingot_error ie;
    ingot_prompt p = INGOT_INIT(ingot_prompt);
    ingot_sampling how = INGOT_INIT(ingot_sampling);
    how.max_tokens = b->o->max_tokens;
    how.block = block;
    how.no_copy = block != INGOT_BLOCK_AUTO;
    buf_init(&messages, 1 << 16);
    jsonw_init(&w, &messages);
    jsonw_array(&w);
    jsonw_object(&w);
    jsonw_member_text(&w, "role", "user");
    jsonw_member_text(&w, "content", prompts[prompt]);
    jsonw_end_object(&w);
    jsonw_end_array(&w);
    status s = buf_status(&messages, "prompt", e);
    p.messages = messages.ptr;
    if (s == OK) s = command_status(ingot_submit(r, b->s->engine, &p, &how, &ie), &ie, e);
    buf_free(&messages);
    return s;
}

static status time_one(const bench *b, int prompt, int block, run *out, int turn, error *e)
{
    ingot_request *r;
    ingot_event ev;
    TRY(submit(b, prompt, block, &r, e));
    do {
        const ingot_status is = ingot_next(r, &ev, -1);
        if (is != INGOT_OK) {
            ingot_release(r);
            return error_set(e, (status)is, "bench: a request ended without a result");
        }
    } while (ev.kind != INGOT_END);
    out->usage = *ev.usage;
    memcpy(out->sha256, ev.usage->sha256, sizeof out->sha256);
    if (turn >= 0) out->seconds[turn] = ev.usage->decode_s;
    ingot_release(r);
    return OK;
}

static status time_all(bench *b, error *e)
{
    for (int turn = -1; turn < b->o->turns; turn++) /* the first one warms up */
        for (int p = 0; p < DRAFTBENCH_PROMPTS; p++)
            for (int i = 0; i < b->r->n_blocks; i++) {
                run *one = &b->runs[i][p];
                TRY(time_one(b, p, b->r->blocks[i].block, one, turn, e));
                if (strcmp(one->sha256, b->runs[0][p].sha256) != 0)
                    return error_set(
                        e, E_BUG,
                        "bench: block %d gave other tokens than plain decoding for \"%s\"",
                        b->r->blocks[i].block, prompts[p]);
                progress_draw(&b->s->bar, "drafting",
                              (uint64_t)(turn + 1) * DRAFTBENCH_PROMPTS + (uint64_t)p,
                              (uint64_t)(b->o->turns + 1) * DRAFTBENCH_PROMPTS);
            }
    return OK;
}

static void count_drafts(const bench *b, int i, draftbench_figure *f)
{
    int steps = 0, decoded = 0, drafted = 0, accepted = 0, drafted_at[INGOT_MAX_BLOCK] = { 0 },
        accepted_at[INGOT_MAX_BLOCK] = { 0 };
    for (int p = 0; p < DRAFTBENCH_PROMPTS; p++) {
        const ingot_usage *u = &b->runs[i][p].usage;
        steps += u->steps;
        decoded += u->decoded_tokens;
        drafted += u->drafted;
        accepted += u->accepted;
        for (int k = 0; k < INGOT_MAX_BLOCK; k++) {
            drafted_at[k] += u->drafted_at[k];
            accepted_at[k] += u->accepted_at[k];
        }
    }
    f->tokens_per_step = steps ? (double)decoded / steps : 0;
    f->acceptance = drafted ? (double)accepted / drafted : 0;
    for (int k = 0; k < INGOT_MAX_BLOCK && drafted_at[k]; k++)
        f->by_position[f->n_positions++] = (double)accepted_at[k] / drafted_at[k];
}

static void summarise(bench *b)
{
    double plain = 0;
    for (int i = 0; i < b->r->n_blocks; i++) {
        draftbench_figure *f = &b->r->blocks[i];
        timing all = { 0 };
        int tokens = 0;
        for (int p = 0; p < DRAFTBENCH_PROMPTS; p++) {
            run *one = &b->runs[i][p];
            one->time = timing_of(one->seconds, b->o->turns);
            all.least += one->time.least;
            all.most += one->time.most;
            all.median += one->time.median;
            tokens += one->usage.decoded_tokens;
        }
        if (i == 0) plain = all.median;
        f->tok_s = all.median > 0 ? tokens / all.median : 0;
        f->spread = timing_spread(all);
        f->ratio = all.median > 0 ? plain / all.median : 0;
        count_drafts(b, i, f);
    }
    const int last = b->r->n_blocks - 1; /* auto */
    for (int p = 0; p < DRAFTBENCH_PROMPTS; p++) {
        const double own = b->runs[last][p].time.median;
        b->r->prompts[p] = prompts[p];
        b->r->auto_ratio[p] = own > 0 ? b->runs[0][p].time.median / own : 0;
        const ingot_usage *u = &b->runs[last][p].usage;
        b->r->auto_acceptance[p] = u->drafted ? (double)u->accepted / u->drafted : 0;
    }
}

status draftbench_run(setup *s, const draftbench_options *o, draftbench_result *r, error *e)
{
    static const int wanted[] = { 2, 3, 4, 5, 6, 8 };
    ingot_model_info info;
    *r = (draftbench_result){ 0 };
    if (o->turns < 1 || o->turns > MOST_TURNS)
        return error_set(e, E_ARG, "--repeat: found %d, want 1 to %d", o->turns, MOST_TURNS);
    ingot_model_get_info(s->model, &info);
    r->blocks[r->n_blocks++].block = INGOT_BLOCK_PLAIN;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (wanted[i] <= info.max_block) r->blocks[r->n_blocks++].block = wanted[i];
    r->blocks[r->n_blocks++].block = INGOT_BLOCK_AUTO;
    bench b = { .s = s, .o = o, .r = r, .runs = mem_array((size_t)r->n_blocks, sizeof *b.runs) };
    if (!b.runs) return error_set(e, E_NOMEM, "bench: out of memory");
    s->bar.bytes = false;
    const status st = time_all(&b, e);
    progress_clear(&s->bar);
    if (st == OK) summarise(&b);
    mem_free(b.runs);
    return st;
}
