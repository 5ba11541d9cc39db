#include "base/mem.h"
#include "base/pool.h"
#include "test.h"
#include "text/template.h"

static json_doc *parse(const char *text)
{
    json_doc *doc;
    error e;
    EXPECT_OK(json_parse(&doc, str_from(text), JSON_KEEP_BIGINT, "variables", &e), e);
    return doc;
}

/* Renders `source`; the text stays in `out`. */
static template_fault run(const char *source, const char *variables, buf *out, error *e)
{
    template *t;
    template_fault fault = TEMPLATE_SYNTAX;
    *e = (error){ 0 };
    buf_init(out, 1 << 20);
    if (template_compile(&t, str_from(source), "t", e)) return fault;
    json_doc *doc = parse(variables);
    const status s = template_render(t, json_root(doc), 0, out, &fault, e);
    EXPECT_INT(s != OK, fault != TEMPLATE_OK);
    json_free(doc);
    template_free(t);
    return fault;
}

static void expect(const char *source, const char *variables, const char *want)
{
    buf out;
    error e;
    if (run(source, variables, &out, &e)) FAIL("%s: %s", source, e.text);
    EXPECT_STR(buf_view(&out).ptr, want);
    buf_free(&out);
}

static void expect_fault(const char *source, template_fault want, const char *text)
{
    buf out;
    error e;
    const template_fault got = run(source, "{}", &out, &e);
    EXPECT_STR(template_fault_name(got), template_fault_name(want));
    if (!strstr(e.text, text)) FAIL("%.60s: got \"%s\", want \"%s\"", source, e.text, text);
    EXPECT_INT(out.len, 0);
    buf_free(&out);
}

TEST(messages_name_template_and_line)
{
    expect_fault("a\n{{ x.y }}", TEMPLATE_RUNTIME, "t: line 2: 'x' is undefined");
    expect_fault("a\n\n{% if %}", TEMPLATE_SYNTAX, "t: line 3: ");
    expect_fault("{{ raise_exception('no \"x\"') }}", TEMPLATE_RAISE, "no \"x\"");
    expect_fault("text {{ [].append(1) }}", TEMPLATE_RUNTIME, "append");
}

TEST(a_raise_has_the_message_alone)
{
    buf out;
    error e;
    EXPECT_INT(run("{{ raise_exception('boom') }}", "{}", &out, &e), TEMPLATE_RAISE);
    EXPECT_STR(e.text, "boom");
    EXPECT_INT(e.code, E_ARG);
    buf_free(&out);
}

TEST(rendering_appends)
{
    template *t;
    buf out;
    error e;
    buf_init(&out, 100);
    buf_text(&out, "before ");
    EXPECT_OK(template_compile(&t, STR("x{{ 1 / n }}"), "t", &e), e);
    json_doc *one = parse("{\"n\": 1}"), *zero = parse("{\"n\": 0}");
    EXPECT_OK(template_render(t, json_root(one), 0, &out, NULL, &e), e);
    EXPECT_STR(out.ptr, "before x1.0");
    EXPECT_INT(template_render(t, json_root(zero), 0, &out, NULL, &e), E_FORMAT);
    EXPECT_STR(out.ptr, "before x1.0");
    json_free(one);
    json_free(zero);
    template_free(t);
    buf_free(&out);
}

TEST(a_small_ceiling_is_a_limit)
{
    template *t;
    buf out;
    error e;
    template_fault fault;
    buf_init(&out, 8);
    EXPECT_OK(template_compile(&t, STR("{{ 'x' * 9 }}"), "t", &e), e);
    EXPECT_INT(template_render(t, NULL, 0, &out, &fault, &e), E_LIMIT);
    EXPECT_INT(fault, TEMPLATE_RUNTIME);
    EXPECT_INT(out.len, 0);
    template_free(t);
    buf_free(&out);
}

TEST(runaway_templates_end)
{
    static const char *const sources[] = {
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% set x = 1 %}{% endfor %}{% "
        "endfor %}",
        "{{ 'x' * 99999999999 }}",
        "{{ [1] * 99999999999 }}",
        "{% set ns = namespace(s='xxxxxxxx') %}{% for a in range(99) %}{% set ns.s = ns.s + ns.s %}"
        "{% endfor %}",
        "{% set ns = namespace(l=[]) %}{% for a in range(99999) %}{% set ns.l = [ns.l] %}{% endfor "
        "%}"
        "{{ ns.l }}",
        "{% set ns = namespace(l=[]) %}{% for a in range(99999) %}{% set ns.l = [ns.l] %}{% endfor "
        "%}"
        "{{ ns.l == ns.l }}{{ ns.l|tojson }}",
        "{{ '%99999d' % 1 }}",
        "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
    };
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        expect_fault(sources[i], TEMPLATE_RUNTIME, "t: line 1: ");
}

