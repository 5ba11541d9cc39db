#include "base/file.h"
#include "base/mem.h"
#include "test.h"
#include "text/chat.h"

/* A template that shows what it was given. */
static const char SHOW[] =
    "{% for m in messages %}{{ m|tojson }}\n{% endfor %}"
    "tools={{ tools|tojson if tools is defined else '-' }} think={{ enable_thinking|default('-') }}"
    " effort={{ reasoning_effort|default('-') }} gen={{ add_generation_prompt }}"
    " eos={{ eos_token|default('-') }} extra={{ extra|default('-') }}";

static chat *make(const char *source, const char *config)
{
    chat *c;
    error e;
    EXPECT_OK(chat_new(&c, str_from(source), str_from(config), &e), e);
    return c;
}

static json_doc *parse(const char *text)
{
    json_doc *doc;
    error e;
    EXPECT_OK(json_parse(&doc, str_from(text), JSON_KEEP_BIGINT, "request", &e), e);
    return doc;
}

static status render(const chat *c, const char *messages, const char *tools,
                     const chat_options *options, chat_prompt *out, error *e)
{
    json_doc *m = parse(messages), *t = tools ? parse(tools) : NULL;
    template_fault fault;
    const status s = chat_render(c, json_root(m), t ? json_root(t) : NULL, options, out, &fault, e);
    json_free(m);
    if (t) json_free(t);
    return s;
}

static const chat_options DEFAULTS = { .now_s = 1 };

static void shows(const char *messages, const char *want)
{
    chat_prompt p;
    error e;
    chat *c = make(SHOW, "");
    EXPECT_OK(render(c, messages, NULL, &DEFAULTS, &p, &e), e);
    if (!strstr(p.text.ptr, want)) FAIL("%s: got %s, want %s", messages, p.text.ptr, want);
    chat_prompt_free(&p);
    chat_free(c);
}

static bool writes_tags(const char *source, const char *config)
{
    chat *c = make(source, config);
    const bool tags = chat_writes_tags(c);
    chat_free(c);
    return tags;
}

TEST(the_form_of_calls_is_read_from_the_template_alone)
{
    EXPECT(writes_tags("<tool_call>\n<function={{ name }}>", ""));
    EXPECT(!writes_tags("<tool_call>\n{{ call|tojson }}", "{\"note\": \"<function=f>\"}"));
    EXPECT(writes_tags("", "{\"chat_template\": \"<function={{ name }}>\"}"));
    EXPECT(!writes_tags("", "{\"chat_template\": \"{{ name }}\", \"note\": \"<function=f>\"}"));
}

static void refuses(const char *messages, const char *tools, const chat_options *o, status code,
                    const char *want)
{
    chat_prompt p;
    error e = { 0 };
    chat *c = make(SHOW, "");
    EXPECT_INT(render(c, messages, tools, o, &p, &e), code);
    if (strncmp(e.text, want, strlen(want)) != 0) FAIL("got \"%s\", want \"%s\"", e.text, want);
    EXPECT_INT(p.text.len, 0);
    chat_free(c);
}

static char *nugget(const char *messages, const char *tools)
{
    chat *c;
    chat_prompt p;
    error e;
    EXPECT_OK(chat_open(&c, TEST_ROOT "/models/nugget/king", &e), e);
    EXPECT_OK(render(c, messages, tools, &DEFAULTS, &p, &e), e);
    chat_free(c);
    mem_free(p.ends);
    return buf_steal(&p.text);
}

static void same_prompt(const char *a, const char *b)
{
    char *one = nugget(a, NULL), *two = nugget(b, NULL);
    EXPECT_STR(one, two);
    mem_free(one);
    mem_free(two);
}

TEST(R006_late_system_messages_stay_in_place_as_user_text)
{
    shows("[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"system\",\"content\":\"reminder\"}]",
          "{\"role\": \"user\", \"content\": \"a\"}\n{\"role\": \"user\", \"content\": "
          "\"reminder\"}");
    same_prompt("[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"b\"},"
                "{\"role\":\"system\",\"content\":\"c\"},{\"role\":\"user\",\"content\":\"d\"}]",
                "[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"b\"},"
                "{\"role\":\"user\",\"content\":\"c\"},{\"role\":\"user\",\"content\":\"d\"}]");
}

