/* record.c - makes the data of this folder (see README.md): not built by default.
 *
 *   record traces   answers of nugget to prompts.json, and how many drafts would have been right,
 *                   by position and block
 *   record costs    seconds of passes by rows of KING and DRAFTER (folders, in the environment);
 *                   random weights will do */
#include "base/clock.h"
#include "base/jsonw.h"
#include "nugget.h"
#undef NUGGET
#include "model_fixture.h"

enum { MOST = 8, ROWS = 16, MOST_TOKENS = 1024, MOST_OUTPUT = 400, SEED = 7, TURNS = 9 };

/* Prompt and output of one request. */
typedef struct answer {
    int32_t ids[MOST_TOKENS];
    int n_prompt, n, thought;
    float temperature;
} answer;

typedef struct recorder {
    fixture f;
    pack *p;
    drafter *d;
    drafter_work *w;
    state *s;
    drafter_state *draft;
    int n_token;
} recorder;

static void open_all(recorder *r, const char *folder, const char *draft, int threads)
{
    error e;
    fixture *f = &r->f;
    fixture_open(f, (fixture_options){ .folder = folder,
                                       .mode = COMPUTE_INT8,
                                       .kv = KV_F16,
                                       .threads = threads,
                                       .rows = 1 });
    EXPECT_OK(pack_open(&r->p, draft, NULL, &e), e);
    EXPECT_OK(drafter_open(&r->d, r->p, f->k, f->c, &(load_options){ .mode = COMPUTE_INT8 }, &e),
              e);
    EXPECT_OK(drafter_work_new(&r->w, r->d, ROWS, &e), e);
    EXPECT_OK(drafter_state_new(&r->draft, r->d, &e), e);
    const drafter_config *dc = drafter_get_config(r->d);
    king_work_free(f->w);
    EXPECT_OK(king_work_new(&f->w, f->k, ROWS, ROWS, dc->tap, dc->n_tap, &e), e);
    r->s = fixture_state(f);
    r->n_token = f->config->n_vocab;
}

/* Runs one token and gives its taps to the drafter. */
static void feed(recorder *r, int32_t id)
{
    const king_job job = fixture_pass(&r->f, r->s, &id, 1, ROWS_FINAL, 1);
    const draft_append append = { r->draft, job.taps, 1 };
    drafter_append(r->d, r->f.c, r->w, &append, 1);
}

/* How many of the block - 1 drafts after ids[at] are the tokens that came. */
static int right_drafts(recorder *r, const int32_t *ids, int at, int n, int block,
                        float temperature)
{
    int32_t drafts[MOST];
    draft_job job = { .state = r->draft,
                      .anchor = ids[at],
                      .block = block,
                      .temperature = temperature,
                      .seed = SEED,
                      .n_vocab = r->n_token,
                      .drafts = drafts };
    drafter_draft(r->d, r->f.c, r->w, r->f.k, r->f.w, &job, 1);
    int right = 0;
    while (right < block - 1 && at + 1 + right < n && drafts[right] == ids[at + 1 + right]) right++;
    return right;
}

static void put_ids(jsonw *w, const char *key, const int32_t *ids, int n)
{
    jsonw_member_array(w, key);
    for (int i = 0; i < n; i++) jsonw_i64(w, ids[i]);
    jsonw_end_array(w);
}

static void trace(recorder *r, const answer *a, str kind, jsonw *w)
{
    static char right[MOST + 1][MOST_TOKENS + 1];
    const int n = a->n_prompt + a->n;
    state_reset(r->s);
    drafter_state_reset(r->draft, 0);
    for (int at = 0; at < n; at++) {
        for (int b = 2; at >= a->n_prompt && b <= MOST; b++)
            right[b][at - a->n_prompt] =
                (char)('0' + right_drafts(r, a->ids, at, n, b, a->temperature));
        feed(r, a->ids[at]);
    }
    jsonw_object(w);
    jsonw_member_str(w, "kind", kind);
    put_ids(w, "prompt", a->ids, a->n_prompt);
    put_ids(w, "output", a->ids + a->n_prompt, a->n);
    jsonw_member_i64(w, "thought", a->thought);
    jsonw_member_array(w, "right");
    for (int b = 2; b <= MOST; b++) jsonw_str(w, (str){ right[b], (size_t)a->n });
    jsonw_end_array(w);
    jsonw_end_object(w);
}

/* The answer of the small king, with its prompt as ids. */
static void ask(ingot_model *m, ingot_engine *g, str text, bool thinking, answer *a)
{
    buf messages;
    nugget_result r;
    ingot_error e;
    ingot_text rendered;
    ingot_tokens ids;
    buf_init(&messages, 1 << 16);
    buf_text(&messages, "[{\"role\":\"user\",\"content\":\"");
    jsonw_escape(&messages, text);
    buf_text(&messages, "\"}]");
    buf_char(&messages, '\0');
    ingot_prompt p = INGOT_INIT(ingot_prompt);
    p.messages = messages.ptr;
    p.thinking = thinking ? INGOT_THINKING_ON : INGOT_THINKING_OFF;
    ingot_sampling s = INGOT_INIT(ingot_sampling);
    s.max_tokens = MOST_OUTPUT;
    s.temperature = a->temperature;
    s.has_seed = true;
    s.seed = SEED;
    s.block = INGOT_BLOCK_PLAIN;
    nugget_run(g, &p, &s, &r);
    INGOT_EXPECT_OK(ingot_render(m, &p, &rendered, &e), e);
    INGOT_EXPECT_OK(ingot_tokenize(m, rendered.ptr, rendered.len, INGOT_SPECIAL_ALL, &ids, &e), e);
    a->n_prompt = (int)ids.len;
    a->n = r.n;
    EXPECT(a->n_prompt + a->n <= MOST_TOKENS);
    memcpy(a->ids, ids.ids, ids.len * sizeof *a->ids);
    memcpy(a->ids + a->n_prompt, r.ids, (size_t)r.n * sizeof *a->ids);
    a->thought = r.usage.reasoning_tokens;
    ingot_tokens_free(&ids);
    ingot_text_free(&rendered);
    nugget_free(&r);
    buf_free(&messages);
}