/* Nesting in the source itself. */
TEST(deep_sources_are_refused)
{
    static const char *const pieces[] = { "(",  "[",  "{{ not ", "{{ -",          "{% if 1 %}",
                                          "a[", "f(", "{1:",     "{% for x in (", "x|f(" };
    for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
        static char text[1 << 20];
        size_t n = (size_t)snprintf(text, sizeof text, "%s", strstr(pieces[p], "{%") ? "" : "{{ ");
        const char *piece = strncmp(pieces[p], "{{ ", 3) == 0 ? pieces[p] + 3 : pieces[p];
        for (int i = 0; i < 50000; i++) {
            const size_t len = strlen(piece);
            memcpy(text + n, piece, len);
            n += len;
        }
        text[n] = '\0';
        expect_fault(text, TEMPLATE_SYNTAX, "t: line 1: ");
    }
}

TEST(long_chains_are_refused_or_rendered)
{
    static const char *const pieces[] = { " + 1",  " ~ 1",  "|abs",         ".a",        " and 1",
                                          " or 0", " == 1", " if 1 else 0", " is number" };
    for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
        static char text[1 << 20];
        size_t n = (size_t)snprintf(text, sizeof text, "{{ 1");
        for (int i = 0; i < 20000; i++)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s", pieces[p]);
        snprintf(text + n, sizeof text - n, " }}");
        buf out;
        error e;
        const template_fault fault = run(text, "{}", &out, &e);
        EXPECT(fault == TEMPLATE_OK || fault == TEMPLATE_SYNTAX || fault == TEMPLATE_RUNTIME);
        buf_free(&out);
    }
}

TEST(deep_values_are_refused)
{
    static char text[4096];
    snprintf(text, sizeof text, "{\"a\": ");
    size_t n = strlen(text);
    for (int i = 0; i < 900; i++) text[n++] = '[';
    for (int i = 0; i < 900; i++) text[n++] = ']';
    text[n++] = '}';
    text[n] = '\0';
    buf out;
    error e;
    EXPECT_INT(run("{{ a }}", text, &out, &e), TEMPLATE_RUNTIME);
    EXPECT_INT(e.code, E_LIMIT);
    buf_free(&out);
}

