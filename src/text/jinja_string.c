/* jinja_string.c - methods of texts; positions count characters. */
#include "text/jinja_string.h"

#include "text/jinja_format.h"
#include "text/jinja_ops.h"
#include "text/unicode.h"

#include "base/banned.h"

static size_t next_char(str s, size_t at)
{
    at++;
    while (at < s.len && ((unsigned char)s.ptr[at] & 0xc0) == 0x80) at++;
    return at;
}

static uint32_t char_at(str s, size_t at)
{
    uint32_t cp = 0xfffd;
    str_utf8_next(s, at, &cp);
    return cp;
}

static bool strips(str s, size_t from, size_t to, const str *chars)
{
    if (!chars) return unicode_is_space(char_at(s, from));
    return str_find(*chars, str_sub(s, from, to)) != STR_NONE;
}

str jinja_string_strip(str s, const str *chars, bool left, bool right)
{
    size_t from = 0, to = s.len;
    while (left && from < to) {
        const size_t next = next_char(s, from);
        if (!strips(s, from, next, chars)) break;
        from = next;
    }
    while (right && from < to) {
        size_t start = to - 1;
        while (start > from && ((unsigned char)s.ptr[start] & 0xc0) == 0x80) start--;
        if (!strips(s, start, to, chars)) break;
        to = start;
    }
    return str_sub(s, from, to);
}

/* The offset of `needle` in s at or after `from`, or STR_NONE. */
static size_t find_from(str s, str needle, size_t from)
{
    const size_t at = str_find(str_sub(s, from, s.len), needle);
    return at == STR_NONE ? STR_NONE : from + at;
}

static size_t find_last(str s, str needle)
{
    if (needle.len > s.len) return STR_NONE;
    for (size_t at = s.len - needle.len + 1; at-- > 0;)
        if (str_eq(str_sub(s, at, at + needle.len), needle)) return at;
    return STR_NONE;
}

status jinja_string_replace(jinja_run *r, str s, str old, str new, int64_t count, str *out)
{
    jinja_text t;
    jinja_text_init(&t, r);
    size_t at = 0;
    for (; count != 0 && !r->failed; count--) {
        const size_t hit = find_from(s, old, at);
        if (hit == STR_NONE) break;
        jinja_text_add(&t, str_sub(s, at, hit));
        jinja_text_add(&t, new);
        at = hit + old.len;
        if (old.len) continue;
        if (at >= s.len) break; /* the empty text is found before each character and at the end */
        const size_t next = next_char(s, at);
        jinja_text_add(&t, str_sub(s, at, next));
        at = next;
    }
    jinja_text_add(&t, str_sub(s, at, s.len));
    return jinja_text_done(&t, out);
}

static status push_text(jinja_run *r, jinja_list *l, str s)
{
    return jinja_value_push(r, l, jinja_value_string(s));
}

status jinja_string_lines(jinja_run *r, str s, jinja_list *out)
{
    *out = (jinja_list){ 0 };
    size_t line = 0;
    for (size_t at = 0; at < s.len;) {
        const uint32_t cp = char_at(s, at);
        size_t next = next_char(s, at);
        const bool breaks = (cp >= 0x0a && cp <= 0x0d) || (cp >= 0x1c && cp <= 0x1e) ||
                            cp == 0x85 || cp == 0x2028 || cp == 0x2029;
        if (breaks) {
            TRY(push_text(r, out, str_sub(s, line, at)));
            if (cp == '\r' && next < s.len && s.ptr[next] == '\n') next++;
            line = next;
        }
        at = next;
    }
    return line < s.len ? push_text(r, out, str_sub(s, line, s.len)) : jinja_run_work(r, s.len);
}

/* Words between white space; after `most` of them the rest is one item. */
static status split_words(jinja_run *r, str s, int64_t most, jinja_list *out)
{
    s = jinja_string_strip(s, NULL, true, most >= 0 ? false : true);
    while (s.len) {
        size_t end = 0;
        if (most-- == 0) return push_text(r, out, s);
        while (end < s.len && !unicode_is_space(char_at(s, end))) end = next_char(s, end);
        TRY(push_text(r, out, str_sub(s, 0, end)));
        s = jinja_string_strip(str_sub(s, end, s.len), NULL, true, false);
    }
    return OK;
}

