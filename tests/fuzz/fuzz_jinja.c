/* Any template compiles or is refused, renders or fails with a message, within bounded steps,
 * memory and output; nothing leaks, and the same input gives the same output. A byte 0 parts the
 * template from the JSON of its variables. */
#include "base/json.h"
#include "base/mem.h"
#include "text/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static status render(const template *t, const json_node *variables, buf *out)
{
    error e = { 0 };
    template_fault fault;
    buf_init(out, TEMPLATE_MAX_OUTPUT);
    const status s = template_render(t, variables, 0, out, &fault, &e);
    CHECK(s != E_BUG && (s == OK) == (fault == TEMPLATE_OK));
    CHECK(s == OK || out->len == 0);
    CHECK(s == OK || fault == TEMPLATE_RAISE || e.text[0]);
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int64_t live = mem_live();
    const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
    const size_t n = zero ? (size_t)(zero - data) : size;
    json_doc *doc = NULL;
    template *t;
    error e = { 0 };
    if (zero) {
        const str text = { (const char *)zero + 1, size - n - 1 };
        if (json_parse(&doc, text, JSON_KEEP_BIGINT, "variables", &e)) doc = NULL;
    }
    if (template_compile(&t, (str){ (const char *)data, n }, "input", &e) == OK) {
        buf once, twice;
        const status s = render(t, doc ? json_root(doc) : NULL, &once);
        CHECK(render(t, doc ? json_root(doc) : NULL, &twice) == s);
        CHECK(str_eq(buf_view(&once), buf_view(&twice)));
        buf_free(&once);
        buf_free(&twice);
        template_free(t);
    } else {
        CHECK(e.text[0]);
    }
    json_free(doc);
    CHECK(mem_live() == live);
    return 0;
}
