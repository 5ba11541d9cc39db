/* jinja_format.c - formatting of texts and numbers; what is rarely used is refused. */
#include "text/jinja_format.h"

#include <math.h>
#include <stdio.h>

#include "text/jinja_repr.h"

#include "base/banned.h"

enum { MAX_WIDTH = 10000, MAX_PRECISION = 100 };

typedef struct spec {
    str fill;   /* one character */
    char align; /* < > ^ =, or 0 for the type's own */
    char sign;  /* '+', ' ' or 0 */
    bool alternate, comma;
    int width, precision; /* precision -1: none */
    char type;            /* 0: none */
} spec;

static status bad_format(jinja_run *r)
{
    return jinja_run_fail(r, "this format is wrong or not supported");
}

/* Reads digits at *at; false when the number exceeds `most`. */
static bool read_number(str s, size_t *at, int most, int *out)
{
    *out = 0;
    for (; *at < s.len && s.ptr[*at] >= '0' && s.ptr[*at] <= '9'; ++*at) {
        *out = *out * 10 + (s.ptr[*at] - '0');
        if (*out > most) return false;
    }
    return true;
}

/* Appends sign and body, padded to the width. */
static void pad(jinja_text *t, const spec *f, str sign, str body, char own_align)
{
    const size_t chars = jinja_value_char_count(sign) + jinja_value_char_count(body);
    const size_t room = (size_t)f->width > chars ? (size_t)f->width - chars : 0;
    const char align = f->align ? f->align : own_align;
    const size_t left = align == '>' ? room : align == '^' ? room / 2 : 0;
    jinja_text_repeat(t, f->fill, left);
    jinja_text_add(t, sign);
    if (align == '=') jinja_text_repeat(t, f->fill, room);
    jinja_text_add(t, body);
    if (align == '<' || align == '^') jinja_text_repeat(t, f->fill, room - left);
}

static str sign_text(const spec *f, bool minus)
{
    return minus ? STR("-") : f->sign == '+' ? STR("+") : f->sign == ' ' ? STR(" ") : STR("");
}

static status put_text(jinja_text *t, const spec *f, str s)
{
    if (f->precision >= 0) s = str_sub(s, 0, jinja_value_char_offset(s, (size_t)f->precision));
    pad(t, f, STR(""), s, '<');
    return t->run->failed;
}

static status put_whole(jinja_text *t, const spec *f, int64_t i)
{
    char digits[80];
    size_t n = sizeof digits;
    uint64_t left = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
    const unsigned base = f->type == 'x' || f->type == 'X' ? 16
                          : f->type == 'o'                 ? 8
                          : f->type == 'b'                 ? 2
                                                           : 10;
    const char *alphabet = f->type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
    if (f->alternate && base != 10) return bad_format(t->run);
    if (f->comma && base != 10) return bad_format(t->run);
    int count = 0;
    do {
        if (f->comma && count && count % 3 == 0) digits[--n] = ',';
        digits[--n] = alphabet[left % base];
        left /= base;
        count++;
    } while (left);
    pad(t, f, sign_text(f, i < 0), (str){ digits + n, sizeof digits - n }, '>');
    return t->run->failed;
}

static status put_real(jinja_text *t, const spec *f, double d)
{
    const int precision = f->precision < 0 ? 6 : f->precision;
    char text[512];
    int n;
    if (f->alternate || f->comma || !isfinite(d)) return bad_format(t->run);
    const double size = fabs(d);
    switch (f->type) {
    case 'e': n = snprintf(text, sizeof text, "%.*e", precision, size); break;
    case 'E': n = snprintf(text, sizeof text, "%.*E", precision, size); break;
    case 'g': n = snprintf(text, sizeof text, "%.*g", precision, size); break;
    case 'G': n = snprintf(text, sizeof text, "%.*G", precision, size); break;
    default: n = snprintf(text, sizeof text, "%.*f", precision, size); break;
    }
    if (n < 0 || (size_t)n >= sizeof text) return bad_format(t->run);
    for (int i = 0; i < n; i++)
        if (text[i] == ',') text[i] = '.'; /* whatever the process's locale */
    pad(t, f, sign_text(f, signbit(d)), (str){ text, (size_t)n }, '>');
    return t->run->failed;
}

