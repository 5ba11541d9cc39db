/* Files of tiles: the same bits as tiles made in memory, and every file that is not exactly the one
 * this pack would write is refused, said, and made again. */
#include "model/tilefile.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/digest.h"
#include "model_fixture.h"
#include "random_pack.h"

static char folder[64], said[1024];

static void note(void *arg, const char *text)
{
    (void)arg;
    snprintf(said, sizeof said, "%s", text);
}

static void fresh_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/ingot-tilefile-XXXXXX");
    EXPECT(mkdtemp(folder) != NULL);
}

static void remove_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    EXPECT_INT(system(command), 0);
}

static int files_in_folder(void)
{
    char command[128];
    int n = -1;
    snprintf(command, sizeof command, "ls -A %s | wc -l", folder);
    FILE *f = popen(command, "r");
    EXPECT(f && fscanf(f, "%d", &n) == 1);
    pclose(f);
    return n;
}

/* A king and the weights of it that a load brings. */
typedef struct subject {
    pack *p;
    compute *c;
    weights w;
    linear l[4];
    load_report report;
} subject;

static void subject_plan(subject *s)
{
    static const struct {
        const char *path;
        int out, in;
    } list[] = { { "model.layers.0.mlp.up_proj", 1024, 512 },
                 { "model.layers.0.linear_attn.in_proj_a", 4, 512 },
                 { "model.layers.1.mlp.down_proj", 512, 1024 },
                 { "lm_head", 1024, 512 } };
    error e;
    weights_init(&s->w);
    for (int i = 0; i < 4; i++)
        EXPECT_OK(weights_matrix(&s->w, s->p, list[i].path, list[i].out, list[i].in, COMPUTE_INT8,
                                 &s->l[i], &e),
                  e);
}

static void subject_open(subject *s, const char *pack_path)
{
    error e;
    *s = (subject){ 0 };
    EXPECT_OK(compute_open(&s->c, &(compute_options){ .threads = 2 }, &e), e);
    EXPECT_OK(pack_open(&s->p, pack_path, NULL, &e), e);
    subject_plan(s);
}

static void subject_close(subject *s)
{
    weights_free(&s->w);
    pack_close(s->p);
    compute_close(s->c);
}

static status load(subject *s, load_tiles how, bool verify, error *e)
{
    const load_options o = { .folder = folder, .tiles = how, .verify = verify, .notice = note };
    said[0] = '\0';
    weights_free(&s->w);
    subject_plan(s);
    return load_weights(&s->w, s->p, s->c, &o, &s->report, e);
}

/* The tiles that are made without a folder. */
static void expect_right(subject *s)
{
    error e;
    subject plain = { .p = s->p, .c = s->c };
    subject_plan(&plain);
    EXPECT_OK(weights_fill(&plain.w, plain.p, plain.c, NULL, NULL, &e), e);
    EXPECT_INT(s->w.bytes, plain.w.bytes);
    EXPECT(memcmp(s->w.region, plain.w.region, plain.w.bytes) == 0);
    for (int i = 0; i < 4; i++)
        EXPECT(s->l[i].w.data - s->w.region == plain.l[i].w.data - plain.w.region);
    EXPECT_INT(weights_code3(&s->w), weights_code3(&plain.w));
    weights_free(&plain.w);
}

static void expect_mapped(subject *s, bool written)
{
    EXPECT(s->report.path[0] != '\0');
    EXPECT_INT(s->report.written, written);
    EXPECT(s->w.file.ptr && s->w.region > s->w.file.ptr);
    expect_right(s);
}

TEST(a_file_is_made_once_and_mapped_from_then_on)
{
    error e;
    subject s;
    fresh_folder();
    subject_open(&s, PACKS "king-tiny");
    EXPECT_OK(load(&s, LOAD_FIND, false, &e), e);
    EXPECT(!s.report.path[0] && !s.w.file.ptr && !said[0]);
    EXPECT_INT(files_in_folder(), 0);
    expect_right(&s);
    EXPECT_OK(load(&s, LOAD_KEEP, true, &e), e);
    expect_mapped(&s, true);
    EXPECT_INT(files_in_folder(), 1);
    EXPECT_OK(load(&s, LOAD_KEEP, false, &e), e);
    expect_mapped(&s, false);
    EXPECT_OK(load(&s, LOAD_FIND, true, &e), e);
    expect_mapped(&s, false);
    EXPECT_STR(said, "");
    subject_close(&s);
    remove_folder();
}

