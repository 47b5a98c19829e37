/* http_head: what is a head, wherever the text ends so far, and what is refused. */
#include "server/net/http_head.h"

#include "base/compiler.h"
#include "tests/check.h"

#define GET "GET /path HTTP/1.1\r\n"

static http_head_state state_of(const char *text)
{
    http_head h;
    return http_head_read(&h, text, strlen(text));
}

static void check_span(http_span s, const char *expected)
{
    char text[256];
    snprintf(text, sizeof text, "%.*s", (int)s.len, s.text);
    CHECK_STR(text, expected);
}

static void test_whole(void)
{
    static const char text[] =
        "POST /a%20b?c=d&e HTTP/1.1\r\nHost: x\r\nLIST:\t1 \t\r\nempty:\r\nlist: 2\r\n\r\nbody";
    http_head h;
    for (size_t n = 0; n + 4 < sizeof text - 1; n++) {
        CHECK_INT(http_head_read(&h, text, n), HTTP_HEAD_MORE);
    }
    CHECK_INT(http_head_read(&h, text, sizeof text - 1), HTTP_HEAD_WHOLE);
    CHECK_INT(h.bytes, sizeof text - 1 - 4);
    CHECK(h.is_1_1);
    check_span(h.method, "POST");
    check_span(h.path, "/a%20b");
    check_span(h.query_string, "c=d&e");
    CHECK_INT(h.authority.len, 0);
    char value[8];
    CHECK_INT(http_head_count(&h, "list"), 2);
    http_head_value(&h, "list", value, sizeof value);
    CHECK_STR(value, "1, 2");
    http_head_value(&h, "list", value, 4);
    CHECK_STR(value, "?");
    http_head_value(&h, "empty", value, sizeof value);
    CHECK_STR(value, "");
    CHECK_INT(http_head_count(&h, "empty"), 1);
    CHECK_INT(http_head_count(&h, "emp"), 0);
    http_head_value(&h, "absent", value, sizeof value);
    CHECK_STR(value, "");
}

static void test_targets(void)
{
    http_head h;
    CHECK_INT(http_head_read(&h, "GET http://a:1/b?c HTTP/1.0\r\n\r\n", 31), HTTP_HEAD_WHOLE);
    check_span(h.authority, "a:1");
    check_span(h.path, "/b");
    check_span(h.query_string, "c");
    CHECK(!h.is_1_1);
    CHECK_INT(http_head_read(&h, "GET https://a?b/c HTTP/1.1\r\n\r\n", 31), HTTP_HEAD_WHOLE);
    check_span(h.authority, "a");
    check_span(h.path, "");
    check_span(h.query_string, "b/c");
    CHECK_INT(state_of("OPTIONS * HTTP/1.1\r\n\r\n"), HTTP_HEAD_WHOLE);
    static const char *const bad[] = {"",        "path",      "**",       "a:1",
                                      "http://", "http:///a", "ftp://a/", "/\xc3\xa4"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[64];
        snprintf(text, sizeof text, "GET %s HTTP/1.1\r\n\r\n", bad[i]);
        CHECK_INT(state_of(text), HTTP_HEAD_BAD);
    }
}

static void test_faults(void)
{
    static const char *const bad[] = {"\r\n\r\n",
                                      "GET\r\n\r\n",
                                      "GET /\r\n\r\n",
                                      "GET / \r\n\r\n",
                                      " GET / HTTP/1.1\r\n\r\n",
                                      "G(T / HTTP/1.1\r\n\r\n",
                                      "GET / HTTP/1.1 \r\n\r\n",
                                      "GET /  HTTP/1.1\r\n\r\n",
                                      "GET / a HTTP/1.1\r\n\r\n",
                                      "\n",
                                      "GET / HTTP/1.1\n",
                                      "GET\r/",
                                      "\x16\x03",
                                      "GET /\x7f",
                                      GET "a: b\x01",
                                      GET "a: b\r\n\n",
                                      GET "a\r\n\r\n",
                                      GET ": b\r\n\r\n",
                                      GET "a : b\r\n\r\n",
                                      GET " a: b\r\n\r\n",
                                      GET "a: b\r\n c\r\n\r\n",
                                      GET "\xc3: b\r\n\r\n",
                                      GET "a[]: b\r\n\r\n"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (state_of(bad[i]) != HTTP_HEAD_BAD) {
            fprintf(stderr, "  case %zu: %s\n", i, bad[i]);
        }
        CHECK_INT(state_of(bad[i]), HTTP_HEAD_BAD);
    }
    http_head h;
    CHECK_INT(http_head_read(&h, "GET /\0 HTTP/1.1\r\n\r\n", 20), HTTP_HEAD_BAD);
    CHECK_INT(http_head_read(&h, "G\0T / HTTP/1.1\r\n\r\n", 19), HTTP_HEAD_BAD);
    static const char *const versions[] = {"HTTP/1.2", "HTTP/2.0", "HTTP/1.11", "HTTP/1", "http/1.1", "x"};
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        char text[64];
        snprintf(text, sizeof text, "GET / %s\r\nHost: x\r\n\r\n", versions[i]);
        CHECK_INT(state_of(text), HTTP_HEAD_VERSION);
    }
    CHECK_INT(state_of(GET "a: \t\xc3\xa4 b\r\n!#$%&'*+-.^_`|~09azAZ:\r\n\r\n"), HTTP_HEAD_WHOLE);
}

