/* added.c - the list of added tokens, and the search for them in a text. */
#include "text/added.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "text/bpe.h"
#include "text/unicode.h"
#include "base/banned.h"

void added_init(added *a)
{
    *a = (added){ 0 };
    arena_init(&a->mem, 0);
    map_init(&a->by_text);
}

void added_free(added *a)
{
    arena_free(&a->mem);
    map_free(&a->by_text);
    mem_free(a->items);
    mem_free(a->raw.nodes);
    mem_free(a->normal.nodes);
    *a = (added){ 0 };
}

/* ---- reading ------------------------------------------------------------------------------- */

/* A flag of a token; absent means `otherwise`. */
static status read_flag(const json_node *token, const char *key, bool otherwise, bool *out,
                        error *e)
{
    const json_node *n = json_get(token, key);
    *out = otherwise;
    if (!n || json_bool(n, out)) return OK;
    return error_set(e, E_FORMAT, "%s: found %s, want a boolean", key, json_kind_name(n));
}

static status read_token(const json_node *node, added_token *t, error *e)
{
    if (json_kind(node) != JSON_OBJECT)
        return error_set(e, E_FORMAT, "found %s, want an object", json_kind_name(node));
    if (!json_str(json_get(node, "content"), &t->content))
        return error_set(e, E_FORMAT, "content: found %s, want a string",
                         json_kind_name(json_get(node, "content")));
    if (t->content.len == 0 || t->content.len > BPE_MAX_BYTES)
        return error_set(e, E_FORMAT, "content: found %zu bytes, want 1 to %d", t->content.len,
                         BPE_MAX_BYTES);
    TRY(read_flag(node, "special", false, &t->special, e));
    TRY(read_flag(node, "lstrip", false, &t->lstrip, e));
    TRY(read_flag(node, "rstrip", false, &t->rstrip, e));
    TRY(read_flag(node, "single_word", false, &t->single_word, e));
    return read_flag(node, "normalized", !t->special, &t->normalized, e);
}

static status check_id(int64_t id, error *e)
{
    if (id >= 0 && id <= BPE_MAX_ID) return OK;
    return error_set(e, E_FORMAT, "found id %lld, want 0 to %d", (long long)id, BPE_MAX_ID);
}

/* Which flag of the two differs; NULL: none. */
static const char *different_flag(const added_token *x, const added_token *y)
{
    if (x->special != y->special) return "special";
    if (x->lstrip != y->lstrip) return "lstrip";
    if (x->rstrip != y->rstrip) return "rstrip";
    if (x->single_word != y->single_word) return "single_word";
    return x->normalized != y->normalized ? "normalized" : NULL;
}

/* Adds a token, or checks that it is the one there is. */
static status add(added *a, const added_token *t, error *e)
{
    const added_token *same_text = added_by_text(a, t->content);
    if (same_text) {
        const char *flag = different_flag(same_text, t);
        if (same_text->id != t->id)
            return error_set(e, E_FORMAT, "found \"%.*s\" as id %d and as id %d, want one id",
                             STR_ARG(t->content), same_text->id, t->id);
        return flag ? error_set(e, E_FORMAT, "found two values of %s for id %d, want one", flag,
                                t->id)
                    : OK;
    }
    if (a->n == a->cap) {
        const size_t cap = a->cap ? 2 * a->cap : 64;
        added_token *grown = mem_resize(a->items, cap * sizeof *grown);
        if (!grown) return error_set(e, E_NOMEM, "out of memory");
        a->items = grown;
        a->cap = cap;
    }
    added_token *own = &a->items[a->n];
    *own = *t;
    own->content = arena_str(&a->mem, t->content);
    if (!own->content.ptr) return error_set(e, E_NOMEM, "out of memory");
    TRY(map_put(&a->by_text, own->content, a->n, e));
    a->n++;
    return OK;
}

