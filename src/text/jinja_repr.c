/* jinja_repr.c - texts of values as Python writes them. */
#include "text/jinja_repr.h"

#include <math.h>

#include "base/jsonw.h"
#include "text/jinja_ops.h"
#include "text/unicode.h"

#include "base/banned.h"

void jinja_repr_float(jinja_text *t, double f)
{
    if (!isfinite(f)) {
        jinja_text_add(t, isnan(f) ? STR("nan") : f < 0 ? STR("-inf") : STR("inf"));
        return;
    }
    buf spelled;
    buf_init(&spelled, 64);
    jsonw_real(&spelled, f); /* spells as Python does */
    if (spelled.failed) jinja_run_no_memory(t->run);
    jinja_text_add(t, buf_view(&spelled));
    buf_free(&spelled);
}

static void quote_text(jinja_text *t, str s)
{
    const bool single = memchr(s.ptr, '\'', s.len) != NULL;
    const bool twice = memchr(s.ptr, '"', s.len) != NULL;
    const char quote = single && !twice ? '"' : '\'';
    jinja_text_char(t, quote);
    for (size_t at = 0; at < s.len;) {
        uint32_t cp = 0;
        const size_t n = str_utf8_next(s, at, &cp);
        if (n == 0) {
            jinja_run_fail(t->run, "a text is not valid UTF-8");
            return;
        }
        if (cp == (uint32_t)quote || cp == '\\') jinja_text_printf(t, "\\%c", (int)cp);
        else if (cp == '\n') jinja_text_add(t, STR("\\n"));
        else if (cp == '\r') jinja_text_add(t, STR("\\r"));
        else if (cp == '\t') jinja_text_add(t, STR("\\t"));
        else if (unicode_is_printable(cp)) jinja_text_add(t, str_sub(s, at, at + n));
        else if (cp < 0x100) jinja_text_printf(t, "\\x%02x", (unsigned)cp);
        else if (cp < 0x10000) jinja_text_printf(t, "\\u%04x", (unsigned)cp);
        else jinja_text_printf(t, "\\U%08x", (unsigned)cp);
        at += n;
    }
    jinja_text_char(t, quote);
}

static status quote_items(jinja_text *t, const jinja_list *l)
{
    for (size_t i = 0; i < l->count; i++) {
        if (i) jinja_text_add(t, STR(", "));
        TRY(jinja_repr_quoted(t, l->items[i]));
    }
    return t->run->failed;
}

static status quote_entries(jinja_text *t, const jinja_dict *d)
{
    for (size_t i = 0; i < d->count; i++) {
        if (i) jinja_text_add(t, STR(", "));
        TRY(jinja_repr_quoted(t, d->entries[i].key));
        jinja_text_add(t, STR(": "));
        TRY(jinja_repr_quoted(t, d->entries[i].value));
    }
    return t->run->failed;
}

static status quote_view(jinja_text *t, jinja_value v)
{
    jinja_list items;
    TRY(jinja_ops_items(t->run, v, &items));
    jinja_text_printf(t, "%s([", jinja_value_type_name(v));
    TRY(quote_items(t, &items));
    jinja_text_add(t, STR("])"));
    return t->run->failed;
}

static status quote(jinja_text *t, jinja_value v)
{
    switch (v.type) {
    case JINJA_UNDEFINED: jinja_text_add(t, STR("Undefined")); break;
    case JINJA_NONE: jinja_text_add(t, STR("None")); break;
    case JINJA_BOOL: jinja_text_add(t, v.b ? STR("True") : STR("False")); break;
    case JINJA_INT: jinja_text_printf(t, "%lld", (long long)v.i); break;
    case JINJA_BIGINT: jinja_text_add(t, v.s); break;
    case JINJA_FLOAT: jinja_repr_float(t, v.f); break;
    case JINJA_STRING:
        if (v.markup) jinja_text_add(t, STR("Markup("));
        quote_text(t, v.s);
        if (v.markup) jinja_text_char(t, ')');
        break;
    case JINJA_LIST:
        jinja_text_char(t, '[');
        TRY(quote_items(t, v.list));
        jinja_text_char(t, ']');
        break;
    case JINJA_TUPLE:
        jinja_text_char(t, '(');
        TRY(quote_items(t, v.list));
        jinja_text_add(t, v.list->count == 1 ? STR(",)") : STR(")"));
        break;
    case JINJA_DICT:
        jinja_text_char(t, '{');
        TRY(quote_entries(t, v.dict));
        jinja_text_char(t, '}');
        break;
    case JINJA_VIEW: return quote_view(t, v);
    case JINJA_RANGE:
        jinja_text_printf(t, "range(%lld, %lld", (long long)v.range->start,
                          (long long)v.range->stop);
        if (v.range->step != 1) jinja_text_printf(t, ", %lld", (long long)v.range->step);
        jinja_text_char(t, ')');
        break;
    default: /* Python shows an address */
        return jinja_run_fail(t->run, "a %s has no text", jinja_value_type_name(v));
    }
    return t->run->failed;
}

