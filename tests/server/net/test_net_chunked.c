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
    check_cuts("000000000000005\r\nhello\r\n000000000000000\r\n\r\n", "hello",
               NET_CHUNKED_DONE); /* 15 digits */
    check_cuts("0000000000000005", "", NET_CHUNKED_BAD);
    check_cuts("fffffffffffffff\r\nhello", "hello", NET_CHUNKED_DATA);
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

/* What stands beside the data is read for a while only: of extensions and trailers together. */
static void test_idle(void)
{
    enum { MOST = 8192 };
    static char text[MOST + 64];
    for (size_t more = 0; more < 2; more++) {
        for (size_t behind = 0; behind <= MOST;
             behind += MOST / 2) { /* as a trailer; the rest is an extension */
            net_chunked c = {0};
            bytes out = bytes_empty(100);
            size_t n = (size_t)snprintf(text, sizeof text, "0;");
            memset(text + n, 'e', MOST - behind);
            n += MOST - behind;
            n += (size_t)snprintf(text + n, sizeof text - n, "\r\n");
            memset(text + n, 't', behind + more);
            n += behind + more;
            n += (size_t)snprintf(text + n, sizeof text - n, "%s\r\n", behind + more ? "\r\n" : "");
            feed(&c, &out, text, n);
            CHECK_INT(c.state, more ? NET_CHUNKED_BAD : NET_CHUNKED_DONE);
            bytes_deinit(&out);
        }
    }
}

/* ---- every input up to a length ---- */

enum { EVERY_BYTES = 8 };

typedef struct reading {
    const char *text;
    size_t n, at;
} reading;

static char look(const reading *r)
{
    return r->at < r->n ? r->text[r->at] : '\0';
}

/* What must stand there now: MORE (BAD is no such thing) if the text ends first. */
typedef enum verdict { IS_THERE, ENDS_BEFORE, IS_BAD } verdict;

static verdict expect(reading *r, const char *text)
{
    for (; *text; text++, r->at++) {
        if (r->at == r->n) {
            return ENDS_BEFORE;
        }
        if (r->text[r->at] != *text) {
            return IS_BAD;
        }
    }
    return IS_THERE;
}

/* Text without control characters, up to the end of its line. */
static verdict expect_line(reading *r)
{
    while (r->at < r->n && look(r) != '\r') {
        if (look(r) == '\x01' || look(r) == '\n') {
            return IS_BAD;
        }
        r->at++;
    }
    return expect(r, "\r\n");
}

/* The grammar of RFC 9112, 7.1, read by hand: chunks, the last one, trailers, an empty line. *body: how many
 * bytes of data there are. */
static verdict read_body(reading *r, size_t *body)
{
    for (;;) {
        size_t size = 0, digits = 0;
        for (; look(r) == '0' || look(r) == '2'; r->at++, digits++) {
            size = size * 16 + (look(r) == '2' ? 2 : 0);
        }
        if (r->at == r->n) {
            return ENDS_BEFORE;
        }
        if (digits == 0 || (look(r) != '\r' && look(r) != ';')) {
            return IS_BAD;
        }
        verdict v = look(r) == ';' ? expect_line(r) : expect(r, "\r\n");
        if (v != IS_THERE || size == 0) {
            if (v != IS_THERE) {
                return v;
            }
            break;
        }
        const size_t there = size < r->n - r->at ? size : r->n - r->at;
        *body += there;
        r->at += there;
        v = there < size ? ENDS_BEFORE : expect(r, "\r\n");
        if (v != IS_THERE) {
            return v;
        }
    }
    while (r->at < r->n && look(r) != '\r') {
        const verdict v = expect_line(r);
        if (v != IS_THERE) {
            return v;
        }
    }
    return expect(r, "\r\n");
}

static void check_one(const char *text, size_t n)
{
    reading r = {text, n, 0};
    net_chunked c = {0};
    size_t wanted = 0, body = 0, at = 0;
    const verdict v = read_body(&r, &wanted);
    while (at < n && c.state < NET_CHUNKED_DONE) {
        const void *piece;
        size_t piece_bytes;
        at += net_chunked_next(&c, text + at, n - at, &piece, &piece_bytes);
        body += piece_bytes;
    }
    const verdict found = c.state == NET_CHUNKED_DONE  ? IS_THERE
                          : c.state == NET_CHUNKED_BAD ? IS_BAD
                                                       : ENDS_BEFORE;
    if (found != v || body != wanted || (v == IS_THERE && at != r.at)) {
        fprintf(stderr, "  \"%.*s\": %d, expected %d\n", (int)n, text, (int)found, (int)v);
        CHECK(found == v && body == wanted && at == r.at);
    }
}

/* All texts of up to EVERY_BYTES bytes that a reader can tell apart: two digits, what parts things, letters
 * and what is never allowed. */
static void test_every_text(void)
{
    static const char BYTES[] = {'0', '2', ';', '\r', '\n', 'x', '\x01'};
    for (size_t n = 0; n <= EVERY_BYTES; n++) {
        size_t many = 1;
        for (size_t i = 0; i < n; i++) {
            many *= sizeof BYTES;
        }
        for (size_t k = 0; k < many && check_failures == 0; k++) {
            char text[EVERY_BYTES];
            for (size_t i = 0, left = k; i < n; i++, left /= sizeof BYTES) {
                text[i] = BYTES[left % sizeof BYTES];
            }
            check_one(text, n);
        }
    }
}

/* In each state every byte. */
static void test_every_byte(void)
{
    static const char *const BEGINS[] = {"",         "1",     "1;",     "1\r",      "1\r\na",
                                         "1\r\na\r", "0\r\n", "0\r\nt", "0\r\nt\r", "0\r\n\r"};
    static const char *const ALLOWED[] = {"0123456789abcdefABCDEF",
                                          "0123456789abcdefABCDEF;\r",
                                          NULL,
                                          "\n",
                                          "\r",
                                          "\n",
                                          NULL,
                                          NULL,
                                          "\n",
                                          "\n"};
    for (size_t i = 0; i < sizeof BEGINS / sizeof BEGINS[0]; i++) {
        for (int byte = 0; byte < 256; byte++) {
            char text[16];
            const size_t n = strlen(BEGINS[i]);
            memcpy(text, BEGINS[i], n);
            text[n] = (char)byte;
            net_chunked c = {0};
            bytes out = bytes_empty(100);
            feed(&c, &out, text, n + 1);
            const bool is_text = byte == '\t' || byte == '\r' || (byte >= 0x20 && byte != 0x7f);
            const bool allowed = ALLOWED[i] ? byte && strchr(ALLOWED[i], byte) : is_text;
            CHECK_INT(c.state != NET_CHUNKED_BAD, allowed);
            bytes_deinit(&out);
        }
    }
}

int main(void)
{
    test_bodies();
    test_faults();
    test_idle();
    test_every_text();
    test_every_byte();
    CHECK_DONE();
}
