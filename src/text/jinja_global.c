/* jinja_global.c - functions that every template sees. */
#include "text/jinja_global.h"

#include <time.h>

#include "text/jinja_method.h"
#include "text/jinja_ops.h"
#include "text/jinja_repr.h"

#include "base/banned.h"

enum { MAX_RANGE = 100000 }; /* of the sandbox */

static status call_range(jinja_run *r, const jinja_args *args, jinja_value *out)
{
    int64_t n[3] = { 0, 0, 1 };
    if (args->named_count || args->count < 1 || args->count > 3)
        return jinja_run_fail(r, "range wants one to three integers");
    for (int i = 0; i < args->count; i++) {
        const int at = args->count == 1 ? 1 : i;
        TRY(jinja_args_int(r, "range", &args->items[i], &n[at]));
        if (n[at] > INT32_MAX || n[at] < INT32_MIN) return jinja_run_fail(r, "range: too large");
    }
    if (n[2] == 0) return jinja_run_fail(r, "range() arg 3 must not be zero");
    const int64_t span = n[2] > 0 ? n[1] - n[0] : n[0] - n[1];
    const int64_t stride = n[2] > 0 ? n[2] : -n[2];
    const int64_t count = span > 0 ? (span - 1) / stride + 1 : 0;
    if (count > MAX_RANGE) return jinja_run_fail(r, "a range has more than %d items", MAX_RANGE);
    *out = (jinja_value){ .type = JINJA_RANGE };
    out->range = jinja_run_alloc(r, sizeof *out->range);
    if (!out->range) return r->failed;
    *out->range = (jinja_range){ n[0], n[1], n[2], (size_t)count };
    return OK;
}

/* Puts what dict() takes - a mapping or pairs, then keywords - into d. */
static status fill_dict(jinja_run *r, const jinja_args *args, jinja_dict *d)
{
    if (args->count > 1) return jinja_run_fail(r, "dict expected at most 1 argument");
    if (args->count && args->items[0].type == JINJA_DICT) {
        const jinja_dict *from = args->items[0].dict;
        for (size_t i = 0; i < from->count; i++)
            TRY(jinja_value_put(r, d, from->entries[i].key, from->entries[i].value));
    } else if (args->count) {
        jinja_list pairs, pair;
        TRY(jinja_ops_items(r, args->items[0], &pairs));
        for (size_t i = 0; i < pairs.count; i++) {
            TRY(jinja_ops_items(r, pairs.items[i], &pair));
            if (pair.count != 2) return jinja_run_fail(r, "dict wants pairs");
            TRY(jinja_value_put(r, d, pair.items[0], pair.items[1]));
        }
    }
    for (int i = 0; i < args->named_count; i++)
        TRY(jinja_value_put(r, d, jinja_value_string(args->names[i]), args->named[i]));
    return OK;
}

static status call_dict(jinja_run *r, const jinja_args *args, jinja_value *out)
{
    TRY(jinja_value_dict(r, JINJA_DICT, out));
    return fill_dict(r, args, out->dict);
}

static status call_fromkeys(jinja_run *r, const jinja_args *args, jinja_value *out)
{
    const jinja_value *slots[2];
    jinja_list keys;
    TRY(jinja_args_bind(r, "fromkeys", args, "iterable value", slots));
    if (!slots[0]) return jinja_run_fail(r, "fromkeys wants keys");
    TRY(jinja_value_dict(r, JINJA_DICT, out));
    TRY(jinja_ops_items(r, *slots[0], &keys));
    for (size_t i = 0; i < keys.count; i++)
        TRY(jinja_value_put(r, out->dict, keys.items[i], slots[1] ? *slots[1] : JINJA_NONE_VALUE));
    return OK;
}

status jinja_global_store(jinja_run *r, jinja_value space, str name, jinja_value v)
{
    if (space.type != JINJA_NAMESPACE)
        return jinja_run_fail(r, "cannot assign attribute on non-namespace object");
    if (name.len && name.ptr[0] == '_')
        return jinja_run_fail(r, "a namespace cannot store names that begin with an underscore");
    return jinja_value_put(r, space.dict, jinja_value_string(name), v);
}

