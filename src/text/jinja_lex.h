/* jinja_lex.h - a template's text as tokens, white space control applied.
 *
 * Line ends become "\n" and one at the very end is dropped; trim_blocks and lstrip_blocks are on.
 * https://jinja.palletsprojects.com/en/stable/templates/ */
#ifndef TEXT_JINJA_LEX_H
#define TEXT_JINJA_LEX_H
#include "base/arena.h"
#include "base/error.h"

typedef enum jinja_token_type {
    JINJA_T_DATA, /* text outside tags */
    JINJA_T_BLOCK_BEGIN,
    JINJA_T_BLOCK_END,
    JINJA_T_PRINT_BEGIN,
    JINJA_T_PRINT_END,
    JINJA_T_NAME,
    JINJA_T_INTEGER,  /* i */
    JINJA_T_BIGINT,   /* text: digits */
    JINJA_T_FLOAT,    /* f */
    JINJA_T_STRING,   /* text: unescaped */
    JINJA_T_OPERATOR, /* text: one of + - / // * % ** ~ [ ] ( ) { } == != > >= < <= = . : | , ; */
    JINJA_T_END
} jinja_token_type;

typedef struct jinja_token {
    jinja_token_type type;
    int line;
    str text; /* borrowed from the source's copy in the arena */
    int64_t i;
    double f;
} jinja_token;

typedef struct jinja_tokens { /* ends with JINJA_T_END */
    jinja_token *items;
    size_t count, cap;
} jinja_tokens;

/* Memory comes from `mem`. E_FORMAT with "name: line N: ..." for what is no template. */
status jinja_lex_run(jinja_tokens *out, arena *mem, str source, const char *name, error *e);
#endif
