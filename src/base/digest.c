/* digest.c - the only file that sees libcrypto. */
#include "base/digest.h"
#include <openssl/evp.h>
#include "base/banned.h"

/* `struct digest` is never defined: a digest is an EVP_MD_CTX. */
static EVP_MD_CTX *context(digest *d)
{
    return (EVP_MD_CTX *)(void *)d;
}

status digest_open(digest **out, int kind, error *e)
{
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    *out = NULL;
    if (!c) return error_set(e, E_NOMEM, "digest: out of memory");
    if (EVP_DigestInit_ex(c, kind == DIGEST_SHA1 ? EVP_sha1() : EVP_sha256(), NULL) != 1) {
        EVP_MD_CTX_free(c);
        return error_set(e, E_UNSUPPORTED, "digest: libcrypto refuses %s",
                         kind == DIGEST_SHA1 ? "SHA-1" : "SHA-256");
    }
    *out = (digest *)(void *)c;
    return OK;
}

void digest_put(digest *d, const void *p, size_t n)
{
    CHECK(EVP_DigestUpdate(context(d), p, n) == 1);
}

void digest_put_map(digest *d, const file_map *m, void (*each)(void *arg, size_t n), void *arg)
{
    enum { STEP = 8 << 20 };
    file_map_sequential(m);
    for (size_t at = 0; at < m->len; at += STEP) {
        const size_t n = m->len - at < STEP ? m->len - at : STEP;
        digest_put(d, m->ptr + at, n);
        file_map_drop(m, at, at + n);
        if (each) each(arg, n);
    }
}

void digest_hex(digest *d, char out[65])
{
    static const char hex[] = "0123456789abcdef";
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    CHECK(EVP_DigestFinal_ex(context(d), bytes, &n) == 1 && n <= 32);
    EVP_MD_CTX_free(context(d));
    for (unsigned i = 0; i < n; i++) {
        out[2 * i] = hex[bytes[i] >> 4];
        out[2 * i + 1] = hex[bytes[i] & 15];
    }
    out[2 * n] = '\0';
}

status digest_sha256(const void *p, size_t n, char out[65], error *e)
{
    digest *d;
    TRY(digest_open(&d, DIGEST_SHA256, e));
    digest_put(d, p, n);
    digest_hex(d, out);
    return OK;
}
