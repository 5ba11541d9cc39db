/* runner.c - see runner.h. */
#include "tools/runner.h"

#include "base/mem.h"
#include "base/banned.h"

enum { MOST_FILE_BYTES = 1 << 30 };

static void loading(void *arg, uint64_t done, uint64_t total)
{
    const runner_watch *w = arg;
    if (w->progress) w->progress(w->arg, "loading king", done, total);
}

static void notice(void *arg, const char *text)
{
    const runner_watch *w = arg;
    if (w->notice) w->notice(w->arg, text);
}

load_options runner_loading(compute_mode mode, const runner_tiles *tiles, runner_watch *watch)
{
    return (load_options){ .mode = mode,
                           .folder = tiles->folder,
                           .tiles = tiles->keep ? LOAD_KEEP : LOAD_FIND,
                           .progress = loading,
                           .notice = notice,
                           .arg = watch };
}

status runner_open(runner *r, const runner_options *o, error *e)
{
    *r = (runner){ .king_path = o->king };
    const compute_options co = { o->cpu, o->threads };
    runner_watch watch = { o->progress, o->tiles.notice, o->progress_arg };
    const load_options ko = runner_loading(o->f32 ? COMPUTE_F32 : COMPUTE_INT8, &o->tiles, &watch);
    kv_layout layout;
    TRY(pack_open(&r->pack, o->king, NULL, e));
    if (!pack_king(r->pack))
        return error_set(e, E_UNSUPPORTED, "%s: found a drafter, want a king", o->king);
    TRY(compute_open(&r->c, &co, e));
    TRY(king_open(&r->k, r->pack, r->c, &ko, e));
    const king_config *kc = king_get_config(r->k);
    TRY(compute_kv_layout(&layout, o->f32 ? KV_F32 : KV_F16, kc->n_attention, kc->n_kv_head,
                          kc->head_dim, e));
    TRY(state_pool_new(&r->pages, &layout, o->max_len / KV_PAGE + 2, e));
    TRY(state_new(&r->state, kc, r->pages, o->max_len, e));
    return king_work_new(&r->work, r->k, RUNNER_CHUNK, o->all_logits ? RUNNER_CHUNK : 1, NULL, 0,
                         e);
}

void runner_known_cpus(char out[RUNNER_KNOWN_CPUS])
{
    compute_known_tiers(out);
}

status runner_check_cpu(const char *cpu, error *e)
{
    return compute_check_tier(cpu, e);
}

void runner_close(runner *r)
{
    if (r->work) king_work_free(r->work);
    if (r->state) state_free(r->state);
    if (r->pages) state_pool_free(r->pages);
    if (r->k) king_close(r->k);
    if (r->c) compute_close(r->c);
    if (r->pack) pack_close(r->pack);
    *r = (runner){ 0 };
}

void runner_reset(runner *r)
{
    state_reset(r->state);
}

status runner_run(runner *r, const int32_t *ids, int n, int logits_from, const king_hook *hook,
                  const float **logits, error *e)
{
    king_job job = { .state = r->state, .tokens = ids, .n = n, .logits_from = logits_from };
    TRY(state_begin(r->state, n, ROWS_FINAL, e));
    king_forward(r->k, r->c, r->work, &job, 1, hook);
    state_commit(r->state, n);
    if (job.bad_layer >= 0)
        return error_set(
            e, E_FORMAT, "%s: layer %d: values that are not finite at positions %d..%d",
            r->king_path, job.bad_layer, state_len(r->state) - n, state_len(r->state) - 1);
    *logits = job.logits;
    return OK;
}

status runner_find_layers(runner_layers *wanted, int n_layer, error *e)
{
    if (wanted->every) {
        wanted->n = 0;
        for (int i = wanted->every - 1; i < n_layer; i += wanted->every)
            wanted->list[wanted->n++] = i;
    }
    if (wanted->n == 0 || wanted->list[wanted->n - 1] < n_layer) return OK;
    return error_set(e, E_ARG, "--hidden: found layer %d, want layers 0 to %d",
                     wanted->list[wanted->n - 1], n_layer - 1);
}

/* ---- token files ---- */

static status read_ids(sequences *s, int i, const json_node *array, const char *path, error *e)
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

static status read_all(sequences *s, const json_node *root, const char *path, error *e)
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

status runner_read_sequences(sequences *s, const char *path, error *e)
{
    json_doc *doc;
    *s = (sequences){ 0 };
    TRY(json_parse_file(&doc, path, MOST_FILE_BYTES, 0, e));
    const status st = read_all(s, json_root(doc), path, e);
    json_free(doc);
    if (st) runner_free_sequences(s);
    return st;
}

status runner_keep_shard(sequences *s, int shard, int shards, const char *path, error *e)
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

status runner_check_sequences(const sequences *s, const char *path, int n_vocab, int max_len,
                              error *e)
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

void runner_free_sequences(sequences *s)
{
    for (int i = 0; s->ids && i < s->n; i++) mem_free(s->ids[i]);
    mem_free(s->ids);
    mem_free(s->len);
    mem_free(s->index);
    mem_free(s->answer);
    *s = (sequences){ 0 };
}
