/* jinja_filter.c - filters of texts, numbers and single values. */
#include "text/jinja_filter.h"

#include <math.h>

#include "text/jinja_format.h"
#include "text/jinja_ops.h"
#include "text/jinja_repr.h"
#include "text/jinja_string.h"
#include "text/unicode.h"

#include "base/banned.h"

static status give_text(jinja_text *t, jinja_value *out)
{
    *out = jinja_value_string(STR(""));
    return jinja_text_done(t, &out->s);
}

/* The text of v, which every filter of texts takes first. Escaped text stays itself only where
 * a filter cannot mix it with plain text; elsewhere it is refused. */
static status plain_text(jinja_run *r, jinja_value v, const char *who, str *out)
{
    if (v.type == JINJA_STRING && v.markup)
        return jinja_run_fail(r, "filter '%s' of escaped text is not supported", who);
    return jinja_repr_text(r, v, out);
}

static status filter_abs(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    TRY(jinja_args_bind(r, "abs", args, "", NULL));
    *out = v;
    if (v.type == JINJA_FLOAT) {
        out->f = fabs(v.f);
        return OK;
    }
    int64_t i;
    if (!jinja_value_as_int(v, &i))
        return jinja_run_fail(r, "bad operand type for abs(): '%s'", jinja_value_type_name(v));
    if (i < 0) return jinja_ops_negate(r, v, out);
    *out = jinja_value_int(i);
    return OK;
}

static status filter_attr(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    const jinja_value *slots[1];
    str name = { 0 };
    TRY(jinja_args_bind(r, "attr", args, "name", slots));
    if (!slots[0]) return jinja_run_fail(r, "attr wants a name");
    TRY(jinja_args_str(r, "attr", slots[0], &name));
    if (v.type != JINJA_DICT) return jinja_method_attribute(r, v, name, out);
    jinja_value empty; /* attributes of a dict are its methods, not its items */
    TRY(jinja_value_dict(r, JINJA_DICT, &empty));
    TRY(jinja_method_attribute(r, empty, name, out));
    return out->type == JINJA_UNDEFINED ? OK : jinja_method_attribute(r, v, name, out);
}

static status change_text(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out,
                          status (*change)(jinja_run *, str, str *))
{
    str s;
    TRY(jinja_args_bind(r, "a change of case", args, "", NULL));
    TRY(jinja_repr_text(r, v, &s));
    *out = jinja_value_string(STR(""));
    out->markup = v.type == JINJA_STRING && v.markup;
    return change(r, s, &out->s);
}

static status filter_upper(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    return change_text(r, v, args, out, jinja_string_upper);
}

static status filter_lower(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    return change_text(r, v, args, out, jinja_string_lower);
}

static status filter_capitalize(jinja_run *r, jinja_value v, const jinja_args *args,
                                jinja_value *out)
{
    return change_text(r, v, args, out, jinja_string_capitalize);
}

static bool splits_title(str s, size_t at)
{
    uint32_t cp = 0;
    str_utf8_next(s, at, &cp);
    return (cp < 0x80 && cp && strchr("-({[<", (int)cp)) || unicode_is_space(cp);
}

/* Upper case after blanks, hyphens and opening brackets, lower case elsewhere. */
static status title(jinja_run *r, str s, str *out)
{
    jinja_text t;
    jinja_text_init(&t, r);
    for (size_t at = 0; at < s.len;) {
        const size_t from = at;
        while (at < s.len && splits_title(s, at))
            at += jinja_value_char_offset(str_sub(s, at, s.len), 1);
        jinja_text_add(&t, str_sub(s, from, at));
        if (at == s.len) break;
        const size_t word = at, rest = at + jinja_value_char_offset(str_sub(s, at, s.len), 1);
        while (at < s.len && !splits_title(s, at))
            at += jinja_value_char_offset(str_sub(s, at, s.len), 1);
        str first, others;
        TRY(jinja_string_upper(r, str_sub(s, word, rest), &first));
        TRY(jinja_string_lower(r, str_sub(s, rest, at), &others));
        jinja_text_add(&t, first);
        jinja_text_add(&t, others);
    }
    return jinja_text_done(&t, out);
}

static status filter_title(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    return change_text(r, v, args, out, title);
}

static status filter_center(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    const jinja_value *slots[1];
    int64_t width = 80;
    str s;
    TRY(jinja_args_bind(r, "center", args, "width", slots));
    TRY(jinja_args_int(r, "center", slots[0], &width));
    TRY(plain_text(r, v, "center", &s));
    *out = jinja_value_string(STR(""));
    return jinja_string_center(r, s, width, &out->s);
}

