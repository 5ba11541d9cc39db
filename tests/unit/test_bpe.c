#include "test.h"

#include "base/mem.h"
#include "base/rng.h"
#include "text/bpe.h"

static error err;

/* 256 bytes, then the given entries from 256 on; merges as "left right" texts. */
static void make(bpe *b, const char *const *entries, const char *const *merges)
{
    EXPECT_OK(bpe_init(b, 256, 64, &err), err);
    for (int i = 0; i < 256; i++) {
        const char byte = (char)i;
        EXPECT_OK(bpe_add(b, i, (str){ &byte, 1 }, &err), err);
    }
    for (int i = 0; entries[i]; i++)
        EXPECT_OK(bpe_add(b, 256 + i, str_from(entries[i]), &err), err);
    for (int i = 0; merges[i]; i++) {
        const str m = str_from(merges[i]);
        const size_t space = str_find(m, STR(" "));
        EXPECT_OK(bpe_add_merge(b, str_sub(m, 0, space), str_sub(m, space + 1, m.len), &err), err);
    }
    EXPECT_OK(bpe_finish(b, &err), err);
}

static void expect(const bpe *b, const char *piece, const char *want)
{
    bpe_work w = { 0 };
    int32_t ids[64];
    size_t n = 0;
    char got[512] = "";
    EXPECT(strlen(piece) < 64);
    EXPECT_OK(bpe_encode(b, &w, str_from(piece), ids, &n, &err), err);
    for (size_t i = 0, at = 0; i < n; i++) {
        const str bytes = b->bytes[ids[i]];
        at += (size_t)snprintf(got + at, sizeof got - at, "%s%.*s", i ? " " : "", STR_ARG(bytes));
    }
    EXPECT_STR(got, want);
    bpe_work_free(&w);
}

TEST(byte_alphabet)
{
    bool seen[256] = { false };
    int n = 0;
    for (uint32_t cp = 0; cp < 0x110000; cp++) {
        const int byte = bpe_byte_of(cp);
        if (byte < 0) continue;
        EXPECT(byte < 256 && !seen[byte]);
        seen[byte] = true;
        n++;
    }
    EXPECT_INT(n, 256);
    EXPECT_INT(bpe_byte_of('!'), '!');
    EXPECT_INT(bpe_byte_of(0x100), 0);
    EXPECT_INT(bpe_byte_of(0x10a), '\n');
    EXPECT_INT(bpe_byte_of(0x120), ' ');
    EXPECT_INT(bpe_byte_of(0x121), 0x7f);
    EXPECT_INT(bpe_byte_of(0x142), 0xa0);
    EXPECT_INT(bpe_byte_of(0x143), 0xad);
    EXPECT_INT(bpe_byte_of(' '), -1);
}

TEST(lowest_rank_first)
{
    bpe b;
    make(&b, (const char *[]){ "ab", "bc", "abc", "cd", NULL },
         (const char *[]){ "b c", "a b", "a bc", "c d", NULL });
    expect(&b, "abc", "abc");
    expect(&b, "abcd", "abc d");
    expect(&b, "acd", "a cd");
    expect(&b, "abab", "ab ab");
    expect(&b, "", "");
    expect(&b, "x", "x");
    bpe_free(&b);
}

TEST(leftmost_on_ties)
{
    bpe b;
    make(&b, (const char *[]){ "aa", "aaaa", NULL }, (const char *[]){ "a a", "aa aa", NULL });
    expect(&b, "aaa", "aa a");
    expect(&b, "aaaaa", "aaaa a");
    expect(&b, "aaaaaaa", "aaaa aa a");
    bpe_free(&b);
}

TEST(an_entry_without_a_merge_is_not_produced)
{
    bpe b;
    make(&b, (const char *[]){ "king", "ki", NULL }, (const char *[]){ "k i", NULL });
    expect(&b, "king", "ki n g");
    b.ignore_merges = true;
    expect(&b, "king", "king");
    expect(&b, "kings", "ki n g s");
    bpe_free(&b);
}

/* "a b" is possible before "bc" takes its right side; what is possible then comes in its turn. */
TEST(a_merge_that_became_another_waits_for_its_rank)
{
    bpe b;
    make(&b, (const char *[]){ "bc", "ab", "bcd", "abc", NULL },
         (const char *[]){ "b c", "a b", "bc d", "a bc", NULL });
    expect(&b, "abcd", "a bcd");
    expect(&b, "abc", "abc");
    bpe_free(&b);
}

/* Merges the leftmost pair of lowest rank once; parts lie between cuts[0..*n]. False: there is
 * none. */
