/* unicode.c - categories, white space, case and NFC over utf8proc.
 *
 * Allocates through base/mem only: normalization uses the library's tables and its composition
 * step, but its own buffers and its own ordering of marks, which is linear where the library's
 * is quadratic in a run of marks. */
#include "text/unicode.h"

#include <utf8proc.h>

#include "base/mem.h"
#include "base/banned.h"

_Static_assert((int)UTF8PROC_CATEGORY_CN == UNICODE_CN && (int)UTF8PROC_CATEGORY_LU == UNICODE_LU &&
                   (int)UTF8PROC_CATEGORY_ND == UNICODE_ND &&
                   (int)UTF8PROC_CATEGORY_ZS == UNICODE_ZS &&
                   (int)UTF8PROC_CATEGORY_CO == UNICODE_CO,
               "the library's categories are numbered as ours");

unicode_category unicode_category_of(uint32_t cp)
{
    return cp > 0x10ffff ? UNICODE_CN : (unicode_category)utf8proc_category((utf8proc_int32_t)cp);
}

bool unicode_is_letter(uint32_t cp)
{
    const unicode_category c = unicode_category_of(cp);
    return c >= UNICODE_LU && c <= UNICODE_LO;
}

bool unicode_is_mark(uint32_t cp)
{
    const unicode_category c = unicode_category_of(cp);
    return c >= UNICODE_MN && c <= UNICODE_ME;
}

bool unicode_is_number(uint32_t cp)
{
    const unicode_category c = unicode_category_of(cp);
    return c >= UNICODE_ND && c <= UNICODE_NO;
}

bool unicode_is_printable(uint32_t cp)
{
    const unicode_category c = unicode_category_of(cp);
    return cp == ' ' || (c != UNICODE_CN && c < UNICODE_ZS);
}

bool unicode_is_white(uint32_t cp)
{
    return (cp >= 9 && cp <= 13) || cp == 0x20 || cp == 0x85 || cp == 0xa0 || cp == 0x1680 ||
           (cp >= 0x2000 && cp <= 0x200a) || cp == 0x2028 || cp == 0x2029 || cp == 0x202f ||
           cp == 0x205f || cp == 0x3000;
}

bool unicode_is_space(uint32_t cp)
{
    return (cp >= 0x1c && cp <= 0x1f) || unicode_is_white(cp);
}

bool unicode_is_word(uint32_t cp)
{
    const unicode_category c = unicode_category_of(cp);
    if (c >= UNICODE_LU && c <= UNICODE_NL) return true;
    if (c == UNICODE_PC || cp == 0x200c || cp == 0x200d) return true;
    /* Other_Alphabetic beyond marks: circled and squared letters. */
    return (cp >= 0x24b6 && cp <= 0x24e9) || (cp >= 0x1f130 && cp <= 0x1f149) ||
           (cp >= 0x1f150 && cp <= 0x1f169) || (cp >= 0x1f170 && cp <= 0x1f189);
}

/* ---- case ---------------------------------------------------------------------------------- */

/* SpecialCasing.txt, the unconditional rows: character, upper case, title case. */
typedef struct special_case {
    uint16_t cp, upper[3], title[3];
} special_case;

