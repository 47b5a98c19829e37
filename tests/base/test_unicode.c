/* unicode: composition, order of marks, younger marks, endless runs; white space and case. */
#include "base/unicode.h"

#include <time.h>

#include "base/compiler.h"
#include "base/utf8.h"
#include "tests/alloc_fail.h"
#include "tests/check.h"
#include "tests/guard.h"

static const char *nfc(const char *text)
{
    static bytes out;
    bytes_deinit(&out);
    bytes_init(&out, 1 << 20);
    unicode_nfc(&out, text, strlen(text));
    return bytes_str(&out);
}

static const char *convert(const char *text, unicode_case to)
{
    static bytes out;
    bytes_deinit(&out);
    bytes_init(&out, 1 << 20);
    unicode_convert(&out, text, strlen(text), to);
    return bytes_str(&out);
}

static void test_nfc(void)
{
    CHECK_STR(nfc(""), "");
    CHECK_STR(nfc("plain text"), "plain text");
    CHECK_STR(nfc("cafe\xCC\x81"), "caf\xC3\xA9");
    CHECK_STR(nfc("e\xCC\x81\x65\xCC\x81"), "\xC3\xA9\xC3\xA9");
    CHECK_STR(nfc("\xE2\x84\xAB"), "\xC3\x85");                             /* angstrom sign */
    CHECK_STR(nfc("\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8"), "\xEA\xB0\x81"); /* Hangul jamo */
    CHECK_STR(nfc("\xEA\xB0\x80\xE1\x86\xA8"), "\xEA\xB0\x81");             /* syllable + final consonant */
    CHECK_STR(nfc("q\xCC\x87\xCC\xA3"), "q\xCC\xA3\xCC\x87");               /* order of marks */
    CHECK_STR(nfc("\xE1\xBA\x9B\xCC\xA3"), "\xE1\xBA\x9B\xCC\xA3");
    CHECK_STR(nfc("\xE3\x81\x8B\xE3\x82\x99"), "\xE3\x81\x8C"); /* Hiragana ka + voiced mark */
    CHECK_STR(nfc("\xCC\x81\x61"), "\xCC\x81\x61");             /* a mark first */
    /* A mark that Unicode 9 does not know stays and keeps others from composing. */
    CHECK_STR(nfc("a\xE1\xAA\xBF\xCC\x81"), "a\xE1\xAA\xBF\xCC\x81");
    CHECK_STR(nfc("\xF0\x9E\x84\xB0\xEF\xB8\xAB"), "\xF0\x9E\x84\xB0\xEF\xB8\xAB");
    CHECK(unicode_surely_nfc("na\xC3\xAFve \xE4\xB8\xAD\xF0\x9F\x98\x80", 14));
    CHECK(!unicode_surely_nfc("e\xCC\x81", 3));
}

/* Composing what was composed changes nothing, for every character alone and with a mark behind it.
 */
static void test_idempotent(void)
{
    size_t wrong = 0;
    for (uint32_t c = 1; c <= 0x10FFFF; c++) {
        char text[16] = {0};
        size_t n = utf8_encode(text, c);
        n += utf8_encode(text + n, 0x301);
        char once[64], twice[64];
        snprintf(once, sizeof once, "%s", nfc(text));
        snprintf(twice, sizeof twice, "%s", nfc(once));
        wrong += strcmp(once, twice) != 0;
        wrong += unicode_surely_nfc(text, n) && strcmp(text, once) != 0;
    }
    CHECK_INT(wrong, 0);
}

/* A megabyte of marks in descending order: sorting must not be quadratic. */
static void test_long_run(void)
{
    enum { PAIRS = 250000 };
    bytes text, out;
    bytes_init(&text, 8 << 20);
    bytes_init(&out, 8 << 20);
    bytes_append_char(&text, 'a');
    for (int i = 0; i < PAIRS; i++) {
        bytes_append_str(&text, "\xCC\x81\xCC\xA3"); /* classes 230, 220 */
    }
    clock_t start = clock();
    unicode_nfc(&out, bytes_str(&text), text.len);
    CHECK((double)(clock() - start) / CLOCKS_PER_SEC < 5);
    CHECK_INT(out.failed, 0);
    CHECK(memcmp(bytes_str(&out), "\xE1\xBA\xA1\xCC\xA3\xCC\xA3", 7) == 0); /* a with dot below, then dots */
    CHECK(memcmp(bytes_str(&out) + out.len - 2, "\xCC\x81", 2) == 0);
    bytes_deinit(&text);
    bytes_deinit(&out);
}

