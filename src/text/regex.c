/* regex.c - split expressions, translated for PCRE2 (UTF, UCP, just-in-time compiled where the
 * system allows it).
 *
 * The translator copies what means the same in both engines, rewrites what can be rewritten, and
 * refuses the rest, so an expression either splits as its file says or is not accepted. */
#include "text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/banned.h"

enum {
    PATTERN_MAX = 1 << 16,  /* bytes */
    MATCH_LIMIT = 50000000, /* steps of backtracking for one match */
    HEAP_LIMIT_KIB = 64 * 1024
};

/* The 25 White_Space characters, as the inside of a class. */
#define WHITE                                                                            \
    "\\x{09}-\\x{0d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}" \
    "\\x{202f}\\x{205f}\\x{3000}"

/* What Unicode 15, 15.1 and 16 added to L, M and N since Unicode 14, which is what the oldest
 * supported PCRE2 knows. */
#define LETTERS                                                                                    \
    "\\x{1c89}\\x{1c8a}\\x{a7cb}-\\x{a7cd}\\x{a7da}-\\x{a7dc}\\x{105c0}-\\x{105f3}\\x{10d4a}-\\x{" \
    "10d65}"                                                                                       \
    "\\x{10d6f}-\\x{10d85}\\x{10ec2}-\\x{10ec4}\\x{1123f}\\x{11240}\\x{11380}-\\x{11389}\\x{"      \
    "1138b}"                                                                                       \
    "\\x{1138e}\\x{11390}-\\x{113b5}\\x{113b7}\\x{113d1}\\x{113d3}\\x{11bc0}-\\x{11be0}\\x{11f02}" \
    "\\x{11f04}-\\x{11f10}\\x{11f12}-\\x{11f33}\\x{1342f}\\x{13441}-\\x{13446}\\x{13460}-\\x{"     \
    "143fa}"                                                                                       \
    "\\x{16100}-\\x{1611d}\\x{16d40}-\\x{16d6c}\\x{18cff}\\x{1b132}\\x{1b155}\\x{1df25}-\\x{"      \
    "1df2a}"                                                                                       \
    "\\x{1e030}-\\x{1e06d}\\x{1e4d0}-\\x{1e4eb}\\x{1e5d0}-\\x{1e5ed}\\x{1e5f0}\\x{2b739}"          \
    "\\x{2ebf0}-\\x{2ee5d}\\x{31350}-\\x{323af}"
#define MARKS                                                                                      \
    "\\x{897}\\x{cf3}\\x{ece}\\x{10d69}-\\x{10d6d}\\x{10efc}-\\x{10eff}\\x{11241}\\x{113b8}-\\x{"  \
    "113c0}"                                                                                       \
    "\\x{113c2}\\x{113c5}\\x{113c7}-\\x{113ca}\\x{113cc}-\\x{113d0}\\x{113d2}\\x{113e1}\\x{113e2}" \
    "\\x{11f00}\\x{11f01}\\x{11f03}\\x{11f34}-\\x{11f3a}\\x{11f3e}-\\x{11f42}\\x{11f5a}\\x{13440}" \
    "\\x{13447}-\\x{13455}\\x{1611e}-\\x{1612f}\\x{1e08f}\\x{1e4ec}-\\x{1e4ef}\\x{1e5ee}\\x{"      \
    "1e5ef}"
#define NUMBERS                                                                            \
    "\\x{10d40}-\\x{10d49}\\x{116d0}-\\x{116e3}\\x{11bf0}-\\x{11bf9}\\x{11f50}-\\x{11f59}" \
    "\\x{16130}-\\x{16139}\\x{16d70}-\\x{16d79}\\x{1ccf0}-\\x{1ccf9}\\x{1d2c0}-\\x{1d2d3}" \
    "\\x{1e4f0}-\\x{1e4f9}\\x{1e5f1}-\\x{1e5fa}"

struct regex {
    pcre2_general_context *general;
    pcre2_code *code;
};

