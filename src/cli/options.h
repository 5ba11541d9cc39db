/* options.h - command lines: tables of options, parsing, and the help text made from the same
 * tables.
 *
 * Options are long (`--name value`, `--name=value`) with a letter for the commonest (`-n 64`). An
 * unknown option names the nearest known one. A value given twice is an error, for one of them
 * would be lost. `--` ends the options. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H
#include <stdio.h>
#include "base/error.h"
#include "base/str.h"

typedef enum option_kind {
    OPTION_END,  /* ends a table */
    OPTION_FLAG, /* bool: set to true */
    OPTION_OFF,  /* bool: set to false */
    OPTION_INT,  /* int within [min, max] */
    OPTION_U64,  /* uint64_t */
    OPTION_REAL, /* double within [min, max] */
    OPTION_TEXT, /* const char *, borrowed from argv */
    OPTION_SIZE, /* uint64_t bytes: 64, 4K, 2M, 8G */
    OPTION_LIST  /* option_list: repeatable text */
} option_kind;

enum { OPTION_LIST_MAX = 64, OPTIONS_MAX_TABLES = 6 };
typedef struct option_list {
    const char *items[OPTION_LIST_MAX];
    int n;
} option_list;

typedef struct option_rest {
    char **items; /* borrowed from argv, whose order changes */
    int n;
} option_rest;

typedef struct option {
    option_kind kind;
    const char *name;
    char letter;          /* 0: none */
    void *value;          /* what the kind says; unchanged when the option is absent */
    const char *argument; /* "N", "FILE", "f16|f32|q8": names the value in the help */
    const char *help;
    double min, max; /* of numbers; min: of sizes, too */
    bool *given;     /* set to true when the option occurs; may be NULL */
} option;

typedef struct options_command {
    const char *name;
    const char *usage;                        /* what follows `ingot NAME` */
    const char *summary;                      /* one line */
    const char *details;                      /* a further paragraph of the help, or NULL */
    const option *tables[OPTIONS_MAX_TABLES]; /* the rest is NULL */
    const char **positional[3];               /* where positional arguments go */
    int min_positional, max_positional;
    option_rest *rest; /* where further ones go; NULL: there may be none */
} options_command;

/* *help is set when the command line asks for help: nothing else was checked then. E_ARG
 * otherwise. */
status options_parse(const options_command *c, int argc, char **argv, bool *help, error *e);
void options_help(const options_command *c, FILE *out);
/* The candidate nearest to `name` by edit distance, or NULL when none is near: at most three, and
 * half of the name's letters, may be wrong. */
const char *options_nearest(const char *name, const char *const *candidates, int n);
/* "4" or "auto": rows of a step; 0 is auto. */
status options_block(const char *text, int *block, error *e);
#endif