static const special_case special_cases[] = {
    { 0xdf, { 0x53, 0x53 }, { 0x53, 0x73 } },
    { 0x149, { 0x2bc, 0x4e }, { 0x2bc, 0x4e } },
    { 0x1f0, { 0x4a, 0x30c }, { 0x4a, 0x30c } },
    { 0x390, { 0x399, 0x308, 0x301 }, { 0x399, 0x308, 0x301 } },
    { 0x3b0, { 0x3a5, 0x308, 0x301 }, { 0x3a5, 0x308, 0x301 } },
    { 0x587, { 0x535, 0x552 }, { 0x535, 0x582 } },
    { 0x1e96, { 0x48, 0x331 }, { 0x48, 0x331 } },
    { 0x1e97, { 0x54, 0x308 }, { 0x54, 0x308 } },
    { 0x1e98, { 0x57, 0x30a }, { 0x57, 0x30a } },
    { 0x1e99, { 0x59, 0x30a }, { 0x59, 0x30a } },
    { 0x1e9a, { 0x41, 0x2be }, { 0x41, 0x2be } },
    { 0x1f50, { 0x3a5, 0x313 }, { 0x3a5, 0x313 } },
    { 0x1f52, { 0x3a5, 0x313, 0x300 }, { 0x3a5, 0x313, 0x300 } },
    { 0x1f54, { 0x3a5, 0x313, 0x301 }, { 0x3a5, 0x313, 0x301 } },
    { 0x1f56, { 0x3a5, 0x313, 0x342 }, { 0x3a5, 0x313, 0x342 } },
    { 0x1f80, { 0x1f08, 0x399 }, { 0x1f88 } },
    { 0x1f81, { 0x1f09, 0x399 }, { 0x1f89 } },
    { 0x1f82, { 0x1f0a, 0x399 }, { 0x1f8a } },
    { 0x1f83, { 0x1f0b, 0x399 }, { 0x1f8b } },
    { 0x1f84, { 0x1f0c, 0x399 }, { 0x1f8c } },
    { 0x1f85, { 0x1f0d, 0x399 }, { 0x1f8d } },
    { 0x1f86, { 0x1f0e, 0x399 }, { 0x1f8e } },
    { 0x1f87, { 0x1f0f, 0x399 }, { 0x1f8f } },
    { 0x1f88, { 0x1f08, 0x399 }, { 0x1f88 } },
    { 0x1f89, { 0x1f09, 0x399 }, { 0x1f89 } },
    { 0x1f8a, { 0x1f0a, 0x399 }, { 0x1f8a } },
    { 0x1f8b, { 0x1f0b, 0x399 }, { 0x1f8b } },
    { 0x1f8c, { 0x1f0c, 0x399 }, { 0x1f8c } },
    { 0x1f8d, { 0x1f0d, 0x399 }, { 0x1f8d } },
    { 0x1f8e, { 0x1f0e, 0x399 }, { 0x1f8e } },
    { 0x1f8f, { 0x1f0f, 0x399 }, { 0x1f8f } },
    { 0x1f90, { 0x1f28, 0x399 }, { 0x1f98 } },
    { 0x1f91, { 0x1f29, 0x399 }, { 0x1f99 } },
    { 0x1f92, { 0x1f2a, 0x399 }, { 0x1f9a } },
    { 0x1f93, { 0x1f2b, 0x399 }, { 0x1f9b } },
    { 0x1f94, { 0x1f2c, 0x399 }, { 0x1f9c } },
    { 0x1f95, { 0x1f2d, 0x399 }, { 0x1f9d } },
    { 0x1f96, { 0x1f2e, 0x399 }, { 0x1f9e } },
    { 0x1f97, { 0x1f2f, 0x399 }, { 0x1f9f } },
    { 0x1f98, { 0x1f28, 0x399 }, { 0x1f98 } },
    { 0x1f99, { 0x1f29, 0x399 }, { 0x1f99 } },
    { 0x1f9a, { 0x1f2a, 0x399 }, { 0x1f9a } },
    { 0x1f9b, { 0x1f2b, 0x399 }, { 0x1f9b } },
    { 0x1f9c, { 0x1f2c, 0x399 }, { 0x1f9c } },
    { 0x1f9d, { 0x1f2d, 0x399 }, { 0x1f9d } },
    { 0x1f9e, { 0x1f2e, 0x399 }, { 0x1f9e } },
    { 0x1f9f, { 0x1f2f, 0x399 }, { 0x1f9f } },
    { 0x1fa0, { 0x1f68, 0x399 }, { 0x1fa8 } },
    { 0x1fa1, { 0x1f69, 0x399 }, { 0x1fa9 } },
    { 0x1fa2, { 0x1f6a, 0x399 }, { 0x1faa } },
    { 0x1fa3, { 0x1f6b, 0x399 }, { 0x1fab } },
    { 0x1fa4, { 0x1f6c, 0x399 }, { 0x1fac } },
    { 0x1fa5, { 0x1f6d, 0x399 }, { 0x1fad } },
    { 0x1fa6, { 0x1f6e, 0x399 }, { 0x1fae } },
    { 0x1fa7, { 0x1f6f, 0x399 }, { 0x1faf } },
    { 0x1fa8, { 0x1f68, 0x399 }, { 0x1fa8 } },
    { 0x1fa9, { 0x1f69, 0x399 }, { 0x1fa9 } },
    { 0x1faa, { 0x1f6a, 0x399 }, { 0x1faa } },
    { 0x1fab, { 0x1f6b, 0x399 }, { 0x1fab } },
    { 0x1fac, { 0x1f6c, 0x399 }, { 0x1fac } },
    { 0x1fad, { 0x1f6d, 0x399 }, { 0x1fad } },
    { 0x1fae, { 0x1f6e, 0x399 }, { 0x1fae } },
    { 0x1faf, { 0x1f6f, 0x399 }, { 0x1faf } },
    { 0x1fb2, { 0x1fba, 0x399 }, { 0x1fba, 0x345 } },
    { 0x1fb3, { 0x391, 0x399 }, { 0x1fbc } },
    { 0x1fb4, { 0x386, 0x399 }, { 0x386, 0x345 } },
    { 0x1fb6, { 0x391, 0x342 }, { 0x391, 0x342 } },
    { 0x1fb7, { 0x391, 0x342, 0x399 }, { 0x391, 0x342, 0x345 } },
    { 0x1fbc, { 0x391, 0x399 }, { 0x1fbc } },
    { 0x1fc2, { 0x1fca, 0x399 }, { 0x1fca, 0x345 } },
    { 0x1fc3, { 0x397, 0x399 }, { 0x1fcc } },
    { 0x1fc4, { 0x389, 0x399 }, { 0x389, 0x345 } },
    { 0x1fc6, { 0x397, 0x342 }, { 0x397, 0x342 } },
    { 0x1fc7, { 0x397, 0x342, 0x399 }, { 0x397, 0x342, 0x345 } },
    { 0x1fcc, { 0x397, 0x399 }, { 0x1fcc } },
    { 0x1fd2, { 0x399, 0x308, 0x300 }, { 0x399, 0x308, 0x300 } },
    { 0x1fd3, { 0x399, 0x308, 0x301 }, { 0x399, 0x308, 0x301 } },
    { 0x1fd6, { 0x399, 0x342 }, { 0x399, 0x342 } },
    { 0x1fd7, { 0x399, 0x308, 0x342 }, { 0x399, 0x308, 0x342 } },
    { 0x1fe2, { 0x3a5, 0x308, 0x300 }, { 0x3a5, 0x308, 0x300 } },
    { 0x1fe3, { 0x3a5, 0x308, 0x301 }, { 0x3a5, 0x308, 0x301 } },
    { 0x1fe4, { 0x3a1, 0x313 }, { 0x3a1, 0x313 } },
    { 0x1fe6, { 0x3a5, 0x342 }, { 0x3a5, 0x342 } },
    { 0x1fe7, { 0x3a5, 0x308, 0x342 }, { 0x3a5, 0x308, 0x342 } },
    { 0x1ff2, { 0x1ffa, 0x399 }, { 0x1ffa, 0x345 } },
    { 0x1ff3, { 0x3a9, 0x399 }, { 0x1ffc } },
    { 0x1ff4, { 0x38f, 0x399 }, { 0x38f, 0x345 } },
    { 0x1ff6, { 0x3a9, 0x342 }, { 0x3a9, 0x342 } },
    { 0x1ff7, { 0x3a9, 0x342, 0x399 }, { 0x3a9, 0x342, 0x345 } },
    { 0x1ffc, { 0x3a9, 0x399 }, { 0x1ffc } },
    { 0xfb00, { 0x46, 0x46 }, { 0x46, 0x66 } },
    { 0xfb01, { 0x46, 0x49 }, { 0x46, 0x69 } },
    { 0xfb02, { 0x46, 0x4c }, { 0x46, 0x6c } },
    { 0xfb03, { 0x46, 0x46, 0x49 }, { 0x46, 0x66, 0x69 } },
    { 0xfb04, { 0x46, 0x46, 0x4c }, { 0x46, 0x66, 0x6c } },
    { 0xfb05, { 0x53, 0x54 }, { 0x53, 0x74 } },
    { 0xfb06, { 0x53, 0x54 }, { 0x53, 0x74 } },
    { 0xfb13, { 0x544, 0x546 }, { 0x544, 0x576 } },
    { 0xfb14, { 0x544, 0x535 }, { 0x544, 0x565 } },
    { 0xfb15, { 0x544, 0x53b }, { 0x544, 0x56b } },
    { 0xfb16, { 0x54e, 0x546 }, { 0x54e, 0x576 } },
    { 0xfb17, { 0x544, 0x53d }, { 0x544, 0x56d } },
};