status jinja_string_words(jinja_run *r, str s, jinja_list *out)
{
    *out = (jinja_list){ 0 };
    return split_words(r, s, -1, out);
}

static status reverse_list(jinja_list *l)
{
    for (size_t i = 0; i < l->count / 2; i++) {
        const jinja_value swap = l->items[i];
        l->items[i] = l->items[l->count - 1 - i];
        l->items[l->count - 1 - i] = swap;
    }
    return OK;
}

static status split_at(jinja_run *r, str s, str by, int64_t most, bool from_right, jinja_list *out)
{
    if (by.len == 0) return jinja_run_fail(r, "empty separator");
    while (most-- != 0) {
        const size_t hit = from_right ? find_last(s, by) : str_find(s, by);
        if (hit == STR_NONE) break;
        TRY(jinja_run_work(r, from_right ? s.len - hit : hit));
        const str after = str_sub(s, hit + by.len, s.len), before = str_sub(s, 0, hit);
        TRY(push_text(r, out, from_right ? after : before));
        s = from_right ? before : after;
    }
    TRY(push_text(r, out, s));
    return from_right ? reverse_list(out) : OK;
}

static status split(jinja_run *r, jinja_value self, const jinja_args *args, jinja_value *out,
                    bool from_right)
{
    const jinja_value *slots[2];
    int64_t most = -1;
    str by = { 0 };
    TRY(jinja_args_bind(r, "split", args, "sep maxsplit", slots));
    TRY(jinja_args_int(r, "split", slots[1], &most));
    TRY(jinja_value_list(r, JINJA_LIST, out));
    if (slots[0] && slots[0]->type != JINJA_NONE) {
        TRY(jinja_args_str(r, "split", slots[0], &by));
        return split_at(r, self.s, by, most, from_right, out->list);
    }
    if (from_right && most >= 0) return jinja_run_fail(r, "rsplit by white space is not supported");
    return split_words(r, self.s, most, out->list);
}

static status method_split(jinja_run *r, jinja_value self, const jinja_args *args, jinja_value *out)
{
    return split(r, self, args, out, false);
}

static status method_rsplit(jinja_run *r, jinja_value self, const jinja_args *args,
                            jinja_value *out)
{
    return split(r, self, args, out, true);
}

static status method_splitlines(jinja_run *r, jinja_value self, const jinja_args *args,
                                jinja_value *out)
{
    const jinja_value *slots[1];
    TRY(jinja_args_bind(r, "splitlines", args, "keepends", slots));
    if (jinja_args_true(slots[0]))
        return jinja_run_fail(r, "splitlines: keepends is not supported");
    TRY(jinja_value_list(r, JINJA_LIST, out));
    return jinja_string_lines(r, self.s, out->list);
}

static status strip(jinja_run *r, jinja_value self, const jinja_args *args, jinja_value *out,
                    bool left, bool right)
{
    const jinja_value *slots[1];
    str chars = { 0 };
    TRY(jinja_args_bind(r, "strip", args, "chars", slots));
    const bool given = slots[0] && slots[0]->type != JINJA_NONE;
    if (given) TRY(jinja_args_str(r, "strip", slots[0], &chars));
    *out = jinja_value_string(jinja_string_strip(self.s, given ? &chars : NULL, left, right));
    return jinja_run_work(r, self.s.len);
}

static status method_strip(jinja_run *r, jinja_value self, const jinja_args *args, jinja_value *out)
{
    return strip(r, self, args, out, true, true);
}

static status method_lstrip(jinja_run *r, jinja_value self, const jinja_args *args,
                            jinja_value *out)
{
    return strip(r, self, args, out, true, false);
}

static status method_rstrip(jinja_run *r, jinja_value self, const jinja_args *args,
                            jinja_value *out)
{
    return strip(r, self, args, out, false, true);
}

/* s[start:end] of startswith, endswith and find: refused, as templates do not use them. */
static status bind_one_text(jinja_run *r, const char *who, const jinja_args *args, str *out)
{
    if (args->count != 1 || args->named_count)
        return jinja_run_fail(r, "%s: one argument is supported", who);
    return jinja_args_str(r, who, &args->items[0], out);
}