TEST(R008_leading_developer_messages_merge_in_order)
{
    shows("[{\"role\":\"developer\",\"content\":\"one\"},{\"role\":\"system\",\"content\":\"\"},"
          "{\"role\":\"developer\",\"content\":[{\"type\":\"text\",\"text\":\"two\"}]},"
          "{\"role\":\"user\",\"content\":\"hi\"}]",
          "{\"role\": \"system\", \"content\": \"one\\n\\ntwo\"}\n{\"role\": \"user\", "
          "\"content\": \"hi\"}");
}

TEST(R009_five_spellings_of_a_call_without_text_are_one_prompt)
{
#define CALL                                                                              \
    "\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"add\"," \
    "\"arguments\":\"{\\\"a\\\": 2, \\\"b\\\": 3}\"}}]"
#define TALK(assistant, tool)                                                                \
    "[{\"role\":\"user\",\"content\":\"2+3?\"},{\"role\":\"assistant\"," assistant CALL "}," \
    "{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":" tool "}]"
    static const char *const spellings[] = {
        TALK("\"content\":null,", "\"5\""),
        TALK("\"content\":\"\",", "\"5\""),
        TALK("", "\"5\""),
        TALK("\"content\":[],", "\"5\""),
        TALK("\"content\":null,", "[{\"type\":\"text\",\"text\":\"5\"}]"),
    };
    for (size_t i = 1; i < sizeof spellings / sizeof *spellings; i++)
        same_prompt(spellings[0], spellings[i]);
    char *prompt = nugget(spellings[0], NULL);
    EXPECT(!strstr(prompt, "None") && !strstr(prompt, "null"));
    EXPECT(strstr(prompt, "<parameter=a>\n2\n</parameter>"));
    mem_free(prompt);
}

TEST(arguments_become_objects)
{
#define ONE_CALL(arguments)                                                            \
    "[{\"role\":\"user\",\"content\":\"u\"},{\"role\":\"assistant\",\"tool_calls\":[{" \
    "\"function\":{\"name\":\"f\",\"arguments\":" arguments "}}]}]"
    shows(ONE_CALL("\"{\\\"x\\\": 1.0, \\\"n\\\": 123456789012345678901}\""),
          "\"arguments\": {\"x\": 1.0, \"n\": 123456789012345678901}");
    shows(ONE_CALL("\"\""), "\"arguments\": {}");
    shows(ONE_CALL("null"), "\"arguments\": {}");
    shows(ONE_CALL("{\"x\": []}"), "\"arguments\": {\"x\": []}");
    shows(ONE_CALL("\"not json\""), "\"arguments\": {\"_raw\": \"not json\"}");
    shows(ONE_CALL("\"[1]\""), "\"arguments\": {\"_raw\": \"[1]\"}");
    refuses(ONE_CALL("5"), NULL, &DEFAULTS, E_ARG,
            "messages.1.tool_calls.arguments: found integer");
}

TEST(reasoning_comes_from_three_places)
{
#define THOUGHT(fields) \
    "[{\"role\":\"user\",\"content\":\"u\"},{\"role\":\"assistant\"," fields "}]"
    static const char want[] = "\"content\": \"b\", \"reasoning_content\": \"r\"";
    shows(THOUGHT("\"content\":\"b\",\"reasoning_content\":\"r\""), want);
    shows(THOUGHT("\"content\":\"b\",\"reasoning\":\"r\""), want);
    shows(THOUGHT("\"content\":\"<think>\\nr\\n</think>\\n\\nb\""), want);
    shows(THOUGHT("\"content\":\"say <think>r</think>\""),
          "\"content\": \"say <think>r</think>\"}");
    shows(THOUGHT("\"content\":\"b\",\"reasoning_content\":null"), "\"content\": \"b\"}");
}

