/* jinja_test.c - what may stand after `is`. */
#include "text/jinja_test.h"

#include "text/jinja_filter.h"
#include "text/jinja_ops.h"
#include "text/jinja_repr.h"
#include "text/jinja_string.h"

#include "base/banned.h"

/* Tests of a value's kind, by one table instead of a function each. */
static bool is_kind(jinja_value v, const char *kind)
{
    const jinja_type t = v.type;
    const bool sized = t == JINJA_STRING || t == JINJA_LIST || t == JINJA_TUPLE ||
                       t == JINJA_DICT || t == JINJA_RANGE || t == JINJA_UNDEFINED;
    switch (kind[0]) {
    case 'b': return t == JINJA_BOOL;
    case 'c':
        return t == JINJA_UNDEFINED || t == JINJA_MACRO || t == JINJA_METHOD ||
               t == JINJA_FUNCTION || t == JINJA_JOINER || t == JINJA_LOOP;
    case 'd': return t != JINJA_UNDEFINED;
    case 'f': return kind[1] == 'l' ? t == JINJA_FLOAT : t == JINJA_BOOL && !v.b;
    case 'i':
        if (kind[1] == 'n') return t == JINJA_INT || t == JINJA_BIGINT;
        return sized || t == JINJA_VIEW || t == JINJA_ITERATOR || t == JINJA_LOOP;
    case 'm': return t == JINJA_DICT;
    case 'n': return kind[1] == 'o' ? t == JINJA_NONE : jinja_value_is_number(v);
    case 's': return kind[1] == 't' ? t == JINJA_STRING : sized;
    case 't': return t == JINJA_BOOL && v.b;
    default: return t == JINJA_UNDEFINED;
    }
}