struct regex_scan {
    const regex *r;
    pcre2_match_context *context;
    pcre2_match_data *data;
};

/* ---- translation --------------------------------------------------------------------------- */

typedef struct translator {
    str in;
    size_t at;
    bool in_class;
    size_t class_start; /* offset of the first item of the class */
    buf *out;
    const char *name;
    error *e;
} translator;

static status refuse(const translator *t, size_t from, size_t to, const char *why)
{
    return error_set(t->e, E_UNSUPPORTED, "%s: split expression, byte %zu: found \"%.*s\", %s",
                     t->name, from, (int)(to - from), t->in.ptr + from, why);
}

static char peek(const translator *t, size_t ahead)
{
    return t->at + ahead < t->in.len ? t->in.ptr[t->at + ahead] : '\0';
}

static void copy(translator *t, size_t n)
{
    buf_put(t->out, t->in.ptr + t->at, n);
    t->at += n;
}

/* An escape of n bytes that stands for a set of characters: the category in `braces` ("" or "{L}")
 * and `more`. */
static status put_set(translator *t, size_t n, str braces, const char *more, bool negated)
{
    const size_t from = t->at;
    t->at += n;
    if (t->in_class) {
        const bool range_before = from > t->class_start && t->in.ptr[from - 1] == '-';
        const bool range_after = peek(t, 0) == '-' && peek(t, 1) != ']';
        if (negated) return refuse(t, from, t->at, "want no complement inside a class");
        if (range_before || range_after)
            return refuse(t, from, t->at, "want no range that begins or ends at a set");
    } else {
        buf_text(t->out, negated ? "[^" : "[");
    }
    if (braces.len) buf_text(t->out, "\\p");
    buf_add(t->out, braces);
    buf_text(t->out, more);
    if (!t->in_class) buf_char(t->out, ']');
    return OK;
}

/* \p{L} and \P{L}: general categories only, since names of scripts mean other sets in other
 * engines. */
static status translate_property(translator *t)
{
    const bool negated = peek(t, 1) == 'P';
    const str rest = str_sub(t->in, t->at, t->in.len);
    const size_t n = 1 + str_find(rest, STR("}")); /* 0: none */
    const bool known = peek(t, 2) == '{' && (n == 5 || n == 6) && strchr("LMNPSZC", rest.ptr[3]) &&
                       (n == 5 || (rest.ptr[4] >= 'a' && rest.ptr[4] <= 'z'));
    if (!known)
        return refuse(t, t->at, t->at + (n ? n : rest.len), "want \\p{..} with a general category");
    const str braces = str_sub(rest, 2, n);
    const char *newer = "";
    if (str_eq(braces, STR("{L}"))) newer = LETTERS;
    if (str_eq(braces, STR("{M}"))) newer = MARKS;
    if (str_eq(braces, STR("{N}"))) newer = NUMBERS;
    return put_set(t, n, braces, newer, negated);
}

static status translate_escape(translator *t)
{
    const char c = peek(t, 1);
    if (c == 's' || c == 'S') return put_set(t, 2, STR(""), WHITE, c == 'S');
    if (c == 'p' || c == 'P') return translate_property(t);
    if (c == 'x' && peek(t, 2) == '{') {
        const size_t close = str_find(str_sub(t->in, t->at, t->in.len), STR("}"));
        if (close == STR_NONE || close > 9)
            return refuse(t, t->at, t->at + 3, "want \\x{..} of at most six digits");
        copy(t, close + 1);
        return OK;
    }
    const bool same = c && strchr("rntf!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", c);
    if (!same)
        return refuse(t, t->at, t->at + (c ? 2 : 1),
                      "want only \\s \\S \\p{} \\P{} \\x{} \\r \\n \\t \\f or escaped punctuation");
    copy(t, 2);
    return OK;
}

