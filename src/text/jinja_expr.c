/* jinja_expr.c - expressions, by recursive descent with Jinja's precedences. */
#include "text/jinja_expr.h"

#include "text/jinja_filter.h"
#include "text/jinja_test.h"

#include "base/banned.h"

enum { MAX_NESTING = 150 }; /* of brackets and blocks; evaluation nests a few levels for each */

status jinja_expr_fail(jinja_parser *p, const char *what)
{
    const jinja_token *t = jinja_expr_peek(p);
    if (t->type == JINJA_T_NAME || t->type == JINJA_T_OPERATOR) {
        const int n = t->text.len > 60 ? 60 : (int)t->text.len;
        return error_set(p->e, E_FORMAT, "%s: line %d: %s, found '%.*s'", p->name, t->line, what, n,
                         t->text.ptr);
    }
    return error_set(p->e, E_FORMAT, "%s: line %d: %s", p->name, t->line, what);
}

status jinja_expr_enter(jinja_parser *p)
{
    return ++p->depth > MAX_NESTING ? jinja_expr_fail(p, "too deeply nested") : OK;
}

status jinja_expr_node(jinja_parser *p, jinja_node **out, jinja_node_kind kind)
{
    *out = arena_alloc(p->mem, sizeof **out);
    if (!*out) return error_set(p->e, E_NOMEM, "%s: out of memory", p->name);
    (*out)->kind = kind;
    (*out)->line = jinja_expr_peek(p)->line;
    return OK;
}

status jinja_expr_append(jinja_parser *p, jinja_nodes *list, jinja_node *item)
{
    if (list->count == list->cap) {
        const int cap = list->cap ? list->cap * 2 : 4;
        jinja_node **items = arena_array(p->mem, (size_t)cap, sizeof *items);
        if (!items) return error_set(p->e, E_NOMEM, "%s: out of memory", p->name);
        if (list->count) memcpy(items, list->items, (size_t)list->count * sizeof *items);
        list->items = items;
        list->cap = cap;
    }
    list->items[list->count++] = item;
    return OK;
}

bool jinja_expr_is(const jinja_parser *p, const char *op)
{
    const jinja_token *t = jinja_expr_peek(p);
    return t->type == JINJA_T_OPERATOR && str_eq(t->text, str_from(op));
}

bool jinja_expr_is_word(const jinja_parser *p, const char *word)
{
    const jinja_token *t = jinja_expr_peek(p);
    return t->type == JINJA_T_NAME && str_eq(t->text, str_from(word));
}

bool jinja_expr_take(jinja_parser *p, const char *op)
{
    if (!jinja_expr_is(p, op)) return false;
    p->at++;
    return true;
}

bool jinja_expr_take_word(jinja_parser *p, const char *word)
{
    if (!jinja_expr_is_word(p, word)) return false;
    p->at++;
    return true;
}

status jinja_expr_expect(jinja_parser *p, const char *op)
{
    if (jinja_expr_take(p, op)) return OK;
    char what[32] = "expected ' '";
    what[10] = op[0];
    return jinja_expr_fail(p, what);
}

status jinja_expr_identifier(jinja_parser *p, str *out)
{
    const jinja_token *t = jinja_expr_peek(p);
    if (t->type != JINJA_T_NAME) return jinja_expr_fail(p, "expected a name");
    *out = t->text;
    p->at++;
    return OK;
}

status jinja_expr_name(jinja_parser *p, jinja_node **out, jinja_node_kind kind)
{
    uint64_t id = p->names.count;
    TRY(jinja_expr_node(p, out, kind));
    TRY(jinja_expr_identifier(p, &(*out)->text));
    if (!map_get(&p->names, (*out)->text, &id)) TRY(map_put(&p->names, (*out)->text, id, p->e));
    (*out)->id = (int)id;
    if (id == JINJA_ID_VARARGS) p->uses |= JINJA_USES_VARARGS;
    if (id == JINJA_ID_KWARGS) p->uses |= JINJA_USES_KWARGS;
    if (id == JINJA_ID_CALLER) p->uses |= JINJA_USES_CALLER;
    return OK;
}

