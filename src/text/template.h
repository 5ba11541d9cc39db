/* template.h - chat templates: compiles a Jinja text and renders it.
 *
 * The language is the part of Jinja 3.1 that chat templates use, with the environment that the
 * transformers library gives them: immutable sandbox, trim_blocks, lstrip_blocks, loop controls,
 * the `generation` tag, its tojson, raise_exception and strftime_now. What is not supported
 * fails by name when it is compiled or reached; it never renders differently. A compiled
 * template is immutable: any number of threads may render it at once. Rendering is bounded in
 * steps, recursion, memory and output. */
#ifndef TEXT_TEMPLATE_H
#define TEXT_TEMPLATE_H
#include "base/buf.h"
#include "base/json.h"

typedef struct template template;

typedef enum template_fault {
    TEMPLATE_OK,
    TEMPLATE_SYNTAX, /* the template does not compile */
    TEMPLATE_RAISE,  /* it called raise_exception: the error text is its message alone */
    TEMPLATE_RUNTIME /* any other failure while rendering, limits and memory included */
} template_fault;

enum { TEMPLATE_MAX_SOURCE = 4 << 20, TEMPLATE_MAX_OUTPUT = 64 << 20 };

/* `name` stands in messages ("chat_template.jinja"). Fails with E_FORMAT (syntax), E_LIMIT,
 * E_NOMEM. */
status template_compile(template **out, str source, const char *name, error *e);
void template_free(template *t);

/* The fault's name in results: "syntax", "raise", "runtime"; "ok" for none. */
const char *template_fault_name(template_fault fault);

/* Appends the rendering to `out`. `variables` is an object (or NULL): exactly what the template
 * sees beside the built-in functions. `now_s`: seconds since 1970 of the civil time strftime_now
 * shows; TEMPLATE_NOW reads the clock. Fails with E_ARG (raise), E_FORMAT (runtime), E_LIMIT,
 * E_NOMEM; `fault` (may be NULL) says which kind. After a failure `out` is as it was before. */
#define TEMPLATE_NOW INT64_MIN
status template_render(const template *t, const json_node *variables, int64_t now_s, buf *out,
                       template_fault *fault, error *e);
#endif
