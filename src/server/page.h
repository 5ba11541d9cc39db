/* page.h - the chat page at /: one HTML file without outside resources, part of the program. */
#ifndef SERVER_PAGE_H
#define SERVER_PAGE_H
#include "base/str.h"

str page_html(void);

/* Header lines for it: it may talk to this server alone and stand in no frame. */
#define PAGE_HEADERS                                                                      \
    "Content-Security-Policy: default-src 'none'; script-src 'unsafe-inline'; style-src " \
    "'unsafe-inline'; img-src data:; connect-src 'self'; base-uri 'none'; form-action "   \
    "'none'; frame-ancestors 'none'\r\nX-Content-Type-Options: nosniff\r\n"               \
    "Referrer-Policy: no-referrer\r\nCache-Control: no-cache\r\n"
#endif
