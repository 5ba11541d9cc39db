/* answer.c - one answer through ingot.h alone, printed while it is made.
 *
 *     cc answer.c $(pkg-config --cflags --libs ingot) -o answer
 *     ./answer KING DRAFTER "Sort these words: pear, apple, fig"        (DRAFTER may be -) */
#include <stdio.h>
#include <string.h>

#include <ingot/ingot.h>

static int failed(const char *what, const ingot_error *e)
{
    fprintf(stderr, "%s: %s\n", what, e->text);
    return 1;
}

/* The question as a JSON array of one message; quotes and control characters are escaped. */
static void message(char *out, size_t cap, const char *question)
{
    size_t n = (size_t)snprintf(out, cap, "[{\"role\":\"user\",\"content\":\"");
    for (; *question && n + 12 < cap; question++) {
        const unsigned char c = (unsigned char)*question;
        if (c < ' ' || c == '"' || c == '\\') n += (size_t)snprintf(out + n, cap - n, "\\u%04x", c);
        else out[n++] = *question;
    }
    snprintf(out + n, cap - n, "\"}]");
}

int main(int argc, char **argv)
{
    if (argc != 4) return fprintf(stderr, "usage: answer KING DRAFTER|- QUESTION\n"), 2;
    ingot_error e;
    ingot_model *model = NULL;
    ingot_engine *engine = NULL;
    ingot_request *request = NULL;
    ingot_model_options what = INGOT_INIT(ingot_model_options);
    what.king = argv[1];
    what.drafter = strcmp(argv[2], "-") == 0 ? NULL : argv[2];
    if (ingot_model_open(&model, &what, &e)) return failed("open", &e);
    const ingot_engine_options how = INGOT_INIT(ingot_engine_options);
    if (ingot_engine_start(&engine, model, &how, &e)) return failed("start", &e);

    char messages[8192];
    message(messages, sizeof messages, argv[3]);
    ingot_prompt prompt = INGOT_INIT(ingot_prompt);
    prompt.messages = messages;
    ingot_sampling sampling = INGOT_INIT(ingot_sampling); /* greedy, block chosen as it goes */
    sampling.max_tokens = 256;
    if (ingot_submit(&request, engine, &prompt, &sampling, &e)) return failed("submit", &e);
    for (ingot_event ev; ingot_next(request, &ev, -1) == INGOT_OK;) {
        if (ev.kind == INGOT_TEXT) fwrite(ev.text, 1, ev.len, stdout);
        if (ev.kind == INGOT_END)
            printf("\n(%d tokens in %d steps, sha256 %.16s)\n", ev.usage->completion_tokens,
                   ev.usage->steps, ev.usage->sha256);
    }
    ingot_release(request);
    ingot_engine_stop(engine);
    ingot_model_close(model);
    return 0;
}