static status read_array_item(added *a, const json_node *node, error *e)
{
    added_token t = { 0 };
    int64_t id = 0;
    TRY(read_token(node, &t, e));
    if (!json_i64(json_get(node, "id"), &id))
        return error_set(e, E_FORMAT, "id: found %s, want an integer",
                         json_kind_name(json_get(node, "id")));
    TRY(check_id(id, e));
    t.id = (int32_t)id;
    return add(a, &t, e);
}

status added_read_array(added *a, const json_node *list, error *e)
{
    if (!list || json_kind(list) == JSON_NULL) return OK;
    if (json_kind(list) != JSON_ARRAY)
        return error_set(e, E_FORMAT, "added_tokens: found %s, want an array",
                         json_kind_name(list));
    for (size_t i = 0; i < json_len(list); i++) {
        const status s = read_array_item(a, json_at(list, i), e);
        if (s) return error_prefix(e, s, "added_tokens[%zu]", i);
    }
    return OK;
}

static status read_object_item(added *a, str key, const json_node *node, error *e)
{
    added_token t = { 0 };
    int64_t id = 0;
    if (!str_to_i64(key, &id)) return error_set(e, E_FORMAT, "found this key, want an id");
    TRY(check_id(id, e));
    TRY(read_token(node, &t, e));
    t.id = (int32_t)id;
    return add(a, &t, e);
}

status added_read_object(added *a, const json_node *object, error *e)
{
    if (!object || json_kind(object) == JSON_NULL) return OK;
    if (json_kind(object) != JSON_OBJECT)
        return error_set(e, E_FORMAT, "added_tokens_decoder: found %s, want an object",
                         json_kind_name(object));
    str key = { 0 };
    const json_node *node = NULL;
    for (void *it = NULL; json_each(object, &it, &key, &node);) {
        const status s = read_object_item(a, key, node, e);
        if (s) return error_prefix(e, s, "added_tokens_decoder.%.*s", STR_ARG(key));
    }
    return OK;
}

/* ---- tries --------------------------------------------------------------------------------- */

/* The node for `byte` among the children that start at *link, added when there is none; 0: no
 * memory. */
static uint32_t trie_step(added_trie *t, uint32_t *link, uint8_t byte)
{
    for (uint32_t n = *link; n; n = t->nodes[n].sibling)
        if (t->nodes[n].byte == byte) return n;
    const uint32_t at = t->n++;
    t->nodes[at] = (added_node){ .sibling = *link, .item = -1, .byte = byte };
    *link = at;
    return at;
}

static status trie_add(added_trie *t, str text, int32_t item, error *e)
{
    const size_t want = (size_t)t->n + text.len + 1;
    if (want > UINT32_MAX / 2)
        return error_set(e, E_LIMIT, "added tokens: found more than 2 GiB of text");
    if (want > t->cap) {
        size_t cap = t->cap ? t->cap : 256;
        while (cap < want) cap *= 2;
        added_node *grown = mem_resize(t->nodes, cap * sizeof *grown);
        if (!grown) return error_set(e, E_NOMEM, "added tokens: out of memory");
        t->nodes = grown;
        t->cap = (uint32_t)cap;
    }
    if (t->n == 0) t->n = 1;
    uint32_t at = trie_step(t, &t->first[(uint8_t)text.ptr[0]], (uint8_t)text.ptr[0]);
    for (size_t i = 1; i < text.len; i++)
        at = trie_step(t, &t->nodes[at].child, (uint8_t)text.ptr[i]);
    if (t->nodes[at].item >= 0)
        return error_set(e, E_FORMAT, "added tokens: found \"%.*s\" twice once normalized",
                         STR_ARG(text));
    t->nodes[at].item = item;
    return OK;
}

static status add_normalized(added *a, int32_t item, bool nfc, error *e)
{
    const str content = a->items[item].content;
    if (!nfc) return trie_add(&a->normal, content, item, e);
    buf text;
    buf_init(&text, 3 * content.len);
    status s = unicode_nfc(&text, content, e);
    if (!s) s = trie_add(&a->normal, buf_view(&text), item, e);
    buf_free(&text);
    return s;
}