static status call_namespace(jinja_run *r, const jinja_args *args, jinja_value *out)
{
    jinja_value first;
    TRY(call_dict(r, args, &first));
    TRY(jinja_value_dict(r, JINJA_NAMESPACE, out));
    for (size_t i = 0; i < first.dict->count; i++) {
        const jinja_entry *entry = &first.dict->entries[i];
        if (entry->key.type != JINJA_STRING) return jinja_run_fail(r, "namespace wants names");
        TRY(jinja_global_store(r, *out, entry->key.s, entry->value));
    }
    return OK;
}

static status call_cycler(jinja_run *r, const jinja_args *args, jinja_value *out)
{
    jinja_list items = { 0 };
    if (args->named_count || args->count == 0) return jinja_run_fail(r, "cycler wants items");
    for (int i = 0; i < args->count; i++) TRY(jinja_value_push(r, &items, args->items[i]));
    TRY(jinja_value_iterator(r, items, out));
    out->type = JINJA_CYCLER;
    return OK;
}

static status call_joiner(jinja_run *r, const jinja_args *args, jinja_value *out)
{
    const jinja_value *slots[1];
    jinja_list items = { 0 };
    TRY(jinja_args_bind(r, "joiner", args, "sep", slots));
    TRY(jinja_value_push(r, &items, slots[0] ? *slots[0] : jinja_value_string(STR(", "))));
    TRY(jinja_value_iterator(r, items, out));
    out->type = JINJA_JOINER;
    return OK;
}

static status call_raise(jinja_run *r, const jinja_args *args, jinja_value *out)
{
    const jinja_value *slots[1];
    str message = STR("None");
    TRY(jinja_args_bind(r, "raise_exception", args, "message", slots));
    if (!slots[0]) return jinja_run_fail(r, "raise_exception wants a message");
    TRY(jinja_repr_text(r, *slots[0], &message));
    *out = JINJA_NONE_VALUE;
    return jinja_run_raise(r, message);
}

/* One directive of strftime in the C locale. */
static status put_time(jinja_text *t, const struct tm *at, char directive)
{
    static const char days[] = "SundayMondayTuesdayWednesdayThursdayFridaySaturday";
    static const unsigned char day_ends[] = { 0, 6, 12, 19, 28, 36, 42, 50 };
    static const char months[] =
        "JanuaryFebruaryMarchAprilMayJuneJulyAugustSeptemberOctoberNovemberDecember";
    static const unsigned char month_ends[] = { 0, 7, 15, 20, 25, 28, 32, 36, 42, 51, 58, 66, 74 };
    const int hour12 = at->tm_hour % 12 ? at->tm_hour % 12 : 12;
    const unsigned char *d = day_ends + at->tm_wday, *m = month_ends + at->tm_mon;
    switch (directive) {
    case 'Y': jinja_text_printf(t, "%d", at->tm_year + 1900); break;
    case 'y': jinja_text_printf(t, "%02d", (at->tm_year + 1900) % 100); break;
    case 'm': jinja_text_printf(t, "%02d", at->tm_mon + 1); break;
    case 'd': jinja_text_printf(t, "%02d", at->tm_mday); break;
    case 'e': jinja_text_printf(t, "%2d", at->tm_mday); break;
    case 'H': jinja_text_printf(t, "%02d", at->tm_hour); break;
    case 'I': jinja_text_printf(t, "%02d", hour12); break;
    case 'M': jinja_text_printf(t, "%02d", at->tm_min); break;
    case 'S': jinja_text_printf(t, "%02d", at->tm_sec); break;
    case 'p': jinja_text_add(t, at->tm_hour < 12 ? STR("AM") : STR("PM")); break;
    case 'j': jinja_text_printf(t, "%03d", at->tm_yday + 1); break;
    case 'w': jinja_text_printf(t, "%d", at->tm_wday); break;
    case 'u': jinja_text_printf(t, "%d", at->tm_wday ? at->tm_wday : 7); break;
    case 'A': jinja_text_add(t, (str){ days + d[0], (size_t)(d[1] - d[0]) }); break;
    case 'a': jinja_text_add(t, (str){ days + d[0], 3 }); break;
    case 'B': jinja_text_add(t, (str){ months + m[0], (size_t)(m[1] - m[0]) }); break;
    case 'b':
    case 'h': jinja_text_add(t, (str){ months + m[0], 3 }); break;
    case 'F':
        jinja_text_printf(t, "%d-%02d-%02d", at->tm_year + 1900, at->tm_mon + 1, at->tm_mday);
        break;
    case 'T': jinja_text_printf(t, "%02d:%02d:%02d", at->tm_hour, at->tm_min, at->tm_sec); break;
    case 'R': jinja_text_printf(t, "%02d:%02d", at->tm_hour, at->tm_min); break;
    case 'n': jinja_text_char(t, '\n'); break;
    case 't': jinja_text_char(t, '\t'); break;
    case '%': jinja_text_char(t, '%'); break;
    case 'Z':
    case 'z': break; /* a time without zone */
    default: return jinja_run_fail(t->run, "strftime_now: %%%c is not supported", directive);
    }
    return t->run->failed;
}

