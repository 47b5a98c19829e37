/* regex and dfa: what patterns accept, alone and combined; no state from which nothing can be completed. */
#include "text/grammar/regex.h"

#include <stdint.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "tests/recorded.h"

static dfa compile(const char *pattern, nfa_chars chars)
{
    dfa d = {0};
    err_detail detail = {0};
    CHECK_OK(regex_compile(&d, pattern, strlen(pattern), chars, NULL, &detail), detail);
    return d;
}

static bool accepts(const dfa *d, const char *text, size_t len)
{
    return d->n_states > 0 && dfa_accepts(d, text, len);
}

/* From every state an accepting one is reached: found forwards, again and again, until nothing changes. */
static void check_live(const dfa *d)
{
    enum { MOST = 64 };
    bool live[MOST] = {false};
    CHECK(d->n_states <= MOST);
    for (int32_t round = 0; round <= d->n_states; round++) {
        for (int32_t q = 0; q < d->n_states; q++) {
            live[q] = live[q] || d->accept[q];
            for (int32_t c = 0; c < d->n_classes && !live[q]; c++) {
                const uint16_t to = d->next[q * d->n_classes + c];
                live[q] = to != DFA_DEAD && live[to];
            }
        }
    }
    for (int32_t q = 0; q < d->n_states; q++) {
        CHECK(live[q]);
    }
}

/* Every byte as the only way from the start to the end: the first class and the last one, too. */
static void test_bytes(void)
{
    for (int byte = 0; byte < 256; byte++) {
        const char only = (char)byte;
        dfa d = {0};
        err_detail detail = {0};
        nfa n;
        nfa_init(&n, NULL);
        nfa_add_bytes(&n, NFA_START, NFA_END, &only, 1);
        CHECK_OK(nfa_determinize(&n, &d, "test", &detail), detail);
        size_t wrong = 0;
        for (int k = 0; k < 256; k++) {
            const char text = (char)k;
            wrong += accepts(&d, &text, 1) != (k == byte);
        }
        CHECK_INT(wrong, 0);
        CHECK_INT(d.n_states, 2);
        check_live(&d);
        dfa_free(&d);
    }
}

static void test_patterns(void)
{
    static const struct {
        const char *pattern, *good[4], *bad[4];
    } cases[] = {
        {"^$", {""}, {"a"}},
        {"^a{2,3}$", {"aa", "aaa"}, {"a", "aaaa"}},
        {"^(ab|cd)*$", {"", "abcd", "cdcd"}, {"abc", "ba"}},
        {"b", {"b", "abc"}, {"", "ac"}},
        {"^[^a-c]$", {"d", "\xC3\xA9"}, {"a", "c", "dd"}},
        {"^\\d+(\\.\\d)?$", {"1", "12.3"}, {"", ".3", "1."}},
        {"^.?x$", {"x", "ax"}, {"aax", "xa"}},
        {"^.$", {"\x01", "\t", "\xE2\x80\xA7", "\xE2\x80\xAA"}, {"\n", "\r", "\xE2\x80\xA8", "\xE2\x80\xA9"}},
        {"^[^b]$", {"\x01", "\x02", "\n", "a"}, {"b", ""}},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        dfa d = compile(cases[i].pattern, CHARS_RAW);
        for (size_t k = 0; k < 4; k++) {
            const char *good = cases[i].good[k], *bad = cases[i].bad[k];
            CHECK(!good || accepts(&d, good, strlen(good)));
            CHECK(!bad || !accepts(&d, bad, strlen(bad)));
        }
        check_live(&d);
        dfa_free(&d);
    }
}

/* U+0000 is in no text; every step is counted. */
static void test_edges(void)
{
    static const char *const patterns[] = {"^[^b]$", "^.$", "^\\x00$", "^[\\x00-a]$"};
    for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
        dfa d = compile(patterns[i], CHARS_RAW);
        CHECK(!accepts(&d, "\0", 1));
        CHECK_INT(accepts(&d, "\x01", 1), i != 2);
        dfa_free(&d);
    }
    /* An automaton costs 10000 steps, one for each edge and each kind of byte (before, at and behind the a), and those that
     * make it the smallest. */
    dfa d = {0};
    err_detail detail = {0};
    work_count w = {0};
    nfa n;
    nfa_init(&n, &w);
    nfa_add_bytes(&n, NFA_START, NFA_END, "a", 1);
    CHECK_OK(nfa_determinize(&n, &d, "test", &detail), detail);
    CHECK_INT(w.done, 10000 + 3 + 20);
    dfa_free(&d);
}

