/* gguf.c - see gguf.h. */
#include "pack/gguf.h"
#include <math.h>
#include <stdio.h>
#include "base/mem.h"
#include "base/banned.h"

enum { VERSION = 3, ALIGNMENT = 32, MAX_ALIGNMENT = 1 << 16, MAX_NESTING = 4 };

static const struct layout {
    uint32_t id;
    const char *name;
    int block, bytes;
} layouts[] = {
    { 0, "F32", 1, 4 },         { 1, "F16", 1, 2 },       { 2, "Q4_0", 32, 18 },
    { 3, "Q4_1", 32, 20 },      { 6, "Q5_0", 32, 22 },    { 7, "Q5_1", 32, 24 },
    { 8, "Q8_0", 32, 34 },      { 9, "Q8_1", 32, 36 },    { 10, "Q2_K", 256, 84 },
    { 11, "Q3_K", 256, 110 },   { 12, "Q4_K", 256, 144 }, { 13, "Q5_K", 256, 176 },
    { 14, "Q6_K", 256, 210 },   { 15, "Q8_K", 256, 292 }, { 24, "I8", 1, 1 },
    { 25, "I16", 1, 2 },        { 26, "I32", 1, 4 },      { 27, "I64", 1, 8 },
    { 28, "F64", 1, 8 },        { 30, "BF16", 1, 2 },     { 34, "TQ1_0", 256, 54 },
    { 35, "TQ2_0", 256, 66 },   { 39, "MXFP4", 32, 17 },  { 40, "NVFP4", 64, 36 },
    { 41, "Q1_0", 128, 18 },    { 42, "Q2_0", 64, 18 },   { 142, "PQ2_0", 128, 34 },
    { 143, "PTQ1_0", 128, 28 },
};

static const struct layout *layout_of(uint32_t id)
{
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (layouts[i].id == id) return &layouts[i];
    return NULL;
}

const char *gguf_type_text(uint32_t type, char *text, size_t cap)
{
    const struct layout *l = layout_of(type);
    if (l) snprintf(text, cap, "%s", l->name);
    else snprintf(text, cap, "type %u", type);
    return text;
}

/* Bytes of one element of a metadata value; 0 for strings and arrays. */
static size_t width_of(gguf_type t)
{
    static const uint8_t width[] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };
    return width[t];
}

static uint64_t align_up(uint64_t n, uint32_t alignment)
{
    return (n + alignment - 1) / alignment * alignment;
}

/* ---- reading ---- */

/* A place in the header, and what is being read there. */
typedef struct cursor {
    gguf *g;
    uint64_t at;
    error *e;
} cursor;

static status cut(const cursor *c, const char *what)
{
    return error_set(c->e, E_FORMAT, "%s: %s at byte %llu: the file ends at %llu", c->g->path, what,
                     (unsigned long long)c->at, (unsigned long long)c->g->len);
}

static status take(cursor *c, void *out, size_t n, const char *what)
{
    if (n > c->g->len - c->at) return cut(c, what);
    memcpy(out, c->g->bytes + c->at, n);
    c->at += n;
    return OK;
}

static status skip_bytes(cursor *c, uint64_t n, const char *what)
{
    if (n > c->g->len - c->at) return cut(c, what);
    c->at += n;
    return OK;
}

static status take_str(cursor *c, str *out, const char *what)
{
    uint64_t n = 0;
    TRY(take(c, &n, sizeof n, what));
    *out = (str){ (const char *)c->g->bytes + c->at, (size_t)n };
    return skip_bytes(c, n, what);
}

/* What a name may be: some UTF-8 text without controls. */
static bool is_name(str s, size_t most)
{
    if (!s.len || s.len > most || !str_utf8_valid(s)) return false;
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.ptr[i] < 0x20) return false;
    return true;
}

static status take_type(cursor *c, gguf_type *out, const char *what)
{
    uint32_t t = 0;
    TRY(take(c, &t, sizeof t, what));
    if (t > GGUF_F64) {
        return error_set(c->e, E_FORMAT, "%s: %s: found value type %u, want 0 to 12", c->g->path,
                         what, t);
    }
    *out = (gguf_type)t;
    return OK;
}

