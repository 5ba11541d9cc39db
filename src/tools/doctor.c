/* doctor.c - looks at every weight and every text file of a model folder. */
#include "tools/doctor.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include "base/file.h"
#include "base/mem.h"
#include "text/chat.h"
#include "text/tokenizer.h"
#include "tools/manifest.h"
#include "base/banned.h"

enum { MAX_LINES = 1 << 20 };

typedef struct doctor {
    const pack *p;
    doctor_report *r;
    void (*progress)(void *arg, uint64_t done, uint64_t total);
    void *arg;
    uint64_t done;
    float *row, *scales, *biases; /* as wide as the widest matrix */
} doctor;

static void fault(doctor_report *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void fault(doctor_report *r, const char *fmt, ...)
{
    if (r->faults == DOCTOR_MAX_FAULTS) return;
    char text[700];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    buf_printf(&r->lines, "fault: %s\n", text);
    r->faults++;
}

static int64_t first_not_finite(const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(x[i])) return i;
    return -1;
}

/* ---- weights ---- */

/* Dense rows, and elements of modes that have codes which are no numbers. */
static bool check_row(doctor *d, const matrix *m, int64_t row)
{
    matrix_row_f32(m, row, DTYPE_F32, d->row);
    const int64_t at = first_not_finite(d->row, m->in);
    if (at < 0) return true;
    fault(d->r, "%s: row %lld: weight %lld is %g", m->path, (long long)row, (long long)at,
          (double)d->row[at]);
    return false;
}

static bool check_scales(doctor *d, const matrix *m, int64_t row)
{
    const int64_t groups = m->in / m->format.group;
    const bool affine = m->format.mode == QUANT_AFFINE;
    matrix_row_scales(m, row, d->scales, affine ? d->biases : NULL);
    const int64_t s = first_not_finite(d->scales, groups);
    const int64_t b = affine ? first_not_finite(d->biases, groups) : -1;
    if (s < 0 && b < 0) return true;
    fault(d->r, "%s: row %lld: %s %lld is %g", m->path, (long long)row, s >= 0 ? "scale" : "bias",
          (long long)(s >= 0 ? s : b), (double)(s >= 0 ? d->scales[s] : d->biases[b]));
    return false;
}

/* A row of a king is -d, 0 or +d throughout, up to codes of 3. */
static bool check_ternary(doctor *d, const matrix *m, int64_t row)
{
    int64_t code3 = 0;
    const bool ternary = matrix_row_is_ternary(m, row, &code3);
    d->r->code3 += code3;
    if (ternary) return true;
    for (int64_t g = 0; g < m->in / m->format.group; g++) {
        if (d->biases[g] == -d->scales[g]) continue;
        fault(d->r, "%s: row %lld: bias %lld is %g, want %g, the negated scale", m->path,
              (long long)row, (long long)g, (double)d->biases[g], -(double)d->scales[g]);
        return false;
    }
    return true;
}

/* One finding a matrix: a broken file breaks many rows alike. */
static void check_matrix(doctor *d, const matrix *m)
{
    const bool king = pack_get_kind(d->p) == PACK_KING;
    const bool whole = m->format.mode == QUANT_DENSE || m->format.mode == QUANT_MXFP8;
    bool fine = true;
    for (int64_t row = 0; row < m->out && fine; row++) {
        if (m->format.mode != QUANT_DENSE) fine = check_scales(d, m, row);
        if (fine && whole) fine = check_row(d, m, row);
        if (fine && king && m->format.mode != QUANT_DENSE) fine = check_ternary(d, m, row);
    }
    d->r->weights += m->out * m->in;
    d->done += matrix_bytes(m);
    pack_drop(d->p, m);
    if (d->progress) d->progress(d->arg, d->done, pack_text_bytes(d->p));
}

static status check_values(doctor *d, const plan_entry *t, error *e)
{
    const int64_t n = plan_elements(t);
    float *x = mem_array((size_t)n, sizeof *x);
    if (!x) return error_set(e, E_NOMEM, "%s: no memory to read %s", pack_folder(d->p), t->name);
    const status s = pack_values(d->p, t->name, t->rank, t->shape, x, e);
    const int64_t at = s ? -1 : first_not_finite(x, n);
    if (at >= 0) fault(d->r, "%s: value %lld is %g", t->name, (long long)at, (double)x[at]);
    mem_free(x);
    return s;
}

