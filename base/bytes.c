#include "base/bytes.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

enum { FIRST_CAP = 64 };

void bytes_init(bytes *b, size_t max)
{
    *b = bytes_empty(max);
}

void bytes_deinit(bytes *b)
{
    free(b->data);
    bytes_init(b, b->max);
}

void bytes_clear(bytes *b)
{
    b->len = 0;
    b->failed = b->no_memory = false;
    if (b->data) {
        b->data[0] = '\0';
    }
}

void bytes_fail_as(bytes *b, const bytes *part)
{
    b->failed = b->failed || part->failed;
    b->no_memory = b->no_memory || part->no_memory;
}

void bytes_fail_memory(bytes *b)
{
    b->failed = b->no_memory = true;
}

/* Makes room for n more bytes and the NUL; false (and `failed`) if that is not possible. */
static bool reserve(bytes *b, size_t n)
{
    if (b->failed) {
        return false;
    }
    if (n > b->max - b->len) {
        b->failed = true;
        return false;
    }
    size_t need = b->len + n;
    if (b->data && need <= b->cap) {
        return true;
    }
    size_t cap = b->cap > b->max / 2 ? b->max : b->cap * 2;
    if (cap < FIRST_CAP && FIRST_CAP <= b->max) {
        cap = FIRST_CAP;
    }
    if (cap < need) {
        cap = need;
    }
    char *data = realloc(b->data, cap + 1);
    if (!data) {
        bytes_fail_memory(b);
        return false;
    }
    data[b->len] = '\0';
    b->data = data;
    b->cap = cap;
    return true;
}

void bytes_append(bytes *b, const void *data, size_t n)
{
    if (!reserve(b, n)) {
        return;
    }
    if (n > 0) {
        memcpy(b->data + b->len, data, n);
    }
    b->len += n;
    b->data[b->len] = '\0';
}

void bytes_append_str(bytes *b, const char *text)
{
    bytes_append(b, text, strlen(text));
}

void bytes_append_char(bytes *b, char c)
{
    bytes_append(b, &c, 1);
}

void bytes_printf(bytes *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0) {
        b->failed = true;
    } else if (reserve(b, (size_t)n)) {
        vsnprintf(b->data + b->len, (size_t)n + 1, format, again);
        b->len += (size_t)n;
    }
    va_end(again);
}

void bytes_append_json(bytes *b, const char *text, size_t len)
{
    static const char escaped[] = "\"\\\n\r\t\b\f", letters[] = "\"\\nrtbf";
    bytes_append_char(b, '"');
    size_t plain = 0; /* start of the run that can be copied as it is */
    size_t i = 0;
    while (i < len) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c < 0x7F && c != '"' && c != '\\') {
            i++;
            continue;
        }
        if (c >= 0x80) {
            uint32_t code_point;
            size_t n = utf8_decode(text + i, len - i, &code_point);
            /* A real U+FFFD is three bytes long; an ill-formed sequence shows as another text. */
            char encoded[4];
            size_t m = utf8_encode(encoded, code_point);
            if (m == n && memcmp(encoded, text + i, n) == 0) {
                i += n;
                continue;
            }
            bytes_append(b, text + plain, i - plain);
            bytes_append(b, encoded, m);
            i += n;
            plain = i;
            continue;
        }
        bytes_append(b, text + plain, i - plain);
        const char *escape = strchr(escaped, c);
        if (c && escape) {
            bytes_append_char(b, '\\');
            bytes_append_char(b, letters[escape - escaped]);
        } else {
            bytes_printf(b, "\\u%04x", c);
        }
        i++;
        plain = i;
    }
    if (i > plain) {
        bytes_append(b, text + plain, i - plain);
    }
    bytes_append_char(b, '"');
}

/* Appends the string of a %s, %-s or %.*s. */
static void append_string(bytes *b, const char *conversion, const char *text, size_t len)
{
    if (conversion[1] == '-') {
        bytes_append(b, text, len);
    } else if (text) {
        bytes_append_json(b, text, len);
    } else {
        bytes_append_str(b, "null");
    }
}

void bytes_json(bytes *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    for (const char *p = format; *p;) {
        const size_t plain = strcspn(p, "%");
        bytes_append(b, p, plain);
        p += plain;
        if (!*p) {
            break;
        }
        char conversion[16];
        const size_t n = strcspn(p, "sdufg") + 1;
        assert(n < sizeof conversion && n <= strlen(p));
        memcpy(conversion, p, n);
        conversion[n] = '\0';
        p += n;
        if (conversion[n - 1] == 's') {
            const int given = strchr(conversion, '*') ? va_arg(args, int) : -1;
            const char *text = va_arg(args, const char *);
            append_string(b, conversion, text, given >= 0 ? (size_t)given : text ? strlen(text) : 0);
        } else if (strcmp(conversion, "%hhd") == 0) {
            bytes_append_str(b, va_arg(args, int) ? "true" : "false");
        } else if (strpbrk(conversion, "fg")) {
            bytes_printf(b, conversion, va_arg(args, double));
        } else if (strpbrk(conversion, "lz")) {
            bytes_printf(b, conversion, va_arg(args, long long));
        } else {
            bytes_printf(b, conversion, va_arg(args, int));
        }
    }
    va_end(args);
}

void bytes_consume(bytes *b, size_t n)
{
    assert(n <= b->len);
    if (n == 0 || n > b->len) {
        return;
    }
    memmove(b->data, b->data + n, b->len - n);
    b->len -= n;
    b->data[b->len] = '\0';
}

const char *bytes_str(const bytes *b)
{
    return b->data ? b->data : "";
}
