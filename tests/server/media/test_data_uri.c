/* data_uri: strict base64, schemes, limits before memory. */
#include "server/media/data_uri.h"

#include "server/media/multipart.h"
#include "tests/alloc_fail.h"
#include "tests/check.h"

static void check_base64(const char *text, const char *expected)
{
    uint8_t out[64];
    size_t n = 0;
    bool ok = base64_decode(out, &n, text, strlen(text));
    CHECK_INT(ok, expected != NULL);
    if (ok && expected) {
        CHECK_INT(n, strlen(expected));
        CHECK(memcmp(out, expected, n) == 0);
    }
}

static void test_base64(void)
{
    check_base64("", "");
    check_base64("Zg==", "f");
    check_base64("Zm8=", "fo");
    check_base64("Zm9v", "foo");
    check_base64("Zm9vYg==", "foob");
    check_base64("Zm9vYmE=", "fooba");
    check_base64("Zm9vYmFy", "foobar");
    check_base64("+/+/", "\xfb\xff\xbf");
    const char *const bad[] = {
        "Z",    "Zg",   "Zg=",  "Zh==",     "Zm9=", "=m9v",  "Z=9v",       "Zm=v",     "Zm9v\n",
        "Zm 9", "Zm-_", "====", "Zg==Zg==", "Z===", "Zm9v=", "\xC3\xA9==", "Zm9vZg==A"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        check_base64(bad[i], NULL);
    }
}

static void test_every_length(void)
{
    static const char set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t n = 0; n < 300; n++) {
        uint8_t in[300], back[303];
        char text[404] = "";
        size_t len = 0, n_back = 0;
        for (size_t i = 0; i < n; i++) {
            in[i] = (uint8_t)(i * 37 + n);
        }
        for (size_t i = 0; i < n; i += 3) {
            unsigned v = (unsigned)in[i] << 16 | (i + 1 < n ? (unsigned)in[i + 1] << 8 : 0) |
                         (i + 2 < n ? in[i + 2] : 0);
            text[len++] = set[v >> 18];
            text[len++] = set[v >> 12 & 63];
            text[len++] = i + 1 < n ? set[v >> 6 & 63] : '=';
            text[len++] = i + 2 < n ? set[v & 63] : '=';
        }
        CHECK(base64_decode(back, &n_back, text, len));
        CHECK_INT(n_back, n);
        CHECK(memcmp(in, back, n) == 0);
    }
}

static void test_classify(void)
{
    const struct {
        const char *text;
        data_uri_kind kind;
    } cases[] = {{"data:image/png;base64,AAAA", DATA_URI_INLINE},
                 {"DATA:;base64,AAAA", DATA_URI_INLINE},
                 {"iVBORw0KGgo=", DATA_URI_INLINE},
                 {"", DATA_URI_INLINE},
                 {"http://x/y", DATA_URI_REMOTE},
                 {"HTTPS://x", DATA_URI_REMOTE},
                 {"file:///etc/passwd", DATA_URI_REMOTE},
                 {"ftp:x", DATA_URI_REMOTE},
                 {"a:", DATA_URI_REMOTE},
                 {"a+1-b.c:x", DATA_URI_REMOTE},
                 {"a_b:x", DATA_URI_INLINE},
                 {"1a:x", DATA_URI_INLINE},
                 {"a/b:x", DATA_URI_INLINE},
                 {"abcdefghijklmno:x", DATA_URI_REMOTE}, /* 15 letters, and one too many */
                 {"abcdefghijklmnop:x", DATA_URI_INLINE},
                 {"abcdefghijklmn", DATA_URI_INLINE},
                 {"date:x", DATA_URI_REMOTE},
                 {"dat:x", DATA_URI_REMOTE},
                 {"UpLoad:x", DATA_URI_UPLOAD},
                 {"uploads:x", DATA_URI_REMOTE},
                 {"updates:x", DATA_URI_REMOTE},
                 {"upgrade:x", DATA_URI_REMOTE},
                 {"update:x", DATA_URI_REMOTE},
                 {"javascript:1", DATA_URI_REMOTE},
                 {"upload:file_1", DATA_URI_UPLOAD},
                 {"//host/x", DATA_URI_INLINE},
                 {"/9j/4AAQ", DATA_URI_INLINE}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_INT(data_uri_classify(cases[i].text, strlen(cases[i].text)), cases[i].kind);
    }
}

static err_code decode(const char *text, size_t max, size_t *n)
{
    arena *a = arena_create(1 << 20);
    const uint8_t *data = NULL;
    err_detail d;
    err_code err = data_uri_decode(a, &data, n, text, strlen(text), max, &d);
    arena_destroy(a);
    return err;
}

static void test_encode(void)
{
    static const uint8_t DATA[] = {0, 1, 2, 250, 251, 252, 255};
    uint8_t back[16];
    size_t n_back = 0;
    for (size_t n = 0; n <= sizeof DATA; n++) {
        bytes text;
        bytes_init(&text, 100);
        base64_encode(&text, DATA, n);
        CHECK(base64_decode(back, &n_back, bytes_str(&text), text.len));
        CHECK(n_back == n && memcmp(back, DATA, n) == 0);
        bytes_deinit(&text);
    }
}

/* Every group of four bytes of the alphabet, padding and two others: as many are taken as there are contents, and
 * each says its own. */
