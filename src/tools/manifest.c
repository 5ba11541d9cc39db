/* manifest.c - see manifest.h. */
#include "tools/manifest.h"
#include <stdio.h>
#include "base/digest.h"
#include "base/file.h"
#include "base/json.h"
#include "base/banned.h"

enum { MOST_BYTES = 1 << 20, LONGEST_NAME = 255 };

typedef struct manifest {
    const char *folder;
    manifest_fault *fault;
    void *fault_arg;
    void (*progress)(void *arg, uint64_t done, uint64_t total);
    void *arg;
    uint64_t done, total;
} manifest;

/* Files that opening a model reads; they stand in the folder itself. */
static bool of_model(str name)
{
    if (name.len > LONGEST_NAME || str_find(name, STR("/")) != STR_NONE) return false;
    static const char *const names[] = { "config.json",           "hadamard.json",
                                         "tokenizer.json",        "tokenizer_config.json",
                                         "chat_template.jinja",   "chat_template.json",
                                         "generation_config.json" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (str_eq(name, str_from(names[i]))) return true;
    return str_ends(name, STR(".safetensors")) || str_ends(name, STR(".safetensors.index.json"));
}

static void hashed(void *arg, size_t n)
{
    manifest *m = arg;
    m->done += n;
    if (m->progress) m->progress(m->arg, m->done, m->total);
}

static status hash_file(manifest *m, const char *path, char hex[65], error *e)
{
    file_map map;
    digest *d;
    TRY(file_map_open(&map, path, e));
    const status s = digest_open(&d, DIGEST_SHA256, e);
    if (!s) {
        digest_put_map(d, &map, hashed, m);
        digest_hex(d, hex);
    }
    file_map_close(&map);
    return s;
}

static status check_file(manifest *m, str name, const json_node *entry, error *e)
{
    char text[600], path[4096], file[LONGEST_NAME + 1], found[65];
    int64_t size;
    uint64_t bytes;
    str hex;
    snprintf(file, sizeof file, "%.*s", STR_ARG(name));
    if (!json_i64(json_get(entry, "size"), &size) || size < 0 ||
        !json_str(json_get(entry, "sha256"), &hex) || hex.len != 64) {
        snprintf(text, sizeof text, "files.json: %s: want a size and a sha256", file);
        m->fault(m->fault_arg, text);
        return OK;
    }
    TRY(file_join(path, sizeof path, m->folder, file, e));
    if (!file_size(path, &bytes)) {
        snprintf(text, sizeof text, "%s: missing; files.json lists it", file);
        m->fault(m->fault_arg, text);
        return OK;
    }
    if (bytes != (uint64_t)size) {
        snprintf(text, sizeof text, "%s: found %llu bytes, files.json says %lld", file,
                 (unsigned long long)bytes, (long long)size);
        m->fault(m->fault_arg, text);
        return OK;
    }
    TRY(hash_file(m, path, found, e));
    if (!str_eq(str_from(found), hex)) {
        snprintf(text, sizeof text, "%s: found sha256 %s, files.json says %.*s", file, found,
                 STR_ARG(hex));
        m->fault(m->fault_arg, text);
    }
    return OK;
}

static status check_files(manifest *m, const json_node *root, error *e)
{
    str name;
    const json_node *entry;
    for (void *it = NULL; json_each(root, &it, &name, &entry);) {
        int64_t size;
        if (of_model(name) && json_i64(json_get(entry, "size"), &size) && size > 0)
            m->total += (uint64_t)size;
    }
    for (void *it = NULL; json_each(root, &it, &name, &entry);)
        if (of_model(name)) TRY(check_file(m, name, entry, e));
    return OK;
}

status manifest_check(const char *folder, manifest_fault *fault, void *fault_arg,
                      void (*progress)(void *arg, uint64_t done, uint64_t total), void *arg,
                      error *e)
{
    manifest m = { .folder = folder,
                   .fault = fault,
                   .fault_arg = fault_arg,
                   .progress = progress,
                   .arg = arg };
    char path[4096];
    json_doc *doc;
    error why = { 0 };
    TRY(file_join(path, sizeof path, folder, "files.json", e));
    if (!file_exists(path)) return OK;
    status s = json_parse_file(&doc, path, MOST_BYTES, 0, &why);
    if (s == E_NOMEM) return error_set(e, s, "%s", why.text);
    if (s) {
        fault(fault_arg, why.text);
        return OK;
    }
    if (json_kind(json_root(doc)) == JSON_OBJECT) s = check_files(&m, json_root(doc), e);
    else fault(fault_arg, "files.json: want an object of path: {sha256, size}");
    json_free(doc);
    return s;
}
