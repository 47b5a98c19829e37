/* bytes: a growable byte buffer with a maximum. One thread at a time; embedded by value.
 *
 *     bytes b; bytes_init(&b, 1 << 20);
 *     bytes_printf(&b, "data: %s\n\n", json);
 *     if (b.failed) { return b.no_memory ? ERR_NOMEM : ERR_LIMIT; }
 *     bytes_deinit(&b);
 *
 * Errors stick: once the maximum or the memory is exhausted `failed` is set, later appends do
 * nothing, and one check at the end is enough. Invariant: len <= cap <= max; data[len] is NUL
 * whenever data != NULL.
 */
#ifndef PARLEY_BASE_BYTES_H
#define PARLEY_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

typedef struct bytes {
    char *data;     /* NULL until the first append */
    size_t len;     /* bytes in use */
    size_t cap;     /* bytes allocated, without the terminating NUL */
    size_t max;     /* len never exceeds it */
    bool failed;    /* an append did not fit or memory ran out */
    bool no_memory; /* it was memory, not the maximum: `failed` too */
} bytes;

/* Empty buffer that may grow to max bytes. Takes no memory yet. */
void bytes_init(bytes *b, size_t max);

/* The same as a value: bytes text = bytes_empty(LIMIT); */
static inline bytes bytes_empty(size_t max)
{
    return (bytes){.max = max < SIZE_MAX ? max : SIZE_MAX - 1};
}

/* Frees the memory; b is then as after bytes_init. */
void bytes_deinit(bytes *b);

/* Empties the buffer and clears `failed` and `no_memory`; keeps the memory. */
void bytes_clear(bytes *b);

/* Appends n bytes. */
void bytes_append(bytes *b, const void *data, size_t n);

/* Appends a NUL-terminated string (without the NUL). */
void bytes_append_str(bytes *b, const char *text);

/* Appends one byte. */
void bytes_append_char(bytes *b, char c);

/* Appends formatted text. */
void bytes_printf(bytes *b, const char *format, ...) PRINTF_LIKE(2, 3);

/* Appends text[0..len) as a JSON string with quotes; invalid UTF-8 becomes U+FFFD. */
void bytes_append_json(bytes *b, const char *text, size_t len);

/* Appends JSON as bytes_printf appends text, with these differences: %s becomes a JSON string with
 * quotes (NULL: null), %.*s one of so many bytes, %hhd true or false (of a bool), and %-s the text as it is.
 * Numbers are %d, %u, %f, %g, and the first two with l, ll or z; there is no %%.
 *
 *     bytes_json(&b, "{\"id\":%s,\"n\":%zu,\"done\":%hhd}", id, n, is_done);
 */
void bytes_json(bytes *b, const char *format, ...) PRINTF_LIKE(2, 3);
/* The contents of a buffer for %.*s. */
#define BYTES_ARG(b) (int)(b)->len, bytes_str(b)

/* A part of b failed: b does too, for the same reason. Nothing if the part did not fail. */
void bytes_fail_as(bytes *b, const bytes *part);

/* No memory for what b was to hold. */
void bytes_fail_memory(bytes *b);

/* Removes the first n bytes (n <= len). */
void bytes_consume(bytes *b, size_t n);

/* The contents as a C string, "" when empty; owned by b, valid until the next change. */
const char *bytes_str(const bytes *b);

#endif
