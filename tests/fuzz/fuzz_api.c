/* Any body of any dialect is refused with a named status, or parsed into prompts that hold
 * together; never a crash. The first byte chooses the dialect. */
#include <stdint.h>
#include <stdlib.h>
#include "base/mem.h"
#include "server/anthropic.h"
#include "server/call.h"
#include "server/openai.h"
#include "server/responses.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_parsed(const call *c)
{
    CHECK(c->n_prompts >= 1 && c->n_prompts <= CALL_MAX_PROMPTS);
    CHECK(call_n(c) >= 1 && call_n(c) <= CALL_MAX_CHOICES);
    CHECK(c->sampling.n_stop >= 0 && c->sampling.n_stop <= CALL_MAX_STOP);
    for (int i = 0; i < c->n_prompts; i++) {
        const ingot_prompt *p = &c->prompts[i];
        CHECK((p->text != NULL) + (p->tokens != NULL) + (p->messages != NULL) == 1);
    }
}

static void check_refusal(const api_error *e, const dialect *d)
{
    buf out;
    json_doc *doc;
    CHECK(e->status >= 400 && e->status < 600 && e->message[0]);
    buf_init(&out, 1 << 20);
    d->error(e, &out);
    CHECK(json_parse(&doc, buf_view(&out), 0, "error", NULL) == OK);
    CHECK(json_kind(json_get(json_root(doc), "error")) == JSON_OBJECT);
    json_free(doc);
    buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const dialect *const dialects[] = { &openai_chat, &openai_completion, &responses_dialect,
                                               &anthropic_messages };
    if (size == 0) return 0;
    const service s = { .info = { .n_vocab = 4096, .max_block = 8, .top_k = -1 },
                        .name = "model",
                        .context = 4096 };
    const dialect *d = dialects[data[0] % 4];
    call *c = mem_alloc(sizeof *c);
    if (!c) return 0;
    call_init(c, d, &s, "id_");
    api_error e = { 0 };
    if (call_parse(c, (str){ (const char *)data + 1, size - 1 }, &e)) check_parsed(c);
    else check_refusal(&e, d);
    call_free(c);
    return 0;
}
