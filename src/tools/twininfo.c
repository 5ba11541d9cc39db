/* twininfo.c - see twininfo.h. */
#include "tools/twininfo.h"
#include "base/jsonw.h"
#include "pack/field.h"
#include "pack/gguf.h"
#include "pack/tensor.h"
#include "base/banned.h"

enum { MAX_TYPES = 32 };

/* Tensors of one type. */
typedef struct tally {
    uint32_t type;
    int tensors;
    uint64_t bytes;
} tally;

typedef struct summary {
    char architecture[64];
    bool rotated;
    int n_types;
    tally types[MAX_TYPES];
    int64_t weights;
    uint64_t bytes;
} summary;

static void summarise(const gguf *g, summary *s)
{
    str text = STR("nothing");
    *s = (summary){ 0 };
    (void)gguf_str(gguf_find(g, "general.architecture"), &text);
    field_show(text, s->architecture, sizeof s->architecture);
    s->rotated = gguf_find(g, "prism.hadamard.version") != NULL;
    for (size_t i = 0; i < g->n_tensors; i++) {
        const gguf_tensor *t = &g->tensors[i];
        int k = 0;
        while (k < s->n_types && s->types[k].type != t->type) k++;
        if (k == MAX_TYPES) k--; /* there are fewer types than that */
        if (k == s->n_types) s->types[s->n_types++] = (tally){ .type = t->type };
        s->types[k].tensors++;
        s->types[k].bytes += t->bytes;
        s->bytes += t->bytes;
        s->weights += (int64_t)(t->bytes / (uint64_t)t->block_bytes) * t->block;
    }
}

static double bits_per_weight(const summary *s)
{
    return s->weights ? 8.0 * (double)s->bytes / (double)s->weights : 0;
}

static void write_text(const gguf *g, const summary *s, bool tensors, buf *out)
{
    char type[32], shape[96];
    buf_printf(out, "%s\nkind        GGUF, architecture %s%s\n", g->path, s->architecture,
               s->rotated ? ", rotated: a king's twin (`ingot convert` makes a pack of it)" : "");
    buf_printf(out, "file        %llu bytes, %zu tensors, %zu metadata entries\n",
               (unsigned long long)g->len, g->n_tensors, g->n_values);
    buf_printf(out, "weights     %lld, %.4f bits each\n", (long long)s->weights,
               bits_per_weight(s));
    for (int i = 0; i < s->n_types; i++) {
        buf_printf(out, "  %-8s  %d tensors, %llu bytes\n",
                   gguf_type_text(s->types[i].type, type, sizeof type), s->types[i].tensors,
                   (unsigned long long)s->types[i].bytes);
    }
    for (size_t i = 0; i < g->n_tensors && tensors; i++) {
        const gguf_tensor *t = &g->tensors[i];
        buf_printf(out, "%.*s  %s  %s\n", STR_ARG(t->name),
                   gguf_type_text(t->type, type, sizeof type),
                   tensor_shape_text(t->rank, t->shape, shape, sizeof shape));
    }
}

static void put_type(jsonw *w, const char *key, uint32_t type)
{
    char text[32];
    jsonw_member_text(w, key, gguf_type_text(type, text, sizeof text));
}

static void put_tensors(jsonw *w, const gguf *g)
{
    jsonw_member_array(w, "tensors");
    for (size_t i = 0; i < g->n_tensors; i++) {
        const gguf_tensor *t = &g->tensors[i];
        jsonw_object(w);
        jsonw_member_str(w, "name", t->name);
        put_type(w, "type", t->type);
        jsonw_member_i64s(w, "shape", t->shape, (size_t)t->rank);
        jsonw_member_u64(w, "bytes", t->bytes);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

static void write_json(const gguf *g, const summary *s, bool tensors, buf *out)
{
    jsonw w;
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_member_text(&w, "kind", "gguf");
    jsonw_member_text(&w, "file", g->path);
    jsonw_member_text(&w, "architecture", s->architecture);
    jsonw_member_bool(&w, "rotated", s->rotated);
    jsonw_member_u64(&w, "file_bytes", g->len);
    jsonw_member_u64(&w, "parameters", (uint64_t)s->weights);
    jsonw_member_fixed(&w, "bits_per_weight", bits_per_weight(s), 4);
    jsonw_member_array(&w, "formats");
    for (int i = 0; i < s->n_types; i++) {
        jsonw_object(&w);
        put_type(&w, "format", s->types[i].type);
        jsonw_member_u64(&w, "tensors", (uint64_t)s->types[i].tensors);
        jsonw_member_u64(&w, "bytes", s->types[i].bytes);
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    if (tensors) put_tensors(&w, g);
    jsonw_end_object(&w);
    buf_char(out, '\n');
}

status twininfo_write(const char *path, bool json, bool tensors, buf *out, error *e)
{
    gguf g;
    summary s;
    TRY(gguf_open(&g, path, e));
    summarise(&g, &s);
    if (json) write_json(&g, &s, tensors, out);
    else write_text(&g, &s, tensors, out);
    gguf_close(&g);
    return buf_status(out, path, e);
}
