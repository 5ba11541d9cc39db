/* tiny_tokenizer.h - writes a complete tokenizer.json of the 256 byte entries and a few merges,
 * each part replaceable. */
#ifndef TINY_TOKENIZER_H
#define TINY_TOKENIZER_H
#include "base/buf.h"

#define TINY_NFC "{\"type\":\"NFC\"}"
#define TINY_BYTE_LEVEL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}"
#define TINY_SEQUENCE(split) \
    "{\"type\":\"Sequence\",\"pretokenizers\":[" split "," TINY_BYTE_LEVEL "]}"
#define TINY_SPLIT(regex)                                 \
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" regex \
    "\"},\"behavior\":\"Isolated\",\"invert\":false}"

typedef struct tiny {
    const char *normalizer, *pre_tokenizer, *post_processor, *decoder,
        *added;        /* JSON; NULL: default */
    const char *vocab; /* JSON instead of the default object */
    const char *more;  /* members put before those of the default vocabulary, with a comma behind */
    const char *merges; /* JSON */
    const char *model;  /* members put before the others of the model, with a comma behind */
} tiny;

/* The byte alphabet, computed as its definition says: printable Latin-1 stands for itself, the rest
 * for U+0100.. */
static inline void tiny_byte(buf *out, int byte)
{
    uint32_t next = 256;
    for (int b = 0; b <= byte; b++) {
        const bool itself =
            (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || (b >= 0xae && b <= 0xff);
        const uint32_t cp = itself ? (uint32_t)b : next++;
        char utf8[4];
        if (b == byte && (b == '"' || b == '\\')) buf_char(out, '\\');
        if (b == byte) buf_put(out, utf8, str_utf8_put(cp, utf8));
    }
}

/* id of byte b is b; then "ab" 256, "abc" 257, "bc" 258; merges in the order bc, ab, a+bc. */
static inline void tiny_write(buf *out, const tiny *t)
{
    buf_text(out, "{\"normalizer\":");
    buf_text(out, t->normalizer ? t->normalizer : TINY_NFC);
    buf_text(out, ",\"pre_tokenizer\":");
    buf_text(out, t->pre_tokenizer ? t->pre_tokenizer : TINY_SEQUENCE(TINY_SPLIT("[a-z]+|\\\\s+")));
    buf_text(out, ",\"post_processor\":");
    buf_text(out, t->post_processor ? t->post_processor : "null");
    buf_text(out, ",\"decoder\":");
    buf_text(out, t->decoder ? t->decoder : "{\"type\":\"ByteLevel\"}");
    buf_text(out, ",\"added_tokens\":");
    buf_text(out, t->added ? t->added : "[]");
    buf_text(out, ",\"model\":{\"type\":\"BPE\",");
    buf_text(out, t->model ? t->model : "");
    buf_text(out, "\"vocab\":");
    if (t->vocab) {
        buf_text(out, t->vocab);
    } else {
        buf_char(out, '{');
        buf_text(out, t->more ? t->more : "");
        for (int b = 0; b < 256; b++) {
            buf_char(out, '"');
            tiny_byte(out, b);
            buf_printf(out, "\":%d,", b);
        }
        buf_text(out, "\"ab\":256,\"abc\":257,\"bc\":258}");
    }
    buf_text(out, ",\"merges\":");
    buf_text(out, t->merges ? t->merges : "[[\"b\",\"c\"],[\"a\",\"b\"],[\"a\",\"bc\"]]");
    buf_text(out, "}}");
}
#endif
