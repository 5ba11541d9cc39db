/* jinja_expr.h - parsing expressions, and the parser's common ground. */
#ifndef TEXT_JINJA_EXPR_H
#define TEXT_JINJA_EXPR_H
#include "base/map.h"
#include "text/jinja_lex.h"
#include "text/jinja_parse.h"

typedef struct jinja_parser {
    arena *mem;
    jinja_tokens tokens;
    size_t at;
    map names; /* name -> id */
    int depth; /* of nesting, limited */
    int loops; /* open `for` bodies of the current frame */
    int uses;  /* JINJA_USES_... of the current macro */
    bool soft; /* inside a branch: an unknown filter fails only when reached */
    const char *name;
    error *e;
} jinja_parser;

status jinja_expr_fail(jinja_parser *p, const char *what);
status jinja_expr_enter(jinja_parser *p); /* one level deeper; the caller lowers p->depth again */
status jinja_expr_node(jinja_parser *p, jinja_node **out, jinja_node_kind kind);
status jinja_expr_append(jinja_parser *p, jinja_nodes *list, jinja_node *item);
static inline const jinja_token *jinja_expr_peek(const jinja_parser *p)
{
    return &p->tokens.items[p->at];
}
/* Is the current token this operator, this word? `take` also moves on. */
bool jinja_expr_is(const jinja_parser *p, const char *op);
bool jinja_expr_is_word(const jinja_parser *p, const char *word);
bool jinja_expr_take(jinja_parser *p, const char *op);
bool jinja_expr_take_word(jinja_parser *p, const char *word);
status jinja_expr_expect(jinja_parser *p, const char *op);
status jinja_expr_identifier(jinja_parser *p, str *out);
/* A node of the current name token, which has been checked to be one. */
status jinja_expr_name(jinja_parser *p, jinja_node **out, jinja_node_kind kind);

status jinja_expr_parse(jinja_parser *p, jinja_node **out);
/* An expression, or several with commas: a tuple. `choose`: may be "a if b else c" without
 * parentheses; `end`: a word that ends a tuple. */
status jinja_expr_tuple(jinja_parser *p, jinja_node **out, bool choose, const char *end);
/* Wraps *node into the filters "|a|b(c)" that follow; first_filter: "a|b(c)". */
status jinja_expr_filters(jinja_parser *p, jinja_node **node);
status jinja_expr_first_filter(jinja_parser *p, jinja_node **node);
#endif
