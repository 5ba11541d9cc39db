/* jinja_lex.c - a template's text as tokens. */
#include "text/jinja_lex.h"

#include "text/unicode.h"

#include "base/banned.h"

enum { MAX_BRACKETS = 200 };

typedef struct lexer {
    arena *mem;
    str src;
    size_t at;
    int line;
    size_t line_at; /* `line` counts the line breaks before this place */
    jinja_tokens *out;
    const char *name;
    error *e;
} lexer;

static int line_of(lexer *x, size_t at)
{
    for (; x->line_at < at; x->line_at++) x->line += x->src.ptr[x->line_at] == '\n';
    return x->line;
}

static status fail(lexer *x, const char *what)
{
    return error_set(x->e, E_FORMAT, "%s: line %d: %s", x->name, line_of(x, x->at), what);
}

static status no_memory(lexer *x)
{
    return error_set(x->e, E_NOMEM, "%s: out of memory", x->name);
}

static status push(lexer *x, jinja_token token, size_t at)
{
    jinja_tokens *out = x->out;
    if (out->count == out->cap) {
        const size_t cap = out->cap ? out->cap * 2 : 256;
        jinja_token *items = arena_array(x->mem, cap, sizeof *items);
        if (!items) return no_memory(x);
        if (out->count) memcpy(items, out->items, out->count * sizeof *items);
        out->items = items;
        out->cap = cap;
    }
    token.line = line_of(x, at);
    out->items[out->count++] = token;
    return OK;
}

static bool looking_at(const lexer *x, size_t at, str s)
{
    return at <= x->src.len && str_starts(str_sub(x->src, at, x->src.len), s);
}

static char byte_at(const lexer *x, size_t at)
{
    return at < x->src.len ? x->src.ptr[at] : '\0';
}

/* The place after the white space at `at`; Python's white space. */
static size_t skip_space(const lexer *x, size_t at)
{
    uint32_t cp;
    size_t n;
    while (at < x->src.len && (n = str_utf8_next(x->src, at, &cp)) > 0 && unicode_is_space(cp))
        at += n;
    return at;
}

/* The end of src[from, to) without the white space at its end. */
static size_t trim_right(const lexer *x, size_t from, size_t to)
{
    while (to > from) {
        size_t start = to - 1;
        while (start > from && ((unsigned char)x->src.ptr[start] & 0xc0) == 0x80) start--;
        uint32_t cp;
        if (!str_utf8_next(x->src, start, &cp) || !unicode_is_space(cp)) break;
        to = start;
    }
    return to;
}

/* The text src[from, to) before a tag: `sign` is the character after the tag's opening, `strips`
 * whether lstrip_blocks applies to this kind of tag. */
static status push_data(lexer *x, size_t from, size_t to, char sign, bool strips)
{
    if (sign == '-') {
        to = trim_right(x, from, to);
    } else if (sign != '+' && strips) {
        size_t line_start = to;
        while (line_start > from && x->src.ptr[line_start - 1] != '\n') line_start--;
        const bool at_line_start = line_start > from || from == 0 || x->src.ptr[from - 1] == '\n';
        if (at_line_start && skip_space(x, line_start) >= to) to = line_start;
    }
    if (to == from) return OK;
    return push(x, (jinja_token){ .type = JINJA_T_DATA, .text = str_sub(x->src, from, to) }, from);
}

/* Skips a tag's end at x->at ("%}", "-%}", "+%}"; `close` is "%}") and what it takes with it.
 * False when there is none. */
static bool skip_end(lexer *x, str close, bool trims)
{
    size_t at = x->at;
    const char sign = byte_at(x, at);
    const bool minus = sign == '-' && looking_at(x, at + 1, close);
    const bool plus = trims && sign == '+' && looking_at(x, at + 1, close);
    if (minus || plus) at++;
    if (!looking_at(x, at, close)) return false;
    at += close.len;
    if (minus) at = skip_space(x, at);
    else if (trims && !plus && byte_at(x, at) == '\n') at++;
    x->at = at;
    return true;
}

static status skip_comment(lexer *x)
{
    const size_t start = x->at;
    x->at += 2;
    if (byte_at(x, x->at) == '-' || byte_at(x, x->at) == '+') x->at++;
    for (; x->at < x->src.len; x->at++)
        if (skip_end(x, STR("#}"), true)) return OK;
    x->at = start;
    return fail(x, "a comment has no end");
}

