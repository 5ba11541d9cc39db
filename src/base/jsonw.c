/* jsonw.c - see jsonw.h. A single bit decides the commas: it is clear after an opening bracket or a
 * key, set after a value, and a closed container is a value. */
#include "base/jsonw.h"
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/banned.h"

void jsonw_init(jsonw *w, buf *out)
{
    *w = (jsonw){ .out = out };
}

static void begin_value(jsonw *w)
{
    if (w->comma) buf_char(w->out, ',');
    w->comma = true;
}

static void open_container(jsonw *w, char bracket)
{
    begin_value(w);
    buf_char(w->out, bracket);
    w->comma = false;
}

static void close_container(jsonw *w, char bracket)
{
    buf_char(w->out, bracket);
    w->comma = true;
}

void jsonw_object(jsonw *w)
{
    open_container(w, '{');
}

void jsonw_array(jsonw *w)
{
    open_container(w, '[');
}

void jsonw_end_object(jsonw *w)
{
    close_container(w, '}');
}

void jsonw_end_array(jsonw *w)
{
    close_container(w, ']');
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

static void escape_ascii(buf *out, char c)
{
    static const char named[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *at = c ? strchr(named, c) : NULL;
    if (at) {
        buf_char(out, '\\');
        buf_char(out, letters[at - named]);
    } else {
        buf_printf(out, "\\u%04x", (unsigned)(unsigned char)c);
    }
}

void jsonw_escape(buf *out, str s)
{
    size_t done = 0, at = 0;
    while (at < s.len) {
        const unsigned char c = (unsigned char)s.ptr[at];
        uint32_t cp;
        const size_t n = is_plain(c) ? 1 : c >= 0x80 ? str_utf8_next(s, at, &cp) : 0;
        if (n) {
            at += n;
            continue;
        }
        buf_add(out, str_sub(s, done, at));
        if (c >= 0x80) buf_text(out, "\xef\xbf\xbd");
        else escape_ascii(out, s.ptr[at]);
        done = ++at;
    }
    buf_add(out, str_sub(s, done, s.len));
}

static void quoted(buf *out, str s)
{
    buf_char(out, '"');
    jsonw_escape(out, s);
    buf_char(out, '"');
}

void jsonw_key_str(jsonw *w, str key)
{
    begin_value(w);
    quoted(w->out, key);
    buf_char(w->out, ':');
    w->comma = false;
}

void jsonw_key(jsonw *w, const char *key)
{
    jsonw_key_str(w, str_from(key));
}

void jsonw_str(jsonw *w, str s)
{
    begin_value(w);
    quoted(w->out, s);
}

void jsonw_text(jsonw *w, const char *s)
{
    jsonw_str(w, str_from(s));
}

void jsonw_i64(jsonw *w, int64_t v)
{
    begin_value(w);
    buf_printf(w->out, "%" PRId64, v);
}

void jsonw_u64(jsonw *w, uint64_t v)
{
    begin_value(w);
    buf_printf(w->out, "%" PRIu64, v);
}

/* The shortest significant digits that read back to v > 0 (no point, no trailing zeros), and the
 * decimal exponent of the first one. 15 digits always suffice to find a shorter form of a normal
 * number; 17 always read back. */
static size_t shortest_digits(double v, char digits[18], int *exponent)
{
    char text[40];
    for (int precision = v < 2.3e-308 ? 1 : 15;; precision++) {
        (void)snprintf(text, sizeof text, "%.*e", precision - 1, v);
        if (precision >= 17 || strtod(text, NULL) == v) break;
        /* A power of two lies nearer to its lower neighbour: the decimal above may still be its. */
        char *last = strchr(text, 'e') - 1;
        if (precision < 16 || *last == '9') continue;
        ++*last;
        if (strtod(text, NULL) == v) break;
    }
    size_t n = 0;
    const char *p = text;
    for (; *p != 'e'; p++) {
        /* passes over the point, whatever the locale writes */
        if (*p >= '0' && *p <= '9') digits[n++] = *p;
    }
    *exponent = (int)strtol(p + 1, NULL, 10);
    while (n > 1 && digits[n - 1] == '0') n--;
    digits[n] = '\0';
    return n;
}

void jsonw_real(buf *out, double v)
{
    if (!isfinite(v)) {
        buf_text(out, "null");
        return;
    }
    if (signbit(v)) buf_char(out, '-');
    if (v == 0) {
        buf_text(out, "0.0");
        return;
    }
    char digits[18];
    int exponent;
    const size_t n = shortest_digits(fabs(v), digits, &exponent);
    if (exponent < -4 || exponent >= 16) {
        buf_char(out, digits[0]);
        if (n > 1) buf_printf(out, ".%s", digits + 1);
        buf_printf(out, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
    } else if (exponent < 0) {
        buf_printf(out, "0.%.*s%s", -exponent - 1, "000", digits);
    } else {
        const size_t whole = (size_t)exponent + 1;
        for (size_t i = 0; i < whole; i++) buf_char(out, i < n ? digits[i] : '0');
        buf_printf(out, ".%s", n > whole ? digits + whole : "0");
    }
}

void jsonw_f64(jsonw *w, double v)
{
    begin_value(w);
    jsonw_real(w->out, v);
}

void jsonw_fixed(jsonw *w, double v, int decimals)
{
    begin_value(w);
    if (!isfinite(v)) {
        buf_text(w->out, "null");
        return;
    }
    char text[400]; /* 1.8e308 has 309 digits */
    const int n = snprintf(text, sizeof text, "%.*f", decimals < 60 ? decimals : 60, v);
    const char *point = localeconv()->decimal_point;
    const str s = { text, (size_t)n };
    const size_t at = str_find(s, str_from(point));
    if (at == STR_NONE) {
        buf_add(w->out, s);
        return;
    }
    buf_add(w->out, str_sub(s, 0, at));
    buf_char(w->out, '.');
    buf_add(w->out, str_sub(s, at + strlen(point), s.len));
}

void jsonw_bool(jsonw *w, bool v)
{
    begin_value(w);
    buf_text(w->out, v ? "true" : "false");
}

void jsonw_null(jsonw *w)
{
    begin_value(w);
    buf_text(w->out, "null");
}

void jsonw_raw(jsonw *w, str json)
{
    begin_value(w);
    buf_add(w->out, json);
}

/* The reader limits the depth, and so the recursion. */
void jsonw_node(jsonw *w, const json_node *n)
{
    str s = { 0 }, key;
    int64_t i = 0;
    double d = 0;
    void *it = NULL;
    const json_node *value;
    switch (json_kind(n)) {
    case JSON_TRUE:
    case JSON_FALSE: jsonw_bool(w, json_is_true(n)); break;
    case JSON_INT:
        json_i64(n, &i);
        jsonw_i64(w, i);
        break;
    case JSON_BIGINT:
        json_bigint(n, &s);
        jsonw_raw(w, s);
        break;
    case JSON_REAL:
        json_f64(n, &d);
        jsonw_f64(w, d);
        break;
    case JSON_STRING:
        json_str(n, &s);
        jsonw_str(w, s);
        break;
    case JSON_ARRAY:
        jsonw_array(w);
        for (size_t k = 0; k < json_len(n); k++) jsonw_node(w, json_at(n, k));
        jsonw_end_array(w);
        break;
    case JSON_OBJECT:
        jsonw_object(w);
        while (json_each(n, &it, &key, &value)) {
            jsonw_key_str(w, key);
            jsonw_node(w, value);
        }
        jsonw_end_object(w);
        break;
    default: jsonw_null(w); break;
    }
}

void jsonw_member_object(jsonw *w, const char *key)
{
    jsonw_key(w, key);
    jsonw_object(w);
}

void jsonw_member_array(jsonw *w, const char *key)
{
    jsonw_key(w, key);
    jsonw_array(w);
}

void jsonw_member_str(jsonw *w, const char *key, str value)
{
    jsonw_key(w, key);
    jsonw_str(w, value);
}

void jsonw_member_text(jsonw *w, const char *key, const char *value)
{
    jsonw_key(w, key);
    if (value) jsonw_text(w, value);
    else jsonw_null(w);
}

void jsonw_member_i64(jsonw *w, const char *key, int64_t value)
{
    jsonw_key(w, key);
    jsonw_i64(w, value);
}

void jsonw_member_u64(jsonw *w, const char *key, uint64_t value)
{
    jsonw_key(w, key);
    jsonw_u64(w, value);
}

void jsonw_member_f64(jsonw *w, const char *key, double value)
{
    jsonw_key(w, key);
    jsonw_f64(w, value);
}

void jsonw_member_fixed(jsonw *w, const char *key, double value, int decimals)
{
    jsonw_key(w, key);
    jsonw_fixed(w, value, decimals);
}

void jsonw_member_bool(jsonw *w, const char *key, bool value)
{
    jsonw_key(w, key);
    jsonw_bool(w, value);
}

void jsonw_member_raw(jsonw *w, const char *key, const char *json)
{
    jsonw_key(w, key);
    jsonw_raw(w, str_from(json));
}

void jsonw_i32s(jsonw *w, const int32_t *v, size_t n)
{
    jsonw_array(w);
    for (size_t i = 0; i < n; i++) jsonw_i64(w, v[i]);
    jsonw_end_array(w);
}

void jsonw_member_i32s(jsonw *w, const char *key, const int32_t *v, size_t n)
{
    jsonw_key(w, key);
    jsonw_i32s(w, v, n);
}

void jsonw_member_i64s(jsonw *w, const char *key, const int64_t *v, size_t n)
{
    jsonw_member_array(w, key);
    for (size_t i = 0; i < n; i++) jsonw_i64(w, v[i]);
    jsonw_end_array(w);
}
