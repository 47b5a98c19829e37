/* unicode: what the tokenizer and the chat templates need of Unicode: NFC, white space, case. Any
 * thread; no state.
 *
 *     bytes b; bytes_init(&b, limit);
 *     unicode_nfc(&b, text, len);            // if (b.failed) ...
 *
 * All text is valid UTF-8. The only user of the Unicode library.
 */
#ifndef PARLEY_BASE_UNICODE_H
#define PARLEY_BASE_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

/* True if a cheap look proves that text[0..len) is in NFC already (false = not known). */
bool unicode_surely_nfc(const char *text, size_t len);

/* Appends the NFC form of text[0..len); sets out->failed without memory. Linear apart from a factor
 * 4 or so, also for endless runs of combining marks. */
void unicode_nfc(bytes *out, const char *text, size_t len);

/* White space in the meaning of Python's str.strip and str.split. */
bool unicode_is_space(uint32_t code_point);

/* Letters that have case, digits and the like, as str.isalpha, str.isdecimal, str.isdigit and str.isalnum
 * see them. */
bool unicode_is_alpha(uint32_t code_point);
bool unicode_is_decimal(uint32_t code_point);
bool unicode_is_digit(uint32_t code_point);
bool unicode_is_numeric(uint32_t code_point);
bool unicode_is_upper(uint32_t code_point);
bool unicode_is_lower(uint32_t code_point);
/* False for what Python's repr writes as an escape: controls, unassigned, blanks other than the
 * space. */
bool unicode_is_printable(uint32_t code_point);

typedef enum unicode_case { UNICODE_LOWER, UNICODE_UPPER, UNICODE_TITLE } unicode_case;

/* Appends one character in another case; a mapping may give several characters (U+00DF becomes
 * "SS"). */
void unicode_append_case(bytes *out, uint32_t code_point, unicode_case to);

/* Appends text[0..len) in upper or lower case (with the final sigma rule), as str.upper and
 * str.lower do. */
void unicode_convert(bytes *out, const char *text, size_t len, unicode_case to);

/* Appends text[0..len) as it is compared without regard to case, as str.casefold does (U+00DF becomes
 * "ss"). */
void unicode_fold(bytes *out, const char *text, size_t len);

#endif
