/* textfiles.h - the files of a model folder that hold no weights: tokenizer, template, sampling
 * advice, licence. Commands that write a new folder carry them over. */
#ifndef TOOLS_TEXTFILES_H
#define TOOLS_TEXTFILES_H
#include "base/error.h"

/* Copies those of the known names that `from` has; `to` must exist. */
status textfiles_copy(const char *from, const char *to, error *e);
/* Calls fn with each of the known names. */
void textfiles_each(void (*fn)(const void *arg, const char *name), const void *arg);
#endif
