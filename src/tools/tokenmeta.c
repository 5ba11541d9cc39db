/* tokenmeta.c - see tokenmeta.h. Keys and kinds as llama.cpp reads them (tokenizer.ggml.*). */
#include "tools/tokenmeta.h"
#include <stdio.h>
#include "base/json.h"
#include "base/mem.h"
#include "base/banned.h"

enum { MAX_PATH = 4096, MAX_TOKENIZER = 256 << 20, MAX_TEMPLATE = 16 << 20 };
enum { KIND_NORMAL = 1, KIND_CONTROL = 3, KIND_USER = 4, KIND_UNUSED = 5 };

typedef struct token {
    str text;
    int32_t kind; /* 0: none yet */
} token;

static status set_token(token *tokens, int n_vocab, const json_node *id, str text, int32_t kind,
                        const char *path, error *e)
{
    int64_t n = -1;
    if (!json_i64(id, &n) || n < 0 || n >= n_vocab) {
        return error_set(e, E_FORMAT, "%s: token id %lld, want 0 to %d", path, (long long)n,
                         n_vocab - 1);
    }
    tokens[n] = (token){ text, kind };
    return OK;
}

static status read_tokens(const json_node *root, token *tokens, int n_vocab, const char *path,
                          error *e)
{
    const json_node *model = json_get(root, "model"), *vocab = json_get(model, "vocab");
    const json_node *added = json_get(root, "added_tokens"), *id;
    const char *type = json_text(json_get(model, "type"));
    str text;
    if (!type || strcmp(type, "BPE") != 0 || json_kind(vocab) != JSON_OBJECT) {
        return error_set(e, E_UNSUPPORTED, "%s: model.type is %s, want BPE with a vocab", path,
                         type ? type : "nothing");
    }
    for (void *it = NULL; json_each(vocab, &it, &text, &id);)
        TRY(set_token(tokens, n_vocab, id, text, KIND_NORMAL, path, e));
    for (size_t i = 0; i < json_len(added); i++) {
        const json_node *a = json_at(added, i);
        if (!json_str(json_get(a, "content"), &text))
            return error_set(e, E_FORMAT, "%s: added_tokens[%zu]: no content", path, i);
        const int32_t kind = json_is_true(json_get(a, "special")) ? KIND_CONTROL : KIND_USER;
        TRY(set_token(tokens, n_vocab, json_get(a, "id"), text, kind, path, e));
    }
    return OK;
}

static void put_tokens(gguf_writer *w, const token *tokens, int n_vocab)
{
    gguf_writer_array(w, "tokenizer.ggml.tokens", GGUF_STRING, (uint64_t)n_vocab);
    for (int i = 0; i < n_vocab; i++) {
        char spare[24];
        const int n = snprintf(spare, sizeof spare, "[PAD%d]", i);
        gguf_writer_put_str(w, tokens[i].kind ? tokens[i].text : (str){ spare, (size_t)n });
    }
    gguf_writer_array(w, "tokenizer.ggml.token_type", GGUF_I32, (uint64_t)n_vocab);
    for (int i = 0; i < n_vocab; i++)
        gguf_writer_put_i32(w, tokens[i].kind ? tokens[i].kind : KIND_UNUSED);
}

/* Merges are written "left right" in old files, ["left", "right"] in new ones. */
static status put_merges(gguf_writer *w, const json_node *merges, const char *path, error *e)
{
    buf line;
    buf_init(&line, 1 << 20);
    status s = OK;
    gguf_writer_array(w, "tokenizer.ggml.merges", GGUF_STRING, json_len(merges));
    for (size_t i = 0; i < json_len(merges) && !s; i++) {
        const json_node *m = json_at(merges, i);
        str a, b;
        buf_clear(&line);
        if (json_str(m, &a)) {
            buf_add(&line, a);
        } else if (json_str(json_at(m, 0), &a) && json_str(json_at(m, 1), &b)) {
            buf_add(&line, a);
            buf_char(&line, ' ');
            buf_add(&line, b);
        } else {
            s = error_set(e, E_FORMAT, "%s: merges[%zu]: want a string or a pair", path, i);
        }
        if (!s) s = buf_status(&line, path, e);
        gguf_writer_put_str(w, buf_view(&line));
    }
    buf_free(&line);
    return s;
}

static status put_template(gguf_writer *w, const char *folder, error *e)
{
    char path[MAX_PATH];
    buf text;
    TRY(file_join(path, sizeof path, folder, "chat_template.jinja", e));
    if (!file_exists(path)) return OK;
    buf_init(&text, MAX_TEMPLATE);
    const status s = file_read(&text, path, e);
    if (!s) gguf_writer_str(w, "tokenizer.chat_template", buf_view(&text));
    buf_free(&text);
    return s;
}

status tokenmeta_write(gguf_writer *w, const char *folder, int n_vocab, const generation_config *g,
                       error *e)
{
    char path[MAX_PATH];
    json_doc *doc = NULL;
    TRY(file_join(path, sizeof path, folder, "tokenizer.json", e));
    TRY(json_parse_file(&doc, path, MAX_TOKENIZER, 0, e));
    token *tokens = mem_array((size_t)n_vocab, sizeof *tokens);
    const json_node *root = json_root(doc);
    status s = tokens ? OK : error_set(e, E_NOMEM, "%s: no memory", path);
    if (!s) s = read_tokens(root, tokens, n_vocab, path, e);
    if (!s) {
        gguf_writer_str(w, "tokenizer.ggml.model", STR("gpt2"));
        gguf_writer_str(w, "tokenizer.ggml.pre", STR("qwen35"));
        put_tokens(w, tokens, n_vocab);
        s = put_merges(w, json_get(json_get(root, "model"), "merges"), path, e);
    }
    /* the last one named is that of generation_config.json: the end of a turn */
    if (!s && g->n_eos)
        gguf_writer_u32(w, "tokenizer.ggml.eos_token_id", (uint32_t)g->eos[g->n_eos - 1]);
    if (!s && g->bos >= 0) gguf_writer_u32(w, "tokenizer.ggml.bos_token_id", (uint32_t)g->bos);
    if (!s && g->pad >= 0) gguf_writer_u32(w, "tokenizer.ggml.padding_token_id", (uint32_t)g->pad);
    if (!s) gguf_writer_bool(w, "tokenizer.ggml.add_bos_token", false);
    if (!s) s = put_template(w, folder, e);
    mem_free(tokens);
    json_free(doc);
    return s;
}
