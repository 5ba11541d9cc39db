/* field.h - members of a JSON object that must have a type and a range, with messages that name
 * file and key. */
#ifndef PACK_FIELD_H
#define PACK_FIELD_H
#include "base/json.h"

typedef struct fields {
    const json_node *object; /* members of anything but an object count as absent */
    const char *file;        /* "king/config.json" */
    const char *prefix;      /* "text_config." or "" */
} fields;

fields field_sub(fields f, const char *key, const char *prefix); /* the member `key` */
bool field_has(fields f, const char *key);                       /* present and not null */

/* The must-have forms fail (E_FORMAT) when the key is absent, of another type, or out of range; the
 * opt forms leave *out alone when it is absent or null. */
status field_int(fields f, const char *key, int64_t min, int64_t max, int *out, error *e);
status field_opt_int(fields f, const char *key, int64_t min, int64_t max, int *out, error *e);
status field_real(fields f, const char *key, double min, double max, double *out, error *e);
status field_opt_real(fields f, const char *key, double min, double max, double *out, error *e);
status field_opt_bool(fields f, const char *key, bool *out, error *e);
status field_opt_str(fields f, const char *key, str *out, error *e);

/* E_UNSUPPORTED unless the key is absent, null or has this value. */
status field_want_bool(fields f, const char *key, bool want, error *e);
status field_want_str(fields f, const char *key, const char *want, error *e);
/* Text shown in a message: cut, control characters replaced. */
const char *field_show(str s, char *text, size_t cap);
#endif
