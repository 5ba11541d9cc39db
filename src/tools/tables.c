/* tables.c - see tables.h. */
#include "tools/tables.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/banned.h"

enum { PIECE = 256 }; /* rows at once */

typedef struct tables {
    pack *pack;
    compute *c;
    safetensors_writer *writer;
    float *rows; /* [PIECE, n_embd] */
    loading_progress *progress;
    void *progress_arg;
    uint64_t done, total; /* rows */
} tables;

static status put_matrix(tables *t, const char *path, int index, error *e)
{
    const king_config *kc = pack_king(t->pack);
    const size_t row_bytes = sizeof(float) * (size_t)kc->n_embd;
    matrix m;
    TRY(pack_matrix(t->pack, path, kc->n_vocab, kc->n_embd, &m, e));
    const rotation rot = { m.block, m.signs };
    for (int at = 0; at < kc->n_vocab; at += PIECE) {
        int32_t ids[PIECE];
        const int n = kc->n_vocab - at < PIECE ? kc->n_vocab - at : PIECE;
        for (int i = 0; i < n; i++) ids[i] = at + i;
        compute_embed(t->c, t->rows, &m, &rot, ids, n);
        TRY(safetensors_writer_put(t->writer, index, row_bytes * (uint64_t)at, t->rows,
                                   row_bytes * (size_t)n, e));
        t->done += (uint64_t)n;
        if (t->progress) t->progress(t->progress_arg, "tables", t->done, t->total);
    }
    return OK;
}

static status open_all(tables *t, const char *folder, int threads, error *e)
{
    TRY(pack_open(&t->pack, folder, NULL, e));
    if (!pack_king(t->pack))
        return error_set(e, E_UNSUPPORTED, "%s: found a drafter, want a king", folder);
    TRY(compute_open(&t->c, &(compute_options){ .threads = threads }, e));
    t->total = 2 * (uint64_t)pack_king(t->pack)->n_vocab;
    t->rows = mem_array(PIECE * (size_t)pack_king(t->pack)->n_embd, sizeof *t->rows);
    return t->rows ? OK : error_set(e, E_NOMEM, "tables: out of memory");
}

static status write_all(tables *t, const char *out, error *e)
{
    const king_config *kc = pack_king(t->pack);
    const int64_t shape[2] = { kc->n_vocab, kc->n_embd };
    char layers[16];
    snprintf(layers, sizeof layers, "%d", kc->n_layer);
    TRY(safetensors_writer_new(&t->writer, e));
    TRY(safetensors_writer_declare(t->writer, STR("embedding"), DTYPE_F32, 2, shape, NULL, e));
    TRY(safetensors_writer_declare(t->writer, STR("head"), DTYPE_F32, 2, shape, NULL, e));
    TRY(safetensors_writer_metadata(t->writer, STR("king"), str_from(pack_identity(t->pack)), e));
    TRY(safetensors_writer_metadata(t->writer, STR("layers"), str_from(layers), e));
    TRY(safetensors_writer_begin(t->writer, out, e));
    TRY(put_matrix(t, "model.embed_tokens", 0, e));
    TRY(put_matrix(t, "lm_head", 1, e));
    safetensors_writer *w = t->writer;
    t->writer = NULL;
    return safetensors_writer_commit(w, e);
}

status tables_write(const char *folder, const char *out, int threads, loading_progress *progress,
                    void *progress_arg, error *e)
{
    tables t = { .progress = progress, .progress_arg = progress_arg };
    status s = open_all(&t, folder, threads, e);
    if (s == OK) s = write_all(&t, out, e);
    if (t.writer) safetensors_writer_abort(t.writer);
    if (t.c) compute_close(t.c);
    if (t.pack) pack_close(t.pack);
    mem_free(t.rows);
    return s;
}