/* What the golden units do not reach; expected values are Python's. */
TEST(python_meaning)
{
    expect("{{ 7 // -2 }} {{ 7 % -3 }} {{ -7.5 // 2 }} {{ -7.5 % 2 }} {{ 2 ** 0 }}", "{}",
           "-4 -2 -4.0 0.5 1");
    expect("{{ 9223372036854775807 == b }} {{ b > 5 }} {{ -b < 0 }}",
           "{\"b\": 9223372036854775807}", "True True True");
    expect("{{ b == b }} {{ b > 1 }} {{ b < 1.0 }} {{ b }}",
           "{\"b\": 123456789012345678901234567890}",
           "True True False 123456789012345678901234567890");
    expect("{{ range(10)[2:8:3]|list }} {{ range(5)[::-1] }} {{ range(9)[::2] }}", "{}",
           "[2, 5] range(4, -1, -1) range(0, 9, 2)");
    expect("{{ 'a.b.c'.rsplit('.', 1) }} {{ ' a  b '.split(none, 1) }}", "{}",
           "['a.b', 'c'] ['a', 'b ']");
    expect("{{ ('<' ~ '&')|e + '<' }} {{ '<' + ('>'|safe) }}", "{}", "&lt;&amp;&lt; &lt;>");
    expect("{{ m|map('upper')|list }}{{ (m|map('upper')) is iterable }}", "{\"m\": [\"a\"]}",
           "['A']True");
    expect("{% set g = m|map('upper') %}{{ g|list }}{{ g|list }}{{ 1 if g }}", "{\"m\": [\"a\"]}",
           "['A'][]1");
    expect("{{ 'x'.join('abc') }} {{ 'h\\u00e9'[1] }} {{ 'aaa'.replace('', '-') }}", "{}",
           "axbxc \xc3\xa9 -a-a-a-");
    expect("{{ {1: 'a', 1.0: 'b', true: 'c', '1': 'd', (1, 2): 'e'} }}", "{}",
           "{1: 'c', '1': 'd', (1, 2): 'e'}");
    expect("{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "{}", "123");
    expect("{{ strftime_now('%Y-%m-%d %H:%M:%S %A %j') }}", "{}",
           "1970-01-01 00:00:00 Thursday 001");
    expect("{% for i in [3, 1] %}{{ a }}{% set a = i %}{{ a }} {% endfor %}", "{}", "3 1 ");
    expect("{{ l|sort(attribute='k')|map(attribute='n')|join }}"
           " {{ l|sort(attribute='k', reverse=true)|map(attribute='n')|join }}",
           "{\"l\": [{\"k\": 1, \"n\": \"a\"}, {\"k\": 1, \"n\": \"b\"}, {\"k\": 0, \"n\": \"c\"},"
           " {\"k\": 1, \"n\": \"d\"}]}",
           "cabd abdc"); /* stable, in both directions */
    expect("{{ '%-5s|%+d|%x|%.3e|%%' % ('ab', 5, 255, 12345.678) }}", "{}",
           "ab   |+5|ff|1.235e+04|%");
    expect("{{ '{:^7}|{:>+6.2f}|{:,}'.format('mid', 3.14159, 1234567) }}", "{}",
           "  mid  | +3.14|1,234,567");
}

/* Found by rendering random templates with the reference library and this one. */
TEST(what_python_refuses_is_refused)
{
    static const char *const sources[] = {
        "{% set n = 5 %}{{ n[1:] }}", "{{ {'a': 1}.copy()[:1] }}", "{{ ([1]|map('abs'))[::-1] }}",
        "{{ (1 + 1)|indent }}",       "{{ missing|int }}",         "{{ missing|float }}",
        "{{ (1 + 1)|truncate(3) }}",
    };
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        expect_fault(sources[i], TEMPLATE_RUNTIME, "t: line 1: ");
    expect("{{ 5 is lower }} {{ true is upper }} {{ '<' + ('a>'|safe|last) }}", "{}",
           "False False &lt;>");
}

TEST(many_keys_keep_their_order)
{
    expect("{% set d = dict.fromkeys(range(1000)) %}{{ d|length }} {{ d.keys()|list|last }}"
           " {{ 700 in d }} {{ 1000 in d }} {{ 5.0 in d }}",
           "{}", "1000 999 True False True");
}

/* Every allocation fails once; nothing leaks and the failure is named. */
TEST(memory_may_run_short_anywhere)
{
    static const char source[] = "{% macro f(a, b=2) %}[{{ a }}{{ b }}]{% endmacro %}"
                                 "{% set ns = namespace(n=0) %}{% for m in messages if m.x %}"
                                 "{% set ns.n = ns.n + loop.index %}{{ f(m.x|upper) }}{% endfor %}"
                                 "{{ messages|tojson(indent=1) }}{{ ns.n }}{{ 1.5 }}";
    json_doc *doc =
        parse("{\"messages\": [{\"x\": \"a\"}, {\"x\": \"\"}, {\"x\": \"b\", \"y\": {}}]}");
    const int64_t live = mem_live();
    status s = E_NOMEM;
    int n = 1;
    for (; s != OK; n++) {
        template *t = NULL;
        buf out;
        error e = { 0 };
        buf_init(&out, 1 << 16);
        mem_fail_after(n);
        s = template_compile(&t, str_from(source), "t", &e);
        if (!s) s = template_render(t, json_root(doc), 0, &out, NULL, &e);
        mem_fail_after(0);
        if (s) EXPECT(s == E_NOMEM && e.code == E_NOMEM);
        template_free(t);
        buf_free(&out);
        EXPECT_INT(mem_live(), live);
    }
    EXPECT(n > 5);
    json_free(doc);
}

typedef struct share {
    const template *t;
    const json_node *variables;
    buf out[4];
} share;

static void render_share(void *arg, int worker, int workers)
{
    (void)workers;
    share *s = arg;
    for (int i = 0; i < 50; i++) {
        error e;
        buf_clear(&s->out[worker]);
        EXPECT_OK(template_render(s->t, s->variables, 0, &s->out[worker], NULL, &e), e);
    }
}

TEST(threads_share_a_compiled_template)
{
    template *t;
    pool *p;
    error e;
    json_doc *doc = parse("{\"l\": [1, 2, 3]}");
    EXPECT_OK(
        template_compile(&t, STR("{% for x in l %}{{ x }}{{ l|join('-') }};{% endfor %}"), "t", &e),
        e);
    share s = { .t = t, .variables = json_root(doc) };
    for (int i = 0; i < 4; i++) buf_init(&s.out[i], 1000);
    EXPECT_OK(pool_start(&p, 4, &e), e);
    pool_run(p, render_share, &s);
    pool_stop(p);
    for (int i = 0; i < 4; i++) {
        EXPECT_STR(s.out[i].ptr, "11-2-3;21-2-3;31-2-3;");
        buf_free(&s.out[i]);
    }
    template_free(t);
    json_free(doc);
}
