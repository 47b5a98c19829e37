/* utf8: checking and walking UTF-8. Any thread; no state. */
#ifndef PARLEY_BASE_UTF8_H
#define PARLEY_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True if text[0..len) is well-formed UTF-8 (no surrogates, no overlong forms, <= U+10FFFF). */
bool utf8_valid(const char *text, size_t len);

/* Decodes one character at text[0..len), len > 0; returns the bytes used (>= 1). An ill-formed
 * sequence gives U+FFFD and the length of its maximal subpart. */
size_t utf8_decode(const char *text, size_t len, uint32_t *code_point);

/* Writes 1..4 bytes of a code point; returns how many. Surrogates and > U+10FFFF are written as
 * U+FFFD. */
size_t utf8_encode(char out[4], uint32_t code_point);

/* Where the last character of text[0..len), len > 0, begins. */
size_t utf8_last(const char *text, size_t len);

/* How many bytes at the end of text[0..len) are the unfinished start of a character (0..3). */
size_t utf8_incomplete_tail(const char *text, size_t len);

#endif
