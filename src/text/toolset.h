/* toolset.h - the tools that a request declares, and their arguments' types.
 *
 * Model output writes arguments as text; they become JSON by the declared type. What cannot be
 * converted stays a text: a call is never lost over one argument. */
#ifndef TEXT_TOOLSET_H
#define TEXT_TOOLSET_H
#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/map.h"

typedef struct toolset {
    arena mem;
    map functions; /* name -> toolset_function */
} toolset;

typedef struct toolset_function {
    map parameters; /* name -> set of toolset_type */
} toolset_function;

typedef enum toolset_type {
    TOOLSET_STRING = 1,
    TOOLSET_INTEGER = 2,
    TOOLSET_NUMBER = 4,
    TOOLSET_BOOLEAN = 8,
    TOOLSET_OBJECT = 16,
    TOOLSET_ARRAY = 32,
    TOOLSET_NULL = 64
} toolset_type;

/* `tools`: the request's array, wrapped ({"type", "function": {...}}) or bare; may be NULL. */
status toolset_init(toolset *t, const json_node *tools, error *e);
void toolset_free(toolset *t);
const toolset_function *toolset_find(const toolset *t, str name); /* NULL: not declared */
/* The types of a parameter; an undeclared one is a string; 0: declared without a type. */
unsigned toolset_types(const toolset_function *f, str parameter);
/* Appends the JSON value of an argument that is not declared a string. */
status toolset_convert(buf *out, str text, unsigned types, error *e);
/* Appends `json` with the brackets that it leaves open closed; false inside a text or when
 * brackets do not match. */
bool toolset_close_brackets(buf *out, str json);
#endif
