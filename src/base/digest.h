/* digest.h - SHA-256 and SHA-1, whole or in pieces. */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H
#include <stddef.h>
#include <stdint.h>
#include "base/file.h"

typedef struct digest digest;
enum { DIGEST_SHA256, DIGEST_SHA1 };
status digest_open(digest **out, int kind, error *e);
void digest_put(digest *d, const void *p, size_t n);
/* A mapped file, read once: its pages go back to the system as it goes. `each` (may be NULL) is
 * told of every piece. */
void digest_put_map(digest *d, const file_map *m, void (*each)(void *arg, size_t n), void *arg);
void digest_hex(digest *d, char out[65]); /* finishes and frees d; 64 or 40 digits and a NUL */
status digest_sha256(const void *p, size_t n, char out[65], error *e);
#endif
