/* tokenizer.c - reads the tokenizer files and encodes text with what they describe. */
#include "text/tokenizer.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "text/added.h"
#include "text/bpe.h"
#include "text/regex.h"
#include "text/unicode.h"
#include "base/banned.h"

enum { PATH_BYTES = 4096 };
#define FILE_MAX ((size_t)256 << 20) /* bytes of a tokenizer file */
#define TEXT_MAX ((size_t)1 << 30)   /* bytes of a text to encode */

struct tokenizer {
    bpe bpe;
    added added;
    regex *split; /* NULL: every segment is one piece */
    bool nfc;
};

/* ---- reading tokenizer.json ---------------------------------------------------------------- */

/* The split of GPT-2, which a ByteLevel pre-tokenizer applies when it is told to use its own. */
#define GPT2_SPLIT \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

static bool is_null(const json_node *n)
{
    return !n || json_kind(n) == JSON_NULL;
}

/* The `type` of a part, "null" when there is no part, else what stands there instead. */
static const char *type_of(const json_node *n)
{
    if (is_null(n)) return "null";
    const char *type = json_text(json_get(n, "type"));
    return type ? type : json_kind_name(n);
}

static bool has_type(const json_node *n, const char *type)
{
    return strcmp(type_of(n), type) == 0;
}

static status want_false(const json_node *n, const char *place, const char *key, error *e)
{
    bool value = false;
    const json_node *flag = json_get(n, key);
    if (!flag || (json_bool(flag, &value) && !value)) return OK;
    return error_set(e, E_UNSUPPORTED, "%s.%s: found %s, want false", place, key,
                     value ? "true" : json_kind_name(flag));
}

static status read_normalizer(tokenizer *t, const json_node *n, error *e)
{
    t->nfc = has_type(n, "NFC");
    if (t->nfc || is_null(n)) return OK;
    return error_set(e, E_UNSUPPORTED, "normalizer: found %s, want NFC or null", type_of(n));
}

/* ByteLevel; *own_split: it splits as GPT-2 does (the default of the format). */
static status read_byte_level(const json_node *n, const char *place, bool *own_split, error *e)
{
    if (!has_type(n, "ByteLevel"))
        return error_set(e, E_UNSUPPORTED, "%s: found %s, want ByteLevel", place, type_of(n));
    const json_node *flag = json_get(n, "use_regex");
    *own_split = true;
    if (flag && !json_bool(flag, own_split))
        return error_set(e, E_FORMAT, "%s.use_regex: found %s, want a boolean", place,
                         json_kind_name(flag));
    return want_false(n, place, "add_prefix_space", e);
}

static status read_split(tokenizer *t, const json_node *n, error *e)
{
    const char *place = "pre_tokenizer.pretokenizers[0]";
    if (!has_type(n, "Split"))
        return error_set(e, E_UNSUPPORTED, "%s: found %s, want Split", place, type_of(n));
    const char *behavior = json_text(json_get(n, "behavior"));
    if (!behavior || strcmp(behavior, "Isolated") != 0)
        return error_set(e, E_UNSUPPORTED, "%s.behavior: found %s, want Isolated", place,
                         behavior ? behavior : json_kind_name(json_get(n, "behavior")));
    TRY(want_false(n, place, "invert", e));
    str pattern = { 0 };
    if (!json_str(json_get(json_get(n, "pattern"), "Regex"), &pattern))
        return error_set(e, E_UNSUPPORTED, "%s.pattern: found no Regex, want one", place);
    return regex_open(&t->split, pattern, "pre_tokenizer", e);
}

static status read_pre_tokenizer(tokenizer *t, const json_node *n, error *e)
{
    bool own_split = false;
    if (has_type(n, "ByteLevel")) {
        TRY(read_byte_level(n, "pre_tokenizer", &own_split, e));
        return own_split ? regex_open(&t->split, STR(GPT2_SPLIT), "pre_tokenizer", e) : OK;
    }
    if (!has_type(n, "Sequence"))
        return error_set(e, E_UNSUPPORTED, "pre_tokenizer: found %s, want Sequence or ByteLevel",
                         type_of(n));
    const json_node *parts = json_get(n, "pretokenizers");
    if (json_len(parts) != 2)
        return error_set(e, E_UNSUPPORTED,
                         "pre_tokenizer.pretokenizers: found %zu, want Split and ByteLevel",
                         json_len(parts));
    TRY(read_byte_level(json_at(parts, 1), "pre_tokenizer.pretokenizers[1]", &own_split, e));
    if (own_split)
        return error_set(
            e, E_UNSUPPORTED,
            "pre_tokenizer.pretokenizers[1].use_regex: found true, want false behind a Split");
    return read_split(t, json_at(parts, 0), e);
}

