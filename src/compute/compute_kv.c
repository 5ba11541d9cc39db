/* compute_kv.c - attention over pages of keys and values: stored, attended, read back; see
 * compute.h. */
#include <string.h>
#include "compute/units.h"
#include "base/banned.h"

enum { ATTN_ROWS = 64 }; /* rows that share a pass over the keys */

status compute_kv_type(kv_type *out, const char *name, error *e)
{
    *out = KV_F16;
    if (!name || strcmp(name, "f16") == 0) return OK;
    if (strcmp(name, "f32") == 0) *out = KV_F32;
    else if (strcmp(name, "q8") == 0) *out = KV_Q8;
    else return error_set(e, E_ARG, "kv type: found %s, want f16, f32 or q8", name);
    return OK;
}
status compute_kv_layout(kv_layout *l, kv_type type, int n_layer, int n_kv_head, int head_dim,
                         error *e)
{
    if (head_dim < 16 || head_dim > CPU_MAX_HEAD || head_dim % 16)
        return error_set(e, E_UNSUPPORTED,
                         "attention: head of %d values, want a multiple of 16 up to %d", head_dim,
                         CPU_MAX_HEAD);
    *l = (kv_layout){ type, n_layer, n_kv_head, head_dim, cpu_kv_bytes(type, head_dim), 0 };
    l->page_bytes = l->head_bytes * (size_t)n_kv_head * (size_t)n_layer;
    return OK;
}
static uint8_t *kv_block(const kv_layout *l, int layer, int head, uint8_t *const *pages,
                         int n_pages, int pos)
{
    return pages[pos / KV_PAGE % n_pages] +
           ((size_t)layer * (size_t)l->n_kv_head + (size_t)head) * l->head_bytes;
}

typedef struct attn_work {
    const attn_shape *s;
    const kv_layout *l;
    int layer;
    const float *k, *v;
    const attn_job *jobs;
    int n_jobs;
    /* attending */
    float *out;
    const float *q;
    size_t q_stride, q_head_stride;
    struct attn_entry {
        const attn_job *job;
        int row, rows;   /* of the job */
        int span, spans; /* first span that any of them sees, and how many */
        int unit, slot;  /* where its units and its rows begin in this round */
    } entries[ATTN_ROWS];
    int n_entries, rows, units;
    int round, round_spans; /* spans [round, round + round_spans) of each entry */
    float *max_sum, *parts; /* [rows][n_head][2]; [rows][n_head][round_spans][head_dim + 2] */
} attn_work;

static void store_units(const cpu_ops *ops, void *arg, int from, int to)
{
    const attn_work *w = arg;
    const kv_layout *l = w->l;
    int job = 0, before = 0; /* units of the jobs before `job` */
    for (int u = from; u < to; u++) {
        while (u >= before + w->jobs[job].rows * l->n_kv_head)
            before += w->jobs[job++].rows * l->n_kv_head;
        const attn_job *j = &w->jobs[job];
        const int row = (u - before) / l->n_kv_head, head = (u - before) % l->n_kv_head,
                  pos = j->pos + row;
        const size_t at =
            ((size_t)(j->row + row) * (size_t)l->n_kv_head + (size_t)head) * (size_t)l->head_dim;
        ops->kv_store(l->type, l->head_dim, kv_block(l, w->layer, head, j->pages, j->n_pages, pos),
                      pos % KV_PAGE, w->k + at, w->v + at);
    }
}
void compute_kv_store(compute *c, const kv_layout *l, int layer, const float *k, const float *v,
                      const attn_job *jobs, int n_jobs)
{
    attn_work w = { .l = l, .layer = layer, .k = k, .v = v, .jobs = jobs, .n_jobs = n_jobs };
    int rows = 0;
    for (int i = 0; i < n_jobs; i++) rows += jobs[i].rows;
    if (rows)
        units_run(c, store_units, &w, rows * l->n_kv_head,
                  4 * (size_t)rows * (size_t)l->n_kv_head * (size_t)l->head_dim);
}

