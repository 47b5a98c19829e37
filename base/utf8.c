#include "base/utf8.h"

#include <utf8proc.h>

/* Well-formed sequences, Unicode standard table 3-7: the lead byte fixes the length and the range
 * of the second byte; all further bytes are 80..BF. */
typedef struct lead {
    size_t len; /* 0: not a lead byte */
    unsigned char second_min, second_max;
} lead;

static lead classify(unsigned char c)
{
    if (c < 0x80) {
        return (lead){1, 0, 0};
    }
    if (c >= 0xC2 && c <= 0xDF) {
        return (lead){2, 0x80, 0xBF};
    }
    if (c >= 0xE0 && c <= 0xEF) {
        return (lead){3, c == 0xE0 ? 0xA0 : 0x80, c == 0xED ? 0x9F : 0xBF};
    }
    if (c >= 0xF0 && c <= 0xF4) {
        return (lead){4, c == 0xF0 ? 0x90 : 0x80, c == 0xF4 ? 0x8F : 0xBF};
    }
    return (lead){0, 0, 0};
}

/* How many bytes of text[0..len) fit the sequence that its first byte begins; *want is its full
 * length. */
static size_t matched(const char *text, size_t len, size_t *want)
{
    lead l = classify((unsigned char)text[0]);
    *want = l.len;
    if (l.len == 0) {
        return 0;
    }
    size_t n = 1;
    while (n < l.len && n < len) {
        unsigned char c = (unsigned char)text[n];
        unsigned char low = n == 1 ? l.second_min : 0x80;
        unsigned char high = n == 1 ? l.second_max : 0xBF;
        if (c < low || c > high) {
            break;
        }
        n++;
    }
    return n;
}

bool utf8_valid(const char *text, size_t len)
{
    size_t i = 0;
    while (i < len) {
        if ((unsigned char)text[i] < 0x80) {
            i++;
            continue;
        }
        size_t want;
        size_t n = matched(text + i, len - i, &want);
        if (n == 0 || n != want) {
            return false;
        }
        i += n;
    }
    return true;
}

size_t utf8_decode(const char *text, size_t len, uint32_t *code_point)
{
    size_t want;
    size_t n = matched(text, len, &want);
    if (n == 0 || n != want) {
        *code_point = 0xFFFD;
        return n == 0 ? 1 : n;
    }
    unsigned char c = (unsigned char)text[0];
    uint32_t value = n == 1 ? c : c & (0xFFu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        value = value << 6 | ((unsigned char)text[i] & 0x3Fu);
    }
    *code_point = value;
    return n;
}

size_t utf8_encode(char out[4], uint32_t code_point)
{
    bool character = code_point <= 0x10FFFF && (code_point < 0xD800 || code_point > 0xDFFF);
    utf8proc_int32_t c = character ? (utf8proc_int32_t)code_point : 0xFFFD;
    return (size_t)utf8proc_encode_char(c, (utf8proc_uint8_t *)out);
}

size_t utf8_last(const char *text, size_t len)
{
    size_t at = len - 1;
    while (at > 0 && ((unsigned char)text[at] & 0xC0) == 0x80) {
        at--;
    }
    return at;
}

size_t utf8_incomplete_tail(const char *text, size_t len)
{
    for (size_t back = 1; back <= 3 && back <= len; back++) {
        const char *start = text + len - back;
        if (((unsigned char)*start & 0xC0) == 0x80) {
            continue; /* a continuation byte: its lead stands further to the left */
        }
        size_t want;
        size_t n = matched(start, back, &want);
        return n == back && want > back ? back : 0;
    }
    return 0;
}