/* Products, against the two answers: over all texts of up to five letters. */
static void test_products(void)
{
    dfa a = compile("^(a|b)*a$", CHARS_RAW), b = compile("^a?[bc]{0,3}a*$", CHARS_RAW);
    for (int op = DFA_AND; op <= DFA_AND_NOT; op++) {
        dfa both = {0};
        err_detail detail = {0};
        CHECK_OK(dfa_combine(&both, &a, &b, (dfa_op)op, "test", NULL, &detail), detail);
        size_t wrong = 0, n_in = 0;
        for (int code = 0; code < 4 * 4 * 4 * 4 * 4; code++) {
            char text[6];
            size_t len = 0;
            for (int rest = code; rest % 4; rest /= 4) {
                text[len++] = (char)('a' + rest % 4 - 1);
            }
            const bool in_b = accepts(&b, text, len);
            const bool want = accepts(&a, text, len) && (op == DFA_AND ? in_b : !in_b);
            wrong += accepts(&both, text, len) != want;
            n_in += want;
        }
        CHECK_INT(wrong, 0);
        CHECK(n_in > 5);
        check_live(&both);
        dfa_free(&both);
    }
    dfa none = {0}; /* what nothing satisfies has no states */
    err_detail detail = {0};
    CHECK_OK(dfa_combine(&none, &a, &a, DFA_AND_NOT, "test", NULL, &detail), detail);
    CHECK_INT(none.n_states, 0);
    dfa_free(&none);
    dfa_free(&a);
    dfa_free(&b);
}

static err_code compile_long(const char *begin, const char *part, int n, const char *end, err_detail *detail)
{
    dfa d = {0};
    bytes text = bytes_empty(1 << 20);
    bytes_append_str(&text, begin);
    for (int i = 0; i < n; i++) {
        for (const char *p = part; *p; p++) {
            if (*p == '@') { /* characters that are apart */
                bytes_printf(&text, "\\u%04x", 0x1000 + 2 * i);
            } else {
                bytes_append_char(&text, *p);
            }
        }
    }
    bytes_append_str(&text, end);
    const err_code err = regex_compile(&d, bytes_str(&text), text.len, CHARS_RAW, NULL, detail);
    dfa_free(&d);
    bytes_deinit(&text);
    return err;
}

/* An automaton for n bytes, beside so many states and links that lead nowhere. */
static err_code build_chain(size_t n, int states, int links)
{
    dfa d = {0};
    nfa chain;
    bytes text = bytes_empty(1 << 20);
    for (size_t i = 0; i < n; i++) {
        bytes_append_char(&text, 'a');
    }
    nfa_init(&chain, NULL);
    nfa_add_bytes(&chain, NFA_START, NFA_END, bytes_str(&text), n);
    const int32_t aside = nfa_state(&chain);
    for (int i = 1; i < states; i++) {
        (void)nfa_state(&chain);
    }
    for (int i = 0; i < links; i++) {
        nfa_link(&chain, aside, aside, NFA_SKIP);
    }
    const err_code err = nfa_determinize(&chain, &d, "test", NULL);
    CHECK_INT(d.n_states, err == ERR_OK ? (int)n + 1 : 0);
    dfa_free(&d);
    bytes_deinit(&text);
    return err;
}

static void test_sizes(void)
{
    CHECK_INT(build_chain(LIMIT_DFA_STATES - 1, 1, 0), ERR_OK);
    CHECK_INT(build_chain(LIMIT_DFA_STATES, 1, 0), ERR_LIMIT);
    CHECK_INT(build_chain(1, LIMIT_NFA_STATES - 2, 0), ERR_OK); /* the start and the end are there */
    CHECK_INT(build_chain(1, LIMIT_NFA_STATES - 1, 0), ERR_LIMIT);
    CHECK_INT(build_chain(1, 1, LIMIT_NFA_EDGES - 1), ERR_OK);
    CHECK_INT(build_chain(1, 1, LIMIT_NFA_EDGES), ERR_LIMIT);
}

