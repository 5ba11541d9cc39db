/* jinja_parse.c - statements; expressions are in jinja_expr.c. */
#include "text/jinja_parse.h"

#include "text/jinja_expr.h"

#include "base/banned.h"

static status parse_statements(jinja_parser *p, jinja_node **out, const char *ends);

/* Names may be given an id of their own: equal names, equal ids. */
static status start_names(jinja_parser *p)
{
    static const char *const fixed[] = { "loop", "caller", "varargs", "kwargs", "self" };
    for (int i = 0; i < 5; i++) TRY(map_put(&p->names, str_from(fixed[i]), (uint64_t)i, p->e));
    return OK;
}

static status parse_target(jinja_parser *p, jinja_node **out, bool for_set)
{
    jinja_node *tuple = NULL;
    for (;;) {
        jinja_node *item;
        const jinja_token *t = jinja_expr_peek(p);
        if (jinja_expr_take(p, "(")) {
            TRY(jinja_expr_enter(p));
            TRY(parse_target(p, &item, false));
            TRY(jinja_expr_expect(p, ")"));
            p->depth--;
        } else {
            if (t->type != JINJA_T_NAME) return jinja_expr_fail(p, "expected a name to assign to");
            TRY(jinja_expr_name(p, &item, JINJA_N_NAME));
            if (for_set && jinja_expr_take(p, ".")) {
                jinja_node *space = item;
                TRY(jinja_expr_node(p, &item, JINJA_N_NAMESPACE_ITEM));
                item->a = space;
                TRY(jinja_expr_identifier(p, &item->text));
            }
        }
        if (!tuple && !jinja_expr_is(p, ",")) {
            *out = item;
            return OK;
        }
        if (!tuple) TRY(jinja_expr_node(p, &tuple, JINJA_N_TUPLE));
        TRY(jinja_expr_append(p, &tuple->list, item));
        if (!jinja_expr_take(p, ",")) break;
        if (jinja_expr_is(p, "=") || jinja_expr_is(p, ")") || jinja_expr_is_word(p, "in") ||
            jinja_expr_peek(p)->type == JINJA_T_BLOCK_END)
            break;
    }
    *out = tuple;
    return OK;
}

static status parse_if(jinja_parser *p, jinja_node **out)
{
    jinja_node *node;
    TRY(jinja_expr_enter(p)); /* each elif nests */
    TRY(jinja_expr_node(p, &node, JINJA_N_IF));
    TRY(jinja_expr_tuple(p, &node->a, false, ""));
    const bool was_soft = p->soft;
    p->soft = true;
    TRY(parse_statements(p, &node->b, "elif else endif"));
    if (jinja_expr_take_word(p, "elif")) {
        TRY(parse_if(p, &node->c));
    } else if (jinja_expr_take_word(p, "else")) {
        TRY(parse_statements(p, &node->c, "endif"));
        jinja_expr_take_word(p, "endif");
    } else {
        jinja_expr_take_word(p, "endif");
    }
    p->soft = was_soft;
    p->depth--;
    *out = node;
    return OK;
}

static status parse_for(jinja_parser *p, jinja_node **out)
{
    jinja_node *node;
    TRY(jinja_expr_node(p, &node, JINJA_N_FOR));
    TRY(parse_target(p, &node->a, false));
    if (!jinja_expr_take_word(p, "in")) return jinja_expr_fail(p, "expected 'in'");
    TRY(jinja_expr_tuple(p, &node->b, false, "recursive"));
    if (jinja_expr_take_word(p, "if")) TRY(jinja_expr_parse(p, &node->c));
    node->op = jinja_expr_take_word(p, "recursive");
    p->loops++;
    TRY(parse_statements(p, &node->d, "else endfor"));
    p->loops--;
    if (jinja_expr_take_word(p, "else")) TRY(parse_statements(p, &node->e, "endfor"));
    jinja_expr_take_word(p, "endfor");
    *out = node;
    return OK;
}

static status parse_set(jinja_parser *p, jinja_node **out)
{
    jinja_node *node;
    TRY(jinja_expr_node(p, &node, JINJA_N_SET));
    TRY(parse_target(p, &node->a, true));
    *out = node;
    if (jinja_expr_take(p, "=")) return jinja_expr_tuple(p, &node->b, true, "");
    node->kind = JINJA_N_SET_BLOCK;
    if (jinja_expr_is(p, "|")) {
        TRY(jinja_expr_node(p, &node->c, JINJA_N_CAPTURED));
        TRY(jinja_expr_filters(p, &node->c));
    }
    TRY(parse_statements(p, &node->b, "endset"));
    jinja_expr_take_word(p, "endset");
    return OK;
}