/* Passes over `count` elements. Arrays of arrays are passed over as well; they are not offered. */
static status skip_elements(cursor *c, gguf_type type, uint64_t count, const char *what, int depth)
{
    const size_t width = width_of(type);
    if (width) {
        if (count > (c->g->len - c->at) / width) return cut(c, what);
        return skip_bytes(c, count * width, what);
    }
    if (depth > MAX_NESTING) {
        return error_set(c->e, E_LIMIT, "%s: %s: arrays nested deeper than %d", c->g->path, what,
                         MAX_NESTING);
    }
    for (uint64_t i = 0; i < count; i++) {
        str text;
        gguf_type inner = GGUF_U8;
        uint64_t n = 0;
        if (type == GGUF_STRING) {
            TRY(take_str(c, &text, what));
            continue;
        }
        TRY(take_type(c, &inner, what));
        TRY(take(c, &n, sizeof n, what));
        TRY(skip_elements(c, inner, n, what, depth + 1));
    }
    return OK;
}

static status take_value(cursor *c, gguf_value *v)
{
    char what[96];
    TRY(take_str(c, &v->key, "a key of the metadata"));
    if (!is_name(v->key, GGUF_MAX_KEY)) {
        return error_set(c->e, E_FORMAT, "%s: metadata before byte %llu: no usable key", c->g->path,
                         (unsigned long long)c->at);
    }
    snprintf(what, sizeof what, "%.*s", (int)(v->key.len < 80 ? v->key.len : 80), v->key.ptr);
    TRY(take_type(c, &v->type, what));
    v->count = 1;
    if (v->type == GGUF_ARRAY) {
        v->is_array = true;
        TRY(take_type(c, &v->type, what));
        TRY(take(c, &v->count, sizeof v->count, what));
    }
    v->at = c->g->bytes + c->at;
    TRY(skip_elements(c, v->type, v->count, what, 0));
    v->end = c->g->bytes + c->at;
    if (map_get(&c->g->value_index, v->key, NULL))
        return error_set(c->e, E_FORMAT, "%s: %s: twice in the metadata", c->g->path, what);
    return map_put(&c->g->value_index, v->key, (uint64_t)(v - c->g->values), c->e);
}

/* `offset` is left to place_tensors. */
static status take_tensor(cursor *c, gguf_tensor *t, uint64_t *offset)
{
    uint32_t rank = 0;
    char shown[GGUF_MAX_NAME + 16];
    TRY(take_str(c, &t->name, "a tensor's name"));
    if (!is_name(t->name, GGUF_MAX_NAME)) {
        return error_set(c->e, E_FORMAT, "%s: tensor %zu: no usable name of 1 to %d bytes",
                         c->g->path, (size_t)(t - c->g->tensors), GGUF_MAX_NAME);
    }
    snprintf(shown, sizeof shown, "tensor %.*s", STR_ARG(t->name));
    TRY(take(c, &rank, sizeof rank, shown));
    if (rank < 1 || rank > GGUF_MAX_RANK) {
        return error_set(c->e, E_FORMAT, "%s: %s: %u dimensions, want 1 to %d", c->g->path, shown,
                         rank, GGUF_MAX_RANK);
    }
    t->rank = (int)rank;
    for (int i = t->rank - 1; i >= 0; i--) {
        uint64_t n = 0;
        TRY(take(c, &n, sizeof n, shown));
        if (n < 1 || n > INT64_MAX) {
            return error_set(c->e, E_FORMAT, "%s: %s: dimension %llu, want 1 to 2^63 - 1",
                             c->g->path, shown, (unsigned long long)n);
        }
        t->shape[i] = (int64_t)n;
    }
    TRY(take(c, &t->type, sizeof t->type, shown));
    TRY(take(c, offset, sizeof *offset, shown));
    if (map_get(&c->g->tensor_index, t->name, NULL))
        return error_set(c->e, E_FORMAT, "%s: %s: declared twice", c->g->path, shown);
    return map_put(&c->g->tensor_index, t->name, (uint64_t)(t - c->g->tensors), c->e);
}

/* Bytes of a shape in blocks; false when a row is no whole number of blocks or it overflows. */
static bool bytes_of(int rank, const int64_t *shape, int block, int block_bytes, uint64_t *out)
{
    if (shape[rank - 1] % block) return false;
    uint64_t n = (uint64_t)(shape[rank - 1] / block);
    for (int i = 0; i < rank - 1; i++)
        if (__builtin_mul_overflow(n, (uint64_t)shape[i], &n)) return false;
    return !__builtin_mul_overflow(n, (uint64_t)block_bytes, out) && *out <= INT64_MAX;
}

