/* schema.h - a JSON Schema becomes a grammar of the JSON texts that it allows.
 *
 * Supported: type (also a list), properties, required, additionalProperties, items, minItems,
 * maxItems, minLength, maxLength, enum, const, anyOf, oneOf of branches that cannot overlap, allOf
 * of one, $ref within the document, true. Keywords that only describe (title, description, default,
 * examples, format, ...) change nothing. Any other keyword is refused with its path: a schema is
 * enforced or refused, never half obeyed. Of what a schema allows only a part may be written:
 * properties come in the order they are declared, an object that declares some has no others,
 * without a type the keywords choose it, and constants stand as they are spelled. Between tokens
 * stands at most one space, or a line break and indentation. */
#ifndef ENGINE_SCHEMA_H
#define ENGINE_SCHEMA_H
#include "base/json.h"
#include "engine/grammar.h"

/* blank_line: an empty line may come first, as it does after a thought. */
status schema_compile(grammar **out, const json_node *schema, bool blank_line, error *e);

/* One call of one of these functions, in the form that the model was trained on (text/reply.h reads
 * both). `tagged`: <function=NAME> with a <parameter=KEY> block for each argument, strings as they
 * are; else a JSON object. */
typedef struct schema_call {
    str name;
    const json_node *parameters; /* schema of the arguments; NULL: it takes none */
} schema_call;
status schema_compile_calls(grammar **out, const schema_call *calls, int n, bool tagged,
                            bool blank_line, error *e);
#endif
