/* hadamard.c - the rotation contract of a king. */
#include "pack/hadamard.h"
#include "pack/tensor.h"
#include "base/banned.h"

static status no_memory(const char *file, error *e)
{
    return error_set(e, E_NOMEM, "%s: no memory for the rotation contract", file);
}

static bool is_block(int64_t b)
{
    return b == 512 || b == 1024 || b == 2048 || b == 4096 || b == 8192;
}

static status parse_module(hadamard_contract *h, const json_node *node, const char *file,
                           arena *mem, error *e)
{
    king_module *m = &h->modules[h->count];
    const fields f = { node, file, "modules[]." };
    str path = { 0 }, type = { 0 };
    char shown[96], canonical[96];
    TRY(field_opt_str(f, "path", &path, e));
    field_show(path, shown, sizeof shown);
    if (!path.len || !tensor_canonical(path, canonical, sizeof canonical)) {
        return error_set(e, E_FORMAT, "%s: modules[%zu].path: no usable path \"%s\"", file,
                         h->count, shown);
    }
    int64_t block = -1;
    if (!json_i64(json_get(node, "block"), &block) || (block != 0 && !is_block(block))) {
        return error_set(e, E_UNSUPPORTED,
                         "%s: module %s: block %lld, want 0, 512, 1024, 2048, 4096 or 8192", file,
                         shown, (long long)block);
    }
    m->block = (int)block;
    TRY(field_opt_str(f, "dtype", &type, e));
    if (!str_eq(type, STR("float16"))) {
        char other[32];
        return error_set(e, E_UNSUPPORTED, "%s: module %s: dtype \"%s\", want \"float16\"", file,
                         shown, field_show(type, other, sizeof other));
    }
    if (!json_bool(json_get(node, "embedding"), &m->embedding)) {
        return error_set(e, E_FORMAT, "%s: module %s: embedding is %s, want true or false", file,
                         shown, json_kind_name(json_get(node, "embedding")));
    }
    if (m->block && h->block && m->block != h->block) {
        return error_set(e, E_UNSUPPORTED, "%s: module %s: block %d, want %d as in the others",
                         file, shown, m->block, h->block);
    }
    if (m->block) h->block = m->block;
    m->path = arena_str(mem, str_from(canonical));
    if (!m->path.ptr) return no_memory(file, e);
    if (map_get(&h->index, m->path, NULL))
        return error_set(e, E_FORMAT, "%s: module %s is listed twice", file, shown);
    TRY(map_put(&h->index, m->path, h->count, e));
    h->count++;
    return OK;
}

static status check_components(fields root, error *e)
{
    const fields parts = field_sub(root, "components", "components.");
    TRY(field_want_bool(parts, "mtp", false, e));
    return field_want_bool(parts, "text", true, e);
}

status hadamard_parse_modules(hadamard_contract *h, fields root, arena *mem, error *e)
{
    TRY(field_int(root, "schema_version", 1, 2, &h->schema, e));
    const char *space = h->schema == 2 ? "mlx-vlm-qwen3_5" : "mlx-lm-text";
    TRY(field_want_str(root, "base_model_type", "qwen3_5", e));
    TRY(field_want_str(root, "tensor_namespace", space, e));
    TRY(field_want_str(root, "gdn_activation_layout", "grouped", e));
    TRY(check_components(root, e));
    static const char *const needed[] = { "base_model_type", "tensor_namespace",
                                          "gdn_activation_layout" };
    for (size_t i = 0; h->schema == 2 && i < sizeof needed / sizeof *needed; i++) {
        if (field_has(root, needed[i])) continue;
        return error_set(e, E_FORMAT, "%s: %s: found nothing, but schema 2 demands it", root.file,
                         needed[i]);
    }
    str name = STR("hadamard.json");
    TRY(field_opt_str(root, "hadamard_config", &name, e));
    if (!name.len || name.ptr[0] == '.' || memchr(name.ptr, '/', name.len) ||
        memchr(name.ptr, 0, name.len)) {
        return error_set(e, E_FORMAT, "%s: hadamard_config: want the name of a file in the folder",
                         root.file);
    }
    const json_node *list = json_get(root.object, "modules");
    if (json_kind(list) != JSON_ARRAY || !json_len(list)) {
        return error_set(e, E_FORMAT, "%s: modules: found %s, want the packed modules", root.file,
                         json_kind_name(list));
    }
    h->file = arena_strdup(mem, name);
    h->modules = arena_array(mem, json_len(list), sizeof *h->modules);
    if (!h->file || !h->modules) return no_memory(root.file, e);
    for (size_t i = 0; i < json_len(list); i++)
        TRY(parse_module(h, json_at(list, i), root.file, mem, e));
    return OK;
}