static const special_case *find_special(uint32_t cp)
{
    size_t lo = 0;
    size_t hi = sizeof special_cases / sizeof *special_cases;
    while (lo < hi) {
        const size_t mid = (lo + hi) / 2;
        if (special_cases[mid].cp < cp) lo = mid + 1;
        else hi = mid;
    }
    const bool found =
        lo < sizeof special_cases / sizeof *special_cases && special_cases[lo].cp == cp;
    return found ? &special_cases[lo] : NULL;
}

static void put_cp(buf *out, uint32_t cp)
{
    char utf8[4];
    buf_put(out, utf8, str_utf8_put(cp, utf8));
}

static void put_mapped(buf *out, const uint16_t to[3])
{
    for (int i = 0; i < 3 && to[i]; i++) put_cp(out, to[i]);
}

/* Bytes of the character at `at`, 1 for a byte that is no character (*cp is then above
 * 0x10ffff). */
static size_t next_char(str s, size_t at, uint32_t *cp)
{
    const size_t n = str_utf8_next(s, at, cp);
    if (n) return n;
    *cp = UINT32_MAX;
    return 1;
}

/* Case_Ignorable (Unicode, section 3.13). */
static bool case_ignorable(uint32_t cp)
{
    /* Word_Break MidLetter, MidNumLet, Single_Quote */
    static const uint16_t breaks[] = { 0x27,   0x2e,   0x3a,   0xb7,   0x387,  0x55f,
                                       0x5f4,  0x2018, 0x2019, 0x2024, 0x2027, 0xfe13,
                                       0xfe52, 0xfe55, 0xff07, 0xff0e, 0xff1a };
    const unicode_category c = unicode_category_of(cp);
    if (c == UNICODE_MN || c == UNICODE_ME || c == UNICODE_CF || c == UNICODE_LM || c == UNICODE_SK)
        return true;
    for (size_t i = 0; i < sizeof breaks / sizeof *breaks; i++)
        if (cp == breaks[i]) return true;
    return false;
}

