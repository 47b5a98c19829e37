/* added_tokens: finds the literal tokens of a tokenizer ("<|im_end|>") in text, the longest at each
 * place. Immutable once sorted: any thread may search.
 *
 *     added_tokens set = {0};
 *     added_tokens_add(&set, "<|im_end|>", 10, id, &detail);  added_tokens_sort(&set);
 *     size_t len = added_tokens_match(&set, text, n, &id);      // 0 = none starts here
 *     added_tokens_deinit(&set);
 */
#ifndef PARLEY_TEXT_TOKENIZER_ADDED_TOKENS_H
#define PARLEY_TEXT_TOKENIZER_ADDED_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Longest text of one added token in bytes: bounds the work at each place. */
enum { ADDED_TOKEN_MAX = 1024 };

typedef struct added_token {
    char *text; /* owned */
    size_t len;
    int32_t id;
} added_token;

typedef struct added_tokens {
    added_token *items; /* sorted by bytes after added_tokens_sort */
    size_t len, cap;
    size_t longest;   /* bytes of the longest text */
    bool starts[256]; /* some token begins with this byte */
} added_tokens;

/* Copies the text; ERR_NOMEM, ERR_UNSUPPORTED if it is empty or too long. */
MUST_CHECK err_code added_tokens_add(added_tokens *set, const char *text, size_t len, int32_t id,
                                     err_detail *detail);
void added_tokens_sort(added_tokens *set);
void added_tokens_deinit(added_tokens *set);

/* Length of the longest token that text[0..len) begins with, and its id; 0 if none. */
size_t added_tokens_match(const added_tokens *set, const char *text, size_t len, int32_t *id);

/* The first place in text[from..len) where a token may begin; len if there is none. */
size_t added_tokens_next(const added_tokens *set, const char *text, size_t from, size_t len);

/* True if text[0..len) is a beginning of some token, but not all of it. */
bool added_tokens_has_prefix(const added_tokens *set, const char *text, size_t len);

/* True if text[0..len) begins with an ending of some token that is not all of it. */
bool added_tokens_begins_with_tail(const added_tokens *set, const char *text, size_t len);

#endif