static status affix(jinja_run *r, jinja_value self, const jinja_args *args, jinja_value *out,
                    bool (*test)(str, str), const char *who)
{
    str s;
    *out = jinja_value_bool(false);
    if (args->count == 1 && args->items[0].type == JINJA_TUPLE) {
        const jinja_list *l = args->items[0].list;
        for (size_t i = 0; i < l->count; i++) {
            TRY(jinja_args_str(r, who, &l->items[i], &s));
            out->b |= test(self.s, s);
        }
        return OK;
    }
    TRY(bind_one_text(r, who, args, &s));
    out->b = test(self.s, s);
    return OK;
}

static status method_startswith(jinja_run *r, jinja_value self, const jinja_args *args,
                                jinja_value *out)
{
    return affix(r, self, args, out, str_starts, "startswith");
}

static status method_endswith(jinja_run *r, jinja_value self, const jinja_args *args,
                              jinja_value *out)
{
    return affix(r, self, args, out, str_ends, "endswith");
}

static status find(jinja_run *r, jinja_value self, const jinja_args *args, jinja_value *out,
                   bool last, bool must)
{
    str s;
    TRY(bind_one_text(r, "find", args, &s));
    TRY(jinja_run_work(r, self.s.len));
    const size_t at = last ? find_last(self.s, s) : str_find(self.s, s);
    if (at == STR_NONE && must) return jinja_run_fail(r, "substring not found");
    const str before = at == STR_NONE ? (str){ 0 } : str_sub(self.s, 0, at);
    *out = jinja_value_int(at == STR_NONE ? -1 : (int64_t)jinja_value_char_count(before));
    return OK;
}

static status method_find(jinja_run *r, jinja_value self, const jinja_args *args, jinja_value *out)
{
    return find(r, self, args, out, false, false);
}

static status method_rfind(jinja_run *r, jinja_value self, const jinja_args *args, jinja_value *out)
{
    return find(r, self, args, out, true, false);
}

static status method_index(jinja_run *r, jinja_value self, const jinja_args *args, jinja_value *out)
{
    return find(r, self, args, out, false, true);
}

static status method_rindex(jinja_run *r, jinja_value self, const jinja_args *args,
                            jinja_value *out)
{
    return find(r, self, args, out, true, true);
}

static status method_count(jinja_run *r, jinja_value self, const jinja_args *args, jinja_value *out)
{
    str s;
    TRY(bind_one_text(r, "count", args, &s));
    TRY(jinja_run_work(r, self.s.len));
    *out = jinja_value_int(s.len ? 0 : (int64_t)jinja_value_char_count(self.s) + 1);
    size_t at = 0;
    while (s.len && (at = find_from(self.s, s, at)) != STR_NONE) {
        out->i++;
        at += s.len;
    }
    return OK;
}

static status method_replace(jinja_run *r, jinja_value self, const jinja_args *args,
                             jinja_value *out)
{
    const jinja_value *slots[3];
    str old = { 0 }, new = { 0 };
    int64_t count = -1;
    TRY(jinja_args_bind(r, "replace", args, "old new count", slots));
    if (!slots[0] || !slots[1]) return jinja_run_fail(r, "replace wants two texts");
    TRY(jinja_args_str(r, "replace", slots[0], &old));
    TRY(jinja_args_str(r, "replace", slots[1], &new));
    TRY(jinja_args_int(r, "replace", slots[2], &count));
    *out = jinja_value_string(self.s);
    return jinja_string_replace(r, self.s, old, new, count, &out->s);
}

static status method_join(jinja_run *r, jinja_value self, const jinja_args *args, jinja_value *out)
{
    const jinja_value *slots[1];
    jinja_list items;
    TRY(jinja_args_bind(r, "join", args, "iterable", slots));
    if (!slots[0]) return jinja_run_fail(r, "join wants a list");
    TRY(jinja_ops_items(r, *slots[0], &items));
    jinja_text t;
    jinja_text_init(&t, r);
    for (size_t i = 0; i < items.count; i++) {
        if (items.items[i].type != JINJA_STRING) {
            return jinja_run_fail(r, "sequence item %zu: expected str instance, %s found", i,
                                  jinja_value_type_name(items.items[i]));
        }
        if (i) jinja_text_add(&t, self.s);
        jinja_text_add(&t, items.items[i].s);
    }
    *out = jinja_value_string(STR(""));
    return jinja_text_done(&t, &out->s);
}

