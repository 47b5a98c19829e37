/* err: formatting, cutting at the limit without breaking a character, prefixes, names. */
#include "base/err.h"

#include "base/utf8.h"
#include "tests/check.h"

static void test_set(void)
{
    err_detail d;
    memset(&d, 'x', sizeof d);
    CHECK_INT(err_set(&d, ERR_LIMIT, "%d of %s", 3, "four"), ERR_LIMIT);
    CHECK_STR(d.text, "3 of four");
    CHECK_STR(d.param, "");
    CHECK_STR(d.name, "");
    CHECK_INT(err_set_param(&d, ERR_INVALID, "messages[0]", "bad_message", "no %s", "role"), ERR_INVALID);
    CHECK_STR(d.text, "no role");
    CHECK_STR(d.param, "messages[0]");
    CHECK_STR(d.name, "bad_message");
    CHECK(d.amount == 0 && d.limit == 0);
    CHECK_INT(err_set_numbers(&d, ERR_CONTEXT, 25000, 4096), ERR_CONTEXT);
    CHECK(d.amount == 25000 && d.limit == 4096);
    CHECK_INT(err_prefix(&d, ERR_CONTEXT, "p"), ERR_CONTEXT);
    CHECK(d.amount == 25000);
    err_set_param(&d, ERR_INVALID, NULL, NULL, "x");
    CHECK(d.amount == 0 && d.limit == 0);
    CHECK_STR(d.param, "");
    CHECK_STR(d.name, "");
    CHECK_INT(err_set(NULL, ERR_IO, "x"), ERR_IO);
    CHECK_INT(err_set_param(NULL, ERR_IO, "p", "n", "x"), ERR_IO);
    CHECK_INT(err_prefix(NULL, ERR_IO, "x"), ERR_IO);
    CHECK_INT(err_set_numbers(NULL, ERR_IO, 1, 2), ERR_IO);
}

static void test_prefix(void)
{
    err_detail d;
    err_set_param(&d, ERR_INVALID, "field", "name", "bad");
    CHECK_INT(err_prefix(&d, ERR_INVALID, "file %d", 7), ERR_INVALID);
    CHECK_STR(d.text, "file 7: bad");
    CHECK_STR(d.param, "field");
    /* The text may be its own argument. */
    err_set(&d, ERR_INVALID, "again: %s", d.text);
    CHECK_STR(d.text, "again: file 7: bad");
}

static void test_cut(void)
{
    char text[ERR_TEXT_MAX * 2];
    err_detail d;
    for (size_t shift = 0; shift < 3; shift++) {
        memset(text, 'a', sizeof text);
        for (size_t i = shift; i + 3 < sizeof text; i += 3) {
            memcpy(text + i, "\xE2\x82\xAC", 3);
        }
        text[sizeof text - 1] = '\0';
        err_set(&d, ERR_INVALID, "%s", text);
        CHECK(strlen(d.text) < ERR_TEXT_MAX && strlen(d.text) >= ERR_TEXT_MAX - 4);
        CHECK(utf8_valid(d.text, strlen(d.text)));
        err_prefix(&d, ERR_INVALID, "%s", "where");
        CHECK(strlen(d.text) < ERR_TEXT_MAX && strncmp(d.text, "where: ", 7) == 0);
        CHECK(utf8_valid(d.text, strlen(d.text)));
    }
    memset(text, '\x80', sizeof text - 1); /* no character begins here */
    err_set(&d, ERR_INVALID, "%s", text);
    CHECK_STR(d.text, "");
    for (size_t n = ERR_TEXT_MAX - 2; n < sizeof text; n++) { /* what fits is whole */
        memset(text, 'q', n);
        text[n] = '\0';
        err_set(&d, ERR_INVALID, "%s", text);
        CHECK_INT(strlen(d.text), n < ERR_TEXT_MAX ? n : ERR_TEXT_MAX - 1);
        err_set(&d, ERR_INVALID, "z");
        err_prefix(&d, ERR_INVALID, "%s", text);
        CHECK_INT(strlen(d.text), n + 3 < ERR_TEXT_MAX ? n + 3 : ERR_TEXT_MAX - 1);
        CHECK(n < ERR_TEXT_MAX - 1 || d.text[ERR_TEXT_MAX - 2] == 'q');
    }
    memset(text, 'p', sizeof text - 1);
    err_set_param(&d, ERR_INVALID, text, text, "x");
    CHECK_INT(strlen(d.param), ERR_PARAM_MAX - 1);
    CHECK_INT(strlen(d.name), ERR_NAME_MAX - 1);
}

/* Bytes that are no UTF-8, and a character cut by a precision, do not get through. */
static void test_valid(void)
{
    err_detail steers;
    err_set(&steers, ERR_INVALID, "a\x1b[31mb\x7f%c\n\tc", '\a');
    CHECK_STR(steers.text, "a?[31mb??\n\tc");
    err_detail d;
    err_set(&d, ERR_INVALID, "path %s", "a\xFF\xC3");
    CHECK_STR(d.text, "path a??");
    err_set(&d, ERR_INVALID, "%.4s!", "abc\xE2\x82\xAC");
    CHECK_STR(d.text, "abc?!");
    err_prefix(&d, ERR_INVALID, "%.1s", "\xC3\xA9");
    CHECK_STR(d.text, "?: abc?!");
}

static void test_names(void)
{
    CHECK_STR(err_name(ERR_OK), "ok");
    CHECK_STR(err_name(ERR_INVALID), "invalid");
    CHECK_STR(err_name(ERR_INTERNAL), "internal");
    CHECK_STR(err_name(ERR_N_CODES), "unknown");
    CHECK_STR(err_name((err_code)-1), "unknown");
    for (int i = 0; i < ERR_N_CODES; i++) {
        CHECK(err_name((err_code)i) != NULL && strcmp(err_name((err_code)i), "unknown") != 0);
    }
}

int main(void)
{
    test_set();
    test_prefix();
    test_cut();
    test_valid();
    test_names();
    CHECK_DONE();
}
