/* textfiles.c - see textfiles.h. */
#include "tools/textfiles.h"
#include "base/file.h"
#include "base/banned.h"

enum { MAX_PATH = 4096, MAX_FILE = 256 << 20 };

static const char *const names[] = {
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
    "generation_config.json",
    "preprocessor_config.json",
    "video_preprocessor_config.json",
    "LICENSE",
    "NOTICE.txt",
    "README.md",
};

static status copy(const char *from, const char *to, const char *name, error *e)
{
    char source[MAX_PATH], target[MAX_PATH];
    TRY(file_join(source, sizeof source, from, name, e));
    TRY(file_join(target, sizeof target, to, name, e));
    if (!file_exists(source)) return OK;
    buf text;
    buf_init(&text, MAX_FILE);
    status s = file_read(&text, source, e);
    if (!s) s = file_write(target, buf_view(&text), e);
    buf_free(&text);
    return s;
}

status textfiles_copy(const char *from, const char *to, error *e)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) TRY(copy(from, to, names[i], e));
    return OK;
}

void textfiles_each(void (*fn)(const void *arg, const char *name), const void *arg)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) fn(arg, names[i]);
}
