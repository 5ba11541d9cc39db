/* subschema.h - what can be said of parts of a JSON Schema without building anything. */
#ifndef ENGINE_SUBSCHEMA_H
#define ENGINE_SUBSCHEMA_H
#include "base/json.h"

/* The place in the document that a $ref (#/a/b) names, or NULL. */
const json_node *subschema_at(const json_node *root, const json_node *ref);
bool subschema_requires(const json_node *s, str name);
/* types: what stands under "type", a name or a list of names. */
bool subschema_allows_type(const json_node *types, str type);
bool subschema_fits_type(const json_node *types, const json_node *value);
/* True when no value fits both, as far as types, constants and properties that must be there show
 * it within *work, which goes down by what was looked at: recursion meets the same pair of schemas
 * over and over. */
bool subschema_apart(const json_node *root, const json_node *a, const json_node *b, size_t *work);
#endif
