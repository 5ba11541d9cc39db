/* slots.h - what is being generated just now, for GET /slots. Loop thread only. */
#ifndef SERVER_SLOTS_H
#define SERVER_SLOTS_H
#include "server/call.h"

/* Writes an object for each choice of a call into an array. `working`: a worker still reads it. */
void slots_write(jsonw *w, const call *c, const char *request_id, double seconds, bool working);
#endif
