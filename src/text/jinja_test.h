/* jinja_test.h - what may stand after `is`. */
#ifndef TEXT_JINJA_TEST_H
#define TEXT_JINJA_TEST_H
#include "text/jinja_args.h"

typedef struct jinja_test {
    const char *name;
    status (*holds)(jinja_run *r, jinja_value v, const jinja_args *args, bool *out);
} jinja_test;

const jinja_test *jinja_test_find(str name); /* NULL: unknown */
#endif
