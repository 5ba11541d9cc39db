/* jinja_sequence.c - filters of lists and objects. What Python makes lazily is made at once and
 * handed out as an iterator. */
#include "text/jinja_filter.h"
#include "text/jinja_method.h"
#include "text/jinja_ops.h"
#include "text/jinja_repr.h"
#include "text/jinja_string.h"
#include "text/jinja_test.h"

#include "base/banned.h"

static jinja_value empty_sequence(void)
{
    return jinja_value_missing(NULL, STR("an item of an empty sequence"));
}

/* One attribute of an item: "a.b.0", each part an item or attribute of the one before. */
static status get_path(jinja_run *r, jinja_value item, str path, const jinja_value *fallback,
                       jinja_value *out)
{
    *out = item;
    for (size_t at = 0; at <= path.len;) {
        const size_t dot = str_find(str_sub(path, at, path.len), STR("."));
        const size_t end = dot == STR_NONE ? path.len : at + dot;
        const str part = str_sub(path, at, end);
        int64_t index;
        bool digits = part.len > 0;
        for (size_t i = 0; i < part.len; i++) digits &= part.ptr[i] >= '0' && part.ptr[i] <= '9';
        const jinja_value key =
            digits && str_to_i64(part, &index) ? jinja_value_int(index) : jinja_value_string(part);
        TRY(jinja_method_item(r, *out, key, out));
        if (out->type == JINJA_UNDEFINED && fallback) *out = *fallback;
        at = end + 1;
    }
    return OK;
}

static status get_attribute(jinja_run *r, jinja_value item, const jinja_value *attribute,
                            const jinja_value *fallback, jinja_value *out)
{
    if (!attribute || attribute->type == JINJA_NONE) {
        *out = item;
        return OK;
    }
    if (attribute->type == JINJA_STRING) return get_path(r, item, attribute->s, fallback, out);
    TRY(jinja_method_item(r, item, *attribute, out));
    if (out->type == JINJA_UNDEFINED && fallback) *out = *fallback;
    return OK;
}

/* A value as sorting sees it: texts in lower case unless case counts. */
static status sort_key(jinja_run *r, jinja_value v, bool case_sensitive, jinja_value *out)
{
    *out = v;
    if (case_sensitive || v.type != JINJA_STRING) return OK;
    return jinja_string_lower(r, v.s, &out->s);
}

typedef struct keyed {
    jinja_value key, item;
} keyed;

/* Stable merge sort, bottom up; `reverse` keeps the order of equal items too. */
static status sort_keyed(jinja_run *r, keyed *items, size_t count, bool reverse, keyed **out)
{
    keyed *spare = jinja_run_array(r, count, sizeof *spare);
    if (!spare) return r->failed;
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t from = 0, at = 0; from < count; from += 2 * width) {
            size_t a = from, b = from + width < count ? from + width : count;
            const size_t a_end = b, b_end = b + width < count ? b + width : count;
            while (a < a_end || b < b_end) {
                int order = a < a_end ? -1 : 1;
                if (a < a_end && b < b_end) {
                    TRY(jinja_ops_order(r, items[a].key, items[b].key, "<", &order));
                    if (reverse) order = -order;
                }
                spare[at++] = order <= 0 ? items[a++] : items[b++];
            }
        }
        keyed *swap = items;
        items = spare;
        spare = swap;
    }
    *out = items;
    return OK;
}

/* The items of v with their sort keys by `attribute` (may be NULL; commas separate several). */
static status make_keyed(jinja_run *r, jinja_value v, const jinja_value *attribute,
                         bool case_sensitive, keyed **out, size_t *count)
{
    jinja_list items;
    TRY(jinja_ops_items(r, v, &items));
    *count = items.count;
    *out = jinja_run_array(r, items.count, sizeof **out);
    if (!*out) return r->failed;
    const bool several = attribute && attribute->type == JINJA_STRING &&
                         str_find(attribute->s, STR(",")) != STR_NONE;
    if (several) return jinja_run_fail(r, "sorting by several attributes is not supported");
    for (size_t i = 0; i < items.count; i++) {
        jinja_value key;
        TRY(get_attribute(r, items.items[i], attribute, NULL, &key));
        TRY(sort_key(r, key, case_sensitive, &(*out)[i].key));
        (*out)[i].item = items.items[i];
    }
    return OK;
}