/* Both sides of each bound of a pattern. */
static void test_limits(void)
{
    static const struct {
        const char *begin, *part;
        int most;
        const char *end, *why;
    } cases[] = {
        {"(?<", "n", 4096 - 6, ">a)", "pattern has 4097 bytes; at most 4096 are allowed"},
        {"[", "@", 512, "]", "pattern: a class has too many ranges at character 3081"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        err_detail detail = {0};
        const char *begin = cases[i].begin, *part = cases[i].part, *end = cases[i].end;
        CHECK_OK(compile_long(begin, part, cases[i].most, end, &detail), detail);
        CHECK_INT(compile_long(begin, part, cases[i].most + 1, end, &detail), ERR_LIMIT);
        CHECK_STR(detail.text, cases[i].why);
    }
    static const struct {
        const char *pattern, *why; /* NULL: it is one */
    } pairs[] = {
        {"^a{2000}$", NULL},
        {"^a{2001}$", "pattern: a count in braces is above 2000 at character 9"},
        {"^a{0,2000}$", NULL},
        {"^a{0,2001}$", "pattern: a count in braces is above 2000 at character 11"},
        {"^(a?){780}$", NULL}, /* 20 million steps */
        {"^(a?){800}$",
         "pattern needs too large an automaton (more than 20000 states, or 20000000 steps): make "
         "it simpler"},
    };
    for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
        err_detail detail = {0};
        CHECK_INT(compile_long(pairs[i].pattern, "", 0, "", &detail), pairs[i].why ? ERR_LIMIT : ERR_OK);
        CHECK_STR(detail.text, pairs[i].why ? pairs[i].why : "");
    }
    for (int depth = 50; depth <= 51; depth++) {
        char pattern[128] = {0};
        err_detail detail = {0};
        memset(pattern, '(', (size_t)depth);
        pattern[depth] = 'a';
        memset(pattern + depth + 1, ')', (size_t)depth);
        CHECK_INT(compile_long(pattern, "", 0, "", &detail), depth == 50 ? ERR_OK : ERR_LIMIT);
        CHECK_STR(detail.text, depth == 50 ? "" : "pattern: groups are nested too deeply at character 52");
    }
}

/* A line is a pattern: how large its automaton is, and which of these texts it finds, or why it is none. */
static void tell(void *ctx, bytes *out, const char *line, size_t len)
{
    static const char *const TEXTS[] = {"",
                                        "a",
                                        "b",
                                        "c",
                                        "ab",
                                        "abc",
                                        "aa",
                                        "aaa",
                                        "aaaa",
                                        "ba",
                                        "aab",
                                        "1",
                                        "12",
                                        "_",
                                        "-",
                                        " ",
                                        "\n",
                                        "\t",
                                        "\r",
                                        "\v",
                                        "\f",
                                        "\x01",
                                        "\x7f",
                                        "\xC2\x85",
                                        "\xC2\xA0",
                                        "\xC3\xA4",
                                        "\xE2\x82\xAC",
                                        "A",
                                        "Z",
                                        "z",
                                        "]",
                                        "^",
                                        "$",
                                        ".",
                                        "\\",
                                        "/",
                                        "{",
                                        "}",
                                        "a{1}",
                                        "x1",
                                        "\xE2\x80\xA8",
                                        "\xEF\xBB\xBF",
                                        "\xE3\x80\x80",
                                        "\xE1\xA0\x8E",
                                        "\xF0\x9F\x98\x80",
                                        "a\nb",
                                        "ab12",
                                        "0",
                                        "9",
                                        "|",
                                        "(",
                                        ")",
                                        "*",
                                        "+",
                                        "?",
                                        "[",
                                        "\x1F",
                                        "a-c",
                                        "\xEE\x80\x80",
                                        "\xED\x9F\xBF",
                                        "\xF4\x8F\xBF\xBF",
                                        "cc",
                                        "abab"};
    dfa d = {0};
    err_detail detail = {0};
    (void)ctx;
    if (regex_compile(&d, line, len, CHARS_RAW, NULL, &detail) != ERR_OK) {
        bytes_printf(out, "<! %s\n", detail.text);
        return;
    }
    bytes_printf(out, "< %d states, %d classes:", (int)d.n_states, (int)d.n_classes);
    for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
        if (dfa_accepts(&d, TEXTS[i], strlen(TEXTS[i]))) {
            bytes_append_char(out, ' ');
            bytes_append_json(out, TEXTS[i], strlen(TEXTS[i]));
        }
    }
    bytes_append_char(out, '\n');
    dfa_free(&d);
}

int main(void)
{
    recorded_answers(PARLEY_SOURCE_DIR "/tests/text/grammar/patterns.txt", tell, NULL);
    test_bytes();
    test_patterns();
    test_edges();
    test_products();
    test_sizes();
    test_limits();
    CHECK_DONE();
}
