#include "base/rng.h"
#include "engine/stop.h"
#include "test.h"

/* What may be shown when no more text will come: all of it, unless a needle was found. */
static size_t shown_at_end(const stop *s)
{
    return s->matched < 0 ? s->start + s->window.len : s->shown;
}

/* Feeds text in the given pieces; returns how much may be shown at the end. */
static size_t feed(const str *needles, int n, const char *const *pieces, int n_pieces, int *matched)
{
    stop s;
    stop_init(&s, needles, n);
    for (int i = 0; i < n_pieces; i++) {
        buf_text(&s.window, pieces[i]);
        if (stop_look(&s)) break;
    }
    const size_t shown = shown_at_end(&s);
    *matched = s.matched;
    stop_free(&s);
    return shown;
}

TEST(R017_stop_string_across_and_inside_pieces)
{
    static const char *const pieces[] = { "alpha be", "ta ga", "mma delta" };
    const str across = STR("beta gamma"), inside = STR("gamma");
    int matched;
    EXPECT_INT(feed(&across, 1, pieces, 3, &matched), strlen("alpha "));
    EXPECT_INT(matched, 0);
    EXPECT_INT(feed(&inside, 1, pieces, 3, &matched), strlen("alpha beta "));
    EXPECT_INT(matched, 0);
}

TEST(text_is_held_only_while_it_may_become_a_stop_string)
{
    const str needle = STR("abcab");
    stop s;
    stop_init(&s, &needle, 1);
    buf_text(&s.window, "xxabc");
    EXPECT(!stop_look(&s));
    EXPECT_INT(s.shown, 2);
    buf_text(&s.window, "a");
    EXPECT(!stop_look(&s));
    EXPECT_INT(s.shown, 2);
    buf_text(&s.window, "c"); /* "abcac": nothing of it can begin the needle any more */
    EXPECT(!stop_look(&s));
    EXPECT_INT(s.shown, 7);
    buf_text(&s.window, "ab");
    EXPECT(!stop_look(&s));
    EXPECT_INT(s.shown, 7);
    EXPECT_INT(shown_at_end(&s), 9);
    EXPECT_INT(s.matched, -1);
    stop_free(&s);
}

TEST(the_match_that_begins_first_counts)
{
    static const char *const pieces[] = { "one two three" };
    const str needles[] = { STR("three"), STR("two"), STR("two t") };
    int matched;
    EXPECT_INT(feed(needles, 3, pieces, 1, &matched), 4);
    EXPECT_INT(matched, 1);
}

/* Against a search in the whole text, for random texts over two letters cut anywhere. */
TEST(any_cut_gives_the_cut_of_the_whole)
{
    rng r = { 7 };
    for (int round = 0; round < 3000; round++) {
        char text[41], words[2][6];
        for (int i = 0; i < 40; i++) text[i] = (char)('a' + rng_below(&r, 2));
        text[40] = 0;
        str needles[2];
        size_t want = 40;
        for (int k = 0; k < 2; k++) {
            const size_t len = 3 + rng_below(&r, 3);
            for (size_t i = 0; i < len; i++) words[k][i] = (char)('a' + rng_below(&r, 2));
            words[k][len] = 0;
            needles[k] = str_from(words[k]);
        }
        stop s;
        stop_init(&s, needles, 2);
        size_t at = 0;
        bool found = false;
        while (at < 40 && !found) {
            size_t n = 1 + rng_below(&r, 4);
            if (n > 40 - at) n = 40 - at;
            buf_put(&s.window, text + at, n);
            at += n;
            found = stop_look(&s);
            for (int k = 0; k < 2; k++) {
                const char *hit = strstr(text, words[k]);
                if (hit && (size_t)(hit - text) + strlen(words[k]) <= at &&
                    (size_t)(hit - text) < want)
                    want = (size_t)(hit - text);
            }
            EXPECT_INT(found, want < 40);
        }
        EXPECT_INT(shown_at_end(&s), want);
        stop_free(&s);
    }
}
