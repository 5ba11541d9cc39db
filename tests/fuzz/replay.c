/* replay.c - runs a fuzz target over stored inputs without libFuzzer, so that every build and
 * compiler can: each argument is a file, or a folder of files. Prints how many inputs ran. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct replay {
    const char *folder;
    int count;
} replay;

static status run_file(replay *r, const char *path, error *e)
{
    buf b;
    buf_init(&b, (size_t)64 << 20);
    const status s = file_read(&b, path, e);
    if (!s) {
        /* a copy of the exact size: reading past its end is seen by ASan */
        uint8_t *exact = malloc(b.len ? b.len : 1);
        if (!exact) return error_set(e, E_NOMEM, "%s: out of memory", path);
        if (b.len) memcpy(exact, b.ptr, b.len);
        (void)LLVMFuzzerTestOneInput(exact, b.len);
        free(exact);
        r->count++;
    }
    buf_free(&b);
    return s;
}

static status run_entry(void *arg, const char *name, error *e)
{
    replay *r = arg;
    char path[4096];
    TRY(file_join(path, sizeof path, r->folder, name, e));
    return run_file(r, path, e);
}

int main(int argc, char **argv)
{
    error e = { 0 };
    replay r = { 0 };
    status s = OK;
    for (int i = 1; i < argc && !s; i++) {
        r.folder = argv[i];
        s = file_is_dir(argv[i]) ? file_list(argv[i], run_entry, &r, &e)
                                 : run_file(&r, argv[i], &e);
    }
    if (s) fprintf(stderr, "%s\n", e.text);
    printf("%d inputs\n", r.count);
    return s ? 1 : r.count ? 0 : 77;
}