/* One value by a specification of str.format. */
static status put_value(jinja_text *t, const spec *f, jinja_value v, bool plain)
{
    str s;
    int64_t i;
    double d;
    const bool is_text = v.type == JINJA_STRING;
    if (plain || is_text) {
        if (is_text && f->type && f->type != 's') return bad_format(t->run);
        if (is_text && (f->align == '=' || f->sign || f->alternate || f->comma))
            return bad_format(t->run);
        TRY(jinja_repr_text(t->run, v, &s));
        return put_text(t, f, s);
    }
    const bool real_type = f->type && strchr("eEfFgG", f->type);
    const bool whole_type = !f->type || strchr("dxXob", f->type);
    if (jinja_value_as_int(v, &i) && whole_type && f->precision < 0) return put_whole(t, f, i);
    if (v.type == JINJA_FLOAT && !f->type && f->precision < 0 && !f->alternate && !f->comma) {
        jinja_text own;
        jinja_text_init(&own, t->run);
        jinja_repr_float(&own, fabs(v.f));
        TRY(jinja_text_done(&own, &s));
        pad(t, f, sign_text(f, signbit(v.f)), s, '>');
        return t->run->failed;
    }
    if (real_type && v.type != JINJA_BIGINT && jinja_value_as_double(v, &d))
        return put_real(t, f, d);
    return bad_format(t->run);
}

/* [[fill]align][sign][#][0][width][,][.precision][type] */
static bool read_spec(str s, spec *f)
{
    *f = (spec){ .fill = STR(" "), .precision = -1 };
    size_t at = 0;
    const size_t first = jinja_value_char_offset(s, 1);
    if (s.len && first < s.len && memchr("<>^=", s.ptr[first], 4)) {
        f->fill = str_sub(s, 0, first);
        f->align = s.ptr[first];
        at = first + 1;
    } else if (s.len && memchr("<>^=", s.ptr[0], 4)) {
        f->align = s.ptr[0];
        at = 1;
    }
    if (at < s.len && memchr("+- ", s.ptr[at], 3)) {
        f->sign = s.ptr[at] == '-' ? '\0' : s.ptr[at];
        at++;
    }
    if (at < s.len && s.ptr[at] == '#') {
        f->alternate = true;
        at++;
    }
    if (at < s.len && s.ptr[at] == '0') {
        if (!f->align) {
            f->fill = STR("0");
            f->align = '=';
        }
        at++;
    }
    if (!read_number(s, &at, MAX_WIDTH, &f->width)) return false;
    if (at < s.len && s.ptr[at] == ',') {
        f->comma = true;
        at++;
    }
    if (at < s.len && s.ptr[at] == '.') {
        at++;
        const size_t digits = at;
        if (!read_number(s, &at, MAX_PRECISION, &f->precision) || at == digits) return false;
    }
    if (at < s.len) f->type = s.ptr[at++];
    return at == s.len && !(f->comma && f->align == '=');
}

typedef struct fields { /* which arguments a format has taken */
    const jinja_args *args;
    int next;
    bool automatic, numbered;
} fields;

static status find_field(jinja_run *r, fields *f, str name, jinja_value *out)
{
    int64_t index = 0;
    if (name.len == 0 || (name.ptr[0] >= '0' && name.ptr[0] <= '9')) {
        f->automatic |= name.len == 0;
        f->numbered |= name.len != 0;
        if (f->automatic && f->numbered) return bad_format(r);
        if (name.len && !str_to_i64(name, &index)) return bad_format(r);
        if (!name.len) index = f->next++;
        if (index >= f->args->count) return jinja_run_fail(r, "a format has too few arguments");
        *out = f->args->items[index];
        return OK;
    }
    for (int i = 0; i < f->args->named_count; i++) {
        if (str_eq(f->args->names[i], name)) {
            *out = f->args->named[i];
            return OK;
        }
    }
    const int n = name.len > 60 ? 60 : (int)name.len;
    return jinja_run_fail(r, "a format wants an argument '%.*s'", n, name.ptr);
}