/* Code 3 is counted when tiles are made; the file keeps the count. */
TEST(the_count_of_code_3_is_kept)
{
    error e;
    subject s = { 0 };
    linear l;
    fresh_folder();
    random_pack source = { 0 };
    random_pack_king(&source, 10);
    char path[128];
    snprintf(path, sizeof path, "%s/model.safetensors", source.dir);
    safetensors g;
    EXPECT_OK(safetensors_open(&g, path, &e), e);
    const long at =
        (long)(safetensors_find(&g, STR("language_model.lm_head.weight"))->data - g.bytes);
    safetensors_close(&g);
    FILE *f = fopen(path, "r+b");
    EXPECT(f && fseek(f, at, SEEK_SET) == 0 && fwrite("\xff\x03", 2, 1, f) == 1 && !fclose(f));
    EXPECT_OK(compute_open(&s.c, &(compute_options){ .threads = 2 }, &e), e);
    EXPECT_OK(pack_open(&s.p, source.dir, NULL, &e), e);
    for (int turn = 0; turn < 2; turn++) {
        const load_options o = { .folder = folder, .tiles = LOAD_KEEP };
        weights_init(&s.w);
        EXPECT_OK(weights_matrix(&s.w, s.p, "lm_head", 1024, 512, COMPUTE_INT8, &l, &e), e);
        EXPECT_OK(load_weights(&s.w, s.p, s.c, &o, &s.report, &e), e);
        EXPECT_INT(s.report.written, turn == 0);
        EXPECT_INT(weights_code3(&s.w), 5);
        weights_free(&s.w);
    }
    pack_close(s.p);
    compute_close(s.c);
    random_pack_remove(&source);
    remove_folder();
}

static void patch(const char *path, long at, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "r+b");
    EXPECT(f && fseek(f, at, at < 0 ? SEEK_END : SEEK_SET) == 0);
    EXPECT(fwrite(bytes, n, 1, f) == 1 && fclose(f) == 0);
}

/* The file was refused with these words, written anew, and is right. */
static void expect_remade(subject *s, bool verify, const char *words)
{
    error e;
    EXPECT_OK(load(s, LOAD_FIND, verify, &e), e);
    if (!strstr(said, words) || !strstr(said, "made again"))
        FAIL("said \"%s\", want \"%s\"", said, words);
    expect_mapped(s, true);
    EXPECT_OK(load(s, LOAD_FIND, true, &e), e);
    EXPECT_STR(said, "");
    expect_mapped(s, false);
}

TEST(a_file_that_is_not_this_one_is_refused_and_made_again)
{
    error e;
    subject s;
    struct stat st;
    fresh_folder();
    subject_open(&s, PACKS "king-tiny");
    EXPECT_OK(load(&s, LOAD_KEEP, false, &e), e);
    char path[sizeof s.report.path];
    snprintf(path, sizeof path, "%s", s.report.path);
    EXPECT(stat(path, &st) == 0);

    patch(path, 0, "X", 1);
    expect_remade(&s, false, "not a file of tiles");
    const uint32_t other = 7;
    patch(path, 8, &other, 4);
    expect_remade(&s, false, "version 7");
    patch(path, 12, &other, 4);
    expect_remade(&s, false, "layout 7");
    patch(path, 40, "0123456789abcdef", 16);
    expect_remade(&s, false, "found tiles of the pack 0123456789abcdef");
    patch(path, 16, &other, 4);
    expect_remade(&s, false, "7 matrices");
    patch(path, 24, &other, 4); /* where the tiles begin */
    expect_remade(&s, false, "matrices in");
    patch(path, 32, &other, 4);
    expect_remade(&s, false, "matrices in 7 bytes");
    patch(path, 128 + 3, "x", 1); /* a name, so the sum of the header */
    expect_remade(&s, false, "the header is damaged");
    EXPECT_INT(truncate(path, st.st_size - 1), 0);
    expect_remade(&s, false, "bytes, want");
    EXPECT_INT(truncate(path, 100), 0);
    expect_remade(&s, false, "found 100 bytes");
    EXPECT_INT(truncate(path, 0), 0);
    expect_remade(&s, false, "found 0 bytes");
    patch(path, st.st_size, "x", 1);
    expect_remade(&s, false, "bytes, want");
    subject_close(&s);
    remove_folder();
}

/* Every byte counts: one that is flipped anywhere in the tiles is found, and its matrix is
 * named. */
