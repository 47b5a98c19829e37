/* tokenizer: text <-> token ids from a checkpoint's tokenizer.json (byte-level BPE, PCRE2 split,
 * NFC). Immutable after opening: any number of threads may encode and decode at once.
 *
 *     tokenizer *tok; tokenizer_open(&tok, "DIR/tokenizer.json", &detail);
 *     tokenizer_encode(tok, &ids, text, len, TOKENIZER_SPECIALS, &detail);
 *     tokenizer_close(tok);
 */
#ifndef PARLEY_TEXT_TOKENIZER_TOKENIZER_H
#define PARLEY_TEXT_TOKENIZER_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "text/tokenizer/added_tokens.h"

typedef struct tokenizer tokenizer;

/* Growable list of token ids, owned by the caller. */
typedef struct token_ids {
    int32_t *ids;
    size_t len, cap;
} token_ids;

void token_ids_init(token_ids *t);
void token_ids_deinit(token_ids *t);
MUST_CHECK err_code token_ids_push(token_ids *t, int32_t id);

/* Whether added tokens in the text become their ids or are spelled out like other text. */
typedef enum tokenizer_mode { TOKENIZER_PLAIN, TOKENIZER_SPECIALS } tokenizer_mode;

MUST_CHECK err_code tokenizer_open(tokenizer **out, const char *path, err_detail *detail);
/* The same from the text of a tokenizer.json; `where` is what messages call it. */
MUST_CHECK err_code tokenizer_open_json(tokenizer **out, const char *text, size_t len, const char *where,
                                        err_detail *detail);
void tokenizer_close(tokenizer *tok); /* NULL allowed */

/* Appends the ids of text[0..len) to out. The text must be valid UTF-8 (ERR_INVALID). Guard
 * characters (see tokenizer_guard) are dropped after added tokens have been cut out. */
MUST_CHECK err_code tokenizer_encode(const tokenizer *tok, token_ids *out, const char *text, size_t len,
                                     tokenizer_mode mode, err_detail *detail);

/* Appends text with every occurrence of a marker's string broken by a guard character
 * (text/tokenizer/guard.h), so that what a user typed never becomes a control token: render the chat template
 * with guarded contents, then encode with TOKENIZER_SPECIALS. Guard characters already in the text
 * are removed first. */
void tokenizer_guard(const tokenizer *tok, bytes *out, const char *text, size_t len);

/* The added tokens that only a template may write: the special ones, and "<think>", "<tool_call>"
 * and the like. Words and white space that were added to a vocabulary are text (guard_is_marker).
 * Lives as long as the tokenizer. */
const added_tokens *tokenizer_markers(const tokenizer *tok);

/* The raw bytes of one token (may be part of a character); NULL and *len 0 for an id without text.
 * *special is set for tokens that skip_special_tokens would drop (may be NULL). Owned by the
 * tokenizer. */
const char *tokenizer_token_bytes(const tokenizer *tok, int32_t id, size_t *len, bool *special);

/* Appends the decoded text; ill-formed UTF-8 becomes U+FFFD (one per maximal subpart). */
void tokenizer_decode(const tokenizer *tok, bytes *out, const int32_t *ids, size_t n, bool skip_special);

/* Id of an added token by its exact text ("<|im_end|>"), or -1. */
int32_t tokenizer_added_id(const tokenizer *tok, const char *text);

/* Number of ids the file defines (largest id + 1). */
int32_t tokenizer_n_tokens(const tokenizer *tok);

#endif