static void test_every_group(void)
{
    static const char SET[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-\n";
    enum { N = sizeof SET - 1 };
    size_t taken[4] = {0}, n_wrong = 0;
    for (size_t k = 0; k < (size_t)N * N * N * N; k++) {
        const char text[4] = {SET[k / ((size_t)N * N * N)], SET[k / ((size_t)N * N) % N], SET[k / N % N],
                              SET[k % N]};
        uint8_t out[3];
        size_t n = 0;
        if (base64_decode(out, &n, text, sizeof text)) {
            /* the letters say the bits of the bytes, from the first on */
            uint32_t bits = 0, wanted = 0;
            for (size_t i = 0; i < 3; i++) {
                bits = bits << 8 | (i < n ? out[i] : 0);
            }
            for (size_t i = 0; i < 4; i++) {
                wanted = wanted << 6 | (text[i] == '=' ? 0 : (uint32_t)(strchr(SET, text[i]) - SET));
            }
            n_wrong += bits != wanted;
            taken[n]++;
        }
    }
    CHECK_INT(n_wrong, 0);
    CHECK_INT(taken[0], 0);
    CHECK_INT(taken[1], 1 << 8);
    CHECK_INT(taken[2], 1 << 16);
    CHECK_INT(taken[3], 1 << 24);
}

/* Whatever stands in a group, and in front of another, beside letters. */
static void test_every_byte(void)
{
    static const char SET[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t at = 0; at < 8; at++) {
        for (int byte = 0; byte < 256; byte++) {
            char text[] = "AAAAAAAA";
            uint8_t out[6];
            size_t n = 0;
            text[at] = (char)byte;
            const bool is_pad = byte == '=' && at == 7;
            CHECK_INT(base64_decode(out, &n, text, 8), (byte && strchr(SET, byte)) || is_pad);
        }
    }
}

/* ---- memory ---- */

static err_code decode_once(void *text)
{
    arena *a = arena_create(1 << 20);
    const uint8_t *data = NULL;
    size_t n = 0;
    err_detail d = {0};
    const err_code err = a ? data_uri_decode(a, &data, &n, text, strlen(text), 100, &d) : ERR_NOMEM;
    CHECK_INT(n, err ? 0 : 3);
    arena_destroy(a);
    return err;
}

static err_code on_field(void *ctx, const multipart_field *field, err_detail *d)
{
    (void)ctx, (void)field, (void)d;
    return ERR_OK;
}

static err_code on_data(void *ctx, const void *data, size_t n, err_detail *d)
{
    (void)data, (void)d;
    *(size_t *)ctx += n;
    return ERR_OK;
}

static err_code on_field_end(void *ctx, err_detail *d)
{
    (void)ctx, (void)d;
    return ERR_OK;
}

static err_code read_form(void *text)
{
    size_t n = 0;
    multipart m;
    err_detail d = {0};
    const multipart_sink sink = {.ctx = &n, .begin = on_field, .data = on_data, .end = on_field_end};
    CHECK(multipart_init(&m, "multipart/form-data; boundary=B", &sink));
    const err_code err = multipart_feed(&m, text, strlen(text), &d);
    CHECK(err || (n == 5 && multipart_is_complete(&m)));
    CHECK((err == ERR_OK) == (d.text[0] == '\0'));
    multipart_deinit(&m);
    return err;
}

static void test_short_memory(void)
{
    static char uri[] = "data:image/png;base64,Zm9v",
                form[] = "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nwords\r\n--B--\r\n";
    CHECK(alloc_fail_each(decode_once, uri, 100) >= 2);
    CHECK(alloc_fail_each(read_form, form, 100) >= 1);
}

int main(void)
{
    size_t n = 0;
    test_every_group();
    test_every_byte();
    test_base64();
    test_every_length();
    test_classify();
    CHECK_INT(decode("data:image/png;base64,Zm9v", 100, &n), ERR_OK);
    CHECK_INT(n, 3);
    CHECK_INT(decode("data:;base64,Zm9v", 100, &n), ERR_OK);
    CHECK_INT(decode("data:image/png;charset=x;BASE64,Zm9v", 100, &n), ERR_OK);
    CHECK_INT(decode("Zm9v", 100, &n), ERR_OK);
    CHECK_INT(decode("data:image/png,Zm9v", 100, &n), ERR_INVALID);
    CHECK_INT(decode("data:image/png;base64", 100, &n), ERR_INVALID);
    CHECK_INT(decode("data:,", 100, &n), ERR_INVALID);
    CHECK_INT(decode("data:image/png;base64,", 100, &n), ERR_INVALID);
    CHECK_INT(decode("", 100, &n), ERR_INVALID);
    CHECK_INT(decode("Zm9vZm9vZm9v", 8, &n), ERR_LIMIT);
    CHECK_INT(decode("Zm9vZm9vZm9v", 9, &n), ERR_OK);
    CHECK_INT(n, 9);
    CHECK_INT(decode("a:,Zm9v", 100, &n), ERR_INVALID); /* nothing but a scheme in front of the comma */
    for (int fill = 231; fill <= 232; fill++) {         /* the longest header, and one that is longer */
        char uri[300];
        snprintf(uri, sizeof uri, "data:image/png;a=%0*d;base64,Zm9v", fill, 0);
        CHECK_INT(strchr(uri, ',') - uri, 24 + fill);
        CHECK_INT(decode(uri, 100, &n), fill == 231 ? ERR_OK : ERR_INVALID);
    }
    test_encode();
    test_short_memory();
    CHECK_DONE();
}
