/* Constrained output: what comes out obeys the schema, drafted as plain, and starts after the
 * thought. */
#include "nugget.h"

#define CITY                                                                                \
    "{\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\",\"maxLength\":12}," \
    "\"big\":{\"type\":\"boolean\"},\"sizes\":{\"type\":\"array\",\"items\":{\"type\":"     \
    "\"integer\"},"                                                                         \
    "\"maxItems\":3}},\"required\":[\"city\",\"big\",\"sizes\"],\"additionalProperties\":false}"

static ingot_prompt ask(ingot_thinking thinking)
{
    ingot_prompt p = INGOT_INIT(ingot_prompt);
    p.messages =
        "[{\"role\":\"user\",\"content\":\"Return a JSON object with key city set to Paris\"}]";
    p.thinking = thinking;
    return p;
}

static ingot_sampling sampling(float temperature, int block)
{
    ingot_sampling s = INGOT_INIT(ingot_sampling);
    s.max_tokens = 300;
    s.temperature = temperature;
    s.has_seed = true;
    s.seed = 3;
    s.block = block;
    s.schema = CITY;
    return s;
}

static void expect_city(str text)
{
    json_doc *doc;
    error e;
    EXPECT_OK(json_parse(&doc, text, JSON_UNIQUE, "answer", &e), e);
    const json_node *root = json_root(doc);
    bool big;
    EXPECT(json_text(json_get(root, "city")) && json_bool(json_get(root, "big"), &big));
    EXPECT(json_kind(json_get(root, "sizes")) == JSON_ARRAY &&
           json_len(json_get(root, "sizes")) <= 3);
    EXPECT_INT(json_len(root), 3);
    json_free(doc);
}

/* R038: nothing is repeated and nothing differs when drafts are on. */
TEST(R038_drafted_answers_obey_the_schema_and_equal_plain_ones)
{
    ingot_model *m = nugget_open(1, NUGGET "/drafter-q8");
    ingot_engine *g = nugget_start(m, 1, 0);
    const ingot_prompt p = ask(INGOT_THINKING_OFF);
    for (int k = 0; k < 4; k++) {
        const float temperature = k == 0 ? 0 : 0.5f * (float)k;
        nugget_result plain, drafted;
        ingot_sampling s = sampling(temperature, INGOT_BLOCK_PLAIN);
        nugget_run(g, &p, &s, &plain);
        EXPECT_INT(plain.finish, INGOT_FINISH_STOP);
        expect_city(buf_view(&plain.text));
        static const int blocks[] = { 2, 4, 8, INGOT_BLOCK_AUTO };
        for (int i = 0; i < 4; i++) {
            s.block = blocks[i];
            nugget_run(g, &p, &s, &drafted);
            nugget_same(&plain, &drafted, "drafted");
            nugget_free(&drafted);
        }
        nugget_free(&plain);
    }
    ingot_engine_stop(g);
    ingot_model_close(m);
}

TEST(R036_the_schema_begins_after_the_thought)
{
    ingot_model *m = nugget_open(1, NUGGET "/drafter-q8");
    ingot_engine *g = nugget_start(m, 1, 0);
    const ingot_prompt p = ask(INGOT_THINKING_ON);
    ingot_sampling s = sampling(0, 4);
    s.thinking_budget = 20; /* the small king may ramble */
    nugget_result r;
    nugget_run(g, &p, &s, &r);
    EXPECT_INT(r.finish, INGOT_FINISH_STOP);
    EXPECT(r.thinking.len > 0);
    expect_city(buf_view(&r.text));
    nugget_free(&r);
    ingot_engine_stop(g);
    ingot_model_close(m);
}

/* A thought cannot end the answer, nor turn into a call: it has to be closed, and the object comes
 * after it. Of these seeds one in twenty ended in the thought while that was not so. */
TEST(R036_a_thought_is_closed_before_the_answer_ends)
{
    ingot_model *m = nugget_open(1, NUGGET "/drafter-q8");
    ingot_engine *g = nugget_start(m, 1, 0);
    ingot_prompt p = ask(INGOT_THINKING_ON);
    p.messages = "[{\"role\":\"user\",\"content\":\"Say hi\"}]";
    int whole = 0;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        nugget_result plain, drafted;
        ingot_sampling s = sampling(1, INGOT_BLOCK_PLAIN);
        s.seed = seed;
        nugget_run(g, &p, &s, &plain);
        s.block = 4;
        nugget_run(g, &p, &s, &drafted);
        nugget_same(&plain, &drafted, "drafted");
        if (plain.finish == INGOT_FINISH_STOP) expect_city(buf_view(&plain.text));
        EXPECT_INT(plain.calls.len, 0);
        whole += plain.finish == INGOT_FINISH_STOP;
        nugget_free(&plain);
        nugget_free(&drafted);
    }
    EXPECT(whole > 12);
    ingot_engine_stop(g);
    ingot_model_close(m);
}

