/* jinja_parse.h - a template's tokens as a tree. */
#ifndef TEXT_JINJA_PARSE_H
#define TEXT_JINJA_PARSE_H
#include "base/arena.h"
#include "text/jinja_ops.h"

typedef struct jinja_node jinja_node;

typedef struct jinja_nodes {
    jinja_node **items;
    int count, cap;
} jinja_nodes;

/* Which fields a node uses stands beside its kind; `[list]` is `list`. */
typedef enum jinja_node_kind {
    /* expressions */
    JINJA_N_CONST,     /* value */
    JINJA_N_NAME,      /* id, text */
    JINJA_N_LIST,      /* [items] */
    JINJA_N_TUPLE,     /* [items]; also a target of assignment */
    JINJA_N_DICT,      /* [key, value, ...] */
    JINJA_N_ATTRIBUTE, /* a.text */
    JINJA_N_ITEM,      /* a[b] */
    JINJA_N_SLICE,     /* a[b:c:d], each of b c d may be NULL */
    JINJA_N_CALL,      /* a([arguments]) */
    JINJA_N_FILTER,    /* a|text([arguments]) */
    JINJA_N_TEST,      /* a is text([arguments]) */
    JINJA_N_ARGUMENT,  /* of a call: expression a; text: its keyword; op: 0, or 1 for *, 2 for ** */
    JINJA_N_NEGATIVE,  /* -a */
    JINJA_N_POSITIVE,  /* +a */
    JINJA_N_NOT,       /* not a */
    JINJA_N_AND,       /* a and b */
    JINJA_N_OR,        /* a or b */
    JINJA_N_ARITHMETIC, /* a op b */
    JINJA_N_CONCAT,     /* [operands] joined with ~ */
    JINJA_N_COMPARE,    /* a, then [JINJA_N_OPERAND: op, a] */
    JINJA_N_OPERAND,
    JINJA_N_CHOOSE,   /* b if a else c (NULL: missing) */
    JINJA_N_CAPTURED, /* the text that a filter block or set block has collected */
    /* statements */
    JINJA_N_BLOCK,          /* [statements], in the surrounding scope */
    JINJA_N_SCOPE,          /* a, in a scope of its own: `block`, `generation` */
    JINJA_N_DATA,           /* text */
    JINJA_N_PRINT,          /* a */
    JINJA_N_IF,             /* if a: b else: c (may be NULL) */
    JINJA_N_FOR,            /* for a in b if c: d else: e (c, e may be NULL); op: recursive */
    JINJA_N_SET,            /* set a = b; a: name, tuple or NAMESPACE_ITEM */
    JINJA_N_SET_BLOCK,      /* set a = text of b through the filters c (may be NULL) */
    JINJA_N_NAMESPACE_ITEM, /* a.text as a target */
    JINJA_N_WITH,           /* with [target, value, ...]: a */
    JINJA_N_MACRO,          /* macro id, text ([JINJA_N_PARAMETER]): a; op: JINJA_USES_... bits */
    JINJA_N_PARAMETER,      /* id, text; a: default or NULL */
    JINJA_N_CALL_BLOCK,     /* call a: b, a JINJA_N_MACRO */
    JINJA_N_FILTER_BLOCK,   /* text of a through the filters b */
    JINJA_N_BREAK,
    JINJA_N_CONTINUE,
    JINJA_N_REFUSED /* fails when reached; text says why */
} jinja_node_kind;

enum { JINJA_USES_VARARGS = 1, JINJA_USES_KWARGS = 2, JINJA_USES_CALLER = 4 };
/* Names with a meaning have fixed ids. */
enum { JINJA_ID_LOOP, JINJA_ID_CALLER, JINJA_ID_VARARGS, JINJA_ID_KWARGS, JINJA_ID_SELF };

struct jinja_node {
    jinja_node_kind kind;
    int line, id, op;
    str text;
    const void *function; /* of a filter or test, see jinja_filter.h; NULL: unknown */
    jinja_value value;
    jinja_node *a, *b, *c, *d, *e;
    jinja_nodes list;
};

/* The tree of `source`, in `mem`. Fails with "name: line N: ...". */
status jinja_parse_run(jinja_node **out, arena *mem, str source, const char *name, error *e);
#endif
