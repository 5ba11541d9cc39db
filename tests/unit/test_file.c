#include "test.h"
#include <sys/resource.h>
#include <sys/stat.h>
#include <signal.h>
#include <unistd.h>
#include "base/file.h"
#include "base/mem.h"

/* A fresh folder for one test, removed with everything in it. */
static char folder[64];

static const char *in_folder(const char *name)
{
    static char path[4][256];
    static int turn;
    error e = { 0 };
    turn = (turn + 1) % 4;
    EXPECT_OK(file_join(path[turn], sizeof path[turn], folder, name, &e), e);
    return path[turn];
}

static void begin(void)
{
    snprintf(folder, sizeof folder, "/tmp/test_file.XXXXXX");
    EXPECT(mkdtemp(folder));
}

static status drop(void *arg, const char *name, error *e)
{
    (void)arg;
    (void)e;
    remove(in_folder(name));
    return OK;
}

static void end(void)
{
    EXPECT(file_list(folder, drop, NULL, NULL) == OK);
    EXPECT(rmdir(folder) == 0);
}

static status count_entry(void *arg, const char *name, error *e)
{
    (void)name;
    (void)e;
    ++*(int *)arg;
    return OK;
}

static int entries(void)
{
    int n = 0;
    EXPECT(file_list(folder, count_entry, &n, NULL) == OK);
    return n;
}

static void expect_content(const char *path, str want)
{
    error e = { 0 };
    buf b;
    buf_init(&b, 1 << 20);
    EXPECT_OK(file_read(&b, path, &e), e);
    EXPECT(str_eq(buf_view(&b), want));
    buf_free(&b);
}

TEST(write_read_map)
{
    error e = { 0 };
    begin();
    const char *path = in_folder("a");
    EXPECT_OK(file_write(path, STR("hello\0there"), &e), e);
    expect_content(path, STR("hello\0there"));
    uint64_t bytes = 0;
    EXPECT(file_size(path, &bytes) && bytes == 11);
    EXPECT(file_exists(path) && !file_is_dir(path) && file_is_dir(folder));
    file_map m;
    EXPECT_OK(file_map_open(&m, path, &e), e);
    EXPECT_INT(m.len, 11);
    file_map_sequential(&m);
    file_map_drop(&m, 0, m.len);
    EXPECT(memcmp(m.ptr, "hello\0there", 11) == 0);
    file_map_close(&m);
    EXPECT_INT(entries(), 1);
    end();
}

TEST(empty_file)
{
    error e = { 0 };
    begin();
    const char *path = in_folder("a");
    EXPECT_OK(file_write(path, STR(""), &e), e);
    file_map m;
    EXPECT_OK(file_map_open(&m, path, &e), e);
    EXPECT_INT(m.len, 0);
    file_map_close(&m);
    file_map_close(&m);
    expect_content(path, STR(""));
    end();
}

TEST(refusals_name_the_path)
{
    error e = { 0 };
    begin();
    file_map m;
    buf b;
    buf_init(&b, 100);
    EXPECT_INT(file_map_open(&m, "no/such", &e), E_IO);
    EXPECT_STR(e.text, "no/such: cannot open: No such file or directory");
    EXPECT_INT(file_map_open(&m, folder, &e), E_IO);
    EXPECT_INT(file_read(&b, folder, &e), E_IO);
    EXPECT(strncmp(e.text, folder, strlen(folder)) == 0);
    EXPECT_INT(file_write("/dev/null", STR("x"), &e), E_IO);
    EXPECT_STR(e.text, "/dev/null: cannot be replaced: not a regular file");
    EXPECT_INT(file_write(in_folder("no/such"), STR("x"), &e), E_IO);
    EXPECT(mkfifo(in_folder("pipe"), 0600) == 0);
    EXPECT_INT(file_map_open(&m, in_folder("pipe"), &e), E_IO); /* and does not wait for a writer */
    buf_free(&b);
    end();
}

TEST(ceiling_of_a_read)
{
    error e = { 0 };
    begin();
    const char *path = in_folder("a");
    char text[1000];
    memset(text, 'x', sizeof text);
    EXPECT_OK(file_write(path, (str){ text, sizeof text }, &e), e);
    for (size_t ceiling = 998; ceiling <= 1002; ceiling++) {
        buf b;
        buf_init(&b, ceiling);
        EXPECT_INT(file_read(&b, path, &e), ceiling < 1000 ? E_LIMIT : OK);
        EXPECT_INT(b.len, ceiling < 1000 ? ceiling : 1000);
        buf_free(&b);
    }
    end();
}

TEST(small_text_without_allocation)
{
    error e = { 0 };
    begin();
    char text[6] = "kept";
    EXPECT(!file_read_text(in_folder("no"), text, sizeof text));
    EXPECT_STR(text, "kept");
    EXPECT_OK(file_write(in_folder("a"), STR("1234567"), &e), e);
    mem_fail_after(1);
    const bool ok = file_read_text(in_folder("a"), text, sizeof text);
    mem_fail_after(0);
    EXPECT(ok);
    EXPECT_STR(text, "12345");
    end();
}

TEST(writer_in_pieces)
{
    error e = { 0 };
    begin();
    file_writer *w;
    EXPECT_OK(file_writer_open(&w, in_folder("a"), &e), e);
    EXPECT_OK(file_writer_put(w, "........", 8, &e), e);
    EXPECT_OK(file_writer_put_at(w, 2, "xy", 2, &e), e);
    EXPECT_OK(file_writer_put(w, "!", 1, &e), e);
    EXPECT(!file_exists(in_folder("a")));
    EXPECT_OK(file_writer_commit(w, &e), e);
    expect_content(in_folder("a"), STR("..xy....!"));
    EXPECT_INT(entries(), 1);
    end();
}

