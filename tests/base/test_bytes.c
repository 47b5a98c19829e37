/* bytes: growth, the maximum, sticky failure, JSON strings. */
#include "base/bytes.h"

#include <stdint.h>
#include <wchar.h>

#include "tests/check.h"

static void test_append(void)
{
    bytes b;
    bytes_init(&b, 1000);
    CHECK_STR(bytes_str(&b), "");
    CHECK(b.data == NULL);
    bytes_append_str(&b, "ab");
    bytes_append_char(&b, 'c');
    bytes_printf(&b, "%d-%s", 12, "x");
    bytes_append(&b, "\0z", 2);
    CHECK_INT(b.len, 9);
    CHECK(memcmp(b.data, "abc12-x\0z", 10) == 0);
    bytes_consume(&b, 3);
    CHECK_STR(bytes_str(&b), "12-x");
    CHECK_INT(b.len, 6);
    bytes_consume(&b, 6);
    CHECK_INT(b.len, 0);
    CHECK_STR(bytes_str(&b), "");
    bytes_clear(&b);
    for (int i = 0; i < 1000; i++) {
        bytes_append_char(&b, (char)('a' + i % 26));
        CHECK(b.data[b.len] == '\0' && b.len <= b.cap && b.cap <= b.max);
    }
    CHECK(!b.failed && b.len == 1000);
    bytes_deinit(&b);
    CHECK(b.data == NULL && b.len == 0 && b.max == 1000);
}

static void test_maximum(void)
{
    bytes b;
    bytes_init(&b, 10);
    bytes_append_str(&b, "123456789");
    bytes_append_str(&b, "ab");
    CHECK(b.failed && !b.no_memory);
    CHECK_STR(bytes_str(&b), "123456789"); /* all or nothing */
    bytes_append_char(&b, 'x');
    CHECK_INT(b.len, 9); /* failure sticks */
    bytes_clear(&b);
    CHECK(!b.failed && b.len == 0);
    bytes_printf(&b, "%s", "0123456789");
    CHECK(!b.failed && b.len == 10);
    bytes_printf(&b, "%s", "");
    CHECK(!b.failed);
    bytes_printf(&b, "%d", 1);
    CHECK(b.failed);
    bytes_deinit(&b);

    bytes_init(&b, 0);
    bytes_append(&b, NULL, 0);
    CHECK(!b.failed);
    CHECK_STR(bytes_str(&b), "");
    bytes_append_char(&b, 'x');
    CHECK(b.failed);
    bytes_deinit(&b);

    bytes_init(&b, SIZE_MAX);
    bytes_append_str(&b, "x");
    bytes_append(&b, "y", SIZE_MAX - 1); /* refused before anything is copied */
    CHECK(b.failed && b.len == 1);
    bytes_deinit(&b);
}

static void check_json(const char *text, size_t len, const char *expected)
{
    bytes b;
    bytes_init(&b, 4096);
    bytes_append_json(&b, text, len);
    CHECK_STR(bytes_str(&b), expected);
    bytes_deinit(&b);
}

static void test_json(void)
{
    check_json("", 0, "\"\"");
    check_json(NULL, 0, "\"\"");
    check_json("plain", 5, "\"plain\"");
    check_json("a\"b\\c/", 6, "\"a\\\"b\\\\c/\"");
    check_json("\b\f\n\r\t", 5, "\"\\b\\f\\n\\r\\t\"");
    check_json("\0\x01\x1f", 3, "\"\\u0000\\u0001\\u001f\"");
    check_json("\x7f", 1, "\"\\u007f\"");
    check_json("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", 9, "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\"");
    check_json("\xEF\xBF\xBD", 3, "\"\xEF\xBF\xBD\"");
    check_json("a\x80z", 3, "\"a\xEF\xBF\xBDz\"");
    check_json("\xE2\x82", 2, "\"\xEF\xBF\xBD\"");
    check_json("\xED\xA0\x80", 3, "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
    check_json("x\xC3", 2, "\"x\xEF\xBF\xBD\"");
}

static void test_json_format(void)
{
    const bool yes = true, no = false;
    const char *volatile none = NULL;
    bytes b;
    bytes_init(&b, 4096);
    bytes_json(&b, "{\"a\":%s,\"b\":%s,\"c\":%hhd,\"d\":%hhd", "x\"y", none, yes, no);
    bytes_json(&b, ",\"e\":%.*s,\"f\":%-s,\"g\":%-s}", 3, "a\0b", "[1]", "");
    CHECK_STR(bytes_str(&b), "{\"a\":\"x\\\"y\",\"b\":null,\"c\":true,\"d\":false,"
                             "\"e\":\"a\\u0000b\",\"f\":[1],\"g\":}");
    bytes_clear(&b);
    bytes_json(&b, "%d %u %lld %llu %zu %lu %.3f %g", -1, 2u, -3LL, 1ULL << 63, (size_t)5, 6UL, 0.5, 1e9);
    CHECK_STR(bytes_str(&b), "-1 2 -3 9223372036854775808 5 6 0.500 1e+09");
    bytes_deinit(&b);
    bytes_init(&b, 4);
    bytes_json(&b, "%s", "longer");
    CHECK(b.failed);
    bytes_deinit(&b);
}

/* What cannot be written says so, and leaves what was there. */
static void test_format(void)
{
    bytes b = bytes_empty(100);
    bytes_append_str(&b, "before");
    bytes_printf(&b, "%lc", (wint_t)0x110000); /* no character */
    CHECK(b.failed);
    CHECK_STR(bytes_str(&b), "before");
    bytes_deinit(&b);
}

/* How a part failed is how the whole did, whatever it was before; and what was cleared is empty for who reads it as text. */
static void test_failing_as(void)
{
    for (int i = 0; i < 16; i++) {
        bytes whole = bytes_empty(8), part = bytes_empty(8);
        whole.failed = i & 1;
        whole.no_memory = i & 2;
        part.failed = i & 4;
        part.no_memory = i & 8;
        bytes_fail_as(&whole, &part);
        CHECK(whole.failed == ((i & 5) != 0) && whole.no_memory == ((i & 10) != 0));
        bytes_fail_memory(&part);
        CHECK(part.failed && part.no_memory);
        bytes_clear(&whole);
        CHECK(!whole.failed && !whole.no_memory);
    }
    bytes b = bytes_empty(64);
    bytes_append_str(&b, "a text that is longer than eight");
    bytes_clear(&b);
    CHECK_STR(bytes_str(&b), "");
    bytes_append_str(&b, "b");
    CHECK_STR(bytes_str(&b), "b");
    bytes_deinit(&b);
}

int main(void)
{
    test_append();
    test_format();
    test_maximum();
    test_json();
    test_json_format();
    test_failing_as();
    CHECK_DONE();
}