static status filter_sort(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    const jinja_value *slots[3];
    keyed *items;
    size_t count;
    TRY(jinja_args_bind(r, "sort", args, "reverse case_sensitive attribute", slots));
    TRY(make_keyed(r, v, slots[2], jinja_args_true(slots[1]), &items, &count));
    TRY(sort_keyed(r, items, count, jinja_args_true(slots[0]), &items));
    TRY(jinja_value_list(r, JINJA_LIST, out));
    for (size_t i = 0; i < count; i++) TRY(jinja_value_push(r, out->list, items[i].item));
    return OK;
}

static status filter_dictsort(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    const jinja_value *slots[3];
    str by = STR("key");
    TRY(jinja_args_bind(r, "dictsort", args, "case_sensitive by reverse", slots));
    TRY(jinja_args_str(r, "dictsort", slots[1], &by));
    const bool by_value = str_eq(by, STR("value"));
    if (!by_value && !str_eq(by, STR("key")))
        return jinja_run_fail(r, "You can only sort by either \"key\" or \"value\"");
    if (v.type != JINJA_DICT) return jinja_run_fail(r, "dictsort wants a dict");
    keyed *items = jinja_run_array(r, v.dict->count, sizeof *items);
    if (!items) return r->failed;
    for (size_t i = 0; i < v.dict->count; i++) {
        const jinja_entry *entry = &v.dict->entries[i];
        TRY(sort_key(r, by_value ? entry->value : entry->key, jinja_args_true(slots[0]),
                     &items[i].key));
        TRY(jinja_value_pair(r, entry->key, entry->value, &items[i].item));
    }
    TRY(sort_keyed(r, items, v.dict->count, jinja_args_true(slots[2]), &items));
    TRY(jinja_value_list(r, JINJA_LIST, out));
    for (size_t i = 0; i < v.dict->count; i++) TRY(jinja_value_push(r, out->list, items[i].item));
    return OK;
}

static status filter_groupby(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    const jinja_value *slots[3];
    keyed *items;
    size_t count;
    TRY(jinja_args_bind(r, "groupby", args, "attribute default case_sensitive", slots));
    if (!slots[0] || slots[1]) return jinja_run_fail(r, "groupby wants an attribute alone");
    TRY(make_keyed(r, v, slots[0], jinja_args_true(slots[2]), &items, &count));
    TRY(sort_keyed(r, items, count, false, &items));
    TRY(jinja_value_list(r, JINJA_LIST, out));
    for (size_t i = 0; i < count;) {
        jinja_value group, members, name;
        TRY(get_attribute(r, items[i].item, slots[0], NULL, &name));
        TRY(jinja_value_list(r, JINJA_LIST, &members));
        const jinja_value key = items[i].key;
        for (bool same = true; same;) {
            TRY(jinja_value_push(r, members.list, items[i++].item));
            if (i == count) break;
            TRY(jinja_ops_equal(r, items[i].key, key, &same));
        }
        TRY(jinja_value_pair(r, name, members, &group));
        group.group = true;
        TRY(jinja_value_push(r, out->list, group));
    }
    return OK;
}