static status translate_class_item(translator *t)
{
    const char c = peek(t, 0);
    if (c == '\\') return translate_escape(t);
    if (c == '[') return refuse(t, t->at, t->at + 1, "want no class inside a class");
    if (c == '&' && peek(t, 1) == '&')
        return refuse(t, t->at, t->at + 2, "want no intersection of classes");
    if (c == ']') t->in_class = false;
    copy(t, 1);
    return OK;
}

static status translate_class_start(translator *t)
{
    copy(t, peek(t, 1) == '^' ? 2 : 1);
    if (peek(t, 0) == ']') return refuse(t, t->at, t->at + 1, "want a class with something in it");
    t->in_class = true;
    t->class_start = t->at;
    return OK;
}

static status translate_group(translator *t)
{
    static const char *const known[] = { "(?:", "(?i:", "(?=", "(?!", "(?<=", "(?<!", "(?>" };
    const str rest = str_sub(t->in, t->at, t->in.len);
    if (peek(t, 1) == '*') return refuse(t, t->at, t->at + 2, "want no verb");
    if (peek(t, 1) != '?') {
        copy(t, 1);
        return OK;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!str_starts(rest, str_from(known[i]))) continue;
        copy(t, strlen(known[i]));
        return OK;
    }
    return refuse(t, t->at, t->at + (rest.len < 4 ? rest.len : 4),
                  "want (?: (?i: (?= (?! (?<= (?<! or (?>");
}

/* {n} {n,} {n,m}; the other engine reads {,m} as a count and {n}+ as a repeated repetition. */
static status translate_count(translator *t)
{
    size_t n = 1;
    while (peek(t, n) >= '0' && peek(t, n) <= '9') n++;
    const bool digits = n > 1;
    if (digits && peek(t, n) == ',') n++;
    while (digits && peek(t, n) >= '0' && peek(t, n) <= '9') n++;
    if (!digits || peek(t, n) != '}' || peek(t, n + 1) == '+')
        return refuse(t, t->at, t->at + (n < t->in.len - t->at ? n + 1 : n),
                      "want {n}, {n,} or {n,m}");
    copy(t, n + 1);
    return OK;
}

static status translate_item(translator *t)
{
    switch (peek(t, 0)) {
    case '\\': return translate_escape(t);
    case '[': return translate_class_start(t);
    case '(': return translate_group(t);
    case '{': return translate_count(t);
    case '^':
    case '$': return refuse(t, t->at, t->at + 1, "want no anchor");
    default: copy(t, 1); return OK;
    }
}

static status translate(str pattern, buf *out, const char *name, error *e)
{
    translator t = { .in = pattern, .out = out, .name = name, .e = e };
    while (t.at < pattern.len) TRY(t.in_class ? translate_class_item(&t) : translate_item(&t));
    return buf_status(out, name, e);
}

/* ---- compiling ----------------------------------------------------------------------------- */

static void *pcre_alloc(size_t bytes, void *unused)
{
    (void)unused;
    return mem_alloc(bytes);
}

static void pcre_free(void *p, void *unused)
{
    (void)unused;
    mem_free(p);
}

static status compile(regex *r, str pattern, const char *name, error *e)
{
    pcre2_compile_context *context = pcre2_compile_context_create(r->general);
    if (!context) return error_set(e, E_NOMEM, "%s: out of memory", name);
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    int code = 0;
    PCRE2_SIZE at = 0;
    r->code = pcre2_compile((PCRE2_SPTR)pattern.ptr, pattern.len, PCRE2_UTF | PCRE2_UCP, &code, &at,
                            context);
    pcre2_compile_context_free(context);
    if (r->code) {
        /* Where the system forbids it the interpreter runs: the same matches at half the speed. */
        (void)pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE);
        return OK;
    }
    if (code == PCRE2_ERROR_NOMEMORY || code == PCRE2_ERROR_HEAP_FAILED)
        return error_set(e, E_NOMEM, "%s: out of memory", name);
    PCRE2_UCHAR why[128] = "";
    pcre2_get_error_message(code, why, sizeof why);
    return error_set(e, E_FORMAT, "%s: split expression: %s near \"%.*s\"", name, (const char *)why,
                     (int)(pattern.len - at < 20 ? pattern.len - at : 20), pattern.ptr + at);
}