/* Whatever inserts tokens or changes decoded text is refused; truncation and padding are the
 * caller's business. */
static status read_surroundings(const json_node *root, error *e)
{
    const json_node *post = json_get(root, "post_processor");
    const json_node *decoder = json_get(root, "decoder");
    if (!is_null(post) && !has_type(post, "ByteLevel"))
        return error_set(e, E_UNSUPPORTED, "post_processor: found %s, want ByteLevel or null",
                         type_of(post));
    if (!has_type(decoder, "ByteLevel"))
        return error_set(e, E_UNSUPPORTED, "decoder: found %s, want ByteLevel", type_of(decoder));
    return OK;
}

/* Turns text in the printable alphabet into the bytes it stands for. E_UNSUPPORTED for any other
 * character. */
static status to_bytes(buf *out, str text, error *e)
{
    uint32_t cp = 0;
    buf_clear(out);
    for (size_t at = 0, n; at < text.len; at += n) {
        n = str_utf8_next(text, at, &cp);
        const int byte = n ? bpe_byte_of(cp) : -1;
        if (byte < 0)
            return error_set(e, E_UNSUPPORTED,
                             "found U+%04X, want characters of the byte alphabet only", cp);
        buf_char(out, (char)byte);
    }
    return buf_status(out, "entry", e);
}

static status read_entry(tokenizer *t, str key, const json_node *value, buf *bytes, error *e)
{
    int64_t id = 0;
    if (!json_i64(value, &id))
        return error_set(e, E_FORMAT, "found %s, want an integer", json_kind_name(value));
    if (id < 0 || id > BPE_MAX_ID)
        return error_set(e, E_FORMAT, "found id %lld, want 0 to %d", (long long)id, BPE_MAX_ID);
    const status s = to_bytes(bytes, key, e);
    const added_token *same = s == E_UNSUPPORTED ? added_by_text(&t->added, key) : NULL;
    /* an added token that is listed here too; its bytes are its text */
    if (same && same->id == id) return OK;
    return s ? s : bpe_add(&t->bpe, (int32_t)id, buf_view(bytes), e);
}

static status read_vocab(tokenizer *t, const json_node *vocab, buf *bytes, error *e)
{
    str key = { 0 };
    const json_node *value = NULL;
    for (void *it = NULL; json_each(vocab, &it, &key, &value);) {
        const status s = read_entry(t, key, value, bytes, e);
        if (s) return error_prefix(e, s, "model.vocab[\"%.*s\"]", STR_ARG(key));
    }
    const status s = bpe_finish(&t->bpe, e);
    return s ? error_prefix(e, s, "model.vocab") : OK;
}

/* A merge is a pair of texts, in older files one text with a space between. */
static status read_merge(const json_node *n, str *left, str *right, error *e)
{
    str both = { 0 };
    if (json_str(n, &both)) {
        const size_t space = str_find(both, STR(" "));
        *left = str_sub(both, 0, space == STR_NONE ? both.len : space);
        *right = str_sub(both, space == STR_NONE ? both.len : space + 1, both.len);
        if (left->len && right->len && str_find(*right, STR(" ")) == STR_NONE) return OK;
        return error_set(e, E_FORMAT, "found \"%.*s\", want two texts with one space between",
                         STR_ARG(both));
    }
    if (json_len(n) == 2 && json_str(json_at(n, 0), left) && json_str(json_at(n, 1), right))
        return OK;
    return error_set(e, E_FORMAT, "found %s, want a pair of texts", json_kind_name(n));
}

static status add_merge(tokenizer *t, const json_node *n, buf bytes[2], error *e)
{
    str side[2];
    TRY(read_merge(n, &side[0], &side[1], e));
    TRY(to_bytes(&bytes[0], side[0], e));
    TRY(to_bytes(&bytes[1], side[1], e));
    return bpe_add_merge(&t->bpe, buf_view(&bytes[0]), buf_view(&bytes[1]), e);
}

