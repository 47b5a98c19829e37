/* jinja_lexer: cuts a chat template into tokens, with trim_blocks and lstrip_blocks on, as
 * transformers sets them.
 *
 *     jinja_tokens t;
 *     err_code err = jinja_lex(&t, text, len, arena, &detail);      // t.items ends with JINJA_TOKEN_END
 *
 * Tokens point into memory of the arena.
 */
#ifndef PARLEY_TEXT_JINJA_JINJA_LEXER_H
#define PARLEY_TEXT_JINJA_JINJA_LEXER_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

typedef enum jinja_token_kind {
    JINJA_TOKEN_END,
    JINJA_TOKEN_DATA,        /* text outside of tags */
    JINJA_TOKEN_BLOCK_BEGIN, /* {% */
    JINJA_TOKEN_BLOCK_END,
    JINJA_TOKEN_VAR_BEGIN, /* {{ */
    JINJA_TOKEN_VAR_END,
    JINJA_TOKEN_NAME,
    JINJA_TOKEN_STRING, /* text without quotes, escapes resolved */
    JINJA_TOKEN_INT,    /* text: digits, in the base of its prefix, without underscores */
    JINJA_TOKEN_FLOAT,
    JINJA_TOKEN_OP, /* text: the operator */
} jinja_token_kind;

typedef struct jinja_token {
    jinja_token_kind kind;
    int line; /* from 1 */
    const char *text;
    size_t len;
} jinja_token;

typedef struct jinja_tokens {
    jinja_token *items;
    size_t len, cap;
} jinja_tokens;

/* ERR_INVALID with the line for text that is no template; ERR_NOMEM. */
MUST_CHECK err_code jinja_lex(jinja_tokens *out, const char *text, size_t len, arena *a, err_detail *detail);

#endif