/* Positions [*from, *to) that row `row` of a job sees. */
static void visible(const attn_shape *s, const attn_job *j, int row, int *from, int *to)
{
    /* lowest position inside the window */
    const int64_t edge = (int64_t)j->pos + row - s->window + 1;
    *from = edge > j->first ? (edge < j->pos ? (int)edge : j->pos) : j->first;
    *to = s->causal ? j->pos + row + 1 : j->pos + j->rows;
}
static float *attn_part(const attn_work *w, int slot, int head, int span)
{
    const size_t at =
        ((size_t)slot * (size_t)w->s->n_head + (size_t)head) * (size_t)w->round_spans +
        (size_t)span;
    return w->parts + at * (size_t)(w->l->head_dim + 2);
}
static void attend_queries(const cpu_ops *ops, const attn_work *w, uint8_t *const *blocks,
                           const cpu_query *q, int n)
{
    if (n) ops->attend(w->l->type, w->l->head_dim, blocks, q, n);
}
/* All queries of an entry over one span of one kv head. A part whose span a row does not see has
 * sum 0. */
static void attend_unit(const cpu_ops *ops, const attn_work *w, const struct attn_entry *n,
                        int head, int span)
{
    const kv_layout *l = w->l;
    const int per = w->s->n_head / l->n_kv_head, dim = l->head_dim,
              base = (n->span + span) * CPU_SPAN;
    uint8_t *blocks[2 * CPU_SPAN / KV_PAGE]; /* of this span and the next */
    float scaled[CPU_QUERIES][CPU_MAX_HEAD];
    cpu_query q[CPU_QUERIES];
    int count = 0, first, last, unused;
    visible(w->s, n->job, n->row, &first, &unused);
    visible(w->s, n->job, n->row + n->rows - 1, &unused, &last);
    for (int i = 0; i < 2 * CPU_SPAN / KV_PAGE; i++) {
        const int pos = base + i * KV_PAGE; /* pages that nobody sees may not exist */
        blocks[i] = pos + KV_PAGE > first && pos < last
                        ? kv_block(l, w->layer, head, n->job->pages, n->job->n_pages, pos)
                        : NULL;
    }
    for (int r = 0; r < n->rows; r++) {
        int from, to;
        visible(w->s, n->job, n->row + r, &from, &to);
        from = from > base ? from - base : 0;
        to = to < base + CPU_SPAN ? to - base : CPU_SPAN;
        for (int h = head * per; h < (head + 1) * per; h++) {
            float *part = attn_part(w, n->slot + r, h, span - w->round);
            part[dim + 1] = 0;
            if (from >= to) continue;
            const float *x = w->q + (size_t)(n->job->row + n->row + r) * w->q_stride +
                             (size_t)h * w->q_head_stride;
            for (int d = 0; d < dim; d++) scaled[count][d] = x[d] * w->s->scale;
            q[count] = (cpu_query){ scaled[count], from, to, part, part + dim };
            if (++count < CPU_QUERIES) continue;
            attend_queries(ops, w, blocks, q, count);
            count = 0;
        }
    }
    attend_queries(ops, w, blocks, q, count);
}
static int entry_spans(const attn_work *w, const struct attn_entry *n)
{
    const int left = n->spans - w->round;
    return left < 0 ? 0 : left < w->round_spans ? left : w->round_spans;
}
static void attend_units(const cpu_ops *ops, void *arg, int from, int to)
{
    const attn_work *w = arg;
    int i = 0;
    for (int u = from; u < to; u++) {
        while (i + 1 < w->n_entries && u >= w->entries[i + 1].unit) i++;
        const struct attn_entry *n = &w->entries[i];
        const int spans = entry_spans(w, n), at = u - n->unit;
        attend_unit(ops, w, n, at / spans, w->round + at % spans);
    }
}
static void merge_units(const cpu_ops *ops, void *arg, int from, int to)
{
    const attn_work *w = arg;
    const int dim = w->l->head_dim, heads = w->s->n_head;
    int i = 0;
    for (int u = from; u < to; u++) {
        const int slot = u / heads, head = u % heads;
        while (i + 1 < w->n_entries && slot >= w->entries[i + 1].slot) i++;
        const struct attn_entry *n = &w->entries[i];
        const size_t row = (size_t)(n->job->row + n->row + slot - n->slot);
        float *out = w->out + (row * (size_t)heads + (size_t)head) * (size_t)dim,
              *max_sum = w->max_sum + 2 * u;
        if (w->round == 0) max_sum[1] = 0;
        for (int s = 0; s < entry_spans(w, n); s++) {
            const float *part = attn_part(w, slot, head, s);
            if (part[dim + 1] != 0) ops->attend_merge(out, max_sum, part, part + dim, dim);
        }
        if (w->round < n->spans && w->round + w->round_spans >= n->spans)
            ops->attend_end(out, max_sum, dim);
    }
}
/* The entries collected so far: as many spans a round as the scratch holds, rounds in ascending
 * order. */