static status filter_default(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    const jinja_value *slots[2];
    TRY(jinja_args_bind(r, "default", args, "default_value boolean", slots));
    const bool replaces =
        v.type == JINJA_UNDEFINED || (jinja_args_true(slots[1]) && !jinja_value_truth(v));
    *out = !replaces ? v : slots[0] ? *slots[0] : jinja_value_string(STR(""));
    return OK;
}

static status filter_escape(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    TRY(jinja_args_bind(r, "escape", args, "", NULL));
    return jinja_ops_escape(r, v, out);
}

static status filter_safe(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    TRY(jinja_args_bind(r, "safe", args, "", NULL));
    *out = (jinja_value){ .type = JINJA_STRING, .markup = true };
    return jinja_repr_text(r, v, &out->s);
}

static status filter_string(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    TRY(jinja_args_bind(r, "string", args, "", NULL));
    *out = v;
    if (v.type == JINJA_STRING) return OK;
    *out = jinja_value_string(STR(""));
    return jinja_repr_text(r, v, &out->s);
}

static status filter_trim(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    const jinja_value *slots[1];
    str s, chars = { 0 };
    TRY(jinja_args_bind(r, "trim", args, "chars", slots));
    const bool given = slots[0] && slots[0]->type != JINJA_NONE;
    if (given) TRY(jinja_args_str(r, "trim", slots[0], &chars));
    TRY(jinja_repr_text(r, v, &s));
    TRY(jinja_run_work(r, s.len));
    *out = jinja_value_string(jinja_string_strip(s, given ? &chars : NULL, true, true));
    out->markup = v.type == JINJA_STRING && v.markup;
    return OK;
}

static status filter_replace(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    const jinja_value *slots[3];
    str s, old, new;
    int64_t count = -1;
    TRY(jinja_args_bind(r, "replace", args, "old new count", slots));
    if (!slots[0] || !slots[1]) return jinja_run_fail(r, "replace wants two texts");
    if (slots[2] && slots[2]->type != JINJA_NONE)
        TRY(jinja_args_int(r, "replace", slots[2], &count));
    TRY(plain_text(r, v, "replace", &s));
    TRY(plain_text(r, *slots[0], "replace", &old));
    TRY(plain_text(r, *slots[1], "replace", &new));
    *out = jinja_value_string(STR(""));
    return jinja_string_replace(r, s, old, new, count, &out->s);
}

static status filter_indent(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    const jinja_value *slots[3];
    str s, by = { 0 };
    int64_t width = 4;
    TRY(jinja_args_bind(r, "indent", args, "width first blank", slots));
    const bool text = slots[0] && slots[0]->type == JINJA_STRING;
    if (text) by = slots[0]->s;
    else TRY(jinja_args_int(r, "indent", slots[0], &width));
    if (v.type != JINJA_STRING) return jinja_run_fail(r, "indent wants a text");
    TRY(plain_text(r, v, "indent", &s));
    jinja_list lines;
    jinja_text t;
    jinja_text_init(&t, r);
    jinja_text_add(&t, s);
    jinja_text_char(&t, '\n'); /* so that a final line break is seen as a line */
    TRY(jinja_string_lines(r, jinja_text_view(&t), &lines));
    jinja_text_init(&t, r);
    for (size_t i = 0; i < lines.count; i++) {
        const str line = lines.items[i].s;
        if (i) jinja_text_char(&t, '\n');
        if (i ? line.len || jinja_args_true(slots[2]) : jinja_args_true(slots[1])) {
            jinja_text_add(&t, by);
            if (!text && width > 0) jinja_text_repeat(&t, STR(" "), (size_t)width);
        }
        jinja_text_add(&t, line);
    }
    return give_text(&t, out);
}

static status filter_truncate(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    const jinja_value *slots[4];
    int64_t length = 255, leeway = 5;
    str s, end = STR("...");
    TRY(jinja_args_bind(r, "truncate", args, "length killwords end leeway", slots));
    TRY(jinja_args_int(r, "truncate", slots[0], &length));
    TRY(jinja_args_str(r, "truncate", slots[2], &end));
    if (slots[3] && slots[3]->type != JINJA_NONE)
        TRY(jinja_args_int(r, "truncate", slots[3], &leeway));
    if (v.type != JINJA_STRING) return jinja_run_fail(r, "truncate is supported for texts");
    TRY(plain_text(r, v, "truncate", &s));
    const int64_t n = (int64_t)jinja_value_char_count(s),
                  tail = (int64_t)jinja_value_char_count(end);
    if (length < tail || leeway < 0 || length > INT32_MAX || leeway > INT32_MAX)
        return jinja_run_fail(r, "truncate: wrong length");
    *out = jinja_value_string(s);
    if (n <= length + leeway) return OK;
    str kept = str_sub(s, 0, jinja_value_char_offset(s, (size_t)(length - tail)));
    for (size_t i = kept.len; !jinja_args_true(slots[1]) && i-- > 0;) {
        if (kept.ptr[i] != ' ') continue;
        kept.len = i;
        break;
    }
    jinja_text t;
    jinja_text_init(&t, r);
    jinja_text_add(&t, kept);
    jinja_text_add(&t, end);
    return give_text(&t, out);
}