static void test_lists(void)
{
    CHECK(http_list_has("Upgrade", "upgrade"));
    CHECK(http_list_has("keep-alive ,\tUpgrade", "upgrade"));
    CHECK(http_list_has(",,a,", "a"));
    CHECK(!http_list_has("", "a"));
    CHECK(!http_list_has("ab, a b", "a"));
}

static void check_decoded(const char *text, const char *expected)
{
    char out[16] = "before";
    CHECK_INT(http_decode(out, sizeof out, (http_span){text, strlen(text)}), expected != NULL);
    CHECK_STR(out, expected ? expected : "");
}

static void check_folded(const char *path, const char *expected)
{
    char text[64];
    snprintf(text, sizeof text, "%s", path);
    http_fold_path(text);
    CHECK_STR(text, expected);
}

static void test_paths(void)
{
    check_decoded("/a%20b%2Fc", "/a b/c");
    check_decoded("%e4%C3", "\xe4\xc3");
    check_decoded("123456789012345", "123456789012345");
    check_decoded("1234567890123456", NULL);
    check_decoded("%", NULL);
    check_decoded("%4", NULL);
    check_decoded("%4g", NULL);
    check_decoded("%00", NULL);
    check_decoded("%0a", NULL);
    check_folded("/", "/");
    check_folded("/a/b", "/a/b");
    check_folded("//a///b/", "/a/b/");
    check_folded("/./a/./b/.", "/a/b/");
    check_folded("/a/../b", "/b");
    check_folded("/a/b/..", "/a/");
    check_folded("/../../etc", "/etc");
    check_folded("/..", "/");
    check_folded("/..a/.b/c..", "/..a/.b/c..");
}

static void check_query(const char *query, const char *name, http_query wanted, const char *value)
{
    char out[6] = "?";
    CHECK_INT(http_query_value(query, name, out, sizeof out), wanted);
    CHECK_STR(out, value);
}

static void test_queries(void)
{
    check_query("a=1&b=2", "b", HTTP_QUERY_VALUE, "2");
    check_query("a=1%26b=2", "b", HTTP_QUERY_NONE, "");
    check_query("a=1%26b=2", "a", HTTP_QUERY_VALUE, "1&b=2");
    check_query("a=%26%3d", "a", HTTP_QUERY_VALUE, "&=");
    check_query("%61=1", "a", HTTP_QUERY_VALUE, "1");
    check_query("xa=1&&a=2&a=3", "a", HTTP_QUERY_VALUE, "2");
    check_query("a", "a", HTTP_QUERY_VALUE, "");
    check_query("a=b=c", "a", HTTP_QUERY_VALUE, "b=c");
    check_query("a=12345", "a", HTTP_QUERY_VALUE, "12345");
    check_query("a=123456", "a", HTTP_QUERY_LONG, "");
    check_query("", "a", HTTP_QUERY_NONE, "");
    check_query("%zz=1&a%0a=2&a=3", "a", HTTP_QUERY_VALUE, "3"); /* names that are none */
    check_query("%zz", "", HTTP_QUERY_NONE, "");
    for (int n = 63; n <= 64; n++) { /* and those that are too long */
        char query[128];
        snprintf(query, sizeof query, "%0*d=1&a=2", n, 0);
        check_query(query, "a", HTTP_QUERY_VALUE, "2");
        char name[80];
        snprintf(name, sizeof name, "%0*d", n, 0);
        check_query(query, name, n < 64 ? HTTP_QUERY_VALUE : HTTP_QUERY_NONE, n < 64 ? "1" : "");
    }
    static const char *const BAD[] = {"%", "a=%4", "a=%4g", "%00", "a=1&b=%0a"};
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        CHECK(!http_query_is_valid((http_span){BAD[i], strlen(BAD[i])}));
    }
    CHECK(http_query_is_valid((http_span){"a=%41&%C3%A4=+", 14}));
    CHECK(!http_query_is_valid((http_span){"a=%41", 4})); /* the digit behind is not of it */
}

/* ---- every head of so many pieces ---- */

enum { PIECES_MAX = 5, HEAD_BYTES = 100 };

