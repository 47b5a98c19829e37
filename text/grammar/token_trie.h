/* token_trie: the bytes of every token of a vocabulary in order, so that a grammar can test all
 * tokens at once. Built once a model, then immutable: any thread may read it. It points into the
 * tokenizer, which must outlive it.
 *
 *     token_trie *t; token_trie_create(&t, tokenizer, stop_ids, n_stop_ids, &detail);
 *     int32_t token = token_trie_find(t, "{\"", 2);
 *     token_trie_destroy(t);
 *
 * A trie is an array of nodes in the order of a walk: the node behind one is its first child, or,
 * if a walk does not want its children, nodes[next]. Inside a JSON string most tokens are allowed,
 * and a walk would meet them all; so what each token does there is known beforehand: it stays
 * inside (a ready-made mask), or closes the string and goes on with some rest, and only the rests
 * are walked.
 */
#ifndef PARLEY_TEXT_GRAMMAR_TOKEN_TRIE_H
#define PARLEY_TEXT_GRAMMAR_TOKEN_TRIE_H

#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "text/tokenizer/tokenizer.h"

/* Masks exist up to TRIE_STRING_CHARS characters; tokens longer than TRIE_TOKEN_BYTES are in no
 * trie. */
enum { TRIE_STRING_CHARS = 16, TRIE_TOKEN_BYTES = 256 };

typedef struct trie_node {
    int32_t token;  /* that ends here, or -1 */
    int32_t next;   /* the first node that is not below this one */
    uint16_t depth; /* 1: a first byte */
    uint8_t byte;
} trie_node;

typedef struct trie_nodes {
    trie_node *nodes;
    int32_t n_nodes;
} trie_nodes;

/* A token and how many characters of a JSON string it begins, read inside one. */
typedef struct string_token {
    int32_t token, chars;
    int32_t same; /* the next one whose rest is equal, or -1 */
} string_token;

typedef struct token_trie {
    const tokenizer *tok;
    arena *memory;
    int32_t n_tokens;
    size_t n_words;     /* of a mask: a bit for each token, 64 a word */
    trie_nodes all;     /* all tokens but special and added ones */
    trie_nodes added;   /* added tokens that are not special: <tool_call>, </think> */
    trie_nodes special; /* special ones that do not end an answer: <|channel|>, [TOOL_CALLS] */
    int32_t *same;      /* [n_tokens] another token with the same bytes, or -1 */
    /* [TRIE_STRING_CHARS, n_words]: tokens that stay inside, of at most 1, 2, ... characters */
    uint64_t *string_masks;
    string_token *long_ones; /* those that stay inside and have more characters */
    int32_t n_long;
    string_token *closing; /* those that close the string ... */
    int32_t n_closing;
    trie_nodes rests;    /* ... by what follows the quote; `token` is an index of closing */
    int32_t bare_close;  /* index of the first that ends with the quote, or -1 */
    uint64_t *stop_mask; /* [n_words] tokens that end an answer */
} token_trie;

/* ERR_NOMEM. stop_ids are copied. */
MUST_CHECK err_code token_trie_create(token_trie **out, const tokenizer *tok, const int32_t *stop_ids,
                                      size_t n_stop_ids, err_detail *detail);
void token_trie_destroy(token_trie *t); /* NULL allowed */

/* The bytes of a token that is in a trie; NULL and 0 for others (those that end an answer among them). */
const char *token_trie_bytes(const token_trie *t, int32_t token, size_t *len);

/* The token that is exactly this text, an added one before others; or -1. */
int32_t token_trie_find(const token_trie *t, const char *text, size_t len);

static inline bool token_mask_has(const uint64_t *mask, int32_t token)
{
    return mask[token >> 6] >> (token & 63) & 1;
}

#endif
