/* argument.c - see argument.h. */
#include "cli/argument.h"

#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/str.h"
#include "tools/runner.h"
#include "base/banned.h"

status argument_text(const char *path, size_t most, char **text, size_t *len, error *e)
{
    buf b;
    buf_init(&b, most);
    const status s = file_read(&b, path, e);
    if (s) {
        buf_free(&b);
        return s;
    }
    buf_put(&b, "", 0);
    *len = b.len;
    *text = buf_steal(&b);
    return *text ? OK : error_set(e, E_NOMEM, "%s: out of memory", path);
}

static bool list_layers(const char *text, runner_layers *out)
{
    for (const char *at = text; at; out->n++) {
        const char *comma = strchr(at, ',');
        const str item = comma ? (str){ at, (size_t)(comma - at) } : str_from(at);
        int64_t layer;
        if (!str_to_i64(item, &layer) || layer < 0 || layer >= RUNNER_MAX_LAYERS ||
            (out->n && layer <= out->list[out->n - 1]))
            return false;
        out->list[out->n] = (int)layer;
        at = comma ? comma + 1 : NULL;
    }
    return true;
}

status argument_layers(const char *text, runner_layers *out, error *e)
{
    int64_t n;
    *out = (runner_layers){ .every = strcmp(text, "all") == 0 };
    if (out->every || strcmp(text, "none") == 0) return OK;
    if (str_starts(str_from(text), STR("every=")) && str_to_i64(str_from(text + 6), &n) && n > 0 &&
        n <= RUNNER_MAX_LAYERS)
        out->every = (int)n;
    else if (!list_layers(text, out))
        return error_set(
            e, E_ARG, "--hidden: found %s, want every=N, all, none or rising layers I,J,...", text);
    return OK;
}

status argument_shard(const char *text, int *shard, int *shards, error *e)
{
    int64_t i = -1, n = 0;
    const char *slash = strchr(text, '/');
    if (!slash || !str_to_i64((str){ text, (size_t)(slash - text) }, &i) ||
        !str_to_i64(str_from(slash + 1), &n) || n < 1 || n > 1 << 20 || i < 0 || i >= n)
        return error_set(e, E_ARG, "--shard: found %s, want I/N with 0 <= I < N", text);
    *shard = (int)i;
    *shards = (int)n;
    return OK;
}
