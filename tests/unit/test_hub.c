/* Downloads from a hub that misbehaves (tests/hub/server.py, loopback only). */
#include <arpa/inet.h>
#include <glob.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include "base/clock.h"
#include "packkit.h"
#include "stride.h"
#include "hub/cache.h"
#include "hub/download.h"
#include "hub/hub.h"

#define COMMIT "0123456789abcdef0123456789abcdef01234567"

/* Runs a line of shell; returns its exit code. */
static int __attribute__((format(printf, 1, 2))) shell(const char *fmt, ...)
{
    char line[8192];
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    EXPECT(n > 0 && n < (int)sizeof line);
    return WEXITSTATUS(system(line));
}

/* ---- the server ---- */

typedef struct hub_fixture {
    kit k; /* HF_HOME */
    int port, cdn, stop_fd;
    pid_t pid;
} hub_fixture;

/* `root` (may be NULL): a folder whose files every repository holds. */
static hub_fixture start_server(const char *root, const char *big)
{
    hub_fixture f = { .k = kit_new(NULL) };
    int in[2], out[2];
    EXPECT(pipe(in) == 0 && pipe(out) == 0);
    f.pid = fork();
    if (f.pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        close(in[1]);
        close(out[0]);
        execlp("python3", "python3", "-B", TEST_ROOT "/tests/hub/server.py", root ? root : "", big,
               (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    f.stop_fd = in[1];
    FILE *said = fdopen(out[0], "r");
    if (fscanf(said, "%d %d", &f.port, &f.cdn) != 2) skip("no python3 to run the test server");
    fclose(said);
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", f.port);
    setenv("HF_ENDPOINT", url, 1);
    setenv("HF_HOME", f.k.folder, 1);
    setenv("NO_PROXY", "127.0.0.1", 1);
    unsetenv("HF_HUB_CACHE");
    unsetenv("HUGGINGFACE_HUB_CACHE");
    unsetenv("HF_HUB_OFFLINE");
    unsetenv("TRANSFORMERS_OFFLINE");
    setenv("HF_TOKEN", "secret-token", 1);
    return f;
}

static void stop_server(hub_fixture *f)
{
    close(f->stop_fd);
    kill(f->pid, SIGKILL);
    waitpid(f->pid, NULL, 0);
    kit_free(&f->k);
}

static const hub_options quick = { .retry_ms = 1 };

static status pull(const char *name, char *folder, error *e)
{
    *e = (error){ 0 };
    return hub_pull(name, &quick, folder, CACHE_MAX_PATH, e);
}

static void fails(const char *name, status want, const char *message)
{
    char folder[CACHE_MAX_PATH];
    error e;
    const status s = pull(name, folder, &e);
    if (s != want || !strstr(e.text, message))
        FAIL("%s: %d \"%s\", want %d with \"%s\"", name, (int)s, e.text, (int)want, message);
    EXPECT(!strstr(e.text, "secret-token"));
}

/* Bytes of the big file, from the server itself through a plain pull. */
static void expect_good(const char *folder)
{
    char path[CACHE_MAX_PATH], hex[65], link[256] = "";
    error e = { 0 };
    EXPECT_OK(file_join(path, sizeof path, folder, "model.safetensors", &e), e);
    const ssize_t n = readlink(path, link, sizeof link - 1);
    EXPECT(n == 12 + 64 && strncmp(link, "../../blobs/", 12) == 0);
    EXPECT_OK(download_hash(path, link + 12, hex, &e), e);
    EXPECT_STR(hex, link + 12);
}

static void expect_missing(const hub_fixture *f, const char *pattern)
{
    if (shell("test -z \"$(find %s -name '%s')\"", f->k.folder, pattern) != 0)
        FAIL("%s was left behind", pattern);
}

static buf log_of(const hub_fixture *f)
{
    char command[256];
    buf b;
    buf_init(&b, 1 << 24);
    snprintf(command, sizeof command,
             "python3 -c \"import urllib.request as u; "
             "print(u.urlopen('http://127.0.0.1:%d/log').read().decode())\"",
             f->port);
    FILE *p = popen(command, "r");
    char line[1024];
    while (fgets(line, sizeof line, p)) buf_text(&b, line);
    pclose(p);
    return b;
}

/* ---- names ---- */

TEST(names_are_told_from_paths)
{
    static const char *const good[] = { "owner/name", "a.b/c_d-e", "o/n@main", "o/n@refs/pr/1" };
    static const char *const bad[] = { "name", "/o/n",     "o/n/x",   "./n",    "o/..", "-o/n",
                                       "o/n@", "o/n@../x", "o/n.git", "o/n--m", "o /n", "o/n@a b" };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) EXPECT(hub_is_name(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (hub_is_name(bad[i])) FAIL("\"%s\" is taken for a name", bad[i]);
}

/* ---- good servers ---- */

TEST(a_pull_fills_the_shared_layout)
{
    hub_fixture f = start_server(NULL, "3000000");
    char folder[CACHE_MAX_PATH], again[CACHE_MAX_PATH];
    error e;
    EXPECT_OK(pull("good/model", folder, &e), e);
    EXPECT(strstr(folder, "/hub/models--good--model/snapshots/" COMMIT));
    expect_good(folder);
    EXPECT(file_exists(kit_path(&f.k, "hub/models--good--model/snapshots/" COMMIT "/empty.json")));
    EXPECT(!file_exists(kit_path(&f.k, "hub/models--good--model/snapshots/" COMMIT "/model.gguf")));
    EXPECT(!file_exists(kit_path(&f.k, "hub/models--good--model/snapshots/" COMMIT "/runtime")));
    buf b = kit_read(kit_path(&f.k, "hub/models--good--model/refs/main"));
    EXPECT(str_eq(buf_view(&b), STR(COMMIT)));
    buf_free(&b);
    expect_missing(&f, "*.incomplete");
    expect_missing(&f, "*.map");
    /* found again without a network */
    setenv("HF_ENDPOINT", "http://127.0.0.1:1", 1);
    EXPECT_OK(hub_find("good/model", &quick, again, sizeof again, &e), e);
    EXPECT_STR(again, folder);
    EXPECT_OK(hub_open("good/model@" COMMIT, &quick, again, sizeof again, &e), e);
    setenv("HF_HUB_OFFLINE", "yes", 1);
    EXPECT_OK(pull("good/model", again, &e), e);
    fails("good/other", E_IO, "not in the cache");
    stop_server(&f);
    EXPECT_INT(mem_live(), 0);
}

TEST(the_token_stays_with_its_host)
{
    hub_fixture f = start_server(NULL, "300000");
    char folder[CACHE_MAX_PATH], cdn[16], hub[16];
    error e;
    EXPECT_OK(pull("good/model", folder, &e), e);
    snprintf(cdn, sizeof cdn, "%d ", f.cdn);
    snprintf(hub, sizeof hub, "%d ", f.port);
    buf b = log_of(&f);
    int to_cdn = 0, to_hub = 0;
    for (char *line = strtok(b.ptr, "\n"); line; line = strtok(NULL, "\n")) {
        const bool has = strstr(line, "Bearer secret-token") != NULL;
        if (strncmp(line, cdn, strlen(cdn)) == 0) {
            to_cdn++;
            EXPECT(!has);
        } else if (strncmp(line, hub, strlen(hub)) == 0) {
            to_hub++;
            EXPECT(has);
        }
    }
    EXPECT(to_cdn >= 1 && to_hub >= 3);
    buf_free(&b);
    stop_server(&f);
}

TEST(several_ranges_make_one_file)
{
    hub_fixture f = start_server(NULL, "50000000"); /* three chunks and a bit */
    char folder[CACHE_MAX_PATH];
    error e;
    EXPECT_OK(pull("good/model", folder, &e), e);
    expect_good(folder);
    stop_server(&f);
}

TEST(files_go_to_a_plain_folder_when_asked)
{
    hub_fixture f = start_server(NULL, "300000");
    char folder[CACHE_MAX_PATH], to[512];
    error e = { 0 };
    static const char *const only[] = { "*.json", "runtime/*" };
    snprintf(to, sizeof to, "%s", kit_path(&f.k, "plain"));
    const hub_options o = { .retry_ms = 1, .to = to, .include = only, .n_include = 2 };
    EXPECT_OK(hub_pull("good/model", &o, folder, sizeof folder, &e), e);
    EXPECT_STR(folder, to);
    EXPECT(file_exists(kit_path(&f.k, "plain/runtime/run.py")));
    EXPECT(file_exists(kit_path(&f.k, "plain/config.json")));
    EXPECT(!file_exists(kit_path(&f.k, "plain/model.safetensors")));
    /* a file the user changed is not believed */
    kit_write(&f.k, "plain/config.json", STR("{\"model_type\": \"qwen3_6\"}"));
    EXPECT_OK(hub_pull("good/model", &o, folder, sizeof folder, &e), e);
    buf b = kit_read(kit_path(&f.k, "plain/config.json"));
    EXPECT(str_find(buf_view(&b), STR("qwen3_5")) != STR_NONE);
    buf_free(&b);
    stop_server(&f);
}

/* The links of the shared layout are relative: one step up more for each folder. */
TEST(files_in_folders_are_linked_from_there)
{
    hub_fixture f = start_server(NULL, "3000");
    char folder[CACHE_MAX_PATH];
    error e = { 0 };
    static const char *const all[] = { "*" };
    const hub_options o = { .retry_ms = 1, .include = all, .n_include = 1 };
    EXPECT_OK(hub_pull("good/deep", &o, folder, sizeof folder, &e), e);
    buf b = kit_read(kit_path(&f.k, "hub/models--good--deep/snapshots/" COMMIT "/a/b/c.json"));
    EXPECT(str_eq(buf_view(&b), STR("[1]")));
    buf_free(&b);
    stop_server(&f);
}

/* ---- servers that misbehave ---- */

TEST(cut_connections_are_taken_up_again)
{
    hub_fixture f = start_server(NULL, "3000000");
    char folder[CACHE_MAX_PATH];
    error e;
    EXPECT_OK(pull("cut/model", folder, &e), e);
    expect_good(folder);
    stop_server(&f);
}

TEST(a_busy_server_is_asked_again_when_it_says)
{
    hub_fixture f = start_server(NULL, "300000");
    char folder[CACHE_MAX_PATH];
    error e;
    EXPECT_OK(pull("busy/model", folder, &e), e);
    expect_good(folder);
    EXPECT_OK(pull("moved/model", folder, &e), e);
    expect_good(folder);
    const int64_t start = clock_ns();
    EXPECT_OK(pull("later/model", folder, &e), e);
    EXPECT(clock_ns() - start >= 1000000000);
    stop_server(&f);
}

/* What a map says of bytes that a crash took from the file is not believed. */
TEST(a_map_of_more_than_the_file_is_not_believed)
{
    hub_fixture f = start_server(NULL, "3000000");
    char folder[CACHE_MAX_PATH];
    error e;
    EXPECT_OK(pull("good/model", folder, &e), e);
    EXPECT_INT(
        shell("cd %s && rm -r snapshots && cd blobs && f=$(ls -S | head -n 1) && "
              "head -c 100 $f > $f.ingot.incomplete && rm $f && "
              "printf '\\100\\102\\017\\0\\0\\0\\0\\0' > $f.ingot.incomplete.map", /* 1,000,000 */
              kit_path(&f.k, "hub/models--good--model")),
        0);
    EXPECT_OK(pull("good/model", folder, &e), e);
    expect_good(folder);
    stop_server(&f);
}

TEST(a_server_without_ranges_sends_the_whole)
{
    hub_fixture f = start_server(NULL, "40000000");
    char folder[CACHE_MAX_PATH];
    error e;
    EXPECT_OK(pull("whole/model", folder, &e), e);
    expect_good(folder);
    EXPECT_OK(pull("less/model", folder, &e), e);
    expect_good(folder);
    stop_server(&f);
}

TEST(wrong_lengths_and_hashes_put_nothing_in_place)
{
    hub_fixture f = start_server(NULL, "40000000");
    fails("wrong/model", E_FORMAT, "SHA-256 of what came is ");
    fails("short/model", E_FORMAT, "want ");
    fails("long/model", E_FORMAT, "more than was asked for");
    for (int i = 0; i < 3; i++) {
        static const char *const owner[] = { "wrong", "short", "long" };
        char path[256];
        snprintf(path, sizeof path, "hub/models--%s--model/snapshots/" COMMIT "/model.safetensors",
                 owner[i]);
        EXPECT(!file_exists(kit_path(&f.k, path)));
    }
    stop_server(&f);
}

TEST(an_endpoint_is_an_address)
{
    char path[512];
    error e;
    setenv("HF_ENDPOINT", "nonsense", 1);
    EXPECT_INT(hub_pull("good/model", &(hub_options){ 0 }, path, sizeof path, &e), E_ARG);
    EXPECT_STR(e.text, "HF_ENDPOINT: found nonsense, want https://HOST or http://HOST");
}

TEST(refusals_say_what_to_do)
{
    hub_fixture f = start_server(NULL, "3000");
    fails("gated/model", E_IO, "accept its licence");
    fails("gone/model", E_IO, "not found at http://127.0.0.1:");
    fails("good/model@nowhere", E_IO, "no revision nowhere");
    fails("liar/model", E_FORMAT, "unsafe name");
    unsetenv("HF_TOKEN");
    fails("private/model", E_IO, "set HF_TOKEN");
    fails("no/model/here", E_ARG, "want owner/name");
    setenv("HF_ENDPOINT", "http://127.0.0.1:1", 1);
    fails("good/model", E_IO, "127.0.0.1");
    stop_server(&f);
}

/* A half copy is named, and made whole by the next pull. */
TEST(R094_a_snapshot_without_a_shard_is_no_model)
{
    hub_fixture f = start_server(NULL, "200000");
    char folder[CACHE_MAX_PATH], again[CACHE_MAX_PATH];
    error e = { 0 };
    EXPECT_OK(pull("good/sharded", folder, &e), e);
    char shard[CACHE_MAX_PATH];
    EXPECT_OK(file_join(shard, sizeof shard, folder, "model-00001-of-00002.safetensors", &e), e);
    EXPECT(unlink(shard) == 0);
    EXPECT_INT(hub_find("good/sharded", &quick, again, sizeof again, &e), E_IO);
    EXPECT(strstr(e.text, "model-00001-of-00002.safetensors is missing"));
    EXPECT_OK(hub_open("good/sharded", &quick, again, sizeof again, &e), e);
    EXPECT(file_exists(shard));
    stop_server(&f);
}

/* A pull that is killed leaves a side file only, and what it leaves is used. */
TEST(R096_a_killed_pull_leaves_no_file_that_looks_whole)
{
    hub_fixture f = start_server(NULL, "12000000"); /* over a second, and one range */
    char folder[CACHE_MAX_PATH];
    error e;
    const pid_t pid = fork();
    if (pid == 0) {
        execl(TEST_PROGRAM, "ingot", "pull", "slow/model", (char *)NULL);
        _exit(127);
    }
    for (int i = 0; i < 500; i++) { /* until some of it came and was counted */
        if (shell("test -n \"$(find %s -name '*.incomplete' -size +700k)\"", f.k.folder) == 0)
            break;
        usleep(10000);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    EXPECT(!file_exists(
        kit_path(&f.k, "hub/models--slow--model/snapshots/" COMMIT "/model.safetensors")));
    EXPECT_OK(pull("slow/model", folder, &e), e);
    expect_good(folder);
    buf b = log_of(&f); /* the second one asked for the rest only */
    EXPECT(str_find(buf_view(&b), STR("bytes=")) != STR_NONE);
    EXPECT(str_find(buf_view(&b), STR("bytes=0-")) == STR_NONE);
    buf_free(&b);
    stop_server(&f);
}

/* An id and a path behave the same, in every command that takes a folder. */
TEST(R097_an_id_is_as_good_as_a_path)
{
    hub_fixture f = start_server(KIT_PACKS "king-tiny", "0");
    char out[512];
    snprintf(out, sizeof out, "%s", kit_path(&f.k, "out"));
    /* from afar: headers only, nothing in the cache */
    EXPECT_INT(shell("%s inspect good/tiny > %s 2>&1 && grep -q 'king' %s", TEST_PROGRAM, out, out),
               0);
    EXPECT(!file_exists(kit_path(&f.k, "hub/models--good--tiny/snapshots")));
    EXPECT_INT(
        shell("printf 'abc' | %s tokenize --king good/tiny > %s && printf 'abc' | %s tokenize "
              "--king %sking-tiny | cmp - %s",
              TEST_PROGRAM, out, TEST_PROGRAM, KIT_PACKS, out),
        0);
    EXPECT(file_exists(kit_path(&f.k, "hub/models--good--tiny/snapshots/" COMMIT)));
    EXPECT_INT(shell("%s inspect good/tiny --verify --offline > %s", TEST_PROGRAM, out), 0);
    EXPECT_INT(shell("%s inspect good/none --offline > %s 2>&1", TEST_PROGRAM, out), 1);
    stop_server(&f);
}

/* A hub that takes the question and says nothing. */
TEST(an_interrupted_inspection_leaves_no_folder)
{
    const kit k = kit_new(NULL);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof at;
    char url[64], folders[512];
    glob_t found;
    int code;
    EXPECT(bind(fd, (struct sockaddr *)&at, n) == 0 && listen(fd, 8) == 0 &&
           getsockname(fd, (struct sockaddr *)&at, &n) == 0);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", ntohs(at.sin_port));
    snprintf(folders, sizeof folders, "%s/ingot-inspect-*", k.folder);
    setenv("HF_ENDPOINT", url, 1);
    setenv("HF_HOME", k.folder, 1);
    setenv("TMPDIR", k.folder, 1);
    const pid_t pid = fork();
    if (pid == 0) {
        execl(TEST_PROGRAM, "ingot", "inspect", "some/model", "--quiet", (char *)NULL);
        _exit(127);
    }
    for (int i = 0; i < 3000 && glob(folders, 0, NULL, &found) != 0; i++) usleep(10000);
    globfree(&found);
    usleep(100000);
    kill(pid, SIGINT);
    EXPECT_INT(waitpid(pid, &code, 0), pid);
    EXPECT(WIFEXITED(code) && WEXITSTATUS(code) == 130);
    EXPECT_INT(glob(folders, 0, NULL, &found), GLOB_NOMATCH);
    close(fd);
    kit_free(&k);
}

/* Bytes on disk of a download that is not whole yet; 0: there is none. */
static uint64_t partial_bytes(const hub_fixture *f)
{
    uint64_t bytes = 0;
    glob_t found;
    if (glob(kit_path(&f->k, "hub/models--slow--model/blobs/*.incomplete"), 0, NULL, &found) == 0) {
        struct stat st;
        for (size_t i = 0; i < found.gl_pathc; i++)
            if (stat(found.gl_pathv[i], &st) == 0) bytes += 512 * (uint64_t)st.st_blocks + 1;
        globfree(&found);
    }
    return bytes;
}

/* Programs that are killed while the file comes, a random time after more of it is there: a hundred
 * such kills, and each time that the file is whole in spite of them it is right. */
TEST(a_hundred_interruptions_end_in_the_right_file)
{
    hub_fixture f = start_server(NULL, "20000000");
    char folder[CACHE_MAX_PATH];
    error e;
    rng r = { 3 };
    const int kills = 100 / test_stride(); /* of a slow build they show no more */
    int killed = 0, whole = 0;
    while (killed < kills) {
        const uint64_t before = partial_bytes(&f);
        const pid_t pid = fork();
        if (pid == 0) {
            execl(TEST_PROGRAM, "ingot", "pull", "slow/model", "--quiet", (char *)NULL);
            _exit(127);
        }
        int code = 0;
        bool ended = false;
        while (!ended && partial_bytes(&f) <= before) {
            usleep(300);
            ended = waitpid(pid, &code, WNOHANG) == pid;
        }
        if (!ended) {
            usleep(rng_below(&r, 3000));
            kill(pid, killed % 2 ? SIGKILL : SIGINT);
            waitpid(pid, &code, 0);
        }
        if (partial_bytes(&f)) {
            EXPECT(!ended);
            killed++;
            continue;
        }
        EXPECT_OK(pull("slow/model", folder, &e), e); /* nothing is left to fetch, or a link */
        expect_good(folder);
        expect_missing(&f, "*.incomplete");
        EXPECT_INT(shell("rm -rf %s", kit_path(&f.k, "hub/models--slow--model")), 0);
        whole++;
    }
    EXPECT_OK(pull("slow/model", folder, &e), e);
    expect_good(folder);
    expect_missing(&f, "*.incomplete");
    printf("%d killed while the file came, %d times it was whole in between\n", killed, whole);
    stop_server(&f);
}

/* Two at once: one waits for the other, both end with the file. */
TEST(two_pulls_share_one_download)
{
    hub_fixture f = start_server(NULL, "2000000");
    pid_t pid[2];
    for (int i = 0; i < 2; i++) {
        pid[i] = fork();
        if (pid[i]) continue;
        execl(TEST_PROGRAM, "ingot", "pull", "slow/model", "--quiet", "--to",
              kit_path(&f.k, "both"), (char *)NULL);
        _exit(127);
    }
    for (int i = 0; i < 2; i++) {
        int code;
        waitpid(pid[i], &code, 0);
        EXPECT(WIFEXITED(code) && WEXITSTATUS(code) == 0);
    }
    buf b = log_of(&f);
    int bodies = 0;
    char cdn[16];
    snprintf(cdn, sizeof cdn, "%d GET", f.cdn);
    for (str s = buf_view(&b); str_find(s, str_from(cdn)) != STR_NONE; bodies++)
        s = str_sub(s, str_find(s, str_from(cdn)) + 1, s.len);
    EXPECT_INT(bodies, 1);
    buf_free(&b);
    stop_server(&f);
}

/* The Python client of the hub finds what was fetched here, and the reverse. */
TEST(the_python_client_shares_the_cache)
{
    hub_fixture f = start_server(NULL, "300000");
    char folder[CACHE_MAX_PATH];
    error e;
    const char *chosen = getenv("INGOT_INTEROP_PYTHON"); /* tests/interop/venv makes one */
    const char *python = chosen ? chosen : "python3";
    if (!chosen && shell("%s -c 'import huggingface_hub' 2>/dev/null", python) != 0) {
        stop_server(&f);
        skip("no Python with huggingface_hub (set INGOT_INTEROP_PYTHON)");
    }
    EXPECT_OK(pull("good/model", folder, &e), e);
    EXPECT_INT(shell("%s -c \"import huggingface_hub as h; p = h.snapshot_download('good/model', "
                     "local_files_only=True); assert p == '%s', p; h.hf_hub_download('good/other', "
                     "'model.safetensors'); h.hf_hub_download('good/other', 'config.json'); "
                     "h.hf_hub_download('good/other', 'tokenizer.json')\"",
                     python, folder),
               0);
    EXPECT_OK(hub_find("good/other", &quick, folder, sizeof folder, &e), e);
    expect_good(folder);
    stop_server(&f);
}
