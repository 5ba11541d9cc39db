/* answer.c - see answer.h. */
#include "cli/answer.h"

#include <stdio.h>

#include "base/sysmem.h"
#include "cli/interrupt.h"
#include "cli/result.h"
#include "cli/setup.h"
#include "base/banned.h"

enum { MOST_TEXT = 256 << 20, POLL_MS = 100 };

void answer_init(answer *a, progress *bar)
{
    *a = (answer){ .bar = bar };
    buf_init(&a->text, MOST_TEXT);
    buf_init(&a->reasoning, MOST_TEXT);
    buf_init(&a->calls, MOST_TEXT);
    buf_init(&a->arguments, MOST_TEXT);
    buf_char(&a->calls, '[');
}

void answer_free(answer *a)
{
    buf_free(&a->text);
    buf_free(&a->reasoning);
    buf_free(&a->calls);
    buf_free(&a->arguments);
}

/* ---- printing ---- */

static void print(answer *a, const char *s, size_t n)
{
    if (!a->print || n == 0) return;
    progress_clear(a->bar);
    fwrite(s, 1, n, stdout);
    fflush(stdout);
    a->printed = true;
}

static void print_text(answer *a, const char *s)
{
    print(a, s, strlen(s));
}

static void thinking(answer *a, const ingot_event *ev)
{
    buf_put(&a->reasoning, ev->text, ev->len);
    if (!a->show_thinking) return;
    if (!a->in_thinking) print_text(a, a->dim ? "\033[2m" : "<think>\n");
    a->in_thinking = true;
    print(a, ev->text, ev->len);
}

static void leave_thinking(answer *a)
{
    if (!a->in_thinking) return;
    a->in_thinking = false;
    print_text(a, a->dim ? "\033[0m\n\n" : "\n</think>\n\n");
}

static void call_begin(answer *a, const ingot_event *ev)
{
    jsonw w;
    if (a->n_calls++) buf_char(&a->calls, ',');
    jsonw_init(&w, &a->calls);
    buf_text(&a->calls, "{\"name\":");
    jsonw_str(&w, (str){ ev->text, ev->len });
    buf_text(&a->calls, ",\"arguments\":");
    buf_clear(&a->arguments);
}

static void call_end(answer *a)
{
    if (a->arguments.len) buf_add(&a->calls, buf_view(&a->arguments));
    else buf_text(&a->calls, "{}");
    buf_char(&a->calls, '}');
}

static void take(answer *a, const ingot_event *ev)
{
    if (ev->kind != INGOT_THINKING && ev->kind != INGOT_PROGRESS) leave_thinking(a);
    switch (ev->kind) {
    case INGOT_TEXT:
        buf_put(&a->text, ev->text, ev->len);
        print(a, ev->text, ev->len);
        break;
    case INGOT_THINKING: thinking(a, ev); break;
    case INGOT_TOOL_BEGIN:
        call_begin(a, ev);
        print_text(a, a->printed ? "\ntool call: " : "tool call: ");
        print(a, ev->text, ev->len);
        break;
    case INGOT_TOOL_ARGUMENTS:
        print_text(a, a->arguments.len ? "" : " ");
        buf_put(&a->arguments, ev->text, ev->len);
        print(a, ev->text, ev->len);
        break;
    case INGOT_TOOL_END: call_end(a); break;
    case INGOT_PROGRESS:
        a->bar->bytes = false;
        progress_draw(a->bar, "reading the prompt", (uint64_t)ev->done, (uint64_t)ev->total);
        break;
    case INGOT_END: a->end = *ev; break;
    }
}

status answer_run(answer *a, ingot_request *r, error *e)
{
    bool cancelled = false;
    for (;;) {
        ingot_event ev;
        const ingot_status s = ingot_next(r, &ev, POLL_MS);
        if (s == INGOT_OK) {
            take(a, &ev);
            if (ev.kind == INGOT_END) break;
        } else if (s != INGOT_E_AGAIN) {
            return error_set(e, (status)s, "generation ended without a result");
        }
        if (interrupt_seen() && !cancelled) {
            ingot_cancel(r);
            cancelled = true;
        }
    }
    progress_clear(a->bar);
    TRY(buf_status(&a->text, "answer", e));
    TRY(buf_status(&a->reasoning, "reasoning", e));
    TRY(buf_status(&a->calls, "tool calls", e));
    if (a->end.finish == INGOT_FINISH_ERROR) return error_set(e, E_BUG, "%s", a->end.error);
    if (a->end.finish == INGOT_FINISH_CANCELLED) return error_set(e, E_CANCELLED, "interrupted");
    return OK;
}

/* ---- reports ---- */

static const char *finish_name(ingot_finish f)
{
    static const char *const names[] = { "stop", "length", "tool_calls", "cancelled", "error" };
    return names[f];
}

void answer_explain(const answer *a)
{
    const bool cut = a->end.finish == INGOT_FINISH_LENGTH;
    if (cut && !a->text.len && !a->n_calls && a->reasoning.len)
        fprintf(stderr,
                "ingot: cut at %d tokens while it was still reasoning (see --max-tokens, "
                "--show-thinking, --no-thinking)\n",
                a->end.usage->completion_tokens);
    else if (cut)
        fprintf(stderr, "ingot: the answer was cut at %d tokens (see --max-tokens)\n",
                a->end.usage->completion_tokens);
}