/* "(a, b=1)" */
static status parse_signature(jinja_parser *p, jinja_node *macro)
{
    TRY(jinja_expr_expect(p, "("));
    bool defaults = false;
    while (!jinja_expr_is(p, ")")) {
        if (macro->list.count) TRY(jinja_expr_expect(p, ","));
        if (jinja_expr_peek(p)->type != JINJA_T_NAME)
            return jinja_expr_fail(p, "expected the name of a parameter");
        jinja_node *param;
        TRY(jinja_expr_name(p, &param, JINJA_N_PARAMETER));
        if (jinja_expr_take(p, "=")) {
            defaults = true;
            TRY(jinja_expr_parse(p, &param->a));
        } else if (defaults) {
            return jinja_expr_fail(p, "a parameter without default follows one with default");
        }
        TRY(jinja_expr_append(p, &macro->list, param));
    }
    return jinja_expr_expect(p, ")");
}

/* The body of a macro or call block, with a note of the special names it uses. */
static status parse_macro_body(jinja_parser *p, jinja_node *macro, const char *end)
{
    const int outer_uses = p->uses, outer_loops = p->loops;
    p->uses = p->loops = 0;
    TRY(parse_statements(p, &macro->a, end));
    jinja_expr_take_word(p, end);
    macro->op = p->uses;
    p->uses |= outer_uses;
    p->loops = outer_loops;
    return OK;
}

static status parse_macro(jinja_parser *p, jinja_node **out)
{
    if (jinja_expr_peek(p)->type != JINJA_T_NAME)
        return jinja_expr_fail(p, "expected the name of a macro");
    TRY(jinja_expr_name(p, out, JINJA_N_MACRO));
    TRY(parse_signature(p, *out));
    return parse_macro_body(p, *out, "endmacro");
}

static status parse_call(jinja_parser *p, jinja_node **out)
{
    jinja_node *node;
    TRY(jinja_expr_node(p, &node, JINJA_N_CALL_BLOCK));
    TRY(jinja_expr_node(p, &node->b, JINJA_N_MACRO));
    node->b->text = STR("caller");
    if (jinja_expr_is(p, "(")) TRY(parse_signature(p, node->b));
    TRY(jinja_expr_parse(p, &node->a));
    if (node->a->kind != JINJA_N_CALL) return jinja_expr_fail(p, "expected a call");
    *out = node;
    return parse_macro_body(p, node->b, "endcall");
}

static status parse_filter(jinja_parser *p, jinja_node **out)
{
    jinja_node *node;
    TRY(jinja_expr_node(p, &node, JINJA_N_FILTER_BLOCK));
    TRY(jinja_expr_node(p, &node->b, JINJA_N_CAPTURED));
    TRY(jinja_expr_first_filter(p, &node->b));
    TRY(parse_statements(p, &node->a, "endfilter"));
    jinja_expr_take_word(p, "endfilter");
    *out = node;
    return OK;
}

static status parse_with(jinja_parser *p, jinja_node **out)
{
    jinja_node *node;
    TRY(jinja_expr_node(p, &node, JINJA_N_WITH));
    while (jinja_expr_peek(p)->type != JINJA_T_BLOCK_END) {
        jinja_node *target, *value;
        if (node->list.count) TRY(jinja_expr_expect(p, ","));
        TRY(parse_target(p, &target, false));
        TRY(jinja_expr_expect(p, "="));
        TRY(jinja_expr_parse(p, &value));
        TRY(jinja_expr_append(p, &node->list, target));
        TRY(jinja_expr_append(p, &node->list, value));
    }
    TRY(parse_statements(p, &node->a, "endwith"));
    jinja_expr_take_word(p, "endwith");
    *out = node;
    return OK;
}

/* `{% block name %}` without inheritance, and `{% generation %}`: a scope. */
static status parse_scope(jinja_parser *p, jinja_node **out, const char *end, bool named)
{
    jinja_node *node;
    str name = STR("");
    TRY(jinja_expr_node(p, &node, JINJA_N_SCOPE));
    if (named) TRY(jinja_expr_identifier(p, &name));
    const int outer_loops = p->loops;
    if (named && outer_loops) return jinja_expr_fail(p, "a block in a loop is not supported");
    p->loops = 0;
    TRY(parse_statements(p, &node->a, end));
    p->loops = outer_loops;
    jinja_expr_take_word(p, end);
    const jinja_token *t = jinja_expr_peek(p);
    if (named && t->type == JINJA_T_NAME && str_eq(t->text, name)) p->at++;
    *out = node;
    return OK;
}

/* Tags that need other files: nothing is loaded, so reaching one fails. */
static status parse_loader(jinja_parser *p, jinja_node **out)
{
    TRY(jinja_expr_node(p, out, JINJA_N_REFUSED));
    (*out)->text = STR("a template cannot load another one");
    while (jinja_expr_peek(p)->type != JINJA_T_BLOCK_END) p->at++;
    return OK;
}

