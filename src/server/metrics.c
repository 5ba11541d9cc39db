/* metrics.c - see metrics.h. Format: Prometheus text exposition 0.0.4; base units, names as
 * docs/http-api.md lists them. */
#include "server/metrics.h"

#include "base/sysmem.h"
#include "server/routes.h"
#include "base/banned.h"

static const double bounds[METRICS_BUCKETS] = { 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                                1,     2.5,  5,     10,   30,  60,   300 };

void metrics_observe(histogram *h, double seconds)
{
    int i = 0;
    while (i < METRICS_BUCKETS && seconds > bounds[i]) i++;
    h->buckets[i]++;
    h->sum += seconds;
    h->count++;
}

static void head(buf *out, const char *name, const char *type, const char *help)
{
    buf_printf(out, "# HELP ingot_%s %s\n# TYPE ingot_%s %s\n", name, help, name, type);
}

static void whole(buf *out, const char *name, const char *type, const char *help, uint64_t v)
{
    head(out, name, type, help);
    buf_printf(out, "ingot_%s %llu\n", name, (unsigned long long)v);
}

static void real(buf *out, const char *name, const char *help, double v)
{
    head(out, name, "counter", help);
    buf_printf(out, "ingot_%s %.6f\n", name, v);
}

static void write_histogram(buf *out, const char *name, const char *help, const histogram *h)
{
    uint64_t so_far = 0;
    head(out, name, "histogram", help);
    for (int i = 0; i < METRICS_BUCKETS; i++) {
        so_far += h->buckets[i];
        buf_printf(out, "ingot_%s_bucket{le=\"%g\"} %llu\n", name, bounds[i],
                   (unsigned long long)so_far);
    }
    buf_printf(out, "ingot_%s_bucket{le=\"+Inf\"} %llu\ningot_%s_sum %.6f\ningot_%s_count %llu\n",
               name, (unsigned long long)h->count, name, h->sum, name,
               (unsigned long long)h->count);
}

static void write_requests(const metrics *m, buf *out)
{
    static const char *const outcomes[] = { "ok", "refused", "failed", "cancelled" };
    head(out, "requests_total", "counter", "Requests answered, by route and outcome.");
    for (int r = 0; r < METRICS_ROUTES; r++)
        for (int o = 0; o < OUTCOME_COUNT; o++)
            if (m->requests[r][o])
                buf_printf(out, "ingot_requests_total{route=\"%s\",outcome=\"%s\"} %llu\n",
                           routes_name(r), outcomes[o], (unsigned long long)m->requests[r][o]);
}

static void write_engine(const ingot_stats *s, buf *out)
{
    whole(out, "requests_running", "gauge", "Choices being generated.", (uint64_t)s->running);
    whole(out, "requests_queued", "gauge", "Choices waiting for a place.", (uint64_t)s->queued);
    whole(out, "prompt_tokens_total", "counter", "Prompt tokens, cached ones included.",
          s->prompt_tokens);
    whole(out, "cached_tokens_total", "counter", "Prompt tokens found in the prefix cache.",
          s->cached_tokens);
    whole(out, "generated_tokens_total", "counter", "Tokens generated.", s->generated_tokens);
    whole(out, "reasoning_tokens_total", "counter", "Of these, tokens of reasoning.",
          s->reasoning_tokens);
    real(out, "prefill_seconds_total", "Time spent reading prompts.", s->prefill_s);
    real(out, "decode_seconds_total", "Time spent generating.", s->decode_s);
    real(out, "plain_seconds_estimate_total", "Estimate of the same without drafting.", s->plain_s);
    whole(out, "steps_total", "counter", "Passes of the king.", s->passes);
    whole(out, "step_rows_total", "counter", "Rows in those passes, prompts included.",
          s->pass_rows);
    whole(out, "draft_tokens_total", "counter", "Tokens drafted.", s->drafted);
    whole(out, "draft_accepted_total", "counter", "Drafted tokens that the king agreed to.",
          s->accepted);
    head(out, "draft_accepted_by_position_total", "counter", "The same by position in the block.");
    for (int i = 0; i < INGOT_MAX_BLOCK; i++)
        if (s->accepted_at[i])
            buf_printf(out, "ingot_draft_accepted_by_position_total{position=\"%d\"} %llu\n", i + 1,
                       (unsigned long long)s->accepted_at[i]);
    head(out, "prefix_cache_lookups_total", "counter", "Look-ups in the prefix cache, by result.");
    buf_printf(out, "ingot_prefix_cache_lookups_total{result=\"hit\"} %llu\n",
               (unsigned long long)(s->cache_hits - s->cache_partial));
    buf_printf(out, "ingot_prefix_cache_lookups_total{result=\"partial\"} %llu\n",
               (unsigned long long)s->cache_partial);
    buf_printf(out, "ingot_prefix_cache_lookups_total{result=\"miss\"} %llu\n",
               (unsigned long long)(s->cache_lookups - s->cache_hits));
    whole(out, "prefix_cache_bytes", "gauge", "Memory held by the prefix cache.", s->cache_bytes);
    whole(out, "prefix_cache_disk_bytes", "gauge", "Files of the prefix cache on disk.",
          s->cache_disk_bytes);
    whole(out, "prefix_cache_disk_loads_total", "counter", "Entries brought in from disk.",
          s->cache_disk_loads);
    whole(out, "prefix_cache_disk_failures_total", "counter",
          "Files that were dropped or could not be written.", s->cache_disk_failures);
    whole(out, "preemptions_total", "counter", "Times a choice was put back for want of memory.",
          s->preempted);
    head(out, "kv_pages", "gauge", "Pages of keys and values, by state.");
    buf_printf(out, "ingot_kv_pages{state=\"free\"} %d\ningot_kv_pages{state=\"used\"} %d\n",
               s->kv_pages_free, s->kv_pages_total - s->kv_pages_free);
    head(out, "memory_bytes", "gauge", "Memory by kind.");
    buf_printf(out, "ingot_memory_bytes{kind=\"king\"} %llu\n", (unsigned long long)s->king_bytes);
    buf_printf(out, "ingot_memory_bytes{kind=\"drafter\"} %llu\n",
               (unsigned long long)s->drafter_bytes);
    buf_printf(out, "ingot_memory_bytes{kind=\"engine\"} %llu\n",
               (unsigned long long)s->engine_bytes);
    buf_printf(out, "ingot_memory_bytes{kind=\"resident\"} %llu\n",
               (unsigned long long)sysmem_rss());
}

void metrics_write(const metrics *m, ingot_engine *g, const ingot_model_info *info, int connections,
                   buf *out)
{
    ingot_stats s;
    ingot_engine_get_stats(g, &s);
    write_requests(m, out);
    write_engine(&s, out);
    write_histogram(out, "time_to_first_token_seconds", "From the request to its first token.",
                    &m->first_token_s);
    write_histogram(out, "time_per_output_token_seconds", "Decode time by token, per request.",
                    &m->per_token_s);
    write_histogram(out, "queue_seconds", "Time waiting for a place.", &m->queue_s);
    whole(out, "client_disconnects_total", "counter",
          "Clients that left before their answer was complete.", m->disconnects);
    whole(out, "connections", "gauge", "Open connections.", (uint64_t)connections);
    head(out, "build_info", "gauge", "Version, instruction set and threads.");
    buf_printf(out, "ingot_build_info{version=\"%s\",tier=\"%s\",threads=\"%d\"} 1\n",
               ingot_version(), info->tier, info->threads);
}