status jinja_repr_quoted(jinja_text *t, jinja_value v)
{
    status s = jinja_run_enter(t->run);
    if (!s) s = quote(t, v);
    jinja_run_leave(t->run);
    return s;
}

status jinja_repr_write(jinja_text *t, jinja_value v)
{
    if (v.type == JINJA_STRING) jinja_text_add(t, v.s);
    else if (v.type != JINJA_UNDEFINED) return jinja_repr_quoted(t, v);
    return t->run->failed;
}

status jinja_repr_text(jinja_run *r, jinja_value v, str *out)
{
    if (v.type == JINJA_STRING) {
        *out = v.s;
        return OK;
    }
    jinja_text t;
    jinja_text_init(&t, r);
    TRY(jinja_repr_write(&t, v));
    return jinja_text_done(&t, out);
}

static void json_string(jinja_text *t, str s, bool ascii)
{
    static const char shorts[] = "\bb\ff\nn\rr\tt\"\"\\\\";
    size_t plain = 0;
    jinja_text_char(t, '"');
    for (size_t at = 0; at < s.len && !t->run->failed;) {
        uint32_t cp = (unsigned char)s.ptr[at];
        size_t n = 1;
        if (cp >= 0x20 && cp != '"' && cp != '\\' && (cp < 0x7f || !ascii)) {
            at++;
            continue;
        }
        if (cp >= 0x80) n = str_utf8_next(s, at, &cp);
        if (n == 0) {
            jinja_run_fail(t->run, "a text is not valid UTF-8");
            return;
        }
        jinja_text_add(t, str_sub(s, plain, at));
        const char *known = cp && cp < 0x7f ? strchr(shorts, (int)cp) : NULL;
        if (known && (known - shorts) % 2 == 0) jinja_text_printf(t, "\\%c", known[1]);
        else if (cp < 0x10000) jinja_text_printf(t, "\\u%04x", (unsigned)cp);
        else
            jinja_text_printf(t, "\\u%04x\\u%04x", (unsigned)(0xd7c0 + (cp >> 10)),
                              (unsigned)(0xdc00 + (cp & 0x3ff)));
        at += n;
        plain = at;
    }
    jinja_text_add(t, str_sub(s, plain, s.len));
    jinja_text_char(t, '"');
}

static void json_line(jinja_text *t, const jinja_repr_style *style, int level)
{
    if (!style->lines) return;
    jinja_text_char(t, '\n');
    jinja_text_repeat(t, style->indent, (size_t)level);
}

static void json_float(jinja_text *t, double f)
{
    if (isnan(f)) jinja_text_add(t, STR("NaN"));
    else if (isinf(f)) jinja_text_add(t, f < 0 ? STR("-Infinity") : STR("Infinity"));
    else jinja_repr_float(t, f);
}

static status json_key(jinja_text *t, jinja_value key, bool ascii)
{
    switch (key.type) {
    case JINJA_STRING: json_string(t, key.s, ascii); return t->run->failed;
    case JINJA_NONE: jinja_text_add(t, STR("\"null\"")); return t->run->failed;
    case JINJA_BOOL: jinja_text_add(t, key.b ? STR("\"true\"") : STR("\"false\"")); break;
    case JINJA_INT:
    case JINJA_BIGINT:
    case JINJA_FLOAT:
        jinja_text_char(t, '"');
        if (key.type == JINJA_FLOAT) json_float(t, key.f);
        else TRY(jinja_repr_write(t, key));
        jinja_text_char(t, '"');
        break;
    default:
        return jinja_run_fail(t->run, "keys must be str, int, float, bool or None, not %s",
                              jinja_value_type_name(key));
    }
    return t->run->failed;
}