TEST(a_flipped_byte_is_found_by_verify)
{
    error e;
    subject s;
    fresh_folder();
    subject_open(&s, PACKS "king-tiny");
    EXPECT_OK(load(&s, LOAD_KEEP, false, &e), e);
    char path[sizeof s.report.path];
    snprintf(path, sizeof path, "%s", s.report.path);
    const size_t base = (size_t)(s.w.region - s.w.file.ptr);
    rng r = { 3 };
    for (int turn = 0; turn < 40; turn++) {
        const int i = (int)rng_below(&r, 4);
        const tile_matrix *t = &s.l[i].w;
        const size_t at = (size_t)(t->data - s.w.region) + rng_below(&r, (uint32_t)tile_bytes(t));
        const uint8_t flipped = s.w.region[at] ^ (uint8_t)(1u << rng_below(&r, 8));
        patch(path, (long)(base + at), &flipped, 1);
        expect_remade(&s, true, s.w.items[i].src.path);
    }
    subject_close(&s);
    remove_folder();
}

/* Someone gave another pack's file the name of ours; and a pack that changed looks for another
 * name. */
TEST(another_packs_file_is_refused)
{
    error e;
    subject s, other;
    char mine[TILEFILE_MAX_PATH], theirs[TILEFILE_MAX_PATH];
    fresh_folder();
    subject_open(&s, PACKS "king-tiny");
    subject_open(&other, PACKS "king-tiny");
    EXPECT_OK(load(&other, LOAD_KEEP, false, &e), e);
    EXPECT_OK(tilefile_path(s.p, folder, mine, &e), e);
    EXPECT_STR(other.report.path, mine); /* the same content is the same file */
    subject_close(&other);
    pack *p;
    EXPECT_OK(pack_open(&p, NUGGET "king", NULL, &e), e);
    EXPECT_OK(tilefile_path(p, folder, theirs, &e), e);
    EXPECT(strcmp(mine, theirs) != 0);
    king *k;
    const load_options keep = { .folder = folder, .tiles = LOAD_KEEP };
    EXPECT_OK(king_open(&k, p, s.c, &keep, &e), e);
    king_close(k);
    pack_close(p);
    EXPECT_INT(rename(theirs, mine), 0);
    expect_remade(&s, false, "found tiles of the pack");
    subject_close(&s);
    remove_folder();
}

/* The identity samples a pack; weights changed between the samples are what only verify finds. */
TEST(weights_changed_behind_the_identity_are_found_by_verify)
{
    error e;
    random_pack source = { .wide = true };
    char path[128], identity[65];
    compute *c;
    pack *p;
    king *k;
    fresh_folder();
    random_pack_plain(&source, 4);
    snprintf(path, sizeof path, "%s/model.safetensors", source.dir);
    load_options o = { .folder = folder, .tiles = LOAD_KEEP, .notice = note };
    EXPECT_OK(compute_open(&c, &(compute_options){ .threads = 2 }, &e), e);
    EXPECT_OK(pack_open(&p, source.dir, NULL, &e), e);
    snprintf(identity, sizeof identity, "%s", pack_identity(p));
    EXPECT_OK(king_open(&k, p, c, &o, &e), e);
    king_close(k);
    const safetensors *g = pack_file(p, 0);
    const long at = (long)g->len / 2 + 5000; /* between two samples of a file of this size */
    const uint8_t flipped = g->bytes[at] ^ 1;
    pack_close(p);
    patch(path, at, &flipped, 1);
    EXPECT_OK(pack_open(&p, source.dir, NULL, &e), e);
    EXPECT_STR(pack_identity(p), identity);
    for (int turn = 0; turn < 3; turn++) {
        o.verify = turn > 0;
        said[0] = '\0';
        EXPECT_OK(king_open(&k, p, c, &o, &e), e);
        EXPECT_INT(king_load_report(k)->written, turn == 1);
        EXPECT(!said[0] == (turn != 1));
        if (turn == 1) EXPECT(strstr(said, "are not those of the pack"));
        king_close(k);
    }
    pack_close(p);
    compute_close(c);
    random_pack_remove(&source);
    remove_folder();
}

/* A plan that asks for other matrices than the file has. */
TEST(the_census_is_compared)
{
    error e;
    subject s;
    fresh_folder();
    subject_open(&s, PACKS "king-tiny");
    EXPECT_OK(load(&s, LOAD_KEEP, false, &e), e);
    weights w;
    linear l[4];
    static const struct {
        const char *path;
        int out, in;
    } list[] = { { "lm_head", 1024, 512 },
                 { "model.layers.0.linear_attn.in_proj_a", 4, 512 },
                 { "model.layers.1.mlp.down_proj", 512, 1024 },
                 { "model.layers.0.mlp.up_proj", 1024, 512 } };
    weights_init(&w);
    for (int i = 0; i < 4; i++)
        EXPECT_OK(
            weights_matrix(&w, s.p, list[i].path, list[i].out, list[i].in, COMPUTE_INT8, &l[i], &e),
            e);
    EXPECT_INT(tilefile_open(&w, s.p, s.report.path, &e), E_FORMAT);
    EXPECT(strstr(e.text, "found model.layers.0.mlp.up_proj, want lm_head"));
    EXPECT(!w.file.ptr && !w.region);
    weights_free(&w);
    subject_close(&s);
    remove_folder();
}

