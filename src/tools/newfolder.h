/* newfolder.h - the folder that a command makes a pack in: new or empty before, and as it was after
 * a failure. */
#ifndef TOOLS_NEWFOLDER_H
#define TOOLS_NEWFOLDER_H
#include <stdbool.h>
#include "base/error.h"

typedef struct newfolder {
    const char *path; /* borrowed; NULL: not begun */
    bool made;        /* it did not exist */
} newfolder;

/* E_ARG: a file, or a folder with something in it, hidden files included. */
status newfolder_check(const char *path, error *e);
/* Checks again, and makes the folder when there is none. */
status newfolder_begin(newfolder *f, const char *path, error *e);
/* Removes the files of a pack from it, and itself when it was made and nothing else is there. */
void newfolder_discard(const newfolder *f);
#endif
