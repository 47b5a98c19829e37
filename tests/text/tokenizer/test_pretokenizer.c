/* how expressions cut a text, by their own calls: pieces, empty matches, what is said where one gives up, and who takes the
 * pieces may end it.
 */
#include "text/tokenizer/pretokenizer.h"

#include "base/bytes.h"
#include "tests/check.h"

static err_detail d;

typedef struct taker {
    bytes out;
    int n, most; /* pieces taken; the one behind `most` is refused */
} taker;

static err_code take(void *ctx, const char *piece, size_t len, err_detail *detail)
{
    taker *t = ctx;
    CHECK(len > 0);
    if (t->n == t->most) {
        return err_set(detail, ERR_BUSY, "enough");
    }
    t->n++;
    bytes_append_char(&t->out, '[');
    bytes_append(&t->out, piece, len);
    bytes_append_char(&t->out, ']');
    return ERR_OK;
}

/* Splits with up to three expressions. */
static err_code split(taker *t, const char *const patterns[3], const char *text, size_t len, int most)
{
    pretokenizer *p = NULL;
    pretokenizer_scratch *s = NULL;
    size_t n = 0;
    while (n < 3 && patterns[n]) {
        n++;
    }
    d = (err_detail){0};
    *t = (taker){.out = bytes_empty(1 << 20), .most = most};
    CHECK_OK(pretokenizer_create(&p, patterns, n, &d), d);
    CHECK_OK(pretokenizer_scratch_create(&s, p, &d), d);
    const err_code err = pretokenizer_split(p, s, text, len, take, t, &d);
    pretokenizer_scratch_destroy(s);
    pretokenizer_destroy(p);
    return err;
}