/* Runs a function of unicode.h and keeps its result in the arena. */
static status cased(jinja_run *r, void (*change)(buf *, str), str s, str *out)
{
    buf b;
    buf_init(&b, TEMPLATE_MAX_OUTPUT);
    change(&b, s);
    jinja_text t;
    jinja_text_init(&t, r);
    jinja_text_add(&t, buf_view(&b));
    if (b.failed) jinja_run_no_memory(r);
    buf_free(&b);
    return jinja_text_done(&t, out);
}

status jinja_string_upper(jinja_run *r, str s, str *out)
{
    return cased(r, unicode_upper, s, out);
}

status jinja_string_lower(jinja_run *r, str s, str *out)
{
    return cased(r, unicode_lower, s, out);
}

status jinja_string_capitalize(jinja_run *r, str s, str *out)
{
    return cased(r, unicode_capitalize, s, out);
}

static status change_case(jinja_run *r, jinja_value self, const jinja_args *args, jinja_value *out,
                          status (*change)(jinja_run *, str, str *))
{
    TRY(jinja_args_bind(r, "a change of case", args, "", NULL));
    *out = jinja_value_string(STR(""));
    return change(r, self.s, &out->s);
}

static status method_upper(jinja_run *r, jinja_value self, const jinja_args *args, jinja_value *out)
{
    return change_case(r, self, args, out, jinja_string_upper);
}

static status method_lower(jinja_run *r, jinja_value self, const jinja_args *args, jinja_value *out)
{
    return change_case(r, self, args, out, jinja_string_lower);
}

static status method_capitalize(jinja_run *r, jinja_value self, const jinja_args *args,
                                jinja_value *out)
{
    return change_case(r, self, args, out, jinja_string_capitalize);
}

static bool is_cased(uint32_t cp)
{
    const unicode_category c = unicode_category_of(cp);
    return c == UNICODE_LU || c == UNICODE_LL || c == UNICODE_LT;
}

/* Every run of cased characters capitalized. */
static status title(jinja_run *r, str s, str *out)
{
    jinja_text t;
    jinja_text_init(&t, r);
    for (size_t at = 0; at < s.len;) {
        const size_t from = at;
        while (at < s.len && is_cased(char_at(s, at))) at = next_char(s, at);
        if (at > from) {
            str word;
            TRY(jinja_string_capitalize(r, str_sub(s, from, at), &word));
            jinja_text_add(&t, word);
        } else {
            at = next_char(s, at);
            jinja_text_add(&t, str_sub(s, from, at));
        }
    }
    return jinja_text_done(&t, out);
}

static status method_title(jinja_run *r, jinja_value self, const jinja_args *args, jinja_value *out)
{
    return change_case(r, self, args, out, title);
}

static bool is_digit(uint32_t cp)
{
    return unicode_category_of(cp) == UNICODE_ND;
}

static bool is_alnum(uint32_t cp)
{
    return unicode_is_letter(cp) || unicode_is_number(cp);
}

static bool is_ascii(uint32_t cp)
{
    return cp < 0x80;
}

static status every(jinja_run *r, jinja_value self, const jinja_args *args, jinja_value *out,
                    bool (*test)(uint32_t), bool empty)
{
    TRY(jinja_args_bind(r, "a test of a text", args, "", NULL));
    bool all = self.s.len > 0 || empty;
    for (size_t at = 0; all && at < self.s.len; at = next_char(self.s, at))
        all = test(char_at(self.s, at));
    *out = jinja_value_bool(all);
    return jinja_run_work(r, self.s.len);
}

static status method_isdigit(jinja_run *r, jinja_value self, const jinja_args *args,
                             jinja_value *out)
{
    return every(r, self, args, out, is_digit, false);
}

static status method_isalnum(jinja_run *r, jinja_value self, const jinja_args *args,
                             jinja_value *out)
{
    return every(r, self, args, out, is_alnum, false);
}