/* "name!r:spec", what stands between braces */
static status put_field(jinja_text *t, fields *f, str field)
{
    str spec_text = STR(""), own;
    const size_t colon = str_find(field, STR(":"));
    if (colon != STR_NONE) {
        spec_text = str_sub(field, colon + 1, field.len);
        field = str_sub(field, 0, colon);
    }
    char conversion = '\0';
    const size_t mark = str_find(field, STR("!"));
    if (mark != STR_NONE) {
        if (mark + 2 != field.len) return bad_format(t->run);
        conversion = field.ptr[mark + 1];
        field = str_sub(field, 0, mark);
    }
    jinja_value v;
    TRY(find_field(t->run, f, field, &v));
    if (v.type == JINJA_STRING && v.markup) return bad_format(t->run);
    if (conversion == 's') {
        TRY(jinja_repr_text(t->run, v, &own));
        v = jinja_value_string(own);
    } else if (conversion == 'r') {
        jinja_text quoted;
        jinja_text_init(&quoted, t->run);
        TRY(jinja_repr_quoted(&quoted, v));
        TRY(jinja_text_done(&quoted, &own));
        v = jinja_value_string(own);
    } else if (conversion) {
        return bad_format(t->run);
    }
    spec s;
    if (!read_spec(spec_text, &s)) return bad_format(t->run);
    return put_value(t, &s, v, spec_text.len == 0);
}

status jinja_format_braces(jinja_run *r, str format, const jinja_args *args, jinja_value *out)
{
    fields f = { .args = args };
    jinja_text t;
    jinja_text_init(&t, r);
    for (size_t at = 0; at < format.len;) {
        const size_t plain = at;
        while (at < format.len && format.ptr[at] != '{' && format.ptr[at] != '}') at++;
        jinja_text_add(&t, str_sub(format, plain, at));
        if (at == format.len) break;
        const char brace = format.ptr[at];
        if (at + 1 < format.len && format.ptr[at + 1] == brace) {
            jinja_text_char(&t, brace);
            at += 2;
            continue;
        }
        const size_t from = ++at;
        while (at < format.len && !memchr("{}", format.ptr[at], 2)) at++;
        if (brace == '}' || at == format.len || format.ptr[at] == '{') return bad_format(r);
        TRY(put_field(&t, &f, str_sub(format, from, at)));
        at++;
    }
    *out = (jinja_value){ .type = JINJA_STRING };
    return jinja_text_done(&t, &out->s);
}

/* One printf conversion, the type read. */
static status put_conversion(jinja_text *t, spec *f, jinja_value v)
{
    str s;
    int64_t i;
    double d;
    jinja_run *r = t->run;
    if (v.type == JINJA_STRING && v.markup) return bad_format(r);
    switch (f->type) {
    case 's': TRY(jinja_repr_text(r, v, &s)); break;
    case 'r': {
        jinja_text quoted;
        jinja_text_init(&quoted, r);
        TRY(jinja_repr_quoted(&quoted, v));
        TRY(jinja_text_done(&quoted, &s));
        break;
    }
    case 'd':
    case 'i':
    case 'u':
        if (v.type == JINJA_FLOAT && fabs(v.f) < 9e18) v = jinja_value_int((int64_t)v.f);
        if (f->precision >= 0 || f->alternate) return bad_format(r);
        if (jinja_value_as_int(v, &i)) return put_whole(t, f, i);
        return jinja_run_fail(r, "%%%c format: a number is required, not %s", f->type,
                              jinja_value_type_name(v));
    case 'x':
    case 'X':
    case 'o':
        if (f->precision >= 0 || !jinja_value_as_int(v, &i)) return bad_format(r);
        return put_whole(t, f, i);
    default:
        if (!f->type || !strchr("eEfFgG", f->type)) return bad_format(r);
        if (v.type == JINJA_BIGINT || !jinja_value_as_double(v, &d)) return bad_format(r);
        return put_real(t, f, d);
    }
    if (f->align == '=' || !f->align) { /* texts are padded with blanks, on the left */
        f->align = '>';
        f->fill = STR(" ");
    }
    return put_text(t, f, s);
}