static void test_pieces(void)
{
    static const struct {
        const char *patterns[3], *text, *pieces;
    } cases[] = {
        {{NULL}, "a b", "[a b]"},
        {{NULL}, "", ""},
        {{"b"}, "", ""},
        {{"b"}, "abc", "[a][b][c]"},
        {{"b"}, "bb", "[b][b]"},
        {{"b"}, "xbbx", "[x][b][b][x]"},
        {{"b+"}, "xbbx", "[x][bb][x]"},
        {{"c"}, "xbbx", "[xbbx]"},
        {{"[ab]+", "b"}, "xabay", "[x][a][b][a][y]"},
        {{"b", "[ab]+"}, "xabay", "[x][a][b][a][y]"},
        {{"[ab]+", "b", "x|y"}, "xyabay", "[x][y][a][b][a][y]"},
        /* an empty match cuts nothing, wherever it is */
        {{"x*"}, "abc", "[abc]"},
        {{"b*"}, "abbc", "[a][bb][c]"},
        {{"$"}, "abc", "[abc]"},
        {{"$|b"}, "abc", "[a][b][c]"},
        {{"(?=b)"}, "abb", "[abb]"},
        {{"(?=b)|c"}, "abbc", "[abb][c]"},
        {{"(?=\xC3\xA4)|b"},
         "a\xC3\xA4\xC3\xA4"
         "b\xC3\xA4",
         "[a\xC3\xA4\xC3\xA4][b][\xC3\xA4]"},
        {{"$", "b"}, "abc", "[a][b][c]"},
        /* white space is that of Unicode, with any letter behind a backslash beside it */
        {{"\\s+"}, "a \t\xC2\xA0\xE3\x80\x80z", "[a][ \t\xC2\xA0\xE3\x80\x80][z]"},
        {{"\\S+"}, " a\xE1\xA0\x8E ", "[ ][a\xE1\xA0\x8E][ ]"},
        {{"[\\s]"}, "a b", "[a][ ][b]"},
        {{"\\\\s"}, "a\\s b", "[a][\\s][ b]"},
        {{"\\d\\.\\s"}, "a1. b", "[a][1. ][b]"},
        {{PRETOKENIZER_GPT2}, "I'll  say 12, ok?", "[I]['ll][ ][ say][ 12][,][ ok][?]"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        taker t;
        CHECK_OK(split(&t, cases[i].patterns, cases[i].text, strlen(cases[i].text), -1), d);
        CHECK_STR(bytes_str(&t.out), cases[i].pieces);
        const int n = t.n;
        bytes_deinit(&t.out);
        for (int most = 0; most < n; most++) { /* whoever takes them ends it */
            CHECK_INT(split(&t, cases[i].patterns, cases[i].text, strlen(cases[i].text), most), ERR_BUSY);
            CHECK_STR(d.text, "enough");
            CHECK(strncmp(bytes_str(&t.out), cases[i].pieces, t.out.len) == 0 && t.n == most);
            bytes_deinit(&t.out);
        }
    }
}

/* n times a part, between begin and end. */
static err_code create(const char *begin, const char *part, int n, const char *end)
{
    pretokenizer *p = NULL;
    bytes text = bytes_empty(1 << 20);
    bytes_append_str(&text, begin);
    for (int i = 0; i < n; i++) {
        bytes_append_str(&text, part);
    }
    bytes_append_str(&text, end);
    const char *const pattern = bytes_str(&text);
    d = (err_detail){0};
    const err_code err = pretokenizer_create(&p, &pattern, 1, &d);
    CHECK((p != NULL) == (err == ERR_OK));
    pretokenizer_destroy(p);
    bytes_deinit(&text);
    return err;
}

static void test_refused(void)
{
    static const char TOO_LONG[] = "the pre-tokenizer's expression does not compile: it is too long";
    enum { MOST = 1 << 16 };
    CHECK_INT(create("a(", "", 0, ""), ERR_UNSUPPORTED);
    CHECK_STR(d.text, "the pre-tokenizer's expression does not compile: missing closing parenthesis");
    CHECK_INT(create("(?#", "a", MOST - 3, ")"), ERR_UNSUPPORTED);
    CHECK_STR(d.text, TOO_LONG);
    CHECK_OK(create("(?#", "a", MOST - 6, ")"), d);
    const char *const patterns[PRETOKENIZER_MAX_PATTERNS + 1] = {"a", "a", "a", "a", "a", "a", "a", "a", "a"};
    pretokenizer *p = NULL;
    CHECK_OK(pretokenizer_create(&p, patterns, PRETOKENIZER_MAX_PATTERNS, &d), d);
    pretokenizer_destroy(p);
    CHECK_INT(pretokenizer_create(&p, patterns, PRETOKENIZER_MAX_PATTERNS + 1, &d), ERR_UNSUPPORTED);
    CHECK(p == NULL);
    CHECK_STR(d.text, "the pre-tokenizer has 9 splits; at most 8 are supported");
    pretokenizer_destroy(NULL);
    pretokenizer_scratch_destroy(NULL);
}

/* An expression that tries too many ways gives up, at whichever of several it is. */
static void test_limits(void)
{
    static const char *const PATTERNS[][3] = {{"(a|aa)+$"}, {"x", "(a|aa)+$"}, {"(?:a|aa)+(?!.)"}};
    char text[64];
    for (size_t i = 0; i < ARRAY_LEN(PATTERNS); i++) {
        taker t;
        memset(text, 'a', sizeof text);
        text[sizeof text - 1] = 'b';
        CHECK_INT(split(&t, PATTERNS[i], text, sizeof text, -1), ERR_LIMIT);
        CHECK(strstr(d.text, "the text cannot be split into words: its expression exceeds a limit (-") ==
              d.text);
        CHECK_INT(t.n, 0);
        bytes_deinit(&t.out);
        CHECK_OK(split(&t, PATTERNS[i], text, sizeof text - 1, -1), d);
        bytes_deinit(&t.out);
    }
}

int main(void)
{
    test_pieces();
    test_refused();
    test_limits();
    CHECK_DONE();
}
