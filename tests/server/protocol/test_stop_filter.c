/* stop_filter: the shown text does not depend on how the bytes were cut, whatever the stop
 * strings. */
#include "server/protocol/output/stop_filter.h"

#include "base/utf8.h"
#include "tests/check.h"

/* Pushes text in pieces of `step` bytes; out is what was shown. */
static bool run(bytes *out, const char *text, size_t len, size_t step, char *const *stops, size_t n_stops)
{
    stop_filter s;
    stop_filter_init(&s, stops, n_stops);
    for (size_t i = 0; i < len; i += step) {
        stop_filter_push(&s, out, text + i, len - i < step ? len - i : step);
        CHECK(utf8_valid(bytes_str(out), out->len));
    }
    stop_filter_finish(&s, out);
    bool stopped = s.stopped;
    stop_filter_deinit(&s);
    return stopped;
}

/* In two pushes, at every place. */
static void check_splits(const char *text, size_t len, char *const *stops, size_t n_stops,
                         const char *expected, bool expect_stop)
{
    for (size_t cut = 0; cut <= len; cut++) {
        stop_filter s;
        bytes out;
        bytes_init(&out, 1 << 20);
        stop_filter_init(&s, stops, n_stops);
        stop_filter_push(&s, &out, text, cut);
        CHECK(utf8_valid(bytes_str(&out), out.len));
        stop_filter_push(&s, &out, text + cut, len - cut);
        stop_filter_finish(&s, &out);
        CHECK_INT(s.stopped, expect_stop);
        CHECK_STR(bytes_str(&out), expected);
        stop_filter_deinit(&s);
        bytes_deinit(&out);
    }
}

static void check_all_cuts(const char *text, size_t len, char *const *stops, size_t n_stops,
                           const char *expected, bool expect_stop)
{
    for (size_t step = 1; step <= len + 1; step++) {
        bytes out;
        bytes_init(&out, 1 << 20);
        CHECK_INT(run(&out, text, len, step, stops, n_stops), expect_stop);
        CHECK_STR(bytes_str(&out), expected);
        bytes_deinit(&out);
    }
    check_splits(text, len, stops, n_stops, expected, expect_stop);
}

#define ALL_CUTS(text, expected, stopped, ...)                                                               \
    do {                                                                                                     \
        char *stops[] = {__VA_ARGS__};                                                                       \
        check_all_cuts(text, sizeof(text) - 1, stops, sizeof stops / sizeof stops[0], expected, stopped);    \
    } while (0)

static void test_stops(void)
{
    ALL_CUTS("hello world", "hello ", true, "world");
    ALL_CUTS("hello world", "hello world", false, "worlds");
    ALL_CUTS("hello", "", true, "h");
    ALL_CUTS("aaab", "a", true, "aab");
    ALL_CUTS("abababc", "abab", true, "abc");
    ALL_CUTS("one\n\ntwo", "one", true, "\n\n");
    ALL_CUTS("xabcabd", "xabc", true, "abd");
    ALL_CUTS("abcd", "a", true, "abcde", "bc"); /* complete first */
    ALL_CUTS("abcd", "", true, "abc", "bc");    /* the longer one, when they end together */
    ALL_CUTS("w\xC3\xB6rld", "w", true, "\xC3\xB6");
    ALL_CUTS("w\xC3\xB6rld", "w\xC3\xB6", true, "rl", "zz", "yy");
    ALL_CUTS("tail of a sto", "tail of a sto", false, "stop");
}

static void test_utf8(void)
{
    check_all_cuts("\xF0\x9F\x98\x80 \xE2\x82\xAC \xC3\xA9", 11, NULL, 0,
                   "\xF0\x9F\x98\x80 \xE2\x82\xAC \xC3\xA9", false);
    check_all_cuts("a\xFF"
                   "b",
                   3, NULL, 0,
                   "a\xEF\xBF\xBD"
                   "b",
                   false);
    check_all_cuts("end\xE2\x82", 5, NULL, 0, "end\xEF\xBF\xBD", false);
    check_all_cuts("", 0, NULL, 0, "", false);
}

static void test_holding(void)
{
    stop_filter s;
    bytes out;
    char *stops[] = {"STOP"};
    bytes_init(&out, 100);
    stop_filter_init(&s, stops, 1);
    stop_filter_push(&s, &out, "go ST", 5);
    CHECK_STR(bytes_str(&out), "go ");
    stop_filter_push(&s, &out, "ART", 3);
    CHECK_STR(bytes_str(&out), "go START");
    stop_filter_push(&s, &out, "STOP", 4);
    stop_filter_push(&s, &out, " more", 5);
    CHECK(s.stopped);
    CHECK(s.stop == stops[0]);
    CHECK_STR(bytes_str(&out), "go START");
    stop_filter_deinit(&s);
    bytes_deinit(&out);
}

int main(void)
{
    test_stops();
    test_utf8();
    test_holding();
    CHECK_DONE();
}