#define KIND_TEST(word)                                                                       \
    static status test_##word(jinja_run *r, jinja_value v, const jinja_args *args, bool *out) \
    {                                                                                         \
        *out = is_kind(v, #word);                                                             \
        return jinja_args_bind(r, #word, args, "", NULL);                                     \
    }
KIND_TEST(boolean)
KIND_TEST(callable)
KIND_TEST(defined)
KIND_TEST(false)
KIND_TEST(float)
KIND_TEST(integer)
KIND_TEST(iterable)
KIND_TEST(mapping)
KIND_TEST(none)
KIND_TEST(number)
KIND_TEST(sequence)
KIND_TEST(string)
KIND_TEST(true)
KIND_TEST(undefined)

static status one_argument(jinja_run *r, const char *who, const jinja_args *args,
                           const jinja_value **out)
{
    TRY(jinja_args_bind(r, who, args, "other", out));
    return *out ? OK : jinja_run_fail(r, "test '%s' wants an argument", who);
}

#define COMPARISON_TEST(word, op)                                                             \
    static status test_##word(jinja_run *r, jinja_value v, const jinja_args *args, bool *out) \
    {                                                                                         \
        const jinja_value *other;                                                             \
        TRY(one_argument(r, #word, args, &other));                                            \
        return jinja_ops_compare(r, op, v, *other, out);                                      \
    }
COMPARISON_TEST(eq, JINJA_EQ)
COMPARISON_TEST(ne, JINJA_NE)
COMPARISON_TEST(lt, JINJA_LT)
COMPARISON_TEST(le, JINJA_LE)
COMPARISON_TEST(gt, JINJA_GT)
COMPARISON_TEST(ge, JINJA_GE)
COMPARISON_TEST(in, JINJA_IN)

static status divides(jinja_run *r, jinja_value v, jinja_value by, int64_t rest, bool *out)
{
    jinja_value left;
    TRY(jinja_ops_arithmetic(r, JINJA_MOD, v, by, &left));
    return jinja_ops_equal(r, left, jinja_value_int(rest), out);
}

static status test_divisibleby(jinja_run *r, jinja_value v, const jinja_args *args, bool *out)
{
    const jinja_value *other;
    TRY(one_argument(r, "divisibleby", args, &other));
    return divides(r, v, *other, 0, out);
}

static status test_odd(jinja_run *r, jinja_value v, const jinja_args *args, bool *out)
{
    TRY(jinja_args_bind(r, "odd", args, "", NULL));
    return divides(r, v, jinja_value_int(2), 1, out);
}

static status test_even(jinja_run *r, jinja_value v, const jinja_args *args, bool *out)
{
    TRY(jinja_args_bind(r, "even", args, "", NULL));
    return divides(r, v, jinja_value_int(2), 0, out);
}

static status test_sameas(jinja_run *r, jinja_value v, const jinja_args *args, bool *out)
{
    const jinja_value *other;
    TRY(one_argument(r, "sameas", args, &other));
    if (v.type != other->type) {
        *out = false;
        return OK;
    }
    switch (v.type) {
    case JINJA_BOOL:
    case JINJA_NONE: return jinja_ops_equal(r, v, *other, out);
    case JINJA_STRING: /* Python shares equal short texts, not all */
        if (str_eq(v.s, other->s) && v.s.len <= 1) *out = true;
        else if (v.s.ptr == other->s.ptr && v.s.len == other->s.len) *out = true;
        else if (!str_eq(v.s, other->s)) *out = false;
        else return jinja_run_fail(r, "sameas of two equal texts is not decidable");
        return OK;
    default: return jinja_run_fail(r, "sameas is supported for texts, booleans and none");
    }
}

static status test_case(jinja_run *r, jinja_value v, const jinja_args *args, bool *out, bool upper)
{
    str s;
    TRY(jinja_args_bind(r, "a test of case", args, "", NULL));
    TRY(jinja_repr_text(r, v, &s));
    *out = jinja_string_is_cased(s, upper);
    return jinja_run_work(r, s.len);
}

static status test_lower(jinja_run *r, jinja_value v, const jinja_args *args, bool *out)
{
    return test_case(r, v, args, out, false);
}

static status test_upper(jinja_run *r, jinja_value v, const jinja_args *args, bool *out)
{
    return test_case(r, v, args, out, true);
}

static status test_escaped(jinja_run *r, jinja_value v, const jinja_args *args, bool *out)
{
    *out = v.type == JINJA_STRING && v.markup;
    return jinja_args_bind(r, "escaped", args, "", NULL);
}

static status test_filter(jinja_run *r, jinja_value v, const jinja_args *args, bool *out)
{
    *out = v.type == JINJA_STRING && jinja_filter_find(v.s) != NULL;
    return jinja_args_bind(r, "filter", args, "", NULL);
}

static status test_test(jinja_run *r, jinja_value v, const jinja_args *args, bool *out)
{
    *out = v.type == JINJA_STRING && jinja_test_find(v.s) != NULL;
    return jinja_args_bind(r, "test", args, "", NULL);
}

const jinja_test *jinja_test_find(str name)
{
    static const jinja_test tests[] = {
        { "boolean", test_boolean },
        { "callable", test_callable },
        { "defined", test_defined },
        { "divisibleby", test_divisibleby },
        { "==", test_eq },
        { "eq", test_eq },
        { "equalto", test_eq },
        { "escaped", test_escaped },
        { "even", test_even },
        { "false", test_false },
        { "filter", test_filter },
        { "float", test_float },
        { ">=", test_ge },
        { "ge", test_ge },
        { ">", test_gt },
        { "gt", test_gt },
        { "greaterthan", test_gt },
        { "in", test_in },
        { "integer", test_integer },
        { "iterable", test_iterable },
        { "<=", test_le },
        { "le", test_le },
        { "lower", test_lower },
        { "<", test_lt },
        { "lt", test_lt },
        { "lessthan", test_lt },
        { "mapping", test_mapping },
        { "!=", test_ne },
        { "ne", test_ne },
        { "none", test_none },
        { "number", test_number },
        { "odd", test_odd },
        { "sameas", test_sameas },
        { "sequence", test_sequence },
        { "string", test_string },
        { "test", test_test },
        { "true", test_true },
        { "undefined", test_undefined },
        { "upper", test_upper },
    };
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (str_eq(name, str_from(tests[i].name))) return &tests[i];
    return NULL;
}
