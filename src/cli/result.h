/* result.h - the object that --json prints: one on stdout, and nothing else. */
#ifndef CLI_RESULT_H
#define CLI_RESULT_H
#include "base/jsonw.h"

typedef struct result {
    buf out;
    jsonw w; /* inside the object */
} result;

void result_begin(result *r);
/* Closes the object, prints it unless `so_far` is a failure, and frees r; returns the status. */
status result_end(result *r, status so_far, error *e);
#endif
