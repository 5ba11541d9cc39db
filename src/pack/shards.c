/* shards.c - the weight files of a folder. */
#include "pack/shards.h"
#include <stdio.h>
#include "base/json.h"
#include "pack/field.h"
#include "base/banned.h"

static const char index_name[] = "model.safetensors.index.json";
enum { MAX_PATH = 4096, MAX_INDEX = 64 << 20 };

/* ---- which files ---- */

typedef struct listing {
    const char *names[SHARDS_MAX_FILES];
    size_t count;
    arena *mem;
} listing;

static status collect(void *arg, const char *name, error *e)
{
    listing *l = arg;
    const str s = str_from(name);
    if (!str_starts(s, STR("model")) || !str_ends(s, STR(".safetensors"))) return OK;
    if (l->count == SHARDS_MAX_FILES)
        return error_set(e, E_LIMIT, "%s: more than %d weight files", name, SHARDS_MAX_FILES);
    l->names[l->count] = arena_strdup(l->mem, s);
    if (!l->names[l->count]) return error_set(e, E_NOMEM, "%s: no memory", name);
    l->count++;
    return OK;
}

bool shards_exist(const char *folder)
{
    char path[MAX_PATH];
    if (file_join(path, sizeof path, folder, index_name, NULL) == OK && file_exists(path))
        return true;
    return file_join(path, sizeof path, folder, "model.safetensors", NULL) == OK &&
           file_exists(path);
}

/* ---- opening ---- */

static status open_files(shards *s, const char *folder, const listing *l, arena *mem, error *e)
{
    s->files = arena_array(mem, l->count, sizeof *s->files);
    if (!s->files) return error_set(e, E_NOMEM, "%s: no memory", folder);
    for (size_t i = 0; i < l->count; i++) {
        char path[MAX_PATH];
        TRY(file_join(path, sizeof path, folder, l->names[i], e));
        TRY(safetensors_open(&s->files[i], path, e));
        s->count++;
        s->bytes += s->files[i].len;
        for (size_t k = 0; k < s->files[i].count; k++) s->files[i].tensors[k].file = (int)i;
    }
    return OK;
}

static size_t file_number(const listing *l, str name)
{
    size_t i = 0;
    while (i < l->count && !str_eq(str_from(l->names[i]), name)) i++;
    return i;
}

/* Every entry of weight_map is a tensor of the file it names, and every tensor has an entry. */
static status check_index(const shards *s, const listing *l, const json_node *root,
                          const char *path, error *e)
{
    const json_node *weights = json_get(root, "weight_map"), *value;
    str name;
    size_t tensors = 0;
    bool used[SHARDS_MAX_FILES] = { false };
    if (json_kind(weights) != JSON_OBJECT) {
        return error_set(e, E_FORMAT, "%s: weight_map is %s, want an object", path,
                         json_kind_name(weights));
    }
    for (void *it = NULL; json_each(weights, &it, &name, &value);) {
        char shown[160];
        snprintf(shown, sizeof shown, "%.*s", (int)(name.len < 150 ? name.len : 150), name.ptr);
        str file = { 0 };
        const size_t i = json_str(value, &file) ? file_number(l, file) : l->count;
        if (i == l->count) {
            char shard[160];
            return error_set(e, E_FORMAT, "%s: tensor %s: its shard \"%s\" is not in the folder",
                             path, shown, field_show(file, shard, sizeof shard));
        }
        used[i] = true;
        if (!safetensors_find(&s->files[i], name))
            return error_set(e, E_FORMAT, "%s: tensor %s: not in %s", path, shown, l->names[i]);
    }
    for (size_t i = 0; i < s->count; i++) {
        tensors += s->files[i].count;
        if (!used[i]) {
            return error_set(e, E_FORMAT, "%s: %s is in the folder but not in the index", path,
                             l->names[i]);
        }
    }
    if (tensors == json_len(weights)) return OK;
    return error_set(e, E_FORMAT, "%s: %zu tensors in the index, %zu in the files", path,
                     json_len(weights), tensors);
}

static status index_tensors(shards *s, shards_name_fn *canonical, arena *mem, error *e)
{
    for (size_t i = 0; i < s->count; i++) {
        for (size_t k = 0; k < s->files[i].count; k++) {
            const tensor *t = &s->files[i].tensors[k];
            char name[SAFETENSORS_MAX_NAME + 16], where[300], other[300];
            if (!canonical(t->name, name, sizeof name))
                return error_set(e, E_FORMAT, "%s: no usable name", shards_where(s, t, where, 300));
            const tensor *twice = shards_find(s, name);
            if (twice) {
                return error_set(e, E_FORMAT, "%s is also %s", shards_where(s, t, where, 300),
                                 shards_where(s, twice, other, 300));
            }
            const str key = arena_str(mem, str_from(name));
            if (!key.ptr) return error_set(e, E_NOMEM, "%s: no memory", s->files[i].path);
            TRY(map_put(&s->index, key, (uint64_t)(uintptr_t)t, e));
        }
    }
    return OK;
}

static status open_all(shards *s, const char *folder, shards_name_fn *canonical, arena *mem,
                       error *e)
{
    listing *l = arena_alloc(mem, sizeof *l);
    char path[MAX_PATH];
    if (!l) return error_set(e, E_NOMEM, "%s: no memory", folder);
    l->mem = mem;
    TRY(file_list(folder, collect, l, e));
    TRY(file_join(path, sizeof path, folder, index_name, e));
    if (!file_exists(path)) {
        if (l->count != 1 || !str_eq(str_from(l->names[0]), STR("model.safetensors"))) {
            return error_set(e, E_FORMAT,
                             "%s: %zu weight files and no %s: want model.safetensors alone", folder,
                             l->count, index_name);
        }
        TRY(open_files(s, folder, l, mem, e));
        return index_tensors(s, canonical, mem, e);
    }
    json_doc *doc = NULL;
    TRY(json_parse_file(&doc, path, MAX_INDEX, JSON_UNIQUE, e));
    status r = open_files(s, folder, l, mem, e);
    if (!r) r = check_index(s, l, json_root(doc), path, e);
    json_free(doc);
    return r ? r : index_tensors(s, canonical, mem, e);
}

status shards_open(shards *s, const char *folder, shards_name_fn *canonical, arena *mem, error *e)
{
    *s = (shards){ 0 };
    map_init(&s->index);
    const status r = open_all(s, folder, canonical, mem, e);
    if (r) shards_close(s);
    return r;
}

void shards_close(shards *s)
{
    for (size_t i = 0; i < s->count; i++) safetensors_close(&s->files[i]);
    map_free(&s->index);
    *s = (shards){ 0 };
}

const tensor *shards_find(const shards *s, const char *canonical)
{
    uint64_t p;
    return map_get(&s->index, str_from(canonical), &p) ? (const tensor *)(uintptr_t)p : NULL;
}

const char *shards_where(const shards *s, const tensor *t, char *text, size_t cap)
{
    const char *path = s->files[t->file].path;
    snprintf(text, cap, "%s: tensor %.*s", path, (int)(t->name.len < 128 ? t->name.len : 128),
             t->name.ptr);
    return text;
}