/* Is there `{% word` at `at`, with any sign? Returns the place after the word, else 0. */
static size_t tag_word(const lexer *x, size_t at, str word, char *sign)
{
    if (!looking_at(x, at, STR("{%"))) return 0;
    at += 2;
    *sign = byte_at(x, at);
    if (*sign == '-' || *sign == '+') at++;
    at = skip_space(x, at);
    return looking_at(x, at, word) ? at + word.len : 0;
}

/* {% raw %} ... {% endraw %} at x->at, once the text before it has been pushed. */
static status lex_raw(lexer *x, size_t begin, size_t after_raw)
{
    x->at = skip_space(x, after_raw);
    const bool minus = byte_at(x, x->at) == '-';
    x->at += minus ? 3 : 2;
    if (minus) x->at = skip_space(x, x->at);
    const size_t from = x->at;
    for (size_t to = from; to < x->src.len; to++) {
        char sign;
        const size_t after = tag_word(x, to, STR("endraw"), &sign);
        if (!after) continue;
        x->at = skip_space(x, after);
        if (skip_end(x, STR("%}"), true)) return push_data(x, from, to, sign, true);
    }
    x->at = begin;
    return fail(x, "a raw block has no end");
}

static bool raw_begins(const lexer *x, size_t at, size_t *after_raw)
{
    char sign;
    *after_raw = tag_word(x, at, STR("raw"), &sign);
    if (!*after_raw) return false;
    const size_t end = skip_space(x, *after_raw);
    return looking_at(x, end, STR("%}")) || looking_at(x, end, STR("-%}"));
}

/* Digits with single underscores between them, from `at`; returns the end. */
static size_t skip_digits(const lexer *x, size_t at, int base)
{
    size_t end = at;
    for (;; at++) {
        const char c = byte_at(x, at);
        const int lower = c | 0x20;
        const int digit = c >= '0' && c <= '9'           ? c - '0'
                          : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10
                                                         : 99;
        if (digit < base) end = at + 1;
        else if (c != '_' || at == 0 || byte_at(x, at - 1) == '_') return end;
    }
}

static status lex_radix(lexer *x, int base)
{
    const size_t begin = x->at, end = skip_digits(x, begin + 2, base);
    uint64_t value = 0;
    for (size_t i = begin + 2; i < end; i++) {
        const char c = x->src.ptr[i];
        if (c == '_') continue;
        const int digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
        if (value > (uint64_t)INT64_MAX >> 4) return fail(x, "a number is too large");
        value = value * (uint64_t)base + (uint64_t)digit;
    }
    x->at = end;
    return push(x, (jinja_token){ .type = JINJA_T_INTEGER, .i = (int64_t)value }, begin);
}

static status lex_number(lexer *x)
{
    const size_t begin = x->at;
    const char second = (char)(byte_at(x, begin + 1) | 0x20);
    const int base = byte_at(x, begin) != '0' ? 10
                     : second == 'x'          ? 16
                     : second == 'b'          ? 2
                     : second == 'o'          ? 8
                                              : 10;
    if (base != 10 && skip_digits(x, begin + 2, base) > begin + 2) return lex_radix(x, base);
    size_t end = skip_digits(x, begin, 10);
    bool real = false;
    const bool after_dot = begin > 0 && byte_at(x, begin - 1) == '.';
    if (!after_dot && byte_at(x, end) == '.' && skip_digits(x, end + 1, 10) > end + 1) {
        end = skip_digits(x, end + 1, 10);
        real = true;
    }
    if (!after_dot && (byte_at(x, end) | 0x20) == 'e') {
        const char sign = byte_at(x, end + 1);
        const size_t digits = end + (sign == '+' || sign == '-' ? 2 : 1);
        if (skip_digits(x, digits, 10) > digits) {
            end = skip_digits(x, digits, 10);
            real = true;
        }
    }
    char *clean = arena_alloc(x->mem, end - begin + 1);
    if (!clean) return no_memory(x);
    str s = { clean, 0 };
    for (size_t i = begin; i < end; i++)
        if (x->src.ptr[i] != '_') clean[s.len++] = x->src.ptr[i];
    jinja_token token = { .type = JINJA_T_INTEGER, .text = s };
    for (size_t i = 0; !real && s.ptr[0] == '0' && i < s.len; i++)
        if (s.ptr[i] != '0') return fail(x, "a number begins with 0");
    if (real) {
        token.type = JINJA_T_FLOAT;
        if (!str_to_f64(s, &token.f)) return fail(x, "a number cannot be read");
    } else if (!str_to_i64(s, &token.i)) {
        token.type = JINJA_T_BIGINT;
    }
    x->at = end;
    return push(x, token, begin);
}