static bool merge_once(str text, size_t *cuts, int *n, const char *const *merges)
{
    for (int m = 0; merges[m]; m++) {
        const str both = str_from(merges[m]);
        const size_t space = str_find(both, STR(" "));
        for (int i = 0; i + 1 < *n; i++) {
            if (!str_eq(str_sub(text, cuts[i], cuts[i + 1]), str_sub(both, 0, space))) continue;
            if (!str_eq(str_sub(text, cuts[i + 1], cuts[i + 2]),
                        str_sub(both, space + 1, both.len)))
                continue;
            memmove(cuts + i + 1, cuts + i + 2, (size_t)(*n - i - 1) * sizeof *cuts);
            --*n;
            return true;
        }
    }
    return false;
}

TEST(equals_the_definition_on_random_pieces)
{
    static const char *const entries[] = { "ab",   "ba", "aa",   "abb",   "bab", "aab",
                                           "abab", "bb", "baab", "aabab", NULL };
    static const char *const merges[] = { "a b",   "a a", "b b",   "ab b",   "b ab", "aa b",
                                          "ab ab", "b a", "ba ab", "aa bab", NULL };
    enum { MOST = 40 };
    bpe b;
    make(&b, entries, merges);
    bpe_work w = { 0 };
    rng r = { 7 };
    for (int round = 0; round < 3000; round++) {
        char piece[MOST];
        size_t cuts[MOST + 1] = { 0 };
        int n = 1 + (int)rng_below(&r, MOST);
        const str text = { piece, (size_t)n };
        for (int i = 0; i < n; i++) {
            piece[i] = (char)('a' + rng_below(&r, 2));
            cuts[i + 1] = (size_t)i + 1;
        }
        while (merge_once(text, cuts, &n, merges)) {}
        int32_t ids[MOST];
        size_t got = 0;
        EXPECT_OK(bpe_encode(&b, &w, text, ids, &got, &err), err);
        EXPECT_INT(got, n);
        for (int i = 0; i < n; i++)
            if (!str_eq(b.bytes[ids[i]], str_sub(text, cuts[i], cuts[i + 1])))
                FAIL("%.*s: part %d", STR_ARG(text), i);
    }
    bpe_work_free(&w);
    bpe_free(&b);
}

/* A megabyte of one letter: a quadratic loop would take minutes. */
TEST(long_piece)
{
    enum { LEN = 1 << 20 };
    bpe b;
    make(&b, (const char *[]){ "aa", "aaaa", NULL }, (const char *[]){ "a a", "aa aa", NULL });
    bpe_work w = { 0 };
    char *text = malloc(LEN);
    int32_t *ids = malloc(LEN * sizeof *ids);
    size_t n = 0;
    memset(text, 'a', LEN);
    EXPECT_OK(bpe_encode(&b, &w, (str){ text, LEN }, ids, &n, &err), err);
    EXPECT_INT(n, LEN / 4);
    EXPECT_INT(ids[n - 1], 257);
    free(text);
    free(ids);
    bpe_work_free(&w);
    bpe_free(&b);
}

TEST(refused_entries)
{
    bpe b;
    EXPECT_OK(bpe_init(&b, 0, 1, &err), err);
    EXPECT_OK(bpe_add(&b, 0, STR("a"), &err), err);
    EXPECT_INT(bpe_add(&b, 0, STR("b"), &err), E_FORMAT);
    EXPECT_STR(err.text, "found id 0, which another entry has");
    EXPECT_INT(bpe_add(&b, -1, STR("c"), &err), E_FORMAT);
    EXPECT_INT(bpe_add(&b, BPE_MAX_ID + 1, STR("c"), &err), E_FORMAT);
    EXPECT_INT(bpe_id(&b, STR("a")), 0);
    EXPECT_INT(bpe_add(&b, 5, STR("a"), &err), E_FORMAT);
    EXPECT_STR(err.text, "found the bytes of an earlier entry, want them once");
    EXPECT_OK(bpe_add_apart(&b, 7, STR("a"), &err), err); /* not part of the vocabulary */
    EXPECT_OK(bpe_add_apart(&b, 7, STR("a"), &err), err);
    EXPECT_INT(bpe_add_apart(&b, 7, STR("b"), &err), E_FORMAT);
    EXPECT_INT(b.n_ids, 8);
    EXPECT_INT(bpe_finish(&b, &err), E_FORMAT);
    EXPECT_STR(err.text, "found no entry for the byte 0x00, want one for each byte");
    bpe_free(&b);
    bpe_free(&(bpe){ 0 });
}