static int by_id(const void *x, const void *y)
{
    const int32_t a = ((const added_token *)x)->id;
    const int32_t b = ((const added_token *)y)->id;
    return (a > b) - (a < b);
}

status added_finish(added *a, bool nfc, error *e)
{
    if (a->n) qsort(a->items, a->n, sizeof *a->items, by_id);
    for (size_t i = 0; i < a->n; i++) {
        const added_token *t = &a->items[i];
        if (i > 0 && t[-1].id == t->id)
            return error_set(e, E_FORMAT,
                             "added tokens: found id %d as \"%.*s\" and as \"%.*s\", want one text",
                             t->id, STR_ARG(t[-1].content), STR_ARG(t->content));
        TRY(map_put(&a->by_text, t->content, i, e));
        if (t->normalized) TRY(add_normalized(a, (int32_t)i, nfc, e));
        else TRY(trie_add(&a->raw, t->content, (int32_t)i, e));
    }
    return OK;
}

const added_token *added_by_text(const added *a, str text)
{
    uint64_t i = 0;
    return map_get(&a->by_text, text, &i) ? &a->items[i] : NULL;
}

const added_token *added_by_id(const added *a, int32_t id)
{
    const added_token key = { .id = id };
    return a->n ? bsearch(&key, a->items, a->n, sizeof key, by_id) : NULL;
}

/* ---- search -------------------------------------------------------------------------------- */

/* Index of the longest token that begins at `at`, and where it ends; -1: none. */
static int32_t longest_at(const added_trie *t, str text, size_t at, size_t *end)
{
    int32_t best = -1;
    uint32_t n = t->first[(uint8_t)text.ptr[at]];
    while (n) {
        at++;
        if (t->nodes[n].item >= 0) {
            best = t->nodes[n].item;
            *end = at;
        }
        if (at == text.len) break;
        n = t->nodes[n].child;
        while (n && t->nodes[n].byte != (uint8_t)text.ptr[at]) n = t->nodes[n].sibling;
    }
    return best;
}

/* The character before `at`, and where it begins. */
static uint32_t char_before(str text, size_t at, size_t *from)
{
    uint32_t cp = 0;
    do at--;
    while (at > 0 && ((unsigned char)text.ptr[at] & 0xc0) == 0x80);
    *from = at;
    (void)str_utf8_next(text, at, &cp);
    return cp;
}

static bool inside_word(str text, size_t from, size_t to)
{
    size_t ignored = 0;
    uint32_t cp = 0;
    if (from > 0 && unicode_is_word(char_before(text, from, &ignored))) return true;
    return to < text.len && str_utf8_next(text, to, &cp) && unicode_is_word(cp);
}

static size_t skip_white_before(str text, size_t at, size_t least)
{
    for (size_t from = at; at > least && unicode_is_white(char_before(text, at, &from));) at = from;
    return at > least ? at : least;
}

static size_t skip_white_after(str text, size_t at)
{
    uint32_t cp = 0;
    for (size_t n;
         at < text.len && (n = str_utf8_next(text, at, &cp)) != 0 && unicode_is_white(cp);)
        at += n;
    return at;
}

bool added_next(added_walk *w)
{
    while (w->trie->n && w->at < w->text.len) {
        const size_t start = w->at;
        size_t end = 0;
        const int32_t item = longest_at(w->trie, w->text, start, &end);
        if (item < 0) {
            w->at++;
            continue;
        }
        w->at = end;
        const added_token *t = &w->a->items[item];
        if (w->shown_only && t->special) continue;
        if (t->single_word && inside_word(w->text, start, end)) continue;
        const size_t from = t->lstrip ? skip_white_before(w->text, start, w->taken) : start;
        const size_t to = t->rstrip ? skip_white_after(w->text, end) : end;
        w->before = str_sub(w->text, w->taken, from > w->taken ? from : w->taken);
        w->token = t;
        w->taken = to;
        if (from < to) return true;
    }
    w->before = str_sub(w->text, w->taken, w->text.len);
    return false;
}