/* ---- costs ---- */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double pass(recorder *r, int rows, bool logits)
{
    static const int32_t tokens[ROWS];
    error e;
    EXPECT_OK(state_begin(r->s, rows, ROWS_PROVISIONAL, &e), e);
    king_job job = { .state = r->s, .tokens = tokens, .n = rows, .logits_from = logits ? 0 : rows };
    const int64_t start = clock_ns();
    king_forward(r->f.k, r->f.c, r->f.w, &job, 1, NULL);
    const int64_t end = clock_ns();
    state_commit(r->s, 0);
    return (double)(end - start) * 1e-6;
}

static double draft_pass(recorder *r, int block)
{
    int32_t drafts[MOST];
    draft_job job = { .state = r->draft, .block = block, .n_vocab = r->n_token, .drafts = drafts };
    const int64_t start = clock_ns();
    drafter_draft(r->d, r->f.c, r->w, r->f.k, r->f.w, &job, 1);
    return (double)(clock_ns() - start) * 1e-6;
}

/* What a drafted step adds to that: the rows that the step before has committed. */
static double append_pass(recorder *r, int rows)
{
    const size_t width = (size_t)drafter_get_config(r->d)->n_tap * (size_t)r->f.config->n_embd;
    float *taps = mem_array(width * (size_t)rows, sizeof *taps);
    EXPECT(taps);
    drafter_state_reset(r->draft, 0);
    const draft_append job = { r->draft, taps, rows };
    const int64_t start = clock_ns();
    drafter_append(r->d, r->f.c, r->w, &job, 1);
    const int64_t end = clock_ns();
    mem_free(taps);
    return (double)(end - start) * 1e-6;
}

static void put_quickest(jsonw *w, const char *name, double (*t)[TURNS], int from, int to)
{
    jsonw_member_array(w, name);
    for (int n = from; n <= to; n++) {
        qsort(t[n], TURNS, sizeof t[n][0], by_value);
        jsonw_fixed(w, t[n][0], 2);
    }
    jsonw_end_array(w);
}

static void costs(recorder *r, jsonw *w)
{
    static double full[ROWS + 1][TURNS], bare[ROWS + 1][TURNS], drafting[ROWS + 1][TURNS],
        appending[ROWS + 1][TURNS];
    for (int turn = -1; turn < TURNS; turn++) { /* the first one warms up */
        const int k = turn < 0 ? 0 : turn;
        for (int n = 1; n <= ROWS; n++) {
            full[n][k] = pass(r, n, true);
            bare[n][k] = pass(r, n, false);
        }
        for (int b = 2; b <= MOST; b++) drafting[b][k] = draft_pass(r, b);
        for (int n = 1; n <= MOST; n++) appending[n][k] = append_pass(r, n);
    }
    jsonw_object(w);
    jsonw_member_text(w, "kernels", compute_tier(r->f.c));
    jsonw_member_i64(w, "threads", compute_threads(r->f.c));
    jsonw_member_i64(w, "layers", r->f.config->n_layer);
    put_quickest(w, "pass_ms", full, 1, ROWS);
    put_quickest(w, "without_head_ms", bare, 1, ROWS);
    put_quickest(w, "draft_ms", drafting, 2, MOST);
    put_quickest(w, "append_ms", appending, 1, MOST);
    jsonw_end_object(w);
}

static const char *setting(const char *name)
{
    const char *value = getenv(name);
    if (!value) FAIL("%s is not set", name);
    return value;
}

TEST(costs)
{
    recorder r = { 0 };
    buf out;
    jsonw w;
    buf_init(&out, 1 << 24);
    jsonw_init(&w, &out);
    open_all(&r, setting("KING"), setting("DRAFTER"), 2);
    costs(&r, &w);
    printf("%.*s\n", STR_ARG(buf_view(&out)));
    buf_free(&out);
}

TEST(traces)
{
    static answer a;
    recorder r = { 0 };
    buf out;
    jsonw w;
    error e;
    json_doc *doc;
    ingot_model_info info;
    ingot_model *m = nugget_open(1, NULL);
    ingot_engine *g = nugget_start(m, 1, 0);
    ingot_model_get_info(m, &info);
    open_all(&r, NUGGET "king", NUGGET "drafter-q8", 1);
    r.n_token = info.n_token;
    EXPECT_OK(json_parse_file(&doc, TEST_ROOT "/tests/golden/replay/prompts.json", 1 << 20, 0, &e),
              e);
    buf_init(&out, 1 << 24);
    buf_text(&out, "[\n");
    str kind, text;
    const json_node *prompts;
    for (void *it = NULL; json_each(json_root(doc), &it, &kind, &prompts);) {
        for (size_t i = 0; i < 2 * json_len(prompts); i++) {
            EXPECT(json_str(json_at(prompts, i / 2), &text));
            a.temperature = i % 2 ? 0.8f : 0;
            ask(m, g, text, (i / 2 + i) % 2 == 0, &a);
            if (out.len > 2) buf_text(&out, ",\n");
            jsonw_init(&w, &out);
            trace(&r, &a, kind, &w);
        }
    }
    buf_text(&out, "\n]\n");
    fwrite(out.ptr, 1, out.len, stdout);
    buf_free(&out);
    json_free(doc);
    ingot_engine_stop(g);
    ingot_model_close(m);
}
