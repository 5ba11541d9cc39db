/* environment.c - see environment.h. */
#include "hub/environment.h"
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include "base/file.h"
#include "base/banned.h"

static const char *variable(const char *name, const char *older)
{
    const char *v = getenv(name);
    if ((!v || !*v) && older) v = getenv(older);
    return v && *v ? v : NULL;
}

static bool is_true(const char *name)
{
    static const char *const words[] = { "1", "on", "yes", "true" };
    const char *v = getenv(name);
    for (int i = 0; v && i < 4; i++)
        if (strcasecmp(v, words[i]) == 0) return true;
    return false;
}

bool environment_is_offline(void)
{
    return is_true("HF_HUB_OFFLINE") || is_true("TRANSFORMERS_OFFLINE");
}

void environment_endpoint(char out[ENVIRONMENT_MAX_PATH])
{
    const char *v = variable("HF_ENDPOINT", NULL);
    snprintf(out, ENVIRONMENT_MAX_PATH, "%s", v ? v : "https://huggingface.co");
    for (size_t n = strlen(out); n && out[n - 1] == '/'; n--) out[n - 1] = '\0';
}

static status home_of(char out[ENVIRONMENT_MAX_PATH], error *e)
{
    const char *given = variable("HF_HOME", NULL), *xdg = variable("XDG_CACHE_HOME", NULL);
    const char *home = variable("HOME", NULL);
    int n = 0;
    if (given) n = snprintf(out, ENVIRONMENT_MAX_PATH, "%s", given);
    else if (xdg) n = snprintf(out, ENVIRONMENT_MAX_PATH, "%s/huggingface", xdg);
    else if (home) n = snprintf(out, ENVIRONMENT_MAX_PATH, "%s/.cache/huggingface", home);
    else return error_set(e, E_ARG, "no place for downloads: want HF_HOME or HOME");
    if (n > 0 && n < ENVIRONMENT_MAX_PATH) return OK;
    return error_set(e, E_LIMIT, "HF_HOME: too long");
}

bool environment_token(char out[ENVIRONMENT_MAX_TOKEN])
{
    char path[ENVIRONMENT_MAX_PATH], home[ENVIRONMENT_MAX_PATH];
    const char *given = variable("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN");
    buf text;
    buf_init(&text, ENVIRONMENT_MAX_TOKEN);
    if (given) {
        buf_text(&text, given);
    } else if (!is_true("HF_HUB_DISABLE_IMPLICIT_TOKEN")) {
        const char *file = variable("HF_TOKEN_PATH", NULL);
        bool known = true;
        if (file) snprintf(path, sizeof path, "%s", file);
        else known = !home_of(home, NULL) && !file_join(path, sizeof path, home, "token", NULL);
        if (known && file_exists(path)) (void)file_read(&text, path, NULL);
    }
    const str token = str_trim(buf_view(&text));
    const bool usable =
        token.len && token.len < ENVIRONMENT_MAX_TOKEN && !memchr(token.ptr, '\n', token.len);
    if (usable) snprintf(out, ENVIRONMENT_MAX_TOKEN, "%.*s", STR_ARG(token));
    buf_free(&text);
    return usable;
}

status environment_cache(char out[ENVIRONMENT_MAX_PATH], error *e)
{
    const char *given = variable("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE");
    char home[ENVIRONMENT_MAX_PATH];
    if (!given) {
        TRY(home_of(home, e));
        return file_join(out, ENVIRONMENT_MAX_PATH, home, "hub", e);
    }
    const int n = snprintf(out, ENVIRONMENT_MAX_PATH, "%s", given);
    if (n >= 0 && n < ENVIRONMENT_MAX_PATH) return OK;
    return error_set(e, E_LIMIT, "HF_HUB_CACHE: too long");
}

bool environment_has_links(void)
{
    return !is_true("HF_HUB_DISABLE_SYMLINKS");
}
