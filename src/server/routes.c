/* routes.c - see routes.h; and the small routes that need no file of their own. */
#include "server/routes.h"

#include <stdio.h>

#include "base/mem.h"
#include "server/anthropic.h"
#include "server/metrics.h"
#include "server/openai.h"
#include "server/page.h"
#include "server/responses.h"
#include "base/banned.h"

/* ---- small routes ---- */

static bool get_models(const service *s, str path, buf *out, api_error *e)
{
    (void)path;
    (void)e;
    openai_models(s, out);
    return true;
}

static int hex_digit(char ch)
{
    const char *digits = "0123456789abcdef", *at = strchr(digits, ch >= 'A' ? ch | 32 : ch);
    return ch && at ? (int)(at - digits) : -1;
}

/* `escaped` stands for `text`, once its %XX are decoded. */
static bool stands_for(str escaped, str text)
{
    size_t n = 0;
    for (size_t i = 0; i < escaped.len; i++, n++) {
        char ch = escaped.ptr[i];
        if (ch == '%' && escaped.len - i > 2) {
            const int high = hex_digit(escaped.ptr[i + 1]), low = hex_digit(escaped.ptr[i + 2]);
            if (high < 0 || low < 0) return false;
            ch = (char)(high * 16 + low);
            i += 2;
        }
        if (n == text.len || text.ptr[n] != ch) return false;
    }
    return n == text.len;
}

static bool get_model(const service *s, str path, buf *out, api_error *e)
{
    const size_t at = str_find(path, STR("/models/"));
    const str name = str_sub(path, at + 8, path.len);
    if (stands_for(name, str_from(s->name))) {
        openai_model(s, out);
        return true;
    }
    *e = (api_error){ .status = 404, .type = "not_found_error", .code = "model_not_found" };
    snprintf(e->message, sizeof e->message, "the model '%.*s' is not served here",
             (int)(name.len < 80 ? name.len : 80), name.ptr);
    return false;
}

static bool tokenize(const service *s, const json_node *in, buf *out, api_error *e)
{
    str text;
    ingot_tokens ids;
    ingot_error ie;
    jsonw w;
    if (!json_str(json_get(in, "content"), &text))
        return fields_refuse(e, "content", "'content': want a string");
    const ingot_status is =
        ingot_tokenize(s->model, text.ptr, text.len, INGOT_SPECIAL_ALL, &ids, &ie);
    if (is != INGOT_OK) {
        *e = call_error_of(is, &ie);
        return false;
    }
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_member_i32s(&w, "tokens", ids.ids, ids.len);
    jsonw_end_object(&w);
    ingot_tokens_free(&ids);
    return true;
}

static bool detokenize(const service *s, const json_node *in, buf *out, api_error *e)
{
    const json_node *list = json_get(in, "tokens");
    const size_t n = json_len(list);
    if (json_kind(list) != JSON_ARRAY)
        return fields_refuse(e, "tokens", "'tokens': want a list of token ids");
    int32_t *ids = mem_array(n + 1, sizeof *ids);
    ingot_text text;
    ingot_error ie;
    jsonw w;
    bool good = ids != NULL || fields_no_memory(e);
    for (size_t i = 0; good && i < n; i++) {
        int64_t id;
        good = json_i64(json_at(list, i), &id) && id >= 0 && id < s->info.n_token;
        if (!good)
            fields_refuse(e, "tokens", "'tokens': item %zu: want a token id below %d", i,
                          s->info.n_token);
        else ids[i] = (int32_t)id;
    }
    if (good) {
        const ingot_status is = ingot_detokenize(s->model, ids, n, false, &text, &ie);
        good = is == INGOT_OK;
        if (!good) *e = call_error_of(is, &ie);
    }
    mem_free(ids);
    if (!good) return false;
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_member_str(&w, "content", (str){ text.ptr, text.len });
    jsonw_end_object(&w);
    ingot_text_free(&text);
    return true;
}

static bool apply_template(const service *s, const json_node *in, buf *out, api_error *e)
{
    arena mem;
    ingot_text text;
    ingot_error ie;
    jsonw w;
    ingot_prompt p = INGOT_INIT(ingot_prompt);
    arena_init(&mem, 0);
    const json_node *messages = NULL, *tools = NULL;
    bool good = fields_array(in, "messages", &messages, e) && fields_array(in, "tools", &tools, e);
    if (good && !messages) good = fields_refuse(e, "messages", "'messages': missing");
    if (good) {
        p.messages = fields_json(messages, &mem);
        p.tools = tools ? fields_json(tools, &mem) : NULL;
        good = (p.messages && (!tools || p.tools)) || fields_no_memory(e);
    }
    if (good) {
        const ingot_status is = ingot_render(s->model, &p, &text, &ie);
        good = is == INGOT_OK;
        if (!good) *e = call_error_of(is, &ie);
    }
    arena_free(&mem);
    if (!good) return false;
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_member_str(&w, "prompt", (str){ text.ptr, text.len });
    jsonw_end_object(&w);
    ingot_text_free(&text);
    return true;
}

