/* workbench.c - what the engine's thread works with. */
#include "engine/workbench.h"
#include "base/banned.h"

status workbench_open(workbench *w, const workbench_parts *p, error *e)
{
    *w = (workbench){ .king = p->king,
                      .drafter = p->drafter,
                      .tokenizer = p->tokenizer,
                      .max_rows = p->max_rows,
                      .max_logits = p->max_logits };
    const king_config *kc = king_get_config(p->king);
    w->n_vocab = kc->n_vocab;
    const int32_t known = tokenizer_vocab_size(p->tokenizer);
    w->n_token = known < w->n_vocab ? known : w->n_vocab;
    const int *taps = NULL;
    int n_taps = 0;
    if (p->drafter) {
        w->draft = drafter_get_config(p->drafter);
        taps = w->draft->tap;
        n_taps = w->draft->n_tap;
        w->tap_width = n_taps * kc->n_embd;
    }
    status s = compute_open(&w->compute, &p->compute, e);
    if (s == OK)
        s = king_work_new(&w->king_work, p->king, p->max_rows, p->max_logits, taps, n_taps, e);
    if (s == OK && p->drafter) s = drafter_work_new(&w->drafter_work, p->drafter, p->max_rows, e);
    if (s == OK) s = sampler_work_init(&w->sampler, w->n_vocab, e);
    if (s) workbench_close(w);
    return s;
}

void workbench_close(workbench *w)
{
    sampler_work_free(&w->sampler);
    if (w->drafter_work) drafter_work_free(w->drafter_work);
    if (w->king_work) king_work_free(w->king_work);
    if (w->compute) compute_close(w->compute);
    *w = (workbench){ 0 };
}

size_t workbench_bytes(const workbench_parts *p)
{
    const drafter_config *d = p->drafter ? drafter_get_config(p->drafter) : NULL;
    size_t bytes = king_work_bytes(king_get_config(p->king), king_act_bytes(p->king, p->max_rows),
                                   p->max_rows, p->max_logits, d ? d->n_tap : 0);
    if (p->drafter) bytes += drafter_work_bytes(p->drafter, p->max_rows);
    return bytes + sampler_work_bytes(king_get_config(p->king)->n_vocab);
}
