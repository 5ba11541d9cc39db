/* routes.h - which path means what. */
#ifndef SERVER_ROUTES_H
#define SERVER_ROUTES_H
#include "server/call.h"

typedef enum route_kind {
    ROUTE_UNKNOWN,
    ROUTE_NOT_OFFERED, /* known to clients, not to a text generator */
    ROUTE_LIVE,
    ROUTE_HEALTH,
    ROUTE_METRICS,
    ROUTE_SLOTS,
    ROUTE_PAGE,
    ROUTE_GET,  /* answered at once from the service: `input` is the path */
    ROUTE_WORK, /* answered by a worker: `input` is the body */
    ROUTE_GENERATE
} route_kind;

typedef struct route {
    const char *name; /* in metrics */
    route_kind kind;
    const char *method, *path;
    bool below;             /* every path that begins so is meant */
    bool open;              /* needs no key */
    const dialect *dialect; /* ROUTE_GENERATE, and whose errors are used */
    const char *id_prefix;
    bool (*answer)(const service *s, str input, buf *out, api_error *e);
    str (*page)(void);
    const char *headers;
} route;

/* Never NULL: an unknown path has a route of its own. A leading /v1 may be left out where clients
 * do so. */
const route *routes_find(str path);
/* Counts routes from 0, below METRICS_ROUTES. */
int routes_id(const route *r);
const char *routes_name(int id);
#endif
