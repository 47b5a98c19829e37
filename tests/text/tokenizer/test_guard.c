/* markers in a text, by the guard's own calls: where they are, what may become one, at both ends of a text, with one set, both
 * or none.
 */
#include "text/tokenizer/guard.h"

#include "tests/check.h"
#include "tests/guard.h"

static err_detail d;

/* The words of a text with spaces between them. */
static added_tokens set_of(const char *words)
{
    added_tokens set = {0};
    for (int32_t id = 0; *words; id++) {
        const size_t n = strcspn(words, " ");
        CHECK_OK(added_tokens_add(&set, words, n, id, &d), d);
        words += n + (words[n] == ' ');
    }
    added_tokens_sort(&set);
    return set;
}

/* Both sets in either order, beside one that is not there. */
typedef struct guards {
    added_tokens a, b;
    guard all[5]; /* a and b, b and a, a alone, a alone as the second, none */
} guards;

enum { BOTH = 2, ONE = 4, NONE = 4, N_GUARDS = 5 };

static void open_guards(guards *g, const char *a, const char *b)
{
    g->a = set_of(a);
    g->b = set_of(b);
    const guard all[N_GUARDS] = {
        {{&g->a, &g->b}}, {{&g->b, &g->a}}, {{&g->a, NULL}}, {{NULL, &g->a}}, {{NULL, NULL}}};
    memcpy(g->all, all, sizeof all);
}

static void close_guards(guards *g)
{
    added_tokens_deinit(&g->a);
    added_tokens_deinit(&g->b);
}

static void test_places(void)
{
    guards g;
    open_guards(&g, "<a> <a>b <", "[x] <a>bc");
    static const struct {
        const char *text;
        size_t match[3], next[3]; /* of both sets, of the first alone, of none */
    } cases[] = {
        {"", {0, 0, 0}, {0, 0, 0}},       {"<", {1, 1, 0}, {0, 0, 1}},    {"<a", {1, 1, 0}, {0, 0, 2}},
        {"<a>", {3, 3, 0}, {0, 0, 3}},    {"<a>b", {4, 4, 0}, {0, 0, 4}}, {"<a>bc", {5, 4, 0}, {0, 0, 5}},
        {"<a>bcd", {5, 4, 0}, {0, 0, 6}}, {"[x]", {3, 0, 0}, {0, 3, 3}},  {"[x", {0, 0, 0}, {0, 2, 2}},
        {"a[x]<", {0, 0, 0}, {1, 4, 5}},  {"abc", {0, 0, 0}, {3, 3, 3}},  {"ab<", {0, 0, 0}, {2, 2, 3}},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const size_t len = strlen(cases[i].text);
        char *text = guard_copy(cases[i].text, len);
        for (int k = 0; k < N_GUARDS; k++) {
            const int kind = k < BOTH ? 0 : k < ONE ? 1 : 2;
            CHECK_INT(guard_match(&g.all[k], text, len), cases[i].match[kind]);
            CHECK_INT(guard_next(&g.all[k], text, 0, len), cases[i].next[kind]);
            CHECK_INT(guard_next(&g.all[k], text, len, len), len);
        }
        guard_free(text);
    }
    CHECK_INT(guard_next(&g.all[0], "<<", 1, 2), 1);
    close_guards(&g);
}

/* ---- all texts of three letters, against what is said of them one letter after the other ---- */

static const char LETTERS[] = "<a>";
enum { LONGEST = 5, N_TEXTS = 364 /* of no letter to LONGEST */ };

/* The text of that number; its length. */
static size_t text_of(char *out, int number)
{
    size_t len = 0;
    for (int first = 1, count = 1; number >= first; first += count) {
        count *= 3;
        len++;
    }
    for (size_t i = 0, rest = (size_t)number; i < len; i++) {
        rest -= 1;
        out[i] = LETTERS[rest % 3];
        rest /= 3;
    }
    return len;
}

/* Whether some marker holds for fn(marker, its length, text, len). */
typedef bool (*about_marker)(const char *marker, size_t n, const char *text, size_t len);

