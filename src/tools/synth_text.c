/* synth_text.c - the text files of a synthetic king. */
#include "tools/synth_text.h"
#include <stdio.h>
#include "base/file.h"
#include "base/jsonw.h"
#include "base/banned.h"

enum { MAX_TEXT = 64 << 20, MAX_PATH = 4096 };

static const struct {
    const char *text;
    bool special;
} added[SYNTH_TEXT_ADDED] = {
    { "<|endoftext|>", true },    { "<|im_start|>", true },     { "<|im_end|>", true },
    { "<think>", false },         { "</think>", false },        { "<tool_call>", false },
    { "</tool_call>", false },    { "<tool_response>", false }, { "</tool_response>", false },
    { "<|vision_start|>", true }, { "<|vision_end|>", true },   { "<|image_pad|>", true },
};

/* Split expression of the Qwen tokenizers. */
static const char split[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|"
                            "\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*"
                            "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

static const char chat_template[] =
    "{%- for m in messages -%}\n<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor "
    "-%}\n"
    "{%- if add_generation_prompt -%}<|im_start|>assistant\n{% endif -%}\n";

int32_t synth_text_first_added(int n_vocab)
{
    return n_vocab >= 248320 ? 248044 : n_vocab - SYNTH_TEXT_ADDED;
}

/* The character that stands for a byte in byte-level files: printable ones themselves, the others
 * from U+0100 up. */
static uint32_t byte_char(int byte)
{
    uint32_t next = 256;
    for (int b = 0; b <= byte; b++) {
        const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        if (b == byte) return printable ? (uint32_t)b : next;
        if (!printable) next++;
    }
    return 0;
}

static void write_added(jsonw *w, int32_t id, int i, bool with_id)
{
    jsonw_object(w);
    if (with_id) jsonw_member_i64(w, "id", id);
    jsonw_member_text(w, "content", added[i].text);
    static const char *const off[] = { "single_word", "lstrip", "rstrip", "normalized" };
    for (int k = 0; k < 4; k++) jsonw_member_bool(w, off[k], false);
    jsonw_member_bool(w, "special", added[i].special);
    jsonw_end_object(w);
}

/* 256 bytes, then entries that no merge produces: the sampler may choose them, the encoder never
 * does. */
static void write_vocabulary(jsonw *w, int32_t count)
{
    jsonw_object(w);
    for (int32_t id = 0; id < count; id++) {
        char text[24];
        if (id < 256) {
            const size_t n = str_utf8_put(byte_char(id), text);
            text[n] = 0;
        } else {
            snprintf(text, sizeof text, "\xc4\xa0w%d", id); /* U+0120: a space before it */
        }
        jsonw_member_i64(w, text, id);
    }
    jsonw_end_object(w);
}

static void write_tokenizer(buf *out, int32_t first)
{
    jsonw w;
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_member_text(&w, "version", "1.0");
    jsonw_member_array(&w, "added_tokens");
    for (int i = 0; i < SYNTH_TEXT_ADDED; i++) write_added(&w, first + i, i, true);
    jsonw_end_array(&w);
    jsonw_member_raw(&w, "normalizer", "{\"type\":\"NFC\"}");
    jsonw_member_raw(&w, "pre_tokenizer",
                     "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{"
                     "\"Regex\":");
    buf_char(out, '"');
    jsonw_escape(out, str_from(split));
    buf_text(out, "\"},\"behavior\":\"Isolated\",\"invert\":false},{\"type\":\"ByteLevel\",\"add_"
                  "prefix_space\":"
                  "false,\"trim_offsets\":false,\"use_regex\":false}]}");
    jsonw_member_raw(&w, "decoder",
                     "{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true,"
                     "\"use_regex\":true}");
    jsonw_member_object(&w, "model");
    jsonw_member_text(&w, "type", "BPE");
    jsonw_key(&w, "vocab");
    write_vocabulary(&w, first);
    jsonw_member_raw(&w, "merges", "[]");
    jsonw_end_object(&w);
    jsonw_end_object(&w);
}

static void write_tokenizer_config(buf *out, int32_t first, int max_positions)
{
    jsonw w;
    jsonw_init(&w, out);
    jsonw_object(&w);
    jsonw_member_text(&w, "tokenizer_class", "Qwen2Tokenizer");
    jsonw_member_text(&w, "eos_token", "<|im_end|>");
    jsonw_member_text(&w, "pad_token", "<|endoftext|>");
    jsonw_member_i64(&w, "model_max_length", max_positions);
    jsonw_member_object(&w, "added_tokens_decoder");
    for (int i = 0; i < SYNTH_TEXT_ADDED; i++) {
        char id[16];
        snprintf(id, sizeof id, "%d", (int)first + i);
        jsonw_key(&w, id);
        write_added(&w, first + i, i, false);
    }
    jsonw_end_object(&w);
    jsonw_end_object(&w);
}

static status write_file(const char *folder, const char *name, const buf *content, error *e)
{
    char path[MAX_PATH];
    TRY(buf_status(content, name, e));
    TRY(file_join(path, sizeof path, folder, name, e));
    return file_write(path, buf_view(content), e);
}

status synth_text_write(const char *folder, int n_vocab, int max_positions, error *e)
{
    const int32_t first = synth_text_first_added(n_vocab);
    buf b;
    buf_init(&b, MAX_TEXT);
    status s;
    write_tokenizer(&b, first);
    TRY_GOTO(s, write_file(folder, "tokenizer.json", &b, e), done);
    buf_clear(&b);
    write_tokenizer_config(&b, first, max_positions);
    TRY_GOTO(s, write_file(folder, "tokenizer_config.json", &b, e), done);
    buf_clear(&b);
    buf_text(&b, chat_template);
    TRY_GOTO(s, write_file(folder, "chat_template.jinja", &b, e), done);
    buf_clear(&b);
    buf_printf(&b, "{\"bos_token_id\":%d,\"eos_token_id\":[%d,%d],\"pad_token_id\":%d}\n",
               (int)first, (int)first + 2, (int)first, (int)first);
    TRY_GOTO(s, write_file(folder, "generation_config.json", &b, e), done);
done:
    buf_free(&b);
    return s;
}
