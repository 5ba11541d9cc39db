/* Any text is refused with a message, or is read, written and read again with the same result:
 * write(read(write(x))) equals write(x), with and without big integers. */
#include <stdint.h>
#include <stdlib.h>
#include "base/json.h"
#include "base/jsonw.h"
#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_json(buf *out, const json_doc *d)
{
    jsonw w;
    buf_init(out, (size_t)64 << 20);
    jsonw_init(&w, out);
    jsonw_node(&w, json_root(d));
    CHECK(out->failed == OK);
}

static bool read_json(json_doc **d, str text, unsigned flags)
{
    error e = { 0 };
    const status s = json_parse(d, text, flags, "input", &e);
    CHECK(s == OK || (s != E_BUG && s != E_NOMEM && e.text[0]));
    return s == OK;
}

static void check(str text, unsigned flags)
{
    json_doc *first, *second;
    buf once, twice;
    if (!read_json(&first, text, flags)) return;
    write_json(&once, first);
    CHECK(read_json(&second, buf_view(&once), flags));
    write_json(&twice, second);
    CHECK(str_eq(buf_view(&once), buf_view(&twice)));
    buf_free(&once);
    buf_free(&twice);
    json_free(first);
    json_free(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int64_t live = mem_live();
    const str text = { (const char *)data, size };
    check(text, 0);
    check(text, JSON_KEEP_BIGINT | JSON_UNIQUE);
    CHECK(mem_live() == live);
    return 0;
}