static status filter_wordcount(jinja_run *r, jinja_value v, const jinja_args *args,
                               jinja_value *out)
{
    str s;
    TRY(jinja_args_bind(r, "wordcount", args, "", NULL));
    TRY(jinja_repr_text(r, v, &s));
    TRY(jinja_run_work(r, s.len));
    *out = jinja_value_int(0);
    bool inside = false;
    uint32_t cp;
    for (size_t at = 0, n; at < s.len && (n = str_utf8_next(s, at, &cp)) > 0; at += n) {
        const bool word = unicode_is_letter(cp) || unicode_is_number(cp) || cp == '_';
        out->i += word && !inside;
        inside = word;
    }
    return OK;
}

static status filter_striptags(jinja_run *r, jinja_value v, const jinja_args *args,
                               jinja_value *out)
{
    str s;
    TRY(jinja_args_bind(r, "striptags", args, "", NULL));
    TRY(jinja_repr_text(r, v, &s));
    if (memchr(s.ptr, '&', s.len) || str_find(s, STR("<!--")) != STR_NONE)
        return jinja_run_fail(r, "striptags of entities and comments is not supported");
    jinja_text t;
    jinja_text_init(&t, r);
    for (size_t at = 0; at < s.len;) {
        const char *open = memchr(s.ptr + at, '<', s.len - at);
        const char *close = open ? memchr(open, '>', (size_t)(s.ptr + s.len - open)) : NULL;
        const size_t end = close ? (size_t)(open - s.ptr) : s.len;
        jinja_text_add(&t, str_sub(s, at, end));
        at = close ? (size_t)(close - s.ptr) + 1 : s.len;
    }
    jinja_list words;
    TRY(jinja_string_words(r, jinja_text_view(&t), &words));
    jinja_text_init(&t, r);
    for (size_t i = 0; i < words.count; i++) {
        if (i) jinja_text_char(&t, ' ');
        jinja_text_add(&t, words.items[i].s);
    }
    return give_text(&t, out);
}

static status filter_urlencode(jinja_run *r, jinja_value v, const jinja_args *args,
                               jinja_value *out)
{
    static const char kept[] = "/_.-~";
    TRY(jinja_args_bind(r, "urlencode", args, "", NULL));
    if (v.type != JINJA_STRING) return jinja_run_fail(r, "urlencode is supported for texts");
    jinja_text t;
    jinja_text_init(&t, r);
    for (size_t i = 0; i < v.s.len; i++) {
        const unsigned char c = (unsigned char)v.s.ptr[i];
        const bool plain = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
                           memchr(kept, c, sizeof kept - 1);
        if (plain) jinja_text_char(&t, (char)c);
        else jinja_text_printf(&t, "%%%02X", c);
    }
    return give_text(&t, out);
}

static status filter_format(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    jinja_value values;
    str s;
    TRY(plain_text(r, v, "format", &s));
    if (args->count && args->named_count)
        return jinja_run_fail(r, "format takes either positional or keyword arguments");
    TRY(jinja_value_list(r, JINJA_TUPLE, &values));
    for (int i = 0; i < args->count; i++) TRY(jinja_value_push(r, values.list, args->items[i]));
    if (args->named_count) TRY(jinja_value_dict(r, JINJA_DICT, &values));
    for (int i = 0; i < args->named_count; i++) {
        const jinja_value key = jinja_value_string(args->names[i]);
        TRY(jinja_value_put(r, values.dict, key, args->named[i]));
    }
    return jinja_format_percent(r, s, values, out);
}

/* A decimal text as a float, as Python's float() reads it; false where it raises. */
static bool read_float(str s, double *out)
{
    s = jinja_string_strip(s, NULL, true, true);
    if (s.len && (s.ptr[0] == '+')) s = str_sub(s, 1, s.len);
    for (size_t i = 0; i < s.len; i++)
        if (!memchr("0123456789.eE+-", s.ptr[i], 15)) return false;
    return s.len && str_to_f64(s, out);
}