static status read_merges(tokenizer *t, const json_node *merges, buf bytes[2], error *e)
{
    for (size_t i = 0; i < json_len(merges); i++) {
        const status s = add_merge(t, json_at(merges, i), bytes, e);
        if (s) return error_prefix(e, s, "model.merges[%zu]", i);
    }
    return OK;
}

/* Options that would change what encoding gives; the others only matter when a byte has no
 * entry. */
static status check_model_options(const json_node *model, error *e)
{
    static const char *const affixes[] = { "continuing_subword_prefix", "end_of_word_suffix" };
    double dropout = 0;
    const json_node *n = json_get(model, "dropout");
    if (!is_null(n) && !(json_f64(n, &dropout) && dropout == 0))
        return error_set(e, E_UNSUPPORTED, "model.dropout: found a value, want null");
    for (size_t i = 0; i < sizeof affixes / sizeof *affixes; i++) {
        n = json_get(model, affixes[i]);
        const char *text = json_text(n);
        if (!is_null(n) && !(text && *text == '\0'))
            return error_set(e, E_UNSUPPORTED, "model.%s: found %s, want null or \"\"", affixes[i],
                             text ? text : json_kind_name(n));
    }
    return OK;
}

static status read_model(tokenizer *t, const json_node *model, error *e)
{
    if (!has_type(model, "BPE"))
        return error_set(e, E_UNSUPPORTED, "model: found %s, want BPE", type_of(model));
    TRY(check_model_options(model, e));
    const json_node *vocab = json_get(model, "vocab");
    const json_node *merges = json_get(model, "merges");
    const json_node *ignore = json_get(model, "ignore_merges");
    if (json_kind(vocab) != JSON_OBJECT)
        return error_set(e, E_FORMAT, "model.vocab: found %s, want an object",
                         json_kind_name(vocab));
    if (json_kind(merges) != JSON_ARRAY)
        return error_set(e, E_FORMAT, "model.merges: found %s, want an array",
                         json_kind_name(merges));
    TRY(bpe_init(&t->bpe, json_len(vocab), json_len(merges), e));
    if (ignore && !json_bool(ignore, &t->bpe.ignore_merges))
        return error_set(e, E_FORMAT, "model.ignore_merges: found %s, want a boolean",
                         json_kind_name(ignore));
    buf bytes[2];
    buf_init(&bytes[0], BPE_MAX_BYTES);
    buf_init(&bytes[1], BPE_MAX_BYTES);
    status s = read_vocab(t, vocab, &bytes[0], e);
    if (!s) s = read_merges(t, merges, bytes, e);
    buf_free(&bytes[0]);
    buf_free(&bytes[1]);
    return s;
}

/* Gives an added token its place among the ids. A text that is also an entry must have that entry's
 * id. */
static status place_added(tokenizer *t, const added_token *a, buf *bytes, error *e)
{
    const status s = to_bytes(bytes, a->content, e);
    if (s && s != E_UNSUPPORTED) return s;
    const int32_t entry = s ? -1 : bpe_id(&t->bpe, buf_view(bytes));
    if (entry == a->id) return OK;
    if (entry >= 0)
        return error_set(e, E_FORMAT, "found id %d, want %d as in model.vocab", a->id, entry);
    return bpe_add_apart(&t->bpe, a->id, a->content, e);
}

static status place_all_added(tokenizer *t, error *e)
{
    buf bytes;
    buf_init(&bytes, 2 * BPE_MAX_BYTES);
    status s = OK;
    for (size_t i = 0; i < t->added.n && !s; i++) {
        s = place_added(t, &t->added.items[i], &bytes, e);
        if (s) error_prefix(e, s, "added token \"%.*s\"", STR_ARG(t->added.items[i].content));
    }
    buf_free(&bytes);
    return s;
}

