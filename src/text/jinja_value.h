/* jinja_value.h - the values of the template language, with Python's meaning of every operation.
 *
 * Values are small structs passed by value; what they point to lives in the run's arena and does
 * not change once made (the sandbox is immutable), except namespaces, iterators and `loop`.
 * Texts are UTF-8; positions and lengths that a template sees count characters. */
#ifndef TEXT_JINJA_VALUE_H
#define TEXT_JINJA_VALUE_H
#include "base/json.h"
#include "text/jinja_text.h"

typedef enum jinja_type {
    JINJA_UNDEFINED, /* missing.whose, .what */
    JINJA_NONE,
    JINJA_BOOL,   /* b */
    JINJA_INT,    /* i */
    JINJA_BIGINT, /* s: decimal digits of an integer beyond 64 bits; can be printed and compared */
    JINJA_FLOAT,  /* f */
    JINJA_STRING, /* s; markup: came from `safe` or `escape` */
    JINJA_LIST,   /* list */
    JINJA_TUPLE,  /* list; group: an item of `groupby`, (grouper, list) */
    JINJA_DICT,   /* dict */
    JINJA_VIEW,   /* view: keys(), values() or items() of a dict */
    JINJA_RANGE,  /* range */
    JINJA_ITERATOR,  /* iter: what Python gives as a generator: usable once, always true */
    JINJA_NAMESPACE, /* dict, mutable */
    JINJA_MACRO,     /* object: jinja_eval's */
    JINJA_LOOP,      /* object: jinja_eval's */
    JINJA_METHOD,    /* object: jinja_method's: a method with its receiver */
    JINJA_FUNCTION,  /* object: jinja_global's */
    JINJA_CYCLER,    /* iter: at wraps around */
    JINJA_JOINER     /* iter: items[0] is the separator, at says whether it was used */
} jinja_type;

typedef struct jinja_value {
    jinja_type type;
    bool markup, group;
    union {
        bool b;
        int64_t i;
        double f;
        str s;
        struct jinja_list *list;
        struct jinja_dict *dict;
        struct jinja_view *view;
        struct jinja_range *range;
        struct jinja_iter *iter;
        void *object;
        struct {
            const char *whose; /* "dict object", or NULL for a variable */
            str what;
        } missing;
    };
} jinja_value;

typedef struct jinja_list {
    jinja_value *items;
    size_t count, cap;
} jinja_list;

typedef struct jinja_entry {
    jinja_value key, value;
} jinja_entry;

typedef struct jinja_dict { /* in order of insertion */
    jinja_entry *entries;
    size_t count, cap;
    uint32_t *slots; /* open addressing: entry number + 1; NULL while small */
    size_t slot_count;
} jinja_dict;

typedef enum jinja_view_kind { JINJA_KEYS, JINJA_VALUES, JINJA_ITEMS } jinja_view_kind;

typedef struct jinja_view {
    jinja_dict *dict;
    jinja_view_kind kind;
} jinja_view;

typedef struct jinja_range {
    int64_t start, stop, step;
    size_t count;
} jinja_range;

typedef struct jinja_iter {
    jinja_list items;
    size_t at;
} jinja_iter;

/* Constructors. Those that allocate return a status. */
#define JINJA_NONE_VALUE ((jinja_value){ .type = JINJA_NONE })
static inline jinja_value jinja_value_bool(bool b)
{
    return (jinja_value){ .type = JINJA_BOOL, .b = b };
}
static inline jinja_value jinja_value_int(int64_t i)
{
    return (jinja_value){ .type = JINJA_INT, .i = i };
}
static inline jinja_value jinja_value_float(double f)
{
    return (jinja_value){ .type = JINJA_FLOAT, .f = f };
}
static inline jinja_value jinja_value_string(str s)
{
    return (jinja_value){ .type = JINJA_STRING, .s = s };
}
static inline jinja_value jinja_value_missing(const char *whose, str what)
{
    return (jinja_value){ .type = JINJA_UNDEFINED, .missing = { whose, what } };
}
status jinja_value_list(jinja_run *r, jinja_type type, jinja_value *out); /* empty list or tuple */
status jinja_value_push(jinja_run *r, jinja_list *l, jinja_value v);
status jinja_value_pair(jinja_run *r, jinja_value a, jinja_value b, jinja_value *out);
status jinja_value_iterator(jinja_run *r, jinja_list items, jinja_value *out);
status jinja_value_dict(jinja_run *r, jinja_type type, jinja_value *out); /* empty */
status jinja_value_put(jinja_run *r, jinja_dict *d, jinja_value key, jinja_value value);
/* NULL when absent or not hashable. */
const jinja_value *jinja_value_get(const jinja_dict *d, jinja_value key);
const jinja_value *jinja_value_get_str(const jinja_dict *d, str key);
/* A copy of a JSON value. */
status jinja_value_from_json(jinja_run *r, const json_node *n, jinja_value *out);

/* What they are. */
const char *jinja_value_type_name(jinja_value v); /* Python's: "str", "NoneType", ... */
bool jinja_value_truth(jinja_value v);
bool jinja_value_is_number(jinja_value v);              /* also bool, as in Python */
bool jinja_value_as_int(jinja_value v, int64_t *out);   /* int or bool */
bool jinja_value_as_double(jinja_value v, double *out); /* number of any kind */
bool jinja_value_hash(jinja_value v, uint64_t *out);    /* false: not hashable */
/* "'x' is undefined", "'dict object' has no attribute 'x'": the failure of using a missing value */
status jinja_value_fail_missing(jinja_run *r, jinja_value v);

/* Characters of a text. */
size_t jinja_value_char_count(str s);
size_t jinja_value_char_offset(str s, size_t index); /* bytes before character `index` */
#endif