TEST(abort_and_failure_leave_the_target)
{
    error e = { 0 };
    begin();
    const char *path = in_folder("a");
    EXPECT_OK(file_write(path, STR("old"), &e), e);
    EXPECT(chmod(path, 0640) == 0);
    file_writer *w;
    EXPECT_OK(file_writer_open(&w, path, &e), e);
    EXPECT_OK(file_writer_put(w, "new", 3, &e), e);
    file_writer_abort(w);
    expect_content(path, STR("old"));
    EXPECT_INT(entries(), 1);

    signal(SIGXFSZ, SIG_IGN); /* a full disk, in effect: no file may pass 4,096 bytes */
    const struct rlimit small = { 4096, RLIM_INFINITY };
    EXPECT(setrlimit(RLIMIT_FSIZE, &small) == 0);
    char text[8192] = { 0 };
    EXPECT_INT(file_write(path, (str){ text, sizeof text }, &e), E_IO);
    expect_content(path, STR("old"));
    EXPECT_INT(entries(), 1);

    EXPECT_OK(file_write(path, STR("new"), &e), e);
    expect_content(path, STR("new"));
    struct stat st;
    EXPECT(stat(path, &st) == 0);
    EXPECT_INT(st.st_mode & 0777, 0640);
    end();
}

TEST(every_allocation_may_fail)
{
    error e = { 0 };
    begin();
    const int64_t live = mem_live();
    int n = 0;
    status s;
    do {
        mem_fail_after(++n);
        s = file_write(in_folder("a"), STR("x"), &e);
        mem_fail_after(0);
        EXPECT(s == OK || s == E_NOMEM);
        EXPECT_INT(mem_live(), live);
        EXPECT_INT(entries(), s == OK);
    } while (s);
    EXPECT(n > 2);
    end();
}

static status collect(void *arg, const char *name, error *e)
{
    buf_printf(arg, "%s;", name);
    return strcmp(name, "stop") == 0 ? error_set(e, E_ARG, "stopped") : OK;
}

TEST(list_is_sorted_and_stops)
{
    error e = { 0 };
    begin();
    const char *names[] = { "b", "a", "B", "\xc3\xa9", "z", "stop" };
    for (size_t i = 0; i < 5; i++) EXPECT_OK(file_write(in_folder(names[i]), STR(""), &e), e);
    buf b;
    buf_init(&b, 1000);
    EXPECT_OK(file_list(folder, collect, &b, &e), e);
    EXPECT_STR(b.ptr, "B;a;b;z;\xc3\xa9;");
    EXPECT_OK(file_write(in_folder("stop"), STR(""), &e), e);
    buf_clear(&b);
    EXPECT_INT(file_list(folder, collect, &b, &e), E_ARG);
    EXPECT_STR(b.ptr, "B;a;b;stop;");
    EXPECT_INT(file_list("no/such", collect, &b, &e), E_IO);
    buf_free(&b);
    end();
}

TEST(folders_and_paths)
{
    error e = { 0 };
    begin();
    EXPECT_OK(file_make_dirs(in_folder("x/y/z"), &e), e);
    EXPECT_OK(file_make_dirs(in_folder("x/y/z/"), &e), e);
    EXPECT(file_is_dir(in_folder("x/y/z")));
    rmdir(in_folder("x/y/z"));
    rmdir(in_folder("x/y"));
    EXPECT_OK(file_write(in_folder("f"), STR(""), &e), e);
    EXPECT_INT(file_make_dirs(in_folder("f/g"), &e), E_IO);
    char out[8];
    EXPECT_OK(file_join(out, sizeof out, "abc", "def", &e), e);
    EXPECT_STR(out, "abc/def");
    EXPECT_INT(file_join(out, sizeof out, "abc", "defg", &e), E_LIMIT);
    EXPECT_OK(file_join(out, sizeof out, "/", "a", &e), e);
    EXPECT_STR(out, "/a");
    EXPECT_OK(file_join(out, sizeof out, "", "a", &e), e);
    EXPECT_STR(out, "a");
    char dir[4096];
    EXPECT_OK(file_executable_dir(dir, sizeof dir, &e), e);
    EXPECT(file_is_dir(dir));
    end();
}

TEST(a_file_is_read_in_pieces)
{
    error e = { 0 };
    char got[8] = "";
    file_reader r;
    begin();
    EXPECT_OK(file_write(in_folder("f"), STR("abcdef"), &e), e);
    const char *path = in_folder("f");
    EXPECT_OK(file_reader_open(&r, path, &e), e);
    EXPECT_OK(file_reader_get(&r, got, 2, &e), e);
    EXPECT_OK(file_reader_get(&r, got + 2, 3, &e), e);
    EXPECT_STR(got, "abcde");
    EXPECT(!file_reader_at_end(&r));
    EXPECT(file_reader_at_end(&r));
    file_reader_close(&r);
    EXPECT_OK(file_reader_open(&r, path, &e), e);
    EXPECT_OK(file_reader_get(&r, got, 4, &e), e);
    EXPECT_INT(file_reader_get(&r, got, 4, &e), E_FORMAT);
    EXPECT(strstr(e.text, "ends at byte 6, want 2 more") != NULL);
    file_reader_close(&r);
    EXPECT_INT(file_reader_open(&r, in_folder("no"), &e), E_IO);
    EXPECT_INT(file_reader_open(&r, folder, &e), E_IO);
    end();
}