/* One block form of a tensor that has to end where the next one begins. */
static bool fits(const gguf *g, gguf_tensor *t, int block, int block_bytes, uint64_t span,
                 bool last)
{
    uint64_t n;
    if (!bytes_of(t->rank, t->shape, block, block_bytes, &n)) return false;
    /* Not every writer pads the last tensor. */
    if (span != align_up(n, g->alignment) && !(last && span >= n && span - n < g->alignment))
        return false;
    t->bytes = n;
    t->block = block;
    t->block_bytes = block_bytes;
    return true;
}

/* Tensors follow each other without gap: each one's span is known, and must be what type and shape
 * need. Type 42 has two forms in the wild, told apart by that. */
static status place_tensors(gguf *g, const uint64_t *offsets, error *e)
{
    const uint64_t room = g->len - g->data_at;
    for (size_t i = 0; i < g->n_tensors; i++) {
        gguf_tensor *t = &g->tensors[i];
        const bool last = i + 1 == g->n_tensors;
        const uint64_t from = offsets[i], to = last ? room : offsets[i + 1];
        const struct layout *l = layout_of(t->type);
        if (!l) {
            return error_set(e, E_UNSUPPORTED, "%s: tensor %.*s: type %u is not known here",
                             g->path, STR_ARG(t->name), t->type);
        }
        if (from % g->alignment || from > to || to > room || (i == 0 && from != 0)) {
            return error_set(e, E_FORMAT,
                             "%s: tensor %.*s: offset %llu, want a multiple of %u where the one "
                             "before ends, within %llu bytes of data",
                             g->path, STR_ARG(t->name), (unsigned long long)from, g->alignment,
                             (unsigned long long)room);
        }
        t->data = g->bytes + g->data_at + from;
        if (fits(g, t, l->block, l->bytes, to - from, last)) continue;
        if (t->type == GGUF_Q2_0 && fits(g, t, 128, 34, to - from, last)) continue;
        uint64_t want = 0;
        const bool whole = bytes_of(t->rank, t->shape, l->block, l->bytes, &want);
        return error_set(e, E_FORMAT,
                         "%s: tensor %.*s: %llu bytes up to the next one, want %llu (%s, %d "
                         "elements a block%s)",
                         g->path, STR_ARG(t->name), (unsigned long long)(to - from),
                         (unsigned long long)want, l->name, l->block,
                         whole ? "" : ", rows of whole blocks");
    }
    if (g->n_tensors || room == 0) return OK;
    return error_set(e, E_FORMAT, "%s: %llu bytes of data and no tensor", g->path,
                     (unsigned long long)room);
}

static status read_alignment(gguf *g, error *e)
{
    int64_t n = ALIGNMENT;
    const gguf_value *v = gguf_find(g, "general.alignment");
    g->alignment = ALIGNMENT;
    if (!v) return OK;
    if (!gguf_i64(v, 0, &n) || n < 8 || n > MAX_ALIGNMENT || n % 8) {
        return error_set(e, E_FORMAT,
                         "%s: general.alignment: found %lld, want a multiple of 8 up to %d",
                         g->path, (long long)n, MAX_ALIGNMENT);
    }
    g->alignment = (uint32_t)n;
    return OK;
}

static status read_counts(cursor *c, uint64_t *tensors, uint64_t *values)
{
    char magic[4];
    uint32_t version = 0;
    TRY(take(c, magic, sizeof magic, "the magic"));
    if (memcmp(magic, "GGUF", 4) != 0) {
        return error_set(c->e, E_FORMAT, "%s: no GGUF file: it begins with other bytes",
                         c->g->path);
    }
    TRY(take(c, &version, sizeof version, "the version"));
    if (version != VERSION) {
        const bool swapped = (version & 0xffffu) == 0;
        return error_set(c->e, E_UNSUPPORTED, "%s: GGUF version %u%s, want %d", c->g->path, version,
                         swapped ? " (a big-endian file?)" : "", VERSION);
    }
    TRY(take(c, tensors, sizeof *tensors, "the number of tensors"));
    TRY(take(c, values, sizeof *values, "the number of metadata entries"));
    if (*tensors <= GGUF_MAX_TENSORS && *values <= GGUF_MAX_VALUES) return OK;
    return error_set(c->e, E_LIMIT,
                     "%s: %llu tensors and %llu metadata entries, want at most %d and %d",
                     c->g->path, (unsigned long long)*tensors, (unsigned long long)*values,
                     GGUF_MAX_TENSORS, GGUF_MAX_VALUES);
}

