/* fields.c - see fields.h. */
#include "server/fields.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/banned.h"

enum { MOST_JSON = 256 << 20 };

bool fields_refuse(api_error *e, const char *param, const char *fmt, ...)
{
    va_list args;
    *e = (api_error){ .status = 400, .type = "invalid_request_error" };
    snprintf(e->param, sizeof e->param, "%s", param);
    va_start(args, fmt);
    vsnprintf(e->message, sizeof e->message, fmt, args);
    va_end(args);
    return false;
}

bool fields_no_memory(api_error *e)
{
    *e = (api_error){ .status = 503, .type = "unavailable_error", .message = "out of memory" };
    return false;
}

bool fields_parse(json_doc **doc, str body, api_error *e)
{
    error je;
    const status s = json_parse(doc, body, JSON_KEEP_BIGINT, "body", &je);
    if (s == E_NOMEM) return fields_no_memory(e);
    if (s) return fields_refuse(e, "", "%s", je.text);
    const json_node *root = json_root(*doc);
    if (json_kind(root) == JSON_OBJECT) return true;
    fields_refuse(e, "", "body: found %s, want a JSON object", json_kind_name(root));
    json_free(*doc);
    *doc = NULL;
    return false;
}

static bool wrong_type(api_error *e, const char *key, const json_node *found, const char *want)
{
    return fields_refuse(e, key, "'%s': found %s, want %s", key, json_kind_name(found), want);
}

bool fields_present(const json_node *o, const char *key)
{
    const json_node *n = json_get(o, key);
    return n && json_kind(n) != JSON_NULL;
}

const char *fields_type(const json_node *o)
{
    const char *type = json_text(json_get(o, "type"));
    return type ? type : "";
}

bool fields_is(const json_node *o, const char *type)
{
    return strcmp(fields_type(o), type) == 0;
}

bool fields_absent(const json_node *o, const refused_field *list, size_t n, api_error *e)
{
    for (size_t i = 0; i < n; i++) {
        const char *key = list[i].key, *instead = list[i].instead;
        if (!fields_present(o, key)) continue;
        if (!instead) return fields_refuse(e, key, "'%s': not supported", key);
        return fields_refuse(e, key, "'%s': not a field of this call, which has '%s'", key,
                             instead);
    }
    return true;
}

bool fields_bool(const json_node *o, const char *key, bool *out, api_error *e)
{
    if (!fields_present(o, key)) return true;
    return json_bool(json_get(o, key), out) ||
           wrong_type(e, key, json_get(o, key), "true or false");
}

/* A whole number, which may be written 8.0. */
static bool whole(const json_node *n, int64_t *out)
{
    double real;
    if (json_kind(n) != JSON_REAL) return json_i64(n, out);
    if (!json_f64(n, &real) || !(real >= -0x1p53 && real <= 0x1p53)) return false;
    *out = (int64_t)real;
    return real == (double)*out;
}

bool fields_int(const json_node *o, const char *key, int64_t min, int64_t max, int *out,
                api_error *e)
{
    int64_t v;
    bool given;
    if (!fields_i64(o, key, &v, &given, e)) return false;
    if (!given) return true;
    if (v < min || v > max)
        return fields_refuse(e, key, "'%s': found %lld, want a whole number from %lld to %lld", key,
                             (long long)v, (long long)min, (long long)max);
    *out = (int)v;
    return true;
}

bool fields_i64(const json_node *o, const char *key, int64_t *out, bool *given, api_error *e)
{
    *given = fields_present(o, key);
    const json_node *n = json_get(o, key);
    return !*given || whole(n, out) || wrong_type(e, key, n, "a whole number of 64 bits");
}

bool fields_real(const json_node *o, const char *key, double min, double max, float *out,
                 api_error *e)
{
    double v;
    if (!fields_present(o, key)) return true;
    const json_node *n = json_get(o, key);
    if (!json_f64(n, &v)) return wrong_type(e, key, n, "a number");
    if (!(v >= min && v <= max))
        return fields_refuse(e, key, "'%s': found %g, want a number from %g to %g", key, v, min,
                             max);
    *out = (float)v;
    return true;
}

bool fields_text(const json_node *o, const char *key, arena *mem, const char **out, api_error *e)
{
    str s;
    if (!fields_present(o, key)) return true;
    if (!json_str(json_get(o, key), &s)) return wrong_type(e, key, json_get(o, key), "a string");
    if (s.len && memchr(s.ptr, '\0', s.len))
        return fields_refuse(e, key, "'%s': has a NUL character", key);
    *out = arena_strdup(mem, s);
    return *out || fields_no_memory(e);
}

bool fields_object(const json_node *o, const char *key, const json_node **out, api_error *e)
{
    if (!fields_present(o, key)) return true;
    *out = json_get(o, key);
    return json_kind(*out) == JSON_OBJECT || wrong_type(e, key, *out, "an object");
}

bool fields_array(const json_node *o, const char *key, const json_node **out, api_error *e)
{
    if (!fields_present(o, key)) return true;
    *out = json_get(o, key);
    return json_kind(*out) == JSON_ARRAY || wrong_type(e, key, *out, "an array");
}

const char *fields_json(const json_node *n, arena *mem)
{
    buf b;
    jsonw w;
    buf_init(&b, MOST_JSON);
    jsonw_init(&w, &b);
    jsonw_node(&w, n);
    const char *text = b.failed ? NULL : arena_strdup(mem, buf_view(&b));
    buf_free(&b);
    return text;
}

void fields_copy(jsonw *w, const json_node *o, const char *from, const char *to)
{
    if (!fields_present(o, from)) return;
    jsonw_key(w, to);
    jsonw_node(w, json_get(o, from));
}
