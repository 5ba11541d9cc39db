/* nugget.h - for tests: the small king and its drafter through the public header, and one
 * generation as a value. */
#ifndef NUGGET_H
#define NUGGET_H
#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "ingot/ingot.h"
#include "test.h"

#define NUGGET TEST_ROOT "/models/nugget"
#define INGOT_EXPECT_OK(call, e)                                 \
    do {                                                         \
        if ((call) != INGOT_OK) FAIL("%s: %s", #call, (e).text); \
    } while (0)

static inline ingot_model *nugget_open(int threads, const char *drafter)
{
    ingot_model_options o = INGOT_INIT(ingot_model_options);
    o.king = NUGGET "/king";
    o.drafter = drafter;
    o.threads = threads;
    ingot_model *m;
    ingot_error e;
    INGOT_EXPECT_OK(ingot_model_open(&m, &o, &e), e);
    return m;
}

static inline ingot_engine *nugget_start(ingot_model *m, int parallel, int chunk)
{
    ingot_engine_options o = INGOT_INIT(ingot_engine_options);
    o.context = 2048;
    o.parallel = parallel;
    o.chunk = chunk;
    ingot_engine *g;
    ingot_error e;
    INGOT_EXPECT_OK(ingot_engine_start(&g, m, &o, &e), e);
    return g;
}

/* The prompts of golden.json as token ids. */
enum { NUGGET_PROMPTS = 12 };
static json_doc *nugget_golden;
static inline const json_node *nugget_case(int i)
{
    error e;
    if (!nugget_golden)
        EXPECT_OK(json_parse_file(&nugget_golden, NUGGET "/golden.json", 1 << 20, 0, &e), e);
    return json_at(json_get(json_root(nugget_golden), "prompts"), (size_t)i);
}
static inline int nugget_ids(const json_node *array, int32_t *out, int cap)
{
    const int n = (int)json_len(array);
    EXPECT(n <= cap);
    for (int i = 0; i < n; i++) {
        int64_t v;
        EXPECT(json_i64(json_at(array, (size_t)i), &v));
        out[i] = (int32_t)v;
    }
    return n;
}
static inline ingot_prompt nugget_prompt(int i, int32_t *ids, int cap)
{
    ingot_prompt p = INGOT_INIT(ingot_prompt);
    p.n_tokens = (size_t)nugget_ids(json_get(nugget_case(i), "prompt_ids"), ids, cap);
    p.tokens = ids;
    return p;
}

/* What came out of one choice. */
typedef struct nugget_result {
    int32_t ids[2048];
    int n;
    buf text, thinking, calls;
    ingot_usage usage;
    ingot_finish finish;
    int32_t step_accepted[2048];
    float logprob[2048];
    int n_logprobs;
    uint64_t tops; /* a hash of all ids and values of the alternatives */
    char stop[64];
} nugget_result;

static inline void nugget_take(nugget_result *r, const ingot_event *ev)
{
    for (int i = 0; i < ev->n_logprobs; i++) {
        const ingot_logprob *l = &ev->logprobs[i];
        r->logprob[r->n_logprobs++] = l->logprob;
        for (int k = 0; k < l->n_top; k++) {
            uint32_t bits;
            memcpy(&bits, &l->top[k].logprob, sizeof bits);
            r->tops = r->tops * 0x9e3779b97f4a7c15u + bits;
            r->tops = r->tops * 0x9e3779b97f4a7c15u + (uint32_t)l->top[k].id;
        }
    }
    switch (ev->kind) {
    case INGOT_TEXT: buf_put(&r->text, ev->text, ev->len); break;
    case INGOT_THINKING: buf_put(&r->thinking, ev->text, ev->len); break;
    case INGOT_TOOL_BEGIN:
    case INGOT_TOOL_ARGUMENTS: buf_put(&r->calls, ev->text, ev->len); break;
    case INGOT_END:
        r->n = ev->n_ids;
        memcpy(r->ids, ev->ids, (size_t)ev->n_ids * sizeof *r->ids);
        memcpy(r->step_accepted, ev->step_accepted,
               (size_t)ev->usage->steps * sizeof *r->step_accepted);
        r->usage = *ev->usage;
        r->finish = ev->finish;
        if (ev->stop) snprintf(r->stop, sizeof r->stop, "%s", ev->stop);
        if (ev->error) FAIL("request failed: %s", ev->error);
        break;
    default: break;
    }
}

static inline void nugget_init(nugget_result *r)
{
    memset(r, 0, sizeof *r);
    buf_init(&r->text, 1 << 20);
    buf_init(&r->thinking, 1 << 20);
    buf_init(&r->calls, 1 << 20);
}

static inline void nugget_free(nugget_result *r)
{
    buf_free(&r->text);
    buf_free(&r->thinking);
    buf_free(&r->calls);
}

/* Reads a request to its end and releases it; results[n choices]. */
static inline void nugget_finish(ingot_request *q, nugget_result *results)
{
    ingot_event ev;
    ingot_status s;
    while ((s = ingot_next(q, &ev, 60000)) == INGOT_OK) nugget_take(&results[ev.choice], &ev);
    EXPECT_INT(s, INGOT_E_CANCELLED);
    ingot_release(q);
}

static inline ingot_request *nugget_submit(ingot_engine *g, const ingot_prompt *p,
                                           const ingot_sampling *s)
{
    ingot_request *q;
    ingot_error e;
    INGOT_EXPECT_OK(ingot_submit(&q, g, p, s, &e), e);
    return q;
}

/* Runs one request alone. Free the result with nugget_free. */
static inline void nugget_run(ingot_engine *g, const ingot_prompt *p, const ingot_sampling *s,
                              nugget_result *r)
{
    nugget_init(r);
    nugget_finish(nugget_submit(g, p, s), r);
}

static inline void nugget_same(const nugget_result *a, const nugget_result *b, const char *what)
{
    for (int i = 0; i < a->n && i < b->n; i++)
        if (a->ids[i] != b->ids[i])
            FAIL("%s: token %d: got %d, want %d", what, i, b->ids[i], a->ids[i]);
    if (a->n != b->n || a->finish != b->finish)
        FAIL("%s: got %d tokens, end %d, want %d, end %d", what, b->n, (int)b->finish, a->n,
             (int)a->finish);
    EXPECT_STR(b->usage.sha256, a->usage.sha256);
    EXPECT_INT(b->n_logprobs, a->n_logprobs);
    EXPECT(memcmp(a->logprob, b->logprob, (size_t)a->n_logprobs * sizeof *a->logprob) == 0);
    EXPECT(a->tops == b->tops);
    EXPECT(str_eq(buf_view(&a->text), buf_view(&b->text)));
    EXPECT(str_eq(buf_view(&a->thinking), buf_view(&b->thinking)));
    EXPECT(str_eq(buf_view(&a->calls), buf_view(&b->calls)));
}
#endif