static bool cased(uint32_t cp)
{
    const unicode_category c = unicode_category_of(cp);
    if (c >= UNICODE_LU && c <= UNICODE_LT) return true;
    if (cp > 0x10ffff) return false;
    const utf8proc_int32_t x = (utf8proc_int32_t)cp;
    return cp == 0xaa || cp == 0xba || utf8proc_tolower(x) != x || utf8proc_toupper(x) != x;
}

/* Is the sigma at [at, end) preceded, and not followed, by a cased letter, ignorable characters
 * skipped? */
static bool final_sigma(str s, size_t at, size_t end)
{
    uint32_t cp = 0;
    size_t i = at;
    do {
        if (i == 0) return false;
        do i--;
        while (i > 0 && ((unsigned char)s.ptr[i] & 0xc0) == 0x80);
        next_char(s, i, &cp);
    } while (case_ignorable(cp));
    if (!cased(cp)) return false;
    for (i = end; i < s.len;) {
        i += next_char(s, i, &cp);
        if (!case_ignorable(cp)) return !cased(cp);
    }
    return true;
}

/* The character at [at, at + n) of s in lower case. */
static void put_lower(buf *out, str s, size_t at, size_t n, uint32_t cp)
{
    if (cp > 0x10ffff) buf_put(out, s.ptr + at, n);
    else if (cp == 0x130) buf_text(out, "i\xcc\x87");
    else if (cp == 0x3a3 && final_sigma(s, at, at + n)) put_cp(out, 0x3c2);
    else put_cp(out, (uint32_t)utf8proc_tolower((utf8proc_int32_t)cp));
}

void unicode_lower(buf *out, str s)
{
    uint32_t cp = 0;
    for (size_t at = 0, n; at < s.len; at += n) {
        n = next_char(s, at, &cp);
        put_lower(out, s, at, n, cp);
    }
}

void unicode_upper(buf *out, str s)
{
    uint32_t cp = 0;
    for (size_t at = 0, n; at < s.len; at += n) {
        n = next_char(s, at, &cp);
        const special_case *c = find_special(cp);
        if (cp > 0x10ffff) buf_put(out, s.ptr + at, n);
        else if (c) put_mapped(out, c->upper);
        else put_cp(out, (uint32_t)utf8proc_toupper((utf8proc_int32_t)cp));
    }
}

void unicode_capitalize(buf *out, str s)
{
    uint32_t cp = 0;
    for (size_t at = 0, n; at < s.len; at += n) {
        n = next_char(s, at, &cp);
        const special_case *c = at == 0 ? find_special(cp) : NULL;
        if (at > 0 || cp > 0x10ffff) put_lower(out, s, at, n, cp);
        else if (c) put_mapped(out, c->title);
        else put_cp(out, (uint32_t)utf8proc_totitle((utf8proc_int32_t)cp));
    }
}

/* ---- NFC ----------------------------------------------------------------------------------- */

/* Characters that NFC leaves alone and that never combine with what stands before them, as ranges
 * that cover ordinary text. Leaving a character out only costs time, U+11A7 excepted: the library
 * takes it for a trailing consonant and drops it behind a Hangul syllable. */
