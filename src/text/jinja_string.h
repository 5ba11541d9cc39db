/* jinja_string.h - methods of texts, as Python's str has them. */
#ifndef TEXT_JINJA_STRING_H
#define TEXT_JINJA_STRING_H
#include "text/jinja_method.h"

/* NULL: str has no such method. */
const jinja_method *jinja_string_find(str name);

/* What the filters share with the methods. */
str jinja_string_strip(str s, const str *chars, bool left, bool right); /* NULL: white space */
status jinja_string_replace(jinja_run *r, str s, str old, str new, int64_t count, str *out);
status jinja_string_lines(jinja_run *r, str s, jinja_list *out); /* str.splitlines */
status jinja_string_words(jinja_run *r, str s, jinja_list *out); /* str.split() */
status jinja_string_upper(jinja_run *r, str s, str *out);
status jinja_string_lower(jinja_run *r, str s, str *out);
status jinja_string_capitalize(jinja_run *r, str s, str *out);
status jinja_string_center(jinja_run *r, str s, int64_t width, str *out);
bool jinja_string_is_cased(str s, bool upper); /* isupper, islower */
#endif
