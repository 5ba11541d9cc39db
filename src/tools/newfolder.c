/* newfolder.c - see newfolder.h. */
#include "tools/newfolder.h"
#include <unistd.h>
#include "base/file.h"
#include "tools/textfiles.h"
#include "base/banned.h"

enum { MAX_PATH = 4096 };

static status refuse_entry(void *arg, const char *name, error *e)
{
    const char *const *path = arg;
    return error_set(e, E_ARG, "%s: found %s in it, want a new or empty folder", *path, name);
}

status newfolder_check(const char *path, error *e)
{
    if (!file_exists(path)) return OK;
    if (!file_is_dir(path))
        return error_set(e, E_ARG, "%s: found a file, want a new or empty folder", path);
    return file_list(path, refuse_entry, &path, e);
}

status newfolder_begin(newfolder *f, const char *path, error *e)
{
    TRY(newfolder_check(path, e));
    const bool made = !file_exists(path);
    TRY(file_make_dirs(path, e));
    *f = (newfolder){ path, made };
    return OK;
}

static void remove_file(const void *arg, const char *name)
{
    const newfolder *f = arg;
    char path[MAX_PATH];
    if (file_join(path, sizeof path, f->path, name, NULL) == OK) (void)unlink(path);
}

void newfolder_discard(const newfolder *f)
{
    if (!f->path) return;
    remove_file(f, "model.safetensors");
    remove_file(f, "config.json");
    remove_file(f, "hadamard.json");
    textfiles_each(remove_file, f);
    if (f->made) (void)rmdir(f->path);
}
