/* jinja_ops.c - operators and containers, with Python's meaning. */
#include "text/jinja_ops.h"

#include <math.h>

#include "text/jinja_repr.h"

#include "base/banned.h"

static int sign_of(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* Order of whole numbers of which at least one is beyond 64 bits. */
static int order_big(jinja_value a, jinja_value b)
{
    const bool a_big = a.type == JINJA_BIGINT, b_big = b.type == JINJA_BIGINT;
    const bool a_minus = a_big && a.s.ptr[0] == '-', b_minus = b_big && b.s.ptr[0] == '-';
    if (!a_big) return b_minus ? 1 : -1;
    if (!b_big) return a_minus ? -1 : 1;
    if (a_minus != b_minus) return a_minus ? -1 : 1;
    int order = a.s.len != b.s.len ? (a.s.len > b.s.len ? 1 : -1) : str_cmp(a.s, b.s);
    return a_minus ? -order : order;
}

/* Order of two numbers; NaN counts as equal to everything here. */
static int order_numbers(jinja_value a, jinja_value b)
{
    int64_t i, k;
    if (jinja_value_as_int(a, &i) && jinja_value_as_int(b, &k)) return sign_of(i, k);
    if (a.type != JINJA_FLOAT && b.type != JINJA_FLOAT) return order_big(a, b);
    double f = 0, g = 0;
    jinja_value_as_double(a, &f);
    jinja_value_as_double(b, &g);
    return (f > g) - (f < g);
}

static bool is_nan(jinja_value v)
{
    return v.type == JINJA_FLOAT && isnan(v.f);
}

static status equal_lists(jinja_run *r, const jinja_list *a, const jinja_list *b, bool *out)
{
    *out = a->count == b->count;
    for (size_t i = 0; *out && i < a->count; i++)
        TRY(jinja_ops_equal(r, a->items[i], b->items[i], out));
    return OK;
}

static status equal_dicts(jinja_run *r, const jinja_dict *a, const jinja_dict *b, bool *out)
{
    *out = a->count == b->count;
    for (size_t i = 0; *out && i < a->count; i++) {
        const jinja_value *other = jinja_value_get(b, a->entries[i].key);
        *out = other != NULL;
        if (other) TRY(jinja_ops_equal(r, a->entries[i].value, *other, out));
    }
    return OK;
}

static status equal(jinja_run *r, jinja_value a, jinja_value b, bool *out)
{
    if (jinja_value_is_number(a) && jinja_value_is_number(b)) {
        *out = !is_nan(a) && !is_nan(b) && order_numbers(a, b) == 0;
        return OK;
    }
    *out = a.type == b.type;
    if (!*out) return OK;
    switch (a.type) {
    case JINJA_UNDEFINED:
    case JINJA_NONE: return OK;
    case JINJA_STRING: *out = str_eq(a.s, b.s); return jinja_run_work(r, a.s.len);
    case JINJA_LIST:
    case JINJA_TUPLE: return equal_lists(r, a.list, b.list, out);
    case JINJA_DICT: return equal_dicts(r, a.dict, b.dict, out);
    case JINJA_VIEW:
    case JINJA_RANGE:
        return jinja_run_fail(r, "comparing a %s is not supported", jinja_value_type_name(a));
    default: *out = a.object == b.object; return OK;
    }
}

status jinja_ops_equal(jinja_run *r, jinja_value a, jinja_value b, bool *out)
{
    status s = jinja_run_enter(r);
    if (!s) s = equal(r, a, b, out);
    jinja_run_leave(r);
    return s;
}

static status order(jinja_run *r, jinja_value a, jinja_value b, const char *op, int *out)
{
    if (jinja_value_is_number(a) && jinja_value_is_number(b)) {
        *out = order_numbers(a, b);
        return OK;
    }
    if (a.type == JINJA_STRING && b.type == JINJA_STRING) {
        *out = str_cmp(a.s, b.s); /* UTF-8 sorts as its characters do */
        return jinja_run_work(r, a.s.len < b.s.len ? a.s.len : b.s.len);
    }
    const bool lists = a.type == b.type && (a.type == JINJA_LIST || a.type == JINJA_TUPLE);
    if (!lists) {
        if (a.type == JINJA_UNDEFINED) return jinja_value_fail_missing(r, a);
        if (b.type == JINJA_UNDEFINED) return jinja_value_fail_missing(r, b);
        return jinja_run_fail(r, "'%s' not supported between instances of '%s' and '%s'", op,
                              jinja_value_type_name(a), jinja_value_type_name(b));
    }
    for (size_t i = 0; i < a.list->count && i < b.list->count; i++) {
        bool same;
        TRY(jinja_ops_equal(r, a.list->items[i], b.list->items[i], &same));
        if (!same) return jinja_ops_order(r, a.list->items[i], b.list->items[i], op, out);
    }
    *out = sign_of((int64_t)a.list->count, (int64_t)b.list->count);
    return OK;
}

status jinja_ops_order(jinja_run *r, jinja_value a, jinja_value b, const char *op, int *out)
{
    status s = jinja_run_enter(r);
    if (!s) s = order(r, a, b, op, out);
    jinja_run_leave(r);
    return s;
}

static status contains_item(jinja_run *r, jinja_value in, jinja_value v, bool *out)
{
    jinja_list items;
    TRY(jinja_ops_items(r, in, &items));
    *out = false;
    for (size_t i = 0; !*out && i < items.count; i++)
        TRY(jinja_ops_equal(r, items.items[i], v, out));
    return OK;
}

static status contains(jinja_run *r, jinja_value in, jinja_value v, bool *out)
{
    uint64_t hash;
    switch (in.type) {
    case JINJA_STRING:
        if (v.type != JINJA_STRING) {
            return jinja_run_fail(r, "'in <string>' requires string as left operand, not %s",
                                  jinja_value_type_name(v));
        }
        *out = str_find(in.s, v.s) != STR_NONE;
        return jinja_run_work(r, in.s.len);
    case JINJA_DICT:
        if (!jinja_value_hash(v, &hash))
            return jinja_run_fail(r, "unhashable type: '%s'", jinja_value_type_name(v));
        *out = jinja_value_get(in.dict, v) != NULL;
        return OK;
    case JINJA_UNDEFINED:
    case JINJA_LIST:
    case JINJA_TUPLE:
    case JINJA_VIEW:
    case JINJA_RANGE:
    case JINJA_ITERATOR: return contains_item(r, in, v, out);
    default:
        return jinja_run_fail(r, "argument of type '%s' is not iterable",
                              jinja_value_type_name(in));
    }
}

status jinja_ops_compare(jinja_run *r, jinja_operator op, jinja_value a, jinja_value b, bool *out)
{
    static const char *const names[] = { "<", "<=", ">", ">=" };
    if (op == JINJA_EQ || op == JINJA_NE) {
        TRY(jinja_ops_equal(r, a, b, out));
        *out ^= op == JINJA_NE;
        return OK;
    }
    if (op == JINJA_IN || op == JINJA_NOT_IN) {
        TRY(contains(r, b, a, out));
        *out ^= op == JINJA_NOT_IN;
        return OK;
    }
    int o;
    TRY(jinja_ops_order(r, a, b, names[op - JINJA_LT], &o));
    *out = op == JINJA_LT ? o < 0 : op == JINJA_LE ? o <= 0 : op == JINJA_GT ? o > 0 : o >= 0;
    if (is_nan(a) || is_nan(b)) *out = false;
    return OK;
}

static status unsupported(jinja_run *r, const char *op, jinja_value a, jinja_value b)
{
    if (a.type == JINJA_UNDEFINED) return jinja_value_fail_missing(r, a);
    if (b.type == JINJA_UNDEFINED) return jinja_value_fail_missing(r, b);
    return jinja_run_fail(r, "unsupported operand type(s) for %s: '%s' and '%s'", op,
                          jinja_value_type_name(a), jinja_value_type_name(b));
}

static status too_large(jinja_run *r)
{
    return jinja_run_fail(r, "arithmetic beyond 64-bit integers is not supported");
}

static bool exact_double(int64_t i)
{
    return i <= (1ll << 53) && i >= -(1ll << 53);
}

static status power(jinja_run *r, int64_t base, int64_t exponent, jinja_value *out)
{
    const bool inverse = exponent < 0;
    if (exponent < -63 || (inverse && base == 0))
        return jinja_run_fail(r, "a power is out of range");
    int64_t left = inverse ? -exponent : exponent, result = 1, square = base;
    if (base == 0 || base == 1) left = left ? 1 : 0;
    if (base == -1) left &= 1;
    while (left > 0) {
        if ((left & 1) && __builtin_mul_overflow(result, square, &result)) return too_large(r);
        left >>= 1;
        if (left && __builtin_mul_overflow(square, square, &square)) return too_large(r);
    }
    *out = inverse ? jinja_value_float(1.0 / (double)result) : jinja_value_int(result);
    return inverse && !exact_double(result) ? too_large(r) : OK;
}

static status whole(jinja_run *r, jinja_operator op, int64_t a, int64_t b, jinja_value *out)
{
    out->type = JINJA_INT;
    const bool divides = op == JINJA_DIV || op == JINJA_FLOORDIV || op == JINJA_MOD;
    if (divides && b == 0) return jinja_run_fail(r, "division by zero");
    switch (op) {
    case JINJA_ADD: return __builtin_add_overflow(a, b, &out->i) ? too_large(r) : OK;
    case JINJA_SUB: return __builtin_sub_overflow(a, b, &out->i) ? too_large(r) : OK;
    case JINJA_MUL: return __builtin_mul_overflow(a, b, &out->i) ? too_large(r) : OK;
    case JINJA_DIV:
        if (!exact_double(a) || !exact_double(b)) return too_large(r);
        *out = jinja_value_float((double)a / (double)b);
        return OK;
    case JINJA_POW: return power(r, a, b, out);
    default: break;
    }
    if (b == -1) { /* the quotient of the smallest integer does not fit */
        if (op == JINJA_FLOORDIV) return __builtin_sub_overflow(0, a, &out->i) ? too_large(r) : OK;
        out->i = 0;
        return OK;
    }
    int64_t quotient = a / b, rest = a % b;
    if (rest != 0 && (rest < 0) != (b < 0)) { /* Python rounds down */
        quotient--;
        rest += b;
    }
    out->i = op == JINJA_FLOORDIV ? quotient : rest;
    return OK;
}

static status real(jinja_run *r, jinja_operator op, double a, double b, jinja_value *out)
{
    out->type = JINJA_FLOAT;
    const bool divides = op == JINJA_DIV || op == JINJA_FLOORDIV || op == JINJA_MOD;
    if (divides && b == 0) return jinja_run_fail(r, "float division by zero");
    switch (op) {
    case JINJA_ADD: out->f = a + b; return OK;
    case JINJA_SUB: out->f = a - b; return OK;
    case JINJA_MUL: out->f = a * b; return OK;
    case JINJA_DIV: out->f = a / b; return OK;
    case JINJA_POW: return jinja_run_fail(r, "powers of floats are not supported");
    default: break;
    }
    double rest = fmod(a, b);
    double quotient = (a - rest) / b;
    if (rest != 0 && (rest < 0) != (b < 0)) {
        rest += b;
        quotient -= 1;
    }
    if (rest == 0) rest = copysign(0, b);
    const double whole_part = floor(quotient);
    out->f = op == JINJA_MOD               ? rest
             : quotient - whole_part > 0.5 ? whole_part + 1
             : quotient == 0               ? copysign(0, a / b)
                                           : whole_part;
    return OK;
}

static const char *operator_name(jinja_operator op)
{
    static const char *const names[] = { "+", "-", "*", "/", "//", "%", "**" };
    return names[op];
}

static status concatenate(jinja_run *r, jinja_value a, jinja_value b, jinja_value *out)
{
    const bool markup = a.markup || b.markup;
    if (markup) { /* plain text joins escaped text escaped */
        TRY(jinja_ops_escape(r, a, &a));
        TRY(jinja_ops_escape(r, b, &b));
    }
    jinja_text t;
    jinja_text_init(&t, r);
    jinja_text_add(&t, a.s);
    jinja_text_add(&t, b.s);
    *out = (jinja_value){ .type = JINJA_STRING, .markup = markup };
    return jinja_text_done(&t, &out->s);
}

static status join_lists(jinja_run *r, jinja_value a, jinja_value b, jinja_value *out)
{
    TRY(jinja_value_list(r, a.type, out));
    for (size_t i = 0; i < a.list->count; i++)
        TRY(jinja_value_push(r, out->list, a.list->items[i]));
    for (size_t i = 0; i < b.list->count; i++)
        TRY(jinja_value_push(r, out->list, b.list->items[i]));
    return OK;
}

static status repeat(jinja_run *r, jinja_value v, int64_t times, jinja_value *out)
{
    if (v.type == JINJA_STRING) {
        jinja_text t;
        jinja_text_init(&t, r);
        jinja_text_repeat(&t, v.s, times > 0 ? (size_t)times : 0);
        *out = v;
        return jinja_text_done(&t, &out->s);
    }
    TRY(jinja_value_list(r, v.type, out));
    for (int64_t n = 0; n < times && v.list->count; n++)
        for (size_t i = 0; i < v.list->count; i++)
            TRY(jinja_value_push(r, out->list, v.list->items[i]));
    return OK;
}

static bool is_sequence(jinja_value v)
{
    return v.type == JINJA_STRING || v.type == JINJA_LIST || v.type == JINJA_TUPLE;
}

status jinja_ops_arithmetic(jinja_run *r, jinja_operator op, jinja_value a, jinja_value b,
                            jinja_value *out)
{
    int64_t i, k;
    double f, g;
    if (op == JINJA_ADD && is_sequence(a) && a.type == b.type)
        return a.type == JINJA_STRING ? concatenate(r, a, b, out) : join_lists(r, a, b, out);
    if (op == JINJA_MUL && is_sequence(a) && jinja_value_as_int(b, &k)) return repeat(r, a, k, out);
    if (op == JINJA_MUL && is_sequence(b) && jinja_value_as_int(a, &i)) return repeat(r, b, i, out);
    if (!jinja_value_is_number(a) || !jinja_value_is_number(b))
        return unsupported(r, operator_name(op), a, b);
    if (a.type == JINJA_BIGINT || b.type == JINJA_BIGINT) return too_large(r);
    if (jinja_value_as_int(a, &i) && jinja_value_as_int(b, &k)) return whole(r, op, i, k, out);
    jinja_value_as_double(a, &f);
    jinja_value_as_double(b, &g);
    return real(r, op, f, g, out);
}

status jinja_ops_negate(jinja_run *r, jinja_value v, jinja_value *out)
{
    int64_t i;
    if (jinja_value_as_int(v, &i)) return whole(r, JINJA_SUB, 0, i, out);
    if (v.type == JINJA_UNDEFINED) return jinja_value_fail_missing(r, v);
    if (v.type == JINJA_BIGINT) return too_large(r);
    if (v.type != JINJA_FLOAT)
        return jinja_run_fail(r, "bad operand type for unary -: '%s'", jinja_value_type_name(v));
    *out = jinja_value_float(-v.f);
    return OK;
}

status jinja_ops_length(jinja_run *r, jinja_value v, size_t *out)
{
    switch (v.type) {
    case JINJA_UNDEFINED: *out = 0; return OK;
    case JINJA_STRING: *out = jinja_value_char_count(v.s); return jinja_run_work(r, v.s.len);
    case JINJA_LIST:
    case JINJA_TUPLE: *out = v.list->count; return OK;
    case JINJA_DICT: *out = v.dict->count; return OK;
    case JINJA_VIEW: *out = v.view->dict->count; return OK;
    case JINJA_RANGE: *out = v.range->count; return OK;
    default: return jinja_run_fail(r, "object of type '%s' has no len()", jinja_value_type_name(v));
    }
}

static status characters(jinja_run *r, str s, jinja_list *out)
{
    for (size_t at = 0, next; at < s.len; at = next) {
        next = at + 1;
        while (next < s.len && ((unsigned char)s.ptr[next] & 0xc0) == 0x80) next++;
        TRY(jinja_value_push(r, out, jinja_value_string(str_sub(s, at, next))));
    }
    return OK;
}

static status view_items(jinja_run *r, const jinja_dict *d, jinja_view_kind kind, jinja_list *out)
{
    for (size_t i = 0; i < d->count; i++) {
        jinja_value item = kind == JINJA_KEYS ? d->entries[i].key : d->entries[i].value;
        if (kind == JINJA_ITEMS) TRY(jinja_value_pair(r, d->entries[i].key, item, &item));
        TRY(jinja_value_push(r, out, item));
    }
    return OK;
}

status jinja_ops_items(jinja_run *r, jinja_value v, jinja_list *out)
{
    *out = (jinja_list){ 0 };
    switch (v.type) {
    case JINJA_UNDEFINED: return OK;
    case JINJA_STRING: return characters(r, v.s, out);
    case JINJA_LIST:
    case JINJA_TUPLE:
        *out = *v.list;
        out->cap = out->count;
        return OK;
    case JINJA_DICT: return view_items(r, v.dict, JINJA_KEYS, out);
    case JINJA_VIEW: return view_items(r, v.view->dict, v.view->kind, out);
    case JINJA_RANGE:
        for (size_t i = 0; i < v.range->count; i++) {
            const int64_t at = v.range->start + (int64_t)i * v.range->step;
            TRY(jinja_value_push(r, out, jinja_value_int(at)));
        }
        return OK;
    case JINJA_ITERATOR:
        out->items = v.iter->items.items ? v.iter->items.items + v.iter->at : NULL;
        out->count = out->cap = v.iter->items.count - v.iter->at;
        v.iter->at = v.iter->items.count;
        return OK;
    default: return jinja_run_fail(r, "'%s' object is not iterable", jinja_value_type_name(v));
    }
}

status jinja_ops_at(jinja_run *r, jinja_value v, jinja_value key, jinja_value *out, bool *found)
{
    *found = false;
    if (v.type == JINJA_DICT) {
        const jinja_value *item = jinja_value_get(v.dict, key);
        *found = item != NULL;
        if (item) *out = *item;
        return OK;
    }
    int64_t at;
    const bool indexed = is_sequence(v) || v.type == JINJA_RANGE;
    if (!indexed || !jinja_value_as_int(key, &at)) return OK;
    size_t n;
    TRY(jinja_ops_length(r, v, &n));
    if (at < 0) at += (int64_t)n;
    if (at < 0 || at >= (int64_t)n) return OK;
    *found = true;
    if (v.type == JINJA_STRING) {
        const size_t from = jinja_value_char_offset(v.s, (size_t)at);
        const str rest = str_sub(v.s, from, v.s.len);
        *out = v;
        out->s = str_sub(rest, 0, jinja_value_char_offset(rest, 1));
    } else if (v.type == JINJA_RANGE) {
        *out = jinja_value_int(v.range->start + at * v.range->step);
    } else {
        *out = v.list->items[at];
    }
    return OK;
}

/* Python's slice.indices (start, stop, step) for a sequence of n, and the number of items. */
static status slice_indices(jinja_run *r, const jinja_value bounds[3], int64_t n, int64_t at[3],
                            int64_t *count)
{
    at[0] = at[1] = *count = 0;
    at[2] = 1;
    for (int i = 0; i < 3; i++) {
        if (bounds[i].type == JINJA_NONE || jinja_value_as_int(bounds[i], &at[i])) continue;
        return jinja_run_fail(r, "slice indices must be integers or None");
    }
    if (at[2] == 0) return jinja_run_fail(r, "slice step cannot be zero");
    if (at[2] < -INT32_MAX) at[2] = -INT32_MAX;
    if (at[2] > INT32_MAX) at[2] = INT32_MAX;
    const bool back = at[2] < 0;
    const int64_t low = back ? -1 : 0, high = back ? n - 1 : n;
    for (int i = 0; i < 2; i++) {
        if (bounds[i].type == JINJA_NONE) {
            at[i] = (i == 0) == back ? high : low;
            continue;
        }
        if (at[i] < 0) at[i] = at[i] < -n ? -1 : at[i] + n;
        at[i] = at[i] < low ? low : at[i] > high ? high : at[i];
    }
    const int64_t span = back ? at[0] - at[1] : at[1] - at[0];
    const int64_t stride = back ? -at[2] : at[2];
    *count = span > 0 ? (span - 1) / stride + 1 : 0;
    return OK;
}

status jinja_ops_slice(jinja_run *r, jinja_value v, const jinja_value bounds[3], jinja_value *out)
{
    if (v.type == JINJA_UNDEFINED) return jinja_value_fail_missing(r, v);
    if (!is_sequence(v) && v.type != JINJA_RANGE)
        return jinja_run_fail(r, "'%s' object cannot be sliced", jinja_value_type_name(v));
    size_t n;
    int64_t at[3], count;
    TRY(jinja_ops_length(r, v, &n));
    TRY(slice_indices(r, bounds, (int64_t)n, at, &count));
    const int64_t start = at[0], step = at[2];
    if (v.type == JINJA_RANGE) {
        *out = (jinja_value){ .type = JINJA_RANGE };
        out->range = jinja_run_alloc(r, sizeof *out->range);
        if (!out->range) return r->failed;
        const jinja_range *from = v.range;
        *out->range = (jinja_range){ .start = from->start + start * from->step,
                                     .stop = from->start + at[1] * from->step,
                                     .step = step * from->step,
                                     .count = (size_t)count };
        return OK;
    }
    if (v.type == JINJA_STRING && step == 1) {
        const size_t from = jinja_value_char_offset(v.s, (size_t)start);
        const str rest = str_sub(v.s, from, v.s.len);
        *out = v;
        out->s = str_sub(rest, 0, jinja_value_char_offset(rest, (size_t)count));
        return OK;
    }
    jinja_list items;
    TRY(jinja_ops_items(r, v, &items));
    if (v.type != JINJA_STRING) {
        TRY(jinja_value_list(r, v.type, out));
        for (int64_t i = 0; i < count; i++)
            TRY(jinja_value_push(r, out->list, items.items[start + i * step]));
        return OK;
    }
    jinja_text t;
    jinja_text_init(&t, r);
    for (int64_t i = 0; i < count; i++) jinja_text_add(&t, items.items[start + i * step].s);
    *out = v;
    return jinja_text_done(&t, &out->s);
}

status jinja_ops_escape(jinja_run *r, jinja_value v, jinja_value *out)
{
    *out = v;
    if (v.type == JINJA_STRING && v.markup) return OK;
    str s;
    TRY(jinja_repr_text(r, v, &s));
    jinja_text t;
    jinja_text_init(&t, r);
    for (size_t at = 0; at < s.len;) {
        const size_t plain = at;
        while (at < s.len && !memchr("&<>'\"", s.ptr[at], 5)) at++;
        jinja_text_add(&t, str_sub(s, plain, at));
        if (at == s.len) break;
        switch (s.ptr[at++]) {
        case '&': jinja_text_add(&t, STR("&amp;")); break;
        case '<': jinja_text_add(&t, STR("&lt;")); break;
        case '>': jinja_text_add(&t, STR("&gt;")); break;
        case '\'': jinja_text_add(&t, STR("&#39;")); break;
        default: jinja_text_add(&t, STR("&#34;")); break;
        }
    }
    *out = (jinja_value){ .type = JINJA_STRING, .markup = true };
    return jinja_text_done(&t, &out->s);
}