/* Reads `n` hexadecimal digits at `at`. */
static bool read_hex(const lexer *x, size_t at, size_t n, uint32_t *out)
{
    *out = 0;
    for (size_t i = 0; i < n; i++) {
        const char c = byte_at(x, at + i);
        const int lower = c | 0x20;
        if (c >= '0' && c <= '9') *out = *out * 16 + (uint32_t)(c - '0');
        else if (lower >= 'a' && lower <= 'f') *out = *out * 16 + (uint32_t)(lower - 'a' + 10);
        else return false;
    }
    return true;
}

/* The escape after the backslash at `*at`, Python's rules; writes to `to` and moves on. */
static status unescape(lexer *x, size_t *at, char *to, size_t *len)
{
    static const char plain[] = "n\nt\tr\rb\bf\fa\av\v\\\\''\"\"";
    const char c = byte_at(x, *at + 1);
    for (size_t i = 0; i + 1 < sizeof plain; i += 2) {
        if (c != plain[i]) continue;
        to[(*len)++] = plain[i + 1];
        *at += 2;
        return OK;
    }
    if (c == '\n') { /* a line goes on */
        *at += 2;
        return OK;
    }
    const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    uint32_t cp = 0;
    if (digits) {
        if (!read_hex(x, *at + 2, digits, &cp) || cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000))
            return fail(x, "a text has a wrong escape");
        *at += 2 + digits;
    } else if (c >= '0' && c <= '7') {
        size_t i = *at + 1;
        for (; i < *at + 4 && byte_at(x, i) >= '0' && byte_at(x, i) <= '7'; i++)
            cp = cp * 8 + (uint32_t)(byte_at(x, i) - '0');
        *at = i;
    } else if (c == 'N') {
        return fail(x, "\\N escapes are not supported");
    } else { /* no escape: the backslash stays */
        to[(*len)++] = '\\';
        *at += 1;
        return OK;
    }
    char utf8[4];
    const size_t n = str_utf8_put(cp, utf8);
    memcpy(to + *len, utf8, n);
    *len += n;
    return OK;
}

static status lex_string(lexer *x)
{
    const size_t begin = x->at;
    const char quote = x->src.ptr[begin];
    size_t end = begin + 1;
    while (end < x->src.len && x->src.ptr[end] != quote) end += x->src.ptr[end] == '\\' ? 2 : 1;
    if (end >= x->src.len) return fail(x, "a text has no closing quote");
    char *text = arena_alloc(x->mem, end - begin + 4);
    if (!text) return no_memory(x);
    size_t len = 0;
    for (size_t at = begin + 1; at < end;)
        if (x->src.ptr[at] == '\\') TRY(unescape(x, &at, text, &len));
        else text[len++] = x->src.ptr[at++];
    x->at = end + 1;
    return push(x, (jinja_token){ .type = JINJA_T_STRING, .text = { text, len } }, begin);
}

static bool is_name_char(uint32_t cp)
{
    if (cp < 0x80) {
        return (cp >= 'a' && cp <= 'z') || (cp >= 'A' && cp <= 'Z') || (cp >= '0' && cp <= '9') ||
               cp == '_';
    }
    return unicode_is_letter(cp) || unicode_is_mark(cp) || unicode_is_number(cp);
}

static status lex_name(lexer *x)
{
    const size_t begin = x->at;
    uint32_t cp;
    size_t n;
    while (x->at < x->src.len && (n = str_utf8_next(x->src, x->at, &cp)) > 0 && is_name_char(cp))
        x->at += n;
    if (x->at == begin) return fail(x, "an unexpected character");
    const str text = str_sub(x->src, begin, x->at);
    return push(x, (jinja_token){ .type = JINJA_T_NAME, .text = text }, begin);
}