static bool is_any(const guard *g, about_marker fn, const char *text, size_t len)
{
    bool is = false;
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; g->sets[k] && i < g->sets[k]->len; i++) {
            is = is || fn(g->sets[k]->items[i].text, g->sets[k]->items[i].len, text, len);
        }
    }
    return is;
}

static bool begins_text(const char *marker, size_t n, const char *text, size_t len)
{
    return n <= len && memcmp(marker, text, n) == 0;
}

/* text begins with what ends the marker. */
static bool is_tail(const char *marker, size_t n, const char *text, size_t len)
{
    bool is = false;
    for (size_t tail = 1; tail < n && tail <= len; tail++) {
        is = is || memcmp(marker + n - tail, text, tail) == 0;
    }
    return is;
}

/* text ends with what begins the marker. */
static bool is_head(const char *marker, size_t n, const char *text, size_t len)
{
    bool is = false;
    for (size_t head = 1; head < n && head <= len; head++) {
        is = is || memcmp(marker, text + len - head, head) == 0;
    }
    return is;
}

static void check_text(const guard *g, const char *text, size_t len)
{
    bytes out = bytes_empty(1 << 10), want = bytes_empty(1 << 10), given = bytes_empty(1 << 10);
    bytes_append_str(&want, is_any(g, is_tail, text, len) ? GUARD_CHAR : "");
    for (size_t i = 0; i < len; i++) {
        bytes_append_char(&want, text[i]);
        bytes_append_str(&want, is_any(g, begins_text, text + i, len - i) ? GUARD_CHAR : "");
    }
    bytes_append_str(&want, is_any(g, is_head, text, len) ? GUARD_CHAR : "");
    guard_text(g, &out, text, len);
    CHECK_STR(bytes_str(&out), bytes_str(&want));
    for (size_t cut = 0; cut <= len && len < 4; cut++) { /* guard characters that are there say nothing */
        bytes_clear(&given);
        bytes_clear(&out);
        bytes_append(&given, text, cut);
        bytes_append_str(&given, GUARD_CHAR);
        bytes_append(&given, text + cut, len - cut);
        guard_text(g, &out, bytes_str(&given), given.len);
        CHECK_STR(bytes_str(&out), bytes_str(&want));
    }
    bytes_deinit(&out);
    bytes_deinit(&want);
    bytes_deinit(&given);
}

static bool spans(const guard *g, const char *left, size_t left_len, size_t own_tail, const char *right,
                  size_t right_len)
{
    char joined[2 * LONGEST + 1];
    memcpy(joined, left, left_len);
    memcpy(joined + left_len, right, right_len);
    for (size_t i = 0; i + own_tail < left_len; i++) {
        for (size_t n = left_len - i + 1; n <= left_len + right_len - i; n++) {
            if (guard_match(g, joined + i, n) == n) {
                return true;
            }
        }
    }
    return false;
}

static void test_texts(void)
{
    static const char *const SETS[][2] = {{"<a> aa>", "<< <a>a"}, {"<", "a"}, {"<a", "<"}, {">>>>", "<a>a<"}};
    enum { N_SHORT = 121 }; /* of up to four letters */
    char left[LONGEST], right[LONGEST];
    for (size_t i = 0; i < ARRAY_LEN(SETS); i++) {
        guards g;
        open_guards(&g, SETS[i][0], SETS[i][1]);
        for (int k = 0; k < N_GUARDS; k++) {
            for (int number = 0; number < N_TEXTS; number++) {
                const size_t len = text_of(left, number);
                char *copy = guard_copy(left, len);
                check_text(&g.all[k], copy, len);
                guard_free(copy);
            }
            for (int number = 0; number < N_SHORT * N_SHORT; number++) {
                const size_t n = text_of(left, number / N_SHORT), m = text_of(right, number % N_SHORT);
                for (size_t own_tail = 0; own_tail < 4; own_tail++) {
                    CHECK_INT(guard_spans(&g.all[k], left, n, own_tail, right, m),
                              spans(&g.all[k], left, n, own_tail, right, m));
                }
            }
        }
        close_guards(&g);
    }
}

