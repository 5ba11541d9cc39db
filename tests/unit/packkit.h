/* packkit.h - copies of golden packs with one thing changed, for tests of refusal.
 *
 * kit_new copies a pack into a temporary folder; kit_* change it there; kit_free removes it. */
#ifndef PACKKIT_H
#define PACKKIT_H
#include <stdarg.h>
#include <unistd.h>
#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "pack/pack.h"
#include "test.h"

#define KIT_PACKS TEST_ROOT "/tests/golden/packs/"

typedef struct kit {
    char folder[256];
} kit;

static inline const char *kit_path(const kit *k, const char *name)
{
    static char path[4][512];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", k->folder, name);
    return path[turn];
}

static inline void kit_write(const kit *k, const char *name, str content)
{
    error e = { 0 };
    EXPECT_OK(file_write(kit_path(k, name), content, &e), e);
}

static inline buf kit_read(const char *path)
{
    buf b;
    error e = { 0 };
    buf_init(&b, (size_t)1 << 30);
    EXPECT_OK(file_read(&b, path, &e), e);
    return b;
}

typedef struct kit_source {
    const char *from;
    const kit *to;
} kit_source;

static inline status kit_copy_one(void *arg, const char *name, error *e)
{
    const kit_source *s = arg;
    char path[512];
    snprintf(path, sizeof path, "%s/%s", s->from, name);
    if (file_is_dir(path)) return OK;
    if (str_ends(str_from(name), STR(".safetensors"))) { /* changes replace the link */
        EXPECT(symlink(path, kit_path(s->to, name)) == 0);
        return OK;
    }
    buf b = kit_read(path);
    kit_write(s->to, name, buf_view(&b));
    buf_free(&b);
    (void)e;
    return OK;
}

static inline void kit_copy(const kit *k, const char *from)
{
    error e = { 0 };
    kit_source s = { from, k };
    EXPECT_OK(file_list(from, kit_copy_one, &s, &e), e);
}

/* An empty folder; with `name`, a copy of that golden pack. */
static inline kit kit_new(const char *name)
{
    kit k;
    error e = { 0 };
    char from[512];
    const char *tmp = getenv("TMPDIR");
    snprintf(k.folder, sizeof k.folder, "%s/ingot-kit-%08x%08x", tmp ? tmp : "/tmp",
             (unsigned)rng_entropy(), (unsigned)getpid());
    EXPECT_OK(file_make_dirs(k.folder, &e), e);
    snprintf(from, sizeof from, KIT_PACKS "%s", name ? name : "");
    if (name) kit_copy(&k, from);
    return k;
}

static inline status kit_remove_one(void *arg, const char *name, error *e)
{
    char path[768];
    snprintf(path, sizeof path, "%s/%s", (const char *)arg, name);
    if (file_is_dir(path)) {
        const status s = file_list(path, kit_remove_one, path, e);
        if (s) return s;
    }
    return remove(path) == 0 ? OK : error_set(e, E_IO, "%s: not removed", path);
}

static inline void kit_free(const kit *k)
{
    error e = { 0 };
    EXPECT_OK(kit_remove_one((void *)"", k->folder, &e), e);
}

/* Replaces the first `old` in a text file; it must be there. An empty file name: nothing. */
static inline void kit_edit(const kit *k, const char *name, const char *old, const char *now)
{
    buf b = kit_read(kit_path(k, name)), out;
    buf_init(&out, (size_t)1 << 30);
    const size_t at = str_find(buf_view(&b), str_from(old));
    if (at == STR_NONE) FAIL("%s: no \"%s\" to edit", name, old);
    buf_put(&out, b.ptr, at);
    buf_text(&out, now);
    buf_put(&out, b.ptr + at + strlen(old), b.len - at - strlen(old));
    kit_write(k, name, buf_view(&out));
    buf_free(&b);
    buf_free(&out);
}

/* ---- tensors ---- */

typedef enum kit_op { KIT_DROP, KIT_RENAME, KIT_DTYPE, KIT_SHAPE, KIT_ADD, KIT_F32 } kit_op;

typedef struct kit_change {
    kit_op op;
    const char *tensor;
    const char *name; /* KIT_RENAME */
    dtype type;       /* KIT_DTYPE (same width), KIT_ADD */
    int rank;         /* KIT_SHAPE (same size), KIT_ADD (zeros) */
    int64_t shape[3];
    int64_t at; /* KIT_F32: element and its value */
    float value;
} kit_change;

