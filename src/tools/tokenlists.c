/* tokenlists.c - see tokenlists.h. */
#include "tools/tokenlists.h"

#include "base/mem.h"
#include "base/banned.h"

enum { MOST_FILE_BYTES = 1 << 30 };

static status read_ids(tokenlists *s, int i, const json_node *array, const char *path, error *e)
{
    const size_t n = json_len(array);
    if (json_kind(array) != JSON_ARRAY || n == 0 || n > INT32_MAX)
        return error_set(e, E_FORMAT, "%s: sequence %d: found %s of %zu items, want token ids",
                         path, i, json_kind_name(array), n);
    s->len[i] = (int)n;
    s->ids[i] = mem_array(n, sizeof **s->ids);
    if (!s->ids[i]) return error_set(e, E_NOMEM, "%s: out of memory", path);
    for (size_t j = 0; j < n; j++) {
        int64_t id;
        if (!json_i64(json_at(array, j), &id) || id < 0 || id > INT32_MAX)
            return error_set(e, E_FORMAT, "%s: sequence %d: item %zu: found %s, want a token id",
                             path, i, j, json_kind_name(json_at(array, j)));
        s->ids[i][j] = (int32_t)id;
    }
    if (s->len[i] > s->longest) s->longest = s->len[i];
    s->total += n;
    return OK;
}

static status read_all(tokenlists *s, const json_node *root, const char *path, error *e)
{
    const json_node *list = json_get(root, "sequences");
    const bool single = json_kind(root) == JSON_ARRAY;
    const size_t n = single ? 1 : json_len(list);
    if (n == 0 || n > INT32_MAX || (!single && json_kind(list) != JSON_ARRAY))
        return error_set(
            e, E_FORMAT,
            "%s: found %s without sequences, want [ids] or {\"sequences\": [[ids], ...]}", path,
            json_kind_name(root));
    s->len = mem_array(n, sizeof *s->len);
    s->ids = mem_array(n, sizeof *s->ids);
    s->index = mem_array(n, sizeof *s->index);
    if (!s->len || !s->ids || !s->index) return error_set(e, E_NOMEM, "%s: out of memory", path);
    s->n = (int)n;
    for (int i = 0; i < s->n; i++) s->index[i] = i;
    for (int i = 0; i < s->n; i++)
        TRY(read_ids(s, i, single ? root : json_at(list, (size_t)i), path, e));
    return OK;
}

status tokenlists_read(tokenlists *s, const char *path, error *e)
{
    json_doc *doc;
    *s = (tokenlists){ 0 };
    TRY(json_parse_file(&doc, path, MOST_FILE_BYTES, 0, e));
    const status st = read_all(s, json_root(doc), path, e);
    json_free(doc);
    if (st) tokenlists_free(s);
    return st;
}

status tokenlists_keep_shard(tokenlists *s, int shard, int shards, const char *path, error *e)
{
    int kept = 0;
    for (int i = 0; i < s->n; i++) {
        if (shards && s->index[i] % shards != shard) {
            mem_free(s->ids[i]);
            s->total -= (uint64_t)s->len[i];
            continue;
        }
        s->index[kept] = s->index[i];
        s->ids[kept] = s->ids[i];
        if (s->answer) s->answer[kept] = s->answer[i];
        s->len[kept++] = s->len[i];
    }
    s->n = kept;
    if (kept) return OK;
    return error_set(e, E_ARG, "%s: no sequence for shard %d of %d", path, shard, shards);
}

status tokenlists_check(const tokenlists *s, const char *path, int n_vocab, int max_len, error *e)
{
    for (int i = 0; i < s->n; i++) {
        if (s->len[i] > max_len)
            return error_set(e, E_LIMIT,
                             "%s: sequence %d: found %d tokens, want at most the context of %d",
                             path, i, s->len[i], max_len);
        for (int j = 0; j < s->len[i]; j++)
            if (s->ids[i][j] >= n_vocab)
                return error_set(e, E_FORMAT,
                                 "%s: sequence %d: item %d: found id %d, want one below %d", path,
                                 i, j, s->ids[i][j], n_vocab);
    }
    return OK;
}

void tokenlists_free(tokenlists *s)
{
    for (int i = 0; s->ids && i < s->n; i++) mem_free(s->ids[i]);
    mem_free(s->ids);
    mem_free(s->len);
    mem_free(s->index);
    mem_free(s->answer);
    *s = (tokenlists){ 0 };
}
