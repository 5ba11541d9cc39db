#include "test.h"
#include "server/httphead.h"

TEST(httphead_takes_a_head_apart)
{
    httphead h;
    int code;
    const char *fault =
        httphead_parse(&h,
                       STR("\r\nPOST http://x/v1/a?b=c HTTP/1.1\r\nHost: x\r\n"
                           "X-One:  two words \r\nx-one: second\r\nContent-Length: 12\r\n\r\n"),
                       &code);
    EXPECT(fault == NULL);
    EXPECT(str_eq(h.method, STR("POST")) && str_eq(h.path, STR("/v1/a")));
    EXPECT(!h.http10 && !h.is_head && !h.chunked && h.has_length && h.length == 12);
    EXPECT(str_eq(httphead_find(&h, "X-ONE"), STR("two words")));
    EXPECT(httphead_find(&h, "accept").ptr == NULL);
    EXPECT(httphead_parse(&h, STR("HEAD / HTTP/1.0\n\n"), &code) == NULL);
    EXPECT(h.http10 && h.is_head && !h.has_length);
}

TEST(httphead_reads_lists)
{
    httphead h;
    int code;
    const str text = STR("GET / HTTP/1.1\r\nHost: x\r\nConnection: TE,  Close\r\n"
                         "Connection: \r\nconnection: ,keep-alive\r\n\r\n");
    EXPECT(httphead_parse(&h, text, &code) == NULL);
    EXPECT(httphead_lists(&h, "connection", STR("te")));
    EXPECT(httphead_lists(&h, "connection", STR("close")));
    EXPECT(httphead_lists(&h, "connection", STR("keep-alive")));
    EXPECT(!httphead_lists(&h, "connection", STR("keep")));
    EXPECT(!httphead_lists(&h, "host", STR("close")));
}

TEST(httphead_refuses_what_two_readers_could_read_differently)
{
    static const struct {
        const char *text;
        int code;
    } cases[] = {
        { "GET /\r\n\r\n", 400 },
        { "GET / HTTP/2\r\nHost: x\r\n\r\n", 505 },
        { "GET x HTTP/1.1\r\nHost: x\r\n\r\n", 400 },
        { "GET / HTTP/1.1\r\n\r\n", 400 },
        { "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400 },
        { "GET / HTTP/1.1\r\nHost: x\r\nA b: c\r\n\r\n", 400 },
        { "GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n", 400 },
        { "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400 },
        { "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\n", 400 },
        { "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 501 },
        { "GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
          400 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        httphead h;
        int code = 0;
        EXPECT(httphead_parse(&h, str_from(cases[i].text), &code) != NULL);
        EXPECT_INT(code, cases[i].code);
    }
}