/* Without stop ids the text ends where the grammar allows nothing more. */
TEST(a_complete_text_ends_by_itself)
{
    ingot_model *m = nugget_open(1, NULL);
    ingot_engine *g = nugget_start(m, 1, 0);
    const ingot_prompt p = ask(INGOT_THINKING_OFF);
    ingot_sampling s = sampling(0, INGOT_BLOCK_PLAIN);
    s.ignore_eos = true;
    nugget_result r;
    nugget_run(g, &p, &s, &r);
    EXPECT_INT(r.finish, INGOT_FINISH_STOP);
    expect_city(buf_view(&r.text));
    nugget_free(&r);
    ingot_engine_stop(g);
    ingot_model_close(m);
}

#define TOOLS                                                                                      \
    "[{\"type\":\"function\",\"function\":{\"name\":\"get_weather\",\"parameters\":{\"type\":"     \
    "\"object\","                                                                                  \
    "\"properties\":{\"city\":{\"enum\":[\"Paris\",\"Oslo\",\"Lima\"]}},\"required\":[\"city\"]}}" \
    "},"                                                                                           \
    "{\"type\":\"function\",\"function\":{\"name\":\"stop_all\"}}]"

TEST(tool_choice_is_honoured)
{
    ingot_model *m = nugget_open(1, NUGGET "/drafter-q8");
    ingot_engine *g = nugget_start(m, 1, 0);
    static const char *const choices[] = { "required", "get_weather", "stop_all" };
    for (int i = 0; i < 3; i++) {
        ingot_prompt p = ask(INGOT_THINKING_OFF);
        p.tools = TOOLS;
        p.tool_choice = choices[i];
        ingot_sampling s = sampling(0.7f, 4);
        s.schema = NULL;
        nugget_result r;
        nugget_run(g, &p, &s, &r);
        EXPECT_INT(r.finish, INGOT_FINISH_TOOL_CALLS);
        EXPECT_INT(r.text.len, 0);
        if (i) EXPECT(str_starts(buf_view(&r.calls), str_from(choices[i])));
        nugget_free(&r);
    }
    ingot_prompt p = ask(INGOT_THINKING_OFF);
    p.tools = TOOLS;
    p.tool_choice = "no_such_tool";
    ingot_sampling s = sampling(0, 1);
    s.schema = NULL;
    ingot_request *q;
    ingot_error e;
    EXPECT_INT(ingot_submit(&q, g, &p, &s, &e), INGOT_E_ARG);
    ingot_engine_stop(g);
    ingot_model_close(m);
}

TEST(R041_unsupported_schemas_are_refused_at_submit)
{
    ingot_model *m = nugget_open(1, NULL);
    ingot_engine *g = nugget_start(m, 1, 0);
    const ingot_prompt p = ask(INGOT_THINKING_OFF);
    ingot_sampling s = sampling(0, 1);
    ingot_request *q;
    ingot_error e;
    s.schema = "{\"type\":\"string\",\"pattern\":\"a+\"}";
    EXPECT_INT(ingot_submit(&q, g, &p, &s, &e), INGOT_E_UNSUPPORTED);
    EXPECT(strstr(e.text, "pattern"));
    s.schema = "{";
    EXPECT(ingot_submit(&q, g, &p, &s, &e) != INGOT_OK);
    s.grammar = "root ::= \"a\"";
    EXPECT_INT(ingot_submit(&q, g, &p, &s, &e), INGOT_E_ARG);
    EXPECT(strstr(e.text, "schema: it cannot be asked for beside a grammar"));
    s.schema = NULL;
    s.grammar = "root ::= item\n";
    EXPECT_INT(ingot_submit(&q, g, &p, &s, &e), INGOT_E_ARG);
    EXPECT(strstr(e.text, "line 1, column 10: rule item is used and not defined"));
    ingot_engine_stop(g);
    ingot_model_close(m);
}

/* Lines of a list; their number is odd, which no schema could say, and whatever a model would
 * rather do, there is an end of them. */
#define LINES \
    "root ::= line (line line){0,3}\nline ::= \"- \" [a-z \xc3\xa0-\xc3\xbf]{1,20} \"\\n\"\n"

static void expect_lines(str text)
{
    int lines = 0, letters = -2;
    for (size_t i = 0; i < text.len; i++, letters++) {
        const uint8_t c = (uint8_t)text.ptr[i];
        if (letters == -2) EXPECT(c == '-');
        else if (letters == -1) EXPECT(c == ' ');
        else if (c != '\n') EXPECT(c == ' ' || (c >= 'a' && c <= 'z') || c >= 0x80);
        else {
            EXPECT(letters >= 1);
            lines++;
            letters = -3;
        }
        if ((c & 0xc0) == 0x80) letters--; /* the second byte of a character */
        EXPECT(letters <= 20);
    }
    EXPECT_INT(letters, -2);
    EXPECT_INT(lines % 2, 1);
}

/* At every temperature and block the answer obeys the grammar and is that of plain decoding; with
 * penalties, and beside log-probabilities. */
