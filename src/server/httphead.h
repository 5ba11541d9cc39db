/* httphead.h - the head of a request: its line, its headers, and how its body is framed. */
#ifndef SERVER_HTTPHEAD_H
#define SERVER_HTTPHEAD_H
#include "base/str.h"

enum { HTTPHEAD_MAX_HEADERS = 100 };

typedef struct httphead_header {
    str name, value; /* trimmed */
} httphead_header;

typedef struct httphead {
    str method, path; /* without query, not decoded */
    httphead_header headers[HTTPHEAD_MAX_HEADERS];
    int n_headers;
    bool http10, is_head;     /* version and method */
    bool chunked, has_length; /* the body; at most one of them */
    uint64_t length;          /* 0 when none is given */
} httphead;

/* Takes a head apart; the strings are those of `text`. NULL, or what is wrong with it and the
 * status of the answer. */
const char *httphead_parse(httphead *h, str text, int *code);
/* The first header of that name; ptr NULL when absent. */
str httphead_find(const httphead *h, const char *name);
/* A header of that name, whose value is a list, has this word in it. */
bool httphead_lists(const httphead *h, const char *name, str word);
#endif
