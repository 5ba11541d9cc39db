/* responses.h - the dialect of /v1/responses. Nothing is stored: a request carries its history. */
#ifndef SERVER_RESPONSES_H
#define SERVER_RESPONSES_H
#include "server/call.h"

extern const dialect responses_dialect;
#endif