/* A guard character is three bytes, each of which may stand alone. */
static void test_characters(void)
{
    static const char *const TEXTS[] = {"\xEF\xB7", "\xEF", "\xEF\xB7\x91", "a\xEF\xEF\xB7\x90",
                                        "\xEF\xB7\x90z"};
    static const int PLACES[] = {-1, -1, -1, 2, 0};
    static const char *const STRIPPED[] = {"\xEF\xB7", "\xEF", "\xEF\xB7\x91", "a\xEF", "z"};
    for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
        const size_t len = strlen(TEXTS[i]);
        bytes out = bytes_empty(1 << 10);
        char *text = guard_copy(TEXTS[i], len);
        const char *at = guard_find(text, len);
        CHECK_INT(at ? at - text : -1, PLACES[i]);
        guard_strip(&out, text, len);
        CHECK_STR(bytes_str(&out), STRIPPED[i]);
        guard_free(text);
        bytes_deinit(&out);
    }
}

/* The longest marker that there may be, and texts that are too long or none. */
static void test_added(void)
{
    char text[ADDED_TOKEN_MAX + 1];
    added_tokens set = {0};
    memset(text, '<', sizeof text);
    CHECK_INT(added_tokens_add(&set, text, 0, 5, &d), ERR_UNSUPPORTED);
    CHECK_STR(d.text, "added token 5 has 0 bytes; 1 to 1024 are supported");
    CHECK_INT(added_tokens_add(&set, text, ADDED_TOKEN_MAX + 1, 6, &d), ERR_UNSUPPORTED);
    CHECK_STR(d.text, "added token 6 has 1025 bytes; 1 to 1024 are supported");
    CHECK(set.len == 0 && !set.starts['<'] && set.longest == 0);
    CHECK_OK(added_tokens_add(&set, text, ADDED_TOKEN_MAX, 7, &d), d);
    CHECK_OK(added_tokens_add(&set, "<", 1, 8, &d), d);
    CHECK_INT(set.longest, ADDED_TOKEN_MAX);
    added_tokens_sort(&set);
    int32_t id = -1;
    CHECK_INT(added_tokens_match(&set, text, ADDED_TOKEN_MAX + 1, &id), ADDED_TOKEN_MAX);
    CHECK_INT(id, 7);
    CHECK_INT(added_tokens_match(&set, text, ADDED_TOKEN_MAX - 1, &id), 1);
    CHECK_INT(id, 8);
    const guard g = {{&set, NULL}};
    CHECK(guard_spans(&g, text, ADDED_TOKEN_MAX - 1, 0, text, 1) &&
          !guard_spans(&g, text, ADDED_TOKEN_MAX - 2, 0, text, 1));
    CHECK(guard_spans(&g, text, 1, 0, text, ADDED_TOKEN_MAX - 1) &&
          !guard_spans(&g, text, 1, 0, text, ADDED_TOKEN_MAX - 2));
    added_tokens_deinit(&set);
    CHECK(!set.items && set.len == 0 && set.cap == 0 && !set.starts['<']);
    enum { FIRST = 17, SECOND = 13 };
    for (int32_t i = 0; i < FIRST * SECOND;
         i++) { /* texts of two letters, and their first ones again and again */
        const char two[] = {(char)('0' + i % FIRST), (char)('A' + i % SECOND)};
        CHECK_OK(added_tokens_add(&set, two, 2, i, &d), d);
        CHECK_OK(added_tokens_add(&set, two, 1, 1000 + i % FIRST, &d), d);
    }
    added_tokens_sort(&set);
    for (int32_t i = 0; i < FIRST * SECOND; i++) {
        const char two[] = {(char)('0' + i % FIRST), (char)('A' + i % SECOND)}, other[] = {two[0], '?'};
        CHECK_INT(added_tokens_match(&set, two, 2, &id), 2);
        CHECK_INT(id, i);
        CHECK_INT(added_tokens_match(&set, other, 2, &id), 1);
        CHECK_INT(id, 1000 + i % FIRST);
    }
    CHECK_INT(added_tokens_match(&set, "zA", 2, &id), 0);
    added_tokens_deinit(&set);
}

int main(void)
{
    test_places();
    test_texts();
    test_characters();
    test_added();
    CHECK_DONE();
}
