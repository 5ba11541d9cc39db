/* Any request body renders or is refused with a message; offsets of turn ends rise and stay
 * inside the prompt. The input is JSON: {"messages", "tools", "kwargs", "effort"}. */
#include "base/json.h"
#include "base/mem.h"
#include "text/chat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char source[] = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ "
                             "m.reasoning_content|default('') }}{{ m.content }}"
                             "{% for c in m.tool_calls or [] %}{% set c = c.function or c %}{{ "
                             "c.name }}{% for k, v in c.arguments|items %}"
                             "{{ k }}={{ v|tojson }}{% endfor %}{% endfor %}<|im_end|>\n{% endfor "
                             "%}{{ tools|default([])|tojson }}"
                             "{% if add_generation_prompt %}<|im_start|>assistant\n{% if "
                             "enable_thinking is not false %}<think>\n{% endif %}"
                             "{% endif %}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int64_t live = mem_live();
    json_doc *doc;
    error e = { 0 };
    chat *c;
    if (json_parse(&doc, (str){ (const char *)data, size }, JSON_KEEP_BIGINT, "request", &e))
        return 0;
    CHECK(chat_new(&c, (str){ source, sizeof source - 1 }, STR("{\"eos_token\": \"x\"}"), &e) ==
          OK);
    const json_node *root = json_root(doc);
    chat_options o = { .kwargs = json_get(root, "kwargs"), .now_s = 1 };
    json_str(json_get(root, "effort"), &o.effort);
    chat_prompt p;
    template_fault fault;
    const status s =
        chat_render(c, json_get(root, "messages"), json_get(root, "tools"), &o, &p, &fault, &e);
    CHECK(s == OK || (s != E_BUG && e.text[0] && p.text.len == 0));
    for (int i = 0; i < p.n_ends; i++)
        CHECK(p.ends[i] <= p.text.len && (i == 0 || p.ends[i] > p.ends[i - 1]));
    chat_prompt_free(&p);
    chat_free(c);
    json_free(doc);
    CHECK(mem_live() == live);
    return 0;
}