static status parse(gguf *g, error *e)
{
    cursor c = { g, 0, e };
    uint64_t tensors = 0, values = 0;
    TRY(read_counts(&c, &tensors, &values));
    /* a key and a value take 13 bytes, a tensor info 33: a small file cannot ask for much memory */
    if (values > g->len / 13 || tensors > g->len / 33) {
        return error_set(e, E_FORMAT, "%s: %llu tensors and %llu metadata entries in %llu bytes",
                         g->path, (unsigned long long)tensors, (unsigned long long)values,
                         (unsigned long long)g->len);
    }
    g->values = arena_array(&g->mem, (size_t)values, sizeof *g->values);
    g->tensors = arena_array(&g->mem, (size_t)tensors, sizeof *g->tensors);
    uint64_t *offsets = arena_array(&g->mem, (size_t)tensors, sizeof *offsets);
    if (!g->values || !g->tensors || !offsets)
        return error_set(e, E_NOMEM, "%s: no memory", g->path);
    for (; g->n_values < values; g->n_values++) TRY(take_value(&c, &g->values[g->n_values]));
    TRY(read_alignment(g, e));
    for (; g->n_tensors < tensors; g->n_tensors++)
        TRY(take_tensor(&c, &g->tensors[g->n_tensors], &offsets[g->n_tensors]));
    g->data_at = align_up(c.at, g->alignment);
    if (g->data_at > g->len) {
        if (tensors) return cut(&c, "the data");
        g->data_at = g->len; /* metadata alone need not be padded */
    }
    return place_tensors(g, offsets, e);
}

status gguf_parse(gguf *g, const void *bytes, size_t len, const char *name, error *e)
{
    *g = (gguf){ .bytes = bytes, .len = len, .map = { .fd = -1 } };
    arena_init(&g->mem, 0);
    map_init(&g->value_index);
    map_init(&g->tensor_index);
    g->path = arena_strdup(&g->mem, str_from(name));
    const status s = g->path ? parse(g, e) : error_set(e, E_NOMEM, "%s: no memory", name);
    if (s) gguf_close(g);
    return s;
}

status gguf_open(gguf *g, const char *path, error *e)
{
    file_map m;
    *g = (gguf){ .map = { .fd = -1 } };
    TRY(file_map_open(&m, path, e));
    const status s = gguf_parse(g, m.ptr, m.len, path, e);
    if (s) file_map_close(&m);
    else g->map = m;
    return s;
}

void gguf_close(gguf *g)
{
    map_free(&g->value_index);
    map_free(&g->tensor_index);
    file_map_close(&g->map);
    arena_free(&g->mem);
    *g = (gguf){ .map = { .fd = -1 } };
}

bool gguf_is_file(const char *path)
{
    file_map m;
    if (file_map_open(&m, path, NULL)) return false;
    const bool is = m.len >= 4 && memcmp(m.ptr, "GGUF", 4) == 0;
    file_map_close(&m);
    return is;
}

const gguf_value *gguf_find(const gguf *g, const char *key)
{
    uint64_t i;
    return map_get(&g->value_index, str_from(key), &i) ? &g->values[i] : NULL;
}

const gguf_tensor *gguf_find_tensor(const gguf *g, const char *name)
{
    uint64_t i;
    return map_get(&g->tensor_index, str_from(name), &i) ? &g->tensors[i] : NULL;
}

bool gguf_f64(const gguf_value *v, uint64_t i, double *out)
{
    const size_t width = v ? width_of(v->type) : 0;
    if (!width || i >= v->count) return false;
    union {
        uint8_t u8;
        int8_t i8;
        uint16_t u16;
        int16_t i16;
        uint32_t u32;
        int32_t i32;
        uint64_t u64;
        int64_t i64;
        float f32;
        double f64;
    } x = { 0 };
    memcpy(&x, v->at + i * width, width);
    switch (v->type) {
    case GGUF_BOOL:
    case GGUF_U8: *out = x.u8; return true;
    case GGUF_I8: *out = x.i8; return true;
    case GGUF_U16: *out = x.u16; return true;
    case GGUF_I16: *out = x.i16; return true;
    case GGUF_U32: *out = x.u32; return true;
    case GGUF_I32: *out = x.i32; return true;
    case GGUF_F32: *out = (double)x.f32; return true;
    case GGUF_U64: *out = (double)x.u64; return true;
    case GGUF_I64: *out = (double)x.i64; return true;
    case GGUF_F64: *out = x.f64; return true;
    default: return false;
    }
}