static bool with_object(const service *s, str body, buf *out, api_error *e,
                        bool (*fn)(const service *s, const json_node *in, buf *out, api_error *e))
{
    json_doc *doc;
    if (!fields_parse(&doc, body, e)) return false;
    const bool good = fn(s, json_root(doc), out, e);
    json_free(doc);
    return good;
}

static bool post_tokenize(const service *s, str body, buf *out, api_error *e)
{
    return with_object(s, body, out, e, tokenize);
}

static bool post_detokenize(const service *s, str body, buf *out, api_error *e)
{
    return with_object(s, body, out, e, detokenize);
}

static bool post_apply_template(const service *s, str body, buf *out, api_error *e)
{
    return with_object(s, body, out, e, apply_template);
}

/* ---- the table ---- */

/* The first that fits answers; the last fits all. */
static const route table[] = {
    { .name = "live", .kind = ROUTE_LIVE, .method = "GET", .path = "/live", .open = true },
    { .name = "health", .kind = ROUTE_HEALTH, .method = "GET", .path = "/health", .open = true },
    { .name = "metrics", .kind = ROUTE_METRICS, .method = "GET", .path = "/metrics" },
    { .name = "slots", .kind = ROUTE_SLOTS, .method = "GET", .path = "/slots" },
    { .name = "models",
      .kind = ROUTE_GET,
      .method = "GET",
      .path = "/models",
      .answer = get_models },
    { .name = "model",
      .kind = ROUTE_GET,
      .method = "GET",
      .path = "/models/",
      .below = true,
      .answer = get_model },
    { .name = "chat",
      .kind = ROUTE_GENERATE,
      .method = "POST",
      .path = "/chat/completions",
      .dialect = &openai_chat,
      .id_prefix = "chatcmpl-" },
    { .name = "completions",
      .kind = ROUTE_GENERATE,
      .method = "POST",
      .path = "/completions",
      .dialect = &openai_completion,
      .id_prefix = "cmpl-" },
    { .name = "responses",
      .kind = ROUTE_GENERATE,
      .method = "POST",
      .path = "/responses",
      .dialect = &responses_dialect,
      .id_prefix = "resp_" },
    { .name = "messages",
      .kind = ROUTE_GENERATE,
      .method = "POST",
      .path = "/messages",
      .dialect = &anthropic_messages,
      .id_prefix = "msg_" },
    { .name = "count_tokens",
      .kind = ROUTE_WORK,
      .method = "POST",
      .path = "/messages/count_tokens",
      .dialect = &anthropic_messages,
      .answer = anthropic_count_tokens },
    { .name = "tokenize",
      .kind = ROUTE_WORK,
      .method = "POST",
      .path = "/tokenize",
      .answer = post_tokenize },
    { .name = "detokenize",
      .kind = ROUTE_WORK,
      .method = "POST",
      .path = "/detokenize",
      .answer = post_detokenize },
    { .name = "template",
      .kind = ROUTE_WORK,
      .method = "POST",
      .path = "/apply-template",
      .answer = post_apply_template },
    { .name = "page",
      .kind = ROUTE_PAGE,
      .method = "GET",
      .path = "/",
      .open = true,
      .page = page_html,
      .headers = PAGE_HEADERS },
    { .name = "embeddings",
      .kind = ROUTE_NOT_OFFERED,
      .method = "POST",
      .path = "/embeddings",
      .below = true },
    { .name = "audio",
      .kind = ROUTE_NOT_OFFERED,
      .method = "POST",
      .path = "/audio/",
      .below = true },
    { .name = "images",
      .kind = ROUTE_NOT_OFFERED,
      .method = "POST",
      .path = "/images/",
      .below = true },
    { .name = "other", .kind = ROUTE_UNKNOWN, .method = "", .path = "", .below = true },
};

_Static_assert(sizeof table / sizeof *table == METRICS_ROUTES, "every route has its counters");

const route *routes_find(str path)
{
    if (str_starts(path, STR("/v1/"))) path = str_sub(path, 3, path.len);
    for (const route *r = table;; r++) {
        const str at = str_from(r->path);
        if (r->below ? str_starts(path, at) : str_eq(path, at)) return r;
    }
}

int routes_id(const route *r)
{
    return (int)(r - table);
}

const char *routes_name(int id)
{
    return table[id].name;
}