static double rate(double n, double seconds)
{
    return seconds > 0 ? n / seconds : 0;
}

void answer_stats(const answer *a, const ingot_model *m)
{
    const ingot_usage *u = a->end.usage;
    const int read = u->prompt_tokens - u->cached_tokens;
    fprintf(stderr, "prompt     %d tokens (%d cached), %.2f s, %.1f tok/s\n", u->prompt_tokens,
            u->cached_tokens, u->prefill_s, rate(read, u->prefill_s));
    fprintf(stderr, "generated  %d tokens, %.2f s, %.1f tok/s, finish %s, seed %llu\n",
            u->completion_tokens, u->decode_s, rate(u->decoded_tokens, u->decode_s),
            finish_name(a->end.finish), (unsigned long long)u->seed);
    if (u->drafted > 0) {
        fprintf(stderr,
                "drafting   %d steps, %.2f tokens per step, %d of %d drafts accepted (%.0f %%), "
                "copied %d of %d\n",
                u->steps, rate(u->decoded_tokens, u->steps), u->accepted, u->drafted,
                100.0 * u->accepted / u->drafted, u->copy_accepted, u->copy_drafted);
        fprintf(stderr, "           by position:");
        for (int i = 0; i < INGOT_MAX_BLOCK && u->drafted_at[i]; i++)
            fprintf(stderr, " %.0f %%", 100.0 * u->accepted_at[i] / u->drafted_at[i]);
        fprintf(stderr, "\n           rows per step:");
        for (int i = 1; i <= INGOT_MAX_BLOCK; i++)
            if (u->blocks[i]) fprintf(stderr, " %d (%d times)", i, u->blocks[i]);
        fputc('\n', stderr);
    }
    if (u->plain_s > 0 && u->drafted > 0)
        fprintf(stderr, "plain      %.1f tok/s estimated: %.2f times that\n",
                rate(u->decoded_tokens, u->plain_s),
                u->decode_s > 0 ? u->plain_s / u->decode_s : 0);
    ingot_model_info info;
    ingot_model_get_info(m, &info);
    char peak[32];
    progress_bytes(peak, sysmem_peak_rss());
    fprintf(stderr, "machine    %s, %d threads (%s), peak memory %s\n", info.tier, info.threads,
            info.threads_why, peak);
}

static void json_usage(jsonw *w, const ingot_usage *u)
{
    jsonw_member_object(w, "usage");
    jsonw_member_i64(w, "prompt_tokens", u->prompt_tokens);
    jsonw_member_i64(w, "cached_tokens", u->cached_tokens);
    jsonw_member_i64(w, "completion_tokens", u->completion_tokens);
    jsonw_member_i64(w, "reasoning_tokens", u->reasoning_tokens);
    jsonw_member_i64(w, "total_tokens", u->prompt_tokens + u->completion_tokens);
    jsonw_end_object(w);
}

static void json_speculation(jsonw *w, const ingot_event *end)
{
    const ingot_usage *u = end->usage;
    jsonw_member_object(w, "speculation");
    jsonw_member_i64(w, "steps", u->steps);
    jsonw_member_i64(w, "drafted", u->drafted);
    jsonw_member_i64(w, "accepted", u->accepted);
    jsonw_member_i32s(w, "accepted_per_step", end->step_accepted, (size_t)u->steps);
    jsonw_member_i32s(w, "block", end->step_block, (size_t)u->steps);
    jsonw_end_object(w);
}

static void json_timing(jsonw *w, const ingot_usage *u)
{
    jsonw_member_object(w, "timing");
    jsonw_member_fixed(w, "queue_s", u->queue_s, 6);
    jsonw_member_fixed(w, "prefill_s", u->prefill_s, 6);
    jsonw_member_fixed(w, "decode_s", u->decode_s, 6);
    jsonw_member_fixed(w, "plain_s", u->plain_s, 6);
    jsonw_member_u64(w, "peak_rss_bytes", sysmem_peak_rss());
    jsonw_end_object(w);
}

status answer_json(answer *a, ingot_request *r, error *e)
{
    result out;
    jsonw *w = &out.w;
    int n_prompt;
    const ingot_usage *u = a->end.usage;
    const int32_t *prompt = ingot_prompt_ids(r, &n_prompt);
    result_begin(&out);
    jsonw_member_str(w, "text", buf_view(&a->text));
    jsonw_member_str(w, "reasoning", buf_view(&a->reasoning));
    buf_char(&a->calls, ']');
    jsonw_key(w, "tool_calls");
    jsonw_raw(w, buf_view(&a->calls));
    jsonw_member_i32s(w, "token_ids", a->end.ids, (size_t)a->end.n_ids);
    jsonw_member_i32s(w, "prompt_token_ids", prompt, (size_t)n_prompt);
    jsonw_member_text(w, "finish_reason", finish_name(a->end.finish));
    json_usage(w, u);
    json_speculation(w, &a->end);
    json_timing(w, u);
    jsonw_member_u64(w, "seed", u->seed);
    jsonw_member_text(w, "sha256", u->sha256);
    return result_end(&out, OK, e);
}
