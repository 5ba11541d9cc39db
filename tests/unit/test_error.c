#include "test.h"
#include "base/error.h"

TEST(set_and_prefix)
{
    error e = { 0 };
    EXPECT_INT(error_set(&e, E_FORMAT, "tensor %s: found %d, want %d", "a.b", 3, 4), E_FORMAT);
    EXPECT_STR(e.text, "tensor a.b: found 3, want 4");
    EXPECT_INT(error_prefix(&e, E_IO, "%s", "model.safetensors"), E_IO);
    EXPECT_STR(e.text, "model.safetensors: tensor a.b: found 3, want 4");
    EXPECT_INT(e.code, E_IO);
    EXPECT_INT(error_set(&e, E_ARG, "again: %s", e.text), E_ARG); /* an argument inside e->text */
    EXPECT_STR(e.text, "again: model.safetensors: tensor a.b: found 3, want 4");
}

TEST(null_is_allowed)
{
    EXPECT_INT(error_set(NULL, E_LIMIT, "x"), E_LIMIT);
    EXPECT_INT(error_prefix(NULL, E_LIMIT, "x"), E_LIMIT);
}

TEST(long_text_is_cut_between_characters)
{
    error e = { 0 };
    char big[1000];
    for (int i = 0; i < 499; i++) memcpy(big + 2 * i, "\xc3\xa9", 2);
    big[998] = '\0';
    error_set(&e, E_FORMAT, "%s", big);
    const size_t n = strlen(e.text);
    EXPECT_INT(n, 511); /* 508 bytes of é and the dots */
    EXPECT_STR(e.text + n - 5, "\xc3\xa9...");
    error_set(&e, E_FORMAT, "a%s", big);
    EXPECT_STR(e.text + strlen(e.text) - 5, "\xc3\xa9...");
    error_prefix(&e, E_FORMAT, "%s", big);
    EXPECT_INT(strlen(e.text), 511);
}

TEST(control_characters_are_masked)
{
    error e = { 0 };
    error_set(&e, E_FORMAT, "name \"%s\"", "a\nb\x1b[31mc\x7f");
    EXPECT_STR(e.text, "name \"a b?[31mc?\"");
}

TEST(every_status_has_a_name)
{
    for (int s = OK; s <= E_BUG; s++) {
        EXPECT(strcmp(error_name((status)s), "unknown") != 0);
        for (int t = OK; t < s; t++)
            EXPECT(strcmp(error_name((status)s), error_name((status)t)) != 0);
    }
}