/* What differs is named, whichever field it is. */
TEST(a_matrix_laid_out_otherwise_is_refused_by_what_differs)
{
    error e;
    subject s;
    fresh_folder();
    subject_open(&s, PACKS "king-tiny");
    EXPECT_OK(load(&s, LOAD_KEEP, false, &e), e);
    static const char *const words[] = { "up_proj: rows: found 1024, want 1023",
                                         "up_proj: columns: found 512, want 511",
                                         "up_proj: type of tile: found ",
                                         "up_proj: group: found 128, want 127",
                                         "up_proj: place: found 0, want 64",
                                         "up_proj: type of scale: found ",
                                         "up_proj: bytes: found " };
    for (int i = 0; i < 7; i++) {
        subject t = { .p = s.p, .c = s.c };
        subject_plan(&t);
        tile_matrix *m = &t.l[0].w;
        if (i == 0) m->n_out--;
        if (i == 1) m->n_in--;
        if (i == 2) m->type++;
        if (i == 3) m->group--;
        if (i == 4) t.w.items[0].at = 64;
        if (i == 5) m->scale_type++;
        if (i == 6) m->strip_bytes -= 64;
        EXPECT_INT(tilefile_open(&t.w, s.p, s.report.path, &e), E_FORMAT);
        if (!strstr(e.text, words[i])) FAIL("%s, want %s", e.text, words[i]);
        EXPECT(!t.w.file.ptr && !t.w.region);
        weights_free(&t.w);
    }
    subject_close(&s);
    remove_folder();
}

/* A folder that cannot be written costs the sharing, nothing else; but not when it must be. */
TEST(a_folder_that_cannot_be_written)
{
    error e;
    subject s;
    char file[80];
    fresh_folder();
    snprintf(file, sizeof file, "%s/file", folder);
    EXPECT_OK(file_write(file, STR("x"), &e), e);
    subject_open(&s, PACKS "king-tiny");
    snprintf(folder, sizeof folder, "%.50s/below", file);
    EXPECT_OK(load(&s, LOAD_KEEP, false, &e), e);
    EXPECT(!s.report.path[0] && !s.w.file.ptr);
    EXPECT(strstr(said, "cannot create the folder") && strstr(said, "made in memory"));
    expect_right(&s);
    EXPECT_INT(load(&s, LOAD_MUST, false, &e), E_IO);
    EXPECT(strstr(e.text, "cannot create the folder"));
    subject_close(&s);
    *strstr(folder, "/file") = '\0';
    remove_folder();
}

TEST(space_is_asked_for_first)
{
    error e;
    EXPECT_OK(file_want_space("/tmp", 1, &e), e);
    EXPECT_INT(file_want_space("/tmp", UINT64_MAX, &e), E_LIMIT);
    EXPECT(strstr(e.text, "MB free, want"));
}

/* A pack that is at fault is called that, with and without a folder. */
TEST(a_bad_pack_is_no_bad_folder)
{
    error e;
    random_pack source = { 0 };
    fresh_folder();
    random_pack_king(&source, 9);
    char path[128];
    snprintf(path, sizeof path, "%s/model.safetensors", source.dir);
    safetensors g;
    EXPECT_OK(safetensors_open(&g, path, &e), e);
    const tensor *t =
        safetensors_find(&g, STR("language_model.model.layers.1.mlp.down_proj.scales"));
    const long at = (long)(t->data - g.bytes);
    safetensors_close(&g);
    patch(path, at, "\x00\x7e", 2);
    compute *c;
    pack *p;
    king *k;
    EXPECT_OK(compute_open(&c, &(compute_options){ .threads = 3 }, &e), e);
    EXPECT_OK(pack_open(&p, source.dir, NULL, &e), e);
    const int64_t live = mem_live();
    const load_options o = { .folder = folder, .tiles = LOAD_KEEP, .notice = note };
    said[0] = '\0';
    EXPECT_INT(king_open(&k, p, c, &o, &e), E_FORMAT);
    EXPECT(strstr(e.text, "model.layers.1.mlp.down_proj") && !said[0]);
    EXPECT_INT(mem_live(), live);
    EXPECT_INT(files_in_folder(), 0);
    pack_close(p);
    compute_close(c);
    random_pack_remove(&source);
    remove_folder();
}