/* Rewrites a tensor file with one change. */
static inline void kit_tensor(const kit *k, const char *file, const kit_change *c)
{
    safetensors s;
    safetensors_writer *w;
    error e = { 0 };
    EXPECT_OK(safetensors_open(&s, kit_path(k, file), &e), e);
    EXPECT_OK(safetensors_writer_new(&w, &e), e);
    bool found = c->op == KIT_ADD;
    for (size_t i = 0; i < s.count; i++) {
        tensor t = s.tensors[i];
        if (str_eq(t.name, str_from(c->tensor))) {
            found = true;
            if (c->op == KIT_DROP) continue;
            if (c->op == KIT_RENAME) t.name = str_from(c->name);
            if (c->op == KIT_DTYPE) t.type = c->type;
            if (c->op == KIT_SHAPE) t.rank = c->rank;
            if (c->op == KIT_SHAPE) memcpy(t.shape, c->shape, sizeof c->shape);
        }
        EXPECT_OK(safetensors_writer_declare(w, t.name, t.type, t.rank, t.shape, NULL, &e), e);
    }
    if (!found) FAIL("%s: no tensor %s to change", file, c->tensor);
    if (c->op == KIT_ADD) {
        EXPECT_OK(safetensors_writer_declare(w, str_from(c->tensor), c->type, c->rank, c->shape,
                                             NULL, &e),
                  e);
    }
    EXPECT_OK(safetensors_writer_begin(w, kit_path(k, file), &e), e);
    int index = 0;
    for (size_t i = 0; i < s.count; i++) {
        const tensor *t = &s.tensors[i];
        const bool it = str_eq(t->name, str_from(c->tensor));
        if (it && c->op == KIT_DROP) continue;
        uint8_t *copy = malloc(t->bytes + 1);
        memcpy(copy, t->data, t->bytes);
        if (it && c->op == KIT_F32) memcpy(copy + 4 * c->at, &c->value, 4);
        EXPECT_OK(safetensors_writer_put(w, index++, 0, copy, t->bytes, &e), e);
        free(copy);
    }
    if (c->op == KIT_ADD) {
        uint64_t bytes;
        EXPECT(tensor_bytes_of(c->type, c->rank, c->shape, &bytes));
        void *zeros = calloc(1, bytes + 1);
        EXPECT_OK(safetensors_writer_put(w, index, 0, zeros, bytes, &e), e);
        free(zeros);
    }
    EXPECT_OK(safetensors_writer_commit(w, &e), e);
    safetensors_close(&s);
}

/* ---- refusals ---- */

typedef struct kit_damage {
    const char *file, *old, *now; /* edit of a text file; file NULL: none */
    kit_change change;            /* of model.safetensors; tensor NULL: none */
    status want;
    const char *message;
} kit_damage;

#define DROP(t)                     \
    {                               \
        .op = KIT_DROP, .tensor = t \
    }
#define RENAME(t, n)                             \
    {                                            \
        .op = KIT_RENAME, .tensor = t, .name = n \
    }
#define DTYPE(t, d)                             \
    {                                           \
        .op = KIT_DTYPE, .tensor = t, .type = d \
    }
#define SHAPE(t, r, ...)                                                  \
    {                                                                     \
        .op = KIT_SHAPE, .tensor = t, .rank = r, .shape = { __VA_ARGS__ } \
    }
#define ADD(t, d, r, ...)                                                          \
    {                                                                              \
        .op = KIT_ADD, .tensor = t, .type = d, .rank = r, .shape = { __VA_ARGS__ } \
    }
#define SET(t, i, v)                                    \
    {                                                   \
        .op = KIT_F32, .tensor = t, .at = i, .value = v \
    }

static inline void kit_apply(const kit *k, const kit_damage *d)
{
    if (d->file) kit_edit(k, d->file, d->old, d->now);
    if (d->change.tensor) kit_tensor(k, "model.safetensors", &d->change);
}

static inline void kit_refused(const kit *k, status want, const char *message)
{
    pack *p = NULL;
    error e = { 0 };
    const status s = pack_open(&p, k->folder, NULL, &e);
    if (s != want || p || !strstr(e.text, message))
        FAIL("status %d \"%s\", want %d with \"%s\"", (int)s, e.text, (int)want, message);
    EXPECT(!strchr(e.text, '\n'));
    EXPECT(strstr(e.text, k->folder) || strstr(e.text, "drafter:"));
    EXPECT_INT(mem_live(), 0);
}

static inline void kit_opens(const kit *k)
{
    pack *p = NULL;
    error e = { 0 };
    EXPECT_OK(pack_open(&p, k->folder, NULL, &e), e);
    pack_close(p);
}

static inline void kit_all_refused(const char *name, const kit_damage *d, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const kit k = kit_new(name);
        kit_apply(&k, &d[i]);
        kit_refused(&k, d[i].want, d[i].message);
        kit_free(&k);
    }
}
#define KIT_ALL_REFUSED(name, list) kit_all_refused(name, list, sizeof(list) / sizeof *(list))
#endif
