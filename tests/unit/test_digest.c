#include "test.h"
#include "base/digest.h"

static void expect(int kind, const char *text, size_t n, size_t piece, const char *want)
{
    error e = { 0 };
    digest *d;
    char got[65];
    EXPECT_OK(digest_open(&d, kind, &e), e);
    for (size_t at = 0; at < n; at += piece)
        digest_put(d, text + at, n - at < piece ? n - at : piece);
    digest_hex(d, got);
    EXPECT_STR(got, want);
}

/* FIPS 180-2, appendices A and B: "abc", the 56-byte message, a million letters a; and the empty
 * message. */
TEST(published_vectors)
{
    static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    char *million = malloc(1000000);
    EXPECT(million);
    memset(million, 'a', 1000000);
    expect(DIGEST_SHA256, "abc", 3, 3,
           "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect(DIGEST_SHA256, "", 0, 1,
           "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect(DIGEST_SHA256, two_blocks, 56, 5,
           "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    expect(DIGEST_SHA256, million, 1000000, 4097,
           "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    expect(DIGEST_SHA1, "abc", 3, 1, "a9993e364706816aba3e25717850c26c9cd0d89d");
    expect(DIGEST_SHA1, two_blocks, 56, 56, "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
    expect(DIGEST_SHA1, million, 1000000, 1000, "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
    free(million);
}

TEST(whole)
{
    error e = { 0 };
    char got[65];
    EXPECT_OK(digest_sha256("abc", 3, got, &e), e);
    EXPECT_STR(got, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}