static bool to_float(jinja_value v, double *out)
{
    return v.type == JINJA_STRING ? read_float(v.s, out) : jinja_value_as_double(v, out);
}

/* int(text, base) */
static bool read_int(str s, int64_t base, int64_t *out)
{
    s = jinja_string_strip(s, NULL, true, true);
    const bool minus = s.len && s.ptr[0] == '-';
    if (s.len && (minus || s.ptr[0] == '+')) s = str_sub(s, 1, s.len);
    const char mark = s.len > 2 && s.ptr[0] == '0' ? (char)(s.ptr[1] | 0x20) : '\0';
    const int64_t marked = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
    if (marked && (base == 0 || base == marked)) {
        base = marked;
        s = str_sub(s, 2, s.len);
    }
    if (base == 0) base = 10;
    *out = 0;
    for (size_t i = 0; i < s.len; i++) {
        const int c = s.ptr[i], lower = c | 0x20;
        const int digit = c >= '0' && c <= '9'           ? c - '0'
                          : lower >= 'a' && lower <= 'z' ? lower - 'a' + 10
                                                         : 99;
        if (digit >= base || __builtin_mul_overflow(*out, base, out) ||
            __builtin_add_overflow(*out, minus ? -digit : digit, out))
            return false;
    }
    return s.len > 0;
}

static status filter_int(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    const jinja_value *slots[2];
    int64_t base = 10, i;
    double f;
    TRY(jinja_args_bind(r, "int", args, "default base", slots));
    TRY(jinja_args_int(r, "int", slots[1], &base));
    if (v.type == JINJA_UNDEFINED) return jinja_value_fail_missing(r, v);
    *out = v;
    if (v.type == JINJA_BIGINT) return OK;
    if (v.type == JINJA_STRING && memchr(v.s.ptr, '_', v.s.len))
        return jinja_run_fail(r, "int of a text with underscores is not supported");
    if (jinja_value_as_int(v, &i) || (v.type == JINJA_STRING && read_int(v.s, base, &i))) {
        *out = jinja_value_int(i);
    } else if (to_float(v, &f) && isfinite(f)) {
        if (fabs(f) > 9e15) return jinja_run_fail(r, "int of so large a number is not supported");
        *out = jinja_value_int((int64_t)f);
    } else {
        *out = slots[0] ? *slots[0] : jinja_value_int(0);
    }
    return OK;
}

static status filter_float(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    const jinja_value *slots[1];
    double f;
    TRY(jinja_args_bind(r, "float", args, "default", slots));
    if (v.type == JINJA_UNDEFINED) return jinja_value_fail_missing(r, v);
    const bool word =
        v.type == JINJA_STRING && (memchr(v.s.ptr, 'n', v.s.len) || memchr(v.s.ptr, 'N', v.s.len) ||
                                   memchr(v.s.ptr, '_', v.s.len));
    if (to_float(v, &f)) *out = jinja_value_float(f);
    else if (word) return jinja_run_fail(r, "float of such a text is not supported");
    else *out = slots[0] ? *slots[0] : jinja_value_float(0);
    return OK;
}

static status filter_round(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    const jinja_value *slots[2];
    int64_t digits = 0;
    double f;
    str method = STR("common");
    TRY(jinja_args_bind(r, "round", args, "precision method", slots));
    TRY(jinja_args_int(r, "round", slots[0], &digits));
    TRY(jinja_args_str(r, "round", slots[1], &method));
    const bool up = str_eq(method, STR("ceil")), down = str_eq(method, STR("floor"));
    if (!up && !down && !str_eq(method, STR("common")))
        return jinja_run_fail(r, "round: method must be common, ceil or floor");
    if (digits < 0 || digits > 15) return jinja_run_fail(r, "round: precision out of range");
    *out = v;
    if (!up && !down && v.type == JINJA_BOOL) *out = jinja_value_int(v.b);
    if (!up && !down && (v.type != JINJA_FLOAT))
        return jinja_value_is_number(v) ? OK : jinja_run_fail(r, "round wants a number");
    if (v.type == JINJA_BIGINT || !jinja_value_as_double(v, &f))
        return jinja_run_fail(r, "round wants a number");
    *out = jinja_value_float(0);
    if (!up && !down) {
        return jinja_format_round(f, (int)digits, &out->f)
                   ? OK
                   : jinja_run_fail(r, "round: out of range");
    }
    double scale = 1;
    for (int64_t i = 0; i < digits; i++) scale *= 10;
    out->f = (up ? ceil(f * scale) : floor(f * scale)) / scale;
    return OK;
}