/* The names under `key` must be exactly the rotated modules whose embedding flag is `embedding`. */
static status check_names(const hadamard_contract *h, fields root, const char *key, bool embedding,
                          error *e)
{
    const json_node *list = json_get(root.object, key);
    size_t want = 0;
    for (size_t i = 0; i < h->count; i++)
        want += h->modules[i].block && h->modules[i].embedding == embedding;
    if (json_kind(list) != JSON_ARRAY || json_len(list) != want) {
        return error_set(e, E_FORMAT,
                         "%s: %s: %s of %zu, want the %zu rotated modules of the config", root.file,
                         key, json_kind_name(list), json_len(list), want);
    }
    map seen;
    map_init(&seen);
    status s = OK;
    for (size_t i = 0; i < want && !s; i++) {
        str name = { 0 };
        char canonical[96], shown[96];
        json_str(json_at(list, i), &name);
        field_show(name, shown, sizeof shown);
        const bool suffix = str_ends(name, STR(".weight"));
        if (suffix) name.len -= 7;
        const king_module *m = suffix && tensor_canonical(name, canonical, sizeof canonical)
                                   ? hadamard_module(h, str_from(canonical))
                                   : NULL;
        if (!m || !m->block || m->embedding != embedding || map_get(&seen, m->path, NULL)) {
            s = error_set(e, E_FORMAT,
                          "%s: %s: \"%s\" is not a rotated module of the config, or twice",
                          root.file, key, shown);
        } else {
            s = map_put(&seen, m->path, 1, e);
        }
    }
    map_free(&seen);
    return s;
}

static status parse_vectors(hadamard_contract *h, fields root, arena *mem, error *e)
{
    const json_node *widths = json_get(root.object, "prism.hadamard.sign_widths");
    const json_node *values = json_get(root.object, "prism.hadamard.sign_values");
    const size_t n = json_len(widths);
    if (json_kind(widths) != JSON_ARRAY || !n || n > 64 || json_kind(values) != JSON_ARRAY) {
        return error_set(e, E_FORMAT, "%s: sign_widths and sign_values: want two arrays",
                         root.file);
    }
    h->width = arena_array(mem, n, sizeof *h->width);
    h->signs = arena_array(mem, n, sizeof *h->signs);
    if (!h->width || !h->signs) return no_memory(root.file, e);
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t width = 0;
        json_i64(json_at(widths, i), &width);
        if (width < 1 || (uint64_t)width > json_len(values) - at || hadamard_signs(h, width)) {
            return error_set(e, E_FORMAT, "%s: sign_widths[%zu]: %lld with %zu sign_values left",
                             root.file, i, (long long)width, json_len(values) - at);
        }
        float *signs = arena_array(mem, (size_t)width, sizeof *signs);
        if (!signs) return no_memory(root.file, e);
        for (int64_t k = 0; k < width; k++, at++) {
            double v = 0.0;
            json_f64(json_at(values, at), &v);
            if (v != 1.0 && v != -1.0) {
                return error_set(e, E_FORMAT, "%s: sign_values[%zu]: found %g, want 1 or -1",
                                 root.file, at, v);
            }
            signs[k] = (float)v;
        }
        h->width[i] = width;
        h->signs[i] = signs;
        h->n_width++;
    }
    if (at != json_len(values)) {
        return error_set(e, E_FORMAT, "%s: %zu sign_values, want %zu", root.file, json_len(values),
                         at);
    }
    return OK;
}

status hadamard_parse_signs(hadamard_contract *h, const json_node *node, const char *file,
                            arena *mem, error *e)
{
    static const char *const strings[][2] = {
        { "prism.hadamard.transform", "normalized-sylvester-walsh-hadamard" },
        { "prism.hadamard.axis", "input-last-dimension" },
        { "prism.hadamard.sign_mode", "explicit" },
    };
    const fields root = { node, file, "" };
    int version = 0, block = 0;
    TRY(field_int(root, "prism.hadamard.version", 0, 1 << 20, &version, e));
    if (version != 1) {
        return error_set(e, E_UNSUPPORTED, "%s: prism.hadamard.version: found %d, want 1", file,
                         version);
    }
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        if (!field_has(root, strings[i][0])) {
            return error_set(e, E_FORMAT, "%s: %s: found nothing, want \"%s\"", file, strings[i][0],
                             strings[i][1]);
        }
        TRY(field_want_str(root, strings[i][0], strings[i][1], e));
    }
    TRY(field_want_bool(root, "prism.hadamard.gdn_v_grouped", true, e));
    TRY(field_int(root, "prism.hadamard.block_size", 0, 1 << 20, &block, e));
    if (h->block && block != h->block) {
        return error_set(e, E_FORMAT,
                         "%s: prism.hadamard.block_size: found %d, but modules[] say %d", file,
                         block, h->block);
    }
    TRY(check_names(h, root, "prism.hadamard.weight_names", false, e));
    TRY(check_names(h, root, "prism.hadamard.inverse_weight_names", true, e));
    return parse_vectors(h, root, mem, e);
}

const king_module *hadamard_module(const hadamard_contract *h, str path)
{
    uint64_t i;
    return map_get(&h->index, path, &i) ? &h->modules[i] : NULL;
}

const float *hadamard_signs(const hadamard_contract *h, int64_t width)
{
    for (int i = 0; i < h->n_width; i++)
        if (h->width[i] == width) return h->signs[i];
    return NULL;
}

void hadamard_free(hadamard_contract *h)
{
    map_free(&h->index);
}
