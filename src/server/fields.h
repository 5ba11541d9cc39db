/* fields.h - strict reading of a request's JSON: every field has one type and one range, and a
 * refusal names it.
 *
 * A missing or null member leaves the value as it was. Every function returns false after filling
 * the api_error. */
#ifndef SERVER_FIELDS_H
#define SERVER_FIELDS_H
#include "base/arena.h"
#include "base/json.h"
#include "base/jsonw.h"

typedef struct api_error {
    int status;       /* HTTP */
    const char *type; /* "invalid_request_error", ... */
    const char *code; /* NULL: null */
    char param[96];   /* "": null */
    char message[640];
    int n_prompt, n_ctx; /* > 0: a prompt, or it and the output, longer than the context */
    int n_output;        /* as asked for */
} api_error;

/* Fills e with a 400 about `param` and returns false. */
bool fields_refuse(api_error *e, const char *param, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

bool fields_no_memory(api_error *e); /* a 503 */
/* A body that is one JSON object; the caller frees *doc. */
bool fields_parse(json_doc **doc, str body, api_error *e);
bool fields_present(const json_node *o, const char *key); /* there and not null */
const char *fields_type(const json_node *o);              /* its "type"; "" when that is no text */
bool fields_is(const json_node *o, const char *type);
/* A field that is known and not taken: what it asks for is not there, or has another name. */
typedef struct refused_field {
    const char *key, *instead; /* NULL: nothing */
} refused_field;
/* Refuses each of list [n] that is present. */
bool fields_absent(const json_node *o, const refused_field *list, size_t n, api_error *e);
bool fields_bool(const json_node *o, const char *key, bool *out, api_error *e);
bool fields_int(const json_node *o, const char *key, int64_t min, int64_t max, int *out,
                api_error *e);
bool fields_i64(const json_node *o, const char *key, int64_t *out, bool *given, api_error *e);
bool fields_real(const json_node *o, const char *key, double min, double max, float *out,
                 api_error *e);
/* NUL-terminated copy in the arena; refuses NUL bytes inside. */
bool fields_text(const json_node *o, const char *key, arena *mem, const char **out, api_error *e);
bool fields_object(const json_node *o, const char *key, const json_node **out, api_error *e);
bool fields_array(const json_node *o, const char *key, const json_node **out, api_error *e);
/* A node as JSON text in the arena; NULL when memory is short. */
const char *fields_json(const json_node *n, arena *mem);
/* Writes member `from` of o as member `to`; nothing when it is missing or null. */
void fields_copy(jsonw *w, const json_node *o, const char *from, const char *to);
#endif