static status read_json(tokenizer *t, const json_node *root, const json_node *config, error *e)
{
    TRY(read_normalizer(t, json_get(root, "normalizer"), e));
    TRY(read_pre_tokenizer(t, json_get(root, "pre_tokenizer"), e));
    TRY(read_surroundings(root, e));
    TRY(added_read_array(&t->added, json_get(root, "added_tokens"), e));
    const status s = added_read_object(&t->added, json_get(config, "added_tokens_decoder"), e);
    if (s) return error_prefix(e, s, "with tokenizer_config.json");
    TRY(added_finish(&t->added, t->nfc, e));
    TRY(read_model(t, json_get(root, "model"), e));
    return place_all_added(t, e);
}

static status parse_object(json_doc **out, str text, const char *name, error *e)
{
    TRY(json_parse(out, text, JSON_UNIQUE, name, e));
    const json_node *root = json_root(*out);
    if (json_kind(root) == JSON_OBJECT) return OK;
    return error_set(e, E_FORMAT, "%s: found %s, want an object", name, json_kind_name(root));
}

status tokenizer_parse(tokenizer **out, str json, str config, const char *name, error *e)
{
    *out = NULL;
    char path[PATH_BYTES];
    char config_path[PATH_BYTES];
    TRY(file_join(path, sizeof path, name, "tokenizer.json", e));
    TRY(file_join(config_path, sizeof config_path, name, "tokenizer_config.json", e));
    json_doc *doc = NULL;
    json_doc *config_doc = NULL;
    tokenizer *t = mem_zalloc(sizeof *t);
    if (!t) return error_set(e, E_NOMEM, "%s: out of memory", path);
    added_init(&t->added);
    status s = OK;
    TRY_GOTO(s, parse_object(&doc, json, path, e), done);
    if (config.ptr) TRY_GOTO(s, parse_object(&config_doc, config, config_path, e), done);
    s = read_json(t, json_root(doc), config_doc ? json_root(config_doc) : NULL, e);
    if (s) {
        error_prefix(e, s, "%s", path);
        goto done;
    }
    *out = t;
    t = NULL;
done:
    json_free(doc);
    json_free(config_doc);
    tokenizer_close(t);
    return s;
}

static status map_file(file_map *m, const char *path, error *e)
{
    TRY(file_map_open(m, path, e));
    if (m->len <= FILE_MAX) return OK;
    const size_t len = m->len;
    file_map_close(m);
    return error_set(e, E_LIMIT, "%s: found %zu bytes, want at most %zu", path, len, FILE_MAX);
}

status tokenizer_open(tokenizer **out, const char *folder, error *e)
{
    *out = NULL;
    char path[PATH_BYTES];
    char config_path[PATH_BYTES];
    TRY(file_join(path, sizeof path, folder, "tokenizer.json", e));
    TRY(file_join(config_path, sizeof config_path, folder, "tokenizer_config.json", e));
    const bool has_config = file_exists(config_path);
    file_map json;
    file_map config;
    TRY(map_file(&json, path, e));
    status s = has_config ? map_file(&config, config_path, e) : OK;
    if (!s) {
        const str config_text = { has_config ? (const char *)config.ptr : NULL,
                                  has_config ? config.len : 0 };
        s = tokenizer_parse(out, (str){ (const char *)json.ptr, json.len }, config_text, folder, e);
        if (has_config) file_map_close(&config);
    }
    file_map_close(&json);
    return s;
}

void tokenizer_close(tokenizer *t)
{
    if (!t) return;
    bpe_free(&t->bpe);
    added_free(&t->added);
    regex_close(t->split);
    mem_free(t);
}

/* ---- encoding ------------------------------------------------------------------------------ */

/* One call of tokenizer_encode. */
typedef struct encoding {
    const tokenizer *t;
    tokenizer_special mode;
    regex_scan *scan;
    bpe_work work;
    buf normal; /* the segment, normalized */
    tokenizer_ids *out;
    error *e;
} encoding;

void tokenizer_ids_free(tokenizer_ids *ids)
{
    mem_free(ids->ptr);
    *ids = (tokenizer_ids){ 0 };
}

static status reserve(encoding *x, size_t more)
{
    tokenizer_ids *out = x->out;
    if (more <= out->cap - out->len) return OK;
    const size_t cap = 2 * out->cap > out->len + more ? 2 * out->cap : out->len + more;
    int32_t *grown = mem_resize(out->ptr, cap * sizeof *grown);
    if (!grown) return error_set(x->e, E_NOMEM, "text: out of memory for %zu ids", cap);
    out->ptr = grown;
    out->cap = cap;
    return OK;
}

