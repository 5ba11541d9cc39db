#include "test.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/mem.h"
#include "server/http.h"

/* A server whose every answer is `size` bytes. */
typedef struct fixture {
    http *h;
    pthread_t thread;
    char *bytes;
    size_t size;
    atomic_int answered;
} fixture;

static int take_head(void *arg, http_conn *c)
{
    (void)arg;
    (void)c;
    return 0;
}

static void answer(void *arg, http_conn *c)
{
    fixture *f = arg;
    f->answered++;
    http_reply(c, 200, NULL, "text/plain", (str){ f->bytes, f->size });
}

static void ignore(void *arg, http_conn *c)
{
    (void)arg;
    (void)c;
}

static void ignore_wake(void *arg)
{
    (void)arg;
}

static void say(void *arg, http_conn *c, int status_code, const char *message)
{
    (void)arg;
    http_reply(c, status_code, NULL, "text/plain", str_from(message));
}

static void *loop(void *arg)
{
    http_run(arg);
    return NULL;
}

static void open_server(fixture *f, size_t size, int write_s)
{
    error e;
    const http_handler handler = { f, take_head, answer, ignore, ignore, ignore_wake, say };
    const http_options o = { .host = "127.0.0.1",
                             .max_body = 1024,
                             .max_connections = 8,
                             .request_s = 5,
                             .write_s = write_s,
                             .idle_s = 1 };
    *f = (fixture){ .size = size, .bytes = mem_alloc(size) };
    EXPECT(f->bytes);
    memset(f->bytes, 'x', size);
    EXPECT_OK(http_open(&f->h, &o, &handler, &e), e);
}

static void start_server(fixture *f)
{
    EXPECT_INT(pthread_create(&f->thread, NULL, loop, f->h), 0);
}

static void stop_server(fixture *f)
{
    http_stop(f->h);
    pthread_join(f->thread, NULL);
    http_close(f->h);
    mem_free(f->bytes);
}

/* A connection that takes little at once. */
static int client(const fixture *f)
{
    const int fd = socket(AF_INET, SOCK_STREAM, 0), small = 64 << 10;
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)http_port(f->h)) };
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    EXPECT(fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
    return fd;
}

static void ask(int fd, const char *last_header)
{
    char text[128];
    const int n =
        snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: localhost\r\n%s\r\n", last_header);
    EXPECT_INT(write(fd, text, (size_t)n), n);
}

/* Reads up to n bytes; fewer at the end, or where nothing comes for ten seconds. */
static size_t take(int fd, size_t n)
{
    static char piece[1 << 16];
    size_t got = 0;
    while (got < n) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        const size_t want = n - got < sizeof piece ? n - got : sizeof piece;
        const ssize_t r = poll(&p, 1, 10000) == 1 ? read(fd, piece, want) : 0;
        if (r <= 0) break;
        got += (size_t)r;
    }
    return got;
}

TEST(http_answers_no_more_requests_than_a_client_takes)
{
    enum { REQUESTS = 400, SIZE = 100000 };
    fixture f;
    open_server(&f, SIZE, 20);
    start_server(&f);
    const int fd = client(&f);
    for (int i = 1; i < REQUESTS; i++) ask(fd, "");
    ask(fd, "Connection: close\r\n");
    clock_sleep_ms(300);
    EXPECT(f.answered >= 1 && f.answered < REQUESTS / 2); /* what sockets hold, and a little more */
    const size_t got = take(fd, SIZE_MAX);
    EXPECT_INT(f.answered, REQUESTS);
    EXPECT(got > (size_t)REQUESTS * SIZE);
    close(fd);
    stop_server(&f);
}

TEST(http_a_slow_reader_gets_the_whole_answer)
{
    enum { SIZE = 24 << 20, PIECE = 256 << 10, SLOWLY = 24 };
    fixture f;
    size_t stays = 0, closes = 0;
    open_server(&f, SIZE, 1);
    start_server(&f);
    const int open = client(&f), last = client(&f);
    ask(open, "");
    ask(last, "Connection: close\r\n");
    for (int i = 0; i < SLOWLY; i++) { /* longer than idle_s and write_s */
        stays += take(open, PIECE);
        closes += take(last, PIECE);
        clock_sleep_ms(80);
    }
    EXPECT(take(last, SIZE_MAX) + closes > SIZE);
    stays += take(open, SIZE - stays);
    EXPECT_INT(stays, SIZE);
    close(open);
    close(last);
    stop_server(&f);
}

TEST(http_waits_quietly_where_no_connection_can_be_taken)
{
    fixture f;
    struct rlimit limit, none;
    struct stat said;
    char log[] = "/tmp/ingot-test-http-XXXXXX";
    open_server(&f, 10, 5);
    const int fd = client(&f), to = mkstemp(log), err = dup(2); /* in the backlog */
    EXPECT(to >= 0 && err >= 0);
    ask(fd, "Connection: close\r\n");
    getrlimit(RLIMIT_NOFILE, &limit);
    none = limit;
    none.rlim_cur = 3;
    setrlimit(RLIMIT_NOFILE, &none);
    dup2(to, 2);
    start_server(&f);
    clock_sleep_ms(400);
    fstat(to, &said);
    dup2(err, 2);
    EXPECT_INT(f.answered, 0);
    EXPECT(said.st_size > 0 && said.st_size < 200); /* one line */
    setrlimit(RLIMIT_NOFILE, &limit);
    EXPECT(take(fd, SIZE_MAX) > 10);
    close(fd);
    close(to);
    close(err);
    unlink(log);
    stop_server(&f);
}