static bool settled(uint32_t cp)
{
    static const uint32_t ranges[][2] = {
        { 0, 0x2ff },       { 0x388, 0x482 },     { 0x48a, 0x590 },     { 0xe01, 0xe30 },
        { 0x11a7, 0x11a7 }, { 0x2002, 0x20cf },   { 0x2190, 0x2328 },   { 0x232b, 0x2adb },
        { 0x3000, 0x3029 }, { 0x3030, 0x3098 },   { 0x309b, 0x9fff },   { 0xac00, 0xd7a3 },
        { 0xfe30, 0xffff }, { 0x1f000, 0x1faff }, { 0x20000, 0x2f7ff },
    };
    size_t i = 0;
    while (i < sizeof ranges / sizeof *ranges - 1 && cp > ranges[i][1]) i++;
    return cp >= ranges[i][0] && cp <= ranges[i][1];
}

typedef struct work {
    utf8proc_int32_t *cps; /* the decomposed run */
    utf8proc_int32_t *tmp; /* for ordering */
    size_t cap;            /* of both, code points */
} work;

static status work_grow(work *w, size_t want, error *e)
{
    if (want <= w->cap) return OK;
    size_t cap = w->cap ? w->cap : 256;
    while (cap < want) cap *= 2;
    utf8proc_int32_t *cps = mem_resize(w->cps, cap * sizeof *cps);
    if (cps) w->cps = cps;
    utf8proc_int32_t *tmp = mem_resize(w->tmp, cap * sizeof *tmp);
    if (tmp) w->tmp = tmp;
    if (!cps || !tmp) return error_set(e, E_NOMEM, "normalization: out of memory");
    w->cap = cap;
    return OK;
}

static int combining_class(utf8proc_int32_t cp)
{
    return (int)utf8proc_get_property(cp)->combining_class;
}

/* Canonical ordering (D108, D109): each run of marks sorted by class, equal classes in their
 * order. Counting sort. */
static void order_marks(work *w, size_t n)
{
    for (size_t from = 0, to; from < n; from = to) {
        to = from + 1;
        if (combining_class(w->cps[from]) == 0) continue;
        bool sorted = true;
        for (int c; to < n && (c = combining_class(w->cps[to])) != 0; to++)
            sorted = sorted && combining_class(w->cps[to - 1]) <= c;
        if (sorted) continue;
        size_t start[257] = { 0 };
        for (size_t i = from; i < to; i++) start[combining_class(w->cps[i]) + 1]++;
        for (int c = 0; c < 256; c++) start[c + 1] += start[c];
        for (size_t i = from; i < to; i++) w->tmp[start[combining_class(w->cps[i])]++] = w->cps[i];
        memcpy(w->cps + from, w->tmp, (to - from) * sizeof *w->cps);
    }
}

/* Appends the NFC form of s[from, to). */
static status normalize_run(buf *out, str s, size_t from, size_t to, work *w, error *e)
{
    enum { MOST = 4 }; /* a character decomposes into at most four */
    const int options = UTF8PROC_STABLE | UTF8PROC_COMPOSE;
    size_t n = 0;
    uint32_t cp = 0;
    for (size_t at = from; at < to;) {
        at += next_char(s, at, &cp);
        TRY(work_grow(w, n + MOST, e));
        int boundary = 0;
        const utf8proc_ssize_t got =
            utf8proc_decompose_char((utf8proc_int32_t)cp, w->cps + n, MOST, options, &boundary);
        CHECK(got >= 0 && got <= MOST);
        n += (size_t)got;
    }
    order_marks(w, n);
    const utf8proc_ssize_t left = utf8proc_normalize_utf32(w->cps, (utf8proc_ssize_t)n, options);
    CHECK(left >= 0 && (size_t)left <= n);
    for (utf8proc_ssize_t i = 0; i < left; i++) put_cp(out, (uint32_t)w->cps[i]);
    return OK;
}

status unicode_nfc(buf *out, str s, error *e)
{
    work w = { 0 };
    status st = OK;
    size_t copied = 0; /* s up to here is in out */
    size_t last = 0;   /* start of the settled character before `at` */
    uint32_t cp = 0;
    for (size_t at = 0; at < s.len;) {
        if ((unsigned char)s.ptr[at] < 0x80) {
            last = at++;
            continue;
        }
        size_t n = next_char(s, at, &cp);
        if (settled(cp)) {
            last = at;
            at += n;
            continue;
        }
        /* The run: the settled character that these may combine with, and all up to the next
         * settled one. */
        do at += n;
        while (at < s.len && (n = next_char(s, at, &cp), !settled(cp)));
        buf_put(out, s.ptr + copied, last - copied);
        TRY_GOTO(st, normalize_run(out, s, last, at, &w, e), done);
        copied = last = at;
    }
    buf_put(out, s.ptr + copied, s.len - copied);
    st = buf_status(out, "normalized text", e);
done:
    mem_free(w.cps);
    mem_free(w.tmp);
    return st;
}