TEST(R038_drafted_answers_obey_a_grammar_and_equal_plain_ones)
{
    ingot_model *m = nugget_open(1, NUGGET "/drafter-q8");
    ingot_engine *g = nugget_start(m, 1, 0);
    ingot_prompt p = ask(INGOT_THINKING_OFF);
    p.messages = "[{\"role\":\"user\",\"content\":\"List three fruits, one per line.\"}]";
    for (int k = 0; k < 4; k++) {
        nugget_result plain, drafted;
        ingot_sampling s = sampling(k == 0 ? 0 : 0.6f * (float)k, INGOT_BLOCK_PLAIN);
        s.schema = NULL;
        s.grammar = LINES;
        if (k == 3) s.presence_penalty = 0.5f, s.top_logprobs = 3;
        nugget_run(g, &p, &s, &plain);
        if (plain.finish == INGOT_FINISH_STOP) expect_lines(buf_view(&plain.text));
        EXPECT(k || plain.finish == INGOT_FINISH_STOP);
        static const int blocks[] = { 2, 4, 8, INGOT_BLOCK_AUTO };
        for (int i = 0; i < 4; i++) {
            s.block = blocks[i];
            nugget_run(g, &p, &s, &drafted);
            nugget_same(&plain, &drafted, "drafted");
            nugget_free(&drafted);
        }
        nugget_free(&plain);
    }
    ingot_engine_stop(g);
    ingot_model_close(m);
}

TEST(R036_the_grammar_begins_after_the_thought)
{
    ingot_model *m = nugget_open(1, NUGGET "/drafter-q8");
    ingot_engine *g = nugget_start(m, 1, 0);
    const ingot_prompt p = ask(INGOT_THINKING_ON);
    ingot_sampling s = sampling(0, 4);
    s.schema = NULL;
    s.grammar = "root ::= \"yes\" | \"no\"";
    s.thinking_budget = 20;
    nugget_result r;
    nugget_run(g, &p, &s, &r);
    EXPECT_INT(r.finish, INGOT_FINISH_STOP);
    EXPECT(r.thinking.len > 0);
    EXPECT(str_eq(buf_view(&r.text), STR("yes")) || str_eq(buf_view(&r.text), STR("no")));
    nugget_free(&r);
    ingot_engine_stop(g);
    ingot_model_close(m);
}

/* Rules within rules beyond the depth that is followed: the text cannot be ended, and that is an
 * error, not an answer. */
TEST(a_text_that_cannot_go_on_is_an_error)
{
    ingot_model *m = nugget_open(1, NULL);
    ingot_engine *g = nugget_start(m, 1, 0);
    const ingot_prompt p = ask(INGOT_THINKING_OFF);
    ingot_sampling s = sampling(0, INGOT_BLOCK_PLAIN);
    buf b;
    buf_init(&b, 1 << 16);
    buf_text(&b, "root ::= r0\n");
    for (int i = 0; i < 70; i++) buf_printf(&b, "r%d ::= \"a\" r%d \"z\"\n", i, i + 1);
    buf_text(&b, "r70 ::= \"b\"\n");
    buf_char(&b, 0);
    s.schema = NULL;
    s.grammar = b.ptr;
    ingot_request *q = nugget_submit(g, &p, &s);
    ingot_event ev;
    do EXPECT_INT(ingot_next(q, &ev, 60000), INGOT_OK);
    while (ev.kind != INGOT_END);
    EXPECT_INT(ev.finish, INGOT_FINISH_ERROR);
    EXPECT_STR(ev.error, "grammar: no token goes on from here");
    ingot_release(q);
    buf_free(&b);
    ingot_engine_stop(g);
    ingot_model_close(m);
}

static void run_call(ingot_engine *g, int block, float temperature, nugget_result *r)
{
    ingot_prompt p = ask(INGOT_THINKING_OFF);
    p.tools = TOOLS;
    p.tool_choice = "get_weather";
    ingot_sampling s = sampling(temperature, block);
    s.schema = NULL;
    nugget_run(g, &p, &s, r);
}

/* What the form of a call leaves no choice about is drafted without the drafter: the tokens are
 * those of plain decoding, in fewer steps. Without a drafter measured costs decide about it. */
TEST(forced_tokens_are_drafts)
{
    static const char *const drafters[] = { NULL, NUGGET "/drafter-q8" };
    for (int k = 0; k < 2; k++) {
        ingot_model *m = nugget_open(1, drafters[k]);
        ingot_engine *g = nugget_start(m, 1, 0);
        for (int i = 0; i < 3; i++) {
            nugget_result plain, forced;
            run_call(g, INGOT_BLOCK_PLAIN, 0.7f * (float)i, &plain);
            run_call(g, k ? 8 : INGOT_BLOCK_AUTO, 0.7f * (float)i, &forced);
            nugget_same(&plain, &forced, "forced");
            EXPECT_INT(plain.usage.accepted, 0);
            printf("%d tokens, %d steps plain, %d forced\n", plain.n, plain.usage.steps,
                   forced.usage.steps);
            if (k) EXPECT(forced.usage.steps <= 8 && plain.usage.steps >= 17);
            nugget_free(&plain);
            nugget_free(&forced);
        }
        ingot_engine_stop(g);
        ingot_model_close(m);
    }
}