status regex_open(regex **out, str pattern, const char *name, error *e)
{
    *out = NULL;
    if (pattern.len > PATTERN_MAX)
        return error_set(e, E_LIMIT, "%s: split expression: found %zu bytes, want at most %d", name,
                         pattern.len, PATTERN_MAX);
    if (!str_utf8_valid(pattern) || (pattern.len && memchr(pattern.ptr, 0, pattern.len)))
        return error_set(e, E_FORMAT,
                         "%s: split expression: found bytes that are not text, want UTF-8", name);
    buf translated;
    buf_init(&translated, (size_t)PATTERN_MAX * 16);
    regex *r = NULL;
    status s = OK;
    TRY_GOTO(s, translate(pattern, &translated, name, e), done);
    r = mem_zalloc(sizeof *r);
    if (r) r->general = pcre2_general_context_create(pcre_alloc, pcre_free, NULL);
    if (!r || !r->general) {
        s = error_set(e, E_NOMEM, "%s: out of memory", name);
        goto done;
    }
    TRY_GOTO(s, compile(r, buf_view(&translated), name, e), done);
    *out = r;
    r = NULL;
done:
    regex_close(r);
    buf_free(&translated);
    return s;
}

void regex_close(regex *r)
{
    if (!r) return;
    pcre2_code_free(r->code);
    pcre2_general_context_free(r->general);
    mem_free(r);
}

/* ---- matching ------------------------------------------------------------------------------ */

status regex_scan_open(regex_scan **out, const regex *r, error *e)
{
    *out = NULL;
    regex_scan *s = mem_zalloc(sizeof *s);
    if (s) {
        s->r = r;
        s->context = pcre2_match_context_create(r->general);
        s->data = pcre2_match_data_create(1, r->general); /* only the whole match is wanted */
    }
    if (!s || !s->context || !s->data) {
        regex_scan_close(s);
        return error_set(e, E_NOMEM, "split expression: out of memory");
    }
    pcre2_set_match_limit(s->context, MATCH_LIMIT);
    pcre2_set_heap_limit(s->context, HEAP_LIMIT_KIB);
    *out = s;
    return OK;
}

void regex_scan_close(regex_scan *s)
{
    if (!s) return;
    pcre2_match_data_free(s->data);
    pcre2_match_context_free(s->context);
    mem_free(s);
}

static int match(regex_scan *s, str text, size_t at, uint32_t options)
{
    return pcre2_match(s->r->code, (PCRE2_SPTR)text.ptr, text.len, at, options | PCRE2_NO_UTF_CHECK,
                       s->data, s->context);
}

status regex_next(regex_scan *s, str text, size_t at, size_t *from, size_t *to, error *e)
{
    while (at < text.len) {
        int found = match(s, text, at, 0);
        if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = match(s, text, at, PCRE2_NO_JIT);
        if (found == PCRE2_ERROR_NOMATCH) break;
        if (found == PCRE2_ERROR_NOMEMORY)
            return error_set(e, E_NOMEM, "text: out of memory in the split");
        if (found < 0) {
            PCRE2_UCHAR why[128] = "";
            pcre2_get_error_message(found, why, sizeof why);
            return error_set(e, E_LIMIT, "text: byte %zu: too much backtracking in the split (%s)",
                             at, (const char *)why);
        }
        const PCRE2_SIZE *span = pcre2_get_ovector_pointer(s->data);
        if (span[0] < span[1]) {
            *from = span[0];
            *to = span[1];
            return OK;
        }
        at = span[0] < at ? at : span[0]; /* empty: go on behind the next character */
        do at++;
        while (at < text.len && ((unsigned char)text.ptr[at] & 0xc0) == 0x80);
    }
    *from = *to = text.len;
    return OK;
}