static status parse_jump(jinja_parser *p, jinja_node **out, jinja_node_kind kind)
{
    TRY(jinja_expr_node(p, out, kind));
    if (p->loops) return OK;
    (*out)->kind = JINJA_N_REFUSED;
    (*out)->text = STR("'break' or 'continue' outside of a loop");
    return OK;
}

/* The statement whose name has been read. */
static status parse_named(jinja_parser *p, str name, jinja_node **out)
{
    static const struct {
        const char *name;
        status (*parse)(jinja_parser *p, jinja_node **out);
    } statements[] = {
        { "if", parse_if },       { "for", parse_for },        { "set", parse_set },
        { "macro", parse_macro }, { "call", parse_call },      { "filter", parse_filter },
        { "with", parse_with },   { "include", parse_loader }, { "import", parse_loader },
        { "from", parse_loader }, { "extends", parse_loader },
    };
    if (str_eq(name, STR("break"))) return parse_jump(p, out, JINJA_N_BREAK);
    if (str_eq(name, STR("continue"))) return parse_jump(p, out, JINJA_N_CONTINUE);
    const bool was_soft = p->soft;
    p->soft = false;
    if (str_eq(name, STR("generation"))) {
        TRY(parse_scope(p, out, "endgeneration", false));
    } else if (str_eq(name, STR("block"))) {
        TRY(parse_scope(p, out, "endblock", true));
    } else {
        size_t i = 0;
        const size_t count = sizeof statements / sizeof *statements;
        while (i < count && !str_eq(name, str_from(statements[i].name))) i++;
        if (i == count) return jinja_expr_fail(p, "unknown or unexpected tag");
        if (i == 0) p->soft = was_soft;
        TRY(statements[i].parse(p, out));
    }
    p->soft = was_soft;
    return OK;
}

/* Is `word` one of the space-separated words of `list`? */
static bool listed(str word, const char *list)
{
    for (const char *at = list; *at;) {
        const size_t n = strcspn(at, " ");
        if (str_eq(word, (str){ at, n })) return true;
        at += n + (at[n] == ' ');
    }
    return false;
}

static status parse_tag(jinja_parser *p, jinja_node **out)
{
    const jinja_token *t = jinja_expr_peek(p);
    if (t->type != JINJA_T_NAME) return jinja_expr_fail(p, "expected the name of a tag");
    p->at++;
    TRY(parse_named(p, t->text, out));
    if (jinja_expr_peek(p)->type != JINJA_T_BLOCK_END)
        return jinja_expr_fail(p, "expected the end of the tag");
    p->at++;
    return OK;
}

static status parse_print(jinja_parser *p, jinja_node **out)
{
    TRY(jinja_expr_node(p, out, JINJA_N_PRINT));
    p->at++;
    TRY(jinja_expr_tuple(p, &(*out)->a, true, ""));
    if (jinja_expr_peek(p)->type != JINJA_T_PRINT_END) return jinja_expr_fail(p, "expected '}}'");
    p->at++;
    return OK;
}

/* Statements up to a tag named in `ends` (not consumed; its "{%" is), or to the end if "". */
static status parse_list(jinja_parser *p, jinja_node *block, const char *ends)
{
    for (;;) {
        const jinja_token *t = jinja_expr_peek(p);
        jinja_node *node;
        if (t->type == JINJA_T_END) return *ends ? jinja_expr_fail(p, "a block is not closed") : OK;
        if (t->type == JINJA_T_DATA) {
            TRY(jinja_expr_node(p, &node, JINJA_N_DATA));
            node->text = t->text;
            p->at++;
        } else if (t->type == JINJA_T_PRINT_BEGIN) {
            TRY(parse_print(p, &node));
        } else {
            p->at++;
            const jinja_token *name = jinja_expr_peek(p);
            if (name->type == JINJA_T_NAME && listed(name->text, ends)) return OK;
            TRY(parse_tag(p, &node));
        }
        TRY(jinja_expr_append(p, &block->list, node));
    }
}

/* The body of a block: from the end of its opening tag to one of `ends`. */
static status parse_statements(jinja_parser *p, jinja_node **out, const char *ends)
{
    TRY(jinja_expr_enter(p));
    if (*ends) {
        if (jinja_expr_peek(p)->type != JINJA_T_BLOCK_END)
            return jinja_expr_fail(p, "expected the end of the tag");
        p->at++;
    }
    TRY(jinja_expr_node(p, out, JINJA_N_BLOCK));
    TRY(parse_list(p, *out, ends));
    p->depth--;
    return OK;
}

status jinja_parse_run(jinja_node **out, arena *mem, str source, const char *name, error *e)
{
    jinja_parser p = { .mem = mem, .name = name, .e = e };
    TRY(jinja_lex_run(&p.tokens, mem, source, name, e));
    map_init(&p.names);
    status s = start_names(&p);
    if (!s) s = parse_statements(&p, out, "");
    map_free(&p.names);
    return s;
}
