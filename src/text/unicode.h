/* unicode.h - what text processing needs to know about characters.
 *
 * Categories, the two notions of white space, case, and normalization form C (UAX #15). All
 * functions are pure and thread-safe. Text arguments are UTF-8; functions that say "valid" rely
 * on str_utf8_valid, the others copy a byte that is not UTF-8 as it is. The data are those of
 * the Unicode library the program runs with. */
#ifndef TEXT_UNICODE_H
#define TEXT_UNICODE_H
#include "base/buf.h"

/* General categories (UAX #44), one per character. */
typedef enum unicode_category {
    UNICODE_CN,
    UNICODE_LU,
    UNICODE_LL,
    UNICODE_LT,
    UNICODE_LM,
    UNICODE_LO,
    UNICODE_MN,
    UNICODE_MC,
    UNICODE_ME,
    UNICODE_ND,
    UNICODE_NL,
    UNICODE_NO,
    UNICODE_PC,
    UNICODE_PD,
    UNICODE_PS,
    UNICODE_PE,
    UNICODE_PI,
    UNICODE_PF,
    UNICODE_PO,
    UNICODE_SM,
    UNICODE_SC,
    UNICODE_SK,
    UNICODE_SO,
    UNICODE_ZS,
    UNICODE_ZL,
    UNICODE_ZP,
    UNICODE_CC,
    UNICODE_CF,
    UNICODE_CS,
    UNICODE_CO
} unicode_category;

unicode_category unicode_category_of(uint32_t cp); /* UNICODE_CN above 0x10ffff */
bool unicode_is_letter(uint32_t cp);               /* L*, which is Python's isalpha */
bool unicode_is_mark(uint32_t cp);                 /* M* */
bool unicode_is_number(uint32_t cp);               /* N* */
bool unicode_is_printable(uint32_t cp);            /* Python's isprintable */

/* Python's str.isspace, which its strip and split use: White_Space and U+001C..U+001F. */
bool unicode_is_space(uint32_t cp);
/* The property White_Space: 25 characters. */
bool unicode_is_white(uint32_t cp);
/* \w of UTS #18: Alphabetic, M*, Nd, Pc, Join_Control. */
bool unicode_is_word(uint32_t cp);

/* Append s in another case, with the full mappings of SpecialCasing (one character may become
 * three; a final sigma is recognised), as Python's lower, upper and capitalize do. */
void unicode_lower(buf *out, str s);
void unicode_upper(buf *out, str s);
void unicode_capitalize(buf *out, str s);

/* Appends the NFC form of the valid text s. Linear in s whatever it holds (long runs of marks
 * too). At most three times as long as s. E_NOMEM, or E_LIMIT when out's ceiling is met. */
status unicode_nfc(buf *out, str s, error *e);
#endif
