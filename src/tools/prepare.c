/* prepare.c - see prepare.h: opens the model with a folder that must end up holding its tiles. */
#include "tools/prepare.h"

#include <string.h>

#include "base/file.h"
#include "model/drafter.h"
#include "base/banned.h"

static status load(pack *p, compute *c, const prepare_options *o, prepare_report *out, error *e)
{
    king *k = NULL;
    drafter *d = NULL;
    const load_options how = { .folder = o->tiles,
                               .tiles = LOAD_MUST,
                               .verify = o->verify,
                               .progress = o->progress,
                               .notice = o->notice,
                               .arg = o->arg };
    TRY(pack_drafter(p) ? drafter_open(&d, p, NULL, c, &how, e) : king_open(&k, p, c, &how, e));
    const load_report *r = d ? drafter_load_report(d) : king_load_report(k);
    memcpy(out->path, r->path, sizeof out->path);
    out->written = r->written;
    drafter_close(d);
    king_close(k);
    return file_size(out->path, &out->bytes)
               ? OK
               : error_set(e, E_IO, "%s: cannot be found again", out->path);
}

status prepare_run(const prepare_options *o, prepare_report *out, error *e)
{
    pack *p = NULL;
    compute *c = NULL;
    *out = (prepare_report){ .bytes = 0 };
    status s = pack_open(&p, o->pack, o->config_path, e);
    if (s == OK) s = compute_open(&c, &(compute_options){ .threads = o->threads }, e);
    if (s == OK) s = load(p, c, o, out, e);
    if (c) compute_close(c);
    if (p) pack_close(p);
    return s;
}
