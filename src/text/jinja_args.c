/* jinja_args.c - arguments of calls, filters and tests. */
#include "text/jinja_args.h"

#include "base/banned.h"

/* The number of `name` among the words of `names`, or -1; *count gets the number of words. */
static int find_word(const char *names, str name, int *count)
{
    int found = -1;
    *count = 0;
    for (const char *at = names; *at;) {
        const size_t n = strcspn(at, " ");
        if (str_eq(name, (str){ at, n })) found = *count;
        ++*count;
        at += n + (at[n] == ' ');
    }
    return found;
}

status jinja_args_bind(jinja_run *r, const char *who, const jinja_args *a, const char *names,
                       const jinja_value **slots)
{
    int count;
    find_word(names, STR(""), &count);
    if (a->count > count)
        return jinja_run_fail(r, "%s takes at most %d argument(s), found %d", who, count, a->count);
    for (int i = 0; i < count; i++) slots[i] = i < a->count ? &a->items[i] : NULL;
    for (int i = 0; i < a->named_count; i++) {
        const int at = find_word(names, a->names[i], &count);
        const int n = a->names[i].len > 60 ? 60 : (int)a->names[i].len;
        if (at < 0 || slots[at]) {
            return jinja_run_fail(r, "%s got an unexpected argument '%.*s'", who, n,
                                  a->names[i].ptr);
        }
        slots[at] = &a->named[i];
    }
    return OK;
}

status jinja_args_int(jinja_run *r, const char *who, const jinja_value *slot, int64_t *out)
{
    if (!slot || jinja_value_as_int(*slot, out)) return OK;
    return jinja_run_fail(r, "%s: expected an integer, found %s", who,
                          jinja_value_type_name(*slot));
}

status jinja_args_str(jinja_run *r, const char *who, const jinja_value *slot, str *out)
{
    if (!slot) return OK;
    if (slot->type != JINJA_STRING) {
        return jinja_run_fail(r, "%s: expected a text, found %s", who,
                              jinja_value_type_name(*slot));
    }
    *out = slot->s;
    return OK;
}