static status check_weights(doctor *d, error *e)
{
    const plan *list = pack_plan(d->p);
    int64_t widest = 0;
    for (size_t i = 0; i < list->count; i++) {
        const plan_entry *t = &list->entries[i];
        if (t->is_matrix && t->shape[1] > widest) widest = t->shape[1];
    }
    d->row = mem_array((size_t)widest, sizeof *d->row);
    d->scales = mem_array((size_t)widest, sizeof *d->scales);
    d->biases = mem_array((size_t)widest, sizeof *d->biases);
    if (!d->row || !d->scales || !d->biases)
        return error_set(e, E_NOMEM, "%s: no memory to read rows", pack_folder(d->p));
    for (size_t i = 0; i < list->count; i++) {
        const plan_entry *t = &list->entries[i];
        matrix m;
        if (!t->is_matrix) {
            TRY(check_values(d, t, e));
            continue;
        }
        TRY(pack_matrix_of(d->p, t, &m, e));
        check_matrix(d, &m);
    }
    return OK;
}

/* ---- text files ---- */

static status check_tokenizer(const pack *p, doctor_report *r, error *e)
{
    tokenizer *t = NULL;
    error why = { 0 };
    const status s = tokenizer_open(&t, pack_folder(p), &why);
    if (s == E_NOMEM) return error_set(e, s, "%s", why.text);
    if (s) {
        fault(r, "%s", why.text);
        return OK;
    }
    const int n_vocab = pack_king(p)->n_vocab, n = (int)tokenizer_vocab_size(t);
    const generation_config *g = &pack_config(p)->generation;
    if (n > n_vocab) fault(r, "tokenizer: %d ids, but the model has %d rows", n, n_vocab);
    for (int i = 0; i < g->n_eos; i++) {
        if (tokenizer_bytes(t, g->eos[i]).len) continue;
        fault(r, "tokenizer: has no stop token %d", (int)g->eos[i]);
    }
    if (!g->n_eos) fault(r, "no config names a stop token");
    tokenizer_close(t);
    return OK;
}

/* Legal, but then a model may not know where its turns end. */
static status check_generation(const pack *p, doctor_report *r, error *e)
{
    char path[4096];
    TRY(file_join(path, sizeof path, pack_folder(p), "generation_config.json", e));
    if (!file_exists(path)) {
        buf_text(&r->lines,
                 "note: no generation_config.json: stop tokens are those of config.json alone\n");
    }
    return OK;
}

static status check_template(const pack *p, doctor_report *r, error *e)
{
    chat *c = NULL;
    error why = { 0 };
    const status s = chat_open(&c, pack_folder(p), &why);
    chat_free(c);
    if (s == E_NOMEM) return error_set(e, s, "%s", why.text);
    if (s) fault(r, "%s", why.text);
    return OK;
}

static void manifest_says(void *arg, const char *text)
{
    fault(arg, "%s", text);
}

status doctor_check(const pack *p, const pack *drafter,
                    void (*progress)(void *arg, uint64_t done, uint64_t total), void *arg,
                    doctor_report *r, error *e)
{
    *r = (doctor_report){ 0 };
    buf_init(&r->lines, MAX_LINES);
    doctor d = { .p = p, .r = r, .progress = progress, .arg = arg };
    status s = check_weights(&d, e);
    if (!s && pack_king(p)) s = check_tokenizer(p, r, e);
    if (!s && pack_king(p)) s = check_generation(p, r, e);
    if (!s && pack_king(p)) s = check_template(p, r, e);
    if (!s) s = manifest_check(pack_folder(p), manifest_says, r, progress, arg, e);
    error why = { 0 };
    if (!s && drafter && pack_king(p) && pack_drafter(drafter) &&
        config_check_pair(pack_drafter(drafter), pack_king(p), &why))
        fault(r, "%s", why.text);
    if (!s && r->code3)
        buf_printf(&r->lines, "note: %lld codes of value 3 (+2d)\n", (long long)r->code3);
    mem_free(d.row);
    mem_free(d.scales);
    mem_free(d.biases);
    return s ? s : buf_status(&r->lines, pack_folder(p), e);
}

void doctor_free(doctor_report *r)
{
    buf_free(&r->lines);
}
