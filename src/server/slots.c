/* slots.c - see slots.h. Numbers only: no prompt and no answer is shown. */
#include "server/slots.h"

#include "base/banned.h"

static const char *state_name(const ingot_place *p, bool ended)
{
    if (ended) return "ended";
    if (p->queued >= 0) return "queued";
    return p->tokens > 0 ? "decode" : "prefill";
}

static void open_slot(jsonw *w, const call *c, const char *request_id, double seconds)
{
    jsonw_object(w);
    jsonw_member_text(w, "id", c->id);
    jsonw_member_text(w, "request_id", request_id);
    jsonw_member_fixed(w, "seconds", seconds, 3);
}

static void write_choice(jsonw *w, const call *c, int i)
{
    ingot_place p;
    const int n = call_n(c);
    ingot_request_place(c->requests[i / n], i % n, &p);
    jsonw_member_i64(w, "choice", i);
    jsonw_member_text(w, "state", state_name(&p, c->choices[i].ended));
    jsonw_member_bool(w, "is_processing", p.queued < 0 && !c->choices[i].ended);
    if (p.queued >= 0) jsonw_member_i64(w, "queued", p.queued);
    jsonw_member_i64(w, "n_ctx", c->service->context);
    jsonw_member_i64(w, "n_prompt_tokens", p.prompt_tokens);
    jsonw_member_i64(w, "n_prompt_tokens_processed", p.prompt_done);
    jsonw_member_i64(w, "n_decoded", p.tokens);
    jsonw_member_i64(w, "block", p.block);
}

void slots_write(jsonw *w, const call *c, const char *request_id, double seconds, bool working)
{
    if (working) {
        open_slot(w, c, request_id, seconds);
        jsonw_member_text(w, "state", "received");
        jsonw_member_bool(w, "is_processing", false);
        jsonw_end_object(w);
        return;
    }
    for (int i = 0; i < c->n_choices; i++) {
        open_slot(w, c, request_id, seconds);
        write_choice(w, c, i);
        jsonw_end_object(w);
    }
}
