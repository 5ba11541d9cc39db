/* str.c - borrowed text: comparison, search, numbers, UTF-8. */
#include "base/str.h"
#include <ctype.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include "base/banned.h"

int str_cmp(str a, str b)
{
    const size_t n = a.len < b.len ? a.len : b.len;
    const int c = n ? memcmp(a.ptr, b.ptr, n) : 0;
    if (c) return c;
    return (a.len > b.len) - (a.len < b.len);
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

bool str_same_word(str a, str b)
{
    if (a.len != b.len) return false;
    for (size_t i = 0; i < a.len; i++)
        if (lower(a.ptr[i]) != lower(b.ptr[i])) return false;
    return true;
}

bool str_starts(str s, str prefix)
{
    return s.len >= prefix.len && str_eq(str_sub(s, 0, prefix.len), prefix);
}

bool str_ends(str s, str suffix)
{
    return s.len >= suffix.len && str_eq(str_sub(s, s.len - suffix.len, s.len), suffix);
}

size_t str_find(str s, str needle)
{
    if (needle.len == 0) return 0;
    for (size_t at = 0; at + needle.len <= s.len;) {
        const char *hit = memchr(s.ptr + at, needle.ptr[0], s.len - at - needle.len + 1);
        if (!hit) return STR_NONE;
        at = (size_t)(hit - s.ptr);
        if (memcmp(hit, needle.ptr, needle.len) == 0) return at;
        at++;
    }
    return STR_NONE;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

str str_trim(str s)
{
    size_t from = 0, to = s.len;
    while (from < to && is_space(s.ptr[from])) from++;
    while (to > from && is_space(s.ptr[to - 1])) to--;
    return str_sub(s, from, to);
}

bool str_to_i64(str s, int64_t *out)
{
    const bool negative = s.len && s.ptr[0] == '-';
    const size_t start = negative || (s.len && s.ptr[0] == '+');
    if (start == s.len) return false;
    int64_t v = 0;
    for (size_t i = start; i < s.len; i++) {
        if (!is_digit(s.ptr[i])) return false;
        const int64_t d = s.ptr[i] - '0';
        if (__builtin_mul_overflow(v, 10, &v)) return false;
        if (negative ? __builtin_sub_overflow(v, d, &v) : __builtin_add_overflow(v, d, &v))
            return false;
    }
    *out = v;
    return true;
}

/* [+-] digits [. digits] [e [+-] digits] with a digit before or behind the point. */
static bool is_decimal(str s)
{
    size_t i = s.len && (s.ptr[0] == '-' || s.ptr[0] == '+');
    size_t digits = 0;
    for (; i < s.len && is_digit(s.ptr[i]); i++) digits++;
    if (i < s.len && s.ptr[i] == '.')
        for (i++; i < s.len && is_digit(s.ptr[i]); i++) digits++;
    if (digits == 0) return false;
    if (i < s.len && (s.ptr[i] == 'e' || s.ptr[i] == 'E')) {
        i++;
        i += i < s.len && (s.ptr[i] == '-' || s.ptr[i] == '+');
        if (i == s.len) return false;
        while (i < s.len && is_digit(s.ptr[i])) i++;
    }
    return i == s.len;
}

bool str_to_f64(str s, double *out)
{
    char text[1024];
    const char *point = localeconv()->decimal_point; /* what strtod wants in this locale */
    const size_t point_len = strlen(point);
    if (!is_decimal(s) || s.len + point_len >= sizeof text) return false;
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == '.') {
            memcpy(text + n, point, point_len);
            n += point_len;
        } else {
            text[n++] = s.ptr[i];
        }
    }
    text[n] = '\0';
    const double v = strtod(text, NULL);
    if (!isfinite(v)) return false;
    *out = v;
    return true;
}

bool str_to_size(str s, size_t *out)
{
    unsigned shift = 0;
    if (s.len) {
        switch (s.ptr[s.len - 1]) {
        case 'k':
        case 'K': shift = 10; break;
        case 'm':
        case 'M': shift = 20; break;
        case 'g':
        case 'G': shift = 30; break;
        case 't':
        case 'T': shift = 40; break;
        default: break;
        }
    }
    if (shift) s.len--;
    int64_t v;
    if (s.len == 0 || !is_digit(s.ptr[0]) || !str_to_i64(s, &v)) return false;
    return !__builtin_mul_overflow((size_t)v, (size_t)1 << shift, out);
}

/* Multiply and fold, 8 bytes at a time. The seed is an address, which the system picks anew for
 * every run: keys that collide on purpose cannot be prepared. */
uint64_t str_hash(str s)
{
    const uint64_t k = 0x9e3779b97f4a7c15u;
    uint64_t h = (uint64_t)(uintptr_t)&str_hash ^ (s.len * k);
    size_t i = 0;
    while (i < s.len) {
        uint64_t w = 0;
        const size_t n = s.len - i < 8 ? s.len - i : 8;
        memcpy(&w, s.ptr + i, n);
        h = (h ^ w) * k;
        h ^= h >> 29;
        i += n;
    }
    h = (h ^ (h >> 32)) * 0xbf58476d1ce4e5b9u;
    return h ^ (h >> 29);
}

/* Table 3-7 of the Unicode standard: no overlong forms, no surrogates, nothing above U+10FFFF. */
size_t str_utf8_next(str s, size_t at, uint32_t *cp)
{
    if (at >= s.len) return 0;
    const unsigned char *p = (const unsigned char *)s.ptr + at;
    const size_t left = s.len - at;
    if (p[0] < 0x80) {
        *cp = p[0];
        return 1;
    }
    size_t n;
    uint32_t v, least;
    if (p[0] >= 0xc2 && p[0] <= 0xdf) n = 2, v = p[0] & 0x1fu, least = 0x80;
    else if (p[0] >= 0xe0 && p[0] <= 0xef) n = 3, v = p[0] & 0x0fu, least = 0x800;
    else if (p[0] >= 0xf0 && p[0] <= 0xf4) n = 4, v = p[0] & 0x07u, least = 0x10000;
    else return 0;
    if (left < n) return 0;
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0u) != 0x80) return 0;
        v = v << 6 | (p[i] & 0x3fu);
    }
    if (v < least || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff)) return 0;
    *cp = v;
    return n;
}

bool str_utf8_valid(str s)
{
    uint32_t cp;
    for (size_t at = 0; at < s.len;) {
        const size_t n = str_utf8_next(s, at, &cp);
        if (n == 0) return false;
        at += n;
    }
    return true;
}

size_t str_utf8_put(uint32_t cp, char out[4])
{
    unsigned char *p = (unsigned char *)out;
    if (cp < 0x80) {
        p[0] = (unsigned char)cp;
        return 1;
    }
    if (cp < 0x800) {
        p[0] = (unsigned char)(0xc0 | cp >> 6);
        p[1] = (unsigned char)(0x80 | (cp & 0x3f));
        return 2;
    }
    if (cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff)) cp = 0xfffd;
    if (cp < 0x10000) {
        p[0] = (unsigned char)(0xe0 | cp >> 12);
        p[1] = (unsigned char)(0x80 | (cp >> 6 & 0x3f));
        p[2] = (unsigned char)(0x80 | (cp & 0x3f));
        return 3;
    }
    p[0] = (unsigned char)(0xf0 | cp >> 18);
    p[1] = (unsigned char)(0x80 | (cp >> 12 & 0x3f));
    p[2] = (unsigned char)(0x80 | (cp >> 6 & 0x3f));
    p[3] = (unsigned char)(0x80 | (cp & 0x3f));
    return 4;
}
