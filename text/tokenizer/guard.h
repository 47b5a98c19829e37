/* guard: keeps what users, tools and files say from being read as a marker of the template
 * ("<|im_end|>", "</think>"). A marker in such text is broken by a guard character, which the
 * tokenizer drops after it has cut its added tokens out: the model sees the same text, spelled in
 * ordinary tokens. Any thread; the sets are borrowed.
 *
 *     guard g = {{tokenizer_markers(tok), chat_template_markers(t)}};
 *     guard_text(&g, &out, text, len);
 */
#ifndef PARLEY_TEXT_TOKENIZER_GUARD_H
#define PARLEY_TEXT_TOKENIZER_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "text/tokenizer/added_tokens.h"

/* U+FDD0, a noncharacter: never part of real text. */
#define GUARD_CHAR "\xEF\xB7\x90"
enum { GUARD_CODE = 0xFDD0, GUARD_LEN = sizeof GUARD_CHAR - 1 };

/* The markers that are looked for; either set may be NULL. */
typedef struct guard {
    const added_tokens *sets[2];
} guard;

/* Length of the longest marker that text[0..len) begins with; 0 if none. */
size_t guard_match(const guard *g, const char *text, size_t len);

/* The first place in text[from..len) where a marker may begin; len if there is none. */
size_t guard_next(const guard *g, const char *text, size_t from, size_t len);

/* The first guard character in text[0..len), or NULL. */
const char *guard_find(const char *text, size_t len);

/* Appends text[0..len) without guard characters. */
void guard_strip(bytes *out, const char *text, size_t len);

/* Appends text with every marker in it broken behind its first character, and with a guard at an
 * end that could be part of a marker together with what stands beside it. Guard characters already
 * in the text are removed first. */
void guard_text(const guard *g, bytes *out, const char *text, size_t len);

/* True if a marker begins in left and ends in right. One that begins in the last own_tail bytes of
 * left does not count: 0, unless the template itself wrote them and right. */
bool guard_spans(const guard *g, const char *left, size_t left_len, size_t own_tail, const char *right,
                 size_t right_len);

/* Whether an added token is one that a person could not mean as text: not one of white space,
 * letters and digits alone, nor one character once or repeated. */
bool guard_is_marker(const char *text, size_t len);

/* Adds to `out`, which is empty, the markers that a template's text shows: <...> and [CAPITALS].
 * ERR_NOMEM. Free with added_tokens_deinit. */
MUST_CHECK err_code guard_read_markers(added_tokens *out, const char *text, size_t len, err_detail *detail);

#endif
