/* load.c - see load.h. */
#include "model/load.h"

#include <stdio.h>

#include "model/tilefile.h"
#include "base/banned.h"

static void tell(const load_options *o, const char *text, const char *then)
{
    char line[sizeof((error){ 0 }).text + 96];
    if (!o->notice) return;
    snprintf(line, sizeof line, "%s; %s", text, then);
    o->notice(o->arg, line);
}

static status open_file(weights *w, const pack *p, compute *c, const load_options *o,
                        const char *path, error *e)
{
    TRY(tilefile_open(w, p, path, e));
    tilefile_fetch(w, c, o->progress, o->arg);
    if (!o->verify) return OK;
    const status s = tilefile_check(w, p, c, o->progress, o->arg, e);
    if (s == OK) return OK;
    weights_place(w, NULL);
    file_map_close(&w->file);
    return error_prefix(e, s, "%s", path);
}

/* Whether the tiles are mapped afterwards; a failure is one of the pack, or of a file that must be
 * written. */
static status use_file(weights *w, const pack *p, compute *c, const load_options *o,
                       load_report *report, error *e)
{
    char path[TILEFILE_MAX_PATH];
    error why;
    TRY(tilefile_path(p, o->folder, path, e));
    const bool exists = file_exists(path);
    if (!exists && o->tiles == LOAD_FIND) return OK;
    status s = exists ? open_file(w, p, c, o, path, &why) : E_IO;
    if (s && exists && file_exists(path)) /* else somebody has taken it away in between */
        tell(o, why.text, "the tiles are made again");
    if (s) {
        s = tilefile_write(w, p, c, path, o->progress, o->arg, &why);
        if (s == OK) s = open_file(w, p, c, o, path, &why);
        report->written = s == OK;
    }
    if (s == OK) {
        snprintf(report->path, sizeof report->path, "%s", path);
        return OK;
    }
    if (o->tiles == LOAD_MUST || (s != E_IO && s != E_LIMIT))
        return error_set(e, s, "%s", why.text);
    tell(o, why.text, "the tiles are made in memory");
    return OK;
}

status load_weights(weights *w, const pack *p, compute *c, const load_options *o,
                    load_report *report, error *e)
{
    load_report unread;
    if (!report) report = &unread;
    report->path[0] = '\0';
    report->written = false;
    if (o->folder) TRY(use_file(w, p, c, o, report, e));
    return w->region ? OK : weights_fill(w, p, c, o->progress, o->arg, e);
}