bool gguf_i64(const gguf_value *v, uint64_t i, int64_t *out)
{
    double f; /* whole numbers of models fit 53 bits */
    if (!gguf_f64(v, i, &f) || !(fabs(f) <= 0x1p53) || f != floor(f)) return false;
    *out = (int64_t)f;
    return true;
}

bool gguf_bool(const gguf_value *v, bool *out)
{
    if (!v || v->is_array || v->type != GGUF_BOOL) return false;
    *out = v->at[0] != 0;
    return true;
}

static str str_at(const uint8_t *at)
{
    uint64_t n;
    memcpy(&n, at, sizeof n);
    return (str){ (const char *)at + sizeof n, (size_t)n };
}

bool gguf_str(const gguf_value *v, str *out)
{
    if (!v || v->is_array || v->type != GGUF_STRING) return false;
    *out = str_at(v->at);
    return true;
}

bool gguf_each_str(const gguf_value *v, const uint8_t **at, str *out)
{
    if (!v || !v->is_array || v->type != GGUF_STRING || !v->count) return false;
    const uint8_t *next = *at ? *at : v->at;
    if (next == v->end) return false;
    *out = str_at(next);
    *at = next + sizeof(uint64_t) + out->len;
    return true;
}

/* ---- writing ---- */

typedef struct written {
    const char *name;
    uint32_t type;
    int rank;
    int64_t shape[GGUF_MAX_RANK];
    uint64_t bytes, put, offset;
} written;

struct gguf_writer {
    buf values;
    uint64_t n_values;
    written *tensors;
    size_t count, cap;
    uint64_t data_len, data_at;
    map index;
    file_writer *file;
    arena mem;
};

status gguf_writer_new(gguf_writer **out, error *e)
{
    *out = mem_zalloc(sizeof **out);
    if (!*out) return error_set(e, E_NOMEM, "no memory for a GGUF file");
    buf_init(&(*out)->values, (size_t)1 << 30);
    map_init(&(*out)->index);
    arena_init(&(*out)->mem, 0);
    return OK;
}

void gguf_writer_abort(gguf_writer *w)
{
    if (!w) return;
    if (w->file) file_writer_abort(w->file);
    buf_free(&w->values);
    map_free(&w->index);
    mem_free(w->tensors);
    arena_free(&w->mem);
    mem_free(w);
}

static void put_str(buf *b, str s)
{
    const uint64_t n = s.len;
    buf_put(b, &n, sizeof n);
    buf_add(b, s);
}

static void put_u32(buf *b, uint32_t v)
{
    buf_put(b, &v, sizeof v);
}

static void put_u64(buf *b, uint64_t v)
{
    buf_put(b, &v, sizeof v);
}

static void put_head(gguf_writer *w, const char *key, gguf_type type)
{
    CHECK(!w->file);
    put_str(&w->values, str_from(key));
    put_u32(&w->values, type);
    w->n_values++;
}

void gguf_writer_u32(gguf_writer *w, const char *key, uint32_t v)
{
    put_head(w, key, GGUF_U32);
    put_u32(&w->values, v);
}

void gguf_writer_f32(gguf_writer *w, const char *key, float v)
{
    put_head(w, key, GGUF_F32);
    buf_put(&w->values, &v, sizeof v);
}

void gguf_writer_bool(gguf_writer *w, const char *key, bool v)
{
    put_head(w, key, GGUF_BOOL);
    buf_char(&w->values, v ? 1 : 0);
}

void gguf_writer_str(gguf_writer *w, const char *key, str v)
{
    put_head(w, key, GGUF_STRING);
    put_str(&w->values, v);
}

void gguf_writer_array(gguf_writer *w, const char *key, gguf_type type, uint64_t count)
{
    put_head(w, key, GGUF_ARRAY);
    put_u32(&w->values, type);
    put_u64(&w->values, count);
}

void gguf_writer_put_i32(gguf_writer *w, int32_t v)
{
    buf_put(&w->values, &v, sizeof v);
}

void gguf_writer_put_f32(gguf_writer *w, float v)
{
    buf_put(&w->values, &v, sizeof v);
}