/* The line in front of the next CR LF; NULL if there is none. Lines are cut off *text. */
static char *cut_line(char **text)
{
    char *line = *text, *end = strstr(line, "\r\n");
    if (end) {
        *end = '\0';
        *text = end + 2;
    }
    return end ? line : NULL;
}

static bool is_method(const char *word)
{
    return word[0] && word[strspn(word, "Ga*")] == '\0';
}

/* RFC 9112, 3 and 5, read by hand; text is written to. */
static http_head_state read_by_hand(char *text)
{
    for (const char *p = text; *p; p++) {
        const bool is_end = p[0] == '\r' && p[1] == '\n';
        if ((p[0] == '\r' && p[1] && !is_end) || *p == '\x01' ||
            (*p == '\n' && (p == text || p[-1] != '\r'))) {
            return HTTP_HEAD_BAD;
        }
        if (is_end && (p == text || (p - text >= 2 && memcmp(p - 2, "\r\n", 2) == 0))) {
            text[p - text + 2] = '\0'; /* what is behind the empty line is not of the head */
            break;
        }
        if (!p[1]) {
            return HTTP_HEAD_MORE;
        }
    }
    if (!text[0]) {
        return HTTP_HEAD_MORE;
    }
    char *first = cut_line(&text), *target = strchr(first, ' '),
         *version = target ? strchr(target + 1, ' ') : NULL;
    if (!version || strchr(version + 1, ' ') || !version[1]) {
        return HTTP_HEAD_BAD;
    }
    *target++ = *version++ = '\0';
    if (!is_method(first) || (target[0] != '/' && strcmp(target, "*") != 0) || strchr(target, '\x80')) {
        return HTTP_HEAD_BAD;
    }
    if (strcmp(version, "HTTP/1.1") != 0 && strcmp(version, "HTTP/1.0") != 0) {
        return HTTP_HEAD_VERSION;
    }
    for (char *line = cut_line(&text); line && line[0]; line = cut_line(&text)) {
        char *colon = strchr(line, ':');
        if (!colon) {
            return HTTP_HEAD_BAD;
        }
        *colon = '\0';
        if (!is_method(line)) { /* a name is made of the same characters */
            return HTTP_HEAD_BAD;
        }
    }
    return HTTP_HEAD_WHOLE;
}

static void check_pieces(const char *begin, const char *const *pieces, size_t n_pieces, size_t n)
{
    size_t many = 1;
    for (size_t i = 0; i < n; i++) {
        many *= n_pieces;
    }
    for (size_t k = 0; k < many && check_failures == 0; k++) {
        char text[HEAD_BYTES], copy[HEAD_BYTES];
        size_t len = strlen(begin);
        memcpy(text, begin, len);
        for (size_t i = 0, left = k; i < n; i++, left /= n_pieces) {
            const char *piece = pieces[left % n_pieces];
            memcpy(text + len, piece, strlen(piece));
            len += strlen(piece);
        }
        text[len] = '\0';
        memcpy(copy, text, len + 1);
        const http_head_state found = state_of(text), wanted = read_by_hand(copy);
        if (found != wanted) {
            fprintf(stderr, "  \"%s\": %d, expected %d\n", text, (int)found, (int)wanted);
            CHECK_INT(found, wanted);
        }
    }
}

static void test_every_head(void)
{
    static const char *const PIECES[] = {"G",  " ",  "/", "*", "HTTP/1.1", "HTTP/1.2", "\r\n",
                                         "\r", "\n", "a", ":", "\t",       "\x80",     "\x01"};
    for (size_t n = 0; n <= PIECES_MAX; n++) {
        check_pieces("", PIECES, ARRAY_LEN(PIECES), n);
        check_pieces("G / HTTP/1.1\r\n", PIECES, ARRAY_LEN(PIECES), n);
    }
    for (size_t n = 0; n < PIECES_MAX; n++) {
        check_pieces("G /", PIECES, ARRAY_LEN(PIECES), n);
    }
}

static void test_every_socket_key(void)
{
    static const char SET[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char right[] = "dGhlIHNhbXBsZSBub25jZQ==";
    for (size_t n = 0; n < 40; n++) {
        char key[41] = "";
        memset(key, 'A', n);
        memcpy(key + (n >= 2 ? n - 2 : 0), "==", n >= 2 ? 2 : 0);
        CHECK_INT(http_is_socket_key(key), n == 24);
    }
    for (size_t at = 0; at < sizeof right - 1; at++) {
        for (int byte = 1; byte < 256; byte++) {
            char key[sizeof right];
            memcpy(key, right, sizeof key);
            key[at] = (char)byte;
            CHECK_INT(http_is_socket_key(key), at < 22 ? strchr(SET, byte) != NULL : byte == '=');
        }
    }
}

int main(void)
{
    test_every_head();
    test_every_socket_key();
    test_queries();
    test_whole();
    test_targets();
    test_faults();
    test_lists();
    test_paths();
    CHECK_DONE();
}
