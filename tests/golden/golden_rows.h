/* golden_rows.h - reads the JSON lines of a golden file. */
#ifndef GOLDEN_ROWS_H
#define GOLDEN_ROWS_H
#include "base/file.h"
#include "base/json.h"
#include "test.h"

/* Calls fn for every row of tests/golden/`name`. */
static inline void golden_rows_each(const char *name, void (*fn)(void *arg, const json_node *row),
                                    void *arg)
{
    char path[1024];
    error e;
    buf text;
    snprintf(path, sizeof path, "%s/tests/golden/%s", TEST_ROOT, name);
    buf_init(&text, 16 << 20);
    EXPECT_OK(file_read(&text, path, &e), e);
    const str all = buf_view(&text);
    for (size_t at = 0; at < all.len;) {
        const char *end = memchr(all.ptr + at, '\n', all.len - at);
        const size_t next = end ? (size_t)(end - all.ptr) + 1 : all.len;
        json_doc *doc;
        EXPECT_OK(json_parse(&doc, str_sub(all, at, next), JSON_KEEP_BIGINT, name, &e), e);
        fn(arg, json_root(doc));
        json_free(doc);
        at = next;
    }
    buf_free(&text);
}
#endif
