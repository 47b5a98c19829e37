/* multipart: what is read of forms of every odd form, and both sides of each of its bounds, whole and byte by byte. */
#include "server/media/multipart.h"

#include <string.h>

#include "base/compiler.h"
#include "tests/recorded.h"

enum { LONG = 9000 };

/* Which byte has come last where a form comes byte by byte and that is to be said; 0: it is not. */
static size_t now;

static void say_when(bytes *out)
{
    if (now) {
        bytes_printf(out, " @%zu ", now);
    }
}

static err_code on_field(void *ctx, const multipart_field *f, err_detail *d)
{
    (void)d;
    say_when(ctx);
    bytes_printf(ctx, " [%s%s%s]", f->name, f->is_file ? " in " : "", f->is_file ? f->filename : "");
    return ERR_OK;
}

static err_code on_data(void *ctx, const void *data, size_t n, err_detail *d)
{
    (void)d;
    say_when(ctx);
    bytes_append(ctx, data, n);
    return ERR_OK;
}

static err_code on_end(void *ctx, err_detail *d)
{
    (void)d;
    say_when(ctx);
    bytes_append_str(ctx, ".");
    return ERR_OK;
}

/* What is said of a form that comes in pieces of so many bytes. */
static void read_form(bytes *out, const char *type, const char *text, size_t len, size_t step)
{
    multipart m;
    err_detail d = {0};
    err_code err = ERR_OK;
    const multipart_sink sink = {.ctx = out, .begin = on_field, .data = on_data, .end = on_end};
    const bool is_form = multipart_init(&m, type, &sink);
    for (size_t at = 0; is_form && at < len && !err; at += step) {
        err = multipart_feed(&m, text + at, len - at < step ? len - at : step, &d);
    }
    bytes_printf(out, " %s%s%s",
                 !is_form                    ? "no form"
                 : err                       ? err_name(err)
                 : multipart_is_complete(&m) ? "complete"
                                             : "goes on",
                 err ? ": " : "", d.text);
    multipart_deinit(&m);
}

static void tell(bytes *out, const char *what, const char *type, const char *text, size_t len)
{
    bytes whole = bytes_empty(1 << 16), pieces = bytes_empty(1 << 16);
    read_form(&whole, type, text, len, len);
    read_form(&pieces, type, text, len, 1);
    CHECK_STR(bytes_str(&pieces), bytes_str(&whole));
    bytes_printf(out, "%s:%s\n", what, bytes_str(&whole));
    bytes_deinit(&whole);
    bytes_deinit(&pieces);
}

#define TYPE "multipart/form-data; boundary=B"

static const char *const TYPES[] = {
    "multipart/form-data",
    "multipart/form-data;boundary=B",
    "multipart/form-data; boundary=",
    "multipart/form-data; boundary=\"B\"",
    "multipart/form-data; boundary=\"\"",
    "MULTIPART/FORM-DATA; charset=x;\tBOUNDARY=B ; y=z",
    "multipart/form-data; xboundary=C; boundary=B",
    "multipart/form-data; boundary =B",
    "multipart/form-data; a=\"; boundary=C\"; boundary=B",
    "multipart/form-data; a=\"\\\"; boundary=C\"; boundary=B",
    "multipart/form-data; a=\\\"; boundary=B",
    "multipart/form-data; boundaries=C; boundary=B",
    "multipart/mixed; boundary=B",
    "text/plain",
    "",
};

static const char *const STATES[] = {[MULTIPART_PREAMBLE] = "preamble",
                                     [MULTIPART_BOUNDARY] = "boundary",
                                     [MULTIPART_HEADERS] = "headers",
                                     [MULTIPART_DATA] = "data",
                                     [MULTIPART_END] = "end"};

/* When each part of a form is handed on: as soon as it cannot be anything else. */
static void tell_when(bytes *out, const char *what, const char *text, size_t len)
{
    multipart m;
    err_detail d = {0};
    err_code err = ERR_OK;
    const multipart_sink sink = {.ctx = out, .begin = on_field, .data = on_data, .end = on_end};
    bytes_printf(out, "when of %s:", what);
    CHECK(multipart_init(&m, TYPE, &sink));
    for (now = 1; now <= len && !err; now++) {
        const multipart_state before = m.state;
        err = multipart_feed(&m, text + now - 1, 1, &d);
        if (err || m.state != before) {
            bytes_printf(out, " @%zu %s", now, err ? err_name(err) : STATES[m.state]);
        }
    }
    now = 0;
    bytes_printf(out, " and %zu held\n", m.held.len);
    multipart_deinit(&m);
}

/* Values of Content-Disposition. */
static const char *const DISPOSITIONS[] = {
    "form-data; name=\"a\"",
    "FORM-DATA; NAME=a",
    "form-data; name=a b; filename=c d",
    "form-data; name=\"\"",
    "form-data",
    "attachment; name=\"a\"",
    "form-data; name=\"a\\\"b\\\\c\\d\"; filename=\"e\\\\f\"",
    "form-data; name=\"a; filename=b\"",
    "form-data; name=\"a\"; filename=\"\"",
    "form-data; name=\"a\"; filename=\"/etc/pass wd\"",
    "form-data; name=\"a\"; filename=\"C:\\\\x\\\\y.png\"",
    "form-data; name=\"a\"; filename=\"x/\"",
    "form-data; name=\"a\"; filename=\"tab\there \x7f\x01.\"",
    "form-data; name=\"a\"; filename=\"caf\xc3\xa9.png\"",
    "form-data; name=\"a\"; filename=\"caf\xe9.png\"",
    "form-data; name=\"a\"; filename*=utf-8''na%c3%afve%20%zz%2",
    "form-data; name=\"a\"; filename*=UTF-8''%2e%2e%2fup; filename=\"plain\"",
    "form-data; name=\"a\"; filename*=latin1''x; filename=\"plain\"",
    "form-data; name=\"a\"; filename*=latin1''x",
    "form-data; name=\"a\"; filename*=utf-8''",
};