TEST(shapes_are_refused_with_their_place)
{
    refuses("[]", NULL, &DEFAULTS, E_ARG, "messages: found none");
    refuses("{}", NULL, &DEFAULTS, E_ARG, "messages: found object");
    refuses("[5]", NULL, &DEFAULTS, E_ARG, "messages.0: found integer");
    refuses("[{}]", NULL, &DEFAULTS, E_ARG, "messages.0.role: ");
    refuses("[{\"role\":\"critic\"}]", NULL, &DEFAULTS, E_ARG, "messages.0.role: found \"critic\"");
    refuses("[{\"role\":\"user\",\"content\":5}]", NULL, &DEFAULTS, E_ARG, "messages.0.content: ");
    refuses("[{\"role\":\"user\",\"content\":[{\"type\":\"smell\"}]}]", NULL, &DEFAULTS, E_ARG,
            "messages.0.content.0.type: found \"smell\"");
    refuses("[{\"role\":\"user\",\"content\":[{\"type\":\"text\"}]}]", NULL, &DEFAULTS, E_ARG,
            "messages.0.content.0.text: ");
    refuses("[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{}}]}]", NULL,
            &DEFAULTS, E_UNSUPPORTED,
            "messages.0.content.0.type: this model reads text, not image");
    static const char ok[] = "[{\"role\":\"user\",\"content\":\"u\"}]";
    refuses(ok, "{}", &DEFAULTS, E_ARG, "tools: found object");
    refuses(ok, "[{\"type\":\"oven\"}]", &DEFAULTS, E_ARG, "tools.0.type: found \"oven\"");
    refuses(ok, "[{\"type\":\"function\",\"function\":{}}]", &DEFAULTS, E_ARG,
            "tools.0.function.name: ");
    const chat_options o = { .effort = STR("colossal") };
    refuses(ok, NULL, &o, E_ARG, "reasoning_effort: found \"colossal\"");
    const chat_options nothing = { .effort = STR("") };
    refuses(ok, NULL, &nothing, E_ARG, "reasoning_effort: found \"\"");
}

static void effort_shows(const char *effort, chat_thinking thinking, const char *want)
{
    chat_prompt p;
    error e;
    chat *c = make(SHOW, "");
    const chat_options o = { .effort = str_from(effort), .thinking = thinking };
    EXPECT_OK(render(c, "[{\"role\":\"user\",\"content\":\"u\"}]", "[]", &o, &p, &e), e);
    if (!strstr(p.text.ptr, want))
        FAIL("%s: got %s, want %s", effort ? effort : "none given", p.text.ptr, want);
    chat_prompt_free(&p);
    chat_free(c);
}

TEST(effort_is_put_in_the_template_s_words)
{
    effort_shows(NULL, CHAT_THINKING_UNSET, "tools=- think=- effort=- gen=True");
    effort_shows("none", CHAT_THINKING_UNSET, "think=False effort=- ");
    effort_shows("off", CHAT_THINKING_ON, "think=False effort=- ");
    effort_shows("minimal", CHAT_THINKING_UNSET, "think=- effort=low ");
    effort_shows("low", CHAT_THINKING_ON, "think=True effort=low ");
    effort_shows("medium", CHAT_THINKING_UNSET, "effort=medium ");
    effort_shows("high", CHAT_THINKING_UNSET, "effort=xhigh ");
    effort_shows("max", CHAT_THINKING_OFF, "think=False effort=xhigh ");
}

TEST(further_variables_and_tokens_reach_the_template)
{
    chat_prompt p;
    error e;
    chat *c = make(SHOW, "{\"eos_token\": {\"content\": \"<end>\"}, \"bos_token\": null}");
    json_doc *extra = parse("{\"extra\": 7, \"add_generation_prompt\": \"mine\"}");
    const chat_options o = { .kwargs = json_root(extra), .no_generation_prompt = true };
    EXPECT_OK(render(c, "[{\"role\":\"user\",\"content\":\"u\",\"name\":\"bob\"}]",
                     "[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]", &o, &p, &e),
              e);
    EXPECT_STR(p.text.ptr,
               "{\"role\": \"user\", \"content\": \"u\", \"name\": \"bob\"}\ntools=[{\"type\": "
               "\"function\", \"function\": {\"name\": \"f\"}}] think=- effort=- gen=mine "
               "eos=<end> extra=7");
    chat_prompt_free(&p);
    json_free(extra);
    chat_free(c);
}