/* One of the operators at x->at; its length, or 0. */
static size_t operator_length(const lexer *x)
{
    static const char pairs[] = "//**==!=>=<=";
    static const char singles[] = "+-/*%~[](){}><=.:|,;";
    for (size_t i = 0; i + 1 < sizeof pairs; i += 2)
        if (looking_at(x, x->at, (str){ pairs + i, 2 })) return 2;
    return memchr(singles, x->src.ptr[x->at], sizeof singles - 1) ? 1 : 0;
}

static status lex_operator(lexer *x, size_t n, char *brackets, int *depth)
{
    const char c = x->src.ptr[x->at];
    const char partner = c == '(' ? ')' : c == '[' ? ']' : c == '{' ? '}' : '\0';
    if (partner) {
        if (*depth == MAX_BRACKETS) return fail(x, "too many nested brackets");
        brackets[(*depth)++] = partner;
    } else if (strchr(")]}", c) && (*depth == 0 || brackets[--*depth] != c)) {
        return fail(x, "a closing bracket fits no opening one");
    }
    const str text = str_sub(x->src, x->at, x->at + n);
    TRY(push(x, (jinja_token){ .type = JINJA_T_OPERATOR, .text = text }, x->at));
    x->at += n;
    return OK;
}

/* Everything between {{ and }}, {% and %}. */
static status lex_tag(lexer *x, bool block)
{
    char brackets[MAX_BRACKETS];
    int depth = 0;
    const size_t begin = x->at;
    x->at += 2;
    if (byte_at(x, x->at) == '-' || byte_at(x, x->at) == '+') x->at++;
    const jinja_token_type opening = block ? JINJA_T_BLOCK_BEGIN : JINJA_T_PRINT_BEGIN;
    TRY(push(x, (jinja_token){ .type = opening }, begin));
    for (;;) {
        x->at = skip_space(x, x->at);
        if (x->at >= x->src.len) return fail(x, "a tag has no end");
        const size_t here = x->at;
        if (depth == 0 && skip_end(x, block ? STR("%}") : STR("}}"), block)) {
            const jinja_token_type end = block ? JINJA_T_BLOCK_END : JINJA_T_PRINT_END;
            return push(x, (jinja_token){ .type = end }, here);
        }
        const char c = x->src.ptr[here];
        const size_t n = operator_length(x);
        if (c >= '0' && c <= '9') TRY(lex_number(x));
        else if (c == '\'' || c == '"') TRY(lex_string(x));
        else if (n) TRY(lex_operator(x, n, brackets, &depth));
        else TRY(lex_name(x));
    }
}

static status lex_all(lexer *x)
{
    while (x->at < x->src.len) {
        const size_t from = x->at;
        size_t to = from;
        while (to < x->src.len && !looking_at(x, to, STR("{{")) && !looking_at(x, to, STR("{%")) &&
               !looking_at(x, to, STR("{#")))
            to++;
        if (to == x->src.len) {
            x->at = to;
            return push_data(x, from, to, '+', false);
        }
        const char kind = x->src.ptr[to + 1];
        TRY(push_data(x, from, to, byte_at(x, to + 2), kind != '{'));
        x->at = to;
        size_t after_raw;
        if (kind == '#') TRY(skip_comment(x));
        else if (kind == '%' && raw_begins(x, to, &after_raw)) TRY(lex_raw(x, to, after_raw));
        else TRY(lex_tag(x, kind == '%'));
    }
    return OK;
}

/* The source with "\n" line ends and without the last one. */
static bool copy_source(arena *mem, str source, str *out)
{
    char *p = arena_alloc(mem, source.len + 1);
    if (!p) return false;
    size_t n = 0;
    for (size_t i = 0; i < source.len; i++) {
        const bool cr = source.ptr[i] == '\r';
        p[n++] = cr ? '\n' : source.ptr[i];
        if (cr && i + 1 < source.len && source.ptr[i + 1] == '\n') i++;
    }
    if (n > 0 && p[n - 1] == '\n') n--;
    *out = (str){ p, n };
    return true;
}

status jinja_lex_run(jinja_tokens *out, arena *mem, str source, const char *name, error *e)
{
    *out = (jinja_tokens){ 0 };
    lexer x = { .mem = mem, .line = 1, .out = out, .name = name, .e = e };
    if (!str_utf8_valid(source)) return error_set(e, E_FORMAT, "%s: not valid UTF-8", name);
    if (!copy_source(mem, source, &x.src)) return no_memory(&x);
    TRY(lex_all(&x));
    return push(&x, (jinja_token){ .type = JINJA_T_END }, x.src.len);
}
