/* utf8: every code point, every two-byte sequence against a slow rule, maximal subparts, tails. */
#include "base/utf8.h"

#include "base/hex.h"
#include "tests/check.h"

/* Encode and decode agree for every scalar value; surrogates do not come through. */
static void test_round_trip(void)
{
    size_t wrong = 0;
    for (uint32_t c = 0; c <= 0x110000; c++) {
        char text[4];
        uint32_t back;
        size_t n = utf8_encode(text, c);
        bool scalar = c <= 0x10FFFF && !(c >= 0xD800 && c <= 0xDFFF);
        size_t want = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 || !scalar ? 3 : 4;
        wrong += n != want || !utf8_valid(text, n) || utf8_decode(text, n, &back) != n ||
                 back != (scalar ? c : 0xFFFD);
        for (size_t cut = 1; cut < n; cut++) {
            wrong += utf8_valid(text, cut) || utf8_incomplete_tail(text, cut) != cut ||
                     utf8_decode(text, cut, &back) != cut || back != 0xFFFD;
        }
        wrong += utf8_incomplete_tail(text, n) != 0;
    }
    CHECK_INT(wrong, 0);
    char text[4];
    CHECK_INT(utf8_encode(text, UINT32_MAX), 3);
    CHECK(memcmp(text, "\xEF\xBF\xBD", 3) == 0);
}

/* A three-byte text is valid exactly if it is a concatenation of encoded scalar values. */
static bool slow_valid(const char *text, size_t len)
{
    size_t i = 0;
    while (i < len) {
        bool found = false;
        unsigned char c = (unsigned char)text[i];
        size_t n = c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
        if (n <= len - i) {
            uint32_t value = n == 1 ? c : n == 2 ? c & 0x1Fu : n == 3 ? c & 0x0Fu : c & 0x07u;
            for (size_t k = 1; k < n; k++) {
                value = value << 6 | ((unsigned char)text[i + k] & 0x3Fu);
            }
            char again[4];
            found = utf8_encode(again, value) == n && memcmp(again, text + i, n) == 0;
        }
        if (!found) {
            return false;
        }
        i += n;
    }
    return true;
}

static void test_all_short(void)
{
    size_t wrong = 0;
    for (uint32_t v = 0; v < 1u << 24; v += v < 1u << 16 ? 1 : 37) {
        char text[3] = {(char)(v >> 16), (char)(v >> 8 & 255), (char)(v & 255)};
        wrong += utf8_valid(text, 3) != slow_valid(text, 3);
        wrong += utf8_valid(text + 1, 2) != slow_valid(text + 1, 2);
    }
    CHECK_INT(wrong, 0);
}

typedef struct subpart {
    const char *text;
    size_t used;
} subpart;

/* The examples of the Unicode standard, section 3.9, on substituting maximal subparts. */
static void test_subparts(void)
{
    static const subpart cases[] = {
        {"\x80", 1},
        {"\xC0\xAF", 1},
        {"\xE0\x80\xBF", 1},
        {"\xF0\x81\x82\x41", 1},
        {"\xED\xA0\x80", 1},
        {"\xF4\x91\x92\x93", 1},
        {"\xFF", 1},
        {"\xE1\x80\xE2", 2},
        {"\xF0\x91\x92", 3},
        {"\xF1\xBF\x41", 2},
        {"\xF4\x8F\xBF\x41", 3},
        {"\xE2\x82\x41", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t c;
        CHECK_INT(utf8_decode(cases[i].text, strlen(cases[i].text), &c), cases[i].used);
        CHECK_INT(c, 0xFFFD);
    }
}

static void test_tail(void)
{
    CHECK_INT(utf8_incomplete_tail("", 0), 0);
    CHECK_INT(utf8_incomplete_tail("abc", 3), 0);
    CHECK_INT(utf8_incomplete_tail("abc\xE2", 4), 1);
    CHECK_INT(utf8_incomplete_tail("abc\xE2\x82", 5), 2);
    CHECK_INT(utf8_incomplete_tail("\xF0\x9F\x98", 3), 3);
    CHECK_INT(utf8_incomplete_tail("\xE2\x82\xAC", 3), 0);
    /* What can never become a character is not waited for. */
    CHECK_INT(utf8_incomplete_tail("\x80", 1), 0);
    CHECK_INT(utf8_incomplete_tail("\xFF", 1), 0);
    CHECK_INT(utf8_incomplete_tail("\xED\xA0", 2), 0);
    CHECK_INT(utf8_incomplete_tail("\xE0\x80", 2), 0);
    CHECK_INT(utf8_incomplete_tail("\x80\x80\x80\x80", 4), 0);
    CHECK_INT(utf8_incomplete_tail("\xC3\xA9\x80", 3), 0);
}

static void test_last(void)
{
    CHECK_INT(utf8_last("a", 1), 0);
    CHECK_INT(utf8_last("a\xC3\xA9", 3), 1);
    CHECK_INT(utf8_last("\xF0\x9F\x98\x80", 4), 0);
    CHECK_INT(utf8_last("\x80\x80", 2), 0);
}

/* Every byte against the digits as the C library reads them. */
static void test_hex(void)
{
    for (int c = -128; c < 256; c++) {
        char text[2] = {(char)c, '\0'}, *end;
        const long value = strtol(text, &end, 16);
        const bool is_digit = end > text && text[0] != ' ';
        CHECK_INT(hex_digit((char)c), is_digit ? (int)value : -1);
    }
}

int main(void)
{
    test_last();
    test_hex();
    test_round_trip();
    test_all_short();
    test_subparts();
    test_tail();
    CHECK(utf8_valid("", 0));
    CHECK(!utf8_valid("ok\xC3", 3));
    CHECK_DONE();
}