static status json_value(jinja_text *t, jinja_value v, const jinja_repr_style *style, int level);

static status sorted_entries(jinja_run *r, const jinja_dict *d, jinja_entry **out)
{
    *out = d->entries;
    if (d->count < 2) return OK;
    jinja_entry *copy = jinja_run_grow(r, d->entries, d->count, d->count, sizeof *copy);
    jinja_entry *spare = jinja_run_array(r, d->count, sizeof *spare);
    if (!copy || !spare) return r->failed;
    for (size_t width = 1; width < d->count; width *= 2) { /* merge sort, bottom up */
        for (size_t from = 0, at = 0; from < d->count; from += 2 * width) {
            size_t a = from, b = from + width;
            const size_t a_end = b < d->count ? b : d->count;
            const size_t b_end = b + width < d->count ? b + width : d->count;
            while (a < a_end || b < b_end) {
                int order = a < a_end ? -1 : 1;
                if (a < a_end && b < b_end)
                    TRY(jinja_ops_order(r, copy[a].key, copy[b].key, "<", &order));
                spare[at++] = order <= 0 ? copy[a++] : copy[b++];
            }
        }
        jinja_entry *swap = copy;
        copy = spare;
        spare = swap;
    }
    *out = copy;
    return OK;
}

static status json_dict(jinja_text *t, const jinja_dict *d, const jinja_repr_style *style,
                        int level)
{
    jinja_entry *entries = d->entries;
    if (style->sort_keys) TRY(sorted_entries(t->run, d, &entries));
    jinja_text_char(t, '{');
    for (size_t i = 0; i < d->count; i++) {
        if (i) jinja_text_add(t, style->comma);
        json_line(t, style, level + 1);
        TRY(json_key(t, entries[i].key, style->ascii));
        jinja_text_add(t, style->colon);
        TRY(json_value(t, entries[i].value, style, level + 1));
    }
    if (d->count) json_line(t, style, level);
    jinja_text_char(t, '}');
    return t->run->failed;
}

static status json_list(jinja_text *t, const jinja_list *l, const jinja_repr_style *style,
                        int level)
{
    jinja_text_char(t, '[');
    for (size_t i = 0; i < l->count; i++) {
        if (i) jinja_text_add(t, style->comma);
        json_line(t, style, level + 1);
        TRY(json_value(t, l->items[i], style, level + 1));
    }
    if (l->count) json_line(t, style, level);
    jinja_text_char(t, ']');
    return t->run->failed;
}

static status json_one(jinja_text *t, jinja_value v, const jinja_repr_style *style, int level)
{
    switch (v.type) {
    case JINJA_NONE: jinja_text_add(t, STR("null")); break;
    case JINJA_BOOL: jinja_text_add(t, v.b ? STR("true") : STR("false")); break;
    case JINJA_INT:
    case JINJA_BIGINT: return jinja_repr_write(t, v);
    case JINJA_FLOAT: json_float(t, v.f); break;
    case JINJA_STRING: json_string(t, v.s, style->ascii); break;
    case JINJA_LIST:
    case JINJA_TUPLE: return json_list(t, v.list, style, level);
    case JINJA_DICT: return json_dict(t, v.dict, style, level);
    default:
        return jinja_run_fail(t->run, "Object of type %s is not JSON serializable",
                              jinja_value_type_name(v));
    }
    return t->run->failed;
}

static status json_value(jinja_text *t, jinja_value v, const jinja_repr_style *style, int level)
{
    status s = jinja_run_enter(t->run);
    if (!s) s = json_one(t, v, style, level);
    jinja_run_leave(t->run);
    return s;
}

status jinja_repr_json(jinja_text *t, jinja_value v, const jinja_repr_style *style)
{
    return json_value(t, v, style, 0);
}