static status parse_binary(jinja_parser *p, jinja_node **out, int level);

static status constant(jinja_parser *p, jinja_node **out, jinja_value v)
{
    TRY(jinja_expr_node(p, out, JINJA_N_CONST));
    (*out)->value = v;
    p->at++;
    return OK;
}

/* "a, b, c" up to the closing bracket, which is consumed; a comma may stand before it. */
static status parse_items(jinja_parser *p, jinja_nodes *list, const char *close, bool pairs)
{
    bool first = true;
    while (!jinja_expr_is(p, close)) {
        jinja_node *item;
        if (!first) TRY(jinja_expr_expect(p, ","));
        if (jinja_expr_is(p, close)) break;
        first = false;
        TRY(jinja_expr_parse(p, &item));
        TRY(jinja_expr_append(p, list, item));
        if (!pairs) continue;
        TRY(jinja_expr_expect(p, ":"));
        TRY(jinja_expr_parse(p, &item));
        TRY(jinja_expr_append(p, list, item));
    }
    return jinja_expr_expect(p, close);
}

static status parse_string(jinja_parser *p, jinja_node **out)
{
    TRY(constant(p, out, jinja_value_string(jinja_expr_peek(p)->text)));
    if (jinja_expr_peek(p)->type != JINJA_T_STRING) return OK;
    size_t total = (*out)->value.s.len; /* 'a' 'b' is one text */
    for (size_t i = p->at; p->tokens.items[i].type == JINJA_T_STRING; i++)
        total += p->tokens.items[i].text.len;
    char *joined = arena_alloc(p->mem, total + 1);
    if (!joined) return error_set(p->e, E_NOMEM, "%s: out of memory", p->name);
    str s = (*out)->value.s;
    size_t n = 0;
    for (;; s = p->tokens.items[p->at++].text) {
        if (s.len) memcpy(joined + n, s.ptr, s.len);
        n += s.len;
        if (jinja_expr_peek(p)->type != JINJA_T_STRING) break;
    }
    (*out)->value.s = (str){ joined, n };
    return OK;
}