TEST(processes_at_once_all_end_with_the_file)
{
    error e;
    subject s;
    pid_t child[4];
    fresh_folder();
    for (int i = 0; i < 4; i++) {
        child[i] = fork();
        if (child[i] == 0) {
            for (int turn = 0; turn < 10; turn++) {
                subject_open(&s, PACKS "king-tiny");
                EXPECT_OK(load(&s, LOAD_KEEP, true, &e), e);
                EXPECT(!strstr(said, "made again")); /* never half a file */
                expect_right(&s);
                if (turn % 3 == i % 3) unlink(s.report.path); /* the mapping outlives the name */
                expect_right(&s);
                subject_close(&s);
            }
            exit(0);
        }
    }
    for (int i = 0; i < 4; i++) {
        int code;
        EXPECT(waitpid(child[i], &code, 0) == child[i] && WIFEXITED(code));
        EXPECT_INT(WEXITSTATUS(code), 0);
    }
    EXPECT(files_in_folder() <= 1); /* nothing half written is left */
    remove_folder();
}

TEST(every_allocation_may_fail)
{
    error e;
    subject s;
    fresh_folder();
    subject_open(&s, PACKS "king-tiny");
    weights_free(&s.w);
    const int64_t live = mem_live();
    for (int n = 1;; n++) {
        subject_plan(&s);
        const load_options o = { .folder = folder, .tiles = LOAD_MUST };
        mem_fail_after(n);
        const status got = load_weights(&s.w, s.p, s.c, &o, &s.report, &e);
        mem_fail_after(0);
        weights_free(&s.w);
        EXPECT_INT(mem_live(), live);
        if (got == OK) break;
        EXPECT_INT(got, E_NOMEM);
        EXPECT_INT(files_in_folder(), 0);
    }
    subject_plan(&s);
    subject_close(&s);
    remove_folder();
}

static void hash_of(const char *path, char out[65])
{
    error e;
    buf b;
    buf_init(&b, 1 << 30);
    EXPECT_OK(file_read(&b, path, &e), e);
    EXPECT_OK(digest_sha256(b.ptr, b.len, out, &e), e);
    buf_free(&b);
}

/* A file written today is read by tomorrow's program. When this fails because the bytes of a tile
 * have changed, raise TILE_LAYOUT, so that older files are refused. */
TEST(files_of_this_layout_have_these_bytes)
{
    static const struct {
        const char *folder, *sha256;
    } want[] = {
        { "king-tiny", "f9da5f678696cbd7f44e697b773094b6fc61f59f28787d494225b28e6e38e921" },
        { "qwen35-tiny-affine4",
          "210f3d2ea07cc48e08302caf9834d1b494a455952264092d36b5e65474ad5ac3" },
        { "qwen35-tiny-mxfp4", "b77959879bc34ecb3513b0bc383395fd50ddce04632d62e8ef3e91a54cc00f56" },
        { "qwen35-tiny-bf16", "86d453f153d6deda731a282de793598daed7b35961b9765d6a2e70750cb41cfa" },
        { "drafter-tiny-q4", "7447fa04d36943090e5874b3763aad234d4ff1d4582fdbe658ca0227b19f1659" },
        { "drafter-tiny-q8", "559d7db0f748733a078d78202e2416eeee76c43943a44fd86d6c6a1311f7d4a8" },
        { "drafter-tiny-bf16", "ddff99aad02498d7fda437938e32ce3096b279889b30592081f92c6c0e370b52" },
    };
    fresh_folder();
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        error e;
        pack *p;
        compute *c;
        king *k = NULL;
        drafter *d = NULL;
        char path[256], sha256[65];
        const load_options o = { .folder = folder, .tiles = LOAD_MUST };
        snprintf(path, sizeof path, PACKS "%s", want[i].folder);
        EXPECT_OK(compute_open(&c, &(compute_options){ .threads = 2 }, &e), e);
        EXPECT_OK(pack_open(&p, path, NULL, &e), e);
        if (pack_drafter(p)) EXPECT_OK(drafter_open(&d, p, NULL, c, &o, &e), e);
        else EXPECT_OK(king_open(&k, p, c, &o, &e), e);
        hash_of((d ? drafter_load_report(d) : king_load_report(k))->path, sha256);
        EXPECT_STR(sha256, want[i].sha256);
        drafter_close(d);
        king_close(k);
        pack_close(p);
        compute_close(c);
    }
    remove_folder();
}
