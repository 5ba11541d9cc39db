/* safetensors.c - one .safetensors file, read with distrust or written whole. */
#include "pack/safetensors.h"
#include <stdlib.h>
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/banned.h"

/* ---- reading ---- */

static bool is_plain_name(str name)
{
    if (name.len == 0 || name.len > SAFETENSORS_MAX_NAME) return false;
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.ptr[i] < 0x20 || name.ptr[i] == 0x7f) return false;
    return true;
}

static status parse_shape(const safetensors *s, tensor *t, const json_node *node, error *e)
{
    if (json_kind(node) != JSON_ARRAY) {
        return error_set(e, E_FORMAT, "%s: tensor %.*s: shape is %s, want an array", s->path,
                         STR_ARG(t->name), json_kind_name(node));
    }
    if (json_len(node) > TENSOR_MAX_RANK) {
        return error_set(e, E_FORMAT, "%s: tensor %.*s: %zu dimensions, want at most %d", s->path,
                         STR_ARG(t->name), json_len(node), TENSOR_MAX_RANK);
    }
    t->rank = (int)json_len(node);
    for (int i = 0; i < t->rank; i++) {
        if (!json_i64(json_at(node, (size_t)i), &t->shape[i]) || t->shape[i] < 0) {
            return error_set(e, E_FORMAT, "%s: tensor %.*s: dimension %d is no size", s->path,
                             STR_ARG(t->name), i);
        }
    }
    return OK;
}

/* data_offsets [from, to) within the data, and exactly as long as the shape needs. */
static status parse_range(const safetensors *s, tensor *t, const json_node *node, error *e)
{
    const uint64_t data_len = s->len - 8 - s->header_len;
    int64_t from, to;
    if (json_kind(node) != JSON_ARRAY || json_len(node) != 2 ||
        !json_i64(json_at(node, 0), &from) || !json_i64(json_at(node, 1), &to)) {
        return error_set(e, E_FORMAT, "%s: tensor %.*s: data_offsets are no two integers", s->path,
                         STR_ARG(t->name));
    }
    if (from < 0 || to < from || (uint64_t)to > data_len) {
        return error_set(e, E_FORMAT,
                         "%s: tensor %.*s: bytes [%lld, %lld), want a range within [0, %llu)",
                         s->path, STR_ARG(t->name), (long long)from, (long long)to,
                         (unsigned long long)data_len);
    }
    char shape[160];
    tensor_shape_text(t->rank, t->shape, shape, sizeof shape);
    if (!tensor_bytes_of(t->type, t->rank, t->shape, &t->bytes)) {
        return error_set(e, E_FORMAT,
                         "%s: tensor %.*s: %s %s has no size in whole bytes below 2^63", s->path,
                         STR_ARG(t->name), dtype_name(t->type), shape);
    }
    if (t->bytes != (uint64_t)(to - from)) {
        return error_set(e, E_FORMAT, "%s: tensor %.*s: %lld bytes, want %llu for %s %s", s->path,
                         STR_ARG(t->name), (long long)(to - from), (unsigned long long)t->bytes,
                         dtype_name(t->type), shape);
    }
    t->data = s->bytes + 8 + s->header_len + from;
    return OK;
}

static status parse_tensor(safetensors *s, str name, const json_node *node, error *e)
{
    tensor *t = &s->tensors[s->count];
    if (!is_plain_name(name)) {
        return error_set(e, E_FORMAT,
                         "%s: tensor number %zu: name of %zu bytes, want 1 to %d and no control "
                         "characters",
                         s->path, s->count, name.len, SAFETENSORS_MAX_NAME);
    }
    t->name = arena_str(&s->mem, name);
    if (!t->name.ptr) return error_set(e, E_NOMEM, "%s: no memory for the header", s->path);
    if (json_kind(node) != JSON_OBJECT) {
        return error_set(e, E_FORMAT, "%s: tensor %.*s: entry is %s, want an object", s->path,
                         STR_ARG(t->name), json_kind_name(node));
    }
    str key, type;
    const json_node *value;
    for (void *it = NULL; json_each(node, &it, &key, &value);) {
        if (str_eq(key, STR("dtype")) || str_eq(key, STR("shape")) ||
            str_eq(key, STR("data_offsets")))
            continue;
        return error_set(e, E_FORMAT, "%s: tensor %.*s: unknown field", s->path, STR_ARG(t->name));
    }
    if (!json_str(json_get(node, "dtype"), &type)) {
        return error_set(e, E_FORMAT, "%s: tensor %.*s: dtype is %s, want a string", s->path,
                         STR_ARG(t->name), json_kind_name(json_get(node, "dtype")));
    }
    if (!dtype_from_name(type, &t->type)) {
        const str shown = is_plain_name(type) ? type : STR("?");
        return error_set(e, E_UNSUPPORTED, "%s: tensor %.*s: unknown dtype %.*s", s->path,
                         STR_ARG(t->name), STR_ARG(shown));
    }
    TRY(parse_shape(s, t, json_get(node, "shape"), e));
    TRY(parse_range(s, t, json_get(node, "data_offsets"), e));
    s->count++;
    return OK;
}