void gguf_writer_put_str(gguf_writer *w, str v)
{
    put_str(&w->values, v);
}

static written *add_tensor(gguf_writer *w)
{
    if (w->count == w->cap) {
        const size_t cap = w->cap ? 2 * w->cap : 64;
        written *grown = mem_resize(w->tensors, cap * sizeof *grown);
        if (!grown) return NULL;
        w->tensors = grown;
        w->cap = cap;
    }
    return &w->tensors[w->count];
}

status gguf_writer_declare(gguf_writer *w, const char *name, uint32_t type, int rank,
                           const int64_t *shape, int *index, error *e)
{
    CHECK(!w->file && rank >= 1 && rank <= GGUF_MAX_RANK);
    const struct layout *l = layout_of(type);
    CHECK(l);
    written *t = add_tensor(w);
    if (!t) return error_set(e, E_NOMEM, "no memory for a GGUF file");
    *t = (written){ .type = type, .rank = rank };
    t->name = arena_strdup(&w->mem, str_from(name));
    if (!t->name) return error_set(e, E_NOMEM, "no memory for a GGUF file");
    if (!is_name(str_from(name), GGUF_MAX_NAME) || map_get(&w->index, str_from(name), NULL))
        return error_set(e, E_ARG, "tensor %s: no usable name, or declared twice", name);
    for (int i = 0; i < rank; i++) t->shape[i] = shape[i];
    if (!bytes_of(rank, shape, l->block, l->bytes, &t->bytes)) {
        return error_set(e, E_ARG, "tensor %s: rows of %lld are no whole blocks of %d", name,
                         (long long)shape[rank - 1], l->block);
    }
    t->offset = w->data_len;
    w->data_len = align_up(w->data_len + t->bytes, ALIGNMENT);
    TRY(map_put(&w->index, str_from(t->name), w->count, e));
    if (index) *index = (int)w->count;
    w->count++;
    return OK;
}

static void put_header(const gguf_writer *w, buf *b)
{
    buf_text(b, "GGUF");
    put_u32(b, VERSION);
    put_u64(b, w->count);
    put_u64(b, w->n_values);
    buf_add(b, buf_view(&w->values));
    for (size_t i = 0; i < w->count; i++) {
        const written *t = &w->tensors[i];
        put_str(b, str_from(t->name));
        put_u32(b, (uint32_t)t->rank);
        for (int d = t->rank - 1; d >= 0; d--) put_u64(b, (uint64_t)t->shape[d]);
        put_u32(b, t->type);
        put_u64(b, t->offset);
    }
    while (b->len % ALIGNMENT && !b->failed) buf_char(b, 0);
}

status gguf_writer_begin(gguf_writer *w, const char *path, error *e)
{
    CHECK(!w->file);
    buf header;
    buf_init(&header, (size_t)2 << 30);
    put_header(w, &header);
    status s;
    TRY_GOTO(s, buf_status(&w->values, path, e), done);
    TRY_GOTO(s, buf_status(&header, path, e), done);
    TRY_GOTO(s, file_writer_open(&w->file, path, e), done);
    TRY_GOTO(s, file_writer_put(w->file, header.ptr, header.len, e), done);
    w->data_at = header.len;
    /* the last tensor is padded, too: its last byte decides the length of the file */
    if (w->data_len) {
        const char zero = 0;
        s = file_writer_put_at(w->file, w->data_at + w->data_len - 1, &zero, 1, e);
    }
done:
    buf_free(&header);
    return s;
}

status gguf_writer_put(gguf_writer *w, int index, uint64_t at, const void *p, size_t n, error *e)
{
    CHECK(w->file && index >= 0 && (size_t)index < w->count);
    written *t = &w->tensors[index];
    CHECK(at <= t->bytes && n <= t->bytes - at);
    t->put += n;
    return file_writer_put_at(w->file, w->data_at + t->offset + at, p, n, e);
}

status gguf_writer_commit(gguf_writer *w, error *e)
{
    status s = OK;
    for (size_t i = 0; i < w->count && !s; i++) {
        const written *t = &w->tensors[i];
        if (t->put == t->bytes) continue;
        s = error_set(e, E_BUG, "tensor %s: %llu bytes put, want %llu", t->name,
                      (unsigned long long)t->put, (unsigned long long)t->bytes);
    }
    if (!s) {
        s = file_writer_commit(w->file, e);
        w->file = NULL;
    }
    gguf_writer_abort(w);
    return s;
}