static status call_strftime_now(jinja_run *r, const jinja_args *args, jinja_value *out)
{
    const jinja_value *slots[1];
    str format = STR("");
    struct tm at;
    const time_t now = (time_t)r->now_s;
    TRY(jinja_args_bind(r, "strftime_now", args, "format", slots));
    TRY(jinja_args_str(r, "strftime_now", slots[0], &format));
    if (!gmtime_r(&now, &at)) return jinja_run_fail(r, "strftime_now: the clock is out of range");
    jinja_text t;
    jinja_text_init(&t, r);
    for (size_t i = 0; i < format.len; i++) {
        const char c = format.ptr[i];
        if (c != '%' || i + 1 == format.len) jinja_text_char(&t, c);
        else TRY(put_time(&t, &at, format.ptr[++i]));
    }
    *out = jinja_value_string(STR(""));
    return jinja_text_done(&t, &out->s);
}

static const jinja_function fromkeys = { "fromkeys", call_fromkeys };

bool jinja_global_find(str name, jinja_value *out)
{
    static const jinja_function functions[] = {
        { "range", call_range },   { "dict", call_dict },     { "namespace", call_namespace },
        { "cycler", call_cycler }, { "joiner", call_joiner }, { "raise_exception", call_raise },
        { "lipsum", NULL },        { "self", NULL },          { "strftime_now", call_strftime_now },
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (!str_eq(name, str_from(functions[i].name))) continue;
        *out = (jinja_value){ .type = JINJA_FUNCTION, .object = (void *)&functions[i] };
        return true;
    }
    return false;
}

status jinja_global_call(jinja_run *r, jinja_value f, const jinja_args *args, jinja_value *out)
{
    if (f.type == JINJA_JOINER) { /* nothing at first, then the separator */
        TRY(jinja_args_bind(r, "joiner", args, "", NULL));
        *out = f.iter->at++ ? f.iter->items.items[0] : jinja_value_string(STR(""));
        return OK;
    }
    const jinja_function *function = f.object;
    if (!function->call) return jinja_run_fail(r, "calling %s is not supported", function->name);
    return function->call(r, args, out);
}

static status cycler_next(jinja_run *r, jinja_value self, const jinja_args *args, jinja_value *out)
{
    TRY(jinja_args_bind(r, "next", args, "", NULL));
    *out = self.iter->items.items[self.iter->at];
    self.iter->at = (self.iter->at + 1) % self.iter->items.count;
    return OK;
}

static status cycler_reset(jinja_run *r, jinja_value self, const jinja_args *args, jinja_value *out)
{
    TRY(jinja_args_bind(r, "reset", args, "", NULL));
    self.iter->at = 0;
    *out = JINJA_NONE_VALUE;
    return OK;
}

status jinja_global_attribute(jinja_run *r, jinja_value v, str name, jinja_value *out, bool *found)
{
    static const jinja_method next = { "next", cycler_next, false };
    static const jinja_method reset = { "reset", cycler_reset, false };
    *found = true;
    if (v.type == JINJA_CYCLER) {
        if (str_eq(name, STR("next"))) return jinja_method_bind(r, v, &next, out);
        if (str_eq(name, STR("reset"))) return jinja_method_bind(r, v, &reset, out);
        *found = str_eq(name, STR("current"));
        if (*found) *out = v.iter->items.items[v.iter->at];
        return OK;
    }
    const jinja_function *function = v.object;
    *found = function->call == call_dict && str_eq(name, STR("fromkeys"));
    if (*found) *out = (jinja_value){ .type = JINJA_FUNCTION, .object = (void *)&fromkeys };
    return OK;
}