static status parse_metadata(safetensors *s, const json_node *node, error *e)
{
    if (json_kind(node) != JSON_OBJECT) {
        return error_set(e, E_FORMAT, "%s: __metadata__ is %s, want an object", s->path,
                         json_kind_name(node));
    }
    s->metadata = arena_array(&s->mem, json_len(node), sizeof *s->metadata);
    if (!s->metadata) return error_set(e, E_NOMEM, "%s: no memory for the header", s->path);
    str key, text;
    const json_node *value;
    for (void *it = NULL; json_each(node, &it, &key, &value);) {
        if (!json_str(value, &text)) {
            return error_set(e, E_FORMAT, "%s: __metadata__: value is %s, want a string", s->path,
                             json_kind_name(value));
        }
        safetensors_pair *pair = &s->metadata[s->n_metadata];
        const char *k = arena_strdup(&s->mem, key), *v = arena_strdup(&s->mem, text);
        if (!k || !v) return error_set(e, E_NOMEM, "%s: no memory for the header", s->path);
        pair->key = (str){ k, key.len };
        pair->value = (str){ v, text.len };
        s->n_metadata++;
    }
    return OK;
}

static int by_position(const void *a, const void *b)
{
    const tensor *x = a, *y = b;
    if (x->data != y->data) return x->data < y->data ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* Sorts the tensors and demands that they cover the data without overlap, gap or rest. */
static status check_cover(safetensors *s, error *e)
{
    qsort(s->tensors, s->count, sizeof *s->tensors, by_position);
    const uint8_t *data = s->bytes + 8 + s->header_len, *at = data;
    for (size_t i = 0; i < s->count; i++) {
        const tensor *t = &s->tensors[i];
        if (t->data != at) {
            return error_set(e, E_FORMAT, "%s: tensor %.*s: data begin at %lld, want %lld (%s)",
                             s->path, STR_ARG(t->name), (long long)(t->data - data),
                             (long long)(at - data), t->data < at ? "overlap" : "gap");
        }
        at += t->bytes;
    }
    if (at != s->bytes + s->len) {
        return error_set(e, E_FORMAT, "%s: %lld bytes of data, tensors account for %lld", s->path,
                         (long long)(s->bytes + s->len - data), (long long)(at - data));
    }
    return OK;
}

static status parse_header(safetensors *s, const json_node *root, error *e)
{
    if (json_kind(root) != JSON_OBJECT) {
        return error_set(e, E_FORMAT, "%s: header is %s, want an object", s->path,
                         json_kind_name(root));
    }
    s->tensors = arena_array(&s->mem, json_len(root), sizeof *s->tensors);
    if (!s->tensors) return error_set(e, E_NOMEM, "%s: no memory for the header", s->path);
    str key;
    const json_node *value;
    for (void *it = NULL; json_each(root, &it, &key, &value);)
        if (str_eq(key, STR("__metadata__"))) TRY(parse_metadata(s, value, e));
        else TRY(parse_tensor(s, key, value, e));
    TRY(check_cover(s, e));
    TRY(map_reserve(&s->index, s->count, e));
    for (size_t i = 0; i < s->count; i++) TRY(map_put(&s->index, s->tensors[i].name, i, e));
    return OK;
}

/* Everything but the mapping; s->bytes and s->len are set. On failure the caller closes. */
static status parse_file(safetensors *s, const char *name, error *e)
{
    arena_init(&s->mem, 0);
    map_init(&s->index);
    s->path = arena_strdup(&s->mem, str_from(name));
    if (!s->path) return error_set(e, E_NOMEM, "%s: no memory", name);
    if (s->len < 8) {
        return error_set(e, E_FORMAT, "%s: %llu bytes, want a header length of 8", s->path,
                         (unsigned long long)s->len);
    }
    memcpy(&s->header_len, s->bytes, 8);
    if (s->header_len > SAFETENSORS_MAX_HEADER || s->header_len > s->len - 8) {
        return error_set(e, E_FORMAT, "%s: header of %llu bytes, want at most %llu", s->path,
                         (unsigned long long)s->header_len,
                         (unsigned long long)(s->len - 8 < SAFETENSORS_MAX_HEADER
                                                  ? s->len - 8
                                                  : (uint64_t)SAFETENSORS_MAX_HEADER));
    }
    json_doc *doc = NULL;
    const str text = { (const char *)s->bytes + 8, (size_t)s->header_len };
    TRY(json_parse(&doc, text, JSON_UNIQUE, s->path, e));
    const status result = parse_header(s, json_root(doc), e);
    json_free(doc);
    return result;
}

status safetensors_open(safetensors *s, const char *path, error *e)
{
    *s = (safetensors){ .map = { .fd = -1 } };
    TRY(file_map_open(&s->map, path, e));
    s->bytes = s->map.ptr;
    s->len = s->map.len;
    const status result = parse_file(s, path, e);
    if (result) safetensors_close(s);
    return result;
}

status safetensors_parse(safetensors *s, const void *bytes, size_t len, const char *name, error *e)
{
    *s = (safetensors){ .bytes = bytes, .len = len, .map = { .fd = -1 } };
    const status result = parse_file(s, name, e);
    if (result) safetensors_close(s);
    return result;
}

void safetensors_close(safetensors *s)
{
    if (s->map.fd >= 0) file_map_close(&s->map);
    map_free(&s->index);
    arena_free(&s->mem);
    *s = (safetensors){ .map = { .fd = -1 } };
}

const tensor *safetensors_find(const safetensors *s, str name)
{
    uint64_t i;
    return map_get(&s->index, name, &i) ? &s->tensors[i] : NULL;
}

const char *safetensors_metadata(const safetensors *s, const char *key)
{
    for (size_t i = 0; i < s->n_metadata; i++)
        if (str_eq(s->metadata[i].key, str_from(key))) return s->metadata[i].value.ptr;
    return NULL;
}

/* ---- writing ---- */

typedef struct slot {
    tensor t;
    uint64_t offset, put; /* offset: from the beginning of the data */
} slot;

struct safetensors_writer {
    arena mem;
    slot *slots;
    size_t count, cap;
    map index;
    buf metadata; /* __metadata__ as JSON text, without the closing brace */
    uint64_t data_at, data_len;
    file_writer *file;
};

status safetensors_writer_new(safetensors_writer **out, error *e)
{
    safetensors_writer *w = mem_zalloc(sizeof *w);
    if (!w) return error_set(e, E_NOMEM, "no memory for a tensor file");
    arena_init(&w->mem, 0);
    map_init(&w->index);
    buf_init(&w->metadata, SAFETENSORS_MAX_HEADER);
    *out = w;
    return OK;
}

void safetensors_writer_abort(safetensors_writer *w)
{
    if (!w) return;
    if (w->file) file_writer_abort(w->file);
    buf_free(&w->metadata);
    map_free(&w->index);
    mem_free(w->slots);
    arena_free(&w->mem);
    mem_free(w);
}

status safetensors_writer_metadata(safetensors_writer *w, str key, str value, error *e)
{
    CHECK(!w->file);
    buf *b = &w->metadata;
    buf_text(b, b->len ? ",\"" : "{\"");
    jsonw_escape(b, key);
    buf_text(b, "\":\"");
    jsonw_escape(b, value);
    buf_char(b, '"');
    return buf_status(b, "metadata of a tensor file", e);
}

static slot *add_slot(safetensors_writer *w)
{
    if (w->count == w->cap) {
        const size_t cap = w->cap ? 2 * w->cap : 64;
        slot *grown = mem_resize(w->slots, cap * sizeof *grown);
        if (!grown) return NULL;
        w->slots = grown;
        w->cap = cap;
    }
    return &w->slots[w->count];
}

status safetensors_writer_declare(safetensors_writer *w, str name, dtype type, int rank,
                                  const int64_t *shape, int *index, error *e)
{
    CHECK(!w->file && rank >= 0 && rank <= TENSOR_MAX_RANK);
    slot *s = add_slot(w);
    if (!s) return error_set(e, E_NOMEM, "no memory for a tensor file");
    *s = (slot){ .t = { .type = type, .rank = rank, .name = arena_str(&w->mem, name) } };
    if (!s->t.name.ptr) return error_set(e, E_NOMEM, "no memory for a tensor file");
    for (int i = 0; i < rank; i++) s->t.shape[i] = shape[i];
    if (!is_plain_name(name) || map_get(&w->index, name, NULL))
        return error_set(e, E_ARG, "tensor %.*s: no usable name, or declared twice", STR_ARG(name));
    if (!tensor_bytes_of(type, rank, shape, &s->t.bytes) ||
        __builtin_add_overflow(w->data_len, s->t.bytes, &w->data_len) || w->data_len > INT64_MAX)
        return error_set(e, E_ARG, "tensor %.*s: its shape has no size", STR_ARG(name));
    s->offset = w->data_len - s->t.bytes;
    TRY(map_put(&w->index, s->t.name, w->count, e));
    if (index) *index = (int)w->count;
    w->count++;
    return OK;
}

static void write_header(safetensors_writer *w, buf *out)
{
    jsonw j;
    jsonw_init(&j, out);
    jsonw_object(&j);
    if (w->metadata.len) {
        buf_char(&w->metadata, '}');
        jsonw_key(&j, "__metadata__");
        jsonw_raw(&j, buf_view(&w->metadata));
    }
    for (size_t i = 0; i < w->count; i++) {
        const slot *s = &w->slots[i];
        jsonw_key_str(&j, s->t.name);
        jsonw_object(&j);
        jsonw_member_text(&j, "dtype", dtype_name(s->t.type));
        jsonw_member_i64s(&j, "shape", s->t.shape, (size_t)s->t.rank);
        jsonw_member_array(&j, "data_offsets");
        jsonw_u64(&j, s->offset);
        jsonw_u64(&j, s->offset + s->t.bytes);
        jsonw_end_array(&j);
        jsonw_end_object(&j);
    }
    jsonw_end_object(&j);
    while (out->len % 8 != 0 && !out->failed) buf_char(out, ' ');
}

status safetensors_writer_begin(safetensors_writer *w, const char *path, error *e)
{
    CHECK(!w->file);
    buf header;
    buf_init(&header, SAFETENSORS_MAX_HEADER);
    write_header(w, &header);
    status s;
    TRY_GOTO(s, buf_status(&w->metadata, path, e), done);
    TRY_GOTO(s, buf_status(&header, path, e), done);
    TRY_GOTO(s, file_writer_open(&w->file, path, e), done);
    const uint64_t len = header.len;
    TRY_GOTO(s, file_writer_put(w->file, &len, 8, e), done);
    TRY_GOTO(s, file_writer_put(w->file, header.ptr, header.len, e), done);
    w->data_at = 8 + len;
done:
    buf_free(&header);
    return s;
}

status safetensors_writer_put(safetensors_writer *w, int index, uint64_t at, const void *p,
                              size_t n, error *e)
{
    CHECK(w->file && index >= 0 && (size_t)index < w->count);
    slot *s = &w->slots[index];
    CHECK(at <= s->t.bytes && n <= s->t.bytes - at);
    s->put += n;
    return file_writer_put_at(w->file, w->data_at + s->offset + at, p, n, e);
}

status safetensors_writer_commit(safetensors_writer *w, error *e)
{
    status s = OK;
    for (size_t i = 0; i < w->count && !s; i++) {
        const slot *t = &w->slots[i];
        if (t->put == t->t.bytes) continue;
        s = error_set(e, E_BUG, "tensor %.*s: %llu bytes put, want %llu", STR_ARG(t->t.name),
                      (unsigned long long)t->put, (unsigned long long)t->t.bytes);
    }
    if (!s) {
        s = file_writer_commit(w->file, e);
        w->file = NULL;
    }
    safetensors_writer_abort(w);
    return s;
}
