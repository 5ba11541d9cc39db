#include "test.h"
#include "base/buf.h"
#include "base/mem.h"

TEST(appends)
{
    buf b;
    buf_init(&b, 1 << 20);
    EXPECT_STR(buf_view(&b).ptr, "");
    buf_text(&b, "one ");
    buf_add(&b, STR("two "));
    buf_char(&b, '3');
    buf_printf(&b, " %d-%s", 4, "five");
    EXPECT_STR(b.ptr, "one two 3 4-five");
    EXPECT_INT(b.len, 16);
    buf_consume(&b, 4);
    EXPECT_STR(b.ptr, "two 3 4-five");
    char *at = buf_reserve(&b, 10);
    EXPECT(at);
    memcpy(at, "abc", 3);
    buf_advance(&b, 3);
    EXPECT_STR(b.ptr, "two 3 4-fiveabc");
    buf_clear(&b);
    EXPECT_STR(b.ptr, "");
    buf_free(&b);
}

TEST(ceiling_is_exact_and_sticky)
{
    error e = { 0 };
    buf b;
    buf_init(&b, 100);
    for (int i = 0; i < 100; i++) buf_char(&b, 'x');
    EXPECT_OK(buf_status(&b, "reply", &e), e);
    buf_char(&b, 'y');
    EXPECT_INT(b.len, 100);
    EXPECT_INT(buf_status(&b, "reply", &e), E_LIMIT);
    EXPECT_STR(e.text, "reply: longer than the limit of 100 bytes");
    buf_put(&b, "", 0);
    EXPECT_INT(b.failed, E_LIMIT);
    EXPECT(!buf_steal(&b));
    buf_clear(&b);
    buf_printf(&b, "%0100d", 7);
    EXPECT_INT(b.failed, OK);
    buf_clear(&b);
    buf_printf(&b, "%0101d", 7);
    EXPECT_INT(b.failed, E_LIMIT);
    buf_clear(&b);
    EXPECT(!buf_reserve(&b, SIZE_MAX));
    buf_free(&b);
}

TEST(short_memory_changes_nothing)
{
    error e = { 0 };
    buf b;
    buf_init(&b, 1 << 20);
    buf_text(&b, "kept");
    mem_fail_after(1);
    for (int i = 0; i < 1000; i++) buf_text(&b, "more");
    mem_fail_after(0);
    EXPECT_INT(buf_status(&b, "x", &e), E_NOMEM);
    EXPECT(str_starts(buf_view(&b), STR("keptmore")));
    EXPECT_INT(strlen(b.ptr), b.len);
    buf_free(&b);
}

TEST(steal)
{
    buf b;
    buf_init(&b, 10);
    char *p = buf_steal(&b);
    EXPECT_STR(p, "");
    mem_free(p);
    buf_text(&b, "abc");
    p = buf_steal(&b);
    EXPECT_STR(p, "abc");
    EXPECT(!b.ptr);
    EXPECT_INT(b.ceiling, 10);
    mem_free(p);
}