static void test_space_and_case(void)
{
    static const uint32_t spaces[] = {9, 13, 0x1C, 0x1F, 0x20, 0x85, 0xA0, 0x1680, 0x2028, 0x3000};
    static const uint32_t others[] = {0, 8, 0x1B, 'a', 0x180E, 0x200B, 0xFEFF};
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        CHECK(unicode_is_space(spaces[i]));
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        CHECK(!unicode_is_space(others[i]));
    }
    CHECK_STR(convert("Stra\xC3\x9F"
                      "e \xC3\xA9",
                      UNICODE_UPPER),
              "STRASSE \xC3\x89");
    CHECK_STR(convert("\xD0\x9F\xD0\xA0 ABC", UNICODE_LOWER), "\xD0\xBF\xD1\x80 abc");
    CHECK_STR(convert("\xCE\x91\xCE\xA3 \xCE\xA3", UNICODE_LOWER), "\xCE\xB1\xCF\x82 \xCF\x83");
    CHECK(unicode_is_alpha(0x4E2D) && unicode_is_upper('A') && unicode_is_lower('a') &&
          unicode_is_digit('7'));
    CHECK(!unicode_is_alpha('7') && unicode_is_numeric(0xBD) && !unicode_is_digit(0xBD));
    /* Both ends of some ranges of digits, and what lies beside them. */
    static const uint32_t digits[] = {0xB2,   0xB3,   0xB9,   0x1369, 0x1371,
                                      0x2074, 0x2079, 0x2089, 0x24FF, 0x1F10A};
    static const uint32_t no_digits[] = {0xB1,   0xB4,   0xBA,   0x1368, 0x1372,
                                         0x2073, 0x207A, 0x208A, 0x2469, 0x1F10B};
    for (size_t i = 0; i < sizeof digits / sizeof *digits; i++) {
        CHECK(unicode_is_digit(digits[i]) && !unicode_is_decimal(digits[i]) && unicode_is_numeric(digits[i]));
        CHECK(!unicode_is_digit(no_digits[i]) && !unicode_is_decimal(no_digits[i]));
    }
    CHECK(unicode_is_decimal('0') && unicode_is_decimal(0x663) && unicode_is_digit(0x663));
}

/* Marks of a run that is sorted in memory of its own, more than there is room for at first. */
static err_code compose_run(void *context)
{
    static const char RUN[] = "\u0301\u0323";
    char text[1 + 4 * 300 + 1] = "a";
    bytes out = bytes_empty(1 << 16);
    (void)context;
    for (int i = 0; i < 300; i++) {
        memcpy(text + 1 + 4 * i, RUN, 4);
    }
    unicode_nfc(&out, text, 1 + 4 * 300);
    const err_code err = out.no_memory ? ERR_NOMEM : out.failed ? ERR_INTERNAL : ERR_OK;
    CHECK(err || out.len == 3 + 2 * 599);
    bytes_deinit(&out);
    return err;
}