static const struct {
    const char *what, *text;
} FORMS[] = {
    {"empty", "--B--"},
    {"one", "--B\r\nContent-Disposition: form-data; name=a\r\n\r\nwords\r\n--B--\r\n"},
    {"two", "--B\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--B\r\ncontent-disposition:form-data; "
            "name=b\r\n\r\n2\r\n--B--"},
    {"other headers",
     "--B\r\nContent-Type: x\r\nContent-Disposition:\tform-data; name=a\r\nX: y\r\n\r\n1\r\n--B--"},
    {"no disposition", "--B\r\nContent-Type: x\r\n\r\n1\r\n--B--"},
    {"no headers", "--B\r\n\r\n1\r\n--B--"},
    {"two dispositions", "--B\r\nContent-Disposition: form-data; name=a\r\nContent-Disposition: form-data; "
                         "name=b\r\n\r\n1\r\n--B--"},
    {"a preamble and an epilogue",
     "before\r\n--B \t \r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--B--after --B"},
    {"nearly the boundary",
     "--B\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n--A\r\n--\r\n-B\n--B\r--B\r\n--B--"},
    {"text behind the boundary", "--B\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--Bx"},
    {"a dash behind it", "--B-x"},
    {"a blank, then dashes", "--B --"},
    {"no boundary", "words"},
    {"cut in the headers", "--B\r\nContent-Disposition: form-data; name=a\r\n"},
    {"cut in the data", "--B\r\nContent-Disposition: form-data; name=a\r\n\r\nwords\r\n--"},
};

/* One form that is as long in one place as it may be, and then by one byte longer. */
static void tell_bounds(bytes *out)
{
    static char text[2 * LONG], many[LONG + 1];
    memset(many, 'x', LONG);
    for (size_t n = MULTIPART_BOUNDARY_MAX - 1; n <= MULTIPART_BOUNDARY_MAX + 1; n++) {
        char type[512], what[64];
        snprintf(type, sizeof type, "multipart/form-data; boundary=%.*s", (int)n, many);
        snprintf(text, sizeof text, "--%.*s--", (int)n, many);
        snprintf(what, sizeof what, "a boundary of %zu", n);
        tell(out, what, type, text, strlen(text));
    }
    for (size_t n = MULTIPART_NAME_MAX - 2; n <= MULTIPART_NAME_MAX; n++) {
        char what[64];
        snprintf(text, sizeof text, "--B\r\nContent-Disposition: form-data; name=%.*s\r\n\r\n1\r\n--B--",
                 (int)n, many);
        snprintf(what, sizeof what, "a name of %zu", n);
        tell(out, what, TYPE, text, strlen(text));
    }
    static const size_t FILES[] = {MULTIPART_FILENAME_MAX - 1, MULTIPART_FILENAME_MAX,
                                   2 * MULTIPART_FILENAME_MAX - 1, 2 * MULTIPART_FILENAME_MAX};
    for (size_t i = 0; i < 2 * ARRAY_LEN(FILES); i++) {
        char what[64];
        const size_t n = FILES[i / 2];
        snprintf(text, sizeof text,
                 "--B\r\nContent-Disposition: form-data; name=a; filename=%.*s%s\r\n\r\n1\r\n--B--",
                 (int)(i % 2 ? n - 2 : n), many, i % 2 ? "\xc3\xa9" : "");
        snprintf(what, sizeof what, "a file name of %zu%s", n, i % 2 ? ", two of them one character" : "");
        tell(out, what, TYPE, text, strlen(text));
    }
    for (int more = 0; more < 2; more++) {
        const int blanks = 8192 + more, headers = 8192 + more;
        const int n = snprintf(text, sizeof text, "--B%*s", blanks, "");
        tell(out, more ? "a blank too many" : "many blanks", TYPE, text, (size_t)n);
        const int m = snprintf(text, sizeof text, "--B\r\n%.*s", headers, many);
        tell(out, more ? "a byte of headers too many" : "long headers", TYPE, text, (size_t)m);
    }
    memcpy(text, "--B\r\nContent-Disposition: form-data; name=a\0b\r\n\r\n", 50);
    tell(out, "a zero in a header", TYPE, text, 50);
}

int main(void)
{
    bytes out = bytes_empty(1 << 20);
    char text[1024];
    for (size_t i = 0; i < ARRAY_LEN(TYPES); i++) {
        tell(&out, TYPES[i], TYPES[i], FORMS[1].text, strlen(FORMS[1].text));
    }
    for (size_t i = 0; i < ARRAY_LEN(DISPOSITIONS); i++) {
        snprintf(text, sizeof text, "--B\r\nContent-Disposition: %s\r\n\r\n1\r\n--B--", DISPOSITIONS[i]);
        tell(&out, DISPOSITIONS[i], TYPE, text, strlen(text));
    }
    for (size_t i = 0; i < ARRAY_LEN(FORMS); i++) {
        tell(&out, FORMS[i].what, TYPE, FORMS[i].text, strlen(FORMS[i].text));
    }
    tell_bounds(&out);
    for (size_t i = 0; i < ARRAY_LEN(FORMS); i++) {
        tell_when(&out, FORMS[i].what, FORMS[i].text, strlen(FORMS[i].text));
    }
    recorded_check("server/media/multipart.txt", bytes_str(&out));
    bytes_deinit(&out);
    CHECK_DONE();
}
