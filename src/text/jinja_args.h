/* jinja_args.h - arguments of calls, filters and tests. */
#ifndef TEXT_JINJA_ARGS_H
#define TEXT_JINJA_ARGS_H
#include "text/jinja_value.h"

typedef struct jinja_args {
    const jinja_value *items; /* positional */
    int count;
    const str *names; /* keywords and their values */
    const jinja_value *named;
    int named_count;
} jinja_args;

/* Assigns arguments to the space-separated parameters `names`: slots[i] is NULL where none was
 * given. Too many, unknown or doubled ones fail in the name of `who`. */
status jinja_args_bind(jinja_run *r, const char *who, const jinja_args *a, const char *names,
                       const jinja_value **slots);
/* Values of slots, which may be NULL: then *out stays as it is. */
status jinja_args_int(jinja_run *r, const char *who, const jinja_value *slot, int64_t *out);
status jinja_args_str(jinja_run *r, const char *who, const jinja_value *slot, str *out);
static inline bool jinja_args_true(const jinja_value *slot)
{
    return slot && jinja_value_truth(*slot);
}
#endif