static status filter_tojson(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    const jinja_value *slots[4];
    TRY(jinja_args_bind(r, "tojson", args, "ensure_ascii indent separators sort_keys", slots));
    jinja_repr_style style = { .ascii = jinja_args_true(slots[0]),
                               .sort_keys = jinja_args_true(slots[3]),
                               .comma = STR(", "),
                               .colon = STR(": ") };
    jinja_text t;
    jinja_text_init(&t, r);
    if (slots[1] && slots[1]->type != JINJA_NONE) {
        int64_t width = 0;
        style.lines = true;
        style.comma = STR(",");
        if (slots[1]->type == JINJA_STRING) style.indent = slots[1]->s;
        else TRY(jinja_args_int(r, "tojson", slots[1], &width));
        if (width > 0) jinja_text_repeat(&t, STR(" "), (size_t)width);
        if (width > 0) TRY(jinja_text_done(&t, &style.indent));
    }
    if (slots[2] && slots[2]->type != JINJA_NONE) {
        jinja_list two;
        TRY(jinja_ops_items(r, *slots[2], &two));
        if (two.count != 2) return jinja_run_fail(r, "tojson: separators must be two texts");
        TRY(jinja_args_str(r, "tojson", &two.items[0], &style.comma));
        TRY(jinja_args_str(r, "tojson", &two.items[1], &style.colon));
    }
    jinja_text_init(&t, r);
    TRY(jinja_repr_json(&t, v, &style));
    return give_text(&t, out);
}

static status filter_xmlattr(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    const jinja_value *slots[1];
    TRY(jinja_args_bind(r, "xmlattr", args, "autospace", slots));
    if (v.type != JINJA_DICT) return jinja_run_fail(r, "xmlattr wants a dict");
    const bool space = !slots[0] || jinja_value_truth(*slots[0]);
    jinja_text t;
    jinja_text_init(&t, r);
    for (size_t i = 0; i < v.dict->count; i++) {
        jinja_value key = v.dict->entries[i].key, value = v.dict->entries[i].value;
        if (value.type == JINJA_NONE || value.type == JINJA_UNDEFINED) continue;
        if (key.type != JINJA_STRING) return jinja_run_fail(r, "xmlattr wants texts as keys");
        for (size_t c = 0; c < key.s.len; c++)
            if (memchr(" />=\t\n\f\r", key.s.ptr[c], 8))
                return jinja_run_fail(r, "xmlattr: a key is no name of an attribute");
        TRY(jinja_ops_escape(r, key, &key));
        TRY(jinja_ops_escape(r, value, &value));
        if (space || t.len) jinja_text_char(&t, ' ');
        jinja_text_add(&t, key.s);
        jinja_text_add(&t, STR("=\""));
        jinja_text_add(&t, value.s);
        jinja_text_char(&t, '"');
    }
    return give_text(&t, out);
}

static status filter_length(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    size_t n;
    TRY(jinja_args_bind(r, "length", args, "", NULL));
    TRY(jinja_ops_length(r, v, &n));
    *out = jinja_value_int((int64_t)n);
    return OK;
}

const jinja_filter *jinja_filter_find(str name)
{
    static const jinja_filter filters[] = {
        { "abs", filter_abs },
        { "attr", filter_attr },
        { "capitalize", filter_capitalize },
        { "center", filter_center },
        { "count", filter_length },
        { "d", filter_default },
        { "default", filter_default },
        { "e", filter_escape },
        { "escape", filter_escape },
        { "filesizeformat", NULL },
        { "float", filter_float },
        { "forceescape", NULL },
        { "format", filter_format },
        { "indent", filter_indent },
        { "int", filter_int },
        { "length", filter_length },
        { "lower", filter_lower },
        { "pprint", NULL },
        { "random", NULL },
        { "replace", filter_replace },
        { "round", filter_round },
        { "safe", filter_safe },
        { "string", filter_string },
        { "striptags", filter_striptags },
        { "title", filter_title },
        { "tojson", filter_tojson },
        { "trim", filter_trim },
        { "truncate", filter_truncate },
        { "upper", filter_upper },
        { "urlencode", filter_urlencode },
        { "urlize", NULL },
        { "wordcount", filter_wordcount },
        { "wordwrap", NULL },
        { "xmlattr", filter_xmlattr },
    };
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        if (str_eq(name, str_from(filters[i].name))) return &filters[i];
    return jinja_sequence_find(name);
}

status jinja_filter_apply(jinja_run *r, const jinja_filter *f, jinja_value v,
                          const jinja_args *args, jinja_value *out)
{
    if (!f->apply) return jinja_run_fail(r, "filter '%s' is not supported", f->name);
    return f->apply(r, v, args, out);
}
