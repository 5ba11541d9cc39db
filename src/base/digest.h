/* digest.h - SHA-256 and SHA-1, whole or in pieces. */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

typedef struct digest digest;
enum { DIGEST_SHA256, DIGEST_SHA1 };
status digest_open(digest **out, int kind, error *e);
void digest_put(digest *d, const void *p, size_t n);
void digest_hex(digest *d, char out[65]); /* finishes and frees d; 64 or 40 digits and a NUL */
status digest_sha256(const void *p, size_t n, char out[65], error *e);
#endif
