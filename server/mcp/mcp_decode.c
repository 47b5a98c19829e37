#include "server/mcp/mcp_decode.h"

#include <errno.h>
#include <iconv.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"

enum { LOOK_BYTES = 8192, PIECE_BYTES = 4096 };
static const char UNKNOWN[] = "\xef\xbf\xbd", PLAIN[] = "windows-1252";

/* The charset that the first bytes tell, and how many tell it; NULL: they do not. */
static const char *mark_of(const char *data, size_t n, size_t *n_mark)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *charset;
    } MARKS[] = {{"\xef\xbb\xbf", 3, "UTF-8"}, {"\xff\xfe", 2, "UTF-16LE"}, {"\xfe\xff", 2, "UTF-16BE"}};
    for (size_t i = 0; i < ARRAY_LEN(MARKS); i++) {
        if (n >= MARKS[i].n && memcmp(data, MARKS[i].bytes, MARKS[i].n) == 0) {
            *n_mark = MARKS[i].n;
            return MARKS[i].charset;
        }
    }
    *n_mark = 0;
    return NULL;
}

bool mcp_is_binary(const char *data, size_t n)
{
    size_t n_mark;
    return n > 0 && !mark_of(data, n, &n_mark) && memchr(data, '\0', n < LOOK_BYTES ? n : LOOK_BYTES);
}

/* Names by which pages call what is really a larger set. */
static const char *real_name(const char *charset)
{
    static const char *const NAMES[][2] = {
        {"iso-8859-1", PLAIN},        {"iso8859-1", PLAIN},     {"latin1", PLAIN},
        {"us-ascii", PLAIN},          {"ascii", PLAIN},         {"iso-8859-9", "windows-1254"},
        {"shift_jis", "CP932"},       {"shift-jis", "CP932"},   {"sjis", "CP932"},
        {"x-sjis", "CP932"},          {"windows-31j", "CP932"}, {"gb2312", "GB18030"},
        {"gbk", "GB18030"},           {"x-gbk", "GB18030"},     {"ks_c_5601-1987", "CP949"},
        {"euc-kr", "CP949"},          {"big5", "BIG5-HKSCS"},   {"tis-620", "CP874"},
        {"unicode", "UTF-16LE"},      {"utf-16", "UTF-16LE"},   {"utf8", "UTF-8"},
        {"x-mac-roman", "MACINTOSH"},
    };
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        if (strcasecmp(charset, NAMES[i][0]) == 0) {
            return NAMES[i][1];
        }
    }
    return charset;
}

static void append_utf8(bytes *out, const char *data, size_t n)
{
    for (size_t i = 0; i < n;) {
        uint32_t point;
        char text[4];
        const size_t used = utf8_decode(data + i, n - i, &point);
        bytes_append(out, text, utf8_encode(text, point));
        i += used;
    }
}

/* Where the system has no tables: each byte is the character of its number. */
static void append_latin(bytes *out, const char *data, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char text[4];
        bytes_append(out, text, utf8_encode(text, (unsigned char)data[i]));
    }
}

static void append_converted(bytes *out, iconv_t how, const char *data, size_t n)
{
    char *in = (char *)(uintptr_t)data, piece[PIECE_BYTES]; /* iconv only reads what it is given */
    while (n > 0) {
        char *to = piece;
        size_t room = sizeof piece;
        const size_t end = iconv(how, &in, &n, &to, &room);
        const int why = errno;
        bytes_append(out, piece, (size_t)(to - piece));
        if (end == (size_t)-1 && why != E2BIG) { /* no character, or the half of one at the end */
            bytes_append_str(out, UNKNOWN);
            in += n > 0;
            n -= n > 0;
        }
    }
}

void mcp_decode(bytes *out, const char *data, size_t n, const char *charset)
{
    size_t n_mark;
    const char *said = mark_of(data, n, &n_mark), *name = said ? said : real_name(charset);
    data += n_mark;
    n -= n_mark;
    if (!name[0]) {
        name = utf8_valid(data, n - utf8_incomplete_tail(data, n)) ? "UTF-8" : PLAIN;
    }
    if (strcasecmp(name, "UTF-8") == 0) {
        append_utf8(out, data, n);
        return;
    }
    iconv_t how = iconv_open("UTF-8", name);
    if (how == (iconv_t)-1) { /* a name that nobody knows */
        how = utf8_valid(data, n) ? (iconv_t)-1 : iconv_open("UTF-8", PLAIN);
    }
    if (how == (iconv_t)-1) {
        (utf8_valid(data, n) ? append_utf8 : append_latin)(out, data, n);
        return;
    }
    append_converted(out, how, data, n);
    iconv_close(how);
}
