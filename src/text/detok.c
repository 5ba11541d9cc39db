/* detok.c - the UTF-8 state machine behind streamed decoding. */
#include "text/detok.h"

#include "base/banned.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

void detok_init(detok *d, const tokenizer *t, bool hide_special)
{
    *d = (detok){ .tokenizer = t, .hide_special = hide_special };
}

/* Bytes of the character that begins with `lead`; 0: none does. */
static int char_length(uint8_t lead)
{
    if (lead < 0x80) return 1;
    if (lead < 0xc2 || lead > 0xf4) return 0;
    return lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/* May `byte` follow the n_held bytes (at least one)? Table 3-7 of the Unicode standard: only the
 * second byte is special. Surrogates (ED A0..BF xx) pass here, so that their three bytes are
 * judged, and replaced, together. */
static bool may_follow(const detok *d, uint8_t byte)
{
    const uint8_t lead = d->held[0];
    uint8_t low = 0x80;
    uint8_t high = 0xbf;
    if (d->n_held == 1) {
        if (lead == 0xe0) low = 0xa0;
        if (lead == 0xf0) low = 0x90;
        if (lead == 0xf4) high = 0x8f;
    }
    return byte >= low && byte <= high;
}

static bool surrogate(const detok *d)
{
    return d->n_held >= 2 && d->held[0] == 0xed && d->held[1] >= 0xa0;
}

/* The held bytes are given up: one part, but each byte of a surrogate is a part of its own. */
static void replace_held(detok *d, buf *out)
{
    const int parts = surrogate(d) ? d->n_held : d->n_held > 0;
    for (int i = 0; i < parts; i++) buf_text(out, REPLACEMENT);
    d->n_held = 0;
}

static void put_byte(detok *d, uint8_t byte, buf *out)
{
    if (d->n_held && !may_follow(d, byte)) replace_held(d, out);
    const int length = char_length(d->n_held ? d->held[0] : byte);
    if (length == 0) {
        buf_text(out, REPLACEMENT);
        return;
    }
    d->held[d->n_held++] = byte;
    if (d->n_held < length) return;
    if (surrogate(d)) {
        replace_held(d, out);
        return;
    }
    buf_put(out, d->held, d->n_held);
    d->n_held = 0;
}

void detok_put(detok *d, int32_t id, buf *out)
{
    if (d->hide_special && tokenizer_is_special(d->tokenizer, id)) return;
    const str bytes = tokenizer_bytes(d->tokenizer, id);
    for (size_t i = 0; i < bytes.len; i++) put_byte(d, (uint8_t)bytes.ptr[i], out);
}

void detok_finish(detok *d, buf *out)
{
    replace_held(d, out);
}

void detok_all(const tokenizer *t, const int32_t *ids, size_t n, bool hide_special, buf *out)
{
    detok d;
    detok_init(&d, t, hide_special);
    for (size_t i = 0; i < n; i++) detok_put(&d, ids[i], out);
    detok_finish(&d, out);
}