static status method_isalpha(jinja_run *r, jinja_value self, const jinja_args *args,
                             jinja_value *out)
{
    return every(r, self, args, out, unicode_is_letter, false);
}

static status method_isspace(jinja_run *r, jinja_value self, const jinja_args *args,
                             jinja_value *out)
{
    return every(r, self, args, out, unicode_is_space, false);
}

static status method_isascii(jinja_run *r, jinja_value self, const jinja_args *args,
                             jinja_value *out)
{
    return every(r, self, args, out, is_ascii, true);
}

bool jinja_string_is_cased(str s, bool upper)
{
    bool any = false;
    for (size_t at = 0; at < s.len; at = next_char(s, at)) {
        const unicode_category c = unicode_category_of(char_at(s, at));
        if (c == UNICODE_LT || c == (upper ? UNICODE_LL : UNICODE_LU)) return false;
        any |= c == (upper ? UNICODE_LU : UNICODE_LL);
    }
    return any;
}

static status method_isupper(jinja_run *r, jinja_value self, const jinja_args *args,
                             jinja_value *out)
{
    TRY(jinja_args_bind(r, "isupper", args, "", NULL));
    *out = jinja_value_bool(jinja_string_is_cased(self.s, true));
    return jinja_run_work(r, self.s.len);
}

static status method_islower(jinja_run *r, jinja_value self, const jinja_args *args,
                             jinja_value *out)
{
    TRY(jinja_args_bind(r, "islower", args, "", NULL));
    *out = jinja_value_bool(jinja_string_is_cased(self.s, false));
    return jinja_run_work(r, self.s.len);
}

static status padded(jinja_run *r, str s, size_t left, size_t right, str fill, str *out)
{
    jinja_text t;
    jinja_text_init(&t, r);
    jinja_text_repeat(&t, fill, left);
    jinja_text_add(&t, s);
    jinja_text_repeat(&t, fill, right);
    return jinja_text_done(&t, out);
}

static size_t room_for(str s, int64_t width)
{
    const size_t n = jinja_value_char_count(s);
    return width > 0 && (size_t)width > n ? (size_t)width - n : 0;
}

status jinja_string_center(jinja_run *r, str s, int64_t width, str *out)
{
    const size_t room = room_for(s, width);
    const size_t left = room / 2 + (room & (size_t)width & 1);
    return padded(r, s, left, room - left, STR(" "), out);
}

static status justify(jinja_run *r, jinja_value self, const jinja_args *args, jinja_value *out,
                      bool right)
{
    const jinja_value *slots[2];
    int64_t width = 0;
    str fill = STR(" ");
    TRY(jinja_args_bind(r, "just", args, "width fillchar", slots));
    TRY(jinja_args_int(r, "just", slots[0], &width));
    TRY(jinja_args_str(r, "just", slots[1], &fill));
    if (!slots[0] || jinja_value_char_count(fill) != 1)
        return jinja_run_fail(r, "just wants a width and one character");
    const size_t room = room_for(self.s, width);
    *out = jinja_value_string(STR(""));
    return padded(r, self.s, right ? room : 0, right ? 0 : room, fill, &out->s);
}

static status method_ljust(jinja_run *r, jinja_value self, const jinja_args *args, jinja_value *out)
{
    return justify(r, self, args, out, false);
}

static status method_rjust(jinja_run *r, jinja_value self, const jinja_args *args, jinja_value *out)
{
    return justify(r, self, args, out, true);
}

static status method_zfill(jinja_run *r, jinja_value self, const jinja_args *args, jinja_value *out)
{
    const jinja_value *slots[1];
    int64_t width = 0;
    TRY(jinja_args_bind(r, "zfill", args, "width", slots));
    TRY(jinja_args_int(r, "zfill", slots[0], &width));
    const bool sign = self.s.len && (self.s.ptr[0] == '-' || self.s.ptr[0] == '+');
    jinja_text t;
    jinja_text_init(&t, r);
    jinja_text_add(&t, str_sub(self.s, 0, sign));
    jinja_text_repeat(&t, STR("0"), room_for(self.s, width));
    jinja_text_add(&t, str_sub(self.s, sign, self.s.len));
    *out = jinja_value_string(STR(""));
    return jinja_text_done(&t, &out->s);
}

