/* cmd_convert.c - `ingot convert`: a king's pack to its GGUF twin and back. */
#include <stdio.h>

#include "base/file.h"
#include "cli/cmd.h"
#include "cli/command.h"
#include "cli/locate.h"
#include "cli/result.h"
#include "cli/setup.h"
#include "tools/convert.h"
#include "base/banned.h"

typedef struct conversion {
    setup base;
    const char *source, *target;
    convert_options o;
} conversion;

static status run(void *arg, error *e)
{
    conversion *c = arg;
    convert_report r;
    progress *bar = &c->base.bar;
    setup_bar(&c->base, "converting");
    c->o.progress = progress_step;
    c->o.arg = bar;
    char king[4096], text[4096];
    const bool pack = file_is_dir(c->source) || !file_exists(c->source);
    if (pack) TRY(locate_folder(c->source, "convert", c->base.offline, bar, king, sizeof king, e));
    if (!pack && c->o.text) {
        TRY(locate_folder(c->o.text, "--text", c->base.offline, bar, text, sizeof text, e));
        char tokenizer[4096];
        TRY(file_join(tokenizer, sizeof tokenizer, text, "tokenizer.json", e));
        if (!file_exists(tokenizer))
            return error_set(e, E_ARG, "--text: %s: found no tokenizer.json", text);
        c->o.text = text;
    }
    if (!pack && c->o.type)
        return error_set(e, E_ARG, "--type: a pack has one form only; %s is a file", c->source);
    if (pack && c->o.text)
        return error_set(e, E_ARG,
                         "--text: a GGUF file takes its tokenizer from the pack; %s is "
                         "no file",
                         c->source);
    const status s = pack ? convert_to_gguf(king, c->target, &c->o, &r, e)
                          : convert_to_pack(c->source, c->target, &c->o, &r, e);
    progress_clear(bar);
    TRY(s);
    if (c->base.json) {
        result out;
        result_begin(&out);
        jsonw_member_text(&out.w, "out", c->target);
        jsonw_member_i64(&out.w, "packed", r.packed);
        jsonw_member_i64(&out.w, "plain", r.plain);
        jsonw_member_u64(&out.w, "left_out_bytes", r.skipped_bytes);
        return result_end(&out, OK, e);
    }
    printf("%d packed and %d plain tensors\n", r.packed, r.plain);
    if (r.skipped_bytes) {
        char bytes[32];
        progress_bytes(bytes, r.skipped_bytes);
        printf("left out: %s of vision tower and the like, which a GGUF file of the text model has "
               "no room for\n",
               bytes);
    }
    return OK;
}

int cmd_convert(int argc, char **argv)
{
    conversion c = { 0 };
    setup_init(&c.base);
    const option own[] = {
        { OPTION_TEXT, "type", 0, &c.o.type, "PQ2_0|PTQ1_0",
          "to GGUF: how codes are stored (default PQ2_0)", 0, 0, NULL },
        { OPTION_TEXT, "text", 0, &c.o.text, "FOLDER",
          "to a pack: folder whose tokenizer and template it gets", 0, 0, NULL },
        { .kind = OPTION_END },
    };
    const options_command command = {
        .name = "convert",
        .usage = "KING FILE.gguf [--type PQ2_0|PTQ1_0]\n       ingot convert FILE.gguf KING --text "
                 "FOLDER",
        .summary = "a king's pack to its GGUF twin and back, without loss",
        .tables = { own, c.base.folder_options },
        .positional = { &c.source, &c.target },
        .min_positional = 2,
        .max_positional = 2,
    };
    return command_run(&command, argc, argv, run, &c);
}
