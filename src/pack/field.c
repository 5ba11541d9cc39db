/* field.c - typed access to the members of a config. */
#include "pack/field.h"
#include "base/banned.h"

fields field_sub(fields f, const char *key, const char *prefix)
{
    return (fields){ json_get(f.object, key), f.file, prefix };
}

bool field_has(fields f, const char *key)
{
    const json_type t = json_kind(json_get(f.object, key));
    return t != JSON_NONE && t != JSON_NULL;
}

const char *field_show(str s, char *text, size_t cap)
{
    const size_t n = s.len < cap - 1 ? s.len : cap - 1;
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)s.ptr[i];
        text[i] = c < 0x20 || c >= 0x7f ? '?' : s.ptr[i];
    }
    text[n] = 0;
    return text;
}

static status wrong_type(fields f, const char *key, const char *want, error *e)
{
    return error_set(e, E_FORMAT, "%s: %s%s: found %s, want %s", f.file, f.prefix, key,
                     json_kind_name(json_get(f.object, key)), want);
}

status field_opt_int(fields f, const char *key, int64_t min, int64_t max, int *out, error *e)
{
    if (!field_has(f, key)) return OK;
    int64_t v;
    if (!json_i64(json_get(f.object, key), &v)) return wrong_type(f, key, "an integer", e);
    if (v < min || v > max) {
        return error_set(e, E_FORMAT, "%s: %s%s: found %lld, want %lld to %lld", f.file, f.prefix,
                         key, (long long)v, (long long)min, (long long)max);
    }
    *out = (int)v;
    return OK;
}

status field_int(fields f, const char *key, int64_t min, int64_t max, int *out, error *e)
{
    if (!field_has(f, key)) return wrong_type(f, key, "an integer", e);
    return field_opt_int(f, key, min, max, out, e);
}

status field_opt_real(fields f, const char *key, double min, double max, double *out, error *e)
{
    if (!field_has(f, key)) return OK;
    double v;
    if (!json_f64(json_get(f.object, key), &v)) return wrong_type(f, key, "a number", e);
    if (!(v >= min && v <= max)) {
        return error_set(e, E_FORMAT, "%s: %s%s: found %g, want %g to %g", f.file, f.prefix, key, v,
                         min, max);
    }
    *out = v;
    return OK;
}

status field_real(fields f, const char *key, double min, double max, double *out, error *e)
{
    if (!field_has(f, key)) return wrong_type(f, key, "a number", e);
    return field_opt_real(f, key, min, max, out, e);
}

status field_opt_bool(fields f, const char *key, bool *out, error *e)
{
    if (!field_has(f, key)) return OK;
    if (!json_bool(json_get(f.object, key), out)) return wrong_type(f, key, "true or false", e);
    return OK;
}

status field_opt_str(fields f, const char *key, str *out, error *e)
{
    if (!field_has(f, key)) return OK;
    if (!json_str(json_get(f.object, key), out)) return wrong_type(f, key, "a string", e);
    return OK;
}

status field_want_bool(fields f, const char *key, bool want, error *e)
{
    bool v = want;
    TRY(field_opt_bool(f, key, &v, e));
    if (v == want) return OK;
    return error_set(e, E_UNSUPPORTED, "%s: %s%s: found %s, want %s", f.file, f.prefix, key,
                     v ? "true" : "false", want ? "true" : "false");
}

status field_want_str(fields f, const char *key, const char *want, error *e)
{
    str v = str_from(want);
    TRY(field_opt_str(f, key, &v, e));
    if (str_eq(v, str_from(want))) return OK;
    char shown[64];
    return error_set(e, E_UNSUPPORTED, "%s: %s%s: found \"%s\", want \"%s\"", f.file, f.prefix, key,
                     field_show(v, shown, sizeof shown), want);
}
