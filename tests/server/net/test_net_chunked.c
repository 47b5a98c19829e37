/* net_chunked: a chunked body is the same wherever its bytes are cut, and what is malformed is
 * refused. */
#include "server/net/net_chunked.h"

#include "base/bytes.h"
#include "tests/check.h"

static void feed(net_chunked *c, bytes *out, const char *data, size_t n)
{
    while (n > 0 && c->state < NET_CHUNKED_DONE) {
        const void *piece;
        size_t piece_bytes;
        const size_t used = net_chunked_next(c, data, n, &piece, &piece_bytes);
        CHECK(used > 0 && used <= n);
        bytes_append(out, piece, piece_bytes);
        data += used;
        n -= used;
    }
}

/* Reads text, cut once at every place. */
static void check_cuts(const char *text, const char *expected, net_chunked_state end)
{
    const size_t n = strlen(text);
    for (size_t cut = 0; cut <= n; cut++) {
        net_chunked c = {0};
        bytes out;
        bytes_init(&out, 1 << 16);
        feed(&c, &out, text, cut);
        feed(&c, &out, text + cut, n - cut);
        CHECK_INT(c.state, end);
        CHECK_STR(bytes_str(&out), expected);
        bytes_deinit(&out);
    }
}

static void test_bodies(void)
{
    check_cuts("0\r\n\r\n", "", NET_CHUNKED_DONE);
    check_cuts("5\r\nhello\r\n0\r\n\r\n", "hello", NET_CHUNKED_DONE);
    check_cuts("5;a=b;c=\"d\"\r\nhello\r\n00A\r\n, my\r\nworl\r\n1\r\nd\r\n0;x\r\nA: b\r\nC: d\r\n\r\n",
               "hello, my\r\nworld", NET_CHUNKED_DONE);
    check_cuts("5\r\nhello\r\n0\r\n\r\nGET / HTTP/1.1\r\n", "hello", NET_CHUNKED_DONE);
    check_cuts("5\r\nhello\r\n0\r\n", "hello", NET_CHUNKED_TRAILER);
    check_cuts("a\r\nhello", "hello", NET_CHUNKED_DATA);
}

static void test_faults(void)
{
    static const char *const bad[] = {"x",          "\r\n",      ";\r\n",         "5 \r\n",
                                      " 5\r\n",     "-5\r\n",    "0x5\r\n",       "5\n",
                                      "5\rx",       "5;a\nb",    "5;\x7f",        "0\r\n\n",
                                      "0\r\n\rx",   "0\r\na\nb", "0\r\na\rb",     "1\r\nab",
                                      "1\r\na\n",   "1\r\na\rx", "0\r\na: \x01b", "1000000000000000\r\n",
                                      "1\r\na\r\n;"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        net_chunked c = {0};
        bytes out;
        bytes_init(&out, 1 << 16);
        feed(&c, &out, bad[i], strlen(bad[i]));
        if (c.state != NET_CHUNKED_BAD) {
            fprintf(stderr, "  accepted: %s\n", bad[i]);
        }
        CHECK_INT(c.state, NET_CHUNKED_BAD);
        const void *piece;
        size_t n;
        CHECK_INT(net_chunked_next(&c, "5", 1, &piece, &n), 0);
        bytes_deinit(&out);
    }
}

int main(void)
{
    test_bodies();
    test_faults();
    CHECK_DONE();
}