static status method_removeprefix(jinja_run *r, jinja_value self, const jinja_args *args,
                                  jinja_value *out)
{
    str s;
    TRY(bind_one_text(r, "removeprefix", args, &s));
    *out = self;
    if (str_starts(self.s, s)) out->s = str_sub(self.s, s.len, self.s.len);
    return OK;
}

static status method_removesuffix(jinja_run *r, jinja_value self, const jinja_args *args,
                                  jinja_value *out)
{
    str s;
    TRY(bind_one_text(r, "removesuffix", args, &s));
    *out = self;
    if (str_ends(self.s, s)) out->s = str_sub(self.s, 0, self.s.len - s.len);
    return OK;
}

static status partition(jinja_run *r, jinja_value self, const jinja_args *args, jinja_value *out,
                        bool last)
{
    str by;
    TRY(bind_one_text(r, "partition", args, &by));
    if (by.len == 0) return jinja_run_fail(r, "empty separator");
    TRY(jinja_value_list(r, JINJA_TUPLE, out));
    const size_t at = last ? find_last(self.s, by) : str_find(self.s, by);
    str parts[3] = { self.s, STR(""), STR("") };
    if (at != STR_NONE) {
        parts[0] = str_sub(self.s, 0, at);
        parts[1] = by;
        parts[2] = str_sub(self.s, at + by.len, self.s.len);
    } else if (last) {
        parts[2] = parts[0];
        parts[0] = STR("");
    }
    for (int i = 0; i < 3; i++) TRY(push_text(r, out->list, parts[i]));
    return OK;
}

static status method_partition(jinja_run *r, jinja_value self, const jinja_args *args,
                               jinja_value *out)
{
    return partition(r, self, args, out, false);
}

static status method_rpartition(jinja_run *r, jinja_value self, const jinja_args *args,
                                jinja_value *out)
{
    return partition(r, self, args, out, true);
}

static status method_format(jinja_run *r, jinja_value self, const jinja_args *args,
                            jinja_value *out)
{
    return jinja_format_braces(r, self.s, args, out);
}

const jinja_method *jinja_string_find(str name)
{
    static const jinja_method methods[] = {
        { "capitalize", method_capitalize, false },
        { "casefold", NULL, false },
        { "center", NULL, false },
        { "count", method_count, false },
        { "encode", NULL, false },
        { "endswith", method_endswith, false },
        { "expandtabs", NULL, false },
        { "find", method_find, false },
        { "format", method_format, false },
        { "format_map", NULL, false },
        { "index", method_index, false },
        { "isalnum", method_isalnum, false },
        { "isalpha", method_isalpha, false },
        { "isascii", method_isascii, false },
        { "isdecimal", method_isdigit, false },
        { "isdigit", method_isdigit, false },
        { "isidentifier", NULL, false },
        { "islower", method_islower, false },
        { "isnumeric", NULL, false },
        { "isprintable", NULL, false },
        { "isspace", method_isspace, false },
        { "istitle", NULL, false },
        { "isupper", method_isupper, false },
        { "join", method_join, false },
        { "ljust", method_ljust, false },
        { "lower", method_lower, false },
        { "lstrip", method_lstrip, false },
        { "maketrans", NULL, false },
        { "partition", method_partition, false },
        { "removeprefix", method_removeprefix, false },
        { "removesuffix", method_removesuffix, false },
        { "replace", method_replace, false },
        { "rfind", method_rfind, false },
        { "rindex", method_rindex, false },
        { "rjust", method_rjust, false },
        { "rpartition", method_rpartition, false },
        { "rsplit", method_rsplit, false },
        { "rstrip", method_rstrip, false },
        { "split", method_split, false },
        { "splitlines", method_splitlines, false },
        { "startswith", method_startswith, false },
        { "strip", method_strip, false },
        { "swapcase", NULL, false },
        { "title", method_title, false },
        { "translate", NULL, false },
        { "upper", method_upper, false },
        { "zfill", method_zfill, false },
    };
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (str_eq(name, str_from(methods[i].name))) return &methods[i];
    return NULL;
}