static status parse_word(jinja_parser *p, jinja_node **out)
{
    static const struct {
        const char *word;
        jinja_value value;
    } words[] = {
        { "true", { .type = JINJA_BOOL, .b = true } },
        { "True", { .type = JINJA_BOOL, .b = true } },
        { "false", { .type = JINJA_BOOL } },
        { "False", { .type = JINJA_BOOL } },
        { "none", { .type = JINJA_NONE } },
        { "None", { .type = JINJA_NONE } },
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (jinja_expr_is_word(p, words[i].word)) return constant(p, out, words[i].value);
    return jinja_expr_name(p, out, JINJA_N_NAME);
}

static status parse_primary(jinja_parser *p, jinja_node **out)
{
    const jinja_token *t = jinja_expr_peek(p);
    switch (t->type) {
    case JINJA_T_NAME: return parse_word(p, out);
    case JINJA_T_STRING: return parse_string(p, out);
    case JINJA_T_INTEGER: return constant(p, out, jinja_value_int(t->i));
    case JINJA_T_FLOAT: return constant(p, out, jinja_value_float(t->f));
    case JINJA_T_BIGINT:
        return constant(p, out, (jinja_value){ .type = JINJA_BIGINT, .s = t->text });
    default: break;
    }
    if (jinja_expr_take(p, "(")) {
        TRY(jinja_expr_enter(p));
        if (jinja_expr_is(p, ")")) TRY(jinja_expr_node(p, out, JINJA_N_TUPLE));
        else TRY(jinja_expr_tuple(p, out, true, ""));
        p->depth--;
        return jinja_expr_expect(p, ")");
    }
    const bool list = jinja_expr_is(p, "[");
    if (!list && !jinja_expr_is(p, "{")) return jinja_expr_fail(p, "expected an expression");
    TRY(jinja_expr_enter(p));
    p->at++;
    TRY(jinja_expr_node(p, out, list ? JINJA_N_LIST : JINJA_N_DICT));
    TRY(parse_items(p, &(*out)->list, list ? "]" : "}", !list));
    p->depth--;
    return OK;
}

/* "(a, k=b, *c, **d)" */
static status parse_arguments(jinja_parser *p, jinja_nodes *list)
{
    TRY(jinja_expr_enter(p));
    TRY(jinja_expr_expect(p, "("));
    int last = 0; /* 0 positional, 1 keyword, 2 *, 3 ** */
    while (!jinja_expr_is(p, ")")) {
        jinja_node *arg;
        if (list->count) TRY(jinja_expr_expect(p, ","));
        if (jinja_expr_is(p, ")")) break;
        TRY(jinja_expr_node(p, &arg, JINJA_N_ARGUMENT));
        const jinja_token *t = jinja_expr_peek(p), *next = t + (t->type == JINJA_T_NAME);
        int kind = 0;
        if (jinja_expr_take(p, "*")) {
            arg->op = 1;
            kind = 2;
        } else if (jinja_expr_take(p, "**")) {
            arg->op = 2;
            kind = 3;
        } else if (next > t && next->type == JINJA_T_OPERATOR && str_eq(next->text, STR("="))) {
            arg->text = t->text;
            p->at += 2;
            kind = 1;
        }
        if (kind < last || (kind > 1 && kind == last))
            return jinja_expr_fail(p, "arguments in the wrong order");
        last = kind;
        TRY(jinja_expr_parse(p, &arg->a));
        TRY(jinja_expr_append(p, list, arg));
    }
    p->depth--;
    return jinja_expr_expect(p, ")");
}

/* What stands between the brackets of a[...]; a is in (*out)->a already. */
static status parse_subscript(jinja_parser *p, jinja_node *out)
{
    out->kind = JINJA_N_ITEM;
    if (!jinja_expr_is(p, ":")) TRY(jinja_expr_parse(p, &out->b));
    if (!jinja_expr_take(p, ":")) return OK;
    out->kind = JINJA_N_SLICE;
    if (!jinja_expr_is(p, ":") && !jinja_expr_is(p, "]")) TRY(jinja_expr_parse(p, &out->c));
    if (!jinja_expr_take(p, ":")) return OK;
    if (!jinja_expr_is(p, "]")) TRY(jinja_expr_parse(p, &out->d));
    return OK;
}

static status parse_brackets(jinja_parser *p, jinja_node *out)
{
    TRY(jinja_expr_enter(p));
    TRY(parse_subscript(p, out));
    if (jinja_expr_is(p, ",") && out->kind == JINJA_N_ITEM) { /* a[b, c]: a tuple as key */
        jinja_node *tuple;
        TRY(jinja_expr_node(p, &tuple, JINJA_N_TUPLE));
        TRY(jinja_expr_append(p, &tuple->list, out->b));
        p->at++;
        out->b = tuple;
        TRY(parse_items(p, &tuple->list, "]", false));
    } else {
        TRY(jinja_expr_expect(p, "]"));
    }
    p->depth--;
    return OK;
}

static status parse_dot(jinja_parser *p, jinja_node *out)
{
    const jinja_token *t = jinja_expr_peek(p);
    if (t->type != JINJA_T_INTEGER) {
        out->kind = JINJA_N_ATTRIBUTE;
        return jinja_expr_identifier(p, &out->text);
    }
    out->kind = JINJA_N_ITEM;
    return constant(p, &out->b, jinja_value_int(t->i));
}

/* ".name", "[index]", "(arguments)" after an expression. */
static status parse_postfix(jinja_parser *p, jinja_node **out, bool only_calls)
{
    int chain = 0;
    for (;;) {
        const bool call = jinja_expr_is(p, "(");
        const bool dot = !only_calls && jinja_expr_is(p, ".");
        if (!call && !dot && (only_calls || !jinja_expr_is(p, "["))) return OK;
        if (++chain > MAX_NESTING) return jinja_expr_fail(p, "too long an expression");
        jinja_node *outer;
        TRY(jinja_expr_node(p, &outer, JINJA_N_CALL));
        outer->a = *out;
        *out = outer;
        if (call) {
            TRY(parse_arguments(p, &outer->list));
            continue;
        }
        p->at++;
        TRY(dot ? parse_dot(p, outer) : parse_brackets(p, outer));
    }
}

/* "name.name", as one text. */
static status parse_dotted(jinja_parser *p, str *out)
{
    TRY(jinja_expr_identifier(p, out));
    if (jinja_expr_is(p, ".")) return jinja_expr_fail(p, "unknown filter or test");
    return OK;
}

status jinja_expr_first_filter(jinja_parser *p, jinja_node **node)
{
    jinja_node *outer;
    TRY(jinja_expr_node(p, &outer, JINJA_N_FILTER));
    TRY(parse_dotted(p, &outer->text));
    outer->function = jinja_filter_find(outer->text);
    if (!outer->function && !p->soft) {
        p->at--;
        return jinja_expr_fail(p, "unknown filter");
    }
    outer->a = *node;
    *node = outer;
    if (jinja_expr_is(p, "(")) TRY(parse_arguments(p, &outer->list));
    return jinja_expr_filters(p, node);
}

status jinja_expr_filters(jinja_parser *p, jinja_node **node)
{
    if (!jinja_expr_take(p, "|")) return OK;
    TRY(jinja_expr_enter(p));
    TRY(jinja_expr_first_filter(p, node));
    p->depth--;
    return OK;
}

/* Does the current token begin the argument of a test written without parentheses? */
static bool begins_argument(const jinja_parser *p)
{
    switch (jinja_expr_peek(p)->type) {
    case JINJA_T_STRING:
    case JINJA_T_INTEGER:
    case JINJA_T_FLOAT:
    case JINJA_T_BIGINT: return true;
    case JINJA_T_NAME:
        return !jinja_expr_is_word(p, "else") && !jinja_expr_is_word(p, "or") &&
               !jinja_expr_is_word(p, "and");
    default: return jinja_expr_is(p, "[") || jinja_expr_is(p, "{");
    }
}

/* "is [not] name [arguments]"; "is" has been read. */
static status parse_test(jinja_parser *p, jinja_node **node)
{
    const bool negated = jinja_expr_take_word(p, "not");
    jinja_node *test;
    TRY(jinja_expr_node(p, &test, JINJA_N_TEST));
    TRY(parse_dotted(p, &test->text));
    test->function = jinja_test_find(test->text);
    if (!test->function && !p->soft) {
        p->at--;
        return jinja_expr_fail(p, "unknown test");
    }
    test->a = *node;
    if (jinja_expr_is(p, "(")) {
        TRY(parse_arguments(p, &test->list));
    } else if (begins_argument(p)) {
        if (jinja_expr_is_word(p, "is")) return jinja_expr_fail(p, "tests cannot be chained");
        jinja_node *arg;
        TRY(jinja_expr_node(p, &arg, JINJA_N_ARGUMENT));
        TRY(parse_primary(p, &arg->a));
        TRY(parse_postfix(p, &arg->a, false));
        TRY(jinja_expr_append(p, &test->list, arg));
    }
    *node = test;
    if (!negated) return OK;
    TRY(jinja_expr_node(p, node, JINJA_N_NOT));
    (*node)->a = test;
    return OK;
}

/* Filters, tests and calls of their results. */
static status parse_filters_and_tests(jinja_parser *p, jinja_node **out)
{
    for (int chain = 0;; chain++) {
        if (chain > MAX_NESTING) return jinja_expr_fail(p, "too long an expression");
        if (jinja_expr_is(p, "|")) TRY(jinja_expr_filters(p, out));
        else if (jinja_expr_take_word(p, "is")) TRY(parse_test(p, out));
        else if (jinja_expr_is(p, "(")) TRY(parse_postfix(p, out, true));
        else return OK;
    }
}

static status parse_unary(jinja_parser *p, jinja_node **out, bool filters)
{
    const bool minus = jinja_expr_is(p, "-");
    if (minus || jinja_expr_is(p, "+")) {
        TRY(jinja_expr_enter(p));
        TRY(jinja_expr_node(p, out, minus ? JINJA_N_NEGATIVE : JINJA_N_POSITIVE));
        p->at++;
        TRY(parse_unary(p, &(*out)->a, false));
        p->depth--;
    } else {
        TRY(parse_primary(p, out));
    }
    TRY(parse_postfix(p, out, false));
    return filters ? parse_filters_and_tests(p, out) : OK;
}

static bool find_operator(const jinja_parser *p, int level, jinja_operator *op)
{
    static const struct {
        const char *text;
        int level;
        jinja_operator op;
    } table[] = {
        { "+", 0, JINJA_ADD },  { "-", 0, JINJA_SUB },       { "*", 2, JINJA_MUL },
        { "/", 2, JINJA_DIV },  { "//", 2, JINJA_FLOORDIV }, { "%", 2, JINJA_MOD },
        { "**", 3, JINJA_POW },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (table[i].level == level && jinja_expr_is(p, table[i].text)) {
            *op = table[i].op;
            return true;
        }
    }
    return false;
}

static status parse_concat(jinja_parser *p, jinja_node **out)
{
    TRY(parse_binary(p, out, 2));
    if (!jinja_expr_is(p, "~")) return OK;
    jinja_node *concat;
    TRY(jinja_expr_node(p, &concat, JINJA_N_CONCAT));
    TRY(jinja_expr_append(p, &concat->list, *out));
    while (jinja_expr_take(p, "~")) {
        jinja_node *item;
        TRY(parse_binary(p, &item, 2));
        TRY(jinja_expr_append(p, &concat->list, item));
    }
    *out = concat;
    return OK;
}

/* Left-associative operators; levels: 0 + -, 1 ~, 2 * / // %, 3 **, 4 unary */
static status parse_binary(jinja_parser *p, jinja_node **out, int level)
{
    if (level == 1) return parse_concat(p, out);
    if (level == 4) return parse_unary(p, out, true);
    TRY(parse_binary(p, out, level + 1));
    jinja_operator op;
    for (int chain = 0; find_operator(p, level, &op); chain++) {
        if (chain > MAX_NESTING) return jinja_expr_fail(p, "too long an expression");
        jinja_node *node;
        TRY(jinja_expr_node(p, &node, JINJA_N_ARITHMETIC));
        p->at++;
        node->op = (int)op;
        node->a = *out;
        TRY(parse_binary(p, &node->b, level + 1));
        *out = node;
    }
    return OK;
}

static bool take_comparison(jinja_parser *p, jinja_operator *op)
{
    static const char *const texts[] = { "==", "!=", "<", "<=", ">", ">=" };
    for (int i = 0; i < 6; i++) {
        if (jinja_expr_take(p, texts[i])) {
            *op = (jinja_operator)(JINJA_EQ + i);
            return true;
        }
    }
    if (jinja_expr_take_word(p, "in")) {
        *op = JINJA_IN;
        return true;
    }
    const jinja_token *t = jinja_expr_peek(p);
    if (!jinja_expr_is_word(p, "not") || t[1].type != JINJA_T_NAME || !str_eq(t[1].text, STR("in")))
        return false;
    p->at += 2;
    *op = JINJA_NOT_IN;
    return true;
}

static status parse_compare(jinja_parser *p, jinja_node **out)
{
    TRY(parse_binary(p, out, 0));
    jinja_node *compare = NULL;
    jinja_operator op;
    while (take_comparison(p, &op)) {
        if (!compare) {
            TRY(jinja_expr_node(p, &compare, JINJA_N_COMPARE));
            compare->a = *out;
            *out = compare;
        }
        jinja_node *operand;
        TRY(jinja_expr_node(p, &operand, JINJA_N_OPERAND));
        operand->op = (int)op;
        TRY(parse_binary(p, &operand->a, 0));
        TRY(jinja_expr_append(p, &compare->list, operand));
    }
    return OK;
}

static status parse_not(jinja_parser *p, jinja_node **out)
{
    if (!jinja_expr_is_word(p, "not")) return parse_compare(p, out);
    TRY(jinja_expr_enter(p));
    TRY(jinja_expr_node(p, out, JINJA_N_NOT));
    p->at++;
    TRY(parse_not(p, &(*out)->a));
    p->depth--;
    return OK;
}

static status parse_logic(jinja_parser *p, jinja_node **out, bool or)
{
    TRY(or ? parse_logic(p, out, false) : parse_not(p, out));
    for (int chain = 0; jinja_expr_take_word(p, or ? "or" : "and"); chain++) {
        if (chain > MAX_NESTING) return jinja_expr_fail(p, "too long an expression");
        jinja_node *node;
        TRY(jinja_expr_node(p, &node, or ? JINJA_N_OR : JINJA_N_AND));
        node->a = *out;
        TRY(or ? parse_logic(p, &node->b, false) : parse_not(p, &node->b));
        *out = node;
    }
    return OK;
}

static status parse_choice(jinja_parser *p, jinja_node **out)
{
    TRY(parse_logic(p, out, true));
    for (int chain = 0; jinja_expr_take_word(p, "if"); chain++) {
        if (chain > MAX_NESTING) return jinja_expr_fail(p, "too long an expression");
        const bool was_soft = p->soft;
        p->soft = true;
        jinja_node *node;
        TRY(jinja_expr_node(p, &node, JINJA_N_CHOOSE));
        node->b = *out;
        TRY(parse_logic(p, &node->a, true));
        if (jinja_expr_take_word(p, "else")) TRY(jinja_expr_parse(p, &node->c));
        p->soft = was_soft;
        *out = node;
    }
    return OK;
}

static status parse_bounded(jinja_parser *p, jinja_node **out, bool choose)
{
    TRY(jinja_expr_enter(p));
    TRY(choose ? parse_choice(p, out) : parse_logic(p, out, true));
    p->depth--;
    return OK;
}

status jinja_expr_parse(jinja_parser *p, jinja_node **out)
{
    return parse_bounded(p, out, true);
}

static bool ends_tuple(const jinja_parser *p, const char *end)
{
    const jinja_token_type type = jinja_expr_peek(p)->type;
    return type == JINJA_T_BLOCK_END || type == JINJA_T_PRINT_END || jinja_expr_is(p, ")") ||
           (*end && jinja_expr_is_word(p, end));
}

status jinja_expr_tuple(jinja_parser *p, jinja_node **out, bool choose, const char *end)
{
    TRY(parse_bounded(p, out, choose));
    if (!jinja_expr_is(p, ",")) return OK;
    jinja_node *tuple;
    TRY(jinja_expr_node(p, &tuple, JINJA_N_TUPLE));
    TRY(jinja_expr_append(p, &tuple->list, *out));
    while (jinja_expr_take(p, ",") && !ends_tuple(p, end)) {
        jinja_node *item;
        TRY(parse_bounded(p, &item, choose));
        TRY(jinja_expr_append(p, &tuple->list, item));
    }
    *out = tuple;
    return OK;
}