/* The flags, width and precision after a %; *at is left at the type. */
static bool read_conversion(str format, size_t *at, spec *f)
{
    *f = (spec){ .fill = STR(" "), .precision = -1 };
    bool zero = false;
    for (; *at < format.len && memchr("-+ #0", format.ptr[*at], 5); ++*at) {
        switch (format.ptr[*at]) {
        case '-': f->align = '<'; break;
        case '+': f->sign = '+'; break;
        case ' ':
            if (!f->sign) f->sign = ' ';
            break;
        case '#': f->alternate = true; break;
        default: zero = true; break;
        }
    }
    if (zero && !f->align) {
        f->align = '=';
        f->fill = STR("0");
    }
    if (!read_number(format, at, MAX_WIDTH, &f->width)) return false;
    if (*at < format.len && format.ptr[*at] == '.') {
        ++*at;
        if (!read_number(format, at, MAX_PRECISION, &f->precision)) return false;
    }
    return *at < format.len;
}

status jinja_format_percent(jinja_run *r, str format, jinja_value values, jinja_value *out)
{
    const bool tuple = values.type == JINJA_TUPLE;
    const size_t count = tuple ? values.list->count : 1;
    size_t used = 0;
    bool keyed = false;
    jinja_text t;
    jinja_text_init(&t, r);
    for (size_t at = 0; at < format.len;) {
        const size_t plain = at;
        while (at < format.len && format.ptr[at] != '%') at++;
        jinja_text_add(&t, str_sub(format, plain, at));
        if (at++ == format.len) break;
        if (at < format.len && format.ptr[at] == '%') {
            jinja_text_char(&t, '%');
            at++;
            continue;
        }
        jinja_value v;
        bool found = false;
        if (at < format.len && format.ptr[at] == '(') {
            const size_t from = ++at;
            while (at < format.len && format.ptr[at] != ')') at++;
            if (at == format.len || values.type != JINJA_DICT) return bad_format(r);
            const jinja_value *item = jinja_value_get_str(values.dict, str_sub(format, from, at++));
            if (!item) return jinja_run_fail(r, "a format names a missing key");
            v = *item;
            found = keyed = true;
        }
        spec f;
        if (!read_conversion(format, &at, &f)) return bad_format(r);
        f.type = format.ptr[at++];
        if (!found) {
            if (used == count) return jinja_run_fail(r, "not enough arguments for format string");
            v = tuple ? values.list->items[used] : values;
            used++;
        }
        TRY(put_conversion(&t, &f, v));
    }
    if (used < count && !keyed && values.type != JINJA_DICT)
        return jinja_run_fail(r, "not all arguments converted during string formatting");
    *out = (jinja_value){ .type = JINJA_STRING };
    return jinja_text_done(&t, &out->s);
}

bool jinja_format_round(double f, int digits, double *out)
{
    char text[512];
    if (digits < 0 || digits > MAX_PRECISION || !isfinite(f)) return false;
    const int n = snprintf(text, sizeof text, "%.*f", digits, f);
    if (n < 0 || (size_t)n >= sizeof text) return false;
    for (int i = 0; i < n; i++)
        if (text[i] == ',') text[i] = '.';
    return str_to_f64((str){ text, (size_t)n }, out);
}