static void attend_batch(compute *c, attn_work *w)
{
    const size_t heads = (size_t)w->rows * (size_t)w->s->n_head, part = (size_t)w->l->head_dim + 2;
    const size_t room = UNITS_SCRATCH / sizeof(float) - 2 * heads;
    int most = 0;
    w->max_sum = c->scratch;
    w->parts = c->scratch + 2 * heads;
    w->round_spans = (int)(room / (heads * part));
    for (int i = 0; i < w->n_entries; i++)
        most = w->entries[i].spans > most ? w->entries[i].spans : most;
    for (w->round = 0; w->round < most; w->round += w->round_spans) {
        size_t work = 0;
        int units = 0;
        for (int i = 0; i < w->n_entries; i++) {
            struct attn_entry *n = &w->entries[i];
            n->unit = units;
            units += w->l->n_kv_head * entry_spans(w, n);
            work += (size_t)n->rows * (size_t)w->s->n_head * (size_t)entry_spans(w, n) * CPU_SPAN;
        }
        units_run(c, attend_units, w, units, work * (size_t)w->l->head_dim / 16);
        units_run(c, merge_units, w, (int)heads, heads * (size_t)w->l->head_dim);
    }
    w->n_entries = w->rows = 0;
}
/* Rows that share a unit: enough queries to fill one call of the tier. */
static int rows_per_entry(const attn_work *w)
{
    const int rows = CPU_QUERIES / (w->s->n_head / w->l->n_kv_head);
    return rows < 1 ? 1 : rows;
}
void compute_kv_attend(compute *c, const attn_shape *s, const kv_layout *l, int layer, float *out,
                       const float *q, size_t q_stride, size_t q_head_stride, const float *k,
                       const float *v, const attn_job *jobs, int n_jobs)
{
    attn_work w = { .s = s,
                    .l = l,
                    .layer = layer,
                    .jobs = jobs,
                    .n_jobs = n_jobs,
                    .out = out,
                    .q = q,
                    .q_stride = q_stride,
                    .q_head_stride = q_head_stride };
    const size_t row_floats = (size_t)s->n_head * ((size_t)l->head_dim + 4);
    size_t limit = UNITS_SCRATCH / sizeof(float) / row_floats;
    CHECK(s->n_head % l->n_kv_head == 0 && s->window >= 1 && limit >= 1);
    if (limit > ATTN_ROWS) limit = ATTN_ROWS;
    compute_kv_store(c, l, layer, k, v, jobs, n_jobs);
    for (int i = 0; i < n_jobs; i++) {
        for (int row = 0; row < jobs[i].rows;) {
            int rows = jobs[i].rows - row, from, to, unused;
            if (rows > rows_per_entry(&w)) rows = rows_per_entry(&w);
            if (rows > (int)limit - w.rows) rows = (int)limit - w.rows;
            visible(s, &jobs[i], row, &from, &unused);
            visible(s, &jobs[i], row + rows - 1, &unused, &to);
            const int span = from / CPU_SPAN;
            w.entries[w.n_entries++] =
                (struct attn_entry){ &jobs[i], row,   rows, span, (to - 1) / CPU_SPAN - span + 1,
                                     0,        w.rows };
            w.rows += rows;
            row += rows;
            if (w.rows == (int)limit) attend_batch(c, &w);
        }
    }
    if (w.rows) attend_batch(c, &w);
}
void compute_kv_read(const kv_layout *l, int layer, bool values, uint8_t *const *pages, int n_pages,
                     int n, float *out)
{
    const int dim = l->head_dim;
    const dtype t = l->type == KV_F16 ? DTYPE_F16 : DTYPE_F32;
    for (int h = 0; h < l->n_kv_head; h++)
        for (int p = 0; p < n; p++) {
            const uint8_t *block = kv_block(l, layer, h, pages, n_pages, p);
            const int slot = p % KV_PAGE;
            float scale = 1;
            if (l->type == KV_Q8)
                memcpy(&scale,
                       block + cpu_kv_scales(l->type, dim) +
                           sizeof scale * (size_t)(values ? KV_PAGE + slot : slot),
                       sizeof scale);
            for (int d = 0; d < dim; d++, out++) {
                const int at = values ? KV_PAGE * dim + slot * dim + d
                                      : (slot / 16 * dim + d) * 16 + slot % 16;
                const uint8_t *element = block + (size_t)at * cpu_kv_element(l->type);
                if (l->type == KV_Q8) *out = scale * (float)(int8_t)*element;
                else dtype_decode(t, element, 1, out);
            }
        }
}
