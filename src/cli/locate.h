/* locate.h - where things are that the command line or the environment names: models, tiles. */
#ifndef CLI_LOCATE_H
#define CLI_LOCATE_H
#include "base/error.h"
#include "cli/progress.h"
#ifdef INGOT_HUB
#include "hub/hub.h"
#endif

/* A variable of the environment; NULL when it is unset or empty. */
const char *locate_variable(const char *name);
/* The folder `part` of the shipped pair: "king", "drafter-q8". */
status locate_shipped(char *out, size_t cap, const char *part, error *e);
/* The folder that `given` names: itself, or for a hub id the copy in the cache, fetched when it is
 * missing unless `offline`. `what` begins the message. */
status locate_folder(const char *given, const char *what, bool offline, progress *bar, char *out,
                     size_t cap, error *e);
#ifdef INGOT_HUB
/* Progress on `bar`, an end at the first Ctrl-C, and no SIGPIPE, which sockets may raise. */
void locate_hub_options(hub_options *o, progress *bar);
#endif
/* The folder of files of tiles: the option, $INGOT_TILES, or ingot/tiles in the user's cache; the
 * last is empty when there is no such place. */
status locate_tiles(const char *given, char *out, size_t cap, bool *chosen, error *e);
#endif
