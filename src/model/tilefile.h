/* tilefile.h - the tiles of one model in a file, mapped read-only and shared between processes.
 *
 * The file is what weights_fill would make: after a header (identity of the pack, layout version,
 * one entry a matrix) stands the region as it lies in memory. Written whole or not at all. Opening
 * compares everything in the header with what the pack plans, so a file of another pack, another
 * layout, or one that was cut, is refused; the sums of the tiles themselves are compared on demand.
 * Format: docs/formats.md. */
#ifndef MODEL_TILEFILE_H
#define MODEL_TILEFILE_H
#include "model/weights.h"

enum { TILEFILE_MAX_PATH = 4096 };

/* Its name in `folder`: made of the pack's kind and identity. */
status tilefile_path(const pack *p, const char *folder, char out[TILEFILE_MAX_PATH], error *e);
/* Maps the file and places the weights in it. E_FORMAT: refused, `e` says why. */
status tilefile_open(weights *w, const pack *p, const char *path, error *e);
/* Brings the pages in, by all threads. */
void tilefile_fetch(const weights *w, compute *c, weights_progress *progress, void *arg);
/* Compares every sum in the opened file with the tiles that follow it and with those that the pack
 * makes; E_FORMAT names the first matrix that differs. */
status tilefile_check(weights *w, const pack *p, compute *c, weights_progress *progress, void *arg,
                      error *e);
/* Makes the tiles and writes them; the folder is made when missing. Memory: one window of source
 * pages. E_IO, E_LIMIT: the file could not be written; others: the pack is at fault. */
status tilefile_write(weights *w, const pack *p, compute *c, const char *path,
                      weights_progress *progress, void *arg, error *e);
#endif
