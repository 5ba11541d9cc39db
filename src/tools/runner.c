/* runner.c - see runner.h. */
#include "tools/runner.h"

#include "base/mem.h"
#include "base/banned.h"

status runner_open(runner *r, const runner_options *o, error *e)
{
    *r = (runner){ .king_path = o->king };
    const compute_options co = { o->cpu, o->threads };
    loading_watch watch = { o->progress, o->tiles.notice, o->progress_arg };
    const load_options ko = loading_of(o->f32 ? COMPUTE_F32 : COMPUTE_INT8, &o->tiles, &watch);
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
