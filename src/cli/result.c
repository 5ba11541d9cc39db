/* result.c - see result.h. */
#include "cli/result.h"

#include <stdio.h>

#include "base/banned.h"

enum { MOST_RESULT = 1 << 30 };

void result_begin(result *r)
{
    buf_init(&r->out, MOST_RESULT);
    jsonw_init(&r->w, &r->out);
    jsonw_object(&r->w);
}

status result_end(result *r, status so_far, error *e)
{
    jsonw_end_object(&r->w);
    buf_char(&r->out, '\n');
    if (so_far == OK) so_far = buf_status(&r->out, "result", e);
    if (so_far == OK) fwrite(r->out.ptr, 1, r->out.len, stdout);
    buf_free(&r->out);
    return so_far;
}