/* White space, of all characters. */
static void test_all_spaces(void)
{
    static const uint32_t RANGES[][2] = {
        {0x09, 0x0D},     {0x1C, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},     {0x1680, 0x1680},
        {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};
    size_t wrong = 0, next = 0;
    for (uint32_t c = 0; c <= 0x10FFFF; c++) {
        next += next < ARRAY_LEN(RANGES) && c > RANGES[next][1];
        wrong += unicode_is_space(c) != (next < ARRAY_LEN(RANGES) && c >= RANGES[next][0]);
    }
    CHECK_INT(wrong, 0);
    static const uint32_t SHOWN[] = {' ', '!', '~', 0xA1, 0xE9, 0x300, 0x4E2D, 0x1F600},
                          HIDDEN[] = {0,     9,      0x1F,   0x7F,   0xA0,   0xAD,
                                      0x378, 0x2028, 0x2029, 0x3000, 0xE000, 0x10FFFF};
    for (size_t i = 0; i < ARRAY_LEN(SHOWN); i++) {
        CHECK(unicode_is_printable(SHOWN[i]));
    }
    for (size_t i = 0; i < ARRAY_LEN(HIDDEN); i++) {
        CHECK(!unicode_is_printable(HIDDEN[i]));
    }
}

/* Characters that become several, as Python has them; and the sigma at the end of a word. */
static void test_several(void)
{
    static const char *const CASES[][3] = {
        {"\u00DF", "SS", "Ss"},           {"\u0149", "\u02BCN", "\u02BCN"},
        {"\u01F0", "J\u030C", "J\u030C"}, {"\u0587", "\u0535\u0552", "\u0535\u0582"},
        {"\u1E96", "H\u0331", "H\u0331"}, {"\u1E97", "T\u0308", "T\u0308"},
        {"\u1E98", "W\u030A", "W\u030A"}, {"\u1E99", "Y\u030A", "Y\u030A"},
        {"\u1E9A", "A\u02BE", "A\u02BE"}, {"\uFB00", "FF", "Ff"},
        {"\uFB01", "FI", "Fi"},           {"\uFB02", "FL", "Fl"},
        {"\uFB03", "FFI", "Ffi"},         {"\uFB04", "FFL", "Ffl"},
        {"\uFB05", "ST", "St"},           {"\uFB06", "ST", "St"},
        {"\u01C6", "\u01C4", "\u01C5"},   {"\u00DE", "\u00DE", "\u00DE"},
        {"\u00E0", "\u00C0", "\u00C0"}};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        bytes title = bytes_empty(64);
        uint32_t c = 0;
        CHECK_STR(convert(CASES[i][0], UNICODE_UPPER), CASES[i][1]);
        utf8_decode(CASES[i][0], strlen(CASES[i][0]), &c);
        unicode_append_case(&title, c, UNICODE_TITLE);
        CHECK_STR(bytes_str(&title), CASES[i][2]);
        bytes_deinit(&title);
    }
    CHECK_STR(convert("\u0130@[`{", UNICODE_LOWER), "i\u0307@[`{");
    CHECK_STR(convert("AZaz@[`{", UNICODE_LOWER), "azaz@[`{");
    CHECK_STR(convert("AZaz@[`{", UNICODE_UPPER), "AZAZ@[`{");
    CHECK_STR(convert("a\u03A3", UNICODE_LOWER), "a\u03C2");
    CHECK_STR(convert("\u03A3", UNICODE_LOWER), "\u03C3");
    CHECK_STR(convert("\u03A3.", UNICODE_LOWER), "\u03C3.");
    CHECK_STR(convert("Z\u03A3.", UNICODE_LOWER), "z\u03C2.");
    CHECK_STR(convert("1\u03A3", UNICODE_LOWER), "1\u03C3");
    CHECK_STR(convert("\u00E9\u03A3x\u00D7\u03A3", UNICODE_LOWER), "\u00E9\u03C3x\u00D7\u03C3");
    CHECK_STR(convert("\u03A3a", UNICODE_LOWER), "\u03C3a");
}

/* Nothing behind a text is read: each ends where memory does, cut at every byte. */
static void test_ends(void)
{
    static const char text[] =
        "e\xCC\x81 \xE1\x84\x80\xE1\x85\xA1 \xCE\xA3 \xF0\x9E\x84\xB0\xEF\xB8\xAB \xE1\xBA\x9B\xCC\xA3";
    bytes out;
    bytes_init(&out, 1 << 16);
    for (size_t len = 0; len < sizeof text; len++) {
        char *cut = guard_copy(text, len);
        const bool valid = utf8_valid(cut, len);
        bytes_clear(&out);
        unicode_nfc(&out, cut, len);
        CHECK(!out.failed && utf8_valid(bytes_str(&out), out.len));
        CHECK(!unicode_surely_nfc(cut, len) || (out.len == len && memcmp(bytes_str(&out), cut, len) == 0) ||
              !valid);
        bytes_clear(&out);
        unicode_convert(&out, cut, len, UNICODE_UPPER);
        unicode_convert(&out, cut, len, UNICODE_LOWER);
        unicode_fold(&out, cut, len);
        CHECK(!out.failed && utf8_valid(bytes_str(&out), out.len));
        CHECK(utf8_incomplete_tail(cut, len) == 0 || !valid);
        CHECK(len == 0 || utf8_last(cut, len) < len);
        guard_free(cut);
    }
    bytes_deinit(&out);
}

int main(void)
{
    test_ends();
    test_nfc();
    test_idempotent();
    test_long_run();
    test_space_and_case();
    CHECK(alloc_fail_each(compose_run, NULL, 1000) > 3);
    test_all_spaces();
    test_several();
    CHECK_DONE();
}
