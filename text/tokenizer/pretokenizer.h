/* pretokenizer: cuts text into the pieces within which byte pairs are merged, with the regular
 * expressions of a tokenizer.json. Immutable: any thread may split, each with its own scratch.
 *
 *     pretokenizer *p; pretokenizer_create(&p, patterns, n, &detail);
 *     pretokenizer_scratch *s; pretokenizer_scratch_create(&s, p, &detail);
 *     pretokenizer_split(p, s, text, len, on_piece, ctx, &detail);
 *
 * Every match is a piece and so is what lies between matches. With several expressions each one
 * cuts the pieces of the one before. The only user of the regular-expression library.
 */
#ifndef PARLEY_TEXT_TOKENIZER_PRETOKENIZER_H
#define PARLEY_TEXT_TOKENIZER_PRETOKENIZER_H

#include <stddef.h>

#include "base/err.h"

enum { PRETOKENIZER_MAX_PATTERNS = 8 };

/* The split of GPT-2, which a ByteLevel step with use_regex stands for. */
extern const char PRETOKENIZER_GPT2[];

typedef struct pretokenizer pretokenizer;
typedef struct pretokenizer_scratch pretokenizer_scratch;

/* Takes one piece text[0..len), len > 0; an error stops the splitting and is passed on. */
typedef err_code (*pretokenizer_fn)(void *ctx, const char *piece, size_t len, err_detail *detail);

/* Compiles n NUL-terminated patterns (0 = no cut at all). ERR_UNSUPPORTED with the reason for one
 * that does not compile. The caller destroys *out. */
MUST_CHECK err_code pretokenizer_create(pretokenizer **out, const char *const *patterns, size_t n,
                                        err_detail *detail);
void pretokenizer_destroy(pretokenizer *p); /* NULL allowed */

/* Working memory for one thread at a time. */
MUST_CHECK err_code pretokenizer_scratch_create(pretokenizer_scratch **out, const pretokenizer *p,
                                                err_detail *detail);
void pretokenizer_scratch_destroy(pretokenizer_scratch *s); /* NULL allowed */

/* Calls fn for every piece of valid UTF-8 text[0..len) in order. ERR_LIMIT if an expression gives
 * up. */
MUST_CHECK err_code pretokenizer_split(const pretokenizer *p, pretokenizer_scratch *s, const char *text,
                                       size_t len, pretokenizer_fn fn, void *ctx, err_detail *detail);

#endif