static status filter_unique(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    const jinja_value *slots[2];
    keyed *items;
    size_t count;
    jinja_value seen;
    jinja_list kept = { 0 };
    TRY(jinja_args_bind(r, "unique", args, "case_sensitive attribute", slots));
    TRY(make_keyed(r, v, slots[1], jinja_args_true(slots[0]), &items, &count));
    TRY(jinja_value_dict(r, JINJA_DICT, &seen));
    for (size_t i = 0; i < count; i++) {
        if (jinja_value_get(seen.dict, items[i].key)) continue;
        TRY(jinja_value_put(r, seen.dict, items[i].key, JINJA_NONE_VALUE));
        TRY(jinja_value_push(r, &kept, items[i].item));
    }
    return jinja_value_iterator(r, kept, out);
}

static status extreme(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out,
                      int sign)
{
    const jinja_value *slots[2];
    keyed *items;
    size_t count, best = 0;
    TRY(jinja_args_bind(r, "min or max", args, "case_sensitive attribute", slots));
    TRY(make_keyed(r, v, slots[1], jinja_args_true(slots[0]), &items, &count));
    for (size_t i = 1; i < count; i++) {
        int order;
        TRY(jinja_ops_order(r, items[i].key, items[best].key, sign < 0 ? "<" : ">", &order));
        if (order * sign > 0) best = i;
    }
    *out = count ? items[best].item : empty_sequence();
    return OK;
}

static status filter_min(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    return extreme(r, v, args, out, -1);
}

static status filter_max(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    return extreme(r, v, args, out, 1);
}

static status filter_sum(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    const jinja_value *slots[2];
    jinja_list items;
    TRY(jinja_args_bind(r, "sum", args, "attribute start", slots));
    TRY(jinja_ops_items(r, v, &items));
    *out = slots[1] ? *slots[1] : jinja_value_int(0);
    if (out->type == JINJA_STRING) return jinja_run_fail(r, "sum() can't sum strings");
    for (size_t i = 0; i < items.count; i++) {
        jinja_value item;
        TRY(get_attribute(r, items.items[i], slots[0], NULL, &item));
        TRY(jinja_ops_arithmetic(r, JINJA_ADD, *out, item, out));
    }
    return OK;
}

static status filter_first(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    TRY(jinja_args_bind(r, "first", args, "", NULL));
    if (v.type == JINJA_ITERATOR) {
        *out =
            v.iter->at < v.iter->items.count ? v.iter->items.items[v.iter->at++] : empty_sequence();
        return OK;
    }
    jinja_list items;
    TRY(jinja_ops_items(r, v, &items));
    *out = items.count ? items.items[0] : empty_sequence();
    return OK;
}

static status filter_last(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    jinja_list items;
    TRY(jinja_args_bind(r, "last", args, "", NULL));
    if (v.type == JINJA_ITERATOR) return jinja_run_fail(r, "'generator' object is not reversible");
    TRY(jinja_ops_items(r, v, &items));
    *out = items.count ? items.items[items.count - 1] : empty_sequence();
    if (v.type == JINJA_STRING && items.count) out->markup = v.markup;
    return OK;
}

static status filter_list(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    jinja_list items;
    TRY(jinja_args_bind(r, "list", args, "", NULL));
    TRY(jinja_ops_items(r, v, &items));
    TRY(jinja_value_list(r, JINJA_LIST, out));
    *out->list = items;
    return OK;
}

static status filter_items(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    jinja_list items = { 0 };
    TRY(jinja_args_bind(r, "items", args, "", NULL));
    if (v.type != JINJA_DICT && v.type != JINJA_UNDEFINED)
        return jinja_run_fail(r, "Can only get item pairs from a mapping.");
    for (size_t i = 0; v.type == JINJA_DICT && i < v.dict->count; i++) {
        jinja_value pair;
        TRY(jinja_value_pair(r, v.dict->entries[i].key, v.dict->entries[i].value, &pair));
        TRY(jinja_value_push(r, &items, pair));
    }
    return jinja_value_iterator(r, items, out);
}