static status put_id(encoding *x, int32_t id)
{
    TRY(reserve(x, 1));
    x->out->ptr[x->out->len++] = id;
    return OK;
}

static status encode_piece(encoding *x, str piece)
{
    size_t n = 0;
    if (piece.len == 0) return OK;
    TRY(reserve(x, piece.len));
    TRY(bpe_encode(&x->t->bpe, &x->work, piece, x->out->ptr + x->out->len, &n, x->e));
    x->out->len += n;
    return OK;
}

/* Text without added tokens: matches of the split and what lies between them are pieces. */
static status encode_plain(encoding *x, str text)
{
    if (!x->scan) return encode_piece(x, text);
    for (size_t at = 0, from, to; at < text.len; at = to) {
        TRY(regex_next(x->scan, text, at, &from, &to, x->e));
        TRY(encode_piece(x, str_sub(text, at, from)));
        TRY(encode_piece(x, str_sub(text, from, to)));
    }
    return OK;
}

/* Cuts text at the tokens of one trie; the text between goes to `between`. */
static status encode_around(encoding *x, const added_trie *trie, str text,
                            status (*between)(encoding *x, str text))
{
    if (x->mode == TOKENIZER_NONE) return between(x, text);
    added_walk w = { .a = &x->t->added,
                     .trie = trie,
                     .shown_only = x->mode == TOKENIZER_SHOWN,
                     .text = text };
    while (added_next(&w)) {
        TRY(between(x, w.before));
        TRY(put_id(x, w.token->id));
    }
    return between(x, w.before);
}

/* Text between the tokens that are looked for before normalization. */
static status encode_segment(encoding *x, str text)
{
    if (x->t->nfc) {
        buf_clear(&x->normal);
        TRY(unicode_nfc(&x->normal, text, x->e));
        text = buf_view(&x->normal);
    }
    return encode_around(x, &x->t->added.normal, text, encode_plain);
}

static status check_text(str text, error *e)
{
    if (text.len > TEXT_MAX)
        return error_set(e, E_LIMIT, "text: found %zu bytes, want at most %zu", text.len, TEXT_MAX);
    if (str_utf8_valid(text)) return OK;
    uint32_t cp = 0;
    size_t at = 0;
    for (size_t n; (n = str_utf8_next(text, at, &cp)) != 0;) at += n;
    return error_set(e, E_ARG, "text: byte %zu: found 0x%02x, want UTF-8", at,
                     (unsigned)(uint8_t)text.ptr[at]);
}

status tokenizer_encode(const tokenizer *t, str text, tokenizer_special mode, tokenizer_ids *out,
                        error *e)
{
    TRY(check_text(text, e));
    encoding x = { .t = t, .mode = mode, .out = out, .e = e };
    buf_init(&x.normal, 3 * text.len);
    const size_t before = out->len;
    status s = t->split ? regex_scan_open(&x.scan, t->split, e) : OK;
    if (!s) s = encode_around(&x, &t->added.raw, text, encode_segment);
    if (s) out->len = before;
    regex_scan_close(x.scan);
    bpe_work_free(&x.work);
    buf_free(&x.normal);
    return s;
}

/* ---- questions ----------------------------------------------------------------------------- */

int32_t tokenizer_vocab_size(const tokenizer *t)
{
    return t->bpe.n_ids;
}

str tokenizer_bytes(const tokenizer *t, int32_t id)
{
    const bool exists = id >= 0 && id < t->bpe.n_ids && t->bpe.bytes[id].ptr;
    return exists ? t->bpe.bytes[id] : STR("");
}

bool tokenizer_is_special(const tokenizer *t, int32_t id)
{
    const added_token *a = added_by_id(&t->added, id);
    return a && a->special;
}

int32_t tokenizer_id(const tokenizer *t, str text)
{
    const added_token *a = added_by_text(&t->added, text);
    return a ? a->id : bpe_id(&t->bpe, text);
}

size_t tokenizer_added_count(const tokenizer *t)
{
    return t->added.n;
}

int32_t tokenizer_added_id(const tokenizer *t, size_t i)
{
    return t->added.items[i].id;
}
