/* capture.c - see capture.h. */
#include "tools/capture.h"

#include <stdio.h>

#include "base/f64.h"
#include "base/mem.h"
#include "base/banned.h"

typedef struct tensors {
    int tokens, answer, logits, top_ids, top_logits, lse; /* indices in the file; -1: not stored */
    int hidden; /* of the first kept layer; the others follow */
} tensors;

typedef struct capture {
    const capture_options *o;
    runner run;
    tokenlists read, in; /* in: those of this run, borrowed */
    runner_layers hidden;
    safetensors_writer *writer;
    tensors *out; /* [in.n] */
    int32_t *top_ids;
    float *top_logits;
    uint64_t done;
    /* the pass under way, for the hook */
    int sequence, row;
    status failed;
    error *e;
} capture;

/* ---- the result file ---- */

/* columns 0: a vector */
static status declare(capture *p, int i, const char *part, dtype type, int64_t rows,
                      int64_t columns, int *index, error *e)
{
    char name[64];
    const int64_t shape[2] = { rows, columns };
    snprintf(name, sizeof name, "seq%d.%s", p->in.index[i], part);
    return safetensors_writer_declare(p->writer, str_from(name), type, columns ? 2 : 1, shape,
                                      index, e);
}

static status declare_sequence(capture *p, int i, error *e)
{
    const king_config *kc = king_get_config(p->run.k);
    const int rows = p->in.len[i], n = p->o->logits;
    tensors *out = &p->out[i];
    *out = (tensors){ -1, -1, -1, -1, -1, -1, -1 };
    TRY(declare(p, i, "tokens", DTYPE_I32, rows, 0, &out->tokens, e));
    if (p->in.answer) TRY(declare(p, i, "answer", DTYPE_I32, 1, 0, &out->answer, e));
    if (n == CAPTURE_ALL || n == CAPTURE_LAST)
        TRY(declare(p, i, "logits", DTYPE_F32, n == CAPTURE_ALL ? rows : 1, kc->n_vocab,
                    &out->logits, e));
    if (n > 0) {
        TRY(declare(p, i, "top_ids", DTYPE_I32, rows, n, &out->top_ids, e));
        TRY(declare(p, i, "top_logits", DTYPE_F32, rows, n, &out->top_logits, e));
        TRY(declare(p, i, "lse", DTYPE_F64, rows, 0, &out->lse, e));
    }
    for (int k = 0; k < p->hidden.n; k++) {
        char part[32];
        int index;
        snprintf(part, sizeof part, "hidden.%d", p->hidden.list[k]);
        TRY(declare(p, i, part, DTYPE_F32, rows, kc->n_embd, &index, e));
        if (k == 0) out->hidden = index;
    }
    return OK;
}

static void keep_hidden(void *arg, int layer, const float *h, int rows)
{
    capture *p = arg;
    int k = 0;
    while (k < p->hidden.n && p->hidden.list[k] != layer) k++;
    if (p->failed || k == p->hidden.n) return;
    const uint64_t row_bytes = sizeof(float) * (uint64_t)king_get_config(p->run.k)->n_embd;
    const int index = p->out[p->sequence].hidden + k;
    p->failed = safetensors_writer_put(p->writer, index, row_bytes * (uint64_t)p->row, h,
                                       row_bytes * (uint64_t)rows, p->e);
}

double capture_lse(const float *x, int n, float most)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += f64_exp((double)x[i] - (double)most);
    return (double)most + f64_log(sum);
}

static status put_top(capture *p, const float *logits, uint64_t row, error *e)
{
    const tensors *out = &p->out[p->sequence];
    const int vocab = king_get_config(p->run.k)->n_vocab, n = p->o->logits;
    const uint64_t bytes = sizeof(float) * (uint64_t)n;
    compute_topk(p->run.c, logits, vocab, n, p->top_ids, p->top_logits);
    const double lse = capture_lse(logits, vocab, p->top_logits[0]);
    TRY(safetensors_writer_put(p->writer, out->top_ids, row * bytes, p->top_ids, bytes, e));
    TRY(safetensors_writer_put(p->writer, out->top_logits, row * bytes, p->top_logits, bytes, e));
    return safetensors_writer_put(p->writer, out->lse, row * sizeof lse, &lse, sizeof lse, e);
}

static status put_logits(capture *p, const float *logits, int rows, error *e)
{
    const size_t vocab = (size_t)king_get_config(p->run.k)->n_vocab;
    const uint64_t bytes = sizeof(float) * (uint64_t)vocab * (uint64_t)rows;
    const tensors *out = &p->out[p->sequence];
    if (p->o->logits == CAPTURE_LAST)
        return safetensors_writer_put(p->writer, out->logits, 0, logits, bytes, e);
    if (p->o->logits == CAPTURE_ALL)
        return safetensors_writer_put(p->writer, out->logits,
                                      bytes / (uint64_t)rows * (uint64_t)p->row, logits, bytes, e);
    for (int r = 0; r < rows; r++)
        TRY(put_top(p, logits + (size_t)r * vocab, (uint64_t)(p->row + r), e));
    return OK;
}