TEST(marks_and_the_open_thought_of_the_nugget)
{
    chat *c;
    chat_prompt p;
    error e;
    EXPECT_OK(chat_open(&c, TEST_ROOT "/models/nugget/king", &e), e);
    static const char talk[] = "[{\"role\":\"system\",\"content\":\"s\"},"
                               "{\"role\":\"user\",\"content\":\"u\"}]";
    EXPECT_OK(render(c, talk, NULL, &DEFAULTS, &p, &e), e);
    EXPECT_STR(p.text.ptr, "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nu<|im_end|>\n"
                           "<|im_start|>assistant\n<think>\n");
    EXPECT_INT(p.n_ends, 2);
    EXPECT_INT(p.ends[0], 30);
    EXPECT_INT(p.ends[1], 59);
    EXPECT(p.in_think);
    chat_prompt_free(&p);
    const chat_options off = { .thinking = CHAT_THINKING_OFF };
    EXPECT_OK(render(c, talk, NULL, &off, &p, &e), e);
    EXPECT(!p.in_think);
    chat_prompt_free(&p);
    chat_free(c);
}

TEST(an_open_thought_is_seen_in_the_prompt_s_tail)
{
    EXPECT(chat_ends_in_think(STR("<|im_start|>assistant\n<think>\n")));
    EXPECT(chat_ends_in_think(STR("<|im_start|>assistant\n<think>\nLet me")));
    EXPECT(chat_ends_in_think(STR("plain <think>")));
    EXPECT(!chat_ends_in_think(STR("<|im_start|>assistant\n<think>\n\n</think>\n\n")));
    EXPECT(
        !chat_ends_in_think(STR("<|im_start|>user\n<think>x<|im_end|>\n<|im_start|>assistant\n")));
    EXPECT(!chat_ends_in_think(STR("<|im_start|>user\nwhat is <think>, please")));
    EXPECT(!chat_ends_in_think(STR("")));
}

TEST(a_folder_without_template_is_refused)
{
    chat *c;
    error e;
    EXPECT_INT(chat_new(&c, STR(""), STR("{\"eos_token\": \"x\"}"), &e), E_UNSUPPORTED);
    EXPECT(strstr(e.text, "a tokenizer without a chat template"));
    EXPECT_INT(chat_open(&c, TEST_ROOT "/tests/unit", &e), E_UNSUPPORTED);
    EXPECT_INT(chat_new(&c, STR("{% if %}"), STR(""), &e), E_FORMAT);
    EXPECT_INT(chat_new(&c, STR("x"), STR("{"), &e), E_FORMAT);
}

TEST(a_template_in_the_configuration_counts)
{
    static const char *const configs[] = {
        "{\"chat_template\": \"T{{ messages|length }}\"}",
        "{\"chat_template\": [{\"name\": \"tool_use\", \"template\": \"no\"},"
        "{\"name\": \"default\", \"template\": \"T{{ messages|length }}\"}]}",
    };
    for (int i = 0; i < 2; i++) {
        chat_prompt p;
        error e;
        chat *c = make("", configs[i]);
        EXPECT_OK(render(c, "[{\"role\":\"user\"}]", NULL, &DEFAULTS, &p, &e), e);
        EXPECT_STR(p.text.ptr, "T1");
        chat_prompt_free(&p);
        chat_free(c);
    }
}

TEST(memory_may_run_short_anywhere)
{
    json_doc *m = parse(ONE_CALL("\"{\\\"x\\\": [1, 2]}\""));
    const int64_t live = mem_live();
    status s = E_NOMEM;
    int n = 1;
    for (; s != OK; n++) {
        chat *c = NULL;
        chat_prompt p = { 0 };
        error e = { 0 };
        mem_fail_after(n);
        s = chat_new(&c, str_from(SHOW), STR("{\"eos_token\": \"e\"}"), &e);
        if (!s) s = chat_render(c, json_root(m), NULL, &DEFAULTS, &p, NULL, &e);
        mem_fail_after(0);
        if (s) EXPECT(s == E_NOMEM && e.code == E_NOMEM);
        chat_prompt_free(&p);
        chat_free(c);
        EXPECT_INT(mem_live(), live);
    }
    EXPECT(n > 10);
    json_free(m);
}