static status filter_reverse(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    TRY(jinja_args_bind(r, "reverse", args, "", NULL));
    jinja_list items, reversed = { 0 };
    TRY(jinja_ops_items(r, v, &items));
    for (size_t i = items.count; i-- > 0;) TRY(jinja_value_push(r, &reversed, items.items[i]));
    if (v.type == JINJA_STRING) {
        jinja_text t;
        jinja_text_init(&t, r);
        for (size_t i = 0; i < reversed.count; i++) jinja_text_add(&t, reversed.items[i].s);
        *out = v;
        return jinja_text_done(&t, &out->s);
    }
    if (v.type != JINJA_ITERATOR) return jinja_value_iterator(r, reversed, out);
    TRY(jinja_value_list(r, JINJA_LIST, out));
    *out->list = reversed;
    return OK;
}

static status filter_join(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    const jinja_value *slots[2];
    jinja_list items;
    str between = STR("");
    TRY(jinja_args_bind(r, "join", args, "d attribute", slots));
    if (slots[0]) TRY(jinja_repr_text(r, *slots[0], &between));
    TRY(jinja_ops_items(r, v, &items));
    jinja_text t;
    jinja_text_init(&t, r);
    for (size_t i = 0; i < items.count; i++) {
        jinja_value item;
        TRY(get_attribute(r, items.items[i], slots[1], NULL, &item));
        if (i) jinja_text_add(&t, between);
        TRY(jinja_repr_write(&t, item));
    }
    *out = jinja_value_string(STR(""));
    return jinja_text_done(&t, &out->s);
}

static status filter_batch(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    const jinja_value *slots[2];
    jinja_list items, rows = { 0 };
    int64_t size = 0;
    TRY(jinja_args_bind(r, "batch", args, "linecount fill_with", slots));
    TRY(jinja_args_int(r, "batch", slots[0], &size));
    if (size < 1) return jinja_run_fail(r, "batch wants a positive number");
    TRY(jinja_ops_items(r, v, &items));
    for (size_t i = 0; i < items.count;) {
        jinja_value row;
        TRY(jinja_value_list(r, JINJA_LIST, &row));
        const bool filled = slots[1] && slots[1]->type != JINJA_NONE;
        while (row.list->count < (size_t)size && (i < items.count || filled)) {
            TRY(jinja_value_push(r, row.list, i < items.count ? items.items[i] : *slots[1]));
            i++;
        }
        TRY(jinja_value_push(r, &rows, row));
    }
    return jinja_value_iterator(r, rows, out);
}

static status filter_slice(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    const jinja_value *slots[2];
    jinja_list items, rows = { 0 };
    int64_t count = 0;
    TRY(jinja_args_bind(r, "slice", args, "slices fill_with", slots));
    TRY(jinja_args_int(r, "slice", slots[0], &count));
    if (count < 1) return jinja_run_fail(r, "slice wants a positive number");
    TRY(jinja_ops_items(r, v, &items));
    const size_t each = items.count / (size_t)count, longer = items.count % (size_t)count;
    size_t at = 0;
    for (size_t i = 0; i < (size_t)count; i++) {
        jinja_value row;
        TRY(jinja_value_list(r, JINJA_LIST, &row));
        const size_t end = at + each + (i < longer);
        while (at < end) TRY(jinja_value_push(r, row.list, items.items[at++]));
        if (slots[1] && slots[1]->type != JINJA_NONE && i >= longer)
            TRY(jinja_value_push(r, row.list, *slots[1]));
        TRY(jinja_value_push(r, &rows, row));
    }
    return jinja_value_iterator(r, rows, out);
}

/* The arguments after the first `n` positional ones. */
static jinja_args rest_of(const jinja_args *args, int n)
{
    jinja_args rest = *args;
    if (n) rest.items += n;
    rest.count -= n;
    return rest;
}

static status map_attribute(jinja_run *r, const jinja_list *items, const jinja_args *args,
                            jinja_list *mapped)
{
    const jinja_value *slots[2];
    TRY(jinja_args_bind(r, "map", args, "attribute default", slots));
    for (size_t i = 0; i < items->count; i++) {
        jinja_value item;
        TRY(get_attribute(r, items->items[i], slots[0], slots[1], &item));
        TRY(jinja_value_push(r, mapped, item));
    }
    return OK;
}

