/* regex.h - the split expressions of tokenizer files.
 *
 * The files are written for another engine (Oniguruma's Ruby syntax), so an expression is
 * translated, and whatever would mean something else here, or is not needed by any known split,
 * is refused by name: "&&" and "[" inside a class, "^" and "$", back references, \w and \b,
 * option groups other than (?i:...). \s is written out as the 25 White_Space characters, \p{L}
 * \p{M} \p{N} are completed to Unicode 16, so the pieces do not depend on the engine's tables. */
#ifndef TEXT_REGEX_H
#define TEXT_REGEX_H
#include "base/error.h"
#include "base/str.h"

typedef struct regex regex;

/* `name` says in errors where the expression stands. E_FORMAT: not an expression; E_UNSUPPORTED:
 * refused. */
status regex_open(regex **out, str pattern, const char *name, error *e);
void regex_close(regex *r); /* NULL is fine */

/* Finds matches one after another in one text; any number of scans may run at once over one
 * regex. */
typedef struct regex_scan regex_scan;
status regex_scan_open(regex_scan **out, const regex *r, error *e);
void regex_scan_close(regex_scan *s); /* NULL is fine */
/* Leftmost match of the valid UTF-8 `text` at or after `at`: *from < *to, or both text.len when
 * there is none (an empty match does not count). E_LIMIT when the text needs more backtracking
 * than allowed. */
status regex_next(regex_scan *s, str text, size_t at, size_t *from, size_t *to, error *e);
#endif