/* ---- running ---- */

static status run_chunk(capture *p, int n, error *e)
{
    const int32_t *ids = p->in.ids[p->sequence] + p->row;
    const bool last = p->row + n == p->in.len[p->sequence];
    const int logits_from = p->o->logits == CAPTURE_NONE   ? n
                            : p->o->logits != CAPTURE_LAST ? 0
                            : last                         ? n - 1
                                                           : n;
    const king_hook hook = { .hidden = keep_hidden, .arg = p };
    const float *logits;
    TRY(safetensors_writer_put(p->writer, p->out[p->sequence].tokens,
                               sizeof *ids * (uint64_t)p->row, ids, sizeof *ids * (uint64_t)n, e));
    TRY(runner_run(&p->run, ids, n, logits_from, &hook, &logits, e));
    TRY(p->failed);
    if (logits_from < n) TRY(put_logits(p, logits, n - logits_from, e));
    p->row += n;
    p->done += (uint64_t)n;
    if (p->o->progress) p->o->progress(p->o->progress_arg, "running", p->done, p->in.total);
    return OK;
}

static status open_all(capture *p, error *e)
{
    const capture_options *o = p->o;
    if (file_same(o->tokens, o->out))
        return error_set(e, E_ARG, "--out: %s is the file that is read", o->out);
    if (!o->given) {
        TRY(tokenlists_read(&p->read, o->tokens, e));
        TRY(tokenlists_keep_shard(&p->read, o->shard, o->shards, o->tokens, e));
    }
    p->in = o->given ? *o->given : p->read;
    const runner_options ro = { .king = o->king,
                                .f32 = o->f32,
                                .cpu = o->cpu,
                                .threads = o->threads,
                                .max_len = p->in.longest,
                                .all_logits =
                                    o->logits != CAPTURE_LAST && o->logits != CAPTURE_NONE,
                                .progress = o->progress,
                                .progress_arg = o->progress_arg,
                                .tiles = o->tiles };
    TRY(runner_open(&p->run, &ro, e));
    const king_config *kc = king_get_config(p->run.k);
    TRY(tokenlists_check(&p->in, o->tokens, kc->n_vocab, kc->max_positions, e));
    if (o->logits > kc->n_vocab)
        return error_set(e, E_ARG, "--logits: found top%d, want at most the vocabulary of %d",
                         o->logits, kc->n_vocab);
    p->hidden = o->hidden;
    TRY(runner_find_layers(&p->hidden, kc->n_layer, e));
    const size_t n_top = o->logits > 0 ? (size_t)o->logits : 1;
    p->top_ids = mem_array(n_top, sizeof *p->top_ids);
    p->top_logits = mem_array(n_top, sizeof *p->top_logits);
    p->out = mem_array((size_t)p->in.n, sizeof *p->out);
    return p->top_ids && p->top_logits && p->out ? OK
                                                 : error_set(e, E_NOMEM, "capture: out of memory");
}

static status run_all(capture *p, error *e)
{
    TRY(open_all(p, e));
    TRY(safetensors_writer_new(&p->writer, e));
    for (int i = 0; i < p->in.n; i++) TRY(declare_sequence(p, i, e));
    TRY(safetensors_writer_metadata(p->writer, STR("mode"), p->o->f32 ? STR("f32") : STR("int8"),
                                    e));
    TRY(safetensors_writer_metadata(p->writer, STR("king"), str_from(pack_identity(p->run.pack)),
                                    e));
    TRY(safetensors_writer_begin(p->writer, p->o->out, e));
    for (int i = 0; i < p->in.n; i++) {
        runner_reset(&p->run);
        p->sequence = i;
        p->row = 0;
        if (p->in.answer)
            TRY(safetensors_writer_put(p->writer, p->out[i].answer, 0, &p->in.answer[i],
                                       sizeof p->in.answer[i], e));
        while (p->row < p->in.len[i]) {
            const int left = p->in.len[i] - p->row;
            TRY(run_chunk(p, left < RUNNER_CHUNK ? left : RUNNER_CHUNK, e));
        }
    }
    safetensors_writer *w = p->writer;
    p->writer = NULL;
    return safetensors_writer_commit(w, e);
}

status capture_run(const capture_options *o, capture_report *r, error *e)
{
    capture p = { .o = o, .e = e };
    const status s = run_all(&p, e);
    *r = (capture_report){ .sequences = p.in.n, .tokens = p.in.total };
    for (int i = 0; p.in.answer && i < p.in.n; i++)
        r->answer_tokens += (uint64_t)(p.in.len[i] - p.in.answer[i]);
    if (p.writer) safetensors_writer_abort(p.writer);
    runner_close(&p.run);
    tokenlists_free(&p.read);
    mem_free(p.top_ids);
    mem_free(p.top_logits);
    mem_free(p.out);
    return s;
}