static status filter_map(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    jinja_list items, mapped = { 0 };
    TRY(jinja_ops_items(r, v, &items));
    if (args->count == 0) {
        if (args->named_count == 0) return jinja_run_fail(r, "map requires a filter argument");
        TRY(map_attribute(r, &items, args, &mapped));
        return jinja_value_iterator(r, mapped, out);
    }
    str name = { 0 };
    TRY(jinja_args_str(r, "map", &args->items[0], &name));
    const jinja_filter *f = jinja_filter_find(name);
    if (!f) return jinja_run_fail(r, "No filter named '%.*s'.", (int)(name.len % 100), name.ptr);
    const jinja_args rest = rest_of(args, 1);
    for (size_t i = 0; i < items.count; i++) {
        jinja_value item;
        TRY(jinja_filter_apply(r, f, items.items[i], &rest, &item));
        TRY(jinja_value_push(r, &mapped, item));
    }
    return jinja_value_iterator(r, mapped, out);
}

/* select and its kin: keeps items whose attribute (if any) passes the test (none: is true). */
static status choose(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out,
                     bool by_attribute, bool keep)
{
    jinja_list items, kept = { 0 };
    TRY(jinja_ops_items(r, v, &items));
    const jinja_value *attribute = by_attribute ? args->items : NULL;
    if (by_attribute && args->count == 0) return jinja_run_fail(r, "Missing parameter: attribute");
    const jinja_args tested = rest_of(args, by_attribute ? 1 : 0);
    const jinja_test *test = NULL;
    if (tested.count) {
        str name = { 0 };
        TRY(jinja_args_str(r, "select", &tested.items[0], &name));
        test = jinja_test_find(name);
        if (!test)
            return jinja_run_fail(r, "No test named '%.*s'.", (int)(name.len % 100), name.ptr);
    }
    const jinja_args rest = rest_of(&tested, tested.count ? 1 : 0);
    for (size_t i = 0; i < items.count; i++) {
        jinja_value item;
        bool holds;
        TRY(get_attribute(r, items.items[i], attribute, NULL, &item));
        if (test) TRY(test->holds(r, item, &rest, &holds));
        else holds = jinja_value_truth(item);
        if (holds == keep) TRY(jinja_value_push(r, &kept, items.items[i]));
    }
    return jinja_value_iterator(r, kept, out);
}

static status filter_select(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    return choose(r, v, args, out, false, true);
}

static status filter_reject(jinja_run *r, jinja_value v, const jinja_args *args, jinja_value *out)
{
    return choose(r, v, args, out, false, false);
}

static status filter_selectattr(jinja_run *r, jinja_value v, const jinja_args *args,
                                jinja_value *out)
{
    return choose(r, v, args, out, true, true);
}

static status filter_rejectattr(jinja_run *r, jinja_value v, const jinja_args *args,
                                jinja_value *out)
{
    return choose(r, v, args, out, true, false);
}

const jinja_filter *jinja_sequence_find(str name)
{
    static const jinja_filter filters[] = {
        { "batch", filter_batch },
        { "dictsort", filter_dictsort },
        { "first", filter_first },
        { "groupby", filter_groupby },
        { "items", filter_items },
        { "join", filter_join },
        { "last", filter_last },
        { "list", filter_list },
        { "map", filter_map },
        { "max", filter_max },
        { "min", filter_min },
        { "reject", filter_reject },
        { "rejectattr", filter_rejectattr },
        { "reverse", filter_reverse },
        { "select", filter_select },
        { "selectattr", filter_selectattr },
        { "slice", filter_slice },
        { "sort", filter_sort },
        { "sum", filter_sum },
        { "unique", filter_unique },
    };
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        if (str_eq(name, str_from(filters[i].name))) return &filters[i];
    return NULL;
}
